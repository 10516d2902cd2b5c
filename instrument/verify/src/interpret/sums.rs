//! Sums of registers, such as a bound less a counter, that are followed like registers: what a comparison of two registers says is said of
//! their difference, and a difference may be known where neither register is.

use crate::domain::arithmetic::{sum, taken};
use crate::interpret::fixpoint::Pass;
use crate::interpret::here::Here;
use crate::program::instruction::{Operand, Register, type_of};
use crate::domain::affine::Linear;
use crate::domain::interval::{Order, Range};
use crate::domain::delta::Since;
use crate::interpret::slice::Step;
use crate::domain::state::State;
use crate::domain::value::{FIRST_NAME, Kind, NOBODY, Name, Source, Value, name_of};
use std::collections::{BTreeMap, BTreeSet};

/// Most sums of one slice.
const MOST: usize = 128;
/// Most registers of one sum.
const MOST_TERMS: usize = 3;
/// Largest factor of a register in a sum.
const MOST_TIMES: i8 = 32;
/// Stands for no register: the slot is that of a sum, or of what no register holds.
pub(crate) const NO_REGISTER: Register = u32::MAX;

/// Registers with signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sum {
    /// Slots, sorted, each with a factor. That of the first is positive.
    pub(crate) terms: Vec<(u32, i8)>,
    pub(crate) width: u8,
}

impl Sum {
    /// The same with another register in the place of one, and the sign of the one in terms of the other; none if both are in it.
    fn with(&self, of: u32, other: u32) -> Option<(Self, i8)> {
        if self.terms.iter().any(|(slot, _)| *slot == other) {
            return None;
        }
        let mut terms = self.terms.clone();
        for (slot, _) in terms.iter_mut().filter(|(slot, _)| *slot == of) {
            *slot = other;
        }
        terms.sort_unstable();
        let sign = terms[0].1.signum();
        for (_, times) in &mut terms {
            *times *= sign;
        }
        Some((Self { terms, width: self.width }, sign))
    }
}

/// An instruction's result in terms of registers in front of it, plus a constant.
#[derive(Debug, Clone)]
struct Expansion {
    terms: Vec<(u32, i8)>,
    offset: i128,
    width: u8,
}

impl Expansion {
    fn plus(mut self, other: &Self, sign: i8) -> Option<Self> {
        for (slot, times) in &other.terms {
            match self.terms.iter_mut().find(|(known, _)| known == slot) {
                Some((_, sum)) => *sum += times * sign,
                None => self.terms.push((*slot, times * sign)),
            }
        }
        self.terms.retain(|(_, times)| *times != 0);
        self.terms.sort_unstable();
        self.offset = (self.offset + other.offset * i128::from(sign)) % (1 << 64);
        (self.terms.len() <= MOST_TERMS && self.terms.iter().all(|(_, times)| times.abs() <= MOST_TIMES)).then_some(self)
    }

    /// So many times the value.
    fn times(mut self, factor: i128) -> Option<Self> {
        let factor = i8::try_from(factor).ok().filter(|factor| factor.unsigned_abs() <= MOST_TIMES.unsigned_abs())?;
        for (_, times) in &mut self.terms {
            *times = times.checked_mul(factor).filter(|times| times.unsigned_abs() <= MOST_TIMES.unsigned_abs())?;
        }
        self.terms.retain(|(_, times)| *times != 0);
        self.offset = self.offset * i128::from(factor) % (1 << 64);
        Some(self)
    }

    /// The number, if it is that and nothing else.
    fn number(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.offset)
    }

    /// Whether each register is added or subtracted once.
    fn is_plain(&self) -> bool {
        self.terms.iter().all(|(_, times)| times.abs() == 1)
    }
}

/// How far a comparison's operands are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Apart {
    /// Number of the sum.
    pub(crate) sum: u32,
    /// Whether that is the first operand less the second, rather than the other way round.
    pub(crate) is_first_less_second: bool,
}

/// How a step's result follows from a sum in front of it: `sign` times that and `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Derived {
    /// Number of the sum.
    pub(crate) sum: u32,
    pub(crate) sign: i8,
    pub(crate) offset: i128,
}

/// Finds the sums that such steps are about, block by block, and notes in each step which one it is.
pub(crate) fn find(
    steps: &mut [Step<'_>],
    blocks: impl Iterator<Item = (u32, u32)>,
    widths: &[(Register, u8)],
    has_cases: bool,
    is_asked_for: impl Fn(&Step<'_>) -> bool,
) -> Vec<Sum> {
    let mut found: Vec<Sum> = Vec::new();
    let mut place = |terms: Vec<(u32, i8)>, width: u8| {
        let sign = terms[0].1.signum();
        let terms = terms.into_iter().map(|(slot, times)| (slot, times * sign)).collect();
        let sum = Sum { terms, width };
        let at = found.iter().position(|known| *known == sum).or_else(|| {
            found.push(sum);
            (found.len() <= MOST).then_some(found.len() - 1)
        });
        found.truncate(MOST);
        at.map(|at| (at as u32, sign))
    };
    let compared: BTreeSet<u32> = steps
        .iter()
        .filter(|step| step.instruction.op.compares.is_some())
        .filter_map(|step| match step.instruction.rest[..] {
            [Operand::Register(slot), Operand::Number(_)] => Some(slot),
            _ => None,
        })
        .collect();
    for (from, to) in blocks {
        let mut known: BTreeMap<u32, Expansion> = BTreeMap::new();
        for step in &mut steps[from as usize..to as usize] {
            let instruction = &step.instruction;
            let slot = |of: Option<&Operand<'_>>, width: u8| match of {
                Some(Operand::Register(slot)) => Some(*slot).filter(|slot| widths[*slot as usize].1 == width),
                _ => None,
            };
            if let Some((_, _, width)) = instruction.op.compares
                && let (Some(a), Some(b)) = (slot(instruction.rest.first(), width), slot(instruction.rest.get(1), width))
                && a != b
            {
                if !is_asked_for(step) {
                    continue;
                }
                // What was copied in front of it stands for its copy: only that lasts from round to round.
                let copied = |slot: u32| match known.get(&slot).filter(|known| known.width == width) {
                    Some(Expansion { terms, offset: 0, .. }) if matches!(terms[..], [(_, 1)]) => terms[0].0,
                    _ => slot,
                };
                let (a, b) = if copied(a) == copied(b) { (a, b) } else { (copied(a), copied(b)) };
                let mut terms = vec![(a, 1), (b, -1)];
                terms.sort_unstable();
                step.apart = place(terms, width).map(|(sum, sign)| Apart { sum, is_first_less_second: sign == 1 });
                continue;
            }
            let (head, kind) = instruction.opcode.split_once('.').unwrap_or(("", ""));
            let (multiplies, kind) = match (head, kind.strip_prefix("lo.")) {
                ("mul" | "mad", Some(kind)) => (true, kind),
                _ => (false, kind),
            };
            let width = type_of(kind).filter(|_| !kind.starts_with('f')).map_or(0, |(width, _)| width);
            let operand = |nth: usize| match instruction.rest.get(nth)? {
                Operand::Number(value) => Some(Expansion { terms: Vec::new(), offset: *value, width }),
                of => {
                    let slot = slot(Some(of), width)?;
                    let plain = || Expansion { terms: vec![(slot, 1)], offset: 0, width };
                    Some(known.get(&slot).filter(|known| known.width == width).cloned().unwrap_or_else(plain))
                }
            };
            let number = |value: i128| Expansion { terms: Vec::new(), offset: value, width };
            let expansion = (|| match head {
                _ if step.is_wild || instruction.guard.is_some() || instruction.first.len() != 1 || !matches!(width, 32 | 64) => None,
                "mov" => operand(0),
                "add" => operand(0)?.plus(&operand(1)?, 1),
                "sub" => operand(0)?.plus(&operand(1)?, -1),
                "neg" => number(0).plus(&operand(0)?, -1),
                "not" => number(-1).plus(&operand(0)?, -1),
                "shl" => operand(0)?.times(1 << shift(instruction.rest.get(1)?)?),
                "mul" | "mad" if multiplies => {
                    let (one, two) = (operand(0)?, operand(1)?);
                    let product = match (one.number(), two.number()) {
                        (_, Some(factor)) => one.times(factor),
                        (Some(factor), _) => two.times(factor),
                        _ => None,
                    };
                    if head == "mul" { product } else { product?.plus(&operand(2)?, 1) }
                }
                _ => None,
            })();
            if let Some(expansion) = &expansion {
                let (plus, minus) =
                    (expansion.terms.iter().any(|(_, times)| *times > 0), expansion.terms.iter().any(|(_, times)| *times < 0));
                // What is compared may be a sum of two, since compilers count down by adding what they have negated.
                let is_compared = || step.writes.iter().any(|slot| compared.contains(slot)) && expansion.terms.len() > 1;
                if (plus && minus && expansion.is_plain() || is_compared()) && is_asked_for(step) {
                    step.derived = place(expansion.terms.clone(), width).map(|(sum, sign)| Derived { sum, sign, offset: expansion.offset });
                }
            }
            for &written in step.writes.iter().filter(|slot| **slot != u32::MAX) {
                known.remove(&written);
                known.retain(|_, expansion| expansion.terms.iter().all(|(slot, _)| *slot != written));
            }
            if let (Some(expansion), [written]) = (expansion, &step.writes[..])
                && *written != u32::MAX
                && expansion.terms.iter().all(|(slot, _)| slot != written)
            {
                known.insert(*written, expansion);
            }
        }
    }
    if has_cases {
        add_copied(steps, widths, &mut found);
    }
    found
}

/// Adds sums that others are copied from. Where cases are told apart, how a counter is from its bound is known of the register that it was made in,
/// which is copied to the one that is compared.
fn add_copied(steps: &[Step<'_>], widths: &[(Register, u8)], found: &mut Vec<Sum>) {
    let copies = steps.iter().filter_map(|step| match (&step.writes[..], &step.instruction.rest[..]) {
        ([to], [Operand::Register(from)]) if *to != u32::MAX => {
            let is_copy = step.instruction.op.head == "mov" && step.instruction.guard.is_none() && !step.is_wild;
            (is_copy && to != from && widths[*to as usize].1 == widths[*from as usize].1).then_some((*to, *from))
        }
        _ => None,
    });
    let copies: BTreeSet<(u32, u32)> = copies.collect();
    let mut next = 0;
    while next < found.len() {
        let sum = found[next].clone();
        next += 1;
        for (to, _) in &sum.terms {
            for (_, from) in copies.range((*to, 0)..=(*to, u32::MAX)) {
                if let Some(copied) = sum.with(*to, *from).map(|(sum, _)| sum).filter(|copied| !found.contains(copied))
                    && found.len() < MOST
                {
                    found.push(copied);
                }
            }
        }
    }
}

/// By how much an operand shifts, if that is little.
fn shift(operand: &Operand<'_>) -> Option<u32> {
    match operand {
        Operand::Number(by) => u32::try_from(*by).ok().filter(|by| 1_i128 << (*by).min(31) <= i128::from(MOST_TIMES)),
        _ => None,
    }
}

impl Pass<'_, '_> {
    /// The name of a sum from a step on that writes one of its registers.
    fn name_of_sum(&self, step: u32, sum: u32) -> Name {
        let steps = self.slice.steps.len() as u64;
        let joins = self.body.graph.blocks.len() as u64 * self.slice.slots.len() as u64;
        let name = u64::from(FIRST_NAME) + steps * 4 + joins + u64::from(step) * self.slice.sums.len() as u64 + u64::from(sum);
        name_of(name)
    }

    /// What is known of a result by the sums in front of its step.
    pub(crate) fn by_sums(&self, step: &Step<'_>, state: &State, mut value: Value, nth: usize, width: u8) -> Value {
        let known = |sum: u32| state.get(self.slice.first_sum + sum);
        if let Some(apart) = step.apart
            && let Some(apart) = known(apart.sum)
            && let Kind::Truth { by, not, a, b, .. } = value.kind
            && let Some((order, _, of)) = step.instruction.op.compares
        {
            value.kind = Kind::Truth { by, not, a, b, apart: apart.name };
            let zero = Range::constant(0, of);
            let answer = match order {
                Order::Eq | Order::Ne => apart.range.compare(order, zero, false, of),
                _ if apart.range.value(of) == Some(0) => Some(matches!(order, Order::Le | Order::Ge)),
                _ => None,
            };
            if let Some(answer) = answer {
                value.range = Range::constant(i128::from(answer != not), 1);
            }
        }
        if nth == 0
            && let Some(derived) = step.derived
            && let Some(sum) = known(derived.sum)
            && self.slice.sums[derived.sum as usize].width == width
        {
            let range = sum.range.times(i128::from(derived.sign), width).add(Range::constant(derived.offset, width), width);
            if let Some(both) = value.range.meet(range, width) {
                value.range = both;
            }
            let terms = |form: Option<Linear>| form.map_or(usize::MAX, |form| form.parts().count());
            let form = sum.linear(width).zip(Linear::constant(derived.offset, width));
            let form = form.and_then(|(form, offset)| offset.plus(form, i64::from(derived.sign)));
            if value.name == NOBODY && terms(form) < terms(value.form) && terms(form) > 0 {
                value.form = form;
            }
            if step.instruction.op.head == "sub" && value.since.is_none_or(|since| !since.unsigned) {
                value.since = self.since_less(step, state, value.range, width).or(value.since);
            }
        }
        value
    }

    /// How the difference that a step takes relates to a register, if its range shows that it does not wrap round: `if (left > price) left
    /// -= price`. A difference below zero would be so far from what `left > price` says that it is out of that range.
    fn since_less(&self, step: &Step<'_>, state: &State, difference: Range, width: u8) -> Option<Since> {
        let here = Here { pass: self, state };
        let [a, b] = step.instruction.rest[..] else { return None };
        let (a, b) = (here.value(a, width), here.value(b, width));
        let (from, less) = (a.range.unsigned(width), b.range.unsigned(width));
        let least_wrapped = Range::full(width).hi + 1 - (less.hi - from.lo);
        let wraps = less.hi > from.lo && difference.unsigned(width).hi >= least_wrapped;
        // What a positive number was taken from was not zero.
        let since = if less.lo > 0 { a.unless_zero() } else { a.since };
        since.filter(|since| since.unsigned && !wraps).map(|since| taken(since.plain(), &b, width, &here))
    }

    /// Sees to it that the sums which a step is about are known as well as their registers are.
    pub(crate) fn find_sums(&self, index: u32, step: &Step<'_>, state: &mut State) {
        for number in step.apart.map(|apart| apart.sum).into_iter().chain(step.derived.map(|derived| derived.sum)) {
            let slot = self.slice.first_sum + number;
            if state.get(slot).is_none() {
                let sum = self.total(number, state);
                Self::put(slot, self.name_of_sum(index, number), sum, state);
            }
        }
    }

    /// A sum by what is known of its registers.
    fn total(&self, number: u32, state: &State) -> Value {
        let of = &self.slice.sums[number as usize];
        let width = of.width;
        let zero = Linear::constant(0, width);
        let (mut form, mut named) = (zero, zero);
        let mut range = Range::constant(0, width);
        for (term, times) in &of.terms {
            let value = state.get(*term).copied().unwrap_or_else(|| Value::unknown(width));
            let plus =
                |form: Option<Linear>, more: Option<Linear>| form.zip(more).and_then(|(form, more)| form.plus(more, i64::from(*times)));
            form = plus(form, value.linear(width));
            named = plus(named, value.of_names().or_else(|| value.linear(width)));
            range = range.add(value.range.times(i128::from(*times), width), width);
        }
        // A sum that is a number here may be one of names elsewhere, with which it meets.
        if form.is_none_or(|form| form.parts().next().is_none()) {
            form = named.filter(|named| named.alone().is_some()).or(form);
        }
        let root = form.and_then(|form| form.alone()).and_then(|(name, _)| state.named(name, self.slice));
        if let Some(form) = form
            && let Some(both) = range.meet(form.range(root.map_or(Range::full(width), |root| root.range), width), width)
        {
            range = both;
        }
        Value { form: form.filter(|form| form.parts().next().is_some()), ..Value::of(range) }
    }

    /// For a register that a step copied from another: the sum that has that one in its place.
    fn copied(&self, step: u32, slot: u32, of_number: u32, state: &State) -> Option<Value> {
        let of = &self.slice.sums[of_number as usize];
        let instruction = &self.slice.steps[step as usize].instruction;
        let [Operand::Register(from)] = instruction.rest[..] else { return None };
        if !instruction.opcode.starts_with("mov.") || instruction.guard.is_some() {
            return None;
        }
        let (copied, sign) = of.with(slot, from)?;
        let number = self.slice.sums_of(from).iter().find(|number| self.slice.sums[**number as usize] == copied)?;
        let value = *state.get(self.slice.first_sum + number)?;
        // Cases are told by distances that are made of other registers: what the sum is made of relates to those.
        let by_names = if self.slice.has_cases { self.total(of_number, state).form } else { None };
        if sign == 1 {
            return Some(Value { form: by_names.or(value.form), ..value });
        }
        let form = value.linear(of.width).zip(Linear::constant(0, of.width)).and_then(|(form, zero)| zero.plus(form, -1));
        let range = value.range.times(-1, of.width);
        Some(Value { form: by_names.or(form).filter(|form| form.parts().next().is_some()), ..Value::of(range) })
    }

    /// What sums are once a step has written a register that they hold, and moved it by so much at least and at most if that is known.
    pub(crate) fn follow_sums(&self, step: u32, slot: u32, moved: Option<(i64, i64)>, state: &mut State) {
        for &number in self.slice.sums_of(slot) {
            let sum_slot = self.slice.first_sum + number;
            let of = &self.slice.sums[number as usize];
            let width = of.width;
            let times = of.terms.iter().find(|(term, _)| *term == slot).map_or(1, |(_, times)| *times);
            if let Some(copy) = self.copied(step, slot, number, state) {
                Self::put(sum_slot, self.name_of_sum(step, number), copy, state);
                continue;
            }
            let mut new = self.total(number, state);
            let moved = moved.map(|(lo, hi)| Range::between(lo.into(), hi.into(), width).times(times.into(), width));
            if let (Some(before), Some(moved)) = (state.get(sum_slot), moved) {
                let stepped = sum(*before, Value::of(moved), width);
                new.since = stepped.since;
                if let Some(both) = new.range.meet(stepped.range, width) {
                    new.range = both;
                }
                // What was asked of it before may be told only now: `if (i != n)` behind `i + 1`.
                let asks = |held: &Value| matches!(held.kind, Kind::Truth { apart, .. } if apart == before.name && apart != NOBODY);
                let is_asked = state.iter().any(|(_, held)| asks(held));
                if new.form.is_none() || is_asked {
                    let moved = moved.signed(width);
                    let offsets = i64::try_from(moved.lo).ok().zip(i64::try_from(moved.hi).ok());
                    let from = if is_asked { Linear::of(before.name) } else { before.linear(width) };
                    new.form = from.zip(offsets).and_then(|(form, (lo, hi))| form.plus_range(lo, hi));
                }
            }
            Self::put(sum_slot, self.name_of_sum(step, number), new, state);
        }
    }
}
