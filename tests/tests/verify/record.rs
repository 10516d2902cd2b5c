//! Records of what the proof says: lines in `snapshots/`, with checksums of all that is known.
//!
//! Other tests say what must hold. A record notices that something is another than before, in texts that they ask less of: a bound that is larger, say.

use cuinstr::verify::Report;
use cuinstr::verify::report::{Bound, Verdict};
use std::fmt::Write as _;

/// Reports of one line.
const IN_LINE: usize = 100;

pub(crate) fn check(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "../../../snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

/// FNV-1a, which is the same everywhere.
pub(crate) fn sum(text: &str) -> u32 {
    let sum = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    (sum ^ sum >> 32) as u32
}

/// Reports on texts by chance, a hundred in a line: how many hold, how many of their loops have a bound, and the sum of the bounds.
#[derive(Default)]
pub(crate) struct Record {
    said: String,
    whole: String,
    count: usize,
    holds: usize,
    bounded: usize,
    rounds: u128,
}

impl Record {
    pub(crate) fn add(&mut self, report: &Report) {
        self.whole += &serde_json::to_string(report).expect("a report is JSON");
        self.holds += usize::from(report.holds());
        for found in &report.loops {
            if let Verdict::Polled { rounds } | Verdict::Bounded { by: Bound::Rounds(rounds) } = found.verdict {
                self.bounded += 1;
                self.rounds += u128::from(rounds);
            }
        }
        self.count += 1;
        if self.count.is_multiple_of(IN_LINE) {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let _ = writeln!(self.said, "{} {:08x} {} {} {}", self.count, sum(&self.whole), self.holds, self.bounded, self.rounds);
        *self = Self { said: std::mem::take(&mut self.said), count: self.count, ..Self::default() };
    }

    /// Compares with the record, unless other texts were asked for by one of these variables.
    pub(crate) fn check(mut self, name: &str, others: &[&str]) {
        if others.iter().all(|name| std::env::var_os(name).is_none()) {
            if !self.whole.is_empty() {
                self.end_line();
            }
            check(name, &self.said);
        }
    }
}
