//! What the command does: reads, calls [`cuinstr::rewrite`], writes and reports. All IO of this crate is in here.
//!
//! # Exit codes
//!
//! | code | means |
//! | --- | --- |
//! | 0 | everything asked for was done; there may be warnings |
//! | 1 | an input was refused: a diagnostic is an error, gaps under `--strict` included; `verify`: something is not proved; `audit`: a loop has no site; `checkpoint`: the process can't be, or is busy |
//! | 2 | the command line makes no sense; nothing was done |
//! | 3 | something could not be read or written, or a tool that the command needs is missing |
//!
//! If several apply, the largest. One input that fails keeps none of the others from being written.
//!
//! In reading order: `cli` (arguments) → `batch` (all inputs of a run) → `job` (one input)
//! → `moved` (names of includes) → `output` → `listing`, `summary` (what is printed). `launch` runs nvcc by way of the library's launcher. `verify`, with
//! `exceptions` and `sarif`, stands for itself, and so do `audit`, `doctor` and `checkpoint`.

pub(crate) use gpus::answer as answer_probe;

mod audit;
mod batch;
mod checkpoint;
mod cli;
mod cores;
mod doctor;
mod exceptions;
mod explain;
mod gpus;
mod job;
mod launch;
mod listing;
mod moved;
mod output;
mod progress;
mod report;
mod run;
mod sarif;
mod status;
mod summary;
mod verify;
mod watched;

pub(crate) use status::Status;
use status::print;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command with these arguments, the program's name first.
///
/// # Errors
/// If standard output can't be written, for another reason than that its reader has gone.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<ExitCode> {
    let arguments: Vec<OsString> = arguments.collect();
    if let Some(call) = launch::Call::read(&arguments) {
        return Ok(call.run());
    }
    perform(&arguments).or_else(|error| {
        let usage = error.downcast::<clap::Error>()?;
        if usage.exit_code() != 0 {
            // The exit code is the same if its reader has gone.
            let _ = usage.print();
            return Ok(Status::Usage.into());
        }
        // Help and version come this way too.
        let text = usage.render();
        let colored = report::is_wanted(cli::ColorArg::Auto, &std::io::stdout());
        Ok(print(&if colored { text.ansi().to_string() } else { text.to_string() })?.into())
    })
}

/// Whether this program is linked statically: then it can load no libraries, such as NVIDIA's.
const IS_STATIC: bool = cfg!(target_feature = "crt-static");

/// What a static program says in place of a command that loads some.
const STATIC: &str = "error: this is the static cuinstr, which can't load NVIDIA's libraries and libclang: for this command, take the one \
                      of a release's .tar.gz or .whl, or of `cargo install`\n";

fn perform(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let cli = cli::Cli::read(arguments)?;
    if IS_STATIC && cli.verb.as_ref().is_some_and(cli::Verb::loads_libraries) {
        report::to_stderr(STATIC);
        return Ok(Status::Io.into());
    }
    let status = match cli.verb {
        Some(cli::Verb::Run(args)) => return run::run(&args),
        Some(cli::Verb::Ps(args)) => print(&watched::ps(&args)),
        Some(cli::Verb::Stop(args)) => watched::stop(&args),
        Some(cli::Verb::Pause(args)) => watched::pause(&args),
        Some(cli::Verb::Resume(args)) => watched::resume(&args),
        Some(cli::Verb::Where(args)) => watched::whereabouts(&args),
        Some(cli::Verb::Explain { code }) => print(&explain::text(code)),
        Some(cli::Verb::Doctor) => print(&doctor::text()),
        Some(cli::Verb::Gpus(args)) => gpus::run(&args),
        Some(cli::Verb::Completions { shell }) => print(&cli::completions(shell)),
        Some(cli::Verb::Man) => print(&cli::manual()?),
        Some(cli::Verb::Verify(args)) => {
            report::to_stderr(&report::unread_variables());
            verify::run(&args)
        }
        Some(cli::Verb::Audit(args)) => {
            report::to_stderr(&report::unread_variables());
            audit::run(&args)
        }
        Some(cli::Verb::Checkpoint { action }) => checkpoint::run(action),
        None => batch::run(&cli.rewrite),
    };
    status.map(Status::into)
}
