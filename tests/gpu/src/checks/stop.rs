//! Hangs: stopped in every way there is, or hanging as their control.

use crate::launcher::{Ended, LAUNCH_FAILED};
use crate::session::{Checked, Loaded, Report, Session};
use cuinstr::options::Polls;
use cuinstr_abi::control::{Action, Why};
use cuinstr_harness::variant;
use serde_json::json;
use std::thread;
use std::time::{Duration, Instant};

/// From launch to cancel, so that the kernel surely runs.
pub(super) const UNDER_WAY: Duration = Duration::from_millis(5);
/// The armed timeout.
pub(super) const TIMEOUT: Duration = Duration::from_millis(20);
/// Longest from a reason to stop until every thread has left.
pub(super) const LEFT: Duration = Duration::from_secs(1);
/// Longest until the host sees a trap, which takes a third of a second.
pub(super) const TRAPPED: Duration = Duration::from_secs(4);
/// The armed budget: about as long as the timeout.
const CYCLES: u64 = 30_000_000;
/// The armed fuel.
const STEPS: u64 = 50_000;

/// Launches a hang and gives it this reason to stop. Checks that it stops in the right way, at the right site, for the
/// right reason. Then the next launch is right, or the host sees error 719.
///
/// # Errors
/// What went otherwise.
pub fn stopped(session: &Session, name: &str, why: Why, action: Action, polls: Polls) -> Checked {
    let variant = if polls == Polls::Each { variant::EACH_ALL } else { variant::DEFAULT_ALL };
    let loaded = session.load(name, variant)?;
    let orders = session.arm(&loaded, action, |orders| match why {
        Why::Flag => {}
        Why::Deadline => orders.timeout_ns = TIMEOUT.as_nanos() as u64,
        Why::Budget => orders.budget_cycles = CYCLES,
        Why::Fuel => orders.fuel = STEPS,
    })?;
    let since = session.launch(&loaded)?;
    if why == Why::Flag {
        still_runs(session, UNDER_WAY)?;
        session.gpu.flip(loaded.control()?, orders.launch)?;
    }
    let record = match action {
        Action::Leave => {
            drains(session, TIMEOUT + LEFT)?;
            session.record(&loaded)?
        }
        Action::Trap => {
            traps(session)?;
            loaded.control()?.host_record()
        }
    };
    let ended = since.elapsed();
    let stop = loaded.names_the_hang(&record, orders.launch, why)?;
    if action == Action::Leave {
        session.next_launch_is_right()?;
    }
    Ok(Report::of(json!({ "stop": stop, "ended_ms": ended.as_secs_f64() * 1e3 })))
}

/// Launches a hang of tier 1 with a deadline and default options. Measures from the deadline until every thread has
/// left.
///
/// # Errors
/// What went otherwise.
pub fn leaves_at_its_deadline(session: &Session, name: &str) -> Checked {
    let loaded = session.load(name, variant::DEFAULT)?;
    let orders = session.arm(&loaded, Action::Leave, |orders| orders.timeout_ns = TIMEOUT.as_nanos() as u64)?;
    let since = session.launch(&loaded)?;
    drains(session, TIMEOUT + LEFT)?;
    let drained = since.elapsed();
    let record = session.record(&loaded)?;
    let stop = loaded.names_the_hang(&record, orders.launch, Why::Deadline)?;
    let latency = drained.checked_sub(TIMEOUT).ok_or_else(|| format!("it was drained after {drained:?}, before its deadline"))?;
    session.next_launch_is_right()?;
    let first = stop.elapsed_us - TIMEOUT.as_secs_f64() * 1e6;
    let latency = latency.as_secs_f64() * 1e6;
    let note = format!("first stop {first:.0} us after the deadline, drained {latency:.0} us after it");
    Ok(Report::of(json!({ "stop": stop, "first_stop_us": first, "latency_us": latency })).note(note))
}

/// Launches a hang of a higher tier with a deadline: it must not drain. If it does, its header is out of date.
///
/// # Errors
/// If it ends.
pub fn escapes(session: &Session, name: &str) -> Checked {
    let loaded = session.load(name, variant::DEFAULT)?;
    session.arm(&loaded, Action::Leave, |orders| orders.timeout_ns = TIMEOUT.as_nanos() as u64)?;
    session.launch(&loaded)?;
    still_runs(session, TIMEOUT + LEFT).map_err(|why| format!("{why}: its header should say tier 1"))?;
    let record = session.record(&loaded)?;
    let stop = loaded.describe(&record);
    Ok(Report::of(json!({ "stop": stop })).note(format!("still runs, {} threads left", stop.threads)))
}

/// The control of all the others: without polls the kernel hangs. Killing the process, which the parent does, is what ends it.
///
/// # Errors
/// If it ends by itself.
pub fn hangs(session: &Session, name: &str) -> Checked {
    let loaded = session.load(name, variant::PLAIN)?;
    session.launch(&loaded)?;
    still_runs(session, Duration::from_millis(300))?;
    Ok(Report::default())
}

pub(super) fn still_runs(session: &Session, time: Duration) -> Result<(), String> {
    let since = Instant::now();
    match session.wait(time) {
        Ended::Running => Ok(()),
        Ended::Drained => Err(format!("it ended by itself within {:?}", since.elapsed())),
        Ended::Fault(fault) => Err(format!("it ended with {fault} within {:?}", since.elapsed())),
    }
}

pub(super) fn drains(session: &Session, limit: Duration) -> Result<(), String> {
    match session.wait(limit) {
        Ended::Drained => Ok(()),
        Ended::Fault(fault) => Err(format!("instead of leaving it ended with {fault}")),
        Ended::Running => Err(format!("it still runs after {limit:?}")),
    }
}

/// Waits for error 719; the record of the trap may come a moment before it.
pub(super) fn traps(session: &Session) -> Result<(), String> {
    match session.wait(TRAPPED) {
        Ended::Fault(fault) if fault.code == LAUNCH_FAILED => Ok(()),
        Ended::Fault(fault) => Err(format!("instead of error 719 the host sees {fault}")),
        Ended::Drained => Err("it drained without an error".into()),
        Ended::Running => Err(format!("it still runs after {TRAPPED:?}")),
    }
}

/// Waits for a launch to be under way, then cancels it.
pub(super) fn cancel(session: &Session, loaded: &Loaded, launch: u32) -> Result<Instant, String> {
    thread::sleep(UNDER_WAY);
    let since = Instant::now();
    session.gpu.flip(loaded.control()?, launch)?;
    Ok(since)
}
