//! `cuinstr ps` and `cuinstr stop`: processes that are watched, by their sockets (`cuinstr_abi::sockets`).

use super::Status;
use super::cli::{PsArgs, StopArgs};
use super::report::to_stderr;
use cuinstr_abi::sockets::{self, Running};
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest that a process is waited for: one that stops a kernel gives that two seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// A process that is watched.
struct Watched {
    process: u32,
    socket: PathBuf,
}

/// Those of this user, by their numbers.
fn all() -> Vec<Watched> {
    let user = rustix::process::geteuid().as_raw();
    let folder = sockets::folder(std::env::var_os("XDG_RUNTIME_DIR"), std::env::var_os("TMPDIR"), user);
    let watched = |path: PathBuf| {
        let process = path.file_name()?.to_str()?.strip_suffix(".sock")?.parse().ok()?;
        Some(Watched { process, socket: path })
    };
    let mut found: Vec<Watched> = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| watched(entry.path())).collect();
    found.sort_by_key(|watched| watched.process);
    found
}

impl Watched {
    /// Asks it. The socket of a process that is gone is removed.
    fn ask(&self, request: &str) -> io::Result<Vec<Running>> {
        let stream = UnixStream::connect(&self.socket).inspect_err(|error| {
            if error.kind() == io::ErrorKind::ConnectionRefused {
                let _ = fs::remove_file(&self.socket);
            }
        })?;
        stream.set_read_timeout(Some(PATIENCE))?;
        (&stream).write_all(format!("{request}\n").as_bytes())?;
        let mut answer = String::new();
        (&stream).read_to_string(&mut answer)?;
        answer.lines().map(|line| serde_json::from_str(line).map_err(io::Error::from)).collect()
    }

    /// Its command line, in one line.
    fn command(&self) -> String {
        let words = fs::read(format!("/proc/{}/cmdline", self.process)).unwrap_or_default();
        let words: Vec<_> = words.split(|byte| *byte == 0).filter(|word| !word.is_empty()).map(String::from_utf8_lossy).collect();
        cuinstr::render::one_line(&words.join(" ")).chars().take(80).collect()
    }
}

/// Has the kernels of a session's processes stop; those that do not answer are left alone.
pub(super) fn stop_session(folder: &Path) {
    let all = all();
    std::thread::scope(|scope| {
        for watched in &all {
            scope.spawn(move || watched.ask(&format!("stop {}", folder.display())));
        }
    });
}

/// Lists processes and what they run.
pub(super) fn ps(args: &PsArgs) -> String {
    let mut text = String::new();
    for watched in all() {
        let launches = match watched.ask("list") {
            Ok(launches) => launches,
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            Err(error) => {
                to_stderr(&format!("warning: process {} does not answer: {error}\n", watched.process));
                continue;
            }
        };
        if args.json {
            let _ = writeln!(text, "{}", json!({"process": watched.process, "command": watched.command(), "running": launches}));
            continue;
        }
        let _ = writeln!(text, "{:>8}  {}", watched.process, watched.command());
        for launch in launches {
            let limit =
                if launch.timeout_ns == 0 { "no limit".to_owned() } else { format!("limit {:?}", Duration::from_nanos(launch.timeout_ns)) };
            let polls = if launch.polled { "" } else { ", no polls" };
            let ran = Duration::from_millis(launch.ran_ns / 1_000_000);
            let _ = writeln!(text, "          `{}` has run for {ran:?}, {limit}{polls}", launch.kernel);
        }
    }
    if text.is_empty() && !args.json { "no process of yours is watched: start one with `cuinstr run`\n".to_owned() } else { text }
}

/// Has the kernels of a process stop.
pub(super) fn stop(args: &StopArgs) -> anyhow::Result<Status> {
    let Some(watched) = all().into_iter().find(|watched| watched.process == args.process) else {
        to_stderr(&format!("error: process {} is not watched: `cuinstr ps` lists those that are\n", args.process));
        return Ok(Status::Refused);
    };
    let stopped = watched.ask("stop").map_err(|error| anyhow::anyhow!("process {} does not answer: {error}", args.process))?;
    let names: Vec<String> = stopped.iter().map(|launch| format!("`{}`", launch.kernel)).collect();
    super::print(&if names.is_empty() { "nothing runs that polls\n".to_owned() } else { format!("stopped: {}\n", names.join(", ")) })
}
