//! Transfer functions against what instructions compute: random values, of which all is known that their abstract values say.
//!
//! A result that is wrong says something of a value which does not hold. A result that is less precise than it was shows in the table of counts.

use crate::domain::affine::Affine;
use crate::domain::delta::{Delta, FAR, Term};
use crate::domain::interval::Interval;
use crate::domain::name::{NO_NAME, Name};
use crate::domain::transfer;
use crate::domain::value::{Kind, Moved, Pair, Source, Value};
use crate::program::instruction::{Instruction, Op, Operand, Order, Register};

/// Numbers that look random, the same in each run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: u64) -> u64 {
        (self.next() >> 20) % most
    }

    fn is(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    /// A number of that width, as programs have them: small, near an end of either reading, a power of two, or any.
    fn number(&mut self, width: u8) -> i128 {
        let small = i128::from(self.below(12)) - 4;
        let any = match self.below(7) {
            0 | 1 => small,
            2 => i128::from(self.below(1 << 10)),
            3 => (1 << (width - 1)) + small,
            4 => (1 << self.below(width.into())) + small.min(1),
            _ => i128::from(self.next()),
        };
        any.rem_euclid(1 << width)
    }
}

fn signed(value: i128, width: u8) -> i128 {
    if value >> (width - 1) == 1 { value - (1 << width) } else { value }
}

/// Names of values: four of 32 bits, then four of 64.
const FIRST: Name = 16;
/// Registers whose values at the beginning of the round deltas are told from.
const SLOTS: u32 = 3;

/// What registers hold, and what is known of them.
struct World {
    width: u8,
    named: [(i128, Value); 8],
    starts: [i128; SLOTS as usize],
    registers: Vec<(u8, i128, Value)>,
}

fn width_of(name: Name) -> u8 {
    if name < FIRST + 4 { 32 } else { 64 }
}

impl World {
    fn new(dice: &mut Dice, width: u8) -> Self {
        let named = std::array::from_fn(|nth| {
            let width = width_of(FIRST + nth as Name);
            let value = dice.number(width);
            (value, Value::of(around(dice, value, width)))
        });
        let starts = std::array::from_fn(|_| dice.number(width));
        let mut world = Self { width, named, starts, registers: Vec::new() };
        for nth in 0..world.named.len() {
            let of = width_of(FIRST + nth as Name);
            if dice.is(3) && of == width {
                world.named[nth].1.delta = world.relation(dice, world.named[nth].0, of);
            }
            world.named[nth].1.name = FIRST + nth as Name;
        }
        world
    }

    fn name(dice: &mut Dice, width: u8) -> Name {
        FIRST + dice.below(4) as Name + if width == 64 { 4 } else { 0 }
    }

    fn of(&self, name: Name) -> i128 {
        self.named[(name - FIRST) as usize].0
    }

    /// A register of that width, and what is known of it.
    fn register(&mut self, dice: &mut Dice, width: u8) -> Register {
        let (value, known) = self.held(dice, width);
        self.check(&known, value, width).expect("what is known holds");
        self.registers.push((width, value, known));
        self.registers.len() as Register - 1
    }

    fn held(&self, dice: &mut Dice, width: u8) -> (i128, Value) {
        let name = Self::name(dice, width);
        let whole = 1_i128 << width;
        let (value, known) = match dice.below(8) {
            0 | 1 if width >= 32 => (self.of(name), self.named[(name - FIRST) as usize].1),
            2 | 3 if width >= 32 => {
                let form = Self::sum(dice, width);
                let offset = i128::from(form.lo) + i128::from(dice.below((form.hi - form.lo).cast_unsigned() + 1));
                let value = (self.total(&form) + offset).rem_euclid(whole);
                (value, Value { form: Some(form), ..Value::of(around(dice, value, width)) })
            }
            4 if width == 32 => {
                let of = Moved { name, negative: dice.is(2), offset: dice.below(9).cast_signed() - 4 };
                let bits = (1 << (1 + dice.below(6))) - 1;
                let moved = if of.negative { -self.of(name) } else { self.of(name) } + i128::from(of.offset);
                let value = moved & i128::from(bits);
                (value, Value::of(Interval::between(0, bits.into(), width)).kind(Kind::Low { of, bits }))
            }
            5 if width >= 32 => {
                let (b, most) = (Self::name(dice, width), dice.below(40) as u32);
                if dice.is(2) {
                    let value = self.of(name).max(self.of(b));
                    (value, Value::of(around(dice, value, width)).kind(Kind::Larger { a: name, b }))
                } else {
                    let value = self.of(name).min(most.into());
                    (value, Value::of(around(dice, value, width)).kind(Kind::Smaller { of: name, most }))
                }
            }
            6 if width == 64 => {
                let form = Self::sum(dice, 32);
                let low = (self.total(&form) + i128::from(form.lo)).rem_euclid(1 << 32);
                let value = if dice.is(3) { low + (i128::from(dice.below(4)) << 32) } else { low };
                (value, Value::of(around(dice, value, width)).kind(Kind::Wide(form)))
            }
            _ => {
                let value = dice.number(width);
                (value, Value::of(around(dice, value, width)))
            }
        };
        let mut known = known;
        if known.delta.is_none() && width == self.width && dice.is(2) {
            known.delta = self.relation(dice, value, width);
        }
        if let (true, Some(delta)) = (known.kind == Kind::Plain && dice.is(6), known.delta) {
            known = Value { delta: None, ..known.kind(Kind::Saturated(delta, Pair::NONE)) };
        }
        (value, known)
    }

    /// A register that has to do with another: one of the two that it is the larger of, its lowest bits, or the lesser of it and a number.
    fn akin(&mut self, dice: &mut Dice, first: &Operand<'_>, width: u8) -> Option<Register> {
        let Operand::Register(first) = *first else { return None };
        let (_, value, known) = self.registers[first as usize];
        let bits = (1_u32 << (1 + dice.below(6))) - 1;
        let found = match (known.kind, known.moved()) {
            (Kind::Larger { a, b }, _) => {
                let name = if dice.is(2) { a } else { b };
                (self.of(name), self.named[(name - FIRST) as usize].1)
            }
            (_, Some(of)) if width == 32 && dice.is(3) => {
                let (of, value) = if dice.is(2) { (of.opposite(), -value) } else { (of, value) };
                (value & i128::from(bits), Value::of(Interval::between(0, bits.into(), width)).kind(Kind::Low { of, bits }))
            }
            (_, Some(_)) if known.name != NO_NAME => {
                let most = dice.below(40) as u32;
                let value = value.min(most.into());
                (value, Value::of(around(dice, value, width)).kind(Kind::Smaller { of: known.name, most }))
            }
            _ => return None,
        };
        self.check(&found.1, found.0, width).expect("what is known holds");
        self.registers.push((width, found.0, found.1));
        Some(self.registers.len() as Register - 1)
    }

    fn sum(dice: &mut Dice, width: u8) -> Affine {
        let mut form = Affine::constant(i128::from(dice.below(40)) - 20, 32).expect("a small number");
        for _ in 0..=dice.below(2) {
            let more = Affine::of(Self::name(dice, width)).expect("a name");
            form = form.plus(more, [1, -1, 2, 4, 8, -3][dice.below(6) as usize]).unwrap_or(form);
        }
        if form.parts().next().is_none() {
            return Self::sum(dice, width);
        }
        form.plus_range(0, (dice.below(2) * dice.below(9)).cast_signed()).expect("a small sum")
    }

    fn total(&self, form: &Affine) -> i128 {
        form.parts().map(|(name, times)| self.of(name) * i128::from(times)).sum()
    }

    /// How a value relates to a register.
    fn relation(&self, dice: &mut Dice, value: i128, width: u8) -> Option<Delta> {
        let slot = dice.below(SLOTS.into()) as u32;
        let start = self.starts[slot as usize];
        let term = (dice.is(3) && width >= 32).then(|| {
            let name = Self::name(dice, width);
            let of = self.of(name) as i64;
            let near = |by: u64| i64::try_from(by).unwrap_or(0);
            (0..FAR / 16).contains(&of).then(|| Term {
                name,
                times: [-1, -2, 4][dice.below(3) as usize],
                lo: (of - near(dice.below(3))).max(0),
                hi: of + near(dice.below(3)),
            })
        });
        let term = term.flatten();
        let more = term.map_or(0, |term| i128::from(term.times) * self.of(term.name));
        let (as_unsigned, as_signed) = (value - start - more, signed(value, width) - signed(start, width) - more);
        let off = if dice.is(2) { as_unsigned } else { as_signed };
        let (lo, hi) = (off - i128::from(dice.below(4)), off + i128::from(dice.below(4)));
        let holds = |off: i128| lo <= off && off <= hi;
        let delta = Delta {
            slot,
            lo: i64::try_from(lo).ok().filter(|lo| *lo > -FAR)?,
            hi: i64::try_from(hi).ok().filter(|hi| *hi < FAR)?,
            unsigned: holds(as_unsigned),
            signed: holds(as_signed),
            term,
        };
        (delta.unsigned || delta.signed).then_some(delta)
    }

    fn relates(&self, delta: &Delta, value: i128, width: u8) -> bool {
        let start = self.starts[delta.slot as usize];
        let more = delta.term.map_or(0, |term| i128::from(term.times) * self.of(term.name));
        let is_within = |off: i128| (delta.lo <= -FAR || off >= delta.lo.into()) && (delta.hi >= FAR || off <= delta.hi.into());
        let term = delta.term.is_none_or(|term| (i128::from(term.lo)..=i128::from(term.hi)).contains(&self.of(term.name)));
        term && (!delta.unsigned || is_within(value - start - more))
            && (!delta.signed || is_within(signed(value, width) - signed(start, width) - more))
    }

    /// Whether all holds of a value that is said of it.
    fn check(&self, known: &Value, value: i128, width: u8) -> Result<(), String> {
        let said = |holds: bool, what: &str| if holds { Ok(()) } else { Err(format!("{what}: {value} is not {known:?}")) };
        said(contains(known.range, value, width), "its range")?;
        said(known.name == NO_NAME || known.name < FIRST || self.of(known.name) == value, "its name")?;
        let sums = |form: &Affine, value: i128, width: u8| {
            let off = (value - self.total(form)).rem_euclid(1 << width);
            (0..=i128::from(form.hi - form.lo)).contains(&(off - i128::from(form.lo)).rem_euclid(1 << width))
        };
        said(known.form.is_none_or(|form| sums(&form, value, width)), "its sum")?;
        said(known.delta.is_none_or(|delta| self.relates(&delta, value, width)), "its delta")?;
        let kind = match known.kind {
            Kind::Low { of, bits } => {
                let moved = if of.negative { -self.of(of.name) } else { self.of(of.name) } + i128::from(of.offset);
                value == moved & i128::from(bits)
            }
            Kind::Larger { a, b } => [a, b].contains(&NO_NAME) || value == self.of(a).max(self.of(b)),
            Kind::Smaller { of, most } => value == self.of(of).min(most.into()),
            Kind::Saturated(delta, _) => value == 0 || self.relates(&delta, value, width),
            Kind::Wide(form) => sums(&form, value & 0xffff_ffff, 32),
            _ => true,
        };
        said(kind, "its kind")
    }
}

/// A set that holds the value.
fn around(dice: &mut Dice, value: i128, width: u8) -> Interval {
    let [below, above] = [(); 2].map(|()| i128::from(dice.below(9)));
    match dice.below(6) {
        0 | 1 => Interval::constant(value, width),
        2 => Interval::full(width),
        3 => Interval::between(value - below, value + above, width),
        4 => Interval::between(0, value.max(1), width),
        _ => {
            let step = 1_u64 << dice.below(5);
            let by = i128::from(step);
            Interval::strided(value - below * by, value + above * by, step, width)
        }
    }
}

fn contains(range: Interval, value: i128, width: u8) -> bool {
    let whole = 1_i128 << width;
    let step = i128::from(range.step.max(1));
    [-whole, 0, whole].iter().any(|by| (range.lo..=range.hi).contains(&(value + by)) && (value + by - range.lo) % step == 0)
}

impl Source for World {
    fn value(&self, operand: Operand<'_>, width: u8) -> Value {
        match operand {
            Operand::Register(register) => {
                let (own, _, known) = self.registers[register as usize];
                if width == 0 || width == own { known } else { Value::unknown(width) }
            }
            Operand::Number(number) => Value::of(Interval::constant(number, width)),
            _ => Value::unknown(width),
        }
    }

    fn is_fixed(&self, operand: Operand<'_>) -> bool {
        matches!(operand, Operand::Register(register) if register % 2 == 0)
    }

    fn named(&self, name: Name) -> Option<Value> {
        (name >= FIRST).then(|| self.named[(name - FIRST) as usize].1)
    }

    fn alike(&self, kind: Kind, width: u8) -> Option<Value> {
        // A register of the world that is made in the same way has a name of its own.
        self.named.iter().map(|(_, known)| *known).find(|known| known.kind == kind && width == 64)
    }
}

/// What an instruction computes, of operands of so many bits.
fn compute(opcode: &str, of: u8, [a, b, c]: [i128; 3]) -> i128 {
    let read = |value: i128, width: u8| if opcode.contains(".s") { signed(value, width) } else { value };
    let (head, suffix) = opcode.split_once('.').unwrap_or((opcode, ""));
    let to_bool = i128::from;
    match head {
        "mov" => a,
        "add" => a + b,
        "sub" => a - b,
        "mul" if suffix.starts_with("wide") => read(a, of) * read(b, of),
        "mul" => a.wrapping_mul(b),
        "mad" => a.wrapping_mul(b).wrapping_add(c),
        "neg" => -a,
        "not" if suffix == "pred" => 1 - a,
        "not" => !a,
        "min" => read(a, of).min(read(b, of)),
        "max" => read(a, of).max(read(b, of)),
        "and" => a & b,
        "or" => a | b,
        "xor" => a ^ b,
        "shl" if b >= of.into() => 0,
        "shl" => a << b,
        "shr" => read(a, of) >> b.min(127),
        "rem" | "div" if b == 0 => -1,
        "rem" => read(a, of) % read(b, of),
        "div" => read(a, of) / read(b, of),
        "clz" => i128::from(a.leading_zeros()) - 128 + i128::from(of),
        "popc" => i128::from(a.count_ones()),
        "bfe" if b.min(255) >= of.into() || c == 0 => 0,
        "bfe" => (a >> (b & 255)) & ((1 << (c & 255).min(64)) - 1),
        "selp" => {
            if c == 1 {
                a
            } else {
                b
            }
        }
        "setp" => {
            let (left, right) = (read(a, of), read(b, of));
            to_bool(match suffix.split('.').next() {
                Some("eq") => left == right,
                Some("ne") => left != right,
                Some("lt") => left < right,
                Some("le") => left <= right,
                Some("gt") => left > right,
                Some("ge") => left >= right,
                Some("lo") => a < b,
                Some("ls") => a <= b,
                Some("hi") => a > b,
                _ => a >= b,
            })
        }
        // `cvt.TO.FROM` takes the lowest bits with their sign.
        _ => {
            let (from, kind) = (of, suffix.rsplit('.').next().unwrap_or_default());
            let low = a & ((1 << from) - 1);
            if kind.starts_with('s') { signed(low, from) } else { low }
        }
    }
}

/// Opcodes with the widths of what they make and of their operands.
const OPCODES: &[(&str, u8, [u8; 3])] = &[
    ("mov.u32", 32, [32, 0, 0]),
    ("mov.b64", 64, [64, 0, 0]),
    ("add.s32", 32, [32, 32, 0]),
    ("add.u64", 64, [64, 64, 0]),
    ("add.s64", 64, [64, 64, 0]),
    ("add.u16", 16, [16, 16, 0]),
    ("sub.s32", 32, [32, 32, 0]),
    ("sub.s64", 64, [64, 64, 0]),
    ("sub.u16", 16, [16, 16, 0]),
    ("mul.lo.s32", 32, [32, 32, 0]),
    ("mul.lo.u64", 64, [64, 64, 0]),
    ("mul.lo.s64", 64, [64, 64, 0]),
    ("mul.wide.u32", 64, [32, 32, 0]),
    ("mul.wide.s32", 64, [32, 32, 0]),
    ("mul.wide.u16", 32, [16, 16, 0]),
    ("mad.lo.s32", 32, [32, 32, 32]),
    ("mad.lo.u64", 64, [64, 64, 64]),
    ("neg.s32", 32, [32, 0, 0]),
    ("neg.s64", 64, [64, 0, 0]),
    ("not.b32", 32, [32, 0, 0]),
    ("not.b64", 64, [64, 0, 0]),
    ("min.s32", 32, [32, 32, 0]),
    ("min.u32", 32, [32, 32, 0]),
    ("max.s32", 32, [32, 32, 0]),
    ("max.u32", 32, [32, 32, 0]),
    ("max.u64", 64, [64, 64, 0]),
    ("min.s64", 64, [64, 64, 0]),
    ("and.b32", 32, [32, 32, 0]),
    ("and.b64", 64, [64, 64, 0]),
    ("and.b16", 16, [16, 16, 0]),
    ("or.b32", 32, [32, 32, 0]),
    ("or.b64", 64, [64, 64, 0]),
    ("xor.b32", 32, [32, 32, 0]),
    ("xor.b64", 64, [64, 64, 0]),
    ("shl.b32", 32, [32, 5, 0]),
    ("shl.b64", 64, [64, 6, 0]),
    ("shr.u32", 32, [32, 5, 0]),
    ("shr.s32", 32, [32, 5, 0]),
    ("shr.u64", 64, [64, 6, 0]),
    ("shr.s64", 64, [64, 6, 0]),
    ("rem.u32", 32, [32, 32, 0]),
    ("rem.s32", 32, [32, 32, 0]),
    ("div.u32", 32, [32, 32, 0]),
    ("div.s32", 32, [32, 32, 0]),
    ("div.u64", 64, [64, 64, 0]),
    ("clz.b32", 32, [32, 0, 0]),
    ("clz.b64", 32, [64, 0, 0]),
    ("popc.b64", 32, [64, 0, 0]),
    ("bfe.u32", 32, [32, 5, 5]),
    ("selp.b32", 32, [32, 32, 1]),
    ("selp.b64", 64, [64, 64, 1]),
    ("cvt.u64.u32", 64, [32, 0, 0]),
    ("cvt.s64.s32", 64, [32, 0, 0]),
    ("cvt.u32.u64", 32, [64, 0, 0]),
    ("cvt.s32.s64", 32, [64, 0, 0]),
    ("cvt.u32.u16", 32, [16, 0, 0]),
    ("cvt.s32.s16", 32, [16, 0, 0]),
    ("cvt.u16.u32", 16, [32, 0, 0]),
    ("setp.eq.s32", 1, [32, 32, 0]),
    ("setp.ne.s64", 1, [64, 64, 0]),
    ("setp.lt.s32", 1, [32, 32, 0]),
    ("setp.le.u32", 1, [32, 32, 0]),
    ("setp.gt.s64", 1, [64, 64, 0]),
    ("setp.ge.u64", 1, [64, 64, 0]),
    ("setp.lo.u32", 1, [32, 32, 0]),
    ("setp.ls.u32", 1, [32, 32, 0]),
    ("setp.hi.u64", 1, [64, 64, 0]),
    ("setp.hs.u32", 1, [32, 32, 0]),
    ("and.pred", 1, [1, 1, 0]),
    ("or.pred", 1, [1, 1, 0]),
    ("xor.pred", 1, [1, 1, 0]),
    ("not.pred", 1, [1, 0, 0]),
    ("mov.pred", 1, [1, 0, 0]),
];

/// Results of each opcode that are looked at.
const ROUNDS: u64 = 3000;

/// What is known of results: of how many the number; bits in which the others may differ; how many have a name, a sum, a delta (for each reading)
/// and a kind.
type Counts = [u64; 7];

/// The counts of each opcode.
const KNOWN: &str = include_str!("../../tests/data/transfer.txt");

fn count(counts: &mut Counts, value: &Value, width: u8) {
    let number = value.range.value(width).is_some();
    let open = (value.range.hi - value.range.lo) / i128::from(value.range.step.max(1));
    let delta = |is_so: fn(&Delta) -> bool| u64::from(value.delta.as_ref().is_some_and(is_so));
    let new = [
        u64::from(number),
        (128 - open.leading_zeros()).into(),
        u64::from(value.name != NO_NAME),
        value.form.map_or(0, |form| 1 + u64::from(form.lo == form.hi)),
        delta(|delta| delta.unsigned),
        delta(|delta| delta.signed),
        u64::from(value.kind != Kind::Plain),
    ];
    counts.iter_mut().zip(new).for_each(|(sum, new)| *sum += new);
}

fn try_opcode(opcode: &'static str, to: u8, widths: [u8; 3], seed: u64) -> Counts {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut counts = Counts::default();
    for round in 0..ROUNDS {
        let mut world = World::new(&mut dice, if widths[0] > 1 { widths[0].max(16) } else { 32 });
        let mut concrete = [0; 3];
        let mut rest = Vec::new();
        for (nth, width) in widths.into_iter().enumerate().take_while(|(_, width)| *width > 0) {
            // Operands are sometimes the same register, sometimes numbers. Amounts and lengths are registers of 32 bits.
            let (of, most) = if [5, 6].contains(&width) { (32, 1_u64 << width) } else { (width, 0) };
            let is_again = nth == 1 && most == 0 && dice.is(5) && matches!(rest[0], Operand::Register(_));
            let operand = if is_again {
                rest[0]
            } else if most > 0 {
                let amount = i128::from(dice.below(most + 2));
                if dice.is(2) {
                    Operand::Number(amount)
                } else {
                    let most = amount + i128::from(dice.below(3));
                    world.registers.push((32, amount, Value::of(Interval::between(amount - amount.min(2), most, 32))));
                    Operand::Register(world.registers.len() as Register - 1)
                }
            } else if dice.is(3) && width > 1 && (nth > 0 || dice.is(8)) {
                let number = if dice.is(2) { 1 << dice.below(12) } else { dice.number(width) };
                Operand::Number(if dice.is(4) { -number } else { number - i128::from(dice.below(2)) })
            } else {
                let akin = if nth == 1 && dice.is(2) { world.akin(&mut dice, &rest[0], of) } else { None };
                let register = match akin {
                    Some(register) => register,
                    None if width == 1 => pred(&mut world, &mut dice),
                    None => world.register(&mut dice, of),
                };
                Operand::Register(register)
            };
            concrete[nth] = match operand {
                Operand::Register(register) => world.registers[register as usize].1,
                Operand::Number(number) => number.rem_euclid(1 << of),
                _ => 0,
            };
            rest.push(operand);
        }
        let op = Op::new(opcode);
        let instruction =
            Instruction { guard: None, opcode, first: vec![0], rest, first_address: None, all: Vec::new(), op, is_behind_fence: false };
        let from = if opcode.starts_with("cvt") { op.of.expect("a type").0 } else { widths[0] };
        let value = compute(opcode, from, concrete).rem_euclid(1 << to);
        let known = transfer::result(&instruction, 0, to, 7, &world);
        // Deltas are those of registers of one width.
        let known = if to == world.width { known } else { Value { delta: None, ..known } };
        let what = || format!("{opcode}, round {round}: {:?} of {concrete:?}\n{:?}", instruction.rest, world.registers);
        if let Err(why) = world.check(&known, value, to) {
            panic!("{why}\n{}", what());
        }
        count(&mut counts, &known, to);
    }
    counts
}

fn pred(world: &mut World, dice: &mut Dice) -> Register {
    let value = i128::from(dice.below(2));
    let range = if dice.is(2) { Interval::constant(value, 1) } else { Interval::full(1) };
    let kind = if dice.is(2) { Kind::Truth { by: 3, not: dice.is(2), a: FIRST, b: FIRST + 1, apart: NO_NAME } } else { Kind::Plain };
    world.registers.push((1, value, Value::of(range).kind(kind)));
    world.registers.len() as Register - 1
}

#[test]
fn nothing_is_said_of_a_result_that_does_not_hold_and_no_less_than_before() {
    let line = |((opcode, to, widths), seed): (&(&'static str, u8, [u8; 3]), u64)| {
        let counts = try_opcode(opcode, *to, *widths, seed).map(|count| count.to_string());
        format!("{opcode} {}\n", counts.join(" "))
    };
    let table: String = OPCODES.iter().zip(1..).map(line).collect();
    assert!(table == KNOWN, "what is known of results is another now; if that is meant, tests/data/transfer.txt is:\n{table}");
}

#[test]
fn what_joins_restricts_and_meets_keeps_what_holds() {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let mut counts = Counts::default();
    let orders = [Order::Eq, Order::Ne, Order::Lt, Order::Le, Order::Gt, Order::Ge];
    for _ in 0..40_000 {
        let width = if dice.is(2) { 32 } else { 64 };
        let mut world = World::new(&mut dice, width);
        let (one, two) = (world.register(&mut dice, width), world.register(&mut dice, width));
        let [(_, a, known_a), (_, b, known_b)] = [one, two].map(|register| world.registers[register as usize]);
        let joined = known_a.join(&known_b, width, NO_NAME);
        for value in [a, b] {
            world.check(&joined, value, width).unwrap_or_else(|why| panic!("{why}\n{known_a:?}\n{known_b:?}"));
        }
        count(&mut counts, &joined, width);
        let (order, is_signed) = (orders[dice.below(6) as usize], dice.is(2));
        let read = |value: i128| if is_signed { signed(value, width) } else { value };
        let (x, y) = (read(a), read(b));
        let holds = match order {
            Order::Eq => x == y,
            Order::Ne => x != y,
            Order::Lt => x < y,
            Order::Le => x <= y,
            Order::Gt => x > y,
            Order::Ge => x >= y,
        };
        let mut known = known_a;
        let is_left = known.restrict(order, known_b.range, is_signed, width);
        assert!(is_left || !holds, "{known_a:?} {order:?} {known_b:?}");
        if holds {
            world.check(&known, a, width).unwrap_or_else(|why| panic!("{why}\n{known_a:?} {order:?} {known_b:?}"));
            count(&mut counts, &known, width);
        }
    }
    assert_eq!(counts, JOINED, "what is known of joins is another now");
}

/// The same of joined values.
const JOINED: Counts = [6657, 1_640_216, 5662, 7908, 7551, 8012, 6034];
