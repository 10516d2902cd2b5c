//! The batch evaluator with the real rewriter and the real NVRTC, and no GPU: where candidates would run, a fake worker does what the names of their
//! second kernels say. Verdicts, journals, SIGKILL half way, stopping, repeating. Without nvcc, beside which NVRTC lies, each test shows as ignored
//! with the reason, or fails where `CUINSTR_REQUIRE` names it.

#[path = "../../runtime/tests/fake/mod.rs"]
mod fake;

use cuinstr_abi::control::{SITE_SLOTS, SiteCount, StopRecord};
use cuinstr_evaluate::{Candidate, Event, Program, Settings, Spec, Summary, Verdict, evaluate, journal};
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_harness::require::required;
use cuinstr_harness::unit::Nvrtc;
use cuinstr_runtime::Report;
use cuinstr_runtime::image::Arch;
use cuinstr_runtime::report::Launched;
use cuinstr_runtime::sources::NoSources;
use fake::Pipe;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

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
        fake();
        return ExitCode::SUCCESS;
    }
    cuinstr_evaluate::serve_if_asked();
    if let Some(folder) = std::env::var_os(EVALUATOR) {
        return evaluator(Path::new(&folder));
    }
    let nvrtc = Nvcc::find().and_then(|nvcc| Nvrtc::of(&nvcc, Path::new("")));
    let tests: [(&str, Test); 10] = [
        ("every verdict, with its reason and its line", verdicts),
        ("an evaluator that is killed again and again loses no verdict and tells none twice", killed),
        ("one that is told to stop stops, and the next goes on", stopped),
        ("repeated, it says whose verdicts are not the same each time", repeated),
        ("compiling alone needs no worker, and a compiler that hangs is killed", compile_only),
        ("a reference that is none is told from candidates", references),
        ("all cases, where they are asked for", all_cases),
        ("a journal is of one reference, compiler, device and set of headers", conditions),
        ("what is judged when the observer stops is written down", stopped_late),
        ("without a GPU it says so, and no candidate is judged", no_gpu),
    ];
    let trials = tests.map(|(name, test)| {
        let nvrtc = nvrtc.clone();
        Trial::ignorable_test(format!("evaluate: {name}"), move || match nvrtc {
            Err(reason) if required("nvcc") => Err(Failed::from(format!("CUINSTR_REQUIRE names nvcc, but {reason}"))),
            Err(reason) => Ok(Completion::ignored_with(reason)),
            Ok(nvrtc) => test(&nvrtc).map(|()| Completion::Completed).map_err(Into::into),
        })
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

/// A candidate that the fake worker takes for one that does this.
fn acting(act: &str) -> String {
    format!("{REFERENCE}extern \"C\" __global__ void fake_{act}() {{}}\n")
}

fn candidates(folder: &Path, sources: &[(&str, String)]) -> Result<Vec<Candidate>, String> {
    let folder = folder.join("candidates");
    std::fs::create_dir_all(&folder).map_err(text)?;
    let mut paths = Vec::new();
    for (name, source) in sources {
        let path = folder.join(format!("{name}.cu"));
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

fn many() -> Vec<(String, String)> {
    let acts = ["right", "wrong", "hangs", "faults", "right", "beside"];
    (0..36).map(|number| (format!("{number:02}"), format!("{}// {number}\n", acting(acts[number % acts.len()])))).collect()
}

/// The process that is killed.
fn evaluator(folder: &Path) -> ExitCode {
    let work = || -> Result<(), String> {
        let nvrtc = Nvcc::find().and_then(|nvcc| Nvrtc::of(&nvcc, Path::new("")))?;
        let spec = specification(folder)?;
        let sources = many();
        let sources: Vec<(&str, String)> = sources.iter().map(|(name, source)| (name.as_str(), source.clone())).collect();
        let candidates = candidates(folder, &sources)?;
        // It does not get far beyond where it is to be killed, however late that is.
        let most = std::env::var(HELD).ok().and_then(|most| most.parse().ok()).unwrap_or(usize::MAX);
        let mut watch = |_: &Event| {
            let until = Instant::now() + LONG;
            while lines(folder) >= most && Instant::now() < until {
                thread::sleep(Duration::from_millis(2));
            }
            ControlFlow::Continue(())
        };
        // Two workers, as of two devices.
        let settings = Settings { devices: vec![0, 1], ..settings(&nvrtc, folder) };
        let summary = evaluate(&spec, &candidates, &settings, &mut watch).map_err(text)?;
        let ran_on = |device| summary.judgements.iter().any(|judgement| judgement.device == Some(device));
        check(ran_on(0) && ran_on(1), "one of the devices had nothing to do")
    };
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Whole lines of the journal behind its head.
fn lines(folder: &Path) -> usize {
    let text = std::fs::read(folder.join("journal.jsonl")).unwrap_or_default();
    text.split(|byte| *byte == b'\n').count().saturating_sub(2)
}

fn killed(_: &Nvrtc) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let program = std::env::current_exe().map_err(text)?;
    let start = |most: usize| Command::new(&program).env(EVALUATOR, folder.path()).env(HELD, most.to_string()).spawn().map_err(text);
    let until = Instant::now() + LONG;
    let mut kills = 0;
    for share in [6, 14, 25] {
        let mut child = start(share + 5)?;
        while lines(folder.path()) < share && child.try_wait().map_err(text)?.is_none() {
            check(Instant::now() < until, format!("only {} verdicts so far", lines(folder.path())))?;
            thread::sleep(Duration::from_millis(2));
        }
        child.kill().map_err(text)?;
        kills += usize::from(!child.wait().map_err(text)?.success());
    }
    check(kills == 3 && lines(folder.path()) < 36, format!("killed {kills} times, {} verdicts", lines(folder.path())))?;
    let mut last = start(usize::MAX)?;
    check(last.wait().map_err(text)?.success(), "the last one failed")?;
    let (_, judgements) = journal::read(&folder.path().join("journal.jsonl")).map_err(text)?;
    let mut found: Vec<(String, Verdict)> = judgements.iter().map(|judgement| (stem(&judgement.candidate), judgement.verdict)).collect();
    found.sort();
    let expected = [Verdict::Pass, Verdict::WrongResult, Verdict::Timeout, Verdict::Fault, Verdict::Pass, Verdict::WrongResult];
    let expected: Vec<_> = (0..36).map(|number| (format!("{number:02}"), expected[number % 6])).collect();
    check(found == expected, format!("{found:?}"))
}

fn stopped(nvrtc: &Nvrtc) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let spec = specification(folder.path())?;
    // The last one runs until it is cancelled.
    let sources = [("a", acting("right")), ("b", acting("wrong")), ("c", acting("waits")), ("d", acting("right"))];
    let candidates = candidates(folder.path(), &sources)?;
    let settings = settings(nvrtc, folder.path());
    let mut judged = 0;
    let mut waited = 0;
    let mut watch = |event: &Event| {
        judged += usize::from(matches!(event, Event::Judged(_)));
        waited += usize::from(judged == 2 && matches!(event, Event::Waiting));
        if waited > 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let since = Instant::now();
    let summary = evaluate(&spec, &candidates, &settings, &mut watch).map_err(text)?;
    let found: Vec<_> = summary.judgements.iter().map(|judgement| stem(&judgement.candidate)).collect();
    check(found == ["a", "b"] && !summary.is_complete() && since.elapsed() < LONG, format!("{found:?}"))?;
    check(summary.to_string().contains("stopped: 2 are left; the same command goes on"), summary.to_string())?;
    // The same before the first candidate: the reference runs until it is cancelled.
    let mut endless = spec.clone();
    endless.source = acting("waits");
    let since = Instant::now();
    let settings_of_its_own = Settings { journal: None, ..settings.clone() };
    let mut asked = 0;
    let mut watch = |_: &Event| {
        asked += 1;
        if asked > 200 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let told = evaluate(&endless, &candidates, &settings_of_its_own, &mut watch).map_or_else(text, |_| "nothing".into());
    check(told == "stopped before the first candidate" && since.elapsed() < LONG, told)?;
    // As somebody who gives it up would have it.
    let path = folder.path().join("candidates/c.cu");
    std::fs::write(&path, acting("hangs")).map_err(text)?;
    let names: Vec<PathBuf> = candidates.iter().map(|candidate| candidate.name.clone().into()).collect();
    let again = all(&spec, &Candidate::files(&names).map_err(text)?, &settings)?;
    let found: Vec<_> = again.judgements.iter().map(|judgement| (stem(&judgement.candidate), judgement.verdict.name())).collect();
    check(
        again.known == 2
            && found == [("a", "pass"), ("b", "wrong result"), ("c", "timeout"), ("d", "pass")].map(|(a, b)| (a.to_owned(), b)),
        format!("{found:?}"),
    )
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

fn conditions(nvrtc: &Nvrtc) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("one.h"), "#define ONE 1\n").map_err(text)?;
    let source = format!("#include \"one.h\"\n{}", acting("right"));
    let spec = specification(folder.path())?;
    let candidates = candidates(folder.path(), &[("a", source.clone()), ("b", acting("right"))])?;
    let settings = settings(nvrtc, folder.path());
    let known = |spec: &Spec| all(spec, &candidates, &settings).map(|summary| summary.known);
    check(known(&spec)? == 0 && known(&spec)? == 2, "a journal is gone on with")?;
    // A candidate whose header has changed is judged anew.
    std::fs::write(at("one.h"), "#define ONE 2\n").map_err(text)?;
    check(known(&spec)? == 1, "the header's text counts")?;
    let refused = |spec: &Spec, what: &str| {
        let said = known(spec).map_or_else(|error| error, |known| format!("{known} known"));
        check(said.contains(what), said)
    };
    let mut other = spec.clone();
    other.source = source;
    refused(&other, "of another headers of the reference (")?;
    other = spec.clone();
    other.compile.options.push("--fmad=false".into());
    refused(&other, "of another compiler's options (")?;
    // As if it had been written elsewhere.
    let journal = at("journal.jsonl");
    let text_before = std::fs::read_to_string(&journal).map_err(text)?;
    for (name, found) in [("compiler", "\"compiler\":\"NVRTC 1"), ("device", "\"device\":\"a "), ("driver", "\"driver\":\"")] {
        check(text_before.contains(found), text_before.clone())?;
        std::fs::write(&journal, text_before.replacen(found, &format!("{found}X"), 1)).map_err(text)?;
        refused(&spec, &format!("its verdicts are of another {name} (then "))?;
    }
    // A head without the limits of a case is damaged.
    let (head, rest) = text_before.split_once('\n').ok_or("a head")?;
    let mut head: Value = serde_json::from_str(head).map_err(text)?;
    head["limits"].as_array_mut().ok_or("limits")?.pop();
    std::fs::write(&journal, format!("{head}\n{rest}")).map_err(text)?;
    refused(&spec, "its first line does not have the limits of each case")?;
    // Two candidates of one name would have one verdict.
    let twice = [candidates[0].clone(), candidates[0].clone()];
    let said = evaluate(&spec, &twice, &settings, &mut |_| ControlFlow::Continue(())).map_or_else(text, |_| "nothing".into());
    check(said.contains("two candidates are named"), said)
}

fn stopped_late(nvrtc: &Nvrtc) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let spec = specification(folder.path())?;
    let sources: Vec<(String, String)> = (0..6).map(|number| (number.to_string(), acting("right"))).collect();
    let sources: Vec<(&str, String)> = sources.iter().map(|(name, source)| (name.as_str(), source.clone())).collect();
    let candidates = candidates(folder.path(), &sources)?;
    let journal = folder.path().join("journal.jsonl");
    // Others are judged meanwhile, if the machine gets to them.
    for pause in [2, 20, 60] {
        let mut watch = |event: &Event| {
            if !matches!(event, Event::Judged(_)) {
                return ControlFlow::Continue(());
            }
            thread::sleep(Duration::from_secs(pause));
            ControlFlow::Break(())
        };
        let summary = evaluate(&spec, &candidates, &settings(nvrtc, folder.path()), &mut watch).map_err(text)?;
        let (_, lines) = journal::read(&journal).map_err(text)?;
        check(lines == summary.judgements, format!("{} of {} are written", lines.len(), summary.judgements.len()))?;
        if lines.len() > 1 {
            return Ok(());
        }
        std::fs::remove_file(&journal).map_err(text)?;
    }
    Err("nothing is judged while the observer waits".into())
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
        check(lines(folder.path()) == 0, "something was judged")?;
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

// The fake worker.

struct Fake {
    pipe: Pipe,
    buffers: HashMap<u64, Vec<u8>>,
    modules: HashMap<u64, Vec<u8>>,
    launches: usize,
}

fn fake() {
    // What a real worker's kernels print would be the evaluation's output.
    assert_eq!(std::env::var("CUINSTR_EVALUATE").as_deref(), Ok("silent"));
    let mut pipe = Pipe::of_standard_input();
    pipe.greet(1, 1);
    if pipe.is_greeted() {
        Fake { pipe, buffers: HashMap::new(), modules: HashMap::new(), launches: 0 }.serve();
    }
}

impl Fake {
    fn serve(mut self) {
        while let Some((request, payload)) = self.pipe.hear() {
            let serial = &request["serial"];
            let (task, about) = request["task"].as_object().and_then(|task| task.iter().next()).expect("one task");
            let id = |name: &str| about[name].as_u64().expect("a number");
            match task.as_str() {
                "open" => self.pipe.done(serial, &json!({ "ready": { "device": "a fake", "arch": 80 } }), &[]),
                "load" => {
                    self.modules.insert(id("module"), payload);
                    self.pipe.done(serial, &json!("nothing"), &[]);
                }
                "find" if !self.has(id("module"), about["kernel"].as_str().expect("a name")) => {
                    let refusal =
                        json!({ "unknown-kernel": { "asked": about["kernel"], "several": false, "nearest": null, "names": ["sum"] } });
                    self.pipe.refused(serial, &refusal);
                }
                "find" => self.pipe.done(serial, &json!({ "kernel": { "name": about["kernel"] } }), &[]),
                "blank" => {
                    self.buffers.insert(id("buffer"), vec![0; id("bytes") as usize]);
                    self.pipe.done(serial, &json!("nothing"), &[]);
                }
                "write" => {
                    let (buffer, offset) = (id("buffer"), id("offset") as usize);
                    self.buffers.get_mut(&buffer).expect("a buffer")[offset..offset + payload.len()].copy_from_slice(&payload);
                    self.pipe.done(serial, &json!("nothing"), &[]);
                }
                "read" => {
                    let (from, bytes) = (id("offset") as usize, id("bytes") as usize);
                    let contents = self.buffers[&id("buffer")][from..from + bytes].to_vec();
                    self.pipe.done(serial, &json!("bytes"), &contents);
                }
                "start" => self.start(serial, about),
                "cancel" => {
                    let end = json!({ "stopped": { "why": "cancelled", "latency": 30_000, "report": report(&[]) } });
                    self.pipe.ended(&about["launch"], &end);
                }
                "forget" => {}
                other => panic!("{other}"),
            }
        }
    }

    fn has(&self, module: u64, name: &str) -> bool {
        self.modules[&module]
            .windows(name.len() + 2)
            .any(|window| window[0] == 0 && &window[1..=name.len()] == name.as_bytes() && window[name.len() + 1] == 0)
    }

    /// What the module's second kernel is named after.
    fn act(&self, module: u64) -> String {
        let image = &self.modules[&module];
        let at = image.windows(5).position(|window| window == b"fake_");
        let rest = at.map_or(&b"right"[..], |at| &image[at + 5..]);
        let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').unwrap_or(rest.len());
        String::from_utf8_lossy(&rest[..end]).into_owned()
    }

    fn start(&mut self, serial: &Value, order: &Value) {
        self.launches += 1;
        let (launch, module) = (&order["launch"], order["module"].as_u64().expect("a number"));
        let act = self.act(module);
        if act == "dies" || (act == "dies_once" && self.launches > 2) {
            std::process::exit(4);
        }
        if act == "misfit" {
            let refusal = json!({ "arguments": { "kernel": "add", "what": "argument 0 has 8 bytes, but the parameter has 4" } });
            self.pipe.refused(serial, &refusal);
            return;
        }
        self.pipe.done(serial, &json!("nothing"), &[]);
        let record = report(&self.modules[&module]);
        let fault = json!({ "call": "cuEventQuery", "code": 700, "name": "CUDA_ERROR_ILLEGAL_ADDRESS" });
        match act.as_str() {
            "hangs" => self.pipe.ended(launch, &json!({ "stopped": { "why": "fuel", "latency": 30_000, "report": record } })),
            "leaves" => self.pipe.ended(launch, &json!({ "stopped": { "why": "cancelled", "latency": 30_000, "report": record } })),
            "stays" => self.pipe.ended(launch, &json!({ "undrained": { "why": "deadline", "since": 7_000_000, "report": record } })),
            "faults" => self.pipe.ended(launch, &json!({ "faulted": { "fault": fault } })),
            "waits" => {}
            _ => {
                self.add(order, &act);
                let fuel = order["count_fuel"].as_bool().unwrap_or(false).then_some(40);
                self.pipe.ended(launch, &json!({ "completed": { "elapsed": 5000, "late": false, "fuel_used": fuel } }));
            }
        }
    }

    /// What the kernel does, as far as the act goes.
    fn add(&mut self, order: &Value, act: &str) {
        let arguments = order["arguments"].as_array().expect("arguments");
        let buffer = |index: usize| arguments[index]["buffer"].as_u64().expect("a buffer");
        let bytes: Vec<u8> = serde_json::from_value(arguments[2]["bytes"].clone()).expect("bytes");
        let count = u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize;
        let from: Vec<u8> = self.buffers[&buffer(0)][..4 * count].to_vec();
        let launches = self.launches;
        let to = self.buffers.get_mut(&buffer(1)).expect("a buffer");
        for (from, to) in from.chunks(4).zip(to.chunks_mut(4)) {
            let number = u32::from_le_bytes(from.try_into().expect("four bytes"));
            // Only the case with one number is wrong.
            let wrong = u32::from(act == "wrong" && count == 1);
            to.copy_from_slice(&(number + 1 + wrong).to_le_bytes());
        }
        if act == "beside" {
            to[4 * count] = 0;
        }
        if act == "stray" {
            self.buffers.get_mut(&buffer(0)).expect("a buffer")[4 * count..4 * count + 4].fill(0xff);
            return;
        }
        if act == "flips" {
            // The second time: six launches measure the reference in each of two cases, then there are two in each round that is right.
            let odd = u8::from(launches == 2 || launches == 15);
            to[0] = to[0].wrapping_add(odd);
        }
    }
}

/// A report of a stop at the first loop that the image's site map knows.
fn report(image: &[u8]) -> Report {
    let maps = cuinstr_runtime::image::read(image).map(|image| image.site_maps).unwrap_or_default();
    let sites = maps.iter().flat_map(|map| &map.sites);
    let site = sites.filter(|site| site.line == 4).find_map(|site| u64::from_str_radix(site.id.trim_start_matches("0x"), 16).ok());
    let record = StopRecord {
        claimed: 1,
        published: 1,
        site: site.unwrap_or(0xa2),
        why: 4,
        late: 0,
        block: [0; 3],
        thread: [5, 0, 0],
        start_ns: 0,
        fuel_used: 0,
        elapsed_ns: 0,
        elapsed_cycles: 0,
        reserved: 0,
        unlisted: 32,
        sites: [SiteCount { site: 0, threads: 0 }; SITE_SLOTS],
    };
    let launched = Launched { kernel: "k", grid: [1; 3], block: [32, 1, 1], ..Launched::default() };
    Report::new(&record, &launched, &maps, &NoSources)
}
