//! Loop invariants: what registers hold in a set of blocks whatever the flag says, and what the set leaves behind for
//! later ones.

use crate::domain::state::State;
use crate::domain::value::{Assumption, Value};
use crate::interpret::body::Body;
use crate::interpret::step::NO_STATEMENT;
use crate::interpret::work::{Way, Work};
use std::collections::BTreeMap;

/// What registers hold in a set of blocks.
pub(crate) struct LoopInvariant {
    /// The blocks, and values at the beginning of each that can be reached.
    pub(crate) order: Vec<u32>,
    pub(crate) states: Vec<Option<State>>,
    /// Values where control goes back in that order: to which block, from which.
    pub(crate) back: BTreeMap<(u32, u32), State>,
    /// What each statement leaves in its first result, with that one's width.
    notes: Vec<(u32, u8, Value)>,
}

impl LoopInvariant {
    /// Notes what the set leaves behind.
    pub(crate) fn note(self, body: &mut Body<'_>) {
        for (statement, width, value) in self.notes {
            body.note(statement, width, value);
        }
        for (block, _) in self.order.iter().zip(&self.states).filter(|(_, state)| state.is_none()) {
            body.note_dead(*block);
        }
    }
}

/// Ways into a set that are looked at one by one, the last ones. What others bring is joined.
const MOST_ENTRIES: usize = 10;

/// Blocks of a set that control comes to from outside.
pub(crate) fn entries(body: &Body<'_>, rpo: &[u32], of: &[u32]) -> Vec<u32> {
    let is_entered = |block: &u32| {
        let comes_in = |source: &u32| of.binary_search(source).is_err() && rpo[*source as usize] != u32::MAX;
        *block == 0 || body.graph.sources(*block).iter().any(comes_in)
    };
    of.iter().copied().filter(is_entered).collect()
}

/// Follows control through a set of blocks from wherever it is entered.
pub(crate) fn follow(work: &mut Work<'_, '_>, set: &[u32]) -> LoopInvariant {
    let (body, slice, rpo) = (work.body, work.slice, work.rpo);
    work.position.resize(body.graph.blocks.len(), u32::MAX);
    let is_member = |block: u32| set.binary_search(&block).is_ok();
    let mut entries = entries(body, rpo, set);
    entries.sort_by_key(|block| rpo[*block as usize]);
    // What registers hold where the set is entered from these blocks' sources.
    let enter = |entries: &[u32]| {
        let mut needed: Vec<u32> =
            entries.iter().flat_map(|entry| slice.live(*entry)).copied().filter(|slot| *slot < slice.first_sum).collect();
        needed.sort_unstable();
        needed.dedup();
        State::new(needed.into_iter().map(|slot| (slot, body.before(slice.slots[slot as usize].0, entries, &is_member))))
    };
    // The last ones lead to the loop that code in front is followed for.
    let (together, alone) = entries.split_at(entries.len().saturating_sub(MOST_ENTRIES));
    let all = (!together.is_empty()).then(|| enter(together));
    let starts: Vec<(u32, State)> = all
        .into_iter()
        .flat_map(|all| together.iter().map(move |block| (*block, all.clone())))
        .chain(alone.iter().map(|block| (*block, enter(&[*block]))))
        .collect();
    let mut order = set.to_vec();
    order.sort_by_key(|block| rpo[*block as usize]);
    let anything = Way {
        head: None,
        until_return: false,
        choice: None,
        assumption: Assumption::default(),
        closed: &|_| false,
        edge_cost: &|_, _| None,
        keeps_out: false,
        passed_before: &[],
    };
    let (states, back, notes) = work.pass(&order, &starts, &anything, |found, pass| {
        let mut notes = Vec::new();
        let mut back: BTreeMap<(u32, u32), State> = BTreeMap::new();
        pass.show(
            &found,
            |index, after| {
                let step = &slice.steps[index as usize];
                if let Some((slot, value)) = step.writes.first().and_then(|slot| Some((*slot, after.get(*slot)?)))
                    && step.statement != NO_STATEMENT
                {
                    notes.push((step.statement, slice.slots[slot as usize].1, *value));
                }
            },
            |from, to, state| {
                let known = back.remove(&(to, from));
                let joined = known.map_or_else(|| state.clone(), |known| known.join(&state, slice, Some(to)));
                back.insert((to, from), joined);
            },
        );
        (found.states, back, notes)
    });
    LoopInvariant { order, states, back, notes }
}
