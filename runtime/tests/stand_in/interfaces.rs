//! What the interfaces promise to those who write against them.

use crate::Case;
use crate::world::{LONG, ONE, PTX, SHORT, World, command, start, until};
use cuinstr_runtime::cudarc::driver::DeviceRepr;
use cuinstr_runtime::worker::Worker;
use cuinstr_runtime::{Cancel, Cause, Completed, Error, InFlight, Limits, Outcome, Tier};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

pub(crate) const CASES: &[Case] = &[
    ("a stop does not pass for a success", results),
    ("a prepared launch can be kept, changed and started again", prepared),
    ("an argument of another size is refused, whatever its type", sizes),
    ("a launch can be stopped without blocking", stopping),
    ("a launch that does not leave is told of without blocking", stopping_in_vain),
    ("one function runs launches in this process and in a worker", everywhere),
];

/// Wakes a thread.
struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unparks(thread::current())));
    let mut future = pin!(future);
    let since = Instant::now();
    loop {
        if let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return answer;
        }
        assert!(since.elapsed() < LONG, "the future is not ready");
        thread::park_timeout(LONG);
    }
}

fn results() {
    let world = World::new();
    let stream = world.stream();
    let run = |name: &str| -> Result<Completed, Error> {
        let mut running = start(&world.module.kernel(name)?, &stream, |launch| {
            launch.limits(Limits::timeout(SHORT));
        })?;
        running.wait()?.into_result()
    };
    assert!(run("empty").is_ok());
    let error = run("spin").expect_err("it was stopped");
    assert!(
        matches!(&error, Error::Unfinished(outcome) if matches!(**outcome, Outcome::Stopped { why: Cause::Deadline, .. })),
        "{error:?}"
    );
    assert!(error.to_string().starts_with("kernel `spin` was stopped: its deadline"), "{error}");
}

fn prepared() {
    /// What a program keeps.
    struct Kept(cuinstr_runtime::Prepared);
    let mut kept = {
        let world = World::new();
        let stream = world.stream();
        let mut launch = world.kernel("work").prepare(&stream);
        launch.arg(1_000_u64).limits(Limits::timeout(LONG));
        Kept(launch)
    };
    for _ in 0..3 {
        // SAFETY: the stand-in's kernels touch no memory of ours.
        let mut running = unsafe { kept.0.start(ONE) }.expect("a launch");
        assert!(running.wait().expect("an outcome").is_completed());
    }
    kept.0.set_arg(0, u64::MAX).expect("the same type").timeout(SHORT);
    // SAFETY: as above.
    let outcome = unsafe { kept.0.start(ONE) }.expect("a launch").wait().expect("an outcome");
    assert!(matches!(outcome, Outcome::Stopped { why: Cause::Deadline, .. }), "{outcome:?}");
    assert!(kept.0.set_arg(0, 7_u32).is_err_and(|error| error.to_string().contains("argument 0 has 8 bytes, its new value 4")));
    assert!(kept.0.set_arg(1, 7_u64).is_err());
    kept.0.arg(7_u64);
    // SAFETY: as above.
    let error = unsafe { kept.0.start(ONE) }.expect_err("one argument too many");
    assert!(error.to_string().contains("takes 1 arguments, 2 were given"), "{error}");
}

/// As wide as a `half`.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Half(#[allow(dead_code)] u16);

// SAFETY: a plain value.
unsafe impl DeviceRepr for Half {}

#[derive(Clone, Copy)]
#[repr(C)]
struct Triple(#[allow(dead_code)] [f32; 3]);

// SAFETY: a plain value.
unsafe impl DeviceRepr for Triple {}

fn sizes() {
    let world = World::new();
    let stream = world.stream();
    let kernel = world.kernel("takes");
    let (half, triple) = (Half(1), Triple([0.0; 3]));
    let mut launch = kernel.on(&stream).expect("a launch");
    launch.arg(&half).arg(&triple).timeout(LONG);
    // SAFETY: the stand-in's kernels touch no memory of ours.
    assert!(unsafe { launch.start(ONE) }.expect("they fit").wait().expect("an outcome").is_completed());
    let mut launch = kernel.on(&stream).expect("a launch");
    launch.arg(&triple).arg(&half).timeout(LONG);
    // SAFETY: as above.
    let error = unsafe { launch.start(ONE) }.expect_err("they don't fit");
    assert!(error.to_string().contains("of 12 bytes, but the parameter has 2"), "{error}");
}

fn stopping() {
    let world = World::new();
    let stream = world.stream();
    let kernel = world.kernel("spin");
    let begin = || {
        let running = start(&kernel, &stream, |launch| {
            launch.until_cancelled();
        })
        .expect("a launch");
        until("it runs", || command("running") == 1);
        running
    };
    let outcome = block_on(begin().stop()).expect("an outcome");
    assert!(matches!(outcome, Outcome::Stopped { why: Cause::Cancelled, .. }), "{outcome:?}");
    drop(begin().stop());
    until("the one that was let go has stopped", || command("running") == 0);
}

fn stopping_in_vain() {
    let world = World::new();
    let stream = world.stream();
    let begin = |grace: Duration| {
        let running = start(&world.kernel("deaf"), &stream, |launch| {
            launch.until_cancelled().grace(grace);
        })
        .expect("a launch");
        until("it runs", || command("running") == 1);
        running
    };
    let since = Instant::now();
    let mut stopping = begin(LONG).stop();
    let waker = Waker::from(Arc::new(Unparks(thread::current())));
    assert!(Pin::new(&mut stopping).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(stopping);
    assert!(since.elapsed() < LONG, "it waited {:?}", since.elapsed());
    command("end");
    until("it has ended", || command("running") == 0);
    let error = block_on(begin(SHORT).stop()).expect_err("it does not leave");
    assert!(matches!(error, Error::Undrained { .. }), "{error:?}");
    command("end");
}

/// What becomes of a launch, wherever it runs.
fn stopped_by_another_thread<R: InFlight>(mut running: R) -> Outcome
where
    R::Canceller: 'static,
{
    let canceller = running.canceller();
    let thread = thread::spawn(move || {
        thread::sleep(SHORT);
        canceller.cancel().expect("a cancel");
    });
    let outcome = running.wait().expect("an outcome");
    thread.join().expect("no panic");
    outcome
}

fn everywhere() {
    let limits = Limits { grace: LONG, ..Limits::UNTIL_CANCELLED };
    let world = World::new();
    let stream = world.stream();
    let here = start(&world.kernel("spin"), &stream, |launch| {
        launch.limits(limits);
    });
    let worker = Worker::builder().spares(0).start().expect("a worker over the stand-in");
    let kernel = worker.load(PTX.as_bytes()).expect("a module").kernel("spin").expect("a kernel");
    let there = kernel.launch().limits(limits).start(ONE);
    for outcome in [stopped_by_another_thread(here.expect("a launch")), stopped_by_another_thread(there.expect("a launch"))] {
        assert!(matches!(outcome, Outcome::Stopped { why: Cause::Cancelled, tier: Tier::Leave, .. }), "{outcome:?}");
    }
    let work = worker.load(PTX.as_bytes()).expect("a module").kernel("work").expect("a kernel");
    assert!(
        work.launch()
            .arg(7_u32)
            .limits(limits)
            .start(ONE)
            .is_err_and(|error| error.to_string().contains("of 4 bytes, but the parameter has 8"))
    );
    let outcome = work.launch().arg(1_000_u64).limits(limits).start(ONE).expect("a launch").wait().expect("an outcome");
    assert!(outcome.is_completed());
    let outcome = block_on(work.launch().arg(u64::MAX).limits(limits).start(ONE).expect("a launch").stop()).expect("an outcome");
    assert!(matches!(outcome, Outcome::Stopped { why: Cause::Cancelled, .. }), "{outcome:?}");
}
