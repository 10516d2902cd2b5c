//! Cycles of the call graph that end: each call leads to something smaller.
//!
//! The call graph knows only names, and many functions of one name call one another: an iterator its inner iterator's, a template the instance before it. A
//! poll in each would be unrolled and inlined by the thousand.

use crate::source::analysis::branch;
use crate::source::analysis::call_graph::Call;
use crate::source::syntax::class::{self, MOST_HEAD, is_class};
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// Most tokens of a member's declaration that are read.
const MOST_DECLARATION: usize = 64;

/// Facts about a function on a cycle of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Descent {
    /// Nothing: it may reach itself.
    Unknown,
    /// Each call of the cycle is a call of a member of the caller's own object, if these have the types of values. An object ends somewhere.
    Parts(Vec<String>),
    /// Each call of the cycle names an instance of the template whose number is less, or more, by a constant. What is instantiated is finite, and
    /// none is met again.
    Instances,
    /// `Instances` or `Deduced`, but one run may make several of the calls: they multiply from level to level.
    Tree,
    /// Its type is deduced. Each call of the cycle stands in the first `return` that an instance has or in front of it,
    /// and never in a lambda. Such a function can't be called before that statement is compiled, so no cycle of calls
    /// is made of such functions alone: what looks like one calls overloads or other instances.
    Deduced,
    /// Each cycle that it lies on passes a call which an operand makes. If all of these operands and types are numbers, there is no such call.
    UnlessNumbers(Vec<String>),
}

impl Descent {
    /// Why no call of the function needs a poll.
    pub(crate) fn why_none(&self) -> Option<&'static str> {
        match self {
            Self::Deduced => {
                Some("its type is deduced before it calls itself: any cycle of calls passes through another function, which polls")
            }
            Self::Instances => Some("each call is of another instance, whose number is one less or one more: compilers end that"),
            Self::Parts(_) | Self::UnlessNumbers(_) | Self::Tree | Self::Unknown => None,
        }
    }
}

/// By which argument of a template a call leads from one instance to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    position: usize,
    /// `+` or `-`.
    sign: u8,
    /// Whether the template is a class whose function is called.
    of_class: bool,
}

/// Facts about each function that lies on a cycle.
pub(crate) fn of_cycles(
    source: &[u8],
    fragment: &Fragment,
    functions: &[&Function],
    macros: &Macros,
    cycles: &[BTreeMap<usize, Vec<Call>>],
) -> BTreeMap<usize, Descent> {
    let mut parts: BTreeMap<&[u8], bool> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for cycle in cycles {
        let calls = || cycle.iter().flat_map(|(caller, calls)| calls.iter().map(|call| (functions[*caller], call.at)));
        let mut objects: BTreeMap<usize, BTreeSet<&[u8]>> = BTreeMap::new();
        let all_parts = cycle.iter().all(|(caller, calls)| {
            calls.iter().all(|call| {
                let name = part(source, fragment, functions[*caller], macros, call.at);
                let name = name.filter(|name| *parts.entry(name).or_insert_with(|| is_member(source, fragment, name)));
                objects.entry(*caller).or_default().extend(name);
                name.is_some()
            })
        });
        // Calls that one run may make both multiply, level by level, though each leads down.
        let branches = |index: &usize| branch::may_make_two(source, fragment, functions[*index], &cycle[index]);
        let mut steps: BTreeSet<Option<Step>> = calls().map(|(caller, at)| step(source, fragment, macros, caller, at)).collect();
        let all_instances = steps.len() == 1 && steps.pop_first().flatten().is_some() && is_of_one_name(source, fragment, functions, cycle);
        // A pointer leads anywhere.
        let is_deduced = |index: &usize| {
            cycle[index].iter().all(|call| call.callee < functions.len()) && is_deduced(source, fragment, functions[*index], &cycle[index])
        };
        let deduced: BTreeSet<usize> = cycle.keys().copied().filter(is_deduced).collect();
        for index in cycle.keys() {
            let descent = if all_parts {
                let parts = objects.remove(index).unwrap_or_default();
                Descent::Parts(parts.into_iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
            } else if (all_instances || deduced.contains(index)) && branches(index) {
                Descent::Tree
            } else if all_instances {
                Descent::Instances
            } else if deduced.contains(index) {
                Descent::Deduced
            } else {
                Descent::Unknown
            };
            found.insert(*index, descent);
        }
    }
    found
}

/// The name of the object whose function is called at the token: `name.f(…)`, where the caller neither declares the name nor has arms that may.
fn part<'a>(source: &'a [u8], fragment: &Fragment, caller: &Function, macros: &Macros, at: usize) -> Option<&'a [u8]> {
    let object = at.checked_sub(2).filter(|object| *object > caller.open && fragment.is(at - 1, b'.'))?;
    let is_name = fragment.kind(object) == Some(Kind::Ident) && fragment.is(at + 1, b'(');
    let is_whole = !matches!(fragment.kind(object - 1), Some(Kind::Punct(b'.') | Kind::Arrow | Kind::Scope));
    let name = fragment.text(source, object);
    let is_open = |token: usize| matches!(fragment.kind(token), Some(Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd));
    // Wherever else the name stands, it must be used as the object that it is: a declaration has it behind a type.
    let is_declared = |token: usize| {
        fragment.text(source, token) == name
            && matches!(
                fragment.kind(token.saturating_sub(1)),
                Some(Kind::Ident | Kind::Keyword | Kind::Op | Kind::Punct(b'*' | b'&' | b'>' | b',' | b'['))
            )
            && !matches!(fragment.text(source, token.saturating_sub(1)), b"return" | b"&&" | b"||")
            && !fragment.is(token + 1, b'.')
    };
    let is_free = !macros.is_defined(name) && !(caller.head..caller.close).any(|token| is_open(token) || is_declared(token));
    (is_name && is_whole && is_free).then_some(name)
}

/// Whether the file declares the name as a class's member that is a value, and as nothing else.
fn is_member(source: &[u8], fragment: &Fragment, name: &[u8]) -> bool {
    let mut found = false;
    for at in 1..fragment.len() {
        if fragment.kind(at) != Some(Kind::Ident) || fragment.text(source, at) != name {
            continue;
        }
        let is_behind_type =
            matches!(fragment.kind(at - 1), Some(Kind::Ident | Kind::Keyword | Kind::Op | Kind::Punct(b'*' | b'&' | b'>')));
        if !is_behind_type || !matches!(fragment.kind(at + 1), Some(Kind::Punct(b';' | b'[' | b'{') | Kind::Assign)) {
            continue;
        }
        // A parameter, or an operand in an expression, is not one; a member of a class is declared between its braces.
        let Some(open) = fragment.opener(at) else { return false };
        if !is_class(source, fragment, open) {
            // A declaration in a function is local to it; those of the caller were checked before.
            if is_in_function(source, fragment, open) {
                continue;
            }
            return false;
        }
        let from = (open + 1..at)
            .rev()
            .take(MOST_DECLARATION)
            .take_while(|token| !matches!(fragment.kind(*token), Some(Kind::Punct(b';' | b'{' | b'}' | b':'))));
        let is_value = from.into_iter().all(|token| {
            !matches!(fragment.kind(token), Some(Kind::Punct(b'*' | b'&') | Kind::Op))
                && !matches!(fragment.text(source, token), b"static" | b"extern" | b"typedef" | b"using" | b"friend" | b"auto" | b"inline")
        });
        if !is_value {
            return false;
        }
        found = true;
    }
    found
}

/// Whether a brace opens, or stands in, a function's body.
fn is_in_function(source: &[u8], fragment: &Fragment, open: usize) -> bool {
    let mut brace = Some(open);
    while let Some(open) = brace.filter(|open| !is_class(source, fragment, *open)) {
        let mut head =
            (0..open).rev().take(MOST_HEAD).take_while(|at| !matches!(fragment.kind(*at), Some(Kind::Punct(b';' | b'{' | b'}'))));
        if head.any(|at| fragment.is(at, b')')) {
            return true;
        }
        brace = fragment.opener(open);
    }
    false
}

/// Which argument of the template that is called at the token counts, and which way: `f<R, N - 1>(…)`, where `N` is a parameter of the
/// caller's template; or `Unroll<N + 1>::f(…)`, where it is one of the caller's class.
fn step(source: &[u8], fragment: &Fragment, macros: &Macros, caller: &Function, at: usize) -> Option<Step> {
    let (list, of_class) = if fragment.is(at + 1, b'<') { (at + 1, None) } else { of_own_class(source, fragment, macros, caller, at)? };
    let head = of_class.unwrap_or(caller.head);
    let mut position = 0;
    // The list is read as far as it is a plain one.
    for token in list + 1..list + MOST_DECLARATION {
        let ends = |token: usize| matches!(fragment.kind(token), Some(Kind::Punct(b',' | b'>')));
        let starts = matches!(fragment.kind(token - 1), Some(Kind::Punct(b',' | b'<')));
        if let Some(Kind::Punct(sign @ (b'+' | b'-'))) = fragment.kind(token + 1)
            && starts
            && fragment.kind(token) == Some(Kind::Ident)
            && fragment.kind(token + 2) == Some(Kind::Number)
            && fragment.text(source, token + 2) == b"1"
            && ends(token + 3)
            && is_parameter(source, fragment, head, fragment.text(source, token), position)
        {
            return Some(Step { position, sign, of_class: of_class.is_some() });
        }
        match fragment.kind(token) {
            Some(Kind::Ident | Kind::Number | Kind::Scope | Kind::Keyword) => {}
            Some(Kind::Punct(b',')) => position += 1,
            _ => return None,
        }
    }
    None
}

/// A call at the token may name the caller's own class. If so: where the class's arguments begin, and where its head
/// begins. It must be the template itself, since the arguments of a special case stand in other places. It has no
/// bases, so what is called is a function of its own.
fn of_own_class(source: &[u8], fragment: &Fragment, macros: &Macros, caller: &Function, at: usize) -> Option<(usize, Option<usize>)> {
    let named = class::class_of_call(fragment, caller, at)?;
    let brace = fragment.opener(caller.head)?;
    let own = class::name_of(source, fragment, brace)?;
    let key = (0..brace).rev().take(MOST_HEAD).find(|token| fragment.text(source, *token) == own)?;
    let is_template_itself = key + 1 == brace || fragment.text(source, key + 1) == b"final";
    let is_same = fragment.text(source, named) == own && class::has_no_base(source, fragment, macros, own);
    (is_template_itself && is_same).then_some((named + 1, Some(key - 1)))
}

/// Whether the name is a number among the parameters of the template whose head is there, at that position: `template <class R, size_t N, class S>`.
fn is_parameter(source: &[u8], fragment: &Fragment, head: usize, name: &[u8], position: usize) -> bool {
    let mut start = (0..head).rev().take(MOST_HEAD).take_while(|at| !matches!(fragment.kind(*at), Some(Kind::Punct(b';' | b'{' | b'}'))));
    // A parameter may be a template, too.
    let is_outermost = |at: &usize| {
        fragment.text(source, *at) == b"template" && !matches!(fragment.kind(at.saturating_sub(1)), Some(Kind::Punct(b'<' | b',')))
    };
    let Some(template) = start.find(is_outermost) else { return false };
    let (mut at, mut depth, mut commas) = (template + 1, 0_u32, 0);
    while at < head {
        match fragment.kind(at) {
            Some(Kind::Punct(b'<')) => depth += 1,
            Some(Kind::Punct(b'>')) if depth == 1 => return false,
            Some(Kind::Punct(b'>')) => depth -= 1,
            // Parentheses have commas of their own.
            Some(Kind::Punct(b'(')) => return false,
            Some(Kind::Punct(b',')) if depth == 1 => commas += 1,
            Some(Kind::Ident) if depth == 1 && commas == position && fragment.text(source, at) == name => {
                return matches!(fragment.text(source, at - 1), b"int" | b"unsigned" | b"size_t" | b"long")
                    && matches!(fragment.kind(at + 1), Some(Kind::Assign | Kind::Punct(b',' | b'>')));
            }
            _ => {}
        }
        at += 1;
    }
    false
}

/// Whether all functions of a cycle have one name, so that each call is of an instance of these.
fn is_of_one_name(source: &[u8], fragment: &Fragment, functions: &[&Function], cycle: &BTreeMap<usize, Vec<Call>>) -> bool {
    let names: BTreeSet<Option<&[u8]>> = cycle.keys().map(|index| functions[*index].name.map(|name| fragment.text(source, name))).collect();
    names.len() == 1
}

/// Whether the function's type is deduced, and each of the calls is compiled before it is.
fn is_deduced(source: &[u8], fragment: &Fragment, function: &Function, calls: &[Call]) -> bool {
    let Some(name) = function.name else { return false };
    let is_auto = (function.head..name).any(|at| fragment.text(source, at) == b"auto");
    let has_type = (name..function.open).any(|at| fragment.kind(at) == Some(Kind::Arrow));
    if !is_auto || has_type || (function.open..function.close).any(|at| matches!(fragment.kind(at), Some(Kind::ArmIf))) {
        return false;
    }
    let calls: BTreeSet<usize> = calls.iter().map(|call| call.at).collect();
    // For each chain of `if constexpr` around the token: where its arm ends, whether an instance may have returned in front of it, and whether it may
    // have in an arm that is over.
    let mut chains: Vec<(usize, bool, bool)> = Vec::new();
    let mut returned = false;
    let mut at = function.open + 1;
    while at < function.close {
        if let Some((close, before, within)) = chains.last().copied()
            && close == at
        {
            chains.pop();
            let within = within || returned;
            if fragment.kind(at + 1) == Some(Kind::Else)
                && let Some(open) = if fragment.is(at + 2, b'{') { Some(at + 2) } else { constexpr_arm(fragment, at + 2) }
                && let Some(close) = fragment.mate(open)
            {
                chains.push((close, before, within));
                returned = before;
                at = open + 1;
                continue;
            }
            returned = before || within;
            at += 1;
            continue;
        }
        if let Some(open) = constexpr_arm(fragment, at)
            && let Some(close) = fragment.mate(open)
        {
            // The condition's calls are compiled, not run.
            chains.push((close, returned, false));
            at = open + 1;
            continue;
        }
        if let Some(end) = lambda_end(fragment, at) {
            // Its body is compiled where it is called, and its type is its own.
            if (at..end).any(|token| calls.contains(&token)) {
                return false;
            }
            at = end + 1;
            continue;
        }
        if fragment.kind(at) == Some(Kind::Return) {
            let end = statement_end(fragment, at).min(function.close);
            let of_lambda = |token: usize| (at..token).any(|from| lambda_end(fragment, from).is_some_and(|end| end > token));
            if calls.range(at..end).any(|token| returned || of_lambda(*token)) {
                return false;
            }
            returned = true;
            at = end + 1;
            continue;
        }
        if returned && calls.contains(&at) {
            return false;
        }
        at += 1;
    }
    true
}

/// The semicolon behind the statement that begins at the token.
fn statement_end(fragment: &Fragment, start: usize) -> usize {
    let mut at = start;
    while at < fragment.len() && !matches!(fragment.kind(at), Some(Kind::Punct(b';' | b'}'))) {
        at = fragment.mate(at).filter(|mate| *mate > at).unwrap_or(at) + 1;
    }
    at
}

/// The brace of the first arm of `if constexpr (…) {`.
fn constexpr_arm(fragment: &Fragment, at: usize) -> Option<usize> {
    let is_chain = fragment.kind(at) == Some(Kind::If) && fragment.kind(at + 1) == Some(Kind::Constexpr) && fragment.is(at + 2, b'(');
    let open = is_chain.then(|| fragment.mate(at + 2)).flatten()? + 1;
    fragment.is(open, b'{').then_some(open)
}

/// The brace that ends the lambda which begins at the token: `[…] (…) … {…}`.
fn lambda_end(fragment: &Fragment, at: usize) -> Option<usize> {
    let is_introducer = fragment.is(at, b'[')
        && !matches!(at.checked_sub(1).and_then(|before| fragment.kind(before)), Some(Kind::Ident | Kind::Punct(b')' | b']' | b'[')));
    let mut token = is_introducer.then(|| fragment.mate(at)).flatten()? + 1;
    for _ in 0..MOST_DECLARATION {
        match fragment.kind(token)? {
            Kind::Punct(b'(') => token = fragment.mate(token)?,
            Kind::Punct(b'{') => return fragment.mate(token),
            Kind::Punct(b';' | b')' | b',' | b'}') => return None,
            _ => {}
        }
        token += 1;
    }
    None
}
