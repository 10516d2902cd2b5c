//! What launches come to that seldom end so: by a trap, late, never begun, never made; and what is told of them.

use crate::Case;
use crate::launches::long;
use crate::world::{LONG, ONE, PTX, SHORT, World, command, guarded, start, until};
use cuinstr_runtime::guard::Limits;
use cuinstr_runtime::{Cause, Error, Module, Outcome, Tier};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const CASES: &[Case] = &[
    ("a watchdog traps once the grace is over, and not before", watchdog),
    ("a watchdog that was not needed is used again", watchdogs),
    ("a launch that begins late has all of its time", begins_late),
    ("a launch that does not begin is told of, and may begin all the same", never_begins),
    ("a launch that does not leave is told of, and may end all the same", never_leaves),
    ("a moment that comes before its launch begins stops it", moment),
    ("a launch whose end can't be marked is waited for within its grace", unmarked_for_long),
    ("a guard whose launch never came says so", never_came),
    ("an outcome tells what its launch took, and whether a reason to stop came too late", told),
    ("a record that is a little late is told as a whole", late_record),
    ("a device stops a launch by its own clock, and the host does where that stands still", clocks),
    ("a launch that is over keeps no other one from its module", over),
    ("streams run beside each other as far as a module was loaded", beside),
    ("a module with variables of its own is loaded once", stateful),
    ("a guarded launch comes after a bare one in another stream", after_bare),
];

fn watchdog() {
    let world = World::new();
    let stream = world.stream();
    let empty = world.kernel("empty");
    let mut running = start(&world.kernel("deaf"), &stream, |launch| {
        launch.until_cancelled().watchdog().grace(SHORT * 5);
    })
    .expect("a launch");
    until("it runs, and so does its watchdog", || command("running") == 2);
    running.cancel().expect("a cancel");
    let since = Instant::now();
    let outcome = running.wait().expect("an outcome");
    let Outcome::Stopped { why: Cause::Cancelled, tier: Tier::Watchdog, latency, report } = outcome else { panic!("{outcome:?}") };
    assert!(since.elapsed() + SHORT >= SHORT * 5 && latency >= SHORT * 5, "after {:?}, {latency:?}", since.elapsed());
    assert_eq!(report.threads, 0, "no thread told before the trap");
    let error = start(&empty, &stream, long).expect_err("the context is lost");
    assert!(matches!(&error, Error::Poisoned(poison) if poison.kernel == "deaf"), "{error:?}");
}

fn watchdogs() {
    let world = World::new();
    let stream = world.stream();
    let watched = |name: &str| {
        start(&world.kernel(name), &stream, |launch| {
            launch.timeout(SHORT).watchdog();
        })
        .expect("a launch")
        .wait()
        .expect("an outcome")
    };
    assert!(watched("empty").is_completed());
    let before = [command("live pinned"), command("live streams")];
    for _ in 0..3 {
        until("the watchdog is back", || command("running") == 0);
        assert!(watched("empty").is_completed());
        let outcome = watched("spin");
        assert!(matches!(outcome, Outcome::Stopped { why: Cause::Deadline, tier: Tier::Leave, .. }), "{outcome:?}");
    }
    assert_eq!([command("live pinned"), command("live streams")], before);
}

/// A busy machine may keep the device from looking for long, but hardly each time.
fn begins_late() {
    let world = World::new();
    let stream = world.stream();
    let kernel = world.kernel("work");
    let round = || {
        command("hold 1");
        let mut launch = kernel.on(&stream).expect("a launch");
        let nanoseconds = 50_000_u64;
        launch.arg(&nanoseconds).timeout(SHORT * 5);
        // SAFETY: the stand-in's kernels touch no memory of ours.
        let mut running = unsafe { launch.start(ONE) }.expect("a launch");
        assert_eq!(running.wait_for(SHORT * 8).expect("no error"), None);
        command("hold 0");
        running.wait().expect("an outcome").is_completed()
    };
    assert!((0..6).any(|_| round()), "its time ran before it began");
}

fn never_begins() {
    let world = World::new();
    let stream = world.stream();
    command("hold 1");
    let mut running = start(&world.kernel("empty"), &stream, |launch| {
        launch.timeout(LONG).begin_within(SHORT * 3);
    })
    .expect("a launch");
    let since = Instant::now();
    let error = running.wait().expect_err("it does not begin");
    assert!(matches!(error, Error::NotBegun { after, .. } if after >= SHORT * 3), "{error:?}");
    assert!(since.elapsed() + SHORT >= SHORT * 3);
    command("hold 0");
    assert!(running.wait().expect("an outcome").is_completed());
}

fn never_leaves() {
    let world = World::new();
    let stream = world.stream();
    let mut running = start(&world.kernel("deaf"), &stream, |launch| {
        launch.timeout(SHORT).grace(SHORT * 3);
    })
    .expect("a launch");
    let since = Instant::now();
    let error = running.wait().expect_err("it does not leave");
    assert!(matches!(error, Error::Undrained { after, .. } if after >= SHORT * 3) && since.elapsed() >= SHORT * 4, "{error:?}");
    assert_eq!(command("running"), 1);
    command("end");
    until("it has ended", || command("running") == 0);
    assert!(running.wait().expect("an outcome").is_completed());
}

fn moment() {
    let world = World::new();
    let stream = world.stream();
    command("hold 1");
    let mut running = start(&world.kernel("spin"), &stream, |launch| {
        launch.deadline(Instant::now() + SHORT);
    })
    .expect("a launch");
    assert_eq!(running.wait_for(SHORT * 3).expect("no error"), None);
    command("hold 0");
    let outcome = running.wait().expect("an outcome");
    assert!(matches!(&outcome, Outcome::Stopped { why: Cause::Deadline, latency, .. } if *latency >= SHORT), "{outcome:?}");
}

fn unmarked_for_long() {
    let world = World::new();
    let stream = world.stream();
    command("fail cuEventRecord 1 2");
    let ends = thread::spawn(|| {
        until("it is asked about", || command("calls cuStreamQuery") > 100);
        assert_eq!(command("running"), 1);
        command("end");
    });
    let error = start(&world.kernel("deaf"), &stream, |launch| {
        launch.until_cancelled().grace(LONG);
    });
    assert_eq!(command("running"), 0, "it still runs: {error:?}");
    ends.join().expect("no panic");
    // And so it keeps nothing from being loaded.
    Module::load(&world.context, PTX.as_bytes()).expect("a module");
    command("fail cuEventRecord 1 2");
    let error = start(&world.kernel("deaf"), &stream, |launch| {
        launch.until_cancelled().grace(SHORT);
    });
    assert!(matches!(error, Err(Error::OutOfMemory(_))) && command("running") == 1, "{error:?}");
    assert!(matches!(Module::load(&world.context, PTX.as_bytes()), Err(Error::InFlight { launches: 1 })));
    command("end");
}

fn never_came() {
    let world = World::new();
    let stream = world.stream();
    let outcome = |name: &str| {
        let guard = guarded(&world.context, name, &stream, &Limits::timeout(LONG)).expect("a guard").expect("a launch");
        guard.launched().expect("it was launched");
        guard.wait_for(LONG)
    };
    assert!(matches!(outcome("silent"), Err(Error::NotLaunched)), "no kernel of the module began");
    assert!(matches!(outcome("empty"), Ok(Some(Outcome::Completed { .. }))));
    assert!(matches!(outcome("late"), Ok(Some(Outcome::Completed { late: true, .. }))));
    // A launch of our own that says nothing did run.
    assert!(start(&world.kernel("silent"), &stream, long).expect("a launch").wait().expect("an outcome").is_completed());
}

fn told() {
    let world = World::new();
    let stream = world.stream();
    let late = |name: &str| match start(&world.kernel(name), &stream, long).expect("a launch").wait().expect("an outcome") {
        Outcome::Completed { late, fuel_used: None, .. } => late,
        other => panic!("{other:?}"),
    };
    assert_eq!((late("late"), late("empty"), late("late")), (true, false, true));
    let fuel = start(&world.kernel("empty"), &stream, |launch| {
        launch.timeout(LONG).count_fuel();
    });
    let fuel = fuel.expect("a launch").wait().expect("an outcome");
    assert!(matches!(fuel, Outcome::Completed { fuel_used: Some(7), late: false, .. }), "{fuel:?}");
    let took = Duration::from_millis(3);
    for is_timed in [false, true] {
        let kernel = world.kernel("work");
        let nanoseconds = took.as_nanos() as u64;
        let since = Instant::now();
        let mut launch = kernel.on(&stream).expect("a launch");
        launch.arg(&nanoseconds).timeout(LONG);
        if is_timed {
            launch.timed();
        }
        // SAFETY: the stand-in's kernels touch no memory of ours.
        let outcome = unsafe { launch.start(ONE) }.expect("a launch").wait().expect("an outcome");
        let Outcome::Completed { elapsed, .. } = outcome else { panic!("{outcome:?}") };
        assert!((took..=since.elapsed() + SHORT).contains(&elapsed), "{elapsed:?}");
    }
    // The latency counts from the deadline, by the device's clock.
    let latency = || {
        let since = Instant::now();
        let stopped = start(&world.kernel("spin"), &stream, |launch| {
            launch.timeout(SHORT * 5);
        });
        let stopped = stopped.expect("a launch").wait().expect("an outcome");
        let Outcome::Stopped { latency, .. } = stopped else { panic!("{stopped:?}") };
        assert!(latency + SHORT * 5 <= since.elapsed() + Duration::from_millis(1), "{latency:?} of {:?}", since.elapsed());
        latency
    };
    assert!((0..40).any(|_| !latency().is_zero()));
}

/// A busy machine may keep the device from looking until the host's flag comes, but hardly each time.
fn clocks() {
    let world = World::new();
    let stream = world.stream();
    let kernel = world.kernel("spin");
    let flags = || command("calls cuStreamWriteValue32_v2");
    let flags_of_a_stop = || {
        let before = flags();
        let stopped = start(&kernel, &stream, |launch| {
            launch.timeout(SHORT);
        });
        let stopped = stopped.expect("a launch").wait().expect("an outcome");
        assert!(matches!(stopped, Outcome::Stopped { why: Cause::Deadline, .. }), "{stopped:?}");
        flags() - before
    };
    assert!((0..6).any(|_| flags_of_a_stop() == 0), "the device did not stop it");
    command("clock -1000000 0");
    assert_eq!(flags_of_a_stop(), 1);
}

fn over() {
    let context = cuinstr_runtime::open(0).expect("the stand-in has a device");
    let text = PTX.replace(".visible .entry empty", ".visible .global .align 4 .u32 total;\n.visible .entry empty");
    let kernel = Module::load(&context, text.as_bytes()).expect("a module").kernel("empty").expect("a kernel");
    let [first, second] = [(); 2].map(|()| context.new_stream().expect("a stream"));
    let mut running = start(&kernel, &first, long).expect("a launch");
    until("it is over", || command("begun") == 1 && command("running") == 0);
    // No thread has asked after it yet.
    let mut next = start(&kernel, &second, |launch| {
        launch.timeout(LONG).or_busy();
    })
    .expect("what is over keeps nothing busy");
    assert!(next.wait().expect("an outcome").is_completed() && running.wait().expect("an outcome").is_completed());
}

/// A busy machine may be later than a wait for a record lasts, but hardly each time.
fn late_record() {
    let world = World::new();
    let stream = world.stream();
    let round = || {
        command("busy 1");
        let mut running = start(&world.kernel("spin"), &stream, |launch| {
            launch.timeout(SHORT);
        })
        .expect("a launch");
        let copied = thread::spawn(|| {
            until("its record is read", || command("running") == 0);
            thread::sleep(SHORT);
            command("busy 0");
        });
        let outcome = running.wait().expect("an outcome");
        copied.join().expect("no panic");
        let Outcome::Stopped { report, .. } = outcome else { panic!("{outcome:?}") };
        report.threads == 64
    };
    assert!((0..6).any(|_| round()), "it did not wait for the record");
}

fn beside() {
    let world = World::new();
    let modules = command("live modules");
    assert_eq!(world.module.prepare(3).expect("copies"), 3);
    assert_eq!(command("live modules"), modules + 2);
    assert_eq!(world.module.prepare(2).expect("copies"), 3, "none is given back");
    let streams: Vec<_> = (0..4).map(|_| world.stream()).collect();
    let kernel = world.kernel("spin");
    let empty = world.kernel("empty");
    let endless = |stream| {
        start(&kernel, stream, |launch| {
            launch.until_cancelled();
        })
        .expect("a launch")
    };
    let mut running = vec![endless(&streams[0])];
    for stream in &streams[1..] {
        // A copy that is another stream's and idle is taken before one that is busy.
        assert!(start(&empty, stream, long).expect("a launch").wait().expect("an outcome").is_completed());
    }
    running.extend(streams[1..3].iter().map(endless));
    until("all three run at once", || command("running") == 3);
    let busy = start(&empty, &streams[3], |launch| {
        launch.timeout(LONG).or_busy();
    });
    assert!(matches!(&busy, Err(Error::Busy { variable }) if variable == "its control block"), "{busy:?}");
    let mut fourth = start(&empty, &streams[3], long).expect("a launch");
    assert_eq!(fourth.wait_for(SHORT).expect("no error"), None, "it shares a copy with one that runs");
    for mut running in running {
        running.cancel().expect("a cancel");
        assert!(matches!(running.wait().expect("an outcome"), Outcome::Stopped { why: Cause::Cancelled, .. }));
    }
    assert!(fourth.wait().expect("an outcome").is_completed());
    // A copy whose launch is over is any stream's, before another one is loaded.
    let (other, before) = (world.stream(), command("live modules"));
    assert!(start(&empty, &other, long).expect("a launch").wait().expect("an outcome").is_completed());
    assert_eq!(command("live modules"), before);
    assert_eq!(world.module.prepare(1000).expect("copies"), 64);
}

fn stateful() {
    let context = cuinstr_runtime::open(0).expect("the stand-in has a device");
    let text = PTX.replace(".visible .entry empty", ".visible .global .align 4 .u32 total;\n.visible .entry empty");
    let module = Module::load(&context, text.as_bytes()).expect("a module");
    assert_eq!(module.prepare(3).expect("copies"), 1, "two copies would not share the variable");
    let [first, second] = [(); 2].map(|()| context.new_stream().expect("a stream"));
    let running = start(&module.kernel("spin").expect("a kernel"), &first, |launch| {
        launch.until_cancelled();
    })
    .expect("a launch");
    until("it runs", || command("running") == 1);
    let busy = start(&module.kernel("empty").expect("a kernel"), &second, |launch| {
        launch.timeout(LONG).or_busy();
    });
    assert!(matches!(&busy, Err(Error::Busy { variable }) if variable == "unknown variables"), "{busy:?}");
    drop(running);
}

fn after_bare() {
    let world = World::new();
    let [first, second] = [world.stream(), world.stream()];
    let kernel = world.kernel("deaf");
    // SAFETY: the stand-in's kernels touch no memory of ours.
    unsafe { kernel.unguarded(&first).expect("a bare launch").launch(ONE) }.expect("a bare launch");
    until("it runs", || command("running") == 1);
    let mut next = start(&world.kernel("empty"), &second, long).expect("a launch");
    assert_eq!(next.wait_for(SHORT).expect("no error"), None, "both use one control block");
    command("end");
    assert!(next.wait().expect("an outcome").is_completed());
    // And a bare one after a guarded one.
    let mut running = start(&world.kernel("spin"), &first, |launch| {
        launch.until_cancelled();
    })
    .expect("a launch");
    until("it runs", || command("running") == 1);
    let empty = world.kernel("empty");
    // SAFETY: as above.
    unsafe { empty.unguarded(&second).expect("a bare launch").launch(ONE) }.expect("a bare launch");
    thread::sleep(SHORT);
    assert!(command("begun") == 3, "it did not wait");
    running.cancel().expect("a cancel");
    assert!(matches!(running.wait().expect("an outcome"), Outcome::Stopped { why: Cause::Cancelled, .. }));
    until("the bare one runs", || command("begun") == 4);
}
