//! What a name means where it stands.
//!
//! As in ptxas a declaration is seen from where it stands to the end of its scope, and the innermost one counts. `.reg .b32 %r<9>;` declares
//! `%r` with any number below 9: the digits at a name's end are one number of 32 bits that wraps, so `%r01` and `%r4294967297` are `%r1`. A name
//! that is declared as it is spelled comes first within a scope.

use std::collections::HashMap;

/// Values by name, with a hash that no input slows down.
pub(crate) type ByName<'a, V> = HashMap<&'a str, V, foldhash::fast::RandomState>;

/// What names mean, scope by scope.
#[derive(Debug)]
pub(crate) struct Symbols<'a, V> {
    /// The innermost declaration of each name, by its place in `declared`.
    names: ByName<'a, u32>,
    ranges: ByName<'a, u32>,
    /// Prefixes of at most eight bytes, packed, with their declarations. A function has few, and they are asked for at each operand.
    short: Vec<(u64, u32)>,
    /// Declarations in order, those of an inner scope behind its mark.
    declared: Vec<Declaration<'a, V>>,
    marks: Vec<usize>,
    /// For each first byte the [kinds](kind_of) of names that were declared as they are spelled: most registers are of a range.
    first_bytes: [u8; 256],
}

#[derive(Debug)]
struct Declaration<'a, V> {
    name: &'a str,
    /// How many numbers a range has.
    count: Option<u32>,
    depth: u32,
    value: V,
    /// The declaration of this name that it hides; [`NONE`] for none.
    hidden: u32,
}

const NONE: u32 = u32::MAX;

/// Most prefixes that are looked through one by one.
const FEW: usize = 12;

/// A prefix of at most eight bytes as a number. Names hold no zero bytes.
fn packed(prefix: &str) -> Option<u64> {
    let bytes = prefix.as_bytes();
    (bytes.len() <= 8).then(|| bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)))
}

/// Of names with a digit at their end, or without one.
fn kind_of(name: &str) -> (usize, u8) {
    let bytes = name.as_bytes();
    let [first, last] = [bytes.first(), bytes.last()].map(|byte| byte.copied().unwrap_or(0));
    (first.into(), if last.is_ascii_digit() { 1 } else { 2 })
}

/// What a name was declared as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning<V> {
    /// As itself.
    Name(V),
    /// As one of a range.
    Nth(V, u32),
}

impl<V> Default for Symbols<'_, V> {
    fn default() -> Self {
        Self {
            names: HashMap::default(),
            ranges: HashMap::default(),
            short: Vec::new(),
            declared: Vec::new(),
            marks: Vec::new(),
            first_bytes: [0; 256],
        }
    }
}

impl<'a, V: Copy> Symbols<'a, V> {
    /// Begins a scope.
    pub(crate) fn enter(&mut self) {
        self.marks.push(self.declared.len());
    }

    /// Ends the innermost scope.
    pub(crate) fn leave(&mut self) {
        let mark = self.marks.pop().unwrap_or(0);
        // What an outermost scope declares is not asked for behind it.
        if self.marks.is_empty() {
            self.declared.clear();
            self.names.clear();
            self.ranges.clear();
            self.short.clear();
            return;
        }
        for Declaration { name, count, hidden, .. } in self.declared.drain(mark..).rev() {
            let names = if count.is_some() { &mut self.ranges } else { &mut self.names };
            if count.is_some() && packed(name).is_some() {
                self.short.pop();
            }
            if hidden == NONE {
                names.remove(name);
            } else {
                names.insert(name, hidden);
            }
        }
    }

    pub(crate) fn declare(&mut self, name: &'a str, value: V) {
        let (first, kind) = kind_of(name);
        self.first_bytes[first] |= kind;
        self.add(name, None, value);
    }

    /// Declares a prefix with any number below `count`.
    pub(crate) fn declare_range(&mut self, prefix: &'a str, count: u32, value: V) {
        self.add(prefix, Some(count), value);
    }

    fn add(&mut self, name: &'a str, count: Option<u32>, value: V) {
        let number = self.declared.len() as u32;
        if let Some(prefix) = count.and_then(|_| packed(name)) {
            self.short.push((prefix, number));
        }
        let names = if count.is_some() { &mut self.ranges } else { &mut self.names };
        let hidden = names.insert(name, number).unwrap_or(NONE);
        self.declared.push(Declaration { name, count, depth: self.marks.len() as u32, value, hidden });
    }

    /// What a name means here.
    pub(crate) fn find(&self, name: &str) -> Option<Meaning<V>> {
        let (first, kind) = kind_of(name);
        let exact = if self.first_bytes[first] & kind == 0 { None } else { self.names.get(name) };
        let exact = exact.map(|number| &self.declared[*number as usize]);
        let nth = if kind == 1 { self.nth(name) } else { None };
        match (exact, nth) {
            (Some(exact), Some((range, number))) if range.depth > exact.depth => Some(Meaning::Nth(range.value, number)),
            (Some(exact), _) => Some(Meaning::Name(exact.value)),
            (None, Some((range, number))) => Some(Meaning::Nth(range.value, number)),
            (None, None) => None,
        }
    }

    /// The innermost range that holds a name with a number, and the number.
    fn nth(&self, name: &str) -> Option<(&Declaration<'a, V>, u32)> {
        let (prefix, number) = split_number(name);
        let mut at = match packed(prefix).filter(|_| self.short.len() <= FEW) {
            Some(prefix) => self.short.iter().rev().find(|(other, _)| *other == prefix)?.1,
            None => *self.ranges.get(prefix)?,
        };
        loop {
            let range = self.declared.get(at as usize)?;
            if range.count.is_some_and(|count| number < count) {
                return Some((range, number));
            }
            at = range.hidden;
        }
    }
}

/// A name without the digits at its end, and the number that these are.
fn split_number(name: &str) -> (&str, u32) {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (prefix, digits) = name.split_at(name.len() - digits);
    (prefix, digits.bytes().fold(0_u32, |all, digit| all.wrapping_mul(10).wrapping_add(u32::from(digit - b'0'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_what_they_mean_to_ptxas() {
        let mut symbols = Symbols::default();
        symbols.enter();
        symbols.declare_range("r", 10, 'a');
        symbols.declare("s01", 'b');
        assert_eq!(symbols.find("r01"), Some(Meaning::Nth('a', 1)));
        assert_eq!(symbols.find("r4294967297"), Some(Meaning::Nth('a', 1)));
        // Within a scope what is spelled out comes first.
        symbols.declare_range("t", 3, 'f');
        symbols.declare("t1", 'g');
        assert_eq!([symbols.find("t1"), symbols.find("t2")], [Some(Meaning::Name('g')), Some(Meaning::Nth('f', 2))]);
        assert_eq!([symbols.find("r10"), symbols.find("r"), symbols.find("s1")], [None; 3]);
        symbols.enter();
        symbols.declare_range("r", 3, 'c');
        symbols.declare_range("s", 3, 'd');
        assert_eq!([symbols.find("r2"), symbols.find("r5")], [Some(Meaning::Nth('c', 2)), Some(Meaning::Nth('a', 5))]);
        // An outer name hides an inner range no more than an inner name hides an outer one's other spellings.
        assert_eq!(symbols.find("s01"), Some(Meaning::Nth('d', 1)));
        symbols.declare("r7", 'e');
        assert_eq!([symbols.find("r7"), symbols.find("r07")], [Some(Meaning::Name('e')), Some(Meaning::Nth('a', 7))]);
        symbols.leave();
        assert_eq!([symbols.find("r7"), symbols.find("s01")], [Some(Meaning::Nth('a', 7)), Some(Meaning::Name('b'))]);
    }
}
