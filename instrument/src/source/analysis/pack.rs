//! Packs of templates: what is written once in front of `...` is compiled once for each element.

use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::token::Kind;
use std::ops::Range;

/// The tokens of the range that stand for as many copies as a pack has elements: `f(args)...`, `(f(args), ...)`, `(... + f(args))`.
pub(crate) fn repeated(source: &[u8], fragment: &Fragment, range: Range<usize>) -> Vec<Range<usize>> {
    let is_dots = |at: &usize| fragment.kind(*at) == Some(Kind::Op) && fragment.text(source, *at) == b"...";
    let patterns = range.clone().filter(is_dots).flat_map(|dots| [in_front(fragment, dots, &range), behind(fragment, dots)]);
    patterns.flatten().filter(|pattern| !pattern.is_empty()).collect()
}

/// The operand of a fold whose operator stands on both sides of `...`, or behind it.
fn behind(fragment: &Fragment, dots: usize) -> Option<Range<usize>> {
    let is_end = |at: usize| matches!(fragment.kind(at), None | Some(Kind::Punct(b')' | b']' | b'}' | b';')));
    // A comma behind an expansion only divides arguments.
    let is_divided = !dots.checked_sub(1).is_some_and(|before| fragment.is(before, b',') || fragment.is(before, b'('));
    let is_operator = match fragment.kind(dots + 1) {
        Some(Kind::Op | Kind::OpAssign) => true,
        Some(Kind::Punct(b',')) => !is_divided,
        Some(Kind::Punct(byte)) => b"+-*/%&|^".contains(&byte),
        _ => false,
    };
    let mut end = dots + 2;
    while is_operator && !is_end(end) {
        end = fragment.mate(end).filter(|mate| *mate > end).unwrap_or(end) + 1;
    }
    is_operator.then_some(dots + 2..end)
}

fn in_front(fragment: &Fragment, dots: usize, range: &Range<usize>) -> Option<Range<usize>> {
    let before = dots.checked_sub(1).filter(|before| *before >= range.start && !fragment.is(*before, b'('))?;
    let is_operand = matches!(fragment.kind(before), Some(Kind::Ident | Kind::Number | Kind::Punct(b')' | b']' | b'}' | b'>')));
    let end = if is_operand { dots } else { before };
    let mut start = end;
    while let Some(before) = start.checked_sub(1).filter(|before| *before > range.start) {
        start = match fragment.kind(before) {
            Some(Kind::Punct(b')' | b']' | b'}')) => fragment.mate(before).filter(|open| *open < before)?,
            Some(Kind::Punct(b'(' | b'[' | b'{' | b',' | b';')) => break,
            _ => before,
        };
    }
    Some(start..end)
}
