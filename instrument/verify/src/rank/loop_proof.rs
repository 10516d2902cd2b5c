//! The loops of one function, and what can be proved of each.
//!
//! An infinite run of a function, its callees returning, passes some set of blocks for ever: a strongly connected set S. For each loop, a
//! head and the strongly connected set around it, it is shown that no S that holds the head can be passed for ever once the flag says stop;
//! then the head is taken out, and what is still strongly connected inside is a loop of its own. That this is enough: each S lies in one
//! of the sets and holds its head, or else lies in a set inside.
//!
//! To show it for one head, a round is followed from the head, with whatever any earlier round may have left in registers (`base`), under
//! the assumption that the flag holds the launch's number. Since S is passed for ever, every edge of S is passed in rounds that begin after
//! the host wrote the flag; edges that no such round can pass are not in S. What is left around the head must be empty, or a register must
//! rise or fall in each round without wrapping, within bounds that hold in any round.

use crate::interpret::parameters::Returns;
use crate::interpret::loop_invariant::{entries, follow};
use crate::interpret::body::Body;
use crate::rank::min_max_cases::by_cases;
use crate::rank::linear::{Count, NEVER, count};
use crate::interpret::fixpoint::{Choice, Found, MOST_BACK, Pass, Toll};
use crate::rank::phases::{Fork, fork};
use crate::program::cfg::{Components, Graph};
use crate::rank::logarithmic::halved;
use crate::program::instruction::Operand;
use crate::rank::precision::{Earlier, open};
use crate::domain::interval::Range;
use crate::rank::shared::{Shared, share};
use crate::domain::delta::Since;
use crate::interpret::slice::{Slice, Step};
use crate::domain::state::State;
use crate::domain::value::{Assumption, FIRST_NAME, Kind, MOST_TICKS, Name, Value};
use crate::rank::wrapping::{self, wraps};
use std::cell::Cell;
use std::collections::BTreeMap;

/// Looks at blocks and steps, in multiples of a set's size, before a proof is given up.
const PATIENCE: usize = 60;
/// And looks that any set is worth.
const LOOKS: usize = 200_000;
/// Looks that it is worth to tell a loop's rounds apart, in multiples of those at the loop itself, and beside them. Of the loops of this repository's
/// kernels that are proved so none needs more than four times as many.
const FORK_TIMES: usize = 8;
const FORK_LOOKS: usize = 500;
/// Deepest chain of loops within loops that is followed.
const DEEPEST: usize = 50;
/// Blocks and edges that are looked at for which loops lie within others: so many, and in multiples of a set's blocks and edges.
const STRUCTURE: usize = 1 << 20;
const STRUCTURE_BLOCKS: usize = 2 * DEEPEST;
const STRUCTURE_EDGES: usize = 4;

/// What is proved of a loop, without what loops inside add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// No round goes on once the flag says stop.
    Polled,
    /// At most so many rounds go on after that.
    PolledWithin(Count),
    /// At most so many rounds, whatever the flag says.
    Counted(Count),
    /// A clock ends it: once it has gone on for so many ticks at most so many rounds come back.
    Clock { ticks: u64, rounds: u64 },
    /// Threads go on when the flag says stop, but under `trap` they trap.
    TrapOnly,
    /// Nothing.
    None(Why),
}

/// Why there is no proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// Some round neither asks nor counts.
    NoPoll,
    /// Some round asks for the flag and goes on.
    GoesOn,
    /// The proof was given up: too large.
    TooLarge,
    /// Too deep in other loops to be looked at, with all loops inside.
    TooDeep,
}

/// A loop of the function.
#[derive(Debug)]
pub(crate) struct Round {
    /// The block that rounds begin at.
    pub(crate) head: u32,
    /// All blocks of it, sorted.
    pub(crate) blocks: Vec<u32>,
    /// Those that a round without end may pass, sorted; empty if there is none.
    pub(crate) left: Vec<u32>,
    /// A register that is not zero where such a round begins, as a slot: see [`remaining`].
    pub(crate) not_zero: Option<u32>,
    /// Whether what is proved is of the rounds of all loops inside, too: see [`Left::together`].
    pub(crate) together: bool,
    /// See [`Left::begun`].
    pub(crate) begun: bool,
    /// Index of the loop around it.
    pub(crate) parent: Option<usize>,
    pub(crate) proof: Proof,
    /// Loops inside whose rounds one register counts together with those of this one.
    pub(crate) shared: Option<Shared>,
    /// Slots that do not rise in any of its rounds, if that is known: others pay for nothing.
    pub(crate) falls: Option<Vec<u32>>,
    /// Depth of nesting, from 0.
    pub(crate) depth: usize,
}

/// The strongly connected sets of a function that its entry reaches, in topological order.
pub(crate) fn connected(graph: &Graph, place: &[u32], components: &mut Components) -> Vec<Vec<u32>> {
    let mut nodes: Vec<u32> = (0..graph.blocks.len() as u32).filter(|block| place[*block as usize] != u32::MAX).collect();
    nodes.sort_by_key(|block| place[*block as usize]);
    let mut sets = components.find(graph.blocks.len(), &nodes, |block, nth| graph.edges(block).get(nth as usize).map(|edge| Some(edge.to)));
    sets.reverse();
    for set in &mut sets {
        set.sort_unstable();
    }
    sets
}

/// Most registers that are tried for one that is zero only where a round ends the loop.
pub(crate) const MOST_TRIED: usize = 8;

/// Scratch space for one function.
pub(crate) struct Work<'w, 'a> {
    pub(crate) body: &'w Body<'a>,
    pub(crate) slice: &'w Slice<'a>,
    pub(crate) place: &'w [u32],
    /// `u32::MAX` for each block of the function, but while a pass is under way.
    pub(crate) position: &'w mut Vec<u32>,
    pub(crate) components: &'w mut Components,
    pub(crate) returns: &'w Returns<'w>,
    /// Looks left.
    pub(crate) budget: usize,
    /// Whether something was asked since this was set to false that the action decides.
    pub(crate) asks_action: bool,
}

/// The loops of a set, with the registers, and sums of them, that are followed, and the blocks that are followed for what registers hold: the set's, and some
/// in front of it.
pub(crate) fn rounds_by<'a>(
    body: &mut Body<'a>,
    place: &[u32],
    (set, wide): (&[u32], &[u32]),
    slice: &Slice<'a>,
    (components, position): (&mut Components, &mut Vec<u32>),
    (returns, earlier): (&Returns<'_>, Option<&Earlier>),
) -> Vec<Round> {
    let mut work = Work { body, slice, place, position, components, returns, budget: allotted(wide, slice), asks_action: false };
    let base = follow(&mut work, wide);
    let inner_entries = entries(body, place, set);
    let base_of = |head: u32| {
        let at = base.order.binary_search_by_key(&place[head as usize], |block| place[*block as usize]).ok();
        at.and_then(|at| base.states[at].clone())
    };
    // Where a loop comes round, rather than is entered; rounds without end begin so but for the first.
    let again_of = |head: u32, blocks: &[u32]| {
        let is_member = |block: &u32| blocks.binary_search(block).is_ok();
        let all_back = |block: &u32| place[*block as usize] >= place[head as usize];
        let sources = body.graph.sources(head);
        if sources.len() > MOST_BACK || !sources.iter().filter(|block| is_member(block)).all(all_back) {
            return Some((base_of(head)?, false));
        }
        let mut states = base.back.range((head, 0)..=(head, u32::MAX)).filter(|((_, from), _)| is_member(from)).map(|(_, state)| state);
        let first = states.next()?.clone();
        Some((states.fold(first, |known, state| known.join(state, slice, Some(head))), true))
    };
    let known = Known { order: &base.order, base_of: &base_of, again_of: &again_of };
    let mut found = nest(&mut work, set, &inner_entries, &known, earlier);
    if slice.is_close || open(&found) == 0 {
        share(&mut work, &mut found, &known);
    }
    base.note(body);
    if let Some(Round { proof: Proof::Counted(count), .. }) = found.first() {
        let mut inside: Vec<u32> = found[1..].iter().flat_map(|inner| inner.blocks.iter().copied()).collect();
        inside.sort_unstable();
        body.note_counted(set, inside, count.rounds);
    }
    found
}

/// Looks that a set is worth.
pub(crate) fn allotted(set: &[u32], slice: &Slice<'_>) -> usize {
    LOOKS + PATIENCE * (set.len() + slice.steps.len())
}

/// See [`Known::again_of`].
pub(crate) type AgainOf<'k> = dyn Fn(u32, &[u32]) -> Option<(State, bool)> + 'k;

/// What registers hold, whatever the flag says.
pub(crate) struct Known<'k> {
    /// The blocks that were followed for it, in a reverse postorder.
    pub(crate) order: &'k [u32],
    /// At the beginning of a block.
    pub(crate) base_of: &'k dyn Fn(u32) -> Option<State>,
    /// At the head of a loop of these blocks where it comes round; and whether it is that, rather than whenever it is reached.
    pub(crate) again_of: &'k AgainOf<'k>,
}

/// Loop by loop, from the outside in.
fn nest(work: &mut Work<'_, '_>, set: &[u32], entries: &[u32], known: &Known<'_>, earlier: Option<&Earlier>) -> Vec<Round> {
    let mut found: Vec<Round> = Vec::new();
    let kept = work.budget / 2;
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
        let head = blocks.iter().copied().filter(is_entry).min_by_key(|block| work.place[*block as usize]).unwrap_or(blocks[0]);
        let before = earlier.and_then(|earlier| earlier.proof(found.len(), head, &blocks, work.slice));
        let unknown = |why: Why| (Proof::None(why), Left { blocks: blocks.clone(), ..Left::default() });
        let (proof, left) = match before.map_or_else(|| Err((known.again_of)(head, &blocks)), Ok) {
            _ if is_too_deep => unknown(Why::TooDeep),
            Ok(before) => before,
            // No round that begins here can be reached.
            Err(None) => (Proof::Counted(NEVER), Left::default()),
            Err(Some(_)) if work.budget == 0 => unknown(Why::TooLarge),
            Err(Some(base)) => {
                let (proof, left) = match prove(work, &blocks, head, &base) {
                    (Proof::None(why), left) if work.slice.is_close && work.budget > kept => {
                        // Cases leave enough to look at each loop without them.
                        work.budget -= kept;
                        let proved = by_cases(work, known, &blocks, head);
                        work.budget += kept;
                        proved.unwrap_or((Proof::None(why), left))
                    }
                    proved => proved,
                };
                (proof, Left { begun: base.1, ..left })
            }
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
        let does_fall = |(slot, value): (u32, &Value)| {
            let since = value.since.filter(|since| since.slot == slot).map(Since::plain)?;
            (since.hi <= 0).then_some(slot)
        };
        found.push(Round {
            head,
            blocks,
            falls: left.again.as_ref().map(|again| again.iter().filter_map(does_fall).collect()),
            left: left.blocks,
            not_zero: left.not_zero,
            together: left.together,
            begun: left.begun,
            parent,
            proof,
            shared: None,
            depth,
        });
    }
    found
}

/// How control is followed: see [`Pass`].
pub(crate) struct Way<'w> {
    pub(crate) head: Option<u32>,
    pub(crate) choice: Option<Choice>,
    pub(crate) assumption: Assumption,
    pub(crate) closed: &'w dyn Fn(usize) -> bool,
    pub(crate) toll: &'w dyn Fn(u32, u32) -> Option<Toll>,
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
        for block in order {
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
            head: way.head,
            choice: way.choice,
            toll: way.toll,
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

/// What is left around a head under an assumption.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) blocks: Vec<u32>,
    pub(crate) asks: bool,
    pub(crate) count: Option<Count>,
    /// Values with which the head is reached again.
    pub(crate) again: Option<State>,
    /// Registers that move by the same number in each round that comes back: see [`wrapping::steps`].
    pub(crate) steps: Vec<(u32, i64)>,
    /// A register that is not zero at the head in any round that comes back.
    pub(crate) not_zero: Option<u32>,
    /// Whether the count is of the rounds of all loops inside, too, all together.
    pub(crate) together: bool,
    /// Whether that is said of rounds that another one went before: the first may pass any block.
    pub(crate) begun: bool,
}

/// What is proved of a loop by what registers hold where its rounds begin.
pub(crate) fn prove(work: &mut Work<'_, '_>, blocks: &[u32], head: u32, base: &(State, bool)) -> (Proof, Left) {
    let asked = Assumption { asked: true, ..Assumption::default() };
    let before = work.budget;
    work.asks_action = false;
    let left = remaining(work, blocks, head, base, asked, &[]);
    let (asks_action, spent) = (work.asks_action, before - work.budget);
    // Where no poll is passed the flag does not matter.
    match (left.blocks.is_empty(), left.count) {
        (true, _) if left.asks => return (Proof::Polled, left),
        // Where it is looked at from rounds that another one went before, that one has come back.
        (true, _) => return (Proof::Counted(Count { rounds: u64::from(base.1), ..NEVER }), left),
        (false, Some(count)) if left.asks => return (Proof::PolledWithin(count), left),
        (false, Some(count)) => return (Proof::Counted(count), left),
        (false, None) => {}
    }
    if let Some(timed) = by_clock(work, &left.blocks, head, base) {
        return timed;
    }
    if !work.slice.is_close {
        // A closer look follows.
        return (Proof::None(Why::NoPoll), left);
    }
    // Where only the action decides which way a round goes, it is soon found.
    if asks_action || work.budget <= spent {
        let trap = remaining(work, blocks, head, base, Assumption { trap: true, ..asked }, &[]);
        if trap.blocks.is_empty() || trap.count.is_some() {
            return (Proof::TrapOnly, left);
        }
    } else {
        // It would come to the same.
        work.budget -= spent;
    }
    // Where rounds can be told apart that is found soon; where they can't, each branch is tried for nothing.
    let mut told_apart = |assumption: Assumption| {
        let kept = work.budget;
        work.budget = kept.min((spent * FORK_TIMES + FORK_LOOKS) * if assumption.trap { 4 } else { 1 });
        let allowed = work.budget;
        let forked = fork(work, &Fork { blocks: &left.blocks, head, base, assumption });
        work.budget = kept - (allowed - work.budget);
        forked
    };
    if let Some((count, together)) = told_apart(asked) {
        let count = Count { rounds: count.rounds.saturating_add(u64::from(base.1)), ..count };
        return (Proof::PolledWithin(count), Left { together, ..left });
    }
    if asks_action && told_apart(Assumption { trap: true, ..asked }).is_some() {
        return (Proof::TrapOnly, left);
    }
    if work.budget == 0 {
        return (Proof::None(Why::TooLarge), left);
    }
    (Proof::None(if left.asks { Why::GoesOn } else { Why::NoPoll }), left)
}

/// What is proved of a loop that reads a clock, by how far that has gone on: in as few ticks as possible, up to a power of two.
fn by_clock(work: &mut Work<'_, '_>, blocks: &[u32], head: u32, base: &(State, bool)) -> Option<(Proof, Left)> {
    let mut steps = blocks.iter().flat_map(|block| &work.slice.steps[work.slice.steps(*block)]);
    if !steps.any(reads_clock) {
        return None;
    }
    let mut after = |ticks: u64| {
        let late = Assumption { asked: true, late: ticks, trap: false };
        let left = remaining(work, blocks, head, base, late, &[]);
        let rounds = if left.blocks.is_empty() { Some(u64::from(base.1)) } else { left.count.map(|count| count.rounds) };
        rounds.map(|rounds| (Proof::Clock { ticks, rounds }, left))
    };
    let mut found = after(MOST_TICKS)?;
    let (mut least, mut most) = (0, MOST_TICKS.ilog2());
    while least < most {
        let middle = u32::midpoint(least, most);
        match after(1 << middle) {
            Some(sooner) => (found, most) = (sooner, middle),
            None => least = middle + 1,
        }
    }
    Some(found)
}

fn reads_clock(step: &Step<'_>) -> bool {
    matches!(step.instruction.rest[..], [Operand::Name("%globaltimer" | "%clock64")])
}

/// The same without these edges.
///
/// A strip's price is taken off an allowance that stops at zero, so that it falls in each round or is zero where the next one begins. If no
/// round that begins with zero there comes back, those that go on for ever begin with something else, and in them it has fallen.
pub(crate) fn remaining(
    work: &mut Work<'_, '_>,
    blocks: &[u32],
    head: u32,
    base: &(State, bool),
    assumption: Assumption,
    shut: &[usize],
) -> Left {
    let left = remaining_from(work, blocks, head, base, (assumption, shut), None);
    if left.count.is_some() || left.blocks.is_empty() {
        return left;
    }
    for slot in left.again.as_ref().map_or_else(Vec::new, |again| may_stop_at_zero(again, 1)) {
        let Some(ended) = ends_at_zero(work, &left.blocks, head, base, (assumption, shut), slot) else { continue };
        let others = remaining_from(work, &left.blocks, head, base, (assumption, shut), Some(slot));
        if others.count.is_some() || others.blocks.is_empty() {
            return Left { asks: left.asks || ended.asks || others.asks, ..others };
        }
    }
    let count = left.again.as_ref().and_then(|again| halved(work, (&left.blocks, head), base, (assumption, shut), again));
    let count = count.or_else(|| wraps(work, (&left.blocks, head), base, (assumption, shut), &left.steps));
    Left { count, ..left }
}

/// Registers that fall by so much in each round, or are zero where the next one begins.
pub(crate) fn may_stop_at_zero(again: &State, least: i64) -> Vec<u32> {
    let falls = |(slot, value): (u32, &Value)| match value.kind {
        Kind::Saturated(since, _) => (since.slot == slot && since.unsigned && since.plain().hi <= -least).then_some(slot),
        _ => None,
    };
    again.iter().filter_map(falls).take(MOST_TRIED).collect()
}

/// Rounds that begin with zero in a register, if none of them comes back.
pub(crate) fn ends_at_zero(
    work: &mut Work<'_, '_>,
    blocks: &[u32],
    head: u32,
    base: &(State, bool),
    assumption: (Assumption, &[usize]),
    slot: u32,
) -> Option<Left> {
    let width = work.slice.slots[slot as usize].1.clamp(1, 64);
    let mut zero = base.0.clone();
    zero.set(slot, Value::of(Range::constant(0, width)));
    let ended = remaining_from(work, blocks, head, &(zero, base.1), assumption, None);
    (ended.blocks.is_empty() && work.budget > 0).then_some(ended)
}

/// Takes a register to be something else than zero; false if it can't be.
pub(crate) fn is_not_zero(slice: &Slice<'_>, slot: u32, state: &mut State) -> bool {
    let width = slice.slots[slot as usize].1.clamp(1, 64);
    let mut value = state.get(slot).copied().unwrap_or_else(|| Value::unknown(width));
    let can_be = value.meet(Range::between(1, Range::full(width).unsigned(width).hi, width), width);
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
) -> Left {
    let mut base = base.clone();
    if not_zero.is_some_and(|slot| !is_not_zero(work.slice, slot, &mut base)) {
        return Left::default();
    }
    let base = &base;
    let start = begin(work, head, base);
    let graph = work.body.graph;
    let place = work.place;
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
        order.sort_by_key(|block| (*block != head, place[*block as usize]));
        let closed = |edge: usize| shut.contains(&edge) || open.as_ref().is_some_and(|open| open.binary_search(&edge).is_err());
        let way = Way { head: Some(head), choice: None, assumption, closed: &closed, toll: &|_, _| None };
        let (found, counted, steps) = work.pass(&order, &[(head, start.clone())], &way, |mut found, pass| {
            found.leave_out_zero(pass.slice, not_zero);
            let counted = count(pass, &found, base, *begun);
            let steps = wrapping::steps(&found);
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
        let Some(mut around) = sets.into_iter().find(|set| set.contains(&head)) else { return Left { asks, ..Left::default() } };
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
            return Left { blocks: around, asks, count: counted, again: found.again, steps, not_zero, ..Left::default() };
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
        start.set(slot, Value { since: Some(Since::start(slot)), ..value });
    }
    if work.slice.is_close {
        start.rename(|name| names.get(&name).copied().unwrap_or(name));
    }
    start
}
