//! From the moment that a launch should stop until its stream is drained.

use super::figure::{Row, Target, number};
use super::rig::{Rig, Subject, grid, told};
use cuinstr_runtime::cudarc::driver::sys::CUevent_flags;
use cuinstr_runtime::cudarc::driver::{CudaSlice, CudaStream, LaunchConfig, PinnedHostSlice};
use cuinstr_runtime::{Cause, Clock, FlagMemory, Launch, Outcome, Report, Running, Tier};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

type Rows = Result<Vec<Row>, String>;

/// How long a kernel hangs before it is stopped: by then its polls have found their pace.
const UNDER_WAY: Duration = Duration::from_millis(3);
/// How long it hangs where that has not yet happened.
const YOUNG: Duration = Duration::from_micros(500);
/// A timeout that nothing here reaches.
pub(super) const LONG: Duration = Duration::from_secs(10);

/// What one stop took.
struct Stop {
    /// Until the stream was drained, as the outcome says.
    latency: Duration,
    /// Until the caller had the outcome, report and all.
    answered: Duration,
    report: Box<Report>,
}

/// Stops in a row.
#[derive(Default)]
struct Stops {
    latencies: Vec<Duration>,
    answers: Vec<Duration>,
}

impl Stops {
    fn push(&mut self, stop: &Stop) {
        self.latencies.push(stop.latency);
        self.answers.push(stop.answered);
    }

    /// Two rows: until drained, with the target, and until the caller knows.
    fn rows(&self, what: &str, target: Target) -> [Row; 2] {
        let drained = Row::micros(format!("{what} until drained"), &self.latencies).target(target);
        [drained, Row::micros(format!("{what} until `wait` has answered"), &self.answers)]
    }
}

/// The stop that it must be, of all threads.
pub(super) fn stopped(outcome: Outcome, expected: Cause) -> Result<(Duration, Box<Report>), String> {
    match outcome {
        Outcome::Stopped { why, tier: Tier::Leave, latency, report } if why == expected && report.threads == report.launched_threads => {
            Ok((latency, report))
        }
        other => Err(format!("all threads should have left, {expected:?}: {other:?}")),
    }
}

/// Fails if the launch is over.
fn is_under_way(running: &mut Running) -> Result<(), String> {
    hangs_for(running, UNDER_WAY)
}

fn hangs_for(running: &mut Running, time: Duration) -> Result<(), String> {
    running.wait_for(time).map_err(told)?.map_or(Ok(()), |outcome| Err(format!("it ended by itself: {outcome:?}")))
}

/// Cancels it when it has run for a while.
fn cancelled(subject: &Subject, stream: &Arc<CudaStream>, config: LaunchConfig, after: Duration) -> Result<Stop, String> {
    let mut running = subject.start(stream, config, |launch| _ = launch.until_cancelled())?;
    hangs_for(&mut running, after)?;
    cancel(&mut running)
}

fn cancel(running: &mut Running) -> Result<Stop, String> {
    let since = Instant::now();
    running.cancel().map_err(told)?;
    let outcome = running.wait().map_err(told)?;
    let answered = since.elapsed();
    stopped(outcome, Cause::Cancelled).map(|(latency, report)| Stop { latency, answered, report })
}

/// Lets it reach its deadline.
fn timed_out(
    subject: &Subject,
    stream: &Arc<CudaStream>,
    config: LaunchConfig,
    timeout: Duration,
    limits: impl FnOnce(&mut Launch),
) -> Result<Stop, String> {
    let since = Instant::now();
    let mut running = subject.start(stream, config, |launch| {
        launch.timeout(timeout);
        limits(launch);
    })?;
    expire(&mut running, since, timeout)
}

fn expire(running: &mut Running, since: Instant, timeout: Duration) -> Result<Stop, String> {
    let outcome = running.wait().map_err(told)?;
    let took = since.elapsed();
    let answered = took.checked_sub(timeout).ok_or_else(|| format!("it was over {took:?} after its launch, with {timeout:?} to go"))?;
    stopped(outcome, Cause::Deadline).map(|(latency, report)| Stop { latency, answered, report })
}

fn all_resident(stop: &Stop) -> Result<(), String> {
    if stop.report.blocks_not_begun == 0 { Ok(()) } else { Err(format!("not all blocks were resident:\n{}", stop.report)) }
}

/// Flag flip and deadline of one launch shape.
fn both(rig: &Rig, subject: &Subject, config: LaunchConfig, what: &str, target: Target) -> Rows {
    let (mut cancels, mut deadlines) = (Stops::default(), Stops::default());
    for _ in 0..10 {
        cancelled(subject, &rig.stream, config, UNDER_WAY)?;
    }
    for _ in 0..rig.samples(500) {
        let stop = cancelled(subject, &rig.stream, config, UNDER_WAY)?;
        all_resident(&stop)?;
        cancels.push(&stop);
        let stop = timed_out(subject, &rig.stream, config, UNDER_WAY, |_| {})?;
        all_resident(&stop)?;
        deadlines.push(&stop);
    }
    let rows = [cancels.rows(&format!("{what}: flag flip"), target), deadlines.rows(&format!("{what}: deadline"), target)];
    Ok(rows.into_iter().flatten().collect())
}

const PROBES: [(&str, &str); 2] = [("probe/spin_count", "computes"), ("probe/spin_store", "loads and stores")];

pub(super) fn full_grid(rig: &Rig) -> Rows {
    let target = Target { median: Some(30.0), p99: Some(60.0), ..Target::default() };
    let mut rows = Vec::new();
    for (name, what) in PROBES {
        let subject = rig.subject(name)?;
        let config = rig.full(&subject)?;
        rows.extend(both(rig, &subject, config, what, target)?);
        let mut young = Vec::new();
        for _ in 0..rig.samples(100) {
            young.push(timed_out(&subject, &rig.stream, config, YOUNG, |_| {})?.latency);
        }
        rows.push(Row::micros(format!("{what}: a deadline {YOUNG:?} after the start until drained"), &young));
    }
    Ok(rows)
}

pub(super) fn one_block(rig: &Rig) -> Rows {
    let mut rows = Vec::new();
    for (name, what) in PROBES {
        rows.extend(both(rig, &rig.subject(name)?, grid(1, 256), what, Target::median(15.0))?);
    }
    Ok(rows)
}

pub(super) fn queued(rig: &Rig) -> Rows {
    let (hang, next) = (rig.subject("probe/spin_count")?, rig.subject("probe/empty")?);
    let config = rig.full(&hang)?;
    let (mut stops, mut rest) = (Stops::default(), Vec::new());
    for _ in 0..rig.samples(100) {
        let mut running = hang.start(&rig.stream, config, |launch| _ = launch.until_cancelled())?;
        let queue: Result<Vec<Running>, String> =
            (0..100).map(|_| next.start(&rig.stream, grid(1, 32), |launch| _ = launch.timeout(LONG))).collect();
        let mut queue = queue?;
        is_under_way(&mut running)?;
        let since = Instant::now();
        stops.push(&cancel(&mut running)?);
        for running in &mut queue {
            let outcome = running.wait().map_err(told)?;
            if !outcome.is_completed() {
                return Err(format!("what was queued behind should have completed: {outcome:?}"));
            }
        }
        rest.push(since.elapsed());
    }
    let mut rows = stops.rows("flag flip of a full grid", Target::median(60.0)).to_vec();
    rows.push(Row::micros("flag flip until the hundred behind it are done, too", &rest));
    Ok(rows)
}

/// Copies without end in both directions.
struct Copies {
    streams: [Arc<CudaStream>; 2],
    host: [PinnedHostSlice<u8>; 2],
    device: [CudaSlice<u8>; 2],
}

const GIGABYTE: usize = 1 << 30;

impl Copies {
    fn new(rig: &Rig) -> Result<Self, String> {
        let stream = || rig.context.new_stream().map_err(told);
        let device = || rig.stream.alloc_zeros::<u8>(GIGABYTE).map_err(told);
        Ok(Self { streams: [stream()?, stream()?], host: [rig.pinned(GIGABYTE)?, rig.pinned(GIGABYTE)?], device: [device()?, device()?] })
    }

    /// Four gigabytes each way.
    fn start(&mut self) -> Result<(), String> {
        for _ in 0..4 {
            self.streams[0].memcpy_htod(&self.host[0], &mut self.device[0]).map_err(told)?;
            self.streams[1].memcpy_dtoh(&self.device[1], &mut self.host[1]).map_err(told)?;
        }
        Ok(())
    }

    fn are_in_flight(&self) -> Result<bool, String> {
        let mut ended = true;
        for stream in &self.streams {
            ended &= stream.record_event(None).map_err(told)?.try_is_complete().map_err(told)?;
        }
        Ok(!ended)
    }

    fn finish(&self) -> Result<(), String> {
        self.streams.iter().try_for_each(|stream| stream.synchronize().map_err(told))
    }
}

pub(super) fn copies(rig: &Rig) -> Rows {
    let (subject, empty, bare) = (rig.subject("probe/spin_count")?, rig.subject("probe/empty")?, rig.bare("probe/empty")?);
    let config = rig.full(&subject)?;
    let mut copies = Copies::new(rig)?;
    let (mut cancels, mut deadlines) = (Stops::default(), Stops::default());
    let (mut guarded, mut plain) = (Vec::new(), Vec::new());
    // Eight gigabytes take 70 ms and more; each of these begins within a few of them.
    let begin = |copies: &mut Copies| {
        copies.start()?;
        thread::sleep(Duration::from_millis(2));
        if copies.are_in_flight()? { Ok(()) } else { Err("the copies are too fast to be measured beside".to_owned()) }
    };
    for _ in 0..rig.samples(50).max(10) {
        let mut running = subject.start(&rig.stream, config, |launch| _ = launch.until_cancelled())?;
        is_under_way(&mut running)?;
        begin(&mut copies)?;
        cancels.push(&cancel(&mut running)?);
        copies.finish()?;

        let since = Instant::now();
        let timeout = 3 * UNDER_WAY;
        let mut running = subject.start(&rig.stream, config, |launch| _ = launch.timeout(timeout))?;
        begin(&mut copies)?;
        deadlines.push(&expire(&mut running, since, timeout)?);
        copies.finish()?;

        begin(&mut copies)?;
        let since = Instant::now();
        bare.launch(&rig.stream, grid(1, 32))?;
        rig.stream.synchronize().map_err(told)?;
        plain.push(since.elapsed());
        let since = Instant::now();
        let outcome = empty.start(&rig.stream, grid(1, 32), |launch| _ = launch.timeout(LONG))?.wait().map_err(told)?;
        guarded.push(since.elapsed());
        if !outcome.is_completed() {
            return Err(format!("an empty kernel should complete: {outcome:?}"));
        }
        copies.finish()?;
    }
    let rows = [cancels.rows("flag flip", Target::p99(100.0)), deadlines.rows("deadline", Target::p99(100.0))];
    let mut rows: Vec<Row> = rows.into_iter().flatten().collect();
    rows.push(Row::micros("an empty kernel beside them, bare launch and wait", &plain));
    rows.push(Row::micros("an empty kernel beside them, guarded launch and wait", &guarded));
    Ok(rows)
}

pub(super) fn million_blocks(rig: &Rig) -> Rows {
    let (subject, empty, bare) = (rig.subject("probe/spin_count")?, rig.subject("probe/empty")?, rig.bare("probe/empty")?);
    let config = grid(1_000_000, 256);
    let (mut cancels, mut deadlines, mut begun) = (Stops::default(), Stops::default(), Vec::new());
    let (mut plain, mut guarded) = (Vec::new(), Vec::new());
    for _ in 0..rig.samples(50) {
        let stop = cancelled(&subject, &rig.stream, config, UNDER_WAY)?;
        begun.push(number(stop.report.launched_blocks - stop.report.blocks_not_begun));
        cancels.push(&stop);
        deadlines.push(&timed_out(&subject, &rig.stream, config, UNDER_WAY, |_| {})?);

        let event = || rig.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).map_err(told);
        let ahead = event()?;
        bare.launch(&rig.stream, config)?;
        let behind = event()?;
        plain.push(f64::from(ahead.elapsed_ms(&behind).map_err(told)?) * 1e3);
        let outcome = empty.start(&rig.stream, config, |launch| _ = launch.timeout(LONG).timed())?.wait().map_err(told)?;
        let Outcome::Completed { elapsed, .. } = outcome else { return Err(format!("an empty kernel should complete: {outcome:?}")) };
        guarded.push(elapsed.as_secs_f64() * 1e6);
    }
    let mut rows: Vec<Row> = [("flag flip", &cancels), ("deadline", &deadlines)]
        .into_iter()
        .map(|(what, stops)| Row::micros(format!("{what} until drained"), &stops.latencies))
        .collect();
    rows.push(Row::new("the same grid of an empty kernel, plain", "us", &plain));
    rows.push(Row::new("the same grid of an empty kernel, rewritten and guarded", "us", &guarded));
    rows.push(Row::new("blocks that had begun when it was cancelled", "", &begun));
    Ok(rows)
}

pub(super) fn host_timer(rig: &Rig) -> Rows {
    let subject = rig.subject("probe/spin_count")?;
    let mut rows = Vec::new();
    for (config, shape) in [(grid(1, 256), "one block"), (rig.full(&subject)?, "full grid")] {
        for (flag, word) in [(FlagMemory::Device, "device"), (FlagMemory::Pinned, "pinned"), (FlagMemory::Managed, "managed")] {
            let mut stops = Stops::default();
            for _ in 0..rig.samples(200) {
                stops.push(&timed_out(&subject, &rig.stream, config, UNDER_WAY, |launch| _ = launch.clock(Clock::Host).flag(flag))?);
            }
            let note = "every launch stopped";
            rows.push(Row::micros(format!("{shape}, flag in {word} memory: deadline until drained"), &stops.latencies).note(note));
        }
    }
    Ok(rows)
}

pub(super) fn deadlines(rig: &Rig) -> Rows {
    let subject = rig.subject("probe/spin_count")?;
    let (mut early, mut first, mut drained) = (0, Vec::new(), Vec::new());
    let mut random = 1_u64;
    for _ in 0..rig.samples(10_000) {
        // Timeouts from 50 to 306 microseconds, to the nanosecond.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let timeout = Duration::from_nanos(50_000 + (random >> 46));
        let since = Instant::now();
        let mut running = subject.start(&rig.stream, grid(1, 32), |launch| _ = launch.timeout(timeout))?;
        let outcome = running.wait().map_err(told)?;
        let took = since.elapsed();
        let (latency, report) = stopped(outcome, Cause::Deadline)?;
        let elapsed = report.first.as_ref().and_then(|first| first.elapsed_ns).ok_or("the report does not say when it stopped")?;
        match Duration::from_nanos(elapsed).checked_sub(timeout) {
            Some(late) if took >= timeout => first.push(late),
            _ => early += 1,
        }
        drained.push(latency);
    }
    Ok(vec![
        Row::new("stopped before the deadline, by %globaltimer or by the host's clock", "", &[number(early)]).target(Target::most(0.0)),
        Row::micros("deadline until the first thread stops, by %globaltimer", &first),
        Row::micros("deadline until drained", &drained).target(Target::p99(50.0)),
    ])
}
