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

/// Elements of a pack whose number the text does not tell. What is called for each of them and runs for long checks.
const PACK: u64 = 1 << 10;

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
    /// How many instances of it may call one another in a row, each the next one.
    pub(crate) depth: u64,
    /// Whether such instances are a tree. Its leaves are not counted.
    pub(crate) is_tree: bool,
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
    /// It is no loop but text that stands once for each element of a pack. These are not counted.
    Pack,
}

/// Indices of the activations that must check where they begin. They stand in the order of their first tokens. `times` says how often a token calls a
/// function.
pub(crate) fn checked(links: &[Link], calls: &CallGraph, times: impl FnMut(usize, usize) -> u64) -> BTreeSet<usize> {
    let chain = Chain::new(links, calls, times);
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
    /// For each: its callees, and how often it calls them between two checks. Packs count in the second number only.
    calls: Vec<Vec<(Callee, u64, u64)>>,
    /// Activations of overloads, which calls of their name may lead to.
    overloads: Vec<Vec<usize>>,
    /// Those that are called once for each element of a pack.
    of_packs: BTreeSet<usize>,
    /// Callees before their callers, as far as no cycle is in the way.
    order: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Callee {
    Known(usize),
    /// One of these.
    Overloads(usize),
    Unseen,
}

impl<'a> Chain<'a> {
    fn new(links: &'a [Link], graph: &CallGraph, mut times_of: impl FnMut(usize, usize) -> u64) -> Self {
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
        let mut calls: Vec<Vec<(Callee, u64, u64)>> = vec![Vec::new(); links.len()];
        let mut of_packs = BTreeSet::new();
        let nodes = graph.overload_nodes();
        let members = |node: usize| graph.overloads(node).into_iter().flatten().filter_map(|callee| by_function.get(&callee).copied());
        let overloads: Vec<Vec<usize>> = nodes.clone().map(|node| members(node).collect()).collect();
        let group = |callee: usize| nodes.contains(&callee).then(|| callee - nodes.start);
        for activation in links {
            let known = activation.function.into_iter().flat_map(|function| graph.calls_of(function));
            for call in known {
                if let (Some(caller), Some(group)) = (innermost(call.at), group(call.callee)) {
                    let times = overloads.get(group).and_then(|members: &Vec<usize>| links[*members.first()?].function);
                    let times = times.map_or(1, |callee| times_of(call.at, callee));
                    let [one, many] = [1, PACK].map(|pack| links[caller].rounds_at(call.at, pack).saturating_mul(times));
                    calls[caller].push((Callee::Overloads(group), one, many));
                    if links[caller].is_in_pack(call.at) {
                        of_packs.extend(overloads[group].iter().copied());
                    }
                } else if let (Some(caller), Some(callee)) = (innermost(call.at), by_function.get(&call.callee)) {
                    let times = times_of(call.at, call.callee);
                    let [one, many] = [1, PACK].map(|pack| links[caller].rounds_at(call.at, pack).saturating_mul(times));
                    calls[caller].push((Callee::Known(*callee), one, many));
                    of_packs.extend(Some(*callee).filter(|_| links[caller].is_in_pack(call.at)));
                }
            }
        }
        for (index, activation) in links.iter().enumerate() {
            let unseen = activation.unseen.iter().map(|at| activation.rounds_at(*at, 1));
            calls[index].extend(unseen.map(|rounds| (Callee::Unseen, rounds, rounds)));
        }
        // A node for each group stands behind the activations.
        calls.extend(overloads.iter().map(|members| members.iter().map(|callee| (Callee::Known(*callee), 1, 1)).collect()));
        let order = order(&calls, links.len());
        Self { links, calls, overloads, of_packs, order }
    }

    /// Those that check if none of the others may run for longer than `limit`, and the most that then runs between two checks.
    fn with(&self, limit: u64) -> (BTreeSet<usize>, u64) {
        // The work of a call that does not check, and the work behind the last check of one that does.
        let mut work = vec![0_u64; self.links.len()];
        let mut tails = vec![0_u64; self.links.len()];
        // The same as the first without what is not in sight, which checks itself if it runs for long.
        let mut seen = vec![0_u64; self.links.len()];
        let mut checked = BTreeSet::new();
        // For each group: the most work of a call, that of one in sight, and the work behind the last check.
        let mut groups = vec![(1_u64, 1_u64, 0_u64); self.overloads.len()];
        let mut most = 0;
        // A variable may hold any lambda; those that run for longer check.
        let unseen = UNSEEN.min(limit).max(1);
        for &index in &self.order {
            if let Some(group) = index.checked_sub(self.links.len()) {
                for member in &self.overloads[group] {
                    let (most, in_sight, behind) = &mut groups[group];
                    if checked.contains(member) {
                        *behind = (*behind).max(tails[*member]);
                    } else {
                        (*most, *in_sight) = ((*most).max(work[*member]), (*in_sight).max(seen[*member]));
                    }
                }
                continue;
            }
            let activation = &self.links[index];
            let mut sum = 1 + activation.own();
            let mut in_sight = sum;
            let mut behind = 0;
            for (callee, rounds, with_packs) in &self.calls[index] {
                let known = match callee {
                    Callee::Known(callee) if !checked.contains(callee) => seen[*callee].max(1),
                    Callee::Overloads(group) => groups[*group].1,
                    _ => 1,
                };
                in_sight = in_sight.saturating_add(rounds.saturating_mul(known));
                let callee = match callee {
                    Callee::Unseen => unseen,
                    Callee::Overloads(group) => {
                        behind = behind.max(groups[*group].2);
                        groups[*group].0
                    }
                    Callee::Known(callee) if checked.contains(callee) => {
                        behind = behind.max(tails[*callee]);
                        1
                    }
                    Callee::Known(callee) => work[*callee].max(1),
                };
                sum = sum.saturating_add(rounds.saturating_mul(callee)).saturating_add((with_packs - rounds).saturating_mul(known));
            }
            let of_instances = in_sight.saturating_mul(activation.depth - 1);
            let sum = sum.saturating_add(of_instances);
            work[index] = sum;
            seen[index] = in_sight.saturating_add(of_instances);
            tails[index] = sum.saturating_add(behind);
            most = most.max(tails[index]);
            // How often such a one is called is not counted.
            let is_uncounted = (activation.is_implicit || activation.is_tree || self.of_packs.contains(&index)) && seen[index] >= UNSEEN;
            if !activation.is_fixed && (work[index] > limit || is_uncounted || activation.must_check) {
                checked.insert(index);
            }
        }
        (checked, most)
    }
}

impl Link {
    /// How often a token may be passed between two checks of this activation, if packs have so many elements.
    fn rounds_at(&self, at: usize, pack: u64) -> u64 {
        let (mut few, mut paid) = (1_u64, 1);
        for (_, rounds) in self.loops.iter().filter(|(range, _)| range.contains(&at)) {
            match rounds {
                Rounds::Few(trips) => few = few.saturating_mul(*trips.max(&1)),
                // All loops of the activation take from one budget. The units of an inner one are lost to the outer one.
                Rounds::Paid(weight) => paid = paid.max((1 << MOST_INTERVAL) / weight.max(&1)),
                Rounds::Pack => few = few.saturating_mul(pack),
            }
        }
        few.saturating_mul(paid.max(1))
    }

    /// Whether a token stands for as many copies as a pack has elements, or a tree of instances.
    fn is_in_pack(&self, at: usize) -> bool {
        self.is_tree || self.loops.iter().any(|(range, rounds)| *rounds == Rounds::Pack && range.contains(&at))
    }

    /// The work of its own loops between two checks.
    fn own(&self) -> u64 {
        let is_paid = |(_, rounds): &(Range<usize>, Rounds)| matches!(rounds, Rounds::Paid(_));
        let few = self.loops.iter().map(|(_, rounds)| if let Rounds::Few(trips) = rounds { *trips } else { 0 });
        few.fold(if self.loops.iter().any(is_paid) { 1 << MOST_INTERVAL } else { 0 }, u64::saturating_add)
    }
}

/// Callees first, by depth; a call that closes a cycle counts for nothing, since a function on it checked already or leads down.
fn order(calls: &[Vec<(Callee, u64, u64)>], activations: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(calls.len());
    let mut seen = vec![false; calls.len()];
    for root in 0..calls.len() {
        let mut work = vec![(root, 0)];
        while let Some((node, edge)) = work.pop() {
            if edge == 0 && std::mem::replace(&mut seen[node], true) {
                continue;
            }
            match calls[node].get(edge) {
                Some((callee, ..)) => {
                    work.push((node, edge + 1));
                    let callee = match callee {
                        Callee::Known(callee) => *callee,
                        Callee::Overloads(group) => activations + group,
                        Callee::Unseen => continue,
                    };
                    if !seen[callee] {
                        work.push((callee, 0));
                    }
                }
                None => order.push(node),
            }
        }
    }
    order
}
