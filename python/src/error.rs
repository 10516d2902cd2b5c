//! Errors as Python's exceptions.

use cuinstr_runtime::Error;
use pyo3::PyTypeInfo;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

create_exception!(cuinstr, Failure, PyException, "Whatever cuinstr refuses, or the driver does.");
create_exception!(cuinstr, Refused, Failure, "The source can't be rewritten; each line names a place and a reason.");
create_exception!(cuinstr, NotInstrumented, Failure, "The module was not rewritten.");
create_exception!(cuinstr, WrongContext, Failure, "No context is current, or a handle is of another one.");
create_exception!(cuinstr, NotLaunched, Failure, "No kernel of the guarded module ran between entering the guard and leaving it.");
create_exception!(cuinstr, NotBegun, Failure, "The GPU has not begun the launch in time; it is still in flight.");
create_exception!(cuinstr, Undrained, Failure, "The kernel was told to stop and still runs: in a loop or a wait without a poll.");
create_exception!(cuinstr, Poisoned, Failure, "An earlier kernel ended the context; only a new process helps.");
create_exception!(cuinstr, NotCuda, Failure, "The process does not use CUDA, or has not initialised it.");
create_exception!(cuinstr, WrongState, Failure, "The process is in another state than the call needs.");
create_exception!(cuinstr, NotCheckpointable, Failure, "The driver can't checkpoint the process: MIG, MPS, aarch64, managed memory, IPC.");
create_exception!(cuinstr, NoRoom, Failure, "The GPU or the host has not enough free memory; nothing was touched.");
create_exception!(cuinstr, Lost, Failure, "The driver failed in the middle of a checkpoint or a restore; end the process.");

/// Gives the module its exceptions.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Failure", Failure::type_object(py))?;
    module.add("Refused", Refused::type_object(py))?;
    module.add("NotInstrumented", NotInstrumented::type_object(py))?;
    module.add("WrongContext", WrongContext::type_object(py))?;
    module.add("NotLaunched", NotLaunched::type_object(py))?;
    module.add("NotBegun", NotBegun::type_object(py))?;
    module.add("Undrained", Undrained::type_object(py))?;
    module.add("Poisoned", Poisoned::type_object(py))?;
    module.add("NotCuda", NotCuda::type_object(py))?;
    module.add("WrongState", WrongState::type_object(py))?;
    module.add("NotCheckpointable", NotCheckpointable::type_object(py))?;
    module.add("NoRoom", NoRoom::type_object(py))?;
    module.add("Lost", Lost::type_object(py))
}

/// The exception that an error becomes.
pub(crate) fn raised(error: &Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::NotInstrumented | Error::OtherAbi { .. } => NotInstrumented::new_err(text),
        Error::NoContext | Error::OtherContext { .. } => WrongContext::new_err(text),
        Error::NotLaunched => NotLaunched::new_err(text),
        Error::NotBegun { .. } => NotBegun::new_err(text),
        Error::Undrained { .. } => Undrained::new_err(text),
        Error::Poisoned(_) => Poisoned::new_err(text),
        Error::BadHandle(_) | Error::ZeroTimeout | Error::TimeoutTooLong(_) => PyValueError::new_err(text),
        _ => Failure::new_err(text),
    }
}
