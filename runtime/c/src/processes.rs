//! Checkpoints of processes by pid, for C.
//!
//! # Safety
//! As in [`exports`](crate::exports).

use crate::exports::{null, put, utf8};
use crate::handles::Handles;
use crate::layout::{GpuPair, Id};
use crate::status::{Failure, Status, answer};
use cuinstr_checkpoint::{Error, Group, Handle, Helper, Mapping, TreeFailure, Uuid};
use std::ffi::c_char;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

static PROCESSES: Handles<Process> = Handles::new("process");

struct Process {
    handle: Handle,
    group: Group,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(status(&error), error.to_string())
    }
}

impl From<TreeFailure> for Failure {
    fn from(failure: TreeFailure) -> Self {
        Self::new(status(&failure.error), failure.to_string())
    }
}

fn status(error: &Error) -> Status {
    match error {
        Error::BadPid(_) | Error::BadTimeout(_) | Error::BadMapping(_) => Status::BadArgument,
        Error::NoDriver(_) | Error::DriverTooOld(_) | Error::SymbolMissing(_) | Error::ToggleOnly(_) => Status::NoDriver,
        Error::NoSuchProcess(_) => Status::NoProcess,
        Error::NoPermission { .. } => Status::NoPermission,
        Error::NotCuda(_) => Status::NotCuda,
        Error::WrongState { .. } => Status::WrongState,
        Error::Busy { .. } => Status::ProcessBusy,
        Error::Mig { .. } | Error::Mps { .. } | Error::Architecture(_) | Error::Unsupported { .. } => Status::NotCheckpointable,
        Error::GpuMemory { .. } | Error::HostMemory { .. } => Status::NoRoom,
        Error::Lost(_) => Status::ProcessLost,
        Error::Blocked { .. } => Status::Blocked,
        Error::Driver { .. } | Error::Program { .. } => Status::DriverError,
        Error::Helper(_) => Status::Machine,
    }
}

/// The program that makes the calls: a library can't be its own.
fn helper(path: Option<String>) -> Result<Helper, Failure> {
    let on_path =
        |name: &str| std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file());
    let program = path.map(PathBuf::from).or_else(|| on_path("cuinstr-checkpoint")).or_else(|| on_path("cuinstr"));
    let absent =
        || Failure::new(Status::Machine, "neither cuinstr-checkpoint nor cuinstr is on the search path: give the path of one as `helper`");
    Ok(Helper::of_program(program.ok_or_else(absent)?, [] as [&str; 0]))
}

fn limit(timeout_ms: u32) -> Option<Duration> {
    (timeout_ms > 0).then(|| Duration::from_millis(u64::from(timeout_ms)))
}

/// # Safety
/// `pairs` leads to so many, or is null.
unsafe fn mapping(pairs: *const GpuPair, count: usize) -> Result<Mapping, Failure> {
    if count == 0 {
        return Ok(Mapping::none());
    }
    if pairs.is_null() {
        return Err(null("pairs"));
    }
    // SAFETY: the caller's word.
    let pairs = unsafe { std::slice::from_raw_parts(pairs, count) };
    Ok(Mapping::new(pairs.iter().map(|pair| (Uuid(pair.old_uuid), Uuid(pair.new_uuid))).collect())?)
}

fn with(process: Id, call: impl FnOnce(&Process) -> Result<(), Failure>) -> i32 {
    answer(|| PROCESSES.get(process.0).and_then(|process: Arc<Process>| call(&process)))
}

/// A process by its pid.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_process_open(pid: i64, program: *const c_char, process: *mut Id) -> i32 {
    answer(|| {
        if process.is_null() {
            return Err(null("process"));
        }
        // SAFETY: the caller's text.
        let helper = helper(unsafe { utf8(program, "helper") }?)?;
        let opened = Process { handle: Handle::open(helper.clone(), pid)?, group: Group::of(helper, pid)? };
        // SAFETY: the caller's place.
        unsafe { put(process, Id(PROCESSES.keep(opened)), "process") }
    })
}

/// Its state.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_process_state(process: Id, state: *mut u32) -> i32 {
    // SAFETY: the caller's place.
    with(process, |process| unsafe { put(state, process.handle.state()?.into(), "state") })
}

/// The thread that restores it.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_process_restore_thread_id(process: Id, thread: *mut i32) -> i32 {
    // SAFETY: the caller's place.
    with(process, |process| unsafe { put(thread, process.handle.restore_thread_id()?, "thread") })
}

/// Locks it.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_process_lock(process: Id, timeout_ms: u32) -> i32 {
    with(process, |process| Ok(process.handle.lock(limit(timeout_ms)).map(drop)?))
}

/// Copies its GPU memory to host memory.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_process_checkpoint(process: Id) -> i32 {
    with(process, |process| Ok(process.handle.checkpoint().map(drop)?))
}

/// Brings it back.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_process_restore(process: Id, pairs: *const GpuPair, count: usize) -> i32 {
    // SAFETY: the caller's pairs.
    with(process, |process| Ok(process.handle.restore(&unsafe { mapping(pairs, count) }?).map(drop)?))
}

/// Unlocks it.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_process_unlock(process: Id) -> i32 {
    with(process, |process| Ok(process.handle.unlock().map(drop)?))
}

/// Locks and checkpoints it, or leaves it running.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_process_suspend(process: Id, timeout_ms: u32) -> i32 {
    with(process, |process| Ok(process.group.suspend(limit(timeout_ms)).map(drop)?))
}

/// Restores and unlocks it, or leaves it suspended.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_process_resume(process: Id, pairs: *const GpuPair, count: usize) -> i32 {
    // SAFETY: the caller's pairs.
    with(process, |process| Ok(process.group.resume(&unsafe { mapping(pairs, count) }?).map(drop)?))
}

/// Lets go of it; it stays as it is.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_process_close(process: Id) -> i32 {
    answer(|| PROCESSES.release(process.0).map(drop))
}
