//! Loops that the compiler makes where the text has none: over the elements of `new T[n]` and `delete[]`, over bytes that are copied or filled, and over
//! an array's initial values.

use crate::common::options::CompilerLoop;
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

/// A number of iterations.
#[derive(Debug, Clone, Copy)]
enum Count {
    Few,
    /// As many as the argument for a macro's parameter, times a factor.
    Of(usize, i64),
    Many,
}

impl Count {
    fn told(self, message: &'static str) -> Option<CompilerLoop> {
        match self {
            Self::Few => None,
            Self::Of(parameter, factor) => Some(CompilerLoop { message, parameter: Some(parameter), factor }),
            Self::Many => Some(CompilerLoop { message, parameter: None, factor: 1 }),
        }
    }

    /// As often for each iteration of another loop.
    fn times(self, other: Self) -> Self {
        match (self, other) {
            (Self::Few, count) | (count, Self::Few) => count,
            _ => Self::Many,
        }
    }
}

/// The loop that the compiler makes at the token, unless it surely has few iterations. `parameters` are those of the macro whose body the fragment is.
pub(crate) fn at(facts: &FileFacts, types: &Types, parameters: &[&[u8]], at: usize) -> Option<CompilerLoop> {
    let (fragment, source) = (facts.fragment, facts.source);
    match fragment.kind(at)? {
        Kind::Keyword if fragment.text(source, at) == b"new" => {
            let number = counts(fragment, at + 1).fold(Count::Few, |number, range| number.times(count(facts, parameters, range)));
            let told = number.told("`new` makes objects one after the other: that loop is not polled");
            told.filter(|_| is_constructed(facts, types, at + 1))
        }
        Kind::Keyword if fragment.text(source, at) == b"delete" && fragment.is(at + 1, b'[') && fragment.is(at + 2, b']') => {
            let told = Count::Many.told("`delete[]` ends objects one after the other: that loop is not polled");
            told.filter(|_| !is_of_numbers(facts, types, at + 3))
        }
        Kind::Ident if of_bytes(facts, at) => {
            // What is called by another name, or through a pointer, copies any number of bytes.
            let is_call = fragment.is(at + 1, b'(');
            let number = if is_call { count(facts, parameters, last_argument(fragment, at + 1)?) } else { Count::Many };
            number.told("this copies or fills bytes in a loop of the compiler's: it is not polled")
        }
        Kind::Punct(b'{') if at > 1 && fragment.is(at - 1, b']') => fills(facts, parameters, at - 1),
        Kind::Punct(b'{') if at > 2 && fragment.kind(at - 1) == Some(Kind::Assign) && fragment.is(at - 2, b']') => {
            fills(facts, parameters, at - 2)
        }
        _ => None,
    }
}

/// The loop that the use of a macro at the token brings along, where the macro's text brings this one.
pub(crate) fn of_use(facts: &FileFacts, parameters: &[&[u8]], at: usize, made: CompilerLoop) -> Option<CompilerLoop> {
    let argument = made.parameter.and_then(|parameter| arguments(facts.fragment, at + 1).nth(parameter));
    let Some(argument) = argument else { return Count::Many.told(made.message) };
    let number = match trip_count::literal(facts, &argument) {
        Some(literal) if literal.value.saturating_mul(made.factor) <= MOST => Count::Few,
        Some(_) => Count::Many,
        None => match count(facts, parameters, argument) {
            Count::Of(parameter, factor) => Count::Of(parameter, factor.saturating_mul(made.factor)),
            count => count,
        },
    };
    number.told(made.message)
}

/// A use of a macro within the text of another: that one's name and text, and the token.
type Use<'a> = (&'a [u8], &'a Fragment, usize);

/// What is known of the file's macros, beside what is `known` of macros of others, by their names.
pub(crate) fn of_macros(facts: &FileFacts, types: &Types, known: BTreeMap<Vec<u8>, CompilerLoop>) -> BTreeMap<Vec<u8>, CompilerLoop> {
    let mut found = known;
    let mut users: BTreeMap<&[u8], Vec<Use>> = BTreeMap::new();
    let mut work: Vec<Vec<u8>> = found.keys().cloned().collect();
    for (name, body) in facts.macros.definitions() {
        let parameters = parameters(facts.source, body);
        let facts = FileFacts { fragment: body, ..*facts };
        for token in 0..body.len() {
            if let Some(made) = at(&facts, types, &parameters, token)
                && learn(&mut found, name, made)
            {
                work.push(name.to_vec());
            }
            if body.kind(token) == Some(Kind::Ident) {
                users.entry(body.text(facts.source, token)).or_default().push((name, body, token));
            }
        }
    }
    while let Some(name) = work.pop() {
        let made = found[&name];
        for (user, body, token) in users.get(&*name).into_iter().flatten() {
            let facts = FileFacts { fragment: body, ..*facts };
            if let Some(made) = of_use(&facts, &parameters(facts.source, body), *token, made)
                && learn(&mut found, user, made)
            {
                work.push(user.to_vec());
            }
        }
    }
    found
}

/// Whether this of a macro was not known. What its definitions say of different numbers is one loop of any number.
pub(crate) fn learn(found: &mut BTreeMap<Vec<u8>, CompilerLoop>, name: &[u8], made: CompilerLoop) -> bool {
    let Some(known) = found.get_mut(name) else {
        found.insert(name.to_vec(), made);
        return true;
    };
    let is_known = known.parameter.is_none() || (known.parameter == made.parameter && known.factor >= made.factor);
    if !is_known {
        *known = CompilerLoop { parameter: None, factor: 1, ..*known };
    }
    !is_known
}

/// Whether a text may be that of a macro which the compiler makes a loop of by itself.
#[cfg(feature = "launcher")]
pub(crate) fn is_suspect(source: &[u8], body: &Fragment) -> bool {
    let is_initialised = |at: usize| body.is(at, b']') && (body.is(at + 1, b'{') || body.kind(at + 1) == Some(Kind::Assign));
    (0..body.len()).any(|at| {
        let text = body.text(source, at);
        OF_BYTES.contains(&text) || (body.kind(at) == Some(Kind::Keyword) && matches!(text, b"new" | b"delete")) || is_initialised(at)
    })
}

/// The parameters of the macro whose body this is, in their order.
fn parameters<'a>(source: &'a [u8], body: &Fragment) -> Vec<&'a [u8]> {
    let behind = body.of_macro.as_ref().map_or(&b""[..], |name| &source[name.end..]);
    let list = behind.strip_prefix(b"(").and_then(|list| list.split(|byte| *byte == b')').next());
    list.map_or_else(Vec::new, |list| list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect())
}

/// The arguments in the parenthesis.
fn arguments(fragment: &Fragment, open: usize) -> impl Iterator<Item = Range<usize>> {
    let close = fragment.mate(open).filter(|close| *close > open && fragment.is(open, b'('));
    let mut start = close.map(|_| open + 1);
    std::iter::from_fn(move || {
        let (from, close) = (start?, close?);
        let mut at = from;
        while at < close && !fragment.is(at, b',') {
            at = fragment.mate(at).filter(|mate| *mate > at).unwrap_or(at) + 1;
        }
        start = (at < close).then_some(at + 1);
        Some(from..at)
    })
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

/// Whether the token names such a function, and none of the user's.
fn of_bytes(facts: &FileFacts, at: usize) -> bool {
    let (fragment, source) = (facts.fragment, facts.source);
    let name = fragment.text(source, at);
    let before = at.checked_sub(1).and_then(|before| fragment.kind(before));
    // `using std::memcpy;` names it for later.
    let is_used = || fragment.is(at + 1, b';') && at.checked_sub(1).is_some_and(|at| matches!(fragment.text(source, at), b"::" | b":"));
    OF_BYTES.contains(&name)
        && !is_used()
        && !matches!(before, Some(Kind::Punct(b'.') | Kind::Arrow))
        && !facts.functions.contains(name)
        && !facts.others.contains(name)
        && !is_declared(source, fragment, at)
}

/// The last argument in the parenthesis.
fn last_argument(fragment: &Fragment, open: usize) -> Option<Range<usize>> {
    arguments(fragment, open).last()
}

/// The loop over an array, whose last bracket closes there, that gets initial values.
fn fills(facts: &FileFacts, parameters: &[&[u8]], close: usize) -> Option<CompilerLoop> {
    let fragment = facts.fragment;
    let (mut first, mut product, mut number) = (close + 1, 1_i64, Count::Few);
    while let Some(open) = first.checked_sub(1).filter(|close| fragment.is(*close, b']')).and_then(|close| fragment.mate(close)) {
        let length = open + 1..first - 1;
        product = product.saturating_mul(trip_count::literal(facts, &length).map_or(1, |count| count.value));
        if let Some(of) = product_with_parameter(facts, parameters, length) {
            number = number.times(of);
        }
        first = open;
    }
    let is_array = first.checked_sub(1).is_some_and(|name| is_declared(facts.source, fragment, name));
    let number = match number {
        _ if product > MOST => Count::Many,
        Count::Of(parameter, factor) => Count::Of(parameter, factor.saturating_mul(product)),
        number => number,
    };
    number.told("an array gets its initial values in a loop of the compiler's: it is not polled").filter(|_| is_array)
}

/// How many the tokens stand for, as far as anything is known.
fn count(facts: &FileFacts, parameters: &[&[u8]], range: Range<usize>) -> Count {
    let names_parameter = |at: usize| parameters.contains(&facts.fragment.text(facts.source, at));
    if !range.clone().any(names_parameter) {
        return if is_few(facts, range) { Count::Few } else { Count::Many };
    }
    product_with_parameter(facts, parameters, range).unwrap_or(Count::Many)
}

/// A product of one parameter of the macro, numbers, and sizes of types, which are taken for small.
fn product_with_parameter(facts: &FileFacts, parameters: &[&[u8]], range: Range<usize>) -> Option<Count> {
    let (fragment, source) = (facts.fragment, facts.source);
    let (mut found, mut factor, mut at) = (None, 1_i64, range.start);
    while at < range.end {
        let text = fragment.text(source, at);
        match fragment.tokens[at].kind {
            Kind::Keyword if matches!(text, b"sizeof" | b"alignof") => at = end_of_size(fragment, at + 1, range.end),
            Kind::Number => factor = factor.saturating_mul(integer::literal(text)?.value),
            Kind::Punct(b'*') if at > range.start && !matches!(fragment.kind(at - 1), Some(Kind::Punct(b'(' | b'*'))) => {}
            Kind::Punct(b'(' | b')') => {}
            Kind::Ident => match parameters.iter().position(|parameter| *parameter == text) {
                Some(index) if found.is_none() => found = Some(index),
                Some(_) => return None,
                None if declaration::is_integer(text) => {}
                None => return None,
            },
            Kind::Keyword if declaration::is_builtin(text) => {}
            _ => return None,
        }
        at += 1;
    }
    found.map(|parameter| Count::Of(parameter, factor))
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
