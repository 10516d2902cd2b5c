//! Helper processes: one kind compiles candidates. Another stands for "one process a candidate" in comparisons. So a
//! crash or a hang of either costs nothing here.
//!
//! A helper is this program again, or one that the caller names. It listens on its standard input and answers there: length of the message,
//! length of the payload, the message as JSON, the payload.

use crate::{Error, Result, baseline, compile};
use cuinstr_runtime::jit;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, parent_id};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Tells a program which helper it is to be.
pub(crate) const VARIABLE: &str = "CUINSTR_EVALUATE";
/// Its value for workers: what candidates print, and what their assertions say, is none of the evaluation's output.
pub(crate) const SILENT: &str = "silent";
/// Tells a compiler's program to shut itself in: a folder for temporary files, then all folders of the user's that it reads. A program without a way to do
/// that does not look at it.
const SHUT_IN: &str = "CUINSTR_SHUT_IN";
/// Where the loader looks for libraries, which it reads when a program starts.
const LOADER_PATH: &str = "LD_LIBRARY_PATH";
/// Longest message, in bytes.
const MOST_MESSAGE: u32 = 64 << 20;
/// Longest payload that a helper takes from its parent, in bytes.
pub(crate) const MOST_PAYLOAD: u64 = 1 << 36;
/// Bytes of a payload that there is room for before they have come.
const STEP: u64 = 1 << 20;
/// How often a helper looks whether its parent lives.
const LOOK: Duration = Duration::from_secs(1);

/// The program that helpers and workers are started from.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Its path; the running one if there is none.
    pub path: Option<PathBuf>,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Environment variables besides this process's own.
    pub variables: Vec<(OsString, OsString)>,
    /// The folder that compilers are started in; this process's own if there is none.
    pub folder: Option<PathBuf>,
    /// Folders in which the compiler's libraries may lie, besides those of the loader's path and where toolkits are installed.
    pub libraries: Vec<PathBuf>,
}

/// What a helper does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Compile,
    Baseline,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Compile => "compile",
            Self::Baseline => "baseline",
        }
    }
}

/// Does a helper's or a worker's work if this process was started as one, and does not return then; does nothing otherwise. A program that is its
/// own helper calls this first thing in `main`.
pub fn serve_if_asked() {
    match std::env::var_os(VARIABLE) {
        Some(role) if role == SILENT => be_silent(),
        Some(role) => serve(&role),
        None => {}
    }
    cuinstr_runtime::worker::serve_if_asked();
}

fn be_silent() {
    let null = std::fs::File::options().write(true).open("/dev/null");
    // Where there is no such device, it talks.
    let _ = null.and_then(|null| Ok((rustix::stdio::dup2_stdout(&null)?, rustix::stdio::dup2_stderr(&null)?)));
}

fn serve(role: &std::ffi::OsStr) -> ! {
    let parent = parent_id();
    let watched = thread::Builder::new().spawn(move || {
        while parent_id() == parent {
            thread::sleep(LOOK);
        }
        die();
    });
    let Ok(input) = io::stdin().as_fd().try_clone_to_owned() else { die() };
    let mut stream = UnixStream::from(input);
    if watched.is_err() || stream.peer_addr().is_err() {
        eprintln!("cuinstr: this process was asked to be a helper ({VARIABLE} is set), but nobody speaks to it");
        std::process::exit(2);
    }
    // An end of the pipe is the ordinary way to end.
    let _ = match role.to_str() {
        Some("compile") => compile::serve(&mut stream),
        Some("baseline") => baseline::serve(&mut stream),
        _ => Ok(()),
    };
    die();
}

/// Ends this process without a destructor, of which some wait for a kernel.
fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
    std::process::abort();
}

/// The loader's path with folders behind what it has.
fn loader_path(own: Option<&OsString>, folders: impl IntoIterator<Item = PathBuf>) -> OsString {
    let own = own.into_iter().flat_map(std::env::split_paths).filter(|folder| !folder.as_os_str().is_empty());
    let all: Vec<PathBuf> = own.chain(folders).collect();
    std::env::join_paths(&all).unwrap_or_default()
}

/// A helper process, killed with all that it started when it is dropped.
#[derive(Debug)]
pub(crate) struct Helper {
    stream: UnixStream,
    killer: Killer,
    /// Removed once the process is gone.
    _scratch: Option<TempDir>,
}

/// Kills a helper, from any thread.
#[derive(Debug, Clone)]
pub struct Killer(Arc<Mutex<Option<Child>>>);

impl Killer {
    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was killed.
    pub(crate) fn is_done(&self) -> bool {
        self.child().is_none()
    }

    /// Kills it, and waits until the system has cleared it away.
    pub fn kill(&self) {
        if let Some(mut child) = self.child().take() {
            // It is not reaped yet, so that the number is its own.
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
        }
    }
}

impl Helper {
    /// A compiler reads the system's files and what lies in the folders `readable`.
    pub(crate) fn start(program: &Program, role: Role, readable: &[PathBuf]) -> Result<Self> {
        let path = match &program.path {
            Some(path) => path.clone(),
            None => std::env::current_exe().map_err(Error::file("/proc/self/exe"))?,
        };
        let failed = |error: io::Error| Error::Helper { program: path.display().to_string(), why: format!("can't be started: {error}") };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let mut command = Command::new(&path);
        command.args(&program.arguments).env(VARIABLE, role.name());
        // In a group of its own, Ctrl-C is the parent's to handle, and its own children end with it.
        command.process_group(0).stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null());
        if role == Role::Compile {
            let toolkits = jit::folders_with_nvrtc().into_iter().map(PathBuf::from);
            let folders = toolkits.chain(program.libraries.iter().cloned());
            command.env(LOADER_PATH, loader_path(std::env::var_os(LOADER_PATH).as_ref(), folders));
        }
        let scratch = (role == Role::Compile).then(tempfile::tempdir).transpose().map_err(failed)?;
        if let Some(scratch) = &scratch {
            let from = program.folder.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
            let readable = readable.iter().map(|folder| from.join(folder));
            // A folder whose name holds a colon can't be told.
            let told = readable.filter(|folder| !folder.as_os_str().as_bytes().contains(&b':'));
            command.env(SHUT_IN, std::env::join_paths([scratch.path().to_owned()].into_iter().chain(told)).unwrap_or_default());
        }
        if let Some(folder) = &program.folder {
            command.current_dir(folder);
        }
        // What the caller says counts most.
        command.envs(program.variables.iter().cloned());
        let child = command.spawn().map_err(failed)?;
        // The command still holds the child's end.
        drop(command);
        Ok(Self { stream: ours, killer: Killer(Arc::new(Mutex::new(Some(child)))), _scratch: scratch })
    }

    pub(crate) fn killer(&self) -> Killer {
        self.killer.clone()
    }

    /// Says something.
    pub(crate) fn tell(&mut self, message: &impl Serialize, payload: &[u8]) -> io::Result<()> {
        send(&mut self.stream, message, payload)
    }

    /// Waits for what it says, with at most so many bytes of payload, not beyond that moment.
    pub(crate) fn hear<T: DeserializeOwned>(&mut self, until: Instant, most: u64) -> io::Result<(T, Vec<u8>)> {
        receive(&mut self.stream, Some(until), most)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.killer.kill();
    }
}

pub(crate) fn send(stream: &mut UnixStream, message: &impl Serialize, payload: &[u8]) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).ok().filter(|length| *length <= MOST_MESSAGE);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a message of more than 64 MiB"))?;
    let mut head = Vec::with_capacity(12 + text.len());
    head.extend(length.to_le_bytes());
    head.extend((payload.len() as u64).to_le_bytes());
    head.extend(text);
    stream.write_all(&head)?;
    stream.write_all(payload)
}

pub(crate) fn receive<T: DeserializeOwned>(stream: &mut UnixStream, until: Option<Instant>, most: u64) -> io::Result<(T, Vec<u8>)> {
    let mut head = [0; 12];
    read(stream, &mut head, until)?;
    let [a, b, c, d, rest @ ..] = head;
    let (length, payload) = (u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(rest));
    if length > MOST_MESSAGE || payload > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it sent something else than a helper does"));
    }
    let mut text = vec![0; length as usize];
    read(stream, &mut text, until)?;
    let message = serde_json::from_slice(&text)?;
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < payload {
        let from = bytes.len();
        bytes.resize(from + (payload - from as u64).min(STEP) as usize, 0);
        read(stream, &mut bytes[from..], until)?;
    }
    Ok((message, bytes))
}

fn read(stream: &mut UnixStream, mut bytes: &mut [u8], until: Option<Instant>) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(left)?;
        match stream.read(bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => bytes = &mut bytes[count..],
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_no_reason_to_make_room() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let until = || Some(Instant::now() + Duration::from_secs(120));
        let head = |payload: u64| [&4_u32.to_le_bytes()[..], &payload.to_le_bytes()[..], b"true"].concat();
        theirs.write_all(&head(1 << 35)).unwrap();
        let refused = receive::<bool>(&mut ours, until(), 1 << 30).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        // What is announced and does not come takes no memory either.
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(&head(1 << 35)).unwrap();
        drop(theirs);
        let before = peak();
        let cut = receive::<bool>(&mut ours, until(), MOST_PAYLOAD).unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
        // Other tests begin threads meanwhile.
        assert!(peak() - before < 8 << 20, "{} KB of address space for a length", peak() - before);
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let payload: Vec<u8> = (0..3 << 20).map(|at: u32| at.to_le_bytes()[2]).collect();
        let sent = payload.clone();
        let sender = thread::spawn(move || send(&mut theirs, &true, &sent).unwrap());
        assert_eq!(receive::<bool>(&mut ours, until(), 3 << 20).unwrap(), (true, payload));
        sender.join().unwrap();
    }

    #[test]
    fn what_a_worker_prints_goes_nowhere() {
        const NAME: &str = "child::tests::what_a_worker_prints_goes_nowhere";
        if std::env::var_os("CUINSTR_TEST_PRINTS").is_some() {
            serve_if_asked();
            // As a kernel's `printf` and its assertions do, without the test harness.
            writeln!(io::stdout(), "printed").unwrap();
            writeln!(io::stderr(), "asserted").unwrap();
            return;
        }
        let said = |role: Option<&str>| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", NAME, "--nocapture"]).env("CUINSTR_TEST_PRINTS", "1").env_remove(VARIABLE);
            let output = command.envs(role.map(|role| (VARIABLE, role))).output().unwrap();
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
        };
        assert!(["printed", "asserted"].iter().all(|word| said(None).contains(word)));
        assert!(!["printed", "asserted"].iter().any(|word| said(Some(SILENT)).contains(word)));
    }

    /// Most address space that this process had, in kilobytes.
    fn peak() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmPeak:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}
