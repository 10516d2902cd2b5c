//! Follows the values of a slice through a set of blocks, to a fixed point.

use super::body::Body;
use super::instruction::Operand;
use super::range::{Order, Range};
use super::slice::{Slice, Step};
use super::text::Flow;
use super::value::{Assumption, FIRST_NAME, Kind, NOBODY, Name, Source, Value, comparison, result};
use std::collections::BTreeMap;

/// How often a block is looked at before the sets there are widened.
const PATIENCE: u32 = 2;
/// How often an end of a set comes to rest at a mark before it is given up.
const LIMIT: u8 = 5;

/// Values of slots at one point, sorted by slot. Of those that are missing nothing is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State(Vec<(u32, Value)>);

impl State {
    pub(super) fn new(values: Vec<(u32, Value)>) -> Self {
        Self(values)
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Value> {
        self.0.binary_search_by_key(&slot, |(at, _)| *at).ok().map(|at| &self.0[at].1)
    }

    pub(super) fn set(&mut self, slot: u32, value: Value) {
        match self.0.binary_search_by_key(&slot, |(at, _)| *at) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (slot, value)),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Value)> {
        self.0.iter().map(|(slot, value)| (*slot, value))
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Value)> {
        self.0.iter_mut().map(|(slot, value)| (*slot, value))
    }

    /// Only these slots, which are sorted.
    fn only(&self, live: &[u32]) -> Self {
        let mut live = live.iter().peekable();
        let kept = self.0.iter().filter(|(slot, _)| {
            while live.next_if(|next| **next < *slot).is_some() {}
            live.peek().is_some_and(|next| **next == *slot)
        });
        Self(kept.copied().collect())
    }

    /// Slots of both, with both values.
    fn both<'s>(&'s self, other: &'s Self) -> impl Iterator<Item = (u32, &'s Value, &'s Value)> {
        let mut rest = other.0.iter().peekable();
        self.0.iter().filter_map(move |(slot, value)| {
            while rest.next_if(|(at, _)| at < slot).is_some() {}
            rest.peek().filter(|(at, _)| at == slot).map(|(_, other)| (*slot, value, other))
        })
    }
}

/// Blocks to follow, with room for what is found.
pub(super) struct Pass<'p, 'a> {
    pub(super) body: &'p Body<'a>,
    pub(super) slice: &'p Slice<'a>,
    /// The blocks in the order to take them, a reverse postorder as far as there is one.
    pub(super) order: &'p [u32],
    /// Position of each block of the function in `order`; `u32::MAX` for those outside the set.
    pub(super) position: &'p [u32],
    /// Edges that are known not to be taken, by their number in the function.
    pub(super) closed: &'p dyn Fn(usize) -> bool,
    pub(super) assumption: Assumption,
    /// Whether a call returns to its caller under the assumption.
    pub(super) returns: &'p dyn Fn(u32, Assumption) -> bool,
    /// The block that a round begins at: what flows into it ends the round.
    pub(super) head: Option<u32>,
    /// The price of an edge, from one block to another, that ends a round of a loop inside which is counted together with this one's: it is
    /// taken as added to every register.
    pub(super) toll: &'p dyn Fn(u32, u32) -> Option<u64>,
    /// Slots that nothing in the set writes.
    pub(super) fixed: &'p [bool],
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Values at the beginning of each block that can be reached, by position.
    pub(super) states: Vec<Option<State>>,
    /// Numbers of the edges that may be taken, those to the head included.
    pub(super) open: Vec<usize>,
    /// Values with which the head is reached again.
    pub(super) again: Option<State>,
    /// Steps and blocks that were looked at.
    pub(super) work: usize,
    /// Whether a statement was reached that returns to the caller.
    pub(super) returns: bool,
    /// Whether a load stood for the flag under the assumption.
    pub(super) asks: bool,
}

/// How often a block was come back to, and how often each end of each slot's set moved then.
#[derive(Debug, Clone, Default)]
struct Visits {
    count: u32,
    moved: BTreeMap<u32, (u8, u8)>,
}

/// Values in front of a step.
struct Here<'p, 'a, 's> {
    pass: &'p Pass<'p, 'a>,
    state: &'s State,
}

impl Source for Here<'_, '_, '_> {
    fn value(&self, operand: Operand<'_>, width: u8) -> Value {
        match operand {
            Operand::Register(register) => {
                let Some(slot) = self.pass.slice.find(register) else {
                    return Value::unknown(if width == 0 { self.pass.body.registers.width(register).clamp(1, 64) } else { width });
                };
                let (_, own) = self.pass.slice.slots[slot as usize];
                if width != 0 && own != width || own == 0 || own > 64 {
                    Value::unknown(width.clamp(1, 64))
                } else {
                    self.state.get(slot).copied().unwrap_or_else(|| Value::unknown(own))
                }
            }
            Operand::Number(value) if width != 0 => Value::of(Range::constant(value, width)),
            _ => Value::unknown(width.clamp(1, 64)),
        }
    }

    fn is_fixed(&self, operand: Operand<'_>) -> bool {
        match operand {
            Operand::Number(_) => true,
            Operand::Register(register) => self.pass.slice.find(register).is_some_and(|slot| self.pass.fixed[slot as usize]),
            _ => false,
        }
    }

    fn assumption(&self) -> Assumption {
        self.pass.assumption
    }
}

impl Pass<'_, '_> {
    /// Follows control from these blocks with these values until nothing changes.
    pub(super) fn run(&self, starts: &[(u32, State)]) -> Found {
        let count = self.order.len();
        let mut found = Found { states: vec![None; count], ..Found::default() };
        let mut dirty = vec![false; count];
        let mut visits: Vec<Visits> = vec![Visits::default(); count];
        for (block, state) in starts {
            let at = self.position[*block as usize] as usize;
            found.states[at] = Some(match found.states[at].take() {
                Some(known) => self.join(Some(*block), &known, state),
                None => self.named(*block, state.only(self.slice.live(*block))),
            });
            dirty[at] = true;
        }
        let mut changed = true;
        while changed {
            changed = false;
            for at in 0..count {
                if !std::mem::take(&mut dirty[at]) {
                    continue;
                }
                let Some(state) = found.states[at].clone() else { continue };
                for (edge, to, mut state) in self.leave(self.order[at], state, &mut found) {
                    found.open.push(edge);
                    if Some(to) == self.head {
                        let state = state.only(self.slice.live(to));
                        found.again = Some(match found.again.take() {
                            Some(known) => self.join(None, &known, &state),
                            None => state,
                        });
                        continue;
                    }
                    let target = self.position[to as usize] as usize;
                    if target >= count {
                        continue;
                    }
                    state = state.only(self.slice.live(to));
                    if let Some(price) = (self.toll)(self.order[at], to) {
                        for (_, held) in state.iter_mut() {
                            held.since = held.since.map(|since| since.charge(price));
                        }
                    }
                    if self.body.graph.sources(to).len() > 1 {
                        self.forget_old(to, &mut state);
                    }
                    let next = match &found.states[target] {
                        None => Some(state),
                        Some(known) => {
                            let mut joined = self.join(Some(to), known, &state);
                            if joined != *known && target <= at {
                                self.widen(&mut visits[target], known, &mut joined);
                            }
                            (joined != *known).then_some(joined)
                        }
                    };
                    if let Some(next) = next {
                        found.states[target] = Some(next);
                        dirty[target] = true;
                        changed |= target <= at;
                    }
                }
            }
        }
        found.open.sort_unstable();
        found.open.dedup();
        found
    }

    /// Ways out of a block with the values there.
    fn leave(&self, block: u32, mut state: State, found: &mut Found) -> Vec<(usize, u32, State)> {
        found.work += 1;
        for index in self.slice.steps(block) {
            found.work += 1;
            self.step(index as u32, &mut state, found);
        }
        let graph = self.body.graph;
        let last = graph.blocks[block as usize].end - 1;
        let statement = &self.body.function.statements[last as usize];
        let edges = graph.edges(block);
        let first = graph.first_edge(block);
        let guard = self.slice.guards.get(&block).copied();
        let known = guard.and_then(|slot| state.get(slot)).and_then(|value| value.range.value(1)).map(|value| value != 0);
        let polarity = || self.body.polarity(last);
        if statement.flow == Flow::Return && !(statement.guarded && known.is_some_and(|known| known != polarity())) {
            found.returns = true;
        }
        if statement.flow == Flow::Call && !(self.returns)(last, self.assumption) {
            // A guarded call may not happen.
            if !statement.guarded || known.is_some_and(|known| known == polarity()) {
                return Vec::new();
            }
        }
        let mut ways = Vec::with_capacity(edges.len());
        for (nth, edge) in edges.iter().enumerate() {
            if (self.closed)(first + nth) {
                continue;
            }
            let Some(taken) = edge.when else {
                ways.push((first + nth, edge.to, state.clone()));
                continue;
            };
            let holds = taken == polarity();
            if known.is_some_and(|known| known != holds) {
                continue;
            }
            let mut state = state.clone();
            if guard.is_none_or(|slot| self.learn(&mut state, slot, holds, 0)) {
                ways.push((first + nth, edge.to, state));
            }
        }
        ways
    }

    /// Executes a step.
    fn step(&self, index: u32, state: &mut State, found: &mut Found) {
        let step = &self.slice.steps[index as usize];
        let results = self.results(index, step, state);
        for (nth, value) in results.into_iter().enumerate() {
            let slot = step.writes[nth];
            if slot == u32::MAX {
                continue;
            }
            found.asks |= self.assumption.asked && value.name == super::value::LAUNCH && is_strong(step.instruction.opcode);
            let name = FIRST_NAME + index * 4 + (nth as u32).min(3);
            let value = if value.name == NOBODY { value.named(if nth < 4 { name } else { NOBODY }) } else { value };
            if value.name == name {
                for (other, held) in state.iter_mut() {
                    if other != slot {
                        forget(held, |old| old == name);
                    }
                }
            }
            // A condition about its own old value says nothing any more.
            let mut value = value;
            if let Kind::Truth { a, b, .. } = value.kind
                && (a == name || b == name)
            {
                value.kind = Kind::Plain;
            }
            state.set(slot, value);
        }
    }

    /// Values of a step's results, in order.
    fn results(&self, index: u32, step: &Step<'_>, state: &State) -> Vec<Value> {
        let here = Here { pass: self, state };
        let guard = step.instruction.guard.map(|(register, when)| {
            let value = register.map_or(Value::unknown(1), |register| here.value(Operand::Register(register), 1));
            value.range.value(1).map(|value| (value != 0) == when)
        });
        let value = |nth: usize, slot: u32| {
            let width = self.slice.slots[slot as usize].1.clamp(1, 64);
            let new = || {
                if step.is_wild { Value::unknown(width) } else { result(&step.instruction, nth, width, index, &here) }
            };
            let old = || state.get(slot).copied().unwrap_or_else(|| Value::unknown(width));
            match guard {
                None | Some(Some(true)) => new(),
                Some(Some(false)) => old(),
                Some(None) => new().join(&old(), width, NOBODY),
            }
        };
        let some = |(nth, slot): (usize, &u32)| if *slot == u32::MAX { Value::unknown(1) } else { value(nth, *slot) };
        step.writes.iter().enumerate().map(some).collect()
    }

    /// Takes a predicate to hold, or not to. False if it can't.
    fn learn(&self, state: &mut State, slot: u32, holds: bool, depth: u32) -> bool {
        let Some(value) = state.get(slot).copied() else { return true };
        let truth = Range::constant(i128::from(holds), 1);
        for (_, held) in state.iter_mut() {
            if held.name == value.name && value.name != NOBODY && held.kind == value.kind {
                held.range = truth;
            }
        }
        state.set(slot, Value { range: truth, ..value });
        let Kind::Truth { by, not, a, b } = value.kind else { return true };
        let Some(step) = self.slice.steps.get(by as usize) else { return true };
        let holds = holds != not;
        let find = |state: &State, name: Name| {
            state.iter().find(|(_, held)| held.name == name && name != NOBODY).map(|(slot, held)| (slot, held.range))
        };
        if let Some((order, signed, width)) = comparison(step.instruction.opcode) {
            let order = if holds { order } else { order.not() };
            let range = |state: &State, nth: usize, name: Name| match step.instruction.rest.get(nth) {
                Some(Operand::Number(value)) => Some(Range::constant(*value, width)),
                _ => find(state, name).map(|(_, range)| range),
            };
            let (first, second) = (range(state, 0, a), range(state, 1, b));
            return second.is_none_or(|second| self.restrict(state, a, order, second, signed, width))
                && first.is_none_or(|first| self.restrict(state, b, order.mirrored(), first, signed, width));
        }
        let both = match step.instruction.opcode {
            "and.pred" => holds,
            "or.pred" => !holds,
            _ => return true,
        };
        if both && depth < 4 {
            // Both sides of `and` hold, neither side of `or` does.
            for name in [a, b] {
                if let Some((slot, _)) = find(state, name)
                    && !self.learn(state, slot, holds, depth + 1)
                {
                    return false;
                }
            }
        }
        true
    }

    fn restrict(&self, state: &mut State, name: Name, order: Order, other: Range, signed: bool, width: u8) -> bool {
        if name == NOBODY {
            return true;
        }
        for (slot, held) in state.iter_mut() {
            if held.name == name && self.slice.slots[slot as usize].1 == width && !held.restrict(order, other, signed, width) {
                return false;
            }
        }
        true
    }

    /// The name of what a slot holds from a join on.
    fn name_at(&self, block: u32, slot: usize) -> Name {
        let slots = self.slice.slots.len() as u64;
        let name = u64::from(FIRST_NAME) + self.slice.steps.len() as u64 * 4 + u64::from(block) * slots + slot as u64;
        Name::try_from(name).unwrap_or(NOBODY)
    }

    /// The state with a name for each value that has none, so that conditions can speak of it.
    fn named(&self, block: u32, mut state: State) -> State {
        for (slot, held) in state.iter_mut().filter(|(_, held)| held.name == NOBODY) {
            held.name = self.name_at(block, slot as usize);
        }
        state
    }

    fn join(&self, at: Option<u32>, known: &State, new: &State) -> State {
        let joined = known.both(new).map(|(slot, known, new)| {
            let name = at.map_or(NOBODY, |block| self.name_at(block, slot as usize));
            (slot, known.join(new, self.slice.slots[slot as usize].1.clamp(1, 64), name))
        });
        State(joined.collect())
    }

    /// At a join, what an earlier passage named there is another value by now.
    fn forget_old(&self, block: u32, state: &mut State) {
        let names = self.name_at(block, 0)..=self.name_at(block, self.slice.slots.len().saturating_sub(1));
        for (_, held) in state.iter_mut() {
            forget(held, |old| names.contains(&old));
        }
    }

    fn widen(&self, visits: &mut Visits, known: &State, joined: &mut State) {
        visits.count += 1;
        if visits.count < PATIENCE {
            return;
        }
        for (slot, new) in joined.iter_mut() {
            let Some(old) = known.get(slot) else { continue };
            let width = self.slice.slots[slot as usize].1.clamp(1, 64);
            if old.range != new.range {
                let moved = visits.moved.entry(slot).or_default();
                let marks = |moved: u8| if moved < LIMIT { &self.slice.marks[..] } else { &[] };
                let wide = old.range.widen(new.range, marks(moved.0), marks(moved.1), width);
                moved.0 = moved.0.saturating_add(u8::from(wide.lo != old.range.lo));
                moved.1 = moved.1.saturating_add(u8::from(wide.hi != old.range.hi));
                new.range = wide;
            }
            if let (Some(before), Some(now)) = (old.since, new.since) {
                new.since = Some(now.widen(before));
            }
        }
    }

    /// Passes once through each block with the values found, and shows each step's results to `see`: values in front, number of the step, values behind.
    pub(super) fn show(&self, found: &Found, mut see: impl FnMut(u32, &State, &State)) {
        for (at, &block) in self.order.iter().enumerate() {
            let Some(state) = &found.states[at] else { continue };
            let mut state = state.clone();
            let mut unused = Found::default();
            for index in self.slice.steps(block) {
                let before = state.clone();
                self.step(index as u32, &mut state, &mut unused);
                see(index as u32, &before, &state);
            }
        }
    }
}

/// Whether a load is one that reads what another thread or the host may have written.
fn is_strong(opcode: &str) -> bool {
    opcode.starts_with("ld.") && opcode.split('.').any(|part| matches!(part, "volatile" | "relaxed" | "acquire"))
}

/// Takes away names, and conditions about values of those names.
fn forget(value: &mut Value, old: impl Fn(Name) -> bool) {
    if old(value.name) {
        value.name = NOBODY;
    }
    if let Kind::Truth { a, b, .. } = value.kind
        && (old(a) || old(b))
    {
        value.kind = Kind::Plain;
    }
}
