//! The fixpoint of a slice's values over a set of blocks, by worklist, join and widening.

use crate::domain::interval::Interval;
use crate::domain::name::{FIRST_NAME, LAUNCH, NO_NAME, Name};
use crate::domain::state::{State, forget};
use crate::domain::transfer::result;
use crate::domain::value::{Kind, Source, Value};
use crate::interpret::counted_inside::CountedInside;
use crate::interpret::edge_cost::EdgeCost;
use crate::interpret::here::Here;
use crate::interpret::parameters::handed;
use crate::interpret::pass::{Found, MOST_BACK, Pass};
use crate::interpret::step::Step;
use crate::program::cfg::Edge;
use crate::program::instruction::{Operand, Order};
use cuinstr_ptx::Flow;
use std::collections::BTreeMap;

/// How often a block is looked at before the sets there are widened.
const PATIENCE: u32 = 2;

/// How often an end of a set comes to rest at a mark before it is given up.
const LIMIT: u8 = 8;

/// How often a block's values may change before nothing is taken to be known there. What is named anew at each passage need not come to rest by
/// itself; hardly any block of a compiler's needs a tenth of this.
const MOST_CHANGES: u32 = 1000;

/// Most ways to a block that are kept apart.
const MOST_WAYS: usize = 8;

/// Values that are copied and joined in the time that one step takes.
const VALUES: usize = 32;

/// Most steps of a block that is looked at for each way to it.
const MOST_STEPS: usize = 12;

/// How often a block was come back to, and how often each end of each slot's set moved then.
#[derive(Debug, Clone, Default)]
struct Visits {
    count: u32,
    /// How often its values changed.
    changes: u32,
    moved: BTreeMap<u32, (u8, u8)>,
    /// What slots hold where a loop is entered here.
    entered: BTreeMap<u32, Interval>,
    /// Whether that has become more. What came round before was cut to less, and has to come round once more.
    is_more: bool,
}

impl Pass<'_, '_> {
    /// Follows control from these blocks with these values until nothing changes.
    pub(crate) fn run(&self, starts: &[(u32, State)]) -> Found {
        let count = self.order.len();
        let mut found = Found { states: vec![None; count], ..Found::default() };
        let mut dirty = vec![false; count];
        let mut visits: Vec<Visits> = vec![Visits::default(); count];
        for (block, state) in starts {
            let at = self.position[*block as usize] as usize;
            found.states[at] = Some(match found.states[at].take() {
                Some(known) => known.join(state, self.slice, Some(*block)),
                None => self.named(*block, state.clone().only(self.slice.live(*block))),
            });
            dirty[at] = true;
        }
        // What goes on amid a loop was entered before.
        let is_entered = |counted: &&CountedInside| starts.iter().all(|(block, _)| !counted.holds(*block));
        let counted: BTreeMap<u32, &CountedInside> =
            self.counted.iter().filter(is_entered).map(|counted| (counted.head(), counted)).collect();
        let mut again: BTreeMap<usize, State> = BTreeMap::new();
        let mut changed = true;
        'found: while changed {
            changed = false;
            for at in 0..count {
                if !std::mem::take(&mut dirty[at]) {
                    continue;
                }
                if found.work > self.allowed {
                    return self.anything(found);
                }
                let Some(state) = found.states[at].clone() else { continue };
                let asked = std::mem::take(&mut found.asks);
                let ways = self.leave_by_ways(self.order[at], state, &mut found);
                if found.asks {
                    found.asks_in.insert(self.order[at]);
                }
                found.asks |= asked;
                for (edge, to, mut state) in ways {
                    found.open.push(edge);
                    self.charge(self.order[at], to, &mut state);
                    if Some(to) == self.head {
                        self.come_back(edge, to, state, &mut again);
                        if self.until_return {
                            break 'found;
                        }
                        continue;
                    }
                    let target = self.position[to as usize] as usize;
                    if target >= count {
                        self.go_out(state, &mut found);
                        continue;
                    }
                    state = state.only(self.slice.live(to));
                    let gathers = self.gathers(to, target, starts);
                    let next = if gathers {
                        self.gather((at, to), state, &found, &mut visits[target], counted.get(&to).copied())
                    } else {
                        self.replace(edge, to, state, &mut found)
                    };
                    changed |= std::mem::take(&mut visits[target].is_more) && self.comes_round_again(to, &mut dirty);
                    let Some(mut next) = next else { continue };
                    visits[target].changes += 1;
                    if visits[target].changes > MOST_CHANGES {
                        // Nor of any way to it, or what is known of one would be looked at once and never again.
                        found.incoming.retain(|(block, _), _| *block != to);
                        if found.states[target].as_ref() == Some(&State::default()) {
                            continue;
                        }
                        next = State::default();
                    }
                    found.states[target] = Some(next);
                    dirty[target] = true;
                    changed |= target <= at;
                }
            }
        }
        found.open.sort_unstable();
        found.open.dedup();
        found.again = again.into_values().reduce(|known, new| known.join(&new, self.slice, None));
        found
    }

    /// Has all that leads back to a block do so once more.
    fn comes_round_again(&self, to: u32, dirty: &mut [bool]) -> bool {
        let behind = self.position[to as usize] as usize..dirty.len();
        let positions = self.body.graph.sources(to).iter().map(|source| self.position[*source as usize] as usize);
        positions.filter(|source| behind.contains(source)).map(|source| dirty[source] = true).count() > 0
    }

    /// Keeps the values with which an edge leaves the set.
    fn go_out(&self, state: State, found: &mut Found) {
        if self.keeps_out {
            found.out = Some(match found.out.take() {
                Some(known) => known.join(&state, self.slice, None),
                None => state,
            });
        }
    }

    /// Adds the price of an edge to every register. It comes before anything is dropped: the slot that tells a price may not matter behind the edge.
    fn charge(&self, from: u32, to: u32, state: &mut State) {
        match (self.edge_cost)(from, to) {
            Some(EdgeCost::Round(price)) => state.charge(|delta| delta.charge(price)),
            Some(EdgeCost::Entry(count, factor)) => {
                let width = self.slice.slots[count.slot as usize].1.clamp(1, 64);
                let counter = state.get(count.slot).copied().unwrap_or_else(|| Value::unknown(width));
                let price = count.price(&counter, factor, width);
                state.charge(|delta| delta.charge_value(&price));
            }
            None => {}
        }
    }

    /// Keeps the values with which an edge leads back to the head. Of many such edges only what holds of all is kept.
    fn come_back(&self, edge: usize, head: u32, state: State, again: &mut BTreeMap<usize, State>) {
        let state = state.only(self.slice.live(head));
        let many = self.body.graph.sources(head).len() > MOST_BACK;
        let key = if many { usize::MAX } else { edge };
        let state = match again.remove(&key) {
            Some(known) if many => known.join(&state, self.slice, None),
            _ => state,
        };
        again.insert(key, state);
    }

    /// The values of a block that gathers what ever came there, if the new ones change them.
    fn gather(
        &self,
        (at, to): (usize, u32),
        mut state: State,
        found: &Found,
        visits: &mut Visits,
        counted: Option<&CountedInside>,
    ) -> Option<State> {
        let target = self.position[to as usize] as usize;
        if let Some(counted) = counted {
            visits.is_more |= counted.enter(self.order[at], &state, self.slice, &mut visits.entered);
        }
        let Some(known) = &found.states[target] else {
            if self.body.graph.sources(to).len() > 1 {
                self.forget_old(to, &mut state);
            }
            return Some(state);
        };
        self.age(to, &mut state);
        let mut joined = known.join(&state, self.slice, Some(to));
        if joined != *known && target <= at {
            self.widen(visits, known, &mut joined);
        }
        if let Some(counted) = counted {
            counted.limit(&mut joined, self.slice, &visits.entered);
        }
        (joined != *known).then_some(joined)
    }

    /// The values of a block that control only reaches from further up, if the new ones change them. What comes now takes the place of what came
    /// before. So a value keeps its name, and with it what is known of it, while loops around come to rest.
    fn replace(&self, edge: usize, to: u32, mut state: State, found: &mut Found) -> Option<State> {
        // A block may be looked at for each way to it. Then it is looked at again where one way changes what it brings,
        // even if all ways together bring what they did.
        let mut is_other_way = false;
        if self.body.graph.sources(to).len() > 1 {
            self.forget_old(to, &mut state);
            is_other_way = self.is_short(to) && found.incoming.get(&(to, edge)) != Some(&state);
            found.incoming.insert((to, edge), state);
            let mut all = found.incoming.range((to, 0)..=(to, usize::MAX)).map(|(_, state)| state);
            let first = all.next().cloned().unwrap_or_default();
            state = all.fold(first, |known, new| known.join(new, self.slice, Some(to)));
        }
        let known = &found.states[self.position[to as usize] as usize];
        (is_other_way || known.as_ref() != Some(&state)).then_some(state)
    }

    /// Whether a block's values are gathered from all that ever came there, rather than taken from what comes last: where control comes
    /// back to, where it begins, and where many ways meet.
    fn gathers(&self, block: u32, at: usize, starts: &[(u32, State)]) -> bool {
        let sources = self.body.graph.sources(block);
        let comes_back = |source: &u32| {
            let from = self.position[*source as usize] as usize;
            from < self.order.len() && from >= at
        };
        sources.len() > MOST_WAYS || sources.iter().any(comes_back) || starts.iter().any(|(start, _)| *start == block)
    }

    /// Ways out of a block. A short one that many ways lead to is looked at for each of them, if it branches: where a way decides what a
    /// register holds and which branch is taken, only so do both stay together.
    fn leave_by_ways(&self, block: u32, state: State, found: &mut Found) -> Vec<(usize, u32, State)> {
        let ways = self.leave(block, state, found);
        if ways.len() < 2 || !self.is_short(block) || found.incoming.range((block, 0)..=(block, usize::MAX)).nth(1).is_none() {
            return ways;
        }
        let incoming: Vec<State> = found.incoming.range((block, 0)..=(block, usize::MAX)).map(|(_, state)| state.clone()).collect();
        let all = incoming.len();
        let mut apart: BTreeMap<usize, (usize, State)> = BTreeMap::new();
        for state in incoming {
            for (edge, to, mut state) in self.leave(block, self.named(block, state), found) {
                self.forget_old(to, &mut state);
                let joined = match apart.remove(&edge) {
                    Some((count, known)) => (count + 1, known.join(&state, self.slice, Some(to))),
                    None => (1, state),
                };
                apart.insert(edge, joined);
            }
        }
        // Where none is left out, what is known of all together is as good, and says more of how registers relate. Only what sums are is known
        // better of each way by itself, if the block writes a register of theirs. Either is true of whatever takes the edge, so both are.
        let of_edge = |(edge, to, mut state): (usize, u32, State)| match apart.remove(&edge) {
            Some((count, apart)) if count == all => {
                let is_sum = |slot: u32, _: &Value| slot >= self.slice.first_sum && apart.get(slot).is_some();
                state.change(is_sum, |slot, held| {
                    let range = apart.get(slot).and_then(|apart| held.range.meet(apart.range, self.slice.slots[slot as usize].1));
                    held.range = range.unwrap_or(held.range);
                    true
                });
                Some((edge, to, state))
            }
            Some((_, apart)) => Some((edge, to, apart)),
            None => None,
        };
        ways.into_iter().filter_map(of_edge).collect()
    }

    /// Whether a block is short enough to be looked at for each way to it.
    fn is_short(&self, block: u32) -> bool {
        self.slice.is_close && self.slice.steps(block).len() <= MOST_STEPS && self.body.graph.edges(block).len() > 1
    }

    /// Ways out of a block with the values there.
    pub(crate) fn leave(&self, block: u32, mut state: State, found: &mut Found) -> Vec<(usize, u32, State)> {
        let edges = self.body.graph.edges(block).len();
        found.work += 1 + edges + (1 + edges) * state.len() / VALUES;
        for index in self.slice.steps(block) {
            found.work += 1;
            if !self.step(index as u32, &mut state, found) {
                return Vec::new();
            }
        }
        self.ways(block, state, found)
    }

    /// Ways out of a block with the values behind its steps.
    fn ways(&self, block: u32, state: State, found: &mut Found) -> Vec<(usize, u32, State)> {
        let graph = self.body.graph;
        let edges = graph.edges(block);
        let first = graph.first_edge(block);
        let guard = self.slice.guards.get(&block).copied();
        let known = guard.and_then(|slot| state.get(slot)).and_then(|value| value.range.value(1)).map(|value| value != 0);
        let last = graph.last(block);
        let polarity = || last.is_none_or(|last| self.body.polarity(last));
        let statement = last.map(|last| (last, &self.body.function.statements[last as usize]));
        match statement.map(|(last, statement)| (last, statement.flow, statement.guarded)) {
            Some((_, Flow::Return, is_guarded)) if !(is_guarded && known.is_some_and(|known| known != polarity())) => found.returns = true,
            Some((last, Flow::Call, is_guarded)) => {
                self.asks_action.set(true);
                if !self.comes_back(block, last, &state) {
                    found.asks = true;
                    // A guarded call may not happen.
                    if !is_guarded || known.is_some_and(|known| known == polarity()) {
                        return Vec::new();
                    }
                }
            }
            _ => {}
        }
        let mut ways = Vec::with_capacity(edges.len());
        let mut rest = Some(state);
        for (nth, edge) in edges.iter().enumerate() {
            if (self.closed)(first + nth) {
                continue;
            }
            let holds = edge.when.map(|taken| taken == polarity());
            if holds.is_some_and(|holds| known.is_some_and(|known| known != holds)) {
                continue;
            }
            // The last way takes the state along.
            let Some(mut state) = (if nth + 1 == edges.len() { rest.take() } else { rest.clone() }) else { break };
            let (Some(holds), Some(slot)) = (holds, guard) else {
                ways.push((first + nth, edge.to, state));
                continue;
            };
            let before = self.slice.equations.contains_key(&block).then(|| state.clone());
            if self.refine(&mut state, slot, holds, 0) && before.is_none_or(|before| self.solve((block, None), &before, &mut state)) {
                ways.push((first + nth, edge.to, state));
            }
        }
        ways
    }

    /// Whether the call that a block ends with returns.
    fn comes_back(&self, block: u32, call: u32, state: &State) -> bool {
        if !self.assumption.asked || !(self.returns)(call, self.assumption, 0) {
            return !self.assumption.asked;
        }
        let is_not_zero = |operand: &Operand<'_>| match *operand {
            Operand::Register(register) => {
                let held = self.slice.slot_of(register).and_then(|slot| state.get(slot));
                held.is_some_and(|held| held.range.unsigned(32).lo > 0)
            }
            Operand::Number(number) => number.rem_euclid(1 << 32) != 0,
            _ => false,
        };
        let given = handed(self.body, block).into_iter().filter(|(_, operand)| is_not_zero(operand));
        let not_zero = given.fold(0, |all, (nth, _)| all | 1 << nth);
        not_zero == 0 || (self.returns)(call, self.assumption, not_zero)
    }

    /// Executes a step; false if that can't be.
    fn step(&self, index: u32, state: &mut State, found: &mut Found) -> bool {
        let step = &self.slice.steps[index as usize];
        self.find_sums(index, step, state);
        if let Some(choice) = self.choice.filter(|choice| choice.step == index) {
            let chosen = self.choose(step, choice.nth, state);
            if let Some(value) = chosen {
                self.take(index, (0, step.writes[0]), value, state, found);
            }
            return chosen.is_some();
        }
        // All results are of the values in front of the step.
        if let [slot] = step.writes[..] {
            if slot != u32::MAX {
                let value = self.results(index, step, state).next().unwrap_or_else(|| Value::unknown(1));
                self.take(index, (0, slot), value, state, found);
            }
            return true;
        }
        let results: Vec<Value> = self.results(index, step, state).collect();
        for (nth, value) in results.into_iter().enumerate() {
            let slot = step.writes[nth];
            if slot != u32::MAX {
                self.take(index, (nth, slot), value, state, found);
            }
        }
        true
    }

    /// What a step that takes one of two values results in if it takes this one; none if it can't.
    fn choose(&self, step: &Step<'_>, nth: usize, state: &mut State) -> Option<Value> {
        let (width, signed) = step.instruction.op.of?;
        if let Some(Operand::Register(predicate)) = step.instruction.rest.get(2) {
            let (before, at) = (state.clone(), step.statement);
            let can_be = self.refine(state, *predicate, nth == 0, 0) && self.solve((self.body.block_of(at), Some(at)), &before, state);
            return can_be.then(|| Here { pass: self, state }.value(step.instruction.rest[nth], width));
        }
        let order = if step.instruction.op.head == "max" { Order::Ge } else { Order::Le };
        let value = |state: &State, nth: usize| Here { pass: self, state }.value(step.instruction.rest[nth], width);
        let (taken, other) = (value(state, nth), value(state, 1 - nth));
        let can_be = self.restrict(state, taken.name, (order, signed), other.range, width)
            && self.restrict(state, other.name, (order.mirrored(), signed), taken.range, width);
        can_be.then(|| value(state, nth))
    }

    /// Gives a slot a step's n-th result.
    fn take(&self, index: u32, (nth, slot): (usize, u32), value: Value, state: &mut State, found: &mut Found) {
        let step = &self.slice.steps[index as usize];
        found.asks |= self.assumption.asked && value.name == LAUNCH && step.instruction.loads_anew();
        let name = if nth < 4 { FIRST_NAME + index * 4 + nth as u32 } else { NO_NAME };
        if step.is_again
            && let Some(held) = state.get(slot).filter(|held| held.name != NO_NAME)
        {
            // What sums are does not change.
            let value = again(*held, value, self.slice.slots[slot as usize].1.clamp(1, 64));
            return state.set(slot, value);
        }
        let value = if self.slice.has_halves { Self::replace_root(slot, name, value, state) } else { value };
        if self.slice.sums_of(slot).is_empty() {
            Self::put(slot, name, value, state);
            return;
        }
        // By how much the register moves: to be asked before the new value takes over a name that the old one may have.
        let width = self.slice.slots[slot as usize].1.clamp(1, 64);
        let old = state.get(slot).and_then(|old| old.affine(width));
        let moved = value.affine(width).zip(old).and_then(|(new, old)| new.plus(old, -1)).filter(|by| by.parts().next().is_none());
        let moved = self.moved(step, slot, state).or(moved.map(|by| (by.lo, by.hi)));
        // What the register held may stay a part of sums: `e = e + i` less `i`. A step's own name is that of the new value.
        let lost = state.get(slot).filter(|old| ![NO_NAME, name].contains(&old.name)).map(|old| (old.name, old.range));
        Self::put(slot, name, value, state);
        self.follow_sums((index, slot), moved, lost, state);
    }

    /// By how much a step moves a register that it adds something to.
    fn moved(&self, step: &Step<'_>, slot: u32, state: &State) -> Option<(i64, i64)> {
        let instruction = &step.instruction;
        let ([a, b], None) = (&instruction.rest[..], instruction.guard) else { return None };
        let sign = instruction.op.sums()?;
        let is_old = |operand: &Operand<'_>| matches!(operand, Operand::Register(of) if *of == slot);
        let width = self.slice.slots[slot as usize].1;
        let by = match (is_old(a), is_old(b)) {
            (true, false) => b,
            (false, true) if sign == 1 => a,
            _ => return None,
        };
        let by = Here { pass: self, state }.value(*by, width).range.signed(width).times(sign.into(), width).signed(width);
        Some((i64::try_from(by.lo).ok()?, i64::try_from(by.hi).ok()?))
    }

    /// A slot's new value where something else stands for the old one, which has that name: see [`State::replace_roots`].
    fn replace_root(slot: u32, name: Name, mut value: Value, state: &mut State) -> Value {
        if name == NO_NAME || value.name != NO_NAME {
            return value;
        }
        for root in state.replace_roots(|old| old == name, slot) {
            root.replace(&mut value);
        }
        // What is another value and nothing else relates to the round's beginning as that does.
        if value.name != NO_NAME && value.delta.is_none() {
            value.delta = state.iter().find(|(_, held)| held.name == value.name).and_then(|(_, held)| held.delta);
        }
        value
    }

    /// Gives a slot a value, and that a name unless it has one.
    pub(crate) fn put(slot: u32, name: Name, mut value: Value, state: &mut State) {
        if value.name == NO_NAME || value.name == name {
            if name != NO_NAME {
                state.forget(|old| old == name, slot);
            }
            // What it says about its own old value it says of nothing any more.
            forget(&mut value, |old| old == name && name != NO_NAME);
            value.name = name;
        }
        state.set(slot, value);
    }

    /// Values of a step's results, in order.
    fn results<'s>(&'s self, index: u32, step: &'s Step<'_>, state: &'s State) -> impl Iterator<Item = Value> + 's {
        let here = Here { pass: self, state };
        let guard = step.instruction.guard.map(|(register, when)| {
            let value = register.map_or(Value::unknown(1), |register| here.value(Operand::Register(register), 1));
            value.range.value(1).map(|value| (value != 0) == when)
        });
        step.writes.iter().enumerate().map(move |(nth, &slot)| {
            if slot == u32::MAX {
                return Value::unknown(1);
            }
            let width = self.slice.slots[slot as usize].1.clamp(1, 64);
            let new = || {
                if step.is_wild {
                    return Value::unknown(width);
                }
                self.by_sums((index, step), state, result(&step.instruction, nth, width, index, &here), nth, width)
            };
            let old = || state.get(slot).copied().unwrap_or_else(|| Value::unknown(width));
            match guard {
                None | Some(Some(true)) => new(),
                Some(Some(false)) => old(),
                Some(None) => new().join(&old(), width, NO_NAME),
            }
        })
    }

    /// The state with a name for each value that has none, so that conditions can speak of it.
    fn named(&self, block: u32, mut state: State) -> State {
        state.change(
            |_, held| held.name == NO_NAME,
            |slot, held| {
                held.name = self.slice.name_at(block, slot as usize);
                true
            },
        );
        state
    }

    /// At a join, what an earlier passage named there is another value by now.
    fn forget_old(&self, block: u32, state: &mut State) {
        let names = self.slice.names_at(block);
        if self.slice.has_halves {
            state.replace_roots(|old| names.contains(&u64::from(old)), u32::MAX);
        }
        state.forget(|old| names.contains(&u64::from(old)), u32::MAX);
    }

    /// The same in front of a join: what an earlier passage named there gets other names. So slots that held the same
    /// then are known to hold the same behind the join.
    fn age(&self, block: u32, state: &mut State) {
        let names = self.slice.names_at(block);
        state.age(|old| names.contains(&u64::from(old)));
    }

    fn widen(&self, visits: &mut Visits, known: &State, joined: &mut State) {
        visits.count += 1;
        let differs = |slot: u32, new: &Value| known.get(slot).is_some_and(|old| old != new);
        // Offsets that grow would grow for ever.
        joined.change(differs, |slot, new| {
            new.form = new.form.filter(|_| known.get(slot).is_none_or(|old| old.form == new.form));
            true
        });
        if visits.count < PATIENCE {
            return;
        }
        joined.change(differs, |slot, new| {
            let Some(old) = known.get(slot) else { return true };
            let width = self.slice.slots[slot as usize].1.clamp(1, 64);
            if old.range != new.range {
                let moved = visits.moved.entry(slot).or_default();
                let thresholds = |moved: u8| if moved < LIMIT { self.slice.thresholds(slot) } else { &[] };
                let wide = old.range.widen(new.range, thresholds(moved.0), thresholds(moved.1), width);
                moved.0 = moved.0.saturating_add(u8::from(wide.lo != old.range.lo));
                moved.1 = moved.1.saturating_add(u8::from(wide.hi != old.range.hi));
                new.range = wide;
            }
            if let (Some(before), Some(now)) = (old.delta, new.delta) {
                new.delta = Some(now.widen(before));
            }
            if let (Some(before), Kind::Saturated(now, pair)) = (old.unless_zero(), new.kind) {
                new.kind = Kind::Saturated(now.widen(before), pair);
            }
            true
        });
    }

    /// Passes once through each block with the values found. Shows each step's results to `see`, and to `back` what is known where control
    /// goes back in the order of blocks: from which, to which, values there.
    pub(crate) fn show(&self, found: &Found, mut see: impl FnMut(u32, &State), mut back: impl FnMut(u32, u32, State)) {
        for (at, &block) in self.order.iter().enumerate() {
            let Some(state) = &found.states[at] else { continue };
            let mut unused = Found::default();
            let mut stepped = state.clone();
            for index in self.slice.steps(block) {
                if !self.step(index as u32, &mut stepped, &mut unused) {
                    break;
                }
                see(index as u32, &stepped);
            }
            let goes_back = |edge: &Edge| self.position[edge.to as usize] as usize <= at;
            if !self.body.graph.edges(block).iter().any(goes_back) {
                continue;
            }
            unused.incoming = found.incoming.range((block, 0)..=(block, usize::MAX)).map(|(key, state)| (*key, state.clone())).collect();
            for (_, to, mut state) in self.leave_by_ways(block, state.clone(), &mut unused) {
                if self.position[to as usize] as usize <= at && self.body.graph.sources(to).len() <= MOST_BACK {
                    state = state.only(self.slice.live(to));
                    self.forget_old(to, &mut state);
                    back(block, to, state);
                }
            }
        }
    }
}

/// A value that is what was held before, and what a step makes of its operands.
fn again(held: Value, new: Value, width: u8) -> Value {
    Value {
        range: held.range.meet(new.range, width).unwrap_or(new.range),
        kind: if held.kind == Kind::Plain { new.kind } else { held.kind },
        delta: held.delta.or(new.delta),
        form: held.form.or(new.form),
        ..held
    }
}
