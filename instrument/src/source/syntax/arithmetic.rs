//! Sums and products of integers, as tokens: what bounds, steps and macros that stand for numbers are made of.

use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::macros::Integer;
use std::ops::Range;

/// How deep parentheses and signs are followed.
const DEPTH: usize = 16;

/// What reads the operand that begins at a token: its value, and the token behind it.
pub(crate) type Operand<'a> = &'a dyn Fn(usize) -> Option<(Integer, usize)>;

/// The value of the tokens, if they are nothing but arithmetic of operands, no result of which is beyond `most`.
pub(crate) fn value(fragment: &Fragment, range: &Range<usize>, most: i64, operand: Operand) -> Option<Integer> {
    let mut reader = Reader { fragment, at: range.start, end: range.end, depth: 0, most, operand };
    let value = reader.sum()?;
    (reader.at == range.end).then_some(value)
}

struct Reader<'a> {
    fragment: &'a Fragment,
    at: usize,
    end: usize,
    depth: usize,
    most: i64,
    operand: Operand<'a>,
}

impl Reader<'_> {
    fn takes(&mut self, byte: u8) -> bool {
        let found = self.at < self.end && self.fragment.is(self.at, byte);
        self.at += usize::from(found);
        found
    }

    fn sum(&mut self) -> Option<Integer> {
        let mut left = self.product()?;
        loop {
            let (value, right) = if self.takes(b'+') {
                let right = self.product()?;
                (left.value.checked_add(right.value)?, right)
            } else if self.takes(b'-') {
                let right = self.product()?;
                (left.value.checked_sub(right.value)?, right)
            } else {
                return Some(left);
            };
            left = self.small(value, left.unsigned || right.unsigned)?;
        }
    }

    fn product(&mut self) -> Option<Integer> {
        let mut left = self.factor()?;
        loop {
            let (value, right) = if self.takes(b'*') {
                let right = self.factor()?;
                (left.value.checked_mul(right.value)?, right)
            } else if self.takes(b'/') {
                let right = self.factor()?;
                (left.value.checked_div(right.value)?, right)
            } else {
                return Some(left);
            };
            left = self.small(value, left.unsigned || right.unsigned)?;
        }
    }

    fn factor(&mut self) -> Option<Integer> {
        if self.at >= self.end || self.depth > DEPTH {
            return None;
        }
        if self.takes(b'-') {
            self.depth += 1;
            let Integer { value, unsigned } = self.factor()?;
            return self.small(value.checked_neg()?, unsigned);
        }
        if self.takes(b'(') {
            self.depth += 1;
            let inner = self.sum()?;
            self.depth -= 1;
            return self.takes(b')').then_some(inner);
        }
        let (value, behind) = (self.operand)(self.at)?;
        self.at = behind;
        Some(value)
    }

    /// The negative of an unsigned number is a huge one, and no sum of small ones overflows.
    fn small(&self, value: i64, unsigned: bool) -> Option<Integer> {
        (value.unsigned_abs() <= self.most.unsigned_abs() && (value >= 0 || !unsigned)).then_some(Integer { value, unsigned })
    }
}
