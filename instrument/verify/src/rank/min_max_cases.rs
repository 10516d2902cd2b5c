//! Case distinction: a loop is proved once for each operand of a `min`, `max` or `selp` in front of it.
//!
//! A strip's length may be the smaller of a budget and a distance. Compilers may leave both tests in the inner loop and
//! run four iterations between them. That either test comes true exactly is known only where the length is that
//! operand. So the loop is interpreted once with each operand as the result.
//!
//! Let every path to a loop pass one instruction outside it. The instruction takes the larger or smaller of two values,
//! or one of two by a predicate. A thread in the loop last passed that instruction with one of both as its result. For
//! each case, what registers hold is followed from the instruction to the loop, without passing it again. What is
//! proved of the loop in both cases holds.

use crate::domain::state::State;
use crate::domain::value::Assumption;
use crate::interpret::edge_cost::NEVER;
use crate::interpret::pass::{Choice, MOST_BACK};
use crate::interpret::step::chooses;
use crate::interpret::work::{Way, Work};
use crate::rank::loop_proof::prove;
use crate::rank::loops::{Known, Proof};
use crate::rank::remaining::Remaining;
use std::collections::BTreeSet;

/// Most instructions that are tried for one loop, and most blocks of a function in which they are.
const MOST: usize = 3;

const MOST_BLOCKS: usize = 1 << 14;

/// What is proved of a loop case by case, if that is how often its rounds come back.
pub(crate) fn by_cases(work: &mut Work<'_, '_>, known: &Known<'_>, blocks: &[u32], head: u32) -> Option<(Proof, Remaining)> {
    if !work.slice.has_cases || work.body.graph.blocks.len() > MOST_BLOCKS {
        return None;
    }
    for (block, step) in choices(work, known, blocks, head) {
        let Some(start) = (known.base_of)(block) else { continue };
        let mut most = NEVER;
        let is_proved = [0, 1].into_iter().all(|nth| {
            let choice = Choice { step, nth };
            let Some(base) = follow(work, known, (block, &start), choice, blocks, head) else { return work.budget > 0 };
            match prove(work, blocks, head, &(base, true)) {
                (Proof::Counted(count), _) if work.budget > 0 => {
                    most.rounds = most.rounds.max(count.rounds);
                    true
                }
                _ => false,
            }
        });
        if is_proved {
            return Some((Proof::Counted(most), Remaining { blocks: blocks.to_vec(), ..Remaining::default() }));
        }
    }
    None
}

/// Instructions that each way to the loop passes, with their blocks: the nearest first.
fn choices(work: &Work<'_, '_>, known: &Known<'_>, blocks: &[u32], head: u32) -> Vec<(u32, u32)> {
    let is_outside = |block: &&u32| blocks.binary_search(block).is_err() && work.rpo[**block as usize] < work.rpo[head as usize];
    let mut found = Vec::new();
    for &block in known.order.iter().filter(is_outside) {
        let steps = work.slice.steps(block);
        let here = &work.slice.steps[steps.clone()];
        found.extend(steps.filter(|index| chooses(here, &work.slice.steps[*index])).map(|index| (block, index as u32)));
    }
    found.reverse();
    let is_passed = |(block, _): &(u32, u32)| !work.body.reached_without(*block)[head as usize];
    found.into_iter().filter(is_passed).filter(|(block, _)| is_followed(work, known, *block, blocks)).take(MOST).collect()
}

/// Whether every path from a block to the loop stays in the blocks that are followed. Another loop between both is not among them.
fn is_followed(work: &Work<'_, '_>, known: &Known<'_>, from: u32, blocks: &[u32]) -> bool {
    let followed: BTreeSet<u32> = known.order.iter().copied().collect();
    let mut seen: BTreeSet<u32> = blocks.iter().copied().collect();
    let mut next: Vec<u32> = blocks.to_vec();
    while let Some(block) = next.pop() {
        for &source in work.body.graph.sources(block) {
            if source != from && seen.insert(source) {
                if !followed.contains(&source) {
                    return false;
                }
                next.push(source);
            }
        }
    }
    true
}

/// What registers hold where the loop comes round, in one case; none if it does not.
fn follow(
    work: &mut Work<'_, '_>,
    known: &Known<'_>,
    (from, start): (u32, &State),
    choice: Choice,
    blocks: &[u32],
    head: u32,
) -> Option<State> {
    let way = Way { choice: Some(choice), ..Way::within(from, Assumption::default(), &|_| false) };
    let (slice, rpo) = (work.slice, work.rpo);
    let sources = work.body.graph.sources(head);
    let is_member = |block: &u32| blocks.binary_search(block).is_ok();
    let all_back = sources.iter().filter(|block| is_member(block)).all(|block| rpo[*block as usize] >= rpo[head as usize]);
    work.pass(known.order, &[(from, start.clone())], &way, |found, pass| {
        if sources.len() > MOST_BACK || !all_back {
            return found.states[pass.position[head as usize] as usize].clone();
        }
        let mut again: Option<State> = None;
        let back = |at: u32, to: u32, state: State| {
            if to == head && is_member(&at) {
                again = Some(again.take().map_or_else(|| state.clone(), |known| known.join(&state, slice, Some(head))));
            }
        };
        pass.show(&found, |_, _| {}, back);
        again
    })
}
