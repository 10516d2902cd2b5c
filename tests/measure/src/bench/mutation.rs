//! The verdicts on fifty mutants, twenty times under fuel and twenty times under a timeout.

use super::figure::{Row, Target, number};
use super::rig::{Rig, told};
use std::time::Instant;

// The example's own, so that the figure is about what the example shows.
#[path = "../../../../runtime/examples/mutants/operators.rs"]
mod operators;
#[path = "../../../../runtime/examples/mutants/trial.rs"]
mod trial;

use trial::{Limit, Trial, Verdict};

const SOURCE: &str = include_str!("../../../../kernels/number_theory.cu");
const REPEATS: usize = 20;

pub(super) fn mutants(rig: &Rig) -> Result<Vec<Row>, String> {
    let mutants = operators::mutants(SOURCE, 50);
    let since = Instant::now();
    let mut trial = Trial::new(&rig.context, SOURCE, &mutants).map_err(told)?;
    let compiled = since.elapsed();
    let mut rows = Vec::new();
    let limits = [trial.fuel().map_err(told)?, trial.timeout().map_err(told)?];
    for limit in limits {
        let (mut lists, mut took) = (Vec::new(), Vec::new());
        for _ in 0..REPEATS {
            let since = Instant::now();
            lists.push(trial.judge(limit).map_err(told)?);
            took.push(since.elapsed());
        }
        let equal = number(lists.iter().filter(|list| **list == lists[0]).count() as u64);
        let count = |verdict: Verdict| lists[0].iter().filter(|found| **found == verdict).count();
        let verdicts = [Verdict::Wrong, Verdict::Stopped, Verdict::Survived, Verdict::DoesNotCompile];
        let verdicts: Vec<String> = verdicts.into_iter().map(|verdict| format!("{} {verdict}", count(verdict))).collect();
        let differ = |index: &usize| lists.iter().any(|list| list[*index] != lists[0][*index]);
        let differing = (0..mutants.len()).filter(differ).map(|index| &mutants[index]);
        let differing: Vec<String> = differing.map(|mutant| format!("; differs: line {}, {}", mutant.line, mutant.change)).collect();
        let note = verdicts.join(", ") + &differing.concat();
        let row = Row::new(format!("equal verdict lists of {REPEATS} under {limit}"), "", &[equal]).note(note);
        let is_fuel = matches!(limit, Limit::Fuel(_));
        rows.push(if is_fuel { row.target(Target::least(number(REPEATS as u64))) } else { row });
        let word = if is_fuel { "fuel" } else { "a timeout" };
        rows.push(Row::micros(format!("one list of {} verdicts under {word}", mutants.len()), &took));
    }
    let note = "rewritten, compiled with NVRTC by eight threads, loaded";
    rows.push(Row::micros(format!("{} mutants and the original made ready", mutants.len()), &[compiled]).note(note));
    Ok(rows)
}
