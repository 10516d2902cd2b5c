//! Loops that provably end soon, read from their tokens: `for (int i = 0; i < 32; ++i)` whose body leaves `i` alone.
//!
//! The analysis sees only the text in front of it, which may be a mutant's: a step of zero or of the wrong sign, a counter too narrow
//! for its bound, a counter that the body may change in any way it can't see through, and the loop is not bounded.

use crate::fragment::Fragment;
use crate::macros::{Macros, integer};
use crate::statement::{Loop, LoopKind};
use crate::token::Kind;

/// Most trips of a loop that may be left alone.
const MOST_TRIPS: i64 = 4096;

/// How often the loop's body runs at most, if that is a small constant.
pub(crate) fn trips(source: &[u8], fragment: &Fragment, macros: &Macros, loop_: &Loop) -> Option<u64> {
    let (open, close) = loop_.header?;
    if loop_.kind != LoopKind::For {
        return None;
    }
    let (first, second) = semicolons(fragment, open, close)?;
    let text = |index: usize| fragment.text(source, index);
    // `int i = 0`
    let assign = (open + 1..first).find(|index| fragment.kind(*index) == Some(Kind::Assign))?;
    let counter = text(assign.checked_sub(1)?);
    if fragment.kind(assign - 1) != Some(Kind::Ident) || assign - 1 == open + 1 {
        return None;
    }
    let signed = is_wide_integer(source, fragment, open + 1, assign - 1)?;
    let start = literal(source, fragment, macros, assign + 1, first)?;
    // `i < 32`
    if text(first + 1) != counter {
        return None;
    }
    let (relation, bound_at) = match (text(first + 2), text(first + 3)) {
        (b"<", _) => (Relation::Below, first + 3),
        (b">", b"=") if fragment.kind(first + 2) == Some(Kind::Punct(b'>')) => (Relation::AtLeast, first + 4),
        (b">", _) => (Relation::Above, first + 3),
        (b"<=", _) => (Relation::AtMost, first + 3),
        (b">=", _) => (Relation::AtLeast, first + 3),
        (b"!=", _) => (Relation::Not, first + 3),
        _ => return None,
    };
    let bound = literal(source, fragment, macros, bound_at, second)?;
    let step = step(source, fragment, macros, counter, second + 1, close)?;
    let trips = count(start, bound, step, &relation, signed)?;
    (leaves_alone(source, fragment, macros, counter, loop_)).then_some(trips)
}

/// The two semicolons of a `for` header.
pub(crate) fn semicolons(fragment: &Fragment, open: usize, close: usize) -> Option<(usize, usize)> {
    let mut found = Vec::with_capacity(2);
    let mut at = open + 1;
    while at < close {
        match fragment.tokens[at].kind {
            Kind::Punct(b'(' | b'[' | b'{') => at = fragment.mate(at)?,
            Kind::Punct(b';') => found.push(at),
            // Two headers in one: neither is known to be the one that is compiled.
            Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd => return None,
            _ => {}
        }
        at += 1;
    }
    match found[..] {
        [first, second] => Some((first, second)),
        _ => None,
    }
}

enum Relation {
    Below,
    AtMost,
    Above,
    AtLeast,
    Not,
}

fn count(start: i64, bound: i64, step: i64, relation: &Relation, signed: bool) -> Option<u64> {
    // An unsigned counter below zero is a huge one.
    let lowest = if signed { -MOST_TRIPS } else { 0 };
    if start < lowest || bound < lowest {
        return None;
    }
    let (distance, step) = match relation {
        Relation::Below if step > 0 => (bound - start, step),
        Relation::AtMost if step > 0 => (bound - start + 1, step),
        // Going down, the last value before the end must not be below an unsigned counter's zero.
        Relation::Above if step < 0 && (signed || bound >= -step - 1) => (start - bound, -step),
        Relation::AtLeast if step < 0 && (signed || bound >= -step) => (start - bound + 1, -step),
        Relation::Not if (bound - start) % step == 0 && (bound - start) / step >= 0 => ((bound - start).abs(), step.abs()),
        _ => return None,
    };
    let trips = if distance <= 0 { 0 } else { (distance + step - 1) / step };
    (trips <= MOST_TRIPS).then_some(trips.unsigned_abs())
}

/// Whether the tokens name an integer type of at least 32 bits, and whether it is signed.
fn is_wide_integer(source: &[u8], fragment: &Fragment, from: usize, to: usize) -> Option<bool> {
    let mut signed = true;
    let mut wide = false;
    let mut at = from;
    while at < to {
        match fragment.text(source, at) {
            b"int" | b"long" | b"int32_t" | b"int64_t" | b"ptrdiff_t" => wide = true,
            b"unsigned" | b"uint" | b"uint32_t" | b"uint64_t" | b"size_t" => (wide, signed) = (true, false),
            b"std" | b"::" | b"signed" | b"register" | b"const" => {}
            _ => return None,
        }
        at += 1;
    }
    wide.then_some(signed)
}

/// An integer: a literal with a sign perhaps, or a macro of this file that stands for one. Any other name is looked up nowhere.
fn literal(source: &[u8], fragment: &Fragment, macros: &Macros, from: usize, to: usize) -> Option<i64> {
    let (negative, at) = if fragment.is(from, b'-') { (true, from + 1) } else { (false, from) };
    if to != at + 1 {
        return None;
    }
    let text = fragment.text(source, at);
    let value = match fragment.kind(at)? {
        Kind::Number => integer(std::str::from_utf8(text).ok()?)?,
        Kind::Ident => macros.constant(text)?,
        _ => return None,
    };
    Some(if negative { -value } else { value })
}

/// `++i`, `i++`, `i += 4` and their mirror images.
fn step(source: &[u8], fragment: &Fragment, macros: &Macros, counter: &[u8], from: usize, to: usize) -> Option<i64> {
    let text = |index: usize| fragment.text(source, index);
    let step = match to.checked_sub(from)? {
        2 => match (text(from), text(from + 1)) {
            (b"++", name) | (name, b"++") if name == counter => 1,
            (b"--", name) | (name, b"--") if name == counter => -1,
            _ => return None,
        },
        3 if text(from) == counter => {
            let amount = literal(source, fragment, macros, from + 2, to)?;
            match text(from + 1) {
                b"+=" => amount,
                b"-=" => -amount,
                _ => return None,
            }
        }
        _ => return None,
    };
    (step != 0).then_some(step)
}

/// Whether nothing in the body can change the counter. Any use that is not plainly a read counts as a change.
fn leaves_alone(source: &[u8], fragment: &Fragment, macros: &Macros, counter: &[u8], loop_: &Loop) -> bool {
    let Some(end) = loop_.body_end else { return false };
    let kind = |index: usize| fragment.kind(index);
    for at in loop_.body..=end {
        let Some(token) = fragment.tokens.get(at) else { return false };
        let text = &source[token.range()];
        match token.kind {
            Kind::Ident if text == counter => {
                let before = at.checked_sub(1).and_then(kind);
                let after = kind(at + 1);
                let written = matches!(after, Some(Kind::Assign | Kind::OpAssign | Kind::Step))
                    || matches!(before, Some(Kind::Step | Kind::Punct(b'&')))
                    // A reference may be bound to it.
                    || (matches!(before, Some(Kind::Assign)) && at >= 3 && (fragment.is(at - 3, b'&') || kind(at - 3) == Some(Kind::Op)))
                    || (matches!(before, Some(Kind::Punct(b'(' | b',' | b'{')))
                        && matches!(after, Some(Kind::Punct(b')' | b',' | b'}')))
                        && !is_passed_by_value(source, fragment, at));
                // `>>=` comes as `>`, `>=`.
                if written || (fragment.is(at + 1, b'>') && fragment.is(at + 2, b'>') && kind(at + 3) == Some(Kind::Assign)) {
                    return false;
                }
            }
            Kind::Ident => {
                // A macro may name the counter where we do not see it.
                let mentions = macros.bodies_of(text).any(|body| {
                    body.tokens
                        .iter()
                        .any(|inner| &source[inner.range()] == counter || matches!(inner.kind, Kind::For | Kind::While | Kind::Goto))
                });
                let is_unknown_macro =
                    fragment.is(at + 1, b'(') && !macros.is_defined(text) && text.len() > 2 && !text.iter().any(u8::is_ascii_lowercase);
                if mentions || is_unknown_macro {
                    return false;
                }
            }
            // A jump may come back without passing the counter's step.
            Kind::Goto | Kind::ArmIf => return false,
            _ => {}
        }
    }
    true
}

/// Whether the bare argument at `at` goes to a cast or to a function of CUDA's own, none of which takes a reference to an integer.
fn is_passed_by_value(source: &[u8], fragment: &Fragment, at: usize) -> bool {
    let mut depth = 0_usize;
    for index in (at.saturating_sub(64)..at).rev() {
        match fragment.tokens[index].kind {
            Kind::Punct(b')' | b']' | b'}') => depth += 1,
            Kind::Punct(b'(' | b'[' | b'{') if depth > 0 => depth -= 1,
            Kind::Punct(b'(') => {
                let Some(before) = fragment.before(index) else { return false };
                let name = fragment.text(source, before);
                return match fragment.tokens[before].kind {
                    Kind::Keyword => matches!(name, b"float" | b"double" | b"int" | b"unsigned" | b"long" | b"char" | b"short"),
                    Kind::Ident => name.starts_with(b"__") || matches!(name, b"min" | b"max" | b"size_t" | b"fmaf" | b"fma" | b"printf"),
                    _ => false,
                };
            }
            Kind::Punct(b'[' | b'{' | b';') => return false,
            _ => {}
        }
    }
    false
}
