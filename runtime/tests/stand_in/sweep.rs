//! Each call of the driver that the runtime makes fails once, loses the context once, and blocks once, in turn. Whatever happens, nothing hangs, no
//! outcome is wrong, and nothing is left behind.

use crate::world::{LONG, World, command, guarded, start, until};
use cuinstr_runtime::cudarc::driver::CudaStream;
use cuinstr_runtime::guard::Limits;
use cuinstr_runtime::{Cause, Clock, FlagMemory, Kernel, Launch, Outcome, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A deadline that a test can wait for a thousand times.
const BRIEF: Duration = Duration::from_millis(4);
/// For how long a call blocks.
const BLOCKED: Duration = Duration::from_millis(10);
/// How many calls of one name are swept, the first ones; all of them if `CUINSTR_SWEEP` is set.
const CALLS: u64 = 8;

/// Calls of cudarc's that leave a context behind when they fail.
const KEPT_BY_CUDARC: &[&str] = &["cuDeviceGetAttribute", "cuDevicePrimaryCtxRelease_v2"];

/// How a launch is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Completed,
    Stopped(Cause),
}

/// A wrong outcome, if it is one. An error is none: the driver has failed.
fn wrong(what: &str, wanted: End, outcome: &Result<Outcome>) -> Option<String> {
    let is_right = match outcome {
        Ok(Outcome::Completed { .. }) => wanted == End::Completed,
        Ok(Outcome::Stopped { why, .. }) => wanted == End::Stopped(*why),
        Ok(Outcome::Faulted { .. } | Outcome::Paused { .. }) | Err(_) => true,
    };
    (!is_right).then(|| format!("{what}: {outcome:?}"))
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

/// One of each thing that the runtime does. Answers what went wrong that should not, and what failed.
fn scenario() -> (Vec<String>, Vec<String>) {
    let (mut wrongs, mut errors) = (Vec::new(), Vec::new());
    let done = parts(&mut |what, wanted, outcome| {
        wrongs.extend(wrong(what, wanted, &outcome));
        errors.extend(outcome.err().map(|error| format!("{what}: {error}")));
    });
    errors.extend(done.err().map(|error| error.to_string()));
    (wrongs, errors)
}

fn parts(note: &mut dyn FnMut(&str, End, Result<Outcome>)) -> std::result::Result<(), Box<dyn std::error::Error>> {
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
    note("a timed launch", completed, launched(&empty, &first, timed, false));
    note("a deadline", stopped, launched(&spin, &first, timeout, false));
    let _ = start(&refuse, &second, timeout);
    note("a cancel", End::Stopped(Cause::Cancelled), launched(&spin, &second, endless, true));
    note("a host's deadline", stopped, launched(&spin, &first, by_host, false));
    note("a watched launch", completed, launched(&empty, &first, watched, false));
    drop(empty.unguarded(&second));
    for (name, wanted) in [("empty", completed), ("spin", stopped)] {
        let Some(guard) = guarded(&world.context, name, &second, &Limits::timeout(BRIEF))? else { continue };
        let outcome = guard.launched().and_then(|()| guard.wait_for(LONG));
        note(&format!("a guarded {name}"), wanted, outcome.map(|outcome| outcome.expect("an outcome within the time")));
    }
    Ok(())
}

/// Nothing runs, and no context is left with what belongs to it.
fn is_clean() -> bool {
    command("running") == 0 && command("live contexts") == 0 && command("live device") == 0 && command("live pinned") == 0
}

fn sound(after: &str) {
    let (wrongs, errors) = scenario();
    assert!(wrongs.is_empty() && errors.is_empty(), "{after}: {wrongs:#?} {errors:#?}");
    until(&format!("{after}: all is given back"), is_clean);
}

/// The names of the calls that the scenario makes, one a line.
pub(crate) fn names() {
    sound("nothing failed");
    for name in cuinstr_stand_in::client::names() {
        println!("{name}");
    }
}

pub(crate) fn sweep(name: &str) {
    sound("nothing failed");
    let before = command(&format!("calls {name}"));
    sound("nothing failed");
    let count = u64::try_from(command(&format!("calls {name}")) - before).expect("it counts up");
    let most = if std::env::var_os("CUINSTR_SWEEP").is_some() { count } else { count.min(CALLS) };
    for call in 1..=most {
        for rule in [format!("fail {name} {call} 2"), format!("lose {name} {call} 719"), format!("block {name} {call}")] {
            command(&rule);
            let is_over = AtomicBool::new(false);
            let (wrongs, errors) = thread::scope(|scope| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        if command("blocked") > 0 {
                            thread::sleep(BLOCKED);
                            command("release");
                        }
                        thread::sleep(BLOCKED / 10);
                    }
                });
                let found = scenario();
                is_over.store(true, Ordering::Relaxed);
                found
            });
            command("forget");
            command("release");
            assert!(wrongs.is_empty(), "{rule}: {wrongs:#?}");
            assert!(errors.is_empty() || !rule.starts_with("block"), "{rule}: {errors:#?}");
            // A module of a lost context stays loaded on purpose, and cudarc keeps contexts that it could not make or give back.
            if rule.starts_with("lose") || KEPT_BY_CUDARC.contains(&name) {
                until(&format!("{rule}: nothing runs"), || command("running") == 0);
                command("reset");
            }
            until(&format!("{rule}: all is given back"), is_clean);
        }
        sound(&format!("after call {call} of {name} had failed"));
    }
}
