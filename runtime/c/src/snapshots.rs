//! Snapshots for C: memory at stable addresses, saved to a file and restored in another process.
//!
//! # Safety
//! As in [`exports`](crate::exports).

use crate::exports::{null, put, utf8};
use crate::guarding::{GUARDS, MODULES, Watched};
use crate::handles::Handles;
use crate::layout::Id;
use crate::status::{Failure, Status, answer};
use cudarc::driver::{result, sys};
use cuinstr_runtime::snapshot::{Fault, Ledger, Memory};
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

static LEDGERS: Handles<Ledger> = Handles::new("ledger");

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let status = match &fault {
            Fault::File { .. } | Fault::DiskFull { .. } => Status::File,
            Fault::NotASnapshot { .. } | Fault::OtherFormat { .. } | Fault::Damaged { .. } => Status::NotASnapshot,
            Fault::OtherGpu { .. } => Status::OtherGpu,
            Fault::AddressTaken { .. } => Status::AddressTaken,
            Fault::Name(_) | Fault::Stateful { .. } => Status::BadArgument,
            Fault::Busy { .. } => Status::ContextBusy,
            Fault::Runtime(_) => Status::Internal,
        };
        match fault {
            Fault::Runtime(error) => error.into(),
            fault => Self::new(status, fault.to_string()),
        }
    }
}

/// Brings the thread's current context back when it is dropped.
struct Visit(Option<sys::CUcontext>);

impl Visit {
    fn begin() -> Self {
        // SAFETY: it only looks for the driver's library, whose initialisers are those that every CUDA program runs.
        let has_driver = unsafe { sys::is_culib_present() };
        Self(has_driver.then(|| result::ctx::get_current().ok().flatten().unwrap_or(ptr::null_mut())))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            // SAFETY: this was the thread's current context, or none; no thread may destroy a context that is current.
            let _ = unsafe { result::ctx::set_current(before) };
        }
    }
}

/// # Safety
/// The text ends with a zero.
unsafe fn required(text: *const c_char, what: &str) -> Result<String, Failure> {
    // SAFETY: the caller's word.
    unsafe { utf8(text, what) }?.ok_or_else(|| null(what))
}

fn with(ledger: Id, call: impl FnOnce(&Ledger) -> Result<(), Failure>) -> i32 {
    answer(|| {
        // Whoever drops the last handle of a ledger enters its context.
        let _visit = Visit::begin();
        let ledger: Arc<Ledger> = LEDGERS.get(ledger.0)?;
        call(&ledger)
    })
}

/// # Safety
/// `ledger` leads to room for a handle, or is null.
unsafe fn open(
    device: i32,
    ledger: *mut Id,
    begin: impl FnOnce(&Arc<cudarc::driver::CudaContext>) -> Result<Ledger, Fault>,
) -> Result<(), Failure> {
    if ledger.is_null() {
        return Err(null("ledger"));
    }
    let device = usize::try_from(device).map_err(|_| Failure::new(Status::BadArgument, format!("there is no device {device}")))?;
    let _visit = Visit::begin();
    let made = begin(&cuinstr_runtime::open(device)?)?;
    // SAFETY: the caller's place.
    unsafe { put(ledger, Id(LEDGERS.keep(made)), "ledger") }
}

/// An empty ledger.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_snapshot_new(device: i32, ledger: *mut Id) -> i32 {
    // SAFETY: the caller's place.
    answer(|| unsafe { open(device, ledger, Ledger::new) })
}

/// The ledger of a file.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_snapshot_restore(device: i32, path: *const c_char, ledger: *mut Id) -> i32 {
    answer(|| {
        // SAFETY: the caller's text.
        let path = unsafe { required(path, "path") }?;
        // SAFETY: the caller's place.
        unsafe { open(device, ledger, |context| Ledger::restore(context, path)) }
    })
}

/// Memory of zeroes under a new name.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_snapshot_allocate(ledger: Id, name: *const c_char, bytes: usize, address: *mut u64) -> i32 {
    with(ledger, |ledger| {
        // SAFETY: the caller's text.
        let name = unsafe { required(name, "name") }?;
        if address.is_null() {
            return Err(null("address"));
        }
        // SAFETY: the caller's place.
        unsafe { put(address, ledger.allocate(&name, bytes)?.address, "address") }
    })
}

/// The memory of this name.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_snapshot_memory(ledger: Id, name: *const c_char, address: *mut u64, bytes: *mut usize) -> i32 {
    with(ledger, |ledger| {
        // SAFETY: the caller's text.
        let memory: Memory = ledger.memory(&unsafe { required(name, "name") }?)?;
        // SAFETY: the caller's places.
        unsafe {
            put(address, memory.address, "address")?;
            put(bytes, memory.bytes, "bytes")
        }
    })
}

/// Gives memory back.
///
/// # Safety
/// As the module says, and no kernel that runs or will run uses the memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_snapshot_free(ledger: Id, name: *const c_char) -> i32 {
    // SAFETY: the caller's text, and the caller's promise of the memory.
    with(ledger, |ledger| unsafe { Ok(ledger.free(&required(name, "name")?)?) })
}

/// Takes over a paused launch.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_snapshot_put_paused(ledger: Id, name: *const c_char, guard: Id) -> i32 {
    with(ledger, |ledger| {
        // SAFETY: the caller's text.
        let name = unsafe { required(name, "name") }?;
        Ok(ledger.put_left(&name, &GUARDS.get(guard.0)?.guard)?)
    })
}

/// Arms a module for what is left of a paused launch.
///
/// # Safety
/// As the module says, and the stream lives until the outcome is known.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_snapshot_arm(ledger: Id, name: *const c_char, module: Id, stream: *mut c_void, guard: *mut Id) -> i32 {
    with(ledger, |ledger| {
        if guard.is_null() {
            return Err(null("guard"));
        }
        // SAFETY: the caller's text.
        let name = unsafe { required(name, "name") }?;
        let module = MODULES.get(module.0)?;
        let left = ledger.take_left(&name)?;
        // SAFETY: the caller's word for the stream and the module.
        let armed = unsafe { module.arm_left(stream.expose_provenance(), &left) };
        let armed = armed.inspect_err(|_| ledger.keep_left(&name, left))?;
        // SAFETY: the caller's place.
        unsafe { put(guard, Id(GUARDS.keep(Watched::new(armed))), "guard") }
    })
}

/// Saves it all to a file.
///
/// # Safety
/// As the module says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuinstr_snapshot_save(ledger: Id, path: *const c_char, within_ns: u64) -> i32 {
    with(ledger, |ledger| {
        // SAFETY: the caller's text.
        let path = unsafe { required(path, "path") }?;
        Ok(ledger.save(path, Duration::from_nanos(within_ns)).map(drop)?)
    })
}

/// Lets go of it; its memory stays until the context ends.
#[unsafe(no_mangle)]
pub extern "C" fn cuinstr_snapshot_release(ledger: Id) -> i32 {
    answer(|| {
        let _visit = Visit::begin();
        LEDGERS.release(ledger.0).map(drop)
    })
}
