//! How long control may stay in a function and all that it calls without a poll.
//!
//! A function weighs as much as its heaviest loop, or as its calls together. Each call site adds the callee's weight
//! times the iterations around the site. So no block of a call tree is passed more often than the weight of its root.
//!
//! A call returns, or the thread ends in it. Of all calls of a thread only one does not return. So only the weight of
//! calls that return is multiplied. Loops from which no path leads to a return do not count there: what stops a thread
//! waits by the clock, and then ends it.
//!
//! A callee is entered with the flag set, or else no poll is due. Where a weight is too large, call sites are left out
//! that no thread reaches from there: a poll at a function's entry ends the tree.

use crate::rank::loops::{LoopProof, Proof};
use crate::rank::weight::{Passes, Weight, passes_of};
use std::collections::BTreeSet;

/// A call site of a function.
#[derive(Debug)]
struct Site {
    statement: u32,
    block: u32,
    /// The innermost loop around it.
    around: Option<usize>,
    /// All functions that may be called there.
    callees: Vec<u32>,
}

/// What a call of a function weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallWeight {
    /// If it returns.
    pub(crate) returning: Weight,
    /// However it ends: no less than that.
    pub(crate) ending: Weight,
}

impl CallWeight {
    pub(crate) const NOTHING: Self = Self { returning: Weight::NOTHING, ending: Weight::NOTHING };
    pub(crate) const ONE: Self = Self { returning: Weight::ONE, ending: Weight::ONE };

    pub(crate) fn is_too_much(self) -> bool {
        self.ending.is_too_much()
    }

    pub(crate) fn max(self, other: Self) -> Self {
        Self { returning: self.returning.max(other.returning), ending: self.ending.max(other.ending) }
    }

    /// Of both, one behind the other, where no block lies in both.
    pub(crate) fn beside(self, other: Self) -> Self {
        Self { returning: self.returning.beside(other.returning), ending: self.ending.beside(other.ending) }
    }

    /// Of both, one behind the other. Only one of them may not return.
    pub(crate) fn and(self, other: Self) -> Self {
        Made::NONE.and(self, 1).and(other, 1).of_caller(Self::NOTHING)
    }

    /// Of so many of these calls. Only the last may not return.
    pub(crate) fn times(self, times: u64) -> Self {
        Made::NONE.and(self, times).of_caller(Self::NOTHING)
    }

    /// The same, but for what is too heavy: that is reported where it is, and not in all that call it.
    pub(crate) fn unless_too_much(self) -> Self {
        let unless = |weight: Weight| if weight.is_too_much() { Weight::ONE } else { weight };
        Self { returning: unless(self.returning), ending: unless(self.ending) }
    }
}

/// Calls that one thread makes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made {
    /// All of them, if they return.
    returned: Weight,
    /// What one of them weighs more if it does not: the last.
    last: Weight,
}

impl Made {
    pub(crate) const NONE: Self = Self { returned: Weight::NOTHING, last: Weight::NOTHING };

    /// With so many calls more, the last of which need not return.
    pub(crate) fn and(self, call: CallWeight, times: u64) -> Self {
        Self { returned: self.returned.plus(call.returning.times(times)), last: self.last.max(call.ending.minus(call.returning)) }
    }

    /// What they weigh for a caller that has this weight without them.
    pub(crate) fn of_caller(self, own: CallWeight) -> CallWeight {
        CallWeight { returning: own.returning.beside(self.returned), ending: own.ending.beside(self.all()) }
    }

    /// The weight of all of them.
    fn all(self) -> Weight {
        self.returned.plus(self.last)
    }
}

/// A function with what is proved of its loops.
#[derive(Debug)]
pub(crate) struct Weighed<'r> {
    rounds: &'r [LoopProof],
    /// For each loop whether control may come from there to a return.
    returning: Vec<bool>,
    passes: Vec<Passes>,
    sites: Vec<Site>,
}

/// What is too heavy in a function.
#[derive(Debug, Default)]
pub(crate) struct TooMuch {
    /// For each loop its weight with all that is called in it.
    pub(crate) loops: Vec<Weight>,
    /// What its calls come to together, and a call site, if that is too much though no loop is.
    pub(crate) calls: Option<(Weight, u32)>,
}

/// What a function may do once the flag is set.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    /// Its blocks that a thread which enters it comes to; all if nothing is known.
    pub(crate) blocks: Option<BTreeSet<u32>>,
    /// Whether it returns.
    pub(crate) returns: bool,
}

impl Live {
    pub(crate) const ANYTHING: Self = Self { blocks: None, returns: true };
}

impl<'r> Weighed<'r> {
    /// `calls` are statements and callees in the order of statements; `block_of` gives the block of a statement, and `returning` says for each loop
    /// whether control may come from there to a return.
    pub(crate) fn new(rounds: &'r [LoopProof], returning: Vec<bool>, calls: &[(u32, u32)], block_of: impl Fn(u32) -> u32) -> Self {
        let mut sites: Vec<Site> = Vec::new();
        for &(statement, callee) in calls {
            match sites.last_mut().filter(|site| site.statement == statement) {
                Some(site) => site.callees.push(callee),
                None => sites.push(Site { statement, block: block_of(statement), around: None, callees: vec![callee] }),
            }
        }
        if !sites.is_empty() {
            // Loops inside come behind those around them.
            for (number, round) in rounds.iter().enumerate() {
                for site in sites.iter_mut().filter(|site| round.blocks.binary_search(&site.block).is_ok()) {
                    site.around = Some(number);
                }
            }
        }
        Self { rounds, returning, passes: passes_of(rounds), sites }
    }

    /// The heaviest function that a site calls.
    fn callee(site: &Site, weights: &[CallWeight], lives: &[Live]) -> CallWeight {
        let weight = site.callees.iter().fold(CallWeight::ONE, |most, callee| most.max(weights[*callee as usize]));
        if Self::returns(site, lives) { weight } else { CallWeight { returning: Weight::NOTHING, ..weight } }
    }

    /// Whether a call may return.
    fn returns(site: &Site, lives: &[Live]) -> bool {
        site.callees.iter().any(|callee| lives[*callee as usize].returns)
    }

    /// The calls that a thread makes at these sites.
    fn calls(&self, weights: &[CallWeight], lives: &[Live], counts: impl Fn(&Site) -> bool) -> Made {
        let sites = self.sites.iter().filter(|site| counts(site));
        sites.fold(Made::NONE, |made, site| {
            let times = site.around.map_or(1, |around| self.passes[self.root(around)].of_block(self.rounds, around, site.block));
            made.and(Self::callee(site, weights, lives), times)
        })
    }

    /// How often a block is passed while the function is entered once.
    pub(crate) fn times(&self, block: u32) -> u64 {
        let around = self.rounds.iter().rposition(|round| round.blocks.binary_search(&block).is_ok());
        around.map_or(1, |around| self.passes[self.root(around)].of_block(self.rounds, around, block))
    }

    /// The outermost loop around a loop.
    fn root(&self, mut number: usize) -> usize {
        while let Some(parent) = self.rounds[number].parent {
            number = parent;
        }
        number
    }

    /// The weight of the function where it is entered with the flag set.
    pub(crate) fn weight(&self, weights: &[CallWeight], lives: &[Live], own: &Live) -> CallWeight {
        let is_live = |block: u32| own.blocks.as_ref().is_none_or(|blocks| blocks.contains(&block));
        let loops = self.loops(|round| round.blocks.iter().any(|block| is_live(*block)));
        self.calls(weights, lives, |site| is_live(site.block)).of_caller(loops)
    }

    /// What lies behind a poll in the function, up to its return: all that it does, behind what lies behind a poll in one of its callees. A callee that
    /// leads back here counts for nothing. `polls` says whether it polls itself, outside loops.
    pub(crate) fn rest(&self, weights: &[CallWeight], rests: &[CallWeight], lives: &[Live], polls: bool) -> CallWeight {
        let rest = self.rest_of_callees(rests, |_| true);
        let polls_in_loops = || self.rounds.iter().any(|round| matches!(round.proof, Proof::Polled | Proof::PolledWithin(_)));
        if !polls && rest == CallWeight::NOTHING && !polls_in_loops() {
            return CallWeight::NOTHING;
        }
        self.calls(weights, lives, |_| true).and(rest, 1).of_caller(self.loops(|_| true))
    }

    /// What lies behind calls of these functions, up to the return or to the next call of one. `is_behind` says of a block, or of a statement in it,
    /// whether it does. What the callees from the set do behind polls is not counted: their activations are others.
    pub(crate) fn behind(
        &self,
        set: &BTreeSet<u32>,
        (weights, rests, lives): (&[CallWeight], &[CallWeight], &[Live]),
        is_behind: impl Fn(u32, Option<u32>) -> bool,
    ) -> CallWeight {
        let loops = self.loops(|round| round.blocks.iter().any(|block| is_behind(*block, None)));
        let is_site_behind = |site: &Site| is_behind(site.block, Some(site.statement));
        let rest = self.rest_of_callees(rests, |site| is_site_behind(site) && site.callees.iter().all(|callee| !set.contains(callee)));
        self.calls(weights, lives, is_site_behind).and(rest, 1).of_caller(loops)
    }

    /// What these of the outermost loops weigh. What is too heavy is reported where it is.
    fn loops(&self, counts: impl Fn(&LoopProof) -> bool) -> CallWeight {
        let mut loops = CallWeight::ONE;
        for ((round, passes), may_return) in self.rounds.iter().zip(&self.passes).zip(&self.returning) {
            let weight = passes.weight(self.rounds);
            if round.parent.is_none() && counts(round) && !weight.is_too_much() {
                loops.ending = loops.ending.beside(weight);
                loops.returning = if *may_return { loops.returning.beside(weight) } else { loops.returning };
            }
        }
        loops
    }

    /// The weights of the outermost loops.
    fn roots(&self) -> impl Iterator<Item = Weight> + '_ {
        let loops = self.rounds.iter().zip(&self.passes).filter(|(round, _)| round.parent.is_none());
        loops.map(|(_, passes)| passes.weight(self.rounds))
    }

    /// What the callee does behind a poll that does most there.
    fn rest_of_callees(&self, rests: &[CallWeight], counts: impl Fn(&Site) -> bool) -> CallWeight {
        let sites = self.sites.iter().filter(|site| counts(site));
        sites.map(|site| Self::rest_of_callee(site, rests)).fold(CallWeight::NOTHING, CallWeight::max)
    }

    fn rest_of_callee(site: &Site, rests: &[CallWeight]) -> CallWeight {
        site.callees.iter().map(|callee| rests[*callee as usize]).fold(CallWeight::NOTHING, CallWeight::max)
    }

    /// What is too heavy in the function, wherever a thread is in it when the flag is set. Behind a poll of a callee comes its rest.
    pub(crate) fn too_much(&self, weights: &[CallWeight], rests: &[CallWeight], lives: &[Live]) -> TooMuch {
        let mut made: Vec<(Made, Weight)> = vec![(Made::NONE, Weight::NOTHING); self.rounds.len()];
        for site in &self.sites {
            let weight = Self::callee(site, weights, lives);
            let rest = Self::rest_of_callee(site, rests).ending;
            let mut around = site.around;
            while let Some(number) = around {
                let times = self.passes[number].of_block(self.rounds, site.around.unwrap_or(number), site.block);
                let (calls, most) = made[number];
                made[number] = (calls.and(weight, times), most.max(rest));
                around = self.rounds[number].parent;
            }
        }
        let weight = |((made, rest), passes): (&(Made, Weight), &Passes)| made.all().plus(*rest).max(passes.weight(self.rounds));
        let mut loops: Vec<Weight> = made.iter().zip(&self.passes).map(weight).collect();
        // What waits by a clock beside others waits behind them.
        let mut ticks = 0_u64;
        for (weight, _) in loops.iter_mut().zip(self.rounds).filter(|(_, round)| round.parent.is_none()) {
            ticks = ticks.saturating_add(weight.ticks);
            weight.ticks = ticks;
        }
        let waits = Weight { rounds: 0, ticks: self.roots().fold(0, |ticks, weight| ticks.saturating_add(weight.ticks)) };
        let calls = self.calls(weights, lives, |_| true).all().plus(self.rest_of_callees(rests, |_| true).ending).beside(waits);
        let is_new = calls.is_too_much() && !loops.iter().any(|weight| weight.is_too_much());
        let heaviest = self.sites.iter().max_by_key(|site| Self::callee(site, weights, lives).ending.rounds);
        TooMuch { loops, calls: heaviest.filter(|_| is_new).map(|site| (calls, site.statement)) }
    }
}
