//! What `ptxas` takes for a loop's counter: a register to which each iteration adds the same number. It has dropped
//! copies by then, and folded what it knows, such as a product with one.

use crate::domain::interval::Interval;
use crate::domain::transfer::result;
use crate::domain::value::{Source, Value, bits};
use crate::interpret::body::Body;
use crate::program::instruction::{Instruction, Operand, Register, spaces};

/// Most statements of an iteration between a counter and its next value.
const MOST_COPIES: usize = 8;

/// Numbers that tell what an instruction adds.
const TRIED: [i128; 4] = [5, -3, 0x1234_5678_9abc_def0, 1 << 31];

/// A loop's counter.
pub(crate) struct Counter {
    /// What it may be where the loop is entered.
    pub(crate) start: Interval,
    /// What an iteration adds to it.
    pub(crate) step: Interval,
}

/// A loop in its function.
pub(crate) struct Looped<'l, 'a> {
    pub(crate) body: &'l Body<'a>,
    pub(crate) blocks: &'l [u32],
}

impl<'a> Looped<'_, 'a> {
    pub(crate) fn holds(&self, block: u32) -> bool {
        self.blocks.binary_search(&block).is_ok()
    }

    /// Statements of the loop that write a register.
    pub(crate) fn writers(&self, register: Register) -> impl Iterator<Item = u32> + Clone {
        self.body.writers(register).iter().copied().filter(|writer| self.holds(self.body.block_of(*writer)))
    }

    pub(crate) fn only_writer(&self, register: Register) -> Option<u32> {
        let mut writers = self.writers(register);
        writers.next().filter(|_| writers.next().is_none())
    }

    /// The counter that a register is in a comparison of so many bits, or that it was made of in the same iteration.
    pub(crate) fn counter(&self, tested: Operand<'a>, width: u8) -> Option<Counter> {
        let Operand::Register(mut register) = tested else { return None };
        for _ in 0..MOST_COPIES {
            if let Some(counter) = self.moved(register, width) {
                return Some(counter);
            }
            (register, _) = self.added(self.only_writer(register)?, width)?;
        }
        None
    }

    /// How a register moves that an iteration makes of itself.
    fn moved(&self, register: Register, width: u8) -> Option<Counter> {
        // Statements that each writer makes it of, the last one first, with the register that each reads.
        let mut step: Option<Interval> = None;
        let mut start: Option<Interval> = None;
        for writer in self.writers(register) {
            let (mut at, mut by) = (writer, Interval::constant(0, width));
            let mut chain: Vec<(Register, u32)> = Vec::new();
            loop {
                let (base, added) = self.added(at, width)?;
                by = by.add(added, width);
                chain.push((base, at));
                if base == register {
                    break;
                }
                at = self.only_writer(base).filter(|_| chain.len() < MOST_COPIES)?;
            }
            step = Some(step.map_or(by, |step| step.add(by, width)));
            start =
                Some(start.map_or_else(|| self.start(&chain, writer, width), |start| start.join(self.start(&chain, writer, width), width)));
        }
        Some(Counter { start: start?, step: step? })
    }

    /// What the registers of a chain of statements hold where the loop is entered: those that are read before they are written.
    fn start(&self, chain: &[(Register, u32)], last: u32, width: u8) -> Interval {
        let written = |nth: usize| chain.get(nth + 1).map_or(last, |(_, writer)| *writer);
        let is_carried = |(nth, (_, reader)): &(usize, &(Register, u32))| self.body.order(*reader) <= self.body.order(written(*nth));
        let carried = chain.iter().enumerate().filter(is_carried).map(|(_, (register, _))| self.entered_with(*register));
        carried.reduce(|one, other| one.join(other, width)).unwrap_or(Interval::full(width))
    }

    /// The register of so many bits that a statement adds a number to, and the number.
    fn added(&self, statement: u32, width: u8) -> Option<(Register, Interval)> {
        let made = self.body.decode(statement);
        let has_width = |register: Register| self.body.registers.width(register) == width;
        if !self.is_sure(&made, statement) || made.first.len() != 1 || !has_width(made.first[0]) {
            return None;
        }
        let mut others = made.rest.iter().filter(|operand| !self.keeps(**operand, 0));
        let Operand::Register(of) = *others.next()? else { return None };
        let is_once = others.clone().next().is_none();
        if !has_width(of) || others.any(|other| *other != Operand::Register(of)) {
            return None;
        }
        let number = match (made.op.head, made.op.sums(), &made.rest[..]) {
            (_, Some(sign), &[Operand::Register(base), added]) if is_once && base == of => {
                self.value(added, statement, width).times(sign.into(), width)
            }
            (_, Some(1), &[added, Operand::Register(base)]) if is_once && base == of => self.value(added, statement, width),
            (_, Some(_), _) => return None,
            // A product that is not known here may be known to ptxas.
            ("mad", _, &[_, _, Operand::Register(base)]) if is_once && base == of && made.op.suffix.starts_with("lo.") => {
                self.folded(&made, (of, statement), width).unwrap_or(Interval::full(width))
            }
            _ => self.folded(&made, (of, statement), width)?,
        };
        Some((of, number))
    }

    /// Whether a statement's guard lets it always take effect.
    fn is_sure(&self, made: &Instruction<'a>, at: u32) -> bool {
        made.guard.is_none_or(|(predicate, when)| {
            predicate.is_some_and(|predicate| self.body.value_at(predicate, at).range.value(1) == Some(i128::from(when)))
        })
    }

    /// What an instruction adds to a register, if that is the same whatever the register holds.
    fn folded(&self, made: &Instruction<'a>, (of, at): (Register, u32), width: u8) -> Option<Interval> {
        let added = |tried: &i128| {
            let held = Interval::constant(*tried, width);
            let made = result(made, 0, width, u32::MAX, &Tried { looped: self, of, held, at });
            made.range.value(width).map(|value| Interval::constant(value - tried, width))
        };
        let mut all = TRIED.iter().map(added);
        let first = all.next()??;
        all.all(|other| other == Some(first)).then_some(first)
    }

    /// Whether an operand is the same in each iteration as far as ptxas can tell when it looks for counters.
    pub(crate) fn keeps(&self, operand: Operand<'a>, depth: usize) -> bool {
        let register = match operand {
            Operand::Number(_) => return true,
            Operand::Register(register) if depth < MOST_COPIES => register,
            _ => return false,
        };
        let Some(writer) = self.writers(register).next() else { return true };
        let made = self.body.decode(writer);
        let is_number = |operand: &Operand<'a>| match operand {
            Operand::Register(of) => {
                let width = self.body.registers.width(*of);
                self.keeps(*operand, depth + MOST_COPIES / 2) && self.value(*operand, writer, width).value(width).is_some()
            }
            other => matches!(other, Operand::Number(_)),
        };
        let is_made_again = match made.op.head {
            "mov" => made.rest.iter().all(|operand| self.keeps(*operand, depth + 1)),
            "ld" => spaces(made.opcode).any(|space| matches!(space, "param" | "const")),
            "atom" | "call" | "shfl" | "vote" | "match" => false,
            _ => !made.rest.is_empty() && made.rest.iter().all(is_number),
        };
        is_made_again && made.guard.is_none() && made.first == [register] && self.only_writer(register).is_some()
    }

    /// What an operand is in front of a statement of the loop.
    pub(crate) fn value(&self, operand: Operand<'_>, at: u32, width: u8) -> Interval {
        match operand {
            Operand::Number(number) => Interval::immediate(number, width),
            Operand::Register(register) if self.body.registers.width(register) != width => Interval::full(width),
            Operand::Register(register) if self.writers(register).next().is_none() => self.entered_with(register),
            Operand::Register(register) => self.body.value_at(register, at).range,
            _ => Interval::full(width),
        }
    }

    /// What a register is where the loop begins.
    fn entered_with(&self, register: Register) -> Interval {
        self.body.before(register, self.blocks, &|block| self.holds(block)).range
    }
}

/// An instruction's operands, one register of which holds a number that is tried.
struct Tried<'t, 'l, 'a> {
    looped: &'t Looped<'l, 'a>,
    of: Register,
    held: Interval,
    at: u32,
}

impl Source for Tried<'_, '_, '_> {
    fn value(&self, operand: Operand<'_>, width: u8) -> Value {
        match operand {
            Operand::Register(register) if register == self.of => Value::of(self.held),
            _ => Value::of(self.looped.value(operand, self.at, bits(width))),
        }
    }
}
