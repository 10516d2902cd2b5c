//! What a run says on standard error, rendered for the terminal or for a program.

use super::cli::{ColorArg, Format, RewriteArgs};
use super::status::Status;
use cuinstr::diagnostic::{Code, Diagnostic, Severity};
use cuinstr::project::environment;
use cuinstr::render::{self, Source};
use std::io::{self, IsTerminal, Write};

/// How to render.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// `--format`.
    pub(crate) format: Format,
    /// Whether to use colours.
    pub(crate) colour: bool,
}

impl Style {
    /// For standard error.
    pub(crate) fn new(format: Format, color: ColorArg) -> Self {
        Self { format, colour: is_wanted(color, &io::stderr()) }
    }

    /// Diagnostics of one file as text.
    pub(crate) fn render(self, path: &str, bytes: &[u8], diagnostics: &[Diagnostic]) -> String {
        if diagnostics.is_empty() {
            return String::new();
        }
        let source = Source::new(path, bytes);
        diagnostics
            .iter()
            .map(|diagnostic| match self.format {
                Format::Full => render::full(&source, diagnostic, self.colour),
                Format::Short => render::short(&source, diagnostic),
                Format::Json => render::json(&source, diagnostic),
            })
            .collect()
    }
}

/// Whether a stream gets colours. Without a word of the user's: on a terminal that has them, unless `NO_COLOR` is set (<https://no-color.org>).
pub(crate) fn is_wanted(color: ColorArg, stream: &impl IsTerminal) -> bool {
    match color {
        ColorArg::Always => true,
        ColorArg::Never => false,
        ColorArg::Auto => {
            let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
                || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
            !unwanted && stream.is_terminal()
        }
    }
}

/// Tells of variables that nothing reads, and of those that this command does not read though the user may think so.
pub(crate) fn warn_of_variables(args: &RewriteArgs) {
    if args.how.quiet || args.format == Format::Json {
        return;
    }
    to_stderr(&unread_variables());
    for (name, reader) in environment::USERS.iter().filter(|(name, _)| std::env::var_os(name).is_some()) {
        to_stderr(&format!("warning: `cuinstr FILE` does not read the variable {name}: {reader} do; `cuinstr --help` lists the options\n"));
    }
}

/// A line for each variable of ours that nothing reads.
pub(crate) fn unread_variables() -> String {
    let names: Vec<String> = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    environment::unread(names.iter().map(String::as_str)).into_iter().map(|line| line + "\n").collect()
}

/// Prints. A reader that has gone changes nothing about what was done.
pub(crate) fn to_stderr(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// The exit status that these diagnostics ask for.
pub(crate) fn status_of(diagnostics: &[Diagnostic]) -> Status {
    diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .map(|diagnostic| {
            if matches!(diagnostic.code, Code::CannotRead | Code::CannotWrite | Code::NoClang | Code::NoToolkit) {
                Status::Io
            } else {
                Status::Refused
            }
        })
        .max()
        .unwrap_or(Status::Done)
}
