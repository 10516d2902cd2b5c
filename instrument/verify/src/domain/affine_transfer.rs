//! Transfer functions for affine forms.

use crate::domain::affine::Affine;
use crate::domain::interval::Interval;
use crate::domain::value::{Kind, Source, Value};
use crate::program::instruction::{Instruction, Op, Operand};

/// An operand's value as a sum; that of a register whose value is a number is the number.
fn operand(of: Operand<'_>, width: u8, source: &impl Source) -> Option<Affine> {
    source.value(of, width).affine(width)
}

/// What the instruction's result is as a sum. Only for instructions with one result.
pub(crate) fn result(instruction: &Instruction<'_>, width: u8, source: &impl Source) -> Option<Affine> {
    let Op { head, suffix, kind, .. } = instruction.op;
    if head == "cvt" && width == 32 && matches!(suffix, "u32.u64" | "s32.s64" | "u32.s64" | "s32.u64") {
        return match source.value(*instruction.rest.first()?, 64).kind {
            Kind::Wide(form) => Some(form),
            _ => None,
        };
    }
    if head == "mul" && width == 64 && matches!(suffix, "wide.u32" | "wide.s32") {
        return widened(instruction, suffix == "wide.s32", source);
    }
    let low = suffix.strip_prefix("lo.");
    let (of, _) = instruction.op.of.filter(|_| low.unwrap_or(suffix) == kind)?;
    if of != width || kind.starts_with('f') || instruction.first.len() != 1 || !matches!(width, 16 | 32 | 64) {
        return None;
    }
    let value = |nth: usize| instruction.rest.get(nth).map(|of| source.value(*of, width));
    let sum = |nth: usize| operand(*instruction.rest.get(nth)?, width, source);
    let zero = || Affine::constant(0, width);
    match (head, low.is_some()) {
        ("add", false) => sum(0)?.plus(sum(1)?, 1),
        ("sub", false) => sum(0)?.plus(sum(1)?, -1),
        ("neg", false) => zero()?.plus(sum(0)?, -1),
        ("not", false) => Affine::constant(-1, width)?.plus(sum(0)?, -1),
        ("mul" | "mad", true) => {
            let product = multiple(sum(0)?, sum(1)?, width)?;
            if head == "mul" { Some(product) } else { product.plus(sum(2)?, 1) }
        }
        ("shl", false) => {
            let by = source.value(*instruction.rest.get(1)?, 32).range.unsigned(32);
            if by.lo == by.hi && by.lo < 31 {
                return zero()?.plus(sum(0)?, 1 << by.lo);
            }
            // At least as much as by the least.
            let most = value(0)?.range.unsigned(width).hi;
            let shifted = (by.hi < 31).then(|| most.checked_mul(1 << by.hi))?.filter(|shifted| *shifted <= Interval::full(width).hi)?;
            zero()?.plus(sum(0)?, 1 << by.lo)?.plus_range(0, i64::try_from(shifted - (most << by.lo)).ok()?)
        }
        // A multiple of 2^n without its n lowest bits.
        ("shr", false) if kind.starts_with(['u', 'b']) => {
            let by = source.value(*instruction.rest.get(1)?, 32).range.value(32).filter(|by| *by < 31)?;
            let of = sum(0)?;
            of.shifted(u32::try_from(by).ok()?, source.named(of.alone()?.0)?.range, width)
        }
        // What a mask of high bits takes away is less than its lowest bit.
        ("and", false) => {
            let (a, b) = (value(0)?, value(1)?);
            let (of, mask) = if a.range.value(width).is_some() { (b, a) } else { (a, b) };
            let lost = low_bits(mask.range.value(width)?, of.range, width)?;
            of.affine(width)?.plus_range(-lost, 0)
        }
        _ => None,
    }
}

/// The product of a sum and a number.
pub(crate) fn multiple(a: Affine, b: Affine, width: u8) -> Option<Affine> {
    let zero = Affine::constant(0, width)?;
    match (a.number(), b.number()) {
        (_, Some(times)) => zero.plus(a, times),
        (Some(times), None) => zero.plus(b, times),
        _ => None,
    }
}

/// A product of 64 bits of 32 bits and a number, if some register holds the same 32 bits with zeroes in front.
///
/// Let a register of 64 bits be less than 2^32, and let its lower half be the same sum as the factor. A sum modulo 2^32
/// has one value if its offset is one number. So the register is the factor as an unsigned integer. A factor that is
/// not negative is the same as a signed one. Then the product is that many times the register, modulo 2^64.
fn widened(instruction: &Instruction<'_>, signed: bool, source: &impl Source) -> Option<Affine> {
    let [factor, Operand::Number(times)] = instruction.rest[..] else { return None };
    let factor = source.value(factor, 32);
    let low = factor.affine(32).filter(|form| form.lo == form.hi && form.parts().next().is_some())?;
    let held = source.alike(Kind::Wide(low), 64).filter(|held| held.range.unsigned(64).hi < 1 << 32)?;
    let is_same = !signed || factor.range.signed(32).lo >= 0;
    let times = if signed { times } else { times.rem_euclid(1 << 32) };
    Affine::constant(0, 64)?.plus(Affine::of(held.name).filter(|_| is_same)?, i64::try_from(times).ok()?)
}

/// For a mask of all bits but the lowest, as far as a value of this range has bits: those, as a number.
pub(crate) fn low_bits(mask: i128, of: Interval, width: u8) -> Option<i64> {
    let lost = (mask & -mask) - 1;
    let whole = mask | lost;
    (mask > 0 && whole & (whole + 1) == 0 && of.unsigned(width).hi <= whole && lost < 1 << 16).then_some(lost as i64)
}

/// For `x - (x & (2^n - 1))`: the lowest bits, as a number. Instead of x there may be more of its lowest bits.
pub(crate) fn cut(a: &Value, b: &Value) -> Option<i64> {
    let Kind::Low { of, bits } = b.kind else { return None };
    let is_more = matches!(a.kind, Kind::Low { of: same, bits: more } if same == of && more >= bits);
    (is_more || a.moved() == Some(of)).then_some(i64::from(bits))
}
