//! Whether the fall of a register pays for the iterations of inner loops.

use crate::domain::state::State;
use crate::domain::value::Assumption;
use crate::interpret::edge_cost::EdgeCost;
use crate::interpret::work::{Way, Work};
use crate::rank::linear::{Fall, count_together, counts_amid};
use crate::rank::remaining::{begin, is_not_zero};
use cuinstr_ptx::Flow;

/// Rounds of a loop that are to pay for those of loops inside.
pub(crate) struct Payers<'r> {
    /// Blocks that these rounds pass.
    pub(crate) blocks: &'r [u32],
    pub(crate) head: u32,
    /// What registers hold at the head, and one that is not zero there.
    pub(crate) base: &'r State,
    pub(crate) not_zero: Option<u32>,
    /// At most how many rounds there are, without what they pay.
    pub(crate) rounds: u64,
}

impl Payers<'_> {
    /// Whether some register pays the price of what the rounds pass, and what it pays for.
    pub(crate) fn pay(&self, work: &mut Work<'_, '_>, edge_cost: &dyn Fn(u32, u32) -> Option<EdgeCost>) -> Option<Fall> {
        let mut base = self.base.clone();
        if work.budget == 0 || self.not_zero.is_some_and(|slot| !is_not_zero(work.slice, slot, &mut base)) {
            return None;
        }
        // A thread that ends amid a block, or in a call there, leaves by no edge.
        let (graph, statements) = (work.body.graph, &work.body.function.statements);
        let leaves_by_edges = self.blocks.iter().filter_map(|block| graph.last(*block)).all(|last| match statements[last as usize].flow {
            Flow::Return | Flow::End => false,
            Flow::Call => (work.returns)(last, ASKED, 0),
            _ => true,
        });
        let start = begin(work, self.head, &base);
        let way = Way { edge_cost, keeps_out: leaves_by_edges, ..Way::within(self.head, ASKED, &|_| false) };
        work.pass(&self.order(work), &[(self.head, start)], &way, |mut found, pass| {
            found.leave_out_zero(pass.slice, self.not_zero);
            count_together(pass, &found, &base, self.rounds)
        })
    }

    /// What the same register pays for, if rounds that go on from blocks amid them, with these values there, are to pay, too.
    pub(crate) fn pay_amid(
        &self,
        work: &mut Work<'_, '_>,
        starts: &[(u32, State)],
        fall: Fall,
        edge_cost: &dyn Fn(u32, u32) -> Option<EdgeCost>,
    ) -> Option<Fall> {
        if starts.is_empty() {
            return Some(fall);
        }
        let begun: Vec<(u32, State)> = starts.iter().map(|(block, state)| (*block, begin(work, *block, state))).collect();
        let way = Way { edge_cost, ..Way::within(self.head, ASKED, &|_| false) };
        work.pass(&self.order(work), &begun, &way, |found, pass| counts_amid(pass, &found, starts, fall))
    }

    fn order(&self, work: &Work<'_, '_>) -> Vec<u32> {
        let mut order = self.blocks.to_vec();
        order.sort_by_key(|block| (*block != self.head, work.rpo[*block as usize]));
        order
    }
}

/// What rounds that go on are looked at under.
pub(crate) const ASKED: Assumption = Assumption { asked: true, late: 0, trap: false };
