//! Everything that CUDA launches: streams, captures, cooperative grids, clusters, grids launched by the device, and the environment.

use super::Promise;
use super::bench::{Bench, completed, told};
use crate::session::{Checked, Report, Session};
use cuinstr_runtime::cudarc::driver::sys;
use cuinstr_runtime::{Cause, Error, Launch, Outcome};
use serde_json::json;
use std::time::{Duration, Instant};

pub(super) const PROMISES: &[Promise] = &[
    Promise::new("launches on two streams are stopped apart from each other", two_streams),
    Promise::new("a module with state of its own serves one stream after the other, or answers busy", one_state),
    Promise::new("a guarded launch into a capture is refused and does not break it", capture),
    Promise::new("a replay of a captured launch inherits no deadline", replay),
    Promise::new("a cooperative grid completes, and a hang in one leaves", cooperative),
    Promise::new("a cluster completes, and a hang in one leaves", cluster),
    Promise::new("a grid that the device launched is stopped with its parent", child),
    Promise::new("hangs on two GPUs are stopped apart from each other", two_devices),
    Promise::new("launches that wait for their kernel keep their deadline", blocking).with_env("CUDA_LAUNCH_BLOCKING", "1"),
    Promise::new("one connection to the device is enough for a cancel", one_connection).with_env("CUDA_DEVICE_MAX_CONNECTIONS", "1"),
    Promise::new("a module that is loaded lazily is stopped all the same", lazy).with_env("CUDA_MODULE_LOADING", "LAZY"),
];

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(10);
const HANG: &str = "hang/while_true";

fn is_stopped(outcome: &Outcome, cause: Cause) -> Result<f64, String> {
    match outcome {
        Outcome::Stopped { why, latency, .. } if *why == cause => Ok(latency.as_secs_f64() * 1e6),
        other => Err(format!("it should have been stopped, {cause:?}: {other:?}")),
    }
}

fn two_streams(session: &Session) -> Checked {
    let bench = Bench::new(session, HANG)?;
    if bench.module.prepare(2).map_err(told)? != 2 {
        return Err("a module without state should be there twice".into());
    }
    let (one, two) = (bench.context.new_stream().map_err(told)?, bench.context.new_stream().map_err(told)?);
    let mut first = bench.start(&one, |launch| _ = launch.until_cancelled()).map_err(told)?;
    let mut second = bench.start(&two, |launch| _ = launch.timeout(SHORT)).map_err(told)?;
    is_stopped(&second.wait().map_err(told)?, Cause::Deadline)?;
    if first.wait_for(SHORT).map_err(told)?.is_some() {
        return Err("the other stream's launch was stopped, too".into());
    }
    // A third stream finds an instance that is free again.
    let three = bench.context.new_stream().map_err(told)?;
    let mut third = bench.start(&three, |launch| _ = launch.timeout(SHORT)).map_err(told)?;
    is_stopped(&third.wait().map_err(told)?, Cause::Deadline)?;
    first.cancel().map_err(told)?;
    is_stopped(&first.wait().map_err(told)?, Cause::Cancelled)?;
    session.next_launch_is_right()?;
    Ok(Report::default())
}

fn one_state(session: &Session) -> Checked {
    let bench = Bench::new(session, "probe/keeps_state")?;
    if bench.module.prepare(2).map_err(told)? != 1 {
        return Err("a module with a variable of its own was loaded twice".into());
    }
    let (one, two) = (bench.context.new_stream().map_err(told)?, bench.context.new_stream().map_err(told)?);
    let mut first = bench.start(&one, |launch| _ = launch.until_cancelled()).map_err(told)?;
    let note = match bench.start(&two, |launch| _ = launch.timeout(SHORT).or_busy()) {
        Err(error @ Error::Busy { .. }) if error.to_string().contains("door") => error.to_string(),
        other => return Err(format!("it should have been busy with `door`: {other:?}")),
    };
    let mut second = bench.start(&two, |launch| _ = launch.timeout(SHORT)).map_err(told)?;
    if second.wait_for(2 * SHORT).map_err(told)?.is_some() {
        return Err("the second launch did not wait for the first".into());
    }
    first.cancel().map_err(told)?;
    is_stopped(&first.wait().map_err(told)?, Cause::Cancelled)?;
    is_stopped(&second.wait().map_err(told)?, Cause::Deadline)?;
    // In turns: each waits for the one before it, whichever stream that was on, and has all its own time.
    let turns = [&one, &two, &one, &one, &two].map(|stream| bench.start(stream, |launch| _ = launch.timeout(SHORT)));
    let since = Instant::now();
    for (index, turn) in turns.into_iter().enumerate() {
        is_stopped(&turn.map_err(told)?.wait().map_err(told)?, Cause::Deadline).map_err(|why| format!("turn {index}: {why}"))?;
    }
    if since.elapsed() < 5 * SHORT.mul_f32(0.98) {
        return Err(format!("five turns of {SHORT:?} took {:?}", since.elapsed()));
    }
    session.next_launch_is_right()?;
    Ok(Report::default().note(note))
}

const MODE: sys::CUstreamCaptureMode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
const FLAGS: sys::CUgraphInstantiate_flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;

fn capture(session: &Session) -> Checked {
    let bench = Bench::new(session, "saxpy")?;
    let stream = bench.context.new_stream().map_err(told)?;
    let other = bench.context.new_stream().map_err(told)?;
    // The first launch of each stream, so that nothing is loaded while a stream is captured.
    for stream in [&stream, &other] {
        completed(&bench.start(stream, |launch| _ = launch.timeout(LONG)).map_err(told)?.wait().map_err(told)?)?;
    }
    stream.begin_capture(MODE).map_err(told)?;
    let refused = bench.start(&stream, |launch| _ = launch.timeout(LONG));
    let beside = bench.start(&other, |launch| _ = launch.timeout(LONG)).and_then(|mut running| running.wait());
    let graph = stream.end_capture(FLAGS).map_err(|error| format!("the capture was broken: {error}"))?;
    drop(graph);
    completed(&beside.map_err(|error| format!("a launch beside a capture: {error}"))?)?;
    match refused {
        Err(error @ Error::Capturing) => Ok(Report::default().note(error.to_string())),
        other => Err(format!("it should have been refused: {other:?}")),
    }
}

fn replay(session: &Session) -> Checked {
    let mut bench = Bench::untracked(session, "saxpy")?;
    let stream = bench.context.new_stream().map_err(told)?;
    completed(&bench.start(&stream, |launch| _ = launch.timeout(LONG)).map_err(told)?.wait().map_err(told)?)?;
    let answer = {
        bench.refill(&stream)?;
        completed(&bench.start(&stream, |launch| _ = launch.timeout(LONG)).map_err(told)?.wait().map_err(told)?)?;
        bench.contents(&stream)?
    };
    stream.begin_capture(MODE).map_err(told)?;
    let captured = bench.unguarded(&stream);
    let graph = stream.end_capture(FLAGS);
    captured.map_err(|error| format!("a bare launch into a capture: {error}"))?;
    let graph = graph.map_err(|error| format!("the capture was broken: {error}"))?;
    let graph = graph.ok_or("the capture is empty")?;
    for _ in 0..3 {
        // A deadline that is long past when the graph is replayed.
        let short = bench.start(&stream, |launch| _ = launch.timeout(Duration::from_micros(20))).map_err(told)?.wait();
        let _ = short.map_err(told)?;
        bench.refill(&stream)?;
        std::thread::sleep(Duration::from_millis(5));
        graph.launch().map_err(told)?;
        stream.synchronize().map_err(|error| format!("a replay was stopped: {error}"))?;
        if bench.contents(&stream)? != answer {
            return Err("a replay did not do all its work".into());
        }
    }
    session.next_launch_is_right()?;
    Ok(Report::default())
}

/// A sound kernel completes and a hang of the same kind leaves.
fn both(session: &Session, sound: &str, hang: &str, form: fn(&mut Launch)) -> Checked {
    let (sound, hang) = (Bench::new(session, sound)?, Bench::new(session, hang)?);
    let stream = sound.context.default_stream();
    completed(&sound.start(&stream, |launch| _ = launch.timeout(LONG)).map_err(told)?.wait().map_err(told)?)?;
    let limited = hang.start(&stream, |launch| form(launch.timeout(SHORT)));
    let outcome = limited.map_err(told)?.wait().map_err(told)?;
    let latency = is_stopped(&outcome, Cause::Deadline)?;
    completed(&sound.start(&stream, |launch| _ = launch.timeout(LONG)).map_err(told)?.wait().map_err(told)?)?;
    session.next_launch_is_right()?;
    Ok(Report::of(json!({ "latency_us": latency })))
}

fn cooperative(session: &Session) -> Checked {
    both(session, "cg_grid_sync", HANG, |launch| _ = launch.cooperative())
}

fn cluster(session: &Session) -> Checked {
    both(session, "cluster_histogram", "hang/cluster_neighbour", |_| ())
}

fn child(session: &Session) -> Checked {
    let bench = Bench::new(session, "probe/launches_child")?;
    let stream = bench.context.default_stream();
    let mut latencies = Vec::new();
    for cause in [Cause::Deadline, Cause::Cancelled] {
        let mut running = bench
            .start(&stream, |launch| {
                _ = if cause == Cause::Deadline { launch.timeout(SHORT) } else { launch.until_cancelled() };
            })
            .map_err(told)?;
        if cause == Cause::Cancelled {
            std::thread::sleep(SHORT);
            running.cancel().map_err(told)?;
        }
        latencies.push(is_stopped(&running.wait().map_err(told)?, cause)?);
    }
    session.next_launch_is_right()?;
    Ok(Report::of(json!({ "latency_us": latencies })))
}

fn two_devices(session: &Session) -> Checked {
    let second = match cuinstr_runtime::open(1) {
        Ok(context) => context,
        Err(error @ Error::NoDevice { .. }) => return Ok(Report::default().note(format!("not tried: {error}"))),
        Err(error) => return Err(told(error)),
    };
    let (one, two) = (Bench::new(session, HANG)?, Bench::in_context(session, HANG, cuinstr_harness::variant::DEFAULT, &second)?);
    let (stream, other) = (one.context.default_stream(), second.default_stream());
    let mut first = one.start(&stream, |launch| _ = launch.until_cancelled()).map_err(told)?;
    let mut latencies = Vec::new();
    for _ in 0..3 {
        let outcome = two.start(&other, |launch| _ = launch.timeout(SHORT)).map_err(told)?.wait().map_err(told)?;
        latencies.push(is_stopped(&outcome, Cause::Deadline)?);
        let mut running = two.start(&other, |launch| _ = launch.until_cancelled()).map_err(told)?;
        if running.wait_for(SHORT).map_err(told)?.is_some() {
            return Err("it ended by itself".into());
        }
        running.cancel().map_err(told)?;
        latencies.push(is_stopped(&running.wait().map_err(told)?, Cause::Cancelled)?);
    }
    if first.poll().map_err(told)?.is_some() {
        return Err("the first GPU's launch was stopped, too".into());
    }
    if two.start(&stream, |launch| _ = launch.timeout(SHORT)).is_ok() {
        return Err("a stream of another GPU was accepted".into());
    }
    first.cancel().map_err(told)?;
    is_stopped(&first.wait().map_err(told)?, Cause::Cancelled)?;
    session.next_launch_is_right()?;
    Ok(Report::of(json!({ "latency_us": latencies })))
}

fn blocking(session: &Session) -> Checked {
    let bench = Bench::new(session, HANG)?;
    let stream = bench.context.default_stream();
    let unlimited = bench.start(&stream, |launch| _ = launch.until_cancelled());
    let Err(error @ Error::Environment(_)) = unlimited else { return Err(format!("a launch that would block for ever: {unlimited:?}")) };
    let since = Instant::now();
    let outcome = bench.start(&stream, |launch| _ = launch.timeout(SHORT)).map_err(told)?.wait().map_err(told)?;
    is_stopped(&outcome, Cause::Deadline)?;
    let took = since.elapsed();
    session.next_launch_is_right()?;
    Ok(Report::of(json!({ "took_ms": took.as_secs_f64() * 1e3 })).note(error.to_string()))
}

fn one_connection(session: &Session) -> Checked {
    both_ways(session)
}

fn lazy(session: &Session) -> Checked {
    both_ways(session)
}

/// A deadline and a cancel.
fn both_ways(session: &Session) -> Checked {
    let bench = Bench::new(session, HANG)?;
    let stream = bench.context.new_stream().map_err(told)?;
    let outcome = bench.start(&stream, |launch| _ = launch.timeout(SHORT)).map_err(told)?.wait().map_err(told)?;
    let mut latencies = vec![is_stopped(&outcome, Cause::Deadline)?];
    let mut running = bench.start(&stream, |launch| _ = launch.until_cancelled()).map_err(told)?;
    if running.wait_for(SHORT).map_err(told)?.is_some() {
        return Err("it ended by itself".into());
    }
    running.cancel().map_err(told)?;
    latencies.push(is_stopped(&running.wait().map_err(told)?, Cause::Cancelled)?);
    session.next_launch_is_right()?;
    Ok(Report::of(json!({ "latency_us": latencies })))
}
