//! The loop nesting forest: the loops of a strongly connected set, from the outside in.

use crate::domain::delta::Delta;
use crate::domain::state::State;
use crate::domain::value::{Assumption, Value};
use crate::interpret::body::Body;
use crate::interpret::counted_inside::CountedInside;
use crate::interpret::edge_cost::{Count, NEVER};
use crate::interpret::loop_invariant::{entries, follow};
use crate::interpret::parameters::Returns;
use crate::interpret::pass::MOST_BACK;
use crate::interpret::slice::Slice;
use crate::interpret::work::{LOOKS, MORE, Work, allotted};
use crate::program::cfg::{Components, Graph};
use crate::program::instruction::Register;
use crate::rank::loop_proof::prove;
use crate::rank::loops::{Known, LoopProof, Proof, Why};
use crate::rank::min_max_cases::by_cases;
use crate::rank::poll_order::is_passed_once;
use crate::rank::ranking::remaining;
use crate::rank::remaining::Remaining;
use crate::rank::shared::share;
use crate::rank::unrolled::is_counted_otherwise;

/// Deepest chain of loops within loops that is followed.
const DEEPEST: usize = 50;

/// Blocks and edges that are looked at for which loops lie within others: so many, and in multiples of a set's blocks and edges.
const STRUCTURE: usize = 1 << 20;

const STRUCTURE_BLOCKS: usize = 2 * DEEPEST;

const STRUCTURE_EDGES: usize = 4;

/// The strongly connected sets of a function that its entry reaches, in topological order.
pub(crate) fn connected(graph: &Graph, rpo: &[u32], components: &mut Components) -> Vec<Vec<u32>> {
    let mut nodes: Vec<u32> = (0..graph.blocks.len() as u32).filter(|block| rpo[*block as usize] != u32::MAX).collect();
    nodes.sort_by_key(|block| rpo[*block as usize]);
    let mut sets = components.find(graph.blocks.len(), &nodes, |block, nth| graph.edges(block).get(nth as usize).map(|edge| Some(edge.to)));
    sets.reverse();
    for set in &mut sets {
        set.sort_unstable();
    }
    sets
}

/// The loops of a set, with the registers, and sums of them, that are followed, and the blocks that are followed for what registers hold: the set's, and some
/// in front of it.
pub(crate) fn rounds_by<'a>(
    body: &mut Body<'a>,
    rpo: &[u32],
    (set, wide): (&[u32], &[u32]),
    slice: &Slice<'a>,
    (components, position): (&mut Components, &mut Vec<u32>),
    (returns, earlier, is_last): (&Returns<'_>, Option<&Earlier>, bool),
) -> Vec<LoopProof> {
    let counted = earlier.map_or_else(Vec::new, |earlier| earlier.counted(body.graph, slice));
    let budget = allotted(wide, slice);
    let mut work = Work { body, slice, rpo, position, components, returns, counted: &counted, is_last, budget, asks_action: false };
    let base = follow(&mut work, wide);
    let inner_entries = entries(body, rpo, set);
    let base_of = |head: u32| {
        let at = base.order.binary_search_by_key(&rpo[head as usize], |block| rpo[*block as usize]).ok();
        at.and_then(|at| base.states[at].clone())
    };
    // Where a loop comes round, rather than is entered; rounds without end begin so but for the first.
    let again_of = |head: u32, blocks: &[u32]| {
        let is_member = |block: &u32| blocks.binary_search(block).is_ok();
        let all_back = |block: &u32| rpo[*block as usize] >= rpo[head as usize];
        let sources = body.graph.sources(head);
        if sources.len() > MOST_BACK || !sources.iter().filter(|block| is_member(block)).all(all_back) {
            // Part of a round may come first: where it is entered elsewhere, or behind a poll.
            return base_of(head);
        }
        let mut states = base.back.range((head, 0)..=(head, u32::MAX)).filter(|((_, from), _)| is_member(from)).map(|(_, state)| state);
        let first = states.next()?.clone();
        Some(states.fold(first, |known, state| known.join(state, slice, Some(head))))
    };
    let known = Known { order: &base.order, base_of: &base_of, again_of: &again_of };
    let mut found = nest(&mut work, set, &inner_entries, &known, earlier);
    if slice.is_close || open(&found) == 0 {
        share(&mut work, &mut found, &known);
    }
    base.note(body);
    if let Some(LoopProof { proof: Proof::Counted(count), .. }) = found.first() {
        let mut inside: Vec<u32> = found[1..].iter().flat_map(|inner| inner.blocks.iter().copied()).collect();
        inside.sort_unstable();
        body.note_counted(set, inside, count.rounds);
    }
    found
}

/// How many looks a set has that may get more: a smaller one has many for each of its blocks.
const LEAST_FOR_MORE: usize = 2 * LOOKS;

/// Looks that a set gets beyond those that it is worth: where most loops that these went into were proved, the next ones may be, too.
struct More {
    times: usize,
    /// Loops that were looked at since the last ones were given, and how many of them were proved.
    looked: usize,
    proved: usize,
}

impl More {
    /// Gives a set that has used up its looks more of them, if that is worth it.
    fn grant(&mut self, work: &mut Work<'_, '_>, set: &[u32]) -> bool {
        let looks = allotted(set, work.slice);
        let is_worth_it = work.slice.is_close && looks > LEAST_FOR_MORE && self.times > 0 && self.proved * 2 > self.looked;
        if is_worth_it {
            work.budget = looks;
            *self = Self { times: self.times - 1, looked: 0, proved: 0 };
        }
        is_worth_it
    }
}

/// The proof of one loop by what registers hold where it comes round.
fn look_at(work: &mut Work<'_, '_>, known: &Known<'_>, (blocks, head): (&[u32], u32), base: State, kept: usize) -> (Proof, Remaining) {
    let base = (base, true);
    let (proof, left) = match prove(work, blocks, head, &base) {
        (Proof::None(why), left) if work.slice.is_close && work.budget > kept => {
            // Cases leave enough to look at each loop without them.
            work.budget -= kept;
            let proved = by_cases(work, known, blocks, head);
            work.budget += kept;
            proved.unwrap_or((Proof::None(why), left))
        }
        proved => proved,
    };
    let begun = proof != Proof::Polled || !is_passed_once(work, blocks, head, known);
    (proof, Remaining { begun, ..left })
}

/// Loop by loop, from the outside in.
fn nest(work: &mut Work<'_, '_>, set: &[u32], entries: &[u32], known: &Known<'_>, earlier: Option<&Earlier>) -> Vec<LoopProof> {
    let mut found: Vec<LoopProof> = Vec::new();
    let kept = work.budget / 2;
    let mut more = More { times: MORE, looked: 0, proved: 0 };
    let mut waiting: Vec<(Vec<u32>, Option<usize>, usize)> = vec![(set.to_vec(), None, 0)];
    let graph = work.body.graph;
    let edges_of = |blocks: &[u32]| blocks.iter().map(|block| graph.edges(*block).len()).sum::<usize>();
    let mut structure = STRUCTURE + STRUCTURE_BLOCKS * set.len() + STRUCTURE_EDGES * edges_of(set);
    while let Some((blocks, parent, depth)) = waiting.pop() {
        let cost = blocks.len() + edges_of(&blocks);
        let is_too_deep = depth > DEEPEST || depth > 0 && structure < cost;
        structure = structure.saturating_sub(cost);
        work.budget = work.budget.saturating_sub(blocks.len());
        let is_member = |block: u32| blocks.binary_search(&block).is_ok();
        let is_entry = |block: &u32| {
            if parent.is_none() { entries.contains(block) } else { graph.sources(*block).iter().any(|source| !is_member(*source)) }
        };
        let head = blocks.iter().copied().filter(is_entry).min_by_key(|block| work.rpo[*block as usize]).unwrap_or(blocks[0]);
        let before = earlier.and_then(|earlier| earlier.proof(found.len(), head, &blocks, work.slice));
        let unknown = |why: Why| (Proof::None(why), Remaining { blocks: blocks.clone(), ..Remaining::default() });
        let (proof, left) = match before.map_or_else(|| Err((known.again_of)(head, &blocks)), Ok) {
            _ if is_too_deep => unknown(Why::TooDeep),
            Ok(before) => before,
            // No round that begins here can be reached.
            Err(None) => (Proof::Counted(NEVER), Remaining::default()),
            Err(Some(_)) if work.budget == 0 && !more.grant(work, set) => unknown(Why::TooLarge),
            Err(Some(base)) => {
                let mut looked = look_at(work, known, (&blocks, head), base.clone(), kept);
                if looked.0 == Proof::None(Why::TooLarge) && more.grant(work, set) {
                    looked = look_at(work, known, (&blocks, head), base, kept);
                }
                more.looked += 1;
                more.proved += usize::from(!matches!(looked.0, Proof::None(_)));
                looked
            }
        };
        // What no thread comes to has no rounds, however ptxas counts them.
        let is_reached = (known.base_of)(head).is_some();
        let (proof, left) = if is_reached { trusted(work.body, &blocks, (proof, left)) } else { (proof, left) };
        let ends = match proof {
            Proof::Counted(count) => Some(count.rounds),
            // What it does to registers may say when the loop around it ends.
            Proof::PolledWithin(_) if parent.is_some_and(|parent| is_open(&found[parent])) => ends(work, known, &blocks, head),
            _ => None,
        };
        let index = found.len();
        // What lies inside a loop that is too deep is part of that one's verdict. Of every other loop each one inside is looked at, or said not to be.
        let sets = if is_too_deep {
            Vec::new()
        } else {
            let inside: Vec<u32> = blocks.iter().copied().filter(|block| *block != head).collect();
            work.components.find(graph.blocks.len(), &inside, |block, nth| {
                graph.edges(block).get(nth as usize).map(|edge| (edge.to != head && is_member(edge.to)).then_some(edge.to))
            })
        };
        for mut inner in sets {
            inner.sort_unstable();
            waiting.push((inner, Some(index), depth + 1));
        }
        found.push(LoopProof {
            head,
            blocks,
            falls: left.again.as_ref().map(falls),
            left: left.blocks,
            not_zero: left.not_zero,
            together: left.together,
            begun: left.begun,
            parent,
            proof,
            ends,
            shared: None,
            depth,
        });
    }
    found
}

/// What is proved of a loop, if ptxas counts its rounds so.
fn trusted(body: &Body<'_>, blocks: &[u32], (proof, left): (Proof, Remaining)) -> (Proof, Remaining) {
    match proof {
        Proof::Counted(count) if is_counted_otherwise(body, blocks, count.rounds) => {
            (Proof::None(Why::Unrolled), Remaining { blocks: blocks.to_vec(), ..Remaining::default() })
        }
        _ => (proof, left),
    }
}

/// At most how many rounds of a loop come back whatever the flag says.
fn ends(work: &mut Work<'_, '_>, known: &Known<'_>, blocks: &[u32], head: u32) -> Option<u64> {
    let base = (known.again_of)(head, blocks)?;
    remaining(work, blocks, head, &(base, true), Assumption::default(), &[]).count.map(|count| count.rounds)
}

/// Slots that do not rise where a loop comes round so.
fn falls(again: &State) -> Vec<u32> {
    let does_fall = |(slot, value): (u32, &Value)| {
        let delta = value.delta.filter(|delta| delta.slot == slot).map(Delta::plain)?;
        (delta.hi <= 0).then_some(slot)
    };
    again.iter().filter_map(does_fall).collect()
}

/// How many loops are not proved.
pub(crate) fn open(found: &[LoopProof]) -> usize {
    found.iter().filter(|round| is_open(round)).count()
}

pub(crate) fn is_open(round: &LoopProof) -> bool {
    matches!(round.proof, Proof::None(_))
}

/// What an earlier look at a set has found, and the register of each of its slots.
pub(crate) struct Earlier {
    pub(crate) found: Vec<LoopProof>,
    registers: Vec<Register>,
}

impl Earlier {
    pub(crate) fn new(found: Vec<LoopProof>, slice: &Slice<'_>) -> Self {
        Self { found, registers: slice.slots.iter().map(|(register, _)| *register).collect() }
    }

    /// Loops inside others that end by themselves.
    fn counted(&self, graph: &Graph, slice: &Slice<'_>) -> Vec<CountedInside> {
        let counted = |(index, round): (usize, &LoopProof)| {
            let (Some(rounds), Some(_)) = (round.ends, round.parent) else { return None };
            let inside =
                |block: u32| self.found.iter().any(|inner| inner.parent == Some(index) && inner.blocks.binary_search(&block).is_ok());
            CountedInside::new(graph, slice, round.head, &round.blocks, inside, rounds)
        };
        self.found.iter().enumerate().filter_map(counted).collect()
    }

    /// Blocks of loops that are not proved, sorted.
    pub(crate) fn open_blocks(&self) -> Vec<u32> {
        let rounds = self.found.iter().filter(|round| is_open(round));
        let mut blocks: Vec<u32> = rounds.flat_map(|round| &round.blocks).copied().collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    }

    /// What was proved of a loop, in terms of the slots of now.
    pub(crate) fn proof(&self, number: usize, head: u32, blocks: &[u32], slice: &Slice<'_>) -> Option<(Proof, Remaining)> {
        let known = self.found.get(number).filter(|known| known.head == head && known.blocks == blocks)?;
        let slot = |slot: u32| self.registers.get(slot as usize).and_then(|register| slice.slot_of(*register)).unwrap_or(u32::MAX);
        let counted = |count: Count| Count { slot: slot(count.slot), ..count };
        let proof = match known.proof {
            Proof::Counted(count) => Proof::Counted(counted(count)),
            Proof::PolledWithin(count) => Proof::PolledWithin(counted(count)),
            Proof::Polled | Proof::Clock { .. } => known.proof,
            Proof::TrapOnly | Proof::None(_) => return None,
        };
        let not_zero = known.not_zero.map(slot);
        if not_zero == Some(u32::MAX) {
            return None;
        }
        Some((
            proof,
            Remaining {
                blocks: known.left.clone(),
                not_zero,
                together: known.together.clone(),
                begun: known.begun,
                ..Remaining::default()
            },
        ))
    }
}
