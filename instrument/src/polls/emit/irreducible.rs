//! The text that gives a cycle with several ways in a header of its own. What comes from outside of the cycle to any entry, and what comes from within
//! to the first one, goes to the header. What comes from within to another entry does so only if some cycle comes by there and not by the first. Two
//! blocks set the same way, one for what comes from outside and one for the rest. So the header alone has a way in.
//!
//! ```text
//! A:  way = 0; goto AGAIN;
//! OUTSIDE_0: way = 0; goto JOIN;
//! OUTSIDE_1: way = 1; goto JOIN;
//! AGAIN: poll;
//! JOIN: if (way == 1) goto WAY_1;
//! WAY_0: … what stood behind A
//! B:  way = 1; goto AGAIN;       (if it repeats)
//! WAY_1: … what stood behind B
//! ```

use super::edits::Insertion;
use std::fmt::Write as _;

/// Declares which way control came in.
pub(in crate::polls) fn declare(number: u32) -> String {
    format!("\n\t.reg .b32 %__cuinstr_way{number};")
}

/// Where branches from outside to an entry lead.
pub(in crate::polls) fn outside(number: u32, nth: u32) -> String {
    format!("$__cuinstr_outside{number}_{nth}")
}

/// Behind the first entry's label, for so many entries. What is put there next runs in each round.
pub(in crate::polls) fn again(out: &mut Insertion<'_>, number: u32, entries: u32) {
    comes(out, number, 0, "again");
    for nth in 0..entries {
        let _ = write!(out, "\n{}:", outside(number, nth));
        comes(out, number, nth, "join");
    }
    let _ = write!(out, "\n$__cuinstr_again{number}:");
}

fn comes(out: &mut Insertion<'_>, number: u32, nth: u32, to: &str) {
    let _ = write!(out, "\n\tmov.b32 %__cuinstr_way{number}, {nth};\n\tbra.uni $__cuinstr_{to}{number};");
}

/// The header: on to the entry that control came by.
pub(in crate::polls) fn joins(out: &mut Insertion<'_>, number: u32, entries: u32) {
    let _ = write!(out, "\n$__cuinstr_join{number}:");
    to_one_of(out, number, 0, entries);
    let _ = write!(out, "\n$__cuinstr_way{number}_0:");
}

/// By halves. Falls through to the first.
fn to_one_of(out: &mut Insertion<'_>, number: u32, first: u32, end: u32) {
    if end - first > 1 {
        let middle = first + (end - first) / 2;
        let _ = write!(
            out,
            "\n\t{{\n\t.reg .pred %__cuinstr_q;\n\tsetp.lt.u32 %__cuinstr_q, %__cuinstr_way{number}, {middle};\n\t\
             @%__cuinstr_q bra $__cuinstr_half{number}_{middle};\n\t}}"
        );
        to_one_of(out, number, middle, end);
        let _ = write!(out, "\n$__cuinstr_half{number}_{middle}:");
        to_one_of(out, number, first, middle);
    } else if first > 0 {
        let _ = write!(out, "\n\tbra.uni $__cuinstr_way{number}_{first};");
    }
}

/// Behind the label of another entry. What comes there from within goes to the header only if the entry `repeats`.
pub(in crate::polls) fn enters(out: &mut Insertion<'_>, number: u32, nth: u32, repeats: bool) {
    if repeats {
        comes(out, number, nth, "again");
    }
    let _ = write!(out, "\n$__cuinstr_way{number}_{nth}:");
}

/// Where a function begins, if its first block is an entry.
pub(in crate::polls) fn begins(to: &str) -> String {
    format!("\n\tbra.uni {to};")
}

/// In front of a branch of the user's, or where control falls through: where that leads now.
pub(in crate::polls) fn leads(out: &mut Insertion<'_>, guard: &str, to: &str) {
    let _ = write!(out, "\n\t{guard} bra {to};\n\t");
}

/// A table for a branch that leads into such cycles.
pub(in crate::polls) fn table(out: &mut Insertion<'_>, number: u32, labels: &[&str]) {
    let _ = write!(out, "\n$__cuinstr_table{number}: .branchtargets {};\n\t", labels.join(", "));
}

/// In front of a branch by a table: one by that table. `branch` is the user's up to the table's name.
pub(in crate::polls) fn leads_by_table(out: &mut Insertion<'_>, number: u32, branch: &str) {
    let _ = write!(out, "{branch}$__cuinstr_table{number};\n\t");
}

/// In front of a branch with a guard that is not to be come to.
pub(in crate::polls) fn skips(out: &mut Insertion<'_>, behind: Option<u32>) {
    if let Some(number) = behind {
        let _ = write!(out, "bra.uni $__cuinstr_behind{number};\n\t");
    }
}

/// Behind such a branch.
pub(in crate::polls) fn skipped(out: &mut Insertion<'_>, number: u32) {
    let _ = write!(out, "\n$__cuinstr_behind{number}:");
}
