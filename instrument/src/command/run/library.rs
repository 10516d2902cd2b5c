//! The library that is loaded in front of programs. A release carries it, and unpacks it into the user's cache.

use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};

const NAME: &str = "libcuinstr_interpose.so";

/// The library's bytes, if it was there when this program was built (`CUINSTR_INTERPOSER`).
#[cfg(carries_interposer)]
const CARRIED: Option<&[u8]> = Some(include_bytes!(env!("CUINSTR_INTERPOSER")));
#[cfg(not(carries_interposer))]
const CARRIED: Option<&[u8]> = None;

/// Why there is none, and what to type.
const NONE: &str = "this cuinstr was built without libcuinstr_interpose.so: build both as README says under `Install`";

/// Whether there is one.
pub(super) fn is_there() -> bool {
    CARRIED.is_some() || beside().is_some()
}

/// Where it lies.
///
/// # Errors
/// If there is none, it can't be unpacked, or the loader can't be told of its path.
pub(super) fn path() -> anyhow::Result<PathBuf> {
    let found = match CARRIED {
        Some(bytes) => unpack(bytes)?,
        None => beside().context(NONE)?,
    };
    if found.to_string_lossy().contains([' ', ':', '$']) {
        bail!("LD_PRELOAD can't name {}: set XDG_CACHE_HOME to a folder without blanks, colons and dollars", found.display());
    }
    Ok(found)
}

/// That of a build by Cargo, which lies beside this program; the copy in `deps` is never older than the one beside it.
fn beside() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?;
    [folder.join("deps").join(NAME), folder.join(NAME), folder.join("../lib").join(NAME)].into_iter().find(|path| path.is_file())
}

/// Unpacks it under a name of its content, unless it is there. Many processes may do so at once: each writes a file of its own and renames it.
fn unpack(bytes: &[u8]) -> anyhow::Result<PathBuf> {
    let folder = cache().context("there is no folder for caches: set HOME or XDG_CACHE_HOME")?;
    let number = cuinstr_abi::sites::hash(0, bytes);
    let path = folder.join(format!("interpose-{number:016x}.so"));
    if fs::metadata(&path).is_ok_and(|found| found.len() == bytes.len() as u64) && fs::read(&path).is_ok_and(|found| found == bytes) {
        return Ok(path);
    }
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(&folder)?;
        let new = tempfile::Builder::new().prefix("new-").tempfile_in(&folder)?;
        fs::write(new.path(), bytes)?;
        new.persist(&path).map_err(|error| error.error)?;
        Ok(())
    };
    write().with_context(|| format!("{} can't be written (set XDG_CACHE_HOME to another folder)", path.display()))?;
    Ok(path)
}

/// The user's folder for our caches.
pub(super) fn cache() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|folder: PathBuf| Path::join(&folder, "cuinstr"))
}
