//! Entries and exits: where a kernel is stopped that has no loop, or none that a poll reaches.

use super::stop::{TIMEOUT, UNDER_WAY, drains, still_runs, traps};
use crate::session::{Checked, Report, SOUND, Session, same};
use cuinstr::site::Kind;
use cuinstr_abi::control::{Action, Why};
use cuinstr_harness::variant;
use serde_json::json;
use std::time::Duration;

const PROBE: &str = "probe/nap";

/// What the kernel runs into before it reaches its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overrun {
    /// The flag.
    Flag,
    /// A deadline.
    Deadline,
}

/// Gives a kernel without a loop a reason to stop while it runs. Under `trap` it traps at its end; under `leave` it has done its work,
/// so that nobody counts as stopped, its results are complete, and the record says `late`.
///
/// # Errors
/// What went otherwise.
pub fn stopped_at_its_end(session: &Session, overrun: Overrun, action: Action) -> Checked {
    let plain = session.load(PROBE, variant::PLAIN)?;
    let loaded = session.load(PROBE, variant::DEFAULT)?;
    let answer = session.run(&plain)?;
    let orders = session.arm(&loaded, action, |orders| {
        if overrun == Overrun::Deadline {
            orders.timeout_ns = UNDER_WAY.as_nanos() as u64;
        }
    })?;
    let since = session.launch(&loaded)?;
    still_runs(session, 2 * UNDER_WAY).map_err(|why| format!("the probe is too short: {why}"))?;
    if overrun == Overrun::Flag {
        session.gpu.flip(loaded.control()?, orders.launch)?;
    }
    if action == Action::Trap {
        traps(session)?;
        let record = loaded.control()?.host_record();
        let why = if overrun == Overrun::Flag { Why::Flag } else { Why::Deadline };
        let stop = loaded.stopped(&record, orders.launch, why)?;
        let kind = loaded.build.site(record.site).map(|found| found.site.kind);
        return match kind {
            Some(Kind::Exit) => Ok(Report::of(json!({ "stop": stop }))),
            _ => Err(format!("it trapped at {stop:?}, not at an exit")),
        };
    }
    let wrote = session.finish(&loaded)?;
    let ended = since.elapsed();
    same(&answer, &wrote)?;
    let record = session.record(&loaded)?;
    if record.claimed != 0 || record.threads() != 0 || record.late != orders.launch {
        return Err(format!("a launch that did all its work late should only be late: {:?}", loaded.describe(&record)));
    }
    session.next_launch_is_right()?;
    Ok(Report::of(json!({ "ended_ms": ended.as_secs_f64() * 1e3 })))
}

/// Sets the flag to a launch's number before the launch: all its blocks leave at their entry, and touch nothing.
///
/// # Errors
/// What went otherwise.
pub fn cancelled_before_it_began(session: &Session) -> Checked {
    // A kernel without a loop is soon over and does not ask.
    let loaded = session.load("collatz", variant::DEFAULT)?;
    let before = session.gpu.contents(&loaded.arguments)?;
    let orders = session.arm(&loaded, Action::Leave, |_| {})?;
    session.gpu.flip(loaded.control()?, orders.launch)?;
    session.gpu.flipped()?;
    let since = session.launch(&loaded)?;
    drains(session, SOUND)?;
    let ended = since.elapsed();
    same(&before, &session.gpu.contents(&loaded.arguments)?).map_err(|why| format!("it touched {why}"))?;
    let record = session.record(&loaded)?;
    let stop = loaded.stopped(&record, orders.launch, Why::Flag)?;
    let kind = loaded.build.site(record.site).map(|found| found.site.kind);
    if kind != Some(Kind::Entry) || record.threads() != loaded.header.threads() {
        return Err(format!("not all of {} threads left at the entry: {stop:?}", loaded.header.threads()));
    }
    session.next_launch_is_right()?;
    Ok(Report::of(json!({ "stop": stop, "ended_ms": ended.as_secs_f64() * 1e3 })))
}

/// A block of which a part hangs out of a poll's reach, while the rest is done and waits at the gate: the compiled-in timeout traps.
///
/// # Errors
/// What went otherwise.
pub fn gate_ends_it(session: &Session, name: &str) -> Checked {
    let loaded = session.load(name, variant::GATE_TIMEOUT)?;
    let since = session.launch(&loaded)?;
    still_runs(session, Duration::from_millis(100))?;
    traps(session)?;
    Ok(Report::of(json!({ "ended_ms": since.elapsed().as_secs_f64() * 1e3 })))
}

/// The control: the same timeout, but exits that ask once, long before it has passed.
///
/// # Errors
/// If it ends.
pub fn hangs_without_the_gate(session: &Session, name: &str) -> Checked {
    let loaded = session.load(name, variant::DEFAULT_TIMEOUT)?;
    session.launch(&loaded)?;
    still_runs(session, TIMEOUT + Duration::from_secs(1))?;
    Ok(Report::default())
}
