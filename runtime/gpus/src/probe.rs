//! How long a GPU takes for a context and an empty kernel.
//!
//! The calls may block for ever on a GPU that hangs, so they belong into a process of their own that can be killed.

use libloading::Library;
use serde::{Deserialize, Serialize};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::time::Instant;

/// What the first GPU that the process sees took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Milliseconds from the first call until there is a context.
    pub context_ms: f64,
    /// Microseconds from a launch of an empty kernel to its end, the median of some.
    pub launch_us: f64,
}

/// An entry that does nothing, for each GPU that CUDA 11 and later know.
const EMPTY: &std::ffi::CStr = c".version 6.3\n.target sm_50\n.address_size 64\n.visible .entry empty() { ret; }\n";

type Status = c_int;

/// Times the first GPU that this process sees, and leaves its context behind.
///
/// # Errors
/// The call that failed, with the number that the driver gave.
///
/// # Panics
/// Never: an odd number of launches has a median.
pub fn probe() -> Result<Probe, String> {
    const LAUNCHES: usize = 15;
    // SAFETY: libcuda's initialisers may run anywhere.
    let driver = unsafe { Library::new("libcuda.so.1") }.map_err(|error| format!("libcuda.so.1 can't be loaded: {error}"))?;
    let start = Instant::now();
    let (mut device, mut context, mut module, mut function): (c_int, *mut c_void, *mut c_void, *mut c_void) =
        (0, null_mut(), null_mut(), null_mut());
    // SAFETY: each signature is the one of cuda.h for this name, and each pointer leads to a value that outlives the call.
    unsafe {
        call::<extern "C" fn(c_uint) -> Status>(&driver, "cuInit", |f| f(0))?;
        call::<extern "C" fn(*mut c_int, c_int) -> Status>(&driver, "cuDeviceGet", |f| f(&raw mut device, 0))?;
        call::<extern "C" fn(*mut *mut c_void, c_int) -> Status>(&driver, "cuDevicePrimaryCtxRetain", |f| f(&raw mut context, device))?;
        call::<extern "C" fn(*mut c_void) -> Status>(&driver, "cuCtxSetCurrent", |f| f(context))?;
        let context_ms = start.elapsed().as_secs_f64() * 1e3;
        call::<extern "C" fn(*mut *mut c_void, *const c_void) -> Status>(&driver, "cuModuleLoadData", |f| {
            f(&raw mut module, EMPTY.as_ptr().cast())
        })?;
        call::<extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> Status>(&driver, "cuModuleGetFunction", |f| {
            f(&raw mut function, module, c"empty".as_ptr())
        })?;
        let mut times = [0.0; LAUNCHES];
        for time in &mut times {
            let start = Instant::now();
            call::<Launch>(&driver, "cuLaunchKernel", |f| f(function, 1, 1, 1, 1, 1, 1, 0, null_mut(), null(), null()))?;
            call::<extern "C" fn() -> Status>(&driver, "cuCtxSynchronize", |f| f())?;
            *time = start.elapsed().as_secs_f64() * 1e6;
        }
        times.sort_by(f64::total_cmp);
        Ok(Probe { context_ms, launch_us: times[LAUNCHES / 2] })
    }
}

type Launch = extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    *mut c_void,
    *const *mut c_void,
    *const *mut c_void,
) -> Status;

/// Calls a function of the driver.
///
/// # Safety
/// `F` must be the function's type, and `act` must call it with arguments that cuda.h allows.
unsafe fn call<F: Copy>(driver: &Library, name: &str, act: impl FnOnce(F) -> Status) -> Result<(), String> {
    // SAFETY: the caller names the type.
    let function = unsafe { driver.get::<F>(name.as_bytes()) }.map_err(|_| format!("the driver has no {name}"))?;
    match act(*function) {
        0 => Ok(()),
        status => Err(format!("{name} failed with error {status}")),
    }
}
