//! Times as people write them: `2s`, `500ms`, `1.5s`.

const UNITS: [(&str, u64); 5] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000)];

/// Nanoseconds of a number and a unit, at least one.
///
/// # Errors
/// A sentence for the user, if the text is no time or zero, finer than a nanosecond, or longer than 64 bits hold (584
/// years).
pub fn parse(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if [whole, fraction].iter().any(|part| part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err("write a number and a unit, such as 2s or 500ms".to_owned());
    }
    if unit.is_empty() {
        return Err(format!("the unit is missing: {number}s, {number}ms, {number}us, {number}ns or {number}m"));
    }
    let Some(&(_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("`{unit}` is no unit: use ns, us, ms, s or m"));
    };
    let too_long = || "longer than 584 years".to_owned();
    let whole = whole.parse::<u64>().map_err(|_| too_long())?.checked_mul(scale).ok_or_else(too_long)?;
    let nanoseconds = whole.checked_add(part_of(scale, fraction)?).ok_or_else(too_long)?;
    if nanoseconds == 0 { Err("a timeout of zero would stop every launch".to_owned()) } else { Ok(nanoseconds) }
}

/// `0.fraction` of the scale, exactly.
fn part_of(scale: u64, fraction: &str) -> Result<u64, String> {
    let mut rest = u128::from(scale);
    let mut sum = 0;
    // Ten digits are enough for the largest scale; what is left must be zeros.
    for digit in fraction.trim_end_matches('0').bytes() {
        if rest % 10 != 0 {
            return Err("finer than a nanosecond".to_owned());
        }
        rest /= 10;
        sum += rest * u128::from(digit - b'0');
    }
    u64::try_from(sum).map_err(|_| "longer than 584 years".to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn times_are_read() {
        for (text, nanoseconds) in [
            ("2s", 2_000_000_000),
            ("500ms", 500_000_000),
            ("1.5s", 1_500_000_000),
            ("0.25us", 250),
            ("1.50000000000000000s", 1_500_000_000),
            ("7ns", 7),
            ("10m", 600_000_000_000),
            ("0.05m", 3_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(nanoseconds), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_says_why() {
        for (text, why) in [
            ("", "write a number"),
            ("s", "write a number"),
            ("-1s", "write a number"),
            ("1.s", "write a number"),
            (".5s", "write a number"),
            ("1.2.3s", "write a number"),
            ("2", "the unit is missing: 2s"),
            ("2h", "`h` is no unit"),
            ("2 s", "is no unit"),
            ("0s", "zero"),
            ("0.5ns", "finer"),
            ("1.0000000001s", "finer"),
            ("99999999999999999999s", "584"),
            ("18446744074s", "584"),
            ("\u{661}s", "write a number"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
