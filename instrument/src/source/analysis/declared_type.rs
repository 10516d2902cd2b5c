//! The types that names are declared with, as far as tokens tell: which names can be no object of a class.
//!
//! One name may be declared several times. Then it may have any of these types.

use crate::source::syntax::class;
use crate::source::syntax::declaration::{self, is_declared, others};
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::known_names;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// Most tokens of a type that are read.
const MOST_TYPE: usize = 48;

/// What a value may be. A value without a mark is a number, or a pointer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Type<'a> {
    /// Something that the file does not define.
    pub(crate) foreign: bool,
    /// One of CUDA's vectors.
    pub(crate) vector: bool,
    /// Whatever a template is instantiated with, or a type that is deduced.
    pub(crate) any: bool,
    /// Classes of the file.
    pub(crate) classes: BTreeSet<&'a [u8]>,
    /// A pointer to that, or an array of it.
    pub(crate) pointer: bool,
}

impl<'a> Type<'a> {
    pub(crate) fn foreign() -> Self {
        Self { foreign: true, ..Self::default() }
    }

    pub(crate) fn any() -> Self {
        Self { any: true, ..Self::default() }
    }

    pub(crate) fn class(name: &'a [u8]) -> Self {
        Self { classes: BTreeSet::from([name]), ..Self::default() }
    }

    /// Whether it is no object of a class, and no enumerator.
    pub(crate) fn is_number(&self) -> bool {
        self.pointer || !(self.foreign || self.vector || self.any) && self.classes.is_empty()
    }

    /// What a pointer to it leads to.
    pub(crate) fn target(mut self) -> Self {
        self.pointer = false;
        self
    }

    pub(crate) fn join(&mut self, other: &Self) {
        self.foreign |= other.foreign;
        self.vector |= other.vector;
        self.any |= other.any;
        self.classes.extend(&other.classes);
        self.pointer &= other.pointer;
    }
}

/// The types of a fragment's names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Types<'a> {
    names: BTreeMap<&'a [u8], Type<'a>>,
    /// Where each name is declared, and as what.
    places: BTreeMap<&'a [u8], Vec<(usize, Type<'a>)>>,
    /// Names of classes that have a body.
    pub(crate) classes: BTreeSet<&'a [u8]>,
    /// Parameters of templates.
    parameters: BTreeSet<&'a [u8]>,
    aliases: BTreeMap<&'a [u8], Type<'a>>,
}

impl<'a> Types<'a> {
    /// Adds the declarations of a fragment.
    pub(crate) fn read(&mut self, source: &'a [u8], fragment: &Fragment, macros: &Macros) {
        self.places.clear();
        for at in 0..fragment.len() {
            if class::is_class_key(source, fragment, at) && fragment.kind(at + 1) == Some(Kind::Ident) {
                let mut behind = (at + 2..fragment.len()).take(class::MOST_HEAD);
                let end = behind.find(|token| matches!(fragment.kind(*token), Some(Kind::Punct(b'{' | b';' | b'(' | b')' | b'='))));
                if end.is_some_and(|end| fragment.is(end, b'{')) {
                    self.classes.insert(fragment.text(source, at + 1));
                }
            }
            self.parameters.extend(template_parameter(source, fragment, at));
        }
        for at in 1..fragment.len() {
            let word = fragment.text(source, at - 1);
            if word == b"using" && fragment.kind(at + 1) == Some(Kind::Assign) {
                let end = (at..fragment.len()).take(MOST_TYPE).find(|token| fragment.is(*token, b';')).unwrap_or(at + 2);
                let alias = self.of_words(source, fragment, macros, at + 2..end);
                self.aliases.entry(fragment.text(source, at)).or_default().join(&alias);
            } else if word == b"typedef" {
                let end = (at..fragment.len()).take(MOST_TYPE).find(|token| fragment.is(*token, b';')).unwrap_or(at);
                let alias = self.of_words(source, fragment, macros, at..end.saturating_sub(1));
                self.aliases.entry(fragment.text(source, end.saturating_sub(1))).or_default().join(&alias);
            } else if fragment.kind(at) == Some(Kind::Ident) && is_variable(source, fragment, at) {
                self.declare(source, fragment, macros, at);
            }
        }
    }

    fn declare(&mut self, source: &'a [u8], fragment: &Fragment, macros: &Macros, at: usize) {
        let start = type_start(source, fragment, at);
        let mut declared = self.of_words(source, fragment, macros, start..at);
        let is_list = matches!(fragment.kind(at + 1), Some(Kind::Assign | Kind::Punct(b',' | b'[' | b'{' | b'(')));
        let further: Vec<usize> = if is_list && !fragment.is_enclosed(at) { others(fragment, at).collect() } else { Vec::new() };
        for name in further {
            let own = Type { pointer: fragment.is(name + 1, b'['), ..declared.clone() };
            self.add(fragment.text(source, name), name, own);
        }
        declared.pointer |= fragment.is(at + 1, b'[');
        self.add(fragment.text(source, at), at, declared);
    }

    fn add(&mut self, name: &'a [u8], at: usize, declared: Type<'a>) {
        self.places.entry(name).or_default().push((at, declared.clone()));
        self.names.entry(name).and_modify(|known| known.join(&declared)).or_insert(declared);
    }

    /// Gives a name another type: what was deduced is known now.
    pub(crate) fn deduce(&mut self, name: &'a [u8], found: &Type<'a>) {
        if let Some(known) = self.names.get_mut(name) {
            known.any = false;
            known.join(found);
        }
    }

    /// The type that these words name.
    pub(crate) fn of_words(&self, source: &'a [u8], fragment: &Fragment, macros: &Macros, words: std::ops::Range<usize>) -> Type<'a> {
        let mut found = Type { pointer: true, ..Type::default() };
        let (mut is_pointer, mut is_named) = (false, false);
        for at in words {
            let text = fragment.text(source, at);
            match fragment.kind(at) {
                Some(Kind::Punct(b'*')) => is_pointer = true,
                Some(Kind::Keyword) if declaration::is_builtin(text) => is_named = true,
                Some(Kind::Keyword) if matches!(text, b"auto" | b"decltype") => {
                    is_named = true;
                    found.any = true;
                }
                Some(Kind::Ident) if fragment.kind(at + 1) == Some(Kind::Scope) && !self.is_own(text) => {}
                Some(Kind::Ident) if macros.spaces_of(Kind::Ident, text).any() => {}
                Some(Kind::Ident) => {
                    is_named = true;
                    found.join(&Type { pointer: true, ..self.of_name(text, macros) });
                }
                _ => {}
            }
        }
        found.foreign |= !is_named;
        found.pointer = is_pointer;
        found
    }

    fn is_own(&self, name: &[u8]) -> bool {
        self.classes.contains(name) || self.parameters.contains(name) || self.aliases.contains_key(name)
    }

    fn of_name(&self, name: &'a [u8], macros: &Macros) -> Type<'a> {
        if let Some(class) = self.classes.get(name) {
            return Type::class(class);
        }
        if let Some(alias) = self.aliases.get(name) {
            return alias.clone();
        }
        if self.parameters.contains(name) || macros.is_defined(name) {
            Type::any()
        } else if declaration::is_integer(name) {
            Type::default()
        } else if declaration::is_vector(name) {
            Type { vector: true, ..Type::default() }
        } else {
            Type::foreign()
        }
    }

    /// Whether the name is a parameter of a template.
    pub(crate) fn is_parameter(&self, name: &[u8]) -> bool {
        self.parameters.contains(name)
    }

    /// The type that the name stands for, if it stands for one.
    pub(crate) fn named(&self, name: &'a [u8], macros: &Macros) -> Option<Type<'a>> {
        self.is_own(name).then(|| self.of_name(name, macros))
    }

    /// The type of a variable, or of a function's result.
    pub(crate) fn of_variable(&self, name: &[u8]) -> Option<&Type<'a>> {
        self.names.get(name)
    }

    /// Whether the name is declared between two tokens.
    pub(crate) fn is_declared_in(&self, name: &[u8], range: std::ops::Range<usize>) -> bool {
        self.declared_in(name, range).next().is_some()
    }

    /// Where the name is declared between two tokens.
    pub(crate) fn declared_in(&self, name: &[u8], range: std::ops::Range<usize>) -> impl Iterator<Item = usize> {
        self.places_in(name, range).map(|(at, _)| *at)
    }

    fn places_in(&self, name: &[u8], range: std::ops::Range<usize>) -> impl Iterator<Item = &(usize, Type<'a>)> {
        let places = self.places.get(name).map_or(&[][..], Vec::as_slice);
        let first = places.partition_point(|(at, _)| *at < range.start);
        places[first..].iter().take_while(move |(at, _)| *at < range.end)
    }

    /// The type of a parameter of the function whose list and body end there: no other variable of its name is seen in the body, but those that the
    /// body declares.
    pub(crate) fn of_parameter(&self, name: &[u8], list: (usize, usize), close: usize) -> Option<Type<'a>> {
        self.places_in(name, list.0..list.1).next()?;
        let mut places = self.places_in(name, list.0..close).map(|(_, declared)| declared);
        let mut found = places.next()?.clone();
        places.for_each(|declared| found.join(declared));
        (!found.any).then_some(found)
    }
}

/// The values of names that CUDA and C define, and of macros.
pub(crate) fn is_known_number(name: &[u8], macros: &Macros) -> bool {
    macros.is_literal(name)
        || macros.is_constant(name, false)
        || known_names::is_constant(name)
        || matches!(name, b"warpSize" | b"__LINE__" | b"__CUDA_ARCH__")
}

/// Whether a variable or a function of that name is declared at the token. The address of one in parentheses is no declaration, unless a list follows.
fn is_variable(source: &[u8], fragment: &Fragment, at: usize) -> bool {
    let is_in_parentheses = at > 1 && fragment.is(at - 2, b'(') && matches!(fragment.kind(at - 1), Some(Kind::Punct(b'*' | b'&')));
    let has_list = || {
        let before = at.checked_sub(3).and_then(|before| fragment.kind(before));
        matches!(before, Some(Kind::Ident | Kind::Keyword | Kind::Punct(b'>' | b'*' | b'&')))
            && matches!(fragment.kind(at + 2), Some(Kind::Punct(b'(' | b'[')))
    };
    fragment.kind(at - 1) != Some(Kind::Class) && is_declared(source, fragment, at) && (!is_in_parentheses || has_list())
}

/// Where the type of the name at `at` begins.
fn type_start(source: &[u8], fragment: &Fragment, at: usize) -> usize {
    let (mut start, mut depth) = (at, 0_u32);
    while let Some(before) = start.checked_sub(1).filter(|before| at - before < MOST_TYPE) {
        match fragment.kind(before) {
            Some(Kind::Punct(b'>')) => depth += 1,
            Some(Kind::Punct(b'<')) if depth > 0 => depth -= 1,
            Some(Kind::Punct(b',')) if depth > 0 => {}
            Some(Kind::Keyword) if fragment.text(source, before) == b"template" => break,
            Some(Kind::Punct(b'*' | b'&') | Kind::Op | Kind::Number) => {}
            Some(Kind::Ident | Kind::Keyword | Kind::Scope | Kind::Class) => {}
            Some(Kind::Host | Kind::Device | Kind::Global | Kind::Constexpr) => {}
            _ => break,
        }
        start = before;
    }
    start
}

/// The parameter of a template that stands at the token: behind a word, and in front of a comma, a default or the end.
fn template_parameter<'a>(source: &'a [u8], fragment: &Fragment, at: usize) -> Option<&'a [u8]> {
    let ends = matches!(fragment.kind(at + 1), Some(Kind::Punct(b',' | b'>') | Kind::Assign));
    let mut before = at.checked_sub(1)?;
    if fragment.kind(before) == Some(Kind::Op) {
        before = before.checked_sub(1)?;
    }
    let is_first = |word: usize| {
        let outside = word.checked_sub(1).and_then(|outside| fragment.kind(outside));
        matches!(outside, Some(Kind::Punct(b'<' | b',')))
    };
    let word = fragment.text(source, before);
    let is_kind = word == b"typename" || (fragment.kind(before) == Some(Kind::Class) && is_first(before));
    // The concept that it must fulfil.
    let is_concept = fragment.kind(before) == Some(Kind::Ident)
        && (0..before)
            .rev()
            .take(MOST_TYPE)
            .take_while(|token| !matches!(fragment.kind(*token), Some(Kind::Punct(b';' | b'{' | b'}' | b'('))))
            .any(|token| fragment.text(source, token) == b"template")
        && !declaration::is_integer(word);
    (fragment.kind(at) == Some(Kind::Ident) && ends && (is_kind || is_concept)).then(|| fragment.text(source, at))
}
