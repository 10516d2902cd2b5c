//! What a run says on standard error, rendered for the terminal or for a program.

use super::Status;
use super::cli::Format;
use cuinstr::diagnostic::{Code, Diagnostic, Severity};
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
    /// Colours only on a terminal that has them, and not if the user said `NO_COLOR` (<https://no-color.org>).
    pub(crate) fn new(format: Format) -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { format, colour: !unwanted && io::stderr().is_terminal() }
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

/// Prints. That nobody can read it changes nothing about what was done.
pub(crate) fn to_stderr(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// The exit status that these diagnostics ask for.
pub(crate) fn status_of(diagnostics: &[Diagnostic]) -> Status {
    diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .map(|diagnostic| if matches!(diagnostic.code, Code::CannotRead | Code::CannotWrite) { Status::Io } else { Status::Refused })
        .max()
        .unwrap_or(Status::Done)
}
