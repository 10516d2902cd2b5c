//! The text of weights.

use super::poll::truth;
use crate::source::plan::weight::{InnerWeight, Trips, Weight};
use std::fmt::Write as _;

/// Most characters of a weight.
const MOST_TEXT: usize = 400;

/// Least weight of an iteration in strips: with less, a short loop within another one could run more than 2^26 rounds between two polls.
const LEAST: u32 = 4;

/// A weight, as an expression that the compiler evaluates.
pub(super) fn text(weight: &Weight) -> String {
    match weight {
        Weight::Units(units) => format!("{units}u"),
        Weight::Sum { own, inner, shares } => {
            let (weigh, most) = if *shares { ("__cuinstr_weigh_shares", "__cuinstr_most") } else { ("__cuinstr_weigh", "__cuinstr_nest") };
            let mut sum = String::new();
            add(&mut sum, inner);
            if sum.len() > MOST_TEXT { most.to_owned() } else { format!("{weigh}({own}u{sum})") }
        }
    }
}

/// The weight, or little more, as an odd number from 3 on. What is asked of a count in such steps is no question for zero bits, which the proof does not
/// see come true again and again.
pub(super) fn odd(weight: &Weight) -> String {
    match weight {
        Weight::Units(units) => format!("{}u", (*units | 1).max(3)),
        Weight::Sum { .. } => format!("({} | 3u)", text(weight)),
    }
}

fn add(text: &mut String, inner: &[InnerWeight]) {
    for InnerWeight { trips, own, inner } in inner {
        let _ = match trips {
            Trips::Unknown => {
                text.push_str(" + __cuinstr_nest");
                continue;
            }
            Trips::Shared { trips, step: Some(step) } => write!(text, " + __cuinstr_share({trips}u, {step}) * ({own}ull"),
            Trips::Shared { trips, step: None } => write!(text, " + {trips}ull * ({own}ull"),
            Trips::Counted { start, bound, steps, meets } => {
                write!(text, " + __cuinstr_trips({start}, {bound}, {steps}, {}) * (__cuinstr_wide)({own}u", truth(*meets))
            }
            Trips::Sized { start, bound, steps } => {
                write!(text, " + __cuinstr_sized_trips<decltype({bound})>({start}, {steps}) * (__cuinstr_wide)({own}u")
            }
        };
        add(text, inner);
        text.push(')');
    }
}

/// The weight as a power of two.
pub(super) fn shift(weight: &Weight) -> String {
    match weight {
        Weight::Units(units) => {
            let units = (*units).max(LEAST);
            format!("{}u", units.ilog2() + u32::from(!units.is_power_of_two()))
        }
        Weight::Sum { .. } => format!("__cuinstr_shift({})", text(weight)),
    }
}
