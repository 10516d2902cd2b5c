//! The rewriter, as Python sees it.

use crate::error::Refused;
use cuinstr::Rewrite;
use cuinstr::diagnostic::{Code, Severity};
use cuinstr::options::{BarrierMarks, DeviceMacro, Limits, Options, Polls, Space};
use cuinstr::render::{self, Source};
use cuinstr_runtime::guard::{self, Origin};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// A source that was rewritten.
#[pyclass(frozen, module = "cuinstr")]
pub(crate) struct Rewritten {
    text: String,
    sites: String,
    diagnostics: Vec<String>,
}

#[pymethods]
impl Rewritten {
    /// The rewritten source, to be compiled as the original would be.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// Its sites as a JSON object: every loop, and how it is polled.
    #[getter]
    fn sites(&self) -> &str {
        &self.sites
    }

    /// What the rewriter has to say, a line each: gaps that no poll covers, above all.
    #[getter]
    fn diagnostics(&self) -> Vec<String> {
        self.diagnostics.clone()
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<cuinstr.Rewritten of {} bytes, {} diagnostics>", self.text.len(), self.diagnostics.len())
    }
}

/// Seconds of a time as the command line takes it.
#[pyfunction]
pub(crate) fn seconds(text: &str) -> PyResult<f64> {
    let nanoseconds = cuinstr::duration::parse(text).map_err(|why| PyValueError::new_err(format!("{text:?} is no time: {why}")))?;
    Ok(std::time::Duration::from_nanos(nanoseconds).as_secs_f64())
}

/// Rewrites CUDA source.
#[pyfunction]
#[pyo3(signature = (source, path, timeout_ns, budget_cycles, fuel, polls_each, strict, loop_macros, device_macros, leave_alone, barrier_marks, pausable))]
#[expect(clippy::too_many_arguments, reason = "Python's function gives each a name and a default")]
pub(crate) fn rewrite(
    py: Python<'_>,
    source: &str,
    path: String,
    timeout_ns: Option<u64>,
    budget_cycles: Option<u64>,
    fuel: Option<u64>,
    polls_each: bool,
    strict: bool,
    loop_macros: Vec<String>,
    device_macros: BTreeMap<String, String>,
    leave_alone: Vec<String>,
    barrier_marks: &str,
    pausable: bool,
) -> PyResult<Rewritten> {
    if fuel.is_some_and(|fuel| fuel > Limits::MAX_FUEL) {
        return Err(PyValueError::new_err(format!("fuel is at most {} iterations", Limits::MAX_FUEL)));
    }
    let device_macro = |(name, kind): (String, String)| {
        let space = match kind.as_str() {
            "kernel" => Space::Kernel,
            "device" => Space::Device,
            "host-device" => Space::HostDevice,
            _ => return Err(PyValueError::new_err(format!("a device macro is 'kernel', 'device' or 'host-device', not {kind:?}"))),
        };
        Ok(DeviceMacro { name, space })
    };
    let barrier_marks = BarrierMarks::from_name(barrier_marks)
        .ok_or_else(|| PyValueError::new_err(format!("barrier marks are 'auto', 'shared' or 'global', not {barrier_marks:?}")))?;
    let options = Options {
        path,
        polls: if polls_each { Polls::Each } else { Polls::Amortised },
        limits: Limits { timeout_ns, budget_cycles, fuel },
        loop_macros,
        device_macros: device_macros.into_iter().map(device_macro).collect::<PyResult<_>>()?,
        leave_alone,
        barrier_marks,
        strict,
        pausable,
        ..Options::default()
    };
    rewritten(py, cuinstr::rewrite, source.as_bytes(), &options)
}

/// Puts polls into PTX.
#[pyfunction]
pub(crate) fn instrument(
    py: Python<'_>,
    ptx: &[u8],
    path: String,
    polls_each: bool,
    strict: bool,
    leave_alone: Vec<String>,
) -> PyResult<Rewritten> {
    let polls = if polls_each { Polls::Each } else { Polls::Amortised };
    let options = Options { path, polls, leave_alone, strict, ..Options::default() };
    rewritten(py, cuinstr::rewrite_ptx, ptx, &options)
}

/// What is not proved of PTX, a line each, and all that was found, as the JSON of [`cuinstr::verify::Report`].
#[pyfunction]
pub(crate) fn verify(py: Python<'_>, ptx: &str, path: &str) -> PyResult<(Vec<String>, String)> {
    let report = py.detach(|| cuinstr::verify::verify_ptx(ptx));
    let mut open: Vec<String> = Vec::new();
    for fault in &report.faults {
        open.push(format!("{path}:{}: error[{}]: {}", fault.line, fault.code.id(), fault.message));
    }
    for call in &report.unknown {
        open.push(format!(
            "{path}:{}: error[{}]: `{}` calls what is not in sight: {}",
            call.line,
            Code::CalleeElsewhere.id(),
            call.function,
            call.callee
        ));
    }
    for found in &report.loops {
        let Some(code) = found.verdict.code() else { continue };
        open.push(format!("{path}:{}: error[{}]: {}", found.line, code.id(), found.sentence(&found.function)));
    }
    let json = serde_json::to_string(&report).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((open, json))
}

fn rewritten(py: Python<'_>, how: fn(&[u8], &Options) -> Rewrite, source: &[u8], options: &Options) -> PyResult<Rewritten> {
    let rewrite = py.detach(|| how(source, options));
    let shown = Source::new(&options.path, source);
    let said = |severity: Option<Severity>| -> Vec<String> {
        let wanted = rewrite.diagnostics.iter().filter(|diagnostic| severity.is_none_or(|severity| diagnostic.severity == severity));
        wanted.map(|diagnostic| render::short(&shown, diagnostic).trim_end().to_owned()).collect()
    };
    let Some(output) = &rewrite.output else { return Err(Refused::new_err(said(Some(Severity::Error)).join("\n"))) };
    let text = String::from_utf8(output.clone()).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let (sites, diagnostics) = (rewrite.sites.to_json(), said(None));
    guard::remember(Origin { sites: rewrite.sites.clone(), text: source.to_vec() });
    Ok(Rewritten { text, sites, diagnostics })
}
