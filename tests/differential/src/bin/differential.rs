//! Random loop programs, as they are and rewritten, compared on the host.

use clap::Parser;
use cuinstr_differential::batch::{self, Workshop};
use cuinstr_differential::check::{self, Failure, Plan, Report};
use cuinstr_differential::program::Mode;
use cuinstr_differential::{generate, gpu, lane, reduce};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Compiles random loop programs with the host's compiler, as they are and rewritten in every poll form, and compares what they do. Exits
/// with 0 if nothing differs, 1 if something does.
#[derive(Parser)]
struct Arguments {
    /// Number of programs.
    #[arg(long, default_value_t = 1000)]
    programs: u64,
    /// Seed of the first; each program has its own, so a run goes on where another ended.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Sets of arguments for each program.
    #[arg(long, default_value_t = 4)]
    sets: u32,
    /// Batches at a time [default: as many as there are cores].
    #[arg(long)]
    jobs: Option<usize>,
    /// Seconds after which no further programs are begun; those that were checked are the first.
    #[arg(long)]
    seconds: Option<u64>,
    /// Write the result to this file, too, as JSON: which seeds were checked, and what failed.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print the program of this seed and end.
    #[arg(long, value_name = "SEED")]
    show: Option<u64>,
    /// With --show: rewritten, as the compiler gets it.
    #[arg(long)]
    rewritten: bool,
    /// Write the programs for a GPU instead, into this folder; gpu-run there compiles and runs them.
    #[arg(long, value_name = "FOLDER")]
    gpu: Option<PathBuf>,
    /// Failing programs that are made smaller and printed.
    #[arg(long, default_value_t = 3)]
    reduce: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    run(&arguments).unwrap_or_else(|why| {
        eprintln!("differential: {why}");
        ExitCode::from(2)
    })
}

fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    if let Some(seed) = arguments.show {
        let program = generate::program(seed);
        let text = if arguments.rewritten {
            batch::text_of(&program, &lane::rewritten_lanes()[0]).map_err(|broken| broken.why)?
        } else {
            program.text(Mode::Plain)
        };
        print!("{text}");
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(jobs) = arguments.jobs {
        rayon::ThreadPoolBuilder::new().num_threads(jobs).build_global().map_err(|error| error.to_string())?;
    }
    if let Some(folder) = &arguments.gpu {
        let written = gpu::write(arguments.first..arguments.first + arguments.programs, folder)?;
        println!("{} programs in {}; {} are left out since they recurse", written.programs, folder.display(), written.recursive);
        return Ok(ExitCode::SUCCESS);
    }
    let until = arguments.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let plan = Plan { seeds: arguments.first..arguments.first + arguments.programs, sets: arguments.sets, rare: true, until };
    let (since, done) = (Instant::now(), AtomicUsize::new(0));
    let report = check::check(&plan, |report| {
        let number = done.fetch_add(report.programs, Ordering::Relaxed) + report.programs;
        for failure in &report.failures {
            println!("{}", told(failure));
        }
        eprintln!("{number} of {} programs after {:.0} s", arguments.programs, since.elapsed().as_secs_f64());
    })?;
    let next = arguments.first + report.programs as u64;
    if let Some(path) = &arguments.json {
        let result = json!({ "first": arguments.first, "next": next, "seconds": since.elapsed().as_secs_f64(), "report": report });
        fs::write(path, format!("{result:#}\n")).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if report.programs as u64 != arguments.programs {
        println!("the time is up: --first {next} goes on");
    }
    for failure in report.failures.iter().take(arguments.reduce) {
        reduce(failure, arguments.sets)?;
    }
    summary(&report, since);
    Ok(if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn told(failure: &Failure) -> String {
    let seed = failure.seed.map_or_else(|| "a batch".to_owned(), |seed| format!("seed {seed}"));
    format!("{seed}, {}: {}", failure.lane.unwrap_or("plain"), failure.why)
}

/// Prints the smallest program that still fails, as it is and as rewritten.
fn reduce(failure: &Failure, sets: u32) -> Result<(), String> {
    let (Some(seed), Some(name)) = (failure.seed, failure.lane) else { return Ok(()) };
    let lanes: Vec<_> = lane::rewritten_lanes().into_iter().chain(lane::rare_lanes()).filter(|lane| lane.name == name).collect();
    let Some((program, failure)) = reduce::reduce(&Workshop::new()?, &generate::program(seed), &lanes, sets) else {
        println!("seed {seed} alone does not fail");
        return Ok(());
    };
    let rewritten = batch::text_of(&program, &lanes[0]).unwrap_or_else(|broken| broken.why);
    println!("\n{}\n{}\nrewritten:\n{rewritten}", told(&failure), program.text(Mode::Plain));
    Ok(())
}

fn summary(report: &Report, since: Instant) {
    println!(
        "{} programs, {} runs compared in {:.0} s: {} failures; {} runs cut, {} left out since their behaviour is undefined",
        report.programs,
        report.runs,
        since.elapsed().as_secs_f64(),
        report.failures.len(),
        report.cut,
        report.undefined
    );
    let forms: Vec<String> = report.forms.iter().map(|(form, loops)| format!("{form} {loops}")).collect();
    println!(
        "default form: {} iterations a look, at most {} between two; loops: {}",
        report.ticks / report.looks.max(1),
        report.gap,
        forms.join(", ")
    );
}
