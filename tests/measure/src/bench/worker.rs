//! The third tier: a worker process is killed, and a warm spare takes over.

use super::figure::{Row, Target};
use super::latency::LONG;
use super::rig::{Rig, grid, told};
use cuinstr_harness::variant;
use cuinstr_runtime::worker::{RemoteBuffer, RemoteKernel, Restore, Worker};
use cuinstr_runtime::{Outcome, Tier};
use std::time::{Duration, Instant};

/// Longest that spares take to be ready.
const WARM: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_millis(5);
const GRACE: Duration = Duration::from_millis(5);
const THREADS: usize = 32;

/// A sound kernel in a worker, and the buffer of its results.
struct Sound {
    kernel: RemoteKernel,
    steps: RemoteBuffer,
}

impl Sound {
    fn result(&self) -> Result<(), String> {
        let mut launch = self.kernel.launch();
        launch.arg(&self.steps).arg(1_u32).timeout(LONG);
        let outcome = launch.start(grid(1, 32)).and_then(|mut running| running.wait()).map_err(told)?;
        let steps = self.steps.read::<u32>().map_err(told)?;
        if outcome.is_completed() && steps == [1; THREADS] {
            return Ok(());
        }
        Err(format!("the next kernel's result is {steps:?}, and its outcome {outcome:?}"))
    }
}

fn kernel(rig: &Rig, worker: &Worker, name: &str) -> Result<RemoteKernel, String> {
    let (image, entry) = rig.image(name, variant::DEFAULT)?;
    let module = worker.load(&image).map_err(told)?;
    module.keep_in_spares().and_then(|()| module.kernel(entry)).map_err(told)
}

/// From the kill to the next result on the warm spare.
pub(super) fn next_result(rig: &Rig) -> Result<Vec<Row>, String> {
    let worker = Worker::builder().spares(2).start().map_err(told)?;
    let steps = worker.zeros(THREADS * size_of::<u32>(), Restore::Blank).map_err(told)?;
    let sound = Sound { kernel: kernel(rig, &worker, "probe/count_steps")?, steps };
    let hang = kernel(rig, &worker, "hang/grid_sync")?;
    let phase = worker.zeros(512 * size_of::<u32>(), Restore::Blank).map_err(told)?;
    let ready = worker.zeros(size_of::<u32>(), Restore::Blank).map_err(told)?;
    let (mut killed, mut next, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rig.samples(20).max(5) {
        if !worker.warm(WARM).map_err(told)? {
            return Err(format!("the spares are not ready after {WARM:?}"));
        }
        sound.result()?;
        let since = Instant::now();
        sound.result()?;
        alone.push(since.elapsed());

        let mut launch = hang.launch();
        launch.arg(&phase).arg(&ready).timeout(TIMEOUT).grace(GRACE).cooperative();
        let outcome = launch.start(grid(8, 64)).and_then(|mut running| running.wait()).map_err(told)?;
        let since = Instant::now();
        let Outcome::Stopped { tier: Tier::Worker, latency, .. } = outcome else {
            return Err(format!("a hang that leaves no poll should have cost its worker: {outcome:?}"));
        };
        sound.result()?;
        next.push(since.elapsed());
        killed.push(latency.saturating_sub(GRACE));
    }
    let note = "the kernel's module is kept in the spares, its buffers are blank";
    Ok(vec![
        Row::micros("the worker is killed, to the next result on the warm spare", &next).target(Target::median(5000.0)).note(note),
        Row::micros("the end of the grace time until the worker is killed", &killed),
        Row::micros("a result of a worker when nothing was killed", &alone),
    ])
}
