//! Outputs: where they go, and how nobody ever sees half of one.
//!
//! The text is complete in memory before anything is opened. It goes to a hidden temporary file in the output's own folder (a rename does
//! not cross file systems), which then takes the output's name. The temporary file is removed when anything fails. A process that is killed
//! within that one write may leave `.cuinstr-*.tmp` behind; it never has the name of an output, so no build picks it up. A signal handler
//! would not help against SIGKILL, and files without a name (`O_TMPFILE`) can't be renamed over an old output without a name in between.
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

/// Writes to standard output. That nobody reads it any more is no error: the reader has what it wanted.
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
    let mut builder = tempfile::Builder::new();
    builder.prefix(".cuinstr-").suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))?;
    file.as_file_mut().write_all(bytes)?;
    file.persist(&target).map_err(|error| error.error)?;
    Ok(())
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
