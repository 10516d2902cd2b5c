//! The same work as it is done without cuinstr: one child process a candidate, compiled as it is, and SIGKILL at the same limit. For comparison.

mod child;

pub(crate) use child::serve;

use crate::bench::{Answers, Bench, Left, judge};
use crate::child::{Helper, Program, Role};
use crate::compile::{Built, Compiler, Image, Order};
use crate::evaluation::{BRIEF, Event, Observer, Settings};
use crate::limits::Limits;
use crate::spec::{Argument, Case, Memory, Spec};
use crate::verdict::{Finding, Judgement, Verdict};
use crate::{Candidate, Result};
use cuinstr_image::Arch;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longest that a child may take for what is not its kernel: to make a context, to load, to copy.
const ORDINARY: Duration = Duration::from_secs(60);

/// What is done by one child process a candidate, for comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Baseline {
    /// Only candidates whose verdict was a timeout.
    pub only_timeouts: bool,
    /// At most so many of them, spread evenly.
    pub most: usize,
    /// Children at a time.
    pub at_a_time: usize,
}

/// How long the same candidates took by either means. Compiling is not in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// How many candidates.
    pub candidates: usize,
    /// Seconds that each launch may take in both, the shortest of all cases.
    pub limit_s: f64,
    /// Seconds for all of them on one worker, limited by time.
    pub worker_s: f64,
    /// The same, limited by fuel, if that is compiled in.
    pub worker_by_fuel_s: Option<f64>,
    /// Seconds for all of them in one child process each.
    pub children_s: f64,
    /// Children at a time.
    pub at_a_time: usize,
    /// Candidates whose verdict is the same by both, limited by time.
    pub same_verdict: usize,
    /// Each candidate of which the verdicts differ: its name, the worker's verdict, the child's.
    pub different: Vec<(String, Verdict, Verdict)>,
}

impl Comparison {
    /// How many times as many candidates a second the worker judged, limited by time.
    #[must_use]
    pub fn times(&self) -> f64 {
        self.children_s / self.worker_s
    }
}

/// What a comparison needs.
pub(crate) struct Stand<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) candidates: &'a [Candidate],
    pub(crate) settings: &'a Settings,
    pub(crate) limits: &'a [Limits],
    pub(crate) arch: Arch,
    pub(crate) bench: Bench,
}

/// What a child is given first; image and memory are the payload.
#[derive(Debug, Serialize, Deserialize)]
struct Job {
    device: usize,
    kernel: String,
    image: usize,
    cases: Vec<Launch>,
    /// How often each case is run.
    times: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Launch {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    is_cooperative: bool,
    arguments: Vec<Passed>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Passed {
    Value(Vec<u8>),
    /// So many bytes of the payload, and whether they are wanted back.
    Memory(usize, bool),
}

/// What a child says.
#[derive(Debug, Serialize, Deserialize)]
enum Said {
    /// The next case's kernel was launched.
    Launched,
    /// It is done, after so long on the GPU; the payload is what it left.
    Done {
        elapsed_ns: u64,
    },
    Failed(String),
}

impl Stand<'_> {
    /// Does the work by both means. `None` if there is nothing to compare, or it was stopped.
    pub(crate) fn compare(mut self, asked: &Baseline, judgements: &[Judgement], observer: &mut Observer) -> Result<Option<Comparison>> {
        let chosen = self.chosen(asked, judgements);
        if chosen.is_empty() {
            return Ok(None);
        }
        // The limit of time alone, which both have.
        let rules = &self.spec.limits;
        let by_time: Vec<Limits> =
            self.limits.iter().map(|limits| Limits::new(&limits.case, rules, Duration::from_secs_f64(limits.reference_s), None)).collect();
        let is_fueled = self.limits.iter().all(|limits| limits.fuel.is_some());
        let order = Order::new(self.spec, self.arch, is_fueled);
        let Some(rewritten) = self.compile(&order, &chosen, observer)? else { return Ok(None) };
        let Some(plain) = self.compile(&order.clone().plain(), &chosen, observer)? else { return Ok(None) };
        // Only what compiles either way is run.
        let pairs: Vec<(usize, &Image, &Image)> = chosen
            .iter()
            .zip(rewritten.iter().zip(&plain))
            .filter_map(|(index, (rewritten, plain))| Some((*index, &**rewritten.as_ref().ok()?, &**plain.as_ref().ok()?)))
            .collect();
        let mut by_fuel = None;
        if is_fueled {
            let limits = self.limits;
            let Some((took, _)) = self.on_worker(&pairs, limits, observer)? else { return Ok(None) };
            by_fuel = Some(took);
        }
        let Some((worker, findings)) = self.on_worker(&pairs, &by_time, observer)? else { return Ok(None) };
        let Some((children, verdicts)) = self.in_children(&pairs, &by_time, asked.at_a_time, observer)? else { return Ok(None) };
        let mut different = Vec::new();
        for ((index, ..), (ours, theirs)) in pairs.iter().zip(findings.iter().zip(&verdicts)) {
            if ours != theirs {
                different.push((self.candidates[*index].name.clone(), *ours, *theirs));
            }
        }
        Ok(Some(Comparison {
            candidates: pairs.len(),
            limit_s: by_time.iter().map(|limits| limits.timeout_s).fold(f64::INFINITY, f64::min),
            worker_s: worker.as_secs_f64(),
            worker_by_fuel_s: by_fuel.map(|took| took.as_secs_f64()),
            children_s: children.as_secs_f64(),
            at_a_time: asked.at_a_time.max(1),
            same_verdict: pairs.len() - different.len(),
            different,
        }))
    }

    /// Indices of the candidates to compare, in their order.
    fn chosen(&self, asked: &Baseline, judgements: &[Judgement]) -> Vec<usize> {
        let runs = |verdict: Verdict| match verdict {
            Verdict::Timeout => true,
            Verdict::CompileError | Verdict::Refused | Verdict::Compiles => false,
            _ => !asked.only_timeouts,
        };
        let wanted: std::collections::HashSet<&str> = judgements
            .iter()
            .filter(|judgement| judgement.round == 1 && runs(judgement.verdict))
            .map(|judgement| judgement.candidate.as_str())
            .collect();
        let all: Vec<usize> = (0..self.candidates.len()).filter(|index| wanted.contains(self.candidates[*index].name.as_str())).collect();
        let (count, most) = (all.len(), asked.most.min(all.len()));
        (0..most).map(|index| all[index * count / most]).collect()
    }

    fn compile(&self, order: &Order, chosen: &[usize], observer: &mut Observer) -> Result<Option<Vec<Built>>> {
        let within = Duration::from_secs_f64(self.spec.limits.compile);
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let jobs = if self.settings.jobs == 0 { processors } else { self.settings.jobs }.clamp(1, chosen.len());
        let next = AtomicUsize::new(0);
        let built: Mutex<Vec<Option<Built>>> = Mutex::new(vec![None; chosen.len()]);
        let work = || -> Result<()> {
            let mut compiler = Compiler::start(&self.settings.program, order.clone(), within)?;
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(index) = chosen.get(at) else { return Ok(()) };
                let done = compiler.compile(&self.candidates[*index])?;
                built.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(done);
            }
        };
        let is_stopped = watched(jobs, work, || observer(&Event::Waiting), || next.store(chosen.len(), Ordering::Relaxed))?;
        if is_stopped {
            return Ok(None);
        }
        let missing = || Err(Box::new(Finding::new(Verdict::CompileError, "it was not compiled".to_owned())));
        let built = built.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(built.into_iter().map(|built| built.unwrap_or_else(missing)).collect()))
    }

    fn on_worker(
        &mut self,
        pairs: &[(usize, &Image, &Image)],
        limits: &[Limits],
        observer: &mut Observer,
    ) -> Result<Option<(Duration, Vec<Verdict>)>> {
        self.bench.warm()?;
        let mut verdicts = Vec::with_capacity(pairs.len());
        let since = Instant::now();
        for (index, rewritten, _) in pairs {
            let Some(finding) = self.bench.judge(&self.candidates[*index], rewritten, limits, false)? else {
                return Ok(None);
            };
            verdicts.push(finding.verdict);
            if observer(&Event::Compared(verdicts.len(), pairs.len())).is_break() {
                return Ok(None);
            }
        }
        Ok(Some((since.elapsed(), verdicts)))
    }

    fn in_children(
        &self,
        pairs: &[(usize, &Image, &Image)],
        limits: &[Limits],
        at_a_time: usize,
        observer: &mut Observer,
    ) -> Result<Option<(Duration, Vec<Verdict>)>> {
        let next = AtomicUsize::new(0);
        let verdicts: Mutex<Vec<Option<Verdict>>> = Mutex::new(vec![None; pairs.len()]);
        let done = || verdicts.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().count();
        let work = || -> Result<()> {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some((_, _, plain)) = pairs.get(at) else { return Ok(()) };
                let on = (&self.settings.program, self.bench.device());
                let ended = in_child(self.spec, on, plain, (limits, self.bench.answers()), 1)?;
                let verdict = ended.map_or_else(|finding| finding.verdict, |_| Verdict::Pass);
                verdicts.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(verdict);
            }
        };
        let since = Instant::now();
        let watch = || observer(&Event::Compared(done(), pairs.len()));
        let is_stopped = watched(at_a_time.max(1), work, watch, || next.store(pairs.len(), Ordering::Relaxed))?;
        let took = since.elapsed();
        let verdicts = verdicts.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((!is_stopped).then(|| (took, verdicts.into_iter().map(|verdict| verdict.unwrap_or(Verdict::Fault)).collect())))
    }
}

/// A candidate as it is, in a child process, which is killed if a launch takes longer than its limit: how long each launch of each case took, or what
/// is wrong with the candidate.
pub(crate) fn in_child(
    spec: &Spec,
    (program, device): (&Program, usize),
    plain: &Image,
    (limits, answers): (&[Limits], &Answers),
    times: u32,
) -> Result<std::result::Result<Vec<Vec<Duration>>, Finding>> {
    let mut helper = Helper::start(program, Role::Baseline, &[])?;
    let mut payload = plain.code.clone();
    let cases = spec.cases.iter().map(|case| launch(case, &mut payload)).collect();
    let job = Job { device, kernel: plain.kernel.clone(), image: plain.code.len(), cases, times };
    let fault = |what: String| Ok(Err(Finding::new(Verdict::Fault, what)));
    if let Err(error) = helper.tell(&job, &payload) {
        return fault(error.to_string());
    }
    let mut all = Vec::with_capacity(spec.cases.len());
    for (index, case) in spec.cases.iter().enumerate() {
        let is_wanted = |memory: &Memory| memory.compared.is_some();
        let wanted = case.memory().filter(|(_, memory)| is_wanted(memory)).map(|(_, memory)| memory.contents.len()).sum::<usize>() as u64;
        let mut durations = Vec::with_capacity(times as usize);
        for _ in 0..times {
            match helper.hear::<Said>(Instant::now() + ORDINARY, 0) {
                Ok((Said::Launched, _)) => {}
                Ok((Said::Failed(what), _)) => return fault(what),
                Ok((Said::Done { .. }, _)) => return fault("it was done before it was launched".into()),
                Err(error) => return fault(error.to_string()),
            }
            let left = match helper.hear::<Said>(Instant::now() + limits[index].timeout(), wanted) {
                Ok((Said::Done { elapsed_ns }, left)) => {
                    durations.push(Duration::from_nanos(elapsed_ns));
                    left
                }
                Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                    let message = "it does not end: its process was killed".to_owned();
                    return Ok(Err(Finding::new(Verdict::Timeout, message).of_case(&case.name)));
                }
                Ok((Said::Failed(what), _)) => return fault(what),
                Ok((Said::Launched, _)) => return fault("it was launched twice".into()),
                Err(error) => return fault(error.to_string()),
            };
            let mut rest = &left[..];
            let mut parts = Vec::new();
            for (_, memory) in case.memory() {
                let (part, others) = rest.split_at(if is_wanted(memory) { memory.contents.len().min(rest.len()) } else { 0 });
                parts.push(Left { contents: part.to_vec(), margin: None });
                rest = others;
            }
            if let Some(finding) = judge(case, answers.get(index).map(Vec::as_slice), &parts) {
                return Ok(Err(finding.of_case(&case.name)));
            }
        }
        all.push(durations);
    }
    Ok(Ok(all))
}

/// Has several threads do the work, and asks meanwhile whether to go on. Says whether it was stopped.
fn watched(
    threads: usize,
    work: impl Fn() -> Result<()> + Sync,
    mut watch: impl FnMut() -> ControlFlow<()>,
    stop: impl Fn(),
) -> Result<bool> {
    let mut is_stopped = false;
    let ended: Vec<Result<()>> = thread::scope(|scope| {
        let working: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        while working.iter().any(|working| !working.is_finished()) {
            if watch().is_break() && !is_stopped {
                is_stopped = true;
                stop();
            }
            thread::sleep(BRIEF);
        }
        working.into_iter().filter_map(|working| working.join().ok()).collect()
    });
    ended.into_iter().collect::<Result<()>>()?;
    Ok(is_stopped)
}

fn launch(case: &Case, payload: &mut Vec<u8>) -> Launch {
    let passed = |argument: &Argument| match argument {
        Argument::Value(bytes) => Passed::Value(bytes.clone()),
        Argument::Memory(memory) => {
            payload.extend_from_slice(&memory.contents);
            Passed::Memory(memory.contents.len(), memory.compared.is_some())
        }
    };
    let arguments = case.arguments.iter().map(passed).collect();
    Launch { grid: case.grid, block: case.block, shared: case.shared, is_cooperative: case.cooperative, arguments }
}
