//! The device's clock against the host's, and the thread that watches the time.

use crate::Case;
use crate::launches::long;
use crate::world::{LONG, SHORT, World, command, start, until};
use cuinstr_runtime::{Cause, Clock, Outcome, Running};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const CASES: &[Case] = &[
    ("a device's clock that is slower than the host's stops nothing early", slower),
    ("a device's clock that is faster than the host's stops nothing late", faster),
    ("a device's clock that was set is followed", stepped),
    ("a host that is late gives a launch its grace all the same", late),
    ("a limit of any length is taken", longest),
    ("a waker that panics ends no timer", panicking),
    ("a waker may poll its future at once", inline),
    ("our threads leave the program's signals alone", signals),
];

/// How long a kernel ran that the host stops after `limit`.
fn ran(world: &World, limit: Duration) -> Duration {
    let stream = world.stream();
    let kernel = world.kernel("spin");
    let since = Instant::now();
    let mut running = start(&kernel, &stream, |launch| {
        launch.timeout(limit).clock(Clock::Host);
    })
    .expect("a launch");
    let outcome = running.wait().expect("an outcome");
    assert!(matches!(outcome, Outcome::Stopped { why: Cause::Deadline, .. }), "{outcome:?}");
    since.elapsed()
}

fn slower() {
    let world = World::new();
    command("clock -100000 0");
    for _ in 0..3 {
        thread::sleep(Duration::from_millis(500));
        let ran = ran(&world, SHORT * 2);
        assert!(ran >= SHORT * 2, "stopped after {ran:?}");
    }
}

/// A clock that nobody follows is 300 ms behind after each second. A busy machine may be as late, but hardly each time.
fn faster() {
    let world = World::new();
    command("clock 300000 0");
    let round = || {
        thread::sleep(Duration::from_secs(1));
        ran(&world, SHORT * 2)
    };
    let late: Vec<_> = (0..8).map(|_| round()).take_while(|ran| *ran >= Duration::from_millis(300)).collect();
    assert!(late.len() < 8, "stopped after {late:?}");
}

fn stepped() {
    let world = World::new();
    // An hour, so that one that is not followed is told from a busy machine.
    for step in [3_600_000_000_000_i64, -3_600_000_000_000] {
        command(&format!("clock 0 {step}"));
        let ran = ran(&world, SHORT * 2);
        assert!((SHORT * 2..LONG).contains(&ran), "stopped after {ran:?}, with a step of {step} ns");
    }
}

fn late() {
    let world = World::new();
    let stream = world.stream();
    let mut running = start(&world.kernel("spin"), &stream, |launch| {
        launch.timeout(SHORT).grace(SHORT * 20).clock(Clock::Host);
    })
    .expect("a launch");
    command("block cuEventQuery 1");
    let thread = thread::spawn(|| {
        until("a call is blocked", || command("blocked") == 1);
        thread::sleep(SHORT * 40);
        command("release");
    });
    let outcome = running.wait().expect("an outcome");
    assert!(matches!(outcome, Outcome::Stopped { why: Cause::Deadline, .. }), "{outcome:?}");
    thread.join().expect("no panic");
}

fn longest() {
    let world = World::new();
    let stream = world.stream();
    let mut running = start(&world.kernel("spin"), &stream, |launch| {
        launch.timeout(SHORT).grace(Duration::MAX).begin_within(Duration::MAX);
    })
    .expect("a launch");
    let outcome = running.wait().expect("an outcome");
    assert!(matches!(outcome, Outcome::Stopped { .. }), "{outcome:?}");
    let mut cancelled = start(&world.kernel("spin"), &stream, |launch| {
        launch.until_cancelled().grace(Duration::MAX).begin_within(Duration::MAX);
    })
    .expect("a launch");
    cancelled.cancel().expect("a cancel");
    thread::sleep(SHORT);
    assert!(matches!(cancelled.wait().expect("an outcome"), Outcome::Stopped { .. }));
    // The timer lives.
    ran(&world, SHORT);
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker of the user's");
    }
}

fn panicking() {
    let world = World::new();
    let stream = world.stream();
    command("hold 1");
    let mut running = start(&world.kernel("spin"), &stream, |launch| {
        launch.timeout(SHORT);
    })
    .expect("a launch");
    let waker = Waker::from(Arc::new(Panics));
    assert!(Pin::new(&mut running).poll(&mut Context::from_waker(&waker)).is_pending());
    command("hold 0");
    until("it is stopped", || command("begun") == 1 && command("running") == 0);
    thread::sleep(SHORT);
    let unwatched = start(&world.kernel("spin"), &stream, |launch| {
        launch.timeout(SHORT).clock(Clock::Host);
    })
    .expect("a launch");
    until("the timer stops the next one", || command("begun") == 2 && command("running") == 0);
    drop(unwatched);
    assert!(matches!(running.wait().expect("an outcome"), Outcome::Stopped { .. }));
}

/// An executor that polls where it is woken.
struct Inline(Mutex<(Option<Running>, Option<Outcome>)>);

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        let mut task = self.0.lock().expect("no panic");
        let Some(running) = &mut task.0 else { return };
        if let std::task::Poll::Ready(outcome) = Pin::new(running).poll(&mut Context::from_waker(&waker)) {
            *task = (None, Some(outcome.expect("an outcome")));
        }
    }
}

fn inline() {
    let world = World::new();
    let stream = world.stream();
    let running = start(&world.kernel("spin"), &stream, |launch| {
        launch.timeout(SHORT);
    });
    let task = Arc::new(Inline(Mutex::new((Some(running.expect("a launch")), None))));
    Arc::clone(&task).wake();
    let since = Instant::now();
    while task.0.try_lock().map_or(true, |task| task.1.is_none()) {
        assert!(since.elapsed() < LONG, "the executor hangs");
        thread::sleep(Duration::from_millis(1));
    }
    // And so does nobody else.
    let outcome = start(&world.kernel("empty"), &stream, long).expect("a launch").wait();
    assert!(outcome.expect("an outcome").is_completed());
}

fn signals() {
    let world = World::new();
    ran(&world, SHORT);
    // A thread names itself once it runs.
    until("a thread of ours is seen", || blocking() > 0);
}

/// Threads of ours, all of which block signals.
fn blocking() -> usize {
    let mut seen = 0;
    for task in std::fs::read_dir("/proc/self/task").expect("Linux") {
        let path = task.expect("a thread").path();
        let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        if !name.starts_with("cuinstr-") {
            continue;
        }
        let status = std::fs::read_to_string(path.join("status")).expect("a thread's status");
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("its mask").trim();
        let blocked = u64::from_str_radix(blocked, 16).expect("a mask");
        // SIGHUP, SIGINT, SIGTERM, SIGCHLD, SIGUSR1.
        for signal in [1, 2, 15, 17, 10] {
            assert!(blocked & 1 << (signal - 1) != 0, "{} takes signal {signal}", name.trim());
        }
        seen += 1;
    }
    seen
}
