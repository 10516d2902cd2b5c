//! The proof on what nvcc makes: it holds for rewritten kernels, fails for plain ones at the right line, and notices each poll that is taken
//! out. `scripts/verify-sweep` does the same for every kernel, architecture and level of optimisation.

use crate::{Checks, Tools};
use cuinstr::options::{Options, Polls};
use cuinstr::verify::report::{Loop, Verdict};
use cuinstr::verify::verify_ptx;
use cuinstr_tests::fixtures::{self, Fixture};
use cuinstr_tests::ptx::{guards_alone, guards_alone_together, sites_of_guards};
use cuinstr_tests::unit::Unit;
use std::collections::BTreeSet;

/// Kernels of many shapes, for what is too slow to try on all.
const VARIED: &[&str] = &["gemm_tiled", "collatz", "recursion", "goto_probe", "duff", "monte_carlo", "lambda_generic", "hang/deep_nest"];

/// Loops that can't be proved, each with the reason: kernel, function or file it is in, verdict.
const KNOWN: &[(&str, &str, &str)] = &[
    ("cg_grid_sync", "sync.h", "a header's spin loop, which is not rewritten"),
    ("hang/grid_sync", "sync.h", "a header's spin loop, which is not rewritten"),
    ("hang/grid_sync_early_return", "sync.h", "a header's spin loop, which is not rewritten"),
    ("hang/newton_nan", "__internal_trig_reduction_slowpathd", "four rounds at most, but from and to bounds that no range shows"),
    ("hang/mbarrier_asm", "wait_for_copy", "waits in hardware"),
    ("hang/stuck_half_block", "wait_in_asm", "a loop in assembly"),
    ("hang/stuck_one_lane", "last_one_waits", "waits in hardware"),
    ("cluster_histogram", "cluster_histogram", "leaving is not defined there: it traps only"),
];

/// What `scripts/verify-sweep` may leave unproved: ways, kernel, reason.
const LISTED: &str = include_str!("../../data/not_proved.txt");

/// The sweep's list names kernels that are there, gives reasons, and holds what is known here.
fn listed(_: &Tools) -> Result<(), String> {
    let mut kernels = Vec::new();
    for line in LISTED.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [ways, kernel, reason] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { return Err(format!("no reason: {line}")) };
        if ways.split(':').count() != 3 || reason.trim().is_empty() {
            return Err(format!("not `architecture:form:level kernel reason`: {line}"));
        }
        if !fixtures::workspace().join("kernels").join(kernel).with_extension("cu").exists() {
            return Err(format!("there is no such kernel: {line}"));
        }
        kernels.push(kernel);
    }
    let lost = KNOWN.iter().find(|(kernel, ..)| !kernels.contains(kernel));
    lost.map_or(Ok(()), |(kernel, ..)| Err(format!("tests/data/not_proved.txt lacks {kernel}")))
}

pub(crate) fn add(fixtures: &[Fixture], checks: &mut Checks) {
    checks.add("proof: the sweep's list names kernels and reasons".to_owned(), listed);
    for fixture in fixtures.iter().filter(|fixture| !fixture.name.starts_with("probe/")) {
        let name = fixture.name.clone();
        checks.add(format!("proof: {name} rewritten"), move |tools| rewritten(tools, &name, &Options::default(), &[]));
    }
    for name in VARIED {
        let each = || Options { polls: Polls::Each, ..Options::default() };
        let counted = || Options { polls: Polls::CountDown, ..Options::default() };
        checks.add(format!("proof: {name} counted down"), move |tools| rewritten(tools, name, &counted(), &[]));
        checks.add(format!("proof: {name} with a poll in each iteration"), move |tools| rewritten(tools, name, &each(), &[]));
        checks.add(format!("proof: {name} with a poll in each iteration, not optimised"), move |tools| {
            rewritten(tools, name, &each(), &["-Xcicc", "-O0"])
        });
        checks.add(format!("proof: {name} with debug information"), move |tools| rewritten(tools, name, &Options::default(), &["-G"]));
    }
    // `CUINSTR_SWEEP` asks for all kernels, which takes longer than a test run has.
    let all = std::env::var_os("CUINSTR_SWEEP").is_some();
    let named = |fixture: &&Fixture| VARIED.contains(&fixture.name.as_str()) || (all && !fixture.name.starts_with("probe/"));
    for name in fixtures.iter().filter(named).map(|fixture| fixture.name.clone()) {
        checks.add(format!("proof: {name} notices each poll that is taken out, and each site's"), move |tools| mutilated(tools, &name));
    }
    for fixture in fixtures.iter().filter(|fixture| fixture.hang.is_some() && fixture.name.starts_with("hang/")) {
        let name = fixture.name.clone();
        checks.add(format!("proof: {name} as written fails at its line"), move |tools| plain(tools, &name));
    }
}

fn ptx(tools: &Tools, name: &str, options: Option<&Options>, args: &[&str]) -> Result<String, String> {
    let fixture = tools.fixture(name)?;
    let arch = format!("-arch=sm_{}", fixture.header.min_arch.max(90));
    let args: Vec<&str> = ["-ptx", "-w", "-lineinfo", &arch]
        .iter()
        .filter(|arg| **arg != "-lineinfo" || !args.contains(&"-G"))
        .chain(args)
        .copied()
        .collect();
    let plain = Unit::plain(fixture)?;
    let unit = match options {
        Some(options) => plain.rewrite(options)?,
        None => plain,
    };
    let compiled = unit.nvcc(&tools.nvcc, &args)?;
    if compiled.accepted { Ok(compiled.text()) } else { compiled.expect_clean().map(|_| String::new()) }
}

fn is_known(name: &str, found: &Loop) -> bool {
    let file = found.place.as_ref().map_or("", |place| place.file.as_str());
    KNOWN.iter().any(|(kernel, part, _)| *kernel == name && (found.function.contains(part) || file.ends_with(part)))
}

fn rewritten(tools: &Tools, name: &str, options: &Options, args: &[&str]) -> Result<(), String> {
    let report = verify_ptx(&ptx(tools, name, Some(options), args)?);
    if !report.faults.is_empty() || !report.unknown.is_empty() {
        return Err(format!("{:?} {:?}", report.faults, report.unknown));
    }
    let bad: Vec<&Loop> = report.loops.iter().filter(|found| !found.verdict.holds()).collect();
    if let Some(found) = bad.iter().find(|found| !is_known(name, found)) {
        return Err(format!("not proved: {found:#?}"));
    }
    // What is on the list because of the default form may well be proved with others.
    let is_default = args.is_empty() && *options == Options::default();
    if is_default && bad.is_empty() && KNOWN.iter().any(|(kernel, ..)| *kernel == name) {
        return Err("every loop is proved: take it off the list".to_owned());
    }
    Ok(())
}

/// Kernels with a loop in which another with a poll stands that runs at least once, as only the values of their counters show: the naive
/// walk, which does not follow values, finds a way past it.
const RUNS_AT_LEAST_ONCE: &[&str] = &["bitonic_sort", "nbody"];

/// Hangs that have no cycle: their threads wait at a barrier.
const NO_LOOP: &[&str] = &["hang/divergent_syncthreads", "hang/named_barrier"];

/// Lines that a loop's body may reach below its keyword, which itself need not leave a trace in the PTX (`while (true)`).
const BODY: u32 = 15;

/// And how far above a backward `goto` its label may stand.
const ABOVE: u32 = 5;

/// A hang that spins in its source fails there.
fn plain(tools: &Tools, name: &str) -> Result<(), String> {
    let fixture = tools.fixture(name)?;
    let hang = fixture.hang.as_ref().ok_or("no line is marked")?;
    let report = verify_ptx(&ptx(tools, name, None, &[])?);
    if NO_LOOP.contains(&name) {
        return if report.loops.is_empty() { Ok(()) } else { Err("it has a loop: take it off the list".to_owned()) };
    }
    let is_there =
        |file: &str, line: u32| file.ends_with(&hang.file) && (hang.line.saturating_sub(ABOVE)..hang.line + BODY).contains(&line);
    let names_it = |found: &&Loop| {
        found.lines.iter().any(|(file, line)| is_there(file, *line))
            || found.place.iter().flat_map(|place| &place.inlined).any(|frame| is_there(&frame.file, frame.line))
    };
    if report.loops.iter().filter(|found| !found.verdict.holds()).any(|found| names_it(&found)) {
        return Ok(());
    }
    Err(format!("line {} of {} is not named: {:#?}", hang.line, hang.file, report.loops))
}

/// Weakens the flag's load of each poll in turn, which makes it a poll no more, then of all polls of each site, and then of all. The proof
/// sees a loop change where a naive walk finds a cycle that these polls alone were on, and only there; without any poll nothing is polled.
fn mutilated(tools: &Tools, name: &str) -> Result<(), String> {
    let each = Options { polls: Polls::Each, ..Options::default() };
    let text = ptx(tools, name, Some(&each), &[])?;
    let polled = |text: &str| verify_ptx(text).loops.iter().filter(|found| found.verdict == Verdict::Polled { rounds: 0 }).count();
    let whole = polled(&text);
    let loads: Vec<usize> = text.match_indices(STRONG).map(|(at, _)| at).collect();
    if loads.is_empty() || whole == 0 {
        return if VARIED.contains(&name) { Err("there is no poll".to_owned()) } else { Ok(()) };
    }
    let alone = guards_alone(&text, STRONG);
    if alone.len() != loads.len() {
        return Err(format!("{} polls, but the walk found {}", loads.len(), alone.len()));
    }
    for (at, alone) in loads.iter().zip(alone) {
        // Whoever stops waits for a record with a load like a poll's; a clock ends that.
        let function = text[..*at].rfind(".func").max(text[..*at].rfind(".entry")).map_or("", |head| &text[head..*at]);
        if function.lines().next().is_some_and(|head| head.contains("__cuinstr_stop")) {
            continue;
        }
        let mut without = text.clone();
        // The same statement, but weak: it may be served from a cache for ever.
        without.replace_range(*at..*at + STRONG.len(), "ld.global.u32");
        let left = polled(&without);
        let is_known = alone && RUNS_AT_LEAST_ONCE.contains(&name);
        if left > whole || (left < whole) != alone && !is_known {
            let line = text[..*at].lines().count();
            return Err(format!("without the poll in line {line} {left} of {whole} loops are polled; on a cycle of its own: {alone}"));
        }
    }
    let sites = sites_of_guards(&text, STRONG);
    for site in sites.iter().flatten().collect::<BTreeSet<_>>() {
        let copies: Vec<usize> = (0..sites.len()).filter(|number| sites[*number] == Some(*site)).collect();
        let mut without = text.clone();
        // From the last on, since what is put in their place is shorter.
        for number in copies.iter().rev() {
            without.replace_range(loads[*number]..loads[*number] + STRONG.len(), "ld.global.u32");
        }
        let alone = guards_alone_together(&text, STRONG, &copies);
        let left = polled(&without);
        let is_known = alone && RUNS_AT_LEAST_ONCE.contains(&name);
        if left > whole || (left < whole) != alone && !is_known {
            let count = copies.len();
            return Err(format!(
                "without the {count} polls of site {site} {left} of {whole} loops are polled; on cycles of their own: {alone}"
            ));
        }
    }
    if VARIED.contains(&name) && sites.iter().flatten().next().is_none() {
        return Err("no poll's site is known".to_owned());
    }
    match polled(&text.replace(STRONG, "ld.global.u32")) {
        0 => Ok(()),
        count => Err(format!("without any poll {count} loops are polled")),
    }
}

/// How a loop's poll reads the flag.
const STRONG: &str = "ld.relaxed.sys.u32";
