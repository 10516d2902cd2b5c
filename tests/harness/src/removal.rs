//! Polls taken out of PTX: what the proof says then, beside what a walk round cycles says.

use crate::ptx::{guards_alone, guards_alone_together, sites_of_guards};
use cuinstr::verify::report::{Bound, Verdict};
use cuinstr::verify::verify_ptx;
use std::collections::BTreeSet;

/// How a loop's poll reads the flag, with or without the word for the memory that it lies in.
fn load_of_the_flag(text: &str) -> &'static str {
    const GLOBAL: &str = "ld.relaxed.sys.global.u32";
    if text.contains(GLOBAL) { GLOBAL } else { "ld.relaxed.sys.u32" }
}

/// The same statement, but weak: it may be served from a cache for ever, and is no poll.
const WEAK: &str = "ld.global.u32";

/// Kernels with a loop around another loop with a poll, or around a call of one. The inner loop runs at least once, as
/// only the values of its counter show: the walk, which does not follow values, finds a way past it. The first three
/// also where the compiler optimises.
pub const RUNS_AT_LEAST_ONCE: &[&str] = &[
    "bitonic_sort",
    "fft1024",
    "nbody",
    "cxx11",
    "flash_attention",
    "gemm_bf16",
    "gemm_tile32",
    "gemm_tiled",
    "hash_probe",
    "lambda_extended",
    "linkage_block",
    "monte_carlo",
    "radix_sort",
    "scan_rows",
    "several_kernels",
    "sha256",
    "template_kernel",
    "template_unroll",
    "typed_sizes",
];

/// What was taken out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// Polls, one at a time.
    pub polls: usize,
    /// Sites, with all copies of their polls.
    pub sites: usize,
    /// Polls and sites among these that a loop could do without, for another poll inside it is passed in each round, as values show.
    pub by_values: usize,
}

/// Weakens the flag's load of each poll in turn, which makes it a poll no more. Then does so for all polls of each
/// site, and then for all. The text has a poll in each iteration. The proof must object where a naive walk finds a
/// cycle that these polls alone were on, and only there; without any poll nothing is polled. The walk may find more for
/// a kernel whose name ends like one of [`RUNS_AT_LEAST_ONCE`]; then these polls must hold some loop where they are all
/// that there is.
///
/// # Errors
/// What the proof and the walk disagree about.
pub fn take_out(text: &str, name: &str) -> Result<Taken, String> {
    let polled = |text: &str| verify_ptx(text).loops.iter().filter(|found| found.verdict == Verdict::Polled { rounds: 0 }).count();
    let open = |text: &str| verify_ptx(text).loops.iter().filter(|found| !found.verdict.holds()).count();
    let strong = load_of_the_flag(text);
    let loads: Vec<usize> = text.match_indices(strong).map(|(at, _)| at).collect();
    if loads.is_empty() || polled(text) == 0 {
        return Ok(Taken::default());
    }
    let (whole, none) = (open(text), text.replace(strong, WEAK));
    let (open_without_any, counted) = (open(&none), counted(&none));
    let alone = guards_alone(text, strong, &counted);
    if alone.len() != loads.len() {
        return Err(format!("{} polls, but the walk found {}", loads.len(), alone.len()));
    }
    let may_do_without = RUNS_AT_LEAST_ONCE.iter().any(|known| name.ends_with(known));
    let mut taken = Taken::default();
    let mut look = |group: &[usize], alone: bool| {
        let left = open(&weakened(text, &loads, |number| group.contains(&number)));
        if left >= whole && (left > whole) == alone {
            return Ok(());
        }
        let holds_by_itself = || open(&weakened(text, &loads, |number| !group.contains(&number))) < open_without_any;
        if left == whole && may_do_without && holds_by_itself() {
            taken.by_values += 1;
            return Ok(());
        }
        let lines: Vec<usize> = group.iter().map(|number| text[..loads[*number]].lines().count()).collect();
        Err(format!(
            "without the polls in lines {lines:?} {left} loops are not proved, and {whole} with them; on cycles of their own: {alone}"
        ))
    };
    let (mut polls, mut of_sites) = (0, 0);
    for (number, alone) in alone.into_iter().enumerate() {
        // Whoever stops waits for a record with a load like a poll's; a clock ends that.
        let before = &text[..loads[number]];
        let function = before.rfind(".func").max(before.rfind(".entry")).map_or("", |head| &before[head..]);
        if function.lines().next().is_some_and(|head| head.contains("__cuinstr_stop")) {
            continue;
        }
        look(&[number], alone)?;
        polls += 1;
    }
    let sites = sites_of_guards(text, strong);
    for site in sites.iter().flatten().collect::<BTreeSet<_>>() {
        let copies: Vec<usize> = (0..sites.len()).filter(|number| sites[*number] == Some(*site)).collect();
        look(&copies, guards_alone_together(text, strong, &counted, &copies)).map_err(|why| format!("site {site}: {why}"))?;
        of_sites += 1;
    }
    match polled(&none) {
        0 => Ok(Taken { polls, sites: of_sites, ..taken }),
        count => Err(format!("without any poll {count} loops are polled")),
    }
}

/// The text with the loads weakened that are chosen by their numbers.
fn weakened(text: &str, loads: &[usize], is_chosen: impl Fn(usize) -> bool) -> String {
    let (strong, mut without) = (load_of_the_flag(text), text.to_owned());
    // From the last on, since what is put in their place is shorter.
    for (_, at) in loads.iter().enumerate().rev().filter(|(number, _)| is_chosen(*number)) {
        without.replace_range(*at..*at + strong.len(), WEAK);
    }
    without
}

/// Labels at which loops begin that are counted in a text without polls: nobody needs a poll there, which compilers that do not optimise leave.
fn counted(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let loops = verify_ptx(text).loops;
    let is_counted = |verdict: &Verdict| matches!(verdict, Verdict::Bounded { by: Bound::Rounds(_) });
    let label = |line: &&str| line.trim().strip_suffix(':').filter(|name| !name.contains(' ')).map(str::to_owned);
    let head = |line: usize| lines[..line].iter().rev().find_map(label);
    loops.iter().filter(|found| is_counted(&found.verdict)).filter_map(|found| head(found.line)).collect()
}
