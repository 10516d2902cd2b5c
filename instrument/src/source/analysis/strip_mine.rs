//! Loops that can be strip-mined: the induction variable goes towards a bound by a step, and neither changes in the loop. The number of iterations that
//! will run for sure is then known before they run.
//!
//! `for (I; i < n; S)` becomes `for (I; i < n; check) for (t iterations; S)`. Here `i < n` held when `t` was taken, and
//! `t` is at least one and at most what the budget allows. The count is exact because the body changes neither `i`, `n`
//! nor the step (`purity`, `invariant`). The device computes how far it may go, from the types that the compiler knows.
//! A type, a step of zero or of the wrong sign, or a wrap-around can make the count doubtful. Then `t` is one, and the
//! user's own condition is asked after each iteration.
//!
//! `do B while (i < n)` becomes `do for (t iterations) B while (check, i < n)`. B runs once in any case, so `t` is one unless `i < n` held when `t` was
//! taken. Otherwise `i < n` would hold where each of `t` iterations of a `while` begins. It then holds behind the first `t - 1` iterations here, as each
//! of them steps at most once, and need not be asked there. A `continue` goes on to the place of the condition.

use crate::source::analysis::function_scope::FunctionScope;
use crate::source::analysis::induction::{self, Relation, Step};
use crate::source::analysis::invariant::Invariant;
use crate::source::analysis::{purity, trip_count};
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::statement::{Loop, LoopKind};
use crate::source::syntax::token::Kind;
use std::ops::Range;

/// Largest constant step whose multiple by a whole budget stays far below 2^32.
pub(crate) const MOST_STEP: i64 = 1 << 14;

/// The parts of a strip-mined loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Strip {
    pub(crate) counter: String,
    /// The counter's first value, if the header says it by a number.
    pub(crate) start: Option<i64>,
    /// Whether the bound is a number.
    pub(crate) known: bool,
    pub(crate) relation: Relation,
    pub(crate) up: bool,
    pub(crate) bound: String,
    /// The distance of a step, without its sign.
    pub(crate) amount: String,
    /// Whether the amount is a literal that no chunk can make overflow.
    pub(crate) constant: bool,
    /// Whether each round steps, and none is left behind its step, so that the counter tells how many there were.
    pub(crate) steady: bool,
    /// Whether the amount is known at run time only.
    pub(crate) late: bool,
    /// Expressions whose types the compiler has to look at.
    pub(crate) typed: Vec<String>,
    /// Names that the compiler has to take for constants.
    pub(crate) constants: Vec<String>,
    /// Whether the body may end the loop by a `break`.
    pub(crate) breaks: bool,
    /// The token of the `&&` behind the relation, if more has to hold.
    pub(crate) rest: Option<usize>,
}

/// How the loop can be strip-mined, or why it can't.
pub(crate) fn of_loop(scope: &FunctionScope, loop_: &Loop) -> Result<Strip, &'static str> {
    let facts = scope.facts;
    let (fragment, source) = (facts.fragment, facts.source);
    let induction = induction::read(facts, loop_).ok_or("its header has no one counter, relation and step")?;
    let (up, amount) = match &induction.step {
        Step::Up => (true, None),
        Step::Down => (false, None),
        Step::Plus(amount) => (true, Some(amount)),
        Step::Minus(amount) => (false, Some(amount)),
        Step::Times(_) | Step::Divided(_) | Step::Left(_) | Step::Right(_) => return Err("its step is no sum"),
    };
    let fits = match induction.relation {
        Relation::Below | Relation::AtMost => up,
        Relation::Above | Relation::AtLeast => !up,
        Relation::Not => true,
    };
    if !fits {
        return Err("its step leads away from its bound");
    }
    let name = std::str::from_utf8(induction.counter).map_err(|_| "its counter's name is no UTF-8")?;
    let declared = !induction.type_.is_empty();
    if declared && !is_plain_type(scope, &induction.type_) {
        return Err("its counter is no variable of a plain type");
    }
    if !purity::leaves_alone(facts, induction.counter, loop_) || (!declared && !scope.is_private(induction.counter, loop_)) {
        return Err("its counter may change in its body");
    }
    let mentions = |range: &Range<usize>| range.clone().any(|at| fragment.text(source, at) == induction.counter);
    if mentions(&induction.bound) || amount.is_some_and(&mentions) {
        return Err("its bound or step changes with its counter");
    }
    let bound = scope.bound(&induction.bound, loop_).ok_or("its bound may change")?;
    let (step, constant) = match amount {
        None => (Invariant { text: "1".to_owned(), ..Invariant::default() }, true),
        Some(range) => {
            let literal = trip_count::literal(facts, range);
            if literal.as_ref().is_some_and(|literal| literal.value <= 0) {
                return Err("its step leads away from its bound");
            }
            let step = scope.invariant(range, loop_).ok_or("its step may change")?;
            (step, literal.is_some_and(|literal| literal.value <= MOST_STEP))
        }
    };
    if induction.relation == Relation::Not && !constant {
        return Err("its step may skip its bound");
    }
    let late = amount.is_some_and(|range| scope.is_of_run_time(range.clone(), loop_)) || !step.variables.is_empty();
    let mut constants = bound.constants;
    constants.extend(step.constants);
    constants.dedup();
    let mut typed = vec![name.to_owned()];
    for variable in bound.variables.into_iter().chain(step.variables) {
        if !typed.contains(&variable) {
            typed.push(variable);
        }
    }
    // A `do` asks the rest of its condition between its iterations, and a strip could not.
    if loop_.kind == LoopKind::Do && !(induction.rest.is_empty() && constants.is_empty()) {
        return Err("its condition asks for more than its counter");
    }
    let rest = Some(induction.rest.start).filter(|_| !induction.rest.is_empty());
    let breaks = breaks(scope, loop_);
    Ok(Strip {
        counter: name.to_owned(),
        start: trip_count::literal(facts, &induction.start).map(|literal| literal.value),
        known: trip_count::literal(facts, &induction.bound).is_some(),
        relation: induction.relation,
        up,
        bound: bound.text,
        amount: step.text,
        constant,
        // Behind its step a `break` may stand where the strip would have ended: only a count tells the two apart.
        steady: induction.in_body.is_empty() || !breaks && steps_each_round(fragment, loop_, induction.in_body.start),
        late,
        typed,
        constants,
        breaks,
        rest,
    })
}

/// Whether a `break` in the body may end the loop. One that leaves a loop inside does not leave this one.
fn breaks(scope: &FunctionScope, loop_: &Loop) -> bool {
    let mut body = loop_.body..=loop_.body_end.unwrap_or(loop_.body);
    let inner: Vec<&Loop> = scope.body.loops.iter().filter(|other| body.contains(&other.keyword)).collect();
    let is_inner = |at: usize| inner.iter().any(|other| other.end.is_some_and(|end| (other.keyword..=end).contains(&at)));
    body.any(|at| scope.facts.fragment.kind(at) == Some(Kind::Break) && !is_inner(at))
}

/// Whether the statement at `step` stands right in the loop's body, and nothing can pass it by that goes round.
fn steps_each_round(fragment: &Fragment, loop_: &Loop, step: usize) -> bool {
    let end = loop_.body_end.unwrap_or(loop_.body);
    let mut at = loop_.body + usize::from(fragment.is(loop_.body, b'{'));
    let mut begins = true;
    while at < step {
        begins = matches!(fragment.kind(at), Some(Kind::Punct(b';' | b'}')));
        let close = if fragment.is(at, b'{') { fragment.mate(at) } else { None };
        begins |= close.is_some();
        at = close.unwrap_or(at) + 1;
    }
    at == step && begins && !(loop_.body..=end).any(|at| matches!(fragment.kind(at), Some(Kind::Continue | Kind::Goto)))
}

/// Whether the words declare a variable that is the thread's own and no reference, as far as the text tells.
fn is_plain_type(scope: &FunctionScope, type_: &Range<usize>) -> bool {
    let (fragment, source) = (scope.facts.fragment, scope.facts.source);
    type_.clone().all(|at| match fragment.tokens[at].kind {
        Kind::Ident => !scope.facts.macros.is_defined(fragment.text(source, at)),
        Kind::Keyword => !matches!(fragment.text(source, at), b"volatile" | b"static" | b"extern" | b"__shared__" | b"decltype"),
        Kind::Scope | Kind::Number | Kind::Punct(b'*' | b'<' | b'>') => true,
        _ => false,
    })
}
