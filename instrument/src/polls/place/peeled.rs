//! Loop peeling. Where a strip begins, a division takes longer than an iteration. Many threads run only a few, as their grid covers most of what there is to do.
//! So the first iterations of such a loop stand in front of it.

use super::copies::Copied;
use super::{NONE, Placer};
use crate::polls::emit;

/// Iterations that stand in front of a loop, and that a loop around it pays for. `f16max` of `HeCBench` has two, and takes 1.031 for the 1.171 that it takes
/// with one.
const FIRST: u32 = 2;

/// A loop that is peeled.
pub(super) struct Peeled {
    number: u32,
    copied: Copied,
    /// What the loop around it pays for the first ones.
    paid: Option<u32>,
}

impl Placer<'_, '_> {
    /// Has a loop's first iterations stand in front of it, if they can be written twice. An iteration weighs `1 << weight`.
    pub(super) fn peel(&mut self, number: u32, weight: u32) {
        let is_simple = |copied: &Copied| copied.is_fallen_into(&self.context) && !copied.leads_back(&self.context);
        let copied = Copied::of(&self.context, number).filter(|copied| is_simple(copied) && !self.module.counts_all());
        let is_inside = self.context.loops.all[number as usize].outer != NONE;
        self.peeled.extend(copied.map(|copied| Peeled { number, copied, paid: is_inside.then_some(FIRST << weight) }));
    }

    /// Whether the only loop of the function that polls is peeled. Threads of few iterations need no allowance then.
    pub(super) fn is_only_peeled(&self, alone: &[Option<u64>]) -> bool {
        let mut polled = (0..).zip(alone).filter(|(_, alone)| alone.is_none()).map(|(number, _)| number);
        let is_peeled = |number: u32| self.peeled.iter().any(|peeled| peeled.number == number);
        polled.next().is_some_and(is_peeled) && polled.next().is_none()
    }

    /// Writes these iterations. What `settles` the allowance comes behind those of the only loop, if it is to stand there.
    pub(super) fn write_peeled(&mut self, settles: &str) {
        // Inner and later loops were placed first. In the order of the text, what leads behind one loop does not lead behind the next one's first iterations.
        for Peeled { copied, paid, .. } in std::mem::take(&mut self.peeled).into_iter().rev() {
            let name = self.new_number();
            let (at, behind) = copied.range(self.context.function);
            let copy = copied.first_iterations(&self.context, name);
            emit::copies::peeled(&mut self.edits.at(at), name, (FIRST, paid), &copy, settles);
            emit::copies::behind_few(&mut self.edits.at(behind), name);
        }
    }
}
