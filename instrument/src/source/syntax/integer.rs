//! Integers and their sums and products, as tokens. Bounds, steps, and macros that stand for numbers are made of these.

use crate::source::syntax::fragment::Fragment;
use std::ops::Range;

/// How deep parentheses and signs are followed.
const DEPTH: usize = 16;

/// An integer that a name stands for, or a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Integer {
    pub(crate) value: i64,
    /// Its type is unsigned, and so is a comparison with it.
    pub(crate) unsigned: bool,
}

/// A decimal integer that is not too large, with a suffix perhaps: no sum of two such overflows 32 bits.
pub(crate) fn literal(text: &[u8]) -> Option<Integer> {
    let text: Vec<u8> = text.iter().copied().filter(|byte| *byte != b'\'').collect();
    let count = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(count);
    if !suffix.iter().all(|byte| matches!(byte, b'u' | b'U' | b'l' | b'L')) || (digits.starts_with(b"0") && digits != b"0") {
        return None;
    }
    let value = std::str::from_utf8(digits).ok()?.parse().ok().filter(|value| *value <= 1 << 29)?;
    Some(Integer { value, unsigned: suffix.iter().any(|byte| matches!(byte, b'u' | b'U')) })
}

/// Reads the operand that begins at a token: its value, and the token behind it.
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
