//! A fixpoint computation: its inputs and its results.

use crate::domain::state::State;
use crate::domain::value::Assumption;
use crate::interpret::body::Body;
use crate::interpret::counted_inside::CountedInside;
use crate::interpret::edge_cost::EdgeCost;
use crate::interpret::parameters::Returns;
use crate::interpret::slice::Slice;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// Most ways back to a block that are kept apart.
pub(crate) const MOST_BACK: usize = 64;

/// Blocks to follow, with room for what is found.
pub(crate) struct Pass<'p, 'a> {
    pub(crate) body: &'p Body<'a>,
    pub(crate) slice: &'p Slice<'a>,
    /// The blocks in the order to take them, a reverse postorder as far as there is one.
    pub(crate) order: &'p [u32],
    /// Position of each block of the function in `order`; `u32::MAX` for those outside the set.
    pub(crate) position: &'p [u32],
    /// Edges that are known not to be taken, by their number in the function.
    pub(crate) closed: &'p dyn Fn(usize) -> bool,
    pub(crate) assumption: Assumption,
    /// Whether a call returns to its caller under the assumption.
    pub(crate) returns: &'p Returns<'p>,
    /// Loops of the set that are known to end by themselves.
    pub(crate) counted: &'p [CountedInside],
    /// The block that a round begins at: what flows into it ends the round.
    pub(crate) head: Option<u32>,
    /// Whether nothing more is asked than whether the head is reached again.
    pub(crate) until_return: bool,
    /// What a step that takes one of two results in.
    pub(crate) choice: Option<Choice>,
    /// The price of an edge, from one block to another, for a loop inside that is counted together with this one: it is taken as added to
    /// every register.
    pub(crate) edge_cost: &'p dyn Fn(u32, u32) -> Option<EdgeCost>,
    /// Whether what leaves the set is kept.
    pub(crate) keeps_out: bool,
    /// Slots that nothing in the set writes.
    pub(crate) fixed: &'p [bool],
    /// Set where something was asked that the action decides.
    pub(crate) asks_action: &'p Cell<bool>,
    /// Most work before nothing is taken to be known anywhere.
    pub(crate) allowed: usize,
}

/// Which of two operands a step results in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) step: u32,
    pub(crate) nth: usize,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Values at the beginning of each block that can be reached, by position.
    pub(crate) states: Vec<Option<State>>,
    /// Numbers of the edges that may be taken, those to the head included.
    pub(crate) open: Vec<usize>,
    /// Values with which the head is reached again.
    pub(crate) again: Option<State>,
    /// Values on the edges that leave the set, if that is asked for.
    pub(crate) out: Option<State>,
    /// Values on each way to a block, where they are kept apart: by block and edge.
    pub(crate) incoming: BTreeMap<(u32, usize), State>,
    /// Steps, blocks, edges and values that were looked at.
    pub(crate) work: usize,
    /// Whether a statement was reached that returns to the caller.
    pub(crate) returns: bool,
    /// Whether the assumption about the flag decided something: a load stood for it, or a callee did not return because of it.
    pub(crate) asks: bool,
    /// Blocks in which it did.
    pub(crate) asks_in: BTreeSet<u32>,
}

impl Pass<'_, '_> {
    /// What is found where nothing is known: every edge may be taken with every value.
    pub(super) fn anything(&self, mut found: Found) -> Found {
        let graph = self.body.graph;
        let edges = self.order.iter().flat_map(|block| graph.edge_numbers(*block));
        let mut open: Vec<usize> = edges.filter(|edge| !(self.closed)(*edge)).collect();
        open.sort_unstable();
        found.states = vec![Some(State::default()); self.order.len()];
        found.open = open;
        found.again = Some(State::default());
        found.out = Some(State::default());
        found.incoming.clear();
        found.returns = true;
        found
    }
}
