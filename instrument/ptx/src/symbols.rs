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
    /// The innermost declaration last.
    names: ByName<'a, Vec<(u32, V)>>,
    ranges: ByName<'a, Vec<Range<V>>>,
    /// Declarations in order, those of an inner scope behind its mark.
    declared: Vec<(&'a str, bool)>,
    marks: Vec<usize>,
}

#[derive(Debug)]
struct Range<V> {
    depth: u32,
    count: u32,
    value: V,
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
        Self { names: HashMap::default(), ranges: HashMap::default(), declared: Vec::new(), marks: Vec::new() }
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
        for (name, is_range) in self.declared.drain(mark..) {
            if is_range {
                self.ranges.get_mut(name).map(Vec::pop);
            } else {
                self.names.get_mut(name).map(Vec::pop);
            }
        }
    }

    pub(crate) fn declare(&mut self, name: &'a str, value: V) {
        self.declared.push((name, false));
        self.names.entry(name).or_default().push((self.marks.len() as u32, value));
    }

    /// Declares a prefix with any number below `count`.
    pub(crate) fn declare_range(&mut self, prefix: &'a str, count: u32, value: V) {
        self.declared.push((prefix, true));
        self.ranges.entry(prefix).or_default().push(Range { depth: self.marks.len() as u32, count, value });
    }

    /// What a name means here.
    pub(crate) fn find(&self, name: &str) -> Option<Meaning<V>> {
        let exact = self.names.get(name).and_then(|all| all.last());
        let (prefix, number) = split_number(name);
        let nth = number.and_then(|number| {
            let all = self.ranges.get(prefix)?;
            Some((all.iter().rev().find(|range| number < range.count)?, number))
        });
        match (exact, nth) {
            (Some((depth, _)), Some((range, number))) if range.depth > *depth => Some(Meaning::Nth(range.value, number)),
            (Some((_, value)), _) => Some(Meaning::Name(*value)),
            (None, Some((range, number))) => Some(Meaning::Nth(range.value, number)),
            (None, None) => None,
        }
    }
}

/// A name without the digits at its end, and the number that these are.
fn split_number(name: &str) -> (&str, Option<u32>) {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (prefix, digits) = name.split_at(name.len() - digits);
    let number = digits.bytes().fold(0_u32, |all, digit| all.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')));
    (prefix, (!digits.is_empty()).then_some(number))
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
