//! What is said on a terminal while code of the program is compiled for the first time, as the library tells it (`runtime/interpose/src/session.rs`).

use std::fs;
use std::io::{IsTerminal, Write, stderr};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the session is looked at.
const PAUSE: Duration = Duration::from_millis(250);

/// Says it until it is dropped.
pub(super) struct Compiling {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Compiling {
    /// Says nothing if `is_quiet`, or where standard error is no terminal.
    pub(super) fn begin(session: &Path, is_quiet: bool) -> Self {
        if is_quiet || !stderr().is_terminal() {
            return Self { running: None };
        }
        let path = session.join("compiling");
        let (sender, receiver) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let mut said = None;
            while receiver.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                let now = told(&path);
                // What takes less than two looks is not worth a line.
                if now != said {
                    let line = now.as_deref().unwrap_or_default();
                    let _ = write!(stderr(), "\r\x1b[K{line}");
                    said = now;
                }
            }
            if said.is_some() {
                let _ = write!(stderr(), "\r\x1b[K");
            }
        });
        Self { running: Some((sender, thread)) }
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.running.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

fn told(path: &PathBuf) -> Option<String> {
    line(&fs::read_to_string(path).ok()?)
}

/// What is compiled now, of lines such as `+3` and `-3`.
fn line(lines: &str) -> Option<String> {
    let numbers = || lines.lines().filter_map(|line| line.parse::<i64>().ok());
    let now: i64 = numbers().sum();
    let begun: i64 = numbers().filter(|number| *number > 0).sum();
    let kernels = if now == 1 { "kernel" } else { "kernels" };
    (now > 0).then(|| format!("cuinstr: compiling {now} {kernels}, first run ({} done)", begun - now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_begun_and_not_done_is_compiled() {
        assert_eq!(line(""), None);
        assert_eq!(line("+3\n-3\n"), None);
        assert_eq!(line("+3\n+1\n-3\n").as_deref(), Some("cuinstr: compiling 1 kernel, first run (3 done)"));
        // A line that is being written.
        assert_eq!(line("+12\n+").as_deref(), Some("cuinstr: compiling 12 kernels, first run (0 done)"));
    }
}
