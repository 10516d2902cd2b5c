//! Why a call could not do its work.

use std::io;
use std::path::Path;

/// The variable that tells the processes below a running call where its session is.
pub(super) const SESSION: &str = "CUINSTR_SESSION";

/// Exit code of a compiler that was not found, as in shells.
pub(super) const NOT_FOUND: u8 = 127;

/// Code of the error that nvcc did not come by where it was waited for.
pub(super) const NOT_REACHED: u8 = 4;

/// Why a call could not do its work: one sentence, and what to type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub(super) message: String,
    pub(super) help: String,
    /// The exit code that goes with it.
    pub code: u8,
}

impl Error {
    pub(super) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into(), code: 3 }
    }

    /// What failed in that place, and what helps against it.
    pub(super) fn io(what: &str, path: &Path, error: &io::Error) -> Self {
        // What the user has named lies in no folder of ours.
        let is_temporary = path.starts_with(std::env::temp_dir());
        let help = match error.kind() {
            io::ErrorKind::StorageFull if !is_temporary => "free some space there",
            io::ErrorKind::StorageFull => "free some space there, or set TMPDIR to a folder that has some",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "set TMPDIR to a folder that may be written",
            _ => "set TMPDIR to another folder if this one can't be used",
        };
        Self::new(format!("{what} `{}`: {error}", path.display()), help)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cuinstr: error: {}\n  help: {}", self.message, self.help)
    }
}

impl std::error::Error for Error {}
