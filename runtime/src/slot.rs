//! One launch from the moment it is armed until its outcome is known.
//!
//! A slot is a little memory that the device shares, and a state. The memory holds the launch's orders, its flag and
//! its stop record. Each of the slot's users moves the state on: the thread that waits, one that cancels, the timer.
//! Slots are pooled by their [`ContextState`] and used again, so a launch allocates nothing.

mod arm;
mod beside;
mod pause;
pub(crate) mod pool;
mod verdict;
mod wait;

use crate::cause::{Cause, Tier};
use crate::context::orders::Orders;
use crate::context::state::{ContextState, FLAG_AT};
use crate::context::watchdog::Watchdog;
use crate::driver::{self, Event, Pinned};
use crate::error::Error;
use crate::fault::DriverFault;
use crate::limits::Limits;
use crate::outcome::Outcome;
use crate::report::{Launched, Report};
use crate::sources::{NoSources, Sources};
use crate::timer::{Key, Timed, Timer};
use cudarc::driver::sys;
use cuinstr_abi::control::{StopRecord, UNLIMITED};
use cuinstr_abi::sites::SiteMap;
pub(crate) use pause::Pausable;
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

/// What a launch shares with the device, in pinned memory.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Shared {
    pub(crate) orders: Orders,
    /// Written by the device when the launch begins and when its first thread stops; survives a trap.
    pub(crate) host_record: StopRecord,
    /// Where the whole record is read back to.
    pub(crate) copy: StopRecord,
    /// The flag of a launch that wants it here.
    pub(crate) flag: u32,
}

/// Where the flag of a launch lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlagMemory {
    /// In device memory, written past the running kernel by the driver, whatever the grid. It gets through even while another thread is inside
    /// a call of the driver that waits for the kernel.
    #[default]
    Device,
    /// In pinned host memory, written without the driver: gets through always, fastest for one block, but milliseconds when a thousand
    /// blocks poll across the bus.
    Pinned,
    /// In managed memory, written without the driver: hundreds of microseconds. A process that holds managed memory can't be checkpointed.
    Managed,
}

/// What is known of a kernel's launch, for its report.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) kernel: Arc<str>,
    pub(crate) sites: Arc<[SiteMap]>,
    pub(crate) sources: Arc<dyn Sources + Send + Sync>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
}

impl Subject {
    fn report(&self, record: &StopRecord, orders: &Orders, flagged_at_deadline: bool) -> Box<Report> {
        let limit = |value: u64| (value != 0 && value != UNLIMITED).then_some(value);
        let (timeout_ns, budget_cycles, fuel) = (limit(orders.timeout_ns), limit(orders.budget_cycles), limit(orders.fuel));
        let launched =
            Launched { kernel: &self.kernel, grid: self.grid, block: self.block, timeout_ns, budget_cycles, fuel, flagged_at_deadline };
        let report = || Report::new(record, &launched, &self.sites, &*self.sources);
        // Sources are the caller's code, and this is not its thread.
        Box::new(catch_unwind(AssertUnwindSafe(report)).unwrap_or_else(|_| Report::new(record, &launched, &self.sites, &NoSources)))
    }
}

struct State {
    context: Option<Arc<ContextState>>,
    // Keeps the module loaded while its kernel may run.
    keep: Option<Arc<dyn std::any::Any + Send + Sync>>,
    subject: Option<Subject>,
    limits: Option<Limits>,
    launched: Instant,
    // Whether the launch call has returned: before, the end event is an earlier launch's.
    is_submitted: bool,
    // When it had, or before that, when the launch was armed: what its beginning is waited for from.
    submitted: Instant,
    // When the host saw that every thread had left.
    ended: Option<Instant>,
    record: Copied,
    // Since when the driver does not say how the launch fares, and what it says instead.
    trouble: Option<(Instant, DriverFault)>,
    // Whether somebody else launches, who may have launched something else.
    is_guarded: bool,
    timed: bool,
    // When the host saw that the kernel had begun.
    began: Option<Instant>,
    // The moment from which the latency counts, and who said so.
    told: Option<(Instant, Cause)>,
    tier: Tier,
    watchdog: Option<Watchdog>,
    timer: Option<Key>,
    outcome: Option<Result<Outcome, Error>>,
    waker: Option<Waker>,
    flag: FlagMemory,
    flag_address: u64,
    // When its flag was raised: its grace counts from then, since a host that was late has told no thread before.
    raised: Option<Instant>,
    // What is known of a launch that can be paused.
    pausing: Option<pause::Pausing>,
    // Made when first needed.
    bitmaps: Option<pause::Bitmaps>,
}

/// How far the record of the latest launch has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copied {
    /// It holds nothing.
    Clear,
    /// It is being read and cleared.
    OnItsWay,
    /// It could not be cleared: the room is not used again.
    Spoiled,
}

/// What a launch is armed with.
pub(crate) struct Plan {
    pub(crate) context: Arc<ContextState>,
    pub(crate) keep: Arc<dyn std::any::Any + Send + Sync>,
    pub(crate) subject: Subject,
    pub(crate) limits: Limits,
    pub(crate) flag: FlagMemory,
    pub(crate) timed: bool,
    pub(crate) watchdog: Option<Watchdog>,
    /// Whether somebody else launches.
    pub(crate) is_guarded: bool,
    /// Whether its blocks can decline.
    pub(crate) pausable: Option<Pausable>,
    /// Those that run, if not all do: a bit for each.
    pub(crate) blocks: Option<Arc<[u32]>>,
}

/// One launch, or the room for one.
pub(crate) struct LaunchSlot {
    shared: Pinned<Shared>,
    record: u64,
    flag: u64,
    managed: OnceLock<Pinned<u32>>,
    begin: Event,
    pub(crate) end: Event,
    timed_end: Event,
    // Behind the copies of the record.
    fetched: Event,
    // Behind the copy of the blocks that declined.
    listed: Event,
    // Behind the blocks that declined, where they run beside others.
    beside_end: Event,
    // What the flags hold since they were last raised, in the order of [`FlagMemory`].
    raised: [AtomicU32; 3],
    number: AtomicU32,
    state: Mutex<State>,
    changed: Condvar,
}

impl std::fmt::Debug for LaunchSlot {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LaunchSlot").field("number", &self.number()).finish_non_exhaustive()
    }
}

/// What to do next about a slot.
pub(crate) enum Step {
    /// Its outcome is known.
    Done,
    /// Look again then.
    Pending(Instant),
}

impl LaunchSlot {
    /// Room for launches; `device` has [`SLOT_BYTES`](crate::context::state::SLOT_BYTES) of zeroes.
    pub(crate) fn new(shared: Pinned<Shared>, device: u64) -> Result<Self, DriverFault> {
        Ok(Self {
            shared,
            record: device,
            flag: device + FLAG_AT as u64,
            managed: OnceLock::new(),
            begin: Event::new(true)?,
            end: Event::new(false)?,
            timed_end: Event::new(true)?,
            fetched: Event::new(false)?,
            listed: Event::new(false)?,
            beside_end: Event::new(false)?,
            raised: [const { AtomicU32::new(0) }; 3],
            number: AtomicU32::new(0),
            state: Mutex::new(State::new()),
            changed: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Address of the word that asks it to pause.
    fn asked(&self) -> u64 {
        self.flag + 4
    }

    /// Address of the words that what comes behind its launches waits for.
    fn gates(&self) -> u64 {
        self.flag + 16
    }

    /// Address of its device memory.
    pub(crate) fn memory(&self) -> u64 {
        self.record
    }

    /// Number of the launch; 0 if there is none.
    pub(crate) fn number(&self) -> u32 {
        self.number.load(Ordering::Acquire)
    }

    /// Whether this launch may still use its control block. Changes nothing, so any lock may be held. The context is this thread's current one.
    pub(crate) fn is_in_flight(&self, number: u32) -> bool {
        let state = self.state();
        self.number() == number
            && state.outcome.is_none()
            && state.ended.is_none()
            && !state.is_at_rest()
            && state.context.is_some()
            && (!state.is_submitted || matches!(self.is_drained(&state), Ok(false)))
    }

    /// Whether all that was launched of it is over.
    fn is_drained(&self, state: &State) -> Result<bool, DriverFault> {
        let beside = state.pausing.as_ref().filter(|pausing| pausing.is_beside());
        Ok(match beside {
            None => self.end.is_reached()?,
            Some(pausing) => pausing.is_beside_submitted && self.end.is_reached()? && self.beside_end.is_reached()?,
        })
    }

    /// Makes a stream wait until all that was launched of it is over.
    pub(crate) fn make_wait(&self, stream: sys::CUstream) -> Result<(), DriverFault> {
        self.end.hold(stream)?;
        let has_beside = self.state().pausing.as_ref().is_some_and(pause::Pausing::is_beside);
        if has_beside { self.beside_end.hold(stream) } else { Ok(()) }
    }

    /// Whether its end is marked in its stream, so that another stream can be made to wait for it.
    pub(crate) fn is_marked(&self) -> bool {
        self.state().is_submitted
    }

    /// Whether one of its flags still holds this number from a launch of long ago, which had the same.
    pub(crate) fn is_stale(&self, number: u32) -> bool {
        self.raised.iter().any(|raised| raised.load(Ordering::Relaxed) == number)
    }

    /// The launch call has failed: nothing is in flight.
    pub(crate) fn abandon(&self) {
        let mut state = self.state();
        self.open_gate(&mut state);
        Self::forget(&mut state);
        self.number.store(0, Ordering::Release);
    }

    /// Tells the launch to stop, if it is still this one.
    pub(crate) fn cancel(&self, number: u32) -> Result<(), Error> {
        let mut state = self.state();
        if self.number() != number || state.outcome.is_some() {
            return Ok(());
        }
        if state.told.is_some() {
            return Ok(());
        }
        let now = Instant::now();
        state.told = Some((now, Cause::Cancelled));
        let flipped = self.flip(&state);
        // If it could not be raised, the timer tries again.
        state.raised = flipped.is_ok().then(Instant::now);
        if let Some(key) = state.timer {
            let next = Self::next_look(&state, now);
            Timer::of_process().map_err(Error::Environment)?.hasten(key, next);
        }
        self.changed.notify_all();
        Ok(flipped?)
    }

    /// Its flag in managed memory, made when first asked for.
    fn managed(&self) -> Result<&Pinned<u32>, DriverFault> {
        if let Some(flag) = self.managed.get() {
            return Ok(flag);
        }
        let flag = Pinned::managed(0)?;
        Ok(self.managed.get_or_init(|| flag))
    }

    /// Raises the flag.
    fn flip(&self, state: &State) -> Result<(), DriverFault> {
        let number = self.number();
        self.raised[state.flag as usize].store(number, Ordering::Relaxed);
        match (state.flag, &state.context) {
            (FlagMemory::Device, Some(context)) => {
                context.bind()?;
                driver::write_word(context.flag_stream(), state.flag_address, number)
            }
            (FlagMemory::Managed, _) => {
                self.managed()?.write(number);
                Ok(())
            }
            _ => {
                self.shared.set(offset_of!(Shared, flag), number);
                Ok(())
            }
        }
    }

    /// Looks at the device and moves the state on. The context is this thread's current one.
    pub(crate) fn advance(&self, now: Instant) -> Step {
        let mut state = self.state();
        if state.outcome.is_some() || state.context.is_none() {
            return Step::Done;
        }
        if state.is_at_rest() {
            return self.rest(&mut state, now);
        }
        let ended = if state.is_submitted { self.is_drained(&state) } else { Ok(false) };
        let outcome = match ended {
            Ok(true) => self.ended(&mut state, now),
            Err(fault) => self.failed(&mut state, now, fault),
            Ok(false) => {
                state.trouble = None;
                self.watch(&mut state, now)
            }
        };
        let Some(outcome) = outcome else { return Step::Pending(Self::next_look(&state, now)) };
        self.conclude(&mut state, outcome);
        Step::Done
    }

    /// The launch is paused: it may be told to stop, or its instant may come.
    fn rest(&self, state: &mut State, now: Instant) -> Step {
        if let Some(due) = state.limits.and_then(|limits| limits.deadline).filter(|due| *due <= now) {
            state.told.get_or_insert((due, Cause::Deadline));
        }
        if state.told.is_none() {
            return Step::Pending(Self::next_look(state, now));
        }
        let outcome = self.judge(state, now, None);
        self.conclude(state, outcome);
        Step::Done
    }

    fn conclude(&self, state: &mut State, outcome: Result<Outcome, Error>) {
        self.open_gate(state);
        Self::forget(state);
        state.outcome = Some(outcome);
        self.changed.notify_all();
    }

    /// What was launched of it is over, and who waits for it gets this error.
    pub(crate) fn fail(&self, number: u32, error: Error) {
        let mut state = self.state();
        if self.number() == number && state.outcome.is_none() {
            self.conclude(&mut state, Err(error));
        }
    }

    /// Gives back what belongs to a launch that is over.
    fn forget(state: &mut State) {
        if let Some(watchdog) = state.watchdog.take() {
            watchdog.release();
        }
        if let (Some(key), Ok(timer)) = (state.timer.take(), Timer::of_process()) {
            timer.remove(key);
        }
        if let Some(context) = state.context.take() {
            context.landed(state.is_unbounded());
        }
        state.pausing = None;
        state.subject = None;
        state.keep = None;
    }

    fn orders(&self) -> Orders {
        self.shared.get(offset_of!(Shared, orders))
    }

    fn start_ns(&self) -> u64 {
        self.host_record().get(offset_of!(StopRecord, start_ns))
    }

    /// What the first thread to stop writes to pinned memory.
    fn host_record(&self) -> Pinned<StopRecord> {
        self.shared.part(offset_of!(Shared, host_record))
    }

    /// Whether it has no user left: no launch is in flight, no handle is left, and its record is clear.
    pub(crate) fn is_free(self: &Arc<Self>) -> bool {
        if Arc::strong_count(self) > 1 {
            return false;
        }
        let mut state = self.state();
        if state.record == Copied::OnItsWay && state.context.is_none() && self.fetched.is_reached().unwrap_or(false) {
            state.record = Copied::Clear;
        }
        state.context.is_none() && state.record == Copied::Clear
    }
}

impl State {
    /// No launch.
    fn new() -> Self {
        Self {
            context: None,
            keep: None,
            subject: None,
            limits: None,
            launched: Instant::now(),
            is_submitted: false,
            submitted: Instant::now(),
            ended: None,
            record: Copied::Clear,
            trouble: None,
            is_guarded: false,
            timed: false,
            began: None,
            told: None,
            tier: Tier::Leave,
            watchdog: None,
            timer: None,
            outcome: None,
            waker: None,
            flag: FlagMemory::Device,
            flag_address: 0,
            raised: None,
            pausing: None,
            bitmaps: None,
        }
    }

    /// Whether nothing but the host ends the launch.
    fn is_unbounded(&self) -> bool {
        self.pausing.is_some() || self.limits.is_some_and(|limits| limits.is_unbounded())
    }
}

impl Timed for LaunchSlot {
    fn ring(&self, now: Instant) -> Option<Instant> {
        let context = self.state().context.clone()?;
        let next = match context.bind().and_then(|()| driver::relax_capture()) {
            Ok(()) => match self.advance(now) {
                Step::Done => None,
                Step::Pending(next) => Some(next),
            },
            Err(fault) if fault.is_of_gone_context() => {
                let mut state = self.state();
                if state.context.is_some() && state.outcome.is_none() {
                    self.conclude(&mut state, Err(fault.into()));
                }
                None
            }
            // The context is lost; the waiting thread finds out why.
            Err(_) => Some(now + Duration::from_millis(20)),
        };
        if next.is_none() || self.is_answered(now) {
            // Without a lock: a waker may do anything, such as to poll at once. Who moves the launch on by waiting for it needs no waker.
            let waker = self.state().waker.take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        next
    }
}
