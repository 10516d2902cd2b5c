//! Where a poll can stand in a loop.
//!
//! Every iteration must pass the poll, whichever macros the body uses. A poll stands in front of the step of a `for`,
//! behind the opening brace of a body, or around a condition. Each iteration passes it, wherever the body ends. Only
//! the body of a range-`for` without braces is wrapped in braces, if it is one plain statement.

use crate::source::analysis::induction;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::statement::{Body, Loop, LoopKind, MacroUse};
use crate::source::syntax::token::Kind;
use std::ops::Range;

/// A place for a loop's poll, as offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In front of the step of a `for`.
    Step { at: usize, empty: bool },
    /// Behind the brace of the body.
    Brace { at: usize },
    /// Around the condition.
    Condition { open: usize, close: usize },
    /// Around the body.
    Wrap { open: usize, close: usize },
}

impl Place {
    /// Where it begins.
    pub(crate) fn at(&self) -> usize {
        match *self {
            Self::Step { at, .. } | Self::Brace { at } | Self::Condition { open: at, .. } | Self::Wrap { open: at, .. } => at,
        }
    }
}

/// Where the parts of a loop's header begin and end, as offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoopOffsets {
    pub(crate) kind: LoopKind,
    /// Whether no loop is around it.
    pub(crate) is_outermost: bool,
    pub(crate) keyword: Range<usize>,
    pub(crate) condition: Range<usize>,
    /// Where the step of a `for` begins, and whether it is empty.
    pub(crate) step: Option<(usize, bool)>,
    /// Where the `&&` behind the condition's relation stands, if more has to hold.
    pub(crate) rest: Option<usize>,
}

/// The parts of a loop's header, with the token of its `&&`.
pub(crate) fn offsets(fragment: &Fragment, loop_: &Loop, rest: Option<usize>) -> Option<LoopOffsets> {
    let (open, close) = loop_.header?;
    let token = |at: usize| fragment.tokens[at].range();
    let semicolons = if loop_.kind == LoopKind::For { induction::semicolons(fragment, open, close) } else { None };
    let (before, behind) = semicolons.unwrap_or((open, close));
    Some(LoopOffsets {
        kind: loop_.kind,
        is_outermost: loop_.outer.is_none(),
        keyword: token(loop_.keyword),
        condition: token(before).end..token(behind).start,
        step: semicolons.map(|_| (token(behind).end, behind + 1 == close)),
        rest: rest.map(|at| token(at).start),
    })
}

/// Where a loop's poll can stand so that every iteration passes it, whichever macros the body uses.
pub(crate) fn of_loop(source: &[u8], fragment: &Fragment, body: &Body, loop_: &Loop) -> Option<Place> {
    let (open, close) = loop_.header?;
    if splits_arms(fragment, open, close) {
        return None;
    }
    if loop_.kind == LoopKind::For
        && let Some((_, second)) = induction::semicolons(fragment, open, close)
    {
        return Some(Place::Step { at: fragment.tokens[second].end as usize, empty: second + 1 == close });
    }
    let behind = |at: usize| body.prefixes.partition_point(|(from, _)| *from <= at).checked_sub(1).map(|index| body.prefixes[index].1);
    let is_prefix = |at: usize| behind(at).filter(|to| at <= *to).map(|to| to + 1);
    let mut first = loop_.body;
    while let Some(behind) = is_prefix(first) {
        first = behind;
    }
    if fragment.is(first, b'{') {
        return Some(Place::Brace { at: fragment.behind_label_declarations(source, first) });
    }
    match loop_.kind {
        LoopKind::While | LoopKind::Do if loop_.kind == LoopKind::Do || !declares(fragment, open, close) => {
            Some(Place::Condition { open: fragment.tokens[open].end as usize, close: fragment.tokens[close].start as usize })
        }
        LoopKind::RangeFor | LoopKind::For if is_plain_statement(fragment, &body.macro_uses, loop_.body, loop_.body_end) => {
            let end = loop_.body_end?;
            Some(Place::Wrap { open: fragment.tokens[close].end as usize, close: fragment.tokens[end].end as usize })
        }
        _ => None,
    }
}

/// Whether the condition of a `while` declares a variable: it begins with a type, and an initial value follows.
pub(crate) fn declares(fragment: &Fragment, open: usize, close: usize) -> bool {
    let mut at = open + 1;
    let mut words = 0;
    while at < close {
        match fragment.tokens[at].kind {
            Kind::Ident | Kind::Keyword => words += 1,
            Kind::Assign | Kind::Punct(b'{') => return words > 1,
            Kind::Scope | Kind::Punct(b'*' | b'&' | b'<' | b'>' | b',') => {}
            Kind::Punct(b'(' | b'[') => at = fragment.mate(at).unwrap_or(at),
            _ => return false,
        }
        at += 1;
    }
    false
}

/// One statement that ends with its own semicolon, so that braces can be put around it: nothing in it may be a macro that brings the
/// semicolon along.
pub(crate) fn is_plain_statement(fragment: &Fragment, macro_uses: &[MacroUse], from: usize, to: Option<usize>) -> bool {
    let Some(to) = to else { return false };
    let arms = (from..=to).any(|at| matches!(fragment.kind(at), Some(Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd)));
    let uses_macro = macro_uses.iter().any(|use_| (from..=to).contains(&use_.name));
    !arms && !uses_macro && (fragment.is(to, b';') || fragment.is(to, b'}'))
}

/// Whether an arm of an `#if` begins between the tokens and ends outside, so that the text holds several headers in one.
fn splits_arms(fragment: &Fragment, from: usize, to: usize) -> bool {
    let mut depth = 0_usize;
    for token in &fragment.tokens[from..=to] {
        match token.kind {
            Kind::ArmIf => depth += 1,
            Kind::ArmElse | Kind::ArmEnd if depth == 0 => return true,
            Kind::ArmEnd => depth -= 1,
            _ => {}
        }
    }
    depth != 0
}

/// Whether the name behind a macro is declared there, so that the macro stands for a type: `VEC(float) x;`, not `EACH(i, n) f(i);`.
pub(crate) fn is_declarator(fragment: &Fragment, name: usize) -> bool {
    let mut after = name + 1;
    let is_array = fragment.is(after, b'[');
    while fragment.is(after, b'[') {
        after = fragment.mate(after).unwrap_or(after) + 1;
    }
    match fragment.kind(after) {
        Some(Kind::Punct(b';' | b',' | b'{') | Kind::Ident) => true,
        Some(Kind::Assign) => is_array && fragment.is(after + 1, b'{'),
        _ => false,
    }
}
