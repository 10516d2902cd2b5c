//! Arithmetic on abstract values, which the transfer functions are made of.

use crate::domain::affine_transfer;
use crate::domain::delta::{Delta, FAR, Term};
use crate::domain::interval::Interval;
use crate::domain::name::NO_NAME;
use crate::domain::value::{Kind, Pair, Source, Value};
use crate::program::instruction::{Instruction, Operand, type_of};

pub(crate) fn sum(a: Value, b: Value, width: u8) -> Value {
    let mut value = Value::of(a.range.add(b.range, width));
    // Of two that relate to a register, the one that is no constant is the counter.
    value.delta = match (a.delta, b.delta) {
        (Some(delta), _) if a.range.lo != a.range.hi || b.delta.is_none() => delta.add(a.range, b.range, width),
        (_, Some(delta)) => delta.add(b.range, a.range, width),
        _ => None,
    };
    let offset = |address: Value, added: Value| match (address.kind, added.range.value(width)) {
        (Kind::Control(at), Some(added)) => {
            i64::try_from(Interval::constant(added, width).signed(width).lo).ok().and_then(|added| at.checked_add(added)).map(Kind::Control)
        }
        _ => None,
    };
    value.kind = offset(a, b).or_else(|| offset(b, a)).unwrap_or(Kind::Plain);
    value
}

/// `a * b + c`. Where the product is a multiple of a named value, and a number, the relation to that is kept.
pub(crate) fn multiple_and(a: Value, b: Value, c: Value, width: u8, source: &impl Source) -> Value {
    let multiple = product(a, b, width);
    let mut value = sum(multiple, c, width);
    let related = || {
        let delta = c.delta.filter(|delta| delta.term.is_none() && multiple.delta.is_none())?;
        let form = affine_transfer::multiple(a.affine(width)?, b.affine(width)?, width)?;
        let (name, times) = form.alone()?;
        let root = source.named(name)?.range.unsigned(width);
        let (one, other) = (root.lo * i128::from(times), root.hi * i128::from(times));
        let (lo, hi) = (one.min(other) + i128::from(form.lo), one.max(other) + i128::from(form.hi));
        // Then the product, read as signed, is that sum of integers.
        let whole = Interval::full(width).signed(width);
        let added = (lo >= whole.lo && hi <= whole.hi).then(|| Interval::between(lo, hi, width))?;
        let Delta { unsigned, signed, .. } = delta.add(c.range, added, width)?;
        let term = Term { name, times: times.into(), lo: i64::try_from(root.lo).ok()?, hi: i64::try_from(root.hi).ok()? };
        Some(Delta { unsigned, signed, term: Some(term), ..delta.moved(form.lo.into(), form.hi.into()) })
    };
    value.delta = related().or(value.delta);
    value
}

/// `max(x, b) - b`, which is x - b, or 0 if that is negative.
pub(crate) fn saturated(a: &Value, b: &Value, width: u8, source: &impl Source) -> Option<Value> {
    let Kind::Larger { a: one, b: two } = a.kind else { return None };
    let name = match b.name {
        NO_NAME => return None,
        name if name == one => two,
        name if name == two => one,
        _ => return None,
    };
    let (larger, less) = (a.range.unsigned(width), b.range.unsigned(width));
    let x = source.named(name);
    let most = x.map_or(larger.hi, |x| x.range.unsigned(width).hi).min(larger.hi);
    let value = Value::of(Interval::between((larger.lo - less.hi).max(0), (most - less.lo).max(0), width));
    // If the difference is not 0, neither is x.
    let delta = x.and_then(|x| x.unless_zero()).filter(|delta| delta.unsigned).map(Delta::plain);
    let Some(delta) = delta else { return Some(value) };
    let related = taken(delta, b, width, source);
    Some(value.kind(Kind::Saturated(related, Pair { from: name, taken: b.name })))
}

/// `x - min(x, n)` of unsigned values, which is x - n, or 0 if that is negative.
pub(crate) fn beyond(a: &Value, b: &Value, width: u8) -> Option<Value> {
    let Kind::Smaller { of, most } = b.kind else { return None };
    if a.name == NO_NAME || a.name != of {
        return None;
    }
    let most = i128::from(most);
    let value = Value::of(Interval::between(0, (a.range.unsigned(width).hi - most).max(0), width));
    let delta = a.unless_zero().filter(|delta| delta.unsigned).map(Delta::plain);
    let Some(delta) = delta else { return Some(value) };
    Some(value.kind(Kind::Saturated(Delta { signed: false, ..delta.moved(-most, -most) }, Pair::NONE)))
}

/// How `a - b` relates to a register if `a` does so, and the difference, of unsigned values, does not wrap round.
pub(crate) fn taken(delta: Delta, b: &Value, width: u8, source: &impl Source) -> Delta {
    let less = b.range.unsigned(width);
    // Where what is taken away is a multiple of a named value, and a number, the relation to that is kept.
    let term = b.affine(width).and_then(|form| {
        let (name, times) = form.alone().filter(|(_, times)| *times > 0)?;
        let root = source.named(name)?.range.unsigned(width);
        let (lo, hi) = (root.lo * i128::from(times) + i128::from(form.lo), root.hi * i128::from(times) + i128::from(form.hi));
        let fits = lo >= 0 && hi <= Interval::full(width).hi.min(i128::from(FAR));
        fits.then_some((form, Term { name, times: -i64::from(times), lo: root.lo as i64, hi: root.hi as i64 }))
    });
    match term {
        Some((form, term)) => Delta { term: Some(term), signed: false, ..delta.moved(-i128::from(form.hi), -i128::from(form.lo)) },
        None => Delta { signed: false, ..delta.moved(-less.hi, -less.lo) },
    }
}

pub(crate) fn difference(a: Value, b: Value, width: u8) -> Value {
    if a.name == b.name && a.name != NO_NAME {
        return Value::of(Interval::constant(0, width));
    }
    let range = match affine_transfer::cut(&a, &b) {
        Some(lost) => masked(a.range.unsigned(width), lost, width),
        None => a.range.sub(b.range, width),
    };
    let mut value = Value::of(range);
    let negated = b.range.signed(width).times(-1, width);
    // The least signed number has no opposite.
    if b.range.signed(width).lo > Interval::full(width).signed(width).lo {
        value.delta = a.delta.and_then(|delta| delta.add(a.range, negated, width));
    }
    value
}

/// `-x + (x & (2^n - 1))`, which is -x without its lowest bits.
pub(crate) fn rounded(a: &Value, b: &Value, width: u8) -> Option<Value> {
    let Kind::Low { of, bits } = b.kind else { return None };
    let opposite = (a.moved()?.opposite() == of).then(|| a.range.times(-1, width).unsigned(width))?;
    Some(Value::of(masked(opposite, i64::from(bits), width).times(-1, width)))
}

/// A value times a number.
fn times(a: &Value, factor: i128, width: u8) -> Value {
    let mut value = Value::of(a.range.times(factor, width));
    let from = a.range.unsigned(width);
    // It is x + x * (factor - 1).
    if let Some(delta) = a.delta
        && factor > 0
        && from.hi.checked_mul(factor).is_some_and(|most| most <= Interval::full(width).hi)
    {
        let delta = delta.plain();
        let moved = delta.moved(from.lo * (factor - 1), from.hi * (factor - 1));
        value.delta = delta.unsigned.then_some(Delta { signed: false, ..moved });
    }
    value
}

pub(crate) fn product(a: Value, b: Value, width: u8) -> Value {
    match (a.range.value(width), b.range.value(width)) {
        (_, Some(factor)) => times(&a, Interval::constant(factor, width).signed(width).lo, width),
        (Some(factor), _) => times(&b, Interval::constant(factor, width).signed(width).lo, width),
        _ => {
            let (a, b) = (a.range.unsigned(width), b.range.unsigned(width));
            let range = match a.hi.checked_mul(b.hi) {
                Some(hi) => Interval::between(a.lo * b.lo, hi, width),
                None => Interval::full(width),
            };
            Value::of(range)
        }
    }
}

pub(crate) fn predicate(head: &str, operand: &dyn Fn(usize) -> Option<Value>, by: u32) -> Option<Value> {
    let a = operand(0)?;
    let known = a.range.value(1);
    match head {
        "mov" => Some(a),
        "not" => Some(opposite(&a)),
        "and" | "or" | "xor" => {
            let b = operand(1)?;
            let other = b.range.value(1);
            // `xor` with a predicate that is known is the other one, or its opposite. Compilers ask for a value's lowest bit so.
            if head == "xor"
                && let Some((one, flips)) = other.map(|flips| (a, flips)).or(known.map(|flips| (b, flips)))
            {
                return Some(if flips == 0 { one } else { opposite(&one) });
            }
            // What decides alone: 0 for `and`, 1 for `or`.
            let decides = i128::from(head != "and");
            let range = match (known, other) {
                (Some(a), Some(b)) => Interval::constant(if head == "and" { a & b } else { a | b }, 1),
                (Some(one), None) | (None, Some(one)) if head != "xor" && one == decides => Interval::constant(decides, 1),
                _ => Interval::full(1),
            };
            Some(Value::of(range).kind(Kind::Truth { by, not: false, a: a.name, b: b.name, apart: NO_NAME }))
        }
        _ => None,
    }
}

/// The opposite of a predicate.
fn opposite(of: &Value) -> Value {
    let kind = match of.kind {
        Kind::Truth { by, not, a, b, apart } => Kind::Truth { by, not: !not, a, b, apart },
        other => other,
    };
    Value::of(of.range.value(1).map_or(Interval::full(1), |value| Interval::constant(1 - value, 1))).kind(kind)
}

pub(crate) fn bits(head: &str, a: Value, b: Option<Value>, width: u8) -> Option<Value> {
    let whole = Interval::full(width).hi;
    if head == "not" {
        // The opposite less one.
        return Some(Value::of(a.range.times(-1, width).add(Interval::constant(-1, width), width)));
    }
    let b = b?;
    if a.name == b.name && a.name != NO_NAME {
        return Some(if head == "xor" { Value::of(Interval::constant(0, width)) } else { a });
    }
    if let (Some(x), Some(y)) = (a.range.value(width), b.range.value(width)) {
        let value = match head {
            "and" => x & y,
            "or" => x | y,
            _ => x ^ y,
        };
        return Some(Value::of(Interval::constant(value, width)));
    }
    let (one, two) = (a, b);
    let (a, b) = (a.range.unsigned(width), b.range.unsigned(width));
    if head == "and" {
        let (of, from, mask) = if a.lo == a.hi { (two.moved(), b, a.lo) } else { (one.moved(), a, b.lo) };
        // Bits that are never set can be asked about, too.
        let below = (mask & -mask) - 1;
        let never = mask > 0 && from.lo & below == 0 && i128::from(from.step) & below == 0;
        let asked = if never { mask | below } else { mask };
        if a.lo == a.hi || b.lo == b.hi {
            if let Some(lost) = affine_transfer::low_bits(mask, from, width) {
                return Some(Value::of(masked(from, lost, width)));
            }
            if asked & (asked + 1) == 0
                && asked < from.hi
                && let Ok(bits) = u32::try_from(asked)
            {
                let kind = of.map_or(Kind::Plain, |of| Kind::Low { of, bits });
                let step = if never { below.unsigned_abs() as u64 + 1 } else { 1 };
                let size = asked + 1;
                // Between two multiples of 2^n the lowest bits rise with the value.
                let range = if i128::from(from.step) % size == 0 {
                    Interval::constant(from.lo.rem_euclid(size), width)
                } else if from.lo.div_euclid(size) == from.hi.div_euclid(size) {
                    Interval::strided(from.lo.rem_euclid(size), from.hi.rem_euclid(size), from.step.max(1), width)
                } else {
                    Interval::strided(0, mask, step, width)
                };
                return Some(Value::of(range).kind(kind));
            }
        }
    }
    // All bits up to the highest that may be set.
    let mask = |hi: i128| (1_i128 << (128 - hi.leading_zeros())) - 1;
    Some(Value::of(match head {
        "and" => {
            let (value, bits) = if a.lo == a.hi { (two, a.lo) } else { (one, b.hi) };
            if (a.lo == a.hi || b.lo == b.hi) && bits & (bits + 1) == 0 && value.range.unsigned(width).hi <= bits {
                // Nothing is taken away.
                return Some(value);
            }
            Interval::between(0, a.hi.min(b.hi), width)
        }
        "or" => Interval::between(a.lo.max(b.lo), mask(a.hi.max(b.hi)).min(whole), width),
        _ => Interval::between(0, mask(a.hi.max(b.hi)).min(whole), width),
    }))
}

/// A value of this range without its lowest bits.
fn masked(from: Interval, lost: i64, width: u8) -> Interval {
    let step = i128::from(lost) + 1;
    let down = |value: i128| value.div_euclid(step) * step;
    Interval::strided(down(from.lo), down(from.hi), step.unsigned_abs() as u64, width)
}

pub(crate) fn shift(left: bool, a: Value, amount: Value, signed: bool, width: u8) -> Option<Value> {
    let amount = amount.range.unsigned(32);
    if left {
        if amount.hi >= i128::from(width) {
            return None;
        }
        if amount.lo == amount.hi {
            return Some(times(&a, 1 << amount.lo, width));
        }
        let from = a.range.unsigned(width);
        let fits = from.hi << amount.hi <= Interval::full(width).hi;
        return fits.then(|| Value::of(Interval::between(from.lo << amount.lo, from.hi << amount.hi, width)));
    }
    let from = a.range.as_integers(signed, width);
    if from.lo < 0 {
        return None;
    }
    // ptxas takes a number modulo 2^16 where 16 bits are shifted.
    let least = if width == 16 && amount.hi >= 1 << 16 { 0 } else { amount.lo };
    let (least, most) = (least.min(127), amount.hi.min(127));
    let mut value = Value::of(Interval::between(from.lo >> most, from.hi >> least, width));
    // What is lost, x - (x >> n), does not fall as x grows, nor as n does.
    value.delta = lessened(&a, (from.lo - (from.lo >> least), from.hi - (from.hi >> most)), from.lo, signed, width);
    Some(value)
}

/// How something relates to a register that is a value less so much at least and at most. `least` is the value's least, as an integer.
fn lessened(a: &Value, lost: (i128, i128), least: i128, signed: bool, width: u8) -> Option<Delta> {
    let delta = a.delta?;
    let (unsigned, as_signed) = (delta.unsigned && a.range.unsigned(width).lo == least, delta.signed && signed);
    (unsigned || as_signed).then_some(Delta { unsigned, signed: as_signed, ..delta.moved(-lost.1, -lost.0) })
}

/// What a division by a number that is positive leaves over, or what it gives if the other number is not negative.
pub(crate) fn quotient(divides: bool, a: &Value, b: &Value, signed: bool, width: u8) -> Option<Value> {
    let (from, by) = (a.range.as_integers(signed, width), b.range.as_integers(signed, width));
    // Division by zero gives all ones.
    if by.lo < 1 || divides && from.lo < 0 {
        return None;
    }
    if !divides {
        // What is left has the sign of what is divided, and is no farther from zero.
        let most = by.hi - 1;
        return Some(Value::of(Interval::between(from.lo.clamp(-most, 0), from.hi.clamp(0, most), width)));
    }
    let mut value = Value::of(Interval::between(from.lo / by.hi, from.hi / by.lo, width));
    // What is lost, x - x / n, does not fall as x grows, nor as n does.
    value.delta = lessened(a, (from.lo - from.lo / by.lo, from.hi - from.hi / by.hi), from.lo, signed, width);
    Some(value)
}

pub(crate) fn convert(suffix: &str, width: u8, value: Value, source: &impl Source, operand: Operand<'_>) -> Option<Value> {
    let (to, from) = suffix.split_once('.')?;
    let ((to, _), (from, signed)) = (type_of(to)?, type_of(from)?);
    if to > 64 || from > 64 || suffix.contains('f') || width != to {
        return None;
    }
    // Unknown if the register is wider than what is read of it.
    let held = value;
    let value = if let Operand::Register(_) = operand { source.value(operand, 0) } else { value };
    let narrow = Interval::between(0, 0, from).add(value.range, from).as_integers(signed, from);
    let strided = |of: Interval, width: u8| Interval::constant(0, width).add(of, width);
    // Of a register of 64 bits whose lower half is read, the value of that name is not that half: what is said of it is not said of the half.
    // What is a number on some way may be a sum on all.
    let sum = || held.affine(32).filter(|form| form.parts().next().is_some()).or_else(|| held.of_names());
    let low = if (from, to) == (32, 64) { sum() } else { None };
    // What is not negative and has that sum as its lower half is widened once: see `affine::widened`.
    let is_plain = low.is_some_and(|low| low.lo == low.hi) && narrow.lo >= 0;
    let alike =
        low.filter(|_| is_plain).and_then(|low| source.alike(Kind::Wide(low), 64)).filter(|held| held.range.unsigned(64).hi < 1 << 32);
    Some(alike.unwrap_or_else(|| Value {
        delta: converted(&held, (from, signed), to),
        ..Value::of(strided(narrow, to)).kind(low.map_or(Kind::Plain, Kind::Wide))
    }))
}

/// How what a conversion makes of a value relates to a register: as the value does, where both are the same integer.
fn converted(value: &Value, (from, signed): (u8, bool), to: u8) -> Option<Delta> {
    let is_kept = |as_signed: bool| {
        let (own, whole) = (value.range.as_integers(as_signed, from), Interval::full(to).as_integers(as_signed, to));
        // What is widened is read with or without its sign.
        let is_read_so = to <= from || as_signed == signed || value.range.signed(from).lo >= 0;
        is_read_so && whole.lo <= own.lo && own.hi <= whole.hi
    };
    let delta = value.delta?.plain();
    let delta = Delta { unsigned: delta.unsigned && is_kept(false), signed: delta.signed && is_kept(true), ..delta };
    (delta.unsigned || delta.signed).then_some(delta)
}

pub(crate) fn select(instruction: &Instruction<'_>, width: u8, source: &impl Source) -> Option<Value> {
    let operand = |at: usize| instruction.rest.get(at).copied();
    let (a, b) = (source.value(operand(0)?, width), source.value(operand(1)?, width));
    let chosen_by = source.value(operand(2)?, 1);
    match chosen_by.range.value(1) {
        Some(0) => Some(b),
        Some(_) => Some(a),
        None => {
            // Nothing more can be learned of a number.
            let chosen = |at: usize, holds: bool| match operand(at)? {
                Operand::Number(_) => Some(if at == 0 { a } else { b }),
                of => source.value_if(operand(2)?, holds, of, width),
            };
            match (chosen(0, true), chosen(1, false)) {
                (Some(a), Some(b)) => {
                    let is_zero = |value: &Value| value.range.value(width).map(|value| value == 0);
                    let kind = match (is_zero(&a), is_zero(&b)) {
                        (Some(false), Some(true)) => chosen_by.kind,
                        (Some(true), Some(false)) => opposite(&chosen_by).kind,
                        _ => Kind::Plain,
                    };
                    let joined = a.join(&b, width, NO_NAME);
                    Some(if matches!(kind, Kind::Truth { .. }) { joined.kind(kind) } else { joined })
                }
                (one, other) => one.or(other),
            }
        }
    }
}
