//! Rounds of loops within loops, counted together.
//!
//! Each loop's own count is found by itself; loops within each other would multiply. Where a register pays for the rounds of several of them, as
//! one allowance does for all loops of an activation, they are no more together than it can pay for.

use crate::rank::linear::{Count, MOST_ROUNDS, MOST_TOGETHER as MOST_ROUNDS_IN_ALL, count_together};
use crate::interpret::fixpoint::Toll;
use crate::rank::loop_proof::{
    Known, Proof, Round, Way, Work, allotted, begin, ends_at_zero, is_not_zero, may_stop_at_zero, remaining, remaining_from,
};
use crate::interpret::slice::{Slice, each_needed};
use crate::domain::state::State;
use crate::domain::value::{Assumption, MOST_TICKS};
use std::collections::BTreeSet;

/// What loops that are counted together are tried to be paid for from, at most.
const MOST_ALLOWED: u64 = 1 << 14;
/// What rounds that go on are looked at under.
const ASKED: Assumption = Assumption { asked: true, late: 0, trap: false };
/// Rounds that are not worth to be counted together.
const MANY: u64 = 1 << 16;
/// Most loops of one set of which some are counted together.
const MOST_TOGETHER: usize = 1000;

/// Rounds that are counted together.
#[derive(Debug)]
pub(crate) struct Shared {
    /// At most so many of the loop itself.
    pub(crate) own: u64,
    /// Heads of the loops inside, and at most how many rounds of each.
    pub(crate) inside: Vec<(u32, u64)>,
    /// Those among them each of whose rounds was paid for beside the rounds of the loop itself: together they are no more than the larger
    /// of both numbers.
    pub(crate) joint: Vec<u32>,
}

impl Shared {
    /// What holds by either.
    fn and(mut self, other: Self) -> Self {
        for (head, rounds) in other.inside {
            match self.inside.iter_mut().find(|(known, _)| *known == head) {
                Some((_, known)) => *known = rounds.min(*known),
                None => self.inside.push((head, rounds)),
            }
        }
        self.joint.extend(other.joint);
        Self { own: self.own.min(other.own), ..self }
    }

    /// At most how many rounds of the loop with that head.
    fn rounds_of(&self, head: u32) -> Option<u64> {
        self.inside.iter().find(|(of, _)| *of == head).map(|(_, rounds)| *rounds)
    }
}

/// How long control may stay in something without a poll: the iterations of the loop that has most, or the calls, and the ticks of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Weight {
    pub(crate) rounds: u64,
    pub(crate) ticks: u64,
}

impl Weight {
    pub(crate) const NOTHING: Self = Self { rounds: 0, ticks: 0 };
    pub(crate) const ONE: Self = Self { rounds: 1, ticks: 0 };

    pub(crate) fn times(self, factor: u64) -> Self {
        Self { rounds: self.rounds.saturating_mul(factor), ticks: self.ticks.saturating_mul(factor) }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { rounds: self.rounds.saturating_add(other.rounds), ticks: self.ticks.saturating_add(other.ticks) }
    }

    pub(crate) fn max(self, other: Self) -> Self {
        Self { rounds: self.rounds.max(other.rounds), ticks: self.ticks.max(other.ticks) }
    }

    /// Whether that is more than the proof lets pass.
    pub(crate) fn is_too_much(self) -> bool {
        self.rounds > MOST_ROUNDS_IN_ALL || self.ticks > MOST_TICKS
    }
}

/// How often each loop of some is entered, and iterated, while one loop around them, or the function, is entered once.
#[derive(Debug)]
pub(crate) struct Passes {
    /// The number of the first loop.
    first: usize,
    entered: Vec<u64>,
    passed: Vec<u64>,
}

impl Passes {
    /// Of a loop and all loops inside; `known` has the same for those that come behind it.
    ///
    /// A loop is entered at most once in an iteration of the one around it, and iterated once more than its rounds come back. What is not among the
    /// blocks that come back is passed in few iterations only: see [`others`].
    fn of(all: &[Round], outer: usize, known: &[Option<Self>]) -> Self {
        let end = (outer + 1..all.len()).find(|next| all[*next].depth <= all[outer].depth).unwrap_or(all.len());
        let mut passes = Self { first: outer, entered: Vec::with_capacity(end - outer), passed: Vec::with_capacity(end - outer) };
        let (left, paid) = (&all[outer].left, all[outer].shared.as_ref());
        let own = iterations(&all[outer]);
        passes.entered.push(1);
        passes.passed.push(paid.map_or(own, |paid| own.min(paid.own.saturating_add(1))));
        // The loop directly inside that is looked at, and loops in it that are counted together with others, from the outside in.
        let (mut child, mut around): (usize, Vec<usize>) = (outer, Vec::new());
        for at in outer + 1..end {
            let round = &all[at];
            let within = |other: usize| known[other].as_ref().map_or(u64::MAX, |known| known.passed(at));
            if round.parent == Some(outer) {
                child = at;
            }
            let entered = passes.entered_in(all, round);
            let mut times = iterations(round).saturating_mul(entered);
            if left.binary_search(&round.head).is_err() {
                times = times.min(within(child).saturating_mul(others(&all[outer])));
            } else if let Some((paid, rounds)) = paid.and_then(|paid| Some((paid, paid.rounds_of(round.head)?))) {
                times = times.min(rounds.saturating_add(entered));
                if paid.joint.contains(&round.head) {
                    times = times.min(rounds.max(paid.own).saturating_add(1));
                }
            }
            around.retain(|other| all[*other].depth < round.depth);
            for other in &around {
                times = times.min(within(*other).saturating_mul(passes.entered(*other)));
            }
            if round.shared.is_some() {
                around.push(at);
                times = times.min(within(at).saturating_mul(entered));
            }
            passes.entered.push(entered);
            passes.passed.push(times);
        }
        passes
    }

    /// How often a loop is entered that lies in one which comes before it.
    fn entered_in(&self, all: &[Round], round: &Round) -> u64 {
        let Some(parent) = round.parent else { return 1 };
        if all[parent].left.binary_search(&round.head).is_ok() {
            self.passed(parent)
        } else {
            self.entered(parent).saturating_mul(others(&all[parent]))
        }
    }

    fn entered(&self, number: usize) -> u64 {
        self.entered[number - self.first]
    }

    pub(crate) fn passed(&self, number: usize) -> u64 {
        self.passed[number - self.first]
    }

    /// How often a block is passed that lies in this loop, and in no other inside.
    pub(crate) fn of_block(&self, all: &[Round], mut number: usize, block: u32) -> u64 {
        let mut times = 1_u64;
        loop {
            if all[number].left.binary_search(&block).is_ok() {
                return times.saturating_mul(self.passed(number));
            }
            times = times.saturating_mul(others(&all[number]));
            match all[number].parent.filter(|_| number > self.first) {
                Some(parent) => number = parent,
                None => return times,
            }
        }
    }

    /// The weight of all these loops together.
    pub(crate) fn weight(&self, all: &[Round]) -> Weight {
        let rounds = self.passed.iter().copied().max().unwrap_or(1);
        let clocks = all[self.first..].iter().zip(&self.entered).filter_map(|(round, entered)| match round.proof {
            Proof::Clock { ticks, .. } => Some(ticks.saturating_mul(*entered)),
            _ => None,
        });
        Weight { rounds, ticks: clocks.max().unwrap_or(0) }
    }
}

/// For each loop how often it and each loop inside is passed without a poll.
pub(crate) fn passes_of(all: &[Round]) -> Vec<Passes> {
    let mut known: Vec<Option<Passes>> = Vec::new();
    known.resize_with(all.len(), || None);
    for number in (0..all.len()).rev() {
        known[number] = Some(Passes::of(all, number, &known));
    }
    known.into_iter().flatten().collect()
}

/// For each loop how long control may stay in it, and the loops inside, without a poll.
pub(crate) fn weights_of(all: &[Round]) -> Vec<Weight> {
    passes_of(all).iter().map(|passes| passes.weight(all)).collect()
}

/// Iterations of the loop in which blocks are passed that are not among those which come back: the last one, and the first where nothing is known of it.
fn others(round: &Round) -> u64 {
    iterations(round).min(1 + u64::from(round.begun))
}

/// Iterations of the loop alone each time that it is entered, without those of loops inside.
fn iterations(round: &Round) -> u64 {
    match round.proof {
        Proof::Counted(count) | Proof::PolledWithin(count) => count.rounds.saturating_add(1),
        Proof::Clock { rounds, .. } => rounds.saturating_add(1),
        _ => 1,
    }
}

/// Iterations of a loop and of those around it, up to one of them, multiplied.
fn product(all: &[Round], inner: usize, outer: usize) -> u64 {
    let mut rounds = iterations(&all[inner]);
    let mut at = inner;
    while at != outer {
        let Some(parent) = all[at].parent else { break };
        at = parent;
        rounds = rounds.saturating_mul(iterations(&all[at]));
    }
    rounds
}

/// Counts the rounds of loops together with those of the loops inside that are polled within some rounds, or that count themselves.
pub(crate) fn share(work: &mut Work<'_, '_>, found: &mut [Round], known: &Known<'_>) {
    if found.len() > MOST_TOGETHER {
        return;
    }
    // What the loops alone used up is not missing here.
    work.budget = work.budget.max(allotted(&found[0].blocks, work.slice));
    for index in 0..found.len() {
        let (Proof::Counted(count) | Proof::PolledWithin(count)) = found[index].proof else { continue };
        let mut inside: Vec<usize> = Vec::new();
        for (number, round) in found.iter().enumerate().skip(index + 1) {
            let is_inside = round.parent == Some(index) || round.parent.is_some_and(|parent| inside.contains(&parent));
            if is_inside {
                inside.push(number);
            }
        }
        let head = found[index].head;
        // What never comes round holds nothing, and what is little needs no closer look.
        let is_many = inside.iter().any(|number| product(found, *number, index) > MANY);
        if !is_many || found[index].left.binary_search(&head).is_err() {
            continue;
        }
        if found[index].together {
            // The last round does not come back, but what is inside it ends by itself.
            let rounds = |inner: &Round| count.rounds.saturating_add(iterations(inner));
            let all = inside.iter().map(|number| (found[*number].head, rounds(&found[*number]))).collect();
            found[index].shared = Some(Shared { own: count.rounds, inside: all, joint: Vec::new() });
            continue;
        }
        let Some(base) = (known.base_of)(head) else { continue };
        let mut outer = Outer { found, index, count, inside: &inside, base, not_zero: found[index].not_zero };
        let mut shared = outer.shared(work, known);
        // What is paid with may stop at zero, too, if that ends all further rounds.
        if work.slice.is_close && outer.not_zero.is_none() && outer.lacks(shared.as_ref()) {
            for slot in outer.stops_at_zero(work) {
                outer.not_zero = Some(slot);
                let more = outer.shared(work, known);
                shared = match (shared, more) {
                    (Some(one), Some(two)) => Some(one.and(two)),
                    (one, two) => one.or(two),
                };
                if !outer.lacks(shared.as_ref()) {
                    break;
                }
            }
        }
        found[index].shared = shared;
    }
}

/// A loop whose rounds are counted together with those inside.
struct Outer<'f> {
    found: &'f [Round],
    index: usize,
    count: Count,
    /// All loops inside.
    inside: &'f [usize],
    /// What registers hold at the head.
    base: State,
    /// A register that is taken to be something else than zero there: see [`remaining`].
    not_zero: Option<u32>,
}

impl Outer<'_> {
    fn round(&self) -> &Round {
        &self.found[self.index]
    }

    /// Whether some loop inside has so many rounds that it should be counted together with this one, and is not.
    fn lacks(&self, shared: Option<&Shared>) -> bool {
        self.inside.iter().any(|number| {
            let inner = &self.found[*number];
            let is_many = iterations(inner).saturating_mul(self.count.rounds) > MOST_ROUNDS;
            is_many && shared.is_none_or(|shared| shared.rounds_of(inner.head).is_none())
        })
    }

    /// Registers that may be zero where a round begins, but no such round comes back.
    fn stops_at_zero(&self, work: &mut Work<'_, '_>) -> Vec<u32> {
        let (round, base) = (self.round(), (self.base.clone(), false));
        let asked = (ASKED, &[][..]);
        let again = remaining_from(work, &round.left, round.head, &base, asked, None).again;
        let mut slots = again.as_ref().map_or_else(Vec::new, |again| may_stop_at_zero(again, 0));
        slots.retain(|slot| ends_at_zero(work, &round.left, round.head, &base, asked, *slot).is_some());
        slots
    }

    /// How far some register may fall in all if rounds inside cost so much, and how many rounds of this loop that allows.
    fn pays(&self, work: &mut Work<'_, '_>, toll: &dyn Fn(u32, u32) -> Option<Toll>) -> Option<(u64, u64)> {
        pays(work, (&self.round().left, self.round().head), (&self.base, self.not_zero), self.count.rounds, toll)
    }

    /// Whether some register that falls may pay for each round of these loops: each of them has to write something that the register is made of. What
    /// is worth trying is asked without following anything; where it is not known what falls, all is.
    fn may_pay(&self, slice: &Slice<'_>, together: &[usize]) -> bool {
        let Some(falls) = &self.round().falls else { return true };
        let writes = |blocks: &[u32]| {
            let steps = blocks.iter().flat_map(|block| &slice.steps[slice.steps(*block)]);
            steps.flat_map(|step| step.writes.iter().copied().filter(|slot| *slot != u32::MAX)).collect::<BTreeSet<u32>>()
        };
        let inside: Vec<BTreeSet<u32>> = together.iter().map(|number| writes(&self.found[*number].blocks)).collect();
        falls.iter().any(|slot| {
            let made_of = self.made_of(slice, *slot);
            inside.iter().all(|written| !written.is_disjoint(&made_of))
        })
    }

    /// The slots that a slot's values are made of in a round.
    fn made_of(&self, slice: &Slice<'_>, slot: u32) -> BTreeSet<u32> {
        let mut all = BTreeSet::from([slot]);
        let terms = |number: u32| slice.sums[number as usize].terms.iter().map(|(slot, _)| *slot);
        loop {
            let before = all.len();
            let sums: Vec<u32> = all.range(slice.first_sum..).filter_map(|slot| slot.checked_sub(slice.first_sum)).collect();
            all.extend(sums.into_iter().filter(|sum| (*sum as usize) < slice.sums.len()).flat_map(terms));
            for step in self.round().left.iter().flat_map(|block| &slice.steps[slice.steps(*block)]) {
                if step.writes.iter().any(|slot| all.contains(slot)) {
                    each_needed(&step.instruction, |slot| {
                        all.insert(slot);
                    });
                    all.extend(step.derived.iter().flat_map(|derived| terms(derived.sum)));
                }
            }
            if all.len() == before {
                return all;
            }
        }
    }

    fn shared(&self, work: &mut Work<'_, '_>, known: &Known<'_>) -> Option<Shared> {
        let found = self.found;
        let polled = self.inside.iter().copied().filter(|number| matches!(found[*number].proof, Proof::PolledWithin(_)));
        // All of them, or else those that one register counts: a function that was inlined may have a count of its own.
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let slot = |number: usize| if let Proof::PolledWithin(inner) = found[number].proof { inner.slot } else { u32::MAX };
        for number in polled.clone() {
            match groups.iter_mut().find(|group| slot(group[0]) == slot(number)) {
                Some(group) => group.push(number),
                None => groups.push(vec![number]),
            }
        }
        if groups.len() > 1 {
            groups.insert(0, polled.collect());
        }
        let mut shared: Option<Shared> = None;
        for (nth, together) in groups.iter().enumerate() {
            let step = |number: usize| if let Proof::PolledWithin(count) = found[number].proof { count.step } else { 1 };
            let toll = |from: u32, to: u32| {
                let number = together.iter().copied().find(|number: &usize| found[*number].head == to)?;
                found[number].blocks.binary_search(&from).is_ok().then(|| Toll::Round(step(number)))
            };
            if !self.may_pay(work.slice, together) {
                continue;
            }
            let Some((span, own)) = self.pays(work, &toll) else { continue };
            let shared = shared.get_or_insert_with(|| Shared { own, inside: Vec::new(), joint: Vec::new() });
            shared.own = shared.own.min(own);
            shared.inside.extend(together.iter().map(|number| (found[*number].head, span / step(*number))));
            shared.joint.extend(together.iter().map(|number| found[*number].head));
            if nth == 0 {
                // Nobody is left out.
                break;
            }
        }
        // What counts itself is paid for where it is entered, each loop from the whole of what this one has.
        for &number in self.inside {
            let (Proof::Counted(inner) | Proof::PolledWithin(inner)) = found[number].proof else { continue };
            let head = found[number].head;
            let is_shared = shared.as_ref().is_some_and(|shared| shared.rounds_of(head).is_some());
            if is_shared || inner.rounds.saturating_mul(self.count.rounds) <= MOST_ROUNDS {
                continue;
            }
            let blocks = &found[number].blocks;
            let Some(inner) = recount(work, &found[number], known) else { continue };
            // What a round may cost, if the loop alone can use up all that there is.
            let most = 1 << (MOST_ALLOWED / inner.rounds.max(1)).max(1).ilog2();
            for factor in if most > 1 { vec![most, 1] } else { vec![1] } {
                let is_entry = |from: u32, to: u32| to == head && blocks.binary_search(&from).is_err();
                let toll = |from: u32, to: u32| is_entry(from, to).then_some(Toll::Entry(inner, factor));
                if let Some((span, _)) = self.pays(work, &toll) {
                    let shared = shared.get_or_insert_with(|| Shared { own: self.count.rounds, inside: Vec::new(), joint: Vec::new() });
                    shared.inside.push((head, span / inner.step / u64::from(factor)));
                    break;
                }
            }
        }
        shared
    }
}

/// How far some register may fall in all that pays so much for what a loop's rounds pass, and how many rounds that allows if there are so many
/// of them anyway.
pub(crate) fn pays(
    work: &mut Work<'_, '_>,
    (blocks, head): (&[u32], u32),
    (base, not_zero): (&State, Option<u32>),
    rounds: u64,
    toll: &dyn Fn(u32, u32) -> Option<Toll>,
) -> Option<(u64, u64)> {
    let mut base = base.clone();
    if work.budget == 0 || not_zero.is_some_and(|slot| !is_not_zero(work.slice, slot, &mut base)) {
        return None;
    }
    let mut order = blocks.to_vec();
    let place = work.place;
    order.sort_by_key(|block| (*block != head, place[*block as usize]));
    let start = begin(work, head, &base);
    let way = Way { head: Some(head), choice: None, assumption: ASKED, closed: &|_| false, toll };
    work.pass(&order, &[(head, start)], &way, |mut found, pass| {
        found.leave_out_zero(pass.slice, not_zero);
        count_together(pass, &found, &base, rounds)
    })
}

/// The count of a loop from where it is entered on, rather than from where it first comes round.
fn recount(work: &mut Work<'_, '_>, round: &Round, known: &Known<'_>) -> Option<Count> {
    let base = (known.base_of)(round.head)?;
    remaining(work, &round.blocks, round.head, &(base, false), Assumption::default(), &[]).count.filter(|count| count.slot != u32::MAX)
}
