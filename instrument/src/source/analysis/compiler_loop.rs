//! Loops that the compiler makes where the text has none: over the elements of `new T[n]` and `delete[]`, over bytes that are copied or filled, and over
//! an array's initial values.

use crate::source::analysis::declared_type::{Type, Types};
use crate::source::analysis::file_facts::FileFacts;
use crate::source::analysis::trip_count;
use crate::source::syntax::declaration::{self, is_declared};
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::integer;
use crate::source::syntax::token::Kind;
use std::collections::BTreeMap;
use std::ops::Range;

/// Most iterations of such a loop that need no poll.
const MOST: i64 = 4096;

/// Most tokens of a type, or of a call of an allocator, that are read.
const MOST_TYPE: usize = 64;

/// Functions that the compiler makes a loop of. (Device code has no `memmove` but the compiler's own.)
const OF_BYTES: &[&[u8]] = &[b"memcpy", b"memset", b"__builtin_memcpy", b"__builtin_memset", b"__builtin_memmove"];

/// What to tell of a loop that the compiler makes at the token, unless it surely has few iterations.
pub(crate) fn at(facts: &FileFacts, types: &Types, at: usize) -> Option<&'static str> {
    let (fragment, source) = (facts.fragment, facts.source);
    match fragment.kind(at)? {
        Kind::Keyword if fragment.text(source, at) == b"new" => {
            let is_long = counts(fragment, at + 1).any(|range| !is_few(facts, range));
            (is_long && is_constructed(facts, types, at + 1)).then_some("`new` makes objects one after the other: that loop is not polled")
        }
        Kind::Keyword if fragment.text(source, at) == b"delete" && fragment.is(at + 1, b'[') && fragment.is(at + 2, b']') => {
            (!is_of_numbers(facts, types, at + 3)).then_some("`delete[]` ends objects one after the other: that loop is not polled")
        }
        Kind::Ident if of_bytes(facts, at) => {
            let size = last_argument(fragment, at + 1)?;
            (!is_few(facts, size)).then_some("this copies or fills bytes in a loop of the compiler's: it is not polled")
        }
        Kind::Punct(b'{') if at > 1 && fragment.is(at - 1, b']') => fills(facts, at - 1),
        Kind::Punct(b'{') if at > 2 && fragment.kind(at - 1) == Some(Kind::Assign) && fragment.is(at - 2, b']') => fills(facts, at - 2),
        _ => None,
    }
}

/// What to tell of uses of this file's macros that bring such loops along.
pub(crate) fn of_macros(facts: &FileFacts, types: &Types) -> BTreeMap<Vec<u8>, &'static str> {
    let mut found: BTreeMap<&[u8], &'static str> = BTreeMap::new();
    let mut users: BTreeMap<&[u8], Vec<&[u8]>> = BTreeMap::new();
    for (name, body) in facts.macros.definitions() {
        let facts = FileFacts { fragment: body, ..*facts };
        found.extend((0..body.len()).find_map(|token| at(&facts, types, token)).map(|message| (name, message)));
        for token in body.tokens.iter().filter(|token| token.kind == Kind::Ident) {
            users.entry(&facts.source[token.range()]).or_default().push(name);
        }
    }
    let mut work: Vec<&[u8]> = found.keys().copied().collect();
    while let Some(name) = work.pop() {
        let message = found[name];
        for user in users.get(name).into_iter().flatten() {
            if found.insert(user, message).is_none() {
                work.push(user);
            }
        }
    }
    found.into_iter().map(|(name, message)| (name.to_vec(), message)).collect()
}

/// The brackets' insides of the array that an operand of `new` makes.
fn counts(fragment: &Fragment, from: usize) -> impl Iterator<Item = Range<usize>> {
    let mut open = brackets(fragment, from);
    std::iter::from_fn(move || {
        let range = open? + 1..fragment.mate(open?)?;
        open = Some(range.end + 1).filter(|next| fragment.is(*next, b'['));
        Some(range)
    })
}

/// The first bracket behind a type: `(place) Type<…>[`.
fn brackets(fragment: &Fragment, from: usize) -> Option<usize> {
    let mut at = if fragment.is(from, b'(') { fragment.mate(from)? + 1 } else { from };
    let mut depth = 0_u32;
    for _ in 0..MOST_TYPE {
        match fragment.kind(at)? {
            Kind::Punct(b'[') if depth == 0 => return Some(at),
            Kind::Punct(b'<') => depth += 1,
            Kind::Punct(b'>') => depth = depth.checked_sub(1)?,
            Kind::Punct(b'(') => at = fragment.mate(at).filter(|close| *close > at && depth > 0)?,
            Kind::Punct(b'*') | Kind::Ident | Kind::Keyword | Kind::Scope | Kind::Class => {}
            _ if depth > 0 => {}
            _ => return None,
        }
        at += 1;
    }
    None
}

/// Whether a constructor may run for each element: of numbers, pointers and vectors none does, unless they get initial values.
fn is_constructed(facts: &FileFacts, types: &Types, from: usize) -> bool {
    let (fragment, source) = (facts.fragment, facts.source);
    let Some(open) = brackets(fragment, from) else { return true };
    let last = counts(fragment, from).last().map_or(open, |range| range.end);
    let is_initialised = fragment.is(last + 1, b'(') || fragment.is(last + 1, b'{');
    let start = if fragment.is(from, b'(') { fragment.mate(from).map_or(from, |close| close + 1) } else { from };
    let of = types.of_words(source, fragment, facts.macros, start..open);
    is_initialised || !(of.is_number() || is_plain(&of))
}

/// Whether the operand at the token is a pointer to numbers, pointers or vectors, as far as the file declares its name.
fn is_of_numbers(facts: &FileFacts, types: &Types, from: usize) -> bool {
    let (fragment, source) = (facts.fragment, facts.source);
    let end = (from..fragment.len()).take(MOST_TYPE).find(|at| {
        !matches!(fragment.kind(*at), Some(Kind::Ident | Kind::Arrow | Kind::Punct(b'.'))) && fragment.text(source, *at) != b"this"
    });
    let name = end.filter(|end| *end > from && fragment.is(*end, b';')).map(|end| fragment.text(source, end - 1));
    name.and_then(|name| types.of_variable(name)).is_some_and(is_plain)
}

fn is_plain(of: &Type) -> bool {
    !of.foreign && !of.any && of.classes.is_empty()
}

/// Whether the token calls such a function, and none of the user's.
fn of_bytes(facts: &FileFacts, at: usize) -> bool {
    let (fragment, source) = (facts.fragment, facts.source);
    let name = fragment.text(source, at);
    let before = at.checked_sub(1).and_then(|before| fragment.kind(before));
    OF_BYTES.contains(&name)
        && fragment.is(at + 1, b'(')
        && !matches!(before, Some(Kind::Punct(b'.') | Kind::Arrow))
        && !facts.functions.contains(name)
        && !facts.others.contains(name)
        && !is_declared(source, fragment, at)
}

/// The tokens behind the last comma of the list.
fn last_argument(fragment: &Fragment, open: usize) -> Option<Range<usize>> {
    let close = fragment.mate(open).filter(|close| *close > open)?;
    let (mut at, mut start) = (open + 1, open + 1);
    while at < close {
        if fragment.is(at, b',') {
            start = at + 1;
        }
        at = fragment.mate(at).filter(|mate| *mate > at).unwrap_or(at) + 1;
    }
    Some(start..close)
}

/// What to tell of an array, whose last bracket closes there, that gets initial values.
fn fills(facts: &FileFacts, close: usize) -> Option<&'static str> {
    let fragment = facts.fragment;
    let (mut first, mut product) = (close + 1, 1_i64);
    while let Some(open) = first.checked_sub(1).filter(|close| fragment.is(*close, b']')).and_then(|close| fragment.mate(close)) {
        product = product.saturating_mul(trip_count::literal(facts, &(open + 1..first - 1)).map_or(1, |count| count.value));
        first = open;
    }
    let is_array = first.checked_sub(1).is_some_and(|name| is_declared(facts.source, fragment, name));
    (is_array && product > MOST).then_some("an array gets its initial values in a loop of the compiler's: it is not polled")
}

/// Whether the tokens surely stand for a small constant. The value of one that is made of types is not known, and taken for small.
fn is_few(facts: &FileFacts, range: Range<usize>) -> bool {
    let (fragment, source) = (facts.fragment, facts.source);
    if let Some(count) = trip_count::literal(facts, &range) {
        return count.value <= MOST;
    }
    let mut at = range.start;
    while at < range.end {
        let text = fragment.text(source, at);
        let is_constant = match fragment.tokens[at].kind {
            Kind::Keyword if matches!(text, b"sizeof" | b"alignof") => {
                at = end_of_size(fragment, at + 1, range.end);
                true
            }
            Kind::Number => integer::literal(text).is_some_and(|number| number.value <= MOST),
            Kind::Punct(b'(' | b')' | b'+' | b'-' | b'*' | b'/') | Kind::Scope => true,
            Kind::Keyword => declaration::is_builtin(text),
            Kind::Ident if fragment.is(at + 1, b'(') => declaration::is_integer(text),
            Kind::Ident => {
                let is_qualified = at > 0 && fragment.kind(at - 1) == Some(Kind::Scope) && !facts.declarations.may_be_called(text);
                fragment.kind(at + 1) == Some(Kind::Scope)
                    || is_qualified
                    || declaration::is_integer(text)
                    || facts.macros.is_constant(text, false)
                    || facts.declarations.is_constant(text)
            }
            _ => false,
        };
        if !is_constant {
            return false;
        }
        at += 1;
    }
    true
}

/// The last token of the operand of `sizeof`, which begins there.
fn end_of_size(fragment: &Fragment, from: usize, to: usize) -> usize {
    let is_sign = |at: &usize| matches!(fragment.kind(*at), Some(Kind::Op | Kind::Punct(b'*' | b'&')));
    let first = (from..to).find(|at| !is_sign(at)).unwrap_or(from);
    fragment.mate(first).filter(|close| *close > first && fragment.is(first, b'(')).unwrap_or(first)
}
