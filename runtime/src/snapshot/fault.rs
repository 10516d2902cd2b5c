//! What can be wrong with a snapshot.

use crate::error::Error;
use crate::fault::DriverFault;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why nothing was saved or restored.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A file that can't be read or written.
    #[error("{path}: {error}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// Not enough room on the disk.
    #[error("{path}: {needed} bytes are needed and {free} are free on this disk; give another path, or make room", path = .path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
        /// Bytes that the snapshot takes.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// A file that is no snapshot, or lacks its end.
    #[error("{path}: this is no snapshot, or its end is missing", path = .path.display())]
    NotASnapshot {
        /// The file.
        path: PathBuf,
    },
    /// A snapshot of a format that this release does not know.
    #[error("{path}: format {found}, and this release of cuinstr reads format {known}; restore it with the release that saved it", path = .path.display())]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// That of this release.
        known: u32,
    },
    /// Bytes that are not those that were written.
    #[error("{path}: {what} is damaged: its hash is another than when it was saved", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Which part.
        what: String,
    },
    /// A snapshot of another model of GPU.
    #[error("the snapshot is of {saved}, and this GPU is {here}: its code and memory are for the same model only")]
    OtherGpu {
        /// Where it was saved.
        saved: String,
        /// Where it was to be restored.
        here: String,
    },
    /// Something else lies at the addresses of the snapshot.
    #[error("its memory was at {wanted:#x} and beyond, where this process has something else; restore before other memory is allocated")]
    AddressTaken {
        /// Where its memory was.
        wanted: u64,
    },
    /// A name that is used twice, or not at all.
    #[error("{0}")]
    Name(String),
    /// A module whose variables a snapshot can't hold.
    #[error(
        "module `{module}` keeps state of its own (`{variable}`), whose address no snapshot can keep: put it into memory of the ledger"
    )]
    Stateful {
        /// The module.
        module: String,
        /// One of its variables.
        variable: String,
    },
    /// Kernels that do not end.
    #[error("the work in stream `{stream}` did not end within {within:?}; stop it, or wait longer")]
    Busy {
        /// The stream.
        stream: String,
        /// How long was waited.
        within: Duration,
    },
    /// Any other error of the runtime's.
    #[error(transparent)]
    Runtime(#[from] Error),
}

impl From<DriverFault> for Fault {
    fn from(fault: DriverFault) -> Self {
        Self::Runtime(fault.into())
    }
}

/// What saving and restoring answer.
pub type Result<T> = std::result::Result<T, Fault>;
