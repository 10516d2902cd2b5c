//! `cuinstr run`: a program whose kernels get deadlines, though it was not compiled for that.
//!
//! This process stays as the program's parent. It loads a library in front of the program (`runtime/interpose`). The library
//! does the work in each of the program's processes, and writes what it did into the session's folder.
//!
//! In reading order:
//!
//! - `program`: can it be reached? `library`: what is loaded in front.
//! - `tools`: those that compile in the program. `signals`: they go on to the program.
//! - `compiling`: what is said meanwhile. `session`: what the program's processes did.

mod compiling;
mod keep;
mod library;
mod program;
mod session;
mod signals;
mod tools;

use super::cli::{OnStop, RunArgs};
use super::gpus;
use super::report::to_stderr;
use super::status::Status;
use anyhow::Context;
use compiling::Compiling;
use keep::Keeper;
use session::Session;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};

/// Exit code where a launch was stopped, as that of `timeout`.
const STOPPED: u8 = 124;
/// Exit code of a program that was saved and ended by a signal: `EX_TEMPFAIL`, by which batch systems know that it is to be started again.
const REQUEUE: u8 = 75;
/// Exit code of a program that was not found, as in shells.
const NOT_FOUND: u8 = 127;

/// Whether this program has the library that is loaded in front of others.
pub(crate) fn has_library() -> bool {
    library::is_there()
}

/// Runs the program, and gives the exit code.
///
/// # Errors
/// If no GPU is free, the session has no folder, or the library can't be unpacked.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    if let Err(why) = args.keep.check() {
        to_stderr(&format!("error: {why}\n"));
        return Ok(Status::Usage.into());
    }
    let session = Session::begin(args.keep.folder())?;
    let (orders, receiver) = keep::orders();
    let own = args.keep.on_signal.map(|signal| (signal, orders.clone()));
    let watch = signals::Watch::begin(session.folder(), own).context("signals can't be watched")?;
    let mut unheard = Vec::new();
    let (is_requeued, status) = if let Some(folder) = &args.keep.restart {
        let process = keep::restore(folder)?;
        watch.forward_to(process);
        let keeper = Keeper::begin(&args.keep, process, (orders, receiver));
        keep::wait(process);
        watch.end();
        // Who restores a process does not hear how it ended.
        (keeper.is_some_and(Keeper::end), ExitStatus::default())
    } else {
        // The lease lasts as long as this process or one of the program's.
        let (mut command, _lease, settings) = match prepared(args, &session)? {
            Ok(prepared) => prepared,
            Err(status) => return Ok(status),
        };
        unheard = settings;
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                to_stderr(&format!("error: {} can't be started: {error}\n", command.get_program().display()));
                return Ok(NOT_FOUND.into());
            }
        };
        watch.forward_to(child.id());
        let keeper = Keeper::begin(&args.keep, child.id(), (orders, receiver));
        let compiling = Compiling::begin(session.folder(), args.quiet);
        let status = child.wait().context("the program can't be waited for")?;
        drop(compiling);
        watch.end();
        (keeper.is_some_and(Keeper::end), status)
    };
    if is_requeued {
        to_stderr("cuinstr: the program is saved: `cuinstr run --restart` goes on\n");
        return Ok(REQUEUE.into());
    }
    told(args, &session, status, &unheard)
}

/// The program as it is to be started, its GPUs, and what is said of settings that keep polls out of it.
type Prepared = (Command, Option<cuinstr_gpus::Choice>, Vec<String>);

/// What is to be started; or the status of what is no program to start.
fn prepared(args: &RunArgs, session: &Session) -> anyhow::Result<Result<Prepared, ExitCode>> {
    let Some((name, words)) = args.program.split_first() else { return Ok(Err(Status::Usage.into())) };
    let Some(path) = program::find(name) else {
        to_stderr(&format!("error: there is no program `{}`: give its path, or one that is on PATH\n", name.to_string_lossy()));
        return Ok(Err(NOT_FOUND.into()));
    };
    if let Err(why) = program::reach(&path) {
        to_stderr(&format!("error: `cuinstr run` can't reach {}: {why}\n", path.display()));
        return Ok(Err(Status::Usage.into()));
    }
    let gpus = gpus::chosen(&args.gpus)?;
    let library = library::path()?;
    let mut command = Command::new(&path);
    std::os::unix::process::CommandExt::arg0(&mut command, name);
    command.args(words).env("LD_PRELOAD", in_front(&library, std::env::var_os("LD_PRELOAD")));
    command.env("CUINSTR_RUN", session.folder()).env("CUINSTR_REPORT", session.stops());
    if let Some(choice) = &gpus {
        command.env("CUDA_VISIBLE_DEVICES", choice.visible_devices());
    }
    // What an option does not say, the variables may.
    if let Some(timeout) = &args.timeout {
        command.env("CUINSTR_TIMEOUT", timeout.text());
    }
    if let Some(fuel) = args.fuel {
        command.env("CUINSTR_FUEL", fuel.to_string());
    }
    if let Some(action) = args.on_stop {
        command.env("CUINSTR_ON_STOP", if action == OnStop::Leave { "leave" } else { "trap" });
    }
    if args.pausable {
        command.env("CUINSTR_PAUSABLE", "1");
    }
    let mut settings = Vec::new();
    if let Some(cache) = library::cache() {
        let fuel = args.fuel.is_some() || std::env::var_os("CUINSTR_FUEL").is_some_and(|value| !value.is_empty());
        settings = tools::set(&mut command, &path, &cache, fuel);
    }
    Ok(Ok((command, gpus, settings)))
}

/// Says what the program's processes did, and gives the exit code. `unheard` is said where a kernel had no polls.
fn told(args: &RunArgs, session: &Session, status: ExitStatus, unheard: &[String]) -> anyhow::Result<ExitCode> {
    let done = session.read(args.timeout.as_ref().map_or(&[], |timeout| timeout.names()));
    if let Some(report) = &args.report {
        done.write(report).with_context(|| format!("the report {} can't be written", report.display()))?;
    }
    let has_gaps = args.strict && done.has_unpolled();
    to_stderr(&done.text(args.list || has_gaps, args.quiet));
    for sentence in unheard.iter().filter(|_| done.has_unpolled() && (has_gaps || !args.quiet)) {
        to_stderr(&format!("  = note: {sentence}\n"));
    }
    Ok(match code(status, &done) {
        0 if has_gaps => Status::Refused.into(),
        code => code.into(),
    })
}

/// The program's own status; 124 where a launch was stopped; where all went well otherwise, the usage error of a kernel's name that nothing bears.
fn code(status: ExitStatus, done: &session::Done) -> u8 {
    // A process that a signal ended has, in shells, this status.
    let own = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    if done.was_stopped() {
        STOPPED
    } else if own == 0 && done.has_unknown_names() {
        Status::Usage as u8
    } else {
        own
    }
}

/// The libraries to load in front: ours, then those that the user asked for.
fn in_front(library: &std::path::Path, others: Option<OsString>) -> OsString {
    let mut all = library.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}
