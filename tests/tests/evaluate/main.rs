//! The batch evaluator with the real rewriter and the real NVRTC, and no GPU: where candidates would run, a fake worker does what the names of their
//! second kernels say. Verdicts, journals, SIGKILL half way, stopping, repeating. Without nvcc, beside which NVRTC lies, each test shows as ignored
//! with the reason, or fails where `CUINSTR_REQUIRE` names it.

#[path = "../../../runtime/tests/fake/mod.rs"]
mod fake;
mod journals;
mod worker;

use cuinstr_evaluate::{By, Candidate, Program, Settings, Spec, Summary, Verdict, evaluate, journal};
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_harness::unit::Nvrtc;
use cuinstr_runtime::image::Arch;
use cuinstr_trial::or_ignore;
use cuinstr_trial::trial;
use libtest_mimic::Arguments;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Set for the fake worker.
const FAKE: &str = "CUINSTR_TEST_FAKE";
/// Set for an evaluator that is to be killed: a folder.
const EVALUATOR: &str = "CUINSTR_TEST_EVALUATOR";
/// Set for the same: how many verdicts it gives before it waits for its end.
const HELD: &str = "CUINSTR_TEST_HELD";
const LONG: Duration = Duration::from_secs(240);
const SM_80: Arch = Arch { number: 80, suffix: None };

const REFERENCE: &str = "extern \"C\" __global__ void add(const int* x, int* y, int n)\n{\n    int i = threadIdx.x;\n    \
                         for (int k = 0; k < n; ++k)\n        if (i == k) y[i] = x[i] + 1;\n}\n";
/// The fake worker keeps no time: that its answers come late on a busy machine is no verdict.
const SPEC: &str = "reference = \"add.cu\"\nkernel = \"add\"\ngrid = [1]\nblock = [32]\n\
                    [limits]\nleast-time = 60.0\n\
                    [[case]]\nname = \"four\"\narguments = [{ in = \"i32\", values = [1, 2, 3, 4] }, { out = \"i32\", count = 4 }, { i32 = 4 }]\n\
                    [[case]]\nname = \"one\"\narguments = [{ in = \"i32\", values = [7] }, { out = \"i32\", count = 1 }, { i32 = 1 }]\n";

type Test = fn(&Nvrtc) -> Result<(), String>;

fn main() -> ExitCode {
    if std::env::var_os(FAKE).is_some() && std::env::var_os("CUINSTR_WORKER").is_some() {
        worker::serve();
        return ExitCode::SUCCESS;
    }
    cuinstr_evaluate::serve_if_asked();
    if let Some(folder) = std::env::var_os(EVALUATOR) {
        return journals::evaluator(Path::new(&folder));
    }
    let nvrtc = Nvcc::find().and_then(|nvcc| Nvrtc::of(&nvcc, Path::new("")));
    let tests: [(&str, Test); 11] = [
        ("every verdict, with its reason and its line", verdicts),
        ("an evaluator that is killed again and again loses no verdict and tells none twice", journals::killed),
        ("one that is told to stop stops, and the next goes on", journals::stopped),
        ("repeated, it says whose verdicts are not the same each time", repeated),
        ("compiling alone needs no worker, and a compiler that hangs is killed", compile_only),
        ("PTX is judged like source, by time", ptx),
        ("a reference that is none is told from candidates", references),
        ("all cases, where they are asked for", all_cases),
        ("a journal is of one reference, compiler, device and set of headers", journals::conditions),
        ("what is judged when the observer stops is written down", journals::stopped_late),
        ("without a GPU it says so, and no candidate is judged", no_gpu),
    ];
    let trials = tests.map(|(name, test)| {
        let nvrtc = nvrtc.clone();
        trial(format!("evaluate: {name}"), move || test(&or_ignore("nvcc", nvrtc)))
    });
    // Each has several processes of its own.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}

// What is evaluated.

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn check(is_right: bool, what: impl Into<String>) -> Result<(), String> {
    if is_right { Ok(()) } else { Err(what.into()) }
}

fn specification(folder: &Path) -> Result<Spec, String> {
    std::fs::write(folder.join("add.cu"), REFERENCE).map_err(text)?;
    std::fs::write(folder.join("spec.toml"), SPEC).map_err(text)?;
    Spec::read(&folder.join("spec.toml")).map_err(text)
}

/// PTX of a loop in line 4, which the fake worker takes for a kernel that does this.
fn acting_ptx(act: &str) -> String {
    let parameters = ".param .u64 x, .param .u64 y, .param .u32 n";
    format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry add({parameters}) {{ L: bra L; }}\n.visible .entry fake_{act}() {{ ret; }}\n"
    )
}

/// A candidate that the fake worker takes for one that does this.
fn acting(act: &str) -> String {
    format!("{REFERENCE}extern \"C\" __global__ void fake_{act}() {{}}\n")
}

fn candidates(folder: &Path, sources: &[(&str, String)]) -> Result<Vec<Candidate>, String> {
    let folder = folder.join("candidates");
    std::fs::create_dir_all(&folder).map_err(text)?;
    let mut paths = Vec::new();
    for (name, source) in sources {
        let path = folder.join(if name.contains('.') { (*name).to_owned() } else { format!("{name}.cu") });
        std::fs::write(&path, source).map_err(text)?;
        paths.push(path);
    }
    Candidate::files(&paths).map_err(text)
}

fn settings(nvrtc: &Nvrtc, folder: &Path) -> Settings {
    let variables = [("LD_LIBRARY_PATH", nvrtc.folder().as_os_str()), (FAKE, "1".as_ref())];
    let variables = variables.map(|(name, value)| (name.into(), value.into())).into();
    let program = Program { variables, ..Program::default() };
    Settings { program, journal: Some(folder.join("journal.jsonl")), devices: vec![0], jobs: 2, spares: 1, ..Settings::default() }
}

fn all(spec: &Spec, candidates: &[Candidate], settings: &Settings) -> Result<Summary, String> {
    evaluate(spec, candidates, settings, &mut |_| ControlFlow::Continue(())).map_err(text)
}

/// Last part of a candidate's path, without its ending.
fn stem(name: &str) -> String {
    Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn verdicts(nvrtc: &Nvrtc) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let spec = specification(folder.path())?;
    let sources = [
        ("right", acting("right")),
        ("wrong", acting("wrong")),
        ("beside", acting("beside")),
        ("stray", acting("stray")),
        ("hangs", acting("hangs")),
        ("stays", acting("stays")),
        ("faults", acting("faults")),
        ("leaves", acting("leaves")),
        ("dies", acting("dies")),
        ("misfit", acting("misfit")),
        ("syntax", REFERENCE.replace("int i = threadIdx.x;", "int i = threadIdx.x").clone()),
        ("marked", format!("{REFERENCE}__device__ int* at() {{ return (int*)&cuinstr_control_v1; }}\n")),
        ("empty", String::new()),
        ("after", acting("right_again")),
        ("dies_once", acting("dies_once")),
    ];
    let candidates = candidates(folder.path(), &sources)?;
    let settings = settings(nvrtc, folder.path());
    let summary = all(&spec, &candidates, &settings)?;
    let found: BTreeMap<String, _> = summary.judgements.iter().map(|judgement| (stem(&judgement.candidate), judgement)).collect();
    for (name, verdict, message) in [
        ("right", Verdict::Pass, None),
        ("wrong", Verdict::WrongResult, Some("argument 1: 1 of 1 elements differ, the first is [0]: 9 instead of 8")),
        ("beside", Verdict::WrongResult, Some("argument 1: it wrote 0 bytes behind the end of the memory")),
        ("stray", Verdict::WrongResult, Some("argument 0: it wrote 0 bytes behind the end of the memory")),
        ("hangs", Verdict::Timeout, Some("stopped by its fuel in line 4")),
        ("stays", Verdict::Timeout, Some("no poll stopped it: its process was killed")),
        ("faults", Verdict::Fault, Some("cuEventQuery: CUDA_ERROR_ILLEGAL_ADDRESS (700)")),
        ("leaves", Verdict::WrongResult, Some("its threads left in line 4 before any limit: it wrote over what tells them to")),
        ("dies_once", Verdict::Pass, None),
        ("dies", Verdict::Fault, Some("its process was lost 3 times: worker process")),
        ("misfit", Verdict::CompileError, Some("kernel `add`: argument 0 has 8 bytes")),
        ("syntax", Verdict::CompileError, Some("expected a \";\"")),
        ("marked", Verdict::Refused, Some("CI004: ")),
        ("empty", Verdict::CompileError, Some("CI003: ")),
        ("after", Verdict::Pass, None),
    ] {
        let judgement = found.get(name).ok_or_else(|| format!("nothing of {name}"))?;
        let said = judgement.message.as_deref();
        let fits =
            judgement.verdict == verdict && said.is_some() == message.is_some() && said.unwrap_or("").starts_with(message.unwrap_or(""));
        check(fits, format!("{name}: {judgement:?}"))?;
    }
    let line = |name: &str| found[name].place.as_ref().map(|place| (place.line, place.text.as_deref().unwrap_or_default()));
    check(line("hangs") == Some((4, "for (int k = 0; k < n; ++k)")), format!("{:?}", found["hangs"]))?;
    check(line("syntax").is_some_and(|(line, _)| line == 4), format!("{:?}", found["syntax"]))?;
    check(line("marked").is_some_and(|(line, _)| line == 7), format!("{:?}", found["marked"]))?;
    check(found["wrong"].case.as_deref() == Some("one") && found["stays"].by.as_deref() == Some("worker"), "cases and means")?;
    check(summary.losses >= 6, format!("{} processes were lost", summary.losses))?;
    // The reference's own 40 iterations, ten times.
    check(summary.limits.iter().all(|limits| limits.fuel == Some(1000)), format!("{:?}", summary.limits))?;
    let table = summary.to_string();
    check(table.contains("pass  wrong result  timeout  fault  compile error  refused    all\n"), table.clone())?;
    check(table.contains("all     3             4        2      2              3        1     15\n"), table.clone())?;
    let (head, lines) = journal::read(settings.journal.as_deref().unwrap_or(Path::new(""))).map_err(text)?;
    let same = lines == summary.judgements && head.is_some_and(|head| head.device == "a fake" && head.limits == summary.limits);
    check(same, "the journal is not what was told")?;
    // All is known now.
    let again = all(&spec, &candidates, &settings)?;
    check(again.known == 15 && again.judgements == lines, again.to_string())?;
    // The same GPU named twice has two workers.
    let pair = Settings { devices: vec![0, 0], journal: None, ..settings.clone() };
    let mut both = all(&spec, &candidates, &pair)?;
    both.judgements.sort_by(|a, b| a.candidate.cmp(&b.candidate));
    let verdicts: Vec<_> = both.judgements.iter().map(|judgement| (stem(&judgement.candidate), judgement.verdict)).collect();
    let expected: Vec<_> = found.iter().map(|(name, judgement)| (name.clone(), judgement.verdict)).collect();
    check(verdicts == expected, format!("{verdicts:?}"))
}

fn repeated(nvrtc: &Nvrtc) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let spec = specification(folder.path())?;
    let candidates = candidates(folder.path(), &[("flips", acting("flips")), ("right", acting("right"))])?;
    let settings = Settings { repeat: 3, ..settings(nvrtc, folder.path()) };
    let summary = all(&spec, &candidates, &settings)?;
    let unsteady = summary.unsteady();
    let expected = vec![Verdict::Pass, Verdict::WrongResult, Verdict::Pass];
    let fits = unsteady.len() == 1 && stem(unsteady[0].0) == "flips" && unsteady[0].1 == expected;
    check(fits && summary.judgements.len() == 6, format!("{unsteady:?}"))?;
    check(summary.to_string().contains("3 rounds: verdicts of 1 candidates are not the same each time"), summary.to_string())
}

fn compile_only(nvrtc: &Nvrtc) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let spec = specification(folder.path())?;
    // Nobody ever writes into the pipe that this includes.
    let pipe = folder.path().join("pipe.h");
    let made = Command::new("mkfifo").arg(&pipe).status().map_err(text)?;
    check(made.success(), "no pipe could be made")?;
    let sources = [
        ("good", REFERENCE.to_owned()),
        ("hangs", format!("#include \"{}\"\n{REFERENCE}", pipe.display())),
        ("bad", "__global__ void add( {}".to_owned()),
    ];
    let candidates = candidates(folder.path(), &sources)?;
    let mut spec = spec;
    spec.limits.compile = 10.0;
    let settings = Settings { compile_only: Some(SM_80), jobs: 1, ..settings(nvrtc, folder.path()) };
    let summary = all(&spec, &candidates, &settings)?;
    let mut found = String::new();
    for judgement in &summary.judgements {
        let message = judgement.message.as_deref().unwrap_or_default();
        let _ = writeln!(found, "{}: {} {}", stem(&judgement.candidate), judgement.verdict, &message[..message.len().min(45)]);
    }
    let expected = "good: compiles \nhangs: compile error the compiler took longer than 10s, and was ki\nbad: compile error ";
    check(found.starts_with(expected), found)?;
    let other = evaluate(&spec, &candidates, &Settings { compile_only: None, ..settings }, &mut |_| ControlFlow::Continue(()));
    let said = other.map_or_else(text, |_| "nothing".into());
    check(said.contains("its verdicts are of another limited by (then compiling only, now fuel)"), said)
}

fn all_cases(nvrtc: &Nvrtc) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let spec = specification(folder.path())?;
    let sources = [("right", acting("right")), ("wrong", acting("wrong")), ("faults", acting("faults")), ("misfit", acting("misfit"))];
    let candidates = candidates(folder.path(), &sources)?;
    let settings = Settings { all_cases: true, ..settings(nvrtc, folder.path()) };
    let summary = all(&spec, &candidates, &settings)?;
    let matrix = summary.matrix().replace(&format!("{}/candidates/", folder.path().display()), "");
    let wanted = "\"candidate\",\"verdict\",\"four\",\"one\"\n\"right.cu\",\"pass\",\"pass\",\"pass\"\n\
                  \"wrong.cu\",\"wrong result\",\"pass\",\"wrong result\"\n\"faults.cu\",\"fault\",\"fault\",\"fault\"\n\
                  \"misfit.cu\",\"compile error\",\"compile error\",\"compile error\"\n";
    check(matrix == wanted, matrix)?;
    let (_, lines) = journal::read(&folder.path().join("journal.jsonl")).map_err(text)?;
    check(lines == summary.judgements && lines[1].cases.len() == 2, "the journal has the cases")?;
    let other = evaluate(&spec, &candidates, &Settings { all_cases: false, ..settings }, &mut |_| ControlFlow::Continue(()));
    let said = other.map_or_else(text, |_| "nothing".into());
    check(said.contains("another cases (then all, now up to the first that decides)"), said)
}

fn ptx(nvrtc: &Nvrtc) -> Result<(), String> {
    use Verdict::{CompileError, Pass, Refused, Timeout};
    let folder = tempfile::tempdir().map_err(text)?;
    let spec = specification(folder.path())?;
    let marked = acting_ptx("right").replace("{ ret; }", "{ mov.u64 %rd, cuinstr_control_v1; ret; }");
    let sources = [
        ("right.ptx", acting_ptx("right")),
        ("source", acting("right")),
        ("hangs.ptx", acting_ptx("hangs")),
        ("other.ptx", acting_ptx("right").replace("entry add", "entry sub")),
        ("text.ptx", REFERENCE.to_owned()),
        ("marked.ptx", marked),
    ];
    let candidates = candidates(folder.path(), &sources)?;
    let by_fuel = settings(nvrtc, folder.path());
    let said = all(&spec, &candidates, &by_fuel).map_or_else(|error| error, |summary| summary.to_string());
    check(said.contains("right.ptx\" can't have \"add.cu\" as its measure: limit by time (--by time)"), said)?;
    let summary = all(&spec, &candidates, &Settings { by: By::Time, ..by_fuel })?;
    let verdict = |(name, _): &(&str, String)| {
        let judgement = summary.judgements.iter().find(|judgement| stem(&judgement.candidate) == stem(name));
        judgement.map(|judgement| (judgement.verdict, judgement.place.as_ref().map(|place| place.line), judgement.message.clone()))
    };
    let found: Vec<_> = sources.iter().map(|source| verdict(source).ok_or("no verdict")).collect::<Result<_, _>>()?;
    let verdicts: Vec<_> = found.iter().map(|(verdict, ..)| *verdict).collect();
    check(verdicts == [Pass, Pass, Timeout, CompileError, CompileError, Refused], format!("{found:?}"))?;
    check(found[2].1 == Some(4), format!("{found:?}"))?;
    check(found[3].2.as_deref().is_some_and(|said| said.contains("unknown kernel \"add\"")), format!("{found:?}"))?;
    check(found[4].2.as_deref().is_some_and(|said| said.starts_with("CI")), format!("{found:?}"))
}

fn references(nvrtc: &Nvrtc) -> Result<(), String> {
    for (source, wanted) in [
        (REFERENCE.replace("x[i] + 1", "x[i] +"), "the reference does not compile (line 5): expected an expression"),
        (acting("hangs"), "the reference does not end in case \"four\": kernel `k` was stopped"),
        (acting("faults"), "the reference faults in case \"four\": cuEventQuery"),
        (acting("flips"), "the reference does not agree with itself in case \"four\": argument 1: 1 of 4 elements differ"),
        (REFERENCE.replace("void add", "void sum"), "unknown kernel \"add\""),
    ] {
        let folder = tempfile::tempdir().map_err(text)?;
        let mut spec = specification(folder.path())?;
        spec.source = source;
        let candidates = candidates(folder.path(), &[("a", REFERENCE.to_owned())])?;
        let told = evaluate(&spec, &candidates, &settings(nvrtc, folder.path()), &mut |_| ControlFlow::Continue(()));
        let said = told.map_or_else(text, |_| "nothing".into());
        check(said.starts_with(wanted), format!("{said}\nwhere this was wanted: {wanted}"))?;
        check(journals::lines(folder.path()) == 0, "something was judged")?;
    }
    Ok(())
}

fn no_gpu(nvrtc: &Nvrtc) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let spec = specification(folder.path())?;
    let candidates = candidates(folder.path(), &[("a", REFERENCE.to_owned())])?;
    let mut settings = settings(nvrtc, folder.path());
    // A real worker, and a number that no machine has.
    settings.program.variables.retain(|(name, _)| name != FAKE);
    settings.devices = vec![4096];
    let told = evaluate(&spec, &candidates, &settings, &mut |_| ControlFlow::Continue(()));
    let said = told.map_or_else(text, |_| "nothing".into());
    check(["install NVIDIA's driver", "there is no GPU 4096", "update the driver"].iter().any(|part| said.contains(part)), said)?;
    check(!folder.path().join("journal.jsonl").exists(), "an empty journal is left")
}
