//! How a launch that is over ended: by the event behind it, the record that its threads left, or the error that the driver gives.

use super::pause::Settled;
use super::{Copied, LaunchSlot, Shared, State};
use crate::cause::{Cause, Tier};
use crate::context::orders::Orders;
use crate::context::state::ContextState;
use crate::driver;
use crate::error::{Error, Poison};
use crate::fault::DriverFault;
use crate::outcome::Outcome;
use cuinstr_abi::control::{StopRecord, UNLIMITED, Why};
use std::mem::offset_of;
use std::time::{Duration, Instant};

/// Longest wait for the driver to copy a record of a launch whose whole record is not needed.
#[cfg(all(feature = "worker", unix))]
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest wait for the driver to copy a record: as long as it takes to copy some 25 GB. Then what its first thread wrote to pinned memory must do.
const BRIEF: Duration = Duration::from_millis(250);

impl LaunchSlot {
    /// Every thread has left. The first to stop said so in pinned memory, so a launch that was not stopped needs no copy. Nothing is answered while
    /// the record is on its way.
    pub(super) fn ended(&self, state: &mut State, now: Instant) -> Option<Result<Outcome, Error>> {
        let (Some(context), Some(limits)) = (state.context.clone(), state.limits) else {
            return Some(Err(Error::Bug("a launch without a context".into())));
        };
        let is_first = state.ended.is_none() || state.is_pausing().is_some();
        let at = *state.ended.get_or_insert(now);
        match self.settle(state, at) {
            Ok(Settled::Over) => {}
            Ok(Settled::Soon) => return None,
            Ok(Settled::Paused) => {
                self.changed.notify_all();
                return None;
            }
            Err(fault) => return self.failed(state, now, fault),
        }
        let number = self.number();
        let host = self.host_record();
        let told = host.get::<u32>(offset_of!(StopRecord, published)) == number;
        let late = host.get::<u32>(offset_of!(StopRecord, late)) == number;
        if !told && !late && !limits.count_fuel {
            return Some(self.judge(state, at, None));
        }
        if is_first {
            let fetched = self.fetch(&context);
            state.record = if fetched.is_ok() { Copied::OnItsWay } else { Copied::Spoiled };
            if let Err(fault) = fetched
                && fault.is_sticky()
            {
                return Some(self.lost(state, fault));
            }
        }
        let mut record = StopRecord::EMPTY;
        if state.record == Copied::OnItsWay {
            // Should the context be lost meanwhile: the next look at the launch's end tells.
            match self.fetched.is_reached() {
                Ok(true) => {
                    state.record = Copied::Clear;
                    record = self.shared.get(offset_of!(Shared, copy));
                }
                _ if now < at + BRIEF => return None,
                _ => {}
            }
        }
        // A launch that says it was stopped was. Should its record not tell: its first thread did.
        let record = if told && record.published != number { host.read() } else { record };
        Some(self.judge(state, at, Some(&record)))
    }

    /// What a launch came to that was over at this moment, with this record, if there is one to ask for.
    pub(super) fn judge(&self, state: &State, at: Instant, record: Option<&StopRecord>) -> Result<Outcome, Error> {
        let (Some(limits), Some(subject)) = (state.limits, &state.subject) else {
            return Err(Error::Bug("a launch without a kernel".into()));
        };
        let number = self.number();
        // Counts that are missing leave the first thread, which says that it stopped.
        let is_stopped = |record: &&StopRecord| left(record) > 0 || (record.published == number && record.threads() == 0);
        if let Some(record) = record.filter(is_stopped) {
            let (why, since) = self.cause(state, record);
            let report = subject.report(record, &self.given_orders(state), why == Cause::Deadline);
            return Ok(Outcome::Stopped { why, tier: Tier::Leave, latency: at.saturating_duration_since(since), report });
        }
        // It was told to stop while blocks had declined: they will not run.
        if state.pausing.as_ref().is_some_and(|pausing| pausing.left > 0) {
            let (since, why) = state.told.unwrap_or((at, Cause::Cancelled));
            let report = subject.report(&StopRecord::EMPTY, &self.given_orders(state), why == Cause::Deadline);
            return Ok(Outcome::Stopped { why, tier: Tier::Leave, latency: at.saturating_duration_since(since), report });
        }
        // Every kernel that was rewritten says when it begins, and each launch here has a timeout, if only of centuries.
        let is_later = state.pausing.as_ref().is_some_and(|pausing| pausing.is_resumed);
        if state.is_guarded && !is_later && record.is_none() && self.start_ns() == 0 {
            return Err(Error::NotLaunched);
        }
        let elapsed = if state.timed {
            Duration::from_secs_f64(f64::from(self.timed_end.milliseconds_since(&self.begin)?) / 1e3)
        } else {
            let before = state.pausing.as_ref().map_or(Duration::ZERO, |pausing| pausing.spent);
            before + at.saturating_duration_since(state.launched)
        };
        let late: u32 = self.host_record().get(offset_of!(StopRecord, late));
        let fuel_used = record.filter(|_| limits.count_fuel).map(|record| record.fuel_used);
        Ok(Outcome::Completed { elapsed, late: late == number, fuel_used })
    }

    /// The orders with the timeout that the caller gave: later parts of a launch that was paused have what is left of it.
    fn given_orders(&self, state: &State) -> Orders {
        let mut orders = self.orders();
        let whole = state.pausing.as_ref().and_then(|pausing| pausing.timeout);
        if let Some(timeout) = whole.filter(|_| orders.timeout_ns != UNLIMITED) {
            orders.timeout_ns = timeout.as_nanos() as u64;
        }
        orders
    }

    /// Has the record read past whatever runs, and cleared for the next launch.
    fn fetch(&self, context: &ContextState) -> Result<(), DriverFault> {
        let copy = self.shared.part::<StopRecord>(offset_of!(Shared, copy));
        driver::download(context.copy_stream(), &copy, self.record)?;
        context.clear_record(self.record)?;
        self.fetched.record(context.copy_stream())
    }

    /// What is known of a launch that was told to stop and has not drained: threads may have left while others can't.
    #[cfg(all(feature = "worker", unix))]
    pub(crate) fn so_far(&self, number: u32) -> Option<(Cause, Box<crate::Report>)> {
        let state = self.state();
        let (Some(context), Some(subject)) = (&state.context, &state.subject) else { return None };
        if self.number() != number || state.outcome.is_some() {
            return None;
        }
        let copy = self.shared.part::<StopRecord>(offset_of!(Shared, copy));
        let read = driver::download(context.copy_stream(), &copy, self.record).and_then(|()| context.drain_copies(PATIENCE));
        // Should the driver not get through: what the first thread wrote to pinned memory.
        let host = || self.host_record().read();
        let mut record = if read.is_ok() { copy.read() } else { host() };
        if record.published != number {
            record = StopRecord::EMPTY;
        }
        let (why, _) = self.cause(&state, &record);
        let mut report = subject.report(&record, &self.orders(), why == Cause::Deadline);
        let timeout = state.limits.and_then(|limits| limits.timeout);
        report.stopped_for(why, timeout.map(|timeout| timeout.as_nanos() as u64));
        Some((why, report))
    }

    /// Why the launch was stopped, and since when it should have been.
    pub(super) fn cause(&self, state: &State, record: &StopRecord) -> (Cause, Instant) {
        let told = state.told.map_or_else(Instant::now, |(since, _)| since);
        let start = self.start_ns();
        let on_device = |elapsed_ns: u64| {
            let context = state.context.as_ref()?;
            context.host_time(start.checked_add(elapsed_ns).filter(|_| start != 0)?)
        };
        match Why::from_word(record.why) {
            Some(Why::Deadline) => {
                let timeout = state.limits.and_then(|limits| limits.timeout).map_or(0, |timeout| timeout.as_nanos() as u64);
                (Cause::Deadline, on_device(timeout).unwrap_or(told))
            }
            Some(Why::Budget) => (Cause::Budget, on_device(record.elapsed_ns).unwrap_or(told)),
            Some(Why::Fuel) => (Cause::Fuel, on_device(record.elapsed_ns).unwrap_or(told)),
            _ => (state.told.map_or(Cause::Cancelled, |(_, cause)| cause), told),
        }
    }

    /// The driver does not say how the launch fares. Only a lost context ends it: after any other error its kernel may still run.
    pub(super) fn failed(&self, state: &mut State, now: Instant, fault: DriverFault) -> Option<Result<Outcome, Error>> {
        if fault.is_sticky() || fault.is_of_gone_context() {
            return Some(self.lost(state, fault));
        }
        state.trouble.get_or_insert((now, fault));
        None
    }

    /// The context is gone: by our own watchdog, by this kernel, or by an earlier one.
    pub(super) fn lost(&self, state: &State, fault: DriverFault) -> Result<Outcome, Error> {
        let (Some(context), Some(subject)) = (&state.context, &state.subject) else { return Err(fault.into()) };
        if !fault.is_sticky() || fault.is_of_gone_context() {
            return Err(fault.into());
        }
        let poison = Poison { kernel: subject.kernel.to_string(), fault: fault.clone() };
        if !context.poison(poison) {
            return Err(context.check().err().unwrap_or(Error::Driver(fault)));
        }
        if state.tier == Tier::Leave {
            return Ok(Outcome::Faulted { fault });
        }
        // What the first thread to stop wrote to pinned memory outlives the trap; the counts do not.
        let number = self.number();
        let mut record = self.host_record().read();
        if record.published != number {
            record = StopRecord { start_ns: record.start_ns, ..StopRecord::EMPTY };
        }
        let (since, why) = state.told.unwrap_or((Instant::now(), Cause::Deadline));
        let report = subject.report(&record, &self.given_orders(state), why == Cause::Deadline);
        Ok(Outcome::Stopped { why, tier: state.tier, latency: since.elapsed(), report })
    }
}

/// Threads that left before their work was done: those at even sites. At odd ones they said that they should, and went on.
fn left(record: &StopRecord) -> u64 {
    let listed: u64 = record.sites.iter().filter(|count| count.site & 1 == 0).map(|count| count.threads).sum();
    listed + record.unlisted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_that_left_are_counted_and_no_others() {
        let mut record = StopRecord { unlisted: 3, ..StopRecord::EMPTY };
        for (at, (site, threads)) in [(4, 10), (5, 20), (8, 40)].into_iter().enumerate() {
            (record.sites[at].site, record.sites[at].threads) = (site, threads);
        }
        assert_eq!(left(&record), 53);
    }
}
