//! Random PTX kernels that end by construction, and whose results PTX alone defines.
//!
//! - `writer`: the text of one function, its names and registers.
//! - `body`: statements that are no loops.
//! - `counted`: loops whose trips are computed, by trying all starts, bounds and steps.
//! - `odd`: loops that are written in unusual ways, and `steps`: what they count by.
//! - `walks`: loops that end soon by what an iteration does to their variable: `shifts` halve or double it, `strides` add a register to it several times.
//! - `loops`: the other loops.
//! - `calls`: functions and calls.
//! - `compared`: what they and the pass's output do on the interpreter.

mod body;
mod calls;
pub mod compared;
mod counted;
mod loops;
mod odd;
mod shifts;
mod steps;
mod strides;
mod walks;
mod writer;

use cuinstr_harness::random::Random;
use std::fmt::Write as _;
use std::ops::Range;
use writer::{Role, Writer};

/// Blocks of a launch.
pub const BLOCKS: u32 = 2;

/// Threads of a block.
pub const THREADS: u32 = 64;

/// Bytes that a thread writes: a hash, its ticks, the way by which it left, and four words that it reads again.
pub const SLOT: u32 = 32;

/// Bytes that a launch writes.
pub const OUTPUT: usize = (BLOCKS * THREADS * SLOT) as usize;

/// Words that a launch reads.
pub const WORDS: u32 = 1024;

/// Largest value of the first number that a launch gets; the least is zero.
pub const MOST_N: u32 = 40;

/// Largest value of the second one.
pub const MOST_M: u32 = 6;

/// Kernels whose modules are for the same architecture.
const GROUP: u64 = 100;

/// The name of a seed's kernel. Its parameters are addresses of the output and of the words, then the two numbers.
#[must_use]
pub fn name(seed: u64) -> String {
    format!("k{seed}")
}

/// The two numbers of a launch.
#[must_use]
pub fn numbers(seed: u64, set: u64) -> [u32; 2] {
    let n = (7 * seed + 23 * set + seed / 41) % u64::from(MOST_N + 1);
    let m = (3 * seed + 4 * set + seed / 7) % u64::from(MOST_M + 1);
    [n as u32, m as u32]
}

/// The words that a launch reads.
#[must_use]
pub fn words(set: u32) -> Vec<u32> {
    let word = |at: u32| {
        let mixed = at.wrapping_add(1).wrapping_mul(2_654_435_761).wrapping_add(set.wrapping_mul(40_503 << 16));
        mixed ^ mixed >> 15
    };
    (0..WORDS).map(word).collect()
}

/// A module with the kernels of these seeds.
#[must_use]
pub fn module(seeds: Range<u64>) -> String {
    let target = match seeds.start / GROUP % 8 {
        0 => ("6.0", "sm_70"),
        1 | 2 => ("7.0", "sm_80"),
        3 => ("7.8", "sm_90"),
        _ => ("9.0", "sm_90"),
    };
    module_for(seeds, target)
}

/// The same for a version of PTX and an architecture.
fn module_for(seeds: Range<u64>, (version, target): (&str, &str)) -> String {
    let mut text =
        format!("// Random kernels {} to {}.\n.version {version}\n.target {target}\n.address_size 64\n\n", seeds.start, seeds.end);
    for seed in seeds {
        text.push_str(&kernel(seed));
    }
    text
}

/// A kernel with the functions that it calls.
fn kernel(seed: u64) -> String {
    let mut random = Random::new(seed);
    let budget = random.of(&[150, 400, 400, 1_500, 1_500, 4_000, 20_000]);
    // Threads that leave alone can't exchange anything afterwards.
    let leaves = random.percent(50);
    let mut text = String::new();
    let functions = if random.percent(30) { calls::functions(seed, &mut random, budget, leaves, &mut text) } else { Vec::new() };
    let mut writer = Writer::new(seed, &mut random, Role::Kernel { leaves }, functions);
    if !leaves && writer.random.percent(60) {
        writer.shares();
    }
    let mut left: u64 = budget;
    for _ in 0..=writer.random.below(3) {
        writer.mixes(1);
        let cost = writer.repeats(left / 2 + 1);
        left = left.saturating_sub(cost);
    }
    writer.statements(left / 4);
    let body = writer.finish();
    let bounds = random.of(&["", "", "", "\n.maxntid 64, 1, 1", "\n.reqntid 64, 1, 1"]);
    let visible = random.of(&[".visible .entry", ".visible .entry", ".entry", ".visible\n.entry"]);
    let comment = random.of(&["", "// { bra $L; } \"not code\"\n", "/* .entry other() { ret; } */\n", "// __device__ loops\r\n"]);
    let _ = write!(
        text,
        "{comment}{visible} {}(.param .u64 out_, .param .u64 data_, .param .u32 n_, .param .u32 m_){bounds}\n{{\n{body}}}\n\n",
        name(seed)
    );
    text
}
