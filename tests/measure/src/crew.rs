//! Child processes that do one piece of work after the other, and the parent that outlives what hangs them.
//!
//! A child prints a line when it begins a piece and one with its result, then waits to be killed: the one way out that a hanging kernel
//! can't block. If it falls silent or dies, the piece that it was at is lost, and another child gets the rest.

use cuinstr_harness::process;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Longest that a child lives on after its last word, should nobody kill it.
const LINGER: Duration = Duration::from_secs(10);

/// What a child says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<T> {
    /// It begins a piece of work.
    Begin(String),
    /// One has ended.
    End(T),
    /// It has no more to do, or can't do more.
    Done,
}

/// How to have work done.
#[derive(Debug, Clone)]
pub struct Crew {
    /// The program that works when called with `child FOLDER SECONDS NAME…`.
    pub program: PathBuf,
    /// The prepared folder.
    pub folder: PathBuf,
    /// When all should be done: nothing is begun afterwards.
    pub until: Instant,
    /// Longest silence of a child: opening the device, or one piece of work.
    pub silence: Duration,
}

impl Crew {
    /// Has pieces of work done, in this order. `lost` makes the result of one that gave none, of its name and the reason; `heard` is told
    /// of each result.
    pub fn run<T: DeserializeOwned>(&self, names: &[String], lost: impl Fn(&str, String) -> T, heard: impl Fn(&T)) -> Vec<T> {
        let mut left: VecDeque<&String> = names.iter().collect();
        let mut results = Vec::new();
        while let Some(&first) = left.front() {
            let before = left.len();
            let trouble = if Instant::now() >= self.until {
                Some("the time for the whole run was used up".to_owned())
            } else {
                self.attend(&mut left, |result| {
                    heard(&result);
                    results.push(result);
                })
            };
            // Whatever happened, a child takes at least one piece off the list, so this ends.
            let trouble = trouble.or_else(|| (left.len() == before).then(|| "the process did nothing".to_owned()));
            if let Some(why) = trouble {
                let result = lost(left.pop_front().unwrap_or(first), why);
                heard(&result);
                results.push(result);
            }
        }
        results
    }

    /// Has one child do what is left; says what went wrong with the piece that is now first in line.
    fn attend<T: DeserializeOwned>(&self, left: &mut VecDeque<&String>, mut keep: impl FnMut(T)) -> Option<String> {
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
            match lines.recv_timeout(self.silence).map(|line| serde_json::from_str(&line)) {
                Ok(Ok(Line::End(result))) => {
                    left.pop_front();
                    keep(result);
                }
                Ok(Ok(Line::Begin(_)) | Err(_)) => {}
                Ok(Ok(Line::Done)) => break None,
                Err(RecvTimeoutError::Timeout) => break Some(format!("no word for {:?}; the process was killed", self.silence)),
                Err(RecvTimeoutError::Disconnected) => break Some("the process ended".to_owned()),
            }
        };
        process::kill_group(&mut child);
        let said = words.and_then(|words| words.join().ok()).unwrap_or_default();
        trouble.map(|why| said.lines().last().map_or(why.clone(), |last| format!("{why}; its last words: {last}")))
    }
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

/// What a child does: these pieces of work, until one leaves the process of no further use. `work` gets a piece's name and how many are
/// left with it, and gives the result and whether more can follow.
///
/// # Errors
/// None of its own; the child's end is the parent's business.
pub fn child<T: Serialize>(names: &[String], work: impl Fn(&str, usize) -> (T, bool)) -> Result<(), String> {
    for (index, name) in names.iter().enumerate() {
        say(&Line::<T>::Begin(name.clone()));
        let (result, is_sound) = work(name, names.len() - index);
        say(&Line::End(result));
        if !is_sound {
            break;
        }
    }
    say(&Line::<T>::Done);
    thread::sleep(LINGER);
    Ok(())
}

fn say<T: Serialize>(line: &Line<T>) {
    if let Ok(text) = serde_json::to_string(line) {
        println!("{text}");
        let _ = std::io::stdout().flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_hangs_or_dies_loses_its_own_result_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("worker");
        // Gives the name back for each piece of work, dies at `dies` and falls silent at `hangs`.
        let script = "#!/bin/sh\nshift 3\nfor name; do\n  case $name in\n    dies) echo killed >&2; exit 1 ;;\n    hangs) sleep 60 ;;\n  esac\n  \
            echo \"{\\\"end\\\":\\\"$name\\\"}\"\ndone\necho '\"done\"'\nsleep 60\n";
        std::fs::write(&program, script).expect("a file");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("a program");
        let until = Instant::now() + Duration::from_secs(600);
        let crew = Crew { program, folder: folder.path().into(), until, silence: Duration::from_secs(5) };
        let names = ["first", "dies", "second", "hangs", "last"].map(str::to_owned);
        let results = crew.run(&names, |name, why| format!("{name}: {why}"), |_| {});
        assert_eq!(results[..2], ["first", "dies: the process ended; its last words: killed"]);
        assert_eq!(results[2], "second");
        assert!(results[3].starts_with("hangs: no word for 5s"), "{}", results[3]);
        assert_eq!(results[4], "last");
        let late = Crew { until: Instant::now(), ..crew };
        assert_eq!(late.run(&names[..1], |_, why| why, |_| {}), ["the time for the whole run was used up"]);
    }
}
