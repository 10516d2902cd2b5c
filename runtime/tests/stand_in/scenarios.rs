//! What the runtime does, in parts, each to be tried while a call of the driver fails or blocks.

use crate::guards::Blocks;
use crate::world::{LONG, World, command, guarded, start};
use cuinstr_runtime::cudarc::driver::{CudaStream, LaunchConfig};
use cuinstr_runtime::guard::Limits;
use cuinstr_runtime::{Cause, Clock, Error, FlagMemory, Kernel, Launch, Outcome, Prepared, Result, Running};
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A deadline that a test can wait for a thousand times.
const BRIEF: Duration = Duration::from_millis(4);
/// Blocks of a launch that is paused, and how long each takes.
const BLOCKS: u32 = 64;
const EACH: Duration = Duration::from_micros(200);
/// Time to leave for a launch whose end can not be seen.
const GRACE: Duration = Duration::from_millis(20);

type Ended = std::result::Result<(), Box<dyn std::error::Error>>;
pub(crate) type Scenario = fn(&mut Found) -> Ended;

pub(crate) const SCENARIOS: &[(&str, Scenario)] = &[
    ("launches", launches),
    ("pauses", pauses),
    ("guards", guards),
    #[cfg(feature = "snapshot")]
    ("snapshots", snapshots::snapshots),
];

/// What became of a scenario.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// What went wrong that should not.
    pub(crate) wrongs: Vec<String>,
    /// What failed.
    pub(crate) errors: Vec<String>,
    /// Words that blocks of a launch count in.
    counts: Vec<&'static [AtomicU32]>,
}

/// How a launch is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Completed,
    Stopped(Cause),
}

impl Found {
    pub(crate) fn of(scenario: Scenario) -> Self {
        let mut found = Self::default();
        if let Err(error) = scenario(&mut found) {
            found.errors.push(error.to_string());
        }
        found
    }

    /// Notes a wrong outcome. An error is none: the driver has failed.
    fn ended(&mut self, what: &str, wanted: End, outcome: Result<Outcome>) {
        match outcome {
            Ok(Outcome::Completed { .. }) if wanted == End::Completed => {}
            Ok(Outcome::Stopped { why, .. }) if wanted == End::Stopped(why) => {}
            Ok(Outcome::Faulted { .. }) => {}
            Ok(other) => self.wrongs.push(format!("{what}: {other:?}")),
            Err(error) => self.errors.push(format!("{what}: {error}")),
        }
    }

    /// What failed once is done again: a failure leaves things as they were.
    fn again<T, E: Display>(&mut self, what: &str, mut act: impl FnMut() -> std::result::Result<T, E>) -> std::result::Result<T, E> {
        act().or_else(|error| {
            self.errors.push(format!("{what}: {error}"));
            act()
        })
    }

    /// Words for the blocks of one more launch. Blocks of a launch that is given up may still count, so they are never given back.
    fn counts(&mut self, blocks: u32) -> &'static [AtomicU32] {
        let words: &'static [AtomicU32] = (0..blocks).map(|_| AtomicU32::new(0)).collect::<Vec<_>>().leak();
        self.counts.push(words);
        words
    }

    /// Compares what a pause says with what the blocks counted. Whether the launch is paused.
    fn paused(&mut self, outcome: &Outcome, counts: &[AtomicU32]) -> bool {
        let Outcome::Paused { done, left, .. } = *outcome else { return false };
        let counted = sum(counts);
        if done != counted || done + left != counts.len() as u64 {
            self.wrongs.push(format!("{counted} of {} blocks have run: {outcome:?}", counts.len()));
        }
        true
    }

    /// A launch has ended: each block ran once.
    fn completed(&mut self, what: &str, outcome: Result<Outcome>, counts: &[AtomicU32]) {
        let is_completed = outcome.as_ref().is_ok_and(Outcome::is_completed);
        if is_completed && counts.iter().any(|count| count.load(Ordering::Relaxed) != 1) {
            self.wrongs.push(format!("{what} has completed: {counts:?}"));
        }
        self.ended(what, End::Completed, outcome);
    }

    /// What blocks did that no launch told of: none ran twice. For when nothing runs any more.
    pub(crate) fn has_run_twice(&self) -> bool {
        self.counts.iter().any(|counts| counts.iter().any(|count| count.load(Ordering::Relaxed) > 1))
    }
}

fn sum(counts: &[AtomicU32]) -> u64 {
    counts.iter().map(|count| u64::from(count.load(Ordering::Relaxed))).sum()
}

/// What a launch came to in the end. One that can't be waited for is dropped, which stops it.
fn launched(kernel: &Kernel, stream: &Arc<CudaStream>, set: impl FnOnce(&mut Launch<'_>), is_cancelled: bool) -> Result<Outcome> {
    let mut running = start(kernel, stream, set)?;
    if is_cancelled {
        // A cancel that fails is made up for by the timer.
        let _ = running.cancel();
    }
    running.wait()
}

fn launches(found: &mut Found) -> Ended {
    let world = World::open()?;
    let [first, second] = [world.context.new_stream()?, world.context.new_stream()?];
    let (empty, spin, refuse) = (world.module.kernel("empty")?, world.module.kernel("spin")?, world.module.kernel("refuse")?);
    let timeout = |launch: &mut Launch<'_>| {
        launch.timeout(BRIEF);
    };
    let timed = |launch: &mut Launch<'_>| {
        launch.timeout(LONG).timed();
    };
    let by_host = |launch: &mut Launch<'_>| {
        launch.timeout(BRIEF).clock(Clock::Host).flag(FlagMemory::Pinned);
    };
    let watched = |launch: &mut Launch<'_>| {
        launch.timeout(LONG).watchdog();
    };
    let endless = |launch: &mut Launch<'_>| {
        launch.until_cancelled();
    };
    let (completed, stopped) = (End::Completed, End::Stopped(Cause::Deadline));
    found.ended("a timed launch", completed, launched(&empty, &first, timed, false));
    found.ended("a deadline", stopped, launched(&spin, &first, timeout, false));
    let _ = start(&refuse, &second, timeout);
    found.ended("a cancel", End::Stopped(Cause::Cancelled), launched(&spin, &second, endless, true));
    found.ended("a host's deadline", stopped, launched(&spin, &first, by_host, false));
    found.ended("a watched launch", completed, launched(&empty, &first, watched, false));
    drop(empty.unguarded(&second));
    for (name, wanted) in [("empty", completed), ("spin", stopped)] {
        let Some(guard) = guarded(&world.context, name, &second, &Limits::timeout(BRIEF))? else { continue };
        let outcome = guard.launched().and_then(|()| guard.wait_for(LONG));
        found.ended(&format!("a guarded {name}"), wanted, outcome.map(|outcome| outcome.expect("an outcome within the time")));
    }
    Ok(())
}

/// A launch of blocks that count at this address, to be paused.
fn blocks(kernel: &Kernel, stream: &Arc<CudaStream>, counts: u64) -> Prepared {
    let mut prepared = kernel.prepare(stream);
    prepared.arg(4_u64).arg(EACH.as_nanos() as u64).arg(counts).pausable().timeout(LONG);
    prepared
}

fn begin(prepared: &Prepared) -> Result<Running> {
    let config = LaunchConfig { grid_dim: (BLOCKS, 1, 1), block_dim: (32, 1, 1), shared_mem_bytes: 0 };
    // SAFETY: the words that blocks count in are never given back.
    unsafe { prepared.start(config) }
}

/// Blocks take their time again, and end.
fn calm() {
    command(&format!("blocks {}", EACH.as_nanos()));
    command("stuck 0");
}

/// Resumes a launch as long as it is paused, and pauses it again so often. One of which a part could not be launched, or not be marked, may be cancelled.
fn ended(
    found: &mut Found,
    (running, counts): (&mut Running, &[AtomicU32]),
    other: &Arc<CudaStream>,
    mut outcome: Result<Outcome>,
    mut pauses: u32,
    mut may_be_cancelled: bool,
) -> Result<()> {
    while let Ok(paused) = &outcome
        && found.paused(paused, counts)
    {
        if let Err(error) = running.resume(other) {
            found.errors.push(format!("a resume: {error}"));
            may_be_cancelled = !running.is_paused();
            if may_be_cancelled {
                pauses = 0;
            } else {
                running.resume(other)?;
            }
        }
        outcome = if pauses > 0 { found.again("a pause", || running.pause(LONG)) } else { running.wait() };
        pauses = pauses.saturating_sub(1);
    }
    match outcome {
        Ok(Outcome::Stopped { why: Cause::Cancelled, .. }) | Err(Error::Driver(_) | Error::OutOfMemory(_)) if may_be_cancelled => {}
        outcome => found.completed("a launch that was paused", outcome, counts),
    }
    Ok(())
}

/// A launch that is paused twice and resumed in another stream, and one with a block that does not end while the others are launched beside it.
fn pauses(found: &mut Found) -> Ended {
    calm();
    let world = World::open()?;
    let [home, other] = [world.context.new_stream()?, world.context.new_stream()?];
    let kernel = world.module.kernel("blocks")?;
    let counts = found.counts(BLOCKS);
    let mut running = begin(&blocks(&kernel, &home, counts.as_ptr().expose_provenance() as u64))?;
    let outcome = found.again("a pause", || running.pause(LONG));
    ended(found, (&mut running, counts), &other, outcome, 1, false)?;
    drop(running);
    let counts = found.counts(BLOCKS);
    command("stuck 1");
    let mut running = begin(&blocks(&kernel, &home, counts.as_ptr().expose_provenance() as u64))?;
    while sum(counts) == 0 && command("running") > 0 {
        std::thread::yield_now();
    }
    let asked = found.again("a pause", || match running.pause(BRIEF) {
        Err(Error::NotPaused { .. }) => Ok(None),
        paused => paused.map(Some),
    });
    let gone_on = if matches!(asked, Ok(None)) { running.go_on() } else { Ok(()) };
    calm();
    let outcome = match asked {
        Ok(None) => running.wait(),
        Ok(Some(outcome)) => Ok(outcome),
        Err(error) => Err(error),
    };
    ended(found, (&mut running, counts), &other, outcome, 0, gone_on.is_err())?;
    Ok(gone_on?)
}

/// A host's own launch that is paused and resumed in another stream.
fn guards(found: &mut Found) -> Ended {
    calm();
    let context = cuinstr_runtime::open(0)?;
    let [home, other] = [context.new_stream()?, context.new_stream()?];
    let counts = found.counts(BLOCKS);
    let host = Blocks::new(&context, counts.as_ptr().expose_provenance() as u64, [BLOCKS, 1, 1])?;
    let [home_handle, other_handle] = [&home, &other].map(|stream| stream.cu_stream().expose_provenance());
    let attached = host.attach()?;
    let limits = Limits { grace: GRACE, ..Limits::timeout(LONG) };
    // SAFETY: streams and module live as long as the context.
    let guard = found.again("a guard", || unsafe { attached.arm_pausable(home_handle, &limits, host.grid) })?;
    host.launch(&home)?;
    guard.launched()?;
    let outcome = found.again("a pause", || guard.pause(LONG))?;
    if found.paused(&outcome, counts) {
        // SAFETY: as above.
        found.again("a guard's resume", || unsafe { guard.resume(other_handle) })?;
        host.launch(&other)?;
        guard.launched()?;
        let outcome = guard.wait_for(LONG).map(|outcome| outcome.expect("an outcome within the time"));
        found.completed("a guard's launch", outcome, counts);
    }
    Ok(())
}

#[cfg(feature = "snapshot")]
mod snapshots {
    use super::{BLOCKS, Ended, Found, begin, blocks, calm};
    use crate::world::{LONG, PTX};
    use cuinstr_runtime::Outcome;
    use cuinstr_runtime::cudarc::driver::result;
    use cuinstr_runtime::snapshot::Ledger;

    /// A ledger, whose memory is given back with it.
    struct Own(Ledger);

    impl Drop for Own {
        fn drop(&mut self) {
            let [memory, ..] = self.0.names();
            for name in memory {
                // SAFETY: what used it is over, or its context is lost. What fails once is done again.
                let _ = unsafe { self.0.free(&name).or_else(|_| self.0.free(&name)) };
            }
        }
    }

    fn read(ledger: &Ledger, name: &str) -> std::result::Result<Vec<u8>, Box<dyn std::error::Error>> {
        let memory = ledger.memory(name)?;
        let mut bytes = vec![0; memory.bytes];
        // SAFETY: the memory has as many bytes.
        unsafe { result::memcpy_dtoh_sync(&mut bytes, memory.address)? };
        Ok(bytes)
    }

    /// Memory, a module and a paused launch are saved and restored, and the launch goes on.
    pub(super) fn snapshots(found: &mut Found) -> Ended {
        calm();
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("snapshot");
        let context = cuinstr_runtime::open(0)?;
        let own = Own(Ledger::new(&context)?);
        let ledger = &own.0;
        let memory = found.again("memory", || ledger.allocate("memory", 300_000))?;
        let counts = found.again("memory", || ledger.allocate("counts", 4 * BLOCKS as usize))?;
        let pattern: Vec<u8> = (0..memory.bytes).map(|at| (at % 251) as u8).collect();
        // SAFETY: the memory has as many bytes.
        unsafe { result::memcpy_htod_sync(memory.address, &pattern)? };
        let module = found.again("a module", || ledger.load("kernels", PTX.as_bytes()))?;
        let stream = found.again("a stream", || ledger.stream("main"))?;
        let mut running = begin(&blocks(&module.kernel("blocks")?, &stream, counts.address))?;
        let outcome = found.again("a pause", || running.pause(LONG))?;
        let is_paused = matches!(outcome, Outcome::Paused { .. });
        if is_paused {
            found.again("a paused launch of a ledger", || ledger.put_paused("long", &mut running))?;
        }
        drop(running);
        if let Err(error) = ledger.save(&path, LONG) {
            found.errors.push(format!("a snapshot: {error}"));
            if std::fs::read_dir(folder.path())?.count() > 0 {
                found.wrongs.push("a snapshot that failed has left a file".to_owned());
            }
            ledger.save(&path, LONG)?;
        }
        drop(module);
        drop(own);
        let own = Own(found.again("a restored ledger", || Ledger::restore(&context, &path))?);
        let ledger = &own.0;
        if read(ledger, "memory")? != pattern {
            found.wrongs.push("memory has other contents than before".to_owned());
        }
        if is_paused {
            let remainder = ledger.take_paused("long")?;
            // SAFETY: its arguments lead to the ledger's memory.
            let mut running = unsafe { remainder.start() }?;
            let outcome = running.wait();
            let is_completed = outcome.as_ref().is_ok_and(Outcome::is_completed);
            found.ended("what was left", super::End::Completed, outcome);
            if is_completed && read(ledger, "counts")? != [1, 0, 0, 0].repeat(BLOCKS as usize) {
                found.wrongs.push("not each block ran once".to_owned());
            }
        }
        Ok(())
    }
}
