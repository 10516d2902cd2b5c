//! A whole process tree saved to a folder, and restored from it, also on another machine: the driver's part here, the rest by CRIU.
//!
//! The folder changes in one step, when a dump is whole: a dump that fails leaves the last good one, and processes that run.

mod criu;
mod manifest;

use crate::error::Error;
use crate::gpu::Mapping;
use crate::group::{Group, TreeFailure as Failed};
use crate::helper::Helper;
use crate::state::State;
use crate::system;
use crate::wire::Look;
use criu::Criu;
use manifest::IMAGES;
pub use manifest::Manifest;
use rustix::fs::RenameFlags;
use rustix::process::{Pid, Signal};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Beside the images: logs, the manifest, and what CRIU needs for itself.
const MARGIN: u64 = 64 << 20;

/// Why a process was not dumped or restored.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The driver's part.
    #[error(transparent)]
    Suspend(#[from] Failed),
    /// The driver's part, before anything was touched.
    #[error(transparent)]
    Process(#[from] Error),
    /// The process can't be checkpointed.
    #[error("{0}")]
    Obstacle(String),
    /// CRIU is not installed.
    #[error("there is no `criu` on the search path; install CRIU 4.0 or later (`cuinstr checkpoint suspend` works without it)")]
    NoCriu,
    /// CRIU is too old.
    #[error("{program} is of version {version}; CRIU 4.0 or later is needed, as older ones do not start on new kernels", program = .program.display())]
    CriuTooOld {
        /// The program.
        program: PathBuf,
        /// Its version.
        version: String,
    },
    /// CRIU may not do it.
    #[error(
        "dumping a process takes root, or the capabilities CAP_CHECKPOINT_RESTORE and CAP_SYS_PTRACE; in a container start it with both"
    )]
    Permission,
    /// CRIU failed.
    #[error("criu {step} failed: {said}")]
    Criu {
        /// What it was to do.
        step: &'static str,
        /// Its status and what its log says.
        said: String,
    },
    /// Not enough room.
    #[error("{path}: about {needed} bytes are needed and {free} are free on this disk; nothing was touched", path = .path.display())]
    DiskFull {
        /// The folder.
        path: PathBuf,
        /// Bytes that the dump takes, about.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// A file that can't be read or written.
    #[error("{path}: {error}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// A folder without a dump.
    #[error("{path}: there is no dump in this folder", path = .path.display())]
    NotADump {
        /// The folder.
        path: PathBuf,
    },
    /// A dump of another release's layout.
    #[error("{path}: layout {found}, and this release of cuinstr reads layout {known}", path = .path.display())]
    OtherFormat {
        /// The folder.
        path: PathBuf,
        /// Its layout.
        found: u64,
        /// That of this release.
        known: u32,
    },
    /// A file is not what it was.
    #[error("{path}: this file is missing, or another than when it was dumped; the dump is of no use", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The machine lacks what the dump needs.
    #[error("this machine can't take the dump: {0}")]
    OtherMachine(String),
}

/// How to dump.
#[derive(Debug, Clone)]
pub struct DumpOptions {
    /// Longest to wait for kernels.
    pub lock_timeout: Duration,
    /// Whether to end the processes once the dump is whole.
    pub kill: bool,
    /// Further options for CRIU, such as `--tcp-established`.
    pub criu: Vec<OsString>,
}

/// Files of a folder by their names.
fn files(folder: &Path) -> Result<Vec<(String, PathBuf)>, DumpError> {
    let at = |error| DumpError::File { path: folder.to_owned(), error };
    let entries = fs::read_dir(folder).map_err(at)?.collect::<io::Result<Vec<_>>>().map_err(at)?;
    Ok(entries.into_iter().map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect())
}

fn size(folder: &Path) -> u64 {
    files(folder).unwrap_or_default().iter().filter_map(|(_, path)| Some(path.metadata().ok()?.len())).sum()
}

/// Processes that are suspended, and perhaps stopped, until they are let go.
struct Suspended<'a> {
    group: &'a Group,
    root: u32,
    // Those that were suspended before stay so.
    resumes: bool,
    is_over: bool,
}

impl Suspended<'_> {
    fn signal(&self, signal: Signal) {
        for pid in system::tree(self.root).into_iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    fn let_go(&mut self) -> Result<(), Failed> {
        self.is_over = true;
        self.signal(Signal::CONT);
        if self.resumes { self.group.resume(&Mapping::none()).map(drop) } else { Ok(()) }
    }
}

impl Drop for Suspended<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // The error that led here is the one to tell.
            let _ = self.let_go();
        }
    }
}

/// Dumps a process and all that descend from it into a folder, in place of an older dump in it. They run on afterwards, unless they are to be ended.
///
/// `progress` hears what is being done, and is told bytes that CRIU has written.
///
/// # Errors
/// Whatever is in the way. The folder is as it was then, and the processes run on, unless the error says otherwise.
pub fn dump(
    helper: Helper,
    pid: i64,
    to: &Path,
    options: &DumpOptions,
    progress: &mut dyn FnMut(&str, u64),
) -> Result<Manifest, DumpError> {
    let criu = Criu::find()?;
    let group = Group::tree(helper, pid)?;
    let states = group.states()?;
    let assessments = group.assess();
    if let Some(obstacle) = assessments.iter().flat_map(|told| &told.obstacles).next() {
        return Err(DumpError::Obstacle(obstacle.clone()));
    }
    let root = u32::try_from(pid).map_err(|_| Error::BadPid(pid))?;
    let needed = MARGIN
        + system::tree(root).into_iter().map(system::resident).sum::<u64>()
        + assessments.iter().filter_map(|told| told.gpu_bytes).sum::<u64>();
    let machine = assessments.into_iter().find_map(|told| told.machine).unwrap_or_default();
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let at = |path: &Path, error: io::Error| DumpError::File { path: path.to_owned(), error };
    let disk = rustix::fs::statvfs(parent).map_err(|error| at(parent, error.into()))?;
    let free = disk.f_bavail * disk.f_frsize;
    if free < needed {
        return Err(DumpError::DiskFull { path: to.to_owned(), needed, free });
    }
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = Partial(to.with_file_name(name));
    let images = partial.0.join(IMAGES);
    // One that a killed dump left.
    let _ = fs::remove_dir_all(&partial.0);
    fs::create_dir_all(&images).map_err(|error| at(&images, error))?;
    let resumes = states.iter().any(|(_, state)| *state == State::Running);
    if resumes {
        progress("suspending", 0);
        group.suspend(Some(options.lock_timeout))?;
    }
    let mut suspended = Suspended { group: &group, root, resumes, is_over: false };
    let mut arguments: Vec<OsString> = vec!["--tree".into(), root.to_string().into(), "--leave-stopped".into()];
    arguments.extend(options.criu.iter().cloned());
    criu.run("dump", &images, &arguments, &mut |bytes| progress("dumping", bytes))?;
    progress("hashing", size(&images));
    let manifest = Manifest::new(criu.version.clone(), root, machine).write(&partial.0)?;
    replace(&partial.0, to).map_err(|error| at(to, error))?;
    if options.kill {
        suspended.is_over = true;
        suspended.signal(Signal::KILL);
    } else {
        progress("resuming", 0);
        suspended.let_go()?;
    }
    Ok(manifest)
}

/// A folder that goes if nothing comes of it. After a swap it is the older dump.
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Puts a folder in the place of another in one step.
fn replace(new: &Path, old: &Path) -> io::Result<()> {
    if !old.exists() {
        return fs::rename(new, old);
    }
    let here = rustix::fs::CWD;
    Ok(rustix::fs::renameat_with(here, new, here, old, RenameFlags::EXCHANGE)?)
}

/// Restores what a folder holds: the same pids, the same GPUs unless a mapping says otherwise. Every file is checked first.
///
/// # Errors
/// Whatever is in the way. Where CRIU has restored the processes and the driver does not, they stay suspended, and the error says so.
pub fn restore(
    helper: Helper,
    from: &Path,
    mapping: &Mapping,
    options: &[OsString],
    progress: &mut dyn FnMut(&str, u64),
) -> Result<Manifest, DumpError> {
    let criu = Criu::find()?;
    progress("checking", size(&from.join(IMAGES)));
    let manifest = Manifest::read(from)?;
    if system::start_time(manifest.pid).is_some() {
        return Err(DumpError::OtherMachine(format!(
            "process id {} is taken, and a restored process has the id that it had; end that process first",
            manifest.pid
        )));
    }
    if !Path::new(&manifest.program).is_file() {
        return Err(DumpError::OtherMachine(format!("it has no {}, the program that was dumped", manifest.program)));
    }
    let own = crate::handle::Handle::open(helper.clone(), i64::from(std::process::id()))?;
    fits(&manifest, &own.look()?, mapping)?;
    progress("restoring", 0);
    let mut arguments: Vec<OsString> = vec!["--restore-detached".into()];
    arguments.extend(options.iter().cloned());
    criu.run("restore", &from.join(IMAGES), &arguments, &mut |_| {})?;
    progress("resuming", 0);
    Group::tree(helper, i64::from(manifest.pid))?.resume(mapping)?;
    Ok(manifest)
}

/// Whether this machine has a GPU of the same model for each that the processes were on.
fn fits(manifest: &Manifest, here: &Look, mapping: &Mapping) -> Result<(), DumpError> {
    for old in &manifest.machine.gpus {
        let wanted = mapping.to(old.uuid);
        let Some(new) = here.gpus.iter().find(|gpu| gpu.uuid == wanted) else {
            return Err(DumpError::OtherMachine(format!("it has no {wanted}; name one of its GPUs with --map-gpu {}=NEW", old.uuid)));
        };
        if new.name != old.name {
            return Err(DumpError::OtherMachine(format!("{} is a {}, and the processes were on a {}", new.uuid, new.name, old.name)));
        }
    }
    if here.driver < manifest.machine.driver {
        return Err(DumpError::OtherMachine(format!("its driver is of CUDA {}, and the dump of {}", here.driver, manifest.machine.driver)));
    }
    Ok(())
}
