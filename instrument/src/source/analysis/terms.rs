//! Cycles of calls between templates that hand on smaller and smaller types: a tuple's elements, what is left of a list.
//!
//! The size of a type is how many types its name is made of. Each function of such a cycle takes parameters whose types are deduced from its arguments and are just
//! these. Where all arguments of a call are together smaller than all parameters of its caller, the call leads down, and no way down is endless; at each other call
//! there is a poll. The compiler, which knows the types, decides which is which.

use crate::source::analysis::call_graph::{self, Call};
use crate::source::syntax::class::MOST_HEAD;
use crate::source::syntax::declaration::is_declared;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Most tokens of a list of arguments that is said again.
const MOST_ARGUMENTS: usize = 48;

/// A call that hands on types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Handed {
    /// The first token of the call, its qualifiers among them, and its closing parenthesis.
    pub(crate) first: usize,
    pub(crate) last: usize,
    /// The types of the caller's parameters.
    pub(crate) types: Vec<String>,
    /// The call's arguments.
    pub(crate) arguments: Vec<String>,
}

/// A function template whose parameters' types are its own parameters.
struct Template<'a> {
    /// All parameters of the template, in their order.
    parameters: Vec<&'a [u8]>,
    /// The types of the function's parameters.
    types: Vec<&'a [u8]>,
}

/// The calls of the functions of a cycle that are of this kind. All others have to ask where they begin (or are bounded by the stack, where a `constexpr` function of
/// one return has no room for that); then no cycle is without a poll, since one that passes through none of them goes down at each call.
pub(crate) fn of_cycle(
    source: &[u8],
    fragment: &Fragment,
    functions: &[&Function],
    macros: &Macros,
    cycle: &BTreeMap<usize, Vec<Call>>,
) -> BTreeMap<usize, Vec<Handed>> {
    let templates = cycle.keys().filter_map(|index| Some((*index, template(source, fragment, functions[*index], macros)?)));
    let mut templates: BTreeMap<usize, Template> = templates.collect();
    loop {
        let handed = |caller: &usize| {
            let mut found: BTreeMap<usize, Handed> = BTreeMap::new();
            for call in &cycle[caller] {
                // Whatever else the name stands for asks where it begins.
                let Some(callee) = templates.get(&call.callee) else { continue };
                if fragment.text(source, call.at) != fragment.text(source, functions[call.callee].name?) {
                    return None;
                }
                let read = read(source, fragment, call.at, callee)?;
                if read.arguments.len() != callee.types.len() {
                    return None;
                }
                let types = templates[caller].types.iter().map(|type_| String::from_utf8_lossy(type_).into_owned()).collect();
                found.insert(call.at, Handed { types, ..read });
            }
            Some(found.into_values().collect::<Vec<_>>())
        };
        let found: BTreeMap<usize, Option<Vec<Handed>>> = templates.keys().map(|caller| (*caller, handed(caller))).collect();
        if found.values().all(Option::is_some) {
            return found.into_iter().filter_map(|(caller, calls)| Some((caller, calls?))).collect();
        }
        templates.retain(|caller, _| found[caller].is_some());
    }
}

/// Reads a function template, each of whose parameters has the type of one of the template's, which nothing in its body hides.
fn template<'a>(source: &'a [u8], fragment: &Fragment, function: &Function, macros: &Macros) -> Option<Template<'a>> {
    let text = |at: usize| fragment.text(source, at);
    let mut head =
        (0..function.head).rev().take(MOST_HEAD).take_while(|at| !matches!(fragment.kind(*at), Some(Kind::Punct(b';' | b'{' | b'}'))));
    let start = head.find(|at| text(*at) == b"template")? + 1;
    let mut parameters = Vec::new();
    let mut types_of_template = BTreeSet::new();
    let (mut depth, mut end) = (0u32, start);
    for at in start..function.head {
        match fragment.kind(at)? {
            Kind::Punct(b'<') => depth += 1,
            Kind::Punct(b'>') => depth = depth.checked_sub(1)?,
            // What it is called stands before its default, the end of its declaration, or the list's.
            Kind::Ident if depth == 1 && matches!(fragment.kind(at + 1), Some(Kind::Assign | Kind::Punct(b',' | b'>'))) => {
                let is_named = !matches!(fragment.kind(at - 1), Some(Kind::Assign | Kind::Scope | Kind::Punct(b'<' | b',')));
                if is_named {
                    parameters.push(text(at));
                    if matches!(text(at - 1), b"class" | b"typename") {
                        types_of_template.insert(text(at));
                    }
                }
            }
            Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd => return None,
            _ => {}
        }
        if depth == 0 {
            end = at;
            break;
        }
    }
    // A specialisation or a member of a template would have another list.
    if end == start || (end + 1..function.head).any(|at| text(at) == b"template") {
        return None;
    }
    let (open, close) = call_graph::list(fragment, function)?;
    let mut given = Vec::new();
    for parameter in split(fragment, open, close)? {
        let value = parameter.clone().find(|at| fragment.kind(*at) == Some(Kind::Assign)).unwrap_or(parameter.end);
        let is_noise = |at: &usize| {
            matches!(fragment.kind(*at), Some(Kind::Punct(b'&' | b'[' | b']'))) || matches!(text(*at), b"&&" | b"const" | b"maybe_unused")
        };
        let words: Vec<usize> = (parameter.start..value).filter(|at| !is_noise(at)).collect();
        let (type_, name) = match words[..] {
            [type_] => (type_, None),
            [type_, name] => (type_, Some(name)),
            _ => return None,
        };
        let is_typed =
            fragment.kind(type_) == Some(Kind::Ident) && types_of_template.contains(text(type_)) && !macros.is_defined(text(type_));
        let brackets = (parameter.start..value).filter(|at| fragment.is(*at, b'[') && *at > type_).count();
        if !is_typed || brackets > 0 || name.is_some_and(|name| fragment.kind(name) != Some(Kind::Ident)) {
            return None;
        }
        given.push(text(type_));
    }
    let hides = |at: usize| {
        fragment.kind(at) == Some(Kind::Ident)
            && given.contains(&text(at))
            && (is_declared(source, fragment, at) || is_introduced(source, fragment, at))
    };
    let is_open = |at: usize| matches!(fragment.kind(at), Some(Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd));
    (!given.is_empty() && !(function.open..function.close).any(|at| hides(at) || is_open(at)))
        .then_some(Template { parameters, types: given })
}

/// Whether a name is made a type's at the token: `using T = …`, `typename T`.
fn is_introduced(source: &[u8], fragment: &Fragment, at: usize) -> bool {
    at > 0 && matches!(fragment.text(source, at - 1), b"class" | b"typename" | b"using" | b"struct" | b"auto")
}

/// Reads a call whose explicit template arguments, if any, are none of the types of the callee's parameters.
fn read(source: &[u8], fragment: &Fragment, at: usize, callee: &Template) -> Option<Handed> {
    let mut open = at + 1;
    if fragment.is(open, b'<') {
        let mut given = 1;
        let mut depth = 0u32;
        loop {
            match fragment.kind(open)? {
                Kind::Punct(b'<') => depth += 1,
                Kind::Punct(b'>') => depth -= 1,
                Kind::Punct(b',') if depth == 1 => given += 1,
                Kind::Ident | Kind::Number | Kind::Scope | Kind::Punct(b',' | b'-' | b'+') => {}
                _ => return None,
            }
            open += 1;
            if depth == 0 {
                break;
            }
            if open > at + MOST_ARGUMENTS {
                return None;
            }
        }
        if callee.parameters.iter().take(given).any(|parameter| callee.types.contains(parameter)) {
            return None;
        }
    }
    let last = fragment.mate(open).filter(|_| fragment.is(open, b'('))?;
    let mut first = at;
    while first >= 2 && fragment.kind(first - 1) == Some(Kind::Scope) && fragment.kind(first - 2) == Some(Kind::Ident) {
        first -= 2;
    }
    // A member's call, a declaration, an address, or what a template takes.
    let before = fragment.kind(first.checked_sub(1)?);
    let stands = matches!(
        before,
        Some(
            Kind::Return
                | Kind::Assign
                | Kind::Punct(b'(' | b',' | b';' | b'{' | b'}' | b'+' | b'-' | b'*' | b'/' | b'?' | b':')
                | Kind::Op
        )
    );
    if !stands || last - open > MOST_ARGUMENTS {
        return None;
    }
    let arguments = split(fragment, open, last)?.into_iter().map(|range| argument(source, fragment, range)).collect::<Option<_>>()?;
    Some(Handed { first, last, types: Vec::new(), arguments })
}

/// The text of an argument that `decltype` can be asked of: no lambda, no list in braces that is no value, nothing of the preprocessor.
fn argument(source: &[u8], fragment: &Fragment, range: Range<usize>) -> Option<String> {
    let mut text = String::new();
    for at in range.clone() {
        match fragment.kind(at)? {
            Kind::Ident | Kind::Keyword | Kind::Number | Kind::Scope | Kind::Op => {}
            Kind::Punct(b'{') if at > range.start => {}
            Kind::Punct(b'(' | b')' | b'<' | b'>' | b',' | b'.' | b'+' | b'-' | b'*' | b'/' | b'}' | b'&' | b'!') => {}
            _ => return None,
        }
        let word = std::str::from_utf8(fragment.text(source, at)).ok()?;
        if matches!(word, "..." | "new" | "throw" | "delete") || word.contains('\'') {
            return None;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    (!text.is_empty()).then_some(text)
}

/// What stands between the commas of a list. Those between the arguments of a template are told from others by what such arguments are made of.
fn split(fragment: &Fragment, open: usize, close: usize) -> Option<Vec<Range<usize>>> {
    let mut found = Vec::new();
    let (mut from, mut at) = (open + 1, open + 1);
    while at < close {
        match fragment.kind(at)? {
            Kind::Punct(b'(' | b'[' | b'{') => at = fragment.mate(at)?,
            Kind::Punct(b'<') => {
                let plain = |token: usize| {
                    matches!(fragment.kind(token), Some(Kind::Ident | Kind::Number | Kind::Scope | Kind::Keyword | Kind::Punct(b',')))
                };
                let end = (at + 1..close).find(|token| !plain(*token))?;
                at = fragment.is(end, b'>').then_some(end)?;
            }
            Kind::Punct(b',') => {
                found.push(from..at);
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if from < close {
        found.push(from..close);
    }
    (!found.is_empty()).then_some(found)
}
