//! Deltas: how far a value is from what a register held at the loop head, when the current iteration began.

use crate::domain::affine::Affine;
use crate::domain::interval::Interval;
use crate::domain::name::Name;

/// How a value relates to a register at the beginning of the loop's round: it is that plus `lo` to `hi`, as integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delta {
    /// Slot of the register.
    pub(crate) slot: u32,
    pub(crate) lo: i64,
    pub(crate) hi: i64,
    /// Whether that holds for the values read as unsigned integers, and as signed ones: no step on the way wrapped round.
    pub(crate) unsigned: bool,
    pub(crate) signed: bool,
    /// And plus so many times a named value.
    pub(crate) term: Option<Term>,
}

/// `times` the value of that name, which as an integer is from `lo` to `hi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) name: Name,
    pub(crate) times: i64,
    pub(crate) lo: i64,
    pub(crate) hi: i64,
}

/// What a loop costs that is entered: how far its counter is from the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Price {
    /// The counter as a sum.
    pub(crate) form: Option<Affine>,
    pub(crate) rises: bool,
    pub(crate) end: i128,
    /// The least and greatest integer that the counter can be at all.
    pub(crate) least: i128,
    pub(crate) greatest: i128,
    /// The price at most.
    pub(crate) most: i128,
    /// What a round costs.
    pub(crate) factor: u32,
}

/// A lower bound of `-FAR` and an upper one of `FAR` stand for infinity: nothing that is added later makes them finite.
pub(crate) const FAR: i64 = 1 << 62;

impl Delta {
    /// The register's value itself.
    pub(crate) fn start(slot: u32) -> Self {
        Self { slot, lo: 0, hi: 0, unsigned: true, signed: true, term: None }
    }

    pub(crate) fn join(self, other: Self) -> Option<Self> {
        let is_same = self.term.zip(other.term).is_some_and(|(a, b)| (a.name, a.times) == (b.name, b.times)) || self.term == other.term;
        let (one, two) = if is_same { (self, other) } else { (self.plain(), other.plain()) };
        let term = one.term.zip(two.term).map(|(a, b)| Term { lo: a.lo.min(b.lo), hi: a.hi.max(b.hi), ..a });
        let joined = Self {
            slot: self.slot,
            lo: one.lo.min(two.lo),
            hi: one.hi.max(two.hi),
            unsigned: self.unsigned && other.unsigned,
            signed: self.signed && other.signed,
            term,
        };
        (self.slot == other.slot && (joined.unsigned || joined.signed)).then_some(joined)
    }

    /// Takes the value of that name to be from `lo` to `hi`, read as unsigned.
    pub(crate) fn narrow(self, name: Name, bounds: Interval) -> Self {
        let term = self.term.map(|term| {
            if term.name == name {
                Term { lo: saturate(bounds.lo.max(term.lo.into())), hi: saturate(bounds.hi.min(term.hi.into())), ..term }
            } else {
                term
            }
        });
        Self { term, ..self }
    }

    /// The same without a named value.
    pub(crate) fn plain(self) -> Self {
        let Some(term) = self.term else { return self };
        let (a, b) = (i128::from(term.times) * i128::from(term.lo), i128::from(term.times) * i128::from(term.hi));
        Self { term: None, ..self }.moved(a.min(b), a.max(b))
    }

    /// The same and something from `least` to `most`. A bound that is infinite stays infinite.
    pub(crate) fn moved(self, least: i128, most: i128) -> Self {
        let lo = if self.lo <= -FAR { -FAR } else { saturate(i128::from(self.lo) + least) };
        let hi = if self.hi >= FAR { FAR } else { saturate(i128::from(self.hi) + most) };
        Self { lo, hi, ..self }
    }

    /// How far the value may be from the register's, as the larger of both bounds; none if it may be arbitrarily far.
    pub(crate) fn farthest(self) -> Option<u64> {
        (self.lo > -FAR && self.hi < FAR).then(|| self.lo.unsigned_abs().max(self.hi.unsigned_abs()))
    }

    /// Adds a price of at most `most`, which may be known as a sum of the same named value.
    pub(crate) fn charge_value(self, price: &Price) -> Self {
        let by_term = self.term.zip(price.form).and_then(|(term, form)| {
            // The counter is that named value, or its opposite, and a little, without wrapping round.
            let (_, times) = form.alone().filter(|(name, times)| *name == term.name && times.unsigned_abs() == 1)?;
            let (lo, hi) = (i128::from(term.lo) * i128::from(times), i128::from(term.hi) * i128::from(times));
            let (lo, hi) = (lo.min(hi) + i128::from(form.lo), lo.max(hi) + i128::from(form.hi));
            // Beyond the end nothing is paid, rather than paid back.
            let beyond = if price.rises { hi - price.end } else { price.end - lo }.max(0);
            (lo >= price.least && hi <= price.greatest).then_some((term, form, beyond))
        });
        match by_term {
            Some((term, form, beyond)) => {
                let factor = i128::from(price.factor);
                let sign = if price.rises { -1 } else { 1 };
                let times = sign * i64::from(price.factor) * form.alone().map_or(0, |(_, times)| i64::from(times));
                let times = term.times.saturating_add(times);
                let term = (times != 0).then_some(Term { times, ..term });
                let ends = (i128::from(form.lo) - price.end, i128::from(form.hi) - price.end);
                let (least, most) = if price.rises { (-ends.1, -ends.0) } else { ends };
                Self { term, ..self }.moved(least * factor, (most + beyond) * factor)
            }
            None => self.moved(0, price.most * i128::from(price.factor)),
        }
    }

    /// Where a bound has moved since an earlier look, it is given up.
    pub(crate) fn widen(self, before: Self) -> Self {
        Self { lo: if self.lo < before.lo { -FAR } else { self.lo }, hi: if self.hi > before.hi { FAR } else { self.hi }, ..self }
    }

    /// Adds the price of a round inside.
    pub(crate) fn charge(self, price: u64) -> Self {
        self.moved(price.into(), price.into())
    }

    /// After adding something of this range to a value of that range.
    pub(crate) fn add(self, value: Interval, added: Interval, width: u8) -> Option<Self> {
        // Read as signed, an addend is small whichever way it was spelled.
        let added = added.signed(width);
        let fits = |signed: bool| {
            let (value, whole) = (value.as_integers(signed, width), Interval::full(width).as_integers(signed, width));
            value.lo + added.lo >= whole.lo && value.hi + added.hi <= whole.hi
        };
        let moved = Self { unsigned: self.unsigned && fits(false), signed: self.signed && fits(true), ..self.moved(added.lo, added.hi) };
        (moved.unsigned || moved.signed).then_some(moved)
    }
}

/// The nearest number that a bound can be.
fn saturate(value: i128) -> i64 {
    value.clamp(i128::from(-FAR), i128::from(FAR)) as i64
}
