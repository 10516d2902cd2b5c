//! The last lines of a run: what was done, what is not covered and why.

use super::cli::Format;
use super::job::Outcome;
use cuinstr::diagnostic::{Code, Severity};
use cuinstr::options::Limits;
use cuinstr::site::Summary;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What someone who forgot to ask for a limit must not overlook.
const NO_LIMIT: &str = "no limit compiled in: a host that arms nothing will still hang; add --timeout 2s or launch with cuinstr-runtime";

/// Numbers of a run.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    rewritten: usize,
    copied: usize,
    failed: usize,
    summary: Summary,
    codes: BTreeMap<Code, usize>,
}

impl Tally {
    /// Takes note of one input.
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Rewritten { summary, codes } => {
                self.rewritten += 1;
                let sum = &mut self.summary;
                sum.functions += summary.functions;
                sum.kernels += summary.kernels;
                sum.loops += summary.loops;
                sum.polled += summary.polled;
                sum.bounded += summary.bounded;
                sum.polls += summary.polls;
                sum.gaps += summary.gaps;
                for code in codes {
                    *self.codes.entry(*code).or_default() += 1;
                }
            }
            Outcome::Copied { not_examined } => {
                self.copied += 1;
                self.summary.gaps += not_examined;
                if *not_examined > 0 {
                    *self.codes.entry(Code::HeaderNotRewritten).or_default() += not_examined;
                }
            }
            Outcome::Failed => self.failed += 1,
        }
    }

    /// The summary: text, or with `--format json` one object under the key `summary`.
    pub(crate) fn render(&self, format: Format, limits: &Limits) -> String {
        let gaps = || self.codes.iter().filter(|(code, _)| code.severity() == Severity::Warning);
        let no_limit = self.rewritten > 0 && !limits.any();
        if format == Format::Json {
            let codes = gaps().map(|(code, count)| (code.id(), count)).collect::<BTreeMap<_, _>>();
            let summary = json!({
                "rewritten": self.rewritten, "copied": self.copied, "failed": self.failed,
                "functions": self.summary.functions, "kernels": self.summary.kernels, "loops": self.summary.loops,
                "polled": self.summary.polled, "bounded": self.summary.bounded, "polls": self.summary.polls, "gaps": self.summary.gaps,
                "not_covered": codes, "hint": no_limit.then_some(NO_LIMIT),
            });
            return format!("{}\n", json!({ "summary": summary }));
        }
        let mut text = String::new();
        if self.rewritten > 0 {
            let Summary { functions, kernels, loops, polled, bounded, polls, .. } = self.summary;
            if self.rewritten > 1 {
                let _ = write!(text, "{} rewritten: ", count(self.rewritten, "file"));
            }
            let _ =
                write!(text, "{} ({}), {} ({polled} polled", count(functions, "function"), count(kernels, "kernel"), count(loops, "loop"));
            if bounded > 0 {
                let _ = write!(text, ", {bounded} end soon by themselves");
            }
            let _ = writeln!(text, "), {}", count(polls, "poll"));
        }
        // A file that was copied may include what was not examined.
        if self.rewritten > 0 || self.summary.gaps > 0 {
            let _ = writeln!(
                text,
                "not covered: {}",
                if self.summary.gaps == 0 { "nothing in the files that were read".to_owned() } else { count(self.summary.gaps, "gap") }
            );
            for (code, times) in gaps() {
                let _ = writeln!(text, "  {times} x {}: {}", code.id(), code.title());
            }
        }
        if self.copied > 0 {
            let _ = writeln!(text, "{} copied unchanged", count(self.copied, "file"));
        }
        if self.failed > 0 {
            let _ = writeln!(text, "nothing written for {}", count(self.failed, "input"));
        }
        if no_limit {
            let _ = writeln!(text, "{NO_LIMIT}");
        }
        text
    }
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_add_up_and_the_missing_limit_comes_last() {
        let mut tally = Tally::default();
        let summary = Summary { functions: 2, kernels: 1, loops: 3, polled: 1, bounded: 1, polls: 3, gaps: 1 };
        tally.add(&Outcome::Rewritten { summary, codes: vec![Code::AsmLoop, Code::LeaveUndefined] });
        tally.add(&Outcome::Failed);
        let text = tally.render(Format::Full, &Limits::default());
        assert_eq!(
            text,
            format!(
                "2 functions (1 kernel), 3 loops (1 polled, 1 end soon by themselves), 3 polls\nnot covered: 1 gap\n  1 x CI013: inline assembly holds a loop\n\
                 nothing written for 1 input\n{NO_LIMIT}\n"
            )
        );
        assert!(!tally.render(Format::Full, &Limits { fuel: Some(1), ..Limits::default() }).contains("no limit"));
        let json = serde_json::from_str::<serde_json::Value>(&tally.render(Format::Json, &Limits::default())).expect("it is JSON");
        assert_eq!(json["summary"]["not_covered"], json!({ "CI013": 1 }));
    }

    #[test]
    fn headers_that_nobody_looked_at_are_not_covered() {
        let render = |not_examined: usize| {
            let mut tally = Tally::default();
            tally.add(&Outcome::Copied { not_examined });
            tally.render(Format::Full, &Limits::default())
        };
        assert_eq!(render(0), "1 file copied unchanged\n");
        assert_eq!(render(2), "not covered: 2 gaps\n  2 x CI016: an included header is not rewritten\n1 file copied unchanged\n");
    }
}
