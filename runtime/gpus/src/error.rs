//! Why no GPU was chosen.

use std::fmt::Write;
use std::path::PathBuf;

/// Why no GPU was chosen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library of the driver that tells about GPUs could not be loaded, or it refused to start.
    #[error("the GPUs can't be listed: {0}. NVML (libnvidia-ml.so.1) comes with the driver; in a container, pass `--gpus all`")]
    Nvml(String),
    /// A name that fits no GPU, or more than one.
    #[error("no GPU is called `{name}`; this machine has {known}")]
    Unknown {
        /// The name as it was given.
        name: String,
        /// The GPUs that there are.
        known: String,
    },
    /// The value of `CUDA_VISIBLE_DEVICES` names no GPU of this machine.
    #[error("CUDA_VISIBLE_DEVICES={0} leaves no GPU")]
    NothingVisible(String),
    /// Too few GPUs are free.
    #[error("{}", too_few(*.wanted, .refused))]
    TooFew {
        /// How many were asked for.
        wanted: usize,
        /// Each GPU that was not taken, and why.
        refused: Vec<(String, Refusal)>,
    },
    /// The folder of the leases could not be used.
    #[error("no lease can be taken in `{}`: {error}. CUINSTR_LEASES names another folder", folder.display())]
    Lease {
        /// The folder.
        folder: PathBuf,
        /// What the operating system says.
        error: std::io::Error,
    },
}

/// Why a GPU is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// `cuinstr.toml` excludes it.
    #[error("excluded by the configuration")]
    Excluded,
    /// Its compute mode allows no context.
    #[error("its compute mode is prohibited")]
    Prohibited,
    /// Its compute mode allows one process, and there is one.
    #[error("its compute mode is exclusive, and a process uses it")]
    Exclusive,
    /// Less memory is free than was asked for. Both figures are in bytes.
    #[error("{} free, {} wanted", gibibytes(*.free), gibibytes(*.wanted))]
    Memory {
        /// Bytes that are free.
        free: u64,
        /// Bytes that must be free.
        wanted: u64,
    },
    /// Another start holds its lease.
    #[error("leased{}", holder(*.0))]
    Leased(Option<u32>),
    /// NVML could not read it.
    #[error("it can't be read: {0}")]
    Unreadable(String),
}

/// Bytes as a person reads them.
pub(crate) fn gibibytes(bytes: u64) -> String {
    #[allow(clippy::cast_precision_loss)] // one digit behind the point is shown
    let amount = bytes as f64 / f64::from(1 << 30);
    format!("{amount:.1} GiB")
}

fn holder(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" by process {pid}")).unwrap_or_default()
}

fn too_few(wanted: usize, refused: &[(String, Refusal)]) -> String {
    let mut text = if wanted == 1 { "no GPU is free".to_owned() } else { format!("{wanted} GPUs were asked for, and fewer are free") };
    for (gpu, refusal) in refused {
        let _ = write!(text, "\n  {gpu}: {refusal}");
    }
    text
}
