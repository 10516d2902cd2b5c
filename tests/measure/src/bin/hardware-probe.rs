//! What happens if threads leave while something of the hardware's is under way. `scripts/hardware-probe` calls it.

use clap::{Parser, Subcommand};
use cuinstr_gpu_tests::checks::timing::clocks;
use cuinstr_gpu_tests::launcher;
use cuinstr_harness::fixtures::workspace;
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_harness::prepared;
use cuinstr_measure::barriers;
use cuinstr_measure::crew::Crew;
use cuinstr_measure::hardware::{self, Trial, WHO};
use cuinstr_measure::machine;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What happens if threads leave while something of the hardware's is under way.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compiles the experiments into a folder that travels to a machine with a GPU.
    Prepare {
        /// Folder to fill [default: .gpu/hardware in the workspace].
        #[arg(long)]
        out: Option<PathBuf>,
        /// Compilations at a time.
        #[arg(long, default_value_t = 2)]
        jobs: usize,
    },
    /// Runs them on this machine's GPU.
    Run {
        /// The prepared folder [default: where this program lies].
        #[arg(long)]
        folder: Option<PathBuf>,
        /// Folder for hardware.json and hardware.md [default: out in the prepared folder].
        #[arg(long)]
        out: Option<PathBuf>,
        /// Seconds after which no experiment is begun.
        #[arg(long, default_value_t = 80)]
        budget: u64,
        /// Only experiments whose name contains this; may be given several times.
        #[arg(long, value_name = "WORD")]
        only: Vec<String>,
    },
    /// Times what it costs to ask at a barrier whether to leave.
    Barriers {
        /// The prepared folder [default: where this program lies].
        #[arg(long)]
        folder: Option<PathBuf>,
        /// Folder for barriers.json and barriers.md [default: out in the prepared folder].
        #[arg(long)]
        out: Option<PathBuf>,
        /// Seconds that it takes, about.
        #[arg(long, default_value_t = 15)]
        budget: u64,
    },
    /// Runs these trials in this process; how the program calls itself.
    #[command(hide = true)]
    Child { folder: PathBuf, seconds: f64, names: Vec<String> },
}

/// The part of the prepared folder for what is timed.
const BARRIERS: &str = "barriers";

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Prepare { out, jobs } => prepare(&out.unwrap_or_else(|| workspace().join(".gpu/hardware")), jobs),
        Command::Run { folder, out, budget, only } => run(folder, out, budget, &only),
        Command::Barriers { folder, out, budget } => barriers(folder, out, budget),
        Command::Child { folder, names, .. } => hardware::child(&folder, &names).map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("hardware-probe: {error}");
        ExitCode::from(2)
    })
}

fn prepare(folder: &Path, jobs: usize) -> Result<ExitCode, String> {
    let prepared = hardware::prepare(&Nvcc::find()?, folder, jobs)?;
    let timed = barriers::prepare(&Nvcc::find()?, &folder.join(BARRIERS), jobs)?;
    let (builds, failed) = (prepared.builds + timed.builds, prepared.failed + timed.failed);
    println!("{builds} builds in {}, {failed} failed", folder.display());
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run(folder: Option<PathBuf>, out: Option<PathBuf>, budget: u64, only: &[String]) -> Result<ExitCode, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = prepared::folder(folder);
    let names: Vec<String> = hardware::trials(&folder)?;
    let names: Vec<String> =
        names.into_iter().filter(|name| only.is_empty() || only.iter().any(|word| name.contains(word.as_str()))).collect();
    launcher::present()?;
    let crew =
        Crew { program, folder: folder.clone(), until: Instant::now() + Duration::from_secs(budget), silence: Duration::from_secs(20) };
    let trials = crew.run(&names, hardware::lost, |trial| eprintln!("{} / {}: {}", trial.experiment, WHO[trial.who], trial.word()));

    let out = out.unwrap_or_else(|| folder.join("out"));
    write(&out, "hardware", "Leaving with hardware state under way", &hardware::table(&trials), &json!(trials))?;
    // An experiment that fails though nobody leaves shows nothing.
    let broken: Vec<&Trial> = trials.iter().filter(|trial| trial.who == 0 && !trial.is_clean()).collect();
    for trial in &broken {
        eprintln!("hardware-probe: {} fails though nobody leaves: {}", trial.experiment, trial.word());
    }
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn barriers(folder: Option<PathBuf>, out: Option<PathBuf>, budget: u64) -> Result<ExitCode, String> {
    let folder = prepared::folder(folder);
    launcher::present()?;
    let timed = barriers::run(&folder.join(BARRIERS), Duration::from_secs(budget))?;
    let out = out.unwrap_or_else(|| folder.join("out"));
    write(&out, "barriers", "Asking at a barrier whether to leave", &barriers::table(&timed), &json!(timed))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes what was found as JSON and as a page, which is printed too.
fn write(out: &Path, name: &str, title: &str, table: &str, found: &serde_json::Value) -> Result<(), String> {
    let clocks = clocks();
    let field = |name: &str| clocks.get(name).and_then(serde_json::Value::as_str).unwrap_or("unknown").to_owned();
    let head = format!("{}, driver {}, {}.", field("name"), field("driver_version"), machine::date());
    let page = format!("# {title}\n\n{head}\n\n{table}");
    println!("{page}");
    prepared::write(out, name, &json!({ "device": clocks, "trials": found }), ("md", &page))
}
