//! Launches that are paused and resumed: each block runs exactly once, whatever comes in between.

use crate::Case;
use crate::world::{LONG, SHORT, World, command, until};
use cuinstr_runtime::cudarc::driver::{CudaStream, DevicePtr, LaunchConfig, result, sys};
use cuinstr_runtime::{Cause, Error, Limits, Outcome, Prepared, Running};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const CASES: &[Case] = &[
    ("a pause keeps blocks from beginning, and a resume runs them", pause_and_resume),
    ("each block runs exactly once, whatever the grid, the instants and the order", exactly_once),
    ("what is queued behind a launch waits for all of its parts", held),
    ("a resume takes the arguments as they were, and refuses a stream that is being captured", arguments),
    ("copies behind a launch in the legacy default stream wait for all of its parts", copied),
    ("the streams of a paused launch can be let go, and wait for its next part", let_go),
    ("the next part runs behind the other stream that it is given, and both streams wait", other_stream),
    ("a timeout stands still while a launch is paused", timeout),
    ("a launch that is paused can be cancelled, dropped, and stopped by its instant", ends),
    ("a pause that comes too late changes nothing", late),
    ("what can't be paused is refused by name", refused),
    ("a block that does not end keeps the launch from being paused", not_paused),
    ("blocks that declined run beside those that do not end", go_on),
    ("where no block declined none is launched beside the others", go_on_with_all),
    ("blocks that declined of a later part run beside those that do not end", go_on_later),
    ("blocks of a later part that begin late run once beside those that declined", go_on_slowly),
    ("a resume that the driver refuses leaves the launch paused", refused_resume),
    ("a launch that waits behind a paused one keeps no resume waiting", behind),
    ("what comes behind the next part of a paused launch waits for that", behind_next),
    ("a launch may be paused more often than a word has bits", gates),
    ("a launch takes room for its blocks once", room),
    ("a launch that nobody may pause follows one that was paused", next_launch),
    ("launches that are paused one after the other share their streams", streams),
    ("a process may exit while a launch is paused", exit),
    ("a future is ready when its launch is paused", awaited),
];

/// A launch of `blocks`, and where each block counts.
pub(crate) struct Grid {
    pub(crate) prepared: Prepared,
    counts: Vec<AtomicU32>,
    config: LaunchConfig,
}

impl Grid {
    pub(crate) fn new(world: &World, stream: &Arc<CudaStream>, extents: (u32, u32, u32), slots: u64, each: Duration) -> Self {
        let counts: Vec<_> = (0..extents.0 * extents.1 * extents.2).map(|_| AtomicU32::new(0)).collect();
        let config = LaunchConfig { grid_dim: extents, block_dim: (32, 1, 1), shared_mem_bytes: 0 };
        let mut prepared = world.kernel("blocks").prepare(stream);
        let address = counts.as_ptr().expose_provenance() as u64;
        prepared.arg(slots).arg(each.as_nanos() as u64).arg(address).pausable().timeout(LONG);
        Self { prepared, counts, config }
    }

    pub(crate) fn start(&self) -> Running {
        // SAFETY: the stand-in's kernel counts in memory that lives as long as this.
        unsafe { self.prepared.start(self.config) }.expect("a launch")
    }

    pub(crate) fn counted(&self) -> Vec<u32> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    fn has_run(&self, times: u32) -> bool {
        self.counted().iter().all(|count| *count == times)
    }
}

/// How long a block takes. Grids have so many blocks that none ends by itself while a test looks.
const EACH: Duration = Duration::from_millis(2);
const GRID: (u32, u32, u32) = (40_000, 1, 1);

/// The blocks of all launches end at once from now on.
fn hurry() {
    command("blocks 0");
}

/// No block ends from now on.
fn linger() {
    command(&format!("blocks {}", u64::MAX));
}

/// Waits for the end of a launch of a [`Grid`] that need not take its time.
fn complete(running: &mut Running) {
    hurry();
    assert!(running.wait().expect("an outcome").is_completed());
}

fn paused(outcome: Outcome) -> (u64, u64) {
    match outcome {
        Outcome::Paused { done, left, .. } => (done, left),
        other => panic!("not paused: {other}"),
    }
}

fn pause_and_resume() {
    let world = World::new();
    let stream = world.stream();
    let grid = Grid::new(&world, &stream, (1000, 30, 2), 4, EACH);
    let mut running = grid.start();
    assert!(!running.is_paused());
    until("some blocks have run", || grid.counted().iter().sum::<u32>() > 8);
    let (done, left) = paused(running.pause(LONG).expect("an outcome"));
    assert_eq!((done + left, done), (60_000, u64::from(grid.counted().iter().sum::<u32>())));
    assert!(running.is_paused() && left > 0);
    // Pausing what is paused, and waiting for it, tell the same again.
    assert_eq!(paused(running.pause(LONG).expect("an outcome")), (done, left));
    assert_eq!(paused(running.wait().expect("an outcome")), (done, left));
    running.resume(&stream).expect("it goes on");
    assert!(matches!(running.resume(&stream), Err(Error::Order(_))), "what runs can't be resumed");
    complete(&mut running);
    assert!(grid.has_run(1));
}

fn exactly_once() {
    let world = World::new();
    let stream = world.stream();
    let cases = std::env::var("CUINSTR_SOAK").map_or(40, |count| count.parse().expect("a number"));
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let extents = (1_u32..40, 1_u32..5, 1_u32..4);
    let pauses = proptest::collection::vec(0_u64..3000, 0..12);
    runner
        .run(&(extents, 1_u64..24, 1_u64..400, pauses), |(extents, slots, each, pauses)| {
            let grid = Grid::new(&world, &stream, extents, slots, Duration::from_micros(each));
            let mut running = grid.start();
            for after in pauses {
                thread::sleep(Duration::from_micros(after));
                let outcome = running.pause(LONG).expect("an outcome");
                if outcome.is_completed() {
                    prop_assert!(grid.has_run(1), "{:?}", grid.counted());
                    return Ok(());
                }
                let (done, _) = paused(outcome);
                prop_assert_eq!(done, u64::from(grid.counted().iter().sum::<u32>()));
                running.resume(&stream).expect("it goes on");
            }
            prop_assert!(running.wait().expect("an outcome").is_completed());
            prop_assert!(grid.has_run(1), "{:?}", grid.counted());
            Ok(())
        })
        .expect("it holds");
}

fn is_reached(stream: &Arc<CudaStream>) -> bool {
    stream.record_event(None).expect("an event").is_complete()
}

fn held() {
    let world = World::new();
    let stream = world.stream();
    let grid = Grid::new(&world, &stream, GRID, 4, EACH);
    let mut running = grid.start();
    let behind = stream.record_event(None).expect("an event");
    let _ = paused(running.pause(LONG).expect("an outcome"));
    thread::sleep(SHORT);
    assert!(!behind.is_complete() && !is_reached(&stream));
    for _ in 0..3 {
        running.resume(&stream).expect("it goes on");
        let _ = paused(running.pause(LONG).expect("an outcome"));
        assert!(!behind.is_complete());
    }
    running.resume(&stream).expect("it goes on");
    complete(&mut running);
    until("what is behind it goes on", || behind.is_complete() && is_reached(&stream));
    assert!(grid.has_run(1));
}

fn arguments() {
    let world = World::new();
    let stream = world.stream();
    let mut grid = Grid::new(&world, &stream, GRID, 4, EACH);
    let mut running = grid.start();
    let before = paused(running.pause(LONG).expect("an outcome"));
    // The host changes the arguments for its next launch of the same kernel.
    grid.prepared.set_arg(0, 0_u64).and_then(|prepared| prepared.set_arg(2, 0_u64)).expect("it has these arguments");
    let captured = world.stream();
    captured.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).expect("a capture");
    assert!(matches!(running.resume(&captured), Err(Error::Capturing)));
    assert_eq!(paused(running.wait().expect("an outcome")), before);
    running.resume(&stream).expect("it goes on");
    complete(&mut running);
    assert!(grid.has_run(1), "blocks have changed what their own argument leads to, and each of them once");
}

fn copied() {
    let world = World::new();
    let stream = world.context.default_stream();
    let grid = Grid::new(&world, &stream, GRID, 4, EACH);
    let cell = stream.alloc_zeros::<u32>(1).expect("memory");
    let address = cell.device_ptr(&stream).0;
    stream.synchronize().expect("nothing runs");
    // SAFETY: device memory of the stand-in is the host's.
    let seen = || unsafe { std::ptr::with_exposed_provenance::<u32>(address as usize).read_volatile() };
    let mut running = grid.start();
    // SAFETY: the word lives until the end, and what is not pinned is read at once.
    let put = |value: u32| unsafe { result::memcpy_htod_async(address, &[value], stream.cu_stream()) }.expect("a copy");
    put(1);
    for value in [2, 3] {
        let _ = paused(running.pause(LONG).expect("an outcome"));
        put(value);
        thread::sleep(SHORT);
        assert_eq!(seen(), 0, "it was copied though blocks are left");
        running.resume(&stream).expect("it goes on");
    }
    complete(&mut running);
    until("all copies are made", || seen() == 3);
    assert!(grid.has_run(1));
}

fn let_go() {
    let world = World::new();
    let stream = world.stream();
    let grid = Grid::new(&world, &stream, GRID, 4, EACH);
    let mut running = grid.start();
    assert!(matches!(running.let_streams_go(), Err(Error::Order(_))), "it runs");
    for _ in 0..3 {
        let behind = stream.record_event(None).expect("an event");
        let before = paused(running.pause(LONG).expect("an outcome"));
        assert!(!behind.is_complete());
        running.let_streams_go().expect("it is paused");
        until("the stream goes on", || behind.is_complete() && is_reached(&stream));
        assert_eq!(paused(running.wait().expect("an outcome")), before, "no block ran");
        running.resume(&stream).expect("it goes on");
    }
    let behind = stream.record_event(None).expect("an event");
    let _ = paused(running.pause(LONG).expect("an outcome"));
    thread::sleep(SHORT);
    assert!(!behind.is_complete(), "the next part holds the stream as the first one did");
    running.resume(&stream).expect("it goes on");
    complete(&mut running);
    until("what is behind it goes on", || behind.is_complete());
    assert!(grid.has_run(1));
}

fn other_stream() {
    let world = World::new();
    let [first, second] = [world.stream(), world.stream()];
    let grid = Grid::new(&world, &first, GRID, 4, EACH);
    let mut running = grid.start();
    let _ = paused(running.pause(LONG).expect("an outcome"));
    running.resume(&second).expect("it goes on");
    let behind = second.record_event(None).expect("an event");
    let _ = paused(running.pause(LONG).expect("an outcome"));
    thread::sleep(SHORT);
    assert!(!behind.is_complete() && !is_reached(&first), "both wait for the next part");
    running.resume(&second).expect("a stream that waits is passed by");
    let _ = paused(running.pause(LONG).expect("an outcome"));
    running.resume(&first).expect("it goes on");
    complete(&mut running);
    until("both go on", || behind.is_complete() && is_reached(&first));
    assert!(grid.has_run(1));
}

/// A pause that counted would stop the second part at once. A timeout that began again with each part would stop none of them. Both bounds hold however
/// late this thread is: they rest on the least and the most that the kernel can have run.
fn timeout() {
    let world = World::new();
    let stream = world.stream();
    let (timeout, part) = (Duration::from_millis(400), Duration::from_millis(80));
    let mut grid = Grid::new(&world, &stream, (20_000, 1, 1), 1, EACH);
    grid.prepared.timeout(timeout);
    let begun = Instant::now();
    let mut since = begun;
    let mut running = grid.start();
    // The most that the kernel has run.
    let mut most = Duration::ZERO;
    let outcome = loop {
        thread::sleep(part);
        let outcome = running.pause(LONG).expect("an outcome");
        most += since.elapsed();
        if !matches!(outcome, Outcome::Paused { .. }) {
            break outcome;
        }
        assert!(begun.elapsed() < LONG, "each part begins the timeout again");
        thread::sleep(timeout);
        since = Instant::now();
        running.resume(&stream).expect("it goes on");
    };
    let Outcome::Stopped { why: Cause::Deadline, report, .. } = outcome else { panic!("{outcome:?}") };
    // Two clocks are compared.
    assert!(most + SHORT >= timeout, "it was stopped after {most:?}");
    assert!(report.to_string().contains("its deadline (400 ms) passed"), "{report}");
}

fn ends() {
    let world = World::new();
    let stream = world.stream();
    let start = |limits: Limits| {
        let mut grid = Grid::new(&world, &stream, GRID, 4, EACH);
        grid.prepared.limits(limits);
        let running = grid.start();
        (grid, running)
    };
    let (_grid, mut running) = start(Limits::timeout(LONG));
    let _ = paused(running.pause(LONG).expect("an outcome"));
    running.canceller().cancel().expect("it is told");
    let outcome = running.wait().expect("an outcome");
    assert!(matches!(outcome, Outcome::Stopped { why: Cause::Cancelled, .. }), "{outcome:?}");
    // On a busy machine the instant may come before the pause.
    let (_grid, mut running) = start(Limits { deadline: Some(Instant::now() + 10 * SHORT), ..Limits::UNTIL_CANCELLED });
    let outcome = loop {
        match running.pause(LONG).expect("an outcome") {
            Outcome::Paused { .. } => thread::sleep(SHORT),
            outcome => break outcome,
        }
    };
    assert!(matches!(outcome, Outcome::Stopped { why: Cause::Deadline, .. }), "{outcome:?}");
    let (_grid, mut running) = start(Limits::timeout(LONG));
    let _ = paused(running.pause(LONG).expect("an outcome"));
    drop(running);
    until("what is behind them goes on", || is_reached(&stream));
}

fn late() {
    let world = World::new();
    let stream = world.stream();
    let grid = Grid::new(&world, &stream, (4, 1, 1), 4, Duration::from_millis(10));
    let mut running = grid.start();
    until("all blocks have begun", || grid.has_run(1));
    assert!(running.pause(LONG).expect("an outcome").is_completed(), "no block was left to decline");
    let pauser = grid.start().pauser();
    pauser.pause().expect("it is over, and nobody minds");
    until("what is behind it goes on", || is_reached(&stream));
}

fn refused() {
    let world = World::new();
    let stream = world.stream();
    let why = |set: &dyn Fn(&mut Prepared)| {
        let mut grid = Grid::new(&world, &stream, (4, 1, 1), 4, EACH);
        set(&mut grid.prepared);
        // SAFETY: nothing is launched.
        unsafe { grid.prepared.start(grid.config) }.expect_err("it is refused").to_string()
    };
    assert!(why(&|prepared| _ = prepared.cooperative()).contains("cooperative"));
    assert!(why(&|prepared| _ = prepared.cluster([2, 1, 1])).contains("cluster"));
    let mut grid = Grid::new(&world, &stream, (4, 1, 1), 4, EACH);
    grid.config.grid_dim = (1 << 29, 1, 1);
    // SAFETY: nothing is launched.
    let error = unsafe { grid.prepared.start(grid.config) }.expect_err("it is refused");
    assert!(error.to_string().contains("2^28"), "{error}");
    let mut running = crate::world::start(&world.kernel("spin"), &stream, |launch| _ = launch.timeout(LONG)).expect("a launch");
    let error = running.pause(LONG).expect_err("it is not pausable");
    assert!(matches!(error, Error::NotPausable { .. }), "{error}");
    assert!(matches!(running.resume(&stream), Err(Error::Order(_))));
}

fn not_paused() {
    let world = World::new();
    let stream = world.stream();
    let grid = Grid::new(&world, &stream, (8, 1, 1), 2, EACH);
    linger();
    let mut running = grid.start();
    until("blocks run", || grid.counted().iter().sum::<u32>() == 2);
    let error = running.pause(SHORT).expect_err("blocks run for longer");
    assert!(matches!(&error, Error::NotPaused { kernel, after } if kernel == "blocks" && *after >= SHORT), "{error}");
    hurry();
    let (_, left) = paused(running.wait().expect("an outcome"));
    assert_eq!(left, 6);
    running.resume(&stream).expect("it goes on");
    assert!(running.wait().expect("an outcome").is_completed() && grid.has_run(1));
}

fn go_on() {
    let world = World::new();
    let stream = world.stream();
    let grid = Grid::new(&world, &stream, (60, 1, 1), 3, EACH);
    linger();
    let mut running = grid.start();
    until("blocks run", || grid.counted().iter().sum::<u32>() == 3);
    let behind = stream.record_event(None).expect("an event");
    assert!(matches!(running.pause(Duration::from_millis(5)), Err(Error::NotPaused { .. })));
    running.go_on().expect("the others are launched");
    running.go_on().expect("and not twice");
    // Those that ran before end at once, the others take their time.
    command(&format!("blocks {}", EACH.as_nanos()));
    while let Outcome::Paused { .. } = running.wait().expect("an outcome") {
        assert!(!behind.is_complete());
        running.resume(&stream).expect("it goes on");
    }
    until("what is behind it goes on", || behind.is_complete());
    assert!(grid.has_run(1), "{:?}", grid.counted());
}

fn go_on_with_all() {
    let world = World::new();
    let stream = world.stream();
    let grid = Grid::new(&world, &stream, (40, 1, 1), 40, EACH);
    linger();
    let mut running = grid.start();
    until("all blocks run", || grid.has_run(1));
    assert!(matches!(running.pause(Duration::from_millis(5)), Err(Error::NotPaused { .. })));
    let before = command("calls cuLaunchKernel");
    running.go_on().expect("nothing is to do");
    assert_eq!(command("calls cuLaunchKernel"), before);
    complete(&mut running);
    assert!(grid.has_run(1));
}

fn go_on_later() {
    let world = World::new();
    let stream = world.stream();
    let grid = Grid::new(&world, &stream, (600, 1, 1), 3, EACH);
    let counted = || u64::from(grid.counted().iter().sum::<u32>());
    let mut running = grid.start();
    let (done, _) = paused(running.pause(LONG).expect("an outcome"));
    command("stuck 1");
    running.resume(&stream).expect("it goes on");
    until("others run beside the one that does not end", || counted() > done + 3);
    assert!(matches!(running.pause(Duration::from_millis(20)), Err(Error::NotPaused { .. })));
    running.go_on().expect("the others are launched");
    // One of them does not end either, but all begin.
    command("blocks 1000");
    until("all others run", || counted() == 600);
    command("stuck 0");
    while let Outcome::Paused { .. } = running.wait().expect("an outcome") {
        running.resume(&stream).expect("it goes on");
    }
    assert!(grid.has_run(1), "{:?}", grid.counted());
}

/// Blocks begin slowly, so that some of the later part have not begun when those that declined are launched: blocks that ran before, and blocks that are left.
fn go_on_slowly() {
    let world = World::new();
    let stream = world.stream();
    let grid = Grid::new(&world, &stream, (100, 1, 1), 3, EACH);
    let counted = || grid.counted().iter().sum::<u32>();
    let mut running = grid.start();
    until("some have run", || counted() > 20);
    paused(running.pause(LONG).expect("an outcome"));
    let done = counted();
    command("pace 1000000");
    running.resume(&stream).expect("it goes on");
    until("others run", || counted() > done + 3);
    assert!(matches!(running.pause(Duration::from_millis(20)), Err(Error::NotPaused { .. })));
    running.go_on().expect("the others are launched");
    while let Outcome::Paused { .. } = running.wait().expect("an outcome") {
        running.resume(&stream).expect("it goes on");
    }
    command("pace 0");
    assert!(grid.has_run(1), "{:?}", grid.counted());
}

fn refused_resume() {
    let world = World::new();
    let stream = world.stream();
    let grid = Grid::new(&world, &stream, GRID, 4, EACH);
    let mut running = grid.start();
    let before = paused(running.pause(LONG).expect("an outcome"));
    for call in ["cuLaunchKernel", "cuMemcpyHtoDAsync_v2"] {
        command(&format!("fail {call} 1 2"));
        if running.resume(&stream).is_ok() {
            // The stream for it was made before.
            command("forget");
            let _ = running.pause(LONG).expect("an outcome");
            continue;
        }
        assert_eq!(paused(running.wait().expect("an outcome")), before, "{call}");
    }
    running.resume(&stream).expect("it goes on");
    complete(&mut running);
    assert!(grid.has_run(1));
}

fn behind() {
    let world = World::new();
    let [first, second] = [world.stream(), world.stream()];
    let grid = Grid::new(&world, &first, GRID, 4, EACH);
    let mut running = grid.start();
    let _ = paused(running.pause(LONG).expect("an outcome"));
    // One in the stream that waits, and two in another: in front of it, and behind it.
    let start = |stream| crate::world::start(&world.kernel("work_less"), stream, |launch| _ = launch.timeout(LONG)).expect("a launch");
    let mut urgent = start(&second);
    assert!(urgent.wait().expect("an outcome").is_completed(), "what does not wait behind it runs");
    let mut queued = [start(&first), start(&second)];
    thread::sleep(SHORT);
    running.resume(&first).expect("it goes on");
    complete(&mut running);
    assert!(grid.has_run(1));
    for launch in &mut queued {
        assert!(launch.wait().expect("an outcome").is_completed());
    }
}

fn behind_next() {
    let world = World::new();
    let [first, second] = [world.stream(), world.stream()];
    let grid = Grid::new(&world, &first, GRID, 4, EACH);
    let mut running = grid.start();
    let _ = paused(running.pause(LONG).expect("an outcome"));
    let start = || crate::world::start(&world.kernel("work_less"), &second, |launch| _ = launch.timeout(LONG)).expect("a launch");
    // Another one has used the control block meanwhile.
    assert!(start().wait().expect("an outcome").is_completed());
    running.resume(&first).expect("it goes on");
    let mut next = start();
    assert_eq!(next.wait_for(SHORT).expect("no error"), None, "both use one control block");
    complete(&mut running);
    assert!(grid.has_run(1) && next.wait().expect("an outcome").is_completed());
}

fn gates() {
    let world = World::new();
    let stream = world.stream();
    let grid = Grid::new(&world, &stream, (400, 1, 1), 4, EACH);
    for round in 1..=70 {
        command(&format!("blocks {}", EACH.as_nanos()));
        let mut running = grid.start();
        let _ = paused(running.pause(LONG).expect("an outcome"));
        let behind = stream.record_event(None).expect("an event");
        assert!(!behind.is_complete(), "round {round}: the gate is open");
        running.resume(&stream).expect("it goes on");
        complete(&mut running);
        assert!(grid.has_run(round));
        until("the gate opens", || behind.is_complete());
    }
}

fn room() {
    let world = World::new();
    let stream = world.stream();
    let live = || [command("live device"), command("live pinned")];
    let grid = Grid::new(&world, &stream, GRID, 4, Duration::ZERO);
    let before = live();
    complete(&mut grid.start());
    // A bit for each of 40,000 blocks, in a power of two of words: four times on the device, once on the host.
    assert_eq!(live(), [before[0] + 16 * 2048, before[1] + 4 * 2048]);
    // Until its streams have nothing left of it, another one takes another place.
    for _ in 0..20 {
        stream.synchronize().expect("the stream's end");
        complete(&mut grid.start());
    }
    assert!(live()[0] <= before[0] + 2 * 16 * 2048);
}

fn next_launch() {
    let world = World::new();
    let stream = world.stream();
    let mut grid = Grid::new(&world, &stream, GRID, 4, EACH);
    let mut running = grid.start();
    let _ = paused(running.pause(LONG).expect("an outcome"));
    running.resume(&stream).expect("it goes on");
    complete(&mut running);
    let address = grid.counts.as_ptr().expose_provenance() as u64;
    let mut plain = world.kernel("blocks").prepare(&stream);
    plain.arg(4_u64).arg(1000_u64).arg(address).timeout(LONG);
    // SAFETY: as in `Grid::start`.
    assert!(unsafe { plain.start(grid.config) }.expect("a launch").wait().expect("an outcome").is_completed());
    assert!(grid.has_run(2));
    grid.prepared.timeout(LONG);
    assert!(grid.start().wait().expect("an outcome").is_completed() && grid.has_run(3));
}

fn streams() {
    let world = World::new();
    let stream = world.stream();
    let made = || command("calls cuStreamCreateWithPriority");
    let mut before = 0;
    for turn in 0..5 {
        command(&format!("blocks {}", EACH.as_nanos()));
        let grid = Grid::new(&world, &stream, GRID, 4, EACH);
        let mut running = grid.start();
        if turn == 0 {
            before = made();
        }
        let _ = paused(running.pause(LONG).expect("an outcome"));
        running.resume(&stream).expect("it goes on");
        complete(&mut running);
    }
    // The driver may have a new stream wait for those that a gate holds.
    assert_eq!(made(), before);
}

fn exit() {
    let world = World::new();
    let stream = world.stream();
    let grid = Grid::new(&world, &stream, GRID, 4, EACH);
    let mut running = grid.start();
    let _ = paused(running.pause(LONG).expect("an outcome"));
    assert!(!is_reached(&stream));
    // Nothing is dropped, and whatever the process runs at its end must not wait for the launch.
    std::process::exit(0);
}

fn awaited() {
    let world = World::new();
    let stream = world.stream();
    let grid = Grid::new(&world, &stream, GRID, 4, EACH);
    let mut running = grid.start();
    running.pauser().pause().expect("it is asked");
    let woken = crate::interfaces::block_on(&mut running).expect("an outcome");
    let _ = paused(woken);
    running.resume(&stream).expect("it goes on");
    hurry();
    assert!(crate::interfaces::block_on(&mut running).expect("an outcome").is_completed() && grid.has_run(1));
}
