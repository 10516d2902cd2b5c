//! Programs that are started, and their ends.

use super::error::{Error, NOT_FOUND};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

pub(super) fn boxed(reader: impl io::Read + Send + 'static) -> Box<dyn io::Read + Send> {
    Box::new(reader)
}

pub(super) fn cannot_start(program: &Path, error: &io::Error) -> Error {
    let help = "name nvcc by its path, for example `cuinstr /usr/local/cuda/bin/nvcc …`";
    Error { code: NOT_FOUND, ..Error::new(format!("`{}` can't be started: {error}", program.display()), help) }
}

/// The exit code of a process, as shells give it.
pub(super) fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// An absolute path of it that need not exist.
pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
