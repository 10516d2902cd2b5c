//! The abstract state: values of registers at one program point.

use crate::domain::affine::Affine;
use crate::domain::delta::Delta;
use crate::domain::name::{AGED, NO_NAME, Name};
use crate::domain::value::{Kind, Moved, Pair, Value};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The registers and sums that are followed.
pub(crate) trait Slots {
    /// Bits of a slot.
    fn width(&self, slot: u32) -> u8;
    /// The name of what a slot holds from a join on.
    fn name_at(&self, block: u32, slot: usize) -> Name;
    /// Whether more may be spent than at a first look.
    fn is_close(&self) -> bool;
}

/// Values of slots at one point, sorted by slot. Of those that are missing nothing is known. Most values are the same at many points, and are
/// kept once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct State(Vec<(u32, Rc<Value>)>);

/// Slots that a block's steps mostly add at most.
const MORE: usize = 4;

impl Clone for State {
    /// With room for more, since most copies are followed through a block.
    fn clone(&self) -> Self {
        let mut values = Vec::with_capacity(self.0.len() + MORE);
        values.extend_from_slice(&self.0);
        Self(values)
    }
}

impl State {
    pub(crate) fn new(values: impl Iterator<Item = (u32, Value)>) -> Self {
        Self(values.map(|(slot, value)| (slot, Rc::new(value))).collect())
    }

    /// How many slots something is known of.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Value> {
        self.0.binary_search_by_key(&slot, |(at, _)| *at).ok().map(|at| &*self.0[at].1)
    }

    pub(crate) fn set(&mut self, slot: u32, value: Value) {
        match self.0.binary_search_by_key(&slot, |(at, _)| *at) {
            Ok(at) => match Rc::get_mut(&mut self.0[at].1) {
                Some(held) => *held = value,
                None => self.0[at].1 = Rc::new(value),
            },
            Err(at) => self.0.insert(at, (slot, Rc::new(value))),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Value)> {
        self.0.iter().map(|(slot, value)| (*slot, &**value))
    }

    /// Lets `change` have each value for which `needed` holds; false as soon as one of these can't be.
    pub(crate) fn change(&mut self, needed: impl Fn(u32, &Value) -> bool, mut change: impl FnMut(u32, &mut Value) -> bool) -> bool {
        self.0.iter_mut().all(|(slot, held)| !needed(*slot, held) || change(*slot, Rc::make_mut(held)))
    }

    /// What is known of the value of that name: from a register that holds it, or else from one that holds it plus a number.
    pub(crate) fn named(&self, name: Name, slots: &impl Slots) -> Option<Value> {
        if name == NO_NAME {
            return None;
        }
        let holder = self.iter().find(|(_, held)| held.name == name).map(|(_, held)| *held);
        holder.or_else(|| {
            self.iter().find_map(|(slot, held)| {
                let form = held.form.filter(|form| form.lo == form.hi)?;
                let (root, range) = form.root(held.range, |_| None, slots.width(slot))?;
                (root == name).then_some(Value::of(range))
            })
        })
    }

    /// The value of that name as a sum of others, if it is known as one, or else of itself.
    pub(crate) fn form_of(&self, name: Name) -> Option<Affine> {
        let held = self.iter().find(|(_, held)| held.name == name).map(|(_, held)| *held);
        held.and_then(|held| held.form).or_else(|| Affine::of(name))
    }

    /// Takes something as added to every register.
    pub(crate) fn charge(&mut self, more: impl Fn(Delta) -> Delta) {
        let has_relation = |_, held: &Value| held.delta.is_some() || matches!(held.kind, Kind::Saturated(..));
        self.change(has_relation, |_, held| {
            held.delta = held.delta.map(&more);
            if let Kind::Saturated(delta, pair) = held.kind {
                held.kind = Kind::Saturated(more(delta), pair);
            }
            true
        });
    }

    /// Only these slots, which are sorted; and those that hold what the sums in them are made of, or what they are the
    /// lowest bits of. The others say nothing without these. Lowest bits that were asked about are often taken anew;
    /// what was learned of them is not lost so.
    pub(crate) fn only(mut self, live: &[u32]) -> Self {
        let is_live = |slot: u32, rest: &mut std::iter::Peekable<std::slice::Iter<'_, u32>>| {
            while rest.next_if(|next| **next < slot).is_some() {}
            rest.peek().is_some_and(|next| **next == slot)
        };
        let mut rest = live.iter().peekable();
        if self.0.iter().all(|(slot, _)| is_live(*slot, &mut rest)) {
            return self;
        }
        // What may be kept though it is not live: by its name, or as lowest bits of what has that name.
        let mut kept: Vec<bool> = Vec::with_capacity(self.0.len());
        let mut others: Vec<Other> = Vec::new();
        let mut rest = live.iter().peekable();
        for (index, (slot, value)) in self.0.iter().enumerate() {
            kept.push(is_live(*slot, &mut rest));
            if kept[index] {
                continue;
            }
            if value.name != NO_NAME {
                others.push(Other { name: value.name, index, is_part: false, is_named: false, is_held: false });
            }
            if let Kind::Low { of, .. } = value.kind {
                others.push(Other { name: of.name, index, is_part: true, is_named: false, is_held: false });
            }
        }
        if !others.is_empty() {
            others.sort_unstable_by_key(|other| other.name);
            let all = others.iter().fold(0_u64, |all, other| all | 1 << (other.name % 64));
            let mut mark = |name: Name, mark: fn(&mut Other)| {
                if all >> (name % 64) & 1 == 1 {
                    let from = others.partition_point(|other| other.name < name);
                    others[from..].iter_mut().take_while(|other| other.name == name).for_each(mark);
                }
            };
            for ((_, value), _) in self.0.iter().zip(&kept).filter(|(_, kept)| **kept) {
                mark(value.name, |other| other.is_held = true);
                if let Some(form) = &value.form {
                    form.parts().for_each(|(name, _)| mark(name, |other| other.is_named = true));
                }
                match &value.kind {
                    Kind::Wide(form) => form.parts().for_each(|(name, _)| mark(name, |other| other.is_named = true)),
                    Kind::Low { of, .. } => mark(of.name, |other| other.is_named = true),
                    _ => {}
                }
            }
            // Names that a live slot holds need no other. Of several slots that hold another all are kept: on other ways one of them may not.
            for other in &others {
                kept[other.index] |= if other.is_part { other.is_held } else { other.is_named && !other.is_held };
            }
        }
        let mut kept = kept.into_iter();
        self.0.retain(|_| kept.next() == Some(true));
        self
    }

    /// What holds of both. Values that differ are named for the block at whose beginning they meet, if there is one.
    pub(crate) fn join(&self, new: &Self, slots: &impl Slots, at: Option<u32>) -> Self {
        let mut joined = Vec::with_capacity(self.0.len().min(new.0.len()) + MORE);
        // Slots that hold the same on one way, and on the other, hold the same where they meet.
        let mut names: BTreeMap<(Name, Name), Name> = BTreeMap::new();
        let mut halves: Vec<(usize, Affine, Affine)> = Vec::new();
        let mut rest = new.0.iter().peekable();
        let (one, two) = (self, new);
        for (slot, known) in &self.0 {
            while rest.next_if(|(other, _)| other < slot).is_some() {}
            let Some((_, new)) = rest.next_if(|(other, _)| other == slot) else { continue };
            if Rc::ptr_eq(known, new) && known.name != NO_NAME {
                joined.push((*slot, Rc::clone(known)));
                continue;
            }
            let name = at.map_or(NO_NAME, |block| {
                let own = slots.name_at(block, *slot as usize);
                let has_names = slots.is_close() && known.name != NO_NAME && new.name != NO_NAME && known.name != new.name;
                if has_names { *names.entry((known.name, new.name)).or_insert(own) } else { own }
            });
            let width = slots.width(*slot).clamp(1, 64);
            let mut both = known.join(new, width, name);
            if both.form.is_none() && slots.is_close() {
                both.form =
                    two.sum_of_number(known, new.form, one, slots, width).or_else(|| one.sum_of_number(new, known.form, two, slots, width));
            }
            if let (Kind::Wide(one), Kind::Wide(two), Kind::Plain) = (known.kind, new.kind, both.kind)
                && slots.is_close()
            {
                halves.push((joined.len(), one, two));
            }
            let same = [known, new].into_iter().find(|same| both == ***same);
            joined.push((*slot, same.map_or_else(|| Rc::new(both), Rc::clone)));
        }
        // Each way may have a value of its own, of which the lower half is the same sum. Then it is that sum of the value that the two become.
        for (index, one, two) in halves {
            if let Some(half) = one.met(two, |one, two| names.get(&(one, two)).copied().filter(|name| *name != NO_NAME)) {
                Rc::make_mut(&mut joined[index].1).kind = Kind::Wide(half);
            }
        }
        Self(joined)
    }

    /// The sum that a value is on the other way, if it is that here, too: as a number, of a named value that is one here. What is a number when a loop
    /// is looked at first need not be one later.
    fn sum_of_number(&self, known: &Value, other: Option<Affine>, here: &Self, slots: &impl Slots, width: u8) -> Option<Affine> {
        let sum = other.filter(|sum| sum.lo == sum.hi)?;
        let (number, (root, _)) = (known.range.value(width)?, sum.alone()?);
        let holder = |state: &Self| state.named(root, slots).map(|held| held.range);
        let of = holder(here).filter(|of| of.value(width).is_some() && holder(self).is_some())?;
        (sum.range(of, width).value(width) == Some(number)).then_some(sum)
    }

    /// Gives values other names, different ones to different values.
    pub(crate) fn rename(&mut self, new: impl Fn(Name) -> Name) {
        let is_other = |name: Name| new(name) != name;
        self.change(
            |_, held| mentions(held, is_other),
            |_, held| {
                held.name = new(held.name);
                held.form = held.form.map(|form| form.renamed(&new));
                held.kind = match held.kind {
                    Kind::Truth { by, not, a, b, apart } => Kind::Truth { by, not, a: new(a), b: new(b), apart: new(apart) },
                    Kind::Low { of, bits } => Kind::Low { of: Moved { name: new(of.name), ..of }, bits },
                    Kind::Larger { a, b } => Kind::Larger { a: new(a), b: new(b) },
                    Kind::Smaller { of, most } => Kind::Smaller { of: new(of), most },
                    Kind::Saturated(delta, pair) => {
                        let delta = if delta.term.is_some_and(|term| is_other(term.name)) { delta.plain() } else { delta };
                        Kind::Saturated(delta, Pair { from: new(pair.from), taken: new(pair.taken) })
                    }
                    Kind::Wide(form) => Kind::Wide(form.renamed(&new)),
                    Kind::Plain | Kind::Control(_) | Kind::Flag | Kind::OwnFlag | Kind::Clock(_) | Kind::Earlier(_) => held.kind,
                };
                held.delta = held.delta.map(|delta| if delta.term.is_some_and(|term| is_other(term.name)) { delta.plain() } else { delta });
                true
            },
        );
    }

    /// Says of other values what sums say of those of such names, which are about to be forgotten: as `i` holds `old + 1` behind `i = old + 1`, sums of
    /// `old` are sums of `i`. What is in `but` will be another value. Returns what stands for what.
    ///
    /// Let a register hold the value y = x + c, modulo 2^w. Then x is y - c, and may be replaced by that in each sum modulo 2^w. All named values of a sum
    /// have as many bits as the sum.
    pub(crate) fn replace_roots(&mut self, old: impl Fn(Name) -> bool, but: u32) -> Vec<Root> {
        let mut found: Vec<Root> = Vec::new();
        let others = self.iter().filter(|(slot, held)| *slot != but && held.name != NO_NAME && !old(held.name));
        for (by, form) in others.filter_map(|(_, held)| Some((held.name, held.form.filter(|form| form.lo == form.hi)?))) {
            if let Some((root, 1)) = form.alone()
                && old(root)
                && found.iter().all(|known| known.old != root)
            {
                found.push(Root { old: root, by, less: form.lo });
            }
        }
        for root in &found {
            self.change(
                |_, held| root.concerns(held),
                |_, held| {
                    root.replace(held);
                    true
                },
            );
        }
        found
    }

    /// Takes away names, and what is said about values of those names, but not in one slot.
    pub(crate) fn forget(&mut self, old: impl Fn(Name) -> bool, but: u32) {
        self.change(
            |slot, held| slot != but && mentions(held, &old),
            |_, held| {
                forget(held, &old);
                true
            },
        );
    }

    /// Gives values of such names others that nothing else has, and takes away what is said about them, but for lower halves.
    pub(crate) fn age(&mut self, old: impl Fn(Name) -> bool) {
        self.change(
            |_, held| mentions(held, &old),
            |_, held| {
                let (name, kind) = (held.name, held.kind);
                let aged = |name: Name| if old(name) { name | AGED } else { name };
                forget(held, &old);
                held.name = if old(name) { aged(name) } else { held.name };
                if let Kind::Wide(form) = kind {
                    held.kind = Kind::Wide(form.renamed(aged));
                }
                true
            },
        );
    }
}

/// A named value that is another one less a number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Root {
    old: Name,
    by: Name,
    less: i64,
}

impl Root {
    fn concerns(&self, held: &Value) -> bool {
        let is_of_it = |form: &Affine| form.parts().any(|(part, _)| part == self.old);
        held.form.as_ref().is_some_and(is_of_it) || matches!(&held.kind, Kind::Wide(form) if is_of_it(form))
    }

    /// Puts the other value in its place in what is said of a value.
    pub(crate) fn replace(&self, held: &mut Value) {
        let replaced = |form: Affine| form.replaced(self.old, self.by, self.less).unwrap_or(form);
        // What is the value of a name and nothing else has that name, and needs no sum.
        held.form = held.form.map(replaced);
        if let Some(name) = held.form.and_then(|form| form.name()).filter(|name| [NO_NAME, *name].contains(&held.name)) {
            (held.name, held.form) = (name, None);
        }
        if let Kind::Wide(form) = held.kind {
            held.kind = Kind::Wide(replaced(form));
        }
    }
}

/// A slot that is not live, and what may keep it: that a live one holds the value of a name, or says something about it.
struct Other {
    name: Name,
    index: usize,
    /// Whether it holds lowest bits of that value, rather than itself.
    is_part: bool,
    is_named: bool,
    is_held: bool,
}

/// Whether something is said about a value of such a name.
fn mentions(value: &Value, old: impl Fn(Name) -> bool) -> bool {
    old(value.name)
        || value.form.as_ref().is_some_and(|form| form.parts().any(|(name, _)| old(name)))
        || value.delta.as_ref().and_then(|delta| delta.term).is_some_and(|term| old(term.name))
        || match value.kind {
            Kind::Truth { a, b, apart, .. } => old(a) || old(b) || old(apart),
            Kind::Low { of, .. } => old(of.name),
            Kind::Larger { a, b } => old(a) || old(b),
            Kind::Smaller { of, .. } => old(of),
            Kind::Saturated(delta, pair) => old(pair.from) || old(pair.taken) || delta.term.is_some_and(|term| old(term.name)),
            Kind::Wide(form) => form.parts().any(|(name, _)| old(name)),
            Kind::Plain | Kind::Control(_) | Kind::Flag | Kind::OwnFlag | Kind::Clock(_) | Kind::Earlier(_) => false,
        }
}

/// Takes away names, and what is said about values of those names.
pub(crate) fn forget(value: &mut Value, old: impl Fn(Name) -> bool) {
    if old(value.name) {
        value.name = NO_NAME;
    }
    if value.form.is_some_and(|form| form.parts().any(|(name, _)| old(name))) {
        value.form = None;
    }
    if let Some(delta) = value.delta
        && delta.term.is_some_and(|term| old(term.name))
    {
        value.delta = Some(delta.plain());
    }
    value.kind = match value.kind {
        Kind::Truth { a, b, .. } if old(a) || old(b) => Kind::Plain,
        Kind::Truth { by, not, a, b, apart } if old(apart) => Kind::Truth { by, not, a, b, apart: NO_NAME },
        Kind::Low { of, .. } if old(of.name) => Kind::Plain,
        Kind::Larger { a, b } if old(a) || old(b) => Kind::Plain,
        Kind::Smaller { of, .. } if old(of) => Kind::Plain,
        Kind::Wide(form) if form.parts().any(|(name, _)| old(name)) => Kind::Plain,
        Kind::Saturated(delta, pair) => {
            let delta = if delta.term.is_some_and(|term| old(term.name)) { delta.plain() } else { delta };
            let is_old = old(pair.from) || old(pair.taken);
            Kind::Saturated(delta, if is_old { Pair::NONE } else { pair })
        }
        kind => kind,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::delta::Term;
    use crate::domain::interval::Interval;
    use crate::domain::name::FIRST_NAME;
    use crate::domain::value::Moved;

    const A: Name = FIRST_NAME;
    const B: Name = FIRST_NAME + 1;
    const C: Name = FIRST_NAME + 2;
    const OTHER: Name = FIRST_NAME + 3;

    /// Values that say something of named ones, each with these.
    fn values() -> Vec<(Value, Vec<Name>)> {
        let plain = Value::of(Interval::full(32));
        let sum = Affine::of(A).and_then(|sum| sum.plus(Affine::of(B)?, 1)).expect("a sum");
        let delta = Delta { term: Some(Term { name: A, times: 1, lo: 0, hi: 9 }), ..Delta::start(0) };
        let kinds = [
            (Kind::Truth { by: 0, not: false, a: A, b: B, apart: C }, vec![A, B, C]),
            (Kind::Low { of: Moved { name: A, negative: false, offset: 0 }, bits: 3 }, vec![A]),
            (Kind::Larger { a: A, b: B }, vec![A, B]),
            (Kind::Smaller { of: A, most: 9 }, vec![A]),
            (Kind::Saturated(delta, Pair { from: B, taken: C }), vec![A, B, C]),
            (Kind::Wide(sum), vec![A, B]),
            (Kind::Plain, vec![]),
        ];
        let mut all: Vec<_> = kinds.into_iter().map(|(kind, names)| (plain.kind(kind), names)).collect();
        all.push((plain.named(A), vec![A]));
        all.push((Value { form: Some(sum), ..plain }, vec![A, B]));
        all.push((Value { delta: Some(delta), ..plain }, vec![A]));
        all
    }

    #[test]
    fn what_is_forgotten_is_mentioned_no_more() {
        for (value, names) in values() {
            for name in [A, B, C, OTHER] {
                let is_old = |of: Name| of == name;
                assert_eq!(mentions(&value, is_old), names.contains(&name), "{name} in {value:?}");
                let mut rest = value;
                forget(&mut rest, is_old);
                assert!(!mentions(&rest, is_old), "{name} in {rest:?}");
                assert_eq!(rest == value, !names.contains(&name), "{name} in {value:?}");
            }
        }
    }
}
