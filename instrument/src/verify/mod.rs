//! Proves on a compiler's own output that every loop can be stopped.
//!
//! The proof shares the PTX reader (`cuinstr_ptx`) with the PTX pass, and nothing with the rewriter. `docs/ABI.md` says where in the control
//! block the flag's pointer, the launch's number and the action lie.
//!
//! In reading order:
//!
//! | modules | what they do |
//! | --- | --- |
//! | `graph` | blocks, edges, one empty block for each shared table |
//! | `instruction`, `stack` | operands, registers, and words of the stack that act as registers |
//! | `range`, `linear`, `since`, `value`, `arithmetic` | abstract values, and the transfer functions of instructions |
//! | `slice`, `blank`, `renewed`, `marks`, `body`, `sums`, `remainder` | which registers decide a loop, and what they are made of |
//! | `state`, `flow`, `here`, `argument`, `stores`, `learn`, `equations` | values followed through blocks to a fixed point |
//! | `base`, `looks`, `round`, `cases`, `fork`, `tally`, `count`, `halve`, `wraps`, `share` | the proof of a loop, and of nested loops |
//! | `calls`, `marked`, `weigh`, `verdict` | the whole module |
//! | `link` | a program of several modules |
//! | `place`, [`report`] | source locations, and what is reported |

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
mod here;
mod instruction;
mod learn;
mod linear;
mod link;
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
mod stores;
mod sums;
mod tally;
mod value;
mod verdict;
mod weigh;
mod wraps;

pub use count::{MOST_ROUNDS, MOST_TOGETHER};
pub use link::Program;
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
    verdict::report(ptx, &cuinstr_ptx::parse(ptx))
}
