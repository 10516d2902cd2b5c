//! Random PTX kernels as files.

use clap::Parser;
use cuinstr::options::Polls;
use cuinstr_differential::kernels::{self, compared};
use rayon::prelude::*;
use std::path::PathBuf;
use std::process::ExitCode;

/// Writes modules of random PTX kernels, named after the seeds of their first and last kernels (`0-99.ptx`). Or compares
/// them with the PTX pass's output on the interpreter, and proves that output: then it exits with 1 if something is wrong.
#[derive(Parser)]
struct Arguments {
    /// Seed of the first kernel.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Number of kernels.
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// Kernels of a module.
    #[arg(long, default_value_t = 100)]
    per_module: u64,
    /// Print the module instead.
    #[arg(long, conflicts_with = "folder")]
    show: bool,
    /// Run them on the interpreter instead, as they are and with polls.
    #[arg(long, conflicts_with_all = ["folder", "show"])]
    interpret: bool,
    /// Prove what the pass makes of them instead.
    #[arg(long, conflicts_with_all = ["folder", "show"])]
    verify: bool,
    /// The folder.
    #[arg(required_unless_present_any = ["show", "interpret", "verify"])]
    folder: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("kernels: {why}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let end = arguments.first + arguments.count;
    let mut is_right = true;
    if arguments.interpret {
        let compared = compared::compare(arguments.first..end, None)?;
        compared.different.iter().for_each(|one| println!("{one}"));
        println!(
            "{} runs, {} iterations, {} instructions between polls, {} different",
            compared.runs,
            compared.ticks,
            compared.gap,
            compared.different.len()
        );
        is_right &= compared.different.is_empty();
    }
    if arguments.verify {
        for polls in [Polls::Amortised, Polls::Each] {
            let found = compared::not_proved(arguments.first..end, polls)?;
            for (seed, why) in &found {
                println!("{polls:?}: seed {seed}: {why}");
            }
            println!("{polls:?}: {} not proved", found.len());
            is_right &= found.is_empty();
        }
    }
    if arguments.interpret || arguments.verify {
        return Ok(is_right);
    }
    let Some(folder) = arguments.folder.as_ref().filter(|_| !arguments.show) else {
        print!("{}", kernels::module(arguments.first..end));
        return Ok(true);
    };
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let firsts: Vec<u64> = (arguments.first..end).step_by(arguments.per_module.max(1) as usize).collect();
    firsts.into_par_iter().try_for_each(|first| {
        let last = (first + arguments.per_module).min(end);
        let path = folder.join(format!("{first}-{}.ptx", last - 1));
        std::fs::write(&path, kernels::module(first..last)).map_err(|error| format!("{}: {error}", path.display()))
    })?;
    Ok(true)
}
