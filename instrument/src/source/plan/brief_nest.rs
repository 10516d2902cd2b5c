//! Brief nests: a nest of strips whose loops run few times, as `for (dy = -r; dy <= r; ++dy) for (dx = -r; dx <= r; ++dx)` with an `r` of three.
//!
//! The length of a strip depends on the thread's budget. So compilers no longer know that a counter is the same for all threads of a warp, and
//! keep more in registers of each thread. A nest of short inner strips spends all its time on that. Its text therefore stands there twice:
//! `if (it is not brief) { strips } else { the user's own loops }`.
//!
//! The user's own loops run where all starts and bounds lie near zero. Then the trip counts are small and exact for
//! every counter type. All units are paid for before the nest begins. There are no more of them than a nest may run for
//! nothing. This follows from values that the nest does not change, tested in front of it. Each loop is counted down as
//! well, so that the proof knows that it ends. The proof could not carry the test in front of the nest into the loops,
//! because compilers write this test in many ways.
//!
//! Nothing is counted where each loop steps by one from a value of run time. There the variables of starts and bounds are declared once more, with the
//! limits that were tested: `{ int r = pinned; for (int dy = -r; dy <= r; ++dy) … }`. By the user's own comparison the proof then knows that the loop
//! is short. With longer steps, and where a loop begins with a constant, compilers rewrite the count, so these loops are counted. The nest changes none
//! of these variables and takes no address of one.

use crate::source::analysis::function_scope::FunctionScope;
use crate::source::analysis::induction::{self, Relation, Step};
use crate::source::analysis::unroll::{self, Unroll};
use crate::source::analysis::{strip_mine, trip_count};
use crate::source::plan::loop_form::{Decision, LoopForm};
use crate::source::plan::weight::Weight;
use crate::source::syntax::statement::{Loop, LoopKind};
use crate::source::syntax::token::Kind;
use std::ops::Range;

/// Most tokens of a nest that is written twice.
const MOST_TOKENS: usize = 256;

/// Most loops inside a nest's outer one that are no constants' own: the units of all must fit in 32 bits.
const MOST_INNER: usize = 3;

/// Largest number in a start or bound. Its product with a value near zero is far from overflow.
const MOST_NUMBER: i64 = 1 << 20;

/// Words that mean something else in a second place, or can't be there twice.
const ONCE: &[&[u8]] =
    &[b"static", b"extern", b"typedef", b"using", b"static_assert", b"assert", b"__shared__", b"__LINE__", b"__COUNTER__", b"__asm__"];

/// A nest that is to be written twice.
#[derive(Debug, Clone)]
pub(crate) struct BriefNest {
    /// From its first byte to its last.
    pub(crate) span: Range<usize>,
    /// Its tokens.
    pub(crate) words: Vec<Range<usize>>,
    /// Its outer loop, and those inside.
    pub(crate) loops: Vec<BriefLoop>,
    /// Variables whose types the compiler has to look at.
    pub(crate) variables: Vec<String>,
    /// Whether these may stand for their own values once more.
    pub(crate) pins: bool,
}

/// A loop of such a nest: it goes up by a constant, from one value to another that the whole nest keeps.
#[derive(Debug, Clone)]
pub(crate) struct BriefLoop {
    /// The counter's type.
    pub(crate) type_: String,
    pub(crate) start: String,
    pub(crate) bound: String,
    /// Whether the counter stays below the bound, or may reach it.
    pub(crate) below: bool,
    pub(crate) amount: i64,
    /// The weight of an iteration.
    pub(crate) weight: u32,
    /// Where the condition begins and ends, and where the step begins.
    pub(crate) condition: Range<usize>,
    pub(crate) step: usize,
}

/// Finds them among a kernel's loops.
pub(crate) fn nests(scopes: &[FunctionScope], decisions: &[Decision]) -> Vec<BriefNest> {
    let Some(body) = scopes.first().map(|scope| scope.body) else { return Vec::new() };
    let loops = body.loops.iter().enumerate();
    loops.filter_map(|(index, loop_)| of_loop(&scopes[loop_.scope], decisions, index)).collect()
}

/// The nest of a loop, if it is to be written twice.
fn of_loop(scope: &FunctionScope, decisions: &[Decision], index: usize) -> Option<BriefNest> {
    let (body, facts) = (scope.body, scope.facts);
    let loop_ = &body.loops[index];
    let end = loop_.end?;
    // In a loop around it the question would be asked each time.
    let is_first = loop_.outer.is_none() && loop_.scope == 0;
    let is_short = end - loop_.keyword <= MOST_TOKENS && facts.fragment.of_macro.is_none();
    if !is_first || !is_short || !(loop_.keyword..=end).all(|at| may_stand_twice(scope, at)) {
        return None;
    }
    let span = loop_.keyword..=end;
    let holds = |token: usize| span.contains(&token);
    let others = body.scopes.iter().skip(1).map(|scope| scope.open).chain(body.macro_uses.iter().map(|use_| use_.name));
    let others = others.chain(body.lost.iter().copied()).chain(body.labels.iter().chain(&body.barriers).map(|simple| simple.token));
    let bytes = facts.fragment.tokens[loop_.keyword].start as usize..facts.fragment.tokens[end].end as usize;
    let has_directive = facts.lexed.directives.iter().any(|directive| bytes.contains(&directive.span.start));
    // The declarations in front have commas.
    if facts.fragment.is_enclosed(loop_.keyword)
        || has_directive
        || others.into_iter().any(holds)
        || body.prefixes.iter().any(|(from, _)| holds(*from))
    {
        return None;
    }
    let inner: Vec<usize> = (index + 1..body.loops.len())
        .take_while(|at| holds(body.loops[*at].keyword))
        .filter(|at| decisions[*at].cost.left_alone.is_none())
        .collect();
    if inner.is_empty() || inner.len() > MOST_INNER || inner.iter().any(|at| body.loops[*at].outer != Some(index)) {
        return None;
    }
    let counters: Vec<&[u8]> = std::iter::once(&index)
        .chain(&inner)
        .map(|at| induction::read(facts, &body.loops[*at]).map(|induction| induction.counter))
        .collect::<Option<_>>()?;
    // A variable, not its target.
    let is_given_a_number = |at: usize| {
        let fragment = facts.fragment;
        fragment.kind(at) == Some(Kind::Assign)
            && fragment.kind(at - 1) == Some(Kind::Ident)
            && trip_count::literal(facts, &(at + 1..at + 2)).is_some()
    };
    let mut found = BriefNest {
        span: bytes,
        words: span.clone().map(|at| facts.fragment.tokens[at].range()).collect(),
        loops: Vec::new(),
        variables: Vec::new(),
        pins: !span.clone().any(is_given_a_number),
    };
    for at in std::iter::once(index).chain(inner) {
        found.add(scope, &body.loops[at], &decisions[at], loop_, &counters)?;
    }
    Some(found)
}

impl BriefNest {
    /// Adds a loop of the nest: a strip that goes up by a constant from one value to another, which the whole nest keeps.
    fn add(&mut self, scope: &FunctionScope, loop_: &Loop, decision: &Decision, outermost: &Loop, counters: &[&[u8]]) -> Option<()> {
        let facts = scope.facts;
        let (fragment, source) = (facts.fragment, facts.source);
        // The outer one counts down, for the loops in it pay for themselves, but could be strip-mined.
        let strip = match &decision.form {
            LoopForm::Strip(strip, Unroll::Unasked) => strip.clone(),
            LoopForm::CountDown if std::ptr::eq(loop_, outermost) && !decision.cost.calls => {
                strip_mine::of_loop(scope, loop_).ok().filter(|_| unroll::of_loop(facts, scope.body, loop_) == Unroll::Unasked)?
            }
            _ => return None,
        };
        let induction =
            induction::read(facts, loop_).filter(|_| loop_.kind == LoopKind::For && strip.constants.is_empty() && strip.rest.is_none())?;
        let amount = match &induction.step {
            Step::Up => 1,
            Step::Plus(amount) => trip_count::literal(facts, amount)?.value,
            _ => return None,
        };
        let goes_up = (1..=strip_mine::MOST_STEP).contains(&amount) && matches!(induction.relation, Relation::Below | Relation::AtMost);
        if !goes_up || !trip_count::is_wide_integer(facts, &induction.type_) {
            return None;
        }
        let mut texts: Vec<String> = Vec::with_capacity(2);
        for range in [&induction.start, &induction.bound] {
            // Asked in front of the nest, where no counter has its value, and nothing may divide by zero or overflow that would not have run.
            let may_stand_ahead = |at: usize| {
                let is_far = || trip_count::literal(facts, &(at..at + 1)).is_some_and(|literal| literal.value > MOST_NUMBER);
                !counters.contains(&fragment.text(source, at))
                    && !matches!(fragment.kind(at), Some(Kind::Punct(b'/' | b'%' | b'\'') | Kind::Op))
                    && !is_far()
            };
            let has = |punctuation: u8| range.clone().filter(|at| fragment.is(*at, punctuation)).count();
            if has(b'*') > 1 || (has(b'*') > 0 && has(b'(') > 0) {
                return None;
            }
            let value = scope.invariant(range, outermost).filter(|_| range.clone().all(may_stand_ahead))?;
            if !value.constants.is_empty() || value.text.contains('\'') {
                return None;
            }
            // A sum of numbers and of values near zero stays small, and the proof can tell. A constant's name must stay constant.
            let is_near = |at: usize| match fragment.tokens[at].kind {
                Kind::Number | Kind::Punct(b'+' | b'-' | b'(' | b')') => true,
                Kind::Ident if trip_count::literal(facts, &(at..at + 1)).is_some() => true,
                Kind::Ident => scope.is_no_constant(fragment.text(source, at), outermost),
                _ => false,
            };
            self.pins &= amount == 1 && range.clone().all(is_near) && !value.variables.is_empty();
            self.variables.extend(value.variables.into_iter().filter(|name| !self.variables.contains(name)).collect::<Vec<_>>());
            texts.push(value.text);
        }
        let words: Vec<&str> =
            induction.type_.clone().map(|at| std::str::from_utf8(fragment.text(source, at))).collect::<Result<_, _>>().ok()?;
        let [start, bound] = texts.try_into().ok()?;
        let (open, close) = loop_.header?;
        let (first, second) = induction::semicolons(fragment, open, close)?;
        let offset = |token: usize| fragment.tokens[token].range();
        let Weight::Units(weight) = decision.weight else { return None };
        self.loops.push(BriefLoop {
            type_: words.join(" "),
            start,
            bound,
            below: induction.relation == Relation::Below,
            amount,
            weight,
            condition: offset(first).end..offset(second).start,
            step: offset(second).end,
        });
        Some(())
    }
}

/// Whether a token means the same in a second place.
fn may_stand_twice(scope: &FunctionScope, at: usize) -> bool {
    let (fragment, source) = (scope.facts.fragment, scope.facts.source);
    let text = fragment.text(source, at);
    match fragment.tokens[at].kind {
        // No insertion has quotes.
        Kind::Str | Kind::Char | Kind::Directive(_) | Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd | Kind::Pragma => false,
        Kind::Goto | Kind::Switch | Kind::Case | Kind::Default | Kind::Try | Kind::Catch | Kind::Class | Kind::Asm | Kind::Operator => {
            false
        }
        Kind::Ident if text.starts_with(b"__sync") => false,
        _ => !ONCE.contains(&text) && text.is_ascii() && !text.contains(&b'\'') && !text.contains(&b'\\'),
    }
}
