//! How often a loop runs at most that shifts a register until it is zero, or beyond a number: `for (s = blockDim.x / 2; s > 0; s /= 2)`.

use super::bounded::MOST_THREADS;
use super::counted::{Context, Order, is_integer};
use cuinstr_ptx::{Operand, Register};

/// Bits of numbers that are followed.
const BITS: u32 = 30;

impl Context<'_, '_> {
    /// How often such a loop runs at most, which goes on while the register `tested` stands so to the bound. `before` has the trips of loops in front of it.
    pub(super) fn most_shifts(
        &self,
        number: u32,
        (tested, latch): (Register, u32),
        (order, is_signed, width): (Order, bool, u8),
        bound: Operand,
        before: &[Option<u64>],
    ) -> Option<u64> {
        let mut written = self.only_writer(number, tested, latch)?;
        if let Some(next) = self.moved(written) {
            written = self.only_writer(number, next, latch).filter(|shifted| self.precedes(*shifted, written))?;
        }
        let [Operand::Register(_), Operand::Register(from), Operand::Integer(by)] = *self.code.operands(written) else { return None };
        let by = u32::try_from(by).ok().filter(|by| (1..BITS).contains(by))?;
        let is_half = by == 1 && from != tested && self.is_rounded(number, (from, tested), (written, latch), width);
        if from != tested && !is_half {
            return None;
        }
        let (head, kind) = self.code.opcode(written).split_once('.')?;
        let start = || self.start(number, tested, before);
        let bits = |most: i64| u64::from(i64::BITS - most.leading_zeros());
        let most = match (head, kind.strip_prefix(['u', 'b', 's'])?.parse() == Ok(width)) {
            ("shr", true) => {
                // The sign stays, so that what is below zero comes to -1. Half of a number comes to zero from below, too, but no proof follows that.
                let ends = match (order, bound) {
                    (Order::NotEqual, Operand::Integer(0)) => !kind.starts_with('s') || start().is_some_and(|start| start.0 >= 0),
                    (Order::Greater, Operand::Integer(bound)) => bound >= 0 && (is_signed || !kind.starts_with('s')),
                    (Order::GreaterEqual, Operand::Integer(bound)) => bound > 0 && (is_signed || !kind.starts_with('s')),
                    _ => false,
                };
                ends.then(|| start().filter(|start| start.0 >= 0).map_or(width.into(), |start| bits(start.1)))?
            }
            ("shl", true) if !is_half && matches!(order, Order::Less | Order::LessEqual) => {
                // The proof widens what a register bounds to the threads of a block, and no further.
                let is_number = matches!(bound, Operand::Integer(_));
                let bound = self.most_of(bound).filter(|most| is_number || *most <= MOST_THREADS)?;
                // The first product that is not below the bound has no sign bit, whatever the comparison asks.
                let fits = bits(bound) + u64::from(by) <= u64::from(BITS);
                start().filter(|start| start.0 > 0 && fits)?;
                bits(bound)
            }
            _ => return None,
        };
        // One more for a test in front of the shift.
        Some(most / u64::from(by) + 2)
    }

    /// Whether `sum` is a number and its sign bit, so that its shift by one gives half of the number, rounded towards zero.
    fn is_rounded(&self, number: u32, (sum, of): (Register, Register), (shifted, latch): (u32, u32), width: u8) -> bool {
        let added = self.only_writer(number, sum, latch).filter(|added| self.precedes(*added, shifted));
        let added = added.filter(|added| self.code.opcode(*added).strip_prefix("add.").is_some_and(|kind| is_integer(kind, width)));
        let Some([_, Operand::Register(one), Operand::Register(two)]) = added.map(|added| self.code.operands(added)) else { return false };
        let is_sign = |sign: Register| {
            let written = self.only_writer(number, sign, latch).filter(|written| added.is_some_and(|added| self.precedes(*written, added)));
            written.is_some_and(|written| {
                let bits = self.code.opcode(written).strip_prefix("shr.u").and_then(|kind| kind.parse().ok());
                let operands = self.code.operands(written);
                bits == Some(width) && operands[1..] == [Operand::Register(of), Operand::Integer(i64::from(width) - 1)]
            })
        };
        *one == of && is_sign(*two) || *two == of && is_sign(*one)
    }
}

#[cfg(test)]
mod tests {
    use crate::polls::find::counted::tests::asked;

    /// The most trips of the loop at the first header.
    fn trips(body: &str) -> Option<u64> {
        asked(body, |context, (block, taken)| context.most_trips(0, block, taken, &[None])).flatten()
    }

    #[test]
    fn a_register_that_is_shifted_ends_a_loop_soon() {
        for (body, expected) in [
            ("$L: shr.u32 %r1, %r1, 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L;", 34),
            ("$L: shr.u64 %rd1, %rd1, 4; setp.gt.u64 %p1, %rd1, 7; @%p1 bra $L;", 18),
            ("$L: setp.gt.s32 %p1, %r1, 1; shr.s32 %r1, %r1, 1; @%p1 bra $L;", 34),
            ("mov.u32 %r1, %ntid.x; $L: shr.s32 %r1, %r1, 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L;", 13),
            ("mov.u32 %r1, 1; mov.u32 %r2, WARP_SZ; $L: shl.b32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r2; @%p1 bra $L;", 8),
            ("mov.u32 %r1, 1; $L: shl.b32 %r1, %r1, 2; setp.le.s32 %p1, %r1, 64; @%p1 bra $L;", 5),
            // Half of a number with a sign: it and its sign, shifted.
            (
                "$L: shr.u32 %r2, %r1, 31; add.s32 %r3, %r1, %r2; shr.s32 %r4, %r3, 1; setp.gt.s32 %p1, %r1, 3; mov.u32 %r1, %r4; @%p1 bra $L;",
                34,
            ),
            ("$L: shr.u32 %r2, %r1, 31; add.s32 %r3, %r2, %r1; shr.s32 %r1, %r3, 1; setp.ge.s32 %p1, %r1, 1; @%p1 bra $L;", 34),
            (
                "mov.u32 %r1, %ntid.x; $L: shr.u32 %r2, %r1, 31; add.s32 %r3, %r2, %r1; shr.s32 %r1, %r3, 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L;",
                13,
            ),
        ] {
            assert_eq!(trips(body), Some(expected), "{body}");
        }
    }

    #[test]
    fn others_may_never_come_to_their_end() {
        for body in [
            // -1 stays what it is.
            "$L: shr.s32 %r1, %r1, 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L;",
            "$L: shr.s32 %r1, %r1, 1; setp.gt.u32 %p1, %r1, 3; @%p1 bra $L;",
            // Half of -1 is zero, which no proof follows.
            "$L: shr.u32 %r2, %r1, 31; add.s32 %r3, %r2, %r1; shr.s32 %r1, %r3, 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L;",
            // The bound is beyond the threads of a block.
            "mov.u32 %r1, 1; mov.u32 %r2, 2048; $L: shl.b32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r2; @%p1 bra $L;",
            "$L: shr.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 3; @%p1 bra $L;",
            "$L: shr.u32 %r1, %r1, 1; setp.ne.s32 %p1, %r1, 1; @%p1 bra $L;",
            "$L: shr.u32 %r1, %r1, 1; setp.ge.u32 %p1, %r1, 0; @%p1 bra $L;",
            "$L: shr.u32 %r1, %r1, 0; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L;",
            "$L: shr.u32 %r1, %r2, 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L;",
            "$L: shr.u16 %rs1, %rs1, 1; setp.ne.s16 %p1, %rs1, 0; @%p1 bra $L;",
            // Zero stays zero, and the bound may lie beyond what a shift can come to.
            "mov.u32 %r1, 0; $L: shl.b32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 32; @%p1 bra $L;",
            "mov.u32 %r1, 1; $L: shl.b32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r2; @%p1 bra $L;",
            "mov.u32 %r1, 3; $L: shl.b32 %r1, %r1, 20; setp.lt.u32 %p1, %r1, 4096; @%p1 bra $L;",
            "mov.u32 %r1, 1; $L: shl.b32 %r1, %r1, 1; setp.ne.s32 %p1, %r1, 48; @%p1 bra $L;",
            // The sign is another number's, or of the iteration before.
            "$L: shr.u32 %r2, %r5, 31; add.s32 %r3, %r1, %r2; shr.s32 %r1, %r3, 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L;",
            "$L: shr.u32 %r2, %r1, 30; add.s32 %r3, %r1, %r2; shr.s32 %r1, %r3, 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L;",
            "$L: add.s32 %r3, %r1, %r2; shr.u32 %r2, %r1, 31; shr.s32 %r1, %r3, 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra $L;",
        ] {
            assert_eq!(trips(body), None, "{body}");
        }
    }
}
