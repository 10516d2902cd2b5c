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

pub(super) mod copies;
mod each;
pub(super) mod edits;
pub(super) mod ends;
pub(super) mod irreducible;
pub(super) mod limits;
pub(super) mod old;
pub(super) mod shared;
pub(super) mod strips;

use super::accept::Instructions;
use crate::common::poll_interval::PollInterval;
use crate::options::{Limits, Options, PollGap};
use edits::{Common, Edits, Insertion};
use ends::{FIRST_BLOCKS, RETURNS, block_number};
use limits::Lines;
use std::fmt::Write as _;

/// Names of the pass begin with this, so that a text which holds it is taken for instrumented.
pub(in crate::polls) const RESERVED: &str = "__cuinstr_";

/// Largest allowance, as the logarithm of units. With twice as much, two loops of one unit in each other are more than the proof takes.
pub(in crate::polls) const MOST_INTERVAL: u32 = 13;

/// Largest scale of a function: the logarithm of how many times four statements a unit of its allowance is.
pub(in crate::polls) const MOST_SCALE: u32 = PollInterval::LEAST_FIRST;

/// The variables that a host shares.
pub(in crate::polls) const CONTROL: &str = include_str!("control.ptx");
const DEVICE: &str = include_str!("device.ptx");
const STOP: &str = include_str!("stop.ptx");
const POLL: &str = include_str!("poll.ptx");
const RENEW: &str = include_str!("renew.ptx");

/// Where a poll's text has the logarithm of its function's first allowance.
const FIRST: &str = "@FIRST@";

/// The functions that polls need, for the front of a module.
///
/// What stops a thread needs to keep no registers for its caller, which ends behind the call. While it kept sixteen it used others, up to the 44th, and
/// the device linker gave each kernel 44. ptxas warns where it keeps fewer than four.
pub(in crate::polls) fn device(limits: Limits, has: Instructions) -> String {
    let has_cycles = limits.budget_cycles.is_some();
    let device = DEVICE.replace("@PRESERVE@", if has.has_preserve { " .abi_preserve 4" } else { "" });
    let device = device.replace("@RAN@", if has_cycles { ", .param .b64 cycles" } else { "" });
    let read = if has_cycles { "\t.reg .b64 ran;\n\tld.param.b64 ran, [cycles];\n" } else { "" };
    device.replace("@READ_RAN@", read).replace("@STOP@", &stop(has_cycles))
}

/// What records and stops. `ran` holds the thread's cycles, if they are told.
fn stop(has_cycles: bool) -> String {
    STOP.replace("@CYCLES@", if has_cycles { "\tst.global.b64 [to+72], ran;\n\tst.global.b64 [record+72], ran;\n" } else { "" })
}

/// How a thread that must stop comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::polls) enum Cold {
    /// A function records and stops.
    Call,
    /// All of it stands in the poll, since the kernel may not call functions (`setmaxnreg`).
    Inline,
}

/// The texts of polls up to the site's number, and behind it.
#[derive(Debug, Clone, Copy)]
struct Polls {
    /// One that asks for the flag and the launch's deadline alone.
    entry: Common,
    /// A poll alone.
    each: Common,
    /// A poll that gives the function a new allowance: up to the site's number, without what stands in `paced`, and behind it.
    renewing: [Common; 2],
    behind: Common,
    /// Where the function's polls jump to when the thread must stop.
    stops: Common,
}

/// How polls are spelled in a module.
#[derive(Debug, Clone, Copy)]
pub(in crate::polls) struct Spelling {
    /// The first allowance, as the logarithm of units.
    first: u32,
    /// Limits that are compiled in.
    pub(in crate::polls) limits: Limits,
    call: Polls,
    inline: Polls,
    /// What stands in front of `renewing`, up to the logarithm of the first allowance.
    paced: Common,
    /// As `behind`, where products of a warp group may be under way.
    behind_products: Common,
    returns: [Common; 2],
    /// Polls by a call, and the function that they call. None with limits, which count from what stands in each function.
    shared: Option<([Common; 2], Common)>,
}

/// How polls are spelled in a function.
#[derive(Debug, Clone, Copy)]
pub(in crate::polls) struct Poll {
    texts: Polls,
    /// What begins those that give a new allowance: a text, and the logarithm of the first one. None where that is said elsewhere.
    begins: Option<(Common, u32)>,
}

/// The least pace of the warp's threads is the pace of all: with an allowance each, they would poll one after the other. And what all threads count with
/// alike, ptxas keeps in registers that a warp has once.
const SAME: &str = "\tactivemask.b32 word;\n\tredux.sync.min.u32 pace, pace, word;\n";

/// Threads that stop wait for the products of their warp group. Where they left with products under way, ptxas had each product wait for the one
/// before it, in all of the kernel (C7518).
const WAIT: &str = "\twgmma.wait_group.sync.aligned 0;\n";

impl Spelling {
    /// For a module of a PTX version that has these instructions.
    pub(in crate::polls) fn new(edits: &mut Edits, options: &Options, has: Instructions, version: Option<&str>) -> Self {
        let (gap, limits) = (options.poll_gap, options.limits);
        let first = first_pace(gap);
        let lines = Lines::new(limits);
        let renew = renew(gap, &lines, limits, has.has_redux);
        let (parameter, passed, third, cycles) = if lines.has_cycles {
            (
                "\t.param .b64 __cuinstr_cycles;\n",
                "\tst.param.b64 [__cuinstr_cycles], %__cuinstr_ran;\n",
                ", __cuinstr_cycles",
                "\tmov.b64 %__cuinstr_ran, ran;\n",
            )
        } else {
            ("", "", "", "")
        };
        let front = &format!("{cycles}\tmov.b64 %__cuinstr_site, ");
        let behind =
            |waits| format!(";\n\tmov.b32 %__cuinstr_why, launch;\n{waits}\tbra.uni $__cuinstr_leaves;\n$__cuinstr_stays:\n\t}}\n");
        let mut keep = |text: &str| edits.keep(old::spell(version, text.to_owned()));
        let late = "setp.gt.u64 late, begin, limit";
        let (entry, each) =
            (Lines { own: String::new(), ..Lines::new(limits) }, keep(&poll(has, &lines, (late, &lines.due_each), "", front)));
        let entry = keep(&poll(has, &entry, (late, lines.no_cycles), "", front));
        // Where no kernel notes its begin, a thread's first poll does not ask how late it is: a short launch would wait there for that.
        let late = if options.begin_by_polls { "setp.gt.and.u64 late, begin, limit, %__cuinstr_paced" } else { late };
        let renewing = poll(has, &lines, (late, &lines.due), &renew, front);
        let stops = format!(
            "$__cuinstr_leaves:\n\t{{\n\t.param .b64 __cuinstr_at;\n\t.param .b32 __cuinstr_reason;\n{parameter}\tst.param.b64 [__cuinstr_at], %__cuinstr_site;\n\t\
             st.param.b32 [__cuinstr_reason], %__cuinstr_why;\n{passed}\tcall __cuinstr_stop, (__cuinstr_at, __cuinstr_reason{third});\n\t}}\n\texit;\n"
        );
        let shared = (!limits.any()).then(|| {
            (
                shared::CALL.map(|text| keep(&text.replace("@MOST@", &(1 << MOST_INTERVAL).to_string()))),
                keep(&shared::function([&renewing.replace(FIRST, &first.to_string()), &behind(""), &stops])),
            )
        });
        let (paced, renewing) = renewing.split_once(FIRST).unwrap_or((&renewing, ""));
        let (paced, renewing, behind, behind_products) = (keep(paced), keep(renewing), keep(&behind("")), keep(&behind(WAIT)));
        let mut polls = |stops: &str| Polls { entry, each, renewing: [renewing, behind], behind, stops: keep(stops) };
        let call = polls(&stops);
        let copied = if lines.has_cycles { "\t.reg .b64 ran;\n\tmov.b64 ran, %__cuinstr_ran;\n" } else { "" };
        let inline = polls(&format!(
            "$__cuinstr_leaves:\n\t{{\n\t.reg .b64 site;\n\t.reg .b32 why;\n\tmov.b64 site, %__cuinstr_site;\n\tmov.b32 why, %__cuinstr_why;\n{copied}{}\t}}\n",
            stop(lines.has_cycles)
        ));
        Self { first, limits, call, inline, paced, behind_products, returns: RETURNS.map(|text| edits.keep(text.to_owned())), shared }
    }

    /// The polls of a function of that scale, which may have products of a warp group under way.
    pub(in crate::polls) fn of(self, cold: Cold, has_products: bool, scale: u32) -> Poll {
        let texts = if cold == Cold::Call { self.call } else { self.inline };
        let behind = if has_products { self.behind_products } else { texts.behind };
        Poll { texts: Polls { behind, renewing: [texts.renewing[0], behind], ..texts }, begins: Some((self.paced, self.first - scale)) }
    }

    /// Polls that call one function, if those of this kind may.
    pub(in crate::polls) fn shared(self, cold: Cold, has_products: bool) -> Option<Poll> {
        let (renewing, _) = self.shared.filter(|_| cold == Cold::Call && !has_products)?;
        Some(Poll { texts: Polls { renewing, ..self.call }, begins: None })
    }

    /// Writes the function that they call.
    pub(in crate::polls) fn write_shared(self, out: &mut Insertion<'_>) {
        if let Some((_, function)) = self.shared {
            out.common(function);
        }
    }
}

impl Poll {
    /// A poll at each passage, where control comes by too seldom to count, or waits there.
    pub(in crate::polls) fn each(self, out: &mut Insertion<'_>, site: u64) {
        out.push("\n\t");
        self.alone(out, site);
        out.push("\t");
    }

    /// Declares what the function's polls hand to the place where threads stop, for its front.
    pub(in crate::polls) fn declare(limits: Limits) -> &'static str {
        if limits.budget_cycles.is_some() {
            "\n\t.reg .b32 %__cuinstr_why;\n\t.reg .b64 %__cuinstr_site, %__cuinstr_ran;"
        } else {
            "\n\t.reg .b32 %__cuinstr_why;\n\t.reg .b64 %__cuinstr_site;"
        }
    }

    /// At the function's end: where threads stop. What lives there is that they must, so that it takes no register from what loops keep.
    pub(in crate::polls) fn stops(self, out: &mut Insertion<'_>) {
        out.common(self.texts.stops);
    }

    fn alone(self, out: &mut Insertion<'_>, site: u64) {
        written(out, [self.texts.each, self.texts.behind], site);
    }

    /// A poll that gives the function a new allowance.
    fn renewing(self, out: &mut Insertion<'_>, site: u64) {
        if let Some((text, first)) = self.begins {
            out.common(text);
            let _ = write!(out, "{first}");
        }
        written(out, self.texts.renewing, site);
    }
}

/// A poll's text, with its site's number between both parts.
fn written(out: &mut Insertion<'_>, [front, behind]: [Common; 2], site: u64) {
    out.common(front);
    let _ = write!(out, "{site}");
    out.common(behind);
}

/// A poll up to its site's number. Control goes on behind it. Registers in braces are its own, whatever the user's are called. Labels have reserved
/// names: a branch to one further on would be taken for one to an outer register of that name.
///
/// ptxas puts YIELD into a loop that loads with `relaxed`, as it takes it for one that waits. Threads that have left such a loop go on without the
/// others. So the rest of the kernel runs once for each group of them (`hash_probe` 1.12). And what threads of a warp write for each other without a
/// barrier is not there yet (`romberg` of `HeCBench`). A weak load has no YIELD. A fence keeps ptxas from using what was loaded before, and the hint
/// keeps the flag out of the first cache. The launch's begin may be in there: a fence of the device empties it.
fn poll(has: Instructions, lines: &Lines, (late, due): (&str, &str), renew: &str, stops: &str) -> String {
    let declared = "{\n\t.reg .pred asked, late;\n\t.reg .b32 flag, launch;\n\t.reg .b64 where, now, begin, limit;\n";
    let [fence, fresh, fence_again, again] = if has.has_no_allocate {
        ["\tfence.acq_rel.cta;\n", "global.L1::no_allocate", "\tfence.acq_rel.gpu;\n", "global"]
    } else {
        ["", "relaxed.sys.global", "", "relaxed.gpu.global"]
    };
    let poll = POLL
        .replace("@LATE@", late)
        .replace("@FENCE@", fence)
        .replace("@FRESH@", fresh)
        .replace("@FENCE_AGAIN@", fence_again)
        .replace("@AGAIN@", again);
    let poll = poll.replace("@DUE@", due).replace("@RENEW@", renew).replace("@OWN@", &lines.own);
    format!("{declared}{}{poll}{stops}", lines.declared)
}

/// The first allowance, as the logarithm of units.
fn first_pace(gap: PollGap) -> u32 {
    PollInterval::of(gap).first.min(MOST_INTERVAL)
}

/// What gives a new allowance.
fn renew(gap: PollGap, lines: &Lines, limits: Limits, has_redux: bool) -> String {
    let gap = PollInterval::of(gap).gap;
    let renew = RENEW.replace("@LONGEST@", &(64 * gap).to_string()).replace("@SCALE@", &(0x10_0000 / gap).to_string());
    let renew = renew.replace("@SAME@", if has_redux { SAME } else { "" });
    let renew = renew.replace("@UNARMED@", if limits.any() { "" } else { UNARMED });
    let renew = renew.replace("@TANK@", &lines.tank).replace("@DRAW@", &lines.draw);
    renew.replace("@MOST_INTERVAL@", &MOST_INTERVAL.to_string()).replace("@MOST@", &(1 << MOST_INTERVAL).to_string())
}

/// A launch that no host armed polls as seldom as may be, unless a limit is compiled in.
const UNARMED: &str = "\tsetp.eq.b32 holds, launch, 1;\n\tselp.b32 pace, @MOST_INTERVAL@, pace, holds;\n";

/// What a function's allowance needs.
pub(in crate::polls) struct Allowance {
    /// Declares it, for the front of the body.
    pub(in crate::polls) front: String,
    /// In a kernel: begins to load what tells whether the launch is being left.
    pub(in crate::polls) asks: String,
    /// Gives the function the first one, in statements by weight, before any loop pays. There later blocks wait for what was loaded, and may leave.
    pub(in crate::polls) settles: String,
}

/// The allowance of a function of that scale. A kernel has the `site` at which later blocks of a launch that is being stopped leave.
pub(in crate::polls) fn allowance(spelling: Spelling, scale: u32, site: Option<u64>, is_flat: bool) -> Allowance {
    let first = 1_u32 << (spelling.first - scale);
    let mut front = "\n\t.reg .pred %__cuinstr_paced;\n\t.reg .b32 %__cuinstr_left;\n\t.local .align 4 .b32 __cuinstr_kept;".to_owned();
    // The first poll finds no pace. To store one here for it would cost kernels that never poll what their own stores do: 128 bytes a warp.
    let mut settles = format!("\n\tmov.b32 %__cuinstr_left, {first};\n\tsetp.ne.u32 %__cuinstr_paced, %__cuinstr_left, %__cuinstr_left;");
    let Some(site) = site else { return Allowance { front, asks: String::new(), settles } };
    // The first blocks have just begun: they need not wait for what is in memory. Later ones read the mark that the launch is being left, and not the flag:
    // what is read here stays in the first cache, and there polls would find the flag as it was. All threads of a warp load the same.
    front.push_str("\n\t.reg .pred %__cuinstr_later;\n\t.reg .b32 %__cuinstr_gone;");
    let asks = format!(
        "\n\t{{\n\t.reg .b32 x;\n\t{}\
         setp.ge.u32 %__cuinstr_later, x, {FIRST_BLOCKS};\n\t@%__cuinstr_later ld.global.b32 %__cuinstr_gone, [cuinstr_left_v1];\n\t}}",
        block_number(is_flat)
    );
    // Blocks that begin at the same time would all read the flag's word at the same time, too. The mark is zero until a launch was left.
    let _ = write!(
        settles,
        "\n\t{{\n\t.reg .pred q;\n\t.reg .b32 x;\n\tmov.u32 x, %ctaid.x;\n\tand.b32 x, x, 15;\n\tmad.lo.s32 %__cuinstr_left, x, -{}, %__cuinstr_left;\n\t\
         @!%__cuinstr_later bra.uni $__cuinstr_enters;\n\tsetp.eq.b32 q, %__cuinstr_gone, 0;\n\t@q bra.uni $__cuinstr_enters;\n\t\
         ld.global.b32 x, [cuinstr_control_v1+8];\n\tsetp.ne.b32 q, x, %__cuinstr_gone;\n\t@q bra.uni $__cuinstr_enters;\n\t\
         mov.b64 %__cuinstr_site, {site};\n\tmov.b32 %__cuinstr_why, 0;\n\t{}bra.uni $__cuinstr_leaves;\n$__cuinstr_enters:\n\t}}\n\t",
        first / 32,
        if spelling.limits.budget_cycles.is_some() { "mov.b64 %__cuinstr_ran, 0;\n\t" } else { "" }
    );
    Allowance { front, asks, settles }
}

/// The counter of a strip.
pub(in crate::polls) fn declare(number: u32) -> String {
    format!("\n\t.reg .b32 %__cuinstr_c{number};")
}

/// The end of a strip, of so many bits.
pub(in crate::polls) fn declare_end(number: u32, width: u8) -> String {
    format!("\n\t.reg .b{width} %__cuinstr_e{number};")
}

/// Behind a header's label: where the hot loop comes back to.
pub(in crate::polls) fn comes_back(out: &mut Insertion<'_>, number: u32) {
    let _ = write!(out, "\n$__cuinstr_s{number}:");
}

/// In front of a way out of a loop: to where strips end. The user's own branch is not come to.
pub(in crate::polls) fn leaves(out: &mut Insertion<'_>, (number, nth): (u32, u32), guard: &str) {
    let _ = write!(out, "\n\t{guard} bra $__cuinstr_out{number};\n\tbra.uni $__cuinstr_in{number}_{nth};\n\t");
}

/// Behind such a way out.
pub(in crate::polls) fn stays(out: &mut Insertion<'_>, (number, nth): (u32, u32)) {
    let _ = write!(out, "\n$__cuinstr_in{number}_{nth}:");
}

/// Where strips end: the `ways` out of the loop once more.
pub(in crate::polls) fn strip_ends(out: &mut Insertion<'_>, number: u32, ways: &str) {
    let _ = write!(out, "\n$__cuinstr_out{number}:\n\t{ways}");
}

/// A way out that is taken where the predicate is `leaves_if`, with the statements that follow then.
pub(in crate::polls) fn way_out<'b>(
    out: &mut String,
    (number, nth): (u32, u32),
    (predicate, leaves_if): (&str, bool),
    statements: impl Iterator<Item = &'b str>,
) {
    let _ = write!(out, "@{}{predicate} bra $__cuinstr_on{number}_{nth};\n\t", if leaves_if { "!" } else { "" });
    for statement in statements {
        let _ = write!(out, "{statement};\n\t");
    }
    let _ = write!(out, "$__cuinstr_on{number}_{nth}:\n\t");
}

/// Pays for an iteration, and asks whether the allowance still holds.
fn pay(weight: u32) -> String {
    format!("sub.s32 %__cuinstr_left, %__cuinstr_left, {};\n\tsetp.gt.s32 %__cuinstr_q, %__cuinstr_left, 0;", 1_u32 << weight)
}

/// In front of a loop's test: what a round `pays`, and on to the next one if that and the user's test let it. The loop goes on where `predicate` is
/// `goes_on_if`.
fn test(out: &mut Insertion<'_>, number: u32, pays: &str, predicate: &str, goes_on_if: bool) {
    let _ = write!(out, "\n\t{{\n\t.reg .pred %__cuinstr_p, %__cuinstr_q;\n\t{pays}");
    if goes_on_if {
        let _ = write!(out, "\n\tand.pred %__cuinstr_p, %__cuinstr_q, {predicate};");
    } else {
        let _ = write!(out, "\n\tnot.pred %__cuinstr_p, {predicate};\n\tand.pred %__cuinstr_p, %__cuinstr_q, %__cuinstr_p;");
    }
    let _ = write!(out, "\n\t@%__cuinstr_p bra $__cuinstr_s{number};\n\t}}\n\t");
}

/// The test of a loop that pays in each iteration.
pub(in crate::polls) fn chunk_test(out: &mut Insertion<'_>, number: u32, weight: u32, predicate: &str, goes_on_if: bool) {
    test(out, number, &pay(weight), predicate, goes_on_if);
}

/// The test of a loop some of whose iterations are paid for.
pub(in crate::polls) fn prepaid_test(out: &mut Insertion<'_>, number: u32, predicate: &str, goes_on_if: bool) {
    let counts = format!("add.s32 %__cuinstr_c{number}, %__cuinstr_c{number}, -1;\n\tsetp.ne.s32 %__cuinstr_q, %__cuinstr_c{number}, 0;");
    test(out, number, &counts, predicate, goes_on_if);
}

/// What a place is that repeats: its site, the weight of an iteration, how polls are spelled there.
#[derive(Debug, Clone, Copy)]
pub(in crate::polls) struct Place {
    pub(in crate::polls) site: u64,
    pub(in crate::polls) weight: u32,
    pub(in crate::polls) poll: Poll,
}

impl Place {
    /// In front of an unconditional branch back: on to the next iteration if the allowance holds, else a poll.
    pub(in crate::polls) fn chunk_always(self, out: &mut Insertion<'_>, number: u32) {
        let pays = pay(self.weight);
        let _ = write!(out, "\n\t{{\n\t.reg .pred %__cuinstr_q;\n\t{pays}\n\t@%__cuinstr_q bra $__cuinstr_s{number};\n\t}}\n\t");
        self.poll.renewing(out, self.site);
        out.push("\t");
    }

    /// A poll behind a strip or chunk, which is passed by where the loop is over: in front of the user's own branch. Behind a chunk that `owes` for
    /// iterations, it is passed by where the allowance still holds, too.
    pub(in crate::polls) fn poll_behind(self, out: &mut Insertion<'_>, number: u32, goes_on: Option<(&str, bool)>, owes: Option<u32>) {
        out.push("\n\t");
        if let Some((predicate, when)) = goes_on {
            let _ = write!(out, "@{}{predicate} bra $__cuinstr_over{number};\n\t", if when { "!" } else { "" });
        }
        if let Some(iterations) = owes {
            if iterations > 0 {
                let _ = write!(out, "sub.s32 %__cuinstr_left, %__cuinstr_left, {};\n\t", iterations << self.weight);
            }
            let _ = write!(
                out,
                "{{\n\t.reg .pred %__cuinstr_q;\n\tsetp.gt.s32 %__cuinstr_q, %__cuinstr_left, 0;\n\t@%__cuinstr_q bra $__cuinstr_over{number};\n\t}}\n\t"
            );
        }
        self.poll.renewing(out, self.site);
        let _ = write!(out, "$__cuinstr_over{number}:\n\t");
    }

    /// Behind a header's label: so many iterations may run, of which some are `paid` for. Unless it `unrolls`, ptxas is kept from writing out all of them:
    /// each asks whether it is the last one, so that only the counter would be spared.
    pub(in crate::polls) fn prepaid(self, out: &mut Insertion<'_>, number: u32, (iterations, paid): (u32, u32), unrolls: bool) {
        let _ = write!(
            out,
            "\n\tmov.b32 %__cuinstr_c{number}, {iterations};\n\tsub.s32 %__cuinstr_left, %__cuinstr_left, {};",
            paid << self.weight
        );
        comes_back(out, number);
        if !unrolls {
            out.push("\n\t.pragma \"nounroll\";");
        }
    }

    /// In front of a conditional branch back that may also go on in the loop: as above, where it is taken.
    pub(in crate::polls) fn chunk_taken(self, out: &mut Insertion<'_>, number: u32, over: u32, predicate: &str, taken_if: bool) {
        unless_over(out, over, predicate, taken_if, |out| self.chunk_always(out, number));
    }

    /// At a place that repeats without a header of its own: a poll each time that the allowance is used up.
    pub(in crate::polls) fn count_here(self, out: &mut Insertion<'_>, number: u32) {
        let pays = pay(self.weight);
        let _ = write!(out, "\n\t{{\n\t.reg .pred %__cuinstr_q;\n\t{pays}\n\t@%__cuinstr_q bra $__cuinstr_over{number};\n\t}}\n\t");
        self.poll.renewing(out, self.site);
        let _ = write!(out, "$__cuinstr_over{number}:\n\t");
    }
}

fn unless_over(out: &mut Insertion<'_>, number: u32, predicate: &str, goes_on_if: bool, what: impl FnOnce(&mut Insertion<'_>)) {
    let not = if goes_on_if { "!" } else { "" };
    let _ = write!(out, "\n\t@{not}{predicate} bra $__cuinstr_over{number};\n\t");
    what(out);
    let _ = write!(out, "$__cuinstr_over{number}:\n\t");
}

/// What a kernel uses fuel for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::polls) enum Fuel {
    /// Nothing: it has no poll.
    #[default]
    None,
    /// Its polls alone.
    Polls,
    /// Its allowance too.
    Allowance,
}

/// A record of the site map, a string that is found by its first words.
pub(in crate::polls) fn site_map(out: &mut Insertion<'_>, json: &str, hash: u64) {
    let record = format!("{}{:08x} {json}", cuinstr_abi::sites::MAGIC, json.len());
    let _ = write!(out, ".weak .global .align 1 .b8 {RESERVED}sites_{hash:016x}[{}] = {{", record.len());
    out.bytes(record);
    out.push("};\n");
}
