//! Guards a launch that somebody else makes: a host with a context, modules and launches of its own.
//!
//! Such a host loads a rewritten module and launches its kernels as it always did. A guard adds what the host lacks:
//! limits, a wait with a bound, and a report. The way of a guard: [`Attached`] → [`Attached::arm`] → the host launches
//! → [`Guard::launched`] → [`Guard::wait_for`] → [`Outcome`].
//!
//! ```no_run
//! use cuinstr_runtime::guard::{About, Attached, Handle, Limits};
//! use cuinstr_runtime::Outcome;
//! use std::time::Duration;
//!
//! # fn launch_as_ever() {}
//! # let (module, stream) = (1, 0);
//! // SAFETY: this is a module of the current context, and it stays loaded.
//! let attached = unsafe { Attached::new(Handle::Module(module), &About::default()) }?;
//! // SAFETY: so is the stream.
//! let guard = unsafe { attached.arm(stream, &Limits::timeout(Duration::from_secs(2))) }?;
//! launch_as_ever();
//! guard.launched()?;
//! if let Some(Outcome::Stopped { report, .. }) = guard.wait_for(Duration::from_secs(3))? {
//!     println!("{report}");
//! }
//! # Ok::<(), cuinstr_runtime::Error>(())
//! ```
//!
//! Between `arm` and `launched` the stream may be given several launches of the module. They share the limits and the
//! outcome, as one launch would. Each call answers within a bound. A call does not change the calling thread's current
//! context.

mod attach;
mod left;
mod origin;

pub use crate::driver::handle::Handle;
pub use attach::{ATTACH_WITHIN, About, Attached};
pub use left::Left;
pub use origin::{Origin, recent, remember};

use crate::driver::{self, handle};
use crate::error::{Error, Result};
use crate::launch::{Canceller, Pauser, Running};
pub use crate::limits::Limits;
use crate::limits::{Clock, LONGEST_TIMEOUT};
use crate::module::Latest;
use crate::outcome::Outcome;
use crate::slot::{FlagMemory, Pausable, Plan};
use attach::Control;
use cuinstr_abi::control::MOST_BLOCKS;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

/// For how long one thread that waits keeps others from asking.
const TURN: Duration = Duration::from_millis(2);

impl Attached {
    /// Arms the module for what the caller launches next on the stream: its handle, or 0 and 1 for the legacy and 2 for the calling thread's
    /// default stream.
    ///
    /// The launch is the caller's own business, with all its means. Right after it comes [`Guard::launched`]. If the module is in flight on
    /// another stream, this one is made to wait for it.
    ///
    /// # Safety
    /// The stream must be alive until the outcome is known, and the module loaded.
    ///
    /// # Errors
    /// - A limit makes no sense.
    /// - The thread's context is not the module's, or the stream is not one of it ([`Error::OtherContext`]).
    /// - The stream is being captured.
    /// - The module is armed already.
    /// - The driver fails.
    pub unsafe fn arm(&self, stream: usize, limits: &Limits) -> Result<Guard> {
        self.arm_as(stream, limits, None, None)
    }

    /// The same for one launch of a grid of so many blocks in x, y and z, so that it can be paused ([`Guard::pause`]). The module was rewritten with
    /// `--pausable`, and attached by a handle. What the stream holds behind the launch waits for all parts of it.
    ///
    /// # Safety
    /// As for [`Attached::arm`].
    ///
    /// # Errors
    /// As [`Attached::arm`], and [`Error::NotPausable`].
    pub unsafe fn arm_pausable(&self, stream: usize, limits: &Limits, grid: [u32; 3]) -> Result<Guard> {
        self.arm_blocks(stream, limits, grid, None)
    }

    /// Arms these blocks of a grid, or all.
    fn arm_blocks(&self, stream: usize, limits: &Limits, grid: [u32; 3], left: Option<&Arc<[u32]>>) -> Result<Guard> {
        let refused = |why| Err(Error::NotPausable { kernel: self.kernel().to_owned(), why });
        let blocks = grid.iter().map(|extent| u64::from(*extent)).product();
        match self.control.pause.get() {
            None => refused("its module was not rewritten with `cuinstr --pausable`, or was attached by an address"),
            Some(_) if blocks == 0 || blocks > MOST_BLOCKS => refused("its grid has no blocks, or more than 2^28"),
            Some(_) if self.control.launch_context.is_blocking() => {
                refused("CUDA_LAUNCH_BLOCKING=1 keeps the launch call until the kernel is over; unset it")
            }
            Some(block) => {
                let mut guard = self.arm_as(stream, limits, Some(Pausable { block: *block, blocks }), left)?;
                guard.grid = Some(grid);
                Ok(guard)
            }
        }
    }

    fn arm_as(&self, stream: usize, limits: &Limits, pausable: Option<Pausable>, left: Option<&Arc<[u32]>>) -> Result<Guard> {
        let control = &self.control;
        let launch_context = &control.launch_context;
        launch_context.check()?;
        limits.check(launch_context.is_blocking())?;
        let context = handle::ContextHandle::current()?.ok_or(Error::NoContext)?;
        if context != control.context {
            return Err(Error::OtherContext { what: "the module", of: "the calling thread's current one" });
        }
        let raw = handle::stream(stream);
        if driver::is_capturing(raw)? {
            return Err(Error::Capturing);
        }
        if !context.has(raw)? {
            return Err(Error::OtherContext { what: "the stream", of: "the module" });
        }
        let stream_id = handle::stream_id(raw)?;
        let mut control_lock = control.lock();
        if control_lock.is_armed {
            return Err(Error::AlreadyArmed);
        }
        if let Some(before) = control_lock.before(stream_id) {
            before.make_wait(raw)?;
        }
        let (slot, number) = launch_context.take(None)?;
        let mut subject = self.subject.clone();
        if let Some((grid, block)) = limits.extents {
            (subject.grid, subject.block) = (grid, block);
        }
        let plan = Plan {
            context: Arc::clone(launch_context.state()),
            keep: Arc::clone(control) as _,
            subject,
            limits: *limits,
            flag: FlagMemory::Device,
            timed: false,
            watchdog: None,
            is_guarded: true,
            pausable,
            blocks: left.cloned(),
        };
        let running = Running::new(Arc::clone(launch_context), Arc::clone(&slot), number, limits.grace);
        let armed = slot.arm(number, plan).and_then(|()| {
            slot.send_guarded_orders(raw, control.address)?;
            Ok(slot.send_pause(raw)?)
        });
        let armed = armed.and_then(|()| if limits.clock == Clock::Host { Ok(slot.mark_begin(raw)?) } else { Ok(()) });
        if let Err(error) = armed {
            slot.abandon();
            running.forget();
            return Err(error);
        }
        control_lock.is_armed = true;
        control_lock.last = Some(Latest { slot: Arc::downgrade(&slot), number, stream: stream_id });
        let (canceller, pauser) = (running.canceller(), running.pauser());
        drop(control_lock);
        let stage = Mutex::new(Stage::Armed(running));
        let part = Mutex::new((stream, stream_id));
        Ok(Guard {
            control: Arc::clone(control),
            home: stream_id,
            part,
            limits: *limits,
            canceller,
            pauser,
            kernel: Arc::clone(&self.subject.kernel),
            grid: None,
            stage,
        })
    }
}

/// What is wrong with a resume of a launch that is not paused.
const RESUMES_PAUSED: &str = "only a launch that is paused can be resumed";

enum Stage {
    Armed(Running),
    Flying(Running),
    Over(Result<Outcome>),
}

/// A launch that somebody else makes, from its arming until its outcome is known. Safe to use from several threads.
///
/// Dropping it cancels what was launched and waits at most its grace time, whether or not [`Guard::launched`] was called.
#[must_use = "dropping it cancels the launch; call `launched`, then `wait_for`"]
pub struct Guard {
    control: Arc<Control>,
    home: u64,
    // The stream of the latest part, and what tells it from others.
    part: Mutex<(usize, u64)>,
    limits: Limits,
    canceller: Canceller,
    pauser: Pauser,
    kernel: Arc<str>,
    // Of a launch that can be paused.
    grid: Option<[u32; 3]>,
    stage: Mutex<Stage>,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Guard").field("stream", &self.part().0).field("launch", &self.canceller).finish_non_exhaustive()
    }
}

impl Guard {
    /// The caller has launched what it was armed for. Returns at once.
    ///
    /// # Errors
    /// If it was called before, the stream has become one that is being captured, or the driver fails: the launch is then not guarded.
    pub fn launched(&self) -> Result<()> {
        let _visit = self.control.context.visit()?;
        let mut stage = self.stage();
        let Stage::Armed(_) = &*stage else {
            return Err(Error::Order("`launched` was called before, or the guard was given up: arm the module again for another launch"));
        };
        match self.mark() {
            Ok(()) => {
                let before = std::mem::replace(&mut *stage, Stage::Over(Err(Error::NotLaunched)));
                if let Stage::Armed(running) = before {
                    *stage = Stage::Flying(running);
                }
                self.control.lock().is_armed = false;
                Ok(())
            }
            // The right thread may still say so.
            Err(error @ Error::Order(_)) => Err(error),
            Err(error) => {
                self.give_up(&mut stage, error.clone(), Instant::now() + self.grace());
                Err(error)
            }
        }
    }

    /// The end of what was launched, if anything was, can't be seen. It is told to stop, and once it must have, past the stream, the control
    /// block is put back. Memory that a kernel may still write to is not used again.
    fn give_up(&self, stage: &mut Stage, error: Error, until: Instant) {
        let _ = self.canceller.cancel();
        thread::sleep(until.saturating_duration_since(Instant::now()));
        let _ = self.control.launch_context.write_orders(self.control.address, &self.control.unarmed);
        if let Stage::Armed(running) = std::mem::replace(stage, Stage::Over(Err(error))) {
            running.strand();
        }
        self.control.lock().is_armed = false;
    }

    /// Marks the end of the launch in the stream that it was armed for.
    fn mark(&self) -> Result<()> {
        let (stream, stream_id) = self.part();
        let raw = handle::stream(stream);
        if driver::is_capturing(raw)? {
            return Err(Error::Capturing);
        }
        if handle::stream_id(raw).is_ok_and(|id| id != stream_id) {
            return Err(Error::Order(
                "this thread's default stream is not the one that was armed: call `launched` in the thread that armed",
            ));
        }
        let slot = self.canceller.slot();
        if let Some(pause) = self.control.pause.get().filter(|_| self.grid.is_some()) {
            driver::write_word(raw, *pause, 0)?;
        }
        slot.submit_guarded(raw, self.control.address, &self.control.unarmed)?;
        // A later part's stream is the caller's to use for the next one.
        if stream_id == self.home { Ok(slot.hold(raw)?) } else { Ok(()) }
    }

    fn part(&self) -> (usize, u64) {
        *self.part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pauses a launch that was armed by [`Attached::arm_pausable`], as [`Running::pause`](crate::Running::pause) does.
    ///
    /// # Errors
    /// [`Error::NotPaused`] if blocks still run after `within`; the request stands, and [`Guard::wait_for`] tells when it is met. [`Error::NotPausable`] if it was armed
    /// otherwise. As [`Guard::wait_for`] otherwise.
    pub fn pause(&self, within: Duration) -> Result<Outcome> {
        let since = Instant::now();
        {
            let _visit = self.control.context.visit()?;
            self.pauser.pause()?;
        }
        self.wait_for(within)?.ok_or_else(|| Error::NotPaused { kernel: self.kernel.to_string(), after: since.elapsed() })
    }

    /// Arms the next part of a paused launch in another stream than its first. The caller then launches the same kernel there, with the same grid and
    /// arguments, and calls [`Guard::launched`]. What is queued behind this part in its own stream does not wait for later parts.
    ///
    /// # Safety
    /// As for [`Attached::arm`].
    ///
    /// # Errors
    /// If one of these holds, nothing changes:
    /// - The launch is not paused.
    /// - The stream is the first part's, of another context, or being captured.
    /// - Another launch of the module is armed or in flight.
    /// - The driver fails.
    pub unsafe fn resume(&self, stream: usize) -> Result<()> {
        let control = &self.control;
        let _visit = control.context.visit()?;
        let mut stage = self.stage();
        let Stage::Flying(running) = &*stage else { return Err(Error::Order(RESUMES_PAUSED)) };
        if !running.is_paused() {
            return Err(Error::Order(RESUMES_PAUSED));
        }
        let raw = handle::stream(stream);
        if driver::is_capturing(raw)? {
            return Err(Error::Capturing);
        }
        if !control.context.has(raw)? {
            return Err(Error::OtherContext { what: "the stream", of: "the module" });
        }
        let stream_id = handle::stream_id(raw)?;
        if stream_id == self.home {
            return Err(Error::Order("resume in another stream than the launch's own, which waits for all of its parts"));
        }
        let mut control_lock = control.lock();
        if control_lock.is_armed || control_lock.before(u64::MAX).is_some() {
            return Err(Error::AlreadyArmed);
        }
        let (slot, number) = running.slot();
        slot.rearm(number)?;
        let sent = slot.send_guarded_orders(raw, control.address).and_then(|()| slot.send_pause(raw));
        if let Err(fault) = sent {
            slot.disarm();
            return Err(fault.into());
        }
        control_lock.is_armed = true;
        control_lock.last = Some(Latest { slot: Arc::downgrade(slot), number, stream: stream_id });
        drop(control_lock);
        *self.part.lock().unwrap_or_else(PoisonError::into_inner) = (stream, stream_id);
        if let Stage::Flying(running) = std::mem::replace(&mut *stage, Stage::Over(Err(Error::NotLaunched))) {
            *stage = Stage::Armed(running);
        }
        Ok(())
    }

    /// Tells the launch to stop, and returns at once. From any thread, as often as you like, also before it has begun; it never hits a
    /// later launch.
    ///
    /// # Errors
    /// If the driver can't write the flag.
    pub fn cancel(&self) -> Result<()> {
        let _visit = self.control.context.visit();
        self.canceller.cancel()
    }

    /// Waits for the outcome, but not longer than `limit`; `None` if it is not known by then. Once it is known, every call gives it.
    ///
    /// # Errors
    /// [`Error::NotLaunched`] if no kernel of the module ran; [`Error::Order`] before [`Guard::launched`]; [`Error::Undrained`] if it does not
    /// leave and [`Error::NotBegun`] if it does not begin, after which it can be waited for again; [`Error::Poisoned`] if another launch
    /// ended the context.
    pub fn wait_for(&self, limit: Duration) -> Result<Option<Outcome>> {
        let until = Instant::now() + limit.min(LONGEST_TIMEOUT);
        let mut visit = None;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            // A lock that a panic has poisoned is as good as any: each stage is written as a whole.
            let stage = match self.stage.try_lock() {
                Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
                other => other,
            };
            match stage {
                Ok(mut stage) => {
                    if let Stage::Flying(_) = &*stage {
                        // On a lost context this fails; what is known of the launch says more.
                        visit = visit.or_else(|| self.control.context.visit().ok());
                    }
                    if let Some(outcome) = stage.look(left.min(TURN)) {
                        return outcome.map(Some);
                    }
                }
                // Another thread has its turn.
                Err(_) if !left.is_zero() => thread::sleep(Duration::from_micros(100)),
                Err(_) => {}
            }
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// The outcome, if it is known by now.
    ///
    /// # Errors
    /// As [`Guard::wait_for`].
    pub fn poll(&self) -> Result<Option<Outcome>> {
        self.wait_for(Duration::ZERO)
    }

    fn grace(&self) -> Duration {
        self.limits.grace.min(LONGEST_TIMEOUT)
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stage {
    /// The outcome, if it is known within the time.
    fn look(&mut self, limit: Duration) -> Option<Result<Outcome>> {
        let outcome = match self {
            Self::Armed(_) => {
                return Some(Err(Error::Order("nothing to wait for yet: launch, then call `launched`")));
            }
            Self::Flying(running) => match running.wait_for(limit) {
                Ok(None) => return None,
                Ok(Some(paused @ Outcome::Paused { .. })) => return Some(Ok(paused)),
                Ok(Some(outcome)) => Ok(outcome),
                // It is still in flight, and may be waited for again.
                Err(error @ (Error::Undrained { .. } | Error::NotBegun { .. })) => return Some(Err(error)),
                Err(error) => Err(error),
            },
            Self::Over(outcome) => return Some(outcome.clone()),
        };
        *self = Self::Over(outcome.clone());
        Some(outcome)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let until = Instant::now() + self.grace();
        // First of all: in a stream that is full the mark waits for what was launched.
        let _ = self.cancel();
        let is_armed = matches!(*self.stage(), Stage::Armed(_));
        if is_armed {
            // Whether the caller has launched is not known. If not, the mark is reached at once.
            let _ = self.launched();
        }
        let _visit = self.control.context.visit();
        let mut stage = self.stage();
        let error = Error::Order("the guard was given up");
        match &mut *stage {
            Stage::Armed(_) => self.give_up(&mut stage, error, until),
            Stage::Flying(running) => {
                running.drop_within(until.saturating_duration_since(Instant::now()));
                *stage = Stage::Over(Err(error));
            }
            Stage::Over(_) => {}
        }
    }
}
