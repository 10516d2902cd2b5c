//! `CUDA_VISIBLE_DEVICES`: which GPUs a scheduler, a container or the user leaves to the program.

use crate::device::Gpu;
use crate::error::Error;

/// The GPUs that the environment allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visible {
    /// The variable is not set.
    All,
    /// Its value.
    These(String),
}

impl Visible {
    /// Reads the process's environment.
    #[must_use]
    pub fn of_environment() -> Self {
        std::env::var("CUDA_VISIBLE_DEVICES").map_or(Self::All, Self::These)
    }

    /// Keeps the GPUs that are allowed, in the order of the variable.
    ///
    /// As CUDA reads the variable, the first entry that means no GPU ends the list. Numbers are taken in the order of the PCI bus, which is NVML's;
    /// CUDA does so if `CUDA_DEVICE_ORDER=PCI_BUS_ID`, and programs that we start get UUIDs.
    ///
    /// # Errors
    /// [`Error::NothingVisible`] if none is left.
    pub fn keep(&self, gpus: Vec<Gpu>) -> Result<Vec<Gpu>, Error> {
        let Self::These(value) = self else { return Ok(gpus) };
        let mut kept: Vec<Gpu> = Vec::new();
        for name in value.split(',').map(str::trim) {
            let named: Vec<&Gpu> = gpus.iter().filter(|gpu| gpu.is_called(name)).collect();
            // A number means a whole GPU; its parts have UUIDs only, and CUDA takes the first of them.
            let Some(gpu) = named.first() else { break };
            if !kept.iter().any(|other| other.uuid == gpu.uuid) {
                kept.push((*gpu).clone());
            }
        }
        if kept.is_empty() { Err(Error::NothingVisible(value.clone())) } else { Ok(kept) }
    }
}
