//! The real driver: its library and its functions, never our own.

use crate::calls::ENTRIES;
use crate::lookup;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// `CUDA_ERROR_NOT_INITIALIZED`: what a wrapper says where there is no driver.
pub(crate) const NOT_INITIALIZED: u32 = 3;
/// `CU_GET_PROC_ADDRESS_LEGACY_STREAM` and `…_PER_THREAD_DEFAULT_STREAM`.
const STREAMS: [u64; 2] = [1, 2];

type GetProcAddress = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, u64, *mut c_void) -> u32;

/// What is known of the driver.
struct Table {
    /// The real function of each entry.
    real: Vec<usize>,
    /// Wrappers by the real functions that they stand for.
    wrappers: HashMap<usize, usize>,
}

static LIBRARY: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static TABLE: OnceLock<Table> = OnceLock::new();
/// Thread that fills the table: what it looks up itself is not ours.
static FILLING: AtomicUsize = AtomicUsize::new(0);

/// How the names of the driver's files begin. Some only hand on to another one.
const FILE: &[u8] = b"libcuda.so";

/// The driver's library, if the process has loaded it. Its file's name tells it from a tool's library that has its SONAME, and calls it.
fn library() -> Option<*mut c_void> {
    let known = LIBRARY.load(Ordering::Acquire);
    if !known.is_null() {
        return Some(known);
    }
    let library = *lookup::loaded(FILE).first()?;
    LIBRARY.store(library, Ordering::Release);
    Some(library)
}

/// A function that the driver's library exports. One of ours is none of the driver's, whoever gives it: it would call itself.
pub(crate) fn exported(name: &CStr) -> *mut c_void {
    let found = library().map_or(ptr::null_mut(), |library| lookup::real_dlsym(library, name));
    if is_ours(found.addr()) { ptr::null_mut() } else { found }
}

/// Whether an address is in the driver.
pub(crate) fn holds(address: *const c_void) -> bool {
    lookup::path_of(address).is_some_and(|path| lookup::file_of(&path).starts_with(FILE))
}

fn is_ours(function: usize) -> bool {
    ENTRIES.iter().any(|entry| entry.wrapper.0.addr() == function)
}

fn table() -> Option<&'static Table> {
    if let Some(table) = TABLE.get() {
        return Some(table);
    }
    library()?;
    // SAFETY: the call has no conditions.
    let thread = unsafe { libc::pthread_self() } as usize;
    if FILLING.load(Ordering::Acquire) == thread {
        return None;
    }
    Some(TABLE.get_or_init(|| {
        FILLING.store(thread, Ordering::Release);
        let table = fill();
        FILLING.store(0, Ordering::Release);
        table
    }))
}

/// Asks the driver for each function in both ways: by the exported name, and by version and flags. They need not be the same.
fn fill() -> Table {
    let mut table = Table { real: vec![0; ENTRIES.len()], wrappers: HashMap::new() };
    let ask = exported(c"cuGetProcAddress_v2");
    // SAFETY: the driver exports it with this signature.
    let ask: Option<GetProcAddress> = (!ask.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, GetProcAddress>(ask) });
    for (entry, real) in ENTRIES.iter().zip(&mut table.real) {
        let by_name = CString::new(entry.name).map_or(ptr::null_mut(), |name| exported(&name)).addr();
        let mut by_version = ptr::null_mut();
        if let (Some(ask), Ok(base)) = (ask, CString::new(entry.base)) {
            // SAFETY: the name ends with a zero, and the out pointer lives through the call. The answer's reason is not asked for.
            let result =
                unsafe { ask(base.as_ptr(), &raw mut by_version, entry.version, STREAMS[usize::from(entry.per_thread)], ptr::null_mut()) };
            if result != 0 || is_ours(by_version.addr()) {
                by_version = ptr::null_mut();
            }
        }
        *real = if by_name == 0 { by_version.addr() } else { by_name };
        for found in [by_name, by_version.addr()] {
            if found != 0 {
                // Two entries with one function are the same call under two names: the first one serves both.
                table.wrappers.entry(found).or_insert(entry.wrapper.0.addr());
            }
        }
    }
    table
}

/// The real function of an entry, by its place in the table.
pub(crate) fn real(index: usize) -> Option<usize> {
    table().and_then(|table| table.real.get(index).copied()).filter(|real| *real != 0)
}

/// The wrapper that stands for this function of the driver.
pub(crate) fn wrapper_of(function: usize) -> Option<usize> {
    table()?.wrappers.get(&function).copied()
}

/// Calls a function of the driver that has no wrapper; nothing if the driver lacks it.
macro_rules! ask {
    ($name:literal ($($argument:expr => $type:ty),*)) => {
        $crate::lookup::call!($crate::driver::exported($name), ($($argument => $type),*)).map(i32::cast_unsigned)
    };
}
pub(crate) use ask;

/// Compute capabilities, times ten, of the GPUs that code may run on: that of the current context's, or of all.
pub(crate) fn architectures(of_context: bool) -> Vec<u32> {
    let capability = |device: c_int| {
        let mut parts = [0_i32; 2];
        for (part, attribute) in parts.iter_mut().zip([75, 76]) {
            if ask!(c"cuDeviceGetAttribute" (&raw mut *part => *mut c_int, attribute => c_int, device => c_int)) != Some(0) {
                return None;
            }
        }
        u32::try_from(parts[0] * 10 + parts[1]).ok()
    };
    let mut device = 0;
    if of_context && ask!(c"cuCtxGetDevice" (&raw mut device => *mut c_int)) == Some(0) {
        return capability(device).into_iter().collect();
    }
    let mut count = 0;
    if ask!(c"cuDeviceGetCount" (&raw mut count => *mut c_int)) != Some(0) {
        return Vec::new();
    }
    let mut found: Vec<u32> = (0..count).filter_map(capability).collect();
    found.sort_unstable();
    found.dedup();
    found
}
