//! `cuinstr nvcc …`: nvcc on rewritten source.

use super::Status;
use super::cli::Flags;
use super::report::to_stderr;
use clap::Parser;
use cuinstr::launcher::{self, Settings};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

/// Variable that holds the options of a launch: build systems pass nvcc's own arguments only.
const FLAGS: &str = "CUINSTR_FLAGS";

/// Names under which this program is nvcc itself, for tools that take one path.
const LINKS: [&str; 2] = ["nvcc", "cuinstr-nvcc"];

/// A compiler and what it is given.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    compiler: &'a OsStr,
    arguments: &'a [OsString],
}

impl<'a> Call<'a> {
    /// The compiler that the words call: by the name of this program, or by their first after it.
    pub(crate) fn read(words: &'a [OsString]) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        let name = Path::new(program).file_name().unwrap_or_default();
        if LINKS.iter().any(|link| name == *link) {
            return Some(Self { compiler: OsStr::new("nvcc"), arguments });
        }
        let (compiler, arguments) = arguments.split_first()?;
        let is_compiler = launcher::is_nvcc(compiler) || launcher::other_compiler(compiler).is_some();
        is_compiler.then_some(Self { compiler, arguments })
    }

    /// Runs it, and gives its exit code.
    pub(crate) fn run(&self) -> ExitCode {
        if let Some(error) = launcher::other_compiler(self.compiler) {
            return fail(&error);
        }
        let settings = match settings() {
            Ok(settings) => settings,
            Err(message) => {
                to_stderr(&message);
                return Status::Usage.into();
            }
        };
        match launcher::run(self.compiler, self.arguments, &settings) {
            Ok(code) => code.into(),
            Err(error) => fail(&error),
        }
    }
}

fn fail(error: &launcher::Error) -> ExitCode {
    to_stderr(&format!("{error}\n"));
    error.code.into()
}

/// What the variable says.
///
/// # Errors
/// What is wrong with it, for standard error.
fn settings() -> Result<Settings, String> {
    let text = std::env::var(FLAGS).or_else(|error| match error {
        std::env::VarError::NotPresent => Ok(String::new()),
        std::env::VarError::NotUnicode(_) => Err(format!("error: {FLAGS} is not UTF-8\n")),
    })?;
    let words = shlex::split(&text).ok_or_else(|| format!("error: a quote in {FLAGS} has no partner: {text}\n"))?;
    let Flags { how, verify, system_headers, recursion, coverage } =
        Flags::try_parse_from(words).map_err(|error| format!("{error}in {FLAGS}: {text}\n"))?;
    Ok(Settings {
        polls: how.polls(),
        poll_gap: how.poll_gap,
        at_exit: how.at_exit(),
        barrier_marks: how.barrier_marks(),
        limits: how.limits(),
        device_macros: how.device_macro,
        config: how.config,
        strict: how.strict,
        quiet: how.quiet,
        verify,
        recursion: recursion.into(),
        system_headers,
        coverage,
    })
}
