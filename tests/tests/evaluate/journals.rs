//! What is left of an evaluation that was killed or stopped, and what a journal is of.

use crate::{EVALUATOR, HELD, LONG, acting, all, candidates, check, settings, specification, stem, text};
use cuinstr_evaluate::{Candidate, Event, Settings, Spec, Verdict, evaluate, journal};
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_harness::unit::Nvrtc;
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

fn many() -> Vec<(String, String)> {
    let acts = ["right", "wrong", "hangs", "faults", "right", "beside"];
    (0..36).map(|number| (format!("{number:02}"), format!("{}// {number}\n", acting(acts[number % acts.len()])))).collect()
}

/// The process that is killed.
pub(crate) fn evaluator(folder: &Path) -> ExitCode {
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
pub(crate) fn lines(folder: &Path) -> usize {
    let text = std::fs::read(folder.join("journal.jsonl")).unwrap_or_default();
    text.split(|byte| *byte == b'\n').count().saturating_sub(2)
}

pub(crate) fn killed(_: &Nvrtc) -> Result<(), String> {
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

pub(crate) fn stopped(nvrtc: &Nvrtc) -> Result<(), String> {
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

pub(crate) fn conditions(nvrtc: &Nvrtc) -> Result<(), String> {
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

pub(crate) fn stopped_late(nvrtc: &Nvrtc) -> Result<(), String> {
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
