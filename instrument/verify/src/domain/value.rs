//! What is known of a register's value, and what an instruction makes of it.

use crate::domain::arithmetic::{beyond, bits, convert, difference, predicate, product, quotient, rounded, saturated, select, shift, sum};
use crate::program::instruction::{Instruction, Op, Operand, type_of};
use crate::domain::affine::{self, Linear};
use crate::domain::interval::{Order, Range};
use crate::domain::delta::Since;

/// Stands for a value: two registers with the same name, other than [`NOBODY`], hold the same value. The name of an instruction's result
/// means that of its latest execution.
pub(crate) type Name = u32;

/// No name.
pub(crate) const NOBODY: Name = 0;
/// The number of the launch: the word at offset 8 of the control block, which does not change during a launch.
pub(crate) const LAUNCH: Name = 1;
/// Part of the names of values of an earlier passage: see [`crate::domain::state::State::age`].
pub(crate) const AGED: Name = 1 << 31;
/// The first name that is free.
pub(crate) const FIRST_NAME: Name = 16;

/// The name of that number, or nobody's if there are too many.
pub(crate) fn name_of(number: u64) -> Name {
    Name::try_from(number).ok().filter(|name| *name < AGED).unwrap_or(NOBODY)
}

/// The control block's symbol, and where in it its words lie (docs/ABI.md).
pub(crate) const CONTROL: &str = "cuinstr_control_v1";
const ACTION_AT: i64 = 4;
pub(crate) const FLAG_AT: i64 = 16;
const LAUNCH_AT: i64 = 8;
/// The words there that whoever stops may write: when the launch began, and the record, up to the block's end.
pub(crate) const START_AT: i64 = 32;
pub(crate) const OWN_RECORD_AT: i64 = 72;
/// The word that the flag's pointer points to until a host says otherwise.
pub(crate) const FLAG: &str = "cuinstr_flag_v1";

/// Longest that a loop which only a clock ends may take, in nanoseconds or clock cycles.
pub(crate) const MOST_TICKS: u64 = 1_000_000_000;

/// What is known of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) range: Range,
    pub(crate) name: Name,
    pub(crate) kind: Kind,
    pub(crate) since: Option<Since>,
    /// The value as a sum of named ones, if it is more than its own name.
    pub(crate) form: Option<Linear>,
}

/// What a value stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// Address of the control block plus so many bytes.
    Control(i64),
    /// The pointer to the flag, as it lies in the control block.
    Flag,
    /// Address of the flag that stands beside the control block. A host may have another one, so it is no flag to ask.
    OwnFlag,
    /// A clock, read since the loop's current round began.
    Clock(Clock),
    /// What a clock showed at some time before.
    Earlier(Clock),
    /// Result of a comparison or of `and.pred` and `or.pred`: instruction of the slice, whether it is negated, names of the two operands and
    /// of their difference. Of a value that is no predicate: that it is not 0.
    Truth {
        by: u32,
        not: bool,
        a: Name,
        b: Name,
        apart: Name,
    },
    /// The lowest bits of a value: `of & bits`, where `bits` is 2^n - 1.
    Low {
        of: Moved,
        bits: u32,
    },
    /// The larger of two unsigned values.
    Larger {
        a: Name,
        b: Name,
    },
    /// The smaller of an unsigned value and a number.
    Smaller {
        of: Name,
        most: u32,
    },
    /// An unsigned difference, or 0 if it would be negative: if it is not 0, it relates so to the register.
    Saturated(Since, Pair),
    /// 64 bits, the lower half of which is this sum.
    Wide(Linear),
}

/// A clock that advances while a thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    /// `%globaltimer`
    Nanoseconds,
    /// `%clock64`
    Cycles,
}

/// Two named values: what was taken from what. They may be nobody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) from: Name,
    pub(crate) taken: Name,
}

impl Pair {
    pub(crate) const NONE: Self = Self { from: NOBODY, taken: NOBODY };
}

/// The value of that name, or its opposite, and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) name: Name,
    pub(crate) negative: bool,
    pub(crate) offset: i64,
}

impl Moved {
    /// The sign and the number with which another multiple of the same named value makes this one.
    pub(crate) fn relative_to(self, other: Self) -> (i64, i64) {
        let sign = if self.negative == other.negative { 1 } else { -1 };
        (sign, self.offset.wrapping_sub(other.offset.wrapping_mul(sign)))
    }

    /// The opposite.
    pub(crate) fn opposite(self) -> Self {
        Self { negative: !self.negative, offset: -self.offset, ..self }
    }
}

/// What a round is looked at under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Assumption {
    /// The flag holds the launch's number, from some moment on.
    pub(crate) asked: bool,
    /// Clocks have gone on for longer than so many ticks since anything before the loop; 0 if nothing is assumed of clocks.
    pub(crate) late: u64,
    /// The action is `trap`.
    pub(crate) trap: bool,
}

impl Value {
    pub(crate) fn unknown(width: u8) -> Self {
        Self::of(Range::full(width))
    }

    pub(crate) fn of(range: Range) -> Self {
        Self { range, name: NOBODY, kind: Kind::Plain, since: None, form: None }
    }

    pub(crate) fn named(self, name: Name) -> Self {
        Self { name, ..self }
    }

    pub(crate) fn kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// What holds of both; `name` is for the case that they differ.
    pub(crate) fn join(&self, other: &Self, width: u8, name: Name) -> Self {
        Self {
            range: self.range.join(other.range, width),
            name: if self.name == other.name && self.name != NOBODY { self.name } else { name },
            kind: match (self.kind, other.kind) {
                (Kind::Plain, Kind::Plain) => self.or_zero(other, width).map_or(Kind::Plain, |since| Kind::Saturated(since, Pair::NONE)),
                (one, other) if one == other => one,
                (Kind::Saturated(..), _) | (_, Kind::Saturated(..)) => {
                    let joined = self.unless_zero().zip(other.unless_zero()).and_then(|(one, other)| one.join(other));
                    joined.or_else(|| self.or_zero(other, width)).map_or(Kind::Plain, |since| Kind::Saturated(since, Pair::NONE))
                }
                _ => Kind::Plain,
            },
            since: self.since.zip(other.since).and_then(|(a, b)| a.join(b)),
            form: if self.form == other.form && self.name == other.name {
                self.form
            } else {
                let joined = |a: Option<Linear>, b: Option<Linear>| a.zip(b).and_then(|(a, b)| a.join(b));
                let of_both = joined(self.linear(width), other.linear(width)).filter(|joined| joined.parts().next().is_some());
                // What is a number on some way may be a sum on all.
                of_both.or_else(|| joined(self.of_names(), other.of_names()))
            },
        }
    }

    /// If one of both is 0: how the other relates to a register.
    fn or_zero(&self, other: &Self, width: u8) -> Option<Since> {
        match (self.range.value(width), other.range.value(width)) {
            (Some(0), _) => other.unless_zero(),
            (_, Some(0)) => self.unless_zero(),
            _ => None,
        }
    }

    /// The lower half of 64 bits as a sum.
    fn low_half(&self) -> Option<Linear> {
        match (self.kind, self.range.value(64)) {
            (_, Some(number)) => Linear::constant(number, 32),
            (Kind::Wide(form), None) => Some(form),
            _ => None,
        }
    }

    /// How the value relates to a register if it is not 0.
    pub(crate) fn unless_zero(&self) -> Option<Since> {
        match self.kind {
            Kind::Saturated(since, _) => Some(since),
            _ => self.since,
        }
    }

    /// The value as a sum of named ones, though it may be known as a number.
    pub(crate) fn of_names(&self) -> Option<Linear> {
        self.form.or_else(|| Linear::of(self.name))
    }

    /// The value as a sum of named ones, or a number.
    pub(crate) fn linear(&self, width: u8) -> Option<Linear> {
        match self.range.value(width) {
            Some(number) => Linear::constant(number, width),
            None => self.form.or_else(|| Linear::of(self.name)),
        }
    }

    /// The value as one named value and a number; none if it has no name.
    pub(crate) fn moved(&self) -> Option<Moved> {
        let root = self.form.filter(|form| form.lo == form.hi).and_then(|form| {
            let (name, times) = form.alone().filter(|(_, times)| times.unsigned_abs() == 1)?;
            Some(Moved { name, negative: times < 0, offset: form.lo })
        });
        root.or((self.name != NOBODY).then_some(Moved { name: self.name, negative: false, offset: 0 }))
    }

    /// Restricts by a comparison with another value; false if nothing is left.
    pub(crate) fn restrict(&mut self, order: Order, other: Range, signed: bool, width: u8) -> bool {
        self.range.restrict(order, other, signed, width).is_some_and(|range| self.settle(range, width))
    }

    /// Restricts to a set of values; false if nothing is left.
    pub(crate) fn meet(&mut self, other: Range, width: u8) -> bool {
        self.range.meet(other, width).is_some_and(|range| self.settle(range, width))
    }

    fn settle(&mut self, range: Range, width: u8) -> bool {
        self.range = range;
        if let Kind::Saturated(since, _) = self.kind
            && range.unsigned(width).lo > 0
        {
            self.since = Some(since);
            self.kind = Kind::Plain;
        }
        true
    }
}

/// Where values come from while instructions are followed.
pub(crate) trait Source {
    /// The operand's value. A register of another width is unknown; width 0 takes a register as it is.
    fn value(&self, operand: Operand<'_>, width: u8) -> Value;
    /// Whether the operand keeps its value throughout the loop.
    fn is_fixed(&self, operand: Operand<'_>) -> bool;
    /// What is assumed.
    fn assumption(&self) -> Assumption;
    /// Notes that the action is asked for.
    fn note_action(&self);
    /// The operand's value if the predicate holds, or does not; none if it can't.
    fn value_if(&self, predicate: Operand<'_>, holds: bool, operand: Operand<'_>, width: u8) -> Option<Value>;
    /// What is known of the value of that name.
    fn named(&self, name: Name) -> Option<Value>;
    /// What those lowest bits of a value are by those of another that lies so and so far from it.
    fn near(&self, of: Moved, bits: u32, width: u8) -> Option<Range>;
    /// A value of that width that some register holds and that is made in the same way of the same named value.
    fn alike(&self, kind: Kind, width: u8) -> Option<Value>;
}

/// What the instruction puts into its n-th result, of that width. `by` is its number, for predicates.
pub(crate) fn result(instruction: &Instruction<'_>, nth: usize, width: u8, by: u32, source: &impl Source) -> Value {
    if width == 0 || width > 64 {
        return Value::unknown(64);
    }
    let mut value = result_or_none(instruction, nth, width, by, source).unwrap_or_else(|| Value::unknown(width));
    if nth == 0
        && width == 64
        && value.kind == Kind::Plain
        && let Some(form) = low_half(instruction, source)
    {
        value.kind = Kind::Wide(form);
    }
    if nth == 0
        && value.name == NOBODY
        && value.form.is_none()
        && let Some(form) = affine::result(instruction, width, source).filter(|form| form.parts().next().is_some())
    {
        let root = form.alone().and_then(|(name, _)| source.named(name)).map_or(Range::full(width), |root| root.range);
        // What can't be is left to whoever asks for it: here it only means that the code is not reached.
        if let Some(range) = value.range.meet(form.range(root, width), width) {
            value.range = range;
        }
        // What is another value and nothing else is that value, and relates to the round's beginning as that does: names are of one width.
        match form.name() {
            Some(name) => {
                value.name = name;
                value.since = value.since.or_else(|| source.named(name)?.since);
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
    if let Some((order, signed, of)) = instruction.op.compares {
        let (a, b) = (source.value(operand(0)?, of), source.value(operand(1)?, of));
        let same = a.name == b.name && a.name != NOBODY;
        let known =
            if same { Some(matches!(order, Order::Eq | Order::Le | Order::Ge)) } else { a.range.compare(order, b.range, signed, of) };
        let range = known.map_or(Range::full(1), |holds| Range::constant(i128::from(holds ^ (nth == 1)), 1));
        // Whether a value is 0 that was made of a predicate.
        if let (Kind::Truth { by, not, a: one, b: two, apart }, Some(0), Order::Eq | Order::Ne) = (a.kind, b.range.value(of), order) {
            let not = not ^ (order == Order::Eq) ^ (nth == 1);
            return (nth < 2).then(|| Value::of(range).kind(Kind::Truth { by, not, a: one, b: two, apart }));
        }
        return (nth < 2 && instruction.rest.len() == 2)
            .then(|| Value::of(range).kind(Kind::Truth { by, not: nth == 1, a: a.name, b: b.name, apart: NOBODY }));
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
            match address.kind {
                Kind::Control(_) | Kind::OwnFlag => Some(Value::unknown(width).kind(address.kind)),
                Kind::Flag => None,
                _ => None,
            }
        }
        "cvt" => convert(suffix, width, a()?, source, operand(0)?),
        "add" if plain => {
            let (a, b) = (a()?, b()?);
            // What the loop leaves alone is what is added, and the other what counts.
            let (a, b) = if source.is_fixed(operand(0)?) && !source.is_fixed(operand(1)?) { (b, a) } else { (a, b) };
            Some(rounded(&a, &b, of).or_else(|| rounded(&b, &a, of)).unwrap_or_else(|| sum(a, b, of)))
        }
        "sub" if plain => {
            let (first, second) = (a()?, b()?);
            // Of a start that no clock has shown, such as one that lies ahead, the distance says nothing of the time that has passed.
            if let (Kind::Clock(clock), Kind::Earlier(start)) = (first.kind, second.kind)
                && clock == start
                && source.is_fixed(operand(1)?)
            {
                return Some(Value::of(Range::between(i128::from(source.assumption().late) + 1, i128::from(i64::MAX), 64)));
            }
            if let Some(value) = saturated(&first, &second, of, source).or_else(|| beyond(&first, &second, of)) {
                return Some(value);
            }
            Some(difference(first, second, of))
        }
        "mul" if suffix.starts_with("lo.") => Some(product(a()?, b()?, of)),
        "mul" if suffix.starts_with("wide.") => {
            let widened = |value: Value| Value::of(value.range.as_integers(signed, of));
            let (first, second) = (widened(a()?), widened(b()?));
            (of * 2 == width).then(|| product(first, second, width))
        }
        "mad" if suffix.starts_with("lo.") && !suffix.contains("cc") => Some(sum(product(a()?, b()?, of), unary(2, of)?, of)),
        "neg" if plain => Some(Value::of(a()?.range.times(-1, of))),
        "min" | "max" if plain => {
            let (one, two) = (a()?, b()?);
            let (a, b) = (one.range.as_integers(signed, of), two.range.as_integers(signed, of));
            let (lo, hi) = if head == "min" { (a.lo.min(b.lo), a.hi.min(b.hi)) } else { (a.lo.max(b.lo), a.hi.max(b.hi)) };
            let most = || u32::try_from(two.range.value(of)?).ok();
            let kind = match (head, signed) {
                ("max", false) => Kind::Larger { a: one.name, b: two.name },
                ("min", false) => most().filter(|_| one.name != NOBODY).map_or(Kind::Plain, |most| Kind::Smaller { of: one.name, most }),
                _ => Kind::Plain,
            };
            let form = one.linear(of).zip(two.linear(of)).and_then(|(one, two)| one.join(two)).filter(|form| form.parts().next().is_some());
            Some(Value { form, ..Value::of(Range::between(lo, hi, of)).kind(kind) })
        }
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
            Some(Value::of(Range::between(zeroes(range.hi), zeroes(range.lo), width)))
        }
        "popc" => Some(Value::of(Range::between(0, 64, width))),
        "bfe" if plain && !signed => {
            let length = unary(2, 32)?.range.value(32)?;
            (length < 32).then(|| Value::of(Range::between(0, (1 << length) - 1, of)))
        }
        _ => None,
    }
}

/// The lower half of what an instruction makes of 64 bits, as a sum of more than numbers.
fn low_half(instruction: &Instruction<'_>, source: &impl Source) -> Option<Linear> {
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
            let zero = Linear::constant(0, 32)?;
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
    let between = |lo, hi| Value::of(Range::between(lo, hi, width));
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
    let mut strong = false;
    let (mut narrow_scope, mut elsewhere, mut kind) = (false, false, "");
    for part in instruction.opcode.split('.').skip(1) {
        match part {
            "volatile" | "relaxed" | "acquire" => strong = true,
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
        let whole = Range::full(of).as_integers(signed, of);
        Value::of(Range::between(whole.lo, whole.hi, width))
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
                if assumption.trap { Value::of(Range::constant(0, 32)) } else { any }
            }
            (FLAG_AT, 64) => any.kind(Kind::Flag),
            (LAUNCH_AT, 32) => any.named(LAUNCH),
            _ => any,
        },
        Kind::Flag if at == 0 && of == 32 && strong && !narrow_scope && assumption.asked && instruction.first.len() == 1 => {
            any.named(LAUNCH)
        }
        _ => any,
    })
}
