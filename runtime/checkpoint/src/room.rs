//! Checkpoint and restore with a look at the memory that they need.

use crate::error::{Error, Result};
use crate::gpu::{Mapping, Uuid};
use crate::handle::Handle;
use crate::record;
use crate::system;
use std::collections::BTreeMap;
use std::time::Duration;

impl Handle {
    /// Copies its GPU memory to host memory and frees the GPU. Answers how long the driver took.
    ///
    /// What it has on each GPU is written down for whichever process restores it, in the user's folder for such files.
    ///
    /// # Errors
    /// [`Error::HostMemory`] before anything is touched; [`Error::Unsupported`] for memory that can't be checkpointed: the process stays locked.
    pub fn checkpoint(&self) -> Result<Duration> {
        let (bytes, took) = self.copy_out()?;
        record::write(self, &bytes);
        Ok(took)
    }

    /// Brings its GPU memory back; it stays locked. Answers how long the driver took.
    ///
    /// # Errors
    /// [`Error::GpuMemory`] before anything is touched; [`Error::BadMapping`]; whatever the driver refuses.
    pub fn restore(&self, mapping: &Mapping) -> Result<Duration> {
        fits(&[self], mapping)?;
        let took = self.copy_in(mapping)?;
        record::remove(self);
        Ok(took)
    }
}

/// Refuses a restore that has no room on a GPU. Where nobody wrote down how much is needed, it is at most what the process has in host memory.
pub(crate) fn fits(processes: &[&Handle], mapping: &Mapping) -> Result<()> {
    let Some(first) = processes.first() else { return Ok(()) };
    let look = first.look()?;
    let mut needed: BTreeMap<Uuid, u64> = BTreeMap::new();
    for process in processes {
        let on_first = || look.gpus.first().map(|gpu| (gpu.uuid, system::resident(process.pid()))).into_iter().collect();
        for (gpu, bytes) in record::read(process).unwrap_or_else(on_first) {
            *needed.entry(mapping.to(gpu)).or_default() += bytes;
        }
    }
    let short = look.gpus.iter().find_map(|gpu| needed.get(&gpu.uuid).filter(|needed| **needed > gpu.free).map(|needed| (gpu, *needed)));
    short.map_or(Ok(()), |(gpu, needed)| Err(Error::GpuMemory { pid: first.pid(), gpu: gpu.uuid.to_string(), needed, free: gpu.free }))
}
