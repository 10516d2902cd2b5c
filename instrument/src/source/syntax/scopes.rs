//! Which function, lambda or local method a token stands in.

use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::statement::Body;
use std::ops::Range;

/// The innermost scope of each token of the range. Scopes stand in the order of their braces.
pub(crate) fn innermost_scopes(fragment: &Fragment, body: &Body, range: Range<usize>) -> Vec<usize> {
    let mut open: Vec<usize> = Vec::new();
    let mut next = 1;
    let mut innermost = Vec::with_capacity(range.len());
    for at in range {
        while open.last().is_some_and(|scope| fragment.mate(body.scopes[*scope].open).is_none_or(|close| at > close)) {
            open.pop();
        }
        while body.scopes.get(next).is_some_and(|scope| scope.open <= at) {
            open.push(next);
            next += 1;
        }
        innermost.push(open.last().copied().unwrap_or(0));
    }
    innermost
}

/// The innermost scope that holds a token. Scopes stand in the order of their braces.
pub(crate) fn innermost_scope(fragment: &Fragment, body: &Body, token: usize) -> usize {
    let mut index = body.scopes.partition_point(|scope| scope.open <= token).saturating_sub(1);
    while index > 0 && fragment.mate(body.scopes[index].open).is_none_or(|close| token > close) {
        index = body.scopes[index].outer.unwrap_or(0);
    }
    index
}
