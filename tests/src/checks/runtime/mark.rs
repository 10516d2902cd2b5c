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
];

const LONG: Duration = Duration::from_secs(10);

/// Kernels whose threads wait for each other, with the same answer each time.
const SOUND: [&str; 3] = ["scan_hillis", "reduce_shared", "gemm_tiled"];

/// A warp of each block has returned, one hangs, and one waits at a barrier behind which it would write.
const HANG: &str = "hang/barrier_and_loop";
/// Threads of a block that have returned, and all of them.
const DONE: usize = 32;
const ALL: usize = 96;

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

#[cfg(test)]
mod tests {
    use crate::fixtures::workspace;
    use cuinstr::options::Options;

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
