//! Proves on a compiler's own output that every loop can be stopped. Knows nothing of the rewriter and what it planned: all that it shares
//! with it is docs/ABI.md, which says where in the control block the flag's pointer, the launch's number and the action lie.
//!
//! In reading order: `text` (functions, statements, labels) → `graph` (blocks, edges, strongly connected sets) → `instruction`, `stack`
//! (operands, registers, and what is as good as one) → `range`, `linear`, `since`, `value`, `arithmetic` (what an instruction makes of what is
//! known) → `slice`, `blank`, `renewed`, `marks`, `body`, `sums`, `state`, `flow`, `argument`, `learn`, `equations` (values followed through blocks) → `base`, `looks`, `round`, `cases`, `fork`, `tally`, `count`,
//! `halve`, `share` (what is proved of a loop, and of loops within loops) → `calls`, `marked`, `weigh`, `verdict` (the whole module) → `place`, [`report`].

mod argument;
mod arithmetic;
mod base;
mod blank;
mod body;
mod calls;
mod cases;
mod count;
mod equations;
mod flow;
mod fork;
mod graph;
mod halve;
mod instruction;
mod learn;
mod linear;
mod looks;
mod marked;
mod marks;
mod place;
mod range;
mod remainder;
mod renewed;
pub mod report;
mod round;
mod share;
mod since;
mod slice;
mod stack;
mod state;
mod sums;
mod tally;
mod text;
mod value;
mod verdict;
mod weigh;

pub use count::{MOST_ROUNDS, MOST_TOGETHER};
pub use report::Report;

/// What can be proved of the loops in this PTX. Never fails: what is wrong with the text is in [`Report::faults`].
///
/// # Examples
/// ```
/// let ptx = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry spin()\n{\n$L:\n\tbra $L;\n}\n";
/// let report = cuinstr::verify::verify_ptx(ptx);
/// assert!(!report.holds());
/// assert_eq!(report.loops[0].function, "spin");
/// ```
#[must_use]
pub fn verify_ptx(ptx: &str) -> Report {
    verdict::report(ptx, &text::read(ptx))
}
