//! Loops that provably end soon, read from their tokens: `for (int i = 0; i < 32; ++i)` whose body leaves `i` alone.
//!
//! The analysis sees only the text in front of it, which may be a mutant's: a step of zero or of the wrong sign, a counter too narrow
//! for its bound, a comparison that is not what it seems, and the loop is not bounded. The body is [`crate::read_only`]'s.

use crate::fragment::Fragment;
use crate::macros::{Integer, integer};
use crate::read_only::{self, Context};
use crate::statement::{Loop, LoopKind};
use crate::token::Kind;

/// Most trips of a loop that may be left alone.
const MOST_TRIPS: i64 = 4096;

/// How often the loop's body runs at most, if that is a small constant.
pub(crate) fn trips(context: &Context, loop_: &Loop) -> Option<u64> {
    let (source, fragment) = (context.source, context.fragment);
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
    let signed = is_wide_integer(context, open + 1, assign - 1)?;
    let start = literal(context, assign + 1, first)?;
    // `i < 32`
    if text(first + 1) != counter {
        return None;
    }
    let relation = match text(first + 2) {
        b"<" => Relation::Below,
        b">" => Relation::Above,
        b"<=" => Relation::AtMost,
        b">=" => Relation::AtLeast,
        b"!=" => Relation::Not,
        _ => return None,
    };
    let bound = literal(context, first + 3, second)?;
    // A signed counter is compared as an unsigned one with an unsigned bound, and what an unsigned literal makes of its start is as odd.
    if signed && (start.unsigned || bound.unsigned) {
        return None;
    }
    let step = step(context, counter, second + 1, close)?;
    let trips = count(start.value, bound.value, step, &relation, signed)?;
    read_only::leaves_alone(context, counter, loop_).then_some(trips)
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
fn is_wide_integer(context: &Context, from: usize, to: usize) -> Option<bool> {
    let mut signed = true;
    let mut wide = false;
    for at in from..to {
        let text = context.fragment.text(context.source, at);
        if context.fragment.kind(at) == Some(Kind::Ident) && text != b"std" && !read_only::is_number_type(context.declarations, text) {
            return None;
        }
        match text {
            b"int" | b"long" | b"int32_t" | b"int64_t" | b"ptrdiff_t" => wide = true,
            b"unsigned" | b"uint" | b"uint32_t" | b"uint64_t" | b"size_t" => (wide, signed) = (true, false),
            b"std" | b"::" | b"signed" | b"register" => {}
            _ => return None,
        }
    }
    wide.then_some(signed)
}

/// An integer: a literal with a sign perhaps, or a macro of this file that stands for one. Any other name is looked up nowhere.
fn literal(context: &Context, from: usize, to: usize) -> Option<Integer> {
    let (source, fragment) = (context.source, context.fragment);
    let (negative, at) = if fragment.is(from, b'-') { (true, from + 1) } else { (false, from) };
    if to != at + 1 {
        return None;
    }
    let text = fragment.text(source, at);
    let Integer { value, unsigned } = match fragment.kind(at)? {
        Kind::Number => integer(text)?,
        Kind::Ident => context.macros.constant(text, fragment.tokens[at].start as usize)?,
        _ => return None,
    };
    // The negative of an unsigned number is a huge one.
    match (negative, unsigned) {
        (true, true) => None,
        (true, false) => Some(Integer { value: -value, unsigned }),
        (false, _) => Some(Integer { value, unsigned }),
    }
}

/// `++i`, `i++`, `i += 4` and their mirror images.
fn step(context: &Context, counter: &[u8], from: usize, to: usize) -> Option<i64> {
    let text = |index: usize| context.fragment.text(context.source, index);
    let step = match to.checked_sub(from)? {
        2 => match (text(from), text(from + 1)) {
            (b"++", name) | (name, b"++") if name == counter => 1,
            (b"--", name) | (name, b"--") if name == counter => -1,
            _ => return None,
        },
        3 | 4 if text(from) == counter => {
            let amount = literal(context, from + 2, to)?.value;
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
