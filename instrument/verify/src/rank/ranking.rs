//! The ranking functions of one loop, tried one after the other.

use crate::domain::state::State;
use crate::domain::value::Assumption;
use crate::interpret::edge_cost::{Count, NEVER};
use crate::interpret::work::Work;
use crate::rank::logarithmic::{MOST_LENGTHS, logarithmic};
use crate::rank::remaining::{Remaining, ends_at_zero, may_stop_at_zero, remaining_from};
use crate::rank::wrapping::wrapping;

/// The same without these edges.
///
/// A strip's price is taken off a budget that stops at zero. So the budget falls in each round, or is zero where the
/// next one begins. Let no round that begins with zero there come back. Then those that go on for ever begin with
/// something else, and in them the budget has fallen.
pub(crate) fn remaining(
    work: &mut Work<'_, '_>,
    blocks: &[u32],
    head: u32,
    base: &(State, bool),
    assumption: Assumption,
    shut: &[usize],
) -> Remaining {
    let left = remaining_from(work, blocks, head, base, (assumption, shut), None);
    if left.blocks.is_empty() || left.count.is_some_and(|count| count.rounds <= MOST_LENGTHS) {
        return left;
    }
    let by_lengths = |work: &mut Work<'_, '_>, left: &Remaining| {
        left.again.as_ref().and_then(|again| logarithmic(work, (&left.blocks, head), base, (assumption, shut), again))
    };
    if left.count.is_some() {
        return Remaining { count: by_lengths(work, &left).or(left.count), ..left };
    }
    for slot in left.again.as_ref().map_or_else(Vec::new, |again| may_stop_at_zero(again, 1)) {
        let Some(asks) = ends_at_zero(work, &left.blocks, head, &base.0, (assumption, shut), slot) else { continue };
        let others = remaining_from(work, &left.blocks, head, base, (assumption, shut), Some(slot));
        let asks = left.asks || asks || others.asks;
        // The round that comes back with zero is not among them, and then none of them may come back.
        if others.blocks.is_empty() {
            let count = Some(Count { rounds: 1 + u64::from(base.1), ..NEVER });
            return Remaining { count, asks, not_zero: Some(slot), ..left };
        }
        if let Some(count) = others.count {
            return Remaining { count: Some(count.with_one_more()), asks, ..others };
        }
    }
    let count = by_lengths(work, &left).or_else(|| wrapping(work, (&left.blocks, head), base, (assumption, shut), &left.steps));
    Remaining { count, ..left }
}
