//! One look at the GPUs, through NVML.

use crate::device::{Gpu, Mode};
use crate::error::Error;
use nvml_wrapper::enum_wrappers::device::ComputeMode;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

/// Lists the GPUs in NVML's order. A GPU in MIG mode is listed as its parts.
///
/// A GPU that has fallen off the bus is listed with `unreadable`, so that the others stay in use.
///
/// # Errors
/// [`Error::Nvml`] if the library is absent or does not start.
pub fn look() -> Result<Vec<Gpu>, Error> {
    let failed = |error: NvmlError| Error::Nvml(error.to_string());
    let nvml = Nvml::init().map_err(failed)?;
    let count = nvml.device_count().map_err(failed)?;
    Ok((0..count).flat_map(|index| gpus_at(&nvml, index)).collect())
}

/// The GPU of a number, or its parts.
fn gpus_at(nvml: &Nvml, index: u32) -> Vec<Gpu> {
    let read = || {
        let device = nvml.device_by_index(index)?;
        let parts = parts(&device);
        if parts.is_empty() {
            Ok(vec![gpu(&device, &device, index)?])
        } else {
            parts.iter().map(|part| gpu(&device, part, index)).collect()
        }
    };
    read().unwrap_or_else(|error: NvmlError| vec![unreadable(index, error.to_string())])
}

/// The MIG devices of a GPU in MIG mode.
fn parts<'nvml>(device: &Device<'nvml>) -> Vec<Device<'nvml>> {
    const ENABLED: u32 = 1;
    let enabled = device.mig_mode().is_ok_and(|mode| mode.current == ENABLED);
    let most = if enabled { device.mig_device_count().unwrap_or(0) } else { 0 };
    // Places without a part answer "not found".
    (0..most).filter_map(|place| device.mig_device_by_index(place).ok()).collect()
}

fn gpu(whole: &Device<'_>, part: &Device<'_>, index: u32) -> Result<Gpu, NvmlError> {
    let memory = part.memory_info()?;
    Ok(Gpu {
        index,
        uuid: part.uuid()?,
        name: part.name()?,
        total: memory.total,
        free: memory.free,
        busy: part.utilization_rates().ok().map(|rates| f64::from(rates.gpu) / 100.0),
        processes: part.running_compute_processes().map_or(0, |list| u32::try_from(list.len()).unwrap_or(u32::MAX)),
        mode: match whole.compute_mode() {
            Ok(ComputeMode::ExclusiveProcess | ComputeMode::ExclusiveThread) => Mode::Exclusive,
            Ok(ComputeMode::Prohibited) => Mode::Prohibited,
            Ok(ComputeMode::Default) | Err(_) => Mode::Shared,
        },
        unreadable: None,
    })
}

/// A GPU of which no more is known than why.
fn unreadable(index: u32, why: String) -> Gpu {
    let unknown = String::new;
    let mode = Mode::Prohibited;
    Gpu { index, uuid: unknown(), name: unknown(), total: 0, free: 0, busy: None, processes: 0, mode, unreadable: Some(why) }
}
