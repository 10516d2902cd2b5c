//! One launch in a worker process, as the parent sees it: when its end is overdue, and how it ended.

use super::process::Process;
use crate::cause::{Cause, Tier};
use crate::error::{Error, Result};
use crate::outcome::Outcome;
use crate::report::{Launched, Report};
use crate::sources::NoSources;
use crate::timer::{Key, Timed, Timer};
use cuinstr_abi::control::StopRecord;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

/// When an entry that nothing can happen to is looked at again.
const LATER: Duration = Duration::from_secs(3600);

/// What is known of a launch before it starts.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    pub(super) kernel: Arc<str>,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) timeout: Option<Duration>,
    pub(super) deadline: Option<Instant>,
    pub(super) budget: Option<u64>,
    pub(super) fuel: Option<u64>,
    /// What the worker itself may take beyond the limits: to begin it, to have it leave, to say so.
    pub(super) extra: Duration,
}

#[derive(Debug, Default)]
struct State {
    // Since when nothing is in front of it.
    first_since: Option<Instant>,
    cancelled: Option<Instant>,
    outcome: Option<Result<Outcome>>,
    is_over: bool,
    waker: Option<Waker>,
    timer: Option<Key>,
}

/// A launch in a worker process.
pub(super) struct PendingLaunch {
    pub(super) id: u64,
    pub(super) terms: Terms,
    process: Weak<Process>,
    state: Mutex<State>,
    changed: Condvar,
}

impl std::fmt::Debug for PendingLaunch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PendingLaunch").field("id", &self.id).field("kernel", &self.terms.kernel).finish_non_exhaustive()
    }
}

impl PendingLaunch {
    pub(super) fn new(id: u64, terms: Terms, process: &Arc<Process>) -> Arc<Self> {
        let process = Arc::downgrade(process);
        Arc::new(Self { id, terms, process, state: Mutex::default(), changed: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing is in front of it any more: from here on its end can be overdue.
    pub(super) fn is_first(self: &Arc<Self>) {
        let mut state = self.state();
        if state.is_over || state.first_since.is_some() {
            return;
        }
        let now = Instant::now();
        state.first_since = Some(now);
        let at = self.due(&state).unwrap_or(now + LATER);
        // Without its timer only those who wait would notice; they do.
        state.timer = Timer::of_process().ok().map(|timer| timer.add(at, Arc::clone(self) as _));
    }

    /// Whether it ends without anybody's doing.
    pub(super) fn has_end(&self) -> bool {
        self.terms.timeout.is_some() || self.terms.deadline.is_some() || self.state().cancelled.is_some()
    }

    /// When the worker should have said that it is over, at the latest.
    fn due(&self, state: &State) -> Option<Instant> {
        let since = state.first_since?;
        let told = [self.terms.timeout.and_then(|timeout| since.checked_add(timeout)), self.terms.deadline, state.cancelled];
        let told = told.into_iter().flatten().min()?;
        told.max(since).checked_add(self.terms.extra)
    }

    /// Notes that somebody asked it to stop. Returns whether there is anything to stop.
    pub(super) fn cancel(&self) -> bool {
        let mut state = self.state();
        if state.is_over || state.outcome.is_some() {
            return false;
        }
        state.cancelled.get_or_insert_with(Instant::now);
        if let (Some(at), Some(key), Ok(timer)) = (self.due(&state), state.timer, Timer::of_process()) {
            timer.hasten(key, at);
        }
        true
    }

    /// How it ended. Only the first one to say so is heard.
    pub(super) fn end(&self, outcome: Result<Outcome>) {
        let mut state = self.state();
        if state.is_over {
            return;
        }
        state.is_over = true;
        state.outcome = Some(outcome);
        if let (Some(key), Ok(timer)) = (state.timer.take(), Timer::of_process()) {
            timer.remove(key);
        }
        let waker = state.waker.take();
        self.changed.notify_all();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Gives the worker up if it should have said by now that the launch is over.
    fn look(&self, now: Instant) -> Option<Instant> {
        let state = self.state();
        if state.is_over {
            return None;
        }
        let Some(due) = self.due(&state) else { return Some(now + LATER) };
        if now < due {
            return Some(due);
        }
        let why = if state.cancelled.is_some() { Cause::Cancelled } else { Cause::Deadline };
        let latency = self.terms.extra + (now - due);
        drop(state);
        if let Some(process) = self.process.upgrade() {
            let kernel = &self.terms.kernel;
            process.give_up(self, format!("it did not say in time how kernel `{kernel}` ended, and was killed"));
        }
        let terms = &self.terms;
        let launched = Launched {
            kernel: &terms.kernel,
            grid: terms.grid,
            block: terms.block,
            timeout_ns: terms.timeout.map(super::words::nanos),
            budget_cycles: terms.budget,
            fuel: terms.fuel,
            flagged_at_deadline: why == Cause::Deadline,
        };
        let mut report = Report::new(&StopRecord::EMPTY, &launched, &[], &NoSources);
        report.stopped_for(why, launched.timeout_ns);
        self.end(Ok(Outcome::Stopped { why, tier: Tier::Worker, latency, report: Box::new(report) }));
        None
    }

    /// Waits for the outcome until then, and takes it.
    pub(super) fn wait(&self, until: Option<Instant>) -> Result<Option<Outcome>> {
        let mut state = self.state();
        loop {
            if state.is_over {
                let taken = || Error::Order("the outcome of this launch was taken before");
                return state.outcome.take().unwrap_or_else(|| Err(taken())).map(Some);
            }
            let now = Instant::now();
            if until.is_some_and(|until| now >= until) {
                return Ok(None);
            }
            let due = self.due(&state).unwrap_or(now + LATER);
            if now >= due {
                drop(state);
                self.look(now);
                state = self.state();
                continue;
            }
            let rest = until.map_or(due, |until| until.min(due)) - now;
            state = self.changed.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Has a task woken when the outcome is known.
    pub(super) fn register(&self, waker: &Waker) {
        let mut state = self.state();
        if state.is_over {
            drop(state);
            waker.wake_by_ref();
        } else {
            state.waker = Some(waker.clone());
        }
    }
}

impl Timed for PendingLaunch {
    fn ring(&self, now: Instant) -> Option<Instant> {
        self.look(now)
    }
}
