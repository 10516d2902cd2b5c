//! Other programs, run with a limit of time.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What a program left behind.
#[derive(Debug)]
pub struct Finished {
    /// How it ended; absent if it was killed for running too long.
    pub status: Option<ExitStatus>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Finished {
    /// Whether it ended well, in time.
    #[must_use]
    pub fn success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }
}

/// Runs a program to its end, or kills it and its children after `limit`.
///
/// # Errors
/// If it can't be started.
pub fn run(command: &mut Command, limit: Duration) -> io::Result<Finished> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()?;
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let status = wait(&mut child, limit)?;
    if status.is_none() {
        kill_group(&mut child);
    }
    let text = |reader: thread::JoinHandle<Vec<u8>>| String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned();
    Ok(Finished { status, stdout: text(stdout), stderr: text(stderr) })
}

/// Waits for a child until `limit`; `None` if it still runs.
///
/// # Errors
/// If the operating system can't say.
pub fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let since = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if since.elapsed() >= limit {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Kills a child that leads its own process group, with all that it started, and reaps it, waiting ten seconds at most.
pub fn kill_group(child: &mut Child) {
    // The standard library can't signal a group, and libc would be this crate's only other reason for unsafe code.
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).stderr(Stdio::null()).status();
    let _ = child.kill();
    let _ = wait(child, Duration::from_secs(10));
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// What this thread has had of a processor so far. On a busy machine that is far from the time that has gone by.
///
/// # Panics
/// If the system does not say.
#[must_use]
pub fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the system counts processor time");
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_outputs_and_the_status_come_back() {
        let finished = run(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]), Duration::from_secs(10)).expect("sh starts");
        assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(finished.status.and_then(|status| status.code()), Some(3));
        assert!(!finished.success());
    }

    #[test]
    fn processor_time_goes_by_for_what_works_and_not_for_what_waits() {
        let begun = processor_time();
        thread::sleep(Duration::from_millis(200));
        let waited = processor_time();
        while processor_time() < waited + Duration::from_millis(20) {}
        let spent = waited.saturating_sub(begun);
        assert!(spent < Duration::from_millis(150), "{spent:?}");
    }

    #[test]
    fn a_program_that_runs_too_long_is_killed_with_its_children() {
        let since = Instant::now();
        let finished = run(Command::new("sh").args(["-c", "sleep 60; true"]), Duration::from_millis(50)).expect("sh starts");
        assert!(finished.status.is_none() && since.elapsed() < Duration::from_secs(20));
    }
}
