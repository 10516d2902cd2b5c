//! Launches that are paused and resumed leave what unpaused ones leave.

use super::{Folder, Subject, told};
use cuinstr_harness::random::Random;
use cuinstr_runtime::{Error, Outcome, Running};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Pauses of a launch.
const PAUSES: u32 = 10;
/// Pauses of a launch in [`many`]. A request may come before a resumed launch has begun a block, so a launch that is always paused need not end.
const PAUSES_AT_ONCE: usize = 50;
/// Longest wait for a pause: blocks that wait for blocks which declined never end.
const WITHIN: Duration = Duration::from_secs(2);

/// Each kernel, paused at random instants: whether its results are those of unpaused launches.
///
/// # Errors
/// What the driver answers.
pub fn same(folder: &Folder, kinds: &[&'static str], until: Instant) -> Result<Value, String> {
    let mut rows = Vec::new();
    for name in folder.names()?.into_iter().filter(|name| name != "first") {
        if Instant::now() > until {
            rows.push(json!({ "kernel": name, "missed": "no time was left" }));
            continue;
        }
        let row = folder
            .subject(&name, kinds)
            .and_then(|mut subject| kinds.iter().map(|kind| kernel(&mut subject, kind)).collect::<Result<Vec<_>, _>>());
        rows.push(row.map_or_else(|why| json!({ "kernel": name, "failed": why }), |all| json!({ "kernel": name, "builds": all })));
    }
    Ok(Value::Array(rows))
}

fn kernel(subject: &mut Subject, kind: &'static str) -> Result<Value, String> {
    let mut random = Random::new(7);
    let (mut whole, mut took) = (Vec::new(), Duration::ZERO);
    for _ in 0..2 {
        subject.reset()?;
        took = elapsed(&subject.start(kind, true, None)?.wait().map_err(told)?)?;
        whole.push(subject.results()?);
    }
    let agrees = whole[0] == whole[1];
    subject.reset()?;
    let mut running = subject.start(kind, true, None)?;
    let (mut pauses, mut given_up, mut is_over) = (0, 0, false);
    for _ in 0..PAUSES {
        spin(took * random.below(1000) as u32 * 2 / 1000 / PAUSES);
        match running.pause(WITHIN) {
            Ok(Outcome::Paused { .. }) => pauses += 1,
            Ok(outcome) => {
                elapsed(&outcome)?;
                is_over = true;
                break;
            }
            Err(Error::NotPaused { .. }) => {
                running.go_on().map_err(told)?;
                given_up += 1;
                continue;
            }
            Err(error) => return Err(told(error)),
        }
        running.resume(&subject.stream).map_err(told)?;
    }
    if !is_over {
        finish(&mut running, subject)?;
    }
    let same = subject.results()? == whole[0];
    Ok(
        json!({ "build": kind, "us": took.as_secs_f64() * 1e6, "pauses": pauses, "given up": given_up, "same": same, "unpaused runs agree": agrees }),
    )
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
pub fn many(folder: &Folder, count: usize, until: Instant) -> Result<Value, String> {
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
    Ok(json!({ "pauses": pauses, "launches": launches, "launches with a block that did not run once": wrong }))
}
