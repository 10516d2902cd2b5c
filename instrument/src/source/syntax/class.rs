//! Classes as tokens show them: which braces open a class, and to which class the object of a call belongs, where the text tells it.

use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::Kind;

/// Most tokens in front of a brace that are read.
pub(crate) const MOST_HEAD: usize = 128;

/// Most tokens of a class's arguments in a call.
const MOST_ARGUMENTS: usize = 48;

/// Whether a brace opens a class: `template <…> struct name : bases {`.
pub(crate) fn is_class(source: &[u8], fragment: &Fragment, open: usize) -> bool {
    let head = (0..open).rev().take(MOST_HEAD).take_while(|at| !matches!(fragment.kind(*at), Some(Kind::Punct(b';' | b'{' | b'}'))));
    // A parameter of a template may be a `class`, and may have a default.
    let is_key = |at: &usize| {
        is_class_key(source, fragment, *at)
            && !at.checked_sub(1).is_some_and(|before| matches!(fragment.kind(before), Some(Kind::Punct(b'<' | b','))))
    };
    let Some(key) = head.into_iter().find(is_key) else {
        return false;
    };
    let is_enum = key > 0 && fragment.text(source, key - 1) == b"enum";
    !is_enum && !(key..open).any(|at| matches!(fragment.kind(at), Some(Kind::Punct(b'(') | Kind::Assign)))
}

/// The name of the class whose brace this is: `struct Name`, `template <…> class Name final : Bases`. A class with bases has functions of theirs, too, and
/// is not told.
pub(crate) fn name_of<'a>(source: &'a [u8], fragment: &Fragment, open: usize) -> Option<&'a [u8]> {
    if !is_class(source, fragment, open) {
        return None;
    }
    let head = (0..open).rev().take(MOST_HEAD).take_while(|at| !matches!(fragment.kind(*at), Some(Kind::Punct(b';' | b'{' | b'}' | b':'))));
    let keyword = head.into_iter().find(|at| is_class_key(source, fragment, *at))?;
    let is_alone = fragment.kind(keyword + 1) == Some(Kind::Ident) && (keyword + 1..open).all(|at| !fragment.is(at, b':'));
    is_alone.then(|| fragment.text(source, keyword + 1))
}

pub(crate) fn is_class_key(source: &[u8], fragment: &Fragment, at: usize) -> bool {
    matches!(fragment.text(source, at), b"struct" | b"class" | b"union")
}

/// The class whose function is called at the token, where text alone tells: `Alias(…).f(…)` within a class that declares `typedef Nested<…> Alias;` and
/// `struct Nested` itself. Names of a class hide those around it, so both mean what that class declares; that neither is declared a second time in the
/// file leaves no block, base or parameter that could hide them.
pub(crate) fn of_call<'a>(source: &'a [u8], fragment: &Fragment, macros: &Macros, body: usize, at: usize) -> Option<(usize, &'a [u8])> {
    let close = at.checked_sub(2).filter(|close| fragment.is(at - 1, b'.') && fragment.is(*close, b')'))?;
    let alias_at = fragment.mate(close)?.checked_sub(1)?;
    let is_plain = fragment.kind(alias_at) == Some(Kind::Ident)
        && !matches!(fragment.kind(alias_at - 1), Some(Kind::Punct(b'.' | b'>') | Kind::Arrow | Kind::Scope | Kind::Ident | Kind::Keyword));
    let alias = is_plain.then(|| fragment.text(source, alias_at))?;
    let class = fragment.opener(body).filter(|open| is_class(source, fragment, *open))?;
    let nested_at = alias_of(source, fragment, class, alias)?;
    let nested = fragment.text(source, nested_at);
    (!macros.is_defined(alias) && !macros.is_defined(nested) && is_nested(source, fragment, class, nested)).then_some((class, nested))
}

/// Where the class names what an alias stands for, if that is the alias's one declaration: `typedef Nested<…> Alias;`, `using Alias = Nested<…>;`.
fn alias_of(source: &[u8], fragment: &Fragment, class: usize, alias: &[u8]) -> Option<usize> {
    let mut found = None;
    for at in (1..fragment.len()).filter(|at| fragment.text(source, *at) == alias) {
        let nested = if fragment.text(source, at - 1) == b"using" && fragment.kind(at + 1) == Some(Kind::Assign) {
            at + 2
        } else if fragment.is(at + 1, b'(') && !matches!(fragment.kind(at - 1), Some(Kind::Ident | Kind::Keyword | Kind::Scope)) {
            // A use, which makes an object.
            continue;
        } else if fragment.kind(at + 1) == Some(Kind::Scope) && fragment.kind(at - 1) != Some(Kind::Scope) {
            // A use, of its member.
            continue;
        } else {
            let start =
                (0..at).rev().take(MOST_HEAD).find(|at| matches!(fragment.kind(*at), Some(Kind::Punct(b';' | b'{' | b'}' | b':'))))?;
            if fragment.text(source, start + 1) != b"typedef" || !fragment.is(at + 1, b';') {
                return None;
            }
            start + 2
        };
        let is_name =
            fragment.kind(nested) == Some(Kind::Ident) && matches!(fragment.kind(nested + 1), Some(Kind::Punct(b'<' | b';') | Kind::Ident));
        // Behind the template's arguments stands the alias, and no member of what they make.
        let ends = fragment.is(at - 1, b'>') || at - 1 == nested || fragment.text(source, at - 1) == b"using";
        let is_whole = (nested + 1..at).all(|at| fragment.kind(at) != Some(Kind::Scope));
        let behind = (at..).take(MOST_HEAD).take_while(|at| !fragment.is(*at, b';') && *at < fragment.len());
        let has_no_member = behind.into_iter().all(|at| fragment.kind(at) != Some(Kind::Scope));
        if found.is_some() || !is_name || !ends || !is_whole || !has_no_member || fragment.opener(at) != Some(class) {
            return None;
        }
        found = Some(nested);
    }
    found
}

/// Whether the class declares all classes of that name that the file has, and none of them has bases.
fn is_nested(source: &[u8], fragment: &Fragment, class: usize, nested: &[u8]) -> bool {
    let mut bodies = 0;
    for at in (1..fragment.len()).filter(|at| fragment.text(source, *at) == nested && is_class_key(source, fragment, *at - 1)) {
        let end = (at..fragment.len()).take(MOST_HEAD).find(|at| matches!(fragment.kind(*at), Some(Kind::Punct(b';' | b'{' | b':'))));
        let Some(end) = end else { return false };
        if fragment.is(end, b':') || fragment.opener(at) != Some(class) {
            return false;
        }
        bodies += usize::from(fragment.is(end, b'{'));
    }
    bodies > 0
}

/// Whether the function is a member of a class of that name. It is if it stands in the class, and may be if it is
/// defined outside of its class.
pub(crate) fn holds(source: &[u8], fragment: &Fragment, (class, nested): (usize, &[u8]), function: &Function) -> bool {
    is_outside(fragment, function)
        || fragment
            .opener(function.head)
            .is_some_and(|open| name_of(source, fragment, open) == Some(nested) && fragment.opener(open) == Some(class))
}

/// The same, wherever the class stands, whatever else its head says.
pub(crate) fn may_hold(source: &[u8], fragment: &Fragment, name: &[u8], function: &Function) -> bool {
    let Some(open) = fragment.opener(function.head) else { return is_outside(fragment, function) };
    let mut head = (0..open).rev().take(MOST_HEAD).take_while(|at| !matches!(fragment.kind(*at), Some(Kind::Punct(b';' | b'{' | b'}'))));
    is_outside(fragment, function) || head.any(|at| fragment.text(source, at) == name)
}

/// Whether the function is defined outside of its class, if it has one.
fn is_outside(fragment: &Fragment, function: &Function) -> bool {
    function.name.is_some_and(|name| fragment.kind(name - 1) == Some(Kind::Scope))
}

/// Whether all that the file says of the name is that it is a class without bases.
pub(crate) fn has_no_base(source: &[u8], fragment: &Fragment, macros: &Macros, name: &[u8]) -> bool {
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

/// The name of the class, with no scope in front, whose function is called at the token: `Class<…>::f`.
pub(crate) fn class_of_call(fragment: &Fragment, caller: &Function, at: usize) -> Option<usize> {
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
    (fragment.kind(first - 1) != Some(Kind::Scope)).then_some(first)
}
