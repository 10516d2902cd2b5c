//! What a thread that leaves writes into its block's shared memory, for the threads that it releases from a barrier.

use super::Promise;
use super::bench::{Bench, completed, told};
use crate::session::{Checked, Report, Session};
use cuinstr_runtime::{Cause, Outcome};
use serde_json::json;
use std::time::Duration;

pub(super) const PROMISES: &[Promise] = &[
    Promise::new("words like ours that others left in shared memory release nobody from a barrier", foreign),
    Promise::new("threads that are released from a barrier by others that left write nothing", released),
    Promise::new("in a kernel that was not rewritten a barrier of ours obeys words of its own launch and no others", outside),
];

const LONG: Duration = Duration::from_secs(10);

/// Kernels whose threads wait for each other, with the same answer each time.
const SOUND: [&str; 3] = ["scan_hillis", "reduce_shared", "gemm_tiled"];

/// A warp of each block has returned, one hangs, and one waits at a barrier behind which it would write.
const HANG: &str = "hang/barrier_and_loop";
/// Threads of a block that have returned, and all of them.
const DONE: usize = 32;
const ALL: usize = 96;

/// A kernel that was not rewritten, of one function with barriers, between which a warp of each block hangs unless it is told to go.
const OUTSIDE: &str = "probe/calls_from_outside";

/// Leaves the mark all over shared memory.
fn fill(filler: &Bench) -> Result<(), String> {
    let stream = filler.context.default_stream();
    completed(&filler.start(&stream, |launch| _ = launch.timeout(LONG)).map_err(told)?.wait().map_err(told)?)
}

/// Runs a sound kernel to its end; what it wrote.
fn answer(bench: &mut Bench) -> Result<Vec<Vec<u8>>, String> {
    let stream = bench.context.default_stream();
    bench.refill(&stream)?;
    completed(&bench.start(&stream, |launch| _ = launch.timeout(LONG)).map_err(told)?.wait().map_err(told)?)?;
    bench.contents(&stream)
}

/// The 32-bit words of a buffer.
fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

/// Words that a kernel finds after another has left them: where there are none, its successors found none either.
fn found(filler: &Bench, session: &Session) -> Result<u32, String> {
    let mut finder = Bench::new(session, "probe/finds_shared")?;
    fill(filler)?;
    let contents = answer(&mut finder)?;
    contents.first().and_then(|bytes| words(bytes).next()).ok_or_else(|| "the probe has no buffer".into())
}

fn foreign(session: &Session) -> Checked {
    let filler = Bench::new(session, "probe/fills_shared")?;
    for name in SOUND {
        let mut bench = Bench::new(session, name)?;
        let right = answer(&mut bench)?;
        for round in 0..20 {
            fill(&filler)?;
            if answer(&mut bench).map_err(|why| format!("{name}, round {round}: {why}"))? != right {
                return Err(format!("{name}, round {round}: another answer after a kernel that left our mark in shared memory"));
            }
        }
    }
    let found = found(&filler, session)?;
    session.next_launch_is_right()?;
    let report = Report::of(json!({ "words_found": found }));
    Ok(if found == 0 { report.note("nothing was shown: this GPU clears shared memory between kernels") } else { report })
}

fn released(session: &Session) -> Checked {
    let filler = Bench::new(session, "probe/fills_shared")?;
    let mut sound = Bench::new(session, SOUND[0])?;
    let right = answer(&mut sound)?;
    let mut hang = Bench::new(session, HANG)?;
    let stream = hang.context.default_stream();
    let mut begun = 0;
    for round in 0..20 {
        fill(&filler)?;
        hang.refill(&stream)?;
        let timeout = Duration::from_millis(5 + round % 4);
        let outcome = hang.start(&stream, |launch| _ = launch.timeout(timeout)).map_err(told)?.wait().map_err(told)?;
        if !matches!(outcome, Outcome::Stopped { why: Cause::Deadline, .. }) {
            return Err(format!("round {round}: it should have been stopped at its deadline: {outcome:?}"));
        }
        let contents = hang.contents(&stream)?;
        let written = contents.get(1).ok_or("the hang has no second buffer")?;
        // Blocks that begin after the deadline write nothing.
        if let Some((index, word)) = words(written).enumerate().find(|(index, word)| *word > u32::from(index % ALL < DONE)) {
            return Err(format!("round {round}: thread {} of block {} wrote {word}", index % ALL, index / ALL));
        }
        begun += usize::from(words(written).any(|word| word == 1));
        // What it left is of another launch.
        if answer(&mut sound).map_err(|why| format!("after round {round}: {why}"))? != right {
            return Err(format!("after round {round}: {} has another answer", SOUND[0]));
        }
    }
    session.next_launch_is_right()?;
    if begun == 0 { Err("no block began before its deadline".into()) } else { Ok(Report::of(json!({ "rounds_begun": begun }))) }
}

/// What the kernel that was not rewritten comes to, when its warps may go or not: no word that others left is cleared for it.
fn called(bench: &mut Bench, go: bool, timeout: Duration) -> Result<(Outcome, Vec<u32>), String> {
    let stream = bench.context.default_stream();
    bench.fill_with(0, &u32::from(go).to_le_bytes())?;
    bench.refill(&stream)?;
    let outcome = bench.start(&stream, |launch| _ = launch.timeout(timeout)).map_err(told)?.wait().map_err(told)?;
    let contents = bench.contents(&stream)?;
    Ok((outcome, words(contents.get(1).ok_or("it has no second buffer")?).collect()))
}

fn outside(session: &Session) -> Checked {
    let filler = Bench::new(session, "probe/fills_shared")?;
    let mut bench = Bench::new(session, OUTSIDE)?;
    // Each thread writes its block's first thread's number, and one.
    let right = |written: &[u32]| written.iter().enumerate().all(|(index, word)| *word as usize == index / ALL * ALL + 1);
    let mut all_left = 0;
    for round in 0..20 {
        fill(&filler)?;
        let (outcome, written) = called(&mut bench, true, LONG)?;
        completed(&outcome).map_err(|why| format!("round {round}, after another kernel's words: {why}"))?;
        if !right(&written) {
            return Err(format!("round {round}: another kernel's words released threads from a barrier"));
        }
        let (outcome, written) = called(&mut bench, false, Duration::from_millis(5 + round % 4))?;
        let Outcome::Stopped { why: Cause::Deadline, report, .. } = outcome else {
            return Err(format!("round {round}: it should have been stopped at its deadline: {outcome:?}"));
        };
        if let Some(index) = written.iter().position(|word| *word != 0) {
            return Err(format!("round {round}: thread {} of block {} wrote {}", index % ALL, index / ALL, written[index]));
        }
        all_left += usize::from(report.threads == written.len() as u64);
        // What it left is of an earlier launch of the same module.
        let (outcome, written) = called(&mut bench, true, LONG)?;
        completed(&outcome).map_err(|why| format!("round {round}, after a stopped launch: {why}"))?;
        if !right(&written) {
            return Err(format!("round {round}: a stopped launch's words released threads from a barrier"));
        }
    }
    session.next_launch_is_right()?;
    // Those at the barrier are counted where they were released.
    if all_left == 20 {
        Ok(Report::of(json!({ "rounds": 20 })))
    } else {
        Err(format!("all threads were counted in {all_left} of 20 rounds"))
    }
}

#[cfg(test)]
mod tests {
    use cuinstr::options::Options;
    use cuinstr_harness::fixtures::workspace;

    #[test]
    fn the_probes_leave_the_preludes_own_mark() {
        let source = b"__global__ void k(int* p) { for (int i = 0; i < *p; ++i) { __syncthreads(); } }\n";
        let output = cuinstr::rewrite(source, &Options { path: "k.cu".to_owned(), ..Options::default() }).output.expect("it is rewritten");
        let output = String::from_utf8(output).expect("it is text");
        let mark = output.lines().find_map(|line| line.strip_prefix("#define __cuinstr_left_mark 0x")?.strip_suffix('u'));
        let mark = u32::from_str_radix(mark.expect("the prelude has a mark"), 16).expect("it is a number");
        for probe in ["fills_shared", "finds_shared"] {
            let text = std::fs::read_to_string(workspace().join(format!("tests/kernels/{probe}.cu"))).expect("it is there");
            assert!(text.contains(&format!("//@ arg: u32 {mark}\n")), "{probe}: {mark}");
        }
    }
}
