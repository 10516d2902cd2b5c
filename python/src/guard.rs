//! Guards, as Python sees them. While one waits, other threads of Python run.

use crate::error::raised;
use crate::outcome::Outcome;
use cuinstr_runtime::guard::{About, Attached as Module, Guard, Handle, Left as Blocks, Limits};
use cuinstr_runtime::{Error, LONGEST_TIMEOUT};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long Ctrl-C may go unnoticed.
const SLICE: Duration = Duration::from_millis(20);

fn seconds(value: f64, what: &str) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|error| PyValueError::new_err(format!("{what} of {value} s: {error}")))
}

/// A rewritten module that somebody else loaded.
#[pyclass(frozen, module = "cuinstr")]
pub(crate) struct Attached {
    module: Module,
}

/// Binds a module of the current context by a handle of the driver's: `kind` is "module", "library", "function", "kernel" or "control".
#[pyfunction]
#[pyo3(signature = (kind, handle, image, kernel, folder))]
pub(crate) fn attach(
    py: Python<'_>,
    kind: &str,
    handle: u64,
    image: Option<Vec<u8>>,
    kernel: Option<String>,
    folder: Option<PathBuf>,
) -> PyResult<Attached> {
    let address = usize::try_from(handle).map_err(|_| PyValueError::new_err("no handle is so large"))?;
    let handle = match kind {
        "module" => Handle::Module(address),
        "library" => Handle::Library(address),
        "function" => Handle::Function(address),
        "kernel" => Handle::Kernel(address),
        "control" => Handle::Control(handle),
        _ => return Err(PyValueError::new_err(format!("a handle is of a module, library, function, kernel or control, not of {kind:?}"))),
    };
    let about = About { image, kernel, folder, ..About::default() };
    // SAFETY: the caller's word, as with every raw handle; what the package itself resolves it keeps alive.
    let module = py.detach(|| unsafe { Module::new(handle, &about) }).map_err(|error| raised(&error))?;
    Ok(Attached { module })
}

#[pymethods]
impl Attached {
    /// Name of its kernel; empty if there may be several.
    #[getter]
    fn kernel(&self) -> &str {
        self.module.kernel()
    }

    /// Arms it for what is launched next on the stream; times are in seconds.
    #[pyo3(signature = (stream, timeout, fuel, budget_cycles, count_fuel, grace, begin_within, extents, pausable))]
    #[expect(clippy::too_many_arguments, reason = "Python's function gives each a name and a default")]
    fn arm(
        &self,
        py: Python<'_>,
        stream: usize,
        timeout: Option<f64>,
        fuel: Option<u64>,
        budget_cycles: Option<u64>,
        count_fuel: bool,
        grace: f64,
        begin_within: f64,
        extents: Option<([u32; 3], [u32; 3])>,
        pausable: bool,
    ) -> PyResult<Armed> {
        let timeout = timeout.map(|timeout| seconds(timeout, "a timeout")).transpose()?;
        let (grace, begin_within) = (seconds(grace, "a grace time")?, seconds(begin_within, "begin_within")?);
        let limits = Limits { timeout, fuel, budget_cycles, count_fuel, grace, begin_within, extents, ..Limits::UNTIL_CANCELLED };
        let grid = extents.filter(|_| pausable).map(|(grid, _)| grid);
        if pausable && grid.is_none() {
            return Err(PyValueError::new_err("a launch that can be paused has a known grid: give grid and block"));
        }
        // SAFETY: the caller's word for the stream; Python's frame keeps its object alive.
        let armed = py.detach(|| unsafe {
            grid.map_or_else(|| self.module.arm(stream, &limits), |grid| self.module.arm_pausable(stream, &limits, grid))
        });
        let guard = armed.map_err(|error| raised(&error))?;
        Ok(Armed { guard: Some(guard), grace, is_over: AtomicBool::new(false) })
    }

    /// Arms it for what is left of a paused launch.
    fn arm_left(&self, py: Python<'_>, stream: usize, left: &Left) -> PyResult<Armed> {
        // SAFETY: as above.
        let armed = py.detach(|| unsafe { self.module.arm_left(stream, &left.left) });
        let guard = armed.map_err(|error| raised(&error))?;
        Ok(Armed { guard: Some(guard), grace: left.left.grace(), is_over: AtomicBool::new(false) })
    }
}

/// What is left of a paused launch.
#[pyclass(frozen, module = "cuinstr")]
pub(crate) struct Left {
    pub(crate) left: Blocks,
}

#[pymethods]
impl Left {
    /// How many blocks are left.
    #[getter]
    fn blocks(&self) -> u64 {
        self.left.blocks()
    }

    /// The grid that is launched again.
    #[getter]
    fn grid(&self) -> [u32; 3] {
        self.left.grid()
    }
}

/// A launch from its arming until its outcome is known.
#[pyclass(frozen, module = "cuinstr")]
pub(crate) struct Armed {
    // Taken when Python lets go of it.
    guard: Option<Guard>,
    grace: Duration,
    // Nothing is in flight any more.
    is_over: AtomicBool,
}

impl Armed {
    pub(crate) fn guard(&self) -> PyResult<&Guard> {
        self.guard.as_ref().ok_or_else(|| PyValueError::new_err("the guard is gone"))
    }
}

#[pymethods]
impl Armed {
    /// The launch was made.
    fn launched(&self, py: Python<'_>) -> PyResult<()> {
        let guard = self.guard()?;
        py.detach(|| guard.launched()).map_err(|error| raised(&error))
    }

    /// Has blocks that have not begun decline to run, and waits for the others at most so many seconds.
    fn pause(&self, py: Python<'_>, within: f64) -> PyResult<Outcome> {
        let (guard, within) = (self.guard()?, seconds(within, "a time")?);
        let outcome = py.detach(|| guard.pause(within)).map_err(|error| raised(&error))?;
        self.note(&outcome);
        Ok(Outcome::new(outcome))
    }

    /// Arms the next part in another stream.
    fn resume(&self, py: Python<'_>, stream: usize) -> PyResult<()> {
        let guard = self.guard()?;
        // SAFETY: as in `Attached::arm`.
        py.detach(|| unsafe { guard.resume(stream) }).map_err(|error| raised(&error))
    }

    /// Tells it to stop.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let guard = self.guard()?;
        py.detach(|| guard.cancel()).map_err(|error| raised(&error))
    }

    /// The outcome, or None if it is not known after so many seconds; without a limit it waits as long as the launch may take. Ctrl-C
    /// cancels the launch.
    fn wait(&self, py: Python<'_>, limit: Option<f64>) -> PyResult<Option<Outcome>> {
        let limit = limit.map(|limit| seconds(limit, "a limit")).transpose()?;
        let until = limit.map(|limit| Instant::now() + limit.min(LONGEST_TIMEOUT));
        self.look(py, until, Guard::wait_for)
    }

    /// The launch was made: says so, and waits for the outcome.
    fn finish(&self, py: Python<'_>) -> PyResult<Option<Outcome>> {
        // The interpreter is let go of once for both: to take it back has a price.
        let mut is_told = false;
        self.look(py, None, |guard, slice| {
            if !is_told {
                guard.launched()?;
                is_told = true;
            }
            guard.wait_for(slice)
        })
    }

    /// Cancels it and gives it its grace time to leave.
    fn give_up(&self, py: Python<'_>) {
        let Some(guard) = &self.guard else { return };
        let _ = py.detach(|| -> Result<_, Error> {
            guard.cancel()?;
            guard.wait_for(self.grace)
        });
    }
}

impl Armed {
    /// Nothing of it is in flight.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn note(&self, outcome: &cuinstr_runtime::Outcome) {
        self.is_over.store(!matches!(outcome, cuinstr_runtime::Outcome::Paused { .. }), Ordering::Relaxed);
    }

    /// Waits in slices, between which Ctrl-C is heard.
    fn look(
        &self,
        py: Python<'_>,
        until: Option<Instant>,
        mut wait: impl FnMut(&Guard, Duration) -> Result<Option<cuinstr_runtime::Outcome>, Error> + Send,
    ) -> PyResult<Option<Outcome>> {
        let guard = self.guard()?;
        loop {
            let left = until.map_or(SLICE, |until| until.saturating_duration_since(Instant::now()));
            match py.detach(|| wait(guard, left.min(SLICE))) {
                Ok(Some(outcome)) => {
                    self.note(&outcome);
                    return Ok(Some(Outcome::new(outcome)));
                }
                Ok(None) => {}
                Err(error) => return Err(raised(&error)),
            }
            if let Err(interrupt) = py.check_signals() {
                self.give_up(py);
                return Err(interrupt);
            }
            if left.is_zero() {
                return Ok(None);
            }
        }
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        let guard = self.guard.take();
        // One in flight may wait for the grace time: not while other threads of Python wait for this one.
        if let Some(guard) = guard.filter(|_| !*self.is_over.get_mut()) {
            let _ = Python::try_attach(|py| py.detach(move || drop(guard)));
        }
    }
}
