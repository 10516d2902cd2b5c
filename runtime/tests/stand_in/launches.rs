//! What becomes of launches, of those that the driver refuses too.

use crate::Case;
use crate::world::{LONG, SHORT, World, command, start, until};
use cuinstr_runtime::{Cause, Clock, Error, Launch, Outcome, Tier};
use std::thread;
use std::time::Instant;

pub(crate) const CASES: &[Case] = &[
    ("a launch completes, is stopped by its deadline, and is cancelled", ordinary),
    ("a fault ends the context, and later calls say so", fault),
    ("a refused launch leaves the launch in flight what it needs", refused),
    ("a refused launch does not keep modules from being loaded", refused_alone),
    ("a launch whose end can't be marked is stopped, and the next one is right", unmarked),
    ("a call that a full stream blocks keeps no other launch from its deadline", full_stream),
    ("a launch that is not to wait does not wait for a full stream either", busy),
    ("a stop whose record can't be read yet spoils no later launch's", slow_record),
    ("a stop is told though copies keep its record", told_without_record),
    ("a panic in a source of lines costs the lines", panicking_sources),
    ("a launch makes the calls that it needs", calls),
];

pub(crate) fn long(launch: &mut Launch<'_>) {
    launch.timeout(LONG);
}

fn endless(launch: &mut Launch<'_>) {
    launch.until_cancelled();
}

fn ordinary() {
    let world = World::new();
    let stream = world.stream();
    let outcome = start(&world.kernel("empty"), &stream, long);
    assert!(outcome.expect("a launch").wait().expect("an outcome").is_completed());
    let stopped = start(&world.kernel("spin"), &stream, |launch| {
        launch.timeout(SHORT);
    });
    let stopped = stopped.expect("a launch").wait().expect("an outcome");
    let Outcome::Stopped { why: Cause::Deadline, tier: Tier::Leave, latency, report } = stopped else { panic!("{stopped:?}") };
    assert!(latency < LONG && report.threads == 64 && report.to_string().contains("spin"), "{latency:?} {report}");
    let mut cancelled = start(&world.kernel("spin"), &stream, endless).expect("a launch");
    until("it runs", || command("running") == 1);
    cancelled.cancel().expect("a cancel");
    let cancelled = cancelled.wait().expect("an outcome");
    assert!(matches!(cancelled, Outcome::Stopped { why: Cause::Cancelled, .. }), "{cancelled:?}");
}

fn fault() {
    let world = World::new();
    let stream = world.stream();
    let (kernel, other) = (world.kernel("fault"), world.kernel("empty"));
    let outcome = start(&kernel, &stream, long).expect("a launch").wait().expect("an outcome");
    assert!(matches!(outcome, Outcome::Faulted { .. }), "{outcome:?}");
    let refused = start(&other, &stream, long).expect_err("the context is lost");
    assert!(matches!(&refused, Error::Poisoned(poison) if poison.kernel == "fault"), "{refused:?}");
}

fn refused() {
    let world = World::new();
    let [first, second, third] = [world.stream(), world.stream(), world.stream()];
    let mut running = start(&world.kernel("spin"), &first, endless).expect("a launch");
    until("it runs", || command("running") == 1);
    let error = start(&world.kernel("refuse"), &second, long).expect_err("the driver refuses it");
    assert!(matches!(error, Error::Arguments { .. }), "{error:?}");
    let mut next = start(&world.kernel("empty"), &third, long).expect("a launch");
    assert_eq!(next.wait_for(SHORT).expect("no error"), None, "it did not wait for the launch in flight");
    running.cancel().expect("a cancel");
    let stopped = running.wait().expect("an outcome");
    assert!(matches!(stopped, Outcome::Stopped { why: Cause::Cancelled, .. }), "{stopped:?}");
    assert!(next.wait().expect("an outcome").is_completed());
}

fn refused_alone() {
    let world = World::new();
    let stream = world.stream();
    for _ in 0..100 {
        start(&world.kernel("refuse"), &stream, endless).expect_err("the driver refuses it");
    }
    let _other = World::new();
    assert!(command("live pinned") < 200_000, "each refusal takes memory: {}", command("live pinned"));
}

fn unmarked() {
    let world = World::new();
    let [first, second] = [world.stream(), world.stream()];
    let kernel = world.kernel("spin");
    command("fail cuEventRecord 1 2");
    let error = start(&kernel, &first, endless).expect_err("no memory for the event");
    assert!(matches!(error, Error::OutOfMemory(_)), "{error:?}");
    until("it is stopped", || command("begun") == 1 && command("running") == 0);
    let stopped = start(&kernel, &second, |launch| {
        launch.timeout(SHORT);
    });
    let stopped = stopped.expect("a launch").wait().expect("an outcome");
    assert!(matches!(stopped, Outcome::Stopped { why: Cause::Deadline, .. }), "{stopped:?}");
}

fn full_stream() {
    let (world, other) = (World::new(), World::new());
    let [first, second] = [world.stream(), other.stream()];
    let kernel = world.kernel("work_less");
    command("block cuEventRecord 1");
    let blocked = thread::spawn(move || {
        start(&kernel, &first, |launch| {
            launch.timeout(SHORT);
        })
        .expect("a launch")
        .wait()
        .expect("an outcome")
    });
    until("a call is blocked", || command("blocked") == 1);
    let running = start(&other.kernel("spin"), &second, |launch| {
        launch.timeout(SHORT * 3).clock(Clock::Host);
    })
    .expect("a launch");
    // Nobody waits: the timer alone stops it.
    until("it is stopped by the host's clock", || command("begun") == 2 && command("running") == 0);
    command("release");
    assert!(blocked.join().expect("no panic").is_completed());
    drop(running);
}

fn busy() {
    let world = World::new();
    let [first, second] = [world.stream(), world.stream()];
    let kernel = world.kernel("empty");
    command("block cuLaunchKernel 1");
    let blocked = {
        let kernel = kernel.clone();
        thread::spawn(move || start(&kernel, &first, long).expect("a launch").wait().expect("an outcome"))
    };
    until("a call is blocked", || command("blocked") == 1);
    let since = Instant::now();
    let error = start(&kernel, &second, |launch| {
        launch.timeout(LONG).or_busy();
    });
    command("release");
    assert!(since.elapsed() < LONG / 2 && matches!(error, Err(Error::Busy { .. })), "{error:?}");
    assert!(blocked.join().expect("no panic").is_completed());
}

fn slow_record() {
    let world = World::new();
    let stream = world.stream();
    let kernel = world.kernel("spin");
    let begin = || {
        start(&kernel, &stream, |launch| {
            launch.timeout(SHORT);
        })
        .expect("a launch")
    };
    // On a busy machine the second's record, too, may come too late: then its report has no count.
    let is_counted = (0..10).any(|_| {
        command("busy 1");
        let first = begin().wait();
        assert!(!matches!(first, Ok(Outcome::Completed { .. })), "the first: {first:?}");
        let before = command("begun");
        let mut second = begin();
        until("the second is stopped", || command("begun") == before + 1 && command("running") == 0);
        // What is still to be cleared is the first one's.
        command("busy 0");
        let second = second.wait().expect("an outcome");
        let Outcome::Stopped { report, .. } = second else { panic!("the second: {second:?}") };
        report.threads == 64
    });
    assert!(is_counted, "its record is cleared with the first one's");
}

fn told_without_record() {
    let world = World::new();
    let stream = world.stream();
    command("busy 1");
    let stopped = start(&world.kernel("spin"), &stream, |launch| {
        launch.timeout(SHORT);
    });
    let since = Instant::now();
    let stopped = stopped.expect("a launch").wait().expect("an outcome");
    assert!(matches!(stopped, Outcome::Stopped { why: Cause::Deadline, .. }), "{stopped:?}");
    assert!(since.elapsed() < LONG / 2);
    command("busy 0");
}

fn panicking_sources() {
    struct Panics;
    impl cuinstr_runtime::sources::Sources for Panics {
        fn source(&self, path: &str) -> Option<Vec<u8>> {
            panic!("the source of {path} can't be had")
        }
    }
    let world = World::with_sources(Panics);
    let stream = world.stream();
    let stopped = start(&world.kernel("spin"), &stream, |launch| {
        launch.timeout(SHORT);
    });
    let stopped = stopped.expect("a launch").wait().expect("an outcome");
    assert!(matches!(stopped, Outcome::Stopped { why: Cause::Deadline, .. }), "{stopped:?}");
}

/// The driver's calls that `run` makes in this process, but for those that only ask which context is current.
fn calls_of<T>(run: impl FnOnce() -> T) -> (T, Vec<String>) {
    let log = tempfile::NamedTempFile::new().expect("a file");
    command(&format!("log {}", log.path().display()));
    let result = run();
    command("log /dev/null");
    let names = std::fs::read_to_string(log.path()).expect("the calls");
    (result, names.lines().filter(|name| *name != "cuCtxGetCurrent").map(str::to_owned).collect())
}

fn calls() {
    let world = World::new();
    let stream = world.stream();
    let kernel = world.kernel("empty");
    let launch = || start(&kernel, &stream, long).expect("a launch");
    assert!(launch().wait().expect("an outcome").is_completed());
    // The control block knows all but the launch's number and start: these two words are written by themselves.
    let (mut alone, made) = calls_of(launch);
    assert_eq!(made, ["cuStreamIsCapturing", "cuStreamBatchMemOp_v2", "cuLaunchKernel", "cuEventRecord"]);
    assert!(alone.wait().expect("an outcome").is_completed());
    // A wait for what is over asks once.
    let mut over = launch();
    until("it is over", || stream.context().check_err().is_ok() && command("running") == 0 && command("begun") == 3);
    let (outcome, made) = calls_of(|| over.wait());
    assert!(outcome.expect("an outcome").is_completed());
    assert_eq!(made, ["cuEventQuery"]);
    // What is in flight in the stream is not asked about.
    command("hold 1");
    let first = launch();
    let (second, made) = calls_of(launch);
    command("hold 0");
    assert_eq!(made, ["cuStreamIsCapturing", "cuMemcpyHtoDAsync_v2", "cuLaunchKernel", "cuEventRecord"]);
    for mut running in [first, second] {
        assert!(running.wait().expect("an outcome").is_completed());
    }
}
