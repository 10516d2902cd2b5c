//! The proof of one function under way: its scratch space, and the limit of its work.

use crate::domain::state::State;
use crate::domain::value::Assumption;
use crate::interpret::body::Body;
use crate::interpret::counted_inside::CountedInside;
use crate::interpret::edge_cost::EdgeCost;
use crate::interpret::parameters::Returns;
use crate::interpret::pass::{Choice, Found, Pass};
use crate::interpret::slice::Slice;
use crate::program::cfg::Components;
use std::cell::Cell;

/// Looks at blocks and steps, in multiples of a set's size, before a proof is given up.
const PATIENCE: usize = 60;

/// And looks that any set is worth.
pub(crate) const LOOKS: usize = 200_000;

/// Scratch space for one function.
pub(crate) struct Work<'w, 'a> {
    pub(crate) body: &'w Body<'a>,
    pub(crate) slice: &'w Slice<'a>,
    pub(crate) rpo: &'w [u32],
    /// `u32::MAX` for each block of the function, but while a pass is under way.
    pub(crate) position: &'w mut Vec<u32>,
    pub(crate) components: &'w mut Components,
    pub(crate) returns: &'w Returns<'w>,
    /// Loops of the set that are known to end by themselves.
    pub(crate) counted: &'w [CountedInside],
    /// Whether nothing else is left to try: what seldom proves a loop may cost more then.
    pub(crate) is_last: bool,
    /// Looks left.
    pub(crate) budget: usize,
    /// Whether something was asked since this was set to false that the action decides.
    pub(crate) asks_action: bool,
}

/// How often a large set gets as many looks again as it was worth.
pub(crate) const MORE: usize = 2;

/// Looks that a set is worth.
pub(crate) fn allotted(set: &[u32], slice: &Slice<'_>) -> usize {
    LOOKS + PATIENCE * (set.len() + slice.steps.len())
}

/// How control is followed: see [`Pass`].
pub(crate) struct Way<'w> {
    pub(crate) head: Option<u32>,
    pub(crate) until_return: bool,
    pub(crate) choice: Option<Choice>,
    pub(crate) assumption: Assumption,
    pub(crate) closed: &'w dyn Fn(usize) -> bool,
    pub(crate) edge_cost: &'w dyn Fn(u32, u32) -> Option<EdgeCost>,
    /// Whether what leaves the blocks is kept.
    pub(crate) keeps_out: bool,
    /// Blocks of the loop that no round passes any more. What is written there is not fixed, either.
    pub(crate) passed_before: &'w [u32],
}

impl<'w> Way<'w> {
    /// Rounds from a head on.
    pub(crate) fn within(head: u32, assumption: Assumption, closed: &'w dyn Fn(usize) -> bool) -> Self {
        Self {
            head: Some(head),
            until_return: false,
            choice: None,
            assumption,
            closed,
            edge_cost: &|_, _| None,
            keeps_out: false,
            passed_before: &[],
        }
    }
}

impl<'a> Work<'_, 'a> {
    /// Follows control through blocks and hands what was found to `then`.
    pub(crate) fn pass<T>(
        &mut self,
        order: &[u32],
        starts: &[(u32, State)],
        way: &Way<'_>,
        then: impl FnOnce(Found, &Pass<'_, 'a>) -> T,
    ) -> T {
        for (at, block) in order.iter().enumerate() {
            self.position[*block as usize] = at as u32;
        }
        let mut fixed = vec![true; self.slice.slots.len()];
        for block in order.iter().chain(way.passed_before) {
            for step in &self.slice.steps[self.slice.steps(*block)] {
                for slot in step.writes.iter().filter(|slot| **slot != u32::MAX) {
                    fixed[*slot as usize] = false;
                }
            }
        }
        let asks_action = Cell::new(false);
        let pass = Pass {
            body: self.body,
            slice: self.slice,
            order,
            position: self.position,
            closed: way.closed,
            assumption: way.assumption,
            returns: self.returns,
            counted: self.counted,
            head: way.head,
            until_return: way.until_return,
            choice: way.choice,
            edge_cost: way.edge_cost,
            keeps_out: way.keeps_out,
            fixed: &fixed,
            asks_action: &asks_action,
            allowed: self.budget,
        };
        let found = pass.run(starts);
        let looked = found.work;
        let result = then(found, &pass);
        self.asks_action |= asks_action.get();
        self.budget = self.budget.saturating_sub(looked);
        for block in order {
            self.position[*block as usize] = u32::MAX;
        }
        result
    }
}
