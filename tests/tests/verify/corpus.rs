//! What reader, proof and PTX pass make of every text in `tests/data/ptx`, to the last number: a line for each in `snapshots/`.
//!
//! The other tests say what must hold. This one tells that something is another than before, in texts that they ask less of: a bound that is larger,
//! a form that is not taken any more, a block that begins elsewhere. Its checksums are of all that is known.

use super::files;
use super::record::{check, sum};
use cuinstr::options::{AtExit, Limits, Options, PollGap, Polls};
use cuinstr::rewrite_ptx;
use cuinstr::verify::report::{Bound, Verdict};
use cuinstr::verify::verify_ptx;
use cuinstr_harness::fixtures::workspace;
use cuinstr_ptx::{Code, Graph, parse};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// All files of PTX with their names.
fn texts() -> Vec<(String, PathBuf)> {
    let root = workspace().join("tests/data/ptx");
    let mut found = Vec::new();
    for folder in ["", "attacks", "plain", "proof"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            if path.extension().is_some_and(|extension| extension == "ptx") {
                found.push((path.strip_prefix(&root).expect("it is below").display().to_string(), path));
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("it is text")
}

fn short(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Polled { rounds } => format!("polled {rounds}"),
        Verdict::Bounded { by: Bound::Rounds(rounds) } => rounds.to_string(),
        Verdict::TooMany { rounds, .. } => format!("too many {rounds}"),
        Verdict::Bounded { by: Bound::Clock } => "clock".to_owned(),
        Verdict::WaitsInHardware => "hardware".to_owned(),
        Verdict::NotPolled { .. } => "open".to_owned(),
        Verdict::TrapOnly => "trap".to_owned(),
    }
}

#[test]
fn the_proof_says_the_same_of_each_text() {
    let mut said = String::new();
    for (name, path) in texts() {
        for (nth, text) in files::programs(&read(&path)).into_iter().enumerate() {
            let report = verify_ptx(&text);
            let loops: Vec<String> = report.loops.iter().map(|found| format!("{}: {}", found.line, short(&found.verdict))).collect();
            let whole = serde_json::to_string(&report).expect("a report is JSON");
            let _ = writeln!(said, "{name} {nth} {:08x} {}", sum(&whole), loops.join(", "));
        }
    }
    check("corpus_proof", &said);
}

#[test]
fn the_reader_reads_the_same_in_each_text() {
    let mut said = String::new();
    for (name, path) in texts() {
        let text = read(&path);
        let module = parse(&text);
        let mut whole = format!("{module:?}");
        let (mut statements, mut blocks) = (0, 0);
        for function in &module.functions {
            let (graph, code) = (Graph::new(function), Code::new(&text, function));
            statements += function.statements.len();
            blocks += graph.blocks.len();
            let _ = write!(whole, "{graph:?} {:?}", graph.reverse_postorder());
            for statement in 0..function.statements.len() as u32 {
                let _ = write!(whole, "{:?} {} {:?}", code.guard(statement), code.opcode(statement), code.all_operands(statement));
                let _ = write!(whole, "{:?} {:?}", code.access(statement), function.location(statement));
                code.each_written(statement, |register| _ = write!(whole, " {register}"));
                code.each_read(statement, |register| _ = write!(whole, " {register}/{}", code.width(register)));
            }
        }
        let _ = writeln!(said, "{name} {:08x} {} functions, {statements} statements, {blocks} blocks", sum(&whole), module.functions.len());
    }
    check("corpus_reader", &said);
}

/// The pass under several options.
fn passes() -> Vec<(&'static str, Options)> {
    let limits = Limits { timeout_ns: Some(1_000_000), budget_cycles: Some(5_000), fuel: Some(1 << 20) };
    let of = |polls: Polls| Options { polls, path: "a.ptx".to_owned(), ..Options::default() };
    vec![
        ("amortised", of(Polls::Amortised)),
        ("count-down", of(Polls::CountDown)),
        ("each", of(Polls::Each)),
        ("limits", Options { limits, ..of(Polls::Amortised) }),
        ("gate", Options { at_exit: AtExit::Gate, limits, ..of(Polls::CountDown) }),
        ("gap", Options { poll_gap: PollGap::from_nanoseconds(2_000).expect("a gap"), ..of(Polls::Amortised) }),
        ("pausable", Options { pausable: true, ..of(Polls::Amortised) }),
    ]
}

#[test]
fn the_pass_makes_the_same_of_each_text() {
    let mut said = String::new();
    for (name, path) in texts() {
        // Text with names of ours is refused.
        let text = read(&path).replace("cuinstr_", "other_");
        for (how, options) in passes() {
            let rewrite = rewrite_ptx(text.as_bytes(), &options);
            let whole =
                format!("{:?} {:?} {:?}", rewrite.output.as_deref().map(String::from_utf8_lossy), rewrite.sites, rewrite.diagnostics);
            let summary = rewrite.summary;
            let counts = [summary.loops, summary.polled, summary.bounded, summary.polls, summary.gaps];
            let _ = writeln!(said, "{name} {how} {:08x} {counts:?}", sum(&whole));
        }
    }
    check("corpus_pass", &said);
}
