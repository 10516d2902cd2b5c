//! Symbols of shared libraries that the loader does not know.

use object::{Object, ObjectSymbol};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;

/// The symbols of a library with one of these names, each with its place in the library. C++ may write a unit's own
/// variable as `_ZL4name`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python's function owns what it is given")]
pub(crate) fn symbols(py: Python<'_>, path: PathBuf, names: Vec<String>) -> PyResult<Vec<(String, u64)>> {
    py.detach(|| {
        let bytes = std::fs::read(&path).map_err(|error| PyOSError::new_err(format!("{}: {error}", path.display())))?;
        let file = object::File::parse(&*bytes).map_err(|error| PyValueError::new_err(format!("{}: {error}", path.display())))?;
        let found = |symbol: object::Symbol<'_, '_>| {
            let written = symbol.name().ok().filter(|_| symbol.is_definition())?;
            let name = names.iter().find(|name| written == **name || written == format!("_ZL{}{name}", name.len()))?;
            Some((name.clone(), symbol.address()))
        };
        let mut all: Vec<(String, u64)> = file.symbols().chain(file.dynamic_symbols()).filter_map(found).collect();
        all.sort();
        all.dedup();
        Ok(all)
    })
}
