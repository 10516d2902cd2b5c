//! Loops whose trip count the compiler may know although the text does not tell it: up to template parameters, `constexpr` names or members of a class, or
//! with a pragma that unrolls them.
//!
//! Such a loop counts the units that its nest has run since its outermost loop was entered, and pays only beyond a constant. The count rises by
//! constants from zero. Where the compiler knows the trip counts, it knows the largest value of the count, and the poll folds away. Elsewhere the loop pays
//! as any other. No name is trusted, so no text can make this unsound: of every 2^32 iterations all but the first few pay.
//!
//! Where the front end already knows the header ([`extent`]), the prelude decides there: no poll, or one in so many units. Otherwise each unrolled
//! iteration of a long nest would hold a poll, until the outermost loop is unrolled.

use crate::common::poll_interval::NEST_BUDGET;
use crate::source::analysis::cost::Cost;
use crate::source::analysis::function_scope::FunctionScope;
use crate::source::analysis::induction::{self, Induction, Relation, Step};
use crate::source::analysis::{purity, strip_mine, trip_count};
use crate::source::syntax::statement::{Body, Loop, LoopKind};
use crate::source::syntax::token::Kind;
use std::fmt::Write as _;
use std::ops::Range;

/// Most tokens of a bound, a start or a step that is said again in a weight.
pub(crate) const MOST_TOKENS: usize = 12;

/// Most trips, and tokens of all of them, of a loop that compilers unroll as a whole without being asked.
const UNROLLED_TRIPS: u64 = 64;
const UNROLLED_WORDS: u64 = 768;

/// Tokens of all trips beyond which no compiler unrolls all of a loop unasked.
const ROLLED_WORDS: u64 = 4096;

/// Most loops of a function that get more than a count-down. Each is compared with all others, so the time grows with the square.
pub(crate) const MOST_LOOPS: usize = 256;

/// The nest of a loop that the compiler may know the trips of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nest {
    /// Which of its activation's nests it counts in.
    pub(crate) index: usize,
    /// Where a statement can begin the count. There is none if no statement fits between this loop and the one around it, whose count it then
    /// shares.
    pub(crate) begins: Option<usize>,
    /// Whether the loop is to be unrolled as a whole, as the compiler would do by itself with the user's own.
    pub(crate) unrolled: bool,
    /// Whether the loop's counter is multiplied or divided. It mostly ends after as many iterations as a number has bits, however heavy these are.
    pub(crate) scaled: bool,
}

/// Whether the compiler may know how often the loop runs: nothing in its header is surely known at run time only.
pub(crate) fn may_be_known(scope: &FunctionScope, loop_: &Loop) -> bool {
    let fragment = scope.facts.fragment;
    let Some((open, close)) = loop_.header else { return false };
    if fragment.tokens[open..=close].iter().any(|token| matches!(token.kind, Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd)) {
        return false;
    }
    if let Some(induction) = induction::read(scope.facts, loop_) {
        let amount = match &induction.step {
            Step::Up | Step::Down => 0..0,
            Step::Plus(amount) | Step::Minus(amount) | Step::Times(amount) | Step::Divided(amount) => amount.clone(),
            Step::Left(amount) | Step::Right(amount) => amount.clone(),
        };
        let start =
            if induction.start.is_empty() { scope.first_value_before(induction.counter, loop_) } else { Some(induction.start.clone()) };
        let Some(start) = start else { return false };
        let literal = |range: &Range<usize>| trip_count::literal(scope.facts, range).map(|literal| literal.value);
        if let (Some(first), Some(last)) = (literal(&start), literal(&induction.bound)) {
            let step = if amount.is_empty() { Some(1) } else { literal(&amount) };
            let is_sum = matches!(induction.step, Step::Up | Step::Down | Step::Plus(_) | Step::Minus(_));
            // Too many to be unrolled, or to be run for nothing.
            if is_sum && step.is_some_and(|step| last.abs_diff(first) / step.unsigned_abs().max(1) > u64::from(NEST_BUDGET)) {
                return false;
            }
        }
        let ranges = [start, induction.bound.clone(), amount];
        return !ranges.into_iter().any(|range| scope.is_of_run_time(range, loop_)) || scope.differ_by_a_constant(&induction);
    }
    let condition = match loop_.kind {
        // It mostly runs over an array.
        LoopKind::RangeFor => return true,
        LoopKind::For => match induction::semicolons(fragment, open, close) {
            Some((first, second)) => first + 1..second,
            None => return false,
        },
        LoopKind::While | LoopKind::Do => open + 1..close,
    };
    // `for (;;)` and `while (true)` run until something in them ends them.
    let is_constant = |at: usize| fragment.kind(at) == Some(Kind::Number) || fragment.text(scope.facts.source, at) == b"true";
    let is_endless = condition.is_empty() || (condition.len() == 1 && is_constant(condition.start));
    !is_endless && !scope.is_of_run_time(condition, loop_)
}

/// Whether the loop's counter is multiplied or divided in each iteration, by its header.
pub(crate) fn is_scaled(scope: &FunctionScope, loop_: &Loop) -> bool {
    let steps = |induction: Induction| matches!(induction.step, Step::Divided(_) | Step::Right(_) | Step::Times(_) | Step::Left(_));
    !scope.host_too && induction::read(scope.facts, loop_).is_some_and(steps)
}

/// The offset where a statement can stand in front of the loop and its pragmas: behind the end of the statement before.
pub(crate) fn entry(scope: &FunctionScope, loop_: &Loop) -> Option<usize> {
    let fragment = scope.facts.fragment;
    let mut first = loop_.keyword;
    loop {
        let prefix = scope.body.prefixes.iter().find(|(_, to)| to + 1 == first).map(|(from, _)| *from);
        let uses = || scope.body.macro_uses.iter().filter(|use_| use_.arguments.is_some_and(|(_, close)| close + 1 == first));
        let is_pragma = |name: &usize| scope.facts.macros.is_pragma(scope.facts.source, fragment.text(scope.facts.source, *name));
        match prefix.or_else(|| uses().map(|use_| use_.name).find(is_pragma)) {
            Some(from) => first = from,
            None => break,
        }
    }
    let before = first.checked_sub(1).filter(|before| matches!(fragment.kind(*before), Some(Kind::Punct(b';' | b'{' | b'}'))))?;
    // The semicolon of a header or the brace of an initialiser ends no statement.
    (before >= scope.open && scope.body.scopes.binary_search_by_key(&first, |scope| scope.open).is_err())
        .then(|| fragment.tokens[before].end as usize)
}

/// The trip count of a loop by its header. The compiler evaluates it where all its parts are constants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) counter: String,
    pub(crate) start: String,
    pub(crate) bound: String,
    /// Whether the bound is known by its type or not at all: `size<1>(tensor)`.
    pub(crate) by_type: bool,
    /// The step of the counter.
    pub(crate) amount: String,
    /// Whether nothing in the body changes the counter, so that constants in the header are the whole truth.
    pub(crate) sure: bool,
    /// Whether the body leaves the counter alone as far as the text tells. Else the loop may go on for ever, and its poll must be proved.
    pub(crate) kept: bool,
}

/// The extent of a loop whose counter goes up to a bound.
pub(crate) fn extent(scope: &FunctionScope, loop_: &Loop) -> Option<Extent> {
    if loop_.kind != LoopKind::For {
        return None;
    }
    let induction = induction::read(scope.facts, loop_)?;
    if !matches!(induction.relation, Relation::Below | Relation::AtMost) {
        return None;
    }
    // A number by its value: digits may be grouped by quotes, which no insertion has.
    let text = |range: &Range<usize>| match trip_count::literal(scope.facts, range) {
        Some(literal) => Some(literal.value.to_string()),
        // The front end takes a local constant's bare name for a variable.
        None if range.len() == 1 && scope.declares_number(scope.facts.fragment.text(scope.facts.source, range.start)) => {
            scope.invariant(range, loop_).map(|invariant| invariant.text + " + 0")
        }
        None => scope.invariant(range, loop_).map(|invariant| invariant.text).filter(|text| !text.contains('\'')),
    };
    let amount = match &induction.step {
        Step::Up => "1".to_owned(),
        Step::Plus(amount) => text(amount)?,
        _ => return None,
    };
    let step = amount.parse::<i64>();
    if step.as_ref().is_ok_and(|step| !(1..=strip_mine::MOST_STEP).contains(step)) {
        return None;
    }
    let start = text(&induction.start)?;
    if scope.host_too && !is_of_class(scope, &induction.bound) {
        // Nothing is asked of values where the compiler may have to evaluate the function, in C++11 by one expression.
        return None;
    }
    let counter = String::from_utf8(induction.counter.to_vec()).ok()?;
    let declares = !induction.type_.is_empty();
    let kept = purity::leaves_alone(scope.facts, induction.counter, loop_);
    if !scope.host_too
        && let Some(bound) = text(&induction.bound)
    {
        let sure = declares && strip_mine::of_loop(scope, loop_).is_ok_and(|strip| strip.steady);
        return Some(Extent { counter, start, bound, by_type: false, amount, sure, kept });
    }
    let bound = typed(scope, &induction.bound)?;
    (start.parse::<i64>().is_ok() && step.is_ok()).then_some(Extent { counter, start, bound, by_type: true, amount, sure: false, kept })
}

/// Whether a bound may be of a class that holds one constant: it asks for something, or is a variable whose type is deduced.
fn is_of_class(scope: &FunctionScope, range: &Range<usize>) -> bool {
    let (fragment, source) = (scope.facts.fragment, scope.facts.source);
    let name = fragment.text(source, range.start);
    let is_deduced = |at: usize| {
        fragment.text(source, at) == name
            && (1..=3).any(|back| at.checked_sub(back).is_some_and(|at| fragment.text(source, at) == b"auto"))
            && fragment.kind(at + 1) == Some(Kind::Assign)
    };
    range.len() > 1 || (scope.open..range.start).any(is_deduced)
}

/// The text of a bound whose type may tell its value, since it asks for something: names, calls and numbers, which the compiler shall not evaluate.
pub(crate) fn typed(scope: &FunctionScope, range: &Range<usize>) -> Option<String> {
    let (fragment, source) = (scope.facts.fragment, scope.facts.source);
    let mut text = String::new();
    let mut asks = false;
    for at in range.clone() {
        match fragment.tokens[at].kind {
            Kind::Ident | Kind::Number => {}
            Kind::Punct(b'(') | Kind::Scope => asks = true,
            Kind::Punct(b')' | b'<' | b'>' | b',' | b'.' | b'+' | b'-' | b'*' | b'/') => {}
            _ => return None,
        }
        let word = std::str::from_utf8(fragment.text(source, at)).ok()?;
        let _ = write!(text, "{}{word}", if text.is_empty() { "" } else { " " });
    }
    // Digits may be grouped by quotes, which no insertion has.
    ((asks || range.len() == 1) && range.len() <= MOST_TOKENS && !text.contains('\'')).then_some(text)
}

/// Whether the compiler would probably unroll the user's own loop as a whole, with so many tokens an iteration. Our form is larger before it folds, so
/// the compiler must be asked to unroll it.
pub(crate) fn is_unrolled(scope: &FunctionScope, loop_: &Loop, words: u64) -> bool {
    likely_trips(scope, loop_).is_some_and(|trips| (2..=UNROLLED_TRIPS).contains(&trips) && trips.saturating_mul(words) <= UNROLLED_WORDS)
}

/// The tokens of an iteration of each loop of a body, as an unroller would count them. The trip count of an inner loop
/// may depend on the outer counter. Such a loop is unrolled with the outer one, so its tokens count once for each of
/// its iterations.
pub(crate) fn words(scopes: &[FunctionScope], body: &Body, costs: &[Cost]) -> Vec<u64> {
    let mut words: Vec<u64> = costs.iter().map(|cost| cost.words()).collect();
    // Inner loops were found after outer ones.
    for (index, loop_) in body.loops.iter().enumerate().rev() {
        let scope = &scopes[loop_.scope];
        if let Some(outer) = loop_.outer.filter(|outer| depends_on(scope, loop_, &body.loops[*outer])) {
            let trips = likely_trips(scope, loop_).unwrap_or(UNROLLED_TRIPS).clamp(1, UNROLLED_WORDS);
            words[outer] = words[outer].saturating_add((trips - 1).saturating_mul(words[index]));
        }
    }
    words
}

/// Whether how often the loop runs depends on the counter of a loop around it.
pub(crate) fn depends_on(scope: &FunctionScope, loop_: &Loop, outer: &Loop) -> bool {
    let fragment = scope.facts.fragment;
    let (Some(own), Some(around)) = (induction::read(scope.facts, loop_), induction::read(scope.facts, outer)) else { return false };
    own.start.chain(own.bound).any(|at| fragment.text(scope.facts.source, at) == around.counter)
}

/// Whether the compiler would surely not unroll all of the loop, for it is too long by far.
pub(crate) fn stays_rolled(scope: &FunctionScope, loop_: &Loop, cost: Cost) -> bool {
    likely_trips(scope, loop_).is_some_and(|trips| trips > UNROLLED_TRIPS && trips * cost.words() > ROLLED_WORDS)
}

/// How often a loop probably runs, where numbers say so.
fn likely_trips(scope: &FunctionScope, loop_: &Loop) -> Option<u64> {
    let facts = scope.facts;
    let likely = |range: &Range<usize>| trip_count::likely(facts, range);
    let induction = induction::read(facts, loop_)?;
    let step = match &induction.step {
        Step::Up | Step::Down => Some(1),
        Step::Plus(amount) | Step::Minus(amount) => likely(amount),
        _ => None,
    };
    let (first, last, step) = (likely(&induction.start)?, likely(&induction.bound)?, step?);
    Some(last.abs_diff(first) / step.unsigned_abs().max(1))
}
