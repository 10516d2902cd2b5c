//! Proves on a compiler's own output that every loop can be stopped.
//!
//! The proof is an abstract interpreter for PTX. It shares the PTX reader (`cuinstr_ptx`) with the PTX pass, and nothing
//! with the rewriter. `docs/ABI.md` says where the words of the control block lie. `docs/VERIFY.md` states the claim, its
//! assumptions and each rule.
//!
//! - `program`: a function taken apart, into blocks and edges, instructions, registers, and words of local memory.
//! - `domain`: abstract values, and the transfer functions of instructions.
//! - `interpret`: which registers decide a loop, and the fixpoint of their values over its blocks.
//! - `rank`: ranking functions, and the proof of a loop and of nested loops.
//! - `module`: call trees, stores, verdicts, and the report about a module or a program.
//!
//! Each folder imports only from itself and from those above it in this list. `tests/layers.rs` checks that.

#![forbid(unsafe_code)]

mod domain;
mod interpret;
mod module;
mod program;
mod rank;

pub use cuinstr_ptx::Run;
pub use module::linkage::Program;
pub use module::report::{self, Report};
pub use rank::linear::{MOST_ROUNDS, MOST_TOGETHER};

/// What can be proved of the loops in this PTX. Never fails: what is wrong with the text is in [`Report::faults`].
///
/// # Examples
/// ```
/// let ptx = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry spin()\n{\n$L:\n\tbra $L;\n}\n";
/// let report = cuinstr_verify::verify_ptx(ptx);
/// assert!(!report.holds());
/// assert_eq!(report.loops[0].function, "spin");
/// ```
#[must_use]
pub fn verify_ptx(ptx: &str) -> Report {
    verify_ptx_on(ptx, &|count, work| (0..count).for_each(work))
}

/// The same, with the work done as the caller likes, such as on several threads. The report does not depend on that.
///
/// # Examples
/// ```
/// let ptx = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry spin()\n{\n$L:\n\tbra $L;\n}\n";
/// let on_threads: &cuinstr_verify::Run<'_> = &|count, work| std::thread::scope(|scope| (0..count).for_each(|nth| _ = scope.spawn(move || work(nth))));
/// assert_eq!(cuinstr_verify::verify_ptx_on(ptx, on_threads).loops, cuinstr_verify::verify_ptx(ptx).loops);
/// ```
#[must_use]
pub fn verify_ptx_on(ptx: &str, run: &Run<'_>) -> Report {
    module::module_proof::report(ptx, &cuinstr_ptx::parse_on(ptx, run), run)
}
