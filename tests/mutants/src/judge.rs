//! Runs tests with one fault after the other in force, several at once.

use crate::manifest::{Manifest, Part, Verdict};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A test program, and where it runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) folder: PathBuf,
}

/// How tests fared.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ran {
    Passed,
    /// The first test that failed, or how the program ended.
    Failed(String),
    /// They did not end within their limit.
    Endless,
}

/// How much is run at once, and until when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) jobs: usize,
    pub(crate) end: Option<Instant>,
}

/// Most that tests get without a fault.
const LONGEST: Duration = Duration::from_secs(900);
/// Address space of a program, in KiB: some faults ask for memory without end.
const MEMORY: u32 = 16 << 20;
/// What the runtime reserves of it for memory that keeps its place, over the stand-in driver.
const RESERVED: u32 = 1 << 30;

/// What tests without a fault showed: which faults they reach, and how long they may take.
struct Known {
    reached: BTreeSet<usize>,
    limit: Duration,
}

/// The verdicts that a file holds; an error if they are of other faults.
pub(crate) fn read(results: &Path, digest: &str) -> Result<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for line in fs::read_to_string(results).unwrap_or_default().lines() {
        let verdict: Verdict = serde_json::from_str(line).with_context(|| results.display().to_string())?;
        ensure!(
            verdict.digest == digest,
            "{} holds verdicts of other faults: remove it, or name another file with --results",
            results.display()
        );
        verdicts.push(verdict);
    }
    Ok(verdicts)
}

/// Judges all faults of the manifest. Writes each verdict to the file at once; those that it holds already are taken from there.
pub(crate) fn judge(manifest: &Manifest, pace: Pace, results: &Path) -> Result<Vec<Verdict>> {
    let verdicts = read(results, &manifest.digest)?;
    let done: BTreeSet<usize> = verdicts.iter().map(|verdict| verdict.number).collect();
    let known = without_fault(manifest, pace)?;
    let file = Mutex::new(File::options().create(true).append(true).open(results)?);
    let work = Mutex::new(in_turns(&manifest.parts).into_iter().filter(|(_, number)| !done.contains(number)).collect::<VecDeque<_>>());
    let judged = Mutex::new(verdicts);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..pace.jobs)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    loop {
                        let next = work.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                        let Some((part, number)) = next else { return Ok(()) };
                        let Some(verdict) = one(manifest, part, number, &known, pace)? else { return Ok(()) };
                        let mut line = serde_json::to_vec(&verdict)?;
                        line.push(b'\n');
                        file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)?;
                        eprintln!("{}", verdict.line(manifest));
                        judged.lock().unwrap_or_else(PoisonError::into_inner).push(verdict);
                    }
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    Ok(judged.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// One of each part after the other, so that an early end leaves a sample of each.
fn in_turns(parts: &[Part]) -> Vec<(&Part, usize)> {
    let place = |part: &Part, index: usize| (index * 1000) / part.mutants.len().max(1);
    let mut all: Vec<_> = parts
        .iter()
        .flat_map(|part| part.mutants.iter().enumerate().map(move |(index, mutant)| (place(part, index), part, mutant.number)))
        .collect();
    all.sort_by_key(|(place, _, number)| (*place, *number));
    all.into_iter().map(|(_, part, number)| (part, number)).collect()
}

/// Runs all tests without a fault. An error if one fails: faults that it alone notices would seem to survive.
fn without_fault(manifest: &Manifest, pace: Pace) -> Result<BTreeMap<usize, Known>> {
    let folder = std::env::temp_dir().join(format!("cuinstr-mutants-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let work = Mutex::new((0..manifest.tests.len()).collect::<VecDeque<_>>());
    let known = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..pace.jobs.div_ceil(2))
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    loop {
                        let next = work.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                        let Some(index) = next else { return Ok(()) };
                        let tests = &manifest.tests[index];
                        let reached = folder.join(index.to_string());
                        let since = Instant::now();
                        let mut command = command(manifest, index, pace);
                        command.env("CUINSTR_MUTANTS_REACHED", &reached);
                        let ran = run(command, LONGEST, None)?.unwrap_or(Ran::Endless);
                        let took = since.elapsed();
                        eprintln!("{:6.1} s  {} {} without a fault: {ran:?}", took.as_secs_f64(), tests.tests.package, tests.tests.target);
                        let (package, target) = (&tests.tests.package, &tests.tests.target);
                        ensure!(ran == Ran::Passed, "{package} {target} fails without a fault, so it would notice none: mend it first");
                        let numbers = fs::read_to_string(&reached).unwrap_or_default();
                        let reached = numbers.lines().filter_map(|line| line.parse().ok()).collect();
                        let known_here = Known { reached, limit: took * 8 + Duration::from_secs(60) };
                        known.lock().unwrap_or_else(PoisonError::into_inner).insert(index, known_here);
                    }
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    fs::remove_dir_all(&folder)?;
    Ok(known.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Judges one fault; nothing where the time is over.
fn one(manifest: &Manifest, part: &Part, number: usize, known: &BTreeMap<usize, Known>, pace: Pace) -> Result<Option<Verdict>> {
    let since = Instant::now();
    let usable: Vec<_> = part.tests.iter().filter_map(|index| known.get(index).map(|known| (*index, known))).collect();
    let mut verdict = Verdict { digest: manifest.digest.clone(), number, reached: Vec::new(), by: None, seconds: 0.0 };
    for (index, known) in usable.into_iter().filter(|(_, known)| known.reached.contains(&number)) {
        let tests = &manifest.tests[index].tests;
        let name = format!("{} {}", tests.package, tests.target);
        let mut command = command(manifest, index, pace);
        command.env("CUINSTR_MUTANT", number.to_string());
        verdict.by = match run(command, known.limit, pace.end)? {
            None => return Ok(None),
            Some(Ran::Passed) => None,
            Some(Ran::Failed(test)) => Some(format!("{name}: {test}")),
            Some(Ran::Endless) => Some(format!("{name}: does not end")),
        };
        verdict.reached.push(name);
        if verdict.by.is_some() {
            break;
        }
    }
    verdict.seconds = since.elapsed().as_secs_f64();
    Ok(Some(verdict))
}

fn command(manifest: &Manifest, index: usize, pace: Pace) -> Command {
    let known = &manifest.tests[index];
    let mut command = Command::new("sh");
    let memory = if known.tests.target == "stand_in" { MEMORY + RESERVED } else { MEMORY };
    command.args(["-c", &format!("ulimit -v {memory}; exec \"$0\" \"$@\"")]).arg(&known.program.path).args(&known.tests.arguments);
    command.current_dir(&known.program.folder).env("CARGO_MANIFEST_DIR", &known.program.folder).env("INSTA_WORKSPACE_ROOT", &manifest.tree);
    command.env("INSTA_UPDATE", "no").env("RUST_BACKTRACE", "0").env_remove("CUINSTR_MUTANT").env_remove("CUINSTR_MUTANTS_REACHED");
    if pace.jobs > 1 {
        command.env("RUST_TEST_THREADS", "2").env("RAYON_NUM_THREADS", "2");
    }
    command
}

/// Runs a program until its first test fails; nothing where the time of all is over.
fn run(mut command: Command, limit: Duration, end: Option<Instant>) -> Result<Option<Ran>> {
    let since = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0).spawn()?;
    let output = child.stdout.take().context("its output is a pipe")?;
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let failed = line.trim_start_matches("test ").trim_end().strip_suffix(" ... FAILED").map(str::to_owned);
            let failed = failed.or_else(|| line.trim_end().ends_with("FAILED").then(|| line.clone()));
            if let Some(failed) = failed {
                let _ = sender.send(failed);
            }
        }
    });
    let ran = wait(&mut child, &lines, since + limit, end);
    // The group's other processes may be in a loop without end.
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).stderr(Stdio::null()).status();
    child.wait()?;
    ran
}

fn wait(child: &mut std::process::Child, failed: &Receiver<String>, limit: Instant, end: Option<Instant>) -> Result<Option<Ran>> {
    loop {
        match failed.recv_timeout(Duration::from_millis(20)) {
            Ok(test) => return Ok(Some(Ran::Failed(test))),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => thread::sleep(Duration::from_millis(5)),
        }
        if let Some(status) = child.try_wait()? {
            // What it wrote last may not have been read yet.
            let said = failed.recv_timeout(Duration::from_millis(100)).ok();
            let ended = || status.signal().map_or_else(|| format!("ends with {:?}", status.code()), |signal| format!("signal {signal}"));
            return Ok(Some(if status.success() { Ran::Passed } else { Ran::Failed(said.unwrap_or_else(ended)) }));
        }
        if end.is_some_and(|end| Instant::now() > end) {
            return Ok(None);
        }
        if Instant::now() > limit {
            return Ok(Some(Ran::Endless));
        }
    }
}
