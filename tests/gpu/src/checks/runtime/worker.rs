//! A kernel may do what it likes to its worker, and the next one is right all the same.

use super::Promise;
use super::bench::{completed, cubin, told};
use crate::launcher::Contents;
use crate::manifest::Subject;
use crate::session::{Checked, Report, Session, same};
use cuinstr_harness::header::{Arg, Header};
use cuinstr_harness::variant;
use cuinstr_runtime::cudarc::driver::LaunchConfig;
use cuinstr_runtime::worker::{Argument, Fault, RemoteBuffer, RemoteKernel, RemoteLaunch, RemoteRunning, Restore, Worker};
use cuinstr_runtime::{Cause, Error, Outcome, Tier};
use serde_json::json;
use std::collections::BTreeMap;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

pub(super) const PROMISES: &[Promise] = &[
    Promise::new("a worker computes what this process computes", computes),
    Promise::new("a hang leaves in a worker, and the worker lives on", leaves),
    Promise::new("what leaves no poll costs its worker, and the spare is there in milliseconds, its buffers restored", spare).within(60),
    Promise::new("every hang that leaves no poll is ended by its worker's end", higher_tiers).within(60),
    Promise::new("a write out of bounds is a fault of its worker's", out_of_bounds),
    Promise::new("a worker that is killed or stopped from outside is replaced", from_outside).within(60),
    Promise::new("a worker is cancelled from another thread, and dropped in the middle of a hang", cancelled),
    Promise::new("a thousand candidates, and every verdict right", thousand).within(240),
];

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(10);
/// Longest that spares take to be ready.
const WARM: Duration = Duration::from_secs(30);
const ESCAPES: &str = "hang/grid_sync";
const WILD: &str = "probe/out_of_bounds";

/// Sound kernels whose results are the same each time, bit for bit.
const SOUND: &[&str] = &[
    "saxpy",
    "gemm_naive",
    "gemm_tiled",
    "collatz",
    "mandelbrot",
    "reduce_shared",
    "spmv_csr",
    "convolve2d",
    "nbody",
    "stencil5",
    "transpose",
    "scan_blelloch",
];

/// A kernel of the manifest in a worker, with its arguments.
struct Remote {
    kernel: RemoteKernel,
    arguments: Vec<Argument>,
    buffers: Vec<(RemoteBuffer, Vec<u8>)>,
    header: Header,
}

impl Remote {
    fn new(session: &Session, worker: &Worker, name: &str) -> Result<Self, String> {
        let subject: &Subject = session.manifest.subject(name)?;
        let module = worker.load(&cubin(session, name, variant::DEFAULT)?).map_err(told)?;
        let kernel = module.kernel(&subject.build(variant::DEFAULT)?.entry).map_err(told)?;
        let header = subject.fixture.header.clone();
        let (mut arguments, mut buffers) = (Vec::new(), Vec::new());
        for arg in &header.args {
            match *arg {
                Arg::Scalar { ty, bits } => arguments.push(Argument::bytes(&bits.to_le_bytes()[..ty.size()])),
                Arg::Buffer { ty, count, init, .. } => {
                    let bytes = init.bytes(ty, count);
                    let buffer = worker.upload(&bytes, Restore::Copy).map_err(told)?;
                    arguments.push(Argument::from(&buffer));
                    buffers.push((buffer, bytes));
                }
            }
        }
        Ok(Self { kernel, arguments, buffers, header })
    }

    fn start(&self, limits: impl FnOnce(&mut RemoteLaunch)) -> Result<RemoteRunning, Error> {
        let mut launch = self.kernel.launch();
        for argument in &self.arguments {
            launch.arg(argument.clone());
        }
        if self.header.cooperative {
            launch.cooperative();
        }
        if let Some(cluster) = self.header.cluster {
            launch.cluster(cluster);
        }
        limits(&mut launch);
        let Header { grid, block, shared, .. } = self.header;
        launch.start(LaunchConfig { grid_dim: grid.into(), block_dim: block.into(), shared_mem_bytes: shared })
    }

    fn run(&self, timeout: Duration) -> Result<Outcome, String> {
        self.start(|launch| _ = launch.timeout(timeout)).and_then(|mut running| running.wait()).map_err(told)
    }

    fn refill(&mut self) -> Result<(), String> {
        self.buffers.iter_mut().try_for_each(|(buffer, bytes)| buffer.write(bytes).map_err(told))
    }

    fn contents(&self) -> Result<Vec<Vec<u8>>, String> {
        self.buffers.iter().map(|(buffer, _)| buffer.read::<u8>().map_err(told)).collect()
    }

    /// Runs it, and compares with this process's own results.
    fn is_right(&mut self, answer: &[Contents]) -> Result<(), String> {
        self.refill()?;
        completed(&self.run(LONG)?)?;
        self.holds(answer)
    }

    fn holds(&self, answer: &[Contents]) -> Result<(), String> {
        let found = self.contents()?.into_iter().zip(answer);
        let found: Vec<Contents> = found.map(|(bytes, answer)| Contents { bytes, ..answer.clone() }).collect();
        same(answer, &found)
    }
}

/// What a kernel computes in this process.
fn answer(session: &Session, name: &str) -> Result<Vec<Contents>, String> {
    session.run(&session.load(name, variant::DEFAULT)?)
}

fn worker(spares: usize) -> Result<Worker, String> {
    let worker = Worker::builder().spares(spares).start().map_err(told)?;
    ready(&worker)?;
    Ok(worker)
}

fn ready(worker: &Worker) -> Result<(), String> {
    if worker.warm(WARM).map_err(told)? { Ok(()) } else { Err(format!("the spares are not ready after {WARM:?}")) }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn median(mut times: Vec<f64>) -> serde_json::Value {
    times.sort_by(f64::total_cmp);
    json!({ "median": times.get(times.len() / 2), "most": times.last(), "all": times })
}

/// Stopped at the line that the source marks.
fn left(session: &Session, name: &str, outcome: &Outcome) -> Result<f64, String> {
    let hang = session.manifest.subject(name)?.fixture.hang.as_ref().ok_or("no marked line")?;
    let Outcome::Stopped { why: Cause::Deadline, tier: Tier::Leave, latency, report } = outcome else {
        return Err(format!("{name} should have left at its deadline: {outcome:?}"));
    };
    let place = report.first.as_ref().and_then(|first| first.site.place.as_ref()).ok_or_else(|| format!("no place:\n{report}"))?;
    let in_macro = place.function.strip_prefix("#define ").is_some_and(|name| hang.text.contains(name.trim()));
    let there = place.file.ends_with(&hang.file) && (place.line == hang.line || hang.inside.contains(&place.line));
    if there || in_macro { Ok(millis(*latency)) } else { Err(format!("{name}: not line {}:\n{report}", hang.line)) }
}

/// Stopped by the end of its worker.
fn ended(name: &str, outcome: &Outcome) -> Result<f64, String> {
    match outcome {
        Outcome::Stopped { why: Cause::Deadline, tier: Tier::Worker, latency, report } if report.launched_blocks > 0 => {
            Ok(millis(*latency))
        }
        other => Err(format!("{name} should have cost its worker: {other:?}")),
    }
}

fn computes(session: &Session) -> Checked {
    let since = Instant::now();
    let worker = Worker::builder().spares(1).start().map_err(told)?;
    let started = millis(since.elapsed());
    for name in ["gemm_naive", "saxpy"] {
        Remote::new(session, &worker, name)?.is_right(&answer(session, name)?)?;
    }
    let sound = Remote::new(session, &worker, "saxpy")?;
    let mut launches = Vec::new();
    for _ in 0..200 {
        let since = Instant::now();
        completed(&sound.run(LONG)?)?;
        launches.push(since.elapsed().as_secs_f64() * 1e6);
    }
    launches.sort_by(f64::total_cmp);
    let eight = vec![7_u8; 8 << 20];
    let mut buffer = worker.upload(&eight, Restore::Never).map_err(told)?;
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        let since = Instant::now();
        buffer.write(&eight).map_err(told)?;
        writes.push(millis(since.elapsed()));
        let since = Instant::now();
        if buffer.read_bytes(0, eight.len()).map_err(told)? != eight {
            return Err("8 MB did not come back".into());
        }
        reads.push(millis(since.elapsed()));
    }
    let data = json!({
        "start_ms": started,
        "launch_us": { "median": launches[100], "p99": launches[198] },
        "write_8_mb_ms": median(writes),
        "read_8_mb_ms": median(reads),
    });
    Ok(Report::of(data))
}

fn leaves(session: &Session) -> Checked {
    let worker = worker(1)?;
    let hang = Remote::new(session, &worker, "hang/while_true")?;
    let mut sound = Remote::new(session, &worker, "saxpy")?;
    let (right, pid) = (answer(session, "saxpy")?, worker.pid().map_err(told)?);
    let mut latencies = Vec::new();
    for _ in 0..20 {
        latencies.push(left(session, "hang/while_true", &hang.run(SHORT)?)?);
        sound.is_right(&right)?;
    }
    if worker.pid().map_err(told)? != pid || worker.losses() != 0 {
        return Err("the worker was lost".into());
    }
    Ok(Report::of(json!({ "latency_ms": median(latencies) })))
}

fn spare(session: &Session) -> Checked {
    let worker = worker(1)?;
    let right = answer(session, "saxpy")?;
    let (mut told_ms, mut next_ms, mut settled_ms) = (Vec::new(), Vec::new(), Vec::new());
    let (mut taken_ms, mut restored_ms, mut then_ms) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..20 {
        ready(&worker)?;
        let sound = Remote::new(session, &worker, "saxpy")?;
        let lost = worker.upload(&[1_u8; 64], Restore::Never).map_err(told)?;
        let hang = Remote::new(session, &worker, ESCAPES)?;
        told_ms.push(ended(ESCAPES, &hang.run(SHORT)?)?);
        // From the kill to a result on the spare: the module is loaded, the buffers are filled, the kernel runs, its result is read. Every
        // other time in one go, else step by step.
        let since = Instant::now();
        if round % 2 == 1 {
            worker.pid().map_err(told)?;
            taken_ms.push(millis(since.elapsed()));
            sound.buffers.iter().try_for_each(|(buffer, _)| buffer.read_bytes(0, 1).map(drop)).map_err(told)?;
            restored_ms.push(millis(since.elapsed()));
        }
        completed(&sound.run(LONG)?)?;
        sound.holds(&right)?;
        if round % 2 == 1 {
            then_ms.push(millis(since.elapsed()));
        } else {
            next_ms.push(millis(since.elapsed()));
        }
        match lost.read::<u8>() {
            Err(Error::Worker(Fault::Lost { bytes: 64, .. })) => {}
            other => return Err(format!("a buffer that was not to be restored: {other:?}")),
        }
        if worker.losses() != round + 1 {
            return Err(format!("{} losses after {} kills", worker.losses(), round + 1));
        }
        // The same once the killed process is gone from the GPU.
        thread::sleep(Duration::from_millis(500));
        let since = Instant::now();
        completed(&sound.run(LONG)?)?;
        sound.contents()?;
        settled_ms.push(millis(since.elapsed()));
    }
    let eight = vec![7_u8; 8 << 20];
    ready(&worker)?;
    let buffer = worker.upload(&eight, Restore::Copy).map_err(told)?;
    ended(ESCAPES, &Remote::new(session, &worker, ESCAPES)?.run(SHORT)?)?;
    let since = Instant::now();
    if buffer.read_bytes(8, 8).map_err(told)? != eight[8..16] {
        return Err("8 MB were not restored".into());
    }
    let restored = millis(since.elapsed());
    let data = json!({
        "deadline_to_kill_ms": median(told_ms),
        "kill_to_next_result_ms": median(next_ms),
        "steps_ms": { "taken_over": median(taken_ms), "buffers_restored": median(restored_ms), "result": median(then_ms) },
        "result_without_kill_ms": median(settled_ms),
        "restore_8_mb_ms": restored,
    });
    Ok(Report::of(data))
}

fn higher_tiers(session: &Session) -> Checked {
    let worker = worker(4)?;
    let mut sound = Remote::new(session, &worker, "saxpy")?;
    let right = answer(session, "saxpy")?;
    let mut found = BTreeMap::new();
    let mut report = Report::default();
    let hangs = session.manifest.subjects.iter().filter(|subject| subject.fixture.tier() > 1);
    for subject in hangs.filter(|subject| subject.builds.contains_key(variant::DEFAULT.name)) {
        let name = &subject.fixture.name;
        let outcome = Remote::new(session, &worker, name)?.run(SHORT)?;
        found.insert(name.clone(), ended(name, &outcome)?);
        if let Outcome::Stopped { report: of_hang, .. } = outcome {
            report = report.note(of_hang.to_string());
        }
        sound.is_right(&right).map_err(|why| format!("after {name}: {why}"))?;
    }
    if found.is_empty() || worker.losses() != found.len() as u64 {
        return Err(format!("{} losses for {} hangs", worker.losses(), found.len()));
    }
    Ok(Report { data: json!({ "deadline_to_kill_ms": found }), ..report })
}

fn out_of_bounds(session: &Session) -> Checked {
    let worker = worker(2)?;
    let mut sound = Remote::new(session, &worker, "saxpy")?;
    let wild = Remote::new(session, &worker, WILD)?;
    let right = answer(session, "saxpy")?;
    let mut next = Vec::new();
    for _ in 0..5 {
        ready(&worker)?;
        match wild.run(LONG)? {
            Outcome::Faulted { fault } if fault.code == 700 => {}
            other => return Err(format!("it should have faulted: {other:?}")),
        }
        let since = Instant::now();
        sound.is_right(&right)?;
        next.push(millis(since.elapsed()));
    }
    if worker.losses() != 5 {
        return Err(format!("{} losses after 5 faults", worker.losses()));
    }
    Ok(Report::of(json!({ "fault_to_next_result_ms": median(next) })))
}

fn signal(name: &str, pid: u32) -> Result<(), String> {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status().map_err(told)?;
    if sent.success() { Ok(()) } else { Err(format!("kill {name} {pid}: {sent}")) }
}

fn from_outside(session: &Session) -> Checked {
    let worker = Worker::builder().spares(2).answer_within(Duration::from_secs(1)).start().map_err(told)?;
    ready(&worker)?;
    let mut sound = Remote::new(session, &worker, "saxpy")?;
    let hang = Remote::new(session, &worker, "hang/while_true")?;
    let right = answer(session, "saxpy")?;
    // Idle.
    signal("-KILL", worker.pid().map_err(told)?)?;
    thread::sleep(SHORT);
    sound.is_right(&right)?;
    // In the middle of a launch.
    let mut running = hang.start(|launch| _ = launch.until_cancelled()).map_err(told)?;
    thread::sleep(SHORT);
    signal("-KILL", worker.pid().map_err(told)?)?;
    match running.wait() {
        Err(Error::Worker(Fault::Gone { .. })) => {}
        other => return Err(format!("its process was killed: {other:?}")),
    }
    sound.is_right(&right)?;
    ready(&worker)?;
    // One that does not answer.
    let since = Instant::now();
    signal("-STOP", worker.pid().map_err(told)?)?;
    match sound.refill() {
        Err(why) if why.contains("was killed") => {}
        other => return Err(format!("its process was stopped: {other:?}")),
    }
    let took = since.elapsed();
    if took > Duration::from_secs(3) {
        return Err(format!("a stopped process was waited for {took:?}"));
    }
    sound.is_right(&right)?;
    if worker.losses() != 3 {
        return Err(format!("{} losses", worker.losses()));
    }
    Ok(Report::of(json!({ "stopped_process_given_up_ms": millis(took) })))
}

fn cancelled(session: &Session) -> Checked {
    let worker = worker(1)?;
    let hang = Remote::new(session, &worker, "hang/while_true")?;
    let mut latencies = Vec::new();
    for _ in 0..10 {
        let mut running = hang.start(|launch| _ = launch.until_cancelled()).map_err(told)?;
        let canceller = running.canceller();
        let thread = thread::spawn(move || {
            thread::sleep(SHORT);
            let since = Instant::now();
            canceller.cancel().map(|()| since)
        });
        let outcome = running.wait().map_err(told)?;
        let since = thread.join().map_err(|_| "the thread panicked")?.map_err(told)?;
        latencies.push(millis(since.elapsed()));
        if !matches!(outcome, Outcome::Stopped { why: Cause::Cancelled, tier: Tier::Leave, .. }) {
            return Err(format!("it should have been cancelled: {outcome:?}"));
        }
    }
    let stuck = Remote::new(session, &worker, ESCAPES)?;
    let running = stuck.start(|launch| _ = launch.until_cancelled()).map_err(told)?;
    let pid = worker.pid().map_err(told)?;
    let since = Instant::now();
    drop((running, stuck, hang, worker));
    let took = since.elapsed();
    if took > Duration::from_millis(50) {
        return Err(format!("dropping took {took:?}"));
    }
    while std::path::Path::new(&format!("/proc/{pid}")).exists() {
        if since.elapsed() > LONG {
            return Err(format!("process {pid} is still there"));
        }
        thread::sleep(Duration::from_millis(1));
    }
    let data = json!({ "cancel_to_outcome_ms": median(latencies), "drop_ms": millis(took), "process_gone_ms": millis(since.elapsed()) });
    Ok(Report::of(data))
}

fn thousand(session: &Session) -> Checked {
    let worker = worker(8)?;
    let has_build = |subject: &&Subject| subject.builds.contains_key(variant::DEFAULT.name);
    let hangs: Vec<&Subject> = session.manifest.subjects.iter().filter(|subject| subject.fixture.tier() > 0).filter(has_build).collect();
    let sound: Vec<&str> = SOUND.iter().copied().filter(|name| session.manifest.subject(name).is_ok()).collect();
    if hangs.is_empty() || sound.is_empty() {
        return Err("there is nothing to run".into());
    }
    let answers = sound.iter().map(|name| answer(session, name)).collect::<Result<Vec<_>, String>>()?;
    let since = Instant::now();
    let (mut slowest, mut by_tier) = (BTreeMap::<&str, f64>::new(), [0_u32; 4]);
    for candidate in 0..1000 {
        let (kind, turn) = (candidate % 3, candidate / 3);
        let begun = Instant::now();
        let name = match kind {
            0 => hangs[turn % hangs.len()].fixture.name.as_str(),
            1 => WILD,
            _ => sound[turn % sound.len()],
        };
        let remote = Remote::new(session, &worker, name).map_err(|why| format!("candidate {candidate}, {name}: {why}"))?;
        let outcome = remote.run(if kind == 0 { SHORT } else { LONG });
        let verdict = outcome.and_then(|outcome| match (kind, &outcome) {
            (0, _) if hangs[turn % hangs.len()].fixture.tier() == 1 => left(session, name, &outcome).map(|_| by_tier[1] += 1),
            (0, _) => ended(name, &outcome).map(|_| by_tier[3] += 1),
            (1, Outcome::Faulted { fault }) if fault.code == 700 => Ok(()),
            (2, _) => completed(&outcome).and_then(|()| remote.holds(&answers[turn % sound.len()])),
            _ => Err(format!("it should have faulted: {outcome:?}")),
        });
        verdict.map_err(|why| format!("candidate {candidate}, {name}: {why}"))?;
        let took = slowest.entry(["hang", "out of bounds", "sound"][kind]).or_default();
        *took = took.max(millis(begun.elapsed()));
    }
    let data = json!({
        "candidates": 1000,
        "seconds": since.elapsed().as_secs_f64(),
        "losses": worker.losses(),
        "hangs_that_left": by_tier[1],
        "hangs_that_cost_a_worker": by_tier[3],
        "slowest_ms": slowest,
    });
    Ok(Report::of(data))
}
