//! What came out: one JSON file for programs, one table for people.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write as _;

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// As it should.
    Pass,
    /// Otherwise.
    Fail,
    /// It was never begun: the time was used up.
    NotRun,
}

/// One case's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// Name of the case.
    pub name: String,
    /// How it ended.
    pub status: Status,
    /// Seconds that it took, without the process around it.
    pub seconds: f64,
    /// What it has to say, or why it failed.
    pub notes: Vec<String>,
    /// Measurements.
    pub data: Value,
}

impl CaseResult {
    /// A failure that the child could not report itself.
    #[must_use]
    pub fn failed(name: &str, seconds: f64, why: String) -> Self {
        Self { name: name.to_owned(), status: Status::Fail, seconds, notes: vec![why], data: Value::Null }
    }
}

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Version of this format, 1.
    pub version: u32,
    /// The device, as `nvidia-smi` names it before the run.
    pub gpu: Value,
    /// Build of the compiler.
    pub compiler: String,
    /// Seconds of everything.
    pub wall_seconds: f64,
    /// Cases that passed.
    pub passed: usize,
    /// Cases that failed.
    pub failed: usize,
    /// Cases never begun.
    pub not_run: usize,
    /// The cases in order.
    pub cases: Vec<CaseResult>,
}

impl Results {
    /// Counts the cases of a run.
    #[must_use]
    pub fn new(gpu: Value, compiler: String, wall_seconds: f64, cases: Vec<CaseResult>) -> Self {
        let count = |status| cases.iter().filter(|case| case.status == status).count();
        let (passed, failed, not_run) = (count(Status::Pass), count(Status::Fail), count(Status::NotRun));
        Self { version: 1, gpu, compiler, wall_seconds, passed, failed, not_run, cases }
    }

    /// One line a case, the failures once more at the end.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::new();
        for case in &self.cases {
            text.push_str(&line(case));
        }
        let failures: Vec<&CaseResult> = self.cases.iter().filter(|case| case.status == Status::Fail).collect();
        if !failures.is_empty() {
            text.push_str("\nfailures:\n");
        }
        for case in failures {
            let _ = writeln!(text, "\n  {}\n    {}", case.name, case.notes.join("\n").replace('\n', "\n    "));
        }
        let (passed, failed, not_run) = (self.passed, self.failed, self.not_run);
        let _ = writeln!(text, "\n{passed} passed, {failed} failed, {not_run} not run, in {:.0} s", self.wall_seconds);
        text
    }
}

/// A case in one line.
#[must_use]
pub fn line(case: &CaseResult) -> String {
    let word = match case.status {
        Status::Pass => "ok",
        Status::Fail => "FAILED",
        Status::NotRun => "not run",
    };
    let note = case.notes.first().and_then(|note| note.lines().next()).unwrap_or("");
    format!("{word:7} {:6.2} s  {:64} {note}\n", case.seconds, case.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_listed_once_more_with_all_they_say() {
        let failed = CaseResult::failed("twin: x", 1.0, "first\nsecond".into());
        let passed = CaseResult { name: "same: y".into(), status: Status::Pass, seconds: 0.5, notes: Vec::new(), data: Value::Null };
        let results = Results::new(Value::Null, String::new(), 2.0, vec![passed, failed]);
        assert_eq!((results.passed, results.failed, results.not_run), (1, 1, 0));
        let table = results.table();
        assert!(table.starts_with("ok        0.50 s  same: y") && table.contains("    second\n"), "{table}");
        assert!(table.ends_with("1 passed, 1 failed, 0 not run, in 2 s\n"));
    }
}
