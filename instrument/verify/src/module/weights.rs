//! The weight of each function's calls, and what reports say of each function.

use crate::module::call_graph::{Callee, callees_first};
use crate::module::call_trees::{CallWeight, Live, TooMuch, Weighed};
use crate::module::functions::{Answers, Functions};
use crate::module::recursion::Recursion;
use crate::module::report::Linkage;
use crate::rank::loops::LoopProof;
use crate::rank::weight::Weight;
use std::collections::BTreeMap;

/// What is too heavy in each function, and what reports say of each. Where something is too heavy, a second look counts
/// only what a thread can still do once the flag is set.
pub(crate) fn weigh(
    (functions, answers): (&Functions<'_>, &Answers<'_, '_>),
    all: &[Vec<LoopProof>],
    recursions: &[Recursion],
) -> (Vec<TooMuch>, Vec<Linkage>) {
    let calls = &functions.calls;
    let weighed = |index: usize| {
        let rounds = &all[index];
        let may_return =
            if rounds.is_empty() { Vec::new() } else { functions.graphs[index].may_return(&functions.module.functions[index]) };
        let returning = rounds.iter().map(|round| may_return[round.head as usize]).collect();
        Weighed::new(rounds, returning, &calls[index], |statement| functions.block_of(index, statement))
    };
    let weighed: Vec<Weighed<'_>> = (0..calls.len()).map(weighed).collect();
    let mut lives = vec![Live::ANYTHING; calls.len()];
    for &index in recursions.iter().flat_map(|recursion| &recursion.set) {
        lives[index as usize] = live(answers, index as usize);
    }
    let is_heavy = |found: &TooMuch| found.calls.is_some() || found.loops.iter().any(|weight| weight.is_too_much());
    let (mut all_weights, mut found) = weights(functions, &weighed, &lives, false);
    if found.iter().any(is_heavy) && !calls.iter().all(Vec::is_empty) {
        let lives: Vec<Live> = (0..calls.len()).map(|index| live(answers, index)).collect();
        (all_weights, found) = weights(functions, &weighed, &lives, true);
    }
    (found, links(functions, &weighed, &all_weights))
}

/// What reports say of each function.
fn links(functions: &Functions<'_>, weighed: &[Weighed<'_>], weights: &[CallWeight]) -> Vec<Linkage> {
    let calls = &functions.calls;
    let mut outside: Vec<BTreeMap<String, u64>> = vec![BTreeMap::new(); calls.len()];
    let add = |outside: &mut BTreeMap<String, u64>, callee: &str, times: u64| {
        let known = outside.entry(callee.to_owned()).or_insert(0);
        *known = known.saturating_add(times);
    };
    for index in callees_first(calls) {
        let mut own = BTreeMap::new();
        let function = &functions.module.functions[index];
        for at in function.calls.iter().map(|call| call.statement) {
            if let Callee::Unknown(callee) | Callee::System(callee) = functions.callees.of(function, at) {
                add(&mut own, callee, weighed[index].times(functions.block_of(index, at)));
            }
        }
        for (statement, to) in calls[index].iter().filter(|(_, to)| !outside[*to as usize].is_empty()) {
            let times = weighed[index].times(functions.block_of(index, *statement));
            for (callee, more) in &outside[*to as usize] {
                add(&mut own, callee, times.saturating_mul(*more));
            }
        }
        outside[index] = own;
    }
    let link = |name: &str, is_shared: bool, index: usize| Linkage {
        function: name.to_owned(),
        is_shared,
        weight: weights[index],
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

/// The weight of each function, and what is too heavy in it, where so much of each function is reached: all, or `by_flag` what the flag leaves.
fn weights(functions: &Functions<'_>, weighed: &[Weighed<'_>], lives: &[Live], by_flag: bool) -> (Vec<CallWeight>, Vec<TooMuch>) {
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
    // Where nothing is left out, what comes behind a poll is among what comes behind the entry.
    let mut rests = vec![Weight::NOTHING; calls.len()];
    for index in callees_first(calls).into_iter().filter(|_| by_flag) {
        let place = functions.graphs[index].reverse_postorder();
        let blocks = place.iter().filter(|place| **place != u32::MAX).count();
        let polls = !lives[index].returns || lives[index].blocks.as_ref().is_none_or(|reached| reached.len() < blocks);
        let rest = weighed[index].rest(&weights, &rests, lives, polls);
        rests[index] = if rest.is_too_much() { Weight::NOTHING } else { rest };
    }
    let too_much = weighed.iter().map(|weighed| weighed.too_much(&weights, &rests, lives)).collect();
    (weights, too_much)
}

/// What a function may do once the flag is set.
fn live(answers: &Answers<'_, '_>, index: usize) -> Live {
    Live { returns: answers.returns(index, false, 0), blocks: Some(answers.reached(index, false)) }
}
