//! What pausing costs while nobody pauses, and how long a pause and a resume take.

use super::same::{elapsed, spin};
use super::{Folder, Subject, Tell, summary, told};
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
pub fn cost(folder: &Folder, until: Instant, tell: Tell<'_>) -> Result<(), String> {
    for name in
        folder.names()?.into_iter().filter(|name| !["marks", "last_block", "by_ticket", "by_index", "first"].contains(&name.as_str()))
    {
        if Instant::now() > until {
            tell(json!({ "kernel": name, "missed": "no time was left" }));
            continue;
        }
        tell(one(folder, &name).unwrap_or_else(|why| json!({ "kernel": name, "failed": why })));
    }
    Ok(())
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

/// What a block of `marks` takes beside as many as the device holds, in seconds.
pub(super) fn block_time(subject: &Subject, time: Duration) -> Result<f64, String> {
    let mut samples = Vec::new();
    for _ in 0..5 {
        let mut running = subject.start("source", false, Some((1056, 256, time.as_nanos() as u64)))?;
        samples.push(elapsed(&running.wait().map_err(told)?)?.as_secs_f64());
    }
    Ok(crate::bench::figure::Summary::of(&samples).median)
}

/// From the request until the launch has drained, beyond a block's time.
///
/// # Errors
/// What the driver answers.
pub fn drained(folder: &Folder, count: usize, tell: Tell<'_>) -> Result<(), String> {
    let subject = folder.marks(folder.stream.clone(), 1_000_000)?;
    let mut random = Random::new(5);
    for (us, blocks) in [(50, 20_000), (200, 20_000), (1000, 20_000), (50, 1_000_000)] {
        let time = Duration::from_micros(us);
        let block = block_time(&subject, time)?;
        let mut samples = Vec::new();
        for _ in 0..count {
            let mut running = subject.start("source", true, Some((blocks, 256, time.as_nanos() as u64)))?;
            spin(Duration::from_micros(100 + random.below(500) as u64));
            let Outcome::Paused { latency, .. } = running.pause(WITHIN).map_err(told)? else { return Err("it was over".into()) };
            samples.push((latency.as_secs_f64() - block) * 1e6);
            running.cancel().map_err(told)?;
            let _ = running.wait().map_err(told)?;
        }
        tell(json!({ "blocks": blocks, "block us": block * 1e6, "beyond a block us": summary(&samples) }));
    }
    Ok(())
}

/// From the resume until the first block runs, as the host sees it in pinned memory.
///
/// # Errors
/// What the driver answers.
pub fn resumed(folder: &Folder, count: usize, tell: Tell<'_>) -> Result<(), String> {
    let mut subject = folder.subject("first", &["source"])?;
    // SAFETY: it is written before it is read.
    let word = unsafe { folder.context.alloc_pinned::<u32>(1) }.map_err(told)?;
    let told_at = word.as_ptr().map_err(told)?.cast_mut();
    subject.set(0, told_at.expose_provenance() as u64)?;
    let mut samples = Vec::new();
    for _ in 0..count {
        let mut running = subject.start("source", true, Some((20_000, 256, 30_000)))?;
        spin(Duration::from_micros(100));
        let Outcome::Paused { .. } = running.pause(WITHIN).map_err(told)? else { return Err("it was over".into()) };
        // SAFETY: the word is this function's, and no block runs.
        unsafe { told_at.write_volatile(0) };
        let since = Instant::now();
        running.resume(&subject.stream).map_err(told)?;
        // SAFETY: as above; the device writes it.
        while unsafe { told_at.read_volatile() } == 0 && since.elapsed() < WITHIN {
            std::hint::spin_loop();
        }
        samples.push(since.elapsed().as_secs_f64() * 1e6);
        running.cancel().map_err(told)?;
        let _ = running.wait().map_err(told)?;
    }
    tell(summary(&samples));
    Ok(())
}

/// From the resume of a grid of 10^6 blocks until it is over, where few are left.
///
/// # Errors
/// What the driver answers.
pub fn few_left(folder: &Folder, count: usize, tell: Tell<'_>) -> Result<(), String> {
    const BLOCKS: u32 = 1_000_000;
    const FEW: u64 = 1000;
    let subject = folder.marks(folder.stream.clone(), BLOCKS as usize)?;
    let mut random = Random::new(9);
    let start = || subject.start("source", true, Some((BLOCKS, 32, 0)));
    elapsed(&start()?.wait().map_err(told)?)?;
    let whole = elapsed(&start()?.wait().map_err(told)?)?;
    let (mut samples, mut fewest, mut tries) = (Vec::new(), u64::MAX, 0);
    while samples.len() < count && tries < 100 * count {
        tries += 1;
        let mut running = start()?;
        spin(whole.saturating_sub(Duration::from_nanos(random.below(60_000) as u64)));
        let Outcome::Paused { left, .. } = running.pause(WITHIN).map_err(told)? else { continue };
        let since = Instant::now();
        running.resume(&subject.stream).map_err(told)?;
        elapsed(&running.wait().map_err(told)?)?;
        if left <= FEW {
            fewest = fewest.min(left);
            samples.push(since.elapsed().as_secs_f64() * 1e6);
        }
    }
    tell(json!({ "blocks": BLOCKS, "most left": FEW, "fewest left": fewest, "launches": tries, "us": summary(&samples) }));
    Ok(())
}

/// What a launch takes of an empty kernel, of many in line: with the wait behind it, and without.
///
/// # Errors
/// What the driver answers.
pub fn waits(folder: &Folder, tell: Tell<'_>) -> Result<(), String> {
    let subject = folder.subject("marks", &["base", "source"])?;
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
        tell(json!({ "launches": what, "us a launch": summary(&samples) }));
    }
    Ok(())
}
