//! Words that macros make out of parts, by `##`.

use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::begins_attributes;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::Kind;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::rc::Rc;

/// Words by the macros that they stand for.
type Memo<'a> = RefCell<BTreeMap<&'a [u8], Rc<BTreeSet<&'a [u8]>>>>;

/// What uses of macros may make, each macro's body read once.
#[derive(Debug)]
pub(crate) struct Pasting<'a> {
    source: &'a [u8],
    macros: &'a Macros<'a>,
    /// Names that are looked for beside words of the language.
    names: BTreeSet<&'a [u8]>,
    /// The words in a macro's bodies, and in those of the macros that they name.
    behind: Memo<'a>,
}

/// The words that a use of a macro may make others of.
pub(crate) struct Parts<'a> {
    /// Those of the use itself.
    own: BTreeSet<&'a [u8]>,
    /// Those of the macros in it.
    behind: Vec<Rc<BTreeSet<&'a [u8]>>>,
}

impl<'a> Pasting<'a> {
    pub(crate) fn new(source: &'a [u8], macros: &'a Macros<'a>, names: BTreeSet<&'a [u8]>) -> Self {
        Self { source, macros, names, behind: RefCell::default() }
    }

    /// Whether a use of a macro may make a word that repeats, or the name of a macro that jumps, out of parts: of words in its arguments
    /// or in its definition. A macro of another file is taken to do so if its name is in capitals.
    pub(crate) fn may_loop(&self, fragment: &Fragment, at: usize) -> bool {
        self.makes(fragment, at, &[b"for", b"while", b"do", b"goto", b"asm", b"__asm__"])
            || self.names_of(fragment, at).iter().any(|name| self.macros.jumps(name).next().is_some())
    }

    /// Those of the names that a use of a macro may make.
    pub(crate) fn names_of(&self, fragment: &Fragment, at: usize) -> BTreeSet<&'a [u8]> {
        let Some(parts) = Some(at).filter(|_| !self.names.is_empty()).and_then(|at| self.parts(fragment, at)) else {
            return BTreeSet::new();
        };
        let all: BTreeSet<&[u8]> = parts.own.iter().chain(parts.behind.iter().flat_map(|behind| behind.iter())).copied().collect();
        let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut work: Vec<Vec<u8>> = all.iter().map(|part| part.to_vec()).collect();
        while let Some(begun) = work.pop() {
            // A part more is put behind it, or else all names that begin so are looked at: what is less.
            if self.begun_by(&begun).nth(all.len()).is_none() {
                found.extend(self.begun_by(&begun).filter(|name| parts.make(name)));
                continue;
            }
            for part in &all {
                let longer = [&begun[..], *part].concat();
                found.extend(self.begun_by(&longer).next().filter(|name| **name == longer[..]));
                if seen.insert(longer.clone()) {
                    work.push(longer);
                }
            }
        }
        found
    }

    /// The names that begin so.
    fn begun_by<'b>(&'b self, word: &'b [u8]) -> impl Iterator<Item = &'a [u8]> + 'b {
        let from = (Bound::Included(word), Bound::Unbounded);
        self.names.range::<[u8], _>(from).copied().take_while(move |name| name.starts_with(word))
    }

    /// The same for the words that mark device functions. A macro may also make attributes of what it takes, or stand among attributes.
    pub(crate) fn may_mark(&self, fragment: &Fragment, at: usize) -> bool {
        let may_be_pasted = |parts: &Parts<'_>| {
            let makes = |words: [&[u8]; 2]| words.into_iter().any(|word| parts.make(word));
            makes([b"__device__", b"__global__"]) || parts.holds(b"__attribute__") && makes([b"device", b"global"])
        };
        let marks = |word: &[u8]| matches!(word, b"device" | b"global");
        let name = fragment.text(self.source, at);
        let makes_attributes = || {
            let is_own = self.macros.attributes(name)
                || self.macros.is_own(name) && self.behind(name).iter().any(|word| self.macros.attributes(word));
            // Of a macro from elsewhere only the use is known.
            let is_foreign = !self.macros.is_own(name) && !name.is_empty() && !name.iter().any(u8::is_ascii_lowercase);
            is_own || is_foreign && fragment.kind(at + 2) == Some(Kind::Ident) && fragment.is(at + 3, b')')
        };
        let taken = || {
            let close = fragment.mate(at + 1).filter(|close| *close > at && fragment.is(at + 1, b'('))?;
            (at + 2..close).find(|taken| {
                let word = fragment.text(self.source, *taken);
                marks(word) || self.macros.is_own(word) && self.behind(word).iter().any(|word| marks(word))
            })
        };
        let is_among_attributes = || {
            let list = begins_attributes(self.source, fragment, at).then(|| fragment.mate(at + 1)).flatten();
            (at..list.unwrap_or(at)).any(|inner| {
                self.parts(fragment, inner).is_some_and(|parts| [&b"device"[..], b"global"].into_iter().any(|word| parts.make(word)))
            })
        };
        self.parts(fragment, at).is_some_and(|parts| may_be_pasted(&parts))
            || fragment.kind(at) == Some(Kind::Ident) && taken().is_some() && makes_attributes()
            || is_among_attributes()
    }

    fn makes(&self, fragment: &Fragment, at: usize, words: &[&[u8]]) -> bool {
        self.parts(fragment, at).is_some_and(|parts| words.iter().any(|word| parts.make(word)))
    }

    /// The parts of a use of a macro that may paste words.
    pub(crate) fn parts(&self, fragment: &Fragment, at: usize) -> Option<Parts<'a>> {
        let (source, macros) = (self.source, self.macros);
        let name = fragment.text(source, at);
        let is_foreign = || !macros.is_own(name) && name.len() > 1 && !name.iter().any(u8::is_ascii_lowercase) && fragment.is(at + 1, b'(');
        if fragment.kind(at) != Some(Kind::Ident) || !(macros.pastes(name) || is_foreign()) {
            return None;
        }
        let close = if fragment.is(at + 1, b'(') { fragment.mate(at + 1) } else { None };
        let own: BTreeSet<&[u8]> = (at + 1..close.unwrap_or(at)).map(|argument| fragment.text(source, argument)).chain([name]).collect();
        let behind = own.iter().filter(|word| macros.is_own(word)).map(|word| self.behind(word)).collect();
        Some(Parts { own, behind })
    }

    fn behind(&self, name: &'a [u8]) -> Rc<BTreeSet<&'a [u8]>> {
        let mut known = self.behind.borrow_mut();
        let words = known.entry(name).or_insert_with(|| {
            let (mut words, mut work) = (BTreeSet::new(), vec![name]);
            while let Some(name) = work.pop() {
                for token in self.macros.bodies_of(name).flat_map(|body| &body.tokens) {
                    let text = &self.source[token.range()];
                    if words.insert(text) && self.macros.is_own(text) {
                        work.push(text);
                    }
                }
            }
            Rc::new(words)
        });
        Rc::clone(words)
    }
}

impl Parts<'_> {
    /// Whether it is one of them.
    fn holds(&self, word: &[u8]) -> bool {
        self.own.contains(word) || self.behind.iter().any(|behind| behind.contains(word))
    }

    /// Whether the word can be put together of several of them.
    pub(crate) fn make(&self, word: &[u8]) -> bool {
        let is_part = |part: &[u8]| self.holds(part);
        let mut reached = vec![false; word.len() + 1];
        reached[0] = true;
        for end in 1..=word.len() {
            reached[end] = (0..end).any(|start| reached[start] && end - start < word.len() && is_part(&word[start..end]));
        }
        reached[word.len()]
    }
}
