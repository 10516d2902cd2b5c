//! Signals: kernels stop first, then the program gets the signal, and this process lives until the program is gone.

use super::keep::Order;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::{Handle, SignalsInfo, exfiltrator::origin::WithOrigin};
use signal_hook::low_level::siginfo::Cause;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

/// Those that go on to the program.
const FORWARDED: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Watches from [`Watch::begin`] on.
pub(super) struct Watch {
    child: Arc<Mutex<Option<Pid>>>,
    handle: Handle,
}

impl Watch {
    /// From now on none of these ends this process. `own` is one that is not for the program.
    ///
    /// # Errors
    /// If the system doesn't let a process watch its signals.
    pub(super) fn begin(session: &Path, own: Option<(i32, Sender<Order>)>) -> std::io::Result<Self> {
        let mut signals = SignalsInfo::<WithOrigin>::new(FORWARDED)?;
        let (child, handle) = (Arc::new(Mutex::new(None)), signals.handle());
        let (shared, session): (Arc<Mutex<Option<Pid>>>, PathBuf) = (Arc::clone(&child), session.to_owned());
        std::thread::spawn(move || {
            for origin in signals.forever() {
                if let Some((signal, keeper)) = &own
                    && *signal == origin.signal
                {
                    let _ = keeper.send(Order::Leave);
                    continue;
                }
                if [SIGHUP, SIGINT, SIGTERM].contains(&origin.signal) {
                    crate::command::watched::stop_session(&session);
                }
                // The terminal has told the program as well.
                if origin.cause != Cause::Kernel
                    && let Some(child) = *shared.lock().unwrap_or_else(PoisonError::into_inner)
                {
                    forward(child, origin.signal);
                }
            }
        });
        Ok(Self { child, handle })
    }

    /// The program gets what comes.
    pub(super) fn forward_to(&self, process: u32) {
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Pid::from_raw(process.cast_signed());
    }

    /// The program is gone: its number may soon be another's.
    pub(super) fn end(self) {
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.handle.close();
    }
}

/// Sends it on. That the child is gone already is what was wanted.
fn forward(child: Pid, signal: i32) {
    let known = [
        (SIGHUP, Signal::HUP),
        (SIGINT, Signal::INT),
        (SIGQUIT, Signal::QUIT),
        (SIGTERM, Signal::TERM),
        (SIGUSR1, Signal::USR1),
        (SIGUSR2, Signal::USR2),
    ];
    if let Some((_, signal)) = known.into_iter().find(|(number, _)| *number == signal) {
        let _ = kill_process(child, signal);
    }
}
