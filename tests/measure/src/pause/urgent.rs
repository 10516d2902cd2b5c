//! An urgent kernel of 100 us against one that fills the device for seconds: with a pause, with stream priorities, and from another process.

use super::same::elapsed;
use super::{Folder, Subject, summary, told};
use cuinstr_runtime::Outcome;
use serde_json::{Value, json};
use std::io::BufRead as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a block of the long kernel takes where it is not paused.
const BLOCK: Duration = Duration::from_millis(1);
/// What the long kernel takes of a device that holds so many of its blocks of 256 threads.
const LONG: Duration = Duration::from_secs(10);
const AT_A_TIME: u32 = 132 * 8;
const WITHIN: Duration = Duration::from_secs(2);

/// The urgent kernel of 100 us: 132 blocks.
fn urgent_launch(subject: &Subject) -> Result<(), String> {
    elapsed(&subject.start("base", false, Some((132, 256, 100_000)))?.wait().map_err(told)?).map(drop)
}

fn blocks(block: Duration) -> u32 {
    AT_A_TIME * (LONG.as_micros() / block.as_micros()) as u32
}

fn long_launch(subject: &Subject, block: Duration, is_pausable: bool) -> Result<cuinstr_runtime::Running, String> {
    subject.start("source", is_pausable, Some((blocks(block), 256, block.as_nanos() as u64)))
}

/// The answer times of the urgent kernel, in microseconds.
///
/// # Errors
/// What the driver answers.
pub fn urgent(folder: &Folder, count: usize) -> Result<Value, String> {
    let mut rows = Vec::new();
    let mut add = |what: &str, samples: &[f64]| rows.push(json!({ "how": what, "us": summary(samples), "samples": samples }));
    let long = folder.marks(folder.stream.clone(), blocks(BLOCK) as usize)?;
    let beside = folder.marks(folder.context.new_stream().map_err(told)?, 132)?;
    let first = folder.marks(folder.urgent_stream()?, 132)?;
    add("alone", &times(count, || urgent_launch(&beside))?);

    // Each block that has not begun declines, which takes time too: grids of the same time with fewer, longer blocks have fewer.
    for (block, count) in [(BLOCK, count), (10 * BLOCK, count), (100 * BLOCK, count / 4)] {
        let took = super::figures::block_time(&long, block)? * 1e6;
        let mut running = long_launch(&long, block, true)?;
        std::thread::sleep(Duration::from_millis(20));
        let mut paused = Vec::new();
        for _ in 0..count {
            let since = Instant::now();
            let Outcome::Paused { .. } = running.pause(WITHIN).map_err(told)? else { return Err("the long launch was over".into()) };
            urgent_launch(&beside)?;
            paused.push(since.elapsed().as_secs_f64() * 1e6);
            running.resume(&long.stream).map_err(told)?;
            std::thread::sleep(Duration::from_millis(4));
        }
        add(&format!("pause, run, resume; {} blocks of {took:.0} us", blocks(block)), &paused);
        running.cancel().map_err(told)?;
        let _ = running.wait().map_err(told)?;
    }

    let mut running = long_launch(&long, BLOCK, false)?;
    std::thread::sleep(Duration::from_millis(20));
    add("a stream of the highest priority", &times(count, || urgent_launch(&first))?);
    running.cancel().map_err(told)?;
    let _ = running.wait().map_err(told)?;

    // Another process fills the device: the driver shares it in slices of time.
    let program = std::env::current_exe().map_err(told)?;
    let mut other =
        Command::new(program).arg("--folder").arg(folder.path()).arg("--occupy").stdout(Stdio::piped()).spawn().map_err(told)?;
    let mut line = String::new();
    std::io::BufReader::new(other.stdout.take().ok_or("no output")?).read_line(&mut line).map_err(told)?;
    let sliced = times(count, || urgent_launch(&beside));
    other.kill().map_err(told)?;
    let _ = other.wait();
    add("another process fills the device", &sliced?);
    Ok(json!({ "block us, where it is not paused": BLOCK.as_micros() as u64, "urgent us": 100, "rows": rows }))
}

fn times(count: usize, mut launch: impl FnMut() -> Result<(), String>) -> Result<Vec<f64>, String> {
    let mut samples = Vec::new();
    for _ in 0..count {
        let since = Instant::now();
        launch()?;
        samples.push(since.elapsed().as_secs_f64() * 1e6);
        std::thread::sleep(Duration::from_millis(3));
    }
    Ok(samples)
}

/// Fills the device until it is killed.
///
/// # Errors
/// What the driver answers.
pub fn occupy(folder: &Folder, stop: &AtomicBool) -> Result<(), String> {
    let subject = folder.marks(folder.stream.clone(), blocks(BLOCK) as usize)?;
    let mut is_told = false;
    while !stop.load(Ordering::Relaxed) {
        let mut running = long_launch(&subject, BLOCK, false)?;
        if !std::mem::replace(&mut is_told, true) {
            std::thread::sleep(Duration::from_millis(50));
            println!("occupied");
        }
        let _ = running.wait().map_err(told)?;
    }
    Ok(())
}
