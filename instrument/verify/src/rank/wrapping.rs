//! Counters that wrap round: `for (unsigned char i = 0; i != 10; i += 3)`.
//!
//! Let each iteration that comes back add the same number c to a register, modulo 2^w. Let g be the greatest common
//! divisor of c and 2^n. In 2^n / g iterations, the register's n lowest bits take all values that equal the first one
//! modulo g. If no iteration comes back that begins with one of these values in the lowest bits, this period bounds the
//! trip count.

use crate::domain::interval::Interval;
use crate::domain::state::State;
use crate::domain::value::{Assumption, Value};
use crate::interpret::edge_cost::{Count, NEVER};
use crate::interpret::step::Step;
use crate::interpret::work::Work;
use crate::program::instruction::{Operand, type_of};
use crate::rank::linear::MOST_ROUNDS;
use crate::rank::remaining;

/// Most numbers that are tried for the one at which a loop ends.
const MOST_ENDS: usize = 16;

/// At most how many rounds of a loop come back, by a register that wraps round. `base` is what registers hold at the head in any round.
/// `moves` says by how much they move in each.
pub(crate) fn wrapping(
    work: &mut Work<'_, '_>,
    (blocks, head): (&[u32], u32),
    base: &(State, bool),
    (assumption, shut): (Assumption, &[usize]),
    moves: &[(u32, i64)],
) -> Option<Count> {
    if moves.is_empty() {
        return None;
    }
    let numbers = numbers(work, blocks);
    for &(slot, step) in moves {
        let width = work.slice.slots[slot as usize].1.clamp(1, 64);
        if !steps(work, blocks).any(|of| is_narrow(of, width)) {
            continue;
        }
        let before = base.0.get(slot).map_or(Interval::full(width), |before| before.range).unsigned(width);
        for bits in [8, 16_u8].into_iter().filter(|bits| *bits <= width) {
            let size = 1_u64 << bits;
            let apart = 1_u64 << step.trailing_zeros().min(bits.into());
            // All that it may hold is the same modulo that.
            if apart > 1 && before.lo != before.hi && !before.step.is_multiple_of(apart) || size / apart > MOST_ROUNDS {
                continue;
            }
            for &end in &numbers {
                let end = end.rem_euclid(size.into());
                if (end - before.lo).rem_euclid(apart.into()) != 0 {
                    continue;
                }
                let last = Interval::full(width).hi + 1 - i128::from(size) + end;
                let mut start = base.0.clone();
                start.set(slot, Value::of(Interval::strided(end, last, size, width)));
                if remaining::ends(work, blocks, head, &start, (assumption, shut)).is_some() {
                    return Some(Count { rounds: size / apart + u64::from(base.1), ..NEVER });
                }
            }
        }
    }
    None
}

/// Whether a step may take fewer bits of a register than it has. They may be its highest ones. Only so does it wrap round early.
fn is_narrow(step: &Step<'_>, width: u8) -> bool {
    let op = &step.instruction.op;
    // Of a register nothing is known.
    let may_be = |fits: fn(i128) -> bool| step.instruction.rest.iter().all(|operand| !matches!(operand, Operand::Number(n) if !fits(*n)));
    match op.head {
        "and" => op.kind != "pred" && may_be(|mask| mask & 0xff == 0xff),
        "shl" | "shf" => may_be(|bits| bits >= 16),
        "mul" | "mad" => may_be(|times| times.trailing_zeros() >= 8),
        "bfe" | "bfi" | "bmsk" | "lop3" | "prmt" | "szext" => true,
        head => {
            let most = if head == "cvt" { width - 1 } else { 16 };
            op.suffix.split('.').any(|kind| type_of(kind).is_some_and(|(bits, _)| bits <= most))
        }
    }
}

fn steps<'w, 'a>(work: &'w Work<'_, 'a>, blocks: &'w [u32]) -> impl Iterator<Item = &'w Step<'a>> {
    blocks.iter().flat_map(|block| &work.slice.steps[work.slice.steps(*block)])
}

/// Numbers that a round may begin with where the next comparison ends the loop: what something is compared with, less what is added in a round.
fn numbers(work: &Work<'_, '_>, blocks: &[u32]) -> Vec<i128> {
    let number = |operand: Option<&Operand<'_>>| match operand {
        Some(Operand::Number(number)) => Some(*number),
        _ => None,
    };
    let compared =
        steps(work, blocks).filter(|step| step.instruction.op.compares.is_some()).filter_map(|step| number(step.instruction.rest.get(1)));
    let added =
        steps(work, blocks).filter(|step| step.instruction.op.head == "add").filter_map(|step| number(step.instruction.rest.get(1)));
    let added: Vec<i128> = std::iter::once(0).chain(added).collect();
    let mut ends: Vec<i128> = compared.flat_map(|end| added.iter().map(move |added| end - added)).collect();
    ends.sort_unstable();
    ends.dedup();
    ends.truncate(MOST_ENDS);
    ends
}
