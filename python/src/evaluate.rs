//! Batch evaluation, as Python sees it.

use crate::error::Failure;
use cuinstr_evaluate::{Baseline, By, Candidate, Event, Program, Settings, Spec, Summary as Judged};
use cuinstr_mutate::Operator;
use cuinstr_runtime::image::Arch;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// All verdicts of an evaluation. Its text is a table.
#[pyclass(frozen, module = "cuinstr")]
pub(crate) struct Summary {
    pub(crate) judged: Judged,
    pub(crate) error: Option<Py<PyAny>>,
}

#[pymethods]
impl Summary {
    /// Whether every candidate was judged as often as asked.
    #[getter]
    fn complete(&self) -> bool {
        self.judged.is_complete()
    }

    /// What stopped it: an interrupt, or what `watch` raised.
    #[getter]
    fn error(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.error.as_ref().map(|error| error.clone_ref(py))
    }

    /// How many candidates have each verdict, the first time that they were judged.
    #[getter]
    fn counts(&self) -> Vec<(&'static str, usize)> {
        cuinstr_evaluate::Verdict::ALL.into_iter().map(|verdict| (verdict.name(), self.judged.count(verdict))).collect()
    }

    /// All but the judgements, as one JSON object.
    fn json(&self) -> String {
        self.judged.to_json()
    }

    /// The verdict of each candidate in each case, as comma-separated values.
    fn matrix(&self) -> String {
        self.judged.matrix()
    }

    /// The judgements, each as a JSON object, as the journal has them.
    fn lines(&self) -> Vec<String> {
        self.judged.judgements.iter().filter_map(|judgement| serde_json::to_string(judgement).ok()).collect()
    }

    fn __str__(&self) -> String {
        self.judged.to_string()
    }
}

pub(crate) fn raised(error: &cuinstr_evaluate::Error) -> PyErr {
    match error {
        cuinstr_evaluate::Error::File { reason, .. } => match reason.raw_os_error() {
            Some(number) => PyOSError::new_err((number, error.to_string())),
            None => PyOSError::new_err(error.to_string()),
        },
        cuinstr_evaluate::Error::Spec { .. } | cuinstr_evaluate::Error::NoCandidates(_) | cuinstr_evaluate::Error::SharedGpu(_) => {
            PyValueError::new_err(error.to_string())
        }
        cuinstr_evaluate::Error::Runtime(error) => crate::error::raised(error),
        _ => Failure::new_err(error.to_string()),
    }
}

/// What limits candidates, by its name.
pub(crate) fn limited_by(name: &str) -> PyResult<By> {
    match name {
        "fuel" => Ok(By::Fuel),
        "time" => Ok(By::Time),
        _ => Err(PyValueError::new_err(format!("candidates are limited by 'fuel' or by 'time', not by {name:?}"))),
    }
}

/// An architecture by its number or its name.
pub(crate) fn architecture(name: &str) -> PyResult<Arch> {
    let full = if name.starts_with("sm_") { name.to_owned() } else { format!("sm_{name}") };
    Arch::from_name(&full).ok_or_else(|| PyValueError::new_err(format!("an architecture is a number such as 90, or sm_90a; not {name:?}")))
}

/// What helpers and workers are started from: a program, its arguments, folders of libraries.
pub(crate) fn program((path, arguments, libraries): (PathBuf, Vec<String>, Vec<PathBuf>)) -> Program {
    Program { path: Some(path), arguments: arguments.into_iter().map(Into::into).collect(), libraries, ..Program::default() }
}

/// Candidates of files, and mutants of the reference.
pub(crate) fn candidates(
    spec: &Spec,
    files: &[PathBuf],
    mutants: Option<usize>,
    operators: Option<Vec<String>>,
) -> PyResult<Vec<Candidate>> {
    let operators = operators.map(|names| names.iter().map(|name| crate::mutate::operator(name)).collect::<PyResult<Vec<Operator>>>());
    let operators = operators.transpose()?;
    let found = if files.is_empty() && mutants.is_some() { Ok(Vec::new()) } else { Candidate::files(files) };
    let mut candidates = found.map_err(|error| raised(&error))?;
    if let Some(most) = mutants {
        candidates.extend(Candidate::mutants(spec, operators.as_deref(), most));
    }
    Ok(candidates)
}

/// Judges candidates, and calls `watch` with what happens: a name, and JSON or numbers as text.
#[pyfunction]
#[pyo3(signature = (spec, files, mutants, operators, by, journal, repeat, all_cases, measure, devices, spares, jobs, compile_only, baseline, executable, arguments, libraries, watch))]
#[expect(clippy::too_many_arguments, clippy::needless_pass_by_value, reason = "Python's function gives each a name and a default")]
pub(crate) fn evaluate(
    py: Python<'_>,
    spec: PathBuf,
    files: Vec<PathBuf>,
    mutants: Option<usize>,
    operators: Option<Vec<String>>,
    by: &str,
    journal: Option<PathBuf>,
    repeat: u32,
    all_cases: bool,
    measure: bool,
    devices: Vec<usize>,
    spares: usize,
    jobs: usize,
    compile_only: Option<String>,
    baseline: Option<(bool, usize, usize)>,
    executable: PathBuf,
    arguments: Vec<String>,
    libraries: Vec<PathBuf>,
    watch: Py<PyAny>,
) -> PyResult<Summary> {
    let settings = Settings {
        by: limited_by(by)?,
        journal,
        repeat,
        all_cases,
        measure,
        devices,
        spares,
        jobs,
        compile_only: compile_only.as_deref().map(architecture).transpose()?,
        baseline: baseline.map(|(only_timeouts, most, at_a_time)| Baseline { only_timeouts, most, at_a_time }),
        program: program((executable, arguments, libraries)),
    };
    let spec = Spec::read(&spec).map_err(|error| raised(&error))?;
    let candidates = candidates(&spec, &files, mutants, operators)?;
    let mut error: Option<PyErr> = None;
    let judged = py.detach(|| {
        let mut observer = |event: &Event<'_>| {
            let told = Python::attach(|py| -> PyResult<()> {
                py.check_signals()?;
                if error.is_some() {
                    return Ok(());
                }
                let (name, text) = match event {
                    Event::Begun { limits, left, known } => {
                        ("begun", serde_json::json!({ "limits": limits, "left": left, "known": known }).to_string())
                    }
                    Event::Judged(judgement) => ("judged", serde_json::to_string(judgement).unwrap_or_default()),
                    Event::Compared(done, all) => ("compared", serde_json::json!({ "done": done, "all": all }).to_string()),
                    _ => return Ok(()),
                };
                watch.call1(py, (name, text)).map(|_| ())
            });
            if let Err(raised) = told {
                error.get_or_insert(raised);
            }
            if error.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        cuinstr_evaluate::evaluate(&spec, &candidates, &settings, &mut observer)
    });
    match judged {
        Ok(judged) => Ok(Summary { judged, error: error.map(|error| error.into_value(py).into_any()) }),
        // What was raised came first.
        Err(failed) => Err(error.unwrap_or_else(|| raised(&failed))),
    }
}
