//! Whether one run of a function may make more than one of some calls.

use crate::source::analysis::call_graph::Call;
use crate::source::analysis::pack;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::token::Kind;
use std::collections::BTreeSet;
use std::ops::Range;

/// Most calls that are told apart.
const MOST_CALLS: usize = 16;

/// Whether two of the calls may be made, or one of them twice: in a loop, in a lambda, or for each element of a pack.
pub(crate) fn may_make_two(source: &[u8], fragment: &Fragment, function: &Function, calls: &[Call]) -> bool {
    let places: BTreeSet<usize> = calls.iter().map(|call| call.at).filter(|at| (function.open..function.close).contains(at)).collect();
    let places: Vec<usize> = places.into_iter().collect();
    if places.is_empty() {
        return false;
    }
    let body = function.open + 1..function.close;
    let mut repeated = pack::repeated(source, fragment, body.clone());
    repeated.extend(body.clone().filter_map(|at| loop_at(fragment, at)));
    repeated.extend(body.filter(|at| fragment.captures_of(*at).is_some()).map(|open| open..fragment.mate(open).unwrap_or(open)));
    if places.len() > MOST_CALLS || places.iter().any(|at| repeated.iter().any(|range| range.contains(at))) {
        return true;
    }
    let mut pairs = places.iter().enumerate().flat_map(|(index, first)| places[index + 1..].iter().map(move |second| (*first, *second)));
    pairs.any(|(first, second)| !excludes(fragment, function, first, second))
}

/// What may repeat by the keyword at the token.
fn loop_at(fragment: &Fragment, at: usize) -> Option<Range<usize>> {
    let statement = |first: usize| {
        if fragment.is(first, b'{') { fragment.mate(first).unwrap_or(fragment.len()) } else { end_of_statement(fragment, first) }
    };
    match fragment.kind(at)? {
        Kind::For | Kind::While => Some(at..statement(fragment.mate(at + 1).unwrap_or(at) + 1)),
        Kind::Do => Some(at..statement(at + 1)),
        Kind::Goto => Some(0..fragment.len()),
        _ => None,
    }
}

/// Whether a run that makes the first call can't come to the second one: it stands in the other arm of an `if`, or a `return` is in between.
fn excludes(fragment: &Fragment, function: &Function, first: usize, second: usize) -> bool {
    let mut at = first;
    loop {
        // To the end of the statement, or of the block around it.
        let end = end_of_statement(fragment, at).min(function.close);
        if end >= second {
            return false;
        }
        let start = start_of_statement(fragment, at);
        if (start..at).any(|token| fragment.kind(token) == Some(Kind::Return)) || is_in_other_arm(fragment, end, second) {
            return true;
        }
        let block = fragment.opener(at).filter(|open| *open > function.open);
        let Some((open, close)) = block.and_then(|open| Some((open, fragment.mate(open)?))).filter(|(_, close)| *close < second) else {
            return false;
        };
        if returns(fragment, end, close) || is_in_other_arm(fragment, close, second) {
            return true;
        }
        at = open;
    }
}

/// Whether an `else` follows the statement that ends there, and the token stands in its arm or in one that is chained to it.
fn is_in_other_arm(fragment: &Fragment, end: usize, second: usize) -> bool {
    let mut at = end + 1;
    while fragment.kind(at) == Some(Kind::Else) {
        let mut arm = at + 1;
        while matches!(fragment.kind(arm), Some(Kind::If | Kind::Constexpr)) {
            arm += 1;
        }
        if fragment.is(arm, b'(') {
            arm = fragment.mate(arm).unwrap_or(arm) + 1;
        }
        let close = if fragment.is(arm, b'{') { fragment.mate(arm).unwrap_or(arm) } else { end_of_statement(fragment, arm) };
        if (at..=close).contains(&second) {
            return true;
        }
        at = close + 1;
    }
    false
}

/// Whether a statement of the block between the tokens returns, whatever happens.
fn returns(fragment: &Fragment, from: usize, close: usize) -> bool {
    let mut at = from;
    while at < close {
        if fragment.kind(at) == Some(Kind::Return) && matches!(fragment.kind(at - 1), Some(Kind::Punct(b';' | b'}' | b'{'))) {
            return true;
        }
        at = fragment.mate(at).filter(|mate| *mate > at).unwrap_or(at) + 1;
    }
    false
}

/// The semicolon that ends the statement around the token, or the brace that ends its block.
fn end_of_statement(fragment: &Fragment, from: usize) -> usize {
    let mut at = from;
    while at < fragment.len() && !matches!(fragment.kind(at), Some(Kind::Punct(b';' | b'}'))) {
        at = fragment.mate(at).filter(|mate| *mate > at).unwrap_or(at) + 1;
    }
    at
}

/// The first token of the statement around the token.
fn start_of_statement(fragment: &Fragment, from: usize) -> usize {
    let is_before = |at: &usize| matches!(fragment.kind(*at), Some(Kind::Punct(b';' | b'{' | b'}') | Kind::Else));
    (0..from).rev().find(is_before).map_or(0, |at| at + 1)
}
