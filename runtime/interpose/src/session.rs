//! What `cuinstr run` gets to know of this process: files in the folder that `CUINSTR_RUN` names.
//!
//! Each line is written at once. Launches are counted in shared memory. So nothing is lost with a process that is killed.

use crate::control;
use serde_json::{Value, json};
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// Kernels whose launches are counted.
const MOST_KERNELS: usize = 1 << 14;

struct Session {
    process: u32,
    lines: File,
    compiling: File,
    counts: *mut u64,
    kernels: usize,
}

// SAFETY: the counts lie in memory that is never unmapped, and are only added to.
unsafe impl Send for Session {}

static SESSION: Mutex<Option<Session>> = Mutex::new(None);

impl Session {
    /// The files of this process, under names that no earlier program of the same process number has.
    fn open() -> Option<Self> {
        let folder = PathBuf::from(std::env::var_os("CUINSTR_RUN")?);
        let process = std::process::id();
        let (lines, counts) = (0..1000).find_map(|number| {
            let lines = OpenOptions::new().append(true).create_new(true).open(folder.join(format!("{process}-{number}.jsonl"))).ok()?;
            let counts =
                OpenOptions::new().read(true).write(true).create_new(true).open(folder.join(format!("{process}-{number}.counts"))).ok()?;
            Some((lines, counts))
        })?;
        let compiling = OpenOptions::new().append(true).create(true).open(folder.join("compiling")).ok()?;
        let bytes = MOST_KERNELS * size_of::<u64>();
        counts.set_len(bytes as u64).ok()?;
        // SAFETY: maps a new piece of memory, which a file of that length is behind.
        let memory =
            unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, counts.as_raw_fd(), 0) };
        (memory != libc::MAP_FAILED).then(|| Self { process, lines, compiling, counts: memory.cast(), kernels: 0 })
    }

    fn write(&mut self, line: &Value) {
        let _ = self.lines.write_all(format!("{line}\n").as_bytes());
    }
}

/// Does something with this process's session, if `cuinstr run` began it.
fn with<T>(does: impl FnOnce(&mut Session) -> T) -> Option<T> {
    let mut session = SESSION.lock().unwrap_or_else(PoisonError::into_inner);
    // A child that was forked has files of its own.
    if session.as_ref().is_none_or(|session| session.process != std::process::id()) {
        *session = Session::open();
        control::begin();
    }
    session.as_mut().map(does)
}

thread_local! {
    /// Kernels of code that this thread compiles for the first time.
    static COMPILED: Cell<usize> = const { Cell::new(0) };
}

/// Code with so many kernels gets polls, and is then compiled by the driver: the parent may say so, since that can take long.
pub(crate) fn begin_compiling(kernels: usize) {
    COMPILED.set(COMPILED.get() + kernels);
    with(|session| session.compiling.write_all(format!("+{kernels}\n").as_bytes()));
}

/// What this thread compiled is loaded.
pub(crate) fn end_compiling() {
    let kernels = COMPILED.replace(0);
    if kernels > 0 {
        with(|session| session.compiling.write_all(format!("-{kernels}\n").as_bytes()));
    }
}

/// A kernel is launched for the first time in a context: notes it, and gives the place where its launches are counted.
pub(crate) fn met(mut line: Value) -> *mut u64 {
    let count = |session: &mut Session| {
        line["count"] = json!(session.kernels);
        session.write(&line);
        session.kernels += 1;
        if session.kernels <= MOST_KERNELS { session.counts.wrapping_add(session.kernels - 1) } else { ptr::null_mut() }
    };
    with(count).unwrap_or(ptr::null_mut())
}
