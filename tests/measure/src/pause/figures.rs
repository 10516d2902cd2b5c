//! What pausing costs while nobody pauses, and how long a pause and a resume take.

use super::same::{elapsed, spin};
use super::{Folder, summary, told};
use cuinstr_harness::random::Random;
use cuinstr_runtime::Outcome;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Longest wait for a pause.
const WITHIN: Duration = Duration::from_secs(2);
/// Runs of each build, after two to warm up.
const RUNS: usize = 15;

/// Each kernel's time that can be paused, over that of the same build without the decision: by the device's events, in turns.
///
/// # Errors
/// What the driver answers.
pub fn cost(folder: &Folder, until: Instant) -> Result<Value, String> {
    let mut rows = Vec::new();
    for name in folder.names()?.into_iter().filter(|name| !["marks", "last_block", "by_ticket", "by_index"].contains(&name.as_str())) {
        if Instant::now() > until {
            rows.push(json!({ "kernel": name, "missed": "no time was left" }));
            continue;
        }
        rows.push(one(folder, &name).unwrap_or_else(|why| json!({ "kernel": name, "failed": why })));
    }
    Ok(Value::Array(rows))
}

fn one(folder: &Folder, name: &str) -> Result<Value, String> {
    const KINDS: [(&str, bool); 4] = [("base", false), ("source", true), ("ptxbase", false), ("ptx", true)];
    let mut subject = folder.subject(name, &KINDS.map(|(kind, _)| kind))?;
    let mut times = KINDS.map(|_| Vec::new());
    for run in 0..RUNS + 2 {
        for ((kind, is_pausable), times) in KINDS.iter().zip(&mut times) {
            if run == 0 || subject.header.reset {
                subject.reset()?;
            }
            let took = elapsed(&subject.start(kind, *is_pausable, None)?.wait().map_err(told)?)?;
            if run > 1 {
                times.push(took.as_secs_f64() * 1e6);
            }
        }
    }
    let median = |times: &Vec<f64>| crate::bench::figure::Summary::of(times).median;
    let [base, source, ptxbase, ptx] = [0, 1, 2, 3].map(|at| median(&times[at]));
    let function = subject.occupancy("source")?;
    // What a block takes, if all that fit run at a time.
    let block = source / (f64::from(subject.blocks()) / function).max(1.0);
    Ok(json!({
        "kernel": name, "blocks": subject.blocks(), "block us": block, "us": { "base": base, "source": source, "ptxbase": ptxbase, "ptx": ptx },
        "source": source / base, "ptx": ptx / ptxbase,
    }))
}

/// From the request until the launch has drained, beyond a block's time, and from the resume until what was left has run.
///
/// # Errors
/// What the driver answers.
pub fn drained(folder: &Folder, count: usize) -> Result<Value, String> {
    const BLOCK: Duration = Duration::from_micros(200);
    let subject = folder.subject("marks", &["source"])?;
    let mut random = Random::new(5);
    let (mut drained, mut resumed) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let mut running = subject.start("source", true, Some((20_000, 256, BLOCK.as_nanos() as u64)))?;
        spin(Duration::from_micros(400 + random.below(400) as u64));
        let Outcome::Paused { latency, .. } = running.pause(WITHIN).map_err(told)? else { return Err("it was over".into()) };
        drained.push((latency.as_secs_f64() - BLOCK.as_secs_f64()) * 1e6);
        running.cancel().map_err(told)?;
        let _ = running.wait().map_err(told)?;
        // Few blocks that take no time: what is left of the launch is over when its first block is.
        let mut running = subject.start("source", true, Some((5_000, 32, 30_000)))?;
        spin(Duration::from_micros(30 + random.below(10) as u64));
        if let Outcome::Paused { left: 1.., .. } = running.pause(WITHIN).map_err(told)? {
            let since = Instant::now();
            running.resume(&subject.stream).map_err(told)?;
            elapsed(&running.wait().map_err(told)?)?;
            resumed.push(since.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok(
        json!({ "block us": 200, "drained beyond a block us": summary(&drained), "resume until all is run, blocks of 30 us, us": summary(&resumed) }),
    )
}

/// What a launch takes of an empty kernel, of many in line: with the wait behind it, and without.
///
/// # Errors
/// What the driver answers.
pub fn waits(folder: &Folder) -> Result<Value, String> {
    let subject = folder.subject("marks", &["base", "source"])?;
    let mut rows = Vec::new();
    for (what, kind, is_pausable) in [("plain", "base", false), ("not pausable", "source", false), ("pausable", "source", true)] {
        let mut samples = Vec::new();
        for _ in 0..60 {
            let since = Instant::now();
            let mut all = (0..20).map(|_| subject.start(kind, is_pausable, Some((1, 32, 0)))).collect::<Result<Vec<_>, _>>()?;
            for running in &mut all {
                elapsed(&running.wait().map_err(told)?)?;
            }
            samples.push(since.elapsed().as_secs_f64() * 1e6 / 20.0);
        }
        rows.push(json!({ "launches": what, "us a launch": summary(&samples) }));
    }
    Ok(Value::Array(rows))
}
