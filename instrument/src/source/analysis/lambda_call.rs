//! Lambdas that may lead back to themselves: what they call is a parameter of their own, or held by a variable whose type the text does not tell.

use crate::source::analysis::call_graph;
use crate::source::analysis::implicit_call::Context;
use crate::source::syntax::declaration;
use crate::source::syntax::function::Function;
use crate::source::syntax::token::Kind;
use std::collections::BTreeSet;

/// Most lambdas around a call whose parameters are looked at.
const MOST_AROUND: usize = 16;

/// A lambda around a token.
#[derive(Debug, Clone, Copy)]
struct Around {
    captures: usize,
    open: usize,
    close: usize,
}

/// The braces of such lambdas' bodies.
pub(crate) fn recursive(context: Context) -> BTreeSet<usize> {
    let Context { fragment, functions, .. } = context;
    let mut found = BTreeSet::new();
    let mut around: Vec<Around> = Vec::new();
    let mut heads: Vec<&&Function> = functions.iter().collect();
    heads.sort_by_key(|function| function.open);
    for at in 0..fragment.len() {
        while around.last().is_some_and(|lambda| lambda.close <= at) {
            around.pop();
        }
        if fragment.is(at, b'{')
            && let (Some(captures), Some(close)) = (fragment.captures_of(at), fragment.mate(at))
        {
            around.push(Around { captures, open: at, close });
        }
        if fragment.is(at, b'(') && at > 0 && !around.is_empty() {
            let before = heads.partition_point(|function| function.open < around[0].captures).checked_sub(1);
            let function = before.map(|index| *heads[index]).filter(|function| function.close > at);
            found.extend(led_back_to(context, &around, function, at));
        }
    }
    found
}

/// The lambda that a call may lead back to, if its parentheses open there.
fn led_back_to(context: Context, around: &[Around], function: Option<&Function>, open: usize) -> Option<usize> {
    let Context { source, fragment, macros, types, operators, .. } = context;
    let innermost = around.last()?.open;
    let name = open - 1;
    let text = fragment.text(source, name);
    match fragment.kind(name)? {
        Kind::Punct(b']') => return (!fragment.ends_captures(name)).then_some(innermost),
        Kind::Punct(b')') => return fragment.mate(name).filter(|first| fragment.is(first + 1, b'*')).map(|_| innermost),
        Kind::Ident => {}
        _ => return None,
    }
    let is_selected = matches!(fragment.kind(name.wrapping_sub(1)), Some(Kind::Punct(b'.') | Kind::Arrow | Kind::Scope));
    if is_selected || operators.names.contains(text) || macros.is_defined(text) || declaration::is_declared(source, fragment, name) {
        return None;
    }
    let of = types.of_variable(text)?;
    let own = around.iter().rev().take(MOST_AROUND).find(|lambda| types.is_declared_in(text, lambda.captures..lambda.open));
    if let Some(lambda) = own {
        return Some(lambda.open);
    }
    // A parameter of the function around has a type that was there before the lambda's own.
    let list = function.and_then(|function| call_graph::list(fragment, function));
    if of.any && list.is_some_and(|(from, to)| types.is_declared_in(text, from..to)) {
        return None;
    }
    let declared = types.declared_in(text, 0..name).last();
    let is_lambda = declared.is_some_and(|place| fragment.kind(place + 1) == Some(Kind::Assign) && fragment.is(place + 2, b'['));
    (!is_lambda && (of.foreign || of.any)).then_some(innermost)
}
