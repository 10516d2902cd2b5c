//! The proof on what nvcc makes: it holds for rewritten kernels, fails for plain ones at the right line, and notices each poll that is taken
//! out. `scripts/verify-sweep` does the same for every kernel, architecture and level of optimisation.

use crate::{Checks, Tools, sweeps};
use cuinstr::options::{Options, Polls};
use cuinstr::verify::report::Loop;
use cuinstr::verify::verify_ptx;
use cuinstr_harness::fixtures::{self, Fixture};
use cuinstr_harness::removal::take_out;

/// Kernels of many shapes, for what is too slow to try on all.
const VARIED: &[&str] = &["gemm_tiled", "collatz", "recursion", "goto_probe", "duff", "monte_carlo", "lambda_generic", "hang/deep_nest"];

/// Kernels whose loops go on with what earlier ones have left of an allowance, which shows only by branches where nothing is optimised.
const NOT_OPTIMISED: &[&str] = &["constexpr_loop", "cg_tiles", "histogram", "bench/radix_sort"];

/// Loops that can't be proved, each with the reason: kernel, function or file it is in, verdict.
const KNOWN: &[(&str, &str, &str)] = &[
    ("cg_grid_sync", "sync.h", "a header's spin loop, which is not rewritten"),
    ("hang/grid_sync", "sync.h", "a header's spin loop, which is not rewritten"),
    ("hang/grid_sync_early_return", "sync.h", "a header's spin loop, which is not rewritten"),
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
    for name in NOT_OPTIMISED {
        checks.add(format!("proof: {name} rewritten, not optimised"), move |tools| {
            rewritten(tools, name, &Options::default(), &["-Xcicc", "-O0"])
        });
    }
    // A bound that lies on the stack, beside addresses of other words there.
    checks
        .add("proof: scan_hillis with debug information".to_owned(), |tools| rewritten(tools, "scan_hillis", &Options::default(), &["-G"]));
    for name in VARIED {
        let name = (*name).to_owned();
        checks.add(format!("proof: {name} {NOTICES}"), move |tools| mutilated(tools, &name, &[]));
    }
    for name in ["gemm_tiled", "collatz", "recursion"] {
        checks.add(format!("proof: {name} {NOTICES}, not optimised"), move |tools| mutilated(tools, name, &["-Xcicc", "-O0"]));
        checks.add(format!("proof: {name} {NOTICES}, with debug information"), move |tools| mutilated(tools, name, &["-G"]));
    }
    for fixture in fixtures.iter().filter(|fixture| fixture.hang.is_some() && fixture.name.starts_with("hang/")) {
        let name = fixture.name.clone();
        checks.add(format!("proof: {name} as written fails at its line"), move |tools| plain(tools, &name));
    }
}

/// What the removal of polls is tested for.
const NOTICES: &str = "notices each poll that is taken out, and each site's";

/// Ways to compile what polls are taken out of.
const WAYS: &[(&str, &[&str])] = &[
    ("sm_90", &[]),
    ("sm_75", &["-arch=sm_75"]),
    ("sm_90a", &["-arch=sm_90a"]),
    ("sm_100", &["-arch=sm_100"]),
    ("sm_90, not optimised", &["-Xcicc", "-O0"]),
    ("sm_90, with debug information", &["-G"]),
];

/// `CUINSTR_SWEEP` asks for all kernels and all ways to compile them, which takes longer than a test run has (CONTRIBUTING.md).
pub(crate) fn add_sweep<'f>(fixtures: impl Iterator<Item = &'f Fixture>, checks: &mut Checks) {
    if !sweeps() {
        return;
    }
    for fixture in fixtures.filter(|fixture| !fixture.name.starts_with("probe/")) {
        for (way, args) in WAYS {
            // Architectures that are too old for it do not compile it.
            if *way != "sm_75" || fixture.header.min_arch <= 75 {
                let name = fixture.name.clone();
                checks.add(format!("sweep: {name} {NOTICES}: {way}"), move |tools| mutilated(tools, &name, args));
            }
        }
    }
}

fn ptx(tools: &Tools, name: &str, options: Option<&Options>, args: &[&str]) -> Result<String, String> {
    let compiled = tools.ptx(name, options, args)?;
    if compiled.accepted { Ok(compiled.text()) } else { compiled.expect_clean().map(|_| String::new()) }
}

fn is_known(name: &str, found: &Loop) -> bool {
    let file = found.place.as_ref().map_or("", |place| place.file.as_str());
    KNOWN.iter().any(|(kernel, part, _)| *kernel == name && (found.function.contains(part) || file.ends_with(part)))
}

/// Whether every loop of a text is proved that is not known to be none of those; how many are not.
pub(crate) fn judge(name: &str, text: &str) -> Result<usize, String> {
    let report = verify_ptx(text);
    if !report.faults.is_empty() || !report.unknown.is_empty() {
        return Err(format!("{:?} {:?}", report.faults, report.unknown));
    }
    let bad: Vec<&Loop> = report.loops.iter().filter(|found| !found.verdict.holds()).collect();
    match bad.iter().find(|found| !is_known(name, found)) {
        Some(found) => Err(format!("not proved: {found:#?}")),
        None => Ok(bad.len()),
    }
}

fn rewritten(tools: &Tools, name: &str, options: &Options, args: &[&str]) -> Result<(), String> {
    let bad = judge(name, &ptx(tools, name, Some(options), args)?)?;
    // What is on the list because of the default form may well be proved with others.
    let is_default = args.is_empty() && *options == Options::default();
    if is_default && bad == 0 && KNOWN.iter().any(|(kernel, ..)| *kernel == name) {
        return Err("every loop is proved: take it off the list".to_owned());
    }
    Ok(())
}

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

/// Takes polls out, one at a time and all of a site's: see [`take_out`].
fn mutilated(tools: &Tools, name: &str, args: &[&str]) -> Result<(), String> {
    let each = Options { polls: Polls::Each, ..Options::default() };
    let taken = take_out(&ptx(tools, name, Some(&each), args)?, name)?;
    let must_have_some = VARIED.contains(&name);
    if (must_have_some && taken.polls == 0) || (taken.polls > 0 && taken.sites == 0) {
        return Err(format!("there is no poll, or no site of one: {taken:?}"));
    }
    Ok(())
}
