//! Loops in strips: what stands at their header and in front of their test.

use super::edits::Insertion;
use super::{MOST_INTERVAL, comes_back, test};
use crate::polls::find::counted::{Counted, Order};
use crate::polls::find::strided::Stride;
use std::fmt::Write as _;

/// What a loop adds in each iteration.
pub(in crate::polls) trait Step {
    /// Whether it leads upwards.
    fn is_up(&self) -> bool;

    /// Makes trips of the distance to the bound, without the one with the bound itself: of `far`, or with 32 bits of `c`, which is `c` then.
    fn divide(&self, out: &mut Insertion<'_>, c: &str, loop_: &Counted<'_, Self>, weight: u32)
    where
        Self: Sized;
}

/// A number of 64 bits. No set-up of a strip has two.
const FAR: &str = "%__cuinstr_far";

impl Step for i64 {
    fn is_up(&self) -> bool {
        *self > 0
    }

    fn divide(&self, out: &mut Insertion<'_>, c: &str, loop_: &Counted<'_>, weight: u32) {
        let size = self.unsigned_abs();
        if loop_.width == 64 {
            // The largest allowance holds for no more. Where activations return one behind the other, the proof multiplies what it knows by their number.
            let _ = write!(out, "\n\tmin.u64 {FAR}, {FAR}, {};\n\tcvt.u32.u64 {c}, {FAR};", size << (MOST_INTERVAL - weight));
        }
        if matches!(loop_.order, Order::Less | Order::Greater) && size > 1 {
            let _ = write!(out, "\n\tadd.u32 {c}, {c}, {};", size - 1);
        }
        if size.is_power_of_two() && size > 1 {
            let _ = write!(out, "\n\tshr.u32 {c}, {c}, {};", size.trailing_zeros());
        } else if size > 1 {
            let _ = write!(out, "\n\tdiv.u32 {c}, {c}, {size};");
        }
    }
}

/// A register, which counts as a number without a sign. One that leads away from the bound is a large one then: there are too few trips, and never too many.
/// With zero the loop has no end, and any number will do.
impl Step for Stride<'_> {
    fn is_up(&self) -> bool {
        true
    }

    fn divide(&self, out: &mut Insertion<'_>, c: &str, loop_: &Counted<'_, Self>, _: u32) {
        let Stride { step, times } = *self;
        let by = "%__cuinstr_by";
        let _ = write!(out, "\n\t.reg .b32 {by};");
        let _ = match loop_.width {
            // Beyond the largest distance that is looked at there is one trip.
            64 => write!(
                out,
                "\n\tmin.u64 {FAR}, {FAR}, {};\n\tcvt.u32.u64 {c}, {FAR};\n\tmul.lo.u64 {FAR}, {step}, {times};\n\tmin.u64 {FAR}, {FAR}, {};\n\t\
                 cvt.u32.u64 {by}, {FAR};\n\tmax.u32 {by}, {by}, 1;",
                i32::MAX - 1,
                i32::MAX
            ),
            _ if times == 1 => write!(out, "\n\tmax.u32 {by}, {step}, 1;"),
            _ => write!(out, "\n\tmul.lo.u32 {by}, {step}, {times};\n\tmax.u32 {by}, {by}, 1;"),
        };
        if loop_.order == Order::Less {
            let _ = write!(out, "\n\tadd.u32 {c}, {c}, {by};\n\tadd.u32 {c}, {c}, -1;");
        }
        let _ = write!(out, "\n\tdiv.u32 {c}, {c}, {by};");
    }
}

/// Behind a header's label: a strip of as many iterations as will surely run, at least one, and as the allowance holds. An iteration weighs
/// `1 << weight`.
pub(in crate::polls) fn strip<S: Step>(out: &mut Insertion<'_>, number: u32, loop_: &Counted<'_, S>, weight: u32) {
    trips(out, number, loop_, weight);
    comes_back(out, number);
}

/// Computes how many iterations a strip has, and pays for them.
fn trips<S: Step>(out: &mut Insertion<'_>, number: u32, loop_: &Counted<'_, S>, weight: u32) {
    let Counted { variable, bound, step, order, is_signed, width, .. } = loop_;
    let sign = if *is_signed { 's' } else { 'u' };
    let c = format!("%__cuinstr_c{number}");
    let d = if *width == 64 { FAR } else { &c };
    out.push("\n\t{ .reg .b32 %__cuinstr_most;");
    if *width == 64 {
        let _ = write!(out, " .reg .b64 {FAR};");
    }
    // The distance without a sign; zero where the variable is beyond the bound.
    let _ = match order {
        Order::Less | Order::LessEqual => {
            write!(out, "\n\tmin.{sign}{width} {d}, {variable}, {bound};\n\tsub.s{width} {d}, {bound}, {d};")
        }
        Order::Greater | Order::GreaterEqual => {
            write!(out, "\n\tmax.{sign}{width} {d}, {variable}, {bound};\n\tsub.s{width} {d}, {d}, {bound};")
        }
        Order::NotEqual if step.is_up() => write!(out, "\n\tsub.s{width} {d}, {bound}, {variable};"),
        Order::NotEqual => write!(out, "\n\tsub.s{width} {d}, {variable}, {bound};"),
    };
    step.divide(out, &c, loop_, weight);
    // With the bound itself there is one iteration more.
    if matches!(order, Order::LessEqual | Order::GreaterEqual) {
        let _ = write!(out, "\n\tadd.u32 {c}, {c}, 1;");
    }
    let _ = write!(
        out,
        "\n\tmax.s32 %__cuinstr_most, %__cuinstr_left, {least};\n\tshr.u32 %__cuinstr_most, %__cuinstr_most, {weight};\n\tmin.u32 {c}, {c}, %__cuinstr_most;\n\t\
         max.u32 {c}, {c}, 1;\n\tmad.lo.s32 %__cuinstr_left, {c}, -{least}, %__cuinstr_left;\n\t}}",
        least = 1_u32 << weight
    );
}

/// Behind a header's label: a strip as above, whose end is where the variable comes to instead of a count.
pub(in crate::polls) fn nearer(out: &mut Insertion<'_>, number: u32, loop_: &Counted<'_>, weight: u32) {
    trips(out, number, loop_, weight);
    let Counted { variable, step, width, .. } = loop_;
    let _ = match width {
        64 => write!(
            out,
            "\n\t{{\n\t.reg .b32 %__cuinstr_x;\n\t.reg .b64 %__cuinstr_far;\n\tmul.lo.s32 %__cuinstr_x, %__cuinstr_c{number}, {step};\n\t\
             cvt.s64.s32 %__cuinstr_far, %__cuinstr_x;\n\tadd.s64 %__cuinstr_e{number}, %__cuinstr_far, {variable};\n\t}}"
        ),
        _ => write!(out, "\n\tmad.lo.s32 %__cuinstr_e{number}, %__cuinstr_c{number}, {step}, {variable};"),
    };
    comes_back(out, number);
}

/// In front of the test of such a loop: on to the next iteration of the strip. The loop goes on where `other` holds, or does not.
pub(in crate::polls) fn nearer_test(out: &mut Insertion<'_>, number: u32, loop_: &Counted<'_>, other: Option<(&str, bool)>) {
    let tested = loop_.tested.unwrap_or(loop_.variable);
    let compares = format!("setp.ne.s{} %__cuinstr_q, {tested}, %__cuinstr_e{number};", loop_.width);
    match other {
        Some((other, goes_on_if)) => test(out, number, &compares, other, goes_on_if),
        None => {
            let _ = write!(out, "\n\t{{\n\t.reg .pred %__cuinstr_q;\n\t{compares}\n\t@%__cuinstr_q bra $__cuinstr_s{number};\n\t}}\n\t");
        }
    }
}

/// In front of a loop's test: on to the next iteration of the strip. The user's comparison may follow once more.
pub(in crate::polls) fn counted_test(out: &mut Insertion<'_>, number: u32) {
    let _ = write!(
        out,
        "\n\t{{\n\t.reg .pred %__cuinstr_q;\n\tadd.s32 %__cuinstr_c{number}, %__cuinstr_c{number}, -1;\n\t\
         setp.ne.s32 %__cuinstr_q, %__cuinstr_c{number}, 0;\n\t@%__cuinstr_q bra $__cuinstr_s{number};\n\t}}\n\t"
    );
}
