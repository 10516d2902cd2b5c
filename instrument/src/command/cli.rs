//! The command line.

mod checkpoint;
mod flags;
mod gpus;
mod run;
mod values;

pub(crate) use checkpoint::{Action, Lock, Place, Target, Then};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use cuinstr::diagnostic::Code;
use cuinstr::duration;
use cuinstr::nearest::nearest;
use cuinstr::options::{AtExit, BarrierMarks, DeviceMacro, GivenMacro, Limits, PollGap, Polls};
pub(crate) use flags::Flags;
pub(crate) use gpus::{ChoiceArgs, GpusArgs};
pub(crate) use run::{KeepArgs, OnStop, PauseArgs, ProcessArgs, PsArgs, RunArgs};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use values::{code, device_macro, given_macro, no_macro, poll_gap};

const USAGE: &str = "cuinstr [OPTIONS] <FILE>... --output <FILE|DIR>
       cuinstr [OPTIONS] <FILE>... <--list|--diff>
       cuinstr nvcc <ARG>...
       cuinstr ptxas <ARG>...
       cuinstr <COMMAND>";

const EXAMPLES: &str = "\
Examples:
  cuinstr kernel.cu -o kernel.inst.cu --timeout 2s   rewrite; threads stop after two seconds
  cuinstr a.cu b.cu -o build/                        rewrite several files into a folder
  cuinstr - -o - < kernel.cu > kernel.inst.cu        as a filter
  cuinstr kernel.cu --list                           show what is polled, and how
  cuinstr kernel.cu --diff                           show what would be inserted
  cuinstr kernel.cu -o out.cu --strict --format short
  cuinstr nvcc -c kernel.cu -o kernel.o              nvcc on rewritten source: `cuinstr help nvcc`
  cuinstr ptxas -arch=sm_90 kernel.ptx -o k.cubin    ptxas on PTX with polls; also as a link `ptxas`
  cuinstr run --timeout 5s -- python train.py        any CUDA program, not recompiled
  cuinstr verify kernel.ptx app --list               prove that every loop can be stopped
  cuinstr audit kernel.cu -- -Iinclude -std=c++17    every loop that clang sees, and its site
  cuinstr checkpoint suspend --pid 4711              free the GPU; `resume` brings the process back
  cuinstr explain CI012                              what a code means and what to do
  cuinstr doctor                                     which of these work here, and what is missing
  cuinstr gpus                                       each GPU, its score, and whether it is free
  cuinstr completions bash                           completions; `cuinstr man` is the manual page
  cuinstr ./explain -o out.cu                        a file called as a command is

Exit codes:
  0  everything asked for was done; there may be warnings
  1  an input was refused: a diagnostic is an error, gaps under --strict included;
     `verify`: something is not proved; `audit`: a loop has no site;
     `checkpoint`: the process can't be suspended, or is busy
  2  the command line makes no sense
  3  something could not be read or written, or a tool that the command needs is missing
If several apply, the largest. With several inputs, those that are sound are written all the same.

Configuration: cuinstr.toml, looked for in each input's folder and upward:
  leave-alone = [\"trusted_kernel\"]        functions that are left as they are
  exclude = [\"third_party/**\"]            files that are copied unchanged
  loop-macros = [\"CUDA_KERNEL_LOOP\"]      macros that open a loop
  [device-macros]
  MY_DEVICE = \"device\"                    or \"kernel\", \"host-device\"
  [[waiver]]                              a gap that someone has looked at
  code = \"CI013\"
  function = \"wait_for_peer\"              optional
  path = \"src/peer.cu\"                    optional, with * and **
  reason = \"the peer signals within a microsecond\"";

/// Makes CUDA kernels stoppable: rewrites source so that every loop and every exit asks "must I stop?".
#[derive(Debug, Parser)]
#[command(name = "cuinstr", version, after_help = EXAMPLES, override_usage = USAGE)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
    #[command(flatten)]
    pub(crate) rewrite: RewriteArgs,
}

/// Words that, as the first argument, are no file.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Print what a diagnostic code means and what to do; without a code, list them all.
    Explain {
        /// Code to explain, such as CI012.
        #[arg(value_parser = code)]
        code: Option<Code>,
    },
    /// Run a CUDA program, not recompiled, and stop its kernels at a deadline.
    ///
    /// Kernels that the program brings as PTX, or compiles while it runs, get polls when they are loaded: at the deadline they end. For kernels that are
    /// machine code only the program ends at the deadline, and the kernel is named. Exit code: the program's own, or 124 if a launch was stopped.
    Run(RunArgs),
    /// List your processes that run under `cuinstr run`, and what runs on their GPUs.
    Ps(PsArgs),
    /// Stop the kernels of a process under `cuinstr run`, without ending the process.
    Stop(ProcessArgs),
    /// Hold back the next launches of a process under `cuinstr run`.
    ///
    /// Kernels that run already finish. Under `cuinstr run --pausable` their blocks that have not begun wait, too.
    Pause(PauseArgs),
    /// Let a paused process launch again.
    Resume(ProcessArgs),
    /// Name the loops that the running kernels of a process under `cuinstr run` can be in, without stopping them.
    Where(ProcessArgs),
    /// Say which entries of cuinstr work on this machine, and what the others lack.
    ///
    /// Looks for the driver, GPUs, nvcc, the host's compiler and libclang, and at the variables and the configuration that hold here. Changes nothing.
    /// Exit code 0, also where something is missing.
    Doctor,
    /// List the GPUs with a score each, the best first, and say why one is not free.
    ///
    /// Looks through NVML, which needs no context. Heeds `CUDA_VISIBLE_DEVICES`, `[gpu]` of cuinstr.toml, and the leases of other starts.
    Gpus(GpusArgs),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page, for `man -l -`.
    Man,
    /// Prove on PTX that every loop asks whether it must stop, is counted, or is ended by the clock.
    ///
    /// Reads PTX, and the PTX inside fat binaries, objects, libraries and executables. Exit code 0 only if every loop of every module is proved.
    Verify(VerifyArgs),
    /// List every loop that clang sees in a file's device code after preprocessing, and which site of the rewriter covers it.
    ///
    /// Reads the source as nvcc's device side would see it, by libclang, which is found at run time. Loops of the user's files come with the
    /// site that covers them; loops of system headers only if device code of the file reaches them. Exit code 0 only if each loop of the
    /// user's files has a site.
    Audit(AuditArgs),
    /// Suspend and resume the CUDA state of a process, by its pid.
    ///
    /// The process needs no change. It takes driver 570 or later, or NVIDIA's `cuda-checkpoint` with 550 to 569. Not for MIG, MPS, aarch64, managed
    /// memory, and, before driver 610, memory shared between processes.
    Checkpoint {
        /// What to do.
        #[command(subcommand)]
        action: Action,
    },
}

impl Verb {
    /// Whether it needs libraries that are found when it runs: NVIDIA's, or libclang.
    pub(crate) fn loads_libraries(&self) -> bool {
        match self {
            Self::Gpus(_) | Self::Audit(_) | Self::Checkpoint { .. } => true,
            Self::Run(args) => args.gpus.gpu.is_some() || args.keep.folder().is_some(),
            _ => false,
        }
    }
}

/// What to audit.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// CUDA source, as it was before it was rewritten.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Toolkit whose headers to take; else that of `CUDA_HOME`, or of the nvcc on the path.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cuda_path: Option<PathBuf>,

    /// Use this file instead of the cuinstr.toml found upward from the input.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// How the result looks on standard output.
    #[arg(long, value_enum, default_value_t = AuditFormat::Text)]
    pub(crate) format: AuditFormat,

    /// When errors have colors.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorArg::Auto)]
    pub(crate) color: ColorArg,

    /// nvcc's flags: -I, -isystem, -include, -D, -U, -std, -arch and -gencode are understood, others are left out.
    #[arg(last = true, value_name = "NVCC FLAGS", allow_hyphen_values = true)]
    pub(crate) flags: Vec<String>,
}

/// How `audit` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditFormat {
    /// A line a loop, and a summary.
    Text,
    /// One JSON object.
    Json,
}

/// What to prove.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// PTX, or files with PTX in them; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// List every loop with what is proved of it, not only those that are not.
    #[arg(long)]
    pub(crate) list: bool,

    /// Accept what this list names, with reasons; an entry that accepts nothing is an error. `cuinstr explain CI057` shows its form.
    #[arg(long, value_name = "FILE")]
    pub(crate) allow: Option<PathBuf>,

    /// How the result looks on standard output.
    #[arg(long, value_enum, default_value_t = VerifyFormat::Text)]
    pub(crate) format: VerifyFormat,

    /// When findings have colors.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorArg::Auto)]
    pub(crate) color: ColorArg,
}

/// How `verify` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyFormat {
    /// Findings with their source lines, and a line for each module.
    Text,
    /// One line a finding: `path:line:column: error[CI050]: message`.
    Short,
    /// One JSON object a line for each module, with all its loops.
    Json,
    /// One SARIF 2.1.0 log.
    Sarif,
}

/// What to rewrite, how, and where to.
#[derive(Debug, Args)]
pub(crate) struct RewriteArgs {
    /// CUDA sources to rewrite; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Write the rewritten source there; `-` is standard output, in a folder the file keeps its name; for several files, or with a `/` at its end, the folder is made.
    #[arg(short, long, value_name = "FILE|DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Write the prelude there, once, and have each output include it instead of holding it. The file is the same for all sources and options.
    #[arg(long, value_name = "FILE", requires = "output", conflicts_with_all = ["list", "diff"])]
    pub(crate) prelude: Option<PathBuf>,

    /// Write the site map there, one line of JSON for each input; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) sites: Option<PathBuf>,

    /// Print the sites as a table, or as JSON with --format json, and write nothing.
    #[arg(long, conflicts_with_all = ["output", "sites", "diff"])]
    pub(crate) list: bool,

    /// Print what would be inserted as a unified diff and write nothing.
    #[arg(long, conflicts_with_all = ["output", "sites"])]
    pub(crate) diff: bool,

    #[command(flatten)]
    pub(crate) how: HowArgs,

    /// Read conditions (`#if`) as under `nvcc -D`: code that these leave out gets no polls and is no gap. The file refuses to compile without it.
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]", value_parser = given_macro)]
    pub(crate) defined: Vec<GivenMacro>,

    /// The same for a macro that neither the command line of nvcc nor an included file defines.
    #[arg(short = 'U', long = "undefine", value_name = "NAME", value_parser = no_macro)]
    pub(crate) undefined: Vec<GivenMacro>,

    /// Folders that nvcc gets by `-I`: a header found there is the user's, also where it has the name of one of the system's.
    #[arg(short = 'I', long = "include-path", value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,

    /// How diagnostics look on standard error: with source lines, one line each, or one JSON object a line.
    #[arg(long, value_enum, default_value_t = Format::Full)]
    pub(crate) format: Format,

    /// When diagnostics have colors.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorArg::Auto)]
    pub(crate) color: ColorArg,

    /// Say of each input what became of it, where its output went, and which configuration holds for it.
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
}

/// `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorArg {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always, for pagers that know colors.
    Always,
    /// Never.
    Never,
}

/// How sources are rewritten.
#[derive(Debug, Args)]
pub(crate) struct HowArgs {
    /// Stop threads that run longer than this: a number and ns, us, ms, s or m, such as 2s. Counts from the start of each block.
    ///
    /// The limit is compiled in and needs no host. If a launch has more blocks than fit on the GPU at once, later blocks start later, and each has
    /// the whole time. A thread that runs out of time traps (error 719), unless the host asked it to leave. A limit of the whole launch comes from
    /// the host: from `CUINSTR_TIMEOUT`, `cuinstr run --timeout`, or a guard.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) timeout: Option<u64>,

    /// Stop threads that take more than this many clock cycles of their multiprocessor. Counts from the start of each block.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) budget_cycles: Option<u64>,

    /// Stop each thread after this many iterations, the same on every run; at most 2^40 - 2.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=Limits::MAX_FUEL))]
    pub(crate) fuel: Option<u64>,

    /// Where polls stand: in each iteration of every loop, or amortised over many.
    #[arg(long, value_name = "FORM", value_enum, default_value_t = PollsArg::Amortised)]
    pub(crate) polls: PollsArg,

    /// How far apart in time two polls of a thread should lie: a stop takes about as long, and shorter gaps cost more. 2us to 10ms.
    #[arg(long, value_name = "TIME", value_parser = poll_gap, default_value = "20us")]
    pub(crate) poll_gap: PollGap,

    /// What threads do at a kernel's end: check once, or wait for the rest of their block at a gate (experimental).
    #[arg(long, value_name = "HOW", value_enum, default_value_t = AtExitArg::Check)]
    pub(crate) at_exit: AtExitArg,

    /// Where a thread that leaves tells those that it may release from a barrier. `shared` takes 16 bytes of a block's shared memory (1 KB on `sm_90` where the
    /// launch sizes some), `global` none.
    #[arg(long, value_name = "MEMORY", value_enum, default_value_t = BarrierMarksArg::Auto)]
    pub(crate) barrier_marks: BarrierMarksArg,

    /// Let a host pause launches: blocks that have not begun decline to run, and the launch is repeated for them later.
    #[arg(long)]
    pub(crate) pausable: bool,

    /// Treat a macro in front of a function's name as `device`, `kernel` or `host-device`; may be repeated, and wins over cuinstr.toml.
    #[arg(long, value_name = "NAME=SPACE", value_parser = device_macro)]
    pub(crate) device_macro: Vec<DeviceMacro>,

    /// Use this file instead of the cuinstr.toml found upward from each input.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Refuse inputs that have a gap: a loop that is not polled is an error, not a warning.
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print diagnostics only: no summary, no progress bar.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// How diagnostics look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Several lines each, with the source.
    Full,
    /// `path:line:column: warning[CI010]: message`.
    Short,
    /// One JSON object a line.
    Json,
}

/// `--polls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PollsArg {
    /// Whenever an allowance of iterations is used up, in the cheapest form that is sound for each loop.
    Amortised,
    /// The same, counted down in each iteration.
    CountDown,
    /// In each iteration of every loop.
    Each,
}

/// `--at-exit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AtExitArg {
    /// Ask once.
    Check,
    /// Wait, asleep and polling, until the whole block is done.
    Gate,
}

/// `--barrier-marks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BarrierMarksArg {
    /// In global memory where the launch sizes shared memory, else in shared memory.
    Auto,
    /// In shared memory; units that are linked with `-rdc=true` have them in global memory all the same.
    Shared,
    /// In global memory.
    Global,
}

impl Cli {
    /// Reads the command line.
    ///
    /// # Errors
    /// If it makes no sense, and also for `--help` and `--version`: the error then holds their text.
    pub(crate) fn read(arguments: &[OsString]) -> Result<Self, clap::Error> {
        if let Some(error) = arguments.get(1).and_then(|word| mistyped(word)).or_else(|| help_of_tool(arguments)) {
            return Err(error);
        }
        let cli = Self::try_parse_from(arguments)?;
        if cli.verb.is_none() {
            cli.rewrite.check()?;
        }
        Ok(cli)
    }
}

/// The text of completions for a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "cuinstr", &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The manual page: of the command, and of each of its subcommands.
///
/// # Errors
/// None that memory is known to have: what is written to is a vector.
pub(crate) fn manual() -> std::io::Result<String> {
    let mut bytes = Vec::new();
    let mut command = Cli::command();
    command.build();
    clap_mangen::Man::new(command.clone()).render(&mut bytes)?;
    let subcommands = command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help").cloned();
    for subcommand in subcommands.chain([flags::command()]) {
        let page = clap_mangen::Man::new(subcommand);
        page.render_synopsis_section(&mut bytes)?;
        page.render_description_section(&mut bytes)?;
        page.render_options_section(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// An error of the kind that clap reports itself.
pub(crate) fn usage_error(kind: ErrorKind, message: impl std::fmt::Display) -> clap::Error {
    Cli::command().error(kind, message)
}

impl HowArgs {
    /// Limits that get compiled in.
    pub(crate) fn limits(&self) -> Limits {
        Limits { timeout_ns: self.timeout, budget_cycles: self.budget_cycles, fuel: self.fuel }
    }

    /// `--polls` in the library's words.
    pub(crate) fn polls(&self) -> Polls {
        match self.polls {
            PollsArg::Amortised => Polls::Amortised,
            PollsArg::CountDown => Polls::CountDown,
            PollsArg::Each => Polls::Each,
        }
    }

    /// `--at-exit` in the library's words.
    pub(crate) fn at_exit(&self) -> AtExit {
        match self.at_exit {
            AtExitArg::Check => AtExit::Check,
            AtExitArg::Gate => AtExit::Gate,
        }
    }

    /// `--barrier-marks` in the library's words.
    pub(crate) fn barrier_marks(&self) -> BarrierMarks {
        match self.barrier_marks {
            BarrierMarksArg::Auto => BarrierMarks::Auto,
            BarrierMarksArg::Shared => BarrierMarks::Shared,
            BarrierMarksArg::Global => BarrierMarks::Global,
        }
    }
}

impl RewriteArgs {
    /// What no attribute above can say.
    fn check(&self) -> Result<(), clap::Error> {
        if !self.list && !self.diff && self.output.is_none() && self.sites.is_none() {
            return Err(usage_error(
                ErrorKind::MissingRequiredArgument,
                "nothing to do: add `-o FILE` (`-o -` for standard output), --sites, --list or --diff",
            ));
        }
        let is_dash = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| path.as_os_str() == "-");
        if is_dash(&self.output) && is_dash(&self.sites) {
            return Err(usage_error(ErrorKind::ArgumentConflict, "the source and the site map can't both go to standard output"));
        }
        if is_dash(&self.output) && self.files.len() > 1 {
            return Err(usage_error(ErrorKind::ArgumentConflict, "several files can't go to one output: name a folder with `-o DIR`"));
        }
        if let Some(both) = self.defined.iter().find(|macro_| self.undefined.iter().any(|other| other.name == macro_.name)) {
            return Err(usage_error(ErrorKind::ArgumentConflict, format!("`{}` can't be both defined and undefined", both.name)));
        }
        if self.files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
            return Err(usage_error(ErrorKind::ArgumentConflict, "standard input can be read only once"));
        }
        Ok(())
    }

    /// The options given that mean nothing for PTX.
    pub(crate) fn for_source_alone(&self) -> Vec<&'static str> {
        let how = &self.how;
        let given = [
            ("--at-exit", how.at_exit != AtExitArg::Check),
            ("--barrier-marks", how.barrier_marks != BarrierMarksArg::Auto),
            ("--device-macro", !how.device_macro.is_empty()),
            ("--prelude", self.prelude.is_some()),
            ("-D", !self.defined.is_empty()),
            ("-U", !self.undefined.is_empty()),
            ("-I", !self.folders.is_empty()),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option).collect()
    }
}

/// The error for a first word that names no file, and nearly a command.
fn mistyped(word: &OsStr) -> Option<clap::Error> {
    let text = word.to_str().filter(|text| !text.starts_with('-') && !Path::new(text).exists())?;
    let near = nearest_command(text).filter(|near| near != text)?;
    Some(usage_error(ErrorKind::InvalidSubcommand, format!("no file and no command is called `{text}`; did you mean `cuinstr {near}`?")))
}

/// What `cuinstr help WORD` says, if the word is a program of the toolkit or no command.
fn help_of_tool(arguments: &[OsString]) -> Option<clap::Error> {
    let [_, help, word] = arguments else { return None };
    let text = word.to_str().filter(|_| help == "help")?;
    if flags::TOOLS.contains(&text) {
        return flags::help();
    }
    let near = nearest_command(text).filter(|near| near != text)?;
    Some(usage_error(ErrorKind::InvalidSubcommand, format!("no command is called `{text}`; did you mean `cuinstr help {near}`?")))
}

/// The command whose name is nearest to a word, or begins with it.
fn nearest_command(text: &str) -> Option<String> {
    let command = Cli::command();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).chain(["help"]).chain(flags::TOOLS).collect();
    let begun = || names.iter().copied().find(|name| text.len() > 2 && name.starts_with(text));
    nearest(text, names.iter().copied()).or_else(begun).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_well_formed() {
        Cli::command().debug_assert();
    }
}
