//! Logarithmic ranking functions: a register that loses a bit in each iteration. Where few iterations are possible, as
//! in `for (; x > 0; x >>= 1)`, compilers keep no other counter.
//!
//! Let a register begin each iteration with fewer bits than the one before, as an unsigned integer. If it has n bits at
//! first, it is zero after at most n iterations. If no iteration that begins with zero comes back, there are no more.
//! Each bit length is checked by itself, so the instruction does not matter: a shift, a quotient or a mask.

use crate::domain::interval::Interval;
use crate::domain::state::State;
use crate::domain::value::{Assumption, Value};
use crate::interpret::edge_cost::{Count, NEVER};
use crate::interpret::work::Work;
use crate::rank::remaining::{MOST_TRIED, ends_at_zero, remaining_from};

/// At most how many rounds of a loop come back, by a register that becomes shorter. `base` is what registers hold at the head in any round, and
/// `again` how they come back.
pub(crate) fn logarithmic(
    work: &mut Work<'_, '_>,
    (blocks, head): (&[u32], u32),
    base: &(State, bool),
    (assumption, shut): (Assumption, &[usize]),
    again: &State,
) -> Option<Count> {
    let width_of = |work: &Work<'_, '_>, slot: u32| work.slice.slots[slot as usize].1.clamp(1, 64);
    let bounds = |slot: u32, value: &Value| {
        let width = width_of(work, slot);
        let before = base.0.get(slot).map_or(Interval::full(width), |before| before.range).unsigned(width).hi;
        (slot, before, value.range.unsigned(width).hi)
    };
    let halves: Vec<(u32, i128)> = again
        .iter()
        .map(|(slot, value)| bounds(slot, value))
        .filter(|(_, before, after)| *before > 0 && *after <= before / 2)
        .map(|(slot, before, _)| (slot, before))
        .take(MOST_TRIED)
        .collect();
    for (slot, most) in halves {
        let width = width_of(work, slot);
        let lengths = 128 - most.leading_zeros();
        let becomes_shorter = |work: &mut Work<'_, '_>, length: u32| {
            let mut start = base.0.clone();
            let mut value = start.get(slot).copied().unwrap_or_else(|| Value::unknown(width));
            let least = 1_i128 << (length - 1);
            if !value.meet(Interval::between(least, 2 * least - 1, width), width) {
                return true;
            }
            start.set(slot, value);
            let left = remaining_from(work, blocks, head, &(start, base.1), (assumption, shut), None);
            let is_less = |value: &Value| value.range.unsigned(width).hi < least;
            work.budget > 0 && (left.blocks.is_empty() || left.again.is_some_and(|again| again.get(slot).is_some_and(is_less)))
        };
        if ends_at_zero(work, blocks, head, &base.0, (assumption, shut), slot).is_some()
            && (1..=lengths).rev().all(|length| becomes_shorter(work, length))
        {
            return Some(Count { rounds: u64::from(lengths) + u64::from(base.1), ..NEVER });
        }
    }
    None
}
