//! Loops with a small constant trip count, read from their tokens: `for (int i = 0; i < 32; ++i)` whose body leaves `i` alone.
//!
//! Only the text counts, and it may be anything. Three things make the loop unbounded: a step of zero or of the wrong
//! sign, a counter too narrow for its bound, or a comparison that is not what it seems. [`super::purity`] judges the
//! body.

use crate::source::analysis::file_facts::FileFacts;
use crate::source::analysis::function_scope::FunctionScope;
use crate::source::analysis::induction::{self, Induction, Relation, Step};
use crate::source::analysis::purity;
use crate::source::syntax::declaration::{is_declared, is_further_number};
use crate::source::syntax::integer::{self, Integer};
use crate::source::syntax::statement::Loop;
use crate::source::syntax::token::Kind;
use std::ops::Range;

/// Most trips of a loop that may be left alone.
const MOST_TRIPS: i64 = 4096;

/// Most threads of a block along an axis, which no `blockDim` exceeds.
const MOST_THREADS: i64 = 1024;

/// Largest result of arithmetic with constants: no sum of two overflows.
const MOST_VALUE: i64 = 1 << 29;

/// How many variables are followed from one to another.
const DEPTH: usize = 3;

/// How often the loop's body runs at most, if that is a small constant.
pub(crate) fn trips(scope: &FunctionScope, loop_: &Loop) -> Option<u64> {
    let facts = scope.facts;
    let induction = induction::read(facts, loop_).filter(|induction| induction.rest.is_empty() && induction.in_body.is_empty())?;
    let type_ = wide_integer(facts, &induction.type_)?;
    let trips = match &induction.step {
        Step::Up => steady(facts, &induction, type_, 1),
        Step::Down => steady(facts, &induction, type_, -1),
        Step::Plus(amount) => steady(facts, &induction, type_, literal(facts, amount)?.value),
        Step::Minus(amount) => steady(facts, &induction, type_, -literal(facts, amount)?.value),
        Step::Divided(amount) => shrinking(scope, loop_, &induction, type_, literal(facts, amount)?.value),
        Step::Right(amount) => shrinking(scope, loop_, &induction, type_, power(literal(facts, amount)?.value)?),
        Step::Times(amount) => growing(scope, loop_, &induction, literal(facts, amount)?.value),
        Step::Left(amount) => growing(scope, loop_, &induction, power(literal(facts, amount)?.value)?),
    }?;
    (purity::leaves_alone(facts, induction.counter, loop_) && !purity::calls_the_unknown(facts, loop_)).then_some(trips)
}

/// `for (int i = 0; i < 32; i += 4)`.
fn steady(facts: &FileFacts, induction: &Induction, type_: WideInteger, step: i64) -> Option<u64> {
    let start = literal(facts, &induction.start)?;
    let bound = literal(facts, &induction.bound)?;
    // A signed counter is compared as an unsigned one with an unsigned bound, and what an unsigned literal makes of its start is as odd.
    if step == 0 || (type_.signed && (start.unsigned || bound.unsigned)) {
        return None;
    }
    count(start.value, bound.value, step, induction.relation, type_.signed)
}

/// `for (int half = anything; half > 0; half /= 2)`: division by two and more ends at zero wherever it starts. A shift does for what is not
/// negative, and where zero is only left, not passed, a negative number would stay what it is.
fn shrinking(scope: &FunctionScope, loop_: &Loop, induction: &Induction, type_: WideInteger, divisor: i64) -> Option<u64> {
    let facts = scope.facts;
    let bound = literal(facts, &induction.bound)?;
    let ends = match induction.relation {
        Relation::Above => bound.value >= 0,
        Relation::AtLeast => bound.value >= 1,
        Relation::Not => bound.value == 0 && !type_.signed,
        Relation::Below | Relation::AtMost => false,
    };
    // The proof does not follow the code of compilers for a signed division; known trips are unrolled before that.
    let is_followed = !type_.signed || matches!(induction.step, Step::Right(_)) || literal(facts, &induction.start).is_some();
    if divisor < 2 || !ends || !is_followed || (type_.signed && bound.unsigned) {
        return None;
    }
    let Some(mut value) = most(scope, loop_, &induction.start, DEPTH) else { return Some(type_.bits) };
    let mut trips = 0;
    while value > 0 {
        value /= divisor;
        trips += 1;
    }
    Some(trips)
}

/// `for (int stride = 1; stride < 256; stride *= 2)`. The last product does not overflow.
fn growing(scope: &FunctionScope, loop_: &Loop, induction: &Induction, factor: i64) -> Option<u64> {
    let mut value = literal(scope.facts, &induction.start)?.value;
    let bound = most(scope, loop_, &induction.bound, DEPTH)?;
    if value < 1 || factor < 2 || factor.checked_mul(bound.max(value))? > i64::from(i32::MAX) {
        return None;
    }
    let goes_on = |value: i64| match induction.relation {
        Relation::Below => value < bound,
        Relation::AtMost => value <= bound,
        Relation::Above | Relation::AtLeast | Relation::Not => false,
    };
    if !matches!(induction.relation, Relation::Below | Relation::AtMost) {
        return None;
    }
    let mut trips = 0;
    while goes_on(value) {
        value *= factor;
        trips += 1;
    }
    Some(trips)
}

fn power(shift: i64) -> Option<i64> {
    (1..=29).contains(&shift).then(|| 1 << shift)
}

/// The most that an expression can be: a literal, or the size of a block or warp, by a variable's name perhaps, divided by a literal perhaps.
fn most(scope: &FunctionScope, loop_: &Loop, range: &Range<usize>, depth: usize) -> Option<i64> {
    let facts = scope.facts;
    if let Some(literal) = literal(facts, range) {
        return Some(literal.value);
    }
    let text = |at: usize| facts.fragment.text(facts.source, at);
    let declared = |name: &[u8]| facts.declarations.declares(name) || facts.macros.is_defined(name);
    let (size, behind) = if range.len() >= 3 && text(range.start) == b"blockDim" && text(range.start + 1) == b"." && !declared(b"blockDim")
    {
        (MOST_THREADS, range.start + 3)
    } else if !range.is_empty() && text(range.start) == b"warpSize" && !declared(b"warpSize") {
        (32, range.start + 1)
    } else {
        let value = value_of(scope, loop_, range.clone().next()?)?;
        (most(scope, loop_, &value, depth.checked_sub(1)?)?, range.start + 1)
    };
    match range.end - behind {
        0 => Some(size),
        2 if text(behind) == b"/" => Some(size / literal(facts, &(behind + 1..range.end))?.value.max(1)),
        3 if text(behind) == b">" && text(behind + 1) == b">" => Some(size >> literal(facts, &(behind + 2..range.end))?.value.clamp(0, 31)),
        _ => None,
    }
}

/// The first value of the variable named at `at`, if it is an integer of the function's own that nothing else is ever assigned to.
fn value_of(scope: &FunctionScope, loop_: &Loop, at: usize) -> Option<Range<usize>> {
    let facts = scope.facts;
    let (fragment, source) = (facts.fragment, facts.source);
    let name = fragment.text(source, at);
    if fragment.kind(at) != Some(Kind::Ident) || facts.macros.is_defined(name) || !scope.is_private(name, loop_) {
        return None;
    }
    let is_number = |word: &[u8]| purity::is_number_type(facts.declarations, word);
    let mut found = None;
    for other in scope.range.clone().filter(|other| fragment.kind(*other) == Some(Kind::Ident) && fragment.text(source, *other) == name) {
        let before = other.checked_sub(1).and_then(|index| fragment.kind(index));
        if matches!(before, Some(Kind::Punct(b'.') | Kind::Arrow | Kind::Scope)) {
            continue;
        }
        let is_further = is_further_number(source, fragment, other, is_number);
        if is_declared(source, fragment, other) || is_further {
            let mut first = other;
            while first > scope.open + 1 && !matches!(fragment.kind(first - 1), Some(Kind::Punct(b';' | b'{' | b'}' | b'(' | b')'))) {
                first -= 1;
            }
            first += (first..other).take_while(|word| fragment.text(source, *word) == b"const").count();
            let words = (first..other)
                .take_while(|word| fragment.kind(*word) != Some(Kind::Punct(b',')) && is_number(fragment.text(source, *word)))
                .count();
            let is_whole = is_further || first + words == other;
            if found.is_some()
                || other < scope.open
                || !is_whole
                || !is_wide_integer(facts, &(first..first + words))
                || fragment.kind(other + 1) != Some(Kind::Assign)
            {
                return None;
            }
            let end = (other + 2..scope.range.end).find(|end| matches!(fragment.kind(*end), Some(Kind::Punct(b';' | b','))))?;
            found = Some(other + 2..end);
        } else if matches!(fragment.kind(other + 1), Some(Kind::Assign | Kind::OpAssign | Kind::Step)) || before == Some(Kind::Step) {
            return None;
        }
    }
    found
}

fn count(start: i64, bound: i64, step: i64, relation: Relation, signed: bool) -> Option<u64> {
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

/// An integer type of at least 32 bits.
#[derive(Debug, Clone, Copy)]
struct WideInteger {
    signed: bool,
    /// At most so many bits.
    bits: u64,
}

/// Whether the tokens name an integer type of at least 32 bits.
pub(crate) fn is_wide_integer(facts: &FileFacts, range: &Range<usize>) -> bool {
    wide_integer(facts, range).is_some()
}

/// The integer type of at least 32 bits that the tokens name.
fn wide_integer(facts: &FileFacts, range: &Range<usize>) -> Option<WideInteger> {
    let mut signed = true;
    let mut bits = 0;
    for at in range.clone() {
        let text = facts.fragment.text(facts.source, at);
        if facts.fragment.kind(at) == Some(Kind::Ident) && text != b"std" && !purity::is_number_type(facts.declarations, text) {
            return None;
        }
        match text {
            b"int" | b"int32_t" => bits = bits.max(32),
            b"long" | b"int64_t" | b"ptrdiff_t" => bits = 64,
            b"unsigned" | b"uint" | b"uint32_t" => (bits, signed) = (bits.max(32), false),
            b"uint64_t" | b"size_t" => (bits, signed) = (64, false),
            b"std" | b"::" | b"signed" | b"register" => {}
            _ => return None,
        }
    }
    (bits > 0).then_some(WideInteger { signed, bits })
}

/// An integer: a literal, a macro of this file that stands for one, or a sum or product of such. Any other name is
/// looked up nowhere.
pub(crate) fn literal(facts: &FileFacts, range: &Range<usize>) -> Option<Integer> {
    value(facts, range, false)
}

/// The same, with a guess at the values of names. Only choices of form may rest on it.
pub(crate) fn likely(facts: &FileFacts, range: &Range<usize>) -> Option<i64> {
    value(facts, range, true).map(|integer| integer.value)
}

fn value(facts: &FileFacts, range: &Range<usize>, guesses: bool) -> Option<Integer> {
    let (source, fragment) = (facts.source, facts.fragment);
    let operand = |at: usize| {
        let text = fragment.text(source, at);
        let value = match fragment.kind(at)? {
            Kind::Number => integer::literal(text),
            Kind::Ident => {
                let guess = || likely_of(facts, text).filter(|_| guesses).map(|value| Integer { value, unsigned: false });
                facts.macros.constant(text, fragment.tokens[at].start as usize).or_else(guess)
            }
            _ => None,
        };
        Some((value?, at + 1))
    };
    integer::value(fragment, range, MOST_VALUE, &operand)
}

/// The number that a name probably stands for: a macro, what is declared with a number, or with the name of one.
fn likely_of(facts: &FileFacts, name: &[u8]) -> Option<i64> {
    let named = || facts.declarations.alias(name).and_then(|other| facts.macros.likely(other));
    facts.declarations.likely(name).or_else(|| facts.macros.likely(name)).or_else(named)
}
