//! Loops whose step is a register that the loop keeps: `i += blockDim.x * gridDim.x`. Where each strip begins, a division gives its trips.

use super::counted::{Context, Counted, Order, is_integer};
use cuinstr_ptx::{Operand, Register};

/// Most additions of one iteration: compilers write out four iterations of such a loop.
const MOST_ADDED: u32 = 16;

/// A step, as it is spelled, and how often an iteration adds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::polls) struct Stride<'a> {
    pub(in crate::polls) step: &'a str,
    pub(in crate::polls) times: u32,
}

impl<'a> Context<'_, 'a> {
    /// The trips of such a loop, whose test ends `block`: it goes on where the test's branch is taken, or is not. Any step will do. One that leads away from the
    /// bound is a large one without a sign, and gives a strip of one iteration.
    pub(in crate::polls) fn strided(&self, number: u32, block: u32, goes_on_if_taken: bool) -> Option<Counted<'a, Stride<'a>>> {
        let one = &self.loops.all[number as usize];
        let (latch, header) = (one.latch()?, self.graph.blocks[one.header as usize].first);
        let (test, holds) = self.test_at(block, goes_on_if_taken)?;
        let fits = |order, _| matches!(order, Order::Less | Order::LessEqual);
        let found = [1, 2].into_iter().find_map(|base| {
            let added = |statement, width| self.added_often(number, latch, (statement, base), width);
            Some((self.compared_by(number, latch, (test, holds), base, (added, fits))?, base))
        });
        let ((counted, added), base) = found?;
        let Counted { test, variable, register, tested, bound, step: (by, times), order, is_signed, width } = counted;
        // The name of a variable that another register's sum is moved to stands in the first addition.
        let is_named = times == 1 || self.is_written_by(added, register);
        let is_kept = is_named && self.writers_in(number, by).next().is_none();
        let step = self.spelled(added, 3 - base).filter(|name| is_kept && self.declared.means_one(self.function, name, header))?;
        let step = Stride { step, times };
        Some(Counted { test, variable, register, tested, bound, step, order, is_signed, width })
    }

    /// `add next, base, step`, whose operand `base` may be such a sum, too: the first base, the step, and how often it is added.
    fn added_often(&self, number: u32, latch: u32, (mut statement, base): (u32, usize), width: u8) -> Option<(Register, (Register, u32))> {
        let [Operand::Register(sum), ..] = *self.code.operands(statement) else { return None };
        let (mut from, step) = self.added_register(statement, width, base)?;
        for times in 1..=MOST_ADDED {
            let before = self.only_writer(number, from, latch).filter(|before| from != sum && self.precedes(*before, statement));
            let more = before.and_then(|before| {
                let sums = [1, 2].into_iter().filter_map(|base| self.added_register(before, width, base));
                Some((before, sums.into_iter().find(|(_, by)| *by == step)?.0))
            });
            let Some((before, base)) = more else { return Some((from, (step, times))) };
            (statement, from) = (before, base);
        }
        None
    }

    /// `add sum, base, step`, whose operand `base` is the base.
    fn added_register(&self, statement: u32, width: u8, base: usize) -> Option<(Register, Register)> {
        let [Operand::Register(_), Operand::Register(one), Operand::Register(two)] = *self.code.operands(statement) else { return None };
        let is_sum = self.code.opcode(statement).strip_prefix("add.").is_some_and(|kind| is_integer(kind, width));
        is_sum.then_some(if base == 1 { (one, two) } else { (two, one) })
    }
}

#[cfg(test)]
mod tests {
    use crate::polls::find::counted::tests::asked;

    /// The variable, bound and step of the loop at the first header.
    fn strided(body: &str) -> Option<String> {
        let found = asked(body, |context, (block, taken)| {
            let found = context.strided(0, block, taken)?;
            Some(format!("{} {:?} {} by {} {}", found.variable, found.order, found.bound, found.step.times, found.step.step))
        });
        found.flatten()
    }

    #[test]
    fn a_step_in_a_register_that_the_loop_keeps_is_found() {
        for (body, expected) in [
            ("$L: add.s32 %r1, %r1, %r4; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;", "%r1 Less %r2 by 1 %r4"),
            ("$L: add.s32 %r1, %r4, %r1; setp.le.u32 %p1, %r1, 99; @%p1 bra $L;", "%r1 LessEqual 99 by 1 %r4"),
            ("$L: add.s64 %rd1, %rd1, %rd4; setp.gt.u64 %p1, %rd2, %rd1; @%p1 bra $L;", "%rd1 Less %rd2 by 1 %rd4"),
            ("$L: add.s32 %r3, %r1, %r4; setp.ge.s32 %p1, %r3, %r2; mov.b32 %r1, %r3; @!%p1 bra $L;", "%r1 Less %r2 by 1 %r4"),
            // Compilers write four iterations out.
            (
                "$L: add.s32 %r3, %r1, %r4; add.s32 %r5, %r4, %r3; add.s32 %r1, %r5, %r4; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
                "%r1 Less %r2 by 3 %r4",
            ),
        ] {
            assert_eq!(strided(body).as_deref(), Some(expected), "{body}");
        }
    }

    #[test]
    fn other_steps_are_not() {
        for body in [
            "$L: add.s32 %r1, %r1, %r4; setp.gt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: add.s32 %r1, %r1, %r4; setp.ne.s32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: add.s32 %r1, %r1, %r4; add.s32 %r4, %r4, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: add.s32 %r1, %r1, %r4; add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: sub.s32 %r1, %r1, %r4; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: add.s32 %r1, %r4, %r4; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: add.s32 %r1, %r1, %r1; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: @%p2 add.s32 %r1, %r1, %r4; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            // The second sum is of the iteration before.
            "$L: add.s32 %r1, %r3, %r4; add.s32 %r3, %r1, %r4; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            // Two steps are not one, twice.
            "$L: add.s32 %r3, %r1, %r5; add.s32 %r1, %r3, %r4; setp.lt.s32 %p1, %r1, %r2; @%p1 bra $L;",
            // What is moved has no name in the last sum.
            "$L: add.s32 %r3, %r1, %r4; add.s32 %r5, %r3, %r4; setp.lt.s32 %p1, %r5, %r2; mov.b32 %r1, %r5; @%p1 bra $L;",
            "{ .reg .b32 %r4; $L: add.s32 %r1, %r1, %r4; { .reg .b32 %r4; setp.lt.s32 %p1, %r1, %r4; @%p1 bra $L; } }",
        ] {
            assert_eq!(strided(body), None, "{body}");
        }
    }
}
