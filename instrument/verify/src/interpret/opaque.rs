//! Opaque registers: those of which nothing can be known. They are loaded from memory other than the control block,
//! read from a clock, or made of such values in ways that set no bound. Most of a poll's own code is about them. A
//! proof without them costs a fraction.
//!
//! A register that some instruction writes so is opaque, with two exceptions. A register that the flag is read or
//! compared through is followed. Assembly polls use few registers, and use them for several things. A register that a
//! branch bounds is followed too, as in `if (units < most)`: a compiler that does not optimise copies it first.

use crate::program::control_block::CONTROL;
use crate::program::instruction::{Instruction, Operand, Order, Register};

/// Most looks at all instructions. What is not found to be blank by then is followed.
const MOST_LOOKS: usize = 8;

/// Registers by slot.
struct Opaque<F> {
    slot_of: F,
    unknown: Vec<bool>,
    /// What the flag is asked by.
    asked_by: Vec<bool>,
    /// What is compared with a number for which is more.
    bounded: Vec<bool>,
}

/// The registers that something can be known of, sorted.
pub(crate) fn known(
    slots: &[(Register, u8)],
    slot_of: impl Fn(Register) -> Option<u32>,
    decoded: &[(u32, Instruction<'_>)],
) -> Vec<Register> {
    let none = || vec![false; slots.len()];
    let mut found = Opaque { slot_of, unknown: none(), asked_by: none(), bounded: none() };
    found.find_asked(decoded);
    found.find_bounded(decoded);
    for _ in 0..MOST_LOOKS {
        let mut changed = false;
        for (_, instruction) in decoded {
            if found.says_something(instruction) {
                continue;
            }
            for slot in instruction.first.iter().filter_map(|register| (found.slot_of)(*register)) {
                changed |= !found.asked_by[slot as usize] && !std::mem::replace(&mut found.unknown[slot as usize], true);
            }
        }
        if !changed {
            break;
        }
    }
    let mut known: Vec<Register> =
        slots.iter().zip(&found.unknown).filter(|(_, blank)| !**blank).map(|((register, _), _)| *register).collect();
    known.sort_unstable();
    known
}

impl<F: Fn(Register) -> Option<u32>> Opaque<F> {
    /// Whether nothing can be known of a register.
    fn holds(&self, register: Register) -> bool {
        (self.slot_of)(register).is_none_or(|slot| self.unknown[slot as usize])
    }

    /// Whether branches bound a register.
    fn is_bounded(&self, register: Register) -> bool {
        (self.slot_of)(register).is_some_and(|slot| self.bounded[slot as usize])
    }

    /// Finds the registers that hold words of the control block, the flag, or what these are compared to, somewhere.
    fn find_asked(&mut self, decoded: &[(u32, Instruction<'_>)]) {
        for _ in 0..MOST_LOOKS {
            let mut changed = false;
            for (_, instruction) in decoded {
                let is_asked = |register: Register| (self.slot_of)(register).is_some_and(|slot| self.asked_by[slot as usize]);
                let of_such = |operand: &Operand<'_>| matches!(operand, Operand::Register(register) if is_asked(*register));
                let asks = match (instruction.op.head, instruction.rest.first()) {
                    ("ld", Some(Operand::AtSymbol(CONTROL, offset))) => matches!(offset, 0..24),
                    ("ld", Some(Operand::At(register, 0))) => is_asked(*register),
                    ("setp" | "vote", _) => instruction.rest.iter().any(of_such),
                    ("and" | "or" | "xor" | "not", _) if instruction.op.suffix == "pred" => instruction.rest.iter().any(of_such),
                    _ => false,
                };
                for slot in instruction.first.iter().filter(|_| asks).filter_map(|register| (self.slot_of)(*register)) {
                    changed |= !std::mem::replace(&mut self.asked_by[slot as usize], true);
                }
            }
            if !changed {
                break;
            }
        }
    }

    /// Finds the registers that are compared with numbers.
    fn find_bounded(&mut self, decoded: &[(u32, Instruction<'_>)]) {
        for (_, instruction) in decoded {
            if let (Some((Order::Lt | Order::Le | Order::Gt | Order::Ge, ..)), [Operand::Register(register), Operand::Number(_)]) =
                (instruction.op.compares, &instruction.rest[..])
                && let Some(slot) = (self.slot_of)(*register)
            {
                self.bounded[slot as usize] = true;
            }
        }
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
                Some(operand) => known(operand) || instruction.first.iter().any(|register| self.is_bounded(*register)),
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
