//! The list of cases: stable names that read as sentences, what each checks, and which of them share a process.

use crate::checks::{self, Overrun};
use crate::session::{Checked, Session, word};
use cuinstr::options::Polls;
use cuinstr_abi::control::{Action, Why};
use cuinstr_harness::fixtures::Fixture;
use cuinstr_harness::variant::{BENCHED, MATRIX};
use std::time::Duration;

/// One thing to check on a GPU.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// What it checks.
    pub check: Check,
    /// Cases of the same process bear the same word; each other case has a process of its own.
    pub process: String,
    /// Whether its times or its survival depend on having the GPU to itself.
    pub alone: bool,
    /// When to give up on it.
    pub limit: Duration,
    /// A variable of its process's environment.
    pub env: Option<(&'static str, &'static str)>,
}

/// What is checked.
#[derive(Debug, Clone)]
pub enum Check {
    /// A kernel that is not stopped computes what its source says.
    Same(String),
    /// A hang is stopped for this reason, in this way, under these polls.
    Stopped(String, Why, Action, Polls),
    /// A hang of tier 1 leaves at its deadline.
    Deadline(String),
    /// A hang of another tier does not.
    Escapes(String),
    /// A hang that was not rewritten hangs.
    Twin(String),
    /// A kernel without a loop is stopped at its end.
    Exit(Overrun, Action),
    /// A launch that was cancelled before it began does nothing.
    Entry,
    /// A block that only a gate can end.
    Gate(String),
    /// The same without the gate.
    NoGate(String),
    /// A host that arms nothing.
    Unarmed,
    /// A cancel that is late hits no later launch.
    LateCancel,
    /// The same for a kernel that ends by itself.
    LateCancelSound,
    /// Fuel is exact, for this probe.
    Fuel(String),
    /// Time from cancel to drained.
    Latency(Polls),
    /// Time with polls over time without.
    Overhead(String),
    /// Something that the runtime promises.
    Runtime(&'static checks::runtime::Promise),
}

impl Case {
    /// Runs it.
    ///
    /// # Errors
    /// Why it failed.
    pub fn run(&self, session: &Session) -> Checked {
        match &self.check {
            Check::Same(name) => checks::same::same_results(session, name),
            Check::Stopped(name, why, action, polls) => checks::stop::stopped(session, name, *why, *action, *polls),
            Check::Deadline(name) => checks::stop::leaves_at_its_deadline(session, name),
            Check::Escapes(name) => checks::stop::escapes(session, name),
            Check::Twin(name) => checks::stop::hangs(session, name),
            Check::Exit(overrun, action) => checks::exit::stopped_at_its_end(session, *overrun, *action),
            Check::Entry => checks::exit::cancelled_before_it_began(session),
            Check::Gate(name) => checks::exit::gate_ends_it(session, name),
            Check::NoGate(name) => checks::exit::hangs_without_the_gate(session, name),
            Check::Unarmed => checks::limits::unarmed(session),
            Check::LateCancel => checks::limits::late_cancel(session),
            Check::LateCancelSound => checks::limits::late_cancel_of_a_sound_kernel(session),
            Check::Fuel(name) => checks::limits::fuel_is_exact(session, name),
            Check::Latency(polls) => checks::timing::latency(session, *polls),
            Check::Overhead(name) => checks::timing::overhead(session, name),
            Check::Runtime(promise) => promise.check(session),
        }
    }
}

/// All cases for these fixtures, in the order in which they are run: what needs the GPU for itself comes last.
#[must_use]
pub fn all(fixtures: &[Fixture]) -> Vec<Case> {
    let mut cases = Vec::new();
    let (hangs, others): (Vec<_>, Vec<_>) = fixtures.iter().partition(|fixture| fixture.tier() > 0);
    for fixture in others.iter().filter(|fixture| !fixture.name.starts_with("probe/")) {
        let name = &fixture.name;
        cases.push(case(format!("same: {name} computes the same with polls"), Check::Same(name.clone())).sharing("same"));
    }
    for fixture in &hangs {
        let name = &fixture.name;
        cases.push(case(format!("twin: {name} hangs without polls"), Check::Twin(name.clone())));
    }
    stops(&hangs, &mut cases);
    for fixture in &hangs {
        let name = &fixture.name;
        if fixture.tier() == 1 {
            let check = Check::Deadline(name.clone());
            cases.push(case(format!("deadline: {name} leaves at its deadline"), check).sharing("deadline").alone());
        } else {
            cases.push(case(format!("deadline: {name} is out of a poll's reach"), Check::Escapes(name.clone())));
        }
        if fixture.header.stuck {
            cases.push(case(format!("gate: {name} is ended by the gate"), Check::Gate(name.clone())));
            cases.push(case(format!("gate: {name} hangs without the gate"), Check::NoGate(name.clone())));
        }
    }
    exits(&mut cases);
    cases.push(case("unarmed: three right answers and then a hang that traps", Check::Unarmed));
    cases.push(case("cancel: a late cancel stops no later launch", Check::LateCancel).sharing("cancel"));
    cases.push(case("cancel: a late cancel leaves a sound kernel alone", Check::LateCancelSound).sharing("cancel"));
    for (probe, shape) in [("probe/count_steps", "one loop"), ("probe/count_nested", "nested loops")] {
        cases.push(case(format!("fuel: {shape} stops at exactly the same counts"), Check::Fuel(probe.into())).sharing("fuel"));
    }
    for polls in [Polls::Amortised, Polls::Each] {
        let name = format!("latency: thirty cancels of a full GPU, polls {}", polls_word(polls));
        cases.push(case(name, Check::Latency(polls)).sharing("latency").alone());
    }
    for name in BENCHED.iter().filter(|name| fixtures.iter().any(|fixture| fixture.name == **name)) {
        let check = Check::Overhead((*name).to_owned());
        cases.push(case(format!("overhead: {name}"), check).sharing("overhead").alone().within(60));
    }
    for promise in checks::runtime::promises() {
        let new = case(format!("runtime: {}", promise.name), Check::Runtime(promise)).alone();
        let limit = promise.seconds.map_or(new.limit, Duration::from_secs);
        cases.push(Case { env: promise.env, limit, ..new });
    }
    cases.sort_by_key(|case| case.alone);
    cases
}

/// The sixteen combinations of reason, action and poll form, for each hang of the matrix.
fn stops(hangs: &[&Fixture], cases: &mut Vec<Case>) {
    for name in MATRIX.iter().filter(|name| hangs.iter().any(|hang| hang.name == **name)) {
        for (action, verb) in [(Action::Leave, "leaves"), (Action::Trap, "traps")] {
            for why in [Why::Flag, Why::Deadline, Why::Budget, Why::Fuel] {
                for polls in [Polls::Amortised, Polls::Each] {
                    let title = format!("matrix: {name} {verb} for {}, polls {}", word(why), polls_word(polls));
                    let new = case(title, Check::Stopped((*name).to_owned(), why, action, polls));
                    cases.push(if action == Action::Leave { new.sharing("matrix") } else { new });
                }
            }
        }
    }
}

fn exits(cases: &mut Vec<Case>) {
    for (overrun, word) in [(Overrun::Flag, "cancelled"), (Overrun::Deadline, "late")] {
        let trap = format!("exit: a kernel without a loop that is {word} traps at its end");
        let leave = format!("exit: a kernel without a loop that is {word} completes under leave, and says so");
        cases.push(case(trap, Check::Exit(overrun, Action::Trap)));
        cases.push(case(leave, Check::Exit(overrun, Action::Leave)).sharing("exit"));
    }
    cases.push(case("entry: a launch cancelled before it began touches nothing", Check::Entry).sharing("exit"));
}

fn polls_word(polls: Polls) -> &'static str {
    match polls {
        Polls::Amortised => "default",
        Polls::CountDown => "count-down",
        Polls::Each => "each",
    }
}

fn case(name: impl Into<String>, check: Check) -> Case {
    let name = name.into();
    Case { process: name.clone(), name, check, alone: false, limit: Duration::from_secs(30), env: None }
}

impl Case {
    fn sharing(mut self, process: &str) -> Self {
        process.clone_into(&mut self.process);
        self
    }

    fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    fn within(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuinstr_harness::fixtures;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_processes_hold_only_cases_of_one_sort() {
        let cases = all(&fixtures::all().expect("the headers are right"));
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len());
        for case in &cases {
            assert!(cases.iter().all(|other| other.process != case.process || other.alone == case.alone), "{}", case.name);
        }
    }

    #[test]
    fn every_combination_of_reason_action_and_polls_has_three_hangs() {
        let fixtures = fixtures::all().expect("the headers are right");
        if fixtures.iter().any(|fixture| fixture.tier() > 0) {
            let stops = all(&fixtures).into_iter().filter(|case| matches!(case.check, Check::Stopped(..))).count();
            assert_eq!(stops, 16 * MATRIX.len());
            assert!(MATRIX.len() >= 3);
        }
    }
}
