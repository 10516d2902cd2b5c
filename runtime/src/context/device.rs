//! A first context, with errors that say what this machine lacks.

use crate::driver;
use crate::error::{Error, Result};
use cudarc::driver::CudaContext;
use std::sync::Arc;

/// The oldest version of CUDA whose driver has every call that this crate makes.
const OLDEST: i32 = 12_040;

/// The primary context of a device, as cudarc's `CudaContext::new` gives it, which panics where there is no driver.
///
/// # Errors
/// [`Error::NoDriver`], [`Error::NoDevice`] and [`Error::DriverTooOld`], each with what to do about it.
pub fn open(ordinal: usize) -> Result<Arc<CudaContext>> {
    suffices(version()?, device_count()?, ordinal)?;
    CudaContext::new(ordinal).map_err(|error| driver::fault("cuDevicePrimaryCtxRetain", error).into())
}

/// How many devices the driver knows.
///
/// # Errors
/// [`Error::NoDriver`], and what else the driver answers.
pub fn device_count() -> Result<usize> {
    version()?;
    match CudaContext::device_count() {
        Ok(count) => Ok(usize::try_from(count).unwrap_or(0)),
        // No device at all is an error of the driver's.
        Err(error) if error.0 as u32 == 100 => Ok(0),
        Err(error) => Err(driver::fault("cuInit", error).into()),
    }
}

/// Version of CUDA that the driver brings.
fn version() -> Result<i32> {
    if driver::is_present() { Ok(driver::version()?) } else { Err(Error::NoDriver) }
}

/// Whether there is a driver that will do, wherever the context comes from.
pub(crate) fn check_driver() -> Result<()> {
    suffices(version()?, 1, 0)
}

/// Whether a driver of this version that knows so many devices will do.
fn suffices(version: i32, found: usize, ordinal: usize) -> Result<()> {
    if version < OLDEST {
        return Err(Error::DriverTooOld { found: format!("{}.{}", version / 1000, version % 1000 / 10), needed: "12.4" });
    }
    if ordinal >= found {
        return Err(Error::NoDevice { ordinal, found });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_driver_and_a_missing_device_are_told_apart() {
        let text = |result: Result<()>| result.map_or_else(|error| error.to_string(), |()| "fine".into());
        assert_eq!(text(suffices(13_000, 2, 1)), "fine");
        assert_eq!(text(suffices(12_020, 2, 1)), "the CUDA driver speaks CUDA 12.2, but 12.4 or later is needed; update the driver");
        assert!(text(suffices(13_000, 0, 0)).starts_with("there is no GPU 0: the driver knows 0"));
    }

    #[test]
    fn the_driver_running_out_of_memory_has_an_error_of_its_own() {
        let fault = |code| crate::DriverFault { call: "cuMemAlloc", code, name: String::new() };
        assert!(matches!(Error::from(fault(2)), Error::OutOfMemory(_)));
        assert!(matches!(Error::from(fault(1)), Error::Driver(_)));
    }

    #[test]
    fn a_machine_without_a_gpu_is_told_what_it_lacks() {
        // Where there is a GPU this opens it; where there is none the message names the cure.
        if let Err(error) = open(0) {
            let text = error.to_string();
            assert!(["install NVIDIA's driver", "see nvidia-smi", "update the driver"].iter().any(|cure| text.contains(cure)), "{text}");
        }
        assert!(open(4096).is_err());
    }
}
