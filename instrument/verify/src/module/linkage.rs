//! Calls from one unit to another, where all units of a program are given. A call that leaves one unit leads to a
//! function of another.
//!
//! Each unit is proved by itself. It takes calls that leave it to return without a poll. Two questions remain for the
//! program: whether a cycle of calls leads through several units, and whether weights multiply across units beyond the
//! limit of one.

use crate::module::call_trees::{CallWeight, Made};
use crate::module::report::{Loop, Report, Verdict};
use std::collections::BTreeMap;

/// The units of a program.
#[derive(Debug, Default)]
pub struct Program {
    /// Functions by name. One that other units do not see has its unit's number behind a zero byte.
    functions: BTreeMap<String, Function>,
    units: usize,
    /// For each object that is linked whether it has a control block that others do not see.
    controls: BTreeMap<String, bool>,
}

/// What a unit says of a function.
#[derive(Debug)]
struct Function {
    /// See [`Linkage`](crate::report::Linkage).
    weight: CallWeight,
    whole: CallWeight,
    polls: bool,
    calls: BTreeMap<String, u64>,
}

impl Default for Function {
    fn default() -> Self {
        Self { weight: CallWeight::ONE, whole: CallWeight::ONE, polls: false, calls: BTreeMap::new() }
    }
}

/// What a function weighs with all units.
#[derive(Debug, Clone, Copy)]
struct Weighed {
    weight: CallWeight,
    /// Behind a poll in it, or in what it calls.
    rest: CallWeight,
}

impl Function {
    /// Its weight with what it calls in other units, of which `of` says what they weigh.
    fn with_calls(&self, of: impl Fn(&str) -> Option<Weighed>) -> Weighed {
        let known = || self.calls.iter().filter_map(|(callee, times)| Some((of(callee)?, *times)));
        let made = known().fold(Made::NONE, |made, (callee, times)| made.and(callee.weight, times));
        // One function may be called within the unit and by others, so both count.
        let with = |own: CallWeight| made.and(own, 1).of_caller(CallWeight::NOTHING);
        let rest = known().map(|(callee, _)| callee.rest).fold(CallWeight::NOTHING, CallWeight::max);
        let polls = self.polls || rest != CallWeight::NOTHING;
        Weighed { weight: with(self.weight), rest: if polls { with(self.whole).and(rest) } else { CallWeight::NOTHING } }
    }
}

impl Program {
    /// Takes a unit's functions. Of several with one name, as inline functions have, the linker takes any.
    pub fn add(&mut self, report: &Report) {
        self.units += 1;
        for linkage in &report.links {
            let name = if linkage.is_shared { linkage.function.clone() } else { format!("{}\0{}", linkage.function, self.units) };
            let known = self.functions.entry(name).or_default();
            known.weight = known.weight.max(linkage.weight);
            known.whole = known.whole.max(linkage.whole);
            known.polls |= linkage.polls;
            for (callee, times) in &linkage.calls {
                let known = known.calls.entry(callee.clone()).or_insert(0);
                *known = times.max(known).to_owned();
            }
        }
    }

    /// Notes that the device linker links a text with those of other objects: relocatable code. An object may have one for each architecture, and
    /// the linker takes any that its target runs.
    pub fn link(&mut self, object: &str, report: &Report) {
        *self.controls.entry(object.to_owned()).or_default() |= report.has_own_control;
    }

    /// Whether some unit defines a function.
    #[must_use]
    pub fn defines(&self, function: &str) -> bool {
        self.functions.contains_key(function)
    }

    /// Whether one of several objects that are linked has a control block of its own: the host writes to another one.
    #[must_use]
    pub fn has_two_controls(&self) -> bool {
        self.controls.len() > 1 && self.controls.values().any(|has_own| *has_own)
    }

    /// What is not proved of calls between units.
    #[must_use]
    pub fn findings(&self) -> Vec<Loop> {
        let mut found = Vec::new();
        // What a function weighs with all that it calls; none while it is being asked.
        let mut weights: BTreeMap<&str, Option<Weighed>> = BTreeMap::new();
        for root in self.functions.iter().filter(|(_, function)| !function.calls.is_empty()).map(|(name, _)| name.as_str()) {
            let mut work = vec![(root, false)];
            while let Some((name, is_done)) = work.pop() {
                let Some(function) = self.functions.get(name) else { continue };
                if !is_done {
                    match weights.get(name) {
                        Some(Some(_)) => continue,
                        Some(None) => {
                            found.push(finding(
                                name,
                                Verdict::NotPolled { why: "functions of several units call each other".to_owned() },
                                true,
                            ));
                            continue;
                        }
                        None => {}
                    }
                    weights.insert(name, None);
                    work.push((name, true));
                    work.extend(function.calls.keys().map(|callee| (callee.as_str(), false)));
                    continue;
                }
                let weighed = function.with_calls(|callee| {
                    // What no unit defines is the system's, or is a finding of its own.
                    let known = self.functions.contains_key(callee);
                    known.then(|| {
                        weights.get(callee).copied().flatten().unwrap_or(Weighed { weight: CallWeight::ONE, rest: CallWeight::NOTHING })
                    })
                });
                let heaviest = weighed.weight.max(weighed.rest).ending;
                if heaviest.is_too_much() && !function.weight.is_too_much() {
                    found.push(finding(name, Verdict::too_many(heaviest), false));
                }
                let rest = if weighed.rest.is_too_much() { CallWeight::NOTHING } else { weighed.rest };
                weights.insert(name, Some(Weighed { weight: weighed.weight.unless_too_much(), rest }));
            }
        }
        found.sort_by(|one, other| one.function.cmp(&other.function));
        found.dedup();
        found
    }
}

fn finding(name: &str, verdict: Verdict, recursion: bool) -> Loop {
    let function = name.split('\0').next().unwrap_or(name);
    Loop {
        function: function.to_owned(),
        kernels: Vec::new(),
        verdict,
        line: 1,
        place: None,
        lines: Vec::new(),
        blocks: vec![function.to_owned()],
        depth: 0,
        recursion,
        call_tree: !recursion,
        marked: Vec::new(),
    }
}
