//! Linear ranking functions: a register that rises or falls in each iteration gives a trip count.

use crate::domain::delta::Delta;
use crate::domain::interval::Interval;
use crate::domain::name::NO_NAME;
use crate::domain::state::State;
use crate::domain::value::Value;
use crate::interpret::edge_cost::Count;
use crate::interpret::pass::{Found, Pass};

/// Most rounds that one register may count without a poll.
pub const MOST_ROUNDS: u64 = 1 << 16;

/// Most rounds of loops within loops without a poll, their counts multiplied.
pub const MOST_TOGETHER: u64 = 1 << 26;

/// The least bound that some register gives: `base` is what registers hold at the head in any round, and `found` says how they come back.
///
/// Let a register be between L and H at the head in every round. In each round it moves by d in one direction, without
/// wrapping. Then at most (H - L) / d further rounds follow.
///
/// With `begun` the register is so only in rounds that another went before, which is one more.
pub(crate) fn count(pass: &Pass<'_, '_>, found: &Found, base: &State, begun: bool) -> Option<Count> {
    let again = found.again.as_ref()?;
    let mut best: Option<Count> = None;
    for (slot, value) in again.iter() {
        let Some(delta) = value.delta.filter(|delta| delta.slot == slot).map(Delta::plain) else { continue };
        let step = if delta.hi < 0 {
            -i128::from(delta.hi)
        } else if delta.lo > 0 {
            i128::from(delta.lo)
        } else {
            continue;
        };
        let (width, base) = (pass.slice.slots[slot as usize].1, base.get(slot));
        if !(2..=64).contains(&width) {
            continue;
        }
        let within = if pass.slice.is_close { start(found, again, slot, width) } else { None };
        for (holds, signed) in [(delta.unsigned, false), (delta.signed, true)] {
            let range = base.map_or(Interval::full(width), |base| base.range).as_integers(signed, width);
            let (mut lo, mut hi) = (range.lo, range.hi);
            // Where rounds that come back begin nearer to each other than all do, the last of them goes one step beyond.
            if let Some(within) = within.map(|within| within.as_integers(signed, width)) {
                if delta.lo > 0 {
                    (lo, hi) = (lo.max(within.lo), hi.min(within.hi + step));
                } else {
                    (lo, hi) = (lo.max(within.lo - step), hi.min(within.hi));
                }
            }
            let rounds = u64::try_from((hi - lo) / step).unwrap_or(u64::MAX).saturating_add(u64::from(begun));
            if holds && rounds <= MOST_ROUNDS && best.is_none_or(|best| rounds < best.rounds) {
                let (rises, end) = if delta.lo > 0 { (true, hi) } else { (false, lo) };
                best = Some(Count { rounds, step: u64::try_from(step).unwrap_or(1), slot, rises, signed, end });
            }
        }
    }
    best
}

/// What a register held where a round began that comes back, as far as some register still tells then. Only where what is held at the head has
/// names of its own.
fn start(found: &Found, again: &State, slot: u32, width: u8) -> Option<Interval> {
    let name = found.states.first()?.as_ref()?.get(slot)?.name;
    again.iter().find(|(_, held)| held.name == name && name != NO_NAME).map(|(_, held)| held.range).filter(|range| !range.is_full(width))
}

/// What a register pays for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fall {
    /// The register, as a slot, and whether it falls as an unsigned integer.
    pub(crate) slot: u32,
    pub(crate) unsigned: bool,
    /// Where it begins at most, and ends at least.
    pub(crate) from: i128,
    pub(crate) to: i128,
    /// How far it may fall in all, in rounds that come back.
    pub(crate) span: u64,
    /// How many rounds of the loop that allows.
    pub(crate) own: u64,
    /// How far it falls in each of them at least, beside what the rounds inside cost.
    pub(crate) each: u64,
    /// How far some register falls that pays in the last round, too, which does not come back.
    pub(crate) whole: Option<u64>,
}

/// What some register pays for that falls far enough in each round to pay for the rounds inside. Each of those was added to every register at its price;
/// or at least does not rise then.
pub(crate) fn count_together(pass: &Pass<'_, '_>, found: &Found, base: &State, own: u64) -> Option<Fall> {
    let again = found.again.as_ref()?;
    let reach = |range: Interval, unsigned: bool, slot: u32| range.as_integers(!unsigned, pass.slice.slots[slot as usize].1);
    let bound = |(slot, value): (u32, &Value)| {
        let delta = falls(slot, value)?;
        let range = base.get(slot).map_or(Interval::full(pass.slice.slots[slot as usize].1), |base| base.range);
        let range = reach(range, delta.unsigned, slot);
        let span = few(range.hi - range.lo)?;
        let last = found.out.as_ref().and_then(|out| out.get(slot)).and_then(|last| Some((falls(slot, last)?, last.range)));
        let lowest = last.filter(|(last, _)| last.unsigned == delta.unsigned).map(|(_, last)| reach(last, delta.unsigned, slot).lo);
        let whole = lowest.and_then(|lowest| few(range.hi - range.lo.min(lowest)));
        let each = delta.hi.unsigned_abs();
        let own = span.checked_div(each).unwrap_or(own);
        Some(Fall { slot, unsigned: delta.unsigned, from: range.hi, to: range.lo, span, own, each, whole })
    };
    let all: Vec<Fall> = again.iter().filter_map(bound).collect();
    let best = all.iter().min_by_key(|fall| (fall.span, fall.own))?;
    Some(Fall { whole: all.iter().filter_map(|fall| fall.whole).min(), ..*best })
}

/// The same for rounds that begin amid the loop, too, with these values: the register must not rise there, either.
pub(crate) fn counts_amid(pass: &Pass<'_, '_>, found: &Found, starts: &[(u32, State)], fall: Fall) -> Option<Fall> {
    let width = pass.slice.slots[fall.slot as usize].1;
    let does_fall =
        |state: &State| state.get(fall.slot).and_then(|value| falls(fall.slot, value)).is_some_and(|delta| delta.unsigned == fall.unsigned);
    if found.again.as_ref().is_some_and(|again| !does_fall(again)) {
        return None;
    }
    let held = |(_, state): &(u32, State)| state.get(fall.slot).map_or(Interval::full(width), |value| value.range);
    let from = starts.iter().map(|start| held(start).as_integers(!fall.unsigned, width).hi).fold(fall.from, i128::max);
    let span = few(from - fall.to)?;
    // Such a round need not pay. Of the last round only what falls from the head on is known.
    let own = span.checked_div(fall.each).unwrap_or(fall.own).saturating_add(1);
    Some(Fall { from, span, own, whole: None, ..fall })
}

fn falls(slot: u32, value: &Value) -> Option<Delta> {
    value.delta.map(Delta::plain).filter(|delta| delta.slot == slot && delta.hi <= 0)
}

fn few(span: i128) -> Option<u64> {
    u64::try_from(span).ok().filter(|span| *span <= MOST_ROUNDS)
}
