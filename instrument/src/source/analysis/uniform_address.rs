//! Names of a kernel whose values follow from the thread's place and the kernel's parameters alone, not from memory.
//!
//! An address made of such names is the one of the plain kernel, even where a thread runs on values that others have not written.
//!
//! All is read from tokens, as in [`super::purity`], with a list of allowed forms. A name is *settled* if each of its values is made of settled names, and
//! each condition of its assignments is settled, too. Names are compared by their text, in all scopes: all names that are alike must be settled.

use crate::source::analysis::file_facts::FileFacts;
use crate::source::analysis::{purity, trip_count};
use crate::source::syntax::declaration::{self, is_builtin, is_declared, is_integer, others};
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::token::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Deepest nest of statements without braces that is followed.
const DEEPEST: usize = 64;

/// Most tokens of a call's arguments that are read.
const MOST_ARGUMENTS: usize = 128;

/// Most definitions and guards of a kernel that are read.
const MOST: usize = 2048;

/// The meaning of a name of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stands {
    /// A variable of the thread's own.
    Value,
    /// A word that the block shares.
    Shared,
    /// An array of the block's or thread's own, of so many dimensions, whose elements are numbers or vectors of them.
    Array(usize),
    /// Anything else.
    Unknown,
}

/// A guard: it decides whether, or how often, the tokens behind it run.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    /// Its condition.
    pub(crate) asked: Range<usize>,
    /// Whether it is the header of a `for`, all of which is its own.
    pub(crate) is_for: bool,
    /// The whole statement.
    pub(crate) extent: Range<usize>,
}

/// The use of a name at a place.
enum Use {
    Reads,
    /// It is given a value, made of these tokens and perhaps its own.
    Gives(Range<usize>),
    Unknown,
}

/// A kernel's names.
pub(crate) struct Addresses<'a> {
    facts: &'a FileFacts<'a>,
    functions: &'a [&'a Function],
    names: BTreeMap<&'a [u8], Stands>,
    settled: BTreeSet<&'a [u8]>,
    pub(crate) guards: Vec<Guard>,
    range: Range<usize>,
}

impl<'a> Addresses<'a> {
    /// Reads a kernel from its first parameter on, with the file's functions; none if it is too long, holds what may be
    /// anything, or may jump by what memory holds.
    pub(crate) fn of_kernel(facts: &'a FileFacts<'a>, functions: &'a [&'a Function], range: Range<usize>, open: usize) -> Option<Self> {
        let (fragment, source) = (facts.fragment, facts.source);
        let mut found =
            Self { facts, functions, names: BTreeMap::new(), settled: BTreeSet::new(), guards: Vec::new(), range: range.clone() };
        for at in range.clone().filter(|at| fragment.kind(*at) == Some(Kind::Ident)) {
            let name = fragment.text(source, at);
            if (facts.macros.is_defined(name) && !is_constant_macro(facts, at)) || is_unknown_macro(facts, at) {
                return None;
            }
            if is_declared(source, fragment, at) {
                found.add(at, found.declared(at, at, open));
                // Another declarator may begin with a star: the first one's type says nothing of it then.
                let rest: Vec<usize> = if at > open { others(fragment, at).collect() } else { Vec::new() };
                for other in rest {
                    let stands = if found.has_pointer(at) { Stands::Unknown } else { found.declared(other, at, open) };
                    found.add(other, stands);
                }
            }
        }
        found.guards = guards(fragment, open + 1..range.end)?;
        found.settled = found.names.iter().filter(|(_, stands)| **stands == Stands::Value).map(|(name, _)| *name).collect();
        let mut definitions: Vec<(usize, Range<usize>)> = Vec::new();
        for at in range.clone().filter(|at| fragment.kind(*at) == Some(Kind::Ident)) {
            let name = fragment.text(source, at);
            match if found.names.contains_key(name) { found.use_of(at) } else { Use::Reads } {
                Use::Reads => {}
                Use::Gives(value) => definitions.push((at, value)),
                Use::Unknown => {
                    found.settled.remove(name);
                }
            }
        }
        if definitions.len() > MOST || found.guards.len() > MOST {
            return None;
        }
        // A name that is not settled unsettles the names that are made of it, to a fixed point.
        loop {
            let is_settled = |(at, value): &&(usize, Range<usize>)| found.is_settled(value.clone()) && found.is_sure_definition(*at);
            let unsettled: BTreeSet<&[u8]> =
                definitions.iter().filter(|definition| !is_settled(definition)).map(|(at, _)| fragment.text(source, *at)).collect();
            let before = found.settled.len();
            found.settled.retain(|name| !unsettled.contains(name));
            if found.settled.len() == before {
                break;
            }
        }
        let jumps = |at: &usize| matches!(fragment.kind(*at), Some(Kind::Break | Kind::Continue | Kind::Return | Kind::Goto));
        (open..range.end).filter(jumps).all(|at| found.is_sure(at)).then_some(found)
    }

    fn add(&mut self, at: usize, stands: Stands) {
        let name = self.facts.fragment.text(self.facts.source, at);
        let known = self.names.entry(name).or_insert(stands);
        if *known != stands {
            *known = Stands::Unknown;
        }
    }

    /// The meaning of the name at `at` by its declaration, whose first name is at `first`.
    fn declared(&self, at: usize, first: usize, open: usize) -> Stands {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        let words: Vec<&[u8]> = self.words_before(first).map(|word| fragment.text(source, word)).collect();
        let is_shared = words.contains(&&b"__shared__"[..]);
        if words.iter().any(|word| matches!(*word, b"&" | b"&&" | b"static" | b"volatile" | b"__constant__")) && !is_shared {
            return Stands::Unknown;
        }
        let known = |word: &&[u8]| {
            let is_plain = matches!(*word, b"__shared__" | b"extern" | b"const" | b"constexpr" | b"volatile" | b"auto" | b"*");
            is_plain || matches!(*word, b"__restrict__" | b"__restrict") || is_number(self.facts, word)
        };
        match dimensions(fragment, at) {
            // A function, a constructor, a list or a range: its value is not known.
            0 if at > open && !matches!(fragment.kind(at + 1), Some(Kind::Assign | Kind::Punct(b';' | b','))) => Stands::Unknown,
            _ if !words.iter().all(known) => Stands::Unknown,
            0 if is_shared => Stands::Shared,
            0 => Stands::Value,
            _ if at < open || words.contains(&&b"*"[..]) => Stands::Unknown,
            dimensions => Stands::Array(dimensions),
        }
    }

    fn has_pointer(&self, at: usize) -> bool {
        self.words_before(at).any(|word| matches!(self.facts.fragment.kind(word), Some(Kind::Punct(b'*' | b'&') | Kind::Op)))
    }

    /// The tokens in front of a name in its declaration, from the name on.
    fn words_before(&self, at: usize) -> impl Iterator<Item = usize> + use<'a> {
        let fragment = self.facts.fragment;
        (0..at).rev().take_while(|word| !matches!(fragment.kind(*word), Some(Kind::Punct(b';' | b'{' | b'}' | b'(' | b')' | b','))))
    }

    /// The value that the name at `at` gets there, if any.
    fn use_of(&self, at: usize) -> Use {
        let (facts, fragment, source) = (self.facts, self.facts.fragment, self.facts.source);
        let before = fragment.kind(at - 1);
        if matches!(before, Some(Kind::Punct(b'.') | Kind::Arrow | Kind::Scope)) {
            return Use::Reads;
        }
        // A member that is given a value changes the variable.
        let mut last = at;
        while fragment.is(last + 1, b'.') && fragment.kind(last + 2) == Some(Kind::Ident) {
            last += 2;
        }
        let is_shift = fragment.is(last + 1, b'>') && fragment.text(source, last + 2) == b">=";
        if matches!(fragment.kind(last + 1), Some(Kind::Assign | Kind::OpAssign)) || is_shift {
            // In `*p = 0` it is read, but may be declared there as well: a value too many does no harm.
            let first = last + 2 + usize::from(is_shift);
            let mut end = first;
            while end < fragment.len() && !matches!(fragment.kind(end), Some(Kind::Punct(b';' | b',' | b')' | b'}'))) {
                end = fragment.mate(end).filter(|close| *close > end).unwrap_or(end) + 1;
            }
            return if self.may_be_passed_by(at) { Use::Unknown } else { Use::Gives(first..end) };
        }
        if before == Some(Kind::Step) || fragment.kind(last + 1) == Some(Kind::Step) {
            return if self.may_be_passed_by(at) { Use::Unknown } else { Use::Gives(at..at) };
        }
        // `live ? a : b` asks for a number.
        let is_asked =
            fragment.is(last + 1, b'?') && matches!(before, Some(Kind::Assign | Kind::OpAssign | Kind::Return | Kind::Punct(b'(' | b',')));
        let is_read = purity::is_read(facts, at) || purity::is_followed(facts, at);
        let is_plain = is_declared(source, fragment, at) || is_asked || is_read;
        if is_plain || self.is_argument_by_value(at) { Use::Reads } else { Use::Unknown }
    }

    /// Whether something in the statement in front of the name may decide whether the name is reached.
    fn may_be_passed_by(&self, at: usize) -> bool {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        let in_statement = (0..at).rev().take_while(|before| !matches!(fragment.kind(*before), Some(Kind::Punct(b';' | b'{' | b'}'))));
        let mut asks = in_statement.filter(|before| fragment.is(*before, b'?') || matches!(fragment.text(source, *before), b"&&" | b"||"));
        // What a head asks is a guard.
        asks.any(|before| !self.guards.iter().any(|guard| guard.asked.contains(&before) && !guard.asked.contains(&at)))
    }

    /// Whether the name is all of an argument to a function of this file that takes each by value.
    fn is_argument_by_value(&self, at: usize) -> bool {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        let is_whole = matches!(fragment.kind(at - 1), Some(Kind::Punct(b'(' | b',')))
            && matches!(fragment.kind(at + 1), Some(Kind::Punct(b')' | b',')));
        let mut around = (at.saturating_sub(MOST_ARGUMENTS)..at).rev();
        let open = around.find(|open| fragment.is(*open, b'(') && fragment.mate(*open).is_some_and(|close| close > at));
        let Some(name) = open.and_then(|open| open.checked_sub(1)).filter(|name| is_whole && fragment.kind(*name) == Some(Kind::Ident))
        else {
            return false;
        };
        let is_value = |at: usize| !matches!(fragment.kind(at), Some(Kind::Op | Kind::Punct(b'*' | b'&')));
        let mut named = named(self.facts, self.functions, fragment.text(source, name)).peekable();
        let is_member = matches!(fragment.kind(name - 1), Some(Kind::Punct(b'.') | Kind::Arrow | Kind::Scope));
        !is_member && named.peek().is_some() && named.all(|(name, function)| (name + 1..function.open).all(is_value))
    }

    /// Whether all that decides whether a name is given a value is settled. What is born there has no other value; and what a `for` declares
    /// lives in that loop only, whether or not it runs.
    fn is_sure_definition(&self, at: usize) -> bool {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        if is_declared(source, fragment, at) {
            return true;
        }
        let declares = |guard: &&Guard| {
            let is_same = |other: usize| fragment.text(source, other) == fragment.text(source, at) && is_declared(source, fragment, other);
            guard.is_for && guard.extent.contains(&at) && guard.asked.clone().any(is_same)
        };
        let born = self.guards.iter().filter(declares).map(|guard| guard.extent.start).max().unwrap_or(0);
        self.unsure(at).all(|guard| guard.extent.start < born)
    }

    /// Whether the name is that of a pointer that is given nothing which is not settled.
    pub(crate) fn is_settled_pointer(&self, name: &[u8]) -> bool {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        let is_it = |at: &usize| fragment.text(source, *at) == name && is_declared(source, fragment, *at);
        self.settled.contains(name) && self.range.clone().filter(is_it).all(|at| fragment.is(self.declarator(at), b'*'))
    }

    /// The token in front of a declared name, qualifiers left out.
    fn declarator(&self, at: usize) -> usize {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        (0..at).rev().find(|word| !matches!(fragment.text(source, *word), b"__restrict__" | b"__restrict" | b"const")).unwrap_or(0)
    }

    /// The meaning of the name; none if this kernel does not declare it.
    pub(crate) fn stands(&self, name: &[u8]) -> Option<Stands> {
        self.names.get(name).copied()
    }

    /// Whether the expression is made of settled names and numbers, and of nothing that asks memory.
    pub(crate) fn is_settled(&self, range: Range<usize>) -> bool {
        let (facts, fragment, source) = (self.facts, self.facts.fragment, self.facts.source);
        range.into_iter().all(|at| {
            let text = fragment.text(source, at);
            match fragment.tokens[at].kind {
                Kind::Number | Kind::Char | Kind::Assign | Kind::OpAssign | Kind::Step | Kind::Op | Kind::Constexpr => true,
                Kind::Punct(b'*' | b'&') => is_operand(fragment, at - 1) || is_of_type(facts, at),
                Kind::Punct(byte) => b"+-/%<>|^!~?:(),;.".contains(&byte),
                Kind::Keyword => is_number(facts, text) || CASTS.contains(&text),
                Kind::Ident => self.is_settled_name(at),
                _ => false,
            }
        })
    }

    fn is_settled_name(&self, at: usize) -> bool {
        let (facts, fragment, source) = (self.facts, self.facts.fragment, self.facts.source);
        let name = fragment.text(source, at);
        if fragment.is(at - 1, b'.') {
            return true;
        }
        let is_own = !facts.declarations.declares(name) && !facts.macros.is_defined(name);
        if is_own && matches!(name, b"threadIdx" | b"blockIdx" | b"blockDim" | b"gridDim") {
            return fragment.is(at + 1, b'.');
        }
        if (is_own && name == b"warpSize") || trip_count::literal(facts, &(at..at + 1)).is_some() {
            return true;
        }
        if is_constant_macro(facts, at) {
            return true;
        }
        if fragment.is(at + 1, b'(') {
            return is_number(facts, name) || (purity::is_by_value(facts, at) && matches!(name, b"min" | b"max" | b"abs"));
        }
        is_number(facts, name)
            || (self.settled.contains(name) && !fragment.is(at + 1, b'['))
            || (!self.names.contains_key(name) && self.is_constant(name))
    }

    /// Whether the file declares the name, and nothing but constants and parameters of templates by it.
    fn is_constant(&self, name: &[u8]) -> bool {
        let (facts, fragment, source) = (self.facts, self.facts.fragment, self.facts.source);
        if facts.macros.is_defined(name) || !facts.declarations.declares(name) {
            return false;
        }
        let declared = (0..fragment.len()).filter(|at| fragment.kind(*at) == Some(Kind::Ident) && fragment.text(source, *at) == name);
        // `kTile * kTile` is no declaration.
        let is_product = |at: &usize| {
            let factor = at.checked_sub(2).map(|factor| fragment.text(source, factor));
            let is_number = |factor| facts.declarations.declares(factor) && !facts.declarations.is_type(factor);
            factor.is_some_and(|factor| fragment.is(at - 1, b'*') && is_number(factor))
        };
        let mut declared = declared.filter(|at| is_declared(source, fragment, *at) && !is_product(at)).peekable();
        declared.peek().is_some()
            && declared.all(|at| {
                let is_constexpr = self.words_before(at).any(|word| fragment.kind(word) == Some(Kind::Constexpr));
                let in_template = (at.saturating_sub(64)..at)
                    .rev()
                    .find(|open| matches!(fragment.kind(*open), Some(Kind::Punct(b'<' | b';' | b'{' | b'}' | b'('))));
                let of_template = in_template.is_some_and(|open| {
                    fragment.is(open, b'<') && open > 0 && fragment.text(source, open - 1) == b"template" && !fragment.is(at - 1, b'*')
                });
                is_constexpr || of_template
            })
    }

    /// Whether all that decides whether the token runs is settled.
    pub(crate) fn is_sure(&self, at: usize) -> bool {
        self.unsure(at).next().is_none()
    }

    /// The guards of a token that are not settled.
    pub(crate) fn unsure(&self, at: usize) -> impl Iterator<Item = &Guard> {
        self.guards
            .iter()
            .filter(move |guard| guard.extent.contains(&at) && (guard.is_for || !guard.asked.contains(&at)))
            .filter(|guard| !self.is_settled(self.decides(guard)))
    }

    /// The condition of a guard. Of a `for` it is all behind its first value, which is a definition of its own.
    fn decides(&self, guard: &Guard) -> Range<usize> {
        let fragment = self.facts.fragment;
        let first = guard.asked.clone().find(|at| fragment.is(*at, b';')).filter(|_| guard.is_for);
        first.map_or(guard.asked.clone(), |first| first..guard.asked.end)
    }
}

/// Casts whose arguments are looked at as any other.
const CASTS: &[&[u8]] = &[b"static_cast", b"reinterpret_cast", b"const", b"true", b"false", b"sizeof", b"nullptr"];

/// The functions of that name, with the name's token.
pub(crate) fn named<'f>(facts: &FileFacts, functions: &'f [&'f Function], name: &[u8]) -> impl Iterator<Item = (usize, &'f Function)> {
    let is_it = move |at: &usize| facts.fragment.text(facts.source, *at) == name;
    functions.iter().filter_map(move |function| Some((function.name.filter(is_it)?, *function)))
}

/// Whether a macro stands there that is made of constants and of its arguments, which are looked at as any other tokens.
pub(crate) fn is_constant_macro(facts: &FileFacts, at: usize) -> bool {
    let name = facts.fragment.text(facts.source, at);
    let called = facts.fragment.is(at + 1, b'(');
    let is_own = facts.macros.is_defined(name) || !facts.declarations.declares(name);
    facts.macros.is_constant(name, called) && is_own && !hides_an_element(facts, at, called)
}

/// Whether arguments of a macro's call have a subscript: the macro may decide whether it is reached.
fn hides_an_element(facts: &FileFacts, at: usize, called: bool) -> bool {
    let fragment = facts.fragment;
    called && fragment.mate(at + 1).is_none_or(|close| (at + 2..close).any(|inner| fragment.is(inner, b'[')))
}

/// Whether an unknown name in capitals stands where a statement would begin.
pub(crate) fn is_unknown_macro(facts: &FileFacts, at: usize) -> bool {
    let name = facts.fragment.text(facts.source, at);
    let is_capital = name.len() > 1 && !name.iter().any(u8::is_ascii_lowercase);
    is_capital && !facts.declarations.declares(name) && !facts.macros.is_literal(name) && purity::starts_statement(facts, at)
}

/// Whether the token ends an operand, so that `*` or `&` behind it takes two.
pub(crate) fn is_operand(fragment: &Fragment, at: usize) -> bool {
    matches!(fragment.kind(at), Some(Kind::Ident | Kind::Number | Kind::Punct(b')' | b']')))
}

/// Whether the star at `at` belongs to a type: `const float *p`, `reinterpret_cast<const float *>(p)`.
fn is_of_type(facts: &FileFacts, at: usize) -> bool {
    let fragment = facts.fragment;
    fragment.is(at, b'*') && fragment.kind(at - 1) == Some(Kind::Keyword) && is_number(facts, fragment.text(facts.source, at - 1))
}

/// How many brackets follow a name.
fn dimensions(fragment: &Fragment, name: usize) -> usize {
    let (mut at, mut count) = (name + 1, 0);
    while fragment.is(at, b'[') {
        at = fragment.mate(at).unwrap_or(at) + 1;
        count += 1;
    }
    count
}

/// Whether the word names a number's type, or a vector's of numbers, that this file does not declare anew.
pub(crate) fn is_number(facts: &FileFacts, word: &[u8]) -> bool {
    is_builtin(word) || ((is_integer(word) || is_vector(word)) && !facts.declarations.is_type(word))
}

/// Vectors and small floats of CUDA's own.
fn is_vector(name: &[u8]) -> bool {
    declaration::is_vector(name) || matches!(name, b"half" | b"__half" | b"half2" | b"__half2" | b"__nv_bfloat16" | b"__nv_bfloat162")
}

/// The heads of all conditional statements, with the tokens that they guard.
fn guards(fragment: &Fragment, range: Range<usize>) -> Option<Vec<Guard>> {
    let mut guards = Vec::new();
    for at in range.clone() {
        let kind = fragment.kind(at);
        if !matches!(kind, Some(Kind::If | Kind::For | Kind::While | Kind::Switch | Kind::Do)) {
            continue;
        }
        let end = statement_end(fragment, at, range.end, 0)?;
        let open = if kind == Some(Kind::Do) {
            (at..end).rev().find(|open| fragment.is(*open, b'(') && fragment.mate(*open) == Some(end - 1))?
        } else {
            at + 1 + usize::from(fragment.kind(at + 1) == Some(Kind::Constexpr))
        };
        let close = fragment.mate(open).filter(|_| fragment.is(open, b'('))?;
        guards.push(Guard { asked: open + 1..close, is_for: kind == Some(Kind::For), extent: at..end + 1 });
    }
    Some(guards)
}

/// The last token of the statement that begins at `at`.
pub(crate) fn statement_end(fragment: &Fragment, at: usize, limit: usize, depth: usize) -> Option<usize> {
    if at >= limit || depth > DEEPEST {
        return None;
    }
    match fragment.kind(at)? {
        Kind::Punct(b'{') => fragment.mate(at),
        Kind::If => {
            let open = at + 1 + usize::from(fragment.kind(at + 1) == Some(Kind::Constexpr));
            let end = statement_end(fragment, fragment.mate(open)? + 1, limit, depth + 1)?;
            if fragment.kind(end + 1) == Some(Kind::Else) { statement_end(fragment, end + 2, limit, depth + 1) } else { Some(end) }
        }
        Kind::For | Kind::While | Kind::Switch => statement_end(fragment, fragment.mate(at + 1)? + 1, limit, depth + 1),
        Kind::Do => {
            let end = statement_end(fragment, at + 1, limit, depth + 1)?;
            (fragment.kind(end + 1) == Some(Kind::While)).then(|| fragment.mate(end + 2).map(|close| close + 1)).flatten()
        }
        _ => {
            let mut end = at;
            while end < limit && !fragment.is(end, b';') {
                end = fragment.mate(end).filter(|close| *close > end).unwrap_or(end) + 1;
            }
            (end < limit).then_some(end)
        }
    }
}
