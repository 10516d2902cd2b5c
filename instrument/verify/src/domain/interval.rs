//! Intervals with a stride: sets of integers modulo a power of two. They form the lattice of the abstract domain, with
//! `join`, `meet` and `widen`.

use crate::program::instruction::Order;

/// `{ lo, lo + step, …, hi }` modulo 2^width. `hi - lo` is less than 2^width; `step` is 0 if and only if there is one value only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) lo: i128,
    pub(crate) hi: i128,
    pub(crate) step: u64,
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// 2^width.
fn size(width: u8) -> i128 {
    1_i128 << width.min(64)
}

impl Interval {
    /// Every value of that width.
    pub(crate) fn full(width: u8) -> Self {
        Self { lo: 0, hi: size(width) - 1, step: 1 }
    }

    pub(crate) fn constant(value: i128, width: u8) -> Self {
        let value = value & (size(width) - 1);
        Self { lo: value, hi: value, step: 0 }
    }

    /// A number as an instruction's operand of that width. As a predicate each but 0 is true.
    pub(crate) fn immediate(value: i128, width: u8) -> Self {
        Self::constant(if width == 1 { i128::from(value != 0) } else { value }, width)
    }

    /// All from `lo` to `hi`, by steps of one.
    pub(crate) fn between(lo: i128, hi: i128, width: u8) -> Self {
        Self::normal(lo, hi, 1, width)
    }

    /// The one value, as unsigned.
    pub(crate) fn value(self, width: u8) -> Option<i128> {
        (self.lo == self.hi).then(|| self.lo & (size(width) - 1))
    }

    pub(crate) fn is_full(self, width: u8) -> bool {
        self.hi - self.lo >= size(width) - 1
    }

    /// Brings the interval to where it is contiguous as unsigned or else as signed integers.
    fn normal(lo: i128, hi: i128, step: u64, width: u8) -> Self {
        let size = size(width);
        if hi < lo || hi - lo >= size {
            return Self::whole(lo, step, 0, width);
        }
        // Rounds down to a multiple of the size, which is a power of two.
        let shift = lo & -size;
        let (lo, hi) = (lo - shift, hi - shift);
        let step = if lo == hi { 0 } else { step.max(1) };
        if hi < size {
            return Self { lo, hi, step };
        }
        let (lo, hi) = (lo - size, hi - size);
        if lo >= -size / 2 && hi < size / 2 { Self { lo, hi, step } } else { Self::whole(lo, step, 0, width) }
    }

    /// All values from `least` on; of those only each `step`-th, through `on`, where that is the same after wrapping round.
    fn whole(on: i128, step: u64, least: i128, width: u8) -> Self {
        // Of a stride only its power of two is the same after wrapping round.
        let step = i128::from(step & step.wrapping_neg()).clamp(1, size(width));
        let lo = least + ((on - least) & (step - 1));
        Self { lo, hi: lo + size(width) - step, step: if step == size(width) { 0 } else { step.unsigned_abs() as u64 } }
    }

    /// As unsigned integers; all of them if it is no interval of these.
    pub(crate) fn unsigned(self, width: u8) -> Self {
        if self.lo >= 0 && self.hi < size(width) && (self.step != 0) == (self.lo != self.hi) {
            return self;
        }
        let moved = Self::normal(self.lo, self.hi, self.step, width);
        if moved.lo >= 0 { moved } else { Self::whole(moved.lo, moved.step, 0, width) }
    }

    /// As signed integers.
    pub(crate) fn signed(self, width: u8) -> Self {
        let half = size(width) / 2;
        let moved = if self.lo >= half { Self { lo: self.lo - 2 * half, hi: self.hi - 2 * half, ..self } } else { self };
        if moved.lo >= -half && moved.hi < half { moved } else { Self::whole(moved.lo, moved.step, -half, width) }
    }

    /// As signed or unsigned integers.
    pub(crate) fn as_integers(self, signed: bool, width: u8) -> Self {
        if signed { self.signed(width) } else { self.unsigned(width) }
    }

    /// A set that holds both.
    pub(crate) fn join(self, other: Self, width: u8) -> Self {
        if self == other {
            return self;
        }
        let hull = |a: Self, b: Self| {
            let step = gcd(gcd(a.step, b.step), (a.lo - b.lo).unsigned_abs() as u64);
            Self { lo: a.lo.min(b.lo), hi: a.hi.max(b.hi), step: step.max(1) }
        };
        let unsigned = hull(self.unsigned(width), other.unsigned(width));
        let signed = hull(self.signed(width), other.signed(width));
        let best = if signed.hi - signed.lo < unsigned.hi - unsigned.lo { signed } else { unsigned };
        Self::normal(best.lo, best.hi, best.step, width)
    }

    /// From `lo` to `hi` by steps.
    pub(crate) fn strided(lo: i128, hi: i128, step: u64, width: u8) -> Self {
        Self::normal(lo, hi, step, width)
    }

    /// A set that holds what is in both; `None` if nothing is.
    pub(crate) fn meet(self, other: Self, width: u8) -> Option<Self> {
        if self == other || other.is_full(width) && other.step <= 1 {
            return Some(self);
        }
        let both = |a: Self, b: Self| {
            // The wider stride decides; the other may thin it out further, which is not followed.
            let stride = if a.step >= b.step && a.lo != a.hi {
                a
            } else if b.lo != b.hi {
                b
            } else {
                a
            };
            let step = i128::from(stride.step.max(1));
            let (lo, hi) = (a.lo.max(b.lo), a.hi.min(b.hi));
            let (lo, hi) = if step == 1 {
                (lo, hi)
            } else {
                (stride.lo + (lo - stride.lo + step - 1).div_euclid(step) * step, stride.lo + (hi - stride.lo).div_euclid(step) * step)
            };
            (lo <= hi).then_some((lo, hi, stride.step.max(1)))
        };
        let part = |signed: bool| {
            let (a, b) = (self.as_integers(signed, width), other.as_integers(signed, width));
            if a.misses(b) { None } else { both(a, b) }
        };
        // What is in both is in each reading of both.
        let (unsigned, signed) = (part(false)?, part(true)?);
        let best = if signed.1 - signed.0 < unsigned.1 - unsigned.0 { signed } else { unsigned };
        let best = Self::normal(best.0, best.1, best.2, width);
        // Each may be contiguous in a reading in which the other is not.
        let moved = |by: i128| Self { lo: other.lo + by, hi: other.hi + by, ..other };
        let mut pieces = [-size(width), 0, size(width)].into_iter().filter_map(|by| both(self, moved(by)));
        let (lo, hi, step) = pieces.next()?;
        let exact = Self::normal(lo, hi, step, width);
        let is_better = exact.hi - exact.lo < best.hi - best.lo && exact.step >= best.step;
        Some(if pieces.next().is_none() && is_better { exact } else { best })
    }

    /// Sum modulo 2^width.
    pub(crate) fn add(self, other: Self, width: u8) -> Self {
        Self::normal(self.lo + other.lo, self.hi + other.hi, gcd(self.step, other.step), width)
    }

    /// Difference modulo 2^width.
    pub(crate) fn sub(self, other: Self, width: u8) -> Self {
        Self::normal(self.lo - other.hi, self.hi - other.lo, gcd(self.step, other.step), width)
    }

    /// Product with a constant that may be negative.
    pub(crate) fn times(self, factor: i128, width: u8) -> Self {
        let (Some(a), Some(b)) = (self.lo.checked_mul(factor), self.hi.checked_mul(factor)) else { return Self::full(width) };
        let step = u128::from(self.step).checked_mul(factor.unsigned_abs()).and_then(|step| u64::try_from(step).ok()).unwrap_or(1);
        Self::normal(a.min(b), a.max(b), step, width)
    }

    /// What a comparison with `other` comes to, if it is always the same.
    pub(crate) fn compare(self, order: Order, other: Self, signed: bool, width: u8) -> Option<bool> {
        let (a, b) = (self.as_integers(signed, width), other.as_integers(signed, width));
        match order {
            Order::Eq if a.lo == a.hi && a == b => Some(true),
            Order::Eq if a.hi < b.lo || b.hi < a.lo || a.misses(b) => Some(false),
            Order::Lt if a.hi < b.lo => Some(true),
            Order::Lt if a.lo >= b.hi => Some(false),
            Order::Le if a.hi <= b.lo => Some(true),
            Order::Le if a.lo > b.hi => Some(false),
            Order::Ne | Order::Ge | Order::Gt => {
                let opposite = order.not();
                self.compare(opposite, other, signed, width).map(|holds| !holds)
            }
            _ => None,
        }
    }

    /// Whether the strides never meet.
    fn misses(self, other: Self) -> bool {
        let step = gcd(self.step, other.step);
        step > 1 && (self.lo - other.lo).rem_euclid(i128::from(step)) != 0
    }

    /// The part for which the comparison holds; `None` if there is none.
    pub(crate) fn restrict(self, order: Order, other: Self, signed: bool, width: u8) -> Option<Self> {
        match order {
            Order::Eq => self.meet(other, width),
            // Whether two values differ is the same in both readings, but a value at an end of one may be amid the other.
            Order::Ne => {
                let (one, two) = (self.restrict_as(order, other, signed, width)?, self.restrict_as(order, other, !signed, width)?);
                Some(if two.hi - two.lo < one.hi - one.lo { two } else { one })
            }
            _ => self.restrict_as(order, other, signed, width),
        }
    }

    /// The same in one reading.
    fn restrict_as(self, order: Order, other: Self, signed: bool, width: u8) -> Option<Self> {
        let (mut a, b) = (self.as_integers(signed, width), other.as_integers(signed, width));
        let step = i128::from(a.step.max(1));
        match order {
            Order::Eq => {
                a.lo = a.lo.max(b.lo);
                a.hi = a.hi.min(b.hi);
            }
            Order::Ne if b.lo == b.hi => {
                if a.lo == b.lo {
                    a.lo += step;
                }
                if a.hi == b.lo {
                    a.hi -= step;
                }
            }
            Order::Ne => {}
            Order::Lt => a.hi = a.hi.min(b.hi - 1),
            Order::Le => a.hi = a.hi.min(b.hi),
            Order::Gt => a.lo = a.lo.max(b.lo + 1),
            Order::Ge => a.lo = a.lo.max(b.lo),
        }
        // Ends stay on the stride that the whole had.
        let whole = self.as_integers(signed, width);
        if step != 1 {
            let from = whole.lo;
            a.lo = from + (a.lo - from + step - 1).div_euclid(step) * step;
            a.hi = from + (a.hi - from).div_euclid(step) * step;
        }
        if a.lo > a.hi {
            return None;
        }
        // What is contiguous in one reading only keeps its old form where nothing was gained.
        if (a.lo, a.hi) == (whole.lo, whole.hi) { Some(self) } else { Some(Self::normal(a.lo, a.hi, a.step, width)) }
    }

    /// The least of a few sets that holds both and has its ends at one of the marks: so a growing sequence of sets comes to an end.
    /// There are marks for the lower end and for the upper.
    pub(crate) fn widen(self, grown: Self, lower: &[i128], upper: &[i128], width: u8) -> Self {
        if self == grown {
            return self;
        }
        for signed in [false, true] {
            let (old, new) = (self.as_integers(signed, width), grown.as_integers(signed, width));
            // In one reading, `{0, -8}` is all multiples of eight; in the other it is a count that goes down from zero.
            let is_whole = new.hi - new.lo >= size(width) - i128::from(new.step.max(1));
            if is_whole {
                continue;
            }
            let (least, most) = if signed { (-size(width) / 2, size(width) / 2 - 1) } else { (0, size(width) - 1) };
            // A mark is a number of either reading: -15 is 2^32 - 15 as well.
            let here = |mark: &i128| if *mark < least { mark + size(width) } else { *mark };
            let step = i128::from(new.step.max(1));
            let hi = if new.hi > old.hi {
                let mark = upper.iter().map(here).filter(|mark| *mark >= new.hi).min().unwrap_or(most).min(most);
                new.hi + (mark - new.hi).div_euclid(step) * step
            } else {
                new.hi
            };
            let lo = if new.lo < old.lo {
                let mark = lower.iter().map(here).filter(|mark| *mark <= new.lo).max().unwrap_or(least).max(least);
                new.lo - (new.lo - mark).div_euclid(step) * step
            } else {
                new.lo
            };
            if hi - lo < size(width) - 1 {
                return Self::normal(lo, hi, new.step, width);
            }
        }
        Self::whole(grown.lo, grown.step, 0, width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every set of values of three bits that an interval with a stride can be.
    fn ranges() -> Vec<Interval> {
        let mut found = Vec::new();
        for lo in -4..8 {
            for step in 1..8_u64 {
                for count in 1..8 {
                    let hi = lo + count * i128::from(step);
                    if hi - lo < 8 {
                        found.push(Interval::normal(lo, hi, step, 3));
                    }
                }
            }
            found.push(Interval::constant(lo, 3));
        }
        found
    }

    fn values(range: Interval) -> Vec<bool> {
        let mut holds = vec![false; 8];
        let mut at = range.lo;
        while at <= range.hi {
            holds[at.rem_euclid(8) as usize] = true;
            at += i128::from(range.step.max(1));
        }
        holds
    }

    fn within(small: &[bool], large: &[bool]) -> bool {
        small.iter().zip(large).all(|(small, large)| !small || *large)
    }

    fn signed_of(value: usize) -> i128 {
        if value >= 4 { value as i128 - 8 } else { value as i128 }
    }

    fn holds(order: Order, a: i128, b: i128) -> bool {
        match order {
            Order::Eq => a == b,
            Order::Ne => a != b,
            Order::Lt => a < b,
            Order::Le => a <= b,
            Order::Gt => a > b,
            Order::Ge => a >= b,
        }
    }

    #[test]
    fn no_operation_loses_a_value() {
        for a in ranges() {
            let in_a = values(a);
            assert!(within(&in_a, &values(a.unsigned(3))) && within(&in_a, &values(a.signed(3))), "{a:?}");
            for factor in -3..4 {
                let product = values(a.times(factor, 3));
                assert!((0..8).all(|x| !in_a[x] || product[(x as i128 * factor).rem_euclid(8) as usize]), "{a:?} * {factor}");
            }
            for b in ranges() {
                let in_b = values(b);
                let (join, sum, difference) = (values(a.join(b, 3)), values(a.add(b, 3)), values(a.sub(b, 3)));
                assert!(within(&in_a, &join) && within(&in_b, &join), "{a:?} {b:?}");
                let grown = a.join(b, 3);
                for marks in [&[0, 3, 5][..], &[], &[-2, 1]] {
                    assert!(within(&values(grown), &values(a.widen(grown, marks, &marks[..marks.len() / 2], 3))), "{a:?} {b:?} {marks:?}");
                }
                let met = a.meet(b, 3).map_or(vec![false; 8], values);
                assert!((0..8).all(|x| !(in_a[x] && in_b[x]) || met[x]), "{a:?} {b:?}");
                for x in (0..8).filter(|x| in_a[*x]) {
                    for y in (0..8).filter(|y| in_b[*y]) {
                        assert!(sum[(x + y) % 8] && difference[(8 + x - y) % 8], "{a:?} {b:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn comparisons_are_right_for_every_pair_of_values() {
        let orders = [Order::Eq, Order::Ne, Order::Lt, Order::Le, Order::Gt, Order::Ge];
        for a in ranges() {
            for b in ranges() {
                for order in orders {
                    for signed in [false, true] {
                        let read = |value: usize| if signed { signed_of(value) } else { value as i128 };
                        let (in_a, in_b) = (values(a), values(b));
                        let answer = a.compare(order, b, signed, 3);
                        let part = a.restrict(order, b, signed, 3).map(values);
                        for x in (0..8).filter(|x| in_a[*x]) {
                            for y in (0..8).filter(|y| in_b[*y]) {
                                let truth = holds(order, read(x), read(y));
                                assert!(answer.is_none_or(|answer| answer == truth), "{a:?} {order:?} {b:?} {signed}");
                                assert!(!truth || part.as_ref().is_some_and(|part| part[x]), "{a:?} {order:?} {b:?} {signed} {part:?}");
                            }
                        }
                    }
                }
            }
        }
    }
}
