//! A GPU as a program sees it.

use serde::Serialize;

/// A GPU, or a part of one (MIG), as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gpu {
    /// The number that NVML and `nvidia-smi` give the GPU. Parts of a GPU share it.
    pub index: u32,
    /// `GPU-…`, or `MIG-…` for a part. `CUDA_VISIBLE_DEVICES` takes it.
    pub uuid: String,
    /// The product's name.
    pub name: String,
    /// Bytes of memory.
    pub total: u64,
    /// Bytes of memory that are free.
    pub free: u64,
    /// Share of the last sample period in which a kernel ran, 0 to 1. Unknown for parts of a GPU.
    pub busy: Option<f64>,
    /// Processes with a context.
    pub processes: u32,
    /// Who may make a context.
    pub mode: Mode,
    /// Why NVML could not read the GPU. The other fields then mean nothing but `index`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// Who may make a context on a GPU (`nvidia-smi --compute-mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Any number of processes.
    Shared,
    /// One process.
    Exclusive,
    /// Nobody.
    Prohibited,
}

impl Gpu {
    /// How messages call it.
    #[must_use]
    pub fn title(&self) -> String {
        let name = if self.name.is_empty() { "GPU" } else { &self.name };
        let uuid = if self.uuid.is_empty() { String::new() } else { format!(", {}", self.uuid) };
        format!("{}: {name}{uuid}", self.index)
    }
}
