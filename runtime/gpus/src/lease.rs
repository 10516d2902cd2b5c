//! Leases: two starts at the same time get different GPUs.
//!
//! A lease is a lock (`flock`) on a file that is named after the GPU. The operating system releases it when the last process that has the
//! file open ends, however it ends. Nothing is written, and no process has to clean up.

use crate::error::{Error, Refusal};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The folder of a machine's leases.
#[derive(Debug, Clone)]
pub struct Leases {
    folder: PathBuf,
}

/// A GPU that no other start takes. The lease ends with this process, or with the last one that inherited the lease ([`Lease::outlive_exec`]).
#[derive(Debug)]
pub struct Lease {
    file: OwnedFd,
}

impl Leases {
    /// The machine's folder: the value of `CUINSTR_LEASES`, else `cuinstr-leases` in `/tmp`. All users share it, since they share the GPUs.
    #[must_use]
    pub fn of_machine() -> Self {
        let folder = std::env::var_os("CUINSTR_LEASES").map_or_else(|| Path::new("/tmp").join("cuinstr-leases"), PathBuf::from);
        Self { folder }
    }

    /// A folder of one's own, for tests.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Takes the lease of a GPU, without waiting.
    ///
    /// # Errors
    /// [`Error::Lease`] if the folder can't be used. `Ok(Err(…))` if another start has the lease.
    pub fn take(&self, uuid: &str) -> Result<Result<Lease, Refusal>, Error> {
        let file = self.open(uuid).map_err(|error| self.failed(error))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Ok(Lease { file })),
            Err(Errno::WOULDBLOCK) => Ok(Err(Refusal::Leased(holder(&file)))),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Whether a GPU is leased now.
    ///
    /// # Errors
    /// [`Error::Lease`] if the folder can't be used.
    pub fn refusal(&self, uuid: &str) -> Result<Option<Refusal>, Error> {
        // A GPU that never had a lease has no file, and looking makes none.
        if !self.folder.join(name(uuid)).exists() {
            return Ok(None);
        }
        let file = self.open(uuid).map_err(|error| self.failed(error))?;
        // A shared lock is refused only by an exclusive one, so that two looks do not see each other.
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(None),
            Err(Errno::WOULDBLOCK) => Ok(Some(Refusal::Leased(holder(&file)))),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Opens a GPU's file. It never follows a link, since the folder is open to all users.
    fn open(&self, uuid: &str) -> rustix::io::Result<OwnedFd> {
        if let Err(error) = std::fs::create_dir(&self.folder) {
            if error.kind() != std::io::ErrorKind::AlreadyExists {
                return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
            }
        } else {
            // As /tmp: all may add files, and none removes those of others. A folder that someone else owns stays as it is.
            let _ = std::fs::set_permissions(&self.folder, std::fs::Permissions::from_mode(0o1777));
        }
        let path = self.folder.join(name(uuid));
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        // A file of another user must be opened without O_CREAT, which Linux forbids there (fs.protected_regular).
        match rustix::fs::open(&path, flags, Mode::empty()) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        let readable = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        match rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, readable) {
            // Another start was quicker.
            Err(Errno::EXIST) => rustix::fs::open(&path, flags, Mode::empty()),
            Ok(file) => {
                // The umask may have taken the other users' right to read.
                rustix::fs::fchmod(&file, readable)?;
                Ok(file)
            }
            other => other,
        }
    }

    fn failed(&self, error: Errno) -> Error {
        Error::Lease { folder: self.folder.clone(), error: error.into() }
    }
}

impl Lease {
    /// Lets programs that this process starts inherit the lease, so that it lasts until the last of them has ended.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn outlive_exec(&self) -> std::io::Result<()> {
        let flags = rustix::io::fcntl_getfd(self.file.as_fd())?;
        Ok(rustix::io::fcntl_setfd(self.file.as_fd(), flags - rustix::io::FdFlags::CLOEXEC)?)
    }
}

/// The file's name: letters, digits and dashes of the UUID.
fn name(uuid: &str) -> String {
    uuid.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect()
}

/// A process that holds the lock of a file, if `/proc/locks` names one.
fn holder(file: &OwnedFd) -> Option<u32> {
    let file = std::fs::File::from(file.try_clone().ok()?);
    let inode = file.metadata().ok()?.ino().to_string();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    // "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let here = words.get(1) == Some(&"FLOCK") && words.get(5)?.rsplit(':').next() == Some(&inode);
        if here { words.get(4)?.parse().ok().filter(|pid| *pid != 0) } else { None }
    })
}
