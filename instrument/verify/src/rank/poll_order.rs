//! Where polls lie in a loop: in front of the loops and calls inside, or behind them.
//!
//! A thread that has polled is amid an iteration. The rest of that one comes before those that begin at the head.

use crate::domain::state::State;
use crate::interpret::work::{Way, Work};
use crate::rank::loops::Known;
use crate::rank::paying::ASKED;
use crate::rank::remaining::begin;
use cuinstr_ptx::Flow;
use std::collections::BTreeSet;

/// Whether each loop and call inside a loop that polls in every iteration is passed by one iteration alone between two polls: it lies behind the polls, or
/// in front of them.
pub(crate) fn is_passed_once(work: &mut Work<'_, '_>, blocks: &[u32], head: u32, known: &Known<'_>) -> bool {
    let inside = inside(work, blocks, head);
    let Some(base) = (known.base_of)(head).filter(|_| !inside.is_empty()) else { return false };
    let start = begin(work, head, &base);
    let Some((in_front, polls)) = reached(work, blocks, head, &[(head, start)]) else { return false };
    // What polls in a call does something in front of the poll, and something behind it.
    if inside.iter().any(|block| polls.contains(block) && calls(work, *block)) {
        return false;
    }
    // What can be come to in front of a poll must not be left behind one.
    let starts: Option<Vec<_>> = inside
        .into_iter()
        .filter(|block| in_front.binary_search(block).is_ok())
        .map(|block| Some((block, (known.base_of)(block)?)))
        .collect();
    starts.is_some_and(|starts| reached(work, blocks, head, &starts).is_some())
}

/// Loops and calls inside that control may come to behind a poll, or behind an entry that is not the head, without passing the head.
pub(crate) fn amid(work: &mut Work<'_, '_>, blocks: &[u32], head: u32, base: &State) -> Vec<u32> {
    let start = begin(work, head, base);
    let order = order(work, blocks, head);
    let polls = work.pass(&order, &[(head, start)], &Way::within(head, ASKED, &|_| false), |found, _| found.asks_in);
    let graph = work.body.graph;
    let is_member = |block: u32| blocks.binary_search(&block).is_ok();
    let is_entry = |block: &u32| *block != head && !graph.sources(*block).iter().all(|source| is_member(*source));
    let mut next: Vec<u32> = blocks.iter().copied().filter(is_entry).collect();
    next.extend(polls.iter().flat_map(|block| graph.edges(*block)).map(|edge| edge.to));
    // A call comes behind a poll of its block.
    let mut reached: BTreeSet<u32> = polls.into_iter().filter(|block| *block != head && calls(work, *block)).collect();
    while let Some(block) = next.pop() {
        if block != head && is_member(block) && reached.insert(block) {
            next.extend(graph.edges(block).iter().map(|edge| edge.to));
        }
    }
    inside(work, blocks, head).into_iter().filter(|block| reached.contains(block)).collect()
}

/// Heads of loops inside, and blocks that call.
fn inside(work: &Work<'_, '_>, blocks: &[u32], head: u32) -> Vec<u32> {
    let graph = work.body.graph;
    let comes_back = |block: u32| {
        let is_back = |source: &u32| work.rpo[*source as usize] >= work.rpo[block as usize] && blocks.binary_search(source).is_ok();
        block != head && graph.sources(block).iter().any(is_back)
    };
    blocks.iter().copied().filter(|block| calls(work, *block) || comes_back(*block)).collect()
}

fn calls(work: &Work<'_, '_>, block: u32) -> bool {
    work.body.graph.last(block).is_some_and(|last| work.body.function.statements[last as usize].flow == Flow::Call)
}

/// The blocks that are passed from these on once the flag is set, sorted, and those of them that poll, if the head is not reached.
fn reached(work: &mut Work<'_, '_>, blocks: &[u32], head: u32, starts: &[(u32, State)]) -> Option<(Vec<u32>, BTreeSet<u32>)> {
    let order = order(work, blocks, head);
    let way = Way { until_return: true, ..Way::within(head, ASKED, &|_| false) };
    let (again, states, polls) = work.pass(&order, starts, &way, |found, _| (found.again, found.states, found.asks_in));
    if again.is_some() || work.budget == 0 {
        return None;
    }
    let mut passed: Vec<u32> = order.into_iter().zip(states).filter_map(|(block, state)| state.map(|_| block)).collect();
    passed.sort_unstable();
    Some((passed, polls))
}

/// The blocks from the head on, in a reverse postorder.
pub(crate) fn order(work: &Work<'_, '_>, blocks: &[u32], head: u32) -> Vec<u32> {
    let mut order = blocks.to_vec();
    order.sort_by_key(|block| (*block != head, work.rpo[*block as usize]));
    order
}
