//! One worker process as its parent sees it: how it is started, asked, listened to, and killed.
//!
//! A thread listens to each process, so that its end is noticed at once. No thread waits for a process without a bound.
//! A process that does not answer in time is killed, and nothing that it sends later is read.

use super::pending::PendingLaunch;
use super::reaper;
use super::wire::{self, Answer, Message, OURS, Request, Speech, Task};
use super::words::{End, Refusal};
use crate::error::worker::Fault;
use crate::error::{Error, Result};
use crate::thread;
use cuinstr_image::Arch;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Tells a program that it is to be a worker, and of which version.
pub(super) const VARIABLE: &str = "CUINSTR_WORKER";
/// Longest that a program which has closed its pipe is asked how it ended.
const LAST_WORD: Duration = Duration::from_secs(1);
/// The same for a worker: one with a kernel on the GPU can't say for a while, and the next one is waited for.
const SHORT_WORD: Duration = Duration::from_millis(2);
/// Bytes a second that a worker takes or gives at the least.
const SLOWEST: u64 = 100 << 20;

/// How to start a worker process.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    /// The program; the running one if there is none.
    pub(super) program: Option<PathBuf>,
    pub(super) arguments: Vec<OsString>,
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) device: usize,
    /// Longest that it may take until its context is ready.
    pub(super) start_within: Duration,
    /// Longest that it may take to do what waits for no kernel.
    pub(super) answer_within: Duration,
}

impl Recipe {
    fn program(&self) -> PathBuf {
        let own = || {
            // Still there when the file was replaced meanwhile.
            let link = PathBuf::from("/proc/self/exe");
            if link.exists() { link } else { std::env::current_exe().unwrap_or_default() }
        };
        self.program.clone().unwrap_or_else(own)
    }

    /// The program's name for people.
    fn shown(&self) -> String {
        self.program.clone().or_else(|| std::env::current_exe().ok()).unwrap_or_default().display().to_string()
    }
}

/// What a worker says of itself when it is ready.
#[derive(Debug, Clone)]
pub(super) struct About {
    pub(super) device: String,
    pub(super) arch: Arch,
}

/// A worker process whose context is ready.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) about: About,
    answer_within: Duration,
    child: Mutex<Option<Child>>,
    outbox: Mutex<UnixStream>,
    replies: Mutex<PendingReplies>,
    changed: Condvar,
}

/// What is open between parent and process.
#[derive(Debug, Default)]
struct PendingReplies {
    serial: u64,
    // The task that somebody waits for, and the bytes that its answer brings.
    pending: Option<(u64, usize)>,
    answer: Option<(std::result::Result<Answer, Refusal>, Vec<u8>)>,
    // In the order of the stream.
    launches: VecDeque<Arc<PendingLaunch>>,
    // Whether the last of them has not been told to the process yet.
    is_unsent: bool,
    // Whether the last of them is the last thing that it was told, and not answered.
    is_last_word: bool,
    lost: Option<String>,
    // It went by itself, and no launch was in it: a caller that comes too late to notice may ask the next one.
    went_idle: bool,
}

impl Process {
    /// Starts a process and waits until its context is ready.
    pub(super) fn start(recipe: &Recipe) -> Result<Arc<Self>> {
        let until = Instant::now() + recipe.start_within;
        let program = recipe.shown();
        let not_started = |error: io::Error| Fault::NotStarted { program: program.clone(), reason: error.to_string() };
        let (mut ours, theirs) = UnixStream::pair().map_err(not_started)?;
        let mut command = Command::new(recipe.program());
        command.args(&recipe.arguments).envs(recipe.variables.iter().cloned());
        // Loading a kernel's code at its first launch could wait for one that hangs. In a group of its own, Ctrl-C is the parent's to handle.
        command.env("CUDA_MODULE_LOADING", "EAGER").env(VARIABLE, wire::VERSION.to_string()).process_group(0);
        // Standard output stays the parent's: kernels may print.
        let mut child = command.stdin(Stdio::from(OwnedFd::from(theirs))).spawn().map_err(not_started)?;
        // The command still holds the child's end, and its end would go unnoticed.
        drop(command);
        match handshake(&mut ours, &mut child, recipe, until) {
            Ok(about) => Self::attend(ours, child, about, recipe),
            Err(error) => {
                reaper::kill(child);
                Err(error)
            }
        }
    }

    fn attend(ours: UnixStream, child: Child, about: About, recipe: &Recipe) -> Result<Arc<Self>> {
        let pid = child.id();
        let sockets = ours.try_clone().and_then(|outbox| {
            // The listener waits for as long as it takes: the end of the process ends it.
            ours.set_read_timeout(None)?;
            Ok(outbox)
        });
        let outbox = match sockets {
            Ok(outbox) => outbox,
            Err(error) => {
                reaper::kill(child);
                return Err(Fault::Gone { pid, why: error.to_string() }.into());
            }
        };
        let process = Arc::new(Self {
            pid,
            about,
            answer_within: recipe.answer_within,
            child: Mutex::new(Some(child)),
            outbox: Mutex::new(outbox),
            replies: Mutex::default(),
            changed: Condvar::new(),
        });
        let heard = Arc::downgrade(&process);
        let started = thread::spawn("cuinstr-worker", move || listen(ours, &heard));
        started.map_err(|error| Fault::Gone { pid, why: format!("no thread could be started to listen to it: {error}") })?;
        Ok(process)
    }

    fn replies(&self) -> MutexGuard<'_, PendingReplies> {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why it is of no further use, if it is not.
    pub(super) fn lost(&self) -> Option<String> {
        self.replies().lost.clone()
    }

    /// Whether it went by itself while nothing was in flight, so that what it was asked meanwhile can be asked of the next.
    pub(super) fn went_idle(&self) -> bool {
        self.replies().went_idle
    }

    fn gone(&self, why: String) -> Error {
        Fault::Gone { pid: self.pid, why }.into()
    }

    /// Has a task done and waits for the answer, for which `bytes` of payload are expected.
    pub(super) fn ask(&self, task: Task, payload: &[u8], bytes: usize) -> Result<(Answer, Vec<u8>)> {
        let moved = Duration::from_secs((payload.len() as u64 + bytes as u64) / SLOWEST);
        let until = Instant::now() + self.answer_within + moved;
        let mut replies = self.replies();
        if let Some(why) = &replies.lost {
            return Err(self.gone(why.clone()));
        }
        replies.serial += 1;
        let serial = replies.serial;
        (replies.pending, replies.answer) = (Some((serial, bytes)), None);
        drop(replies);
        let what = verb(&task);
        self.post(&Request { serial, task }, payload, until)?;
        let mut replies = self.replies();
        loop {
            if let Some((answer, bytes)) = replies.answer.take() {
                let ends = answer.as_ref().err().and_then(Refusal::sticky).filter(|_| replies.launches.is_empty());
                drop(replies);
                if let Some(fault) = ends {
                    self.lose(format!("an earlier kernel ended its context: {fault}"));
                }
                return answer.map(|answer| (answer, bytes)).map_err(Error::from);
            }
            if let Some(why) = &replies.lost {
                return Err(self.gone(why.clone()));
            }
            let now = Instant::now();
            if now >= until {
                drop(replies);
                let within = self.answer_within + moved;
                return Err(self.gone(self.lose(format!("it did not {what} within {within:?}, and was killed"))));
            }
            replies = self.changed.wait_timeout(replies, until - now).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Tells it something that has no answer.
    pub(super) fn tell(&self, task: Task) -> Result<()> {
        self.replies().is_last_word = false;
        self.post(&Request { serial: 0, task }, &[], Instant::now() + self.answer_within)
    }

    fn post(&self, request: &Request, payload: &[u8], until: Instant) -> Result<()> {
        let sent = {
            let mut outbox = self.outbox.lock().unwrap_or_else(PoisonError::into_inner);
            let sent = wire::send(&mut outbox, request, payload, Some(until));
            // It may die of what it was told before this thread comes back.
            if sent.is_ok() && request.serial != 0 {
                self.replies().is_unsent = false;
            }
            sent
        };
        sent.map_err(|error| {
            // Half a frame may have gone out, so it is of no use after any error.
            self.gone(match error.kind() {
                io::ErrorKind::TimedOut => self.lose(format!("it did not listen within {:?}, and was killed", self.answer_within)),
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => self.went("it ended".into(), false),
                _ => self.lose(format!("it could not be spoken to ({error})")),
            })
        })
    }

    /// Has a kernel launched.
    pub(super) fn launch(&self, task: Task, pending: &Arc<PendingLaunch>) -> Result<()> {
        let mut replies = self.replies();
        let is_first = replies.launches.is_empty();
        replies.launches.push_back(Arc::clone(pending));
        (replies.is_unsent, replies.is_last_word) = (true, true);
        drop(replies);
        if is_first {
            pending.is_first();
        }
        let started = self.ask(task, &[], 0);
        if let Err(error) = started {
            let mut replies = self.replies();
            replies.launches.retain(|other| other.id != pending.id);
            self.changed.notify_all();
            let next = replies.launches.front().cloned();
            drop(replies);
            // Only its timer has a handle to it.
            pending.end(Err(error.clone()));
            if let Some(next) = next {
                next.is_first();
            }
            return Err(error);
        }
        self.replies().is_last_word = false;
        Ok(())
    }

    /// Waits until no launch is in flight.
    pub(super) fn settle(&self) -> Result<()> {
        let mut replies = self.replies();
        loop {
            if replies.lost.is_some() || replies.launches.is_empty() {
                return Ok(());
            }
            if let Some(endless) = replies.launches.iter().find(|pending| !pending.has_end()) {
                return Err(Fault::InFlight { kernel: endless.terms.kernel.to_string() }.into());
            }
            // Each has a timer, which gives up the worker if it must.
            replies = self.changed.wait_timeout(replies, self.answer_within).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Stops a launch.
    pub(super) fn cancel(&self, pending: &PendingLaunch) -> Result<()> {
        if pending.cancel() { self.tell(Task::Cancel { launch: pending.id }) } else { Ok(()) }
    }

    /// Gives the process up for a launch whose outcome the caller knows.
    pub(super) fn give_up(&self, pending: &PendingLaunch, why: String) {
        self.replies().launches.retain(|other| other.id != pending.id);
        self.lose(why);
    }

    /// It went by itself, and may have left something that it was told unread.
    fn went(&self, why: String, left_unread: bool) -> String {
        let mut replies = self.replies();
        if replies.lost.is_none() {
            replies.went_idle = replies.launches.len() == usize::from(replies.is_unsent || (left_unread && replies.is_last_word));
        }
        drop(replies);
        self.lose(why)
    }

    /// Kills it. Only the first reason counts; it is returned.
    fn lose(&self, why: String) -> String {
        let mut replies = self.replies();
        if let Some(first) = &replies.lost {
            return first.clone();
        }
        replies.lost = Some(why.clone());
        let launches = std::mem::take(&mut replies.launches);
        if let Some(child) = self.child.lock().unwrap_or_else(PoisonError::into_inner).take() {
            reaper::kill(child);
        }
        drop(replies);
        for pending in launches {
            pending.end(Err(self.gone(why.clone())));
        }
        self.changed.notify_all();
        why
    }

    /// One message has come.
    fn heard(&self, message: Message, payload: Vec<u8>) {
        let at = Instant::now();
        let (serial, answer) = match message {
            Message::Done { serial, answer } => (serial, Ok(answer)),
            Message::Refused { serial, refusal } => (serial, Err(refusal)),
            Message::Ended { launch, end } => return self.ended(launch, *end, at),
        };
        let mut replies = self.replies();
        match replies.pending {
            Some((pending, bytes)) if pending == serial && (answer.is_err() || payload.len() == bytes) => {
                (replies.pending, replies.answer) = (None, Some((answer, payload)));
                self.changed.notify_all();
            }
            _ => {
                drop(replies);
                self.lose("it answered what nobody had asked, and was killed".into());
            }
        }
    }

    /// A launch is over, or will never be.
    fn ended(&self, launch: u64, end: End, at: Instant) {
        let mut replies = self.replies();
        let place = replies.launches.iter().position(|pending| pending.id == launch);
        let Some(pending) = place.and_then(|place| replies.launches.remove(place)) else {
            drop(replies);
            self.lose("it told of a launch that was never made, and was killed".into());
            return;
        };
        let next = replies.launches.front().cloned();
        drop(replies);
        if let Some(why) = end.ruins(&pending.terms.kernel) {
            self.lose(why);
        } else if let Some(next) = next {
            next.is_first();
        }
        pending.end(end.outcome(at.elapsed()));
        self.changed.notify_all();
    }

    /// How many bytes of payload a message may bring.
    fn expected(&self, message: &Message) -> u64 {
        match (message, self.replies().pending) {
            (Message::Done { serial, .. }, Some((pending, bytes))) if *serial == pending => bytes as u64,
            _ => 0,
        }
    }

    /// It will say no more.
    fn silent(&self, error: &io::Error) {
        if !matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) {
            self.lose(format!("it sent {error}, and was killed"));
            return;
        }
        let status = {
            let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
            child.as_mut().and_then(|child| last_word(child, SHORT_WORD))
        };
        // Who is telling it something notes first whether it went out: a launch that a process may have died of is not made again.
        drop(self.outbox.lock().unwrap_or_else(PoisonError::into_inner));
        // Linux resets a socket, rather than only closing it, whose other end goes with something unread.
        let left_unread = error.kind() == io::ErrorKind::ConnectionReset;
        self.went(status.map_or_else(|| "it ended".to_owned(), |status| format!("it ended ({status})")), left_unread);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.lose("nobody needs it".into());
        // Ends the thread that listens, even while the system still clears the process away.
        let _ = self.outbox.get_mut().unwrap_or_else(PoisonError::into_inner).shutdown(Shutdown::Both);
    }
}

/// Hears a process to its end.
fn listen(mut inbox: UnixStream, process: &Weak<Process>) {
    loop {
        let received = wire::receive(&mut inbox, None, |message| process.upgrade().map_or(0, |process| process.expected(message)));
        let Some(process) = process.upgrade() else { return };
        match received {
            Ok((message, payload)) => process.heard(message, payload),
            Err(error) => return process.silent(&error),
        }
        if process.lost().is_some() {
            return;
        }
    }
}

/// How a process that has closed its pipe ended, if it can be said soon.
fn last_word(child: &mut Child, limit: Duration) -> Option<std::process::ExitStatus> {
    let until = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            _ => return None,
        }
    }
}

/// Finds out whether this is a worker, and has it make its context.
fn handshake(stream: &mut UnixStream, child: &mut Child, recipe: &Recipe, until: Instant) -> Result<About> {
    let program = recipe.shown();
    let mut failed = |error: io::Error| {
        let why = match error.kind() {
            io::ErrorKind::TimedOut => format!("did not answer the handshake within {:?}", recipe.start_within),
            io::ErrorKind::InvalidData => format!("did not answer the handshake, but sent something else: it {error}"),
            _ => match last_word(child, LAST_WORD) {
                Some(status) => format!("ended ({status}) instead of answering the handshake"),
                None => "closed its pipe instead of answering the handshake".to_owned(),
            },
        };
        Error::from(Fault::NoAnswer { program: program.clone(), why })
    };
    // A program that knows nothing of us may have closed its standard input; what it says is looked at first.
    let greeting = wire::greet(stream);
    let theirs = wire::greeted(stream, until).map_err(&mut failed)?;
    greeting.map_err(&mut failed)?;
    if theirs != OURS {
        let Speech { protocol, abi } = theirs;
        let program = program.clone();
        let (theirs, ours, their_abi, our_abi) = (protocol, OURS.protocol, abi, OURS.abi);
        return Err(Fault::OtherVersion { program, theirs, ours, their_abi, our_abi }.into());
    }
    let open = Request { serial: 0, task: Task::Open { device: recipe.device } };
    wire::send(stream, &open, &[], Some(until)).map_err(&mut failed)?;
    let (message, _) = wire::receive::<Message>(stream, Some(until), |_| 0).map_err(&mut failed)?;
    match message {
        Message::Done { answer: Answer::Ready { device, arch: number }, .. } => {
            // From compute capability 9.0 on, code for the very architecture may use all of it.
            let suffix = (number >= 90).then_some('a');
            Ok(About { device, arch: Arch { number, suffix } })
        }
        Message::Refused { refusal, .. } => Err(refusal.into()),
        other => Err(failed(io::Error::new(io::ErrorKind::InvalidData, format!("said {other:?}")))),
    }
}

/// What a task is called in an error.
fn verb(task: &Task) -> &'static str {
    match task {
        Task::Open { .. } => "open a device",
        Task::Load { .. } => "load a module",
        Task::Find { .. } => "find a kernel",
        Task::Blank { .. } | Task::Fill { .. } => "allocate a buffer",
        Task::Write { .. } => "write a buffer",
        Task::Read { .. } => "read a buffer",
        Task::Start(_) => "launch a kernel",
        Task::Cancel { .. } => "cancel a launch",
        Task::Forget { .. } => "forget what nobody needs",
    }
}
