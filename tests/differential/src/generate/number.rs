//! Types of integers, their limits and their literals.

use cuinstr_harness::random::Random;

/// A type of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number {
    /// How it is spelled.
    pub(super) text: &'static str,
    pub(super) bits: u32,
    pub(super) signed: bool,
}

const fn signed(text: &'static str, bits: u32) -> Number {
    Number { text, bits, signed: true }
}

const fn unsigned(text: &'static str, bits: u32) -> Number {
    Number { text, bits, signed: false }
}

/// Every type, common ones several times.
const ALL: &[Number] = &[
    Number::INT,
    Number::INT,
    Number::INT,
    Number::INT,
    Number::UNSIGNED,
    Number::UNSIGNED,
    unsigned("unsigned", 32),
    Number::SIZE,
    Number::SIZE,
    Number::UNSIGNED_CHAR,
    signed("signed char", 8),
    signed("char", 8),
    signed("int8_t", 8),
    unsigned("uint8_t", 8),
    signed("short", 16),
    unsigned("unsigned short", 16),
    signed("int16_t", 16),
    unsigned("uint16_t", 16),
    signed("int32_t", 32),
    unsigned("uint32_t", 32),
    signed("long", 64),
    unsigned("unsigned long", 64),
    Number::LONG_LONG,
    unsigned("unsigned long long", 64),
    signed("int64_t", 64),
    unsigned("uint64_t", 64),
    signed("ptrdiff_t", 64),
    unsigned("std::size_t", 64),
    signed("long int", 64),
    unsigned("unsigned short int", 16),
];

impl Number {
    pub(super) const INT: Self = signed("int", 32);
    pub(super) const UNSIGNED: Self = unsigned("unsigned int", 32);
    pub(super) const LONG_LONG: Self = signed("long long", 64);
    pub(super) const SIZE: Self = unsigned("size_t", 64);
    pub(super) const UNSIGNED_CHAR: Self = unsigned("unsigned char", 8);

    pub(super) fn any(random: &mut Random) -> Self {
        random.of(ALL)
    }

    pub(super) fn min(self) -> i128 {
        if self.signed { -(1 << (self.bits - 1)) } else { 0 }
    }

    pub(super) fn max(self) -> i128 {
        if self.signed { (1 << (self.bits - 1)) - 1 } else { (1 << self.bits) - 1 }
    }
}

/// A literal of that value.
pub(super) fn literal(value: i128) -> String {
    match value {
        -9_223_372_036_854_775_808 => "(-9223372036854775807ll - 1)".into(),
        -2_147_483_648 => "(-2147483647 - 1)".into(),
        ..-2_147_483_648 => format!("{value}ll"),
        -2_147_483_647..=2_147_483_647 => value.to_string(),
        2_147_483_648..=4_294_967_295 => format!("{value}u"),
        4_294_967_296..=9_223_372_036_854_775_807 => format!("{value}ll"),
        _ => format!("{value}ull"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_type() {
        assert_eq!((Number::INT.min(), Number::INT.max()), (i128::from(i32::MIN), i128::from(i32::MAX)));
        assert_eq!((unsigned("size_t", 64).max(), Number::UNSIGNED_CHAR.max()), (i128::from(u64::MAX), 255));
        assert_eq!(literal(Number::UNSIGNED.max()), "4294967295u");
        assert_eq!(literal(i128::from(i64::MIN)), "(-9223372036854775807ll - 1)");
    }
}
