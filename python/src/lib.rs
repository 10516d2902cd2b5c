//! The compiled part of the Python package: what Python can't do itself. `python/cuinstr` holds the rest.

mod checkpoint;
mod engine;
mod error;
mod evaluate;
mod guard;
mod mutate;
mod outcome;
mod rewrite;
mod snapshot;
mod symbols;
mod worker;

use pyo3::prelude::*;

/// The compiled part of `cuinstr`; use that.
#[pymodule(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    error::add(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<checkpoint::Checkpoint>()?;
    module.add_class::<engine::Bench>()?;
    module.add_class::<engine::Compiler>()?;
    module.add_class::<engine::Plan>()?;
    module.add_function(wrap_pyfunction!(engine::driver, module)?)?;
    module.add_function(wrap_pyfunction!(engine::finding, module)?)?;
    module.add_class::<evaluate::Summary>()?;
    module.add_function(wrap_pyfunction!(evaluate::evaluate, module)?)?;
    module.add_class::<guard::Attached>()?;
    module.add_class::<guard::Armed>()?;
    module.add_class::<mutate::Mutant>()?;
    module.add_class::<outcome::Outcome>()?;
    module.add_class::<rewrite::Rewritten>()?;
    module.add_class::<snapshot::Ledger>()?;
    module.add_class::<guard::Left>()?;
    module.add_class::<worker::Worker>()?;
    module.add_function(wrap_pyfunction!(worker::serve, module)?)?;
    module.add_function(wrap_pyfunction!(mutate::mutants, module)?)?;
    module.add_function(wrap_pyfunction!(symbols::symbols, module)?)?;
    module.add_function(wrap_pyfunction!(rewrite::rewrite, module)?)?;
    module.add_function(wrap_pyfunction!(rewrite::instrument, module)?)?;
    module.add_function(wrap_pyfunction!(rewrite::verify, module)?)?;
    module.add_function(wrap_pyfunction!(rewrite::seconds, module)?)?;
    module.add_function(wrap_pyfunction!(guard::attach, module)?)
}
