//! The text that is put into PTX: the only part of the pass that knows how polls are spelled.
//!
//! Text is only inserted; every byte of the input stays. A hot loop gets a label behind its header's, the strip's entry, and a branch to it in front
//! of the user's own test:
//!
//! ```text
//! HEADER: c = trips of this strip; STRIP: … body …
//!         c = c - 1; if (c != 0) goto STRIP;
//!         the user's comparison once more, so that the hot loop needs no other; if it fails goto GO;
//!         poll; GO: if (…) goto HEADER;
//! ```

use super::counted::{Counted, Joined, Order};
use crate::common::poll_interval::PollInterval;
use crate::options::PollGap;
use std::fmt::Write as _;

/// Names of the pass begin with this, so that a text which holds it is taken for instrumented.
pub(super) const RESERVED: &str = "__cuinstr_";

/// Largest allowance, as the logarithm of units. With twice as much, two loops of one unit in each other are more than the proof takes.
const MOST_PACE: u32 = 13;

const DEVICE: &str = include_str!("device.ptx");
const STOP: &str = include_str!("stop.ptx");
const POLL: &str = include_str!("poll.ptx");
const RENEW: &str = include_str!("renew.ptx");

/// Variables and functions that polls need, for the front of a module.
pub(super) fn device() -> String {
    DEVICE.replace("@STOP@", STOP)
}

/// How a thread that must stop comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cold {
    /// A function records and stops.
    Call,
    /// All of it stands in the poll, since the kernel may not call functions (`setmaxnreg`).
    Inline,
}

/// How a function's polls are spelled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spelling {
    pub(super) cold: Cold,
    /// The time between two polls that the allowance follows.
    pub(super) gap: PollGap,
    /// Whether there is an instruction for the least of a warp's numbers (`sm_80`, PTX 7.0).
    pub(super) has_redux: bool,
}

/// The least pace of the warp's threads is the pace of all: with an allowance each, they would poll one after the other. And what all threads count with
/// alike, ptxas keeps in registers that a warp has once.
const SAME: &str = "\tactivemask.b32 word;\n\tredux.sync.min.u32 pace, pace, word;\n";

impl Spelling {
    /// A poll. Control goes on behind it. Registers in braces are its own, whatever the user's are called. Labels have reserved names: a branch to
    /// one further on would be taken for one to an outer register of that name.
    fn poll(self, out: &mut String, site: u64, renew: &str) {
        let _ = write!(out, "{{\n\t.reg .pred asked, late;\n\t.reg .b32 flag, launch;\n\t.reg .b64 where, now, begin, limit;\n");
        out.push_str(&POLL.replace("@RENEW@", renew));
        let _ = match self.cold {
            Cold::Call => {
                write!(
                    out,
                    "\t{{\n\t.param .b64 a;\n\t.param .b32 b;\n\tst.param.b64 [a], {site};\n\tst.param.b32 [b], launch;\n\tcall __cuinstr_stop, (a, b);\n\t}}\n\texit;\n"
                )
            }
            Cold::Inline => {
                write!(out, "\t{{\n\t.reg .b64 site;\n\t.reg .b32 why;\n\tmov.b64 site, {site};\n\tmov.b32 why, launch;\n{STOP}\t}}\n")
            }
        };
        out.push_str("$__cuinstr_stays:\n\t}\n");
    }

    /// A poll at each passage, where control comes by too seldom to count, or waits there.
    pub(super) fn each(self, site: u64) -> String {
        let mut out = String::from("\n\t");
        self.poll(&mut out, site, "");
        out.push('\t');
        out
    }

    /// A poll that gives the function a new allowance.
    fn renewing(self, out: &mut String, site: u64) {
        let gap = PollInterval::of(self.gap).gap;
        let renew = RENEW.replace("@LONGEST@", &(64 * gap).to_string()).replace("@SCALE@", &(0x10_0000 / gap).to_string());
        let renew = renew.replace("@SAME@", if self.has_redux { SAME } else { "" });
        let renew = renew.replace("@MOST_PACE@", &MOST_PACE.to_string()).replace("@MOST@", &(1 << MOST_PACE).to_string());
        self.poll(out, site, &renew);
    }
}

/// Declares a function's allowance, in statements by weight, and gives it the first one. Blocks of a kernel whose launch is being stopped get none, so
/// that they poll in the first iteration of the first loop; those of a launch that nobody armed get the most.
pub(super) fn allowance(gap: PollGap, is_kernel: bool, has_barriers: bool) -> String {
    let first = PollInterval::of(gap).first.min(MOST_PACE);
    let mut out = format!(
        "\n\t.reg .b32 %__cuinstr_left;\n\t.local .align 4 .b32 __cuinstr_kept;\n\tst.local.b32 [__cuinstr_kept], {first};\n\tmov.b32 %__cuinstr_left, {};",
        1 << first
    );
    if is_kernel {
        // Warps that begin at the same time would all read the flag's word at the same time, too.
        let _ = write!(
            out,
            "\n\t{{\n\t.reg .b32 x;\n\tmov.u32 x, {};\n\tand.b32 x, x, 15;\n\tmad.lo.s32 %__cuinstr_left, x, -{}, %__cuinstr_left;\n\t}}",
            if has_barriers { "%ctaid.x" } else { "%warpid" },
            (1_u32 << first) / 32
        );
        let _ = write!(
            out,
            "\n\t{{\n\t.reg .pred q;\n\t.reg .b32 flag, launch;\n\t.reg .b64 where;\n\tld.global.b64 where, [cuinstr_control_v1+16];\n\tld.global.b32 launch, [cuinstr_control_v1+8];\n\t\
             ld.relaxed.gpu.global.b32 flag, [where];\n\tsetp.eq.b32 q, launch, 1;\n\tselp.b32 %__cuinstr_left, {}, %__cuinstr_left, q;\n\t\
             setp.eq.b32 q, flag, launch;\n\tselp.b32 %__cuinstr_left, 0, %__cuinstr_left, q;\n\t}}",
            1 << MOST_PACE
        );
    }
    out
}

/// The counter of a strip.
pub(super) fn declare(number: u32) -> String {
    format!("\n\t.reg .b32 %__cuinstr_c{number};")
}

/// The end of a strip, of so many bits.
pub(super) fn declare_end(number: u32, width: u8) -> String {
    format!("\n\t.reg .b{width} %__cuinstr_e{number};")
}

/// Behind a header's label: where the hot loop comes back to.
pub(super) fn comes_back(number: u32) -> String {
    format!("\n$__cuinstr_s{number}:")
}

/// Behind a header's label: a strip of as many iterations as will surely run, at least one, and as the allowance holds. An iteration weighs
/// `1 << weight`.
pub(super) fn strip(number: u32, loop_: &Counted<'_>, weight: u32) -> String {
    let Counted { variable, bound, step, order, is_signed, width, .. } = loop_;
    let (step_size, kind) = (step.unsigned_abs(), format!("{}{width}", if *is_signed { 's' } else { 'u' }));
    let c = format!("%__cuinstr_c{number}");
    let d = if *width == 64 { "%__cuinstr_far" } else { &c };
    let mut out = String::from("\n\t{ .reg .b32 %__cuinstr_most;");
    if *width == 64 {
        out.push_str(" .reg .b64 %__cuinstr_far;");
    }
    // The distance without a sign; zero where the variable is beyond the bound.
    let _ = match order {
        Order::Less | Order::LessEqual => write!(out, "\n\tmin.{kind} {d}, {variable}, {bound};\n\tsub.s{width} {d}, {bound}, {d};"),
        Order::Greater | Order::GreaterEqual => write!(out, "\n\tmax.{kind} {d}, {variable}, {bound};\n\tsub.s{width} {d}, {d}, {bound};"),
        Order::NotEqual if *step > 0 => write!(out, "\n\tsub.s{width} {d}, {bound}, {variable};"),
        Order::NotEqual => write!(out, "\n\tsub.s{width} {d}, {variable}, {bound};"),
    };
    if *width == 64 {
        let _ = write!(out, "\n\tmin.u64 {d}, {d}, {};\n\tcvt.u32.u64 {c}, {d};", step_size << MOST_PACE);
    }
    if matches!(order, Order::Less | Order::Greater) && step_size > 1 {
        let _ = write!(out, "\n\tadd.u32 {c}, {c}, {};", step_size - 1);
    }
    if step_size.is_power_of_two() && step_size > 1 {
        let _ = write!(out, "\n\tshr.u32 {c}, {c}, {};", step_size.trailing_zeros());
    } else if step_size > 1 {
        let _ = write!(out, "\n\tdiv.u32 {c}, {c}, {step_size};");
    }
    // With the bound itself there is one iteration more.
    if matches!(order, Order::LessEqual | Order::GreaterEqual) {
        let _ = write!(out, "\n\tadd.u32 {c}, {c}, 1;");
    }
    let _ = write!(
        out,
        "\n\tmax.s32 %__cuinstr_most, %__cuinstr_left, {least};\n\tshr.u32 %__cuinstr_most, %__cuinstr_most, {weight};\n\tmin.u32 {c}, {c}, %__cuinstr_most;\n\t\
         max.u32 {c}, {c}, 1;\n\tmad.lo.s32 %__cuinstr_left, {c}, -{least}, %__cuinstr_left;\n\t}}\n$__cuinstr_s{number}:",
        least = 1_u32 << weight
    );
    out
}

/// Behind a header's label: a strip as above, whose end is where the variable comes to instead of a count.
pub(super) fn nearer(number: u32, loop_: &Counted<'_>, weight: u32) -> String {
    let mut out = strip(number, loop_, weight);
    let c = format!("%__cuinstr_c{number}");
    out.truncate(out.len() - format!("\n$__cuinstr_s{number}:").len());
    let Counted { variable, step, width, .. } = loop_;
    let end = match width {
        64 => {
            format!("cvt.s64.s32 %__cuinstr_e{number}, {c};\n\tmad.lo.s64 %__cuinstr_e{number}, %__cuinstr_e{number}, {step}, {variable};")
        }
        _ => format!("mad.lo.s32 %__cuinstr_e{number}, {c}, {step}, {variable};"),
    };
    let _ = write!(out, "\n\t{end}\n$__cuinstr_s{number}:");
    out
}

/// In front of the test of such a loop: on to the next iteration of the strip, else the user's comparison and what joins it once more.
pub(super) fn nearer_test(number: u32, loop_: &Counted<'_>, joined: &Joined<'_>, both: &str) -> String {
    let compares = format!("setp.ne.s{} %__cuinstr_q, {}, %__cuinstr_e{number};", loop_.width, loop_.tested.unwrap_or(loop_.variable));
    test(number, &compares, joined.other, joined.goes_on_if) + both
}

/// In front of a loop's test: on to the next iteration of the strip, else the user's comparison once more, if any.
pub(super) fn counted_test(number: u32, comparison: &str) -> String {
    format!("\n\t{}\n\t{comparison}", step(number))
}

fn step(number: u32) -> String {
    let c = format!("%__cuinstr_c{number}");
    format!(
        "{{\n\t.reg .pred %__cuinstr_q;\n\tadd.s32 {c}, {c}, -1;\n\tsetp.ne.s32 %__cuinstr_q, {c}, 0;\n\t@%__cuinstr_q bra $__cuinstr_s{number};\n\t}}"
    )
}

/// Pays for an iteration, and asks whether the allowance still holds.
fn pay(weight: u32) -> String {
    format!("sub.s32 %__cuinstr_left, %__cuinstr_left, {};\n\tsetp.gt.s32 %__cuinstr_q, %__cuinstr_left, 0;", 1_u32 << weight)
}

/// In front of a loop's test: what a round `pays`, and on to the next one if that and the user's test let it. The loop goes on where `predicate` is
/// `goes_on_if`.
fn test(number: u32, pays: &str, predicate: &str, goes_on_if: bool) -> String {
    let mut out = format!("\n\t{{\n\t.reg .pred %__cuinstr_p, %__cuinstr_q;\n\t{pays}");
    if goes_on_if {
        let _ = write!(out, "\n\tand.pred %__cuinstr_p, %__cuinstr_q, {predicate};");
    } else {
        let _ = write!(out, "\n\tnot.pred %__cuinstr_p, {predicate};\n\tand.pred %__cuinstr_p, %__cuinstr_q, %__cuinstr_p;");
    }
    let _ = write!(out, "\n\t@%__cuinstr_p bra $__cuinstr_s{number};\n\t}}\n\t");
    out
}

/// The test of a loop that pays in each iteration.
pub(super) fn chunk_test(number: u32, weight: u32, predicate: &str, goes_on_if: bool) -> String {
    test(number, &pay(weight), predicate, goes_on_if)
}

/// The test of a loop some of whose iterations are paid for.
pub(super) fn prepaid_test(number: u32, predicate: &str, goes_on_if: bool) -> String {
    let c = format!("%__cuinstr_c{number}");
    test(number, &format!("add.s32 {c}, {c}, -1;\n\tsetp.ne.s32 %__cuinstr_q, {c}, 0;"), predicate, goes_on_if)
}

/// What a place is that repeats: its site, the weight of an iteration, how polls are spelled there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) site: u64,
    pub(super) weight: u32,
    pub(super) spelling: Spelling,
}

impl Place {
    /// In front of an unconditional branch back: on to the next iteration if the allowance holds, else a poll.
    pub(super) fn chunk_always(self, number: u32) -> String {
        let mut out =
            format!("\n\t{{\n\t.reg .pred %__cuinstr_q;\n\t{}\n\t@%__cuinstr_q bra $__cuinstr_s{number};\n\t}}\n\t", pay(self.weight));
        self.spelling.renewing(&mut out, self.site);
        out.push('\t');
        out
    }

    /// A poll behind a strip or chunk, which is passed by where the loop is over, or where the allowance still holds: in front of the user's own branch.
    pub(super) fn poll_behind(self, number: u32, goes_on: Option<(&str, bool)>, if_spent: bool) -> String {
        let mut out = String::from("\n\t");
        if let Some((predicate, when)) = goes_on {
            let _ = write!(out, "@{}{predicate} bra $__cuinstr_over{number};\n\t", if when { "!" } else { "" });
        }
        if if_spent {
            let _ = write!(
                out,
                "{{\n\t.reg .pred %__cuinstr_q;\n\tsetp.gt.s32 %__cuinstr_q, %__cuinstr_left, 0;\n\t@%__cuinstr_q bra $__cuinstr_over{number};\n\t}}\n\t"
            );
        }
        self.spelling.renewing(&mut out, self.site);
        let _ = write!(out, "$__cuinstr_over{number}:\n\t");
        out
    }

    /// Behind a header's label: so many iterations are paid for.
    pub(super) fn prepaid(self, number: u32, iterations: u32) -> String {
        format!(
            "\n\tmov.b32 %__cuinstr_c{number}, {iterations};\n\tsub.s32 %__cuinstr_left, %__cuinstr_left, {};\n$__cuinstr_s{number}:",
            iterations << self.weight
        )
    }

    /// A poll at each passage, which is passed by where the loop is over.
    pub(super) fn each_unless_over(self, number: u32, predicate: &str, goes_on_if: bool) -> String {
        let mut out = String::new();
        unless_over(&mut out, number, predicate, goes_on_if, |out| self.spelling.poll(out, self.site, ""));
        out
    }

    /// In front of a conditional branch back that may also go on in the loop: as above, where it is taken.
    pub(super) fn chunk_taken(self, number: u32, over: u32, predicate: &str, taken_if: bool) -> String {
        let mut out = String::new();
        unless_over(&mut out, over, predicate, taken_if, |out| out.push_str(&self.chunk_always(number)));
        out
    }

    /// At a place that repeats without a header of its own: a poll each time that the allowance is used up.
    pub(super) fn count_here(self, number: u32) -> String {
        let mut out =
            format!("\n\t{{\n\t.reg .pred %__cuinstr_q;\n\t{}\n\t@%__cuinstr_q bra $__cuinstr_over{number};\n\t}}\n\t", pay(self.weight));
        self.spelling.renewing(&mut out, self.site);
        let _ = write!(out, "$__cuinstr_over{number}:\n\t");
        out
    }
}

fn unless_over(out: &mut String, number: u32, predicate: &str, goes_on_if: bool, what: impl FnOnce(&mut String)) {
    let not = if goes_on_if { "!" } else { "" };
    let _ = write!(out, "\n\t@{not}{predicate} bra $__cuinstr_over{number};\n\t");
    what(out);
    let _ = write!(out, "$__cuinstr_over{number}:\n\t");
}

/// Where a kernel begins that has no loop and calls what polls: blocks of a launch that is being stopped leave. Where nobody armed the launch, only its
/// number is read.
pub(super) fn entry(site: u64, spelling: Spelling) -> String {
    let mut out = String::from(
        "\n\t{\n\t.reg .pred q;\n\t.reg .b32 launch;\n\tld.global.b32 launch, [cuinstr_control_v1+8];\n\tsetp.eq.b32 q, launch, 1;\n\t@q bra $__cuinstr_armed;\n\t",
    );
    spelling.poll(&mut out, site, "");
    out.push_str("$__cuinstr_armed:\n\t}");
    out
}

/// Where a kernel ends: a few threads of each block, and where a grid is large of each eighth block, say that they came late. With a guard, those that
/// it lets pass.
pub(super) fn exit(site: u64, number: u32, guard: Option<(&str, bool)>) -> String {
    let over = format!("$__cuinstr_end{number}");
    let guard = guard.map_or(String::new(), |(name, when)| format!("\n\t@{}{name} bra {over};", if when { "!" } else { "" }));
    format!(
        "{guard}\n\t{{\n\t.reg .pred q;\n\t.reg .b32 x, y, z;\n\t.param .b64 site;\n\tmov.u32 x, %ctaid.x;\n\tmov.u32 y, %ctaid.y;\n\tadd.u32 x, x, y;\n\tand.b32 x, x, 7;\n\t\
         mov.u32 y, %nctaid.x;\n\tmov.u32 z, %nctaid.y;\n\tmul.lo.u32 y, y, z;\n\tsetp.lt.u32 q, y, 1024;\n\tselp.b32 x, 0, x, q;\n\t\
         mov.u32 y, %tid.y;\n\tor.b32 x, x, y;\n\tmov.u32 y, %tid.z;\n\tor.b32 x, x, y;\n\tmov.u32 y, %tid.x;\n\tshr.u32 y, y, 5;\n\tor.b32 x, x, y;\n\t\
         setp.ne.u32 q, x, 0;\n\t@q bra {over};\n\tld.global.b32 x, [cuinstr_control_v1+8];\n\tsetp.eq.b32 q, x, 1;\n\t@q bra {over};\n\t\
         st.param.b64 [site], {site};\n\tcall __cuinstr_last, (site);\n\t}}\n{over}:\n\t"
    )
}

/// A record of the site map, a string that is found by its first words.
pub(super) fn site_map(json: &str, hash: &str) -> String {
    let record = format!("{}{:08x} {json}", cuinstr_abi::sites::MAGIC, json.len());
    let mut out = format!(".weak .global .align 1 .b8 {RESERVED}sites_{hash}[{}] = {{", record.len());
    for (at, byte) in record.bytes().enumerate() {
        let _ = write!(out, "{}{byte}", if at == 0 { "" } else { "," });
    }
    out.push_str("};\n");
    out
}
