//! The instructions of a slice, and sums of its registers.

use crate::program::instruction::{Instruction, Operand, Register};

/// An instruction that writes slots. Where its operands and its guard are registers they are given as slots.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    pub(crate) statement: u32,
    pub(crate) instruction: Instruction<'a>,
    /// The slot of each register of its first operand; `u32::MAX` for those that are not followed.
    pub(crate) writes: Vec<u32>,
    /// Whether it may write any register it names, in ways that are not known.
    pub(crate) is_wild: bool,
    /// Whether what it writes is there already: see [`renewed`].
    pub(crate) is_again: bool,
    /// The sum that its result follows from.
    pub(crate) derived: Option<Derived>,
    /// For a comparison the sum that is one operand less the other.
    pub(crate) apart: Option<Apart>,
}

/// Of a step that stands for no statement of its own: see [`renewed`].
pub(crate) const NO_STATEMENT: u32 = u32::MAX;

/// No slot.
pub(crate) const NOT_FOLLOWED: u32 = u32::MAX;

/// Registers whose values say something about the result.
pub(crate) fn each_needed(instruction: &Instruction<'_>, mut found: impl FnMut(Register)) {
    let (head, integer) = (instruction.op.head, !instruction.op.kind.starts_with('f'));
    let modelled = matches!(
        head,
        "mov"
            | "cvta"
            | "cvt"
            | "add"
            | "sub"
            | "mul"
            | "mad"
            | "neg"
            | "min"
            | "max"
            | "and"
            | "or"
            | "xor"
            | "not"
            | "shl"
            | "shr"
            | "rem"
            | "div"
            | "selp"
            | "setp"
            | "bfe"
            | "clz"
    );
    // Of a vote what the thread says, not who is asked.
    if head == "vote"
        && let Some(Operand::Register(register)) = instruction.rest.first()
    {
        found(*register);
    }
    if modelled && integer {
        for operand in &instruction.rest {
            if let Operand::Register(register) = operand {
                found(*register);
            }
        }
    }
    if head == "ld" {
        for operand in &instruction.rest {
            if let Operand::At(register, _) = operand {
                found(*register);
            }
        }
    }
    if let Some((Some(guard), _)) = instruction.guard {
        found(guard);
    }
}

/// Stands for no register: the slot is that of a sum, or of what no register holds.
pub(crate) const NO_REGISTER: Register = u32::MAX;

/// Registers with signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sum {
    /// Slots, sorted, each with a factor. That of the first is positive.
    pub(crate) terms: Vec<(u32, i8)>,
    pub(crate) width: u8,
}

impl Sum {
    /// The same with another register in the place of one, and the sign of the one in terms of the other; none if both are in it.
    pub(crate) fn with(&self, of: u32, other: u32) -> Option<(Self, i8)> {
        if self.terms.iter().any(|(slot, _)| *slot == other) {
            return None;
        }
        let mut terms = self.terms.clone();
        for (slot, _) in terms.iter_mut().filter(|(slot, _)| *slot == of) {
            *slot = other;
        }
        terms.sort_unstable();
        let sign = terms[0].1.signum();
        for (_, times) in &mut terms {
            *times *= sign;
        }
        Some((Self { terms, width: self.width }, sign))
    }
}

/// How far a comparison's operands are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Apart {
    /// Number of the sum.
    pub(crate) sum: u32,
    /// Whether that is the first operand less the second, rather than the other way round.
    pub(crate) is_first_less_second: bool,
}

/// How a step's result follows from a sum in front of it: `sign` times that and `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Derived {
    /// Number of the sum.
    pub(crate) sum: u32,
    pub(crate) sign: i8,
    pub(crate) offset: i128,
}

/// Whether a step takes one of two values, one of which its block makes as a difference or an opposite.
pub(crate) fn chooses(block: &[Step<'_>], step: &Step<'_>) -> bool {
    let instruction = &step.instruction;
    let is_plain = instruction.guard.is_none() && instruction.op.suffix == instruction.op.kind && !step.is_wild;
    let of = (instruction.op.head, &instruction.rest[..]);
    let (("min" | "max", [one, two]) | ("selp", [one, two, Operand::Register(_)])) = of else {
        return false;
    };
    let is_distance = |step: &Step<'_>| {
        let is_register = |operand: &Operand<'_>| matches!(operand, Operand::Register(_));
        match (step.instruction.op.head, &step.instruction.rest[..]) {
            ("neg", _) => true,
            ("add", [one, two]) => is_register(one) && is_register(two),
            // What is left of a number is a distance, too.
            ("sub", [_, two]) => is_register(two),
            _ => false,
        }
    };
    let is_written = step.writes.len() == 1 && step.writes[0] != u32::MAX;
    let is_made = |of: &Operand<'_>, step: &Step<'_>| matches!(of, Operand::Register(slot) if step.writes.contains(slot));
    // A distance and a number are one as well.
    let is_moved = |step: &Step<'_>, by: &Step<'_>| {
        let is_sum = by.instruction.op.sums().is_some();
        is_sum && matches!(&by.instruction.rest[..], [of, Operand::Number(_)] if is_made(of, step))
    };
    let is_made_of = |of: &Operand<'_>, step: &Step<'_>| is_made(of, step) || block.iter().any(|by| is_made(of, by) && is_moved(step, by));
    is_plain && is_written && block.iter().any(|step| is_distance(step) && (is_made_of(one, step) || is_made_of(two, step)))
}
