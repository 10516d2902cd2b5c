//! Loops and iterations that stand twice.

use super::edits::Insertion;
use crate::polls::find::counted::{Counted, Order};
use std::fmt::Write as _;

/// In front of a nest: its `copy` without polls runs where the numbers `kept` lie within `most` from zero, and else the nest.
pub(in crate::polls) fn brief(out: &mut Insertion<'_>, number: u32, kept: &[&str], most: i64, copy: &str) {
    out.push("\n\t{\n\t.reg .pred %__cuinstr_q;\n\t.reg .b32 %__cuinstr_x;");
    // A branch for each: the proof does not look through predicates that are joined.
    for name in kept {
        let _ = write!(
            out,
            "\n\tadd.s32 %__cuinstr_x, {name}, {most};\n\tsetp.gt.u32 %__cuinstr_q, %__cuinstr_x, {};\n\t@%__cuinstr_q bra $__cuinstr_long{number};",
            2 * most
        );
    }
    let _ = write!(out, "\n\t}}\n{copy}\n\tbra.uni $__cuinstr_brief{number};\n$__cuinstr_long{number}:\n");
}

/// In front of a counted loop: its `copy` without polls runs where it has at most so many trips, and else the loop.
pub(in crate::polls) fn brief_loop(out: &mut Insertion<'_>, number: u32, loop_: &Counted<'_>, most: u32, copy: &str) {
    let Counted { variable, bound, step, order, is_signed, width, .. } = loop_;
    let (x, sign, size) = ("%__cuinstr_x", if *is_signed { 's' } else { 'u' }, step.unsigned_abs());
    // Where the variable meets the bound itself, the first trip is taken off the distance: a loop that begins at its bound may wrap.
    let meets = *order == Order::NotEqual || matches!(order, Order::Less | Order::Greater) && size == 1;
    let less = if meets { *step } else { 0 };
    let constant = bound.parse::<i64>().ok();
    let end = constant.map_or_else(|| bound.to_string(), |bound| bound.wrapping_sub(less).to_string());
    let (far, near) = if *step > 0 { (end.as_str(), *variable) } else { (*variable, end.as_str()) };
    let _ = write!(out, "\n\t{{\n\t.reg .pred %__cuinstr_q;\n\t.reg .b{width} {x}, %__cuinstr_y;");
    let long = |out: &mut Insertion<'_>, setp: &str| {
        let _ = write!(out, "\n\t{setp};\n\t@%__cuinstr_q bra $__cuinstr_long{number};");
    };
    // A step over the bound must not wrap to the loop's other side. Behind this test, the next one tells the proof more.
    let (first, last) = if *is_signed { (-1_i128 << (width - 1), (1 << (width - 1)) - 1) } else { (0, (1_i128 << width) - 1) };
    match order {
        _ if meets => {}
        Order::Less | Order::LessEqual => long(out, &format!("setp.gt.{sign}{width} %__cuinstr_q, {bound}, {}", last - i128::from(size))),
        _ => long(out, &format!("setp.lt.{sign}{width} %__cuinstr_q, {bound}, {}", first + i128::from(size))),
    }
    let _ = write!(out, "\n\tsub.s{width} {x}, {far}, {near};");
    if meets && constant.is_none() {
        let _ = write!(out, "\n\tadd.s{width} {x}, {x}, -{size};");
    }
    // Beyond the bound the distance is large.
    let most = u64::from(most) - u64::from(meets || matches!(order, Order::LessEqual | Order::GreaterEqual));
    long(out, &format!("setp.gt.u{width} %__cuinstr_q, {x}, {}", most * size));
    if *order == Order::NotEqual && size > 1 {
        let _ = write!(out, "\n\tand.b{width} %__cuinstr_y, {x}, {};", size - 1);
        long(out, &format!("setp.ne.s{width} %__cuinstr_q, %__cuinstr_y, 0"));
    }
    let _ = write!(out, "\n\t}}\n{copy}\n\tbra.uni $__cuinstr_few{number};\n$__cuinstr_long{number}:\n");
}

/// In front of a loop: its first iterations, at most so `many`, for which the allowance may pay so many units. A thread that needs no more passes by
/// what `settles` the allowance.
pub(in crate::polls) fn peeled(out: &mut Insertion<'_>, number: u32, (many, paid): (u32, Option<u32>), copy: &str, settles: &str) {
    if let Some(paid) = paid {
        let _ = write!(out, "\n\tsub.s32 %__cuinstr_left, %__cuinstr_left, {paid};");
    }
    let (counter, again) = ("%__cuinstr_m", again_label(number));
    let _ = write!(
        out,
        "\n\t{{\n\t.reg .pred %__cuinstr_q;\n\t.reg .b32 {counter};\n\tmov.b32 {counter}, {many};\n$__cuinstr_first{number}:\n{copy}\n\t\
         bra.uni $__cuinstr_few{number};\n{again}:\n\tadd.s32 {counter}, {counter}, -1;\n\tsetp.ne.s32 %__cuinstr_q, {counter}, 0;\n\t\
         @%__cuinstr_q bra $__cuinstr_first{number};\n\t}}{settles}\n"
    );
}

/// Where a peeled iteration leads that is not the last one.
pub(in crate::polls) fn again_label(number: u32) -> String {
    format!("$__cuinstr_again{number}")
}

/// Behind a nest: where its copy leads.
pub(in crate::polls) fn behind_brief(out: &mut Insertion<'_>, number: u32) {
    let _ = write!(out, "\n$__cuinstr_brief{number}:");
}

/// Behind a loop: where its copy leads.
pub(in crate::polls) fn behind_few(out: &mut Insertion<'_>, number: u32) {
    let _ = write!(out, "\n$__cuinstr_few{number}:");
}

/// Behind a header's label: so many iterations more, which pay so many units. The loop is left where a predicate is `leaves_if`.
pub(in crate::polls) fn written_out(
    out: &mut Insertion<'_>,
    number: u32,
    body: &[&str],
    (predicate, leaves_if): (&str, bool),
    (iterations, paid): (u32, u32),
) {
    let _ = write!(out, "\n\tsub.s32 %__cuinstr_left, %__cuinstr_left, {paid};");
    for _ in 0..iterations {
        for statement in body {
            let _ = write!(out, "\n\t{statement};");
        }
        let _ = write!(out, "\n\t@{}{predicate} bra $__cuinstr_done{number};", if leaves_if { "" } else { "!" });
    }
}

/// Behind such a loop: where its iterations leave it.
pub(in crate::polls) fn behind_written_out(out: &mut Insertion<'_>, number: u32) {
    let _ = write!(out, "\n$__cuinstr_done{number}:");
}

/// A label of a copy.
pub(in crate::polls) fn brief_label(number: u32, nth: usize) -> String {
    format!("$__cuinstr_n{number}_{nth}")
}
