//! Values of registers at one point.

use super::linear::Linear;
use super::since::Since;
use super::slice::Slice;
use super::value::{AGED, Kind, Moved, NOBODY, Name, Pair, Value};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Values of slots at one point, sorted by slot. Of those that are missing nothing is known. Most values are the same at many points, and are
/// kept once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State(Vec<(u32, Rc<Value>)>);

impl State {
    pub(super) fn new(values: impl Iterator<Item = (u32, Value)>) -> Self {
        Self(values.map(|(slot, value)| (slot, Rc::new(value))).collect())
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Value> {
        self.0.binary_search_by_key(&slot, |(at, _)| *at).ok().map(|at| &*self.0[at].1)
    }

    pub(super) fn set(&mut self, slot: u32, value: Value) {
        match self.0.binary_search_by_key(&slot, |(at, _)| *at) {
            Ok(at) => match Rc::get_mut(&mut self.0[at].1) {
                Some(held) => *held = value,
                None => self.0[at].1 = Rc::new(value),
            },
            Err(at) => self.0.insert(at, (slot, Rc::new(value))),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Value)> {
        self.0.iter().map(|(slot, value)| (*slot, &**value))
    }

    /// Lets `change` have each value for which `needed` holds; false as soon as one of these can't be.
    pub(super) fn change(&mut self, needed: impl Fn(u32, &Value) -> bool, mut change: impl FnMut(u32, &mut Value) -> bool) -> bool {
        self.0.iter_mut().all(|(slot, held)| !needed(*slot, held) || change(*slot, Rc::make_mut(held)))
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

    /// The value of that name as a sum of others, if it is known as one, or else of itself.
    pub(super) fn form_of(&self, name: Name) -> Option<Linear> {
        let held = self.iter().find(|(_, held)| held.name == name).map(|(_, held)| *held);
        held.and_then(|held| held.form).or_else(|| Linear::of(name))
    }

    /// Takes something as added to every register.
    pub(super) fn charge(&mut self, more: impl Fn(Since) -> Since) {
        let has_relation = |_, held: &Value| held.since.is_some() || matches!(held.kind, Kind::Saturated(..));
        self.change(has_relation, |_, held| {
            held.since = held.since.map(&more);
            if let Kind::Saturated(since, pair) = held.kind {
                held.kind = Kind::Saturated(more(since), pair);
            }
            true
        });
    }

    /// Only these slots, which are sorted; and those that hold what the sums in them are made of, or what they are the lowest bits of, since these
    /// say nothing without that. Lowest bits that were asked about are often taken anew; what was learned of them is not lost so.
    pub(super) fn only(mut self, live: &[u32]) -> Self {
        let is_live = |slot: u32, rest: &mut std::iter::Peekable<std::slice::Iter<'_, u32>>| {
            while rest.next_if(|next| **next < slot).is_some() {}
            rest.peek().is_some_and(|next| **next == slot)
        };
        let mut rest = live.iter().peekable();
        if self.0.iter().all(|(slot, _)| is_live(*slot, &mut rest)) {
            return self;
        }
        let mut named: Vec<Name> = Vec::new();
        let mut has_parts = false;
        let mut rest = live.iter().peekable();
        for (slot, value) in &self.0 {
            let is_live = is_live(*slot, &mut rest);
            has_parts |= !is_live && matches!(value.kind, Kind::Low { .. });
            if is_live && let Some(form) = &value.form {
                named.extend(form.parts().map(|(name, _)| name));
            }
            match &value.kind {
                Kind::Wide(form) if is_live => named.extend(form.parts().map(|(name, _)| name)),
                Kind::Low { of, .. } if is_live => named.push(of.name),
                _ => {}
            }
        }
        let mut rest = live.iter().peekable();
        if named.is_empty() && !has_parts {
            self.0.retain(|(slot, _)| is_live(*slot, &mut rest));
            return self;
        }
        // Names that a live slot holds need no other. Of several slots that hold another all are kept: on other ways one of them may not.
        let mut held: Vec<Name> = Vec::new();
        let kept: Vec<bool> = self.0.iter().map(|(slot, _)| is_live(*slot, &mut rest)).collect();
        held.extend(self.0.iter().zip(&kept).filter(|(_, kept)| **kept).map(|((_, value), _)| value.name));
        held.sort_unstable();
        named.sort_unstable();
        named.dedup();
        named.retain(|name| held.binary_search(name).is_err());
        let mut kept = kept.into_iter();
        self.0.retain(|(_, value)| {
            let is_part = |value: &Value| matches!(value.kind, Kind::Low { of, .. } if held.binary_search(&of.name).is_ok());
            kept.next() == Some(true) || is_part(value) || named.binary_search(&value.name).is_ok()
        });
        self
    }

    /// What holds of both. Values that differ are named for the block at whose beginning they meet, if there is one.
    pub(super) fn join(&self, new: &Self, slice: &Slice<'_>, at: Option<u32>) -> Self {
        let mut joined = Vec::with_capacity(self.0.len().min(new.0.len()));
        // Slots that hold the same on one way, and on the other, hold the same where they meet.
        let mut names: BTreeMap<(Name, Name), Name> = BTreeMap::new();
        let mut rest = new.0.iter().peekable();
        for (slot, known) in &self.0 {
            while rest.next_if(|(other, _)| other < slot).is_some() {}
            let Some((_, new)) = rest.next_if(|(other, _)| other == slot) else { continue };
            if Rc::ptr_eq(known, new) && known.name != NOBODY {
                joined.push((*slot, Rc::clone(known)));
                continue;
            }
            let name = at.map_or(NOBODY, |block| {
                let own = slice.name_at(block, *slot as usize);
                let has_names = slice.is_close && known.name != NOBODY && new.name != NOBODY && known.name != new.name;
                if has_names { *names.entry((known.name, new.name)).or_insert(own) } else { own }
            });
            let both = known.join(new, slice.slots[*slot as usize].1.clamp(1, 64), name);
            joined.push((*slot, if both == **known { Rc::clone(known) } else { Rc::new(both) }));
        }
        Self(joined)
    }

    /// Gives values other names, different ones to different values.
    pub(super) fn rename(&mut self, new: impl Fn(Name) -> Name) {
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
                    Kind::Saturated(since, pair) => {
                        let since = if since.term.is_some_and(|term| is_other(term.name)) { since.plain() } else { since };
                        Kind::Saturated(since, Pair { from: new(pair.from), taken: new(pair.taken) })
                    }
                    Kind::Wide(form) => Kind::Wide(form.renamed(&new)),
                    Kind::Plain | Kind::Control(_) | Kind::Flag | Kind::Clock => held.kind,
                };
                held.since = held.since.map(|since| if since.term.is_some_and(|term| is_other(term.name)) { since.plain() } else { since });
                true
            },
        );
    }

    /// Takes away names, and what is said about values of those names, but not in one slot.
    pub(super) fn forget(&mut self, old: impl Fn(Name) -> bool, but: u32) {
        self.change(
            |slot, held| slot != but && mentions(held, &old),
            |_, held| {
                forget(held, &old);
                true
            },
        );
    }

    /// Gives values of such names others that nothing else has, and takes away what is said about them.
    pub(super) fn age(&mut self, old: impl Fn(Name) -> bool) {
        self.change(
            |_, held| mentions(held, &old),
            |_, held| {
                let name = held.name;
                forget(held, &old);
                if old(name) {
                    held.name = name | AGED;
                }
                true
            },
        );
    }
}

/// Whether something is said about a value of such a name.
fn mentions(value: &Value, old: impl Fn(Name) -> bool) -> bool {
    old(value.name)
        || value.form.as_ref().is_some_and(|form| form.parts().any(|(name, _)| old(name)))
        || value.since.as_ref().and_then(|since| since.term).is_some_and(|term| old(term.name))
        || match value.kind {
            Kind::Truth { a, b, apart, .. } => old(a) || old(b) || old(apart),
            Kind::Low { of, .. } => old(of.name),
            Kind::Larger { a, b } => old(a) || old(b),
            Kind::Smaller { of, .. } => old(of),
            Kind::Saturated(since, pair) => old(pair.from) || old(pair.taken) || since.term.is_some_and(|term| old(term.name)),
            Kind::Wide(form) => form.parts().any(|(name, _)| old(name)),
            Kind::Plain | Kind::Control(_) | Kind::Flag | Kind::Clock => false,
        }
}

/// Takes away names, and what is said about values of those names.
pub(super) fn forget(value: &mut Value, old: impl Fn(Name) -> bool) {
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
        Kind::Smaller { of, .. } if old(of) => Kind::Plain,
        Kind::Wide(form) if form.parts().any(|(name, _)| old(name)) => Kind::Plain,
        Kind::Saturated(since, pair) => {
            let since = if since.term.is_some_and(|term| old(term.name)) { since.plain() } else { since };
            let is_old = old(pair.from) || old(pair.taken);
            Kind::Saturated(since, if is_old { Pair::NONE } else { pair })
        }
        kind => kind,
    };
}
