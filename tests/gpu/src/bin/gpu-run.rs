//! Runs the prepared cases on this machine's GPU.

use clap::Parser;
use cuinstr_gpu_tests::case::{self, Case};
use cuinstr_gpu_tests::checks::timing::clocks;
use cuinstr_gpu_tests::manifest::Manifest;
use cuinstr_gpu_tests::results::Results;
use cuinstr_gpu_tests::supervise::{self, Supervisor};
use cuinstr_harness::prepared;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Runs the prepared cases on this machine's GPU. Exits with 0 if all pass, 1 if one does not, 2 if they can't be run.
#[derive(Parser)]
struct Arguments {
    /// The prepared folder [default: where this program lies].
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Folder for results.json and results.txt [default: out in the prepared folder].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Only cases whose name contains this; may be given several times.
    #[arg(long)]
    filter: Vec<String>,
    /// No cases whose name contains this; may be given several times.
    #[arg(long)]
    skip: Vec<String>,
    /// Processes at a time, for cases that do not measure.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Seconds after which no further case is begun.
    #[arg(long, default_value_t = 540)]
    budget: u64,
    /// Print the names of the cases and run none.
    #[arg(long)]
    list: bool,
    /// Run this case in this process, and wait to be killed; how the program calls itself.
    #[arg(long, hide = true)]
    case: Vec<String>,
}

fn main() -> ExitCode {
    // The runtime's workers are this program, too.
    cuinstr_runtime::worker::serve_if_asked();
    let arguments = Arguments::parse();
    let outcome = if arguments.case.is_empty() {
        run(&arguments)
    } else {
        supervise::child(&prepared::folder(arguments.folder.clone()), &arguments.case).map(|()| ExitCode::SUCCESS)
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("gpu-run: {error}");
        ExitCode::from(2)
    })
}

fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let folder = prepared::folder(arguments.folder.clone());
    let manifest = Manifest::read(&folder)?;
    let fixtures: Vec<_> = manifest.subjects.iter().map(|subject| subject.fixture.clone()).collect();
    let named = |words: &[String], case: &Case| words.iter().any(|word| case.name.contains(word.as_str()));
    let wanted = |case: &Case| (arguments.filter.is_empty() || named(&arguments.filter, case)) && !named(&arguments.skip, case);
    let cases: Vec<Case> = case::all(&fixtures).into_iter().filter(wanted).collect();
    if arguments.list {
        for case in &cases {
            println!("{}", case.name);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if cases.is_empty() {
        return Err("no case has such a name; --list prints them".into());
    }
    let gpu = clocks();
    if gpu.is_null() {
        eprintln!("gpu-run: nvidia-smi does not answer; the results will not name the device");
    }
    let since = Instant::now();
    let supervisor = Supervisor {
        program: std::env::current_exe().map_err(|error| error.to_string())?,
        folder: folder.clone(),
        jobs: arguments.jobs,
        deadline: since + Duration::from_secs(arguments.budget),
        verbose: true,
    };
    let cases = supervisor.run(&cases);
    let results = Results::new(gpu, manifest.compiler, since.elapsed().as_secs_f64(), cases);
    let out = arguments.out.clone().unwrap_or_else(|| folder.join("out"));
    let table = results.table();
    prepared::write(&out, "results", &results, ("txt", &table))?;
    let summary = table.rfind("\nfailures:").unwrap_or(table.trim_end().rfind('\n').unwrap_or(0));
    println!("{}", &table[summary..]);
    Ok(if results.failed + results.not_run == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
