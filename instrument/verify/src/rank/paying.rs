//! Whether the fall of a register pays for the iterations of inner loops.

use crate::domain::state::State;
use crate::domain::value::Assumption;
use crate::interpret::edge_cost::EdgeCost;
use crate::interpret::work::{Way, Work};
use crate::rank::linear::{Fall, count_together};
use crate::rank::remaining::{begin, is_not_zero};
use cuinstr_ptx::Flow;

/// Whether some register pays the price of what a loop's rounds pass, and what it pays for. Without it there are at most `rounds`.
pub(crate) fn pays(
    work: &mut Work<'_, '_>,
    (blocks, head): (&[u32], u32),
    (base, not_zero): (&State, Option<u32>),
    rounds: u64,
    edge_cost: &dyn Fn(u32, u32) -> Option<EdgeCost>,
) -> Option<Fall> {
    let mut base = base.clone();
    if work.budget == 0 || not_zero.is_some_and(|slot| !is_not_zero(work.slice, slot, &mut base)) {
        return None;
    }
    let mut order = blocks.to_vec();
    let rpo = work.rpo;
    order.sort_by_key(|block| (*block != head, rpo[*block as usize]));
    let start = begin(work, head, &base);
    // A thread that ends amid a block, or in a call there, leaves by no edge.
    let (graph, statements) = (work.body.graph, &work.body.function.statements);
    let leaves_by_edges = blocks.iter().filter_map(|block| graph.last(*block)).all(|last| match statements[last as usize].flow {
        Flow::Return | Flow::End => false,
        Flow::Call => (work.returns)(last, ASKED, 0),
        _ => true,
    });
    let way = Way { edge_cost, keeps_out: leaves_by_edges, ..Way::within(head, ASKED, &|_| false) };
    work.pass(&order, &[(head, start)], &way, |mut found, pass| {
        found.leave_out_zero(pass.slice, not_zero);
        count_together(pass, &found, &base, rounds)
    })
}

/// What rounds that go on are looked at under.
pub(crate) const ASKED: Assumption = Assumption { asked: true, late: 0, trap: false };
