//! Chains of calls: how much may run between two checks of the flag, and which functions must check where they begin.
//!
//! Each activation of a function has its own budget. A loop that calls a function with a loop therefore runs as long as the product of both.
//! Functions that call functions multiply in the same way without a loop. A function whose product is too large checks where it begins.

use crate::common::poll_interval::MOST_INTERVAL;
use crate::source::analysis::call_graph::CallGraph;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Most iterations and calls between two checks of a chain, as a power of two: the proof allows no more.
const MOST: u64 = 1 << 26;

/// The first limit of a function's work without a check of its own.
const FIRST_LIMIT: u64 = 1 << 17;

/// The work of a function that is not in sight: one budget.
const UNSEEN: u64 = 1 << MOST_INTERVAL;

/// One link of a chain, an activation: a function's body, or that of a lambda or local method inside it.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    /// Its braces.
    pub(crate) range: Range<usize>,
    /// Its loops: tokens, and how often each runs between two checks at most.
    pub(crate) loops: Vec<(Range<usize>, Rounds)>,
    /// Tokens of calls by a variable, or of functions of other files.
    pub(crate) unseen: Vec<usize>,
    /// The function in the order of the call graph, if it is one of its own.
    pub(crate) function: Option<usize>,
    /// Whether nothing can be put at its entry, or a kernel's check stands there.
    pub(crate) is_fixed: bool,
    /// Whether calls of it can't be told from the text: a lambda, an operator, a constructor.
    pub(crate) is_implicit: bool,
    /// Whether it must check in any case: a macro makes functions that call each other.
    pub(crate) must_check: bool,
}

/// How often a loop runs between two checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounds {
    /// It is not polled, and runs so often at most.
    Few(u64),
    /// It takes that many units of the activation's budget in each iteration.
    Paid(u64),
}

/// Indices of the activations that must check where they begin. They stand in the order of their first tokens.
pub(crate) fn checked(links: &[Link], calls: &CallGraph) -> BTreeSet<usize> {
    let chain = Chain::new(links, calls);
    let mut limit = FIRST_LIMIT;
    loop {
        let (checked, most) = chain.with(limit);
        if most <= MOST || limit <= 4 {
            return checked;
        }
        limit /= 8;
    }
}

struct Chain<'a> {
    links: &'a [Link],
    /// For each: its callees, and how often it calls them between two checks.
    calls: Vec<Vec<(Callee, u64)>>,
    /// Callees before their callers, as far as no cycle is in the way.
    order: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Callee {
    Known(usize),
    Unseen,
}

impl<'a> Chain<'a> {
    fn new(links: &'a [Link], graph: &CallGraph) -> Self {
        let by_function: BTreeMap<usize, usize> =
            links.iter().enumerate().filter_map(|(index, activation)| Some((activation.function?, index))).collect();
        // Nested activations follow those around them.
        let mut around: Vec<Option<usize>> = vec![None; links.len()];
        let mut open: Vec<usize> = Vec::new();
        for (index, activation) in links.iter().enumerate() {
            while open.last().is_some_and(|outer| links[*outer].range.end <= activation.range.start) {
                open.pop();
            }
            around[index] = open.last().copied();
            open.push(index);
        }
        let innermost = |at: usize| {
            let mut index = links.partition_point(|activation| activation.range.start <= at).checked_sub(1);
            while let Some(found) = index.filter(|index| links[*index].range.end <= at) {
                index = around[found];
            }
            index
        };
        let mut calls: Vec<Vec<(Callee, u64)>> = vec![Vec::new(); links.len()];
        for activation in links {
            let known = activation.function.into_iter().flat_map(|function| graph.calls_of(function));
            for call in known {
                if let (Some(caller), Some(callee)) = (innermost(call.at), by_function.get(&call.callee)) {
                    calls[caller].push((Callee::Known(*callee), links[caller].rounds_at(call.at)));
                }
            }
        }
        for (index, activation) in links.iter().enumerate() {
            calls[index].extend(activation.unseen.iter().map(|at| (Callee::Unseen, activation.rounds_at(*at))));
        }
        let order = order(&calls);
        Self { links, calls, order }
    }

    /// Those that check if none of the others may run for longer than `limit`, and the most that then runs between two checks.
    fn with(&self, limit: u64) -> (BTreeSet<usize>, u64) {
        // The work of a call that does not check, and the work behind the last check of one that does.
        let mut work = vec![0_u64; self.links.len()];
        let mut tails = vec![0_u64; self.links.len()];
        let mut checked = BTreeSet::new();
        let mut most = 0;
        // A variable may hold any lambda; those that run for longer check.
        let unseen = UNSEEN.min(limit).max(1);
        for &index in &self.order {
            let activation = &self.links[index];
            let mut sum = 1 + activation.own();
            let mut behind = 0;
            for (callee, rounds) in &self.calls[index] {
                let callee = match callee {
                    Callee::Unseen => unseen,
                    Callee::Known(callee) if checked.contains(callee) => {
                        behind = behind.max(tails[*callee]);
                        1
                    }
                    Callee::Known(callee) => work[*callee].max(1),
                };
                sum = sum.saturating_add(rounds.saturating_mul(callee));
            }
            work[index] = sum;
            tails[index] = sum.saturating_add(behind);
            most = most.max(tails[index]);
            let hidden = activation.is_implicit && activation.own() >= UNSEEN;
            if !activation.is_fixed && (work[index] > limit || hidden || activation.must_check) {
                checked.insert(index);
            }
        }
        (checked, most)
    }
}

impl Link {
    /// How often a token may be passed between two checks of this activation.
    fn rounds_at(&self, at: usize) -> u64 {
        let (mut few, mut paid) = (1_u64, 1);
        for (_, rounds) in self.loops.iter().filter(|(range, _)| range.contains(&at)) {
            match rounds {
                Rounds::Few(trips) => few = few.saturating_mul(*trips.max(&1)),
                // All loops of the activation take from one budget. The units of an inner one are lost to the outer one.
                Rounds::Paid(weight) => paid = paid.max((1 << MOST_INTERVAL) / weight.max(&1)),
            }
        }
        few.saturating_mul(paid.max(1))
    }

    /// The work of its own loops between two checks.
    fn own(&self) -> u64 {
        let is_paid = |(_, rounds): &(Range<usize>, Rounds)| matches!(rounds, Rounds::Paid(_));
        let few = self.loops.iter().map(|(_, rounds)| if let Rounds::Few(trips) = rounds { *trips } else { 0 });
        few.fold(if self.loops.iter().any(is_paid) { 1 << MOST_INTERVAL } else { 0 }, u64::saturating_add)
    }
}

/// Callees first, by depth; a call that closes a cycle counts for nothing, since a function on it checked already or leads down.
fn order(calls: &[Vec<(Callee, u64)>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(calls.len());
    let mut seen = vec![false; calls.len()];
    for root in 0..calls.len() {
        let mut work = vec![(root, 0)];
        while let Some((node, edge)) = work.pop() {
            if edge == 0 && std::mem::replace(&mut seen[node], true) {
                continue;
            }
            match calls[node].get(edge) {
                Some((callee, _)) => {
                    work.push((node, edge + 1));
                    if let Callee::Known(callee) = callee
                        && !seen[*callee]
                    {
                        work.push((*callee, 0));
                    }
                }
                None => order.push(node),
            }
        }
    }
    order
}
