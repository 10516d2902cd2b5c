//! Cycles of calls between members of classes, each of which names the class with all of its arguments: `tile<16, 8, T>::row(i)` in `tile<I, J, T>::row`.
//!
//! By their names alone such functions seem to reach themselves, and mostly one instance of a template hands on to another. The compiler knows which: it
//! orders classes by what they are called, length first, and a call that leads down needs no poll, for no way down is endless.

use crate::source::analysis::call_graph::Call;
use crate::source::syntax::class::{self, MOST_HEAD};
use crate::source::syntax::declaration::is_declared;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::Kind;
use std::collections::BTreeMap;

/// Most tokens of a class's arguments that are said again.
const MOST_ARGUMENTS: usize = 48;

/// A call of a member of a class that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    /// The first token of the call, its class's name, and its closing parenthesis.
    pub(crate) first: usize,
    pub(crate) last: usize,
    /// The class that is called, with its arguments.
    pub(crate) class: String,
    /// The class of the caller.
    pub(crate) own: String,
}

/// The calls of those functions of a cycle all of whose calls in it are of this kind. All others have to ask where they begin; then no cycle is without
/// a poll: whose function is called is the class that the call names, since that has no bases, and in a cycle not every call can lead down.
pub(crate) fn of_cycle(
    source: &[u8],
    fragment: &Fragment,
    functions: &[&Function],
    macros: &Macros,
    cycle: &BTreeMap<usize, Vec<Call>>,
) -> BTreeMap<usize, Vec<Named>> {
    let mut known: BTreeMap<&[u8], bool> = BTreeMap::new();
    let mut is_whole = |name| *known.entry(name).or_insert_with(|| is_whole(source, fragment, macros, name));
    let mut found = BTreeMap::new();
    for (caller, calls) in cycle {
        let function = functions[*caller];
        let own = class::opener(fragment, function.head).and_then(|open| class::name_of(source, fragment, open));
        let Some(own) = own.filter(|own| !function.constexpr && is_whole(own) && !hides(source, fragment, function, own)) else { continue };
        let mut by_token: BTreeMap<usize, Named> = BTreeMap::new();
        let all_named = calls.iter().all(|call| {
            let is_of_name = functions[call.callee].name.is_some_and(|name| fragment.text(source, name) == fragment.text(source, call.at));
            let named = read(source, fragment, function, call.at).filter(|(name, _)| is_of_name && is_whole(name));
            let own = String::from_utf8_lossy(own).into_owned();
            named.map(|(_, named)| by_token.insert(call.at, Named { own, ..named })).is_some()
        });
        if all_named && !by_token.is_empty() {
            found.insert(*caller, by_token.into_values().collect());
        }
    }
    found
}

/// Whether all that the file says of the name is that it is a class without bases.
pub(crate) fn is_whole(source: &[u8], fragment: &Fragment, macros: &Macros, name: &[u8]) -> bool {
    let mut bodies = 0;
    for at in (1..fragment.len()).filter(|at| fragment.text(source, *at) == name) {
        match fragment.text(source, at - 1) {
            b"struct" | b"class" | b"union" => {}
            b"typename" | b"using" | b"namespace" | b"enum" => return false,
            _ => continue,
        }
        // A parameter of a template.
        if at.checked_sub(2).is_some_and(|before| matches!(fragment.kind(before), Some(Kind::Punct(b'<' | b',')))) {
            return false;
        }
        // Behind it may stand arguments, and nothing that names a base or may hide one.
        let (mut end, mut depth) = (at + 1, 0_u32);
        while end < at + MOST_HEAD && (depth > 0 || !matches!(fragment.kind(end), Some(Kind::Punct(b'{' | b';')))) {
            match fragment.kind(end) {
                Some(Kind::Punct(b'<')) => depth += 1,
                Some(Kind::Punct(b'>')) if depth > 0 => depth -= 1,
                Some(_) if depth > 0 || fragment.text(source, end) == b"final" => {}
                _ => return false,
            }
            end += 1;
        }
        bodies += usize::from(fragment.is(end, b'{'));
    }
    bodies > 0 && !macros.is_defined(name)
}

/// Whether the function declares something of the class's name.
fn hides(source: &[u8], fragment: &Fragment, function: &Function, name: &[u8]) -> bool {
    (function.head..function.close).any(|at| fragment.text(source, at) == name && is_declared(source, fragment, at))
}

/// The name of the class, with no scope in front, whose function is called at the token: `Class<…>::f`.
pub(crate) fn class_of_call(fragment: &Fragment, caller: &Function, at: usize) -> Option<usize> {
    let (first, _) = arguments_of_class(fragment, caller, at)?;
    (fragment.kind(first - 1) != Some(Kind::Scope)).then_some(first)
}

/// The name of the class whose function is called at the token, and where its arguments end.
fn arguments_of_class(fragment: &Fragment, caller: &Function, at: usize) -> Option<(usize, usize)> {
    let close = at.checked_sub(2).filter(|close| fragment.kind(at - 1) == Some(Kind::Scope) && fragment.is(*close, b'>'))?;
    let (mut open, mut depth) = (close, 0_u32);
    loop {
        match fragment.kind(open)? {
            Kind::Punct(b'>') => depth += 1,
            Kind::Punct(b'<') => depth -= 1,
            Kind::Ident | Kind::Number | Kind::Scope | Kind::Keyword | Kind::Punct(b',' | b'+' | b'-' | b'*' | b'/') => {}
            _ => return None,
        }
        if depth == 0 {
            break;
        }
        open = open.checked_sub(1).filter(|open| *open > caller.open && close - *open < MOST_ARGUMENTS)?;
    }
    let first = open.checked_sub(1).filter(|first| fragment.kind(*first) == Some(Kind::Ident))?;
    Some((first, close))
}

/// Reads a call of a member of a class that is named with its arguments, where a poll can stand in front of it; and the name.
fn read<'a>(source: &'a [u8], fragment: &Fragment, caller: &Function, at: usize) -> Option<(&'a [u8], Named)> {
    let last = fragment.mate(at + 1).filter(|_| fragment.is(at + 1, b'('))?;
    let (first, close) = arguments_of_class(fragment, caller, at)?;
    let text = |range: std::ops::RangeInclusive<usize>| {
        let words: Option<Vec<&str>> = range.map(|at| std::str::from_utf8(fragment.text(source, at)).ok()).collect();
        words.map(|words| words.join(" ")).filter(|text| !text.contains('\''))
    };
    let class = text(first..=close)?;
    let is_asked = can_ask(source, fragment, caller, first);
    is_asked.then_some((fragment.text(source, first), Named { first, last, class, own: String::new() }))
}

/// Whether what stands at the token is an operand that is evaluated when the function runs.
fn can_ask(source: &[u8], fragment: &Fragment, caller: &Function, first: usize) -> bool {
    let stands = matches!(
        first.checked_sub(1).and_then(|before| fragment.kind(before)),
        Some(
            Kind::Return
                | Kind::Assign
                | Kind::OpAssign
                | Kind::Punct(b'(' | b',' | b';' | b'{' | b'}' | b'+' | b'-' | b'*' | b'/' | b'?' | b':')
                | Kind::Op
        )
    );
    let mut inside = fragment.kind(first - 1) != Some(Kind::Punct(b','));
    let mut at = first;
    while stands && at > caller.open {
        at -= 1;
        match fragment.kind(at) {
            Some(Kind::Punct(b';' | b'{' | b'}')) => return inside,
            Some(Kind::Punct(b')' | b']')) => match fragment.mate(at).filter(|open| *open < at) {
                // What follows an `if constexpr (…)` is evaluated as ever.
                Some(open) if fragment.kind(open - 1) == Some(Kind::Constexpr) && fragment.kind(open - 2) == Some(Kind::If) => {
                    return inside;
                }
                Some(open) => at = open,
                None => return false,
            },
            // Between parentheses a comma parts arguments; between angles, what has to be a constant.
            Some(Kind::Punct(b'(')) => inside = true,
            Some(Kind::Constexpr | Kind::Case | Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd | Kind::Punct(b'[')) => return false,
            _ => match fragment.text(source, at) {
                b"static_assert" | b"sizeof" | b"decltype" | b"noexcept" | b"alignof" | b"alignas" | b"typeid" | b"requires"
                | b"static" => {
                    return false;
                }
                _ => {}
            },
        }
    }
    false
}
