//! What can go wrong, each with what to do about it.

use crate::state::State;
use std::fmt;
use std::time::Duration;

/// Why a process was not suspended, resumed or asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A number that no process has.
    #[error("{0} is no process id; give a number from 1 to 2147483647")]
    BadPid(i64),
    /// A timeout that the driver's milliseconds can't hold.
    #[error("a lock timeout of {0:?} makes no sense; give 1 ms to 49 days, or none")]
    BadTimeout(Duration),
    /// UUIDs that make no sense, or GPUs that are not there.
    #[error("GPU mapping: {0}")]
    BadMapping(String),
    /// No driver, or no GPU.
    #[error("the CUDA driver can't be used: {0}; `cuinstr doctor` shows what is there")]
    NoDriver(String),
    /// A driver without checkpoints.
    #[error(
        "the driver is of CUDA {}.{}, which can't checkpoint: install driver 570 (CUDA 12.8) or later, or put NVIDIA's `cuda-checkpoint` on the path for drivers 550 to 569",
        .0 / 1000,
        .0 % 1000 / 10
    )]
    DriverTooOld(i32),
    /// A driver that should have a call and does not.
    #[error("the driver's library has no `{0}`, though its version should; is another libcuda.so.1 found first?")]
    SymbolMissing(String),
    /// A driver that can only go all the way.
    #[error("a driver of CUDA {}.{} can only suspend and resume as a whole (toggle); single steps need driver 570", .0 / 1000, .0 % 1000 / 10)]
    ToggleOnly(i32),
    /// The program `cuda-checkpoint` failed.
    #[error("process {pid}: cuda-checkpoint says: {said}")]
    Program {
        /// The process.
        pid: u32,
        /// What it said.
        said: String,
    },
    /// There is no such process.
    #[error("there is no process {0}")]
    NoSuchProcess(u32),
    /// The process does not use CUDA.
    #[error("process {0} does not use CUDA, or has not initialised it")]
    NotCuda(u32),
    /// The process is another user's.
    #[error("no permission for process {pid}: {why}; run as its user or as root")]
    NoPermission {
        /// The process.
        pid: u32,
        /// Whose it is.
        why: String,
    },
    /// The call makes no sense in the process's state.
    #[error("process {pid} is {state}, and {call} needs one that is {needed}")]
    WrongState {
        /// The process.
        pid: u32,
        /// What was asked.
        call: &'static str,
        /// Where the process stands.
        state: State,
        /// Where it would have to stand.
        needed: State,
    },
    /// Its kernels did not end within the lock's timeout.
    #[error(
        "process {pid} is busy: its kernels did not end within {timeout:?}, so it was not locked and runs on; give a longer timeout, or stop its kernels first"
    )]
    Busy {
        /// The process.
        pid: u32,
        /// How long the driver waited.
        timeout: Duration,
    },
    /// A GPU split by MIG.
    #[error(
        "process {pid} uses {gpu}, which is split by MIG; the driver can't checkpoint MIG instances (turn MIG off: `nvidia-smi -mig 0`)"
    )]
    Mig {
        /// The process.
        pid: u32,
        /// The GPU.
        gpu: String,
    },
    /// A client of MPS.
    #[error("process {pid} is a client of MPS ({folder}); the driver can't checkpoint those (start it without the MPS daemon)")]
    Mps {
        /// The process.
        pid: u32,
        /// The daemon's folder.
        folder: String,
    },
    /// A processor that the driver does not support.
    #[error("the driver can't checkpoint on {0}, only on x86_64")]
    Architecture(&'static str),
    /// What the process holds can't be checkpointed.
    #[error("process {pid} holds memory that the driver can't checkpoint (801): {what}")]
    Unsupported {
        /// The process.
        pid: u32,
        /// What it holds, as far as that shows.
        what: &'static str,
    },
    /// What the process had does not fit on a GPU.
    #[error(
        "process {pid} needs {needed} bytes on {gpu}, of which {free} are free, and a process whose restore fails is lost; free the GPU first, or map it to another one"
    )]
    GpuMemory {
        /// The process, the first if there are several.
        pid: u32,
        /// The GPU.
        gpu: String,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// What the process has on the GPUs does not fit into host memory.
    #[error("process {pid} has {needed} bytes on GPUs, and the host has {available} for their copy; free host memory first")]
    HostMemory {
        /// The process.
        pid: u32,
        /// Bytes on GPUs.
        needed: u64,
        /// Bytes that the host has.
        available: u64,
    },
    /// The driver gave the process up.
    #[error("process {0} is lost: the driver failed in the middle of a checkpoint or restore (state failed); end it and start it again")]
    Lost(u32),
    /// A call that did not return.
    #[error("process {pid}: {call} did not return within {after:?}; the helper that made it was killed")]
    Blocked {
        /// The process.
        pid: u32,
        /// The call.
        call: &'static str,
        /// How long it was waited for.
        after: Duration,
    },
    /// The helper process did not work.
    #[error("the helper process did not work: {0}")]
    Helper(String),
    /// Any other answer of the driver.
    #[error("process {pid}: {call} answered {name} ({code})")]
    Driver {
        /// The process.
        pid: u32,
        /// The call.
        call: &'static str,
        /// Its answer.
        code: u32,
        /// And its name.
        name: String,
    },
}

/// An error, and where the process stands after it.
#[derive(Debug, thiserror::Error)]
pub struct Failure {
    /// What went wrong.
    #[source]
    pub error: Error,
    /// The process.
    pub pid: u32,
    /// Where it stands now; nothing if that could not be told.
    pub state: Option<State>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state {
            Some(state) => write!(f, "{}; process {} is {state} now", self.error, self.pid),
            None => write!(f, "{}; where process {} stands now is not known", self.error, self.pid),
        }
    }
}

/// What this crate's calls answer.
pub type Result<T> = std::result::Result<T, Error>;
