//! What polls cost: resources by the compiler's word, time and stops on a GPU. `scripts/poll-bench` calls it.

use clap::{Parser, Subcommand};
use cuinstr_tests::fixtures::{self, Fixture, workspace};
use cuinstr_tests::nvcc::Nvcc;
use cuinstr_tests::resource::{self, Row};
use cuinstr_tests::variant::{self, Variant};
use std::path::PathBuf;
use std::process::ExitCode;

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
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("poll-bench: {error}");
        ExitCode::from(2)
    })
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
