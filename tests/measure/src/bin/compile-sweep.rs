//! Compiles every kernel, plain and rewritten in several ways, with one nvcc, and compares what it says about each. By hand: it takes
//! minutes. `compile` in `tests/` is the part of it that every commit runs.

use clap::{Parser, ValueEnum};
use cuinstr::options::{Limits, Options, Polls};
use cuinstr_harness::fixtures::{self, Fixture};
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_harness::unit::{Compiled, Unit};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Compiles every kernel, plain and rewritten, for two architectures, and compares the diagnostics.
#[derive(Parser)]
struct Arguments {
    /// The compiler [default: the one that the tests take].
    #[arg(long)]
    nvcc: Option<PathBuf>,
    /// Compilations at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Only kernels whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// What to compile to; `cubin` runs ptxas too, `object` the host's compiler too.
    #[arg(long, value_enum, default_value = "cubin")]
    to: Target,
    /// Which of the two architectures.
    #[arg(long, value_enum, default_value = "both")]
    arch: Arch,
}

#[derive(Clone, Copy, ValueEnum)]
enum Target {
    Ptx,
    Cubin,
    Object,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Arch {
    Min,
    Sm90,
    Both,
}

/// Ways to rewrite, by name.
fn variants() -> [(&'static str, Options); 3] {
    let limits = Limits { timeout_ns: Some(2_000_000_000), budget_cycles: Some(1 << 40), fuel: Some(1_000_000) };
    [
        ("default", Options::default()),
        ("each", Options { polls: Polls::Each, ..Options::default() }),
        ("limits", Options { limits, ..Options::default() }),
    ]
}

/// How one compilation came out, beside the plain one.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// Nothing was said that is not said of the plain file.
    Same,
    /// The plain file is not accepted.
    NotComparable(String),
    /// Refused, or diagnostics that the plain file does not give.
    Worse(String),
}

/// One line of the result: kernel, variant, architecture.
type Result3 = (String, &'static str, String, Outcome);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match sweep(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("compile-sweep: {why}");
            ExitCode::from(2)
        }
    }
}

fn sweep(arguments: &Arguments) -> Result<bool, String> {
    let nvcc = arguments.nvcc.as_deref().map_or_else(Nvcc::find, Nvcc::at)?;
    let wanted = |fixture: &Fixture| arguments.only.as_ref().is_none_or(|only| fixture.name.contains(only.as_str()));
    let fixtures: Vec<Fixture> = fixtures::all()?.into_iter().filter(wanted).collect();
    let mut jobs: Vec<(&Fixture, u32)> = Vec::new();
    for fixture in &fixtures {
        let min = fixture.header.min_arch;
        if arguments.arch != Arch::Sm90 {
            jobs.push((fixture, min));
        }
        // A kernel that needs more than sm_90 has no second architecture.
        if arguments.arch != Arch::Min && (min < 90 || (min == 90 && arguments.arch == Arch::Sm90)) {
            jobs.push((fixture, 90));
        }
    }
    println!("nvcc {} ({}), {} kernels, {} jobs", nvcc.release, nvcc.build, fixtures.len(), arguments.jobs);
    let (since, done) = (Instant::now(), AtomicUsize::new(0));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(arguments.jobs).build().map_err(|error| error.to_string())?;
    let run = |(fixture, arch): &(&Fixture, u32)| {
        let results = compare(&nvcc, fixture, *arch, arguments.to);
        let number = done.fetch_add(1, Ordering::Relaxed) + 1;
        if number.is_multiple_of(20) {
            eprintln!("{number}/{} after {:.0} s", jobs.len(), since.elapsed().as_secs_f64());
        }
        results
    };
    let results: Vec<Result3> = pool.install(|| jobs.par_iter().map(run).collect::<Vec<_>>()).concat();
    report(&results);
    println!("{} compilations in {:.0} s", results.len() + jobs.len(), since.elapsed().as_secs_f64());
    Ok(!results.iter().any(|(.., outcome)| matches!(outcome, Outcome::Worse(_))))
}

/// All variants of a kernel for one architecture.
fn compare(nvcc: &Nvcc, fixture: &Fixture, arch: u32, target: Target) -> Vec<Result3> {
    let to = match target {
        Target::Ptx => "-ptx",
        Target::Cubin => "-cubin",
        Target::Object => "-c",
    };
    let sm = format!("sm_{arch}");
    let args = ["-Xcompiler", "-Wall,-Wextra", to, &format!("-arch={sm}")];
    let plain = Unit::plain(fixture);
    let said_of_plain = plain
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|unit| unit.nvcc(nvcc, &args))
        .and_then(|compiled| if compiled.accepted { Ok(diagnostics(&compiled)) } else { Err(first_lines(&compiled.said)) });
    let outcome = |options: &Options| {
        let (Ok(unit), Ok(expected)) = (&plain, &said_of_plain) else {
            return Outcome::NotComparable(said_of_plain.clone().err().unwrap_or_default());
        };
        match unit.rewrite(options).and_then(|unit| unit.nvcc(nvcc, &args)) {
            Err(why) => Outcome::Worse(why),
            Ok(compiled) if !compiled.accepted => Outcome::Worse(first_lines(&compiled.said)),
            Ok(compiled) => {
                let new: Vec<String> = diagnostics(&compiled).difference(expected).cloned().collect();
                if new.is_empty() { Outcome::Same } else { Outcome::Worse(new.join("\n")) }
            }
        }
    };
    variants().map(|(name, options)| (fixture.name.clone(), name, sm.clone(), outcome(&options))).into()
}

/// The lines that are diagnostics. Files and lines are the same on both sides, columns are not printed on these lines.
fn diagnostics(compiled: &Compiled) -> BTreeSet<String> {
    let is_diagnostic = |line: &&str| ["warning", "error", "remark"].iter().any(|word| line.to_ascii_lowercase().contains(word));
    compiled.said.lines().map(str::trim).filter(is_diagnostic).map(str::to_owned).collect()
}

fn first_lines(text: &str) -> String {
    text.lines().filter(|line| !line.trim().is_empty()).take(8).collect::<Vec<_>>().join("\n")
}

fn report(results: &[Result3]) {
    let mut table: BTreeMap<(&str, &str), [usize; 3]> = BTreeMap::new();
    for (_, variant, arch, outcome) in results {
        let counts = table.entry((variant, arch)).or_default();
        counts[match outcome {
            Outcome::Same => 0,
            Outcome::Worse(_) => 1,
            Outcome::NotComparable(_) => 2,
        }] += 1;
    }
    println!("{:<10} {:<8} {:>12} {:>8} {:>14}", "variant", "arch", "as the plain", "worse", "plain refused");
    for ((variant, arch), [same, worse, refused]) in &table {
        println!("{variant:<10} {arch:<8} {same:>12} {worse:>8} {refused:>14}");
    }
    let mut refused = BTreeSet::new();
    for (kernel, variant, arch, outcome) in results {
        match outcome {
            Outcome::Same => {}
            Outcome::Worse(why) => println!("WORSE {kernel} {variant} {arch}\n  {}", why.replace('\n', "\n  ")),
            Outcome::NotComparable(why) => {
                if refused.insert((kernel, arch)) {
                    println!("plain refused: {kernel} {arch}\n  {}", why.replace('\n', "\n  "));
                }
            }
        }
    }
}
