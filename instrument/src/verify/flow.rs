//! Follows the values of a slice through a set of blocks, to a fixed point.

use super::body::Body;
use super::count::Count;
use super::instruction::Operand;
use super::range::Range;
use super::since::Since;
use super::slice::{Slice, Step};
use super::text::Flow;
use super::value::{Assumption, FIRST_NAME, Kind, NOBODY, Name, Source, Value, result};
use std::collections::BTreeMap;

/// How often a block is looked at before the sets there are widened.
const PATIENCE: u32 = 2;
/// How often an end of a set comes to rest at a mark before it is given up.
const LIMIT: u8 = 8;

/// Most ways to a block that are kept apart.
const MOST_WAYS: usize = 8;

/// Most ways back to a block that are kept apart.
pub(super) const MOST_BACK: usize = 64;

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

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Value)> {
        self.0.iter_mut().map(|(slot, value)| (*slot, value))
    }

    /// What is known of the value of that name: from a register that holds it, or else from one that holds it plus a number.
    pub(super) fn named(&self, name: Name, slice: &Slice<'_>) -> Option<Value> {
        if name == NOBODY {
            return None;
        }
        let holder = self.iter().find(|(_, held)| held.name == name).map(|(_, held)| *held);
        holder.or_else(|| {
            self.iter().find_map(|(slot, held)| {
                let form = held.form.filter(|form| form.lo == form.hi)?;
                let (root, range) = form.root(held.range, |_| None, slice.slots[slot as usize].1)?;
                (root == name).then_some(Value::of(range))
            })
        })
    }

    /// Takes something as added to every register.
    fn charge(&mut self, more: impl Fn(Since) -> Since) {
        for (_, held) in self.iter_mut() {
            held.since = held.since.map(&more);
            if let Kind::Saturated(since) = held.kind {
                held.kind = Kind::Saturated(more(since));
            }
        }
    }

    /// Only these slots, which are sorted; and those that hold what the sums in them are made of, since a sum says nothing without that.
    fn only(&self, live: &[u32]) -> Self {
        let mut rest = live.iter().peekable();
        let is_live: Vec<bool> = self
            .0
            .iter()
            .map(|(slot, _)| {
                while rest.next_if(|next| **next < *slot).is_some() {}
                rest.peek().is_some_and(|next| **next == *slot)
            })
            .collect();
        let kept = || self.0.iter().zip(&is_live).filter(|(_, live)| **live).map(|((_, value), _)| value);
        let mut named: Vec<Name> =
            kept().filter_map(|value| value.form.as_ref()).flat_map(|form| form.parts().map(|(name, _)| name)).collect();
        if !named.is_empty() {
            named.sort_unstable();
            named.dedup();
            for value in kept() {
                if let Ok(at) = named.binary_search(&value.name) {
                    named.remove(at);
                }
            }
        }
        // Lowest bits that were asked about are often taken anew; what was learned of them is not lost so.
        let is_part = |value: &Value| matches!(value.kind, Kind::Low { of, .. } if kept().any(|held| held.name == of.name));
        let parts: Vec<bool> = self.0.iter().map(|(_, value)| is_part(value)).collect();
        let mut is_needed = |name: Name| named.binary_search(&name).map(|at| named.remove(at)).is_ok();
        let all = self.0.iter().zip(is_live.iter().zip(parts));
        Self(all.filter(|((_, value), (live, part))| **live || *part || is_needed(value.name)).map(|(entry, _)| *entry).collect())
    }

    /// What holds of both. Values that differ are named for the block at whose beginning they meet, if there is one.
    pub(super) fn join(&self, new: &Self, slice: &Slice<'_>, at: Option<u32>) -> Self {
        let joined = self.both(new).map(|(slot, known, new)| {
            let name = at.map_or(NOBODY, |block| slice.name_at(block, slot as usize));
            (slot, known.join(new, slice.slots[slot as usize].1.clamp(1, 64), name))
        });
        Self(joined.collect())
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
    /// The price of an edge, from one block to another, for a loop inside that is counted together with this one: it is taken as added to
    /// every register.
    pub(super) toll: &'p dyn Fn(u32, u32) -> Option<Toll>,
    /// Slots that nothing in the set writes.
    pub(super) fixed: &'p [bool],
}

/// What rounds of a loop inside cost.
#[derive(Debug, Clone, Copy)]
pub(super) enum Toll {
    /// So much for each round, where it ends.
    Round(u64),
    /// As many as the counter allows, where the loop is entered.
    Entry(Count),
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

    fn value_if(&self, predicate: Operand<'_>, holds: bool, operand: Operand<'_>, width: u8) -> Option<Value> {
        let slot = match predicate {
            Operand::Register(register) => self.pass.slice.find(register),
            _ => None,
        };
        let Some(slot) = slot else { return Some(self.value(operand, width)) };
        let mut state = self.state.clone();
        self.pass.learn(&mut state, slot, holds, 0).then(|| Here { pass: self.pass, state: &state }.value(operand, width))
    }

    fn named(&self, name: Name) -> Option<Value> {
        self.state.named(name, self.pass.slice)
    }

    fn alike(&self, kind: Kind, width: u8) -> Option<Value> {
        let held = self.state.iter().find(|(slot, held)| held.kind == kind && self.pass.slice.slots[*slot as usize].1 == width);
        held.map(|(_, held)| *held).filter(|held| held.name != NOBODY)
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
                Some(known) => known.join(state, self.slice, Some(*block)),
                None => self.named(*block, state.only(self.slice.live(*block))),
            });
            dirty[at] = true;
        }
        let mut incoming: BTreeMap<(u32, usize), State> = BTreeMap::new();
        let mut again: BTreeMap<usize, State> = BTreeMap::new();
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
                        // Of many ways back only what holds of all is kept.
                        let many = self.body.graph.sources(to).len() > MOST_BACK;
                        let key = if many { usize::MAX } else { edge };
                        let state = match again.remove(&key) {
                            Some(known) if many => known.join(&state, self.slice, None),
                            _ => state,
                        };
                        again.insert(key, state);
                        continue;
                    }
                    let target = self.position[to as usize] as usize;
                    if target >= count {
                        continue;
                    }
                    state = state.only(self.slice.live(to));
                    match (self.toll)(self.order[at], to) {
                        Some(Toll::Round(price)) => state.charge(|since| since.charge(price)),
                        Some(Toll::Entry(count)) => {
                            let width = self.slice.slots[count.slot as usize].1.clamp(1, 64);
                            let counter = state.get(count.slot).copied().unwrap_or_else(|| Value::unknown(width));
                            let price = count.price(&counter, width);
                            state.charge(|since| since.charge_value(&price));
                        }
                        None => {}
                    }
                    if self.body.graph.sources(to).len() > 1 {
                        self.forget_old(to, &mut state);
                    }
                    let next = match &found.states[target] {
                        // Where control only comes from further up, what comes now takes the place of what came before: so a value keeps
                        // its name, and with it what is known of it, while loops around come to rest.
                        known if !self.gathers(to, target, starts) => {
                            let new = if self.body.graph.sources(to).len() > 1 {
                                incoming.insert((to, edge), state);
                                let mut all = incoming.range((to, 0)..=(to, usize::MAX)).map(|(_, state)| state);
                                let first = all.next().cloned().unwrap_or_default();
                                all.fold(first, |known, new| known.join(new, self.slice, Some(to)))
                            } else {
                                state
                            };
                            (known.as_ref() != Some(&new)).then_some(new)
                        }
                        None => Some(state),
                        Some(known) => {
                            let mut joined = known.join(&state, self.slice, Some(to));
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
        found.again = again.into_values().reduce(|known, new| known.join(&new, self.slice, None));
        found
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

    /// Ways out of a block with the values there.
    fn leave(&self, block: u32, mut state: State, found: &mut Found) -> Vec<(usize, u32, State)> {
        found.work += 1;
        for index in self.slice.steps(block) {
            found.work += 1;
            self.step(index as u32, &mut state, found);
        }
        self.ways(block, &state, found)
    }

    /// Ways out of a block with the values behind its steps.
    fn ways(&self, block: u32, state: &State, found: &mut Found) -> Vec<(usize, u32, State)> {
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
        self.find_sums(index, step, state);
        let results = self.results(index, step, state);
        for (nth, value) in results.into_iter().enumerate() {
            let slot = step.writes[nth];
            if slot == u32::MAX {
                continue;
            }
            found.asks |= self.assumption.asked && value.name == super::value::LAUNCH && is_strong(step.instruction.opcode);
            let name = if nth < 4 { FIRST_NAME + index * 4 + nth as u32 } else { NOBODY };
            // By how much the register moves: to be asked before the new value takes over a name that the old one may have.
            let width = self.slice.slots[slot as usize].1.clamp(1, 64);
            let old = state.get(slot).and_then(|old| old.linear(width));
            let moved = value.linear(width).zip(old).and_then(|(new, old)| new.plus(old, -1)).filter(|by| by.parts().next().is_none());
            let moved = self.moved(step, slot, state).or(moved.map(|by| (by.lo, by.hi)));
            Self::put(slot, name, value, state);
            if !self.slice.sums_of(slot).is_empty() {
                self.follow_sums(index, slot, moved, state);
            }
        }
    }

    /// By how much a step moves a register that it adds something to.
    fn moved(&self, step: &Step<'_>, slot: u32, state: &State) -> Option<(i64, i64)> {
        let instruction = &step.instruction;
        let ([a, b], None) = (&instruction.rest[..], instruction.guard) else { return None };
        let sign = match instruction.opcode.split_once('.')?.0 {
            "add" => 1,
            "sub" => -1,
            _ => return None,
        };
        let is_old = |operand: &Operand<'_>| matches!(operand, Operand::Register(register) if self.slice.find(*register) == Some(slot));
        let width = self.slice.slots[slot as usize].1;
        let by = match (is_old(a), is_old(b)) {
            (true, false) => b,
            (false, true) if sign == 1 => a,
            _ => return None,
        };
        let by = Here { pass: self, state }.value(*by, width).range.signed(width).times(sign, width).signed(width);
        Some((i64::try_from(by.lo).ok()?, i64::try_from(by.hi).ok()?))
    }

    /// Gives a slot a value, and that a name unless it has one.
    pub(super) fn put(slot: u32, name: Name, mut value: Value, state: &mut State) {
        if value.name == NOBODY || value.name == name {
            for (other, held) in state.iter_mut() {
                if other != slot && name != NOBODY {
                    forget(held, |old| old == name);
                }
            }
            // What it says about its own old value it says of nothing any more.
            forget(&mut value, |old| old == name && name != NOBODY);
            value.name = name;
        }
        state.set(slot, value);
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
                if step.is_wild {
                    return Value::unknown(width);
                }
                self.by_sums(step, state, result(&step.instruction, nth, width, index, &here), nth, width)
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

    /// The state with a name for each value that has none, so that conditions can speak of it.
    fn named(&self, block: u32, mut state: State) -> State {
        for (slot, held) in state.iter_mut().filter(|(_, held)| held.name == NOBODY) {
            held.name = self.slice.name_at(block, slot as usize);
        }
        state
    }

    /// At a join, what an earlier passage named there is another value by now.
    fn forget_old(&self, block: u32, state: &mut State) {
        let names = self.slice.name_at(block, 0)..=self.slice.name_at(block, self.slice.slots.len().saturating_sub(1));
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
                let marks = |moved: u8| if moved < LIMIT { self.slice.marks(slot) } else { &[] };
                let wide = old.range.widen(new.range, marks(moved.0), marks(moved.1), width);
                moved.0 = moved.0.saturating_add(u8::from(wide.lo != old.range.lo));
                moved.1 = moved.1.saturating_add(u8::from(wide.hi != old.range.hi));
                new.range = wide;
            }
            if let (Some(before), Some(now)) = (old.since, new.since) {
                new.since = Some(now.widen(before));
            }
            if let (Some(before), Kind::Saturated(now)) = (old.unless_zero(), new.kind) {
                new.kind = Kind::Saturated(now.widen(before));
            }
            // Offsets that grow would grow for ever.
            if old.form != new.form {
                new.form = None;
            }
        }
    }

    /// Passes once through each block with the values found. Shows each step's results to `see`, and to `back` what is known where control
    /// goes back in the order of blocks: from which, to which, values there.
    pub(super) fn show(&self, found: &Found, mut see: impl FnMut(u32, &State), mut back: impl FnMut(u32, u32, State)) {
        for (at, &block) in self.order.iter().enumerate() {
            let Some(state) = &found.states[at] else { continue };
            let mut unused = Found::default();
            let mut stepped = state.clone();
            for index in self.slice.steps(block) {
                self.step(index as u32, &mut stepped, &mut unused);
                see(index as u32, &stepped);
            }
            for (_, to, mut state) in self.ways(block, &stepped, &mut unused) {
                if self.position[to as usize] as usize <= at && self.body.graph.sources(to).len() <= MOST_BACK {
                    state = state.only(self.slice.live(to));
                    self.forget_old(to, &mut state);
                    back(block, to, state);
                }
            }
        }
    }
}

/// Whether a load is one that reads what another thread or the host may have written.
fn is_strong(opcode: &str) -> bool {
    opcode.starts_with("ld.") && opcode.split('.').any(|part| matches!(part, "volatile" | "relaxed" | "acquire"))
}

/// Takes away names, and what is said about values of those names.
fn forget(value: &mut Value, old: impl Fn(Name) -> bool) {
    if old(value.name) {
        value.name = NOBODY;
    }
    if value.form.is_some_and(|form| form.parts().any(|(name, _)| old(name))) {
        value.form = None;
    }
    if let Some(since) = value.since
        && since.term.is_some_and(|term| old(term.name))
    {
        value.since = Some(since.plain());
    }
    value.kind = match value.kind {
        Kind::Truth { a, b, .. } if old(a) || old(b) => Kind::Plain,
        Kind::Truth { by, not, a, b, apart } if old(apart) => Kind::Truth { by, not, a, b, apart: NOBODY },
        Kind::Low { of, .. } if old(of.name) => Kind::Plain,
        Kind::Larger { a, b } if old(a) || old(b) => Kind::Plain,
        Kind::Saturated(since) if since.term.is_some_and(|term| old(term.name)) => Kind::Saturated(since.plain()),
        kind => kind,
    };
}
