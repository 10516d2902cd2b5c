//! The driver's calls for checkpoints, and the library that they are in. cudarc 0.19 has no bindings for them. All unsafe code of this crate is here.

use crate::gpu::Uuid;
use crate::wire::Refusal;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::ptr;

/// First version with the calls: driver 570.
const CALLS: c_int = 12_080;
/// First version that `cuda-checkpoint` works with: driver 550.
const TOGGLE: c_int = 12_040;

/// `CUcheckpointLockArgs`.
#[repr(C)]
struct LockArgs {
    timeout_ms: c_uint,
    reserved: [u32; 15],
}

/// `CUcheckpointCheckpointArgs` and `CUcheckpointUnlockArgs`.
#[repr(C)]
struct NoArgs {
    reserved: [u64; 8],
}

/// `CUcheckpointGpuPair`.
#[repr(C)]
struct GpuPair {
    old: [u8; 16],
    new: [u8; 16],
}

/// `CUcheckpointRestoreArgs`.
#[repr(C)]
struct RestoreArgs {
    pairs: *mut GpuPair,
    count: c_uint,
    reserved: [u32; 11],
    reserved_last: u64,
}

const _: () =
    assert!(size_of::<LockArgs>() == 64 && size_of::<NoArgs>() == 64 && size_of::<RestoreArgs>() == 64 && size_of::<GpuPair>() == 32);

/// What the driver offers.
pub(crate) struct Driver {
    library: Library,
    version: c_int,
}

impl Driver {
    /// Loads and initialises the driver.
    pub(crate) fn load() -> Result<Self, Refusal> {
        // SAFETY: the driver's initialisers are those that every CUDA program runs.
        let library = unsafe { Library::new("libcuda.so.1") }.map_err(|error| {
            let why = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            Refusal::NoDriver(format!("libcuda.so.1 can't be loaded: {why}"))
        })?;
        let mut driver = Self { library, version: 0 };
        let mut version = 0;
        // SAFETY: the types are those of cuda.h, and the out pointer lives through the call.
        driver.check(unsafe { driver.symbol::<unsafe extern "C" fn(*mut c_int) -> c_uint>("cuDriverGetVersion")?(&raw mut version) })?;
        driver.version = version;
        if version < TOGGLE {
            return Err(Refusal::TooOld(version));
        }
        // SAFETY: the type is that of cuda.h.
        let code = unsafe { driver.symbol::<unsafe extern "C" fn(c_uint) -> c_uint>("cuInit")?(0) };
        driver.check(code).map_err(|refusal| match refusal {
            Refusal::Driver { code: 100, name } => Refusal::NoDriver(format!("it finds no GPU ({name})")),
            other => other,
        })?;
        Ok(driver)
    }

    pub(crate) fn version(&self) -> c_int {
        self.version
    }

    /// Whether it has the calls, or `cuda-checkpoint` must do.
    pub(crate) fn has_calls(&self) -> bool {
        self.version >= CALLS
    }

    /// # Safety
    /// `T` is the type of the function.
    unsafe fn symbol<T: Copy>(&self, name: &str) -> Result<T, Refusal> {
        // SAFETY: the caller's word.
        let found = unsafe { self.library.get::<T>(name.as_bytes()) };
        found.map(|symbol| *symbol).map_err(|_| Refusal::Symbol(name.to_owned()))
    }

    fn check(&self, code: c_uint) -> Result<(), Refusal> {
        if code == 0 {
            return Ok(());
        }
        let mut name: *const c_char = ptr::null();
        // SAFETY: the type is that of cuda.h; the text that the driver gives lives for ever.
        let known = unsafe { self.symbol::<unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint>("cuGetErrorName") }
            .is_ok_and(|call| unsafe { call(code, &raw mut name) } == 0 && !name.is_null());
        // SAFETY: a text of the driver's.
        let name = if known { unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned() } else { format!("error {code}") };
        Err(Refusal::Driver { code, name })
    }

    fn number(&self, name: &str, pid: c_int) -> Result<c_int, Refusal> {
        let mut number = 0;
        // SAFETY: both calls that tell a number of a process have this type.
        self.check(unsafe { self.symbol::<unsafe extern "C" fn(c_int, *mut c_int) -> c_uint>(name)?(pid, &raw mut number) })?;
        Ok(number)
    }

    pub(crate) fn state(&self, pid: c_int) -> Result<u32, Refusal> {
        self.number("cuCheckpointProcessGetState", pid).map(c_int::cast_unsigned)
    }

    pub(crate) fn restore_thread_id(&self, pid: c_int) -> Result<i32, Refusal> {
        self.number("cuCheckpointProcessGetRestoreThreadId", pid)
    }

    fn change<T>(&self, name: &str, pid: c_int, mut arguments: Option<T>) -> Result<(), Refusal> {
        let arguments = arguments.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
        // SAFETY: the calls that change a process's state have this type; the struct is the call's own, and lives through it.
        self.check(unsafe { self.symbol::<unsafe extern "C" fn(c_int, *mut T) -> c_uint>(name)?(pid, arguments) })
    }

    /// A timeout of zero is none.
    pub(crate) fn lock(&self, pid: c_int, timeout_ms: u32) -> Result<(), Refusal> {
        self.change("cuCheckpointProcessLock", pid, Some(LockArgs { timeout_ms, reserved: [0; 15] }))
    }

    pub(crate) fn checkpoint(&self, pid: c_int) -> Result<(), Refusal> {
        self.change("cuCheckpointProcessCheckpoint", pid, Some(NoArgs { reserved: [0; 8] }))
    }

    /// Without pairs, drivers that know none get no struct.
    pub(crate) fn restore(&self, pid: c_int, pairs: &[(Uuid, Uuid)]) -> Result<(), Refusal> {
        let mut pairs: Vec<GpuPair> = pairs.iter().map(|(old, new)| GpuPair { old: old.0, new: new.0 }).collect();
        let count = pairs.len() as c_uint;
        let arguments = RestoreArgs { pairs: pairs.as_mut_ptr(), count, reserved: [0; 11], reserved_last: 0 };
        self.change("cuCheckpointProcessRestore", pid, (count > 0).then_some(arguments))
    }

    pub(crate) fn unlock(&self, pid: c_int) -> Result<(), Refusal> {
        self.change("cuCheckpointProcessUnlock", pid, Some(NoArgs { reserved: [0; 8] }))
    }
}
