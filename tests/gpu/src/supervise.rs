//! Runs cases in child processes, so that a kernel which hangs or traps takes nothing with it but its own process.
//!
//! A child gets a list of cases. It prints a line of JSON when a case begins, when a case ends, and when it has no more
//! to do. Then it waits to be killed: a hanging kernel can't block that. If it falls silent or dies, the case that it was
//! at has failed, and another child gets the rest. If it says that its context is spoiled, another child gets the rest,
//! too.

use crate::case::Case;
use crate::manifest::Manifest;
use crate::results::{CaseResult, Status, line};
use crate::session::Session;
use cuinstr_harness::process;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Longest that a child may take to create its context and load what all its cases share.
const OPENING: Duration = Duration::from_secs(30);
/// Longest that a child lives on after its last word, should nobody kill it.
const LINGER: Duration = Duration::from_secs(10);

/// What a child says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// It begins a case.
    Begin(String),
    /// A case has ended.
    End(CaseResult),
    /// It has no more to do, or can't do more.
    Done,
}

/// How to run cases.
#[derive(Debug, Clone)]
pub struct Supervisor {
    /// The program that runs cases when called with `--folder FOLDER --case NAME…`.
    pub program: PathBuf,
    /// The prepared folder.
    pub folder: PathBuf,
    /// Processes at a time, for cases that need not be alone.
    pub jobs: usize,
    /// When to begin no more cases.
    pub deadline: Instant,
    /// Whether to print each result as it comes.
    pub verbose: bool,
}

impl Supervisor {
    /// Runs the cases; results in their order.
    #[must_use]
    pub fn run(&self, cases: &[Case]) -> Vec<CaseResult> {
        let mut shared: VecDeque<Vec<&Case>> = VecDeque::new();
        let mut alone: VecDeque<Vec<&Case>> = VecDeque::new();
        for case in cases {
            let queue = if case.alone { &mut alone } else { &mut shared };
            match queue.iter_mut().find(|group| group[0].process == case.process) {
                Some(group) => group.push(case),
                None => queue.push_back(vec![case]),
            }
        }
        let results = Mutex::new(Vec::new());
        for (queue, jobs) in [(shared, self.jobs), (alone, 1)] {
            let queue = Mutex::new(queue);
            thread::scope(|scope| {
                for _ in 0..jobs.max(1) {
                    scope.spawn(|| {
                        while let Some(group) = lock(&queue).pop_front() {
                            self.run_group(group.into(), &results);
                        }
                    });
                }
            });
        }
        let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let place = |result: &CaseResult| cases.iter().position(|case| case.name == result.name);
        results.sort_by_key(place);
        results
    }

    /// Runs the cases of one process, in as many as it takes.
    fn run_group(&self, mut left: VecDeque<&Case>, results: &Mutex<Vec<CaseResult>>) {
        while !left.is_empty() {
            if Instant::now() >= self.deadline {
                for case in left.drain(..) {
                    let notes = vec!["the time for the whole run was used up".into()];
                    let name = case.name.clone();
                    self.keep(results, CaseResult { name, status: Status::NotRun, seconds: 0.0, notes, data: Value::Null });
                }
                return;
            }
            let before = left.len();
            let since = Instant::now();
            let trouble = match self.spawn(&left) {
                Ok(mut child) => {
                    let trouble = self.attend(&mut child, &mut left, results);
                    process::kill_group(&mut child.process);
                    trouble.map(|why| child.blame(&why))
                }
                Err(why) => Some(why),
            };
            // Whatever happened, a child takes at least one case off the list, so this ends.
            let trouble = trouble.or_else(|| (left.len() == before).then(|| "the process did nothing".to_owned()));
            if let Some((why, case)) = trouble.and_then(|why| Some((why, left.pop_front()?))) {
                self.keep(results, CaseResult::failed(&case.name, since.elapsed().as_secs_f64(), why));
            }
        }
    }

    /// Takes a child's results until it is done; says what went wrong with the case that is now first in line.
    fn attend(&self, child: &mut Attended, left: &mut VecDeque<&Case>, results: &Mutex<Vec<CaseResult>>) -> Option<String> {
        let mut limit = OPENING;
        loop {
            match child.lines.recv_timeout(limit) {
                Ok(Line::Begin(name)) => match left.front() {
                    Some(case) if case.name == name => limit = case.limit,
                    _ => return Some(format!("the process began `{name}` out of turn")),
                },
                Ok(Line::End(result)) => match left.pop_front() {
                    Some(case) if case.name == result.name => {
                        self.keep(results, result);
                        limit = OPENING;
                    }
                    _ => return Some(format!("the process ended `{}` out of turn", result.name)),
                },
                Ok(Line::Done) => return None,
                Err(RecvTimeoutError::Timeout) => return Some(format!("no answer within {limit:?}; the process was killed")),
                Err(RecvTimeoutError::Disconnected) => return Some("the process died".into()),
            }
        }
    }

    fn keep(&self, results: &Mutex<Vec<CaseResult>>, result: CaseResult) {
        let mut results = lock(results);
        if self.verbose {
            print!("{}", line(&result));
            let _ = std::io::stdout().flush();
        }
        results.push(result);
    }

    fn spawn(&self, cases: &VecDeque<&Case>) -> Result<Attended, String> {
        let mut command = Command::new(&self.program);
        command.arg("--folder").arg(&self.folder);
        for case in cases {
            command.args(["--case", &case.name]);
        }
        // Loading a kernel's code lazily, at its first launch, can wait for a kernel that hangs.
        command.env("CUDA_MODULE_LOADING", "EAGER").process_group(0);
        command.envs(cases.iter().filter_map(|case| case.env));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().map_err(|error| format!("{}: {error}", self.program.display()))?;
        let (sender, lines) = mpsc::channel();
        if let Some(stdout) = process.stdout.take() {
            thread::spawn(move || {
                let lines = BufReader::new(stdout).lines().map_while(Result::ok);
                // Whatever else prints to standard output is none of ours.
                for line in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        let stderr = process.stderr.take().map(|mut stderr| {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = stderr.read_to_end(&mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            })
        });
        Ok(Attended { process, lines, stderr })
    }
}

/// A child with its two outputs.
struct Attended {
    process: Child,
    lines: Receiver<Line>,
    stderr: Option<thread::JoinHandle<String>>,
}

impl Attended {
    /// Adds what the child, which is dead by now, said on standard error.
    fn blame(&mut self, why: &str) -> String {
        let said = self.stderr.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        let tail: Vec<&str> = said.lines().rev().take(8).collect();
        let lines = std::iter::once(why).chain(tail.into_iter().rev());
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What the child does: runs these cases of the folder's manifest, says so, and waits to be killed.
///
/// # Errors
/// If the manifest can't be read or there is no such case.
pub fn child(folder: &Path, names: &[String]) -> Result<(), String> {
    let manifest = Manifest::read(folder)?;
    let fixtures: Vec<_> = manifest.subjects.iter().map(|subject| subject.fixture.clone()).collect();
    let all = crate::case::all(&fixtures);
    let find = |name: &String| all.iter().find(|case| case.name == *name).ok_or_else(|| format!("there is no case `{name}`"));
    let cases: Vec<&Case> = names.iter().map(find).collect::<Result<_, _>>()?;
    watch_over(cases.iter().map(|case| case.limit).sum::<Duration>() + OPENING + LINGER);
    let session = Session::open(&manifest)?;
    for case in cases {
        say(&Line::Begin(case.name.clone()));
        let since = Instant::now();
        let checked = case.run(&session);
        let seconds = since.elapsed().as_secs_f64();
        let name = case.name.clone();
        say(&Line::End(match checked {
            Ok(report) => CaseResult { name, status: Status::Pass, seconds, notes: report.notes, data: report.data },
            Err(why) => CaseResult::failed(&name, seconds, why),
        }));
        if session.spoiled() {
            break;
        }
    }
    say(&Line::Done);
    thread::sleep(LINGER);
    Ok(())
}

fn say(line: &Line) {
    if let Ok(text) = serde_json::to_string(line) {
        println!("{text}");
    }
    let _ = std::io::stdout().flush();
}

/// Ends this process without a destructor when nobody else has done so.
fn watch_over(limit: Duration) {
    thread::spawn(move || {
        thread::sleep(limit);
        std::process::abort();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Check;

    fn run(names: &[&str], time: Duration) -> Vec<(String, Status, String)> {
        let case = |name: &&str| Case {
            name: (*name).to_owned(),
            check: Check::Entry,
            process: "one".into(),
            alone: false,
            limit: Duration::from_secs(3),
            env: None,
        };
        let cases: Vec<Case> = names.iter().map(case).collect();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/gpu-child");
        let deadline = Instant::now() + time;
        let supervisor = Supervisor { program, folder: PathBuf::from("."), jobs: 1, deadline, verbose: false };
        let results = supervisor.run(&cases).into_iter();
        results.map(|result| (result.name, result.status, result.notes.join("\n"))).collect()
    }

    const ENOUGH: Duration = Duration::from_secs(600);

    #[test]
    fn cases_of_one_process_come_back_in_their_order_and_its_end_is_not_awaited() {
        let since = Instant::now();
        let results = run(&["a", "b", "c"], ENOUGH);
        let names: Vec<&str> = results.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(results.iter().all(|(_, status, _)| *status == Status::Pass));
        assert!(since.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn a_process_that_dies_or_falls_silent_fails_one_case_and_another_takes_the_rest() {
        let results = run(&["a", "dies", "falls silent", "spoils it", "b"], ENOUGH);
        let statuses: Vec<Status> = results.iter().map(|(_, status, _)| *status).collect();
        assert_eq!(statuses, [Status::Pass, Status::Fail, Status::Fail, Status::Pass, Status::Pass]);
        assert_eq!(results[1].2, "the process died\nthe reason why");
        assert_eq!(results[2].2, "no answer within 3s; the process was killed");
    }

    #[test]
    fn no_case_begins_when_the_time_is_used_up() {
        assert!(run(&["a"], Duration::ZERO).iter().all(|(_, status, _)| *status == Status::NotRun));
    }
}
