//! Iterations of loops within loops, counted together.
//!
//! Each loop's own trip count is found by itself; counts of nested loops would multiply. One register may pay for the
//! iterations of several loops, as one budget does for all strips of an activation. Then what the register can pay
//! bounds their sum.

use crate::domain::state::State;
use crate::domain::value::Assumption;
use crate::interpret::edge_cost::{Count, EdgeCost};
use crate::interpret::slice::Slice;
use crate::interpret::step::each_needed;
use crate::interpret::work::{MORE, Work, allotted};
use crate::rank::linear::{Fall, MOST_ROUNDS};
use crate::rank::loops::{Known, LoopProof, Paid, Proof, Shared};
use crate::rank::nest_phases;
use crate::rank::paying::{ASKED, Payers};
use crate::rank::poll_order;
use crate::rank::ranking::remaining;
use crate::rank::remaining::{ends_at_zero, is_not_zero, may_stop_at_zero, remaining_from};
use crate::rank::weight::{iterations, product, weights_of};
use std::collections::{BTreeMap, BTreeSet};

/// What loops that are counted together are tried to be paid for from, at most.
const MOST_ALLOWED: u64 = 1 << 14;

/// Rounds that are not worth to be counted together.
const MANY: u64 = 1 << 16;

/// Most loops of one set of which some are counted together.
const MOST_TOGETHER: usize = 2000;

/// Most loops of one set that are counted once more together with loops directly inside.
const MOST_ONCE_MORE: usize = 4;

/// Counts the rounds of loops together with those of the loops inside that are polled within some rounds, or that count themselves.
pub(crate) fn share(work: &mut Work<'_, '_>, found: &mut [LoopProof], known: &Known<'_>) {
    if found.len() > MOST_TOGETHER {
        return;
    }
    // What the loops alone used up is not missing here: it may be as much once more. What lies inside comes first, as it is less to look at.
    work.budget = work.budget.max((1 + MORE) * allotted(&found[0].blocks, work.slice));
    for index in (0..found.len()).rev() {
        let (Proof::Counted(count) | Proof::PolledWithin(count)) = found[index].proof else { continue };
        let inside = all_inside(found, index);
        let head = found[index].head;
        // What never comes round holds nothing, and what is little needs no closer look.
        let is_many = inside.iter().any(|number| product(found, *number, index) > MANY);
        if !is_many || found[index].left.binary_search(&head).is_err() {
            continue;
        }
        if let Some(ways) = &found[index].together {
            // All but the last round, and what comes before them.
            let (more, unpaid) = pays_amid(work, &found[index], ways, known).map_or((0, 2), |more| (more, 1));
            let paid = Paid { again: count.rounds.saturating_add(more), whole: None, joint: None };
            let all = inside.iter().map(|number| (found[*number].head, paid)).collect();
            let unpaid = unpaid + u64::from(found[index].not_zero.is_some());
            found[index].shared = Some(Shared { own: count.rounds, inside: all, unpaid });
            continue;
        }
        let Some(base) = (known.base_of)(head) else { continue };
        let amid = amid(work, &found[index], &base, known);
        let mut outer = Outer { found, index, count, inside: &inside, base, not_zero: found[index].not_zero, amid };
        let mut shared = outer.shared(work, known);
        // What is paid with may stop at zero, too, if that ends all further rounds.
        if work.slice.is_close && outer.not_zero.is_none() && outer.lacks(shared.as_ref()) {
            let amid = outer.amid.take();
            for slot in outer.stops_at_zero(work) {
                outer.not_zero = Some(slot);
                let ends = ends_at_zero(work, &found[index].blocks, head, &outer.base, (ASKED, &[]), slot).is_some();
                outer.amid = amid.clone().filter(|_| ends);
                let more = outer.shared(work, known);
                shared = match (shared, more) {
                    (Some(one), Some(two)) => Some(one.and(two)),
                    (one, two) => one.or(two),
                };
                if !outer.lacks(shared.as_ref()) {
                    break;
                }
            }
        }
        found[index].shared = shared;
    }
    share_entries(work, found, known);
}

/// Where a loop and those inside still come to too many rounds: counts it together with loops directly inside, for each time that one is entered.
fn share_entries(work: &mut Work<'_, '_>, found: &mut [LoopProof], known: &Known<'_>) {
    let too_many = |found: &[LoopProof]| weights_of(found).iter().rposition(|weight| weight.is_too_much());
    for _ in 0..MOST_ONCE_MORE {
        let Some(index) = too_many(found) else { return };
        let (Proof::Counted(count) | Proof::PolledWithin(count)) = found[index].proof else { return };
        let head = found[index].head;
        let Some(base) = (known.base_of)(head).filter(|_| found[index].left.binary_search(&head).is_ok()) else { return };
        let shared = found[index].shared.take();
        let inside: Vec<usize> = (index + 1..found.len()).filter(|number| found[*number].parent == Some(index)).collect();
        work.budget = work.budget.max(allotted(&found[index].blocks, work.slice));
        let amid = amid(work, &found[index], &base, known);
        let outer = Outer { found, index, count, inside: &inside, base, not_zero: found[index].not_zero, amid };
        found[index].shared = outer.paid_at_entries(work, known, shared, 0);
        if too_many(found) == Some(index) {
            return;
        }
    }
}

/// All loops that lie inside one: each comes in front of those inside it.
fn all_inside(found: &[LoopProof], index: usize) -> Vec<usize> {
    (index + 1..found.len()).take_while(|number| found[*number].depth > found[index].depth).collect()
}

/// A loop whose rounds are counted together with those inside.
struct Outer<'f> {
    found: &'f [LoopProof],
    index: usize,
    count: Count,
    /// All loops inside.
    inside: &'f [usize],
    /// What registers hold at the head.
    base: State,
    /// A register that is taken to be something else than zero there: see [`remaining`].
    not_zero: Option<u32>,
    /// Loops and calls inside that control may come to without passing the head, with what registers hold there. None if a first round may come back with
    /// the zero that others do not come back with.
    amid: Option<Vec<(u32, State)>>,
}

impl Outer<'_> {
    fn round(&self) -> &LoopProof {
        &self.found[self.index]
    }

    /// Whether some loop inside has so many rounds that it should be counted together with this one, and is not.
    fn lacks(&self, shared: Option<&Shared>) -> bool {
        self.inside.iter().any(|number| {
            let inner = &self.found[*number];
            let is_many = iterations(inner).saturating_mul(self.count.rounds) > MOST_ROUNDS;
            is_many && shared.is_none_or(|shared| shared.paid_of(inner.head).is_none())
        })
    }

    /// The loops between this one and one inside.
    fn between(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.found[number].parent, |around| self.found[*around].parent).take_while(|around| *around != self.index)
    }

    /// The rounds that a fall pays for, at so much for each. A last round that begins with the zero that is left out does not pay.
    fn paid(&self, fall: Fall, price: u64) -> Paid {
        let whole = fall.whole.filter(|_| self.not_zero.is_none());
        Paid { again: fall.span / price, whole: whole.map(|whole| whole / price), joint: None }
    }

    /// Registers that may be zero where a round begins, but no such round comes back.
    fn stops_at_zero(&self, work: &mut Work<'_, '_>) -> Vec<u32> {
        let (round, base) = (self.round(), (self.base.clone(), false));
        let asked = (ASKED, &[][..]);
        let again = remaining_from(work, &round.left, round.head, &base, asked, None).again;
        let mut slots = again.as_ref().map_or_else(Vec::new, |again| may_stop_at_zero(again, 0));
        slots.retain(|slot| ends_at_zero(work, &round.left, round.head, &base.0, asked, *slot).is_some());
        slots
    }

    /// What some register pays for if rounds inside cost so much, and in how many rounds it need not pay: the last one; one that comes back with the zero that
    /// is left out; and where that is not known of them, the first, and that in which a poll lies.
    fn pays(&self, work: &mut Work<'_, '_>, is_by_rounds: bool, edge_cost: &dyn Fn(u32, u32) -> Option<EdgeCost>) -> Option<(Fall, u64)> {
        let round = self.round();
        let unpaid = 1 + u64::from(self.not_zero.is_some());
        let payers = |blocks| Payers { blocks, head: round.head, base: &self.base, not_zero: self.not_zero, rounds: self.count.rounds };
        if let Some(amid) = self.amid.as_ref().filter(|amid| is_by_rounds || amid.is_empty()) {
            let all = payers(&round.blocks);
            let fall = all.pay(work, edge_cost).and_then(|fall| all.pay_amid(work, amid, fall, edge_cost));
            if let Some(fall) = fall {
                return Some((fall, unpaid));
            }
        }
        payers(&round.left).pay(work, edge_cost).map(|fall| (fall, unpaid + 1))
    }

    /// Whether some register that falls may pay for each round of these loops: each of them has to write something that the register is made of. What
    /// is worth trying is asked without following anything; where it is not known what falls, all is.
    fn may_pay(&self, slice: &Slice<'_>, together: &[usize]) -> bool {
        let Some(falls) = &self.round().falls else { return true };
        let writes = |blocks: &[u32]| {
            let steps = blocks.iter().flat_map(|block| &slice.steps[slice.steps(*block)]);
            steps.flat_map(|step| step.writes.iter().copied().filter(|slot| *slot != u32::MAX)).collect::<BTreeSet<u32>>()
        };
        let inside: Vec<BTreeSet<u32>> = together.iter().map(|number| writes(&self.found[*number].blocks)).collect();
        falls.iter().any(|slot| {
            let made_of = self.made_of(slice, *slot);
            inside.iter().all(|written| !written.is_disjoint(&made_of))
        })
    }

    /// The slots that a slot's values are made of in a round.
    fn made_of(&self, slice: &Slice<'_>, slot: u32) -> BTreeSet<u32> {
        let mut all = BTreeSet::from([slot]);
        let terms = |number: u32| slice.sums[number as usize].terms.iter().map(|(slot, _)| *slot);
        loop {
            let before = all.len();
            let sums: Vec<u32> = all.range(slice.first_sum..).filter_map(|slot| slot.checked_sub(slice.first_sum)).collect();
            all.extend(sums.into_iter().filter(|sum| (*sum as usize) < slice.sums.len()).flat_map(terms));
            for step in self.round().left.iter().flat_map(|block| &slice.steps[slice.steps(*block)]) {
                if step.writes.iter().any(|slot| all.contains(slot)) {
                    each_needed(&step.instruction, |slot| {
                        all.insert(slot);
                    });
                    all.extend(step.derived.iter().flat_map(|derived| terms(derived.sum)));
                }
            }
            if all.len() == before {
                return all;
            }
        }
    }

    fn shared(&self, work: &mut Work<'_, '_>, known: &Known<'_>) -> Option<Shared> {
        let found = self.found;
        let polled = self.inside.iter().copied().filter(|number| matches!(found[*number].proof, Proof::PolledWithin(_)));
        // All of them, or else those that one register counts: a function that was inlined may have a count of its own.
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let slot = |number: usize| if let Proof::PolledWithin(inner) = found[number].proof { inner.slot } else { u32::MAX };
        for number in polled.clone() {
            match groups.iter_mut().find(|group| slot(group[0]) == slot(number)) {
                Some(group) => group.push(number),
                None => groups.push(vec![number]),
            }
        }
        if groups.len() > 1 {
            groups.insert(0, polled.collect());
        }
        let mut shared: Option<Shared> = None;
        for (nth, together) in groups.iter().enumerate() {
            let step = |number: usize| if let Proof::PolledWithin(count) = found[number].proof { count.step } else { 1 };
            let heads: BTreeMap<u32, usize> = together.iter().map(|number| (found[*number].head, *number)).collect();
            let edge_cost = |from: u32, to: u32| {
                let number = *heads.get(&to)?;
                found[number].blocks.binary_search(&from).is_ok().then(|| EdgeCost::Round(step(number)))
            };
            if !self.may_pay(work.slice, together) {
                continue;
            }
            let Some((fall, unpaid)) = self.pays(work, true, &edge_cost) else { continue };
            let shared = shared.get_or_insert_with(|| Shared { own: fall.own, inside: Vec::new(), unpaid });
            shared.own = shared.own.min(fall.own);
            shared.unpaid = shared.unpaid.max(unpaid);
            for number in together {
                let paid = self.paid(fall, step(*number));
                // In the round of a poll one may be entered without a payment.
                let amid = u64::from(self.amid.as_ref().is_some_and(|amid| !amid.is_empty()));
                let all_pay = step(*number) <= fall.each
                    && self.between(*number).all(|around| together.binary_search(&around).is_ok() && step(around) >= step(*number));
                let joint = all_pay.then_some(paid.again + amid);
                shared.inside.push((found[*number].head, Paid { joint, ..paid }));
            }
            if nth == 0 {
                // All loops are in the first group.
                break;
            }
        }
        self.paid_at_entries(work, known, shared, MOST_ROUNDS)
    }

    /// What counts itself, and by itself comes to more than so many rounds, is paid for where it is entered: each loop from the whole of what this
    /// one has.
    fn paid_at_entries(&self, work: &mut Work<'_, '_>, known: &Known<'_>, mut shared: Option<Shared>, more_than: u64) -> Option<Shared> {
        let found = self.found;
        for &number in self.inside {
            let (Proof::Counted(inner) | Proof::PolledWithin(inner)) = found[number].proof else { continue };
            let head = found[number].head;
            let is_shared = shared.as_ref().is_some_and(|shared| shared.paid_of(head).is_some());
            if is_shared || inner.rounds.saturating_mul(self.count.rounds) <= more_than {
                continue;
            }
            let blocks = &found[number].blocks;
            let is_member = |block: &u32| blocks.binary_search(block).is_ok();
            // What comes in elsewhere would not pay.
            if blocks.iter().any(|block| *block != head && !work.body.graph.sources(*block).iter().all(is_member)) {
                continue;
            }
            let Some(inner) = recount(work, &found[number], known) else { continue };
            // What a round may cost, if the loop alone can use up all that there is. By the PTX pass that is half of what it is by the source pass.
            let most = 1 << (MOST_ALLOWED / inner.rounds.max(1)).max(1).ilog2();
            let mut prices = vec![most, (most / 2).max(1), 1];
            prices.dedup();
            for factor in prices {
                let is_entry = |from: u32, to: u32| to == head && !is_member(&from);
                let edge_cost = |from: u32, to: u32| is_entry(from, to).then_some(EdgeCost::Entry(inner, factor));
                if let Some((fall, unpaid)) = self.pays(work, false, &edge_cost) {
                    let shared = shared.get_or_insert_with(|| Shared { own: self.count.rounds, inside: Vec::new(), unpaid });
                    shared.unpaid = shared.unpaid.max(unpaid);
                    shared.inside.push((head, self.paid(fall, inner.step.saturating_mul(factor.into()))));
                    break;
                }
            }
        }
        shared
    }
}

/// How much oftener these ways may be gone if the register that pays for them also does so from the loop's entry on, and amid a round behind a poll. None if
/// it need not.
fn pays_amid(work: &mut Work<'_, '_>, round: &LoopProof, ways: &nest_phases::Paid, known: &Known<'_>) -> Option<u64> {
    let base = (known.base_of)(round.head)?;
    let amid = amid(work, round, &base, known)?;
    let payers = Payers { blocks: &round.blocks, head: round.head, base: &base, not_zero: None, rounds: u64::MAX };
    let edge_cost = |from: u32, to: u32| ways.ways.contains(&(from, to)).then_some(EdgeCost::Round(1));
    let fall = payers.pay(work, &edge_cost)?;
    Some(payers.pay_amid(work, &amid, fall, &edge_cost)?.span.saturating_sub(ways.times))
}

/// See [`Outer::amid`].
fn amid(work: &mut Work<'_, '_>, round: &LoopProof, base: &State, known: &Known<'_>) -> Option<Vec<(u32, State)>> {
    let comes_back = |slot| ends_at_zero(work, &round.blocks, round.head, base, (ASKED, &[]), slot).is_none();
    if round.not_zero.is_some_and(comes_back) {
        return None;
    }
    let mut amid = poll_order::amid(work, &round.blocks, round.head, base);
    // Some polls are known of rounds alone that do not begin with zero.
    let mut others = base.clone();
    if round.not_zero.is_some_and(|slot| is_not_zero(work.slice, slot, &mut others)) {
        amid.extend(poll_order::amid(work, &round.blocks, round.head, &others));
        amid.sort_unstable();
        amid.dedup();
    }
    amid.into_iter().map(|block| Some((block, (known.base_of)(block)?))).collect()
}

/// The count of a loop from where it is entered on, rather than from where it first comes round.
fn recount(work: &mut Work<'_, '_>, round: &LoopProof, known: &Known<'_>) -> Option<Count> {
    let base = (known.base_of)(round.head)?;
    remaining(work, &round.blocks, round.head, &(base, false), Assumption::default(), &[]).count.filter(|count| count.slot != u32::MAX)
}
