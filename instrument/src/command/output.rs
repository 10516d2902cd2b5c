//! Outputs: where they go, and how no reader ever sees half of one.
//!
//! The text is complete in memory before anything is opened. It goes to a file without a name, in the output's own
//! folder. The system removes such a file with the process, however the process ends. Once complete, the file gets the
//! output's name. An old output may have that name. Then the file first gets a hidden name, since only a name can be
//! renamed over another. A process that is killed between these two calls leaves the hidden name. The next write of the
//! same output removes it. File systems without such files (`O_TMPFILE`) get a hidden temporary file from the start.
//! Nothing is synced: after a power cut a compiler's outputs are built again too.

use cuinstr::diagnostic::{Code, Diagnostic};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file, whole or not at all. Links are followed: what they point to is replaced, not the link.
///
/// The new file has the permissions of any fresh file. What exists and is no regular file (a device, a pipe) is written to as it is.
///
/// # Errors
/// A diagnostic if that fails; then what was there before still is.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Box<Diagnostic>> {
    try_write(path, bytes).map_err(|error| cannot_write(&error))
}

/// Makes a folder, and those above it.
///
/// # Errors
/// A diagnostic if that fails.
pub(crate) fn make_folder(path: &Path) -> Result<(), Box<Diagnostic>> {
    fs::create_dir_all(path).map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            let message = "this is a file, and the outputs of several inputs need a folder";
            return Box::new(Diagnostic::new(Code::CannotWrite, message).help("name a folder, for example `-o build/`"));
        }
        cannot_write(&error)
    })
}

/// Writes to standard output. A reader that has gone is no error: it has what it wanted.
///
/// # Errors
/// Any other failure.
pub(crate) fn to_stdout(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// The diagnostic for an output that can't be written.
fn cannot_write(error: &io::Error) -> Box<Diagnostic> {
    let (message, help) = match error.kind() {
        io::ErrorKind::NotFound => ("the output's folder does not exist".to_owned(), "create the folder"),
        io::ErrorKind::IsADirectory => ("the output is a folder".to_owned(), "name a file"),
        io::ErrorKind::PermissionDenied => {
            ("the output may not be written".to_owned(), "name another file, or change its or its folder's permissions")
        }
        io::ErrorKind::StorageFull => {
            ("the output can't be written: the disk is full".to_owned(), "free some space; what was there before is unchanged")
        }
        _ => (format!("the output can't be written: {error}"), "name another file"),
    };
    Box::new(Diagnostic::new(Code::CannotWrite, message).help(help))
}

fn try_write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if !metadata.is_file() => {
            let mut file = fs::OpenOptions::new().write(true).open(path)?;
            return file.write_all(bytes).and_then(|()| file.flush());
        }
        // A rename would not ask; the owner who made the file read-only wants to be asked.
        Ok(metadata) if metadata.permissions().readonly() => return Err(io::ErrorKind::PermissionDenied.into()),
        Ok(_) => path.canonicalize()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => end_of_links(path)?,
        Err(error) => return Err(error),
    };
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    #[cfg(target_os = "linux")]
    if let Some(result) = write_unnamed(folder, &target, bytes) {
        return result;
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".cuinstr-").suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))?;
    file.as_file_mut().write_all(bytes)?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

/// Writes by way of a file without a name; nothing where the file system has none, or there is no `/proc` to name it by.
#[cfg(target_os = "linux")]
fn write_unnamed(folder: &Path, target: &Path, bytes: &[u8]) -> Option<io::Result<()>> {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
    use rustix::io::Errno;
    use std::os::fd::AsRawFd;

    /// Another process that writes the same output may take away the hidden name, each time once.
    const TRIES: usize = 16;
    let mut file = fs::File::from(open(folder, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from_raw_mode(0o666)).ok()?);
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    if !Path::new(&own).exists() {
        return None;
    }
    if let Err(error) = file.write_all(bytes) {
        return Some(Err(error));
    }
    let link = |name: &Path| linkat(CWD, own.as_str(), CWD, name, AtFlags::SYMLINK_FOLLOW);
    match link(target) {
        Err(Errno::EXIST) => {}
        result => return Some(result.map_err(io::Error::from)),
    }
    let mut hidden = std::ffi::OsString::from(".cuinstr-");
    hidden.push(target.file_name()?);
    hidden.push(".tmp");
    let hidden = folder.join(hidden);
    let mut result = Err(io::Error::other("another process writes the same output"));
    for _ in 0..TRIES {
        let _ = fs::remove_file(&hidden);
        match link(&hidden) {
            Err(Errno::EXIST) => continue,
            Err(error) => return Some(Err(error.into())),
            Ok(()) => {}
        }
        result = fs::rename(&hidden, target);
        if !result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            break;
        }
    }
    if result.is_err() {
        let _ = fs::remove_file(&hidden);
    }
    Some(result)
}

/// Where a link leads whose target does not exist yet.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    const HOPS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..HOPS {
        let Ok(next) = fs::read_link(&path) else { return Ok(path) };
        path = path.parent().map_or_else(|| next.clone(), |folder| folder.join(&next));
    }
    Err(io::Error::other("too many links"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_no_file_behind() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let target = folder.path().join("out.cu");
        fs::create_dir(&target).expect("a folder in the way");
        assert_eq!(write(&target, b"x").expect_err("a folder is in the way").code, Code::CannotWrite);
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }
}
