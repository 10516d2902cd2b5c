//! A worker process with a specification's memory in it, on which one candidate after the other is run.
//!
//! Before each launch all memory of its case is written anew, with a margin behind each part, so that no candidate sees what another left.
//! A margin that has changed afterwards makes the result wrong whatever else it is, also that of memory which is only read.

use crate::child::{Program, SILENT, VARIABLE};
use crate::compile::{Compiler, Image};
use crate::data::{compare, marks};
use crate::evaluation::By;
use crate::limits::Limits;
use crate::spec::{Argument as Given, Case, Spec};
use crate::times::Timer;
use crate::verdict::{CaseVerdict, Finding, Place, Verdict};
use crate::{Candidate, Error, Result};
use cuinstr_image::Arch;
use cuinstr_runtime::cudarc::driver::LaunchConfig;
use cuinstr_runtime::worker::{Argument, Fault, RemoteBuffer, RemoteCanceller, RemoteKernel, RemoteLaunch, Restore, Worker};
use cuinstr_runtime::{Cause, Error as RunError, Outcome, Tier};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// Bytes behind each part of memory that no kernel is to change.
const MARGIN: usize = 4096;
/// Memory comes in parts of this size, so that what lies around it does not depend on what was allocated before.
const PART: usize = 2 << 20;
/// How often the reference is timed.
const TIMES: usize = 5;
/// How often a candidate is run again whose process went without its doing.
const TRIES: usize = 3;

/// What a margin holds.
static MARKS: LazyLock<Vec<u8>> = LazyLock::new(|| marks(MARGIN));

/// What a launch left in one part of memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Left {
    /// Of memory that is compared.
    pub(crate) contents: Vec<u8>,
    /// What lies behind it; `None` where there is no margin.
    pub(crate) margin: Option<Vec<u8>>,
}

/// What the reference left in each part of memory, case by case.
pub(crate) type Answers = Vec<Vec<Left>>;

/// A worker process on a GPU, with a specification's memory, that judges one candidate after the other.
pub struct Bench {
    spec: Arc<Spec>,
    worker: Worker,
    device: usize,
    memory: Vec<Vec<Option<RemoteBuffer>>>,
    reference: Option<Arc<Image>>,
    answers: Answers,
    timer: Option<Timer>,
    running: Stopper,
}

/// Stops what runs on a bench, from any thread.
#[derive(Debug, Clone, Default)]
pub struct Stopper(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    is_stopped: bool,
    running: Option<RemoteCanceller>,
}

impl Stopper {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels what runs, and what will.
    pub fn stop(&self) {
        let mut state = self.state();
        state.is_stopped = true;
        if let Some(running) = state.running.take() {
            // One that does not listen is killed with its process.
            let _ = running.cancel();
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state().is_stopped
    }
}

/// One launch's end: its outcome, and what it left in each part of memory.
struct Ended {
    outcome: Outcome,
    left: Vec<Left>,
}

impl Bench {
    /// Starts a worker on a GPU, and spares behind it.
    ///
    /// # Errors
    /// If no process can be started on that GPU.
    pub fn start(spec: &Arc<Spec>, program: &Program, device: usize, spares: usize) -> Result<Self> {
        let mut builder = Worker::builder();
        builder.device(device).spares(spares);
        if let Some(path) = &program.path {
            builder.program(path);
        }
        for argument in &program.arguments {
            builder.argument(argument);
        }
        builder.variable(VARIABLE, SILENT);
        for (name, value) in &program.variables {
            builder.variable(name, value);
        }
        let worker = builder.start()?;
        let mut memory = Vec::with_capacity(spec.cases.len());
        for case in &spec.cases {
            let buffer = |argument: &Given| match argument {
                Given::Memory(memory) => {
                    let bytes = (memory.contents.len() + MARGIN).next_multiple_of(PART);
                    worker.zeros(bytes, Restore::Blank).map(Some)
                }
                Given::Value(_) => Ok(None),
            };
            memory.push(case.arguments.iter().map(buffer).collect::<std::result::Result<Vec<_>, _>>()?);
        }
        Ok(Self {
            spec: Arc::clone(spec),
            worker,
            device,
            memory,
            reference: None,
            answers: Vec::new(),
            timer: None,
            running: Stopper::default(),
        })
    }

    /// Number of its GPU.
    #[must_use]
    pub fn device(&self) -> usize {
        self.device
    }

    /// Name of its GPU.
    ///
    /// # Errors
    /// If its process can't be started again.
    pub fn device_name(&self) -> Result<String> {
        Ok(self.worker.device_name()?)
    }

    /// Its GPU's architecture.
    ///
    /// # Errors
    /// As [`Self::device_name`].
    pub fn arch(&self) -> Result<Arch> {
        Ok(self.worker.arch()?)
    }

    /// Processes that it has lost so far.
    #[must_use]
    pub fn losses(&self) -> u64 {
        self.worker.losses()
    }

    /// What stops it.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.running.clone()
    }

    /// Waits until the spares are ready, so that what is timed is not the making of them.
    pub(crate) fn warm(&self) -> Result<()> {
        self.worker.warm(Duration::from_secs(60))?;
        Ok(())
    }

    /// What the reference left in each part of memory.
    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Runs the reference, keeps its answers, and says what a candidate may take.
    ///
    /// # Errors
    /// If the reference faults, does not end, or does not agree with itself.
    pub fn measure(&mut self, image: &Arc<Image>, by: By) -> Result<Vec<Limits>> {
        let spec = Arc::clone(&self.spec);
        let rules = &spec.limits;
        let long = Duration::from_secs_f64(rules.reference);
        let kernel = self.worker.load(&image.code)?.kernel(&image.kernel)?;
        let (mut answers, mut limits) = (Vec::new(), Vec::new());
        for (index, case) in spec.cases.iter().enumerate() {
            let mut slowest = Duration::ZERO;
            let mut fuel = None;
            let mut answer: Option<Vec<Left>> = None;
            for time in 0..=TIMES {
                // The first is not timed: it loads code, and counts.
                let configure = |launch: &mut RemoteLaunch| {
                    launch.timeout(long);
                    if time == 0 && by == By::Fuel {
                        launch.count_fuel();
                    } else {
                        launch.timed();
                    }
                };
                let Ended { outcome, left } = self.run(&kernel, index, case, configure)?;
                match outcome {
                    Outcome::Completed { fuel_used, .. } if time == 0 => fuel = fuel_used,
                    Outcome::Completed { elapsed, .. } => slowest = slowest.max(elapsed),
                    Outcome::Stopped { report, .. } => {
                        return Err(Error::Reference(format!("does not end in case {:?}: {report}", case.name)));
                    }
                    paused @ Outcome::Paused { .. } => return Err(RunError::Unfinished(Box::new(paused)).into()),
                    Outcome::Faulted { fault } => return Err(Error::Reference(format!("faults in case {:?}: {fault}", case.name))),
                }
                if let Some(finding) = judge(case, answer.as_deref(), &left) {
                    let what = finding.message.unwrap_or_default();
                    return Err(Error::Reference(format!("does not agree with itself in case {:?}: {what}", case.name)));
                }
                answer.get_or_insert(left);
            }
            if by == By::Fuel && fuel.is_none() {
                return Err(Error::Reference("does not say what fuel it used: limit by time".into()));
            }
            limits.push(Limits::new(&case.name, rules, slowest, fuel));
            answers.push(answer.unwrap_or_default());
        }
        (self.reference, self.answers) = (Some(Arc::clone(image)), answers);
        Ok(limits)
    }

    /// Has it time each candidate that passes, compiled as it is by this compiler, beside the reference; to be called once the reference was measured.
    ///
    /// # Errors
    /// If the reference fails as it is.
    pub fn time(&mut self, program: &Program, compiler: Compiler, limits: &[Limits]) -> Result<()> {
        self.timer = Some(Timer::new(&self.spec, (program, self.device), compiler, (limits, &self.answers))?);
        Ok(())
    }

    /// Runs a candidate in all cases, or until one decides. `None` if it was stopped from outside. A fault is believed only if the reference runs on
    /// this GPU after it.
    ///
    /// # Errors
    /// If the GPU is broken, or has gone.
    pub fn judge(&mut self, candidate: &Candidate, image: &Image, limits: &[Limits], all: bool) -> Result<Option<Finding>> {
        let mut last = String::new();
        for _ in 0..TRIES {
            match self.try_all(candidate, image, limits, all) {
                Ok(_) if self.running.is_stopped() => return Ok(None),
                Ok(finding) => {
                    if finding.verdict == Verdict::Fault {
                        self.check(limits)?;
                    }
                    if let (Verdict::Pass, Some(timer)) = (finding.verdict, &mut self.timer) {
                        return Ok(Some(match timer.time(&self.spec, candidate, (limits, &self.answers))? {
                            Ok(times) => Finding { times, ..finding },
                            Err(other) => Finding { cases: finding.cases, ..other },
                        }));
                    }
                    return Ok(Some(finding));
                }
                Err(_) if self.running.is_stopped() => return Ok(None),
                Err(error) => last = told(error)?,
            }
        }
        self.check(limits)?;
        Ok(Some(Finding::new(Verdict::Fault, format!("its process was lost {TRIES} times: {last}"))))
    }

    /// Runs the reference's first case again. A GPU on which that fails is broken, and its faults are no candidate's.
    fn check(&mut self, limits: &[Limits]) -> Result<()> {
        let Some(reference) = self.reference.clone() else { return Ok(()) };
        let itself = Candidate::reference(&self.spec);
        let mut last = String::new();
        for _ in 0..TRIES {
            if self.running.is_stopped() {
                return Ok(());
            }
            let kernel = self.worker.load(&reference.code).and_then(|module| module.kernel(&reference.kernel));
            match kernel.and_then(|kernel| self.try_case(&itself, &kernel, 0, &limits[0])) {
                Ok(None) => return Ok(()),
                Ok(Some(finding)) => last = finding.message.unwrap_or_else(|| finding.verdict.to_string()),
                Err(error) => last = told(error)?,
            }
        }
        Err(Error::Broken { device: self.device, why: format!("the reference, which ran on it before, does not any more: {last}") })
    }

    fn try_all(&mut self, candidate: &Candidate, image: &Image, limits: &[Limits], all: bool) -> std::result::Result<Finding, RunError> {
        let spec = Arc::clone(&self.spec);
        let kernel = match self.worker.load(&image.code).and_then(|module| module.kernel(&image.kernel)) {
            Ok(kernel) => kernel,
            Err(
                error @ (RunError::Module { .. }
                | RunError::NoModule(_)
                | RunError::NotInstrumented
                | RunError::OtherAbi { .. }
                | RunError::UnknownKernel(_)),
            ) => return Ok(Finding::new(Verdict::CompileError, error.to_string())),
            Err(error) => return Err(error),
        };
        let mut decided: Option<Finding> = None;
        let mut cases = Vec::new();
        for (index, case) in spec.cases.iter().enumerate() {
            let found = self.try_case(candidate, &kernel, index, &limits[index])?;
            if all {
                cases.push(CaseVerdict::new(&case.name, found.as_ref()));
            }
            decided = decided.or(found.map(|found| found.of_case(&case.name)));
            // What does not fit its parameters fits them in no case.
            if decided.as_ref().is_some_and(|finding| !all || finding.verdict == Verdict::CompileError) {
                break;
            }
        }
        let decided = decided.unwrap_or_else(|| Finding::new(Verdict::Pass, None));
        Ok(Finding { cases, ..decided })
    }

    /// One case. `None` if the candidate answers as the reference does.
    fn try_case(
        &mut self,
        candidate: &Candidate,
        kernel: &RemoteKernel,
        index: usize,
        limit: &Limits,
    ) -> std::result::Result<Option<Finding>, RunError> {
        let spec = Arc::clone(&self.spec);
        let case = &spec.cases[index];
        let configure = |launch: &mut RemoteLaunch| {
            launch.timeout(limit.timeout()).grace(spec.limits.grace());
            if let Some(fuel) = limit.fuel {
                launch.fuel(fuel);
            }
        };
        let Ended { outcome, left } = match self.run(kernel, index, case, configure) {
            Ok(ended) => ended,
            Err(error @ RunError::Arguments { .. }) => return Ok(Some(Finding::new(Verdict::CompileError, error.to_string()))),
            // Too many registers, too much shared memory: the driver says so when it is launched.
            Err(error @ (RunError::Driver(_) | RunError::OutOfMemory(_))) => {
                return Ok(Some(Finding::new(Verdict::Fault, format!("it can't be launched: {error}"))));
            }
            Err(error) => return Err(error),
        };
        Ok(match outcome {
            Outcome::Completed { .. } => judge(case, self.answers.get(index).map(Vec::as_slice), &left),
            paused @ Outcome::Paused { .. } => return Err(RunError::Unfinished(Box::new(paused))),
            Outcome::Faulted { fault } => Some(Finding::new(Verdict::Fault, fault.to_string())),
            Outcome::Stopped { why: Cause::Cancelled, tier: Tier::Leave, report, .. } => Some(unasked(&report)),
            Outcome::Stopped { why, tier, report, .. } => Some(timeout(candidate, why, tier, &report)),
        })
    }

    /// One launch on fresh memory.
    fn run(
        &mut self,
        kernel: &RemoteKernel,
        index: usize,
        case: &Case,
        configure: impl FnOnce(&mut RemoteLaunch),
    ) -> std::result::Result<Ended, RunError> {
        // Memory comes back blank where a process goes between the writing and the launch, or between the launch and the reading.
        let pid = self.worker.pid()?;
        let gone = || RunError::from(Fault::Gone { pid, why: "it went with the memory of a launch".into() });
        let buffers = &mut self.memory[index];
        let mut launch = kernel.launch();
        for (argument, buffer) in case.arguments.iter().zip(&mut *buffers) {
            match (argument, buffer) {
                (Given::Memory(memory), Some(buffer)) => {
                    let mut bytes = Vec::with_capacity(memory.contents.len() + MARGIN);
                    bytes.extend_from_slice(&memory.contents);
                    bytes.extend_from_slice(&MARKS);
                    buffer.write_bytes(0, &bytes)?;
                    launch.arg(&*buffer);
                }
                (Given::Value(bytes), _) => _ = launch.arg(Argument::bytes(bytes.clone())),
                (Given::Memory(_), None) => unreachable!("memory has a buffer"),
            }
        }
        if case.cooperative {
            launch.cooperative();
        }
        configure(&mut launch);
        let ([gx, gy, gz], [bx, by, bz]) = (case.grid, case.block);
        let config = LaunchConfig { grid_dim: (gx, gy, gz), block_dim: (bx, by, bz), shared_mem_bytes: case.shared };
        let mut running = launch.start(config)?;
        if running.pid() != pid {
            let _ = running.cancel();
            return Err(gone());
        }
        {
            let mut state = self.running.state();
            if state.is_stopped {
                let _ = running.cancel();
            }
            state.running = Some(running.canceller());
        }
        let outcome = running.wait();
        self.running.state().running = None;
        let outcome = outcome?;
        let mut left = Vec::new();
        if outcome.is_completed() {
            for (index, memory) in case.memory() {
                let Some(buffer) = &buffers[index] else { continue };
                let length = memory.contents.len();
                let from = if memory.compared.is_some() { 0 } else { length };
                let mut contents = buffer.read_bytes(from, length - from + MARGIN)?;
                let margin = contents.split_off(length - from);
                left.push(Left { contents, margin: Some(margin) });
            }
            if self.worker.pid()? != pid {
                return Err(gone());
            }
        }
        Ok(Ended { outcome, left })
    }
}

/// What is wrong with what a kernel left; `None` if nothing is.
pub(crate) fn judge(case: &Case, answer: Option<&[Left]>, left: &[Left]) -> Option<Finding> {
    for (number, ((index, memory), left)) in case.memory().zip(left).enumerate() {
        let behind = left.margin.iter().flatten().zip(&*MARKS).position(|(left, mark)| left != mark);
        if let Some(at) = behind {
            let message = format!("argument {index}: it wrote {at} bytes behind the end of the memory");
            return Some(Finding::new(Verdict::WrongResult, message));
        }
        let (Some(answer), Some(tolerance)) = (answer.and_then(|answer| answer.get(number)), &memory.compared) else { continue };
        if let Some(difference) = compare(memory.element, *tolerance, &answer.contents, &left.contents) {
            let elements = memory.contents.len() / memory.element.bytes();
            let message = format!(
                "argument {index}: {} of {elements} elements differ, the first is [{}]: {} instead of {}",
                difference.count, difference.index, difference.found, difference.expected
            );
            return Some(Finding::new(Verdict::WrongResult, message));
        }
    }
    None
}

/// Of threads that left though no limit was reached and nobody had told them to. What tells a block's threads that others have left lies in
/// shared memory, beside the kernel's own, and they wrote there. Where the evaluation itself is cancelled, nobody asks for this.
fn unasked(report: &cuinstr_runtime::Report) -> Finding {
    let line = report.first.as_ref().and_then(|first| Some(first.site.place.as_ref()?.line));
    let place = line.map_or_else(String::new, |line| format!(" in line {line}"));
    let message = format!("its threads left{place} before any limit: it wrote over what tells them to");
    Finding::new(Verdict::WrongResult, message)
}

fn timeout(candidate: &Candidate, why: Cause, tier: Tier, report: &cuinstr_runtime::Report) -> Finding {
    let by = match (tier, why) {
        (Tier::Worker | Tier::Watchdog, _) => "worker",
        (Tier::Leave, Cause::Fuel) => "fuel",
        (Tier::Leave, Cause::Budget) => "budget",
        (Tier::Leave, Cause::Deadline | Cause::Cancelled) => "deadline",
    };
    let site = report.first.as_ref().and_then(|first| first.site.place.as_ref());
    let place = site.map(|site| Place {
        file: site.file.clone(),
        line: site.line,
        column: site.column,
        function: site.function.clone(),
        text: candidate.line(site.line).filter(|_| site.file == candidate.path),
    });
    let message = match (by, &place) {
        ("worker", _) => "no poll stopped it: its process was killed".to_owned(),
        (by, Some(place)) => format!("stopped by its {by} in line {}", place.line),
        (by, None) => format!("stopped by its {by}"),
    };
    let mut finding = Finding::new(Verdict::Timeout, message);
    (finding.by, finding.place) = (Some(by.to_owned()), place);
    finding
}

/// What the loss of a process was, so that the candidate is run again, unless the evaluation can't go on.
fn told(error: RunError) -> Result<String> {
    match &error {
        RunError::NoDriver | RunError::NoDevice { .. } | RunError::DriverTooOld { .. } => Err(error.into()),
        RunError::Worker(Fault::Gone { .. } | Fault::Lost { .. }) => Ok(error.to_string()),
        // None can be started: it is no candidate's doing.
        RunError::Worker(_) => Err(error.into()),
        _ => Ok(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case() -> Case {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("k.cu"), "__global__ void k(int* x, int* y) {}").unwrap();
        let path = folder.path().join("spec.toml");
        let text = "reference = \"k.cu\"\nkernel = \"k\"\ngrid = [1]\nblock = [1]\n\
                    [[case]]\narguments = [{ in = \"i32\", values = [1] }, { out = \"i32\", count = 2 }]\n";
        std::fs::write(&path, text).unwrap();
        Spec::read(&path).unwrap().cases.remove(0)
    }

    /// What is left of the second argument, and behind the first and the second.
    fn left(numbers: [i32; 2], behind: [&[u8]; 2]) -> Vec<Left> {
        let margin = |behind: &[u8]| Some([behind, &MARKS[behind.len()..]].concat());
        let contents = numbers.into_iter().flat_map(i32::to_le_bytes).collect();
        vec![Left { contents: Vec::new(), margin: margin(behind[0]) }, Left { contents, margin: margin(behind[1]) }]
    }

    #[test]
    fn a_result_is_wrong_in_its_memory_or_behind_any() {
        let case = case();
        let answer = left([5, 6], [&[], &[]]);
        let said = |left: Vec<Left>| judge(&case, Some(&answer), &left).and_then(|finding| finding.message);
        assert_eq!(said(left([5, 6], [&[], &[]])), None);
        assert_eq!(said(left([5, 7], [&[], &[]])).unwrap(), "argument 1: 1 of 2 elements differ, the first is [1]: 7 instead of 6");
        assert_eq!(said(left([5, 6], [&[], &[MARKS[0], 0]])).unwrap(), "argument 1: it wrote 1 bytes behind the end of the memory");
        // A stray -1, and one behind memory that is only read.
        assert_eq!(said(left([5, 6], [&[], &[0xff; 4]])).unwrap(), "argument 1: it wrote 0 bytes behind the end of the memory");
        assert_eq!(said(left([5, 6], [&[0xff], &[]])).unwrap(), "argument 0: it wrote 0 bytes behind the end of the memory");
        assert!(judge(&case, None, &left([1, 2], [&[], &[3]])).is_some());
    }
}
