//! Limits compiled in, late cancels, fuel.

use super::stop::{LEFT, UNDER_WAY, cancel, drains, still_runs, traps};
use crate::session::{Checked, Loaded, Report, Session, same};
use cuinstr_abi::control::{Action, Why};
use cuinstr_harness::buffer::elements;
use cuinstr_harness::variant::{self, Variant};
use serde_json::json;
use std::thread;
use std::time::Duration;

/// Between launches of a host that arms nothing: longer than the timeout compiled in.
const APART: Duration = Duration::from_millis(300);
/// Fuel of each thread.
const FUEL: u64 = 1000;

/// A host that arms nothing launches a sound kernel three times, further apart than its compiled-in timeout, and gets three right
/// answers; then a hang, and sees error 719.
///
/// # Errors
/// What went otherwise.
pub fn unarmed(session: &Session) -> Checked {
    let plain = session.load("saxpy_stride", variant::PLAIN)?;
    let sound = session.load("saxpy_stride", variant::DEFAULT_TIMEOUT)?;
    let hang = session.load("hang/while_true", variant::DEFAULT_TIMEOUT)?;
    let answer = session.run(&plain)?;
    for number in 1..=3 {
        same(&answer, &session.run(&sound)?).map_err(|why| format!("launch {number}: {why}"))?;
        thread::sleep(APART);
    }
    let since = session.launch(&hang)?;
    still_runs(session, Duration::from_millis(150))?;
    traps(session)?;
    let ended = since.elapsed().as_secs_f64() * 1e3;
    Ok(Report::of(json!({ "ended_ms": ended })).note(format!("error 719 after {ended:.0} ms, of which 200 are the timeout")))
}

/// Writes the number of an earlier launch into the flag of one that hangs, which goes on; then its own, which stops it.
///
/// # Errors
/// What went otherwise.
pub fn late_cancel(session: &Session) -> Checked {
    let loaded = session.load("hang/while_true", variant::DEFAULT)?;
    let earlier = session.arm(&loaded, Action::Leave, |_| {})?;
    session.launch(&loaded)?;
    cancel(session, &loaded, earlier.launch)?;
    drains(session, LEFT)?;

    let orders = session.arm(&loaded, Action::Leave, |_| {})?;
    session.launch(&loaded)?;
    cancel(session, &loaded, earlier.launch)?;
    session.gpu.flipped()?;
    still_runs(session, Duration::from_millis(100)).map_err(|why| format!("after a late cancel of launch {}: {why}", earlier.launch))?;
    cancel(session, &loaded, orders.launch)?;
    drains(session, LEFT)?;
    let stop = loaded.names_the_hang(&session.record(&loaded)?, orders.launch, Why::Flag)?;
    session.next_launch_is_right()?;
    Ok(Report::of(json!({ "stop": stop })))
}

/// Writes the number of an earlier launch into the flag, before and during one that ends by itself: it completes, and is not late.
///
/// # Errors
/// What went otherwise.
pub fn late_cancel_of_a_sound_kernel(session: &Session) -> Checked {
    let plain = session.load("probe/nap", variant::PLAIN)?;
    let loaded = session.load("probe/nap", variant::DEFAULT)?;
    let answer = session.run(&plain)?;
    let earlier = session.arm(&loaded, Action::Leave, |_| {})?.launch;
    session.run(&loaded)?;
    session.gpu.flip(loaded.control()?, earlier)?;
    session.gpu.flipped()?;
    session.arm(&loaded, Action::Leave, |_| {})?;
    session.gpu.refill(&loaded.arguments)?;
    session.launch(&loaded)?;
    still_runs(session, UNDER_WAY).map_err(|why| format!("the probe is too short: {why}"))?;
    session.gpu.flip(loaded.control()?, earlier)?;
    session.gpu.flipped()?;
    same(&answer, &session.finish(&loaded)?)?;
    let record = session.record(&loaded)?;
    if record.claimed != 0 || record.late != 0 {
        return Err(format!("a cancel of launch {earlier} reached a later one: {:?}", loaded.describe(&record)));
    }
    Ok(Report::default())
}

/// One thread counts its iterations. With the same fuel it stops at the same count under both poll forms, and in a single loop at exactly
/// the fuel. One thread, since the first to run dry stops the launch for all others, wherever they are.
///
/// # Errors
/// What went otherwise.
pub fn fuel_is_exact(session: &Session, name: &str) -> Checked {
    let counts = |variant: Variant| {
        let loaded = session.load(name, variant)?;
        let counts = out_of_fuel(session, &loaded).map_err(|why| format!("{}: {why}", variant.name))?;
        Ok::<_, String>(counts)
    };
    let (default, each) = (counts(variant::DEFAULT_ALL)?, counts(variant::EACH_ALL)?);
    let range = |counts: &[u64]| (counts.iter().copied().min(), counts.iter().copied().max());
    let data = json!({ "fuel": FUEL, "default": range(&default), "each": range(&each) });
    if default != each {
        return Err(format!("the poll forms do not agree: {data}"));
    }
    // In a nest the iterations that have begun and not ended come on top: one for each loop around.
    let most = each[0];
    if !(FUEL..=FUEL + 3).contains(&most) || (name == "count_steps" && most != FUEL) {
        return Err(format!("the thread did not run {FUEL} iterations: {data}"));
    }
    session.next_launch_is_right()?;
    Ok(Report::of(data))
}

/// The counts of all threads once they have run out of fuel.
fn out_of_fuel(session: &Session, loaded: &Loaded) -> Result<Vec<u64>, String> {
    let orders = session.arm(loaded, Action::Leave, |orders| orders.fuel = FUEL)?;
    session.launch(loaded)?;
    drains(session, LEFT)?;
    let record = session.record(loaded)?;
    let stop = loaded.stopped(&record, orders.launch, Why::Fuel)?;
    if record.threads() != loaded.header.threads() {
        return Err(format!("not all of {} threads stopped: {stop:?}", loaded.header.threads()));
    }
    let contents = session.gpu.contents(&loaded.arguments)?;
    let counts = contents.first().ok_or("the probe has no buffer")?;
    Ok(elements(&counts.bytes, counts.ty))
}
