//! The runtime over the stand-in driver: what no GPU does on request, such as to refuse one call, to block in another, to have a clock that drifts.
//!
//! Each case runs in a process of its own: this program again, with the stand-in for its driver.

mod clocks;
mod contexts;
mod endings;
mod guards;
mod interfaces;
mod launches;
mod pauses;
mod races;
mod scenarios;
#[cfg(feature = "snapshot")]
mod snapshots;
mod soak;
mod sweep;
mod trouble;
mod world;

use cuinstr_stand_in::client;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Names the case that a child runs.
const CASE: &str = "CUINSTR_CASE";
/// Longest that a case may take; a sweep of all calls takes longer, and so does a program under `ThreadSanitizer`.
const LIMIT: Duration = Duration::from_secs(300);
/// Stands before the scenario and the call that a case sweeps.
const SWEEP: &str = "no failure of one call does harm: ";
/// The case that tells what to sweep.
const NAMES: &str = "names";

type Case = (&'static str, fn());

#[cfg(feature = "snapshot")]
const SNAPSHOTS: &[Case] = snapshots::CASES;
#[cfg(not(feature = "snapshot"))]
const SNAPSHOTS: &[Case] = &[];

fn main() -> ExitCode {
    cuinstr_runtime::worker::serve_if_asked();
    let cases: Vec<Case> = [
        launches::CASES,
        clocks::CASES,
        contexts::CASES,
        endings::CASES,
        guards::CASES,
        interfaces::CASES,
        pauses::CASES,
        races::CASES,
        soak::CASES,
        trouble::CASES,
        SNAPSHOTS,
    ]
    .concat();
    if let Ok(wanted) = std::env::var(CASE) {
        assert!(client::is_loaded(), "LD_LIBRARY_PATH does not lead to the stand-in");
        match (wanted.as_str(), wanted.strip_prefix(SWEEP)) {
            (NAMES, _) => sweep::names(),
            (_, Some(call)) => sweep::sweep(call),
            _ => cases.into_iter().find(|(name, _)| *name == wanted).expect("a case of this program").1(),
        }
        return ExitCode::SUCCESS;
    }
    let folder = tempfile::tempdir().expect("a folder");
    client::install(folder.path()).expect("the stand-in beside this program");
    let calls = run(NAMES, folder.path()).expect("nothing fails where no call does");
    let sweeps = calls.lines().map(|call| format!("{SWEEP}{call}"));
    let trial = |name: String| {
        let path = folder.path().to_owned();
        Trial::test(name.clone(), move || run(&name, &path).map(|_| ()))
    };
    let trials = cases.iter().map(|(name, _)| (*name).to_owned()).chain(sweeps).map(trial).collect();
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    drop(folder);
    conclusion.exit_code()
}

/// Runs a case in a child, and gives what it printed.
fn run(name: &str, folder: &Path) -> Result<String, Failed> {
    let limit = if ["CUINSTR_SWEEP", "CUINSTR_SOAK", "TSAN_OPTIONS"].iter().any(|name| std::env::var_os(name).is_some()) {
        LIMIT * 20
    } else {
        LIMIT
    };
    let mut command = Command::new(std::env::current_exe()?);
    let mut child = command.env(CASE, name).env("LD_LIBRARY_PATH", folder).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    // A sanitizer says more than a pipe holds.
    let stderr = child.stderr.take();
    let said = std::thread::spawn(move || stderr.map(std::io::read_to_string).transpose());
    let since = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if since.elapsed() > limit {
            child.kill()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let said = said.join().expect("it reads")?.unwrap_or_default();
    match status {
        Some(status) if status.success() => Ok(child.stdout.take().map(std::io::read_to_string).transpose()?.unwrap_or_default()),
        Some(status) => Err(format!("{status}\n{said}").into()),
        None => Err(format!("it did not end within {limit:?}\n{said}").into()),
    }
}
