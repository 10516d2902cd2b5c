//! What a guarded launch costs that a bare one does not, and what a stop costs that a killed process does not.

use super::figure::{Row, Target, number};
use super::latency::{LONG, stopped};
use super::rig::{Bare, Rig, Subject, grid, told};
use cuinstr_harness::process;
use cuinstr_runtime::{Cause, Running};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

type Rows = Result<Vec<Row>, String>;

/// Launches of a batch.
const BATCH: u32 = 100;
/// Longest that a process of ours may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

struct Launches<'a> {
    rig: &'a Rig,
    bare: Bare,
    guarded: Subject,
    running: Vec<Running>,
}

impl Launches<'_> {
    /// Host time of one launch call in a row of them.
    fn calls(&mut self, is_guarded: bool) -> Result<f64, String> {
        let stream = &self.rig.stream;
        let since = Instant::now();
        for _ in 0..BATCH {
            if is_guarded {
                self.running.push(self.guarded.start(stream, grid(1, 32), |launch| _ = launch.timeout(LONG))?);
            } else {
                self.bare.launch(stream, grid(1, 32))?;
            }
        }
        let took = since.elapsed();
        stream.synchronize().map_err(told)?;
        for mut running in self.running.drain(..) {
            completed(&mut running)?;
        }
        Ok(took.as_secs_f64() * 1e6 / f64::from(BATCH))
    }

    /// Host time of a launch and the wait for it.
    fn round_trip(&mut self, is_guarded: bool) -> Result<f64, String> {
        let stream = &self.rig.stream;
        let since = Instant::now();
        for _ in 0..BATCH {
            if is_guarded {
                completed(&mut self.guarded.start(stream, grid(1, 32), |launch| _ = launch.timeout(LONG))?)?;
            } else {
                self.bare.launch(stream, grid(1, 32))?;
                stream.synchronize().map_err(told)?;
            }
        }
        Ok(since.elapsed().as_secs_f64() * 1e6 / f64::from(BATCH))
    }

    /// Guarded and bare in turn: the two medians as rows, and what one has over the other, pair by pair.
    fn compare(&mut self, what: &str, samples: usize, take: fn(&mut Self, bool) -> Result<f64, String>) -> Rows {
        let (mut bare, mut guarded) = (Vec::new(), Vec::new());
        for _ in 0..samples {
            bare.push(take(self, false)?);
            guarded.push(take(self, true)?);
        }
        let over: Vec<f64> = guarded.iter().zip(&bare).map(|(guarded, bare)| guarded - bare).collect();
        Ok(vec![
            Row::new(format!("{what}, bare"), "us", &bare),
            Row::new(format!("{what}, guarded"), "us", &guarded),
            Row::new(format!("{what}, guarded over bare"), "us", &over).target(Target::median(2.0)),
        ])
    }
}

fn completed(running: &mut Running) -> Result<(), String> {
    let outcome = running.wait().map_err(told)?;
    if outcome.is_completed() { Ok(()) } else { Err(format!("an empty kernel should complete: {outcome:?}")) }
}

pub(super) fn launch(rig: &Rig) -> Rows {
    let (bare, guarded) = (rig.bare("probe/empty")?, rig.subject("probe/empty")?);
    let mut launches = Launches { rig, bare, guarded, running: Vec::with_capacity(BATCH as usize) };
    for is_guarded in [false, true, false, true] {
        launches.calls(is_guarded)?;
        launches.round_trip(is_guarded)?;
    }
    let samples = rig.samples(300);
    let mut rows = launches.compare("launch call", samples, Launches::calls)?;
    rows.extend(launches.compare("launch and wait", samples, Launches::round_trip)?);
    let mut count = |is_guarded| -> Result<f64, String> {
        let before = (rig.allocations)();
        for _ in 0..10 {
            launches.round_trip(is_guarded)?;
        }
        Ok(number((rig.allocations)() - before) / f64::from(10 * BATCH))
    };
    let (bare, guarded) = (count(false)?, count(true)?);
    let over = Row::new("allocations of a launch and wait, guarded over bare", "", &[guarded - bare]).target(Target::most(0.0));
    rows.push(over.note(format!("{guarded} guarded, {bare} bare, each the mean of {} launches", 10 * BATCH)));
    Ok(rows)
}

/// A sound kernel with a known answer.
pub(super) struct Sound(Subject);

const STEPS: u32 = 1;

impl Sound {
    pub(super) fn new(rig: &Rig) -> Result<Self, String> {
        Ok(Self(rig.subject("probe/count_steps")?.with(1, STEPS)))
    }

    /// Launches it and reads its result back.
    pub(super) fn result(&self, rig: &Rig) -> Result<(), String> {
        let outcome = self.0.start(&rig.stream, grid(1, 32), |launch| _ = launch.timeout(LONG))?.wait().map_err(told)?;
        let first: Option<[u8; 4]> = self.0.first(&rig.stream)?.first_chunk().copied();
        if outcome.is_completed() && first.map(u32::from_ne_bytes) == Some(STEPS) {
            return Ok(());
        }
        Err(format!("the next kernel's result is {first:?}, and its outcome {outcome:?}"))
    }
}

pub(super) fn next_result(rig: &Rig) -> Rows {
    let (hang, sound) = (rig.subject("probe/spin_count")?, Sound::new(rig)?);
    let config = rig.full(&hang)?;
    let (mut from_cancel, mut from_stop, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rig.samples(500) {
        let mut running = hang.start(&rig.stream, config, |launch| _ = launch.until_cancelled())?;
        thread::sleep(Duration::from_millis(3));
        let cancel = Instant::now();
        running.cancel().map_err(told)?;
        let outcome = running.wait().map_err(told)?;
        let stop = Instant::now();
        sound.result(rig)?;
        from_cancel.push(cancel.elapsed());
        from_stop.push(stop.elapsed());
        stopped(outcome, Cause::Cancelled)?;
        let since = Instant::now();
        sound.result(rig)?;
        alone.push(since.elapsed());
    }
    let (mut reaped, mut fresh) = (Vec::new(), Vec::new());
    for _ in 0..rig.samples(10).max(3) {
        let (mut victim, lines) = spawn(rig, "victim")?;
        lines.recv_timeout(ANSWER).map_err(|_| "the process that is to be killed does not hang")?;
        thread::sleep(Duration::from_millis(100));
        let since = Instant::now();
        victim.kill().map_err(told)?;
        process::wait(&mut victim, ANSWER).map_err(told)?.ok_or("a killed process is not gone")?;
        reaped.push(since.elapsed());
        let (mut next, lines) = spawn(rig, "fresh")?;
        lines.recv_timeout(ANSWER).map_err(|_| "the process after a killed one gives no result")?;
        fresh.push(since.elapsed());
        let _ = next.kill();
        process::wait(&mut next, ANSWER).map_err(told)?;
    }
    Ok(vec![
        Row::micros("from the cancel of a full grid to the next kernel's result", &from_cancel).target(Target::median(60.0)),
        Row::micros("from the stopped outcome to the next kernel's result", &from_stop),
        Row::micros("the same kernel's result when nothing was stopped", &alone),
        Row::micros("SIGKILL until the process is reaped", &reaped),
        Row::micros("SIGKILL to the first result of a new process", &fresh),
    ])
}

/// This program in another role, and the lines that it prints.
fn spawn(rig: &Rig, role: &str) -> Result<(Child, mpsc::Receiver<String>), String> {
    let mut command = Command::new(std::env::current_exe().map_err(told)?);
    command.arg("--folder").arg(&rig.folder).args(["--role", role]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(told)?;
    let stdout = child.stdout.take().ok_or("a process without output")?;
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    Ok((child, lines))
}

fn say(word: &str) {
    println!("{word}");
    let _ = std::io::stdout().flush();
}

/// What the process does that is to be killed: hang a full grid.
///
/// # Errors
/// If that can't be done.
pub fn victim(rig: &Rig) -> Result<(), String> {
    let hang = rig.subject("probe/spin_count")?;
    let _running = hang.start(&rig.stream, rig.full(&hang)?, |launch| _ = launch.until_cancelled())?;
    say("hangs");
    thread::sleep(6 * ANSWER);
    Ok(())
}

/// What the process after it does: one result.
///
/// # Errors
/// If it is wrong.
pub fn fresh(rig: &Rig) -> Result<(), String> {
    Sound::new(rig)?.result(rig)?;
    say("done");
    thread::sleep(6 * ANSWER);
    Ok(())
}
