//! What an iteration of each loop weighs.

use super::emit::MOST_SCALE;
use super::{HEAVY, irreducible};
use crate::options::Polls;
use crate::polls::find::counted::Context;
use crate::polls::find::{Loops, NONE};

/// Statements of a unit that the allowance is counted in.
const UNIT: u32 = 4;

/// Statements in front of a loop that count its iterations.
const SET_UP: u32 = 8;

/// Largest logarithm of an iteration's weight.
const MOST_WEIGHT: u32 = 12;

/// What an iteration of each loop weighs, as the logarithm of a number of units; none where it polls. `weights` are those of its own statements. Loops inside
/// pay for themselves, but for those whose iterations are `paid` for by the loop around them.
pub(super) fn of(context: &Context<'_, '_>, polls: Polls, mut weights: Vec<u32>, paid: impl Fn(usize) -> Option<u64>) -> Vec<Option<u32>> {
    let loops = &context.loops.all;
    if polls == Polls::Each {
        return vec![None; loops.len()];
    }
    for number in (0..loops.len()).rev() {
        let all_trips = |trips: u64| weights[number].saturating_mul(u32::try_from(trips).unwrap_or(u32::MAX));
        // One that pays for itself costs its set-up.
        let inside = paid(number).map_or(SET_UP, all_trips);
        if let Some(weight) = weights.get_mut(loops[number].outer as usize) {
            *weight = weight.saturating_add(inside);
        }
    }
    // One that waits asks in each round: what it waits for may take as long as it likes.
    let logarithm = |weight: u32| weight.div_ceil(UNIT).max(1).next_power_of_two().ilog2().min(MOST_WEIGHT);
    weights.into_iter().map(|weight| (weight < WAIT).then(|| logarithm(weight))).collect()
}

/// The scale of a function's units, by the weights of its loops and whether each is left alone. The lightest one that counts weighs one unit then, or more.
/// The largest allowance is a number of units, so with heavier ones a loop can run for as long as the gap between polls asks for.
pub(super) fn scale(loops: &Loops, weights: &[Option<u32>], alone: &[Option<u64>]) -> u32 {
    let counts = weights.iter().zip(alone).zip(&loops.all).filter(|((_, alone), _)| alone.is_none());
    let reserve = |is_natural: bool| if is_natural { 0 } else { irreducible::LEAST };
    let counted = counts.filter_map(|((weight, _), one)| Some(weight.as_ref()?.saturating_sub(reserve(one.is_natural))));
    counted.min().unwrap_or(0).min(MOST_SCALE)
}

/// What an iteration of each loop weighs in statements, without those inside.
pub(super) fn statements(context: &Context<'_, '_>, repeats: &[u32], unwinds: bool) -> Vec<u32> {
    let least = if unwinds { UNWINDS } else { 0 };
    let mut weights: Vec<u32> = context.loops.all.iter().map(|one| one.statements.max(least)).collect();
    let mut work = Vec::new();
    for (block, number) in context.graph.blocks.iter().zip(0..) {
        let inner = context.loops.innermost(number);
        if let Some(weight) = weights.get_mut(inner as usize) {
            for statement in block.first..block.end {
                let opcode = context.code.opcode(statement);
                let waits = asks(opcode) || opcode.starts_with("ld") && context.is_loaded(inner, statement, &mut work);
                let more = weight_of(opcode, context.code.operands(statement).len(), context.loops.all[inner as usize].statements);
                *weight = weight.saturating_add(more).saturating_add(if waits { DEPENDENT } else { 0 });
            }
        }
    }
    let mut calls = vec![0_u32; weights.len()];
    for statement in repeats {
        if let Some(calls) = calls.get_mut(context.loops.innermost(context.graph.block_of(*statement)) as usize) {
            *calls = calls.saturating_add(REPEATS);
        }
    }
    for (number, one) in context.loops.all.iter().enumerate().rev() {
        weights[number] = weights[number].saturating_add(calls[number]);
        if one.outer != NONE {
            calls[one.outer as usize] = calls[one.outer as usize].saturating_add(calls[number]);
        }
    }
    weights
}

/// What a call of a function with loops weighs, in each loop around it. The function has an allowance of its own, so that they multiply.
const REPEATS: u32 = UNIT << 9;

/// What an iteration weighs at least in a recursive function. Activations that return one behind the other have an allowance each: with fewer iterations, as
/// many as a stack holds are what the proof takes.
const UNWINDS: u32 = UNIT << 4;

/// What a load weighs besides, at an address that the loop has loaded: nothing else hides its latency. The same holds for what `asks` others: where a grid
/// spins on one word, each access waits for all the others.
const DEPENDENT: u32 = 112;

/// Whether a loop's test asks what others may have written, as it does where threads spin. ptxas gains nothing where it unrolls such loops.
pub(super) fn spins(context: &Context<'_, '_>, number: u32, test: u32) -> bool {
    context.is_made_of(number, test, &mut Vec::new(), asks)
}

/// Whether an instruction brings what other blocks may have written meanwhile.
fn asks(opcode: &str) -> bool {
    let (head, rest) = opcode.split_once('.').unwrap_or((opcode, ""));
    let mut parts = rest.split('.');
    let is_strong = || rest.split('.').any(|part| matches!(part, "volatile" | "relaxed" | "acquire" | "mmio"));
    (head == "atom" || head == "ld" && is_strong()) && !parts.any(|part| part.starts_with("shared") || part == "local")
}

/// The weight of an instruction that waits.
const WAIT: u32 = 1 << 20;

/// The weight of a wait that gives up by itself some microseconds later, in a loop that does more than to wait. Warps that feed each other wait so in each
/// iteration, and mostly not for long.
const TRY: u32 = 480;

/// What an instruction with so many operands weighs beyond one, in a loop of so many statements.
fn weight_of(opcode: &str, operands: usize, around: u32) -> u32 {
    let head = opcode.bytes().position(|byte| byte == b'.').map_or(opcode, |at| &opcode[..at]);
    let has = |parts: &[&str]| opcode.as_bytes().split(|byte| *byte == b'.').any(|part| parts.iter().any(|other| other.as_bytes() == part));
    match head {
        "nanosleep" => WAIT,
        // The fourth operand says how long it waits: CUTLASS has ten milliseconds.
        "mbarrier" if has(&["try_wait"]) && operands < 4 && around >= HEAVY => TRY,
        "mbarrier" if has(&["try_wait", "test_wait"]) => WAIT,
        "ld" | "st" if has(&["param", "shared", "const", "local"]) => 0,
        "ld" | "st" | "ldu" => 15,
        "atom" | "red" | "tex" | "tld4" | "suld" => 15,
        "bar" | "barrier" | "call" | "fence" | "membar" => 15,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::polls::find::counted::tests::asked;

    #[test]
    fn a_unit_is_what_the_lightest_loop_that_counts_weighs() {
        let scales = asked("$L: add.u32 %r1, %r1, %r2; setp.lt.u32 %p1, %r1, 9; @%p1 bra $L;", |context, _| {
            [(Some(4), None), (Some(MOST_WEIGHT), None), (Some(0), None), (None, None), (Some(4), Some(9))]
                .map(|(weight, alone)| scale(context.loops, &[weight], &[alone]))
        });
        assert_eq!(scales, Some([4, MOST_SCALE, 0, 0, 0]));
    }

    #[test]
    fn an_access_asks_where_other_blocks_may_write() {
        for opcode in ["ld.volatile.global.u32", "ld.acquire.gpu.u32", "ld.relaxed.sys.global.b64", "atom.global.cas.b32", "atom.add.u32"] {
            assert!(asks(opcode), "{opcode}");
        }
        for opcode in
            ["ld.global.u32", "ld.volatile.shared.u32", "atom.shared::cta.add.u32", "st.volatile.global.u32", "red.global.add.u32", "exit"]
        {
            assert!(!asks(opcode), "{opcode}");
        }
    }

    #[test]
    fn an_instruction_weighs_what_it_may_wait_for() {
        let tries = ["mbarrier.try_wait.b64", "mbarrier.try_wait.parity.shared::cta.b64", "mbarrier.try_wait.acquire.cta.b64"];
        for (weight, operands, around, opcodes) in [
            (WAIT, 1, HEAVY, ["nanosleep.u32"; 3]),
            (TRY, 3, HEAVY, tries),
            (WAIT, 3, HEAVY - 1, tries),
            (WAIT, 4, HEAVY, tries),
            (15, 2, 1, ["ld.global.u32", "st.u32", "atom.shared.add.u32"]),
            (15, 1, 1, ["bar.sync", "call.uni", "membar.gl"]),
            (0, 2, 1, ["ld.param.u64", "ld.volatile.shared.u32", "st.local.u32"]),
            (0, 2, 1, ["add.s32", "mbarrier.arrive.b64", "exit"]),
        ] {
            assert_eq!(opcodes.map(|opcode| weight_of(opcode, operands, around)), [weight; 3], "{opcodes:?}");
        }
    }
}
