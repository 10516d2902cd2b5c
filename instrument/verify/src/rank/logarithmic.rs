//! Logarithmic ranking functions: a register that loses a bit in each iteration, or gains one. Where few iterations are
//! possible, as in `for (; x > 0; x >>= 1)`, compilers keep no other counter.
//!
//! Let a register begin each iteration with fewer bits than the one before, as an unsigned integer. If it has n bits at
//! first, it is zero after at most n iterations. If no iteration that begins with zero comes back, there are no more.
//! Let it begin each iteration with more bits than the one before, and never with zero: then there are no more
//! iterations than lengths. Each bit length is checked by itself, so the instruction does not matter: a shift, a
//! product, a quotient or a mask.

use crate::domain::interval::Interval;
use crate::domain::state::State;
use crate::domain::value::{Assumption, Value};
use crate::interpret::edge_cost::{Count, NEVER};
use crate::interpret::work::Work;
use crate::rank::remaining::{MOST_TRIED, ends_at_zero, remaining_from};
use std::collections::BTreeSet;

/// Most rounds that a register's bits allow. What is counted by less needs no such look.
pub(crate) const MOST_LENGTHS: u64 = 64;

/// At most how many rounds of a loop come back, by a register that becomes shorter or longer. `base` is what registers hold at the head in any round,
/// and `again` how they come back.
pub(crate) fn logarithmic(
    work: &mut Work<'_, '_>,
    (blocks, head): (&[u32], u32),
    base: &(State, bool),
    (assumption, shut): (Assumption, &[usize]),
    again: &State,
) -> Option<Count> {
    let width_of = |work: &Work<'_, '_>, slot: u32| work.slice.slots[slot as usize].1.clamp(1, 64);
    let bounds = |(slot, value): (u32, &Value)| {
        let width = width_of(work, slot);
        let before = base.0.get(slot).map_or(Interval::full(width), |before| before.range).unsigned(width);
        let after = value.range.unsigned(width);
        let halves = before.hi > 0 && after.hi <= before.hi / 2;
        let doubles = before.lo > 0 && after.lo >= 2 * before.lo;
        (halves || doubles).then_some((slot, before, halves))
    };
    // Of signed numbers the range does not say that all become shorter. Each length may say so. So what is shifted, or copied, is tried as well.
    let written = |head: &str| {
        let steps = blocks.iter().flat_map(|block| &work.slice.steps[work.slice.steps(*block)]);
        steps.filter(|step| step.instruction.op.head == head).flat_map(|step| step.writes.iter().copied()).collect::<BTreeSet<u32>>()
    };
    let shifted = written("shr");
    let copied = if shifted.is_empty() { BTreeSet::new() } else { written("mov") };
    let is_shifted = |(slot, value): (u32, &Value)| {
        let is_tried = (shifted.contains(&slot) || copied.contains(&slot)) && bounds((slot, value)).is_none();
        let width = width_of(work, slot);
        is_tried.then(|| (slot, base.0.get(slot).map_or(Interval::full(width), |before| before.range).unsigned(width), true))
    };
    let mut found: Vec<(u32, Interval, bool)> = again.iter().filter_map(bounds).take(MOST_TRIED).collect();
    found.extend(again.iter().filter_map(is_shifted).filter(|(_, before, _)| before.hi > 0).take(MOST_TRIED));
    for (slot, range, halves) in found {
        let width = width_of(work, slot);
        let length = |value: i128| 128 - value.leading_zeros();
        let lengths = if halves { 1..=length(range.hi) } else { length(range.lo)..=length(range.hi) };
        let count = u64::from(lengths.end() - lengths.start() + 1);
        let is_another = |work: &mut Work<'_, '_>, length: u32| {
            let mut start = base.0.clone();
            let mut value = start.get(slot).copied().unwrap_or_else(|| Value::unknown(width));
            let least = 1_i128 << (length - 1);
            if !value.meet(Interval::between(least, 2 * least - 1, width), width) {
                return true;
            }
            start.set(slot, value);
            let left = remaining_from(work, blocks, head, &(start, base.1), (assumption, shut), None);
            let is_another = |value: &Value| {
                let range = value.range.unsigned(width);
                if halves { range.hi < least } else { range.lo >= 2 * least }
            };
            work.budget > 0 && (left.blocks.is_empty() || left.again.is_some_and(|again| again.get(slot).is_some_and(is_another)))
        };
        if (!halves || ends_at_zero(work, blocks, head, &base.0, (assumption, shut), slot).is_some())
            && lengths.rev().all(|length| is_another(work, length))
        {
            return Some(Count { rounds: count + u64::from(base.1), ..NEVER });
        }
    }
    None
}
