//! The scalar types that an instruction names.

/// How the bits of a value are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `.u8` to `.u64`, and `.b8` to `.b64`.
    Unsigned,
    /// `.s8` to `.s64`.
    Signed,
    /// `.f32` and `.f64`.
    Float,
    /// `.pred`.
    Predicate,
}

/// A scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Type {
    pub(crate) kind: Kind,
    /// Width; 1 for a predicate.
    pub(crate) bits: u32,
}

impl Type {
    /// The type that a modifier such as `u32` names.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        let (kind, bits) = match word {
            "pred" => (Kind::Predicate, 1),
            "f32" => (Kind::Float, 32),
            "f64" => (Kind::Float, 64),
            _ => {
                let kind = match word.as_bytes().first()? {
                    b'u' | b'b' => Kind::Unsigned,
                    b's' => Kind::Signed,
                    _ => return None,
                };
                (kind, word[1..].parse().ok().filter(|bits| matches!(bits, 8 | 16 | 32 | 64))?)
            }
        };
        Some(Self { kind, bits })
    }

    /// The type of twice the width.
    pub(crate) fn twice(self) -> Self {
        Self { bits: self.bits * 2, ..self }
    }

    pub(crate) fn is_signed(self) -> bool {
        self.kind == Kind::Signed
    }

    pub(crate) fn is_float(self) -> bool {
        self.kind == Kind::Float
    }

    pub(crate) fn bytes(self) -> usize {
        (self.bits as usize).div_ceil(8)
    }

    pub(crate) fn mask(self) -> u64 {
        mask(self.bits)
    }

    /// The value's lowest bits, extended to 64 bits as the type says.
    pub(crate) fn extend(self, value: u64) -> u64 {
        if self.is_signed() { self.signed(value) as u64 } else { value & self.mask() }
    }

    /// The value's lowest bits as a signed number.
    pub(crate) fn signed(self, value: u64) -> i64 {
        let shift = 64 - self.bits;
        (value << shift) as i64 >> shift
    }

    /// The value as the type reads it. The float kinds are read as unsigned.
    pub(crate) fn wide(self, value: u64) -> i128 {
        if self.is_signed() { i128::from(self.signed(value)) } else { i128::from(value & self.mask()) }
    }

    /// The nearest value that the type can hold.
    pub(crate) fn clamp(self, value: i128) -> u64 {
        let (least, most) =
            if self.is_signed() { (-(1_i128 << (self.bits - 1)), (1_i128 << (self.bits - 1)) - 1) } else { (0, i128::from(self.mask())) };
        value.clamp(least, most) as u64
    }
}

/// So many low bits set.
pub(crate) fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}
