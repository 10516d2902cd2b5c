//! How often macros of a file repeat what they are given, and what stands in their bodies: calls that a text names once may run many times.

use crate::source::analysis::purity;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The repetitions of a file's macros.
#[derive(Debug, Default)]
pub(crate) struct Expansion<'a> {
    /// How often a macro names one of its arguments in all, where that is more than once.
    repeats: BTreeMap<&'a [u8], u64>,
    /// The words of each macro's bodies, and how often they stand there.
    words: BTreeMap<&'a [u8], BTreeMap<&'a [u8], u64>>,
    /// Macros behind those that their bodies name, as far as no cycle is in the way.
    order: Vec<&'a [u8]>,
}

impl<'a> Expansion<'a> {
    pub(crate) fn new(source: &'a [u8], macros: &Macros<'a>) -> Self {
        let mut named: BTreeMap<&[u8], BTreeSet<&[u8]>> = BTreeMap::new();
        for (name, body) in macros.definitions() {
            let idents = body.tokens.iter().filter(|token| token.kind == Kind::Ident).map(|token| &source[token.range()]);
            named.entry(name).or_default().extend(idents.filter(|word| macros.is_own(word)));
        }
        let mut expansion = Self { order: order(&named), ..Self::default() };
        let mut bodies: BTreeMap<&[u8], Vec<&Fragment>> = BTreeMap::new();
        for (name, body) in macros.definitions() {
            bodies.entry(name).or_default().push(body);
        }
        for name in expansion.order.clone() {
            for body in bodies.get(name).into_iter().flatten() {
                expansion.read(source, name, body);
            }
        }
        expansion
    }

    fn read(&mut self, source: &'a [u8], name: &'a [u8], body: &Fragment) {
        let parameters = body.of_macro.as_ref().map_or_else(BTreeSet::new, |name| purity::parameters(source, name.end));
        let mut of_parameters: BTreeMap<&[u8], u64> = BTreeMap::new();
        let mut around: Vec<(usize, u64)> = Vec::new();
        let mut words = self.words.remove(name).unwrap_or_default();
        for at in 0..body.len() {
            while around.last().is_some_and(|(close, _)| *close <= at) {
                around.pop();
            }
            if body.kind(at) != Some(Kind::Ident) {
                continue;
            }
            let word = &source[body.tokens[at].range()];
            let times = around.last().map_or(1, |(_, times)| *times);
            let counts = if word == b"__VA_ARGS__" || parameters.contains(word) { &mut of_parameters } else { &mut words };
            let count = counts.entry(word).or_default();
            *count = count.saturating_add(times);
            if let (Some(repeats), Some(close)) = (self.repeats.get(word), arguments(body, at)) {
                around.push((close.end, times.saturating_mul(*repeats)));
            }
        }
        self.words.insert(name, words);
        let most = of_parameters.into_values().max().unwrap_or(1);
        if most > 1 {
            let known = self.repeats.entry(name).or_insert(most);
            *known = most.max(*known);
        }
    }

    /// The arguments of a use of a macro at the token, and how often it names one of them, if that is more than once.
    pub(crate) fn repeated(&self, source: &[u8], fragment: &Fragment, at: usize) -> Option<(Range<usize>, u64)> {
        let times = *self.repeats.get(fragment.text(source, at)).filter(|_| fragment.kind(at) == Some(Kind::Ident))?;
        Some((arguments(fragment, at)?, times))
    }

    /// The words that a use of the macro brings along, and how often.
    pub(crate) fn words_of(&self, name: &[u8]) -> BTreeMap<&'a [u8], u64> {
        let mut found: BTreeMap<&[u8], u64> = BTreeMap::new();
        let Some(last) = self.order.iter().position(|known| *known == name) else { return found };
        let mut uses: BTreeMap<&[u8], u64> = BTreeMap::from([(self.order[last], 1)]);
        // Those that use a macro stand behind it.
        for name in self.order[..=last].iter().rev() {
            let Some(times) = uses.get(name).copied() else { continue };
            for (word, count) in self.words.get(name).into_iter().flatten() {
                let counts = if self.words.contains_key(word) && word != name { &mut uses } else { &mut found };
                let known = counts.entry(word).or_default();
                *known = known.saturating_add(times.saturating_mul(*count));
            }
        }
        found
    }
}

/// The inside of the parentheses behind a macro's name.
fn arguments(fragment: &Fragment, at: usize) -> Option<Range<usize>> {
    let close = fragment.mate(at + 1).filter(|close| *close > at && fragment.is(at + 1, b'('))?;
    Some(at + 2..close)
}

/// Names behind those that they name.
fn order<'a>(named: &BTreeMap<&'a [u8], BTreeSet<&'a [u8]>>) -> Vec<&'a [u8]> {
    let mut order = Vec::with_capacity(named.len());
    let mut seen: BTreeSet<&[u8]> = BTreeSet::new();
    for root in named.keys() {
        if !seen.insert(root) {
            continue;
        }
        let mut work = vec![(*root, named[root].iter())];
        while let Some((name, rest)) = work.last_mut() {
            if let Some(next) = rest.find(|next| seen.insert(next)) {
                work.push((next, named[next].iter()));
            } else {
                order.push(*name);
                work.pop();
            }
        }
    }
    order
}
