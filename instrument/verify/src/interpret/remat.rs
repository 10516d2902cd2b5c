//! Values that each iteration computes again although they stay the same (rematerialization). Compilers put `n & -16`,
//! or the end of a strip, `from + length`, beside the comparison with it. So no register keeps the value across
//! iterations, and nothing could be said of a counter's distance from it.
//!
//! Let one instruction alone write a register, `into = f(one, two)`. Let all readers of the register stand behind it in
//! its block, or in blocks that control only comes to from there, each by one way. Let nothing between them write an
//! operand. Then the register may be taken to be written wherever an operand is written. Each reader comes past the instruction, which writes the same value again. Before any operand is
//! written, and in between, no statement reads the register, so its value may be chosen as `f(one, two)`. An operand
//! may be such a register itself; it is written first. What a call hands on is read there, too: whether the callee
//! returns may follow from it.

use crate::interpret::parameters::handed;
use crate::program::definitions::Definitions;
use crate::program::instruction::{Instruction, Operand, Register};

/// Most instructions behind which one value is made.
const MOST_WRITERS: usize = 8;

/// Most blocks between what makes a value and what reads it.
const MOST_BETWEEN: usize = 8;

/// A register that such an instruction writes.
struct Remat {
    into: Register,
    /// Where the instruction is in the list of all.
    at: usize,
    /// Whether control comes to all that reads the register by one way from there.
    is_local: bool,
    /// The blocks of these ways.
    through: Vec<u32>,
    /// Whether a comparison with another register reads it, or an instruction of this kind that is compared so.
    is_compared: bool,
    /// The statements behind which it is made, sorted.
    behind: Vec<u32>,
}

/// Marks such instructions among `decoded`, and gives what is to be put behind statements: these with the instructions, in their order. `decoded`
/// holds all in these blocks that writes the registers which are followed; of others it may hold some writers and not all.
pub(crate) fn settle<'a>(
    body: &Definitions<'a>,
    blocks: &[u32],
    is_followed: impl Fn(Register) -> bool,
    decoded: &[(u32, Instruction<'a>)],
) -> (Vec<u32>, Vec<(u32, Instruction<'a>)>) {
    let mut found: Vec<Remat> = Vec::new();
    for (at, (statement, instruction)) in decoded.iter().enumerate() {
        let Some(into) = made(instruction).filter(|into| is_followed(*into) && body.writers(*into) == [*statement]) else { continue };
        let is_known = |register| register != into && is_followed(register);
        let mut all = instruction.rest.iter();
        if all.all(|operand| if let Operand::Register(register) = operand { is_known(*register) } else { true }) {
            found.push(Remat { into, at, is_local: true, through: Vec::new(), is_compared: masks(instruction), behind: Vec::new() });
        }
    }
    found.sort_unstable_by_key(|renewed| renewed.into);
    // From the last reader to the first, so that what is compared is known of a result before its operands are asked.
    for (reader, instruction) in decoded.iter().rev() {
        let compares = instruction.op.compares.is_some() && matches!(instruction.rest[..], [Operand::Register(_), Operand::Register(_)]);
        let result = made(instruction).and_then(|into| found.binary_search_by_key(&into, |renewed| renewed.into).ok());
        let of_compared = result.is_some_and(|nth| decoded[found[nth].at].0 == *reader && found[nth].is_compared);
        each_named(instruction, |register| {
            if let Ok(nth) = found.binary_search_by_key(&register, |renewed| renewed.into) {
                let (writer, ref made) = decoded[found[nth].at];
                let (from, to) = (body.block_of(writer), body.block_of(*reader));
                found[nth].is_local &= if from == to { writer < *reader } else { one_way(body, from, to, &mut found[nth].through) };
                // Where sums are made of the smaller of two, cases are told where that is made.
                found[nth].is_compared |= compares || of_compared && !is_extreme(made);
            }
        });
    }
    found.retain(|renewed| renewed.is_local && renewed.is_compared);
    if !found.is_empty() {
        leave_out_handed(body, blocks, &mut found, decoded);
    }
    // Operands come before what is made of them.
    found.sort_unstable_by_key(|renewed| renewed.at);
    let mut settled: Vec<Remat> = Vec::new();
    for mut renewed in found {
        let (statement, instruction) = &decoded[renewed.at];
        let is_here = |writer: &&u32| decoded.binary_search_by_key(*writer, |(statement, _)| *statement).is_ok();
        let mut is_near = false;
        for operand in &instruction.rest {
            let Operand::Register(of) = operand else { continue };
            if let Some(earlier) = settled.iter().find(|earlier| earlier.into == *of) {
                renewed.behind.extend(&earlier.behind);
                continue;
            }
            let writers = body.writers(*of).iter().filter(is_here).copied();
            renewed.behind.extend(writers.take(MOST_WRITERS + 1));
            let is_between = |block: u32| block == body.block_of(*statement) || renewed.through.contains(&block);
            is_near |= renewed.behind.iter().any(|writer| is_between(body.block_of(*writer)));
        }
        renewed.behind.sort_unstable();
        renewed.behind.dedup();
        if !is_near && (1..=MOST_WRITERS).contains(&renewed.behind.len()) {
            settled.push(renewed);
        }
    }
    let mut copies: Vec<(u32, Instruction<'a>)> = Vec::new();
    for renewed in &settled {
        copies.extend(renewed.behind.iter().map(|writer| (*writer, decoded[renewed.at].1.clone())));
    }
    // What stands behind one statement keeps its order.
    copies.sort_by_key(|(writer, _)| *writer);
    (settled.into_iter().map(|renewed| decoded[renewed.at].0).collect(), copies)
}

/// Whether control comes to a block from another one only, without coming to any block between by other ways. Adds those behind the first to `through`.
fn one_way(body: &Definitions<'_>, from: u32, to: u32, through: &mut Vec<u32>) -> bool {
    let mut block = to;
    for _ in 0..MOST_BETWEEN {
        through.push(block);
        match *body.graph.sources(block) {
            [source] if source == from => return block != 0,
            [source] if block != 0 => block = source,
            _ => return false,
        }
    }
    false
}

/// Leaves out registers that a call in these blocks hands on, unless they are made in front of it in its block.
fn leave_out_handed(body: &Definitions<'_>, blocks: &[u32], found: &mut Vec<Remat>, decoded: &[(u32, Instruction<'_>)]) {
    for &block in blocks.iter().filter(|block| body.graph.last(**block).is_some()) {
        for (_, operand) in handed(body, block) {
            found.retain(|renewed| operand != Operand::Register(renewed.into) || body.block_of(decoded[renewed.at].0) == block);
        }
    }
}

/// The register that is written, if nothing else happens and all of the result follows from registers and numbers.
fn made(instruction: &Instruction<'_>) -> Option<Register> {
    let is_plain = |operand: &Operand<'_>| matches!(operand, Operand::Register(_) | Operand::Number(_));
    let [into] = instruction.first[..] else { return None };
    let is_pure = masks(instruction) || sums(instruction);
    (is_pure && instruction.guard.is_none() && instruction.rest.iter().all(is_plain)).then_some(into)
}

/// Whether lowest bits are taken away, and nothing else.
fn masks(instruction: &Instruction<'_>) -> bool {
    let [Operand::Register(_), Operand::Number(mask)] = instruction.rest[..] else { return false };
    mask & 1 == 0 && mask != 0 && matches!(instruction.opcode, "and.b32" | "and.b64")
}

/// Whether it is a sum, a multiple, or the smaller or larger of two.
fn sums(instruction: &Instruction<'_>) -> bool {
    let is_integer = |kind: &str| matches!(kind, "s32" | "u32" | "b32" | "s64" | "u64" | "b64");
    let (head, suffix) = (instruction.op.head, instruction.op.suffix);
    match head {
        "add" | "sub" | "min" | "max" => is_integer(suffix),
        "shl" => is_integer(suffix) && matches!(instruction.rest[..], [_, Operand::Number(_)]),
        "mul" | "mad" => suffix.strip_prefix("lo.").or(suffix.strip_prefix("wide.")).is_some_and(is_integer),
        _ => false,
    }
}

/// Whether it is the smaller or larger of two.
fn is_extreme(instruction: &Instruction<'_>) -> bool {
    matches!(instruction.op.head, "min" | "max")
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
