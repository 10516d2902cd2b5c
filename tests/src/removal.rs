//! Polls taken out of PTX: what the proof says then, beside what a walk round cycles says.

use crate::ptx::{guards_alone, guards_alone_together, sites_of_guards};
use cuinstr::verify::report::Verdict;
use cuinstr::verify::verify_ptx;
use std::collections::BTreeSet;

/// How a loop's poll reads the flag.
const STRONG: &str = "ld.relaxed.sys.u32";
/// The same statement, but weak: it may be served from a cache for ever, and is no poll.
const WEAK: &str = "ld.global.u32";

/// Kernels with a loop in which another with a poll stands that runs at least once, as only the values of their counters show: the walk, which
/// does not follow values, finds a way past it.
pub const RUNS_AT_LEAST_ONCE: &[&str] = &["bitonic_sort", "fft1024", "nbody"];

/// What was taken out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// Polls, one at a time.
    pub polls: usize,
    /// Sites, with all copies of their polls.
    pub sites: usize,
}

/// Weakens the flag's load of each poll in turn, which makes it a poll no more, then of all polls of each site, and then of all. The text has a
/// poll in each iteration. The proof must see a loop change where a naive walk finds a cycle that these polls alone were on, and only there;
/// without any poll nothing is polled. The walk may find more for a kernel whose name ends like one of [`RUNS_AT_LEAST_ONCE`].
///
/// # Errors
/// What the proof and the walk disagree about.
pub fn take_out(text: &str, name: &str) -> Result<Taken, String> {
    let polled = |text: &str| verify_ptx(text).loops.iter().filter(|found| found.verdict == Verdict::Polled { rounds: 0 }).count();
    let whole = polled(text);
    let loads: Vec<usize> = text.match_indices(STRONG).map(|(at, _)| at).collect();
    if loads.is_empty() || whole == 0 {
        return Ok(Taken::default());
    }
    let alone = guards_alone(text, STRONG);
    if alone.len() != loads.len() {
        return Err(format!("{} polls, but the walk found {}", loads.len(), alone.len()));
    }
    let differs = |left: usize, alone: bool| {
        left > whole || (left < whole) != alone && !(alone && RUNS_AT_LEAST_ONCE.iter().any(|known| name.ends_with(known)))
    };
    let mut taken = Taken::default();
    for (at, alone) in loads.iter().zip(alone) {
        // Whoever stops waits for a record with a load like a poll's; a clock ends that.
        let function = text[..*at].rfind(".func").max(text[..*at].rfind(".entry")).map_or("", |head| &text[head..*at]);
        if function.lines().next().is_some_and(|head| head.contains("__cuinstr_stop")) {
            continue;
        }
        let mut without = text.to_owned();
        without.replace_range(*at..*at + STRONG.len(), WEAK);
        let left = polled(&without);
        if differs(left, alone) {
            let line = text[..*at].lines().count();
            return Err(format!("without the poll in line {line} {left} of {whole} loops are polled; on a cycle of its own: {alone}"));
        }
        taken.polls += 1;
    }
    let sites = sites_of_guards(text, STRONG);
    for site in sites.iter().flatten().collect::<BTreeSet<_>>() {
        let copies: Vec<usize> = (0..sites.len()).filter(|number| sites[*number] == Some(*site)).collect();
        let mut without = text.to_owned();
        // From the last on, since what is put in their place is shorter.
        for number in copies.iter().rev() {
            without.replace_range(loads[*number]..loads[*number] + STRONG.len(), WEAK);
        }
        let alone = guards_alone_together(text, STRONG, &copies);
        let left = polled(&without);
        if differs(left, alone) {
            let count = copies.len();
            return Err(format!(
                "without the {count} polls of site {site} {left} of {whole} loops are polled; on cycles of their own: {alone}"
            ));
        }
        taken.sites += 1;
    }
    match polled(&text.replace(STRONG, WEAK)) {
        0 => Ok(taken),
        count => Err(format!("without any poll {count} loops are polled")),
    }
}
