//! Jumps: which go back, and what a round of the loop that such a jump makes takes from the allowance.

use crate::form::{Decision, Shape};
use crate::fragment::Fragment;
use crate::poll::{MOST_PACE, NEST};
use crate::statement::Body;

/// Labels of that name, if it is found in the body at all: one that is not may be a macro's.
fn labels<'a>(source: &'a [u8], fragment: &'a Fragment, body: &'a Body, name: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    body.labels.iter().map(|label| label.token).filter(move |label| fragment.text(source, *label) == name)
}

/// Whether the label stands below the jump and nowhere else. One that can't be found may be a macro's, and above.
pub(crate) fn is_ahead(source: &[u8], fragment: &Fragment, body: &Body, jump: usize, name: &[u8]) -> bool {
    let mut found = labels(source, fragment, body, name).peekable();
    found.peek().is_some() && found.all(|label| label > jump)
}

/// What the jump at the token `jump` to the label `name` above it takes, in units: one, and all that loops between the two may run without
/// paying, for nothing else pays for that.
pub(crate) fn weight(source: &[u8], fragment: &Fragment, body: &Body, decisions: &[Decision], jump: usize, name: &[u8]) -> u64 {
    let from = labels(source, fragment, body, name).filter(|label| *label < jump).min().unwrap_or(0);
    let between = body.loops.iter().zip(decisions).filter(|(loop_, _)| (from..jump).contains(&loop_.keyword));
    let unpaid = between.map(|(_, decision)| match (&decision.shape, decision.cost.left_alone) {
        (_, Some(trips)) => trips.saturating_mul(decision.cost.weight().into()),
        (Shape::Foldable(_), None) => NEST.into(),
        // As much as an allowance holds at its largest.
        (Shape::Shared(_), None) => 1 << MOST_PACE,
        (Shape::Strip(..) | Shape::Chunk(..) | Shape::CountDown, None) => 0,
    });
    unpaid.fold(1, u64::saturating_add).min(1 << MOST_PACE)
}
