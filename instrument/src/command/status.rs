//! How a run went, and the answer of a command that is one text.

use super::output;
use anyhow::Context;
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

/// Prints a text as the whole answer of a command.
pub(crate) fn print(text: &str) -> anyhow::Result<Status> {
    output::to_stdout(text.as_bytes()).context("standard output can't be written")?;
    Ok(Status::Done)
}
