//! Mutants, as Python sees them.

use cuinstr_mutate::{Mutant as Made, Operator, sample};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// One small change of a device function.
#[pyclass(frozen, module = "cuinstr")]
pub(crate) struct Mutant {
    made: Made,
    source: String,
}

#[pymethods]
impl Mutant {
    /// The operator that made it, such as "loop-bound".
    #[getter]
    fn operator(&self) -> &'static str {
        self.made.operator.name()
    }

    /// Line of the change, from 1.
    #[getter]
    fn line(&self) -> usize {
        self.made.line
    }

    /// Its column in bytes, from 1.
    #[getter]
    fn column(&self) -> usize {
        self.made.column
    }

    /// The function that is changed.
    #[getter]
    fn function(&self) -> &str {
        &self.made.function
    }

    /// What stands there in the original.
    #[getter]
    fn before(&self) -> &str {
        &self.made.before
    }

    /// What the mutant has instead.
    #[getter]
    fn after(&self) -> &str {
        &self.made.after
    }

    /// The whole changed source.
    #[getter]
    fn source(&self) -> &str {
        &self.source
    }

    fn __repr__(&self) -> String {
        let Made { line, column, before, after, .. } = &self.made;
        format!("<cuinstr.Mutant {}:{column}: {} `{before}` -> `{after}`>", line, self.operator())
    }
}

/// The operator of a name.
pub(crate) fn operator(name: &str) -> PyResult<Operator> {
    let known = || Operator::ALL.map(Operator::name).join(", ");
    Operator::from_name(name).ok_or_else(|| PyValueError::new_err(format!("there is no operator {name:?}; there are {}", known())))
}

/// The mutants of a source.
#[pyfunction]
#[pyo3(signature = (source, most, operators))]
pub(crate) fn mutants(py: Python<'_>, source: &str, most: Option<usize>, operators: Option<Vec<String>>) -> PyResult<Vec<Mutant>> {
    let operators = operators.map(|names| names.iter().map(|name| operator(name)).collect::<PyResult<Vec<_>>>()).transpose()?;
    let made = py.detach(|| {
        let mut made = cuinstr_mutate::mutants(source);
        made.retain(|mutant| operators.as_ref().is_none_or(|operators| operators.contains(&mutant.operator)));
        sample(made, most.unwrap_or(usize::MAX))
    });
    Ok(made.into_iter().map(|made| Mutant { source: made.apply(source), made }).collect())
}
