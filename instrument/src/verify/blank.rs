//! Registers that nothing can be known of: what was loaded from anywhere but the control block, read from a clock, or made of such values in
//! ways that set no bound. Most of a poll's own code is about these; a proof that does without them costs a fraction.

use super::instruction::{Instruction, Operand, Register};
use super::value::CONTROL;

/// Most looks at all instructions. What is not found to be blank by then is followed.
const MOST_LOOKS: usize = 8;

/// Registers by slot.
struct Blank<F> {
    slot_of: F,
    blank: Vec<bool>,
}

/// The registers that something can be known of, sorted.
pub(super) fn known(
    slots: &[(Register, u8)],
    slot_of: impl Fn(Register) -> Option<u32>,
    decoded: &[(u32, Instruction<'_>)],
) -> Vec<Register> {
    let mut found = Blank { slot_of, blank: vec![false; slots.len()] };
    for _ in 0..MOST_LOOKS {
        let mut changed = false;
        for (_, instruction) in decoded {
            if found.says_something(instruction) {
                continue;
            }
            for slot in instruction.first.iter().filter_map(|register| (found.slot_of)(*register)) {
                changed |= !std::mem::replace(&mut found.blank[slot as usize], true);
            }
        }
        if !changed {
            break;
        }
    }
    let mut known: Vec<Register> =
        slots.iter().zip(&found.blank).filter(|(_, blank)| !**blank).map(|((register, _), _)| *register).collect();
    known.sort_unstable();
    known
}

impl<F: Fn(Register) -> Option<u32>> Blank<F> {
    /// Whether nothing can be known of a register.
    fn holds(&self, register: Register) -> bool {
        (self.slot_of)(register).is_none_or(|slot| self.blank[slot as usize])
    }

    /// Whether something can be known of an instruction's result.
    fn says_something(&self, instruction: &Instruction<'_>) -> bool {
        let known = |operand: &Operand<'_>| match operand {
            Operand::Register(register) => !self.holds(*register),
            _ => true,
        };
        let registers = || instruction.rest.iter().filter(|operand| matches!(operand, Operand::Register(_)));
        let (head, suffix) = (instruction.op.head, instruction.op.suffix);
        match head {
            "mov" => match instruction.rest.first() {
                Some(Operand::Name(name)) => *name == CONTROL || name.starts_with('%') && !matches!(*name, "%globaltimer" | "%clock64"),
                Some(operand) => known(operand),
                None => false,
            },
            "ld" | "ldu" => match instruction.rest.first() {
                // The action, the launch's number and the pointer to the flag.
                Some(Operand::AtSymbol(CONTROL, offset)) => matches!(offset, 0..24),
                Some(Operand::At(register, _)) => !self.holds(*register),
                _ => false,
            },
            "setp" => registers().any(known),
            "vote" => instruction.rest.first().is_some_and(known),
            "min" | "max" => instruction.rest.iter().any(known),
            "selp" => instruction.rest.iter().take(2).all(known) || instruction.rest.last().is_some_and(known),
            "and" | "or" | "xor" if suffix == "pred" => registers().any(known),
            "and" => registers().any(known),
            // What a division leaves over is less than what it is by.
            "rem" => matches!(instruction.rest.get(1), Some(Operand::Number(_))) || instruction.rest.iter().all(known),
            "or" | "xor" | "not" | "add" | "sub" | "mul" | "mad" | "shl" | "shr" | "neg" | "cvt" | "cvta" | "div" | "bfe" => {
                instruction.rest.iter().all(known)
            }
            _ => false,
        }
    }
}
