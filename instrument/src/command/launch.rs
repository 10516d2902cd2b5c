//! `cuinstr nvcc …` and `cuinstr ptxas …`: NVIDIA's own programs, with polls.

use super::cli::Flags;
use super::report::to_stderr;
use super::status::Status;
use clap::{CommandFactory, Parser};
use cuinstr::launcher::{self, Settings, ptxas};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::ExitCode;

/// Variable that holds the options of a launch: build systems pass nvcc's own arguments only.
pub(crate) const FLAGS: &str = "CUINSTR_FLAGS";

/// What our options begin with among nvcc's own.
const PREFIX: &str = "--cuinstr-";

/// Names under which this program is nvcc itself, for tools that take one path.
const LINKS: [&str; 2] = ["nvcc", "cuinstr-nvcc"];

/// A program of the toolkit and what it is given.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    program: Program<'a>,
    arguments: &'a [OsString],
}

#[derive(Debug, Clone, Copy)]
enum Program<'a> {
    Compiler(&'a OsStr),
    Ptxas,
}

impl<'a> Call<'a> {
    /// The program that the words call: by the name of this program, or by their first after it.
    pub(crate) fn read(words: &'a [OsString]) -> Option<Self> {
        let (own, arguments) = words.split_first()?;
        let name = Path::new(own).file_name().unwrap_or_default();
        if LINKS.iter().any(|link| name == *link) {
            return Some(Self { program: Program::Compiler(OsStr::new("nvcc")), arguments });
        }
        if name == ptxas::NAME {
            return Some(Self { program: Program::Ptxas, arguments });
        }
        let (first, arguments) = arguments.split_first()?;
        if first == ptxas::NAME {
            return Some(Self { program: Program::Ptxas, arguments });
        }
        let is_compiler = launcher::is_nvcc(first) || launcher::other_compiler(first).is_some();
        is_compiler.then_some(Self { program: Program::Compiler(first), arguments })
    }

    /// Runs it, and gives its exit code.
    pub(crate) fn run(&self) -> ExitCode {
        if let Program::Compiler(compiler) = self.program
            && let Some(error) = launcher::other_compiler(compiler)
        {
            return fail(&error);
        }
        let (arguments, own) = split(self.arguments);
        let settings = match settings(own) {
            Ok(settings) => settings,
            Err(message) => {
                to_stderr(&message);
                return Status::Usage.into();
            }
        };
        let done = match self.program {
            Program::Compiler(compiler) => launcher::run(compiler, &arguments, &settings),
            Program::Ptxas => ptxas::run(&arguments, &settings),
        };
        done.map_or_else(|error| fail(&error), ExitCode::from)
    }
}

fn fail(error: &launcher::Error) -> ExitCode {
    to_stderr(&format!("{error}\n"));
    error.code.into()
}

/// nvcc's arguments, and our options among them: `--cuinstr-timeout=2s` is `--timeout=2s`. Build systems know by their own commands what they built.
fn split(arguments: &[OsString]) -> (Vec<OsString>, Vec<OsString>) {
    let takes_value = |name: &[u8]| {
        let command = Flags::command();
        let found = command.get_arguments().find(|argument| argument.get_long().is_some_and(|long| long.as_bytes() == name));
        found.is_some_and(|argument| argument.get_action().takes_values())
    };
    let (mut kept, mut own) = (Vec::with_capacity(arguments.len()), Vec::new());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(option) = word.as_bytes().strip_prefix(PREFIX.as_bytes()) else {
            kept.push(word.clone());
            continue;
        };
        own.push(OsString::from_vec([b"--", option].concat()));
        if takes_value(option) {
            own.extend(words.next().cloned());
        }
    }
    (kept, own)
}

/// What the variable says, and then options among nvcc's own, which win.
///
/// # Errors
/// What is wrong with it, for standard error.
fn settings(own: Vec<OsString>) -> Result<Settings, String> {
    let text = std::env::var(FLAGS).or_else(|error| match error {
        std::env::VarError::NotPresent => Ok(String::new()),
        std::env::VarError::NotUnicode(_) => Err(format!("error: {FLAGS} is not UTF-8\n")),
    })?;
    let words = shlex::split(&text).ok_or_else(|| format!("error: a quote in {FLAGS} has no partner: {text}\n"))?;
    let among: Vec<String> = own.iter().map(|word| word.to_string_lossy().replacen("--", PREFIX, 1)).collect();
    let place =
        if among.is_empty() { format!("{FLAGS}: {text}") } else { format!("{FLAGS}: {text}, and among nvcc's own: {}", among.join(" ")) };
    let Flags { how, pass, verify, system_headers, recursion, coverage } =
        Flags::try_parse_from(words.into_iter().map(OsString::from).chain(own)).map_err(|error| format!("{error}in {place}\n"))?;
    Ok(Settings {
        pass: pass.into(),
        polls: how.polls(),
        poll_gap: how.poll_gap,
        at_exit: how.at_exit(),
        barrier_marks: how.barrier_marks(),
        limits: how.limits(),
        pausable: how.pausable,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_ours_are_told_from_nvccs() {
        let words = |text: &str| text.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect::<Vec<_>>();
        let apart = |text: &str| split(&words(text));
        assert_eq!(apart("-c a.cu --cuinstr-coverage d -O2"), (words("-c a.cu -O2"), words("--coverage d")));
        assert_eq!(apart("--cuinstr-timeout=2s x.cu --cuinstr-verify -G"), (words("x.cu -G"), words("--timeout=2s --verify")));
        assert_eq!(apart("x.cu"), (words("x.cu"), Vec::new()));
        assert!(settings(words("--coverage")).is_err_and(|text| text.contains("--cuinstr-coverage")));
        assert_eq!(settings(words("--pass ptx --pass=source")).map(|settings| settings.pass), Ok(cuinstr::options::Pass::Source));
    }
}
