//! The options of `cuinstr nvcc` and `cuinstr ptxas`, which stand in a variable, since all words behind these commands are NVIDIA's own.

use super::HowArgs;
use clap::{Arg, ArgAction, CommandFactory, Parser, ValueEnum};
use cuinstr::launcher::Recursion;
use cuinstr::options::Pass;
use std::path::PathBuf;

/// The commands that are programs of the toolkit.
pub(super) const TOOLS: [&str; 2] = ["nvcc", "ptxas"];

/// Runs nvcc on rewritten source, or ptxas on PTX with polls. All words behind `cuinstr nvcc` and `cuinstr ptxas` are NVIDIA's own.
///
/// The options below stand in the variable `CUINSTR_FLAGS`, as words of a shell. Among the words of nvcc each may stand, too, with `--cuinstr-` in front, and these
/// win: `cuinstr nvcc --cuinstr-timeout=2s -c kernel.cu`.
#[derive(Debug, Parser)]
#[command(
    name = "CUINSTR_FLAGS",
    no_binary_name = true,
    disable_help_flag = true,
    args_override_self = true,
    override_usage = "CUINSTR_FLAGS=\"[OPTIONS]\" cuinstr nvcc <ARG>...
       CUINSTR_FLAGS=\"[OPTIONS]\" cuinstr ptxas <ARG>..."
)]
pub(crate) struct Flags {
    #[command(flatten)]
    pub(crate) how: HowArgs,

    /// Where in the compilation polls are inserted: into the `source`, or into the `ptx` that nvcc's optimizer leaves.
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = PassArg::Source)]
    pub(crate) pass: PassArg,

    /// Fail if the proof finds a loop in the compiled PTX that is neither polled nor bounded.
    #[arg(long)]
    pub(crate) verify: bool,

    /// Rewrite the toolkit's libraries of device code, too: cooperative groups, CUB, Thrust, libcu++.
    #[arg(long)]
    pub(crate) system_headers: bool,

    /// Which calls are polled of functions that may reach themselves: `proved`, those on a cycle in the compiler's output, for which a unit that has some is compiled
    /// to PTX once more; `named`, all on a cycle by the functions' names.
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = RecursionArg::Proved)]
    pub(crate) recursion: RecursionArg,

    /// Write what became of each unit's files to this folder, one JSON file a unit. Among nvcc's own options it is `--cuinstr-coverage`.
    #[arg(long, value_name = "DIR")]
    pub(crate) coverage: Option<PathBuf>,
}

/// `--pass`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PassArg {
    /// In front of the compiler.
    Source,
    /// Behind its optimizer.
    Ptx,
}

impl From<PassArg> for Pass {
    fn from(argument: PassArg) -> Self {
        match argument {
            PassArg::Source => Self::Source,
            PassArg::Ptx => Self::Ptx,
        }
    }
}

/// `--recursion`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecursionArg {
    /// On a cycle in the compiler's output.
    Proved,
    /// On a cycle by names.
    Named,
}

impl From<RecursionArg> for Recursion {
    fn from(argument: RecursionArg) -> Self {
        match argument {
            RecursionArg::Proved => Self::Proved,
            RecursionArg::Named => Self::Named,
        }
    }
}

/// What `cuinstr help nvcc` prints; it comes as an error, as all help does.
pub(super) fn help() -> Option<clap::Error> {
    let help = Arg::new("help").long("help").action(ArgAction::Help).hide(true);
    Flags::command().arg(help).try_get_matches_from(["--help"]).err()
}

/// The options as a command, for the manual page.
pub(super) fn command() -> clap::Command {
    Flags::command().name("cuinstr nvcc")
}
