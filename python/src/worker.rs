//! Worker processes, as Python sees them: kernels that may do anything run there.

use crate::error::{Failure, raised};
use crate::outcome::Outcome;
use cuinstr_runtime::cudarc::driver::LaunchConfig;
use cuinstr_runtime::guard::recent;
use cuinstr_runtime::worker::{Argument, RemoteBuffer, RemoteCanceller, RemoteModule, RemoteRunning, Restore, Worker as Process};
use cuinstr_runtime::{Error, GRACE, Outcome as Ended};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long Ctrl-C may go unnoticed.
const SLICE: Duration = Duration::from_millis(20);
/// Modules that a worker keeps loaded.
const MODULES: usize = 8;

/// Serves as a worker or as a helper for checkpoints, and does not return, if this process was started as one.
#[pyfunction]
pub(crate) fn serve() -> PyErr {
    cuinstr_checkpoint::serve_if_asked();
    cuinstr_evaluate::serve_if_asked();
    PyRuntimeError::new_err("this process was not started as a worker of cuinstr's")
}

/// A worker process with spares behind it.
#[pyclass(frozen, module = "cuinstr")]
pub(crate) struct Worker {
    inner: ManuallyDrop<Inner>,
    // The process that started it. One that was forked from it has no say over its workers, and must not end them.
    owner: u32,
}

struct Inner {
    process: Process,
    // The images that were run lately, the latest last.
    modules: Mutex<Vec<(Vec<u8>, RemoteModule)>>,
    desk: Mutex<Desk>,
}

#[derive(Default)]
struct Desk {
    state: State,
    /// How often tasks were told to stop.
    cancels: u64,
    /// No task begins any more.
    is_closed: bool,
}

/// Where a task of a worker is.
#[derive(Default)]
enum State {
    #[default]
    Idle,
    /// Its memory is on the way; whether it was cancelled meanwhile.
    Begins(bool),
    Runs(RemoteCanceller),
}

/// What a launch is given, and what comes back.
enum Passed {
    Value(Vec<u8>),
    Memory { buffer: RemoteBuffer, is_read: bool },
}

/// An argument as the package hands it over: its bytes, or how many; whether it is memory; whether that is read back.
type Given = (Option<Vec<u8>>, usize, bool, bool);

/// Seconds of all that may take time.
type Times = (Option<f64>, f64, f64);

#[pymethods]
impl Worker {
    /// Starts it: `program` with `arguments` calls `serve`.
    #[new]
    #[pyo3(signature = (program, arguments, device, spares))]
    fn new(py: Python<'_>, program: PathBuf, arguments: Vec<String>, device: usize, spares: usize) -> PyResult<Self> {
        let mut builder = Process::builder();
        builder.program(program).device(device).spares(spares);
        for argument in arguments {
            builder.argument(argument);
        }
        let process = py.detach(|| builder.start()).map_err(|error| raised(&error))?;
        let inner = Inner { process, modules: Mutex::default(), desk: Mutex::default() };
        Ok(Self { inner: ManuallyDrop::new(inner), owner: std::process::id() })
    }

    /// How often it was told to stop what it runs.
    #[getter]
    fn cancels(&self) -> PyResult<u64> {
        Ok(self.own()?.desk().cancels)
    }

    /// Runs a kernel of a module, unless a count of stops has changed since. Gives its outcome and what its memory
    /// holds then, None where that was lost.
    #[pyo3(signature = (image, kernel, grid, block, shared, arguments, times, fuel, cooperative, since))]
    #[expect(clippy::too_many_arguments, reason = "Python's function gives each a name and a default")]
    fn run(
        &self,
        py: Python<'_>,
        image: Vec<u8>,
        kernel: &str,
        grid: (u32, u32, u32),
        block: (u32, u32, u32),
        shared: u32,
        arguments: Vec<Given>,
        times: Times,
        fuel: Option<u64>,
        cooperative: bool,
        since: u64,
    ) -> PyResult<(Outcome, Vec<Option<Vec<u8>>>)> {
        let inner = self.own()?;
        let config = LaunchConfig { grid_dim: grid, block_dim: block, shared_mem_bytes: shared };
        {
            let mut desk = inner.desk();
            if desk.is_closed {
                return Err(Failure::new_err("the pool is closed"));
            }
            desk.state = State::Begins(desk.cancels != since);
        }
        // Whatever becomes of it.
        let _idle = Idle(inner);
        let started = py.detach(|| {
            let passed = arguments.into_iter().map(|given| inner.pass(given)).collect::<Result<Vec<_>, Error>>()?;
            let kernel = inner.module(image)?.kernel(kernel)?;
            let mut launch = kernel.launch();
            for argument in &passed {
                match argument {
                    Passed::Value(bytes) => launch.arg(Argument::bytes(bytes.clone())),
                    Passed::Memory { buffer, .. } => launch.arg(buffer),
                };
            }
            let seconds = |value: f64| Duration::try_from_secs_f64(value).unwrap_or(GRACE);
            let (timeout, grace, begin_within) = times;
            match timeout {
                Some(timeout) => launch.timeout(seconds(timeout)),
                None => launch.until_cancelled(),
            };
            if let Some(fuel) = fuel {
                launch.fuel(fuel);
            }
            if cooperative {
                launch.cooperative();
            }
            let running = launch.grace(seconds(grace)).begin_within(seconds(begin_within)).start(config)?;
            Ok((running, passed))
        });
        let (mut running, passed) = started.map_err(|error: Error| raised(&error))?;
        let canceller = running.canceller();
        let before = std::mem::replace(&mut inner.desk().state, State::Runs(canceller.clone()));
        if matches!(before, State::Begins(true)) {
            py.detach(|| canceller.cancel()).map_err(|error| raised(&error))?;
        }
        let ended = wait(py, &mut running)?;
        let contents = py.detach(|| {
            // What a fault cost is told by the outcome.
            let read = |argument: &Passed| match argument {
                Passed::Memory { buffer, is_read: true } => Some(buffer.read_bytes(0, buffer.bytes()).ok()),
                _ => None,
            };
            passed.iter().filter_map(read).collect()
        });
        Ok((Outcome::new(ended), contents))
    }

    /// Tells what it runs, or is about to run, to stop, from any thread.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.own()?;
        let mut desk = inner.desk();
        desk.cancels += 1;
        let running = match &mut desk.state {
            State::Idle => return Ok(()),
            State::Begins(is_cancelled) => {
                *is_cancelled = true;
                return Ok(());
            }
            State::Runs(running) => running.clone(),
        };
        drop(desk);
        py.detach(|| running.cancel()).map_err(|error| raised(&error))
    }

    /// The same, and lets no task begin any more.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.own()?.desk().is_closed = true;
        self.cancel(py)
    }

    /// Whether it has a task: a cancel holds for that one.
    #[getter]
    fn is_busy(&self) -> PyResult<bool> {
        Ok(!matches!(self.own()?.desk().state, State::Idle))
    }

    /// Processes that were lost so far.
    #[getter]
    fn losses(&self, py: Python<'_>) -> PyResult<u64> {
        let inner = self.own()?;
        Ok(py.detach(|| inner.process.losses()))
    }
}

impl Worker {
    /// Its parts, in the process that started it.
    fn own(&self) -> PyResult<&Inner> {
        if std::process::id() == self.owner {
            return Ok(&self.inner);
        }
        Err(Failure::new_err("this worker is of the process that this one was forked from: make a pool in this process"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if std::process::id() == self.owner {
            // SAFETY: it is dropped once, here, and nobody uses it afterwards.
            let inner = unsafe { ManuallyDrop::take(&mut self.inner) };
            // A process on its way out is waited for: not while other threads of Python wait for this one.
            let _ = Python::try_attach(|py| py.detach(move || drop(inner)));
        }
    }
}

/// Has a worker idle once more when it goes.
struct Idle<'a>(&'a Inner);

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        self.0.desk().state = State::Idle;
    }
}

impl Inner {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self, (bytes, size, is_memory, is_read): Given) -> Result<Passed, Error> {
        let passed = match bytes {
            Some(bytes) if !is_memory => Passed::Value(bytes),
            Some(bytes) => Passed::Memory { buffer: self.process.upload(&bytes, Restore::Never)?, is_read },
            None => Passed::Memory { buffer: self.process.zeros(size, Restore::Never)?, is_read },
        };
        Ok(passed)
    }

    /// The module of an image, loaded once.
    fn module(&self, image: Vec<u8>) -> Result<RemoteModule, Error> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = modules.iter().position(|(known, _)| *known == image) {
            let known = modules.remove(index);
            modules.push(known);
        } else {
            let texts = recent();
            let sources = move |path: &str| {
                let known = texts.iter().rev().find(|origin| origin.sites.file == path);
                known.map(|origin| origin.text.clone())
            };
            let module = self.process.load_with(&image, sources)?;
            modules.push((image, module));
            if modules.len() > MODULES {
                modules.remove(0);
            }
        }
        let (_, module) = &modules[modules.len() - 1];
        Ok(module.clone())
    }
}

/// Waits for the outcome. Ctrl-C cancels the launch.
fn wait(py: Python<'_>, running: &mut RemoteRunning) -> PyResult<Ended> {
    loop {
        match py.detach(|| running.wait_for(SLICE)) {
            Ok(Some(ended)) => return Ok(ended),
            Ok(None) => {}
            Err(error) => return Err(raised(&error)),
        }
        if let Err(interrupt) = py.check_signals() {
            let _ = running.cancel();
            let until = Instant::now() + GRACE;
            while Instant::now() < until && matches!(py.detach(|| running.wait_for(SLICE)), Ok(None)) {}
            return Err(interrupt);
        }
    }
}
