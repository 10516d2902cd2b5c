//! The list of exceptions that `verify --allow` takes.

use cuinstr::diagnostic::{Code, Diagnostic};
use cuinstr_image::Kernel;
use cuinstr_verify::report::{Loop, Place, UnknownCall, Verdict};
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;

/// Exceptions, each with whether it has accepted something.
#[derive(Debug, Default)]
pub(crate) struct Exceptions {
    entries: Vec<(Range<usize>, Entry, bool)>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    allow: Vec<Spanned<Entry>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    function: Option<String>,
    place: Option<String>,
    verdict: Option<Which>,
    reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Which {
    NotPolled,
    TooMany,
    TrapOnly,
    WaitsInHardware,
    UnknownCallee,
}

impl Exceptions {
    /// Reads a list.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Box<Diagnostic>> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let at = error.valid_up_to();
            Box::new(Diagnostic::new(Code::BadExceptions, "the list is not UTF-8").at(at..at + 1).help("save it as UTF-8"))
        })?;
        let list: List = toml::from_str(text).map_err(|error| {
            let message = cuinstr::render::one_line(error.message());
            let diagnostic = Diagnostic::new(Code::BadExceptions, message).help("`cuinstr explain CI057` shows the form");
            Box::new(if let Some(span) = error.span() { diagnostic.at(span) } else { diagnostic })
        })?;
        let mut entries = Vec::new();
        for entry in list.allow {
            let span = entry.span();
            let entry = entry.into_inner();
            if entry.reason.trim().is_empty() {
                return Err(Box::new(Diagnostic::new(Code::BadExceptions, "an exception gives no reason").at(span)));
            }
            if entry.function.is_none() && entry.place.is_none() && entry.verdict.is_none() {
                let message = "an exception names nothing: give a function, a place or a verdict";
                return Err(Box::new(Diagnostic::new(Code::BadExceptions, message).at(span)));
            }
            entries.push((span, entry, false));
        }
        Ok(Self { entries })
    }

    /// The reason for which a loop is accepted, if it is.
    pub(crate) fn accept_loop(&mut self, found: &Loop) -> Option<String> {
        let which = match found.verdict {
            Verdict::NotPolled { .. } => Which::NotPolled,
            Verdict::TooMany { .. } => Which::TooMany,
            Verdict::TrapOnly => Which::TrapOnly,
            Verdict::WaitsInHardware => Which::WaitsInHardware,
            Verdict::Polled { .. } | Verdict::Bounded { .. } => return None,
        };
        let functions: Vec<&str> =
            std::iter::once(found.function.as_str()).chain(found.blocks.iter().filter(|_| found.recursion).map(String::as_str)).collect();
        self.accept(which, &functions, found.place.as_ref())
    }

    /// The reason for which a call out of sight is accepted, if it is.
    pub(crate) fn accept_call(&mut self, call: &UnknownCall) -> Option<String> {
        self.accept(Which::UnknownCallee, &[&call.callee, &call.function], call.place.as_ref())
    }

    fn accept(&mut self, which: Which, functions: &[&str], place: Option<&Place>) -> Option<String> {
        let mut reason = None;
        for (_, entry, used) in &mut self.entries {
            let is_named = entry.function.as_ref().is_none_or(|name| functions.iter().any(|function| is_called(function, name)));
            let is_there = entry.place.as_ref().is_none_or(|wanted| place.is_some_and(|place| is_at(place, wanted)));
            if is_named && is_there && entry.verdict.is_none_or(|wanted| wanted == which) {
                *used = true;
                reason = reason.or_else(|| Some(entry.reason.clone()));
            }
        }
        reason
    }

    /// Entries that accepted nothing.
    pub(crate) fn stale(&self) -> Vec<Diagnostic> {
        let stale = self.entries.iter().filter(|(_, _, used)| !used);
        stale
            .map(|(span, ..)| Diagnostic::new(Code::StaleException, Code::StaleException.title()).at(span.clone()).help("remove it"))
            .collect()
    }
}

fn is_called(symbol: &str, name: &str) -> bool {
    if symbol == name {
        return true;
    }
    let kernel = Kernel::new(symbol);
    kernel.name == name || kernel.signature == name
}

/// Whether the place, or a call that it was inlined through, is at `file:line`, with as much of the path as is given.
fn is_at(place: &Place, wanted: &str) -> bool {
    let Some((wanted_file, wanted_line)) = wanted.rsplit_once(':') else { return false };
    let matches = |file: &str, line: u32| {
        let is_end = file.strip_suffix(wanted_file).is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '\\']));
        is_end && wanted_line.parse() == Ok(line)
    };
    matches(&place.file, place.line) || place.inlined.iter().any(|frame| matches(&frame.file, frame.line))
}
