//! Modules that are attached, and guards with what became of their launches.

use crate::handles::Handles;
use crate::layout;
use crate::status::{self, Failure, Status};
use cuinstr_runtime::guard::{Attached, Guard, Limits};
use cuinstr_runtime::{Cause, GRACE, Outcome};
use std::ffi::CString;
use std::sync::OnceLock;
use std::time::Duration;

pub(crate) static MODULES: Handles<Attached> = Handles::new("module");
pub(crate) static GUARDS: Handles<Watched> = Handles::new("guard");

/// A guard, and its outcome once that was asked for.
pub(crate) struct Watched {
    pub(crate) guard: Guard,
    told: OnceLock<Told>,
}

/// An outcome in C's terms, with the texts that it points to.
struct Told {
    kind: u32,
    cause: u32,
    late: bool,
    elapsed_ns: u64,
    latency_ns: u64,
    fuel_used: u64,
    threads: u64,
    block: [u32; 3],
    thread: [u32; 3],
    line: u32,
    column: u32,
    driver_error: u32,
    kernel: CString,
    file: CString,
    function: CString,
    report: CString,
    json: CString,
}

impl Watched {
    pub(crate) fn new(guard: Guard) -> Self {
        Self { guard, told: OnceLock::new() }
    }

    /// Waits for the outcome, and has `give` take it. Its texts live as long as this.
    pub(crate) fn wait(&self, limit: Duration, give: impl FnOnce(&layout::Outcome)) -> Result<(), Failure> {
        let told = if let Some(told) = self.told.get() {
            told
        } else {
            let outcome = self.guard.wait_for(limit)?;
            let outcome = outcome.ok_or_else(|| Failure::new(Status::Pending, "the outcome is not known yet"))?;
            // That is not its end.
            if let Outcome::Paused { done, left, latency } = outcome {
                give(&paused(done, left, latency));
                return Ok(());
            }
            self.told.get_or_init(|| Told::new(&outcome))
        };
        give(&told.shown());
        Ok(())
    }
}

impl Told {
    fn new(outcome: &Outcome) -> Self {
        let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let mut told = Self {
            kind: 0,
            cause: 0,
            late: false,
            elapsed_ns: 0,
            latency_ns: 0,
            fuel_used: 0,
            threads: 0,
            block: [0; 3],
            thread: [0; 3],
            line: 0,
            column: 0,
            driver_error: 0,
            kernel: CString::default(),
            file: CString::default(),
            function: CString::default(),
            report: CString::default(),
            json: status::text(serde_json::to_string(outcome).unwrap_or_default()),
        };
        match outcome {
            Outcome::Completed { elapsed, late, fuel_used } => {
                told.kind = layout::COMPLETED;
                (told.elapsed_ns, told.late, told.fuel_used) = (ns(*elapsed), *late, fuel_used.unwrap_or(0));
            }
            Outcome::Stopped { why, latency, report, .. } => {
                told.kind = layout::STOPPED;
                told.cause = match why {
                    Cause::Cancelled => layout::CANCELLED,
                    Cause::Deadline => layout::DEADLINE,
                    Cause::Budget => layout::BUDGET,
                    Cause::Fuel => layout::FUEL,
                };
                (told.latency_ns, told.threads, told.late) = (ns(*latency), report.threads, report.late);
                told.report = status::text(report.to_string());
                told.kernel = status::text(report.kernel.as_str());
                if let Some(first) = &report.first {
                    (told.block, told.thread) = (first.block, first.thread);
                    if let Some(place) = &first.site.place {
                        (told.line, told.column) = (place.line, place.column);
                        (told.file, told.function) = (status::text(place.file.as_str()), status::text(place.function.as_str()));
                    }
                }
            }
            Outcome::Paused { .. } => told.kind = layout::PAUSED,
            Outcome::Faulted { fault } => {
                (told.kind, told.driver_error) = (layout::FAULTED, fault.code);
                told.report = status::text(format!("the context is lost: {fault}"));
            }
        }
        told
    }

    fn shown(&self) -> layout::Outcome {
        layout::Outcome {
            size: size_of::<layout::Outcome>() as u32,
            kind: self.kind,
            cause: self.cause,
            late: u32::from(self.late),
            elapsed_ns: self.elapsed_ns,
            latency_ns: self.latency_ns,
            fuel_used: self.fuel_used,
            threads: self.threads,
            block: self.block,
            thread: self.thread,
            line: self.line,
            column: self.column,
            driver_error: self.driver_error,
            reserved: 0,
            kernel: self.kernel.as_ptr(),
            file: self.file.as_ptr(),
            function: self.function.as_ptr(),
            report: self.report.as_ptr(),
            json: self.json.as_ptr(),
            blocks_done: 0,
            blocks_left: 0,
        }
    }
}

/// A launch that is paused, in C's terms.
fn paused(done: u64, left: u64, latency: Duration) -> layout::Outcome {
    let none = c"".as_ptr();
    layout::Outcome {
        size: size_of::<layout::Outcome>() as u32,
        kind: layout::PAUSED,
        cause: 0,
        late: 0,
        elapsed_ns: 0,
        latency_ns: u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX),
        fuel_used: 0,
        threads: 0,
        block: [0; 3],
        thread: [0; 3],
        line: 0,
        column: 0,
        driver_error: 0,
        reserved: 0,
        kernel: none,
        file: none,
        function: none,
        report: none,
        json: none,
        blocks_done: done,
        blocks_left: left,
    }
}

/// What C asks for, if it makes sense.
pub(crate) fn limits(given: &layout::Limits) -> Result<Limits, Failure> {
    let bad = |message: &str| Failure::new(Status::BadArgument, message);
    let known = layout::UNTIL_CANCELLED | layout::COUNT_FUEL | layout::PAUSABLE;
    if given.flags & !known != 0 {
        return Err(bad(&format!("cuinstr_limits.flags has bits that this release does not know: {:#x}", given.flags & !known)));
    }
    let some = |value: u64| (value != 0).then_some(value);
    let timeout = match (some(given.timeout_ns), given.flags & layout::UNTIL_CANCELLED != 0) {
        (None, false) => return Err(bad("the launch was given no end: set timeout_ns, or CUINSTR_UNTIL_CANCELLED in flags")),
        (Some(_), true) => return Err(bad("timeout_ns and CUINSTR_UNTIL_CANCELLED exclude each other")),
        (timeout, _) => timeout.map(Duration::from_nanos),
    };
    Ok(Limits {
        timeout,
        fuel: some(given.fuel),
        budget_cycles: some(given.budget_cycles),
        count_fuel: given.flags & layout::COUNT_FUEL != 0,
        grace: some(given.grace_ns).map_or(GRACE, Duration::from_nanos),
        begin_within: some(given.begin_within_ns).map_or(Limits::UNTIL_CANCELLED.begin_within, Duration::from_nanos),
        // What is left out of a known extent is one.
        extents: (given.grid != [0; 3] && given.block != [0; 3]).then(|| (given.grid.map(|n| n.max(1)), given.block.map(|n| n.max(1)))),
        ..Limits::UNTIL_CANCELLED
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuinstr_runtime::DriverFault;
    use cuinstr_runtime::Tier;
    use cuinstr_runtime::control::{StopRecord, Why};
    use cuinstr_runtime::report::{Launched, Report};
    use cuinstr_runtime::sources::NoSources;

    #[test]
    fn a_launch_has_one_kind_of_end() {
        let given = |timeout_ns, flags| layout::Limits {
            size: 72,
            flags,
            timeout_ns,
            fuel: 7,
            budget_cycles: 0,
            grace_ns: 0,
            begin_within_ns: 0,
            grid: [4, 0, 0],
            block: [32, 1, 1],
        };
        let taken = limits(&given(5, layout::COUNT_FUEL)).unwrap();
        assert_eq!((taken.timeout, taken.fuel, taken.budget_cycles), (Some(Duration::from_nanos(5)), Some(7), None));
        assert!(taken.count_fuel && taken.grace == GRACE);
        assert_eq!(taken.extents, Some(([4, 1, 1], [32, 1, 1])));
        assert_eq!(limits(&given(0, layout::UNTIL_CANCELLED)).unwrap().timeout, None);
        for (timeout_ns, flags) in [(0, 0), (5, layout::UNTIL_CANCELLED), (5, 64)] {
            assert_eq!(limits(&given(timeout_ns, flags)).unwrap_err().status, Status::BadArgument);
        }
    }

    #[test]
    fn an_outcome_tells_what_the_report_does() {
        let record = StopRecord {
            claimed: 3,
            published: 3,
            why: Why::Deadline as u32,
            thread: [31, 0, 0],
            unlisted: 64,
            site: 16,
            ..StopRecord::EMPTY
        };
        let launched = Launched { kernel: "halve", timeout_ns: Some(1_000_000), ..Launched::default() };
        let report = Box::new(Report::new(&record, &launched, &[], &NoSources));
        let stopped = Outcome::Stopped { why: Cause::Deadline, tier: Tier::Leave, latency: Duration::from_micros(20), report };
        let told = Told::new(&stopped);
        let shown = told.shown();
        assert_eq!((shown.kind, shown.cause, shown.latency_ns), (layout::STOPPED, layout::DEADLINE, 20_000));
        assert_eq!((shown.thread, shown.threads, shown.line), ([31, 0, 0], 64, 0));
        assert_eq!(told.kernel.to_str(), Ok("halve"));
        assert!(told.report.to_str().is_ok_and(|text| text.contains("its deadline (1 ms) passed")));
        assert!(told.json.to_str().is_ok_and(|json| json.starts_with("{\"outcome\":\"stopped\",\"why\":\"deadline\"")));
        let fault = DriverFault { call: "cuEventQuery", code: 700, name: "CUDA_ERROR_ILLEGAL_ADDRESS".into() };
        let told = Told::new(&Outcome::Faulted { fault });
        assert_eq!((told.kind, told.driver_error), (layout::FAULTED, 700));
    }
}
