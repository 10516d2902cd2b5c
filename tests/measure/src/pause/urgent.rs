//! An urgent kernel of 100 us against one that fills the device for seconds: with a pause, with stream priorities, and from another process.

use super::same::elapsed;
use super::{Folder, Subject, Tell, summary, told};
use cuinstr_runtime::{Outcome, Running};
use serde_json::json;
use std::io::BufRead as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a block of the long kernel takes. Each block that has not begun declines, which takes time too: of two grids that take the same time, the one with longer
/// blocks has fewer.
const BLOCKS: [Duration; 3] = [Duration::from_millis(1), Duration::from_millis(10), Duration::from_millis(100)];
/// What the long kernel takes of a device that holds so many of its blocks of 256 threads.
const LONG: Duration = Duration::from_secs(10);
const AT_A_TIME: u32 = 132 * 8;
const WITHIN: Duration = Duration::from_secs(2);
/// What the answer may take beyond the urgent kernel's own time and the longest block.
const BEYOND: Duration = Duration::from_micros(200);

/// The urgent kernel of 100 us: 132 blocks.
fn urgent_launch(subject: &Subject) -> Result<(), String> {
    elapsed(&subject.start("base", false, Some((132, 256, 100_000)))?.wait().map_err(told)?).map(drop)
}

fn blocks(block: Duration) -> u32 {
    AT_A_TIME * (LONG.as_micros() / block.as_micros()) as u32
}

fn long_launch(subject: &Subject, block: Duration, is_pausable: bool) -> Result<Running, String> {
    let running = subject.start("source", is_pausable, Some((blocks(block), 256, block.as_nanos() as u64)))?;
    std::thread::sleep(Duration::from_millis(20));
    Ok(running)
}

/// The answer times of the urgent kernel, in microseconds: alone, and beside long kernels of several blocks' times in each of three ways.
///
/// # Errors
/// What the driver answers.
pub fn urgent(folder: &Folder, count: usize, tell: Tell<'_>) -> Result<(), String> {
    let long = folder.marks(folder.stream.clone(), blocks(BLOCKS[0]) as usize)?;
    let beside = folder.marks(folder.context.new_stream().map_err(told)?, 132)?;
    let first = folder.marks(folder.urgent_stream()?, 132)?;
    let alone = summary(&times(count, || urgent_launch(&beside))?);
    let own = alone["p99"].as_f64().unwrap_or(f64::NAN);
    tell(json!({ "how": "alone", "us": alone }));
    for block in BLOCKS {
        let took = super::figures::block_time(&long, block)? * 1e6;
        // Answers beside blocks of 100 ms take as long.
        let count = if block > Duration::from_millis(50) { count / 4 } else { count };
        let mut add = |how: &str, samples: &[f64]| {
            let target = own + took + BEYOND.as_secs_f64() * 1e6;
            tell(json!({ "how": how, "blocks": blocks(block), "block us": took, "target us": target, "us": summary(samples) }));
        };
        add("pause", &paused(&long, &beside, block, count)?);
        let running = long_launch(&long, block, false)?;
        add("priority", &times(count, || urgent_launch(&first))?);
        end(running)?;
        add("time slices", &sliced(folder, &beside, block, count)?);
    }
    Ok(())
}

/// The long launch is paused for each urgent one.
fn paused(long: &Subject, beside: &Subject, block: Duration, count: usize) -> Result<Vec<f64>, String> {
    let mut running = long_launch(long, block, true)?;
    let mut samples = Vec::new();
    for _ in 0..count {
        let since = Instant::now();
        let Outcome::Paused { .. } = running.pause(WITHIN).map_err(told)? else { return Err("the long launch was over".into()) };
        urgent_launch(beside)?;
        samples.push(since.elapsed().as_secs_f64() * 1e6);
        running.resume(&long.stream).map_err(told)?;
        std::thread::sleep(Duration::from_millis(4));
    }
    end(running)?;
    Ok(samples)
}

fn end(mut running: Running) -> Result<(), String> {
    running.cancel().map_err(told)?;
    running.wait().map(drop).map_err(told)
}

/// Another process fills the device, which the driver shares in slices of time.
fn sliced(folder: &Folder, beside: &Subject, block: Duration, count: usize) -> Result<Vec<f64>, String> {
    let program = std::env::current_exe().map_err(told)?;
    let mut command = Command::new(program);
    command.arg("--folder").arg(folder.path()).arg("--occupy").arg(block.as_micros().to_string()).stdout(Stdio::piped());
    let mut other = command.spawn().map_err(told)?;
    let mut line = String::new();
    let is_occupied =
        other.stdout.take().is_some_and(|output| std::io::BufReader::new(output).read_line(&mut line).is_ok_and(|read| read > 0));
    let samples = if is_occupied { times(count, || urgent_launch(beside)) } else { Err("the other process ended".into()) };
    other.kill().map_err(told)?;
    let _ = other.wait();
    samples
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

/// Fills the device with blocks of that time, until the process is killed.
///
/// # Errors
/// What the driver answers.
pub fn occupy(folder: &Folder, block: Duration) -> Result<(), String> {
    let subject = folder.marks(folder.stream.clone(), blocks(BLOCKS[0]) as usize)?;
    for launch in 0.. {
        let mut running = long_launch(&subject, block, false)?;
        if launch == 0 {
            println!("occupied");
        }
        let _ = running.wait().map_err(told)?;
    }
    Ok(())
}
