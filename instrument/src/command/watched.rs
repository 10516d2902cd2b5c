//! `cuinstr ps`, `stop`, `pause`, `resume` and `where`: processes that are watched, by their sockets (`cuinstr_abi::sockets`).

use super::cli::{PauseArgs, ProcessArgs, PsArgs, Then};
use super::report::to_stderr;
use super::status::Status;
use cuinstr_abi::sockets::{self, Loop, Pause, Running, State, Whereabouts};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest that a process is waited for: one that stops a kernel gives that two seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often a process is asked whether its launches have paused.
const LOOK: Duration = Duration::from_millis(10);

/// For how long what keeps a launch from pausing may be something that passes, such as a call of the program's.
const PASSES: Duration = Duration::from_millis(200);

/// How a socket fails whose process comes to its end.
const ENDS: [io::ErrorKind; 3] = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe, io::ErrorKind::NotFound];

/// A process that is watched.
struct Watched {
    process: u32,
    sockets: Vec<PathBuf>,
}

/// Those of this user, by their numbers.
fn all() -> Vec<Watched> {
    let user = rustix::process::geteuid().as_raw();
    let folder = sockets::folder(std::env::var_os("XDG_RUNTIME_DIR"), std::env::var_os("TMPDIR"), user);
    let mut found: BTreeMap<u32, Vec<PathBuf>> = BTreeMap::new();
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if let Some(process) = path.file_name().and_then(|name| sockets::process(name.to_str()?)) {
            found.entry(process).or_default().push(path);
        }
    }
    found.into_iter().map(|(process, sockets)| Watched { process, sockets }).collect()
}

impl Watched {
    /// The one of this number.
    fn of(process: u32) -> Option<Self> {
        all().into_iter().find(|watched| watched.process == process)
    }

    /// Whether a process has this number. One that begins has a socket before it listens.
    fn is_there(&self) -> bool {
        fs::exists(format!("/proc/{}", self.process)).unwrap_or(true)
    }

    /// Asks it, by each of its sockets. What a process has left behind that is gone is removed.
    fn ask<T: DeserializeOwned>(&self, request: &str) -> io::Result<Vec<T>> {
        let mut answers = Vec::new();
        let (mut gone, mut lives) = (None, false);
        for socket in &self.sockets {
            match ask(socket, request) {
                Ok(more) => {
                    answers.extend(more);
                    lives = true;
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    if !self.is_there() {
                        let _ = fs::remove_file(socket);
                    }
                    gone = Some(error);
                }
                // The process has come to its end since another part of it answered.
                Err(error) if lives && ENDS.contains(&error.kind()) => {}
                Err(error) => return Err(error),
            }
        }
        if !lives && !self.is_there() {
            self.sockets.first().and_then(|socket| socket.parent()).into_iter().for_each(|folder| remove_words(folder, self.process));
        }
        match gone {
            // What one part has heard holds for all of them.
            Some(error) if !lives => Err(error),
            _ => Ok(answers),
        }
    }

    /// What is true of it as a whole; nothing if it is of an older release.
    fn state(&self) -> io::Result<Option<State>> {
        let states = self.ask::<State>("state")?.into_iter();
        Ok(states.reduce(|one, other| State { paused: one.paused && other.paused, leaves: one.leaves && other.leaves }))
    }

    /// Its command line, in one line.
    fn command(&self) -> String {
        let words = fs::read(format!("/proc/{}/cmdline", self.process)).unwrap_or_default();
        let words: Vec<_> = words.split(|byte| *byte == 0).filter(|word| !word.is_empty()).map(String::from_utf8_lossy).collect();
        cuinstr::render::one_line(&words.join(" ")).chars().take(80).collect()
    }
}

/// Removes what the parts of a process that is gone shared (`cuinstr_abi::sockets`).
fn remove_words(folder: &Path, process: u32) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if sockets::is_words_of(name, process) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Asks at one socket.
fn ask<T: DeserializeOwned>(socket: &Path, request: &str) -> io::Result<Vec<T>> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    (&stream).write_all(format!("{request}\n").as_bytes())?;
    let mut answer = String::new();
    (&stream).read_to_string(&mut answer)?;
    answer.lines().map(|line| serde_json::from_str(line).map_err(io::Error::from)).collect()
}

/// Has the kernels of a session's processes stop; those that do not answer are left alone.
pub(super) fn stop_session(folder: &Path) {
    let all = all();
    std::thread::scope(|scope| {
        for watched in &all {
            scope.spawn(move || watched.ask::<Running>(&format!("stop {}", folder.display())));
        }
    });
}

/// Lists processes and what they run.
pub(super) fn ps(args: &PsArgs) -> String {
    let mut text = String::new();
    for watched in all() {
        let launches = match watched.ask::<Running>("list") {
            Ok(launches) => launches,
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            Err(error) => {
                to_stderr(&format!("warning: process {} does not answer: {error}\n", watched.process));
                continue;
            }
        };
        let is_paused = watched.state().ok().flatten().is_some_and(|state| state.paused);
        // What runs something was resumed, if not by cuinstr.
        let is_suspended = launches.is_empty() && cuinstr_checkpoint::is_suspended(watched.process);
        if args.json {
            let process = json!({
                "process": watched.process, "command": watched.command(), "paused": is_paused, "suspended": is_suspended, "running": launches,
            });
            let _ = writeln!(text, "{process}");
            continue;
        }
        let state = match (is_suspended, is_paused) {
            (true, _) => "  (suspended: it has no GPU)",
            (false, true) => "  (paused: launches wait)",
            (false, false) => "",
        };
        let _ = writeln!(text, "{:>8}  {}{state}", watched.process, watched.command());
        for launch in launches {
            let _ = writeln!(text, "          {}", described(&launch));
        }
    }
    if text.is_empty() && !args.json { "no process of yours is watched: start one with `cuinstr run`\n".to_owned() } else { text }
}

/// A launch in one line.
fn described(launch: &Running) -> String {
    let limit = if launch.timeout_ns == 0 { "no limit".to_owned() } else { format!("limit {:?}", Duration::from_nanos(launch.timeout_ns)) };
    let polls = if launch.polled { "" } else { ", no polls" };
    let ran = Duration::from_millis(launch.ran_ns / 1_000_000);
    let pause = match &launch.pause {
        None => String::new(),
        Some(Pause::Asked) => ", and the blocks that have begun still run".to_owned(),
        Some(Pause::Paused { done, left }) => format!(", and is paused: {done} blocks have run, {left} wait"),
        Some(Pause::RunsOn { why }) => format!(", and runs on to its end: {why}"),
    };
    format!("`{}` has run for {ran:?}, {limit}{polls}{pause}", launch.kernel)
}

/// Asks a process something, and says so if it is not there.
fn asked<T: DeserializeOwned>(process: u32, request: &str) -> anyhow::Result<Option<(Watched, Vec<T>)>> {
    let answer = Watched::of(process).map(|watched| (watched.ask(request), watched));
    match answer {
        Some((Ok(answer), watched)) => Ok(Some((watched, answer))),
        // It has left a socket behind.
        Some((Err(error), _)) if error.kind() != io::ErrorKind::ConnectionRefused => {
            Err(anyhow::anyhow!("process {process} does not answer: {error}"))
        }
        _ => {
            to_stderr(&format!("error: process {process} is not watched: `cuinstr ps` lists those that are\n"));
            Ok(None)
        }
    }
}

/// Has the kernels of a process stop.
pub(super) fn stop(args: &ProcessArgs) -> anyhow::Result<Status> {
    let Some((_, stopped)) = asked::<Running>(args.process, "stop")? else { return Ok(Status::Refused) };
    let names: Vec<String> = stopped.iter().map(|launch| format!("`{}`", launch.kernel)).collect();
    super::status::print(&if names.is_empty() {
        "nothing runs that polls\n".to_owned()
    } else {
        format!("stopped: {}\n", names.join(", "))
    })
}

/// Has later launches of a process wait, and those that run pause at block boundaries if they can.
pub(super) fn pause(args: &PauseArgs) -> anyhow::Result<Status> {
    let process = args.of.process;
    let Some((watched, mut running)) = asked::<Running>(process, "pause blocks")? else { return Ok(Status::Refused) };
    if !watched.state()?.is_some_and(|state| state.paused) {
        to_stderr(&format!("error: process {process} can't be paused: it was started by an older release of cuinstr\n"));
        return Ok(Status::Refused);
    }
    let since = Instant::now();
    let is_settled = |launch: &Running| match launch.pause {
        None | Some(Pause::Paused { .. }) => true,
        Some(Pause::Asked) => false,
        Some(Pause::RunsOn { .. }) => since.elapsed() > PASSES,
    };
    while !running.iter().all(is_settled) && since.elapsed() < Duration::from_nanos(args.within) {
        std::thread::sleep(LOOK);
        running = watched.ask("list")?;
    }
    let mut text = "paused: later launches wait\n".to_owned();
    for launch in running {
        let runs_on = if launch.pause.is_none() { ", and runs on to its end" } else { "" };
        let _ = writeln!(text, "{}{runs_on}", described(&launch));
    }
    super::status::print(&text)
}

/// Lets the launches of a process go on.
pub(super) fn resume(args: &ProcessArgs) -> anyhow::Result<Status> {
    match asked::<Running>(args.process, "resume")? {
        Some(_) => super::status::print("resumed\n"),
        None => Ok(Status::Refused),
    }
}

/// Says in which loops the kernels of a process can be.
pub(super) fn whereabouts(args: &ProcessArgs) -> anyhow::Result<Status> {
    let Some((_, found)) = asked::<Whereabouts>(args.process, "where")? else { return Ok(Status::Refused) };
    let mut text = String::new();
    for Whereabouts { launch, loops } in &found {
        let _ = writeln!(text, "{}", described(launch));
        let what = match loops.as_slice() {
            [] if launch.polled => "  it has no loop that polls: it is in a function that it calls, or about to end",
            [] => "  its loops are not known: it is machine code",
            [_] => "  in this loop, its only one, or in a function that it calls:",
            _ => "  in one of these loops, or in a function that it calls:",
        };
        let _ = writeln!(text, "{what}");
        for Loop { file, line, column, kind } in loops {
            let _ = writeln!(text, "    {file}:{line}:{column}: {kind}");
        }
    }
    super::status::print(if text.is_empty() { "nothing runs\n" } else { &text })
}

/// Those of these processes that are watched, asked to make room for a checkpoint. Dropping it lets their launches go on.
pub(super) struct Held(Vec<Watched>);

impl Held {
    /// Holds the launches of these processes, and has what runs stop if that was asked for.
    ///
    /// # Errors
    /// If none of them is watched, or their kernels would trap.
    pub(super) fn begin(processes: &[u32], then: Then) -> Result<Self, String> {
        let watched: Vec<Watched> = all().into_iter().filter(|watched| processes.contains(&watched.process)).collect();
        if watched.is_empty() {
            return Err("its kernels can't be asked to make room, since it does not run under `cuinstr run`".to_owned());
        }
        let leaves = |one: &Watched| matches!(one.state(), Ok(Some(State { leaves: true, .. })));
        if let Some(trapping) = watched.iter().find(|one| then == Then::Stop && !leaves(one)) {
            return Err(format!(
                "kernels of process {} trap when they are stopped, and nothing is left to save: start it with `cuinstr run --on-stop leave`, or use --then pause",
                trapping.process
            ));
        }
        let held = Self(watched);
        for one in &held.0 {
            let paused =
                one.ask::<Running>("pause").and_then(|_| if then == Then::Stop { one.ask::<Running>("stop") } else { Ok(Vec::new()) });
            paused.map_err(|error| format!("process {} does not answer: {error}", one.process))?;
        }
        Ok(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for watched in &self.0 {
            // One that is gone has nothing to go on with.
            let _ = watched.ask::<Running>("resume");
        }
    }
}
