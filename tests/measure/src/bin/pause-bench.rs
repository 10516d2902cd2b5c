//! Measures pausing on this machine's GPU, and checks that launches which were paused are right.

use clap::Parser;
use cuinstr_measure::machine;
use cuinstr_measure::pause::{self, Folder, Tell};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Measures pausing on this machine's GPU, and checks that launches which were paused are right. Prints a JSON object for each row, as soon as it is
/// known, and one when a figure has come to its end.
#[derive(Parser)]
struct Arguments {
    /// The folder that scripts/pause-prepare filled [default: where this program lies].
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Only these of: same, urgent, many, drained, resumed, few-left, waits, cost.
    #[arg(long)]
    only: Vec<String>,
    /// Seconds after which no further kernel is begun.
    #[arg(long, default_value_t = 100)]
    budget: u64,
    /// Fill the device with blocks of so many microseconds; how the program calls itself.
    #[arg(long, hide = true)]
    occupy: Option<u64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("pause-bench: {why}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let own = || std::env::current_exe().ok()?.parent().map(PathBuf::from);
    let path = arguments.folder.clone().or_else(own).ok_or("no folder")?;
    let folder = Folder::open(&path)?;
    if let Some(us) = arguments.occupy {
        return pause::occupy(&folder, Duration::from_micros(us));
    }
    println!("{}", json!({ "date": machine::date(), "host": machine::processor() }));
    let until = Instant::now() + Duration::from_secs(arguments.budget);
    let measure = |name: &str, figure: &dyn Fn(Tell<'_>) -> Result<(), String>| {
        if arguments.only.is_empty() || arguments.only.iter().any(|only| only == name) {
            let began = Instant::now();
            let ended = figure(&mut |row| println!("{}", json!({ "figure": name, "row": row })));
            println!("{}", json!({ "figure": name, "seconds": began.elapsed().as_secs_f64(), "failed": ended.err() }));
        }
    };
    measure("same", &|tell| pause::same(&folder, &["source", "ptx"], until, tell));
    measure("urgent", &|tell| pause::urgent(&folder, 200, tell));
    measure("many", &|tell| pause::many(&folder, 10_000, until, tell));
    measure("drained", &|tell| pause::drained(&folder, 300, tell));
    measure("resumed", &|tell| pause::resumed(&folder, 300, tell));
    measure("few-left", &|tell| pause::few_left(&folder, 100, tell));
    measure("waits", &|tell| pause::waits(&folder, tell));
    measure("cost", &|tell| pause::cost(&folder, until, tell));
    Ok(())
}
