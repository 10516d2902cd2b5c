//! Integer constants.

/// A number of 64 bits without a sign: decimal, hexadecimal, octal or binary. None for others, and for more bits.
#[must_use]
pub fn unsigned(digits: &str) -> Option<u64> {
    let digits = digits.strip_suffix('U').unwrap_or(digits);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    // `from_str_radix` would take a sign.
    digits.bytes().all(|digit| digit.is_ascii_alphanumeric()).then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::unsigned;

    #[test]
    fn numbers_are_read_in_each_spelling() {
        let all = ["0", "12U", "0x1fU", "0X1F", "010", "0b11", "0B11", "18446744073709551615"];
        assert_eq!(all.map(unsigned), [0, 12, 31, 31, 8, 3, 3, u64::MAX].map(Some));
        let none = ["18446744073709551616", "0f3F800000", "1.5", "1e5", "", "0x", "+1"];
        assert_eq!(none.map(unsigned), [None; 7]);
    }
}
