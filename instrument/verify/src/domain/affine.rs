//! Affine forms: a value as a sum of named values, such as `2 * a - b + 3`, modulo a power of two.

use crate::domain::interval::Interval;
use crate::domain::name::{NO_NAME, Name};

/// Most named values in one sum.
const MOST: usize = 3;

/// Offsets beyond this are given up, so that sums of them never overflow.
const FAR: i64 = 1 << 61;

/// A sum of named values, each times a factor, and something from `lo` to `hi`, modulo 2^width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Affine {
    /// Sorted by name; those that are not used come last, with [`NO_NAME`] as name.
    terms: [(Name, i32); MOST],
    pub(crate) lo: i64,
    pub(crate) hi: i64,
}

impl Affine {
    /// The number itself, as near to zero as the width allows.
    pub(crate) fn constant(value: i128, width: u8) -> Option<Self> {
        let signed = Interval::constant(value, width).signed(width).lo;
        let value = i64::try_from(signed).ok().filter(|value| value.unsigned_abs() < FAR as u64)?;
        Some(Self { terms: [(NO_NAME, 0); MOST], lo: value, hi: value })
    }

    /// A named value.
    pub(crate) fn of(name: Name) -> Option<Self> {
        let mut terms = [(NO_NAME, 0); MOST];
        terms[0] = (name, 1);
        (name != NO_NAME).then_some(Self { terms, lo: 0, hi: 0 })
    }

    /// The sum with `factor` times another.
    pub(crate) fn plus(self, other: Self, factor: i64) -> Option<Self> {
        // Both are sorted by name.
        let (mut ours, mut others) = (self.parts().peekable(), other.parts().peekable());
        let mut terms = [(NO_NAME, 0); MOST];
        let mut count = 0;
        loop {
            let name = match (ours.peek(), others.peek()) {
                (Some((one, _)), Some((two, _))) => *one.min(two),
                (Some((name, _)), None) | (None, Some((name, _))) => *name,
                (None, None) => break,
            };
            let own = ours.next_if(|(of, _)| *of == name).map_or(0, |(_, times)| i64::from(times));
            let more = others.next_if(|(of, _)| *of == name).map_or(Some(0), |(_, times)| i64::from(times).checked_mul(factor))?;
            let times = own.checked_add(more)?;
            if times != 0 {
                *terms.get_mut(count)? = (name, i32::try_from(times).ok()?);
                count += 1;
            }
        }
        let (a, b) = (other.lo.checked_mul(factor)?, other.hi.checked_mul(factor)?);
        Self { terms, lo: self.lo.checked_add(a.min(b))?, hi: self.hi.checked_add(a.max(b))? }.near()
    }

    /// The sum with something of this range, read as signed.
    pub(crate) fn plus_range(self, lo: i64, hi: i64) -> Option<Self> {
        Self { lo: self.lo.checked_add(lo)?, hi: self.hi.checked_add(hi)?, ..self }.near()
    }

    /// The same with other names, different ones for different values.
    pub(crate) fn renamed(mut self, new: impl Fn(Name) -> Name) -> Self {
        let used = self.parts().count();
        for (name, _) in &mut self.terms[..used] {
            *name = new(*name);
        }
        self.terms[..used].sort_unstable();
        self
    }

    /// For sums of one named value each, with the same factor and offset: that sum of what both are where they meet.
    pub(crate) fn met(self, other: Self, name: impl Fn(Name, Name) -> Option<Name>) -> Option<Self> {
        let ((one, times), (two, same)) = (self.alone()?, other.alone()?);
        let is_same = times == same && (self.lo, self.hi) == (other.lo, other.hi);
        let mut terms = [(NO_NAME, 0); MOST];
        terms[0] = (name(one, two).filter(|_| is_same)?, times);
        Some(Self { terms, ..self })
    }

    /// The same sum where one named value is another less a number.
    pub(crate) fn replaced(self, old: Name, by: Name, less: i64) -> Option<Self> {
        let times = self.parts().find(|(name, _)| *name == old).map_or(0, |(_, times)| i64::from(times));
        let instead = Self::of(by)?.plus_range(less.checked_neg()?, less.checked_neg()?)?;
        self.plus(Self::of(old)?, -times)?.plus(instead, times)
    }

    fn near(self) -> Option<Self> {
        (self.lo > -FAR && self.hi < FAR).then_some(self)
    }

    /// What holds of both: the same named values, and any of both offsets.
    pub(crate) fn join(self, other: Self) -> Option<Self> {
        let joined = Self { terms: self.terms, lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) };
        (self.terms == other.terms).then_some(joined)
    }

    /// For sums of the same named values, exact ones: `sign` times `other` and a number is this.
    pub(crate) fn relative_to(&self, other: &Self) -> Option<(i64, i64)> {
        if self.terms[0].0 == NO_NAME || self.lo != self.hi || other.lo != other.hi {
            return None;
        }
        // The least factor has no opposite.
        let is_same = |sign: i32| self.terms.iter().zip(&other.terms).all(|(a, b)| a.0 == b.0 && b.1.checked_mul(sign) == Some(a.1));
        let sign = [1, -1].into_iter().find(|sign| is_same(*sign))?;
        Some((i64::from(sign), self.lo.checked_sub(i64::from(sign) * other.lo)?))
    }

    /// The named values with their factors.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (Name, i32)> + use<> {
        self.terms.into_iter().take_while(|(name, _)| *name != NO_NAME)
    }

    /// The one named value, with its factor; none if there are more or fewer.
    pub(crate) fn alone(&self) -> Option<(Name, i32)> {
        (self.terms[0].0 != NO_NAME && self.terms[1].0 == NO_NAME).then_some(self.terms[0])
    }

    /// The named value, if it is that and nothing else.
    pub(crate) fn name(&self) -> Option<Name> {
        self.alone().filter(|(_, times)| *times == 1 && self.lo == 0 && self.hi == 0).map(|(name, _)| name)
    }

    /// The number, if there is nothing else.
    pub(crate) fn number(&self) -> Option<i64> {
        (self.terms[0].0 == NO_NAME && self.lo == self.hi).then_some(self.lo)
    }

    /// What the sum can be if the one named value in it is in this range, or if there is none.
    pub(crate) fn range(&self, root: Interval, width: u8) -> Interval {
        let offset = Interval::between(i128::from(self.lo), i128::from(self.hi), width);
        match self.alone() {
            Some((_, times)) => root.times(i128::from(times), width).add(offset, width),
            None if self.terms[0].0 == NO_NAME => offset,
            None => Interval::full(width),
        }
    }

    /// The bounds of the sum as an unsigned integer. The one named value in it is in this range, and the sum never
    /// wraps round.
    pub(crate) fn integers(&self, root: Interval, width: u8) -> Option<(i128, i128)> {
        let (_, times) = self.alone()?;
        let root = root.unsigned(width);
        let (a, b) = (root.lo * i128::from(times), root.hi * i128::from(times));
        let (lo, hi) = (a.min(b) + i128::from(self.lo), a.max(b) + i128::from(self.hi));
        (lo >= 0 && hi <= Interval::full(width).hi).then_some((lo, hi))
    }

    /// The sum without its lowest bits, if these are 0 and it never wraps round.
    pub(crate) fn shifted(&self, by: u32, root: Interval, width: u8) -> Option<Self> {
        let (name, times) = self.alone()?;
        self.integers(root, width)?;
        let unit = 1_i64 << by;
        (i64::from(times) % unit == 0 && self.lo == self.hi && self.lo % unit == 0).then(|| {
            let mut terms = [(NO_NAME, 0); MOST];
            terms[0] = (name, (i64::from(times) / unit) as i32);
            Self { terms, lo: self.lo / unit, hi: self.hi / unit }
        })
    }

    /// What the one named value can be if the sum is in this range. Where its factor is not 1 or -1, `known` must say of it that the sum does
    /// not wrap round.
    pub(crate) fn root(&self, sum: Interval, known: impl FnOnce(Name) -> Option<Interval>, width: u8) -> Option<(Name, Interval)> {
        let (name, times) = self.alone()?;
        if times.unsigned_abs() != 1 {
            let (lo, hi, times) = self.integers(known(name)?, width).map(|(lo, hi)| (lo, hi, i128::from(times)))?;
            let sum = sum.unsigned(width);
            // lo..hi is how the sum as an integer relates to the root: what is taken away rounds inwards.
            let (least, most) = (sum.lo.max(lo) - i128::from(self.hi), sum.hi.min(hi) - i128::from(self.lo));
            let (least, most) = if times > 0 { (least, most) } else { (-most, -least) };
            let times = times.abs();
            // A stride of the sum is one of the root.
            let is_exact = self.lo == self.hi && i128::from(sum.step) % times == 0 && least % times == 0 && (lo..=hi).contains(&sum.lo);
            let step = if is_exact && self.alone().is_some_and(|(_, times)| times > 0) { i128::from(sum.step) / times } else { 1 };
            let (least, most) = ((least + times - 1).div_euclid(times), most.div_euclid(times));
            let whole =
                || Interval::strided(least, least + (most - least) / step.max(1) * step.max(1), step.max(1).unsigned_abs() as u64, width);
            return (0 <= least && least <= most).then(|| (name, whole()));
        }
        let offset = Interval::between(i128::from(self.lo), i128::from(self.hi), width);
        Some((name, sum.sub(offset, width).times(i128::from(times), width)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::name::FIRST_NAME;

    #[test]
    fn the_least_factor_has_no_opposite() {
        let form = |one: i32, two: i32| Affine { terms: [(FIRST_NAME, one), (FIRST_NAME + 1, two), (NO_NAME, 0)], lo: 0, hi: 0 };
        assert_eq!(form(i32::MIN, 1).relative_to(&form(i32::MIN, 1)), Some((1, 0)));
        assert_eq!(form(i32::MIN, -1).relative_to(&form(i32::MIN, 1)), None);
        assert_eq!(form(i32::MAX, -1).relative_to(&form(-i32::MAX, 1)), Some((-1, 0)));
    }

    #[test]
    fn a_multiple_tells_what_it_is_a_multiple_of() {
        let root = |times: i32, (lo, hi): (i64, i64), sum: Interval| {
            let mut terms = [(NO_NAME, 0); MOST];
            terms[0] = (FIRST_NAME, times);
            let known = |_| Some(Interval::between(0, 100, 32));
            Affine { terms, lo, hi }.root(sum, known, 32).map(|(_, root)| (root.lo, root.hi, root.step))
        };
        let (between, constant) = (|lo, hi| Interval::between(lo, hi, 32), |value| Interval::constant(value, 32));
        // 4 * x + 1
        assert_eq!(root(4, (1, 1), constant(21)), Some((5, 5, 0)));
        assert_eq!(root(4, (1, 1), between(6, 21)), Some((2, 5, 1)));
        assert_eq!(root(4, (1, 1), between(1, 4)), Some((0, 0, 0)));
        assert_eq!(root(4, (1, 1), Interval::strided(1, 81, 8, 32)), Some((0, 20, 2)));
        // 4 * x and something from 0 to 8
        assert_eq!(root(4, (0, 8), between(8, 40)), Some((0, 10, 1)));
        // 401 - 4 * x
        assert_eq!(root(-4, (401, 401), between(1, 9)), Some((98, 100, 1)));
        // No x makes this, or only one below zero would.
        assert_eq!(root(4, (1, 1), constant(3)), None);
        assert_eq!(root(4, (0, 8), between(0, 3)), None);
    }
}
