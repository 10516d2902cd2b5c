//! What polls cost: resources by the compiler's word, time and stops on a GPU. `scripts/poll-bench` calls it.

use clap::{Parser, Subcommand};
use cuinstr_gpu_tests::checks::timing::clocks;
use cuinstr_gpu_tests::launcher;
use cuinstr_gpu_tests::manifest::Manifest;
use cuinstr_harness::fixtures::{self, Fixture, workspace};
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_harness::prepared;
use cuinstr_harness::resource::{self, Row};
use cuinstr_harness::variant::{self, Variant};
use cuinstr_measure::crew::Crew;
use cuinstr_measure::machine;
use cuinstr_measure::poll;
use cuinstr_measure::poll::measure;
use cuinstr_measure::poll::page::Page;
use cuinstr_measure::poll::result::Measured;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What polls cost.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Prints registers, spills, occupancy and loops of each benchmark before and after rewriting; needs no GPU.
    Resources(Resources),
    /// Compiles all benchmarks into a folder that travels to a machine with a GPU.
    Prepare(Prepare),
    /// Times and cancels them on this machine's GPU.
    Run(Run),
    /// Measures these benchmarks in this process; how the program calls itself.
    #[command(hide = true)]
    Child { folder: PathBuf, seconds: f64, names: Vec<String> },
}

#[derive(Parser)]
struct Prepare {
    /// Folder to fill [default: .gpu/poll in the workspace].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Only benchmarks whose name contains this; may be given several times.
    #[arg(long, value_name = "WORD")]
    only: Vec<String>,
    /// Compilations at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

#[derive(Parser)]
struct Run {
    /// The prepared folder [default: where this program lies].
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Folder for poll-bench.json and poll-bench.md [default: out in the prepared folder].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Seconds for everything; rounds and cancels are as many as fit.
    #[arg(long, default_value_t = 80)]
    budget: u64,
    /// Only benchmarks whose name contains this; may be given several times.
    #[arg(long, value_name = "WORD")]
    only: Vec<String>,
}

#[derive(Parser)]
struct Resources {
    /// Only benchmarks whose name contains this; may be given several times.
    #[arg(long, value_name = "WORD")]
    only: Vec<String>,
    /// Beside the default these builds too: each, fuel, gate; or all.
    #[arg(long, value_name = "BUILD")]
    build: Vec<String>,
    /// Writes JSON for programs there, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Accepts what the default build loses now: writes `tests/data/poll_regressions.txt`, which a test compares.
    #[arg(long, conflicts_with = "only")]
    accept: bool,
    /// Compilations at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Resources(arguments) => resources(&arguments),
        Command::Prepare(arguments) => prepare(&arguments),
        Command::Run(arguments) => run(&arguments),
        Command::Child { folder, seconds, names } => measure::child(&folder, seconds, &names).map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("poll-bench: {error}");
        ExitCode::from(2)
    })
}

fn prepare(arguments: &Prepare) -> Result<ExitCode, String> {
    let folder = arguments.out.clone().unwrap_or_else(|| workspace().join(".gpu/poll"));
    let prepared = poll::prepare(&Nvcc::find()?, &folder, &arguments.only, arguments.jobs)?;
    let (builds, compiled, failed) = (prepared.builds, prepared.compiled, prepared.failed);
    let megabytes = prepared.bytes.div_ceil(1 << 20);
    println!("{builds} builds in {} ({compiled} compiled now, {megabytes} MB), {failed} failed", folder.display());
    for subject in Manifest::read(&folder)?.subjects {
        for (build, why) in subject.failures {
            eprintln!("{}, {build}: {why}", subject.fixture.name);
        }
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run(arguments: &Run) -> Result<ExitCode, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = prepared::folder(arguments.folder.clone());
    let manifest = Manifest::read(&folder)?;
    launcher::present()?;
    let is_wanted = |name: &str| {
        name.starts_with("bench/") && (arguments.only.is_empty() || arguments.only.iter().any(|word| name.contains(word.as_str())))
    };
    let names: Vec<String> = manifest.subjects.iter().map(|subject| subject.fixture.name.clone()).filter(|name| is_wanted(name)).collect();
    let since = Instant::now();
    let before = clocks();
    // A benchmark each part of which takes as long as it may is silent for so long.
    let silence = Duration::from_secs(30);
    let crew = Crew { program, folder: folder.clone(), until: since + Duration::from_secs(arguments.budget), silence };
    let benchmarks = crew.run(&names, Measured::lost, |measured| eprintln!("{}", measured.line()));
    let only = arguments.only.iter().map(|word| format!(" --only {word}"));
    let page = Page {
        command: std::iter::once("scripts/poll-bench".to_owned()).chain(only).collect(),
        date: machine::date(),
        host: machine::processor(),
        before,
        after: clocks(),
        compiler: manifest.compiler,
        seconds: since.elapsed().as_secs_f64(),
        benchmarks,
    };
    let out = arguments.out.clone().unwrap_or_else(|| folder.join("out"));
    prepared::write(&out, "poll-bench", &page, ("md", &page.markdown()))?;
    println!("{}", page.markdown());
    Ok(if page.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn wanted(only: &[String]) -> Result<Vec<Fixture>, String> {
    let fixtures = fixtures::benchmarks()?;
    let found: Vec<Fixture> =
        fixtures.into_iter().filter(|fixture| only.is_empty() || only.iter().any(|word| fixture.name.contains(word.as_str()))).collect();
    if found.is_empty() { Err(format!("no benchmark's name contains {}", only.join(" or "))) } else { Ok(found) }
}

fn resources(arguments: &Resources) -> Result<ExitCode, String> {
    let is_wanted = |variant: &Variant| {
        let names = [variant.name, "all"];
        [variant::PLAIN, variant::DEFAULT].contains(variant) || arguments.build.iter().any(|name| names.contains(&name.as_str()))
    };
    let variants: Vec<Variant> = variant::COLUMNS.into_iter().filter(is_wanted).collect();
    let rows = resource::measure(&Nvcc::find()?, &wanted(&arguments.only)?, &variants, arguments.jobs)?;
    println!("{}", resource::table(&rows));
    let write = |path: PathBuf, text: String| std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()));
    if let Some(path) = &arguments.json {
        write(path.clone(), format!("{:#}\n", resource::json(&rows)))?;
    }
    for line in resource::not_resident(&rows) {
        println!("not resident: {line}");
    }
    let regressions: Vec<String> = rows.iter().flat_map(|row: &Row| row.regressions(variant::DEFAULT)).collect();
    println!("{} of {} benchmarks lose occupancy or gain spills:", regressions.len(), rows.len());
    for line in &regressions {
        println!("  {line}");
    }
    if arguments.accept {
        write(workspace().join(resource::ACCEPTED), resource::accepted_text(&regressions))?;
    }
    Ok(ExitCode::SUCCESS)
}
