//! All verdicts of an evaluation, counted.

use crate::baseline::Comparison;
use crate::candidate::Origin;
use crate::limits::Limits;
use crate::verdict::{Judgement, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// All verdicts of an evaluation. Its text is a table.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Summary {
    /// All that is known, what the journal knew before first, else in the order of their ends.
    pub judgements: Vec<Judgement>,
    /// How many there will be when all is done.
    pub wanted: usize,
    /// How many of them the journal knew.
    pub known: usize,
    /// How long it took until the first candidate could be run.
    pub prepared: Duration,
    /// How long the candidates took that were judged now, compiling included.
    pub took: Duration,
    /// Worker processes that candidates cost.
    pub losses: u64,
    /// What each case may take.
    pub limits: Vec<Limits>,
    /// Name of the GPU; empty if nothing was run.
    pub device: String,
    /// The same work by one child process a candidate, if that was asked for.
    pub comparison: Option<Comparison>,
}

/// A summary as JSON.
#[derive(Serialize)]
struct Json<'a> {
    device: &'a str,
    wanted: usize,
    judged: usize,
    known: usize,
    prepared_s: f64,
    took_s: f64,
    losses: u64,
    verdicts: BTreeMap<&'static str, usize>,
    unsteady: Vec<(&'a str, Vec<Verdict>)>,
    score: Option<Score>,
    score_by_operator: BTreeMap<&'a str, Score>,
    score_by_function: BTreeMap<&'a str, Score>,
    limits: &'a [Limits],
    comparison: Option<&'a Comparison>,
}

/// How many mutants the test cases noticed, of those that could be run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Score {
    /// Those whose verdict was no pass.
    pub noticed: usize,
    /// All that compiled.
    pub of: usize,
}

impl fmt::Display for Score {
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { noticed, of } = self;
        write!(f, "{:.0} % ({noticed} of {of})", 100.0 * *noticed as f64 / (*of).max(1) as f64)
    }
}

impl Summary {
    /// Mutation scores by what `group` says of a mutant.
    fn scores<'a>(&'a self, group: impl Fn(&'a Origin) -> &'a str) -> BTreeMap<&'a str, Score> {
        let mut scores: BTreeMap<&str, Score> = BTreeMap::new();
        for judgement in self.first_round() {
            let Some(mutant) = &judgement.mutant else { continue };
            if matches!(judgement.verdict, Verdict::CompileError | Verdict::Refused | Verdict::Compiles) {
                continue;
            }
            let score = scores.entry(group(mutant)).or_default();
            score.of += 1;
            score.noticed += usize::from(judgement.verdict != Verdict::Pass);
        }
        scores
    }

    /// The mutation score of all mutants; `None` if none was run.
    #[must_use]
    pub fn score(&self) -> Option<Score> {
        self.scores(|_| "").into_values().next()
    }

    /// The verdicts of each candidate in each case as comma-separated values, a line for each candidate, where all cases were asked for.
    #[must_use]
    pub fn matrix(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let line = |words: &mut dyn Iterator<Item = String>| words.collect::<Vec<_>>().join(",") + "\n";
        let names = self.limits.iter().map(|limits| limits.case.as_str());
        let mut matrix = line(&mut ["candidate", "verdict"].into_iter().chain(names.clone()).map(quoted));
        for judgement in self.first_round() {
            // What could not be run in a case has the verdict of all.
            let of = |name: &str| judgement.cases.iter().find(|found| found.case == name).map_or(judgement.verdict, |found| found.verdict);
            let verdicts = [judgement.verdict].into_iter().chain(names.clone().map(of));
            matrix += &line(&mut [quoted(&judgement.candidate)].into_iter().chain(verdicts.map(|verdict| quoted(verdict.name()))));
        }
        matrix
    }

    /// Whether every candidate was judged as often as asked.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.judgements.len() == self.wanted
    }

    /// How many have this verdict, the first time that they were judged.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.first_round().filter(|judgement| judgement.verdict == verdict).count()
    }

    fn first_round(&self) -> impl Iterator<Item = &Judgement> {
        self.judgements.iter().filter(|judgement| judgement.round == 1)
    }

    /// Candidates whose verdicts were not the same each time, with all of them in the order of their rounds.
    #[must_use]
    pub fn unsteady(&self) -> Vec<(&str, Vec<Verdict>)> {
        let mut verdicts: BTreeMap<&str, BTreeMap<u32, Verdict>> = BTreeMap::new();
        for judgement in &self.judgements {
            verdicts.entry(&judgement.candidate).or_default().insert(judgement.round, judgement.verdict);
        }
        let all = verdicts.into_iter().map(|(name, rounds)| (name, rounds.into_values().collect::<Vec<_>>()));
        all.filter(|(_, verdicts)| verdicts.iter().any(|verdict| *verdict != verdicts[0])).collect()
    }

    fn rounds(&self) -> u32 {
        self.judgements.iter().map(|judgement| judgement.round).max().unwrap_or(0)
    }

    /// All but the judgements, as one JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        let json = Json {
            device: &self.device,
            wanted: self.wanted,
            judged: self.judgements.len(),
            known: self.known,
            prepared_s: self.prepared.as_secs_f64(),
            took_s: self.took.as_secs_f64(),
            losses: self.losses,
            verdicts: Verdict::ALL.into_iter().map(|verdict| (verdict.name(), self.count(verdict))).collect(),
            unsteady: self.unsteady(),
            score: self.score(),
            score_by_operator: self.scores(|mutant| &mutant.operator),
            score_by_function: self.scores(|mutant| &mutant.function),
            limits: &self.limits,
            comparison: self.comparison.as_ref(),
        };
        serde_json::to_string_pretty(&json).unwrap_or_default()
    }

    /// Rows of the table: each operator of the mutator if they are mutants, else all in one.
    fn rows(&self) -> BTreeMap<&str, BTreeMap<Verdict, usize>> {
        let mut rows: BTreeMap<&str, BTreeMap<Verdict, usize>> = BTreeMap::new();
        for judgement in self.first_round() {
            let row = judgement.mutant.as_ref().map_or("candidates", |mutant| mutant.operator.as_str());
            *rows.entry(row).or_default().entry(judgement.verdict).or_default() += 1;
        }
        rows
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdicts: Vec<Verdict> = Verdict::ALL.into_iter().filter(|verdict| self.count(*verdict) > 0).collect();
        let mut shown = self.rows();
        // One row alone says what the last does.
        if shown.len() == 1 {
            shown.clear();
        }
        let width = shown.keys().map(|name| name.len()).chain([3]).max().unwrap_or(3);
        write!(f, "{:width$}", "")?;
        for verdict in &verdicts {
            write!(f, "  {verdict}")?;
        }
        writeln!(f, "    all")?;
        let line = |f: &mut fmt::Formatter<'_>, name: &str, counts: &dyn Fn(Verdict) -> usize| {
            write!(f, "{name:width$}")?;
            for verdict in &verdicts {
                write!(f, "  {:>width$}", counts(*verdict), width = verdict.name().len())?;
            }
            writeln!(f, "  {:>5}", verdicts.iter().map(|verdict| counts(*verdict)).sum::<usize>())
        };
        for (name, counts) in &shown {
            line(f, name, &|verdict| counts.get(&verdict).copied().unwrap_or(0))?;
        }
        line(f, "all", &|verdict| self.count(verdict))?;
        let judged = self.judgements.len() - self.known;
        let seconds = self.took.as_secs_f64();
        write!(f, "{judged} judged in {seconds:.1} s")?;
        if judged > 0 && seconds > 0.0 {
            #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
            write!(f, ", {:.1} a second", judged as f64 / seconds)?;
        }
        if self.known > 0 {
            write!(f, "; {} known from the journal", self.known)?;
        }
        writeln!(f, "; {} worker processes lost", self.losses)?;
        if let Some(score) = self.score() {
            let list =
                |scores: BTreeMap<&str, Score>| scores.iter().map(|(name, score)| format!("{name} {score}")).collect::<Vec<_>>().join(", ");
            writeln!(f, "mutation score {score}; by operator: {}", list(self.scores(|mutant| &mutant.operator)))?;
            writeln!(f, "by function: {}", list(self.scores(|mutant| &mutant.function)))?;
        }
        if !self.is_complete() {
            writeln!(f, "stopped: {} are left; the same command goes on", self.wanted - self.judgements.len())?;
        }
        if self.rounds() > 1 {
            let unsteady = self.unsteady();
            writeln!(f, "{} rounds: verdicts of {} candidates are not the same each time", self.rounds(), unsteady.len())?;
            for (name, verdicts) in unsteady {
                let verdicts: Vec<&str> = verdicts.into_iter().map(Verdict::name).collect();
                writeln!(f, "  {name}: {}", verdicts.join(", "))?;
            }
        }
        if let Some(comparison) = &self.comparison {
            let Comparison { candidates, limit_s, worker_s, worker_by_fuel_s, children_s, at_a_time, same_verdict, .. } = comparison;
            writeln!(
                f,
                "{candidates} of them again, each launch limited to {:.1} ms: worker {worker_s:.2} s; {at_a_time} child process{} a time, killed at the same limit: {children_s:.1} s; {:.1} times; {same_verdict} verdicts the same",
                1e3 * limit_s,
                if *at_a_time == 1 { " at" } else { "es at" },
                comparison.times()
            )?;
            if let Some(by_fuel) = worker_by_fuel_s {
                writeln!(f, "the same by fuel: {by_fuel:.2} s; {:.1} times", children_s / by_fuel)?;
            }
        }
        Ok(())
    }
}
