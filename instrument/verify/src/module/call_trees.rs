//! How long control may stay in a function and all that it calls without a poll.
//!
//! A function weighs what its heaviest loop does, or what its calls do together: each call site adds what the callee weighs, times how often the
//! loops around the site let it be passed. So no block of a call tree is passed more often than the weight of its root says.
//!
//! A callee is entered with the flag set, or else no poll is due. Call sites that no thread comes to from there are left out where a weight is too
//! large with them: a poll at a function's entry ends the tree. A call that does not return is made once.

use crate::domain::value::MOST_TICKS;
use crate::module::report::Verdict;
use crate::rank::loops::LoopProof;
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

/// A function with what is proved of its loops.
#[derive(Debug)]
pub(crate) struct Weighed<'r> {
    rounds: &'r [LoopProof],
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
    /// `calls` are statements and callees in the order of statements; `block_of` gives the block of a statement.
    pub(crate) fn new(rounds: &'r [LoopProof], calls: &[(u32, u32)], block_of: impl Fn(u32) -> u32) -> Self {
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
        Self { rounds, passes: passes_of(rounds), sites }
    }

    /// The heaviest function that a site calls.
    fn callee(site: &Site, weights: &[Weight]) -> Weight {
        site.callees.iter().fold(Weight::ONE, |most, callee| most.max(weights[*callee as usize]))
    }

    /// What the calls of a function come to, each with its weight. Of calls that do not return only the heaviest one is made.
    fn calls(&self, weights: &[Weight], lives: &[Live], counts: impl Fn(&Site) -> bool) -> Weight {
        let (mut all, mut last) = (Weight::NOTHING, Weight::NOTHING);
        for site in self.sites.iter().filter(|site| counts(site)) {
            let weight = Self::callee(site, weights);
            if site.callees.iter().all(|callee| !lives[*callee as usize].returns) {
                last = last.max(weight);
            } else {
                let times = site.around.map_or(1, |around| self.passes[self.root(around)].of_block(self.rounds, around, site.block));
                all = all.plus(weight.times(times));
            }
        }
        all.plus(last)
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
    pub(crate) fn weight(&self, weights: &[Weight], lives: &[Live], own: &Live) -> Weight {
        let is_live = |block: u32| own.blocks.as_ref().is_none_or(|blocks| blocks.contains(&block));
        let roots = self.rounds.iter().zip(&self.passes).filter(|(round, _)| round.parent.is_none() && is_live(round.head));
        // What is too heavy is reported where it is.
        let loops = roots.map(|(_, passes)| passes.weight(self.rounds)).filter(|weight| !weight.is_too_much());
        loops.fold(Weight::ONE, Weight::max).max(self.calls(weights, lives, |site| is_live(site.block)))
    }

    /// What is too heavy in the function, wherever a thread is in it when the flag is set.
    pub(crate) fn too_much(&self, weights: &[Weight], lives: &[Live]) -> TooMuch {
        let mut loops: Vec<Weight> = vec![Weight::NOTHING; self.rounds.len()];
        for site in self.sites.iter().filter(|site| site.callees.iter().any(|callee| lives[*callee as usize].returns)) {
            let weight = Self::callee(site, weights);
            let mut around = site.around;
            while let Some(number) = around {
                let times = self.passes[number].of_block(self.rounds, site.around.unwrap_or(number), site.block);
                loops[number] = loops[number].plus(weight.times(times));
                around = self.rounds[number].parent;
            }
        }
        for (weight, passes) in loops.iter_mut().zip(&self.passes) {
            *weight = weight.max(passes.weight(self.rounds));
        }
        let calls = self.calls(weights, lives, |_| true);
        let is_new = calls.is_too_much() && !loops.iter().any(|weight| weight.is_too_much());
        let heaviest = self.sites.iter().max_by_key(|site| Self::callee(site, weights).rounds);
        TooMuch { loops, calls: heaviest.filter(|_| is_new).map(|site| (calls, site.statement)) }
    }
}

/// The verdict on what may take too long without a poll.
pub(crate) fn too_many(weight: Weight) -> Verdict {
    Verdict::TooMany { rounds: weight.rounds, seconds: weight.ticks.div_ceil(MOST_TICKS) }
}
