//! The edges of the call graph that no name makes.
//!
//! Behind the functions and the nodes of pointers and overloads stand further nodes: what variables hold that are called, all classes, and each class.

use crate::source::analysis::call_graph::Call;
use crate::source::analysis::declared_type::{Type, Types};
use crate::source::analysis::implicit_call::{Context, Implicit, ImplicitCall, Reader};
use crate::source::analysis::lambda_call;
use crate::source::analysis::operators::Operators;
use crate::source::syntax::declaration::is_declared;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// A call that no name makes; operands that make it none if all are numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ImplicitEdge {
    pub(crate) call: Call,
    pub(crate) unless_numbers: Option<Vec<String>>,
}

/// The edges of all nodes, and the braces of lambdas that may lead back to themselves.
pub(crate) fn all<'a>(
    source: &'a [u8],
    fragment: &Fragment,
    functions: &[&Function],
    macros: &Macros<'a>,
    mut types: Types<'a>,
    by_name: &BTreeMap<&[u8], Vec<usize>>,
    named: &[Vec<Call>],
) -> (Vec<Vec<ImplicitEdge>>, BTreeSet<usize>) {
    let operators = Operators::new(source, fragment, functions, macros, &types);
    let deduced = deduced(Context { source, fragment, macros, types: &types, operators: &operators, functions });
    for (name, of) in deduced {
        types.deduce(name, &of);
    }
    let context = Context { source, fragment, macros, types: &types, operators: &operators, functions };
    let (variables, any) = (named.len(), named.len() + 1);
    let classes: BTreeMap<&[u8], usize> = operators.classes.keys().enumerate().map(|(index, name)| (*name, any + 1 + index)).collect();
    let mut edges: Vec<Vec<ImplicitEdge>> = vec![Vec::new(); any + 1 + classes.len()];
    let plain = |callee: usize, at: usize| ImplicitEdge { call: Call { callee, at }, unless_numbers: None };
    for (index, function) in functions.iter().enumerate() {
        let mut found = BTreeSet::new();
        for ImplicitCall { at, calls, unless_numbers } in Reader::new(context, Some(function)).of_function(function) {
            let callees = match calls {
                Implicit::Functions(callees) => callees,
                Implicit::Class(name) => classes.get(name).copied().into_iter().collect(),
                Implicit::AnyClass => vec![any],
                Implicit::Variable => vec![variables],
            };
            found.extend(
                callees.into_iter().map(|callee| ImplicitEdge { call: Call { callee, at }, unless_numbers: unless_numbers.clone() }),
            );
        }
        edges[index] = found.into_iter().collect();
    }
    // A variable may hold an object, or a lambda: then it makes the calls that stand in the lambda.
    let mut held: BTreeSet<usize> = operators.call_operators().collect();
    held.extend((0..functions.len()).filter(|index| functions[*index].name.is_none()));
    for (index, function) in functions.iter().enumerate() {
        let mut behind = function.open + 1;
        for open in function.open + 1..function.close {
            if open < behind || !fragment.is(open, b'{') || fragment.captures_of(open).is_none() {
                continue;
            }
            let range = open..fragment.mate(open).unwrap_or(open);
            behind = range.end;
            // Only one that is given another, or itself, can lead to what has called it.
            let front = fragment.captures_of(open).unwrap_or(open)..range.end;
            let is_template = fragment.is(front.start + 1, b'<');
            if !is_template && !front.into_iter().any(|at| fragment.text(source, at) == b"auto" && fragment.is_enclosed(at)) {
                continue;
            }
            held.extend(named[index].iter().filter(|call| range.contains(&call.at)).map(|call| call.callee));
            let implicit = edges[index].iter().filter(|edge| range.contains(&edge.call.at) && edge.call.callee != variables);
            held.extend(implicit.map(|edge| edge.call.callee));
        }
    }
    edges[variables] = held.into_iter().map(|callee| plain(callee, 0)).collect();
    edges[any] = classes.values().map(|class| plain(*class, 0)).collect();
    for (name, parts) in &operators.classes {
        let of_parts = parts.parts.iter().filter_map(|part| classes.get(part).copied());
        edges[classes[name]] = parts.functions.iter().copied().chain(of_parts).map(|callee| plain(callee, 0)).collect();
    }
    for (class, callee) in initialised(context, by_name) {
        edges[classes[class]].push(plain(callee, 0));
    }
    (edges, lambda_call::recursive(context))
}

/// Functions that initialise members where these are declared, each with the member's class.
fn initialised<'a>(context: Context<'a, '_>, by_name: &BTreeMap<&[u8], Vec<usize>>) -> Vec<(&'a [u8], usize)> {
    let Context { source, fragment, operators, .. } = context;
    let bodies: BTreeSet<usize> = context.functions.iter().map(|function| function.open).collect();
    let mut found = Vec::new();
    for (open, class) in operators.braces() {
        let mut at = open + 1;
        let close = fragment.mate(open).filter(|close| *close > open).unwrap_or(open);
        while at < close {
            // A body's calls are the function's own.
            if fragment.is(at, b'{') && bodies.contains(&at) {
                at = fragment.mate(at).unwrap_or(at);
            } else if fragment.kind(at) == Some(Kind::Ident)
                && matches!(fragment.kind(at + 1), Some(Kind::Punct(b'(' | b'<')))
                && !is_declared(source, fragment, at)
            {
                let callees = by_name.get(fragment.text(source, at)).into_iter().flatten();
                let is_other = |callee: &&usize| context.functions.get(**callee).is_none_or(|function| function.name != Some(at));
                found.extend(callees.filter(is_other).map(|callee| (class, *callee)));
            }
            at += 1;
        }
    }
    found
}

/// Names that are declared with `auto` and a value, each time: what these values are.
fn deduced<'a>(context: Context<'a, '_>) -> Vec<(&'a [u8], Type<'a>)> {
    let Context { source, fragment, .. } = context;
    let mut found: BTreeMap<&[u8], Option<Type>> = BTreeMap::new();
    for at in 1..fragment.len() {
        if fragment.kind(at) != Some(Kind::Ident) || !is_declared(source, fragment, at) {
            continue;
        }
        let name = fragment.text(source, at);
        if context.types.of_variable(name).is_none_or(|of| !of.any) {
            continue;
        }
        let is_auto = (at.saturating_sub(3)..at).any(|token| fragment.text(source, token) == b"auto");
        // A lambda is no number, and its text is read once.
        let value = (is_auto && fragment.kind(at + 1) == Some(Kind::Assign) && !fragment.is(at + 2, b'[')).then(|| {
            let mut end = at + 2;
            while end < fragment.len() && !matches!(fragment.kind(end), Some(Kind::Punct(b';' | b',' | b')' | b'}' | b':'))) {
                end = fragment.mate(end).filter(|mate| *mate > end).unwrap_or(end) + 1;
            }
            Reader::new(context, None).type_of(at + 2, end)
        });
        let known = found.entry(name).or_insert_with(|| Some(Type::default()));
        match (known.as_mut(), value.filter(|value| !value.any)) {
            (Some(known), Some(value)) => known.join(&value),
            _ => *known = None,
        }
    }
    found.into_iter().filter_map(|(name, of)| Some((name, of?))).collect()
}
