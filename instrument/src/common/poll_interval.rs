//! How much may run between two polls.

use crate::common::options::PollGap;

/// Most iterations, by weight, between two checks, however fast they are, as a power of two. Each loop of a nest is paid for ahead of those
/// inside it, so a nest of four may run four times as many.
pub(crate) const MOST_INTERVAL: u32 = 14;

/// Iterations, by weight, that a nest of loops runs before it pays, if the compiler may know its trips.
pub(crate) const NEST_BUDGET: u32 = 1024;

/// Most units that an iteration takes from that where the counter is multiplied or divided: a number of 64 bits is then soon over.
pub(crate) const UNITS_OF_SCALED: u32 = NEST_BUDGET / 64;

/// How many iterations, by weight, make up the gap between two polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PollInterval {
    /// Between the first checks of an activation, and between all checks of a function that the host may run too, as a power of two.
    pub(crate) first: u32,
    /// So few are not worth cutting.
    pub(crate) short: u32,
    /// The gap in units of 1024 nanoseconds.
    pub(crate) gap: u32,
}

impl PollInterval {
    /// The least that `first` is.
    pub(crate) const LEAST_FIRST: u32 = 5;

    /// 1024 units are about 20 microseconds of a full device; the clock tells better, once it was read.
    pub(crate) fn of(gap: PollGap) -> Self {
        let gap = u32::try_from(gap.nanoseconds() / 1000).unwrap_or(u32::MAX).max(1);
        let first = (52 * gap).ilog2().clamp(Self::LEAST_FIRST, MOST_INTERVAL);
        Self { first, short: 1 << (first - 2), gap }
    }
}
