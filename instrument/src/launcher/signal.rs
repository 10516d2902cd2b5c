//! Signals that end a call: they go on to nvcc, and this process lives until nvcc is gone and the session removed.

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;
use std::io;
use std::process::Child;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a Ctrl-C is left to nvcc, which gets it from the terminal as well. While it removes its files after that, a second one would end it half way.
const OWN_TIME: Duration = Duration::from_millis(500);

/// Watches from [`Watch::begin`] on.
pub(super) struct Watch {
    state: Arc<State>,
    handle: Handle,
}

#[derive(Default)]
struct State {
    /// The last signal that came, or 0.
    came: AtomicI32,
    /// Whom to tell.
    child: Mutex<Option<Pid>>,
}

impl Watch {
    /// From now on no signal ends this process before [`Watch::end`].
    ///
    /// # Errors
    /// If the system doesn't let a process watch its signals.
    pub(super) fn begin() -> io::Result<Self> {
        // What was ignored when this process began (`nohup`, a shell's jobs in the background) is none of nvcc's business, either.
        let ignored = ignored();
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0))?;
        let state = Arc::new(State::default());
        let handle = signals.handle();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for signal in signals.forever() {
                shared.came.store(signal, Ordering::SeqCst);
                if signal == SIGINT {
                    let later = Arc::clone(&shared);
                    std::thread::spawn(move || {
                        std::thread::sleep(OWN_TIME);
                        later.send(signal);
                    });
                } else {
                    shared.send(signal);
                }
            }
        });
        Ok(Self { state, handle })
    }

    /// The child gets what comes, and what came before it was there.
    pub(super) fn forward_to(&self, child: &Child) {
        let mut place = self.state.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *place = Some(Pid::from_child(child));
        send(self.state.came.load(Ordering::SeqCst), *place);
    }

    /// The child is gone: its number may soon be another's.
    pub(super) fn forget_child(&self) {
        *self.state.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
    }

    /// Dies of the signal that came, if one did.
    pub(super) fn end(self) {
        self.handle.close();
        let came = self.state.came.load(Ordering::SeqCst);
        if came != 0 {
            // It does not come back, unless the signal is blocked; then nvcc's exit code stands.
            let _ = emulate_default_handler(came);
        }
    }
}

impl State {
    fn send(&self, signal: i32) {
        send(signal, *self.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
}

/// The signals that this process ignores, a bit each from the lowest on; none where the system does not say.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Sends it on. That the child is gone already is what was wanted.
fn send(signal: i32, child: Option<Pid>) {
    let signal = match signal {
        SIGHUP => Signal::HUP,
        SIGINT => Signal::INT,
        SIGTERM => Signal::TERM,
        _ => return,
    };
    if let Some(child) = child {
        let _ = kill_process(child, signal);
    }
}
