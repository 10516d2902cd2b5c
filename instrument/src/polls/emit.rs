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

use super::counted::{Counted, Order};
use std::fmt::Write as _;

/// Names of the pass begin with this, so that a text which holds it is taken for instrumented.
pub(super) const RESERVED: &str = "__cuinstr_";

const DEVICE: &str = include_str!("device.ptx");
const STOP: &str = include_str!("stop.ptx");
const POLL: &str = include_str!("poll.ptx");

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

/// A poll. Control goes on behind it. Registers in braces are its own, whatever the user's are called. Labels have reserved names: a branch to one
/// further on would be taken for one to an outer register of that name.
fn poll(out: &mut String, site: u64, cold: Cold) {
    let _ = write!(out, "{{\n\t.reg .pred asked, late;\n\t.reg .b32 flag, launch;\n\t.reg .b64 where, now, begin, limit;\n{POLL}");
    let _ = match cold {
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

/// A poll at each passage, where control comes by too seldom to count.
pub(super) fn each(site: u64, cold: Cold) -> String {
    let mut out = String::from("\n\t");
    poll(&mut out, site, cold);
    out.push('\t');
    out
}

/// A counter of a cycle: a register of 32 bits and a predicate.
pub(super) fn declare(number: u32) -> String {
    format!("\n\t.reg .b32 %__cuinstr_c{number};\n\t.reg .pred %__cuinstr_p{number}, %__cuinstr_q{number};")
}

/// Sets a counter where the function begins, for cycles without a single header.
pub(super) fn preset(number: u32, interval: u32) -> String {
    format!("\n\tmov.b32 %__cuinstr_c{number}, {interval};")
}

/// Behind a header's label: a strip of a constant number of iterations.
pub(super) fn chunk(number: u32, interval: u32) -> String {
    format!("\n\tmov.b32 %__cuinstr_c{number}, {interval};\n$__cuinstr_s{number}:")
}

/// Behind a header's label: a strip of as many iterations as will surely run, at least one and at most `interval`.
pub(super) fn strip(number: u32, loop_: &Counted<'_>, interval: u32) -> String {
    let Counted { variable, bound, step, order, is_signed, width, .. } = loop_;
    let (step_size, kind) = (step.unsigned_abs(), format!("{}{width}", if *is_signed { 's' } else { 'u' }));
    let c = format!("%__cuinstr_c{number}");
    let d = if *width == 64 { "%__cuinstr_far" } else { &c };
    let mut out = String::from("\n\t{");
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
    let _ = write!(out, "\n\tmin.u{width} {d}, {d}, {};", u64::from(interval) * step_size);
    if *width == 64 {
        let _ = write!(out, "\n\tcvt.u32.u64 {c}, {d};");
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
    let _ = match order {
        Order::LessEqual | Order::GreaterEqual => write!(out, "\n\tadd.u32 {c}, {c}, 1;"),
        _ => write!(out, "\n\tmax.u32 {c}, {c}, 1;"),
    };
    let _ = write!(out, "\n\t}}\n$__cuinstr_s{number}:");
    out
}

/// In front of a loop's test: on to the next iteration of the strip, else the user's comparison once more, if any.
pub(super) fn counted_test(number: u32, comparison: &str) -> String {
    format!("\n\t{}\n\t{comparison}", step(number))
}

fn step(number: u32) -> String {
    let (c, q) = (format!("%__cuinstr_c{number}"), format!("%__cuinstr_q{number}"));
    format!("add.s32 {c}, {c}, -1;\n\tsetp.ne.s32 {q}, {c}, 0;\n\t@{q} bra $__cuinstr_s{number};")
}

/// In front of a loop's test: on to the next iteration of the chunk, if the user's test lets it. `goes_on` is the predicate of that, and whether
/// the loop goes on where it holds.
pub(super) fn chunk_test(number: u32, predicate: &str, goes_on_if: bool) -> String {
    let (c, p, q) = (format!("%__cuinstr_c{number}"), format!("%__cuinstr_p{number}"), format!("%__cuinstr_q{number}"));
    let mut out = format!("\n\tadd.s32 {c}, {c}, -1;\n\tsetp.ne.s32 {q}, {c}, 0;");
    if goes_on_if {
        let _ = write!(out, "\n\tand.pred {p}, {q}, {predicate};");
    } else {
        let _ = write!(out, "\n\tnot.pred {p}, {predicate};\n\tand.pred {p}, {q}, {p};");
    }
    let _ = write!(out, "\n\t@{p} bra $__cuinstr_s{number};\n\t");
    out
}

/// In front of an unconditional branch back: on to the next iteration of the chunk, else a poll.
pub(super) fn chunk_always(number: u32, site: u64, cold: Cold) -> String {
    let mut out = format!("\n\t{}\n\t", step(number));
    poll(&mut out, site, cold);
    out.push('\t');
    out
}

/// A poll that is passed by where the loop is over: in front of the user's own branch.
pub(super) fn guarded_poll(number: u32, site: u64, cold: Cold, predicate: &str, goes_on_if: bool) -> String {
    let not = if goes_on_if { "!" } else { "" };
    let mut out = format!("\n\t@{not}{predicate} bra $__cuinstr_over{number};\n\t");
    poll(&mut out, site, cold);
    let _ = write!(out, "$__cuinstr_over{number}:\n\t");
    out
}

/// In front of a conditional branch back that may also go on in the loop: as above, where it is taken.
pub(super) fn chunk_taken(number: u32, over: u32, site: u64, cold: Cold, predicate: &str, taken_if: bool) -> String {
    let not = if taken_if { "!" } else { "" };
    let mut out = format!("\n\t@{not}{predicate} bra $__cuinstr_over{over};");
    out.push_str(&chunk_always(number, site, cold));
    let _ = write!(out, "$__cuinstr_over{over}:\n\t");
    out
}

/// A counter at a place that cycles without a single header pass: a poll each time that it has run down.
pub(super) fn count_here(number: u32, interval: u32, site: u64, cold: Cold) -> String {
    let (c, q) = (format!("%__cuinstr_c{number}"), format!("%__cuinstr_q{number}"));
    let mut out = format!(
        "\n\tadd.s32 {c}, {c}, -1;\n\tsetp.ne.s32 {q}, {c}, 0;\n\t@{q} bra $__cuinstr_over{number};\n\tmov.b32 {c}, {interval};\n\t"
    );
    poll(&mut out, site, cold);
    let _ = write!(out, "$__cuinstr_over{number}:\n\t");
    out
}

/// Where a kernel begins: blocks of a launch that is being stopped leave at once. Where nobody armed the launch, only its number is read.
pub(super) fn entry(site: u64) -> String {
    format!(
        "\n\t{{\n\t.reg .pred q;\n\t.reg .b32 launch;\n\t.param .b64 site;\n\tld.global.b32 launch, [cuinstr_control_v1+8];\n\tsetp.eq.b32 q, launch, 1;\n\t@q bra $__cuinstr_begun;\n\t\
         st.param.b64 [site], {site};\n\tcall __cuinstr_begin, (site);\n$__cuinstr_begun:\n\t}}"
    )
}

/// Where a kernel ends: a few threads of each block, and where a grid is large of each eighth block, say that they came late.
pub(super) fn exit(site: u64, number: u32) -> String {
    let over = format!("$__cuinstr_end{number}");
    format!(
        "\n\t{{\n\t.reg .pred q;\n\t.reg .b32 x, y, z;\n\t.param .b64 site;\n\tmov.u32 x, %ctaid.x;\n\tmov.u32 y, %ctaid.y;\n\tadd.u32 x, x, y;\n\tand.b32 x, x, 7;\n\t\
         mov.u32 y, %nctaid.x;\n\tmov.u32 z, %nctaid.y;\n\tmul.lo.u32 y, y, z;\n\tsetp.lt.u32 q, y, 1024;\n\tselp.b32 x, 0, x, q;\n\t\
         mov.u32 y, %tid.y;\n\tor.b32 x, x, y;\n\tmov.u32 y, %tid.z;\n\tor.b32 x, x, y;\n\tmov.u32 y, %tid.x;\n\tshr.u32 y, y, 5;\n\tor.b32 x, x, y;\n\t\
         setp.ne.u32 q, x, 0;\n\t@q bra {over};\n\tld.global.b32 x, [cuinstr_control_v1+8];\n\tsetp.eq.b32 q, x, 1;\n\t@q bra {over};\n\t\
         st.param.b64 [site], {site};\n\tcall __cuinstr_last, (site);\n{over}:\n\t}}\n\t"
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
