//! How often loops within loops are entered and iterated.

use crate::domain::value::MOST_TICKS;
use crate::rank::linear::MOST_TOGETHER;
use crate::rank::loops::{LoopProof, Proof};

/// What a wait by a clock takes at least: some clocks move once a microsecond.
const LEAST_TICKS: u64 = 1 << 10;

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

    /// What is left of each number.
    pub(crate) fn minus(self, other: Self) -> Self {
        Self { rounds: self.rounds.saturating_sub(other.rounds), ticks: self.ticks.saturating_sub(other.ticks) }
    }

    pub(crate) fn max(self, other: Self) -> Self {
        Self { rounds: self.rounds.max(other.rounds), ticks: self.ticks.max(other.ticks) }
    }

    /// Of both, one behind the other, where no block lies in both.
    pub(crate) fn beside(self, other: Self) -> Self {
        Self { rounds: self.rounds.max(other.rounds), ticks: self.ticks.saturating_add(other.ticks) }
    }

    /// Whether that is more than the proof lets pass.
    pub(crate) fn is_too_much(self) -> bool {
        self.rounds > MOST_TOGETHER || self.ticks > MOST_TICKS
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
    fn of(all: &[LoopProof], outer: usize, known: &[Option<Self>]) -> Self {
        let end = (outer + 1..all.len()).find(|next| all[*next].depth <= all[outer].depth).unwrap_or(all.len());
        let mut passes = Self { first: outer, entered: Vec::with_capacity(end - outer), passed: Vec::with_capacity(end - outer) };
        let (left, paid) = (&all[outer].left, all[outer].shared.as_ref());
        let own = iterations(&all[outer]);
        passes.entered.push(1);
        passes.passed.push(paid.map_or(own, |paid| own.min(paid.own.saturating_add(paid.unpaid))));
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
            let is_head_left = left.binary_search(&round.head).is_ok();
            if !comes_back(&all[outer], round) {
                times = times.min(within(child).saturating_mul(others(&all[outer])));
            } else if let Some((shared, paid)) =
                paid.and_then(|shared| Some((shared, shared.paid_of(round.head)?))).filter(|_| is_head_left)
            {
                // Where a round need not pay, what is inside it counts once more.
                let once_more = |rounds: u64, times: u64| rounds.saturating_add(within(child).saturating_mul(times));
                let again = paid.again.saturating_add(entered);
                let again = again.min(paid.joint.map_or(u64::MAX, |joint| joint.saturating_add(shared.unpaid)));
                times = times.min(once_more(again, shared.unpaid));
                // The last round pays there, too.
                let others = shared.unpaid - 1;
                times = times.min(paid.whole.map_or(u64::MAX, |whole| once_more(whole.saturating_add(entered), others)));
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
    fn entered_in(&self, all: &[LoopProof], round: &LoopProof) -> u64 {
        let Some(parent) = round.parent else { return 1 };
        if comes_back(&all[parent], round) { self.passed(parent) } else { self.entered(parent).saturating_mul(others(&all[parent])) }
    }

    fn entered(&self, number: usize) -> u64 {
        self.entered[number - self.first]
    }

    pub(crate) fn passed(&self, number: usize) -> u64 {
        self.passed[number - self.first]
    }

    /// How often a block is passed that lies in this loop, and in no other inside.
    pub(crate) fn of_block(&self, all: &[LoopProof], mut number: usize, block: u32) -> u64 {
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
    pub(crate) fn weight(&self, all: &[LoopProof]) -> Weight {
        let rounds = self.passed.iter().copied().max().unwrap_or(1);
        let clocks = all[self.first..].iter().zip(&self.entered).filter_map(|(round, entered)| match round.proof {
            Proof::Clock { ticks, .. } => Some(ticks.max(LEAST_TICKS).saturating_mul(*entered)),
            _ => None,
        });
        // One wait comes behind the other.
        Weight { rounds, ticks: clocks.fold(0, u64::saturating_add) }
    }
}

/// For each loop how often it and each loop inside is passed without a poll.
pub(crate) fn passes_of(all: &[LoopProof]) -> Vec<Passes> {
    let mut known: Vec<Option<Passes>> = Vec::new();
    known.resize_with(all.len(), || None);
    for number in (0..all.len()).rev() {
        known[number] = Some(Passes::of(all, number, &known));
    }
    known.into_iter().flatten().collect()
}

/// For each loop how long control may stay in it, and the loops inside, without a poll.
pub(crate) fn weights_of(all: &[LoopProof]) -> Vec<Weight> {
    passes_of(all).iter().map(|passes| passes.weight(all)).collect()
}

/// Whether rounds of a loop that come back may pass one inside: at its head, or elsewhere.
fn comes_back(outer: &LoopProof, inner: &LoopProof) -> bool {
    let is_left = |block: &u32| outer.left.binary_search(block).is_ok();
    is_left(&inner.head) || inner.blocks.iter().any(is_left)
}

/// Iterations of the loop in which blocks are passed that are not among those which come back: the last one, and the first where nothing is known of it.
fn others(round: &LoopProof) -> u64 {
    iterations(round).min(1 + u64::from(round.begun))
}

/// Iterations of the loop alone each time that it is entered, without those of loops inside.
pub(crate) fn iterations(round: &LoopProof) -> u64 {
    match round.proof {
        Proof::Counted(count) | Proof::PolledWithin(count) => count.rounds.saturating_add(1),
        Proof::Clock { rounds, .. } => rounds.saturating_add(1),
        _ => 1 + u64::from(round.begun),
    }
}

/// Iterations of a loop and of those around it, up to one of them, multiplied.
pub(crate) fn product(all: &[LoopProof], inner: usize, outer: usize) -> u64 {
    let mut rounds = iterations(&all[inner]);
    let mut at = inner;
    while at != outer {
        let Some(parent) = all[at].parent else { break };
        at = parent;
        rounds = rounds.saturating_mul(iterations(&all[at]));
    }
    rounds
}
