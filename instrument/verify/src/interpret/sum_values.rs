//! Values of sums of registers. A comparison of two registers refines their difference. A difference may be known where
//! neither register is.

use crate::domain::affine::Affine;
use crate::domain::arithmetic::{sum, taken};
use crate::domain::delta::Delta;
use crate::domain::interval::Interval;
use crate::domain::name::{FIRST_NAME, NO_NAME, Name, name_of};
use crate::domain::state::State;
use crate::domain::value::{Kind, Source, Value};
use crate::interpret::here::Here;
use crate::interpret::pass::Pass;
use crate::interpret::step::Step;
use crate::program::instruction::{Operand, Order};

impl Pass<'_, '_> {
    /// The name of a sum from a step on that writes one of its registers.
    fn name_of_sum(&self, step: u32, sum: u32) -> Name {
        let steps = self.slice.steps.len() as u64;
        let joins = self.body.graph.blocks.len() as u64 * self.slice.slots.len() as u64;
        let name = u64::from(FIRST_NAME) + steps * 4 + joins + u64::from(step) * self.slice.sums.len() as u64 + u64::from(sum);
        name_of(name)
    }

    /// What is known of a result by the sums in front of its step.
    pub(crate) fn by_sums(&self, (index, step): (u32, &Step<'_>), state: &State, mut value: Value, nth: usize, width: u8) -> Value {
        let known = |sum: u32| state.get(self.slice.first_sum + sum);
        if let Some(apart) = step.apart
            && let Some(apart) = known(apart.sum)
            // Of a predicate that is made of another one's truth, what is compared here says nothing.
            && let Kind::Truth { by, not, a, b, .. } = value.kind
            && by == index
            && let Some((order, _, of)) = step.instruction.op.compares
        {
            value.kind = Kind::Truth { by, not, a, b, apart: apart.name };
            let zero = Interval::constant(0, of);
            let answer = match order {
                Order::Eq | Order::Ne => apart.range.compare(order, zero, false, of),
                _ if apart.range.value(of) == Some(0) => Some(matches!(order, Order::Le | Order::Ge)),
                _ => None,
            };
            if let Some(answer) = answer {
                value.range = Interval::constant(i128::from(answer != not), 1);
            }
        }
        if nth == 0
            && let Some(derived) = step.derived
            && let Some(sum) = known(derived.sum)
            && self.slice.sums[derived.sum as usize].width == width
        {
            let range = sum.range.times(i128::from(derived.sign), width).add(Interval::constant(derived.offset, width), width);
            if let Some(both) = value.range.meet(range, width) {
                value.range = both;
            }
            let terms = |form: Option<Affine>| form.map_or(usize::MAX, |form| form.parts().count());
            // What both are made of says them up to a range alone: then how the one follows from the other says more.
            let is_open = [sum.form, value.form].iter().all(|form| form.is_some_and(|form| form.lo < form.hi));
            let by_name = || Affine::of(sum.name).filter(|_| is_open);
            let form = by_name().or_else(|| sum.affine(width)).zip(Affine::constant(derived.offset, width));
            let form = form.and_then(|(form, offset)| offset.plus(form, i64::from(derived.sign)));
            if value.name == NO_NAME && terms(form) < terms(value.form) && terms(form) > 0 {
                value.form = form;
            }
            if step.instruction.op.head == "sub" && value.delta.is_none_or(|delta| !delta.unsigned) {
                value.delta = self.delta_less(step, state, value.range, width).or(value.delta);
            }
        }
        value
    }

    /// How the difference that a step takes relates to a register, if its range shows that it does not wrap round: `if (left > price) left
    /// -= price`. A difference below zero would be so far from what `left > price` says that it is out of that range.
    fn delta_less(&self, step: &Step<'_>, state: &State, difference: Interval, width: u8) -> Option<Delta> {
        let here = Here { pass: self, state };
        let [a, b] = step.instruction.rest[..] else { return None };
        let (a, b) = (here.value(a, width), here.value(b, width));
        let (from, less) = (a.range.unsigned(width), b.range.unsigned(width));
        let least_wrapped = Interval::full(width).hi + 1 - (less.hi - from.lo);
        let wraps = less.hi > from.lo && difference.unsigned(width).hi >= least_wrapped;
        // What a positive number was taken from was not zero.
        let delta = if less.lo > 0 { a.unless_zero() } else { a.delta };
        delta.filter(|delta| delta.unsigned && !wraps).map(|delta| taken(delta.plain(), &b, width, &here))
    }

    /// Sees to it that the sums which a step is about are known as well as their registers are.
    pub(crate) fn find_sums(&self, index: u32, step: &Step<'_>, state: &mut State) {
        for number in step.apart.map(|apart| apart.sum).into_iter().chain(step.derived.map(|derived| derived.sum)) {
            let slot = self.slice.first_sum + number;
            match state.get(slot).copied() {
                None => {
                    let sum = self.total(number, state, None);
                    Self::put(slot, self.name_of_sum(index, number), sum, state);
                }
                // In a case the one operand may cancel out registers of the other.
                Some(held) if self.choice.is_some() && held.form.is_none() => {
                    state.set(slot, Value { form: self.total(number, state, None).form, ..held });
                }
                Some(_) => {}
            }
        }
    }

    /// A sum by what is known of its registers, and of the value that a step has just taken from one of them.
    fn total(&self, number: u32, state: &State, lost: Option<(Name, Interval)>) -> Value {
        let of = &self.slice.sums[number as usize];
        let width = of.width;
        let zero = Affine::constant(0, width);
        let (mut form, mut named) = (zero, zero);
        let mut range = Interval::constant(0, width);
        for (term, times) in &of.terms {
            let value = state.get(*term).copied().unwrap_or_else(|| Value::unknown(width));
            let plus =
                |form: Option<Affine>, more: Option<Affine>| form.zip(more).and_then(|(form, more)| form.plus(more, i64::from(*times)));
            form = plus(form, value.affine(width));
            named = plus(named, value.of_names().or_else(|| value.affine(width)));
            range = range.add(value.range.times(i128::from(*times), width), width);
        }
        // A sum that is a number here may be one of names elsewhere, with which it meets.
        if form.is_none_or(|form| form.parts().next().is_none()) {
            form = named.filter(|named| named.alone().is_some()).or(form);
        }
        let held = |name: Name| state.named(name, self.slice).map(|value| value.range);
        let lost = |name: Name| lost.filter(|(of, _)| *of == name).map(|(_, range)| range);
        let root = form.and_then(|form| form.alone()).and_then(|(name, _)| held(name).or_else(|| lost(name)));
        if let Some(form) = form
            && let Some(both) = range.meet(form.range(root.unwrap_or(Interval::full(width)), width), width)
        {
            range = both;
        }
        if let Some(form) = form.filter(|_| self.choice.is_some()) {
            // The distance by which cases are told is another sum of the same names.
            for (slot, held) in state.iter().filter(|(slot, _)| self.slice.slots[*slot as usize].1 == width) {
                let related = held.form.and_then(|known| form.relative_to(&known)).filter(|_| slot != self.slice.first_sum + number);
                let of_it =
                    related.map(|(sign, offset)| held.range.times(sign.into(), width).add(Interval::constant(offset.into(), width), width));
                range = of_it.and_then(|of_it| range.meet(of_it, width)).unwrap_or(range);
            }
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
        let by_names = if self.slice.has_cases { self.total(of_number, state, None).form } else { None };
        if sign == 1 {
            return Some(Value { form: by_names.or(value.form), ..value });
        }
        let form = value.affine(of.width).zip(Affine::constant(0, of.width)).and_then(|(form, zero)| zero.plus(form, -1));
        let range = value.range.times(-1, of.width);
        Some(Value { form: by_names.or(form).filter(|form| form.parts().next().is_some()), ..Value::of(range) })
    }

    /// What sums are once a step has written a register that they hold. The step moved it by so much at least and at
    /// most, if that is known. `lost` is what the register held in front of the step.
    pub(crate) fn follow_sums(
        &self,
        (step, slot): (u32, u32),
        moved: Option<(i64, i64)>,
        lost: Option<(Name, Interval)>,
        state: &mut State,
    ) {
        for &number in self.slice.sums_of(slot) {
            let sum_slot = self.slice.first_sum + number;
            let of = &self.slice.sums[number as usize];
            let width = of.width;
            let times = of.terms.iter().find(|(term, _)| *term == slot).map_or(1, |(_, times)| *times);
            let moved = moved.map(|(lo, hi)| Interval::between(lo.into(), hi.into(), width).times(times.into(), width));
            let stepped = state.get(sum_slot).zip(moved).map(|(before, moved)| (*before, moved, sum(*before, Value::of(moved), width)));
            if let Some(mut copy) = self.copied(step, slot, number, state) {
                // By how much the register moved may say more than the sum that is copied.
                if let Some((_, _, stepped)) = stepped {
                    copy.range = copy.range.meet(stepped.range, width).unwrap_or(copy.range);
                    copy.delta = stepped.delta.filter(|delta| delta.slot == sum_slot).or(copy.delta);
                }
                Self::put(sum_slot, self.name_of_sum(step, number), copy, state);
                continue;
            }
            let mut new = self.total(number, state, lost);
            if let Some((before, moved, stepped)) = stepped {
                new.delta = stepped.delta;
                if let Some(both) = new.range.meet(stepped.range, width) {
                    new.range = both;
                }
                // What was asked of it before may be told only now: `if (i != n)` behind `i + 1`.
                let asks = |held: &Value| matches!(held.kind, Kind::Truth { apart, .. } if apart == before.name && apart != NO_NAME);
                let is_asked = state.iter().any(|(_, held)| asks(held));
                if new.form.is_none() || is_asked {
                    let moved = moved.signed(width);
                    let offsets = i64::try_from(moved.lo).ok().zip(i64::try_from(moved.hi).ok());
                    let from = if is_asked { Affine::of(before.name) } else { before.affine(width) };
                    new.form = from.zip(offsets).and_then(|(form, (lo, hi))| form.plus_range(lo, hi));
                }
            }
            Self::put(sum_slot, self.name_of_sum(step, number), new, state);
        }
    }
}
