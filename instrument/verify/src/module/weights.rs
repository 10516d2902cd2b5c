//! The weight of each function's calls, and what reports say of each function.

use crate::module::call_graph::{Callee, Calls, callees_first};
use crate::module::call_trees::{CallWeight, Live, TooMuch, Weighed};
use crate::module::functions::{Answers, Functions};
use crate::module::recursion::Recursion;
use crate::module::report::Linkage;
use crate::module::unwinding::{Cycles, MOST_ACTIVATIONS, unwinding};
use crate::rank::loops::LoopProof;
use crate::rank::weight::Weight;
use cuinstr_ptx::CallTarget;
use std::collections::{BTreeMap, BTreeSet};

/// What each function weighs.
#[derive(Debug, Default)]
struct Known {
    weights: Vec<CallWeight>,
    /// Behind a poll, up to the return.
    rests: Vec<CallWeight>,
    /// All of it, with what lies behind polls of its callees.
    wholes: Vec<CallWeight>,
}

/// What is too heavy in the functions of a module.
pub(crate) struct Heavy {
    pub(crate) functions: Vec<TooMuch>,
    /// What cycles of calls do without a poll, each with one of its functions.
    pub(crate) cycles: Vec<(u32, Weight)>,
}

/// What is too heavy, and what reports say of each function. Where something is too heavy, or functions call each other, a second look counts only what a
/// thread can still do once the flag is set: of the functions there, and of all that calls lead to from or to them.
pub(crate) fn weigh(
    (functions, answers): (&Functions<'_>, &Answers<'_, '_>),
    all: &[Vec<LoopProof>],
    recursions: &[Recursion],
) -> (Heavy, Vec<Linkage>) {
    let calls = &functions.calls;
    let weighed = |index: usize| {
        let rounds = &all[index];
        let may_return =
            if rounds.is_empty() { Vec::new() } else { functions.graphs[index].may_return(&functions.module.functions[index]) };
        let returning = rounds.iter().map(|round| may_return[round.head as usize]).collect();
        Weighed::new(rounds, returning, &calls[index], |statement| functions.block_of(index, statement))
    };
    let weighed: Vec<Weighed<'_>> = (0..calls.len()).map(weighed).collect();
    let groups = groups(calls);
    let with_calls: BTreeSet<usize> = (0..calls.len()).filter(|index| !calls[*index].is_empty()).map(|index| groups[index]).collect();
    let mut lives = vec![Live::ANYTHING; calls.len()];
    let mut look_closer = |at: &mut dyn Iterator<Item = usize>| {
        let asked: BTreeSet<usize> = at.map(|index| groups[index]).collect();
        for (index, live) in lives.iter_mut().enumerate().filter(|(index, _)| asked.contains(&groups[*index])) {
            let (blocks, returns) = answers.reached(index, false);
            *live = Live { blocks: Some(blocks), returns };
        }
        (weights(functions, &weighed, &lives), asked)
    };
    let ((mut known, mut found), closer) =
        look_closer(&mut recursions.iter().flat_map(|recursion| &recursion.set).map(|index| *index as usize));
    let is_heavy = |found: &TooMuch| found.calls.is_some() || found.loops.iter().any(|weight| weight.is_too_much());
    let is_open =
        |(index, found): &(usize, &TooMuch)| is_heavy(found) && with_calls.contains(&groups[*index]) && !closer.contains(&groups[*index]);
    let open: Vec<usize> = found.functions.iter().enumerate().filter(is_open).map(|(index, _)| index).collect();
    if !open.is_empty() {
        ((known, found), _) = look_closer(&mut open.into_iter());
    }
    (found, links(functions, &weighed, &known))
}

/// For each function the first of those that calls lead to from or to it, by way of others too.
fn groups(calls: &Calls) -> Vec<usize> {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); calls.len()];
    for (from, all) in calls.iter().enumerate() {
        for (_, to) in all {
            next[from].push(*to as usize);
            next[*to as usize].push(from);
        }
    }
    let mut groups = vec![usize::MAX; calls.len()];
    for first in 0..calls.len() {
        let mut work = vec![first];
        while let Some(index) = work.pop() {
            if groups[index] == usize::MAX {
                groups[index] = first;
                work.extend(&next[index]);
            }
        }
    }
    groups
}

/// What reports say of each function.
fn links(functions: &Functions<'_>, weighed: &[Weighed<'_>], known: &Known) -> Vec<Linkage> {
    let outside = outside(functions, weighed);
    let link = |name: &str, is_shared: bool, index: usize| Linkage {
        function: name.to_owned(),
        is_shared,
        weight: known.weights[index],
        whole: known.wholes[index],
        polls: known.rests[index] != CallWeight::NOTHING,
        calls: outside[index].clone(),
    };
    let all = &functions.module.functions;
    let aliases = &functions.module.aliases;
    let named = all.iter().map(|function| function.name).zip(0..).filter(|_| !aliases.is_empty());
    let by_name: BTreeMap<&str, usize> = named.collect();
    // Its prototype says whether others see an alias: they are taken to.
    let aliases = aliases.iter().filter_map(|(alias, of)| Some(link(alias, true, *by_name.get(of)?)));
    let own = all.iter().enumerate().map(|(index, function)| link(function.name, matches!(function.linkage, ".visible" | ".weak"), index));
    own.chain(aliases).collect()
}

/// The functions of other units that each function calls, itself or by way of others, and how often. What is behind a launch is among them, but counts nothing.
fn outside(functions: &Functions<'_>, weighed: &[Weighed<'_>]) -> Vec<BTreeMap<String, u64>> {
    let leads_to = &functions.leads_to;
    let (mut cycles, returning) = (Cycles::find(leads_to), Cycles::find(&functions.calls));
    let mut outside: Vec<BTreeMap<String, u64>> = vec![BTreeMap::new(); leads_to.len()];
    let add = |outside: &mut BTreeMap<String, u64>, callee: &str, times: u64| {
        let known = outside.entry(callee.to_owned()).or_insert(0);
        *known = known.saturating_add(times);
    };
    for index in callees_first(leads_to) {
        let mut own = BTreeMap::new();
        let function = &functions.module.functions[index];
        let times = |statement: u32| weighed[index].times(functions.block_of(index, statement));
        for call in &function.calls {
            match (functions.callees.of(function, call.statement), call.target) {
                // A unit may define what launches kernels elsewhere.
                (Callee::Unknown(callee) | Callee::System(callee), _) | (Callee::Launch(_), CallTarget::Name(callee)) => {
                    add(&mut own, callee, times(call.statement));
                }
                _ => {}
            }
        }
        for (nth, (statement, to)) in leads_to[index].iter().enumerate().filter(|(_, (_, to))| !cycles.are_together(index, *to)) {
            let times = if nth < functions.calls[index].len() { times(*statement) } else { 0 };
            for (callee, more) in &outside[*to as usize] {
                add(&mut own, callee, times.saturating_mul(*more));
            }
        }
        outside[index] = own;
        if let Some(set) = cycles.ends_with(index) {
            // Each of them leads to what the others call, and as often as there may be activations.
            let mut all = BTreeMap::new();
            for function in set {
                let activations = if returning.holds(*function) { MOST_ACTIVATIONS } else { 1 };
                outside[*function as usize].iter().for_each(|(callee, times)| add(&mut all, callee, times.saturating_mul(activations)));
            }
            for function in set {
                outside[*function as usize].clone_from(&all);
            }
        }
    }
    outside
}

/// The weight of each function, and what is too heavy in it, where so much of each function is reached.
fn weights(functions: &Functions<'_>, weighed: &[Weighed<'_>], lives: &[Live]) -> (Known, Heavy) {
    let calls = &functions.calls;
    // In a cycle of calls that is polled, calls that no thread makes any more once the flag is set lead back.
    let live = |index: usize, statement: u32| {
        let blocks = lives[index].blocks.as_ref();
        blocks.is_none_or(|blocks| blocks.contains(&functions.block_of(index, statement)))
    };
    let made: Vec<Vec<(u32, u32)>> = calls
        .iter()
        .enumerate()
        .map(|(index, all)| all.iter().filter(|(statement, _)| live(index, *statement)).copied().collect())
        .collect();
    let mut weights = vec![CallWeight::ONE; calls.len()];
    for index in callees_first(&made) {
        weights[index] = weighed[index].weight(&weights, lives, &lives[index]).unless_too_much();
    }
    let mut cycles = Vec::new();
    let rests = rests(functions, weighed, (&weights, lives), &mut cycles);
    let too_much = weighed.iter().map(|weighed| weighed.too_much(&weights, &rests, lives)).collect();
    let wholes = weighed.iter().map(|weighed| weighed.rest(&weights, &rests, lives, true).unless_too_much()).collect();
    (Known { weights, rests, wholes }, Heavy { functions: too_much, cycles })
}

/// What each function does behind a poll, up to its return; `heavy` gets cycles of calls for which that is too much.
fn rests(
    functions: &Functions<'_>,
    weighed: &[Weighed<'_>],
    (weights, lives): (&[CallWeight], &[Live]),
    heavy: &mut Vec<(u32, Weight)>,
) -> Vec<CallWeight> {
    let calls = &functions.calls;
    let mut cycles = Cycles::find(calls);
    let mut rests = vec![CallWeight::NOTHING; calls.len()];
    let unless = |rest: CallWeight| if rest.is_too_much() { CallWeight::NOTHING } else { rest };
    for index in callees_first(calls) {
        // Where nothing is left out, what comes behind a poll is among what comes behind the entry.
        let Some(reached) = &lives[index].blocks else { continue };
        let place = functions.graphs[index].reverse_postorder();
        let blocks = place.iter().filter(|place| **place != u32::MAX).count();
        let polls = !lives[index].returns || reached.len() < blocks;
        rests[index] = unless(weighed[index].rest(weights, &rests, lives, polls));
        if let Some(set) = cycles.ends_with(index) {
            // The way back begins behind a poll in one of them.
            let begun = set.iter().map(|function| rests[*function as usize]).fold(CallWeight::NOTHING, CallWeight::max);
            let rest = unwinding(functions, weighed, set, (weights, &rests, lives)).and(begun);
            heavy.extend(set.first().filter(|_| rest.is_too_much()).map(|first| (*first, rest.ending)));
            for function in set {
                rests[*function as usize] = unless(rest);
            }
        }
    }
    rests
}
