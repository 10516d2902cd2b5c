//! A launch is armed, its orders are sent, and its end is marked in its stream.

use super::{FlagMemory, LaunchSlot, Plan, Shared};
use crate::cause::{Cause, Tier};
use crate::context::orders::Orders;
use crate::driver;
use crate::error::Error;
use crate::fault::DriverFault;
use crate::limits::{Clock, Limits};
use crate::timer::{Timed, Timer};
use cudarc::driver::sys;
use cuinstr_abi::control::{ABI_VERSION, Action, StopRecord, UNLIMITED};
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Words of a control block that are cheaper to write one by one than to copy all.
const FEW_WORDS: usize = 4;

/// Fuel that no kernel uses up, one below what stands for none.
const MOST_FUEL: u64 = (1 << 40) - 2;

impl LaunchSlot {
    /// Takes the room for a launch. From here on the timer looks after it, since the launch call itself may block.
    pub(crate) fn arm(self: &Arc<Self>, number: u32, plan: Plan) -> Result<(), Error> {
        let now = Instant::now();
        let limits = plan.limits.held();
        let device_timeout = match (limits.timeout, limits.clock) {
            (Some(timeout), Clock::Device) => timeout.as_nanos() as u64,
            _ => UNLIMITED,
        };
        let flag = match plan.flag {
            FlagMemory::Device => self.flag,
            FlagMemory::Pinned => self.shared.device() + offset_of!(Shared, flag) as u64,
            FlagMemory::Managed => self.managed()?.device(),
        };
        // Counting needs a limit to count down from; this one takes days.
        let fuel = limits.fuel.or(limits.count_fuel.then_some(MOST_FUEL)).unwrap_or(0);
        let orders = Orders {
            abi_version: ABI_VERSION,
            action: Action::Leave as u32,
            launch: number,
            count_fuel: u32::from(limits.count_fuel),
            flag,
            timeout_ns: device_timeout,
            start_ns: 0,
            budget_cycles: limits.budget_cycles.unwrap_or(0),
            fuel,
            host_record: self.host_record().device(),
            record: self.record,
        };
        self.shared.set(offset_of!(Shared, orders), orders);
        let host = self.host_record();
        host.set(offset_of!(StopRecord, start_ns), 0_u64);
        host.set(offset_of!(StopRecord, published), 0_u32);
        host.set(offset_of!(StopRecord, late), 0_u32);
        let mut state = self.state();
        self.make_pausable(&mut state, plan.pausable, plan.blocks.as_deref(), limits.timeout, &plan.context)?;
        // A launch that is paused may be so for ever.
        plan.context.began(limits.is_unbounded() || plan.pausable.is_some());
        state.flag = plan.flag;
        state.flag_address = flag;
        state.context = Some(plan.context);
        state.keep = Some(plan.keep);
        state.subject = Some(plan.subject);
        state.limits = Some(limits);
        state.launched = now;
        state.is_submitted = false;
        state.submitted = now;
        state.ended = None;
        state.trouble = None;
        state.is_guarded = plan.is_guarded;
        state.timed = plan.timed;
        state.began = None;
        state.told = None;
        state.raised = None;
        state.tier = Tier::Leave;
        state.watchdog = plan.watchdog;
        state.outcome = None;
        state.waker = None;
        self.number.store(number, Ordering::Release);
        let first = Self::next_look(&state, now);
        let timed: Arc<dyn Timed> = Arc::clone(self) as _;
        state.timer = Some(Timer::of_process().map_err(Error::Environment)?.add(first, timed));
        Ok(())
    }

    /// Writes the orders to the control block, in the stream's order: those words that `known`, what it holds by then, has otherwise.
    pub(crate) fn send_orders(&self, stream: sys::CUstream, control: u64, known: Option<Orders>) -> Result<Orders, DriverFault> {
        let orders = self.orders();
        let mut changed = [(0, 0); FEW_WORDS];
        let mut count = 0;
        for (index, (word, before)) in orders.words().into_iter().zip(known.map_or([0; Orders::WORDS], |known| known.words())).enumerate() {
            // The device has written the start.
            if word != before || index == offset_of!(Orders, start_ns) / 8 {
                if let Some(place) = changed.get_mut(count) {
                    *place = (index, word);
                }
                count += 1;
            }
        }
        match changed.get(..count).filter(|_| known.is_some()) {
            Some(words) => driver::write_words(stream, control, words)?,
            None => driver::send(stream, control, &orders)?,
        }
        Ok(orders)
    }

    /// Marks the launch's beginning in its stream, if anybody asks for that.
    pub(crate) fn mark_begin(&self, stream: sys::CUstream) -> Result<(), DriverFault> {
        let state = self.state();
        let is_marked = state.timed || state.limits.is_some_and(|limits| limits.clock == Clock::Host);
        drop(state);
        if is_marked { self.begin.record(stream) } else { Ok(()) }
    }

    /// The launch call has returned: marks the launch's end in its stream.
    pub(crate) fn submit(&self, stream: sys::CUstream) -> Result<(), DriverFault> {
        let is_timed = self.state().timed;
        // A full stream makes these wait. No other thread may wait with them for the state.
        let timed = if is_timed { self.timed_end.record(stream) } else { Ok(()) };
        self.submitted(timed.and_then(|()| self.end.record(stream)))
    }

    /// The mark was put, or not.
    fn submitted(&self, marked: Result<(), DriverFault>) -> Result<(), DriverFault> {
        if marked.as_ref().is_err_and(|fault| !fault.is_sticky()) {
            return marked;
        }
        // On a lost context the event's state tells how it was lost.
        let mut state = self.state();
        state.is_submitted = true;
        state.submitted = Instant::now();
        Ok(())
    }

    /// The driver has refused the launch, behind orders which the stream has yet to carry out. It stays in flight until the stream has: a launch on
    /// another stream must come after them. No thread waits for it, and it keeps no thread waiting.
    pub(crate) fn refuse(&self, stream: sys::CUstream) -> Result<(), DriverFault> {
        self.end.record(stream)?;
        let now = Instant::now();
        let mut state = self.state();
        let is_unbounded = state.is_unbounded();
        state.pausing = None;
        if let (Some(limits), Some(context)) = (state.limits.filter(|_| is_unbounded), &state.context) {
            context.landed(true);
            context.began(false);
            state.limits = Some(Limits { timeout: Some(Duration::ZERO), clock: Clock::Device, ..limits });
        }
        (state.is_submitted, state.raised, state.told) = (true, Some(now), Some((now, Cause::Cancelled)));
        let key = state.timer;
        drop(state);
        if let (Some(key), Ok(timer)) = (key, Timer::of_process()) {
            timer.hasten(key, now);
        }
        Ok(())
    }

    /// The launch was made, but its end can't be marked: has it stop, and waits for its stream within the grace time. Answers whether it is over.
    /// If not it stays in flight for good, and keeps its room and its module.
    pub(crate) fn stop_unmarked(&self, number: u32, stream: sys::CUstream, grace: Duration) -> bool {
        let _ = self.cancel(number);
        let since = Instant::now();
        loop {
            match driver::is_drained(stream) {
                Ok(true) => return true,
                Ok(false) if since.elapsed() < grace => std::thread::sleep(Duration::from_micros(50)),
                _ => return false,
            }
        }
    }

    /// Writes the orders to the control block of another host's module, in the stream's order. Little is believed of what it holds, since another
    /// host's launches may have come between: only that limits which few launches have are absent, as everyone leaves them.
    pub(crate) fn send_guarded_orders(&self, stream: sys::CUstream, control: u64) -> Result<(), DriverFault> {
        let rare = [offset_of!(Orders, budget_cycles) / 8, offset_of!(Orders, fuel) / 8];
        self.orders().write_some(stream, control, |index, word| word != 0 || !rare.contains(&index))
    }

    /// The caller has launched: has the control block forget the orders and marks the end of the launch, both in the stream's order. So the
    /// end is not seen before a launch without a guard is safe again.
    ///
    /// Each word costs the GPU time, so some stay: the start, which only a deadline counts from; where the flag lies, which holds this launch's
    /// number or a later one's, but never that of a launch without a guard; where the record lies, which is written when a launch is stopped.
    pub(crate) fn submit_guarded(&self, stream: sys::CUstream, control: u64, unarmed: &Orders) -> Result<(), DriverFault> {
        let armed = self.orders();
        let left = Orders { start_ns: armed.start_ns, flag: armed.flag, record: armed.record, ..*unarmed };
        let armed = armed.words();
        let written = left.write_some(stream, control, |index, word| word != armed[index]);
        self.submitted(written.and_then(|()| self.end.record(stream)))
    }
}
