//! Two phases: iterations of two kinds, told apart by a branch, are counted separately.

use crate::domain::delta::Delta;
use crate::domain::state::State;
use crate::interpret::edge_cost::{Count, EdgeCost, NEVER};
use crate::interpret::work::Work;
use crate::program::instruction::Operand;
use crate::rank::linear::MOST_TOGETHER;
use crate::rank::nest_phases::{Paid, Phases, together_in_phases};
use crate::rank::paying::Payers;
use crate::rank::ranking::remaining;
use crate::rank::remaining::Remaining;

/// Most blocks of a loop whose rounds are told apart by a branch, and most branches that are tried.
const MOST_BLOCKS: usize = 1000;

const MOST_BRANCHES: usize = 8;

/// Blocks that branch within a loop, and the numbers of both edges.
type Branches = [(u32, [usize; 2])];

/// Counts rounds of two kinds, told apart by a branch; and if those of all loops inside are counted as well, by which ways.
pub(crate) fn phases(work: &mut Work<'_, '_>, phases: &Phases<'_>) -> Option<(Count, Option<Paid>)> {
    if phases.blocks.len() > MOST_BLOCKS {
        return None;
    }
    let graph = work.body.graph;
    let is_member = |block: u32| phases.blocks.binary_search(&block).is_ok();
    let mut branches: Vec<(u32, [usize; 2])> = Vec::new();
    for &block in phases.blocks {
        let edges = graph.edges(block).iter().zip(graph.first_edge(block)..).filter(|(edge, _)| is_member(edge.to));
        let ways: Vec<usize> = edges.map(|(_, number)| number).collect();
        if let &[one, other] = &ways[..] {
            branches.push((block, [one, other]));
        }
    }
    // What a register has come to tells rounds apart most often.
    branches.sort_by_key(|(block, _)| !compares_with_number(work, *block));
    // Loops inside are better counted together with it.
    let paid = if phases.has_inside(work) { phases.paid(work, &branches) } else { None };
    if let Some(rounds) = paid.as_ref().and_then(|paid| together_in_phases(work, phases, paid)) {
        return Some((Count { rounds, ..NEVER }, paid));
    }
    let count = phases.passed_once(work, &branches).or_else(|| phases.between(work, &paid?));
    count.map(|count| (count, None))
}

impl Phases<'_> {
    /// Whether there are loops inside.
    fn has_inside(&self, work: &mut Work<'_, '_>) -> bool {
        let graph = work.body.graph;
        let nodes: Vec<u32> = self.blocks.iter().copied().filter(|block| *block != self.head).collect();
        let sets = work.components.find(graph.blocks.len(), &nodes, |node, nth| {
            graph.edges(node).get(nth as usize).map(|edge| nodes.binary_search(&edge.to).is_ok().then_some(edge.to))
        });
        !sets.is_empty()
    }

    /// By a branch that each round passes once. In those of one kind a register counts, which the others leave alone or move the same way: there
    /// are so many of them in all. The others, among themselves, count by a register of their own, which the first kind moves the same way: it
    /// does not come back to where they can be before it has gone all the way round.
    fn passed_once(&self, work: &mut Work<'_, '_>, branches: &Branches) -> Option<Count> {
        let &Self { blocks, head, base, assumption } = self;
        let mut tried = 0;
        for &(block, [one, other]) in branches {
            if !is_passed_once(work, blocks, head, block) {
                continue;
            }
            tried += 1;
            if tried > MOST_BRANCHES || work.budget == 0 {
                return None;
            }
            let ones = remaining(work, blocks, head, base, assumption, &[other]);
            let others = remaining(work, blocks, head, base, assumption, &[one]);
            for (paid, free, shut) in [(&ones, &others, one), (&others, &ones, other)] {
                let (Some(_), Some(again)) = (paid.count, &free.again) else { continue };
                // Those that follow one another begin as the one before has left things.
                let in_a_row = remaining(work, blocks, head, &next(work, head, again), assumption, &[shut]);
                let counts = counts_both(work, paid, free, &in_a_row);
                if counts.is_some() {
                    return counts;
                }
            }
        }
        None
    }

    /// Ways behind branches that rounds may pass as often as they like, in loops inside too: each time that one of them is gone a register pays for
    /// it, and nothing gives back what was paid.
    fn paid(&self, work: &mut Work<'_, '_>, branches: &Branches) -> Option<Paid> {
        let graph = work.body.graph;
        let mut times = |ways: &[(u32, u32)]| {
            let edge_cost = |from: u32, to: u32| ways.contains(&(from, to)).then_some(EdgeCost::Round(1));
            let payers = Payers { blocks: self.blocks, head: self.head, base: &self.base.0, not_zero: None, rounds: u64::MAX };
            payers.pay(work, &edge_cost).map(|fall| fall.span)
        };
        let mut paid = Paid { edges: Vec::new(), ways: Vec::new(), times: 0 };
        for &(block, both) in branches.iter().take(MOST_BRANCHES) {
            for edge in both {
                let way = (block, graph.edges(block)[edge - graph.first_edge(block)].to);
                if times(&[way]).is_some() {
                    paid.edges.push(edge);
                    paid.ways.push(way);
                }
            }
        }
        paid.times = if paid.ways.is_empty() { None } else { times(&paid.ways) }?;
        Some(paid)
    }

    /// Rounds that go none of these ways are counted among themselves, between two that do.
    fn between(&self, work: &mut Work<'_, '_>, paid: &Paid) -> Option<Count> {
        let &Self { blocks, head, base, assumption } = self;
        let mut free = remaining(work, blocks, head, base, assumption, &paid.edges);
        if let (None, Some(again)) = (free.count, free.again.clone()) {
            // Those that follow one another begin as the one before has left things.
            free = remaining(work, &free.blocks, head, &next(work, head, &again), assumption, &paid.edges);
        }
        let (in_a_row, count) = if free.blocks.is_empty() { (0, NEVER) } else { free.count.map(|count| (count.rounds, count))? };
        let rounds = (paid.times + 1).saturating_mul(in_a_row + 1);
        (rounds <= MOST_TOGETHER).then_some(Count { rounds, slot: u32::MAX, step: 1, ..count })
    }
}

/// What registers hold where a round begins that comes after one which leaves them so. What was named at the beginning of that one is another
/// value by now.
fn next(work: &Work<'_, '_>, head: u32, again: &State) -> (State, bool) {
    let (mut again, names) = (again.clone(), work.slice.names_at(head));
    again.age(|old| names.contains(&u64::from(old)));
    (again, true)
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
fn counts_both(work: &Work<'_, '_>, paid: &Remaining, free: &Remaining, in_a_row: &Remaining) -> Option<Count> {
    let (pays, runs) = (paid.count?, in_a_row.count?);
    let moves = |left: &Remaining, slot: u32| {
        let value = left.again.as_ref()?.get(slot)?;
        value.delta.filter(|delta| delta.slot == slot).map(Delta::plain)
    };
    let kept = moves(free, pays.slot)?;
    let is_kept = if pays.signed { kept.signed } else { kept.unsigned } && if pays.rises { kept.lo >= 0 } else { kept.hi <= 0 };
    // Between two rounds that pay there are so many free ones; and in all, if the others do not bring their register back.
    // The first free round behind one that pays is none of those in a row. There are as many of them as of the others.
    let onward = |delta: &Delta| if runs.rises { delta.lo >= 0 } else { delta.hi <= 0 };
    let rounds = match (moves(in_a_row, runs.slot), moves(paid, runs.slot), moves(free, runs.slot).filter(onward)) {
        (Some(slow), Some(fast), Some(first)) if if runs.rises { fast.lo > 0 } else { fast.hi < 0 } => {
            let way = |delta: Delta, rounds: u64| u128::from(delta.farthest()?).checked_mul(u128::from(rounds) + 1);
            let ways = [way(fast, pays.rounds), way(first, pays.rounds), way(slow, runs.rounds), way(slow, runs.rounds)];
            let all = ways.into_iter().try_fold(0_u128, |all, way| all.checked_add(way?));
            let is_short = all.is_some_and(|all| all < 1 << work.slice.slots[runs.slot as usize].1.min(64));
            is_short.then_some(pays.rounds.saturating_mul(2).saturating_add(runs.rounds).saturating_add(3))
        }
        _ => None,
    };
    let rounds = rounds.unwrap_or((pays.rounds + 1).saturating_mul(runs.rounds + 1));
    (is_kept && rounds <= MOST_TOGETHER).then_some(Count { rounds, slot: u32::MAX, step: 1, ..pays })
}
