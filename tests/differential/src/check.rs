//! Programs checked in bulk, and what is compared.

use super::batch::{self, Broken, Key, Run, Runs, Workshop};
use super::generate;
use super::lane::{self, Lane};
use super::program::Program;
use cuinstr::options::Polls;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Most iterations, of loops that poll, between two looks of an activation: the promise of the default form.
pub const MOST: u64 = 1 << 16;

/// Programs in one translation unit.
const BATCH: usize = 150;

/// Of so many batches one is compiled in the rare ways, too.
const RARE: u64 = 10;

/// What to check.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Seeds of the programs.
    pub seeds: Range<u64>,
    /// Sets of arguments that each program is run with.
    pub sets: u32,
    /// Whether the first batch is among those that are compiled in the rare ways.
    pub rare: bool,
    /// When no further batch is begun.
    pub until: Option<Instant>,
}

/// A difference, or something else that must not be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Failure {
    /// The program's seed, if one program is to blame.
    pub seed: Option<u64>,
    /// The way in which it was compiled; none if the plain program itself is at fault.
    pub lane: Option<&'static str>,
    /// What it is.
    pub why: String,
}

/// What a check came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Programs that were compared.
    pub programs: usize,
    /// Runs that were compared.
    pub runs: usize,
    /// Runs of plain programs whose behaviour is undefined: there is nothing to compare.
    pub undefined: usize,
    /// Runs that were cut after their budget.
    pub cut: usize,
    /// Iterations of the default form, and its looks.
    pub ticks: u64,
    /// Looks of the default form.
    pub looks: u64,
    /// Most iterations between two looks that were seen.
    pub gap: u64,
    /// Loops by the name of the form that the default gave them.
    pub forms: BTreeMap<String, usize>,
    /// What must not be.
    pub failures: Vec<Failure>,
}

impl Report {
    fn add(mut self, other: Self) -> Self {
        self.programs += other.programs;
        self.runs += other.runs;
        self.undefined += other.undefined;
        self.cut += other.cut;
        self.ticks += other.ticks;
        self.looks += other.looks;
        self.gap = self.gap.max(other.gap);
        for (form, loops) in other.forms {
            *self.forms.entry(form).or_insert(0) += loops;
        }
        self.failures.extend(other.failures);
        self
    }
}

/// Checks programs in batches, on as many cores as there are; `progress` hears of each batch. Batches begin in the order of their seeds, so what was
/// checked by a limit of time are the first of them.
///
/// # Errors
/// If there is no C++ compiler.
pub fn check(plan: &Plan, progress: impl Fn(&Report) + Sync) -> Result<Report, String> {
    let workshop = Workshop::new()?;
    let starts: Vec<u64> = plan.seeds.clone().step_by(BATCH).collect();
    let next = AtomicUsize::new(0);
    let batch = || {
        let in_time = plan.until.is_none_or(|until| Instant::now() < until);
        let start = *starts.get(if in_time { next.fetch_add(1, Ordering::Relaxed) } else { usize::MAX })?;
        let programs: Vec<Program> = (start..(start + BATCH as u64).min(plan.seeds.end)).map(generate::program).collect();
        let mut lanes = lane::rewritten_lanes();
        if plan.rare && (start / BATCH as u64).is_multiple_of(RARE) {
            lanes.append(&mut lane::rare_lanes());
        }
        let report = compare(&workshop, &programs.iter().collect::<Vec<_>>(), &lanes, plan.sets);
        progress(&report);
        Some(report)
    };
    let worker = |_| std::iter::from_fn(batch).fold(Report::default(), Report::add);
    Ok((0..rayon::current_num_threads()).into_par_iter().map(worker).reduce(Report::default, Report::add))
}

/// Checks these programs.
#[must_use]
pub fn compare(workshop: &Workshop, programs: &[&Program], lanes: &[Lane], sets: u32) -> Report {
    let mut report = Report::default();
    let plain = match workshop.run(programs, &lane::model(), sets, None) {
        Ok(plain) => plain.text,
        Err(broken) => return without(workshop, programs, lanes, sets, None, broken),
    };
    let expected = batch::parse(&plain);
    let wholes = expected.iter().filter(|((.., what, _), _)| what == "whole").map(|(_, run)| run);
    for run in wholes {
        report.undefined += usize::from(run.status.starts_with("undefined"));
        report.cut += usize::from(run.status.starts_with("cut"));
    }
    report.programs = programs.len();
    let single: BTreeSet<u64> = programs.iter().filter(|program| program.single).map(|program| program.seed).collect();
    let pays_at_entry: BTreeSet<u64> = programs.iter().filter(|program| program.has_lambda()).map(|program| program.seed).collect();
    for lane in lanes {
        let found = match workshop.run(programs, lane, sets, Some(&plain)) {
            Ok(found) => {
                if lane.name == "default" {
                    report.forms = found.forms;
                }
                batch::parse(&found.text)
            }
            Err(broken) => {
                // What is known of the program that goes is kept; the others are run again.
                report.failures.retain(|failure| failure.seed == broken.seed && failure.seed.is_some());
                let known = Report { failures: report.failures, ..Report::default() };
                return known.add(without(workshop, programs, lanes, sets, Some(lane.name), broken));
            }
        };
        report.runs += found.len();
        if lane.name == "default" {
            for (_, run) in found.iter().filter(|((.., what, _), _)| what == "whole") {
                report.ticks += run.ticks;
                report.looks += run.looks;
            }
        }
        report.failures.extend(differences(lane, &expected, &found, (&single, &pays_at_entry)));
        report.gap = found.iter().filter(|((seed, ..), _)| single.contains(seed)).map(|(_, run)| run.gap).fold(report.gap, u64::max);
    }
    report
}

/// The same without the program that broke the batch, or in halves until it is alone.
fn without(workshop: &Workshop, programs: &[&Program], lanes: &[Lane], sets: u32, lane: Option<&'static str>, broken: Broken) -> Report {
    let alone = |program: &Program| Failure { seed: Some(program.seed), lane, why: broken.why.clone() };
    if let Some(seed) = broken.seed.filter(|seed| programs.iter().any(|program| program.seed == *seed)) {
        let others: Vec<&Program> = programs.iter().copied().filter(|program| program.seed != seed).collect();
        let failure = Failure { seed: Some(seed), lane, why: broken.why };
        let rest = if others.is_empty() { Report::default() } else { compare(workshop, &others, lanes, sets) };
        return rest.add(Report { programs: 1, failures: vec![failure], ..Report::default() });
    }
    match programs {
        [] => Report::default(),
        [program] => Report { programs: 1, failures: vec![alone(program)], ..Report::default() },
        _ => {
            let (first, second) = programs.split_at(programs.len() / 2);
            compare(workshop, first, lanes, sets).add(compare(workshop, second, lanes, sets))
        }
    }
}

fn differences(lane: &Lane, expected: &Runs, found: &Runs, (single, pays_at_entry): (&BTreeSet<u64>, &BTreeSet<u64>)) -> Vec<Failure> {
    let mut failures: BTreeMap<u64, String> = BTreeMap::new();
    let each = lane.options.as_ref().is_some_and(|options| options.polls == Polls::Each);
    let fuel = lane.options.as_ref().is_some_and(|options| options.limits.fuel.is_some());
    for (key, run) in found {
        let (seed, set, what, number) = key;
        let whole: Key = (*seed, *set, "whole".into(), 0);
        let why = match what.as_str() {
            "raise" => after_raising(*number, run, found.get(&whole)),
            _ => expected.get(key).map_or_else(
                || Some("the plain program has no such run".into()),
                |plain| if what == "fuel" && pays_at_entry.contains(seed) { no_later(plain, run) } else { against(plain, run) },
            ),
        };
        let plain = &expected.get(&whole);
        let why = why.or_else(|| match plain {
            Some(plain) if what == "whole" && each && run.looks < plain.edges => {
                Some(format!("{} looks for {} back edges", run.looks, plain.edges))
            }
            Some(plain) if what == "whole" && fuel && run.status == "end0" && run.fuel != plain.edges && !pays_at_entry.contains(seed) => {
                Some(format!("{} units of fuel used for {} back edges", run.fuel, plain.edges))
            }
            _ if single.contains(seed) && run.gap > MOST => Some(format!("{} iterations without a look", run.gap)),
            _ => None,
        });
        if let Some(why) = why {
            failures.entry(*seed).or_insert_with(|| format!("arguments {set}, {what} {number}: {why}"));
        }
    }
    // What the plain program did to its end, the rewritten one must have done, too.
    for ((seed, set, what, number), run) in expected {
        let wanted = what == "whole" || fuel;
        if wanted && !run.status.starts_with("undefined") && !found.contains_key(&(*seed, *set, what.clone(), *number)) {
            let is_undefined = expected.get(&(*seed, *set, "whole".into(), 0)).is_some_and(|whole| whole.status.starts_with("undefined"));
            if !is_undefined {
                failures.entry(*seed).or_insert_with(|| format!("arguments {set}, {what} {number}: it did not run"));
            }
        }
    }
    failures.into_iter().map(|(seed, why)| Failure { seed: Some(seed), lane: Some(lane.name), why }).collect()
}

fn against(plain: &Run, run: &Run) -> Option<String> {
    let same = plain.status == run.status && plain.hash == run.hash && plain.ticks == run.ticks;
    let told = |run: &Run| format!("{} after {} iterations (trace {})", run.status, run.ticks, run.hash);
    (!same).then(|| format!("{}, not {}", told(run), told(plain)))
}

/// A lambda with a loop may pay a unit where it begins, so fuel may end earlier, and never later.
fn no_later(plain: &Run, run: &Run) -> Option<String> {
    let ends = run.status == "left4" || (run.status == plain.status && run.hash == plain.hash);
    let told = |run: &Run| format!("{} after {} iterations", run.status, run.ticks);
    (!ends || run.ticks > plain.ticks).then(|| format!("{}, not {}", told(run), told(plain)))
}

/// A thread leaves at the very look that finds the flag raised; at the kernel's end it is done.
fn after_raising(look: u64, run: &Run, whole: Option<&Run>) -> Option<String> {
    let is_last = whole.is_some_and(|whole| whole.status == "end0" && whole.looks == look);
    let as_it_must = run.looks == look && (run.status == "left1" || (is_last && run.status == "end0"));
    (!as_it_must).then(|| format!("raised at look {look}, it is `{}` after {} looks", run.status, run.looks))
}
