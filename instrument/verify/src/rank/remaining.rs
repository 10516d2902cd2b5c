//! What remains of a loop once the edges are removed that no iteration can take under an assumption.

use crate::domain::delta::Delta;
use crate::domain::interval::Interval;
use crate::domain::name::{FIRST_NAME, Name};
use crate::domain::state::State;
use crate::domain::value::{Assumption, Kind, Value};
use crate::interpret::edge_cost::Count;
use crate::interpret::pass::Found;
use crate::interpret::slice::Slice;
use crate::interpret::work::{Way, Work};
use crate::rank::linear::count;
use crate::rank::nest_phases::Paid;
use std::collections::BTreeMap;

/// Most registers that are tried for one that is zero only where a round ends the loop.
pub(crate) const MOST_TRIED: usize = 8;

/// What is left around a head under an assumption.
#[derive(Debug, Default)]
pub(crate) struct Remaining {
    pub(crate) blocks: Vec<u32>,
    pub(crate) asks: bool,
    pub(crate) count: Option<Count>,
    /// Values with which the head is reached again.
    pub(crate) again: Option<State>,
    /// Registers that move by the same number in each round that comes back: see [`steps`].
    pub(crate) steps: Vec<(u32, i64)>,
    /// A register that is not zero at the head in any round that comes back.
    pub(crate) not_zero: Option<u32>,
    /// If the count is of the rounds of all loops inside, too, all together: the ways that are paid for.
    pub(crate) together: Option<Paid>,
    /// Whether that is said of rounds that another one went before: the first may pass any block.
    pub(crate) begun: bool,
}

/// Registers that fall by so much in each round, or are zero where the next one begins.
pub(crate) fn may_stop_at_zero(again: &State, least: i64) -> Vec<u32> {
    let falls = |(slot, value): (u32, &Value)| match value.kind {
        Kind::Saturated(delta, _) => (delta.slot == slot && delta.unsigned && delta.plain().hi <= -least).then_some(slot),
        _ => None,
    };
    again.iter().filter_map(falls).take(MOST_TRIED).collect()
}

/// Whether the flag was asked for, if no round that begins so comes back.
pub(crate) fn ends(
    work: &mut Work<'_, '_>,
    blocks: &[u32],
    head: u32,
    base: &State,
    (assumption, shut): (Assumption, &[usize]),
) -> Option<bool> {
    let start = begin(work, head, base);
    let mut order = blocks.to_vec();
    order.sort_by_key(|block| (*block != head, work.rpo[*block as usize]));
    let closed = |edge: usize| shut.contains(&edge);
    let way = Way { until_return: true, ..Way::within(head, assumption, &closed) };
    let found = work.pass(&order, &[(head, start)], &way, |found, _| found);
    (found.again.is_none() && work.budget > 0).then_some(found.asks)
}

/// Whether the flag was asked for, if no round that begins with zero in a register comes back.
pub(crate) fn ends_at_zero(
    work: &mut Work<'_, '_>,
    blocks: &[u32],
    head: u32,
    base: &State,
    assumption: (Assumption, &[usize]),
    slot: u32,
) -> Option<bool> {
    let width = work.slice.slots[slot as usize].1.clamp(1, 64);
    let mut zero = base.clone();
    zero.set(slot, Value::of(Interval::constant(0, width)));
    ends(work, blocks, head, &zero, assumption)
}

/// Takes a register to be something else than zero; false if it can't be.
pub(crate) fn is_not_zero(slice: &Slice<'_>, slot: u32, state: &mut State) -> bool {
    let width = slice.slots[slot as usize].1.clamp(1, 64);
    let mut value = state.get(slot).copied().unwrap_or_else(|| Value::unknown(width));
    let can_be = value.meet(Interval::between(1, Interval::full(width).unsigned(width).hi, width), width);
    state.set(slot, value);
    can_be
}

impl Found {
    /// Leaves out what comes back with zero in that register.
    pub(crate) fn leave_out_zero(&mut self, slice: &Slice<'_>, slot: Option<u32>) {
        if let (Some(slot), Some(again)) = (slot, &mut self.again)
            && !is_not_zero(slice, slot, again)
        {
            self.again = None;
        }
    }
}

/// The same, but for rounds that begin with zero in the register that is named.
pub(crate) fn remaining_from(
    work: &mut Work<'_, '_>,
    blocks: &[u32],
    head: u32,
    (base, begun): &(State, bool),
    (assumption, shut): (Assumption, &[usize]),
    not_zero: Option<u32>,
) -> Remaining {
    let mut base = base.clone();
    if not_zero.is_some_and(|slot| !is_not_zero(work.slice, slot, &mut base)) {
        return Remaining::default();
    }
    let base = &base;
    let start = begin(work, head, base);
    let graph = work.body.graph;
    let rpo = work.rpo;
    // A clock's start that an earlier stage of the loop writes is younger than the loop.
    let whole = if assumption.late > 0 { blocks } else { &[] };
    let mut blocks = blocks.to_vec();
    let mut open: Option<Vec<usize>> = None;
    let edges_within = |blocks: &[u32]| {
        let edges = blocks.iter().flat_map(|&block| graph.edges(block));
        edges.filter(|edge| blocks.binary_search(&edge.to).is_ok()).count()
    };
    // Where every edge was found open there is no need to look again.
    let mut before = edges_within(&blocks);
    let mut asks = false;
    loop {
        let mut order = blocks.clone();
        order.sort_by_key(|block| (*block != head, rpo[*block as usize]));
        let closed = |edge: usize| shut.contains(&edge) || open.as_ref().is_some_and(|open| open.binary_search(&edge).is_err());
        let way = Way { passed_before: whole, ..Way::within(head, assumption, &closed) };
        let (found, counted, steps) = work.pass(&order, &[(head, start.clone())], &way, |mut found, pass| {
            found.leave_out_zero(pass.slice, not_zero);
            let counted = count(pass, &found, base, *begun);
            let steps = steps(&found);
            (found, counted, steps)
        });
        asks |= found.asks;
        let is_member = |block: u32| blocks.binary_search(&block).is_ok();
        let now = found.open;
        let sets = work.components.find(graph.blocks.len(), &order, |block, nth| {
            graph.edges(block).get(nth as usize).map(|edge| {
                let number = graph.first_edge(block) + nth as usize;
                (is_member(edge.to) && now.binary_search(&number).is_ok()).then_some(edge.to)
            })
        });
        let Some(mut around) = sets.into_iter().find(|set| set.contains(&head)) else { return Remaining { asks, ..Remaining::default() } };
        around.sort_unstable();
        // Only edges within what is left matter from now on.
        let within: Vec<usize> = around
            .iter()
            .flat_map(|&block| graph.edges(block).iter().zip(graph.first_edge(block)..))
            .filter(|(edge, number)| around.binary_search(&edge.to).is_ok() && now.binary_search(number).is_ok())
            .map(|(_, number)| number)
            .collect();
        let is_same = around.len() == blocks.len() && before == within.len();
        before = within.len();
        if is_same || counted.is_some() || work.budget == 0 {
            return Remaining { blocks: around, asks, count: counted, again: found.again, steps, not_zero, ..Remaining::default() };
        }
        blocks = around;
        let mut within = within;
        within.sort_unstable();
        open = Some(within);
    }
}

/// What holds at the beginning of a round: each register is what it is there. What the round before named is named anew, since the same
/// instructions will give their names to other values.
pub(crate) fn begin(work: &Work<'_, '_>, head: u32, base: &State) -> State {
    let mut start = base.clone();
    let mut names: BTreeMap<Name, Name> = BTreeMap::new();
    for &slot in work.slice.live(head) {
        let width = work.slice.slots[slot as usize].1.clamp(1, 64);
        let value = base.get(slot).copied().unwrap_or_else(|| Value::unknown(width));
        if work.slice.is_close && value.name >= FIRST_NAME {
            names.entry(value.name).or_insert_with(|| work.slice.name_at(head, slot as usize));
        }
        start.set(slot, Value { delta: Some(Delta::start(slot)), ..value });
    }
    if work.slice.is_close {
        start.rename(|name| names.get(&name).copied().unwrap_or(name));
    }
    start
}

/// Registers to which each round that comes back adds the same number, with that number.
pub(crate) fn steps(found: &Found) -> Vec<(u32, i64)> {
    let (Some(again), Some(Some(head))) = (&found.again, found.states.first()) else { return Vec::new() };
    let step = |(slot, value): (u32, &Value)| {
        let form = value.form.filter(|form| form.lo == form.hi && form.lo != 0)?;
        (form.alone()? == (head.get(slot)?.name, 1)).then_some((slot, form.lo))
    };
    again.iter().filter_map(step).take(MOST_TRIED).collect()
}
