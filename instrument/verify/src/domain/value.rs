//! Abstract values: what is known of the value of a register.

use crate::domain::affine::Affine;
use crate::domain::delta::Delta;
use crate::domain::interval::Interval;
use crate::domain::name::{NO_NAME, Name};
use crate::program::instruction::{Operand, Order};

/// Longest that a loop which only a clock ends may take, in nanoseconds or clock cycles.
pub(crate) const MOST_TICKS: u64 = 1_000_000_000;

/// What is known of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) range: Interval,
    pub(crate) name: Name,
    pub(crate) kind: Kind,
    pub(crate) delta: Option<Delta>,
    /// The value as a sum of named ones, if it is more than its own name.
    pub(crate) form: Option<Affine>,
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
    Saturated(Delta, Pair),
    /// 64 bits, the lower half of which is this sum.
    Wide(Affine),
}

/// A clock that advances while a thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    /// `%globaltimer`
    Nanoseconds,
    /// `%clock64`
    Cycles,
}

/// Two named values: what was taken from what. Either may be [`NO_NAME`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) from: Name,
    pub(crate) taken: Name,
}

impl Pair {
    pub(crate) const NONE: Self = Self { from: NO_NAME, taken: NO_NAME };
}

/// The value of that name, or its opposite, and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) name: Name,
    pub(crate) negative: bool,
    pub(crate) offset: i64,
}

impl Moved {
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

/// How many bits of a register are followed. Where the width is not known it is 0, as that of a register among a function's parameters: such a register
/// may have any.
pub(crate) fn bits(width: u8) -> u8 {
    if width == 0 { 64 } else { width.min(64) }
}

impl Value {
    pub(crate) fn unknown(width: u8) -> Self {
        Self::of(Interval::full(width))
    }

    /// The same of a register, or of what is read of one. See [`bits`].
    pub(crate) fn unknown_of(width: u8) -> Self {
        Self::unknown(bits(width))
    }

    pub(crate) fn of(range: Interval) -> Self {
        Self { range, name: NO_NAME, kind: Kind::Plain, delta: None, form: None }
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
            name: if self.name == other.name && self.name != NO_NAME { self.name } else { name },
            kind: match (self.kind, other.kind) {
                (Kind::Plain, Kind::Plain) => self.or_zero(other, width).map_or(Kind::Plain, |delta| Kind::Saturated(delta, Pair::NONE)),
                (one, other) if one == other => one,
                (Kind::Saturated(..), _) | (_, Kind::Saturated(..)) => {
                    let joined = self.unless_zero().zip(other.unless_zero()).and_then(|(one, other)| one.join(other));
                    joined.or_else(|| self.or_zero(other, width)).map_or(Kind::Plain, |delta| Kind::Saturated(delta, Pair::NONE))
                }
                _ => Kind::Plain,
            },
            delta: self.delta.zip(other.delta).and_then(|(a, b)| a.join(b)),
            form: if self.form == other.form && self.name == other.name {
                self.form
            } else {
                let joined = |a: Option<Affine>, b: Option<Affine>| a.zip(b).and_then(|(a, b)| a.join(b));
                let of_both = joined(self.affine(width), other.affine(width)).filter(|joined| joined.parts().next().is_some());
                // What is a number on some way may be a sum on all.
                of_both.or_else(|| joined(self.of_names(), other.of_names()))
            },
        }
    }

    /// If one of both is 0: how the other relates to a register.
    fn or_zero(&self, other: &Self, width: u8) -> Option<Delta> {
        match (self.range.value(width), other.range.value(width)) {
            (Some(0), _) => other.unless_zero(),
            (_, Some(0)) => self.unless_zero(),
            _ => None,
        }
    }

    /// The lower half of 64 bits as a sum.
    pub(crate) fn low_half(&self) -> Option<Affine> {
        match (self.kind, self.range.value(64)) {
            (_, Some(number)) => Affine::constant(number, 32),
            (Kind::Wide(form), None) => Some(form),
            _ => None,
        }
    }

    /// What 64 bits can be whose lower half is in this range, if they are that half with or without a sign.
    pub(crate) fn widened(&self, low: Interval) -> Option<Interval> {
        let (signed, unsigned) = (self.range.signed(64), self.range.unsigned(64));
        let is_signed = signed.lo >= i32::MIN.into() && signed.hi <= i32::MAX.into();
        (is_signed || unsigned.hi <= u32::MAX.into()).then(|| Interval::constant(0, 64).add(low.as_integers(is_signed, 32), 64))
    }

    /// How the value relates to a register if it is not 0.
    pub(crate) fn unless_zero(&self) -> Option<Delta> {
        match self.kind {
            Kind::Saturated(delta, _) => Some(delta),
            _ => self.delta,
        }
    }

    /// The value as a sum of named ones, though it may be known as a number.
    pub(crate) fn of_names(&self) -> Option<Affine> {
        self.form.or_else(|| Affine::of(self.name))
    }

    /// The value as a sum of named ones, or a number.
    pub(crate) fn affine(&self, width: u8) -> Option<Affine> {
        match self.range.value(width) {
            Some(number) => Affine::constant(number, width),
            None => self.form.or_else(|| Affine::of(self.name)),
        }
    }

    /// The value as one named value and a number; none if it has no name.
    pub(crate) fn moved(&self) -> Option<Moved> {
        let root = self.form.filter(|form| form.lo == form.hi).and_then(|form| {
            let (name, times) = form.alone().filter(|(_, times)| times.unsigned_abs() == 1)?;
            Some(Moved { name, negative: times < 0, offset: form.lo })
        });
        root.or((self.name != NO_NAME).then_some(Moved { name: self.name, negative: false, offset: 0 }))
    }

    /// Restricts by a comparison with another value; false if nothing is left.
    pub(crate) fn restrict(&mut self, order: Order, other: Interval, signed: bool, width: u8) -> bool {
        self.range.restrict(order, other, signed, width).is_some_and(|range| self.settle(range, width))
    }

    /// Restricts to a set of values; false if nothing is left.
    pub(crate) fn meet(&mut self, other: Interval, width: u8) -> bool {
        self.range.meet(other, width).is_some_and(|range| self.settle(range, width))
    }

    fn settle(&mut self, range: Interval, width: u8) -> bool {
        self.range = range;
        if let Kind::Saturated(delta, _) = self.kind
            && range.unsigned(width).lo > 0
        {
            self.delta = Some(delta);
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
    fn is_fixed(&self, _: Operand<'_>) -> bool {
        false
    }
    /// What is assumed.
    fn assumption(&self) -> Assumption {
        Assumption::default()
    }
    /// Notes that the action is asked for.
    fn note_action(&self) {}
    /// The operand's value if the predicate holds, or does not; none if it can't.
    fn value_if(&self, _predicate: Operand<'_>, _holds: bool, operand: Operand<'_>, width: u8) -> Option<Value> {
        Some(self.value(operand, width))
    }
    /// What is known of the value of that name.
    fn named(&self, _: Name) -> Option<Value> {
        None
    }
    /// What those lowest bits of a value are by those of another that lies so and so far from it.
    fn near(&self, _of: Moved, _bits: u32, _width: u8) -> Option<Interval> {
        None
    }
    /// A value of that width that some register holds and that is made in the same way of the same named value.
    fn alike(&self, _: Kind, _width: u8) -> Option<Value> {
        None
    }
}
