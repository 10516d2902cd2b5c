//! What a helper is asked, and what it answers: one JSON object a line.

use crate::gpu::Uuid;
use crate::system;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Changes with the messages: a helper of another version refuses to serve.
pub(crate) const VERSION: &str = "2";

/// Bytes by GPU.
pub(crate) type Bytes = BTreeMap<String, u64>;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Ask {
    Look {
        pid: u32,
    },
    State {
        pid: u32,
    },
    RestoreThreadId {
        pid: u32,
    },
    Lock {
        pid: u32,
        timeout_ms: u32,
    },
    Checkpoint {
        pid: u32,
    },
    Restore {
        pid: u32,
        pairs: Vec<(Uuid, Uuid)>,
    },
    Unlock {
        pid: u32,
    },
    Toggle {
        pid: u32,
    },
    /// The parent goes; what it has locked stays so.
    Bye,
}

impl Ask {
    /// The driver's name for it.
    pub(crate) fn call(&self) -> &'static str {
        match self {
            Self::Look { .. } => "a look at the GPUs",
            Self::State { .. } => "cuCheckpointProcessGetState",
            Self::RestoreThreadId { .. } => "cuCheckpointProcessGetRestoreThreadId",
            Self::Lock { .. } => "cuCheckpointProcessLock",
            Self::Checkpoint { .. } => "cuCheckpointProcessCheckpoint",
            Self::Restore { .. } => "cuCheckpointProcessRestore",
            Self::Unlock { .. } => "cuCheckpointProcessUnlock",
            Self::Toggle { .. } => "cuda-checkpoint --toggle",
            Self::Bye => "the end",
        }
    }
}

/// An answer, and how long the driver itself took.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) told: Result<Told, Refusal>,
    pub(crate) driver_us: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Told {
    Done,
    State(u32),
    ThreadId(i32),
    Look(Look),
    /// What a checkpoint freed on each GPU.
    Freed(Bytes),
}

/// Why a helper did not do what it was asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Refusal {
    NoDriver(String),
    TooOld(i32),
    Symbol(String),
    /// The driver can only toggle.
    ToggleOnly(i32),
    /// `cuda-checkpoint` failed, with what it said.
    Program(String),
    /// The process is on a GPU that is split.
    Mig(String),
    /// The host can't take what the process has on GPUs.
    HostMemory {
        needed: u64,
        available: u64,
    },
    Driver {
        code: u32,
        name: String,
    },
}

/// What a machine has for checkpoints, as one process sees it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Look {
    /// CUDA version of the driver, as 13000.
    pub driver: i32,
    /// The program `cuda-checkpoint`, where the driver has no calls of its own.
    pub program: Option<PathBuf>,
    /// The GPUs that NVML tells of.
    pub gpus: Vec<Gpu>,
    /// Why NVML tells nothing, if it does not.
    pub nvml: Option<String>,
}

impl Look {
    /// A GPU of the process that is split by MIG. NVML may not list the process, as in a container: then its open files tell.
    pub(crate) fn split_under(&self, pid: u32) -> Option<&Gpu> {
        let files = system::gpu_files(pid);
        self.gpus.iter().find(|gpu| gpu.is_mig && (gpu.is_used || gpu.minor.is_some_and(|minor| files.contains(&minor))))
    }
}

/// A GPU and what a process has on it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Gpu {
    /// Its UUID.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// N of its `/dev/nvidiaN`, if NVML tells.
    pub minor: Option<u32>,
    /// Whether it is split by MIG.
    pub is_mig: bool,
    /// Its memory, in bytes.
    pub total: u64,
    /// What of it is free, in bytes.
    pub free: u64,
    /// Whether NVML lists the process on it.
    pub is_used: bool,
    /// Bytes of the process, if NVML tells.
    pub used: Option<u64>,
}
