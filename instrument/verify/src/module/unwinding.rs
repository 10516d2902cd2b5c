//! What functions that call each other do without a poll while their activations return, one behind the other.
//!
//! A call that leads deeper polls. The way back need not: each activation does what stands behind its call, up to its own return.
//! There are as many activations as the thread's stack holds, so what lies behind such a call is passed as often.

use crate::module::call_graph::Calls;
use crate::module::call_trees::{CallWeight, Live, Weighed};
use crate::module::functions::Functions;
use crate::program::cfg::{Components, Graph};
use std::collections::{BTreeMap, BTreeSet};

/// Most bytes of a thread's stack: the CUDA programming guide's "amount of local memory per thread", for all architectures.
const MOST_STACK: u64 = 512 << 10;

/// An activation that does more behind a call keeps the address that it returns to. ptxas 13.0 was seen to make frames with nothing else in them.
const LEAST_FRAME: u64 = 8;

/// Most activations of a thread that return one behind the other.
pub(crate) const MOST_ACTIVATIONS: u64 = MOST_STACK / LEAST_FRAME;

/// Functions that call each other, in the order in which each stands behind those that it calls.
#[derive(Debug, Default)]
pub(crate) struct Cycles {
    sets: Vec<Vec<u32>>,
    /// For each function of a set the number of the set.
    of: Vec<Option<u32>>,
    /// For each set how many of its functions were not asked about yet.
    left: Vec<usize>,
}

impl Cycles {
    /// Of all functions.
    pub(crate) fn find(calls: &Calls) -> Self {
        let nodes: Vec<u32> = (0..calls.len() as u32).collect();
        let sets =
            Components::default().find(calls.len(), &nodes, |from, nth| calls[from as usize].get(nth as usize).map(|(_, to)| Some(*to)));
        let mut of = vec![None; calls.len()];
        for (set, number) in sets.iter().zip(0..) {
            for function in set {
                of[*function as usize] = Some(number);
            }
        }
        let left = sets.iter().map(Vec::len).collect();
        Self { sets, of, left }
    }

    /// Whether a function is in one.
    pub(crate) fn holds(&self, function: u32) -> bool {
        self.of[function as usize].is_some()
    }

    /// Whether two functions are in the same one.
    pub(crate) fn are_together(&self, one: usize, other: u32) -> bool {
        self.holds(other) && self.of[one] == self.of[other as usize]
    }

    /// The cycle that this function is the last one of, if all are asked about in turn.
    pub(crate) fn ends_with(&mut self, function: usize) -> Option<&[u32]> {
        let set = self.of[function]? as usize;
        self.left[set] -= 1;
        (self.left[set] == 0).then_some(&self.sets[set])
    }
}

/// What the activations of these functions weigh together while they return.
pub(crate) fn unwinding(
    functions: &Functions<'_>,
    weighed: &[Weighed<'_>],
    set: &[u32],
    known: (&[CallWeight], &[CallWeight], &[Live]),
) -> CallWeight {
    let set: BTreeSet<u32> = set.iter().copied().collect();
    let behind = set.iter().map(|&index| {
        let mut first: BTreeMap<u32, u32> = BTreeMap::new();
        for (statement, _) in functions.calls[index as usize].iter().filter(|(_, to)| set.contains(to)) {
            let call = first.entry(functions.block_of(index as usize, *statement)).or_insert(*statement);
            *call = (*call).min(*statement);
        }
        let blocks = reachable(&functions.graphs[index as usize], first.keys().copied());
        let is_behind = |block: u32, statement: Option<u32>| {
            blocks.contains(&block) || statement.is_some_and(|at| first.get(&block).is_some_and(|call| *call < at))
        };
        weighed[index as usize].behind(&set, known, is_behind)
    });
    behind.fold(CallWeight::ONE, CallWeight::beside).times(MOST_ACTIVATIONS)
}

/// Blocks that control may come to behind these.
fn reachable(graph: &Graph, starts: impl Iterator<Item = u32>) -> BTreeSet<u32> {
    let mut work: Vec<u32> = starts.collect();
    let mut found = BTreeSet::new();
    while let Some(block) = work.pop() {
        work.extend(graph.edges(block).iter().map(|edge| edge.to).filter(|to| found.insert(*to)));
    }
    found
}
