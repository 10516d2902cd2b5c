//! Two phases in a nest: the iterations of all loops counted together, where one register goes on in each of them.
//!
//! A nest may run for free until a register reaches a bound, and pay from then on. Each of its loops adds to that
//! register and compares it with the bound. The free edges of these branches are taken only while the register is
//! within the bound. So they are taken at most as often as the register can be moved there. The paid edges are taken as
//! often as is paid for. Wrapping round is no concern: the register would have to move through all values, and most of
//! that is paid for.

use crate::domain::state::State;
use crate::domain::value::{Assumption, Value};
use crate::interpret::pass::{Found, Pass};
use crate::interpret::work::{Way, Work};
use crate::program::instruction::Operand;

/// Width of a register that is told apart by.
const WIDTH: u8 = 32;

/// A branch, one way of which is paid for.
struct Gate {
    block: u32,
    /// What it compares with a number, as a slot.
    slot: u32,
    /// Both ways, as numbers of edges.
    ways: Vec<usize>,
}

/// What is found behind one way of a gate, up to the next ones.
#[derive(Default)]
struct Behind {
    /// How far the register was moved, at most.
    most: i64,
    /// Where it is, on ways that are not paid for.
    free: Option<(i128, i128)>,
}

/// At most how many rounds of all loops within these blocks there are together.
pub(crate) fn together_in_phases(work: &mut Work<'_, '_>, phases: &Phases<'_>, paid: &Paid) -> Option<u64> {
    let gates = gates(work, phases, paid)?;
    if gates.iter().any(|gate| work.slice.slots[gate.slot as usize].1 != WIDTH) || has_cycle_without(work, phases, &gates) {
        return None;
    }
    let mut all = Behind::default();
    for gate in &gates {
        for way in &gate.ways {
            let behind = behind(work, phases, paid, &gates, (gate, *way))?;
            all.most = all.most.max(behind.most);
            all.free = match (all.free, behind.free) {
                (Some(one), Some(two)) => Some((one.0.min(two.0), one.1.max(two.1))),
                (one, two) => one.or(two),
            };
        }
    }
    let free = all.free.map_or(0, |(lo, hi)| u64::try_from(hi - lo + 1).unwrap_or(u64::MAX));
    let round = (1_u64 << WIDTH).saturating_sub(free) / all.most.max(1).unsigned_abs();
    (round > paid.times + 1).then(|| paid.times + free + 2)
}

/// The branches at which ways begin that are paid for.
fn gates(work: &Work<'_, '_>, phases: &Phases<'_>, paid: &Paid) -> Option<Vec<Gate>> {
    let graph = work.body.graph;
    let mut blocks: Vec<u32> = paid.ways.iter().map(|(block, _)| *block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let gate = |block: u32| {
        let steps = &work.slice.steps[work.slice.steps(block)];
        let at = steps.iter().rposition(|step| step.instruction.op.compares.is_some())?;
        let [Operand::Register(slot), Operand::Number(_)] = steps[at].instruction.rest[..] else { return None };
        let is_kept = steps[at..].iter().all(|step| !step.writes.contains(&slot));
        let edges = graph.edges(block).iter().zip(graph.first_edge(block)..);
        let ways = edges.filter(|(edge, _)| phases.blocks.binary_search(&edge.to).is_ok()).map(|(_, number)| number).collect();
        is_kept.then_some(Gate { block, slot, ways })
    };
    blocks.into_iter().map(gate).collect()
}

/// Whether some cycle passes none of these.
fn has_cycle_without(work: &mut Work<'_, '_>, phases: &Phases<'_>, gates: &[Gate]) -> bool {
    let graph = work.body.graph;
    let is_gate = |block: u32| gates.iter().any(|gate| gate.block == block);
    let nodes: Vec<u32> = phases.blocks.iter().copied().filter(|block| !is_gate(*block)).collect();
    let sets = work.components.find(graph.blocks.len(), &nodes, |node, nth| {
        graph.edges(node).get(nth as usize).map(|edge| nodes.binary_search(&edge.to).is_ok().then_some(edge.to))
    });
    !sets.is_empty()
}

/// Follows control from a gate, one way, to all that come next; none if what they compare may have been moved back since, or not at all.
fn behind(work: &mut Work<'_, '_>, phases: &Phases<'_>, paid: &Paid, gates: &[Gate], (from, way): (&Gate, usize)) -> Option<Behind> {
    let mut order = phases.blocks.to_vec();
    let rpo = work.rpo;
    order.sort_by_key(|block| (*block != from.block, rpo[*block as usize]));
    let closed = |edge: usize| edge != way && gates.iter().any(|gate| gate.ways.contains(&edge));
    let follow = Way::within(from.block, phases.assumption, &closed);
    let slots = work.slice.live(from.block).iter();
    let start = State::new(slots.map(|slot| (*slot, Value::unknown(work.slice.slots[*slot as usize].1.clamp(1, 64)))));
    work.pass(&order, &[(from.block, start)], &follow, |found, pass| {
        let compared = |gate: &Gate, state: &State| state.get(gate.slot).copied();
        let leave = |closed: &dyn Fn(usize) -> bool, gate: &Gate, state: &State| {
            Pass { closed, ..*pass }.leave(gate.block, state.clone(), &mut Found::default())
        };
        let begin = leave(&closed, from, found.states[0].as_ref()?);
        let Some((_, _, begin)) = begin.into_iter().find(|(edge, ..)| *edge == way) else { return Some(Behind::default()) };
        let begin = compared(from, &begin)?.of_names()?;
        let mut behind = Behind::default();
        for gate in gates {
            let at = pass.position[gate.block as usize] as usize;
            let state = if gate.block == from.block { &found.again } else { &found.states[at] };
            let Some(state) = state else { continue };
            for (edge, _, state) in leave(&|_| false, gate, state).into_iter().filter(|(edge, ..)| gate.ways.contains(edge)) {
                let value = compared(gate, &state)?;
                let moved = value.of_names()?.plus(begin, -1)?;
                if moved.parts().next().is_some() || moved.lo < 1 {
                    return None;
                }
                behind.most = behind.most.max(moved.hi);
                if !paid.edges.contains(&edge) {
                    let range = value.range.unsigned(WIDTH);
                    behind.free = Some(behind.free.map_or((range.lo, range.hi), |(lo, hi)| (lo.min(range.lo), hi.max(range.hi))));
                }
            }
        }
        Some(behind)
    })
}

/// A loop whose rounds are of two kinds, and what they are looked at under.
pub(crate) struct Phases<'f> {
    /// What is left of it, sorted.
    pub(crate) blocks: &'f [u32],
    pub(crate) head: u32,
    /// What registers hold at the head: see [`remaining`].
    pub(crate) base: &'f (State, bool),
    pub(crate) assumption: Assumption,
}

/// Ways that some register pays for whenever they are gone.
#[derive(Debug, Clone)]
pub(crate) struct Paid {
    /// Their edges' numbers, and from which block to which they lead.
    pub(crate) edges: Vec<usize>,
    pub(crate) ways: Vec<(u32, u32)>,
    /// How often they are gone in all, at most.
    pub(crate) times: u64,
}
