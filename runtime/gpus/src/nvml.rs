//! NVML, the one place that reads it: what GPUs there are, and what a process has on each.

use crate::device::{Gpu, Mode};
use crate::error::Error;
use nvml_wrapper::enum_wrappers::device::ComputeMode;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use std::collections::BTreeMap;

/// Lists the GPUs in NVML's order. A GPU in MIG mode is listed as its parts.
///
/// A GPU that has fallen off the bus is listed with `unreadable`, so that the others stay in use.
///
/// # Errors
/// [`Error::Nvml`] if the library is absent or does not start.
pub fn look() -> Result<Vec<Gpu>, Error> {
    let Library(nvml) = Library::open()?;
    let count = nvml.device_count().map_err(|error| failed(&error))?;
    Ok((0..count).flat_map(|index| gpus_at(&nvml, index)).collect())
}

fn failed(error: &NvmlError) -> Error {
    Error::Nvml(error.to_string())
}

/// NVML, kept open for several looks.
#[derive(Debug)]
pub struct Library(Nvml);

/// A whole GPU, and what one process has on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// `GPU-…`.
    pub uuid: String,
    /// The product's name.
    pub name: String,
    /// The number in `/dev/nvidiaN`.
    pub minor: Option<u32>,
    /// Whether it is split by MIG.
    pub is_mig: bool,
    /// Bytes of memory.
    pub total: u64,
    /// Bytes of memory that are free.
    pub free: u64,
    /// Whether the process has a context on it.
    pub is_used: bool,
    /// Bytes that the process has on it, where NVML tells: inside a container it may not.
    pub used: Option<u64>,
}

impl Library {
    /// Loads it.
    ///
    /// # Errors
    /// [`Error::Nvml`] if the library is absent or does not start.
    pub fn open() -> Result<Self, Error> {
        Nvml::init().map(Self).map_err(|error| failed(&error))
    }

    /// What a process has on each GPU. A GPU that can't be read is left out.
    #[must_use]
    pub fn shares(&self, pid: u32) -> Vec<Share> {
        self.devices().filter_map(|device| share(&device, pid).ok()).collect()
    }

    /// Bytes of memory that are free on each GPU, by its UUID.
    #[must_use]
    pub fn free(&self) -> BTreeMap<String, u64> {
        self.devices().filter_map(|device| Some((device.uuid().ok()?, device.memory_info().ok()?.free))).collect()
    }

    /// Whether a GPU is split by MIG.
    #[must_use]
    pub fn is_any_split(&self) -> bool {
        self.devices().any(|device| is_split(&device))
    }

    fn devices(&self) -> impl Iterator<Item = Device<'_>> {
        (0..self.0.device_count().unwrap_or(0)).filter_map(|index| self.0.device_by_index(index).ok())
    }
}

fn share(device: &Device<'_>, pid: u32) -> Result<Share, NvmlError> {
    let memory = device.memory_info()?;
    let own = device.running_compute_processes().unwrap_or_default().into_iter().find(|process| process.pid == pid);
    let used = own.as_ref().and_then(|process| match process.used_gpu_memory {
        UsedGpuMemory::Used(bytes) => Some(bytes),
        UsedGpuMemory::Unavailable => None,
    });
    Ok(Share {
        uuid: device.uuid()?,
        name: device.name().unwrap_or_default(),
        minor: device.minor_number().ok(),
        is_mig: is_split(device),
        total: memory.total,
        free: memory.free,
        is_used: own.is_some(),
        used,
    })
}

/// Whether a GPU is in MIG mode.
fn is_split(device: &Device<'_>) -> bool {
    const ENABLED: u32 = 1;
    device.mig_mode().is_ok_and(|mode| mode.current == ENABLED)
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
    let most = if is_split(device) { device.mig_device_count().unwrap_or(0) } else { 0 };
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
