//! What `run`, `ps` and the verbs for one process take.

use super::gpus::ChoiceArgs;
use clap::{Args, ValueEnum};
use cuinstr::duration;
use cuinstr::options::Limits;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to run, and under which limits.
#[derive(Debug, Args)]
#[command(override_usage = "cuinstr run [OPTIONS] [--] <PROGRAM> [ARG]...
       cuinstr run [OPTIONS] --restart <DIR>")]
pub(crate) struct RunArgs {
    /// Stop launches that run longer than this: a time such as 5s, and others for some kernels: 5s,train=60s. Counts from the start of each kernel.
    #[arg(long, value_name = "TIME", value_parser = timeouts)]
    pub(crate) timeout: Option<Timeouts>,

    /// Stop threads that have run so many iterations of their loops: a limit that is the same on each GPU and at each run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=Limits::MAX_FUEL))]
    pub(crate) fuel: Option<u64>,

    /// What a kernel does when it is stopped; `trap` if not given.
    #[arg(long, value_name = "ACTION", value_enum)]
    pub(crate) on_stop: Option<OnStop>,

    /// Let `cuinstr pause` take the GPU from kernels that run: blocks that have not begun decline, and run when `cuinstr resume` says so.
    #[arg(long)]
    pub(crate) pausable: bool,

    /// Append a line of JSON there for each stop of all processes, oldest first, and for each kernel; %p in the name is the process.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// End with status 1 if a kernel without polls was launched, and name it.
    #[arg(long)]
    pub(crate) strict: bool,

    /// Name each kernel at the end, with its launches and whether it polls.
    #[arg(long)]
    pub(crate) list: bool,

    /// Say nothing at the end but errors.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) gpus: ChoiceArgs,

    #[command(flatten)]
    pub(crate) keep: KeepArgs,

    /// The program and its arguments.
    #[arg(trailing_var_arg = true, required_unless_present = "restart", conflicts_with = "restart", value_name = "PROGRAM", help_heading = None)]
    pub(crate) program: Vec<OsString>,
}

/// When to save the program, and where.
#[derive(Debug, Args)]
#[command(next_help_heading = "Checkpoints")]
pub(crate) struct KeepArgs {
    /// Save the program to numbered folders of this folder (`cuinstr checkpoint dump` says what that takes).
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,

    /// How often to save it: a time such as 10m. It runs on meanwhile, but for the time that the copy takes.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    every: Option<u64>,

    /// How many checkpoints to keep.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_one)]
    pub(crate) keep: usize,

    /// When this signal comes (USR1, USR2 or TERM), save the program, end it, and end with status 75.
    #[arg(long, value_name = "SIGNAL", value_parser = signal)]
    pub(crate) on_signal: Option<i32>,

    /// Start from the latest checkpoint in this folder, and save further ones there.
    #[arg(long, value_name = "DIR", conflicts_with = "checkpoint")]
    pub(crate) restart: Option<PathBuf>,
}

impl KeepArgs {
    /// The folder of the checkpoints.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.checkpoint.as_deref().or(self.restart.as_deref())
    }

    /// Whether there is a folder for what is to be saved.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let is_asked = self.every.is_some() || self.on_signal.is_some();
        if is_asked && self.folder().is_none() { Err("--every and --on-signal need a folder: add --checkpoint DIR") } else { Ok(()) }
    }

    /// How often to save.
    pub(crate) fn every(&self) -> Option<Duration> {
        self.every.map(Duration::from_nanos)
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "write a number from 1".to_owned())
}

fn signal(text: &str) -> Result<i32, String> {
    match text.strip_prefix("SIG").unwrap_or(text) {
        "USR1" => Ok(signal_hook::consts::SIGUSR1),
        "USR2" => Ok(signal_hook::consts::SIGUSR2),
        "TERM" => Ok(signal_hook::consts::SIGTERM),
        _ => Err("write USR1, USR2 or TERM".to_owned()),
    }
}

/// How to list processes.
#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// Print one JSON object a line for each process.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which process.
#[derive(Debug, Args)]
pub(crate) struct ProcessArgs {
    /// The process, as `cuinstr ps` lists it.
    #[arg(value_name = "PID")]
    pub(crate) process: u32,
}

/// Which process to pause, and how long to wait until its kernels have.
#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    pub(crate) of: ProcessArgs,

    /// How long blocks that have begun may take to come to their ends before `pause` says that they still run: a time such as 500ms.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "2s")]
    pub(crate) within: u64,
}

/// `--on-stop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnStop {
    /// The kernel traps: the program sees an error, and its GPU state is lost.
    Trap,
    /// Threads leave, the GPU's state lives, the results are half written.
    Leave,
}

/// Limits of launches: one for all, and some for kernels by their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Timeouts {
    text: String,
    names: Vec<String>,
}

impl Timeouts {
    /// As `CUINSTR_TIMEOUT` has it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The kernels with limits of their own, in their order.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

/// Reads `5s,train_step=60s`: commas within a name's angle brackets are the name's.
fn timeouts(text: &str) -> Result<Timeouts, String> {
    let mut names = Vec::new();
    let mut depth = 0_i32;
    let mut has_general = false;
    let is_comma = |c: char| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        c == ',' && depth == 0
    };
    for part in text.split(is_comma) {
        let time = match part.rsplit_once('=') {
            Some(("", _)) => return Err("a kernel's name is missing in front of `=`".to_owned()),
            Some((name, time)) => {
                names.push(name.to_owned());
                time
            }
            None if has_general => return Err("two times without a kernel's name: write 5s,NAME=60s".to_owned()),
            None => {
                has_general = true;
                part
            }
        };
        duration::parse(time)?;
    }
    Ok(Timeouts { text: text.to_owned(), names })
}
