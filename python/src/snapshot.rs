//! Snapshots, as Python sees them: memory and paused launches by name.

use crate::error::{Failure, raised};
use crate::guard::{Armed, Left};
use cuinstr_runtime::snapshot::{Fault, Ledger as Kept, Memory};
use pyo3::exceptions::{PyKeyError, PyOSError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::time::Duration;

/// Memory at stable addresses, by name.
#[pyclass(frozen, module = "cuinstr")]
pub(crate) struct Ledger {
    kept: Kept,
}

#[pymethods]
impl Ledger {
    /// An empty one in a device's primary context, or that of a file.
    #[new]
    fn new(py: Python<'_>, device: usize, path: Option<PathBuf>) -> PyResult<Self> {
        let made = py.detach(|| {
            let context = cuinstr_runtime::open(device)?;
            path.map_or_else(|| Kept::new(&context), |path| Kept::restore(&context, path))
        });
        made.map(|kept| Self { kept }).map_err(|fault| failed(&fault))
    }

    /// Memory of zeroes under a new name: its address and its bytes.
    fn allocate(&self, py: Python<'_>, name: &str, bytes: usize) -> PyResult<(u64, usize)> {
        py.detach(|| self.kept.allocate(name, bytes)).map(pair).map_err(|fault| failed(&fault))
    }

    /// The memory of this name.
    fn memory(&self, name: &str) -> PyResult<(u64, usize)> {
        self.kept.memory(name).map(pair).map_err(|fault| failed(&fault))
    }

    /// The names of all memory.
    fn names(&self) -> Vec<String> {
        let [memory, ..] = self.kept.names();
        memory
    }

    /// Takes over a paused launch under a new name.
    fn put_paused(&self, py: Python<'_>, name: &str, armed: &Armed) -> PyResult<()> {
        let guard = armed.guard()?;
        py.detach(|| self.kept.put_left(name, guard)).map_err(|fault| failed(&fault))?;
        armed.end();
        Ok(())
    }

    /// What is left of the paused launch of this name.
    fn take_paused(&self, name: &str) -> PyResult<Left> {
        self.kept.take_left(name).map(|left| Left { left }).map_err(|fault| failed(&fault))
    }

    /// Saves it all, and gives the file's size in bytes.
    fn save(&self, py: Python<'_>, path: PathBuf, within: f64) -> PyResult<u64> {
        let within = Duration::try_from_secs_f64(within).map_err(|error| PyValueError::new_err(error.to_string()))?;
        py.detach(|| self.kept.save(path, within)).map_err(|fault| failed(&fault))
    }
}

fn pair(memory: Memory) -> (u64, usize) {
    (memory.address, memory.bytes)
}

fn failed(fault: &Fault) -> PyErr {
    let text = fault.to_string();
    match fault {
        Fault::Runtime(error) => raised(error),
        Fault::File { .. } | Fault::DiskFull { .. } => PyOSError::new_err(text),
        Fault::Name(_) => PyKeyError::new_err(text),
        Fault::Busy { .. } => PyTimeoutError::new_err(text),
        _ => Failure::new_err(text),
    }
}
