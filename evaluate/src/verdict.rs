//! What became of a candidate.

use crate::candidate::Origin;
use crate::times::Times;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What became of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// It answers as the reference does in every case.
    #[serde(rename = "pass")]
    Pass,
    /// It answers something else, or wrote beside its memory.
    #[serde(rename = "wrong result")]
    WrongResult,
    /// It reached a limit, of time or of fuel, and was stopped.
    #[serde(rename = "timeout")]
    Timeout,
    /// It ended its context, or can't be launched.
    #[serde(rename = "fault")]
    Fault,
    /// It does not compile, or is no kernel with the reference's name and parameters.
    #[serde(rename = "compile error")]
    CompileError,
    /// It bears the rewriter's own marks: names that begin with `__cuinstr_` or `cuinstr_`, which could lead to what stops it.
    #[serde(rename = "refused")]
    Refused,
    /// It compiles; nothing more was asked.
    #[serde(rename = "compiles")]
    Compiles,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Pass, Self::WrongResult, Self::Timeout, Self::Fault, Self::CompileError, Self::Refused, Self::Compiles];

    /// Its name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::WrongResult => "wrong result",
            Self::Timeout => "timeout",
            Self::Fault => "fault",
            Self::CompileError => "compile error",
            Self::Refused => "refused",
            Self::Compiles => "compiles",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A verdict with its reasons: one line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Judgement {
    /// Name of the candidate.
    pub candidate: String,
    /// What tells its text from others.
    pub hash: String,
    /// Which time it was judged, from 1.
    pub round: u32,
    /// What became of it.
    pub verdict: Verdict,
    /// The case that decided, unless all did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// What became of it in each case, where all were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<CaseVerdict>,
    /// Which limit a timeout reached: `deadline`, `fuel`, or `worker` if its process had to be killed since no poll stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Where a timeout was stopped, or where the compiler found an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The reason in words, of what is no pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Milliseconds that running it took, its memory's way to the GPU and back included.
    pub elapsed_ms: f64,
    /// How long it takes in each case without polls, if it passes and that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<Times>,
    /// Number of the GPU that it ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<usize>,
    /// The machine that it ran on, if there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What was changed, of a mutant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutant: Option<Origin>,
}

/// What became of a candidate in one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CaseVerdict {
    /// The case.
    pub case: String,
    /// What became of it there.
    pub verdict: Verdict,
    /// The reason in words, of what is no pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl CaseVerdict {
    /// Of what was found there, if anything is wrong.
    pub(crate) fn new(case: &str, found: Option<&Finding>) -> Self {
        let verdict = found.map_or(Verdict::Pass, |found| found.verdict);
        Self { case: case.to_owned(), verdict, message: found.and_then(|found| found.message.clone()) }
    }
}

/// A place in a candidate's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Place {
    /// Path, as compilers call it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1; 0 if it is not known.
    pub column: u32,
    /// The function around it; empty if it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// The line's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// What was found of a candidate by a compiler or a bench: a judgement without the candidate's name. Engines carry it between machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finding {
    /// What became of it.
    pub verdict: Verdict,
    /// The case that decided, unless all did.
    pub case: Option<String>,
    /// What became of it in each case, where all were asked for.
    pub cases: Vec<CaseVerdict>,
    /// How long it takes without polls, if that was asked for.
    pub times: Vec<Times>,
    /// Which limit a timeout reached.
    pub by: Option<String>,
    /// Where a timeout was stopped, or where the compiler found an error.
    pub place: Option<Place>,
    /// The reason in words, of what is no pass.
    pub message: Option<String>,
}

impl Finding {
    /// A verdict with its reason.
    #[must_use]
    pub fn new(verdict: Verdict, message: impl Into<Option<String>>) -> Self {
        Self { verdict, case: None, cases: Vec::new(), times: Vec::new(), by: None, place: None, message: message.into().map(cut) }
    }

    pub(crate) fn of_case(mut self, name: &str) -> Self {
        self.case = Some(name.to_owned());
        self
    }
}

/// Longest message, in bytes: a compiler may say far more.
const MOST_MESSAGE: usize = 2000;

fn cut(mut text: String) -> String {
    if text.len() > MOST_MESSAGE {
        text.truncate((0..=MOST_MESSAGE).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0));
        text.push_str(" …");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_letters() {
        let message = Finding::new(Verdict::Fault, "ä".repeat(MOST_MESSAGE)).message.unwrap();
        assert!(message.len() < MOST_MESSAGE + 8 && message.ends_with("ä …"));
    }

    #[test]
    fn a_name_is_what_json_says() {
        for verdict in Verdict::ALL {
            assert_eq!(serde_json::to_string(&verdict).unwrap(), format!("{:?}", verdict.name()));
        }
    }
}
