//! The sites of a unit, kept from the step that compiles its device code to the one that compiles its host's side.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Folder of the session for the sites of units, as the host runtime reads them.
pub(super) const FOLDER: &str = "rows";

/// The sites of the unit whose host's side this text is: files to include in front of it.
pub(super) fn files(session: &Path, unit: &Path) -> Vec<PathBuf> {
    // The text includes its stub, and that the device's code, by the name that tells units apart.
    let Ok(stub) = fs::read(unit.with_extension("stub.c")) else { return Vec::new() };
    let includes = stub.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"#include \"")?.strip_suffix(b"\""));
    let folders = includes.map(|name| session.join(FOLDER).join(OsStr::from_bytes(name)));
    let mut files: Vec<PathBuf> =
        folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}
