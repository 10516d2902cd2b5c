//! A launch ends in time, one way or the other, and the context lives.

use super::Promise;
use super::bench::{Bench, completed, told};
use crate::session::{Checked, Report, Session};
use cuinstr_runtime::{Cause, Clock, Error, FlagMemory, Outcome, Tier};
use serde_json::json;
use std::thread;
use std::time::{Duration, Instant};

pub(super) const PROMISES: &[Promise] = &[
    Promise::new("a sound kernel completes, and its results are right", completes),
    Promise::new("a hang leaves at its deadline, the report names its line, and the next launch is right", deadline),
    Promise::new("a cancel from another thread stops a hang, and one that is late does nothing", cancel),
    Promise::new("the host's timer alone stops a hang, whatever memory the flag is in", host_clock),
    Promise::new("a launch whose handle is dropped is cancelled within its grace time", dropped),
    Promise::new("a deadline as an instant stops a launch that has not begun", not_begun),
    Promise::new("a hundred launches queue behind each other, and each can be cancelled by itself", queued),
    Promise::new("what leaves no poll is not waited for: the error says so, within the grace time", undrained),
    Promise::new("the watchdog ends what leaves no poll, and later calls are told of the lost context", watchdog),
];

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(10);
const HANG: &str = "hang/while_true";

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// A sound kernel right now, in this context.
fn next_is_right(session: &Session) -> Result<(), String> {
    let mut bench = Bench::new(session, "saxpy")?;
    let stream = bench.context.default_stream();
    bench.refill(&stream)?;
    let before = bench.contents(&stream)?;
    let outcome = bench.start(&stream, |launch| _ = launch.timeout(LONG)).map_err(told)?.wait().map_err(told)?;
    completed(&outcome)?;
    if bench.contents(&stream)? == before {
        return Err("the next launch wrote nothing".into());
    }
    session.next_launch_is_right()
}

/// The stop of a hang at its marked line.
fn stopped(outcome: Outcome, why: Cause, tier: Tier) -> Result<(Duration, Box<cuinstr_runtime::Report>), String> {
    match outcome {
        Outcome::Stopped { why: found, tier: by, latency, report } if found == why && by == tier => Ok((latency, report)),
        other => Err(format!("it should have been stopped, {why:?}, {tier:?}: {other:?}")),
    }
}

fn completes(session: &Session) -> Checked {
    let mut bench = Bench::new(session, "gemm_naive")?;
    let stream = bench.context.default_stream();
    let plain = session.load("gemm_naive", cuinstr_harness::variant::DEFAULT)?;
    let answer: Vec<Vec<u8>> = session.run(&plain)?.into_iter().map(|contents| contents.bytes).collect();
    let mut times = Vec::new();
    for is_timed in [false, true] {
        bench.refill(&stream)?;
        let mut running = bench
            .start(&stream, |launch| {
                launch.timeout(LONG);
                if is_timed {
                    launch.timed();
                }
            })
            .map_err(told)?;
        let outcome = running.wait().map_err(told)?;
        completed(&outcome)?;
        if let Outcome::Completed { elapsed, .. } = outcome {
            times.push(micros(elapsed));
        }
        if bench.contents(&stream)? != answer {
            return Err("the results differ".into());
        }
        if running.wait().is_ok() {
            return Err("an outcome was given twice".into());
        }
    }
    Ok(Report::of(json!({ "elapsed_us": times[0], "timed_us": times[1] })))
}

fn deadline(session: &Session) -> Checked {
    let bench = Bench::new(session, HANG)?;
    let stream = bench.context.default_stream();
    let mut latencies = Vec::new();
    let mut text = String::new();
    for _ in 0..20 {
        let since = Instant::now();
        let outcome = bench.start(&stream, |launch| _ = launch.timeout(SHORT)).map_err(told)?.wait().map_err(told)?;
        let took = since.elapsed();
        let (latency, report) = stopped(outcome, Cause::Deadline, Tier::Leave)?;
        if took < SHORT {
            return Err(format!("stopped after {took:?}, before its timeout of {SHORT:?}"));
        }
        text = report.to_string();
        let hang = session.manifest.subject(HANG)?.fixture.hang.as_ref().ok_or("no marked line")?.line;
        if !text.contains(&format!("while_true.cu:{hang}:")) {
            return Err(format!("the report does not name line {hang}:\n{text}"));
        }
        latencies.push(micros(latency));
    }
    next_is_right(session)?;
    latencies.sort_by(f64::total_cmp);
    Ok(Report::of(json!({ "latency_us": latencies })).note(text))
}

fn cancel(session: &Session) -> Checked {
    let bench = Bench::new(session, HANG)?;
    let stream = bench.context.default_stream();
    let mut latencies = Vec::new();
    let mut late = Vec::new();
    for _ in 0..20 {
        let mut running = bench.start(&stream, |launch| _ = launch.until_cancelled()).map_err(told)?;
        let canceller = running.canceller();
        late.push(canceller.clone());
        let thread = thread::spawn(move || {
            thread::sleep(Duration::from_millis(5));
            canceller.cancel()
        });
        let (latency, _) = stopped(running.wait().map_err(told)?, Cause::Cancelled, Tier::Leave)?;
        thread.join().map_err(|_| "the thread panicked")?.map_err(told)?;
        latencies.push(micros(latency));
    }
    let mut running = bench.start(&stream, |launch| _ = launch.until_cancelled()).map_err(told)?;
    for canceller in late {
        canceller.cancel().map_err(told)?;
    }
    if running.wait_for(SHORT).map_err(told)?.is_some() {
        return Err("a late cancel hit a later launch".into());
    }
    running.cancel().map_err(told)?;
    stopped(running.wait().map_err(told)?, Cause::Cancelled, Tier::Leave)?;
    next_is_right(session)?;
    latencies.sort_by(f64::total_cmp);
    Ok(Report::of(json!({ "latency_us": latencies })))
}

fn host_clock(session: &Session) -> Checked {
    let bench = Bench::new(session, "probe/spin_grid")?;
    let stream = bench.context.default_stream();
    let mut found = serde_json::Map::new();
    for flag in [FlagMemory::Device, FlagMemory::Pinned, FlagMemory::Managed] {
        let mut latencies = Vec::new();
        for _ in 0..5 {
            let since = Instant::now();
            let limits = |launch: &mut cuinstr_runtime::Launch| _ = launch.timeout(SHORT).clock(Clock::Host).flag(flag);
            let outcome = bench.start(&stream, limits).map_err(told)?.wait().map_err(told)?;
            if since.elapsed() < SHORT {
                return Err(format!("stopped after {:?}", since.elapsed()));
            }
            latencies.push(micros(stopped(outcome, Cause::Deadline, Tier::Leave)?.0));
        }
        found.insert(format!("{flag:?}"), json!(latencies));
    }
    next_is_right(session)?;
    Ok(Report::of(found))
}

fn dropped(session: &Session) -> Checked {
    let bench = Bench::new(session, HANG)?;
    let stream = bench.context.default_stream();
    let running = bench.start(&stream, |launch| _ = launch.until_cancelled()).map_err(told)?;
    thread::sleep(SHORT);
    let since = Instant::now();
    drop(running);
    let took = since.elapsed();
    if took > cuinstr_runtime::GRACE {
        return Err(format!("dropping took {took:?}"));
    }
    next_is_right(session)?;
    Ok(Report::of(json!({ "drop_us": micros(took) })))
}

fn not_begun(session: &Session) -> Checked {
    let bench = Bench::new(session, HANG)?;
    let stream = bench.context.default_stream();
    let mut first = bench.start(&stream, |launch| _ = launch.timeout(4 * SHORT)).map_err(told)?;
    let mut second = bench.start(&stream, |launch| _ = launch.deadline(Instant::now() + SHORT)).map_err(told)?;
    stopped(first.wait().map_err(told)?, Cause::Deadline, Tier::Leave)?;
    let (latency, report) = stopped(second.wait().map_err(told)?, Cause::Deadline, Tier::Leave)?;
    if report.blocks_not_begun != report.launched_blocks {
        return Err(format!("no block should have begun:\n{report}"));
    }
    next_is_right(session)?;
    Ok(Report::of(json!({ "latency_us": micros(latency) })).note(report.to_string()))
}

fn queued(session: &Session) -> Checked {
    let bench = Bench::new(session, HANG)?;
    let stream = bench.context.default_stream();
    let start = |_: usize| bench.start(&stream, |launch| _ = launch.until_cancelled()).map_err(told);
    let mut queue = (0..100).map(start).collect::<Result<Vec<_>, String>>()?;
    // Those that have not begun keep their cancel.
    for running in queue.iter().rev() {
        running.cancel().map_err(told)?;
    }
    for (index, running) in queue.iter_mut().enumerate() {
        stopped(running.wait().map_err(|error| format!("launch {index}: {error}"))?, Cause::Cancelled, Tier::Leave)?;
    }
    next_is_right(session)?;
    Ok(Report::default())
}

fn undrained(session: &Session) -> Checked {
    let bench = Bench::new(session, "hang/grid_sync")?;
    let stream = bench.context.default_stream();
    let since = Instant::now();
    let mut running = bench.start(&stream, |launch| _ = launch.timeout(SHORT)).map_err(told)?;
    let error = running.wait().err().ok_or("a hang that leaves no poll was said to have ended")?;
    let took = since.elapsed();
    if !matches!(error, Error::Undrained { .. }) || took > SHORT + 2 * cuinstr_runtime::GRACE {
        return Err(format!("after {took:?}: {error}"));
    }
    let again = Instant::now();
    drop(running);
    if again.elapsed() > 2 * cuinstr_runtime::GRACE {
        return Err(format!("dropping it took {:?}", again.elapsed()));
    }
    Ok(Report::of(json!({ "took_ms": took.as_secs_f64() * 1e3 })).note(error.to_string()))
}

fn watchdog(session: &Session) -> Checked {
    let bench = Bench::new(session, "hang/grid_sync")?;
    let sound = Bench::new(session, "saxpy")?;
    let stream = bench.context.default_stream();
    // A launch that ends by itself lets its watchdog go.
    let mut running = sound.start(&stream, |launch| _ = launch.timeout(LONG).watchdog()).map_err(told)?;
    completed(&running.wait().map_err(told)?)?;
    stream.synchronize().map_err(told)?;
    let since = Instant::now();
    let mut running = bench.start(&stream, |launch| _ = launch.timeout(SHORT).watchdog()).map_err(told)?;
    let outcome = running.wait().map_err(told)?;
    let took = since.elapsed();
    let (latency, report) = stopped(outcome, Cause::Deadline, Tier::Watchdog)?;
    let again = sound.start(&stream, |launch| _ = launch.timeout(LONG));
    match again {
        Err(Error::Poisoned(poison)) if poison.kernel == "grid_sync" || poison.kernel == bench.kernel.name() => {}
        other => return Err(format!("a lost context should be refused by name: {other:?}")),
    }
    if bench.module.kernel_names().next().is_none() {
        return Err("the module has no kernels".into());
    }
    Ok(Report::of(json!({ "took_ms": took.as_secs_f64() * 1e3, "latency_ms": latency.as_secs_f64() * 1e3 })).note(report.to_string()))
}
