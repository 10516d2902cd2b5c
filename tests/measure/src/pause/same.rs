//! Launches that are paused and resumed leave what unpaused ones leave.

use super::{Folder, Subject, Tell, told};
use cuinstr_harness::random::Random;
use cuinstr_runtime::{Error, Outcome, Running};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Pauses of a kernel's launches, and of one of them.
const PAUSES: u32 = 10;
/// Launches at most that are paused for that.
const LAUNCHES: u32 = 12;
/// How long a launch takes that fills the device ahead of one whose blocks all fit.
const AHEAD: Duration = Duration::from_micros(300);
/// Pauses of a launch in [`many`]. A request may come before a resumed launch has begun a block, so a launch that is always paused need not end.
const PAUSES_AT_ONCE: usize = 50;
/// Longest wait for a pause: blocks that wait for blocks which declined never end.
const WITHIN: Duration = Duration::from_secs(2);

/// Each kernel, paused at random instants: whether its results are those of unpaused launches.
///
/// # Errors
/// What the driver answers.
pub fn same(folder: &Folder, kinds: &[&'static str], until: Instant, tell: Tell<'_>) -> Result<(), String> {
    let occupier = folder.marks(folder.context.new_stream().map_err(told)?, 1056)?;
    for name in folder.names()?.into_iter().filter(|name| name != "first") {
        if Instant::now() > until {
            tell(json!({ "kernel": name, "missed": "no time was left" }));
            continue;
        }
        let row = folder
            .subject(&name, kinds)
            .and_then(|mut subject| kinds.iter().map(|kind| kernel(&mut subject, &occupier, kind)).collect::<Result<Vec<_>, _>>());
        tell(row.map_or_else(|why| json!({ "kernel": name, "failed": why }), |all| json!({ "kernel": name, "builds": all })));
    }
    Ok(())
}

fn kernel(subject: &mut Subject, occupier: &Subject, kind: &'static str) -> Result<Value, String> {
    let mut random = Random::new(7);
    let (mut whole, mut took) = (Vec::new(), Duration::ZERO);
    for _ in 0..2 {
        subject.reset()?;
        took = elapsed(&subject.start(kind, true, None)?.wait().map_err(told)?)?;
        whole.push(subject.results()?);
    }
    let agrees = whole[0] == whole[1];
    let (mut pauses, mut given_up, mut launches, mut different) = (0, 0, 0, 0);
    let mut range = took * 2 / PAUSES;
    let mut is_behind = false;
    while pauses < PAUSES && launches < LAUNCHES {
        launches += 1;
        subject.reset()?;
        let ahead = if is_behind { Some(occupier.start("base", false, Some((1056, 256, AHEAD.as_nanos() as u64)))?) } else { None };
        let mut running = subject.start(kind, true, None)?;
        let before = pauses;
        let is_over = pause_often(&mut running, subject, || range * random.below(1000) as u32 / 1000, &mut pauses, &mut given_up)?;
        if !is_over {
            finish(&mut running, subject)?;
        }
        if let Some(mut ahead) = ahead {
            elapsed(&ahead.wait().map_err(told)?)?;
        }
        different += u32::from(subject.results()? != whole[0]);
        if pauses == before {
            // All its blocks fit on the device at once, so they have begun at any instant: from now on they begin as those of another launch end.
            (is_behind, range) = (true, AHEAD * 5 / 4);
        }
    }
    Ok(json!({
        "build": kind, "us": took.as_secs_f64() * 1e6, "launches": launches, "behind another": is_behind, "pauses": pauses, "given up": given_up,
        "same": different == 0, "unpaused runs agree": agrees,
    }))
}

/// Pauses and resumes a launch up to ten times. Whether it is over.
fn pause_often(
    running: &mut Running,
    subject: &Subject,
    mut time: impl FnMut() -> Duration,
    pauses: &mut u32,
    given_up: &mut u32,
) -> Result<bool, String> {
    for _ in 0..PAUSES {
        spin(time());
        match running.pause(WITHIN) {
            Ok(Outcome::Paused { .. }) => *pauses += 1,
            Ok(outcome) => return elapsed(&outcome).map(|_| true),
            Err(Error::NotPaused { .. }) => {
                running.go_on().map_err(told)?;
                *given_up += 1;
                continue;
            }
            Err(error) => return Err(told(error)),
        }
        running.resume(&subject.stream).map_err(told)?;
    }
    Ok(false)
}

/// Lets a launch run to its end.
fn finish(running: &mut Running, subject: &Subject) -> Result<(), String> {
    loop {
        match running.wait().map_err(told)? {
            Outcome::Paused { .. } => running.resume(&subject.stream).map_err(told)?,
            outcome => return elapsed(&outcome).map(drop),
        }
    }
}

pub(super) fn elapsed(outcome: &Outcome) -> Result<Duration, String> {
    match outcome {
        Outcome::Completed { elapsed, .. } => Ok(*elapsed),
        other => Err(other.to_string()),
    }
}

pub(super) fn spin(time: Duration) {
    let since = Instant::now();
    while since.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// So many pauses in this process, of launches whose blocks count: whether each block ran once.
///
/// # Errors
/// What the driver answers.
pub fn many(folder: &Folder, count: usize, until: Instant, tell: Tell<'_>) -> Result<(), String> {
    let mut subject = folder.subject("marks", &["source"])?;
    let mut random = Random::new(11);
    let (mut pauses, mut launches, mut wrong) = (0, 0, 0);
    while pauses < count && Instant::now() < until {
        subject.reset()?;
        let mut running = subject.start("source", true, None)?;
        launches += 1;
        let mut is_over = false;
        for _ in 0..PAUSES_AT_ONCE {
            spin(Duration::from_micros(random.below(60) as u64));
            match running.pause(WITHIN).map_err(told)? {
                Outcome::Paused { .. } => pauses += 1,
                other => {
                    is_over = elapsed(&other).map(|_| true)?;
                    break;
                }
            }
            running.resume(&subject.stream).map_err(told)?;
        }
        if !is_over {
            finish(&mut running, &subject)?;
        }
        let counts = subject.results()?.swap_remove(0);
        wrong += usize::from(counts.chunks(4).any(|word| word != [1, 0, 0, 0]));
    }
    tell(json!({ "pauses": pauses, "launches": launches, "launches with a block that did not run once": wrong }));
    Ok(())
}
