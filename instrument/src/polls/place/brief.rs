//! Brief loops: counted loops in other loops that mostly run a few times. A strip's set-up costs more than such a loop. So it stands twice: as the user
//! wrote it, behind a test of its trips, and in strips.

use super::alone::MOST_ALONE;
use super::copies::Copied;
use super::{HEAVY, Placer};
use crate::polls::emit;
use crate::polls::find::Loop;
use crate::polls::find::counted::{Context, Counted, Order};

/// Most trips of a loop that is brief.
const MOST_TRIPS: u32 = 16;

/// A loop that stands twice.
pub(super) struct Brief<'a> {
    copied: Copied,
    counted: Counted<'a>,
    /// The trips that it may have.
    most: u32,
}

impl Brief<'_> {
    /// The iterations that the loop around it pays for: it may run four times as many.
    pub(super) fn paid(&self) -> u32 {
        self.most / 4
    }
}

/// The loops that stand twice. `weights` are those of their own statements.
pub(super) fn of<'a>(context: &Context<'_, 'a>, alone: &[Option<u64>], weights: &[u32]) -> Vec<Option<Brief<'a>>> {
    let loops = &context.loops.all;
    let found = |number: u32| {
        let (one, weight) = (&loops[number as usize], weights[number as usize]);
        let most = [MOST_TRIPS, MOST_TRIPS / 2].into_iter().find(|most| u64::from(*most) * u64::from(weight) <= 4 * MOST_ALONE)?;
        let is_paid = |around: &Loop| context.loops.share_irreducible(around.header, one.header);
        let is_inside =
            one.is_natural && loops.get(one.outer as usize).is_some_and(is_paid) && one.is_innermost && alone[number as usize].is_none();
        let (block, taken) = context.test_of(number).filter(|_| is_inside && one.statements < HEAVY)?;
        let counted = context.counted(number, block, taken)?;
        let is_even = counted.order != Order::NotEqual || counted.step.unsigned_abs().is_power_of_two();
        let copied = Copied::of(context, number).filter(|copied| is_even && !copied.leads_back(context))?;
        Some(Brief { copied, counted, most })
    };
    (0..loops.len() as u32).map(found).collect()
}

impl<'a> Placer<'_, 'a> {
    /// Writes these loops twice.
    pub(super) fn brief_loops(&mut self, brief: &[Option<Brief<'a>>]) {
        for one in brief.iter().flatten() {
            let number = self.new_number();
            let (at, behind) = one.copied.range(self.context.function);
            let copy = one.copied.copy(&self.context, number);
            emit::copies::brief_loop(&mut self.edits.at(at), number, &one.counted, one.most, &copy);
            emit::copies::behind_few(&mut self.edits.at(behind), number);
        }
    }
}
