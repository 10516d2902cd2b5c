//! What the iterations of an inner loop cost the loop around it.

use crate::domain::delta::Price;
use crate::domain::interval::Interval;
use crate::domain::value::Value;

/// What rounds of a loop inside cost.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EdgeCost {
    /// So much for each round, where it ends.
    Round(u64),
    /// As many as the counter allows, where the loop is entered, and so much for each.
    Entry(Count, u32),
}

/// At most so many rounds come back: the loop has one iteration more each time that it is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) rounds: u64,
    /// How far it moves in each round at least.
    pub(crate) step: u64,
    /// The register that counts, as a slot; `u32::MAX` if none is needed.
    pub(crate) slot: u32,
    /// Whether it rises, rather than falls; and where it ends then, read as a signed integer or not.
    pub(crate) rises: bool,
    pub(crate) signed: bool,
    pub(crate) end: i128,
}

/// The loop never comes round.
pub(crate) const NEVER: Count = Count { rounds: 0, step: 1, slot: u32::MAX, rises: false, signed: false, end: 0 };

impl Count {
    /// With one round more, behind those that are counted.
    pub(crate) fn with_one_more(self) -> Self {
        let step = i128::from(self.step);
        Self { rounds: self.rounds.saturating_add(1), end: if self.rises { self.end + step } else { self.end - step }, ..self }
    }

    /// What it costs to enter the loop with this value in its register, if each round costs so much.
    pub(crate) fn price(&self, counter: &Value, factor: u32, width: u8) -> Price {
        let (range, whole) = (counter.range.as_integers(self.signed, width), Interval::full(width).as_integers(self.signed, width));
        let most = if self.rises { self.end - range.lo } else { range.hi - self.end };
        Price {
            form: counter.affine(width),
            rises: self.rises,
            end: self.end,
            least: whole.lo,
            greatest: whole.hi,
            most: most.max(0),
            factor,
        }
    }
}
