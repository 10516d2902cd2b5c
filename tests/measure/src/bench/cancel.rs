//! Cancels of a launch at random instants, through the runtime.

use super::cost::Sound;
use super::rig::{Rig, told};
use cuinstr_harness::buffer::Type;
use cuinstr_harness::header::Header;
use cuinstr_runtime::cudarc::driver::LaunchConfig;
use cuinstr_runtime::{Cause, Outcome, Report, Tier};
use std::time::{Duration, Instant};

/// From when on, after the launch call, it may be cancelled.
const FIRST: Duration = Duration::from_micros(100);
/// Until when, if it runs for long enough.
const LAST: Duration = Duration::from_millis(4);
/// How long it is watched to see whether it ends by itself.
const WATCHED: Duration = Duration::from_millis(12);
/// Shortest that it may run.
const SHORTEST: Duration = Duration::from_millis(1);

/// A kernel with what it is launched on.
#[expect(missing_debug_implementations, reason = "a closure shows nothing")]
pub struct Long<'a> {
    /// Its name in the manifest.
    pub name: &'a str,
    /// Grid, block and shared memory.
    pub header: &'a Header,
    /// Its arguments, memory as addresses.
    pub arguments: &'a [(Type, u64)],
    /// Fills the memory anew, if a launch reads what it writes.
    pub restore: Option<&'a dyn Fn() -> Result<(), String>>,
}

/// What the cancels took.
#[derive(Debug, Default)]
pub struct Cancels {
    /// Microseconds from the cancel until the stream was seen drained, each.
    pub drained: Vec<f64>,
    /// Microseconds from the cancel until `wait` had answered, each.
    pub answered: Vec<f64>,
    /// Launches that were over before their cancel; they count for nothing.
    pub over: usize,
    /// Cancels that found blocks which had not begun.
    pub not_resident: usize,
    /// Milliseconds within which it ends by itself; nothing if it does not within some twelve.
    pub natural_ms: Option<f64>,
}

/// The stop that it must be. Some threads may have done all their work before.
fn stopped(outcome: Outcome) -> Result<(Duration, Box<Report>), String> {
    match outcome {
        Outcome::Stopped { why: Cause::Cancelled, tier: Tier::Leave, latency, report } => Ok((latency, report)),
        other => Err(format!("it should have been stopped by its cancel: {other:?}")),
    }
}

/// Cancels a launch `wanted` times, or until `until` but at least ten times. After each the next launch must give its right result.
///
/// # Errors
/// If the launch is too short, does not stop as it should, or something is not right afterwards.
pub fn cancel(rig: &Rig, long: &Long, wanted: usize, until: Instant) -> Result<Cancels, String> {
    let subject = rig.subject_at(long.name, long.arguments)?;
    let sound = Sound::new(rig)?;
    let header = long.header;
    let config = LaunchConfig { grid_dim: header.grid.into(), block_dim: header.block.into(), shared_mem_bytes: header.shared };
    let start = || {
        long.restore.map_or(Ok(()), |restore| restore())?;
        subject.start(&rig.stream, config, |launch| _ = launch.until_cancelled())
    };

    let mut cancels = Cancels::default();
    let mut running = start()?;
    if let Some(outcome) = running.wait_for(WATCHED).map_err(told)? {
        let Outcome::Completed { elapsed, .. } = outcome else { return Err(format!("it should run for long: {outcome:?}")) };
        cancels.natural_ms = Some(elapsed.as_secs_f64() * 1e3);
        if elapsed < SHORTEST {
            return Err(format!("its long launch is over after {elapsed:?}"));
        }
    } else {
        running.cancel().map_err(told)?;
        stopped(running.wait().map_err(told)?)?;
    }
    drop(running);
    let last = cancels.natural_ms.map_or(LAST, |natural| LAST.min(Duration::from_secs_f64(natural * 0.4e-3)));

    let mut random = 1_u64;
    while cancels.drained.len() < wanted && (cancels.drained.len() < 10 || Instant::now() < until) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let after = FIRST + last.saturating_sub(FIRST).mul_f64(f64::from((random >> 40) as u32) / f64::from(1 << 24));
        let mut running = start()?;
        let since = Instant::now();
        while since.elapsed() < after {
            std::hint::spin_loop();
        }
        let since = Instant::now();
        running.cancel().map_err(told)?;
        let outcome = running.wait().map_err(told)?;
        let answered = since.elapsed();
        if outcome.is_completed() {
            cancels.over += 1;
            if cancels.over > 10 + cancels.drained.len() {
                return Err("most launches are over before they are cancelled".into());
            }
        } else {
            let (latency, report) = stopped(outcome)?;
            cancels.not_resident += usize::from(report.blocks_not_begun != 0);
            cancels.drained.push(latency.as_secs_f64() * 1e6);
            cancels.answered.push(answered.as_secs_f64() * 1e6);
        }
        sound.result(rig).map_err(|why| format!("after cancel {}: {why}", cancels.drained.len()))?;
    }
    Ok(cancels)
}

/// Launches a kernel through the runtime with a deadline that it does not reach.
///
/// # Errors
/// If it does not complete.
pub fn complete(rig: &Rig, long: &Long, timeout: Duration) -> Result<(), String> {
    let subject = rig.subject_at(long.name, long.arguments)?;
    let header = long.header;
    let config = LaunchConfig { grid_dim: header.grid.into(), block_dim: header.block.into(), shared_mem_bytes: header.shared };
    let outcome = subject.start(&rig.stream, config, |launch| _ = launch.timeout(timeout))?.wait().map_err(told)?;
    if outcome.is_completed() { Ok(()) } else { Err(format!("it should have completed: {outcome:?}")) }
}
