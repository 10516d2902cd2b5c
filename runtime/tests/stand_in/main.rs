//! The runtime over the stand-in driver: what no GPU does on request, such as to refuse one call, to block in another, to have a clock that drifts.
//!
//! Each case runs in a process of its own: this program again, with the stand-in for its driver.

mod clocks;
mod contexts;
mod launches;
mod world;

use cuinstr_stand_in::client;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Names the case that a child runs.
const CASE: &str = "CUINSTR_CASE";
/// Longest that a case may take.
const LIMIT: Duration = Duration::from_secs(60);

type Case = (&'static str, fn());

fn main() -> ExitCode {
    cuinstr_runtime::worker::serve_if_asked();
    let cases: Vec<Case> = [launches::CASES, clocks::CASES, contexts::CASES].concat();
    if let Ok(wanted) = std::env::var(CASE) {
        let (_, case) = cases.into_iter().find(|(name, _)| *name == wanted).expect("a case of this program");
        assert!(client::is_loaded(), "LD_LIBRARY_PATH does not lead to the stand-in");
        case();
        return ExitCode::SUCCESS;
    }
    let folder = tempfile::tempdir().expect("a folder");
    client::install(folder.path()).expect("the stand-in beside this program");
    let path = folder.path().to_owned();
    let trial = |(name, _): &Case| {
        let (name, path) = (*name, path.clone());
        Trial::test(name, move || run(name, &path))
    };
    let conclusion = libtest_mimic::run(&Arguments::from_args(), cases.iter().map(trial).collect());
    drop(folder);
    conclusion.exit_code()
}

/// Runs a case in a child.
fn run(name: &str, folder: &Path) -> Result<(), Failed> {
    let program = std::env::current_exe()?;
    let mut child =
        Command::new(program).env(CASE, name).env("LD_LIBRARY_PATH", folder).stderr(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    let since = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if since.elapsed() > LIMIT {
            child.kill()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let said = std::io::read_to_string(child.stderr.take().expect("it is piped"))?;
    match status {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!("{status}\n{said}").into()),
        None => Err(format!("it did not end within {LIMIT:?}\n{said}").into()),
    }
}
