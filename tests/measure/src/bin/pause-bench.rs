//! Measures pausing on this machine's GPU, and checks that launches which were paused are right.

use clap::Parser;
use cuinstr_measure::machine;
use cuinstr_measure::pause::{self, Folder};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Measures pausing on this machine's GPU, and checks that launches which were paused are right. Prints one JSON object.
#[derive(Parser)]
struct Arguments {
    /// The folder that scripts/pause-prepare filled [default: where this program lies].
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Only these of: many, drained, resumed, few-left, waits, urgent, same, cost.
    #[arg(long)]
    only: Vec<String>,
    /// Seconds after which no further kernel is begun.
    #[arg(long, default_value_t = 100)]
    budget: u64,
    /// Fill the device; how the program calls itself.
    #[arg(long, hide = true)]
    occupy: bool,
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
    if arguments.occupy {
        return pause::occupy(&folder, &AtomicBool::new(false));
    }
    let since = Instant::now();
    let part = |share: u64| since + Duration::from_secs(arguments.budget * share / 100);
    let mut found = json!({ "date": machine::date(), "host": machine::processor() });
    let mut add = |name: &str, figure: &dyn Fn() -> Result<Value, String>| {
        if arguments.only.is_empty() || arguments.only.iter().any(|only| only == name) {
            let began = Instant::now();
            let value = figure().unwrap_or_else(|why| json!({ "failed": why }));
            eprintln!("{name}: {:.1} s", began.elapsed().as_secs_f64());
            found[name] = value;
        }
    };
    add("many", &|| pause::many(&folder, 10_000, part(20)));
    add("drained", &|| pause::drained(&folder, 300));
    add("resumed", &|| pause::resumed(&folder, 300));
    add("few-left", &|| pause::few_left(&folder, 100));
    add("waits", &|| pause::waits(&folder));
    add("urgent", &|| pause::urgent(&folder, 200));
    add("same", &|| pause::same(&folder, &["source", "ptx"], part(75)));
    add("cost", &|| pause::cost(&folder, part(100)));
    println!("{}", serde_json::to_string_pretty(&found).map_err(|error| error.to_string())?);
    Ok(())
}
