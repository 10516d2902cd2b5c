//! Fifty mutants of a kernel, some of which never end: a verdict on each, in one process and one context.
//!
//!     cargo run --release --example mutants --features jit -- --fuel --repeat 20

mod operators;
mod trial;

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;
use trial::{Trial, Verdict};

const SOURCE: &str = include_str!("../../../kernels/number_theory.cu");
const USAGE: &str = "usage: mutants [--timeout | --fuel] [--repeat N]

Limits each mutant to ten times the original's own time (--timeout, the default) or iterations (--fuel), and prints a verdict on each. Repeated,
it says whether the verdicts are the same each time: with fuel they are, with a timeout those at its edge depend on the moment.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((by_fuel, repeat)) = parse(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(by_fuel, repeat) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mutants: {error}");
            ExitCode::from(2)
        }
    }
}

fn parse(arguments: &[String]) -> Option<(bool, usize)> {
    let (mut by_fuel, mut repeat) = (false, 1);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--fuel" => by_fuel = true,
            "--timeout" => by_fuel = false,
            "--repeat" => repeat = arguments.next()?.parse().ok().filter(|count| *count > 0)?,
            _ => return None,
        }
    }
    Some((by_fuel, repeat))
}

fn run(by_fuel: bool, repeat: usize) -> Result<(), Box<dyn Error>> {
    let context = cuinstr_runtime::open(0)?;
    let mutants = operators::mutants(SOURCE, 50);
    let since = Instant::now();
    let mut trial = Trial::new(&context, SOURCE, &mutants)?;
    println!("compiled {} mutants in {:.1?}", mutants.len(), since.elapsed());

    let limit = if by_fuel { trial.fuel()? } else { trial.timeout()? };
    let since = Instant::now();
    let lists = (0..repeat).map(|_| trial.judge(limit)).collect::<Result<Vec<_>, _>>()?;
    let took = since.elapsed();

    let is_steady = |index: usize| lists.iter().all(|list| list[index] == lists[0][index]);
    for (index, mutant) in mutants.iter().enumerate() {
        let note = if is_steady(index) { "" } else { ", but not each time" };
        println!("line {:3}  {:32} {}{note}", mutant.line, mutant.change, lists[0][index]);
    }
    println!();
    for verdict in [Verdict::Wrong, Verdict::Stopped, Verdict::Survived, Verdict::DoesNotCompile] {
        println!("{:4} {verdict}", lists[0].iter().filter(|found| **found == verdict).count());
    }
    println!("\n{limit} for each; {} launches in {took:.1?}", repeat * mutants.len());
    if repeat > 1 {
        let same = lists.iter().filter(|list| **list == lists[0]).count();
        println!("{same} of {repeat} lists of verdicts are equal to the first");
    }
    Ok(())
}
