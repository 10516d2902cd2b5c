//! Child processes that measure one benchmark after the other, and the parent that outlives what hangs them.
//!
//! A child prints a line when it begins a benchmark and one with its figures, then waits to be killed: the one way out that a hanging
//! kernel can't block. If it falls silent or dies, the benchmark that it was at has no figures, and another child gets the rest.

use super::measure::{Bench, Slots};
use super::result::Measured;
use crate::process;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Longest silence of a child: opening the device, or one benchmark whose every part takes as long as it may.
const SILENCE: Duration = Duration::from_secs(30);
/// Longest that a child lives on after its last word, should nobody kill it.
const LINGER: Duration = Duration::from_secs(10);
/// What a benchmark takes beside its samples, roughly: filling memory, comparing results.
const SET_UP: Duration = Duration::from_millis(400);

/// What a child says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Begin(String),
    End(Box<Measured>),
    Done,
}

/// How to measure.
#[derive(Debug, Clone)]
pub struct Crew {
    /// The program that measures when called with `child FOLDER SECONDS NAME…`.
    pub program: PathBuf,
    /// The prepared folder.
    pub folder: PathBuf,
    /// When all should be done: each benchmark gets its part of the time until then.
    pub until: Instant,
}

impl Crew {
    /// Measures benchmarks, in this order.
    #[must_use]
    pub fn measure(&self, names: &[String]) -> Vec<Measured> {
        let mut left: VecDeque<&String> = names.iter().collect();
        let mut results = Vec::new();
        while let Some(&first) = left.front() {
            let before = left.len();
            let trouble = if Instant::now() >= self.until {
                Some("the time for the whole run was used up".to_owned())
            } else {
                self.attend(&mut left, &mut results)
            };
            // Whatever happened, a child takes at least one benchmark off the list, so this ends.
            let trouble = trouble.or_else(|| (left.len() == before).then(|| "the process did nothing".to_owned()));
            if let Some(why) = trouble {
                let name = left.pop_front().unwrap_or(first).clone();
                keep(&mut results, Measured { name, errors: vec![why], ..Measured::default() });
            }
        }
        results
    }

    /// Has one child measure what is left; says what went wrong with the benchmark that is now first in line.
    fn attend(&self, left: &mut VecDeque<&String>, results: &mut Vec<Measured>) -> Option<String> {
        let mut command = Command::new(&self.program);
        let seconds = self.until.saturating_duration_since(Instant::now()).as_secs_f64();
        command.arg("child").arg(&self.folder).arg(seconds.to_string()).args(left.iter());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Some(format!("{}: {error}", self.program.display())),
        };
        let (lines, words) = (lines(&mut child), words(&mut child));
        let trouble = loop {
            match lines.recv_timeout(SILENCE).map(|line| serde_json::from_str(&line)) {
                Ok(Ok(Line::End(measured))) => {
                    left.pop_front();
                    keep(results, *measured);
                }
                Ok(Ok(Line::Begin(_)) | Err(_)) => {}
                Ok(Ok(Line::Done)) => break None,
                Err(RecvTimeoutError::Timeout) => break Some(format!("no word for {SILENCE:?}; the process was killed")),
                Err(RecvTimeoutError::Disconnected) => break Some("the process ended".to_owned()),
            }
        };
        process::kill_group(&mut child);
        let said = words.and_then(|words| words.join().ok()).unwrap_or_default();
        trouble.map(|why| said.lines().last().map_or(why.clone(), |last| format!("{why}; its last words: {last}")))
    }
}

fn keep(results: &mut Vec<Measured>, measured: Measured) {
    let ratio = measured.ratio("default").map_or("no ratio".to_owned(), |ratio| format!("default {ratio:.3}"));
    let said: Vec<&str> = std::iter::once(ratio.as_str()).chain(measured.errors.iter().map(String::as_str)).collect();
    eprintln!("{:5.1} s  {}: {}", measured.seconds, measured.name, said.join("; "));
    results.push(measured);
}

fn lines(child: &mut Child) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    }
    lines
}

fn words(child: &mut Child) -> Option<thread::JoinHandle<String>> {
    let mut stderr = child.stderr.take()?;
    Some(thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stderr.read_to_end(&mut text);
        String::from_utf8_lossy(&text).trim().to_owned()
    }))
}

/// What a child does: measures these benchmarks within so many seconds, or until one of them spoils the process.
///
/// # Errors
/// If the device or the folder can't be opened.
pub fn child(folder: &Path, seconds: f64, names: &[String]) -> Result<(), String> {
    let until = Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 3600.0));
    let bench = Bench::open(folder)?;
    for (index, name) in names.iter().enumerate() {
        say(&Line::Begin(name.clone()));
        let share = until.saturating_duration_since(Instant::now()) / u32::try_from(names.len() - index).unwrap_or(1);
        let share = share.saturating_sub(SET_UP);
        match bench.measure(name, Slots { times: share.mul_f64(0.6), cancels: share.mul_f64(0.4) }) {
            Ok(measured) => say(&Line::End(Box::new(measured))),
            Err(measured) => {
                say(&Line::End(measured));
                break;
            }
        }
    }
    say(&Line::Done);
    thread::sleep(LINGER);
    Ok(())
}

fn say(line: &Line) {
    if let Ok(text) = serde_json::to_string(line) {
        println!("{text}");
        let _ = std::io::stdout().flush();
    }
}
