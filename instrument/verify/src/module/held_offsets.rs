//! How far from the control block and from the flag an address may lie.

/// Half of all addresses.
const HALF: i128 = 1 << 63;

/// Beyond any offset.
pub(crate) const FAR: i128 = 1 << 66;

/// Offsets from where something begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offsets {
    pub(crate) least: i128,
    pub(crate) most: i128,
}

impl Offsets {
    pub(crate) const ZERO: Self = Self { least: 0, most: 0 };
    pub(crate) const ANY: Self = Self { least: -FAR, most: FAR };

    /// Sums are taken modulo 2^64: beyond half of that an offset may be any.
    pub(crate) fn plus(self, least: i128, most: i128) -> Self {
        let sum = Self { least: self.least + least, most: self.most + most };
        if -HALF <= sum.least && sum.most < HALF { sum } else { Self::ANY }
    }

    pub(crate) fn join(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    /// Those that are multiples of a power of two: an access elsewhere ends the kernel.
    pub(crate) fn aligned(self, to: i128) -> Self {
        Self { least: (self.least + to - 1).div_euclid(to) * to, most: self.most.div_euclid(to) * to }
    }

    /// Whether so many bytes from there on may lie on bytes from `from` up to `end`.
    pub(crate) fn meets(self, bytes: i128, from: i128, end: i128) -> bool {
        self.least < end && self.most + bytes > from
    }
}

/// The addresses that a register may hold, of those that matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) control: Option<Offsets>,
    pub(crate) flag: Option<Offsets>,
}

impl Held {
    pub(crate) const ANY: Self = Self { control: Some(Offsets::ANY), flag: Some(Offsets::ANY) };

    pub(crate) fn each(self, change: impl Fn(Offsets) -> Offsets) -> Self {
        Self { control: self.control.map(&change), flag: self.flag.map(&change) }
    }

    pub(crate) fn join(self, other: Self) -> Self {
        let join = |one: Option<Offsets>, two: Option<Offsets>| match (one, two) {
            (Some(one), Some(two)) => Some(one.join(two)),
            (one, two) => one.or(two),
        };
        Self { control: join(self.control, other.control), flag: join(self.flag, other.flag) }
    }
}
