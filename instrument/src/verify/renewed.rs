//! What is masked anew in each round although it stays the same: compilers put `n & -16` beside the comparison with it, so that no register keeps
//! it from round to round, and nothing could be said of how far a counter is from it.
//!
//! Let one instruction alone write a register, `into = of & mask`, and let all that reads the register stand behind it in its block, where nothing
//! writes `of`. Then the register may as well be written wherever `of` is, and be left alone where it was written: whoever reads it comes by
//! there, and since `of` was written last it is still `of & mask`. In between nobody looks at it.

use super::body::Body;
use super::instruction::{Instruction, Op, Operand, Register};

/// Most instructions behind which one value is masked.
const MOST_WRITERS: usize = 8;

/// Puts copies in the place of such instructions. They go behind the statements that are named with them, in their order. `decoded` holds all
/// that writes the registers which are followed; of others it may hold some writers and not all.
pub(super) fn settle<'a>(
    body: &Body<'a>,
    is_followed: impl Fn(Register) -> bool,
    decoded: &mut [(u32, Instruction<'a>)],
) -> Vec<(u32, Instruction<'a>)> {
    // By the register that is written: where, and the register that is masked.
    let mut found: Vec<(Register, usize, Register)> = Vec::new();
    for (at, (statement, instruction)) in decoded.iter().enumerate() {
        if let Some((into, of)) = masked(instruction)
            && into != of
            && is_followed(into)
            && is_followed(of)
            && body.writers(into) == [*statement]
        {
            found.push((into, at, of));
        }
    }
    found.sort_unstable();
    let mut is_local = vec![true; found.len()];
    for (reader, instruction) in decoded.iter() {
        each_named(instruction, |register| {
            if let Ok(nth) = found.binary_search_by_key(&register, |(into, ..)| *into) {
                let (writer, _) = decoded[found[nth].1];
                is_local[nth] &= writer < *reader && body.block_of(writer) == body.block_of(*reader);
            }
        });
    }
    let mut copies = Vec::new();
    for ((into, at, of), _) in found.into_iter().zip(is_local).filter(|(_, is_local)| *is_local) {
        let (statement, instruction) = &decoded[at];
        let is_here = |writer: &&u32| decoded.binary_search_by_key(*writer, |(statement, _)| *statement).is_ok();
        let writers: Vec<u32> = body.writers(of).iter().filter(is_here).copied().take(MOST_WRITERS + 1).collect();
        let is_near = writers.iter().any(|writer| body.block_of(*writer) == body.block_of(*statement));
        if writers.is_empty() || writers.len() > MOST_WRITERS || is_near {
            continue;
        }
        copies.extend(writers.into_iter().map(|writer| (writer, instruction.clone())));
        let opcode = if instruction.op.kind == "b64" { "mov.b64" } else { "mov.b32" };
        let rest = vec![Operand::Register(into)];
        decoded[at].1 = Instruction { opcode, op: Op::new(opcode), rest, ..decoded[at].1.clone() };
    }
    copies.sort_by_key(|(writer, _)| *writer);
    copies
}

/// The register that is written, and the one that is masked, if that is all that happens and what is taken away are lowest bits.
fn masked(instruction: &Instruction<'_>) -> Option<(Register, Register)> {
    let ([into], [Operand::Register(of), Operand::Number(mask)]) = (&instruction.first[..], &instruction.rest[..]) else { return None };
    let keeps_high_bits = mask & 1 == 0 && *mask != 0;
    let is_plain = instruction.guard.is_none() && matches!(instruction.opcode, "and.b32" | "and.b64");
    (keeps_high_bits && is_plain).then_some((*into, *of))
}

/// Registers that an instruction may read.
fn each_named(instruction: &Instruction<'_>, mut found: impl FnMut(Register)) {
    for operand in instruction.rest.iter().chain(&instruction.first_address) {
        if let Operand::Register(register) | Operand::At(register, _) = operand {
            found(*register);
        }
    }
    instruction.all.iter().copied().for_each(&mut found);
    if let Some((Some(guard), _)) = instruction.guard {
        found(guard);
    }
}
