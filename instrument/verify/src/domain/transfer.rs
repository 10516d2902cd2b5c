//! Transfer functions: what an instruction makes of the values of its operands.

use crate::domain::affine::Affine;
use crate::domain::affine_transfer;
use crate::domain::arithmetic::{
    beyond, bits, convert, difference, multiple_and, predicate, product, quotient, rounded, saturated, select, shift, sum,
};
use crate::domain::interval::Interval;
use crate::domain::name::{LAUNCH, NO_NAME};
use crate::domain::value::{Assumption, Clock, Kind, Source, Value};
use crate::program::control_block::{ACTION_AT, CONTROL, FLAG, FLAG_AT, LAUNCH_AT};
use crate::program::instruction::{Instruction, Op, Operand, Order, type_of};

/// What the instruction puts into its n-th result, of that width. `by` is its number, for predicates.
pub(crate) fn result(instruction: &Instruction<'_>, nth: usize, width: u8, by: u32, source: &impl Source) -> Value {
    if width == 0 || width > 64 {
        return Value::unknown(64);
    }
    let mut value = result_or_none(instruction, nth, width, by, source).unwrap_or_else(|| Value::unknown(width));
    if width == 16 && is_opposite_of_least(instruction, &value, source) {
        return Value::unknown(width);
    }
    if nth == 0
        && width == 64
        && value.kind == Kind::Plain
        && let Some(form) = low_half(instruction, source)
    {
        value.kind = Kind::Wide(form);
    }
    if nth == 0
        && value.name == NO_NAME
        && value.form.is_none()
        && let Some(form) = affine_transfer::result(instruction, width, source)
    {
        let root = form.alone().and_then(|(name, _)| source.named(name)).map_or(Interval::full(width), |root| root.range);
        // An empty meet only means that this code is not reached.
        if let Some(range) = value.range.meet(form.range(root, width), width) {
            value.range = range;
        }
        // What is left where all names cancel out is a number.
        if form.parts().next().is_none() {
            return value;
        }
        // What is another value and nothing else is that value, and relates to the round's beginning as that does: names are of one width.
        match form.name() {
            Some(name) => {
                value.name = name;
                value.delta = value.delta.or_else(|| source.named(name)?.delta);
            }
            None => value.form = Some(form),
        }
    }
    value
}

fn result_or_none(instruction: &Instruction<'_>, nth: usize, width: u8, by: u32, source: &impl Source) -> Option<Value> {
    let Op { head, suffix, kind, .. } = instruction.op;
    let operand = |at: usize| instruction.rest.get(at).copied();
    if matches!(head, "ld" | "ldu") {
        return load(instruction, nth, width, source);
    }
    if instruction.op.compares.is_some() {
        return comparison(instruction, nth, by, source);
    }
    if nth > 0 || instruction.first.len() != 1 {
        return None;
    }
    let unary = |at: usize, of: u8| operand(at).map(|operand| source.value(operand, of));
    // A thread is one of those that it votes with: what holds for it holds for some.
    if head == "vote" && matches!(suffix, "sync.any.pred" | "any.pred") {
        return unary(0, 1).filter(|own| own.range.value(1).is_some_and(|holds| holds != 0)).map(|own| Value::of(own.range));
    }
    if suffix == "pred" {
        return predicate(head, &|at| unary(at, 1), by);
    }
    let (of, signed) = instruction.op.of?;
    if of > 64 || kind.starts_with('f') {
        return if head == "mov" && of <= 64 { unary(0, width) } else { None };
    }
    let plain = suffix == kind;
    let (a, b) = (|| unary(0, of), || unary(1, of));
    match head {
        "mov" if plain => match operand(0)? {
            Operand::Name(name) => Some(named_value(name, width, source.assumption())),
            Operand::NameAt(CONTROL, offset) => Some(Value::unknown(width).kind(Kind::Control(offset))),
            _ => unary(0, width),
        },
        "cvta" => {
            let address = match operand(0)? {
                Operand::Name(name) => named_value(name, of, source.assumption()),
                _ => a()?,
            };
            // Both lie in global memory. As an address of another space the same number means other bytes.
            let is_global = matches!(suffix, "global.u64" | "to.global.u64");
            (is_global && matches!(address.kind, Kind::Control(_) | Kind::OwnFlag)).then(|| Value::unknown(width).kind(address.kind))
        }
        "cvt" => convert(suffix, width, a()?, source, operand(0)?),
        "add" if plain => {
            let (a, b) = (a()?, b()?);
            // What the loop leaves alone is what is added, and the other what counts.
            let (a, b) = if source.is_fixed(operand(0)?) && !source.is_fixed(operand(1)?) { (b, a) } else { (a, b) };
            Some(rounded(&a, &b, of).or_else(|| rounded(&b, &a, of)).unwrap_or_else(|| sum(a, b, of)))
        }
        "sub" if plain => subtraction(instruction, of, source),
        "mul" if suffix.starts_with("lo.") => Some(product(a()?, b()?, of)),
        "mul" if suffix.starts_with("wide.") => {
            let widened = |value: Value| Value::of(value.range.as_integers(signed, of));
            let (first, second) = (widened(a()?), widened(b()?));
            (of * 2 == width).then(|| product(first, second, width))
        }
        "mad" if suffix.starts_with("lo.") && !suffix.contains("cc") => Some(multiple_and(a()?, b()?, unary(2, of)?, of, source)),
        "neg" if plain => Some(Value::of(a()?.range.times(-1, of))),
        "min" | "max" if plain => Some(extreme(head == "max", &a()?, &b()?, signed, of)),
        "and" | "or" | "xor" | "not" => {
            let value = bits(head, a()?, b(), of)?;
            let Kind::Low { of: low, bits } = value.kind else { return Some(value) };
            let near = || source.near(low, bits, of).and_then(|range| value.range.meet(range, of)).map(|range| Value { range, ..value });
            Some(source.alike(value.kind, of).or_else(near).unwrap_or(value))
        }
        "shl" | "shr" if plain => shift(head == "shl", a()?, unary(1, 32)?, signed, of),
        "rem" | "div" if plain => quotient(head == "div", &a()?, &b()?, signed, of),
        "selp" if plain => select(instruction, of, source),
        // The larger a number the fewer zeroes it begins with.
        "clz" => {
            let (range, zeroes) = (a()?.range.unsigned(of), |number: i128| i128::from(number.leading_zeros()) - 128 + i128::from(of));
            Some(Value::of(Interval::between(zeroes(range.hi), zeroes(range.lo), width)))
        }
        "popc" => Some(Value::of(Interval::between(0, 64, width))),
        "bfe" if plain && !signed => {
            let length = unary(2, 32)?.range.value(32)?;
            (length < 32).then(|| Value::of(Interval::between(0, (1 << length) - 1, of)))
        }
        _ => None,
    }
}

/// Whether it may be the opposite of -2^15, in 16 bits with a sign. Where that is compared ptxas takes it for 2^15: it
/// puts the sign in front before it takes the opposite, not after.
fn is_opposite_of_least(instruction: &Instruction<'_>, value: &Value, source: &impl Source) -> bool {
    const LEAST: i128 = -(1 << 15);
    let is_opposite = match (instruction.opcode, &instruction.rest[..]) {
        ("neg.s16", _) => true,
        ("sub.s16", [from, _]) => source.value(*from, 16).range.value(16) == Some(0),
        _ => false,
    };
    is_opposite && value.range.signed(16).lo <= LEAST
}

/// What `setp` and its kin put into their n-th result.
fn comparison(instruction: &Instruction<'_>, nth: usize, by: u32, source: &impl Source) -> Option<Value> {
    let (order, signed, of) = instruction.op.compares?;
    let [first, second, ..] = instruction.rest[..] else { return None };
    let (a, b) = (source.value(first, of), source.value(second, of));
    let same = a.name == b.name && a.name != NO_NAME;
    let known = if same { Some(matches!(order, Order::Eq | Order::Le | Order::Ge)) } else { a.range.compare(order, b.range, signed, of) };
    let range = known.map_or(Interval::full(1), |holds| Interval::constant(i128::from(holds ^ (nth == 1)), 1));
    // Whether a value is 0 that was made of a predicate.
    if let (Kind::Truth { by, not, a: one, b: two, apart }, Some(0), Order::Eq | Order::Ne) = (a.kind, b.range.value(of), order) {
        let not = not ^ (order == Order::Eq) ^ (nth == 1);
        return (nth < 2).then(|| Value::of(range).kind(Kind::Truth { by, not, a: one, b: two, apart }));
    }
    (nth < 2 && instruction.rest.len() == 2)
        .then(|| Value::of(range).kind(Kind::Truth { by, not: nth == 1, a: a.name, b: b.name, apart: NO_NAME }))
}

/// `sub`, of times too.
fn subtraction(instruction: &Instruction<'_>, of: u8, source: &impl Source) -> Option<Value> {
    let [minuend, subtrahend, ..] = instruction.rest[..] else { return None };
    let (first, second) = (source.value(minuend, of), source.value(subtrahend, of));
    // Of a start that no clock has shown, such as one that lies ahead, the distance says nothing of the time that has passed.
    if let (Kind::Clock(clock), Kind::Earlier(start)) = (first.kind, second.kind)
        && clock == start
        && source.is_fixed(subtrahend)
    {
        return Some(Value::of(Interval::between(i128::from(source.assumption().late) + 1, i128::from(i64::MAX), 64)));
    }
    let special = saturated(&first, &second, of, source).or_else(|| beyond(&first, &second, of));
    Some(special.unwrap_or_else(|| difference(first, second, of)))
}

/// `min` and `max`.
fn extreme(is_max: bool, one: &Value, two: &Value, signed: bool, of: u8) -> Value {
    let (a, b) = (one.range.as_integers(signed, of), two.range.as_integers(signed, of));
    let (lo, hi) = if is_max { (a.lo.max(b.lo), a.hi.max(b.hi)) } else { (a.lo.min(b.lo), a.hi.min(b.hi)) };
    let most = || u32::try_from(two.range.value(of)?).ok();
    let kind = match (is_max, signed) {
        (true, false) => Kind::Larger { a: one.name, b: two.name },
        (false, false) => most().filter(|_| one.name != NO_NAME).map_or(Kind::Plain, |most| Kind::Smaller { of: one.name, most }),
        _ => Kind::Plain,
    };
    let form = one.affine(of).zip(two.affine(of)).and_then(|(one, two)| one.join(two)).filter(|form| form.parts().next().is_some());
    Value { form, ..Value::of(Interval::between(lo, hi, of)).kind(kind) }
}

/// The lower half of what an instruction makes of 64 bits, as a sum of more than numbers.
fn low_half(instruction: &Instruction<'_>, source: &impl Source) -> Option<Affine> {
    let [a, b] = instruction.rest[..] else { return None };
    let kinds = ["s64", "u64", "b64"];
    let (head, suffix) = (instruction.op.head, instruction.op.suffix);
    if !matches!(head, "add" | "sub" | "mul") || !kinds.contains(&suffix.strip_prefix("lo.").unwrap_or(suffix)) {
        return None;
    }
    let (a, b) = (source.value(a, 64).low_half()?, source.value(b, 64).low_half()?);
    let form = match head {
        "add" => a.plus(b, 1)?,
        "sub" => a.plus(b, -1)?,
        _ => {
            let zero = Affine::constant(0, 32)?;
            match (a.number(), b.number()) {
                (_, Some(times)) => zero.plus(a, times)?,
                (Some(times), None) => zero.plus(b, times)?,
                _ => return None,
            }
        }
    };
    form.parts().next().is_some().then_some(form)
}

/// A name that is no register: a special register, or a symbol's address.
fn named_value(name: &str, width: u8, assumption: Assumption) -> Value {
    let between = |lo, hi| Value::of(Interval::between(lo, hi, width));
    match name {
        CONTROL => Value::unknown(width).kind(Kind::Control(0)),
        FLAG => Value::unknown(width).kind(Kind::OwnFlag),
        "%globaltimer" | "%clock64" if width == 64 => {
            let clock = if name == "%clock64" { Clock::Cycles } else { Clock::Nanoseconds };
            Value::unknown(64).kind(if assumption.late > 0 { Kind::Clock(clock) } else { Kind::Earlier(clock) })
        }
        "%tid.x" | "%tid.y" | "%tid.z" => between(0, 1023),
        "%ntid.x" | "%ntid.y" | "%ntid.z" => between(1, 1024),
        "%laneid" => between(0, 31),
        "WARP_SZ" => between(32, 32),
        "%ctaid.x" | "%ctaid.y" | "%ctaid.z" if width >= 32 => between(0, (1 << 31) - 1),
        "%nctaid.x" | "%nctaid.y" | "%nctaid.z" if width >= 32 => between(1, (1 << 31) - 1),
        _ => Value::unknown(width),
    }
}

fn load(instruction: &Instruction<'_>, nth: usize, width: u8, source: &impl Source) -> Option<Value> {
    let (mut narrow_scope, mut elsewhere, mut kind) = (false, false, "");
    for part in instruction.opcode.split('.').skip(1) {
        match part {
            // Blocks and clusters may be served from caches that the host's write does not reach.
            "cta" | "cluster" => narrow_scope = true,
            "shared" | "shared::cta" | "shared::cluster" | "local" | "const" | "param" | "param::entry" | "param::func" | "nc" => {
                elsewhere = true;
            }
            _ => kind = part,
        }
    }
    let (of, signed) = type_of(kind)?;
    if of > 64 || kind.starts_with('f') {
        return None;
    }
    let any = if of < width {
        let whole = Interval::full(of).as_integers(signed, of);
        Value::of(Interval::between(whole.lo, whole.hi, width))
    } else {
        Value::unknown(width)
    };
    if elsewhere || of != width {
        return Some(any);
    }
    let (base, offset) = match *instruction.rest.first()? {
        Operand::AtSymbol(CONTROL, offset) => (Kind::Control(0), offset),
        Operand::At(register, offset) => (source.value(Operand::Register(register), 64).kind, offset),
        _ => return Some(any),
    };
    let assumption = source.assumption();
    let at = offset.checked_add(i64::try_from(nth).ok()? * i64::from(of / 8))?;
    Some(match base {
        Kind::Control(base) => match (base.checked_add(at)?, of) {
            (ACTION_AT, 32) => {
                source.note_action();
                if assumption.trap { Value::of(Interval::constant(0, 32)) } else { any }
            }
            (FLAG_AT, 64) => any.kind(Kind::Flag),
            (LAUNCH_AT, 32) => any.named(LAUNCH),
            _ => any,
        },
        Kind::Flag
            if at == 0 && of == 32 && instruction.loads_anew() && !narrow_scope && assumption.asked && instruction.first.len() == 1 =>
        {
            any.named(LAUNCH)
        }
        _ => any,
    })
}
