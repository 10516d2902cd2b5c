//! What the command does: reads, calls [`cuinstr::rewrite`], writes and reports. All IO of this crate is in here.
//!
//! # Exit codes
//!
//! | code | means |
//! | --- | --- |
//! | 0 | everything asked for was done; there may be warnings |
//! | 1 | an input was refused: a diagnostic is an error, gaps under `--strict` included; `verify`: something is not proved; `audit`: a loop has no site |
//! | 2 | the command line makes no sense; nothing was done |
//! | 3 | something could not be read or written |
//!
//! If several apply, the largest. One input that fails keeps none of the others from being written.
//!
//! In reading order: `cli` (arguments) → `batch` (all inputs of a run) → `job` (one input)
//! → `output` → `listing`, `summary` (what is printed). `launch` runs nvcc by way of the library's launcher; `verify`, with `exceptions` and `sarif`, stands for itself, and so does `audit`.

mod audit;
mod batch;
mod cli;
mod duration;
mod exceptions;
mod explain;
mod job;
mod launch;
mod listing;
mod output;
mod progress;
mod report;
mod sarif;
mod summary;
mod verify;

use anyhow::Context;
use std::ffi::OsString;
use std::process::ExitCode;

/// How a run went; the largest of what happened counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// Everything asked for was done.
    Done = 0,
    /// An input was refused.
    Refused = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// Something could not be read or written.
    Io = 3,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status as u8)
    }
}

/// Runs the command with these arguments, the program's name first.
///
/// # Errors
/// If standard output can't be written, for another reason than that nobody reads it any more.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Vec<OsString> = arguments.collect();
    if let Some(call) = launch::Call::read(&arguments) {
        return Ok(call.run());
    }
    perform(arguments.into_iter()).map(Status::into).or_else(|error| {
        let usage = error.downcast::<clap::Error>()?;
        // Help and version come this way too, with exit code 0.
        let _ = usage.print();
        Ok(if usage.exit_code() == 0 { Status::Done } else { Status::Usage }.into())
    })
}

fn perform(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<Status> {
    let cli = cli::Cli::read(arguments)?;
    match cli.verb {
        Some(cli::Verb::Explain { code }) => {
            output::to_stdout(explain::text(code).as_bytes()).context("standard output can't be written")?;
            Ok(Status::Done)
        }
        Some(cli::Verb::Verify(args)) => verify::run(&args),
        Some(cli::Verb::Audit(args)) => audit::run(&args),
        None => batch::run(&cli.rewrite),
    }
}
