//! Processes that are suspended and resumed by their pid, as Python sees them.

use crate::error::{Failure, Lost, NoRoom, NotCheckpointable, NotCuda, WrongState};
use cuinstr_checkpoint::{Error, Group, Handle, Helper, Mapping, TreeFailure, Uuid};
use pyo3::exceptions::{PyPermissionError, PyProcessLookupError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::time::Duration;

/// A process by its pid.
#[pyclass(frozen, module = "cuinstr")]
pub(crate) struct Checkpoint {
    handle: Handle,
    group: Group,
}

/// Pairs of an old and a new GPU, by the 16 bytes of their UUIDs.
type Pairs = Vec<([u8; 16], [u8; 16])>;

#[pymethods]
impl Checkpoint {
    /// Of a process that is there; `program` with `arguments` calls `serve`.
    #[new]
    fn new(pid: i64, program: PathBuf, arguments: Vec<String>) -> PyResult<Self> {
        let helper = Helper::of_program(program, arguments);
        let handle = Handle::open(helper.clone(), pid).map_err(|error| raised(&error))?;
        let group = Group::of(helper, pid).map_err(|error| raised(&error))?;
        Ok(Self { handle, group })
    }

    /// Its state by its name.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        done(py, || self.handle.state()).map(|state| state.to_string())
    }

    /// The thread that restores it.
    fn restore_thread_id(&self, py: Python<'_>) -> PyResult<i32> {
        done(py, || self.handle.restore_thread_id())
    }

    /// Locks it; a timeout of zero is none.
    fn lock(&self, py: Python<'_>, timeout_ms: u32) -> PyResult<()> {
        done(py, || self.handle.lock(limit(timeout_ms))).map(drop)
    }

    /// Copies its GPU memory to host memory.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        done(py, || self.handle.checkpoint()).map(drop)
    }

    /// Brings it back.
    fn restore(&self, py: Python<'_>, pairs: Pairs) -> PyResult<()> {
        let mapping = mapping(pairs)?;
        done(py, || self.handle.restore(&mapping)).map(drop)
    }

    /// Unlocks it.
    fn unlock(&self, py: Python<'_>) -> PyResult<()> {
        done(py, || self.handle.unlock()).map(drop)
    }

    /// Locks and checkpoints it, or leaves it running.
    fn suspend(&self, py: Python<'_>, timeout_ms: u32) -> PyResult<()> {
        whole(py.detach(|| self.group.suspend(limit(timeout_ms)))).map(drop)
    }

    /// Restores and unlocks it, or leaves it suspended.
    fn resume(&self, py: Python<'_>, pairs: Pairs) -> PyResult<()> {
        let mapping = mapping(pairs)?;
        whole(py.detach(|| self.group.resume(&mapping))).map(drop)
    }
}

fn limit(timeout_ms: u32) -> Option<Duration> {
    (timeout_ms > 0).then(|| Duration::from_millis(u64::from(timeout_ms)))
}

fn mapping(pairs: Pairs) -> PyResult<Mapping> {
    Mapping::new(pairs.into_iter().map(|(old, new)| (Uuid(old), Uuid(new))).collect()).map_err(|error| raised(&error))
}

fn done<T: Send>(py: Python<'_>, call: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    py.detach(call).map_err(|error| raised(&error))
}

fn whole<T>(result: Result<T, TreeFailure>) -> PyResult<T> {
    result.map_err(|failure| kind(&failure.error, failure.to_string()))
}

fn raised(error: &Error) -> PyErr {
    kind(error, error.to_string())
}

/// The exception that an error becomes.
fn kind(error: &Error, text: String) -> PyErr {
    match error {
        Error::BadPid(_) | Error::BadTimeout(_) | Error::BadMapping(_) => PyValueError::new_err(text),
        Error::NoSuchProcess(_) => PyProcessLookupError::new_err(text),
        Error::NoPermission { .. } => PyPermissionError::new_err(text),
        Error::Busy { .. } | Error::Blocked { .. } => PyTimeoutError::new_err(text),
        Error::NotCuda(_) => NotCuda::new_err(text),
        Error::WrongState { .. } => WrongState::new_err(text),
        Error::Mig { .. } | Error::Mps { .. } | Error::Architecture(_) | Error::Unsupported { .. } => NotCheckpointable::new_err(text),
        Error::GpuMemory { .. } | Error::HostMemory { .. } => NoRoom::new_err(text),
        Error::Lost(_) => Lost::new_err(text),
        _ => Failure::new_err(text),
    }
}
