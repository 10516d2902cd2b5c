//! Polls of loops that poll in each round.

use super::edits::Insertion;
use super::{Place, unless_over};

impl Place {
    /// A poll at each passage, which is passed by where the loop is over.
    pub(in crate::polls) fn each_unless_over(
        self,
        out: &mut Insertion<'_>,
        number: u32,
        (predicate, goes_on_if): (&str, bool),
        renews: bool,
    ) {
        unless_over(out, number, predicate, goes_on_if, |out| self.each_passage(out, renews));
    }

    /// A poll at each passage.
    pub(in crate::polls) fn each(self, out: &mut Insertion<'_>, renews: bool) {
        out.push("\n\t");
        self.each_passage(out, renews);
        out.push("\t");
    }

    /// One that `renews` takes the round's unit from the allowance, and gives a new one.
    fn each_passage(self, out: &mut Insertion<'_>, renews: bool) {
        if renews {
            out.push("sub.s32 %__cuinstr_left, %__cuinstr_left, 1;\n\t");
            self.poll.renewing(out, self.site);
        } else {
            self.poll.alone(out, self.site);
        }
    }
}
