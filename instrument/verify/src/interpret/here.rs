//! Values of operands in front of a step, as the transfer functions ask for them.

use crate::domain::affine::Affine;
use crate::domain::interval::Interval;
use crate::domain::name::{NO_NAME, Name};
use crate::domain::state::State;
use crate::domain::value::{Assumption, Kind, Moved, Source, Value};
use crate::interpret::pass::Pass;
use crate::program::instruction::Operand;

/// Values in front of a step.
pub(crate) struct Here<'p, 'a, 's> {
    pub(crate) pass: &'p Pass<'p, 'a>,
    pub(crate) state: &'s State,
}

impl Source for Here<'_, '_, '_> {
    fn value(&self, operand: Operand<'_>, width: u8) -> Value {
        match operand {
            Operand::Register(slot) => {
                let (_, own) = self.pass.slice.slots[slot as usize];
                if width != 0 && own != width || own == 0 || own > 64 {
                    Value::unknown_of(width)
                } else {
                    self.state.get(slot).copied().unwrap_or_else(|| Value::unknown(own))
                }
            }
            Operand::Number(value) if width != 0 => Value::of(Interval::immediate(value, width)),
            _ => Value::unknown_of(width),
        }
    }

    fn is_fixed(&self, operand: Operand<'_>) -> bool {
        match operand {
            Operand::Number(_) => true,
            Operand::Register(slot) => self.pass.fixed[slot as usize],
            _ => false,
        }
    }

    fn assumption(&self) -> Assumption {
        self.pass.assumption
    }

    fn note_action(&self) {
        self.pass.asks_action.set(true);
    }

    fn value_if(&self, predicate: Operand<'_>, holds: bool, operand: Operand<'_>, width: u8) -> Option<Value> {
        let slot = match predicate {
            Operand::Register(slot) => Some(slot),
            _ => None,
        };
        let Some(slot) = slot else { return Some(self.value(operand, width)) };
        let mut state = self.state.clone();
        self.pass.refine(&mut state, slot, holds, 0).then(|| Here { pass: self.pass, state: &state }.value(operand, width))
    }

    fn named(&self, name: Name) -> Option<Value> {
        self.state.named(name, self.pass.slice)
    }

    fn near(&self, of: Moved, bits: u32, width: u8) -> Option<Interval> {
        let form =
            |of: Moved| Affine::constant(of.offset.into(), width)?.plus(self.state.form_of(of.name)?, if of.negative { -1 } else { 1 });
        let own = form(of)?;
        self.state.iter().find_map(|(slot, held)| {
            let Kind::Low { of: other, bits: same } = held.kind else { return None };
            if same != bits || self.pass.slice.slots[slot as usize].1 != width {
                return None;
            }
            let (sign, offset) = own.relative_to(&form(other)?)?;
            // Modulo 2^n the lowest bits of both lie as far from each other as the values.
            let count = bits.count_ones() as u8;
            let range =
                held.range.unsigned(width).times(sign.into(), count).add(Interval::constant(offset.into(), count), count).unsigned(count);
            Some(Interval::strided(range.lo, range.hi, range.step, width))
        })
    }

    fn alike(&self, kind: Kind, width: u8) -> Option<Value> {
        let held = self.state.iter().find(|(slot, held)| held.kind == kind && self.pass.slice.slots[*slot as usize].1 == width);
        held.map(|(_, held)| *held).filter(|held| held.name != NO_NAME)
    }
}
