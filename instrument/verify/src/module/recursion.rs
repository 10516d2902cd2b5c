//! Cycles of calls: functions that call each other.

use crate::module::functions::{Answers, Functions};
use crate::module::report::Verdict;
use crate::program::cfg::Components;
use std::collections::BTreeMap;

/// Functions that call each other.
pub(crate) struct Recursion {
    pub(crate) set: Vec<u32>,
    pub(crate) verdict: Verdict,
}

/// Cycles of calls, each with what is proved of it.
pub(crate) fn find(functions: &Functions<'_>, answers: &Answers<'_, '_>, components: &mut Components) -> Vec<Recursion> {
    let calls = &functions.leads_to;
    let nodes: Vec<u32> = (0..calls.len() as u32).collect();
    let sets = components.find(calls.len(), &nodes, |from, nth| calls[from as usize].get(nth as usize).map(|(_, to)| Some(*to)));
    let recursion = |mut set: Vec<u32>| {
        set.sort_unstable();
        let verdict = if is_cut((functions, answers), &set, false, components) {
            Verdict::Polled { rounds: 0 }
        } else if is_cut((functions, answers), &set, true, components) {
            Verdict::TrapOnly
        } else {
            Verdict::NotPolled { why: "functions call each other without a poll on the way".to_owned() }
        };
        Recursion { set, verdict }
    };
    sets.into_iter().map(recursion).collect()
}

/// Whether no cycle is left among these functions without the calls that no thread makes once the flag says stop.
fn is_cut((functions, answers): (&Functions<'_>, &Answers<'_, '_>), set: &[u32], trap: bool, components: &mut Components) -> bool {
    let made = |&index: &u32| {
        let (reached, _) = answers.reached(index as usize, trap);
        let all = functions.leads_to[index as usize].iter().filter(|(at, _)| reached.contains(&functions.block_of(index as usize, *at)));
        (index, all.map(|(_, to)| *to).collect())
    };
    let made: BTreeMap<u32, Vec<u32>> = set.iter().map(made).collect();
    let next =
        |from: u32, nth: u32| made.get(&from).and_then(|all| all.get(nth as usize)).map(|to| Some(*to).filter(|to| made.contains_key(to)));
    components.find(functions.calls.len(), set, next).is_empty()
}
