//! Loops inside a set that are known to end by themselves, and the registers that each of their rounds moves by one
//! number.
//!
//! Let a loop be entered at its head only, and let at most n of its rounds come back. Let one statement write a
//! register there: it adds c, in a block that no loop further inside holds. Then at the head the register is what it
//! was where the loop was entered, and between 0 and n times c. The same holds if it adds c to a copy of the register
//! that the head makes in each round.

use crate::domain::interval::Interval;
use crate::domain::state::State;
use crate::interpret::slice::Slice;
use crate::interpret::step::{NO_STATEMENT, Step};
use crate::program::cfg::Graph;
use crate::program::instruction::Operand;
use std::collections::BTreeMap;

/// Such a loop.
#[derive(Debug)]
pub(crate) struct CountedInside {
    head: u32,
    /// Sorted.
    blocks: Vec<u32>,
    /// Slots, and how far they are moved at least and at most.
    moved: Vec<(u32, Interval)>,
}

impl CountedInside {
    /// A loop of these blocks, sorted, of which at most so many rounds come back; `inside` tells what further loops hold. None if it moves nothing so.
    pub(crate) fn new(
        graph: &Graph,
        slice: &Slice<'_>,
        head: u32,
        blocks: &[u32],
        inside: impl Fn(u32) -> bool,
        rounds: u64,
    ) -> Option<Self> {
        let is_member = |block: &u32| blocks.binary_search(block).is_ok();
        if blocks.iter().any(|block| *block != head && !graph.sources(*block).iter().all(is_member)) {
            return None;
        }
        let mut writers: BTreeMap<u32, Vec<(u32, &Step<'_>)>> = BTreeMap::new();
        for &block in blocks {
            for step in &slice.steps[slice.steps(block)] {
                for slot in &step.writes {
                    writers.entry(*slot).or_default().push((block, step));
                }
            }
        }
        let is_plain = |step: &Step<'_>| {
            step.instruction.guard.is_none() && !step.is_wild && !step.is_again && step.statement != NO_STATEMENT && step.writes.len() == 1
        };
        // Whether that slot holds a copy of the other at this step.
        let is_copy = |of: u32, slot: u32, (block, step): (u32, &Step<'_>)| match writers.get(&of).map(Vec::as_slice) {
            Some(&[(copied, copy)]) => {
                let is_before = copied == head && (block != head || copy.statement < step.statement);
                let instruction = &copy.instruction;
                is_before
                    && is_plain(copy)
                    && instruction.op.head == "mov"
                    && matches!(instruction.rest[..], [Operand::Register(from)] if from == slot)
            }
            _ => false,
        };
        let steady = |(&slot, all): (&u32, &Vec<(u32, &Step<'_>)>)| {
            let &[(block, step)] = &all[..] else { return None };
            let width = slice.slots.get(slot as usize)?.1;
            let instruction = &step.instruction;
            let (&[Operand::Register(of), Operand::Number(number)], sign) = (&instruction.rest[..], instruction.op.sums()?) else {
                return None;
            };
            if of != slot && !is_copy(of, slot, (block, step)) || !is_plain(step) || inside(block) || !(2..=64).contains(&width) {
                return None;
            }
            let by = Interval::constant(number, width).signed(width).lo * i128::from(sign);
            // The first round, those that come back, and one that does not.
            let all = by.checked_mul(i128::from(rounds) + 2)?;
            let far = Interval::strided(all.min(0), all.max(0), u64::try_from(by.unsigned_abs()).ok()?, width);
            (by != 0 && all.unsigned_abs() < 1 << (width - 1)).then_some((slot, far))
        };
        let moved: Vec<(u32, Interval)> = writers.iter().filter_map(steady).collect();
        (!moved.is_empty()).then(|| Self { head, blocks: blocks.to_vec(), moved })
    }

    pub(crate) fn holds(&self, block: u32) -> bool {
        self.blocks.binary_search(&block).is_ok()
    }

    pub(crate) fn head(&self) -> u32 {
        self.head
    }

    /// Notes what registers hold where the loop is entered from a block, unless that belongs to it. Says whether that is more than was known: then what
    /// comes round was cut too short.
    pub(crate) fn enter(&self, from: u32, state: &State, slice: &Slice<'_>, entered: &mut BTreeMap<u32, Interval>) -> bool {
        if self.holds(from) {
            return false;
        }
        let mut is_more = false;
        for &(slot, _) in &self.moved {
            let width = slice.slots[slot as usize].1;
            let range = state.get(slot).map_or(Interval::full(width), |value| value.range);
            let known = entered.get(&slot).map_or(range, |known| known.join(range, width));
            is_more |= entered.insert(slot, known) != Some(known);
        }
        is_more
    }

    /// Takes in how far the registers may be at the head from what they were where the loop was entered.
    pub(crate) fn limit(&self, state: &mut State, slice: &Slice<'_>, entered: &BTreeMap<u32, Interval>) {
        for (slot, far) in &self.moved {
            let width = slice.slots[*slot as usize].1;
            let Some(range) = entered.get(slot).map(|range| range.add(*far, width)) else { continue };
            state.change(
                |of, _| of == *slot,
                |_, held| {
                    held.range = held.range.meet(range, width).unwrap_or(held.range);
                    true
                },
            );
        }
    }
}
