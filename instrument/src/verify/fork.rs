//! Rounds of two kinds, told apart by a branch.

use super::count::Count;
use super::instruction::Operand;
use super::round::{Left, Work, remaining};
use super::since::Since;
use super::state::State;
use super::value::Assumption;

/// Most blocks of a loop whose rounds are told apart by a branch, and most branches that are tried.
const MOST_FORKED: usize = 1000;
const MOST_FORKS: usize = 8;

/// Counts rounds of two kinds, told apart by a branch that each passes once. In those of one kind a register counts, which the others leave
/// alone or move the same way: there are so many of them in all. The others, among themselves, count by a register of their own, which the
/// first kind moves the same way: it does not come back to where they can be before it has gone all the way round.
pub(super) fn fork(work: &mut Work<'_, '_>, blocks: &[u32], head: u32, base: &(State, bool), assumption: Assumption) -> Option<Count> {
    if blocks.len() > MOST_FORKED {
        return None;
    }
    let graph = work.body.graph;
    let is_member = |block: u32| blocks.binary_search(&block).is_ok();
    let mut forks: Vec<(u32, [usize; 2])> = Vec::new();
    for &block in blocks {
        let edges = graph.edges(block).iter().zip(graph.first_edge(block)..).filter(|(edge, _)| is_member(edge.to));
        let ways: Vec<usize> = edges.map(|(_, number)| number).collect();
        if let &[one, other] = &ways[..] {
            forks.push((block, [one, other]));
        }
    }
    // What a register has come to tells rounds apart most often.
    forks.sort_by_key(|(block, _)| !compares_with_number(work, *block));
    let mut tried = 0;
    for (block, [one, other]) in forks {
        if !is_passed_once(work, blocks, head, block) {
            continue;
        }
        tried += 1;
        if tried > MOST_FORKS || work.budget == 0 {
            return None;
        }
        let ones = remaining(work, blocks, head, base, assumption, Some(other));
        let others = remaining(work, blocks, head, base, assumption, Some(one));
        for (paid, free, shut) in [(&ones, &others, one), (&others, &ones, other)] {
            let (Some(_), Some(again)) = (paid.count, &free.again) else { continue };
            // Those that follow one another begin as the one before has left things.
            let in_a_row = remaining(work, blocks, head, &(again.clone(), true), assumption, Some(shut));
            let counts = counts_both(work, paid, free, &in_a_row);
            if counts.is_some() {
                return counts;
            }
        }
    }
    None
}

/// Whether what a block compares last is compared with a number.
fn compares_with_number(work: &Work<'_, '_>, block: u32) -> bool {
    let steps = &work.slice.steps[work.slice.steps(block)];
    let last = steps.iter().rev().find(|step| step.instruction.op.compares.is_some());
    last.is_some_and(|step| matches!(step.instruction.rest.get(1), Some(Operand::Number(2..))))
}

/// Whether each round passes the block, and no loop inside does.
fn is_passed_once(work: &mut Work<'_, '_>, blocks: &[u32], head: u32, block: u32) -> bool {
    if block == head {
        return true;
    }
    let graph = work.body.graph;
    let mut without = |out: u32, within: u32| {
        let nodes: Vec<u32> = blocks.iter().copied().filter(|node| *node != out).collect();
        let sets = work.components.find(graph.blocks.len(), &nodes, |node, nth| {
            graph.edges(node).get(nth as usize).map(|edge| (edge.to != out && nodes.binary_search(&edge.to).is_ok()).then_some(edge.to))
        });
        sets.iter().any(|set| set.contains(&within))
    };
    !without(block, head) && !without(head, block)
}

/// Rounds of both kinds, if those that pay end and the free ones do not take that back.
fn counts_both(work: &Work<'_, '_>, paid: &Left, free: &Left, in_a_row: &Left) -> Option<Count> {
    let (pays, runs) = (paid.count?, in_a_row.count?);
    let moves = |left: &Left, slot: u32| {
        let value = left.again.as_ref()?.get(slot)?;
        value.since.filter(|since| since.slot == slot).map(Since::plain)
    };
    let kept = moves(free, pays.slot)?;
    let is_kept = if pays.signed { kept.signed } else { kept.unsigned } && if pays.rises { kept.lo >= 0 } else { kept.hi <= 0 };
    // Between two rounds that pay there are so many free ones; and in all, if the others do not bring their register back.
    let rounds = match (moves(in_a_row, runs.slot), moves(paid, runs.slot)) {
        (Some(slow), Some(fast)) if if runs.rises { fast.lo > 0 } else { fast.hi < 0 } => {
            let step = |since: Since| u128::from(since.lo.unsigned_abs().max(since.hi.unsigned_abs()));
            let way = u128::from(pays.rounds + 1) * step(fast) + 2 * u128::from(runs.rounds + 1) * step(slow);
            let is_short = way < 1 << work.slice.slots[runs.slot as usize].1.min(64);
            is_short.then_some(pays.rounds + runs.rounds + 2)
        }
        _ => None,
    };
    let rounds = rounds.unwrap_or((pays.rounds + 1).saturating_mul(runs.rounds + 1));
    (is_kept && rounds <= super::count::MOST_TOGETHER).then_some(Count { rounds, slot: u32::MAX, step: 1, ..pays })
}
