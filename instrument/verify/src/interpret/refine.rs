//! Refinement: what a branch that was taken says of values.

use crate::domain::affine::Affine;
use crate::domain::delta::Delta;
use crate::domain::interval::Interval;
use crate::domain::name::{NO_NAME, Name};
use crate::domain::state::State;
use crate::domain::value::{Kind, Value};
use crate::interpret::pass::Pass;
use crate::interpret::step::Step;
use crate::program::instruction::{Operand, Order};

/// Deepest chain of predicates, and of values that say something of others.
const DEEPEST: u32 = 4;

impl Pass<'_, '_> {
    /// Takes a predicate to hold, or not to. False if it can't.
    pub(crate) fn refine(&self, state: &mut State, slot: u32, holds: bool, depth: u32) -> bool {
        let Some(value) = state.get(slot).copied().filter(|_| self.slice.slots[slot as usize].1 != 0) else { return true };
        let truth = Interval::constant(i128::from(holds), 1);
        let is_same = |_, held: &Value| held.name == value.name && value.name != NO_NAME && held.kind == value.kind;
        state.change(is_same, |_, held| {
            held.range = truth;
            true
        });
        state.set(slot, Value { range: truth, ..value });
        let Kind::Truth { by, not, a, b, apart } = value.kind else { return true };
        let Some(step) = self.slice.steps.get(by as usize) else { return true };
        let holds = holds != not;
        let find = |state: &State, name: Name| {
            state.iter().find(|(_, held)| held.name == name && name != NO_NAME).map(|(slot, held)| (slot, held.range))
        };
        if let Some((order, signed, width)) = step.instruction.op.compares {
            let order = if holds { order } else { order.not() };
            let range = |state: &State, nth: usize, name: Name| match step.instruction.rest.get(nth) {
                Some(Operand::Number(value)) => Some(Interval::constant(*value, width)),
                _ => state.named(name, self.slice).map(|value| value.range),
            };
            let (first, second) = (range(state, 0, a), range(state, 1, b));
            return second.is_none_or(|second| self.restrict(state, a, (order, signed), second, width))
                && first.is_none_or(|first| self.restrict(state, b, (order.mirrored(), signed), first, width))
                && self.refine_difference(state, step, apart, (order, signed, width), (first, second))
                && (signed || self.refine_rest(state, order, (a, b), width));
        }
        let both = match step.instruction.opcode {
            "and.pred" => holds,
            "or.pred" => !holds,
            _ => return true,
        };
        if both && depth < DEEPEST {
            // Both sides of `and` hold, neither side of `or` does.
            for name in [a, b] {
                if let Some((slot, _)) = find(state, name)
                    && !self.refine(state, slot, holds, depth + 1)
                {
                    return false;
                }
            }
        }
        true
    }

    /// Takes in what a comparison of two registers says of their difference, a sum of that name. If one integer is less than another, the
    /// difference is not 0 and no more than their ranges allow.
    fn refine_difference(
        &self,
        state: &mut State,
        step: &Step<'_>,
        name: Name,
        (order, signed, width): (Order, bool, u8),
        (first, second): (Option<Interval>, Option<Interval>),
    ) -> bool {
        let Some(apart) = step.apart.filter(|_| name != NO_NAME) else { return true };
        let whole = |range: Option<Interval>| range.unwrap_or(Interval::full(width)).as_integers(signed, width);
        let (a, b) = (whole(first), whole(second));
        // The larger less the smaller, and whether the larger is the first.
        let (least, most, first_is_larger) = match order {
            Order::Eq => (0, 0, true),
            Order::Ne => return self.restrict(state, name, (Order::Ne, true), Interval::constant(0, width), width),
            Order::Lt => (1, b.hi - a.lo, false),
            Order::Le => (0, b.hi - a.lo, false),
            Order::Gt => (1, a.hi - b.lo, true),
            Order::Ge => (0, a.hi - b.lo, true),
        };
        if most < least {
            return false;
        }
        let difference = Interval::between(least, most, width);
        let difference = if first_is_larger == apart.is_first_less_second { difference } else { difference.times(-1, width) };
        // A range around 0 that has 0 taken out may be none; that it is not 0 may still be of use.
        (least == 0 || self.restrict(state, name, (Order::Ne, true), Interval::constant(0, width), width))
            && self.narrow(state, name, difference, width)
    }

    /// Takes in that of two values without signs one is greater: then something is left of it when the other has been taken from it.
    fn refine_rest(&self, state: &mut State, order: Order, (a, b): (Name, Name), width: u8) -> bool {
        let (from, taken) = match order {
            Order::Gt => (a, b),
            Order::Lt => (b, a),
            _ => return true,
        };
        if from == NO_NAME || taken == NO_NAME {
            return true;
        }
        let is_rest = |slot: u32, held: &Value| {
            matches!(held.kind, Kind::Saturated(_, pair) if (pair.from, pair.taken) == (from, taken))
                && self.slice.slots[slot as usize].1 == width
        };
        state.change(is_rest, |_, held| held.meet(Interval::between(1, Interval::full(width).hi, width), width))
    }

    /// Restricts the value of that name by a comparison, and what depends on it.
    pub(crate) fn restrict(&self, state: &mut State, name: Name, (order, signed): (Order, bool), other: Interval, width: u8) -> bool {
        if name == NO_NAME {
            return true;
        }
        let mut narrowed = None;
        let mut is_news = false;
        let is_it = |slot: u32, held: &Value| held.name == name && self.slice.slots[slot as usize].1 == width;
        let can_be = state.change(is_it, |_, held| {
            let before = held.range;
            let some = held.restrict(order, other, signed, width);
            is_news |= before != held.range;
            narrowed = Some(held.range);
            some
        });
        if !can_be {
            return false;
        }
        // What follows from it was learned when that was.
        if narrowed.is_some() && !is_news {
            return true;
        }
        // A value that no register holds any more may live on in sums.
        let range = match narrowed {
            Some(range) => range,
            None => match state.named(name, self.slice).map(|value| value.range.restrict(order, other, signed, width)) {
                Some(Some(range)) => range,
                Some(None) => return false,
                None => return true,
            },
        };
        self.narrow(state, name, range, width)
    }

    /// Takes the value of that name to be in a range.
    pub(crate) fn narrow(&self, state: &mut State, name: Name, range: Interval, width: u8) -> bool {
        name == NO_NAME || self.narrow_deep(state, name, range, width, 0)
    }

    /// Takes the value of that name to be in a range, and all values that are it plus something, or its lowest bits, accordingly.
    fn narrow_deep(&self, state: &mut State, name: Name, range: Interval, width: u8, depth: u32) -> bool {
        // What this value is made from, and what else was learned of that.
        let mut others: Vec<(Name, Interval)> = Vec::new();
        let mut narrowed = range;
        let mut sum = None;
        let mut forms: Vec<(Affine, Interval)> = Vec::new();
        let width_of = |slot: u32| self.slice.slots[slot as usize].1;
        let can_be = state.change(
            |slot, held| held.name == name && width_of(slot) == width,
            |_, held| {
                if !held.meet(range, width) {
                    return false;
                }
                narrowed = held.range;
                forms.extend(held.form.map(|form| (form, held.range)));
                sum = held.form.or(sum);
                others.extend(whole(held, width));
                true
            },
        );
        if !can_be {
            return false;
        }
        others.extend(state.iter().filter_map(|(slot, held)| match held.kind {
            // The smaller of it and a number is no less than the smaller of its least and that number.
            Kind::Smaller { of, most } if of == name && width_of(slot) == width && held.name != NO_NAME => {
                let most = i128::from(most);
                Some((held.name, Interval::between(narrowed.unsigned(width).lo.min(most), most, width)))
            }
            _ => None,
        }));
        for (form, range) in forms {
            others.extend(form.root(range, |name| state.named(name, self.slice).map(|root| root.range), width));
        }
        let bounds = narrowed.unsigned(width);
        let has_term = |delta: Option<Delta>| delta.is_some_and(|delta| delta.term.is_some_and(|term| term.name == name));
        let saturated = |held: &Value| if let Kind::Saturated(delta, _) = held.kind { Some(delta) } else { None };
        let by_sum = |slot: u32, held: &Value| {
            let same_sum = held.form.as_ref().zip(sum.as_ref()).and_then(|(form, sum)| form.relative_to(sum));
            let same_sum = same_sum.filter(|_| width_of(slot) == width && held.name != name);
            same_sum.map(|(sign, offset)| narrowed.times(sign.into(), width).add(Interval::constant(offset.into(), width), width))
        };
        let by_root = |slot: u32, held: &Value| {
            let form = held.form.as_ref().filter(|form| width_of(slot) == width && form.alone().is_some_and(|(root, _)| root == name))?;
            Some(form.range(narrowed, width))
        };
        // Of 64 bits that hold 32 with or without a sign, those say what they are.
        let by_low = |slot: u32, held: &Value| match held.kind {
            Kind::Wide(form) if width == 32 && width_of(slot) == 64 && form.alone().is_some_and(|(root, _)| root == name) => {
                held.widened(form.range(narrowed, width))
            }
            _ => None,
        };
        let related = |slot, held: &Value| {
            has_term(held.delta)
                || has_term(saturated(held))
                || by_low(slot, held).is_some()
                || held.form.is_some() && (by_sum(slot, held).is_some() || by_root(slot, held).is_some())
        };
        let can_be = state.change(related, |slot, held| {
            held.delta = held.delta.map(|delta| delta.narrow(name, bounds));
            if let Kind::Saturated(delta, pair) = held.kind {
                held.kind = Kind::Saturated(delta.narrow(name, bounds), pair);
            }
            by_low(slot, held).is_none_or(|range| held.meet(range, 64))
                && by_sum(slot, held).is_none_or(|range| held.meet(range, width))
                && by_root(slot, held).is_none_or(|range| held.meet(range, width))
        });
        if !can_be {
            return false;
        }
        others.sort_unstable_by_key(|(name, _)| *name);
        others.dedup();
        others
            .into_iter()
            .all(|(other, range)| depth >= DEEPEST || other == name || self.narrow_deep(state, other, range, width, depth + 1))
    }
}

/// The value whose lowest bits these are, and what it can be where the bits are known.
fn whole(held: &Value, width: u8) -> Option<(Name, Interval)> {
    let Kind::Low { of, bits } = held.kind else { return None };
    let (rest, step) = (held.range.value(width)?, u64::from(bits) + 1);
    let rest = if of.negative { i128::from(of.offset) - rest } else { rest - i128::from(of.offset) };
    let rest = rest.rem_euclid(i128::from(step));
    let most = Interval::full(width).hi + 1 - i128::from(step);
    Some((of.name, Interval::strided(rest, most + rest, step, width)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::name::FIRST_NAME;
    use crate::domain::value::Moved;

    #[test]
    fn a_value_can_be_all_that_has_its_lowest_bits() {
        for (negative, offset, bits) in [(false, 0, 1), (false, 0, 7), (false, 5, 3), (true, 0, 3), (true, 9, 15)] {
            let of = Moved { name: FIRST_NAME, negative, offset };
            for lowest in 0..=i128::from(bits) {
                let held = Value::of(Interval::constant(lowest, 16)).kind(Kind::Low { of, bits });
                let (_, range) = whole(&held, 16).expect("its lowest bits are known");
                let range = range.unsigned(16);
                let holds = |value: i128| (range.lo..=range.hi).contains(&value) && (value - range.lo) % i128::from(range.step) == 0;
                let made = |value: i128| if negative { i128::from(offset) - value } else { value + i128::from(offset) };
                let wrong = (0..1 << 16).find(|value| holds(*value) != (made(*value) & i128::from(bits) == lowest));
                assert_eq!(wrong, None, "{held:?} {range:?}");
            }
        }
    }
}
