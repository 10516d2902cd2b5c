//! Both ends of a kernel: who notes that the launch began, which blocks look whether it is being left, and which ask at their end.

use super::edits::Insertion;
use super::{Fuel, Poll, Spelling, limits, written};
use std::fmt::Write as _;

/// Blocks that none follows for long: on a large GPU about half of them begin at once.
pub(super) const FIRST_BLOCKS: u32 = 4096;

/// A block's number in its grid, or in a slice of that, into `x`. A kernel that never reads a second coordinate `is_flat`: it is taken to have one alone.
pub(super) fn block_number(is_flat: bool) -> &'static str {
    if is_flat {
        "mov.u32 x, %ctaid.x;\n\t"
    } else {
        "{\n\t.reg .b32 z, w;\n\tmov.u32 x, %ctaid.x;\n\tmov.u32 z, %ctaid.y;\n\tmov.u32 w, %nctaid.x;\n\tmad.lo.u32 x, z, w, x;\n\t}\n\t"
    }
}

/// Where a kernel begins: the first block says so, whose number has these coordinates. It does not where the launch has begun before: a grid that the
/// device launches shares the control block of its parent. The branch is uniform. Where one thread of the block said so, `saxpy` took 1.041.
pub(in crate::polls) fn begins(out: &mut Insertion<'_>, axes: &[char]) {
    out.push("\n\t{\n\t.reg .pred q, tells;\n\t.reg .b32 x, y;\n\t.reg .b64 begin, note, now;\n\tmov.u32 x, %ctaid.x;\n\t");
    for axis in axes {
        let _ = write!(out, "mov.u32 y, %ctaid.{axis};\n\tor.b32 x, x, y;\n\t");
    }
    // A kernel that is launched with more coordinates than it reads has several first blocks. What the first cache holds may be older than the begin.
    out.push(
        "setp.ne.u32 q, x, 0;\n\t@q bra.uni $__cuinstr_begun_by_another;\n\tld.relaxed.gpu.global.u64 begin, [cuinstr_control_v1+32];\n\t\
         ld.global.u64 note, [cuinstr_control_v1+56];\n\tmov.u64 now, %globaltimer;\n\tsetp.ne.u64 tells, note, 0;\n\tsetp.ne.u64 q, begin, 0;\n\t\
         @q bra $__cuinstr_begun_by_another;\n\tst.relaxed.gpu.global.u64 [cuinstr_control_v1+32], now;\n\t@tells st.volatile.global.u64 [note+48], now;\n\
         $__cuinstr_begun_by_another:\n\t}\n\t",
    );
}

/// Where a kernel begins that has no loop and calls what polls: blocks of a launch that is being stopped leave. Where no host armed the launch, only its
/// number is read.
pub(in crate::polls) fn entry(out: &mut Insertion<'_>, site: u64, poll: Poll) {
    out.push(
        "\n\t{\n\t.reg .pred q;\n\t.reg .b32 launch;\n\tld.global.b32 launch, [cuinstr_control_v1+8];\n\tsetp.eq.b32 q, launch, 1;\n\t@q bra $__cuinstr_armed;\n\t",
    );
    written(out, [poll.texts.entry, poll.texts.behind], site);
    out.push("$__cuinstr_armed:\n\t}");
}

/// What stands around a kernel's site where its threads return, behind the test which blocks ask.
pub(super) const RETURNS: [&str; 2] = [
    "@!q bra.uni $__cuinstr_gone;\n\tst.param.b64 [__cuinstr_at], ",
    ";\n\tcall __cuinstr_last, (__cuinstr_at);\n$__cuinstr_gone:\n\t}\n\tret;\n",
];

/// Where a kernel returns; with a guard, the threads that it lets pass. Where the test stood here, ptxas had threads break out of loops in front of it.
pub(in crate::polls) fn exit(out: &mut Insertion<'_>, guard: Option<(&str, bool)>) {
    let _ = match guard {
        Some((name, when)) => write!(out, "\n\t@{}{name} bra $__cuinstr_returns;\n\t", if when { "" } else { "!" }),
        None => write!(out, "\n\tbra $__cuinstr_returns;\n\t"),
    };
}

/// At a kernel's end: each 32nd block behind the first ones asks whether the launch is being stopped, or came late. If so it marks it as being left and empties
/// the first cache, so that later blocks see the mark where they begin. Nothing of the kernel's lives here, so the call takes no register from it.
pub(in crate::polls) fn returns(out: &mut Insertion<'_>, spelling: Spelling, fuel: Fuel, is_flat: bool, site: u64) {
    out.push("$__cuinstr_returns:");
    if let (Some(units), true) = (spelling.limits.fuel, fuel != Fuel::None) {
        limits::end(out, units, fuel == Fuel::Allowance);
    }
    let _ = write!(
        out,
        "\n\t{{\n\t.reg .pred q;\n\t.reg .b32 x, y;\n\t.param .b64 __cuinstr_at;\n\t{}and.b32 y, x, 31;\n\tsetp.eq.u32 q, y, 31;\n\t\
         setp.ge.and.u32 q, x, {FIRST_BLOCKS}, q;\n\t",
        block_number(is_flat)
    );
    let [front, behind] = spelling.returns;
    out.common(front);
    let _ = write!(out, "{site}");
    out.common(behind);
}
