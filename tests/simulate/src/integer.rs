//! Integer arithmetic, as the PTX manual defines it. Values come with any upper bits and leave extended as their type says.

use crate::program::Pure;
use crate::types::{Kind, Type, mask};
use std::sync::Arc;

#[expect(clippy::unnecessary_wraps, reason = "the tables below hold what is simulated and what is not")]
fn pure(function: impl Fn(&[u64; 4]) -> u64 + Send + Sync + 'static) -> Option<Pure> {
    Some(Arc::new(function))
}

/// The instruction's function of its operands, or `None` for an instruction that is not simulated.
pub(crate) fn function(opcode: &str, modifiers: &[&str], ty: Type) -> Option<Pure> {
    let has = |word: &str| modifiers.contains(&word);
    let extend = move |value: u64| ty.extend(value);
    if matches!(opcode, "not" | "and" | "or" | "xor") {
        return bitwise(opcode, ty);
    }
    if ty.kind == Kind::Predicate {
        return None;
    }
    match opcode {
        "add" if has("sat") => pure(move |v| ty.clamp(ty.wide(v[0]) + ty.wide(v[1]))),
        "sub" if has("sat") => pure(move |v| ty.clamp(ty.wide(v[0]) - ty.wide(v[1]))),
        "add" => pure(move |v| extend(v[0].wrapping_add(v[1]))),
        "sub" => pure(move |v| extend(v[0].wrapping_sub(v[1]))),
        "mul" | "mad" => product(opcode == "mad", modifiers, ty),
        "mul24" | "mad24" if has("lo") => {
            let third = u64::from(opcode == "mad24");
            let part = Type { bits: 24, ..ty };
            pure(move |v| extend(((part.wide(v[0]) * part.wide(v[1])) as u64).wrapping_add(v[2] * third)))
        }
        "sad" => pure(move |v| extend(((ty.wide(v[0]) - ty.wide(v[1])).unsigned_abs() as u64).wrapping_add(v[2]))),
        // What a division by zero gives is not defined; hardware gives all ones.
        "div" => pure(move |v| extend(ty.wide(v[0]).checked_div(ty.wide(v[1])).map_or(u64::MAX, |value| value as u64))),
        "rem" => pure(move |v| extend(ty.wide(v[0]).checked_rem(ty.wide(v[1])).map_or(v[0], |value| value as u64))),
        "abs" => pure(move |v| extend(ty.signed(v[0]).unsigned_abs())),
        "neg" => pure(move |v| extend(v[0].wrapping_neg())),
        "min" => pure(move |v| ty.wide(v[0]).min(ty.wide(v[1])) as u64),
        "max" => pure(move |v| ty.wide(v[0]).max(ty.wide(v[1])) as u64),
        "popc" => pure(move |v| u64::from((v[0] & ty.mask()).count_ones())),
        "clz" => pure(move |v| u64::from((v[0] & ty.mask()).leading_zeros() - (64 - ty.bits))),
        "bfind" => find_first(ty, has("shiftamt")),
        "brev" => pure(move |v| (v[0] & ty.mask()).reverse_bits() >> (64 - ty.bits)),
        "cnot" => pure(move |v| u64::from(v[0] & ty.mask() == 0)),
        "shl" => pure(move |v| shift_left(v[0], v[1] & 0xffff_ffff, ty)),
        "shr" => pure(move |v| shift_right(v[0], v[1] & 0xffff_ffff, ty)),
        "shf" => funnel(has("l"), has("wrap")),
        "bfe" => pure(move |v| extract(v[0], v[1] as u32 & 255, v[2] as u32 & 255, ty)),
        "bfi" => pure(move |v| insert(v[0], v[1], v[2] as u32 & 255, v[3] as u32 & 255, ty)),
        "bmsk" => field_mask(has("wrap")),
        "prmt" if ty.bits == 32 => permute(modifiers),
        "lop3" => pure(|v| lookup(v[0], v[1], v[2], v[3])),
        "selp" => pure(move |v| extend(if v[2] & 1 == 1 { v[0] } else { v[1] })),
        "mov" => pure(move |v| extend(v[0])),
        _ => None,
    }
}

fn field_mask(wraps: bool) -> Option<Pure> {
    pure(move |v| {
        let (from, count) = (v[0] as u32, v[1] as u32);
        let (from, count) = if wraps { (from & 31, count & 31) } else { (from, count) };
        if from >= 32 { 0 } else { mask(count.min(32)) << from & mask(32) }
    })
}

fn bitwise(opcode: &str, ty: Type) -> Option<Pure> {
    match opcode {
        "not" => pure(move |v| !v[0] & ty.mask()),
        "and" => pure(move |v| v[0] & v[1] & ty.mask()),
        "or" => pure(move |v| (v[0] | v[1]) & ty.mask()),
        "xor" => pure(move |v| (v[0] ^ v[1]) & ty.mask()),
        _ => None,
    }
}

fn product(adds: bool, modifiers: &[&str], ty: Type) -> Option<Pure> {
    let third = move |v: &[u64; 4]| if adds { v[2] } else { 0 };
    // The unsigned product of 64-bit factors needs all 128 bits.
    let full = move |v: &[u64; 4]| ty.wide(v[0]).wrapping_mul(ty.wide(v[1]));
    let saturates = modifiers.contains(&"sat");
    match modifiers.iter().find(|word| matches!(**word, "lo" | "hi" | "wide")) {
        Some(&"lo") => pure(move |v| ty.extend((full(v) as u64).wrapping_add(third(v)))),
        Some(&"hi") if saturates => pure(move |v| ty.clamp((full(v) >> ty.bits) + ty.wide(third(v)))),
        Some(&"hi") => pure(move |v| ty.extend((((full(v) as u128) >> ty.bits) as u64).wrapping_add(third(v)))),
        Some(&"wide") if ty.bits < 64 => pure(move |v| ty.twice().extend((full(v) as u64).wrapping_add(third(v)))),
        _ => None,
    }
}

fn find_first(ty: Type, distance: bool) -> Option<Pure> {
    pure(move |v| {
        let value = if ty.is_signed() && ty.signed(v[0]) < 0 { !v[0] } else { v[0] } & ty.mask();
        match value {
            0 => 0xffff_ffff,
            _ if distance => u64::from(value.leading_zeros() - (64 - ty.bits)),
            _ => u64::from(value.ilog2()),
        }
    })
}

fn shift_left(value: u64, by: u64, ty: Type) -> u64 {
    if by >= u64::from(ty.bits) { 0 } else { ty.extend(value << by) }
}

fn shift_right(value: u64, by: u64, ty: Type) -> u64 {
    if ty.is_signed() {
        (ty.signed(value) >> by.min(u64::from(ty.bits) - 1)) as u64
    } else if by >= u64::from(ty.bits) {
        0
    } else {
        (value & ty.mask()) >> by
    }
}

/// `shf`: 32 bits of two words side by side, the first one lower.
fn funnel(left: bool, wraps: bool) -> Option<Pure> {
    pure(move |v| {
        let both = (v[1] & mask(32)) << 32 | v[0] & mask(32);
        let by = if wraps { v[2] & 31 } else { (v[2] & mask(32)).min(32) };
        let moved = if left { both.checked_shl(by as u32).unwrap_or(0) >> 32 } else { both >> by };
        moved & mask(32)
    })
}

fn extract(value: u64, from: u32, count: u32, ty: Type) -> u64 {
    let top = ty.bits - 1;
    let value = value & ty.mask();
    let sign = if !ty.is_signed() || count == 0 { 0 } else { value >> (from + count - 1).min(top) & 1 };
    let field = if from > top { 0 } else { value >> from & mask(count) };
    let known = count.min(ty.bits.saturating_sub(from));
    // Above the field, and above the top of the value, stands the sign.
    let sign_bits = if sign == 1 { !mask(known) } else { 0 };
    ty.extend(field & mask(known) | sign_bits)
}

fn insert(field: u64, value: u64, from: u32, count: u32, ty: Type) -> u64 {
    let place = if from >= 64 { 0 } else { mask(count) << from } & ty.mask();
    let field = if from >= 64 { 0 } else { field << from };
    value & ty.mask() & !place | field & place
}

fn lookup(a: u64, b: u64, c: u64, table: u64) -> u64 {
    (0..8).filter(|row| table >> row & 1 == 1).fold(0, |found, row| {
        let pick = |value: u64, bit: u32| if row >> bit & 1 == 1 { value } else { !value };
        found | pick(a, 2) & pick(b, 1) & pick(c, 0)
    }) & mask(32)
}

fn permute(modifiers: &[&str]) -> Option<Pure> {
    const MODES: [&str; 6] = ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"];
    let mode = MODES.iter().position(|mode| modifiers.contains(mode));
    pure(move |v| {
        let both = (v[1] & mask(32)) << 32 | v[0] & mask(32);
        let byte = |at: u64| both >> (8 * (at & 7)) & 0xff;
        let low = v[2] & 3;
        let select = |nth: u64| match mode {
            None => {
                let chosen = v[2] >> (4 * nth) & 15;
                let value = byte(chosen);
                if chosen & 8 == 0 { value } else { 0xff * (value >> 7) }
            }
            Some(0) => byte(low + nth),
            Some(1) => byte(low.wrapping_sub(nth)),
            Some(2) => byte(low),
            Some(3) => byte(nth.max(low)),
            Some(4) => byte(nth.min(low)),
            Some(_) => byte(2 * (low & 1) + (nth & 1)),
        };
        (0..4).fold(0, |word, nth| word | select(nth) << (8 * nth))
    })
}

/// The comparison that `setp` and `set` make; floats are compared elsewhere.
pub(crate) fn compare(order: &str, ty: Type) -> Option<Pure> {
    let unsigned = Type { kind: Kind::Unsigned, ..ty };
    let with = move |ty: Type, test: fn(i128, i128) -> bool| pure(move |v| u64::from(test(ty.wide(v[0]), ty.wide(v[1]))));
    match order {
        "eq" => with(ty, |a, b| a == b),
        "ne" => with(ty, |a, b| a != b),
        "lt" => with(ty, |a, b| a < b),
        "le" => with(ty, |a, b| a <= b),
        "gt" => with(ty, |a, b| a > b),
        "ge" => with(ty, |a, b| a >= b),
        "lo" => with(unsigned, |a, b| a < b),
        "ls" => with(unsigned, |a, b| a <= b),
        "hi" => with(unsigned, |a, b| a > b),
        "hs" => with(unsigned, |a, b| a >= b),
        _ => None,
    }
}
