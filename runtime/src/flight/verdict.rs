//! How a launch that is over ended: by the event behind it, the record that its threads left, or the error that the driver gives.

use super::{Flight, Shared, State};
use crate::driver;
use crate::error::{DriverFault, Error, Poison};
use crate::outcome::{Cause, Outcome, Tier};
use crate::station::Station;
use cuinstr_abi::control::{StopRecord, Why};
use std::mem::offset_of;
use std::time::{Duration, Instant};

/// Longest wait for the driver to copy a record.
const BRIEF: Duration = Duration::from_secs(2);

impl Flight {
    /// Every thread has left. The first to stop said so in pinned memory, so a launch that was not stopped needs no copy.
    pub(super) fn ended(&self, state: &State) -> Result<Outcome, Error> {
        let now = Instant::now();
        let (Some(station), Some(limits), Some(subject)) = (&state.station, state.limits, &state.subject) else {
            return Err(Error::Machine("a launch without a station".into()));
        };
        let number = self.number();
        let claimed: u32 = self.shared.get(offset_of!(Shared, host_record) + offset_of!(StopRecord, published));
        let late: u32 = self.shared.get(offset_of!(Shared, host_record) + offset_of!(StopRecord, late));
        let is_dirty = claimed == number || late == number || limits.count_fuel;
        let record = if is_dirty { Some(self.fetch(station)?) } else { None };
        if let Some(record) = record.filter(|record| left(record) > 0) {
            let (why, since) = self.cause(state, &record);
            let report = subject.report(&record, &self.orders(), why == Cause::Deadline);
            return Ok(Outcome::Stopped { why, tier: Tier::Leave, latency: now.saturating_duration_since(since), report });
        }
        // Every kernel that was rewritten says when it begins, and each launch here has a timeout, if only of centuries.
        if state.is_guarded && !is_dirty && self.start_ns() == 0 {
            return Err(Error::NotLaunched);
        }
        let elapsed = if state.timed {
            Duration::from_secs_f64(f64::from(self.timed_end.milliseconds_since(&self.begin)?) / 1e3)
        } else {
            now - state.launched
        };
        let fuel_used = record.filter(|_| limits.count_fuel).map(|record| record.fuel_used);
        Ok(Outcome::Completed { elapsed, late: late == number, fuel_used })
    }

    /// Reads the record past whatever runs, and clears it for the next launch.
    pub(super) fn fetch(&self, station: &Station) -> Result<StopRecord, Error> {
        let copy = self.shared.part::<StopRecord>(offset_of!(Shared, copy));
        driver::download(station.courier(), &copy, self.record)?;
        station.clear_record(self.record)?;
        station.drain_courier(BRIEF)?;
        Ok(copy.read())
    }

    /// What is known of a launch that was told to stop and has not drained: threads may have left while others can't.
    #[cfg(all(feature = "worker", unix))]
    pub(crate) fn so_far(&self, number: u32) -> Option<(Cause, Box<crate::Report>)> {
        let state = self.state();
        let (Some(station), Some(subject)) = (&state.station, &state.subject) else { return None };
        if self.number() != number || state.outcome.is_some() {
            return None;
        }
        let copy = self.shared.part::<StopRecord>(offset_of!(Shared, copy));
        let read = driver::download(station.courier(), &copy, self.record).and_then(|()| station.drain_courier(BRIEF));
        // Should the driver not get through: what the first thread wrote to pinned memory.
        let host = || self.shared.part::<StopRecord>(offset_of!(Shared, host_record)).read();
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
            let station = state.station.as_ref()?;
            station.host_time(start.checked_add(elapsed_ns).filter(|_| start != 0)?)
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

    /// The context is gone: by our own watchdog, by this kernel, or by an earlier one.
    pub(super) fn lost(&self, state: &State, fault: DriverFault) -> Result<Outcome, Error> {
        let (Some(station), Some(subject)) = (&state.station, &state.subject) else { return Err(fault.into()) };
        if !fault.is_sticky() {
            return Err(fault.into());
        }
        let poison = Poison { kernel: subject.kernel.to_string(), fault: fault.clone() };
        if !station.poison(poison) {
            return Err(station.check().err().unwrap_or(Error::Driver(fault)));
        }
        if state.tier == Tier::Leave {
            return Ok(Outcome::Faulted { fault });
        }
        // What the first thread to stop wrote to pinned memory outlives the trap; the counts do not.
        let number = self.number();
        let mut record = self.shared.part::<StopRecord>(offset_of!(Shared, host_record)).read();
        if record.published != number {
            record = StopRecord { start_ns: record.start_ns, ..StopRecord::EMPTY };
        }
        let (since, why) = state.told.unwrap_or((Instant::now(), Cause::Deadline));
        let report = subject.report(&record, &self.orders(), why == Cause::Deadline);
        Ok(Outcome::Stopped { why, tier: state.tier, latency: since.elapsed(), report })
    }
}

/// Threads that left before their work was done: those at even sites. At odd ones they said that they should, and went on.
fn left(record: &StopRecord) -> u64 {
    let listed: u64 = record.sites.iter().filter(|count| count.site & 1 == 0).map(|count| count.threads).sum();
    listed + record.unlisted
}
