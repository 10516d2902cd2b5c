//! Remainders of divisions by constants, which compilers turn into products.
//!
//! `x % d` becomes `x - d * q`. Here q is the upper half of `x * m`, shifted right; for a signed x, its sign bit is
//! added.
//!
//! Let n be the number of bits that the shift drops, and let `excess = m * d - 2^n`. The excess must not be negative.
//! Then `x * m / 2^n` is `x / d` plus `x * excess / 2^n` parts of 1/d. While these parts are less than 1/d, the
//! quotient's whole part is that of `x / d`.
//!
//! A negative quotient is rounded down. So a rest of the excess and an added one round it towards zero.

use crate::program::definitions::Definitions;
use crate::program::instruction::{Instruction, Op, Operand, Register};
use std::collections::BTreeMap;

/// How far behind a product its remainder is looked for, in statements.
const MOST_BEHIND: u32 = 32;

/// What a statement leaves over: of which register, divided by how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remainder {
    of: Register,
    by: i128,
    signed: bool,
}

/// What a register holds that is made of the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The upper half.
    Upper,
    /// 1 if that is negative, or else 0.
    Sign,
    /// The upper half, shifted by so much.
    Shifted(u32),
    /// That and the sign.
    Quotient(u32),
    /// The quotient, of that shift, times so much.
    Multiple(u32, i128),
}

impl Remainder {
    /// The instruction with the division that it stands for.
    pub(crate) fn instead_of(self, instruction: Instruction<'_>) -> Instruction<'_> {
        let opcode = if self.signed { "rem.s32" } else { "rem.u32" };
        let rest = vec![Operand::Register(self.of), Operand::Number(self.by)];
        Instruction { opcode, op: Op::new(opcode), rest, ..instruction }
    }
}

/// The statements of a function that leave remainders.
pub(crate) fn find(body: &Definitions<'_>) -> BTreeMap<u32, Remainder> {
    let mut found = BTreeMap::new();
    for at in 0..body.function.statements.len() as u32 {
        if matches!(body.code.opcode(at), "mul.hi.s32" | "mul.hi.u32") {
            found.extend(behind(body, at));
        }
    }
    found
}

/// The remainder that a product is made for, if it is. All that it is made of stands in one block, and is written nowhere else; so each time what
/// is read was made in the same passage, of the same x.
fn behind(body: &Definitions<'_>, product: u32) -> Option<(u32, Remainder)> {
    let alone = |instruction: &Instruction<'_>, statement: u32| match instruction.first[..] {
        [into] if instruction.guard.is_none() && body.writers(into) == [statement] && body.registers.width(into) == 32 => Some(into),
        _ => None,
    };
    let first = body.plain(product);
    let signed = first.opcode == "mul.hi.s32";
    let [Operand::Register(of), Operand::Number(factor)] = first.rest[..] else { return None };
    if !matches!(first.opcode, "mul.hi.s32" | "mul.hi.u32") || body.registers.width(of) != 32 {
        return None;
    }
    let factor = if signed { factor } else { factor.rem_euclid(1 << 32) };
    let mut parts = vec![(alone(&first, product)?, Part::Upper)];
    let end = body.graph.blocks[body.block_of(product) as usize].end.min(product + MOST_BEHIND);
    if !body.writers_between(of, product..product + 1).is_empty() {
        return None;
    }
    for statement in product + 1..end {
        let instruction = body.plain(statement);
        let part = |nth: usize| match instruction.rest.get(nth) {
            Some(Operand::Register(register)) => parts.iter().find(|(known, _)| known == register).map(|(_, part)| *part),
            _ => None,
        };
        let number = |nth: usize| match instruction.rest.get(nth) {
            Some(Operand::Number(number)) => Some(*number),
            _ => None,
        };
        let quotient = |part: Option<Part>| match part? {
            Part::Quotient(shift) => Some(shift),
            Part::Upper if !signed => Some(0),
            Part::Shifted(shift) if !signed => Some(shift),
            _ => None,
        };
        let shifted = |part: Option<Part>| match part? {
            Part::Upper => Some(0),
            Part::Shifted(shift) => Some(shift),
            _ => None,
        };
        let is_of = |nth: usize| instruction.rest.get(nth) == Some(&Operand::Register(of));
        let left = |shift: u32, by: i128| divides(factor, shift, by, signed).then_some((statement, Remainder { of, by, signed }));
        let new = match (instruction.opcode, part(0), part(1)) {
            ("shr.u32", Some(Part::Upper), None) if signed && number(1) == Some(31) => Some(Part::Sign),
            ("shr.s32", Some(Part::Upper), None) if signed => number(1).and_then(|by| u32::try_from(by).ok()).map(Part::Shifted),
            ("shr.u32", Some(Part::Upper), None) if !signed => number(1).and_then(|by| u32::try_from(by).ok()).map(Part::Shifted),
            ("add.s32", one, Some(Part::Sign)) => shifted(one).map(Part::Quotient),
            ("add.s32", Some(Part::Sign), two) => shifted(two).map(Part::Quotient),
            ("mul.lo.s32", one, None) => quotient(one).zip(number(1)).map(|(shift, by)| Part::Multiple(shift, by)),
            ("sub.s32", None, Some(Part::Multiple(shift, by))) if is_of(0) && instruction.guard.is_none() => return left(shift, by),
            ("mad.lo.s32", one, None) if is_of(2) && instruction.guard.is_none() => return left(quotient(one)?, -number(1)?),
            _ => None,
        };
        if let (Some(new), Some(into)) = (new, alone(&instruction, statement)) {
            parts.push((into, new));
        }
        if !body.writers_between(of, statement..statement + 1).is_empty() {
            return None;
        }
    }
    None
}

/// Whether the upper half of a product with this factor, shifted so far, is the quotient of a division, for any 32
/// bits.
fn divides(factor: i128, shift: u32, by: i128, signed: bool) -> bool {
    let bits = if signed { 31 } else { 32 };
    if shift >= bits || !(2..1 << 31).contains(&by) || !(1..1 << bits).contains(&factor) {
        return false;
    }
    let whole = 1_i128 << (32 + shift);
    let excess = factor * by - whole;
    // The largest is 2^31 - 1, or 2^32 - 1, and the least -2^31, which may come to one d-th, since it is rounded down.
    if signed { excess > 0 && excess << 31 <= whole } else { excess >= 0 && excess * ((1 << 32) - 1) < whole }
}

#[cfg(test)]
mod tests {
    use super::divides;

    /// What is made instead of the quotient.
    fn made(x: i128, factor: i128, shift: u32, signed: bool) -> i128 {
        ((x * factor) >> (32 + shift)) + i128::from(signed && x < 0)
    }

    /// Numbers at which a quotient that is wrong anywhere is wrong: the ends, and the neighbours of multiples next to these.
    fn telling(by: i128, signed: bool) -> impl Iterator<Item = i128> {
        let (lo, hi) = if signed { (-(1_i128 << 31), (1 << 31) - 1) } else { (0, (1 << 32) - 1) };
        let near = |end: i128| (end / by - 2..=end / by + 2).flat_map(move |times| (-1..=1).map(move |more| times * by + more));
        near(lo).chain(near(hi)).chain(near(0)).chain([lo, hi]).filter(move |x| (lo..=hi).contains(x))
    }

    #[test]
    fn a_factor_divides_where_each_telling_number_is_divided_right() {
        let mut right = 0;
        for signed in [false, true] {
            for by in (2..600).chain([641, 1000, 6_700_417, 65_537, 1 << 20, (1 << 31) - 1]) {
                for shift in 0..20 {
                    let least = (1_i128 << (32 + shift)) / by;
                    for factor in least - 1..=least + 3 {
                        let is_right = telling(by, signed).all(|x| made(x, factor, shift, signed) == x / by);
                        let fits = (1..1 << if signed { 31 } else { 32 }).contains(&factor);
                        assert_eq!(divides(factor, shift, by, signed), is_right && fits, "{by} by {factor} and {shift}, signed: {signed}");
                        right += u32::from(is_right && fits);
                    }
                }
            }
        }
        assert!(right > 1000, "{right}");
    }
}
