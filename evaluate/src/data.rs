//! Elements of device memory: what they hold before a launch, and whether they hold the right thing after it.

use serde::Deserialize;
use std::fmt;

/// Type of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

impl Type {
    /// Its size in bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    fn is_fraction(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// One element as text.
    fn shown(self, bytes: &[u8]) -> String {
        macro_rules! shown {
            ($type:ty) => {
                bytes.try_into().map(|bytes| <$type>::from_le_bytes(bytes).to_string())
            };
        }
        let shown = match self {
            Self::I8 => shown!(i8),
            Self::I16 => shown!(i16),
            Self::I32 => shown!(i32),
            Self::I64 => shown!(i64),
            Self::U8 => shown!(u8),
            Self::U16 => shown!(u16),
            Self::U32 => shown!(u32),
            Self::U64 => shown!(u64),
            Self::F32 => shown!(f32),
            Self::F64 => shown!(f64),
        };
        shown.unwrap_or_default()
    }

    fn fraction(self, bytes: &[u8]) -> f64 {
        match self {
            Self::F32 => bytes.try_into().map_or(f64::NAN, |bytes| f32::from_le_bytes(bytes).into()),
            _ => bytes.try_into().map_or(f64::NAN, f64::from_le_bytes),
        }
    }
}

/// A number as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Number {
    Int(i64),
    Fraction(f64),
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => value.fmt(formatter),
            Self::Fraction(value) => value.fmt(formatter),
        }
    }
}

impl Number {
    #[expect(clippy::cast_precision_loss, reason = "what a fraction can't hold is rounded, as in C")]
    fn fraction(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Fraction(value) => value,
        }
    }

    fn put(self, element: Type, bytes: &mut Vec<u8>) -> Result<(), String> {
        macro_rules! whole {
            ($type:ty) => {
                match self {
                    Self::Int(value) => {
                        bytes.extend(<$type>::try_from(value).map_err(|_| format!("{value} is no {element}"))?.to_le_bytes())
                    }
                    Self::Fraction(value) => return Err(format!("{value} is no {element}")),
                }
            };
        }
        match element {
            Type::I8 => whole!(i8),
            Type::I16 => whole!(i16),
            Type::I32 => whole!(i32),
            Type::I64 => whole!(i64),
            Type::U8 => whole!(u8),
            Type::U16 => whole!(u16),
            Type::U32 => whole!(u32),
            Type::U64 => whole!(u64),
            Type::F32 => bytes.extend((self.fraction() as f32).to_le_bytes()),
            Type::F64 => bytes.extend(self.fraction().to_le_bytes()),
        }
        Ok(())
    }
}

/// The bytes of elements.
pub(crate) fn bytes(element: Type, values: &[Number]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(values.len() * element.bytes());
    for value in values {
        value.put(element, &mut bytes)?;
    }
    Ok(bytes)
}

/// What memory holds before a launch.
#[derive(Debug, Clone)]
pub(crate) enum Filling {
    Constant(Number),
    /// Start and step.
    Range(Number, Number),
    /// Evenly between the two, of whole numbers both included; the same for the same seed, everywhere.
    Random {
        low: Number,
        high: Number,
        seed: u64,
    },
    Values(Vec<Number>),
    Bytes(Vec<u8>),
    /// Marks, so that what a kernel leaves out shows. As fractions they are no numbers, so that no tolerance covers them.
    Marks,
}

/// Most bytes of one argument's memory.
const MOST_BYTES: usize = 1 << 34;

impl Filling {
    /// The bytes of so many elements.
    pub(crate) fn contents(self, element: Type, count: Option<usize>) -> Result<Vec<u8>, String> {
        let size = element.bytes();
        let given = match &self {
            Self::Values(values) => Some(values.len()),
            Self::Bytes(bytes) if bytes.len() % size != 0 => return Err(format!("{} bytes are no whole number of {element}", bytes.len())),
            Self::Bytes(bytes) => Some(bytes.len() / size),
            _ => None,
        };
        let count = match (given, count) {
            (Some(given), Some(count)) if given != count => return Err(format!("{given} elements are given, and `count` says {count}")),
            (Some(count), _) | (None, Some(count)) => count,
            (None, None) => return Err("say how many elements by `count`".into()),
        };
        if count == 0 || count > MOST_BYTES / size {
            return Err(format!("{count} elements are none, or too many"));
        }
        match self {
            Self::Constant(value) => Ok(bytes(element, &[value])?.repeat(count)),
            Self::Range(start, step) => {
                let value = |index: usize| match (start, step) {
                    (Number::Int(start), Number::Int(step)) => {
                        let step =
                            i64::try_from(index).ok().and_then(|index| step.checked_mul(index)).and_then(|way| start.checked_add(way));
                        step.map(Number::Int).ok_or_else(|| "the range is larger than 64 bits".to_owned())
                    }
                    #[expect(clippy::cast_precision_loss, reason = "indices beyond 2^53 are more than memory holds")]
                    _ => Ok(Number::Fraction(step.fraction().mul_add(index as f64, start.fraction()))),
                };
                bytes(element, &(0..count).map(value).collect::<Result<Vec<_>, _>>()?)
            }
            Self::Random { low, high, seed } => random(element, count, low, high, seed),
            Self::Values(values) => bytes(element, &values),
            Self::Bytes(bytes) => Ok(bytes),
            Self::Marks => {
                let mut bytes = marks(count * size);
                let no_number: &[u8] = match element {
                    Type::F32 => &[0, 0, 0xc0, 0x7f],
                    Type::F64 => &[0, 0, 0, 0, 0, 0, 0xf8, 0x7f],
                    _ => &[],
                };
                bytes.iter_mut().zip(no_number.iter().cycle()).for_each(|(byte, bits)| *byte |= bits);
                Ok(bytes)
            }
        }
    }
}

/// Bytes that differ from place to place, none of them 0 or 0xff: neither a stray zero nor a stray -1 leaves them as they are.
pub(crate) fn marks(length: usize) -> Vec<u8> {
    let mut words = split_mix(0x6375_696e_7374_7221);
    let bytes = std::iter::repeat_with(move || words().to_le_bytes()).flatten().filter(|byte| !matches!(byte, 0 | 0xff));
    bytes.take(length).collect()
}

/// Numbers from a seed, the same everywhere. `SplitMix64`: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
fn split_mix(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn random(element: Type, count: usize, low: Number, high: Number, seed: u64) -> Result<Vec<u8>, String> {
    let mut next = split_mix(seed);
    let value: Box<dyn FnMut() -> Number> = if element.is_fraction() {
        let (low, high) = (low.fraction(), high.fraction());
        if !(low.is_finite() && high.is_finite() && low < high) {
            return Err(format!("random = [{low}, {high}]: the second must be larger"));
        }
        #[expect(clippy::cast_precision_loss, reason = "53 bits are all that a fraction holds")]
        Box::new(move || Number::Fraction((next() >> 11) as f64 / (1_u64 << 53) as f64 * (high - low) + low))
    } else {
        let (Number::Int(low), Number::Int(high)) = (low, high) else {
            return Err(format!("random = [{low}, {high}]: {element} has whole numbers only"));
        };
        if low > high {
            return Err(format!("random = [{low}, {high}]: the second must not be smaller"));
        }
        let span = (i128::from(high) - i128::from(low) + 1).unsigned_abs();
        let drawn = move || {
            let above = (u128::from(next()) * span) >> 64;
            Number::Int(i64::try_from(i128::from(low) + above.cast_signed()).unwrap_or(low))
        };
        Box::new(drawn)
    };
    let values: Vec<Number> = std::iter::repeat_with(value).take(count).collect();
    bytes(element, &values)
}

/// How far an answer may be from the reference's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    absolute: f64,
    relative: f64,
}

impl Tolerance {
    pub(crate) fn new(element: Type, absolute: Option<f64>, relative: Option<f64>) -> Result<Self, String> {
        let asked = absolute.is_some() || relative.is_some();
        let (absolute, relative) = (absolute.unwrap_or(0.0), relative.unwrap_or(0.0));
        if asked && !element.is_fraction() {
            return Err(format!("a tolerance is of fractions, and {element} is a whole number"));
        }
        if !(absolute >= 0.0 && relative >= 0.0 && absolute.is_finite() && relative.is_finite()) {
            return Err("a tolerance is no negative number".into());
        }
        Ok(Self { absolute, relative })
    }

    /// Whether only equal bits will do.
    fn is_exact(self) -> bool {
        self.absolute == 0.0 && self.relative == 0.0
    }
}

/// The first element that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) index: usize,
    pub(crate) expected: String,
    pub(crate) found: String,
    /// How many there are.
    pub(crate) count: usize,
}

/// Compares what a kernel left with what the reference left. Without a tolerance all bits must be equal; with one a NaN is like any other.
pub(crate) fn compare(element: Type, tolerance: Tolerance, expected: &[u8], found: &[u8]) -> Option<Difference> {
    if expected == found {
        return None;
    }
    let size = element.bytes();
    let differs = |(index, (expected, found)): (usize, (&[u8], &[u8]))| {
        if expected == found {
            return None;
        }
        if !tolerance.is_exact() {
            let (wanted, got) = (element.fraction(expected), element.fraction(found));
            let near = (wanted - got).abs() <= tolerance.absolute + tolerance.relative * wanted.abs();
            #[expect(clippy::float_cmp, reason = "infinities of one sign are equal, and their difference is no number")]
            if near || wanted == got || (wanted.is_nan() && got.is_nan()) {
                return None;
            }
        }
        Some((index, element.shown(expected), element.shown(found)))
    };
    let mut differing = expected.chunks_exact(size).zip(found.chunks_exact(size)).enumerate().filter_map(differs);
    let (index, expected, found) = differing.next()?;
    Some(Difference { index, expected, found, count: 1 + differing.count() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_filled_as_said() {
        let int = Number::Int;
        assert_eq!(Filling::Range(int(3), int(-2)).contents(Type::I8, Some(3)).unwrap(), [3, 1, 0xff]);
        assert_eq!(Filling::Constant(int(1)).contents(Type::U16, Some(2)).unwrap(), [1, 0, 1, 0]);
        assert_eq!(Filling::Constant(int(1)).contents(Type::F32, Some(1)).unwrap(), 1.0_f32.to_le_bytes());
        let random = |seed| Filling::Random { low: int(-3), high: int(3), seed }.contents(Type::I32, Some(1000)).unwrap();
        assert_eq!(random(1), random(1));
        assert_ne!(random(1), random(2));
        let numbers: Vec<i32> = random(5).chunks(4).map(|bytes| i32::from_le_bytes(bytes.try_into().unwrap())).collect();
        assert_eq!((numbers.iter().min(), numbers.iter().max()), (Some(&-3), Some(&3)));
        let all = Filling::Random { low: int(i64::MIN), high: int(i64::MAX), seed: 0 }.contents(Type::I64, Some(2)).unwrap();
        assert_ne!(all[..8], all[8..]);
        let fractions = Filling::Random { low: int(2), high: Number::Fraction(2.5), seed: 9 }.contents(Type::F32, Some(100)).unwrap();
        assert!(fractions.chunks(4).all(|bytes| (2.0..=2.5).contains(&f32::from_le_bytes(bytes.try_into().unwrap()))));
    }

    #[test]
    fn what_a_kernel_leaves_out_shows() {
        for element in [Type::U8, Type::I32, Type::U64] {
            let bytes = Filling::Marks.contents(element, Some(64)).unwrap();
            assert!(
                bytes.iter().all(|byte| !matches!(byte, 0 | 0xff))
                    && bytes.windows(8).all(|window| window != &bytes[..8] || window.as_ptr() == bytes.as_ptr())
            );
        }
        let near = Tolerance::new(Type::F64, Some(1e300), Some(1e10)).unwrap();
        let zeros = [0; 64];
        let found = compare(Type::F64, near, &zeros, &Filling::Marks.contents(Type::F64, Some(8)).unwrap()).unwrap();
        assert_eq!((found.count, found.found.as_str()), (8, "NaN"));
        let fractions = Filling::Marks.contents(Type::F32, Some(8)).unwrap();
        assert!(fractions.chunks(4).all(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()).is_nan()));
    }

    #[test]
    fn what_differs_is_found_and_what_is_near_enough_is_not() {
        let floats = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let exact = Tolerance::new(Type::F32, None, None).unwrap();
        let near = Tolerance::new(Type::F32, Some(0.01), Some(0.1)).unwrap();
        let (a, b) = (floats(&[1.0, 100.0, f32::NAN, f32::INFINITY]), floats(&[1.1, 100.5, -f32::NAN, f32::INFINITY]));
        let found = compare(Type::F32, exact, &a, &b).unwrap();
        assert_eq!((found.index, found.count, found.expected.as_str(), found.found.as_str()), (0, 3, "1", "1.1"));
        assert_eq!(compare(Type::F32, near, &a, &b), None);
        assert!(compare(Type::F32, near, &floats(&[0.0]), &floats(&[f32::NAN])).is_some());
        assert!(compare(Type::F32, near, &floats(&[1.0]), &floats(&[f32::INFINITY])).is_some());
        assert!(compare(Type::F32, exact, &floats(&[0.0]), &floats(&[-0.0])).is_some());
    }
}
