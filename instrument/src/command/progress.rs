//! A line on a terminal that says what takes long.

use std::io::{IsTerminal, Write, stderr};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Commands that take less say nothing.
const QUIET: Duration = Duration::from_secs(2);

/// Says what is being done, once a second, until it is dropped. Nothing is said where standard error is no terminal.
pub(crate) struct Progress {
    running: Option<(Sender<String>, JoinHandle<()>)>,
}

impl Progress {
    /// Begins to count the time.
    pub(crate) fn start() -> Self {
        if !stderr().is_terminal() {
            return Self { running: None };
        }
        let (sender, receiver) = channel::<String>();
        let tell = move || {
            let begin = Instant::now();
            let mut what = String::new();
            let (mut said, mut next) = (false, QUIET);
            loop {
                match receiver.recv_timeout(next.saturating_sub(begin.elapsed())) {
                    Ok(new) => what = new,
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {
                        let _ = write!(stderr(), "\r\x1b[K{what}: {} s", begin.elapsed().as_secs());
                        (said, next) = (true, next + Duration::from_secs(1));
                    }
                }
            }
            if said {
                let _ = write!(stderr(), "\r\x1b[K");
            }
        };
        // Where no thread can be started, the work goes on without a word.
        Self { running: std::thread::Builder::new().spawn(tell).ok().map(|thread| (sender, thread)) }
    }

    /// What is being done now.
    pub(crate) fn now(&self, what: &str) {
        if let Some((sender, _)) = &self.running {
            // Without the other side there is nothing to tell.
            let _ = sender.send(cuinstr::render::one_line(what));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.running.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}
