//! Runs the mutants of a kernel against what the original answers, each within ten times what the original takes.

use super::operators::Mutant;
use cuinstr_runtime::cudarc::driver::{CudaContext, CudaSlice, CudaStream, LaunchConfig};
use cuinstr_runtime::jit::cuinstr::options::{Limits, Options};
use cuinstr_runtime::jit::{Program, ProgramError};
use cuinstr_runtime::{Kernel, Launch, Outcome};
use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// By what a mutant's launch is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Time.
    Timeout(Duration),
    /// Iterations of a thread: the same on every run and every machine.
    Fuel(u64),
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout(timeout) => write!(formatter, "a timeout of {timeout:.1?}"),
            Self::Fuel(fuel) => write!(formatter, "a fuel of {fuel} iterations"),
        }
    }
}

/// What became of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It answers as the original does: no test sees it.
    Survived,
    /// It answers something else.
    Wrong,
    /// It reached the limit.
    Stopped,
    /// It is no program.
    DoesNotCompile,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Survived => "survived",
            Self::Wrong => "wrong answer",
            Self::Stopped => "stopped",
            Self::DoesNotCompile => "does not compile",
        })
    }
}

/// The kernel `number_theory`, its input, its answer, and its mutants, compiled and loaded.
#[derive(Debug)]
pub(crate) struct Trial {
    stream: Arc<CudaStream>,
    original: Kernel,
    mutants: Vec<Option<Kernel>>,
    input: CudaSlice<u32>,
    output: CudaSlice<u32>,
    answer: Vec<u32>,
}

const COUNT: u32 = 1 << 14;
/// How much more than the original a mutant may take.
const FACTOR: u32 = 10;
/// Longest that anything here may take, should the limit itself be wrong.
const LONG: Duration = Duration::from_secs(10);
/// Compilations at a time.
const THREADS: usize = 8;

type Error = Box<dyn std::error::Error>;

/// Polls for fuel are compiled in; whether a launch has any is for each launch to say.
fn program(source: &str) -> Program {
    let limits = Limits { fuel: Some(Limits::MAX_FUEL), ..Limits::default() };
    let mut program = Program::from_cuda(source);
    program.rewriting(Options { path: "number_theory.cu".into(), limits, ..Options::default() });
    program
}

impl Trial {
    /// Compiles and loads everything, and asks the original for its answer.
    pub(crate) fn new(context: &Arc<CudaContext>, source: &str, mutants: &[Mutant]) -> Result<Self, Error> {
        let stream = context.default_stream();
        let (original, _) = program(source).load(context)?;
        let chunks = mutants.chunks(mutants.len().div_ceil(THREADS).max(1));
        let load = |mutant: &Mutant| program(&mutant.source).load(context);
        let loaded: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = chunks.map(|chunk| scope.spawn(move || chunk.iter().map(load).collect::<Vec<_>>())).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
        });
        let mutants = loaded.into_iter().map(|loaded| match loaded {
            Ok((module, _)) => Ok(Some(module.kernel("number_theory")?)),
            Err(ProgramError::Compile { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        });
        let numbers: Vec<u32> = (0..COUNT).map(|i| i.wrapping_mul(2_654_435_761) % 9973).collect();
        let mut trial = Self {
            original: original.kernel("number_theory")?,
            mutants: mutants.collect::<Result<_, Error>>()?,
            input: stream.clone_htod(&numbers)?,
            output: stream.alloc_zeros(numbers.len())?,
            stream,
            answer: Vec::new(),
        };
        let original = trial.original.clone();
        let outcome = trial.run(&original, |launch| _ = launch.timeout(LONG))?;
        if !outcome.is_completed() {
            return Err(format!("the original itself does not end: {outcome:?}").into());
        }
        trial.answer = trial.stream.clone_dtoh(&trial.output)?;
        Ok(trial)
    }

    /// Ten times the original's own time.
    pub(crate) fn timeout(&mut self) -> Result<Limit, Error> {
        let mut best = LONG;
        for _ in 0..20 {
            let original = self.original.clone();
            if let Outcome::Completed { elapsed, .. } = self.run(&original, |launch| _ = launch.timeout(LONG).timed())? {
                best = best.min(elapsed);
            }
        }
        Ok(Limit::Timeout(FACTOR * best))
    }

    /// Ten times the iterations that the longest thread of the original runs.
    pub(crate) fn fuel(&mut self) -> Result<Limit, Error> {
        let original = self.original.clone();
        match self.run(&original, |launch| _ = launch.timeout(LONG).count_fuel())? {
            Outcome::Completed { fuel_used: Some(used), .. } => Ok(Limit::Fuel(u64::from(FACTOR) * used)),
            outcome => Err(format!("the original's fuel is not known: {outcome:?}").into()),
        }
    }

    /// A verdict on each mutant.
    pub(crate) fn judge(&mut self, limit: Limit) -> Result<Vec<Verdict>, Error> {
        let mutants = self.mutants.clone();
        mutants.iter().map(|mutant| mutant.as_ref().map_or(Ok(Verdict::DoesNotCompile), |kernel| self.try_one(kernel, limit))).collect()
    }

    fn try_one(&mut self, kernel: &Kernel, limit: Limit) -> Result<Verdict, Error> {
        let outcome = self.run(kernel, |launch| match limit {
            Limit::Timeout(timeout) => _ = launch.timeout(timeout),
            Limit::Fuel(fuel) => _ = launch.fuel(fuel).timeout(LONG),
        })?;
        match outcome {
            Outcome::Completed { .. } if self.stream.clone_dtoh(&self.output)? == self.answer => Ok(Verdict::Survived),
            Outcome::Completed { .. } => Ok(Verdict::Wrong),
            Outcome::Stopped { .. } | Outcome::Paused { .. } => Ok(Verdict::Stopped),
            Outcome::Faulted { fault } => Err(fault.into()),
        }
    }

    fn run(&mut self, kernel: &Kernel, limits: impl FnOnce(&mut Launch)) -> Result<Outcome, Error> {
        self.stream.memset_zeros(&mut self.output)?;
        let mut launch = kernel.on(&self.stream)?;
        launch.arg(&self.input).arg(&mut self.output).arg(&COUNT);
        limits(&mut launch);
        // SAFETY: these are the kernel's parameters, of which no mutant changes any, and both slices have as many elements as it is told.
        let mut running = unsafe { launch.start(LaunchConfig::for_num_elems(COUNT)) }?;
        Ok(running.wait()?)
    }
}
