//! The steps of an evaluation, for engines written in Python: a plan with the journal where the evaluation was started, compilers and benches where
//! there are processors and GPUs. Each takes and gives plain bytes and JSON, so that an engine can carry them between machines.

use crate::evaluate::{self, Summary, architecture, limited_by, program, raised};
use cuinstr_evaluate::{Candidate, Compiler as Compiling, Finding, Ground, Image, Item, Judged, Limits, Order, Settings, Spec, Verdict};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn parsed<'a, T: serde::Deserialize<'a>>(text: &'a str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A candidate that nothing can be done about: its verdict and a reason.
#[pyfunction]
pub(crate) fn finding(verdict: &str, message: Option<String>) -> PyResult<String> {
    let verdict = Verdict::ALL.into_iter().find(|known| known.name() == verdict);
    let verdict = verdict.ok_or_else(|| PyValueError::new_err("there is no such verdict"))?;
    json(&Finding::new(verdict, message))
}

/// Version of the GPU's driver.
#[pyfunction]
pub(crate) fn driver() -> String {
    cuinstr_evaluate::driver()
}

/// Candidates, journal and verdicts of an evaluation.
#[pyclass(frozen, module = "cuinstr")]
pub(crate) struct Plan {
    // Nothing once the summary was made of it.
    plan: Mutex<Option<cuinstr_evaluate::Plan>>,
}

impl Plan {
    fn with<T>(&self, work: impl FnOnce(&mut cuinstr_evaluate::Plan) -> PyResult<T>) -> PyResult<T> {
        work(locked(&self.plan).as_mut().ok_or_else(|| PyRuntimeError::new_err("the plan is over"))?)
    }
}

#[pymethods]
impl Plan {
    /// Opens the journal.
    #[new]
    #[pyo3(signature = (spec, files, mutants, operators, by, journal, repeat, all_cases, measure, compile_only))]
    #[expect(clippy::too_many_arguments, clippy::needless_pass_by_value, reason = "Python's function gives each a name and a default")]
    fn new(
        spec: PathBuf,
        files: Vec<PathBuf>,
        mutants: Option<usize>,
        operators: Option<Vec<String>>,
        by: &str,
        journal: Option<PathBuf>,
        repeat: u32,
        all_cases: bool,
        measure: bool,
        compile_only: Option<String>,
    ) -> PyResult<Self> {
        let compile_only = compile_only.as_deref().map(architecture).transpose()?;
        let settings = Settings { by: limited_by(by)?, journal, repeat, all_cases, measure, compile_only, ..Settings::default() };
        let spec = Spec::read(&spec).map_err(|error| raised(&error))?;
        let candidates = evaluate::candidates(&spec, &files, mutants, operators)?;
        let plan = cuinstr_evaluate::Plan::open(&spec, &candidates, &settings).map_err(|error| raised(&error))?;
        Ok(Self { plan: Mutex::new(Some(plan)) })
    }

    /// Absolute path of the specification.
    #[getter]
    fn spec(&self) -> PyResult<PathBuf> {
        self.with(|plan| Ok(std::path::absolute(&plan.spec().path)?))
    }

    /// Absolute paths of all files that judging the candidates takes.
    #[getter]
    fn files(&self) -> PyResult<Vec<PathBuf>> {
        self.with(|plan| Ok(plan.spec().files(plan.candidates()).iter().map(std::path::absolute).collect::<Result<_, _>>()?))
    }

    /// The limits that the journal's verdicts were given under, as JSON.
    #[getter]
    fn limits(&self) -> PyResult<Option<String>> {
        self.with(|plan| plan.known_limits().map_err(|error| raised(&error))?.map(|limits| json(&limits)).transpose())
    }

    /// What the journal says of a condition of its verdicts, such as "device".
    fn condition(&self, name: &str) -> PyResult<Option<String>> {
        self.with(|plan| Ok(plan.known_condition(name).map(str::to_owned)))
    }

    /// The reference: a name and its text.
    #[getter]
    fn reference(&self) -> PyResult<(String, Vec<u8>)> {
        self.with(|plan| Ok(Candidate::reference(plan.spec())).map(|reference| (reference.path, reference.source.to_vec())))
    }

    /// A candidate: what compilers call it, and its text.
    fn candidate(&self, index: usize) -> PyResult<(String, Vec<u8>)> {
        self.with(|plan| {
            let candidate = plan.candidates().get(index).ok_or_else(|| PyValueError::new_err("there is no such candidate"))?;
            Ok((candidate.path.clone(), candidate.source.to_vec()))
        })
    }

    /// Says what is left, as the numbers of candidates and rounds, and how many judgements the journal had. Limits are JSON.
    fn begin(&self, compiler: String, arch: &str, device: String, driver: String, limits: &str) -> PyResult<(Vec<(usize, u32)>, usize)> {
        let ground = Ground { compiler, arch: architecture(arch)?, device, driver, limits: parsed(limits)? };
        self.with(|plan| {
            let left = plan.begin(ground).map_err(|error| raised(&error))?.iter().map(|item| (item.candidate, item.round)).collect();
            Ok((left, plan.known()))
        })
    }

    /// Writes a finding down, as JSON, and gives the judgement. None if there is one already.
    fn record(
        &self,
        candidate: usize,
        round: u32,
        finding: &str,
        elapsed: f64,
        device: Option<usize>,
        node: Option<String>,
    ) -> PyResult<Option<String>> {
        let finding: Finding = parsed(finding)?;
        let elapsed = Duration::try_from_secs_f64(elapsed).unwrap_or_default();
        self.with(|plan| {
            let recorded = plan.record(Item { candidate, round }, finding, Judged { elapsed, device, node });
            recorded.map_err(|error| raised(&error))?.map(json).transpose()
        })
    }

    /// Ends it.
    fn summary(&self, prepared: f64, took: f64, losses: u64, error: Option<Py<PyAny>>) -> PyResult<Summary> {
        let plan = locked(&self.plan).take().ok_or_else(|| PyRuntimeError::new_err("the plan is over"))?;
        let seconds = |value: f64| Duration::try_from_secs_f64(value).unwrap_or_default();
        Ok(Summary { judged: plan.summary(seconds(prepared), seconds(took), losses, None), error })
    }
}

/// A process that compiles.
#[pyclass(frozen, module = "cuinstr")]
pub(crate) struct Compiler(Mutex<Compiling>);

/// What compiling gives: code, the kernel's symbol and the compiler's name, or a finding as JSON.
type Compiled = (Option<(Vec<u8>, String, String)>, Option<String>);

#[pymethods]
impl Compiler {
    /// For the specification below a folder that stands for `/`, started in another folder there.
    #[new]
    #[expect(clippy::too_many_arguments, clippy::needless_pass_by_value, reason = "Python's function gives each a name")]
    fn new(
        py: Python<'_>,
        root: PathBuf,
        spec: PathBuf,
        folder: PathBuf,
        arch: &str,
        by: &str,
        is_plain: bool,
        starts: (PathBuf, Vec<String>, Vec<PathBuf>),
    ) -> PyResult<Self> {
        let (arch, by) = (architecture(arch)?, limited_by(by)?);
        let program = cuinstr_evaluate::Program { folder: Some(folder), ..program(starts) };
        let started = py.detach(|| {
            let spec = Spec::read_below(&root, &spec)?;
            let order = Order::new(&spec, arch, by == cuinstr_evaluate::By::Fuel);
            let order = if is_plain { order.plain() } else { order };
            Compiling::start(&program, order, Duration::from_secs_f64(spec.limits.compile))
        });
        Ok(Self(Mutex::new(started.map_err(|error| raised(&error))?)))
    }

    /// Compiles a candidate.
    fn compile(&self, py: Python<'_>, name: String, source: Vec<u8>) -> PyResult<Compiled> {
        let built = py.detach(|| locked(&self.0).compile(&Candidate::new(name, source)));
        Ok(match built.map_err(|error| raised(&error))? {
            Ok(image) => {
                let image = Arc::unwrap_or_clone(image);
                (Some((image.code, image.kernel, image.compiler)), None)
            }
            Err(finding) => (None, Some(json(&*finding)?)),
        })
    }
}

/// A worker on a GPU that judges one candidate after the other.
#[pyclass(frozen, module = "cuinstr")]
pub(crate) struct Bench {
    own: Mutex<cuinstr_evaluate::Bench>,
    stopper: cuinstr_evaluate::Stopper,
    by: cuinstr_evaluate::By,
    all_cases: bool,
    /// What candidates are timed by, if that was asked for.
    plain: Option<(cuinstr_evaluate::Program, Order, Duration)>,
    name: String,
    arch: String,
}

#[pymethods]
impl Bench {
    /// For the specification below a folder that stands for `/`. Candidates are timed if `measure` names the folder that compilers are started in.
    #[new]
    #[expect(clippy::too_many_arguments, clippy::needless_pass_by_value, reason = "Python's function gives each a name")]
    fn new(
        py: Python<'_>,
        root: PathBuf,
        spec: PathBuf,
        device: usize,
        by: &str,
        all_cases: bool,
        spares: usize,
        measure: Option<PathBuf>,
        starts: (PathBuf, Vec<String>, Vec<PathBuf>),
    ) -> PyResult<Self> {
        let by = limited_by(by)?;
        let started = py.detach(|| {
            let spec = Arc::new(Spec::read_below(&root, &spec)?);
            let program = program(starts);
            let bench = cuinstr_evaluate::Bench::start(&spec, &program, device, spares)?;
            let arch = bench.arch()?;
            let plain = measure.map(|folder| {
                let program = cuinstr_evaluate::Program { folder: Some(folder), ..program };
                (program, Order::new(&spec, arch, false).plain(), Duration::from_secs_f64(spec.limits.compile))
            });
            Ok((bench.device_name()?, arch, bench, plain))
        });
        let (name, arch, bench, plain) = started.map_err(|error| raised(&error))?;
        Ok(Self { stopper: bench.stopper(), own: Mutex::new(bench), by, all_cases, plain, name, arch: format!("sm_{arch}") })
    }

    /// Name of the GPU.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Its architecture.
    #[getter]
    fn arch(&self) -> &str {
        &self.arch
    }

    /// Processes that were lost so far.
    #[getter]
    fn losses(&self) -> u64 {
        locked(&self.own).losses()
    }

    /// Runs the reference, and gives limits for candidates as JSON; those that are known already, if there are.
    fn measure(&self, py: Python<'_>, code: Vec<u8>, kernel: String, known: Option<&str>) -> PyResult<String> {
        let image = Arc::new(Image { code, kernel, compiler: String::new() });
        let known: Option<Vec<Limits>> = known.map(parsed).transpose()?;
        let limits = py.detach(|| {
            let mut bench = locked(&self.own);
            let limits = bench.measure(&image, self.by)?;
            let limits = known.unwrap_or(limits);
            if let Some((program, order, within)) = &self.plain {
                bench.time(program, Compiling::start(program, order.clone(), *within)?, &limits)?;
            }
            Ok(limits)
        });
        json(&limits.map_err(|error| raised(&error))?)
    }

    /// Judges a candidate under limits, and gives a finding, all as JSON.
    fn judge(&self, py: Python<'_>, name: String, source: Vec<u8>, code: Vec<u8>, kernel: String, limits: &str) -> PyResult<String> {
        let limits: Vec<Limits> = parsed(limits)?;
        let image = Image { code, kernel, compiler: String::new() };
        let candidate = Candidate::new(name, source);
        let judged = py.detach(|| locked(&self.own).judge(&candidate, &image, &limits, self.all_cases));
        let finding = judged.map_err(|error| raised(&error))?;
        json(&finding.ok_or_else(|| PyRuntimeError::new_err("the bench was stopped"))?)
    }

    /// Cancels what runs, from any thread; nothing begins any more.
    fn stop(&self) {
        self.stopper.stop();
    }
}
