//! One word in front of nvcc: `cuinstr nvcc ARGS…` behaves as that nvcc on rewritten source.
//!
//! nvcc has the host's compiler preprocess each pass of a CUDA file (`gcc -E -D__CUDACC__ …`). [`run`] starts nvcc with the
//! arguments it was given. Links to this very program stand in place of the host's compiler. Only calls of the preprocessor
//! on CUDA source are answered differently: they read the rewritten text, through an *overlay*. Their output names the
//! user's own files throughout.
//!
//! So all that follows is what nvcc makes of the user's own files: messages, `__FILE__`, debug information, dependency files,
//! names of outputs. Of nvcc's own options only the few in `arguments` must be known.
//!
//! In reading order, in the process that the user starts:
//!
//! - `arguments`: nvcc's command line. `compiler`: which nvcc, which host compiler.
//! - `session`: the folder of one call, its locks, and what killed builds left. `signal`: signals go on to nvcc.
//! - `proof` looks at what nvcc made.
//!
//! In the processes that nvcc starts:
//!
//! - `host`: one call of the host's compiler. `preprocess`: its arguments. `foreign`: headers that stay as they are.
//! - `overlay`: the folders that the preprocessor sees. `links` says where paths lead, `plan` what is known of an overlay.
//! - `unit_names`: what the files of a unit say of names. `unit_macros`: of macros. `rewritten_file`: one rewritten file. `cache`: rewritten headers, shared by parallel calls.
//! - `marks`: where insertions end up in preprocessed text. `quotes`: what messages quote of it. `relay`: the way of messages to the user.
//! - `record`: site maps as a variable. `translate`: the user's paths again. `recursion`: which calls need a poll.
//!
//! With the PTX pass ([`Settings::pass`]) the source stays as it is. `hook` has nvcc run this program in place of its
//! compiler to PTX. `cicc` answers such a call. `polled` inserts the polls, also for [`ptxas`]. Of the steps above only
//! `host_runtime` is left: the host's C++ that each object gets.
//!
//! For the command beside all this: `harmless`, headers of one source that need no polls.
//!
//! The host's side of a compilation reads the user's own text, since polls belong to the device alone. The host must know
//! only three names of them.

mod arguments;
mod cache;
mod cicc;
mod compiler;
mod coverage;
mod error;
mod foreign;
pub mod harmless;
mod hook;
mod host;
mod host_runtime;
mod links;
mod marks;
mod overlay;
mod plan;
mod polled;
mod preprocess;
mod process;
mod proof;
pub mod ptxas;
mod quotes;
mod record;
mod recursion;
mod relay;
mod rewritten_file;
mod session;
mod settings;
mod signal;
mod translate;
mod unit_macros;
mod unit_names;
mod unit_rows;
mod words;

pub use compiler::{find, is_nvcc, other_compiler};
pub use error::Error;
pub use host::answer;
pub use settings::{Recursion, Settings};

use crate::options::Pass;
use error::{NOT_FOUND, NOT_REACHED, SESSION};
use process::{cannot_start, code_of};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// Runs nvcc on rewritten source and gives its exit code, with what it prints printed.
///
/// `named` is how the compiler was named: a path, or a name to look for in `PATH` and then in `CUDA_HOME`. What is no CUDA compilation is left
/// to nvcc untouched. A call that is ended by a signal ends nvcc by the same one, removes its session and dies of it.
///
/// # Errors
/// If there is no such nvcc, it can't be started, or the session can't be set up. What nvcc itself finds wrong is no error here, but its exit code.
pub fn run(named: &OsStr, arguments: &[OsString], settings: &Settings) -> Result<u8, Error> {
    launch(named, arguments, settings).map(|done| done.code)
}

/// What came of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Done {
    /// nvcc's exit code.
    pub code: u8,
    /// Gaps, one line each, also those that [`Settings::quiet`] kept from being printed.
    pub said: BTreeSet<String>,
}

/// [`run`], and what was said.
///
/// # Errors
/// As for [`run`].
pub fn launch(named: &OsStr, arguments: &[OsString], settings: &Settings) -> Result<Done, Error> {
    let nvcc = compiler::find(named)?;
    let mut line = arguments::CommandLine::read(arguments, |name| std::env::var_os(name));
    if line.asks_version {
        let code = code_of(start(Command::new(&nvcc).args(arguments), &nvcc)?);
        println!("{}", settings.version_line());
        return Ok(Done { code, said: BTreeSet::new() });
    }
    if let Some(named) = &line.ptx_in_variable {
        let message = format!(
            "`{}` is named in {}, where it can't be exchanged for PTX with polls",
            named.display(),
            arguments::VARIABLES.join(" or ")
        );
        return Err(Error { code: 2, ..Error::new(message, "name it on nvcc's command line") });
    }
    // What is PTX already meets none of the compilers that cuinstr stands in for.
    let mut texts = None;
    if line.preprocesses && std::env::var_os(SESSION).is_none() && line.sources.iter().any(|name| name.as_bytes().ends_with(b".ptx")) {
        let (words, inputs) = ptx_inputs(arguments)?;
        if !inputs.is_empty() {
            if !line.may_hold_cuda {
                return ptxas::on_inputs(&nvcc, &words, inputs, settings).map(|code| Done { code, ..Done::default() });
            }
            let Some(polled) = ptxas::with_polls(&words, inputs, settings)? else { return Ok(Done { code: 1, ..Done::default() }) };
            line = arguments::CommandLine::read(&polled.words, |name| std::env::var_os(name));
            texts = Some(polled.folder);
        }
    }
    // Below a running call the source is rewritten already.
    if !line.may_hold_cuda || std::env::var_os(SESSION).is_some() {
        let error = Command::new(&nvcc).args(arguments).exec();
        return Err(cannot_start(&nvcc, &error));
    }
    if compiler::is_a_caches_prefix() {
        return Err(Error {
            code: 2,
            ..Error::new(
                "CCACHE_PREFIX names cuinstr: the cache would take objects with polls for objects without, and serve each for the other",
                "unset it, and put ccache in front of a link to cuinstr named nvcc: `ccache links/nvcc …` (docs/PROJECTS.md)",
            )
        });
    }
    let watch = signal::Watch::begin().map_err(|error| Error::new(format!("signals can't be watched: {error}"), "try again"))?;
    let done = choose(&nvcc, &line, settings, &watch);
    drop(texts);
    let done = done?;
    // A process that finishes its work in spite of a signal has done so for good: nvcc ignores one of those that only it, and nothing below it, is sent.
    if done.code != 0 {
        watch.end();
    }
    Ok(done)
}

/// The words with those of options files, and what PTX is among them. What is not there is nvcc's to complain of.
fn ptx_inputs(arguments: &[OsString]) -> Result<(Vec<OsString>, Vec<ptxas::Input>), Error> {
    let words = arguments::expand(arguments.to_vec());
    let read = |at: usize| {
        let path = Path::new(&words[at]);
        std::fs::read(path).map(|bytes| (at, bytes)).map_err(|error| Error::io("can't read", path, &error))
    };
    let there = arguments::ptx_inputs(&words).into_iter().filter(|at| Path::new(&words[*at]).is_file());
    let inputs = there.map(read).collect::<Result<Vec<_>, _>>()?;
    Ok((words, inputs))
}

/// Compiles by the pass that was asked for, or by the other one where this nvcc is not known.
fn choose(nvcc: &Path, line: &arguments::CommandLine, settings: &Settings, watch: &signal::Watch) -> Result<Done, Error> {
    if settings.pass == Pass::Source || !line.preprocesses {
        return compile(nvcc, line, settings, None, watch);
    }
    if settings.coverage.is_some() {
        let help = "set CUINSTR_FLAGS=\"--pass source\" for it; `cuinstr verify` says of PTX what is polled";
        return Err(Error { code: 2, ..Error::new("--coverage counts what becomes of source, which the PTX pass does not change", help) });
    }
    let why = match hook::find(nvcc, line)? {
        hook::Found::Nothing => return compile(nvcc, line, settings, None, watch),
        hook::Found::Hook(hook) => match compile(nvcc, line, settings, Some(&hook), watch) {
            Err(error) if error.code == NOT_REACHED => "it did not run its compiler to PTX where its dry run said".to_owned(),
            done => return done,
        },
        hook::Found::Unknown(why) => why,
    };
    if !settings.quiet {
        eprintln!("cuinstr: warning: polls are inserted into the source, not into the PTX: this nvcc is not known, {why}");
    }
    compile(nvcc, line, &Settings { pass: Pass::Source, ..settings.clone() }, None, watch)
}

/// One run of nvcc in a session of its own.
fn compile(
    nvcc: &Path,
    line: &arguments::CommandLine,
    settings: &Settings,
    hook: Option<&hook::Hook>,
    watch: &signal::Watch,
) -> Result<Done, Error> {
    let session = session::Session::begin(nvcc, line, settings, hook)?;
    let keeps = settings.verify || recursion::must_keep(line, settings);
    let kept = if keeps { proof::words(line, &session)? } else { Vec::new() };
    if recursion::can_ask(line, settings) {
        recursion::prepare(line, &kept, &session)?;
    }
    let mut result = supervise(nvcc, line, &kept, &session, hook, watch);
    if result == Ok(0) {
        result = recursion::decide_at_end(line, &session, nvcc, watch);
    }
    let mut findings = BTreeSet::new();
    if settings.verify && line.preprocesses && result == Ok(0) {
        let found = proof::findings(line, &session);
        result = found.as_ref().map(|found| u8::from(!found.is_empty())).map_err(Clone::clone);
        findings = found.unwrap_or_default();
        for finding in &findings {
            eprintln!("{finding}");
        }
    }
    if result == Ok(0) && hook.is_some_and(|hook| !hook.was_reached(&session)) {
        proof::remove_outputs(line)?;
        return Err(Error { code: NOT_REACHED, ..Error::new("nvcc did not run its compiler", "set CUINSTR_FLAGS=\"--pass source\"") });
    }
    if result == Ok(0) && settings.pass == Pass::Source && line.names_cuda && line.preprocesses && !session.was_reached() {
        result = Err(Error::new(
            "nvcc compiled CUDA source without asking the host compiler that cuinstr put in place, so nothing was rewritten",
            "name the host compiler with -ccbin on the command line, not in nvcc.profile",
        ));
    }
    if result == Ok(0) && recursion::is_undecided(session.folder()) {
        result = Err(Error::new(
            "nvcc made an object in a way that leaves calls of functions that reach themselves without polls",
            "set CUINSTR_FLAGS=\"--recursion named\", and report the command line",
        ));
    }
    if result.as_ref().is_err_and(|error| error.code != NOT_FOUND) || !findings.is_empty() {
        // A build must not take up the next time what is not what it seems.
        proof::remove_outputs(line)?;
    }
    let mut said = overlay::said(session.folder());
    said.extend(findings);
    let covered = match (&settings.coverage, &result) {
        (Some(folder), Ok(code)) => coverage::write(folder, session.folder(), *code),
        _ => Ok(()),
    };
    drop(session);
    covered?;
    result.map(|code| Done { code, said })
}

/// Runs nvcc in its session and waits for it.
fn supervise(
    nvcc: &Path,
    line: &arguments::CommandLine,
    further: &[OsString],
    session: &session::Session,
    hook: Option<&hook::Hook>,
    watch: &signal::Watch,
) -> Result<u8, Error> {
    let mut command = Command::new(nvcc);
    command.args(session.arguments(line)).args(further).env(SESSION, session.folder()).env("PATH", session.search_path());
    command.env_remove(recursion::SETTLES);
    for (name, value) in session.variables(line) {
        command.env(name, value);
    }
    if let Some(hook) = hook {
        hook.apply(&mut command, session);
    }
    if line.prints_commands
        && let Some(hook) = hook
    {
        // A reader that has gone is no error.
        let _ = io::stderr().write_all(&hook.shown_variables());
    }
    let relays = relays(line, &mut command, hook.is_none())
        .map_err(|error| Error::new(format!("nvcc's messages can't be read: {error}"), "end some other programs"))?;
    let mut child = command.spawn().map_err(|error| cannot_start(nvcc, &error))?;
    watch.forward_to(&child);
    let status = std::thread::scope(|scope| {
        let mut ends = Vec::new();
        for (relay, end, to_stderr) in relays {
            ends.push(end);
            scope.spawn(move || {
                let out: &mut dyn Write = if to_stderr { &mut io::stderr() } else { &mut io::stdout() };
                let mut quotes = quotes::Quotes::new(session.folder());
                relay.copy(out, |text| {
                    // The commands that nvcc prints hold paths of ours, which are gone afterwards and which build systems read.
                    let text = if line.prints_commands { Cow::Owned(session.translate_commands(text)) } else { Cow::Borrowed(text) };
                    quotes.line(&text).into_owned()
                });
            });
        }
        let status = child.wait();
        ends.into_iter().for_each(relay::End::tell);
        status
    });
    watch.forget_child();
    let status = status.map_err(|error| Error::new(format!("nvcc can't be waited for: {error}"), "try again"))?;
    Ok(code_of(status))
}

/// The streams of nvcc that are read on their way to the user: those that may show what we changed. With each, whether it goes to standard error.
fn relays(line: &arguments::CommandLine, command: &mut Command, in_source: bool) -> io::Result<Vec<(relay::Relay, relay::End, bool)>> {
    let mut relays = Vec::new();
    if !line.prints_commands && !in_source {
        return Ok(relays);
    }
    let mut read = |to_stderr: bool, is_terminal: bool| {
        let relay = relay::Relay::open(is_terminal)?;
        let stream = (relay.stream()?, relay.stream()?);
        let end = relay.end()?;
        relays.push((relay, end, to_stderr));
        Ok::<_, io::Error>(stream)
    };
    let (stderr, both) = read(true, io::stderr().is_terminal())?;
    command.stderr(stderr);
    if relay::are_one() {
        command.stdout(both);
    } else if line.prints_commands {
        command.stdout(read(false, io::stdout().is_terminal())?.0);
    }
    Ok(relays)
}

fn start(command: &mut Command, program: &Path) -> Result<ExitStatus, Error> {
    command.status().map_err(|error| cannot_start(program, &error))
}
