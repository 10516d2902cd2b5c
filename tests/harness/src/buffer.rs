//! Contents of a kernel's buffers: made from a header's words, the same on every machine, and compared bit for bit.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Type of a scalar or of a buffer's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum Type {
    U8,
    I32,
    U32,
    I64,
    U64,
    Bf16,
    F32,
    F64,
}

impl Type {
    /// Reads `i32` and the like.
    ///
    /// # Errors
    /// Names what is no type.
    pub fn parse(word: &str) -> Result<Self, String> {
        Ok(match word {
            "u8" => Self::U8,
            "i32" => Self::I32,
            "u32" => Self::U32,
            "i64" => Self::I64,
            "u64" => Self::U64,
            "bf16" => Self::Bf16,
            "f32" => Self::F32,
            "f64" => Self::F64,
            _ => return Err(format!("`{word}` is no type")),
        })
    }

    /// Bytes of one element.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::Bf16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Whether elements are floating-point numbers.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self, Self::Bf16 | Self::F32 | Self::F64)
    }

    /// Reads a value of this type as its bits.
    ///
    /// # Errors
    /// Names what is no value of this type.
    pub fn parse_bits(self, word: &str) -> Result<u64, String> {
        let bits = match self {
            Self::U8 => word.parse::<u8>().ok().map(u64::from),
            Self::I32 => word.parse::<i32>().ok().map(|value| u64::from(value.cast_unsigned())),
            Self::U32 => word.parse::<u32>().ok().map(u64::from),
            Self::I64 => word.parse::<i64>().ok().map(i64::cast_unsigned),
            Self::U64 => word.parse::<u64>().ok(),
            Self::Bf16 => word.parse::<f32>().ok().map(|value| u64::from(value.to_bits() >> 16)),
            Self::F32 => word.parse::<f32>().ok().map(|value| u64::from(value.to_bits())),
            Self::F64 => word.parse::<f64>().ok().map(f64::to_bits),
        };
        bits.ok_or_else(|| format!("`{word}` is no {self:?}").to_lowercase())
    }

    /// The bits of a whole number converted to this type as C does.
    #[expect(clippy::cast_precision_loss, reason = "C converts so too, and both sides of a comparison get the same")]
    fn whole_as_bits(self, value: u64) -> u64 {
        match self {
            Self::Bf16 => u64::from((value as f32).to_bits() >> 16),
            Self::F32 => u64::from((value as f32).to_bits()),
            Self::F64 => (value as f64).to_bits(),
            _ => value,
        }
    }

    /// An element as text, for reports.
    #[must_use]
    pub fn show(self, bits: u64) -> String {
        match self {
            Self::U8 | Self::U32 | Self::U64 => bits.to_string(),
            Self::I32 => (bits as u32).cast_signed().to_string(),
            Self::I64 => bits.cast_signed().to_string(),
            Self::Bf16 => format!("{:e}", f32::from_bits((bits as u32) << 16)),
            Self::F32 => format!("{:e}", f32::from_bits(bits as u32)),
            Self::F64 => format!("{:e}", f64::from_bits(bits)),
        }
    }
}

/// What a buffer holds before the launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Init {
    /// Zeros.
    Zero,
    /// Element `i` is `i`.
    Iota,
    /// Every element has these bits.
    Const(u64),
    /// Random, from a seed: floats in [0, 1), integers over their whole range.
    Rand(u64),
    /// Element `i` is `i * 2654435761 mod M`.
    Mod(u64),
    /// Element `i` is `i * D`: row offsets of rows with `D` entries each.
    Csr(u64),
    /// Columns of a strictly lower triangular matrix with `D` entries a row, `NEAR` to `NEAR + SPAN - 1` rows above it or the first.
    Lower(u64, u64, u64),
    /// A hash table of 32-bit keys with linear probing: holds `j * 2654435761` modulo 2^32 for `j` from 1 to `N`; 0 is an empty slot.
    Table(u64),
}

impl Init {
    /// Reads what follows a buffer's type.
    ///
    /// # Errors
    /// Says what is wrong with the words.
    pub fn parse(words: &[&str], ty: Type, count: usize) -> Result<Self, String> {
        let whole = |word: &str| word.parse::<u64>().map_err(|_| format!("`{word}` is no whole number"));
        Ok(match words {
            ["zero"] => Self::Zero,
            ["iota"] => Self::Iota,
            ["const", value] => Self::Const(ty.parse_bits(value)?),
            ["rand", seed] => Self::Rand(whole(seed)?),
            ["mod", modulus] => Self::Mod(Some(whole(modulus)?).filter(|&modulus| modulus > 0).ok_or("nothing is modulo zero")?),
            ["csr", rows, entries] if whole(rows)? + 1 == count as u64 => Self::Csr(whole(entries)?),
            ["lower", entries, near, span] => match (whole(entries)?, whole(near)?, whole(span)?) {
                (0, _, _) | (_, 0, _) | (_, _, 0) => return Err("a row has entries, above it".into()),
                (entries, near, span) => Self::Lower(entries, near, span),
            },
            ["table", keys] if ty == Type::U32 && count.is_power_of_two() && whole(keys)? < count as u64 => Self::Table(whole(keys)?),
            ["table", _] => return Err("a table is of `u32`, has a power of two of slots, and more slots than keys".into()),
            ["csr", rows, _] => return Err(format!("offsets of {rows} rows are one more than {rows} elements, not {count}")),
            _ => return Err(format!("`{}` is no way to fill a buffer", words.join(" "))),
        })
    }

    /// The bytes of a buffer so filled.
    #[must_use]
    pub fn bytes(self, ty: Type, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count * ty.size()];
        match self {
            Self::Zero => return bytes,
            Self::Table(keys) => {
                for (chunk, key) in bytes.chunks_exact_mut(ty.size()).zip(table(keys, count)) {
                    chunk.copy_from_slice(&key.to_le_bytes());
                }
                return bytes;
            }
            _ => {}
        }
        // Benchmarks have buffers of hundreds of megabytes.
        bytes.par_chunks_mut(PART * ty.size()).enumerate().for_each(|(part, bytes)| {
            for (index, chunk) in bytes.chunks_exact_mut(ty.size()).enumerate() {
                chunk.copy_from_slice(&self.bits((part * PART + index) as u64, ty).to_le_bytes()[..ty.size()]);
            }
        });
        bytes
    }

    /// The bits of one element.
    fn bits(self, index: u64, ty: Type) -> u64 {
        match self {
            Self::Zero | Self::Table(_) => 0,
            Self::Iota => ty.whole_as_bits(index),
            Self::Const(bits) => bits,
            Self::Rand(seed) => random(seed, index, ty),
            Self::Mod(modulus) => ty.whole_as_bits(index.wrapping_mul(2_654_435_761) % modulus),
            Self::Csr(entries) => ty.whole_as_bits(index * entries),
            Self::Lower(entries, near, span) => {
                let row = index / entries;
                ty.whole_as_bits(row - row.min(near + random(near, index, Type::U64) % span))
            }
        }
    }
}

/// Elements that one thread makes in one go.
const PART: usize = 1 << 16;

/// The slots of a hash table; `kernels/bench/hash_probe.cu` has the same hash.
fn table(keys: u64, slots: usize) -> Vec<u32> {
    let mut table = vec![0; slots];
    for key in (1..=keys as u32).map(|number| number.wrapping_mul(2_654_435_761)) {
        let mut hash = (key ^ (key >> 16)).wrapping_mul(0x85eb_ca6b);
        hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
        let mut slot = (hash ^ (hash >> 16)) as usize % slots;
        while table[slot] != 0 {
            slot = (slot + 1) % slots;
        }
        table[slot] = key;
    }
    table
}

/// `SplitMix64` (Steele, Lea and Flood 2014): short, good enough for inputs, and each word can be made by itself.
#[expect(clippy::cast_precision_loss, reason = "24 and 53 bits fit the mantissas")]
fn random(seed: u64, index: u64, ty: Type) -> u64 {
    let mut mixed = seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    match ty {
        Type::Bf16 => u64::from(((mixed >> 56) as f32 / 256.0).to_bits() >> 16),
        Type::F32 => u64::from(((mixed >> 40) as f32 / 16_777_216.0).to_bits()),
        Type::F64 => ((mixed >> 11) as f64 / 9_007_199_254_740_992.0).to_bits(),
        _ => mixed,
    }
}

/// The elements of a buffer as bits.
#[must_use]
pub fn elements(bytes: &[u8], ty: Type) -> Vec<u64> {
    let widen = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    bytes.chunks_exact(ty.size()).map(widen).collect()
}

/// How two buffers differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Elements that differ.
    pub count: usize,
    /// Index of the first, after sorting if the order means nothing.
    pub first: usize,
    /// It on the one side.
    pub left: String,
    /// It on the other.
    pub right: String,
}

/// Compares bit for bit.
#[must_use]
pub fn difference(left: &[u8], right: &[u8], ty: Type, sorted: bool) -> Option<Difference> {
    if left == right {
        return None;
    }
    let (mut left, mut right) = (elements(left, ty), elements(right, ty));
    if sorted {
        left.sort_unstable();
        right.sort_unstable();
    }
    let differing: Vec<usize> = (0..left.len().max(right.len())).filter(|&index| left.get(index) != right.get(index)).collect();
    let &first = differing.first()?;
    let show = |side: &[u64]| side.get(first).map_or("nothing".into(), |&bits| ty.show(bits));
    Some(Difference { count: differing.len(), first, left: show(&left), right: show(&right) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_fill_a_buffer_gives_its_elements() {
        assert_eq!(elements(&Init::Iota.bytes(Type::I32, 4), Type::I32), [0, 1, 2, 3]);
        assert_eq!(elements(&Init::Mod(10).bytes(Type::U64, 3), Type::U64), [0, 1, 2]);
        assert_eq!(elements(&Init::Csr(7).bytes(Type::I32, 3), Type::I32), [0, 7, 14]);
        assert_eq!(elements(&Init::Const(5).bytes(Type::U8, 2), Type::U8), [5, 5]);
        assert_eq!(Init::Zero.bytes(Type::F64, 2), [0; 16]);
        assert_eq!(elements(&Init::Const(0x3f80).bytes(Type::Bf16, 2), Type::Bf16), [Type::Bf16.parse_bits("1").expect("it is"); 2]);
        let columns = elements(&Init::Lower(2, 3, 5).bytes(Type::I32, 200), Type::I32);
        assert!(
            columns.iter().enumerate().skip(2).all(|(at, &column)| (at as u64 / 2).saturating_sub(7) <= column && column < at as u64 / 2)
        );
    }

    #[test]
    fn every_key_of_a_table_is_found_from_its_hash_on() {
        let table = table(600, 1024);
        assert_eq!(table.iter().filter(|&&key| key != 0).count(), 600);
        let mut keys: Vec<u32> = table.into_iter().filter(|&key| key != 0).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 600);
    }

    #[test]
    fn parts_follow_each_other() {
        let long = elements(&Init::Iota.bytes(Type::U32, 3 * PART + 5), Type::U32);
        assert!(long.iter().enumerate().all(|(index, &bits)| index as u64 == bits));
    }

    #[test]
    fn random_floats_lie_between_zero_and_one_and_do_not_change() {
        let bits = elements(&Init::Rand(3).bytes(Type::F32, 1000), Type::F32);
        assert!(bits.iter().all(|&bits| (0.0..1.0).contains(&f32::from_bits(bits as u32))));
        assert_eq!(Init::Rand(3).bytes(Type::F32, 1000), Init::Rand(3).bytes(Type::F32, 1000));
        assert_ne!(Init::Rand(3).bytes(Type::F32, 1000), Init::Rand(4).bytes(Type::F32, 1000));
        assert_eq!(
            elements(&Init::Rand(0).bytes(Type::U64, 1), Type::U64),
            [0xe220_a839_7b1d_cdaf],
            "the generator's published first word"
        );
    }

    #[test]
    fn a_difference_names_the_first_element() {
        let (left, right) = (Init::Iota.bytes(Type::F32, 5), Init::Zero.bytes(Type::F32, 5));
        let found = difference(&left, &right, Type::F32, false).expect("they differ");
        assert_eq!((found.count, found.first, found.left.as_str(), found.right.as_str()), (4, 1, "1e0", "0e0"));
    }

    #[test]
    fn order_means_nothing_where_the_header_says_so() {
        let (left, right) = ([1, 2, 3], [3, 1, 2]);
        assert!(difference(&left, &right, Type::U8, false).is_some());
        assert!(difference(&left, &right, Type::U8, true).is_none());
        assert!(difference(&left, &[1, 2, 2], Type::U8, true).is_some());
    }
}
