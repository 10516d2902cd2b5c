//! A helper process as its parent sees it: started when it is first needed, asked, and killed when it keeps its parent waiting.

use crate::error::{Error, Result};
use crate::wire::{Answer, Ask, VERSION};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tells a program that it is to be a helper, and of which version.
pub const VARIABLE: &str = "CUINSTR_CHECKPOINT";
/// Longest that a call may take which moves no memory; the first one initialises the driver.
const SHORT: Duration = Duration::from_secs(30);
/// Longest that a checkpoint or a restore may take, unless the caller says otherwise.
const LONG: Duration = Duration::from_secs(600);

/// Makes the driver's calls in a child process, which is killed when one of them does not return in time.
///
/// Clones share the process. Dropping the last one lets the process end; what it has locked stays locked.
#[derive(Debug, Clone)]
pub struct Helper {
    recipe: Arc<Recipe>,
    running: Arc<Mutex<Option<Running>>>,
}

#[derive(Debug, Clone)]
struct Recipe {
    // The running program if there is none.
    program: Option<PathBuf>,
    arguments: Vec<OsString>,
    copy_within: Duration,
}

#[derive(Debug)]
struct Running {
    child: Child,
    socket: BufReader<UnixStream>,
}

impl Default for Helper {
    fn default() -> Self {
        Self::new()
    }
}

impl Helper {
    /// This program again, whose `main` calls [`serve_if_asked`](crate::serve_if_asked).
    #[must_use]
    pub fn new() -> Self {
        Self::with(Recipe { program: None, arguments: Vec::new(), copy_within: LONG })
    }

    /// Another program that calls [`serve_if_asked`](crate::serve_if_asked), such as `cuinstr-checkpoint`.
    #[must_use]
    pub fn of_program(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self::with(Recipe { program: Some(program.into()), arguments, copy_within: LONG })
    }

    fn with(recipe: Recipe) -> Self {
        Self { recipe: Arc::new(recipe), running: Arc::default() }
    }

    /// The longest that a checkpoint or a restore may take; ten minutes if nothing is said.
    #[must_use]
    pub fn copy_within(self, limit: Duration) -> Self {
        Self::with(Recipe { copy_within: limit, ..(*self.recipe).clone() })
    }

    /// The pid of the helper process, while there is one.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|running| running.child.id())
    }

    /// Has something done, and gives the answer.
    pub(crate) fn ask(&self, pid: u32, ask: &Ask) -> Result<Answer> {
        let within = match ask {
            // Without a timeout the driver waits for as long as kernels run.
            Ask::Lock { timeout_ms: 0, .. } | Ask::Checkpoint { .. } | Ask::Restore { .. } | Ask::Toggle { .. } => self.recipe.copy_within,
            Ask::Lock { timeout_ms, .. } => SHORT + Duration::from_millis(u64::from(*timeout_ms)),
            _ => SHORT,
        };
        let mut place = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running = match place.take() {
            Some(running) => running,
            None => self.start()?,
        };
        match running.exchange(ask, within) {
            Ok(answer) => {
                *place = Some(running);
                Ok(answer)
            }
            Err(error) => {
                let is_late = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
                let ended = running.end();
                Err(if is_late { Error::Blocked { pid, call: ask.call(), after: within } } else { self.lost(&format!("{error}; {ended}")) })
            }
        }
    }

    fn lost(&self, why: &str) -> Error {
        let program = self.recipe.program.clone().or_else(|| std::env::current_exe().ok()).unwrap_or_default();
        Error::Helper(format!("{}: {why}", program.display()))
    }

    fn start(&self) -> Result<Running> {
        // Still there when the file was replaced meanwhile.
        let program = self.recipe.program.clone().unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
        let start = || {
            let (ours, theirs) = UnixStream::pair()?;
            // In a group of its own, Ctrl-C does not end it in the middle of a call.
            let mut command = Command::new(program);
            command.args(&self.recipe.arguments).env(VARIABLE, VERSION).process_group(0);
            let child = command.stdin(Stdio::from(OwnedFd::from(theirs))).spawn()?;
            Ok(Running { child, socket: BufReader::new(ours) })
        };
        start().map_err(|error: io::Error| self.lost(&error.to_string()))
    }
}

impl Running {
    fn exchange(&mut self, ask: &Ask, within: Duration) -> io::Result<Answer> {
        let mut line = serde_json::to_string(ask)?;
        line.push('\n');
        self.socket.get_mut().write_all(line.as_bytes())?;
        let until = Instant::now() + within;
        let mut answer = String::new();
        while !answer.ends_with('\n') {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.socket.get_mut().set_read_timeout(Some(left))?;
            if self.socket.read_line(&mut answer)? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended without an answer"));
            }
        }
        Ok(serde_json::from_str(&answer)?)
    }

    /// Kills it, and says how it ended.
    fn end(&mut self) -> String {
        let before = self.child.try_wait().ok().flatten();
        let _ = self.child.kill();
        let after = self.child.wait();
        before.map_or_else(|| after.map_or_else(|error| error.to_string(), |status| status.to_string()), |status| status.to_string())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let line = serde_json::to_string(&Ask::Bye).unwrap_or_default() + "\n";
        let told = self.socket.get_mut().write_all(line.as_bytes());
        // One that has gone by itself, or does not listen.
        if told.is_err() {
            let _ = self.child.kill();
        }
        let _ = self.socket.get_mut().shutdown(std::net::Shutdown::Write);
        let _ = self.child.wait();
    }
}
