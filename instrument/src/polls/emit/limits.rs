//! Limits that are compiled in: the lines that polls, functions and ends of kernels have for them.
//!
//! What a limit counts from stands in local memory, so that loops pay no register for it. Its address depends on the clock: ptxas would else keep the
//! words in registers. A function counts from its own beginning. Only kernels have fuel: [`crate::rewrite_ptx`] refuses it where other functions poll.

use super::edits::Insertion;
use crate::options::Limits;
use std::fmt::Write as _;

/// What the reasons of the record are called there.
const DEADLINE: u32 = 2;
const BUDGET: u32 = 3;
const FUEL: u32 = 4;

/// Largest number of nanoseconds, cycles or units: clocks are compared with a sign.
const MOST: u64 = 1 << 62;

/// Puts the address of the activation's words into a register, by way of another one. `now` holds the clock.
const ADDRESS: [&str; 3] = ["\tshr.u64 ", ", now, 63;\n\tmov.b64 where, __cuinstr_limits;\n\tadd.u64 where, where, ", ";\n"];

fn address(by: &str) -> String {
    ADDRESS.join(by)
}

/// What polls hold for the limits; empty texts where there are none.
#[derive(Debug, Default)]
pub(in crate::polls) struct Lines {
    /// Registers of a poll.
    pub(in crate::polls) declared: &'static str,
    /// What a poll says of the cycles that does not ask for limits.
    pub(in crate::polls) no_cycles: &'static str,
    /// Finds a reason to stop, in a poll that counts as a unit of fuel.
    pub(in crate::polls) due_each: String,
    /// Finds one in a poll that gives a new allowance.
    pub(in crate::polls) due: String,
    /// Stops for it.
    pub(in crate::polls) own: String,
    /// In front of the new allowance, and behind it.
    pub(in crate::polls) tank: String,
    pub(in crate::polls) draw: String,
    /// Whether the record tells the cycles that a thread ran.
    pub(in crate::polls) has_cycles: bool,
}

impl Lines {
    pub(in crate::polls) fn new(limits: Limits) -> Self {
        let Some(least) = reasons(limits).next() else { return Self::default() };
        Self {
            declared: "\t.reg .b32 own;\n\t.reg .b64 tank, ran;\n",
            no_cycles: "\tmov.b64 ran, 0;\n",
            due_each: due(limits, "\tadd.s64 tank, tank, -1;\n\tst.local.b64 [where+16], tank;\n"),
            due: due(limits, "\tcvt.s64.s32 most, %__cuinstr_left;\n\tadd.s64 tank, tank, most;\n"),
            own: format!(
                "\tsetp.ne.u32 asked, own, 0;\n\tvote.sync.any.pred asked, asked, flag;\n\tmax.u32 launch, own, {least};\n\t@asked bra.uni $__cuinstr_stops;\n"
            ),
            tank: if limits.fuel.is_some() {
                "\tmin.s64 begin, tank, @MOST@;\n\tcvt.u32.u64 time, begin;\n\tmin.u32 word, word, time;\n".to_owned()
            } else {
                String::new()
            },
            draw: if limits.fuel.is_some() {
                format!(
                    "{}\tcvt.u64.u32 begin, %__cuinstr_left;\n\tsub.s64 tank, tank, begin;\n\tst.local.b64 [where+16], tank;\n",
                    address("begin")
                )
            } else {
                String::new()
            },
            has_cycles: limits.budget_cycles.is_some(),
        }
    }
}

fn reasons(limits: Limits) -> impl Iterator<Item = u32> {
    [(limits.timeout_ns, DEADLINE), (limits.budget_cycles, BUDGET), (limits.fuel, FUEL)]
        .into_iter()
        .filter_map(|(limit, reason)| limit.map(|_| reason))
}

/// Finds a reason to stop. `limit` holds the deadline that a host has armed, less one; `draws` says what has been used of the tank.
fn due(limits: Limits, draws: &str) -> String {
    let mut text = String::from("\tmov.b32 own, 0;\n\t{\n\t.reg .pred due, free;\n\t.reg .b64 since, most;\n");
    text.push_str(&address("since"));
    if limits.fuel.is_some() {
        let _ = write!(text, "\tld.local.b64 tank, [where+16];\n{draws}\tsetp.le.s64 due, tank, 0;\n\tselp.b32 own, {FUEL}, own, due;\n");
    }
    if let Some(cycles) = limits.budget_cycles {
        let _ = write!(
            text,
            "\tld.local.b64 since, [where+8];\n\tmov.u64 ran, %clock64;\n\tsub.s64 ran, ran, since;\n\tld.global.u64 most, [cuinstr_control_v1+40];\n\t\
             setp.eq.u64 free, most, 0;\n\tselp.b64 most, {}, most, free;\n\tsetp.ge.u64 due, ran, most;\n\tselp.b32 own, {BUDGET}, own, due;\n",
            cycles.min(MOST)
        );
    }
    if let Some(nanoseconds) = limits.timeout_ns {
        let _ = write!(
            text,
            "\tld.local.b64 since, [where];\n\tsub.s64 since, now, since;\n\tsetp.eq.s64 free, limit, -1;\n\t\
             setp.ge.and.s64 due, since, {}, free;\n\tselp.b32 own, {DEADLINE}, own, due;\n",
            nanoseconds.min(MOST)
        );
    }
    text.push_str("\tsetp.ne.u32 due, own, 0;\n\tor.pred late, late, due;\n\t}\n");
    text
}

/// Fills the tank's full number of units into `x`, by way of `q`.
fn full(units: u64) -> String {
    format!(
        "\n\tld.global.u64 x, [cuinstr_control_v1+48];\n\tsetp.eq.u64 q, x, 0;\n\tselp.b64 x, {}, x, q;\n\tmin.u64 x, x, {MOST};",
        units.min(MOST)
    )
}

/// Where a function begins that polls: notes what its limits count from.
pub(in crate::polls) fn begin(limits: Limits, has_allowance: bool) -> String {
    let mut text = String::from("\n\t.local .align 8 .b64 __cuinstr_limits[3];\n\t{\n\t.reg .pred q;\n\t.reg .b64 x, y;");
    if limits.timeout_ns.is_some() {
        text.push_str("\n\tmov.u64 x, %globaltimer;\n\tst.local.b64 [__cuinstr_limits], x;");
    }
    if limits.budget_cycles.is_some() {
        text.push_str("\n\tmov.u64 x, %clock64;\n\tst.local.b64 [__cuinstr_limits+8], x;");
    }
    if let Some(units) = limits.fuel {
        text.push_str(&full(units));
        if has_allowance {
            text.push_str("\n\tcvt.s64.s32 y, %__cuinstr_left;\n\tmin.s64 y, y, x;\n\tcvt.u32.u64 %__cuinstr_left, y;\n\tsub.s64 x, x, y;");
        }
        text.push_str("\n\tst.local.b64 [__cuinstr_limits+16], x;");
    }
    text.push_str("\n\t}");
    text
}

/// Where a kernel ends that has used fuel: the record's `fuel_used`, if the host asks for it.
pub(in crate::polls) fn end(out: &mut Insertion<'_>, units: u64, has_allowance: bool) {
    let _ = write!(
        out,
        "\n\t{{\n\t.reg .pred q;\n\t.reg .b32 w;\n\t.reg .b64 x, y, z;\n\tld.global.u32 w, [cuinstr_control_v1+12];\n\tsetp.eq.u32 q, w, 0;\n\t\
         @q bra $__cuinstr_told;{}\n\tld.local.b64 y, [__cuinstr_limits+16];\n\tsub.s64 x, x, y;",
        full(units)
    );
    if has_allowance {
        out.push("\n\tcvt.s64.s32 y, %__cuinstr_left;\n\tsub.s64 x, x, y;");
    }
    let _ = write!(
        out,
        "\n\tmov.b64 y, cuinstr_control_v1;\n\tadd.u64 y, y, 72;\n\tld.global.b64 z, [cuinstr_control_v1+64];\n\tsetp.eq.u64 q, z, 0;\n\t\
         selp.b64 z, y, z, q;\n\tred.global.max.u64 [z+56], x;\n$__cuinstr_told:\n\t}}"
    );
}
