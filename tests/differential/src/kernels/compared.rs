//! The kernels on the interpreter: what the pass makes of them must do the same, and be proved.

use super::{OUTPUT, THREADS, module_for, name, numbers, words};
use cuinstr::options::{Options, PollGap, Polls};
use cuinstr::rewrite_ptx;
use cuinstr::verify::verify_ptx;
use cuinstr_simulate::{Launch, Machine, Memory, Moment, Outcome, Program};
use rayon::prelude::*;
use std::ops::Range;

/// Instructions that a launch may run.
const STEPS: u64 = 400_000_000;

/// What a poll does: it loads the flag.
const ASKS: &str = "flag, [where]";

/// Most instructions that a thread may run between two polls: the largest allowance is 8,192 units of four statements.
const MOST_GAP: u64 = 40_000;

/// Words of the control block that say what to do, and by when: a deadline far off.
const ARMED: [(u64, usize, u64); 4] = [(4, 4, 1), (8, 4, 2), (24, 8, 1 << 50), (32, 8, 0)];

/// The interpreter knows no older votes.
const NEWEST: (&str, &str) = ("9.0", "sm_90");

/// Something done to the pass's output, which the comparison must notice.
pub type Fault = fn(&str) -> String;

/// What came of kernels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Compared {
    /// Runs of plain kernels that were compared with each form.
    pub runs: u64,
    /// Iterations of all threads.
    pub ticks: u64,
    /// Most instructions of a thread between two polls.
    pub gap: u64,
    /// What differs: seed, arguments, form.
    pub different: Vec<String>,
}

/// The pass's output.
///
/// # Errors
/// If the pass refuses the text.
pub fn polled(text: &str, polls: Polls, gap: u64) -> Result<String, String> {
    let poll_gap = PollGap::from_nanoseconds(gap).ok_or("no such gap")?;
    let options = Options { path: "kernels.ptx".to_owned(), polls, poll_gap, ..Options::default() };
    let rewrite = rewrite_ptx(text.as_bytes(), &options);
    let output = rewrite.output.ok_or_else(|| format!("the pass refuses it: {:?}", rewrite.diagnostics))?;
    String::from_utf8(output).map_err(|error| error.to_string())
}

/// Compares the kernels of these seeds with what the pass makes of them, on one block each.
///
/// # Errors
/// If the pass or the interpreter refuses a text.
pub fn compare(seeds: Range<u64>, fault: Option<Fault>) -> Result<Compared, String> {
    let all: Vec<Compared> = seeds.into_par_iter().map(|seed| of_one(seed, fault)).collect::<Result<_, _>>()?;
    Ok(all.into_iter().fold(Compared::default(), |mut sum, one| {
        sum.runs += one.runs;
        sum.ticks += one.ticks;
        sum.gap = sum.gap.max(one.gap);
        sum.different.extend(one.different);
        sum
    }))
}

fn of_one(seed: u64, fault: Option<Fault>) -> Result<Compared, String> {
    let plain = module_for(seed..seed + 1, NEWEST);
    let mut forms = Vec::new();
    for (polls, gap) in [(Polls::Amortised, 20_000), (Polls::Amortised, 2_000), (Polls::Each, 20_000)] {
        let text = polled(&plain, polls, gap).map_err(|why| format!("seed {seed}: {why}"))?;
        let text = fault.map_or_else(|| text.clone(), |fault| fault(&text));
        let program = Program::read(&text).map_err(|why| format!("seed {seed}: {why}"))?;
        forms.push((polls, program, text));
    }
    let plain = Program::read(&plain).map_err(|why| format!("seed {seed}: {why}"))?;
    let mut compared = Compared::default();
    for set in 0..2 {
        let (before, steps, _) = run(&plain, None, seed, set, STEPS)?;
        let Ok(bytes) = &before else {
            compared.different.push(format!("seed {seed}, arguments {set}, plain: {before:?}"));
            continue;
        };
        // A fault may keep a loop going.
        let most = if fault.is_some() { 8 * steps + 100_000 } else { STEPS };
        compared.runs += 1;
        let ticks =
            bytes.chunks_exact(super::SLOT as usize).map(|slot| u64::from(u32::from_le_bytes([slot[8], slot[9], slot[10], slot[11]])));
        compared.ticks += ticks.sum::<u64>();
        for (polls, form, text) in &forms {
            let (after, _, gap) = run(form, Some(text), seed, set, most)?;
            compared.gap = compared.gap.max(gap);
            if gap > MOST_GAP {
                compared.different.push(format!("seed {seed}, arguments {set}, {polls:?}: {gap} instructions without a poll"));
            }
            if after != before {
                let at = after.as_ref().ok().and_then(|after| after.iter().zip(bytes).position(|(one, other)| one != other));
                compared.different.push(format!("seed {seed}, arguments {set}, {polls:?}: {:?}, byte {at:?}", after.err()));
            }
        }
    }
    Ok(compared)
}

/// What one block writes, or how it ended otherwise.
type Written = Result<Vec<u8>, Option<Outcome>>;

/// That, how many instructions it ran, and the most of a thread between two polls, which are sought in a text.
fn run(program: &Program, polls: Option<&str>, seed: u64, set: u32, steps: u64) -> Result<(Written, u64, u64), String> {
    let mut memory = Memory::new(program);
    let output = memory.allocate(vec![0; OUTPUT]);
    let data = memory.allocate(words(set).into_iter().flat_map(u32::to_le_bytes).collect());
    if let Some(control) = memory.address("cuinstr_control_v1") {
        for (offset, size, value) in ARMED {
            memory.write(control + offset, size, value);
        }
    }
    let [n, m] = numbers(seed, u64::from(set));
    let parameters = vec![output.to_le_bytes().to_vec(), data.to_le_bytes().to_vec(), n.to_le_bytes().to_vec(), m.to_le_bytes().to_vec()];
    let launch = Launch { kernel: name(seed), grid: [1, 1, 1], block: [THREADS, 1, 1], shared: 0, parameters };
    let mut machine = Machine::new(program, memory, launch)?;
    let text = polls.unwrap_or_default();
    let mut asks: Vec<Option<bool>> = vec![None; text.len()];
    let (mut since, mut gap) = ([0_u64; THREADS as usize], 0);
    let mut watch = |moment: &Moment<'_>| {
        let at = moment.at as usize;
        let Some(known) = asks.get_mut(at) else { return };
        let asks = *known.get_or_insert_with(|| text[at..].split(';').next().is_some_and(|statement| statement.contains(ASKS)));
        let since = &mut since[moment.thread as usize];
        *since = if asks { 0 } else { *since + 1 };
        gap = gap.max(*since);
    };
    let written = match machine.run(steps, &mut watch) {
        Some(Outcome::Completed) => Ok(machine.memory.bytes(output).unwrap_or_default().to_vec()),
        other => Err(other),
    };
    Ok((written, machine.steps, gap))
}

/// The kernels of these seeds whose polled form is not proved: seeds and findings.
///
/// # Errors
/// If the pass refuses a text.
pub fn not_proved(seeds: Range<u64>, polls: Polls) -> Result<Vec<(u64, String)>, String> {
    let found: Vec<Option<(u64, String)>> = seeds.into_par_iter().map(|seed| finding(seed, polls)).collect::<Result<_, _>>()?;
    Ok(found.into_iter().flatten().collect())
}

fn finding(seed: u64, polls: Polls) -> Result<Option<(u64, String)>, String> {
    let output = polled(&module_for(seed..seed + 1, NEWEST), polls, 20_000)?;
    let report = verify_ptx(&output);
    if report.holds() {
        return Ok(None);
    }
    let open: Vec<_> = report.loops.iter().filter(|found| !found.verdict.holds()).collect();
    Ok(Some((seed, format!("{:?} {:?} {open:?}", report.faults, report.unknown))))
}
