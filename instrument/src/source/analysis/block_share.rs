//! Loops in which the threads of a block share something small: `for (int i = threadIdx.x; i < kTile; i += blockDim.x)`.
//!
//! The counter begins at a thread's index or at a number, neither below zero. It rises to the bound by a step of at
//! least one. So the loop runs at most as often as its bound says. Text does not tell the values of the names in bound
//! and step. The poll therefore stays, behind the question whether both are constants and the bound is small. Where
//! they are, the compiler drops the poll and the loop is the user's own. Elsewhere each iteration is counted. A guess
//! at the values only decides whether the question is worth asking.

use crate::source::analysis::function_scope::FunctionScope;
use crate::source::analysis::induction::{self, Relation, Step};
use crate::source::analysis::{purity, trip_count};
use crate::source::syntax::statement::Loop;
use crate::source::syntax::token::Kind;
use std::ops::Range;

/// Most that a bound may be. Blocks of one thread run as many iterations without a poll.
pub(crate) const MOST: i64 = 4096;

/// A loop over a block's share of something small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockShare {
    /// The bound, as text.
    pub(crate) bound: String,
    /// The step, as text.
    pub(crate) step: String,
    /// Whether the step is a dimension of the block.
    pub(crate) by_block: bool,
    /// How often it probably runs at most, where a block has one thread.
    pub(crate) trips: u64,
}

/// The loop as a block's share, if it is one.
pub(crate) fn of_loop(scope: &FunctionScope, loop_: &Loop) -> Option<BlockShare> {
    let facts = scope.facts;
    let induction = induction::read(facts, loop_).filter(|induction| induction.rest.is_empty() && induction.in_body.is_empty())?;
    let rises = matches!(induction.relation, Relation::Below | Relation::AtMost);
    let (Step::Plus(amount), true, true) = (&induction.step, rises, trip_count::is_wide_integer(facts, &induction.type_)) else {
        return None;
    };
    let guess = |range: &Range<usize>| trip_count::likely(facts, range).filter(|_| !scope.is_of_run_time(range.clone(), loop_));
    let most = guess(&induction.bound).filter(|most| (0..=MOST).contains(most))?;
    let by_block = is_extent(scope, amount, b"blockDim");
    let step = if by_block { 1 } else { guess(amount).filter(|step| *step > 0)? };
    let begins = is_index(scope, &induction.start, loop_)
        && purity::leaves_alone(facts, induction.counter, loop_)
        && !purity::calls_the_unknown(facts, loop_);
    let trips = (most / step + 1).unsigned_abs();
    begins.then_some(BlockShare { bound: text(scope, &induction.bound)?, step: text(scope, amount)?, by_block, trips })
}

/// Whether the expression is a thread's index in its block, or a variable that is never anything else.
fn is_index(scope: &FunctionScope, range: &Range<usize>, loop_: &Loop) -> bool {
    let name = || scope.facts.fragment.text(scope.facts.source, range.start);
    let value = || (range.len() == 1 && scope.is_private(name(), loop_)).then(|| scope.first_value(name())).flatten();
    is_extent(scope, range, b"threadIdx") || value().is_some_and(|value| is_extent(scope, &value, b"threadIdx"))
}

/// Whether the tokens are `blockDim.x`, for one, and mean what they do in CUDA.
fn is_extent(scope: &FunctionScope, range: &Range<usize>, name: &[u8]) -> bool {
    let facts = scope.facts;
    let text = |at: usize| facts.fragment.text(facts.source, at);
    range.len() == 3
        && text(range.start) == name
        && facts.fragment.is(range.start + 1, b'.')
        && matches!(text(range.start + 2), b"x" | b"y" | b"z")
        && !facts.declarations.declares(name)
        && !facts.macros.is_defined(name)
}

/// The text of an expression of numbers and names.
fn text(scope: &FunctionScope, range: &Range<usize>) -> Option<String> {
    let (fragment, source) = (scope.facts.fragment, scope.facts.source);
    let words: Vec<&str> = range.clone().map(|at| std::str::from_utf8(fragment.text(source, at)).ok()).collect::<Option<_>>()?;
    let is_plain = |at: usize| matches!(fragment.tokens[at].kind, Kind::Number | Kind::Ident | Kind::Punct(_));
    (!range.is_empty() && range.clone().all(is_plain)).then(|| words.join(" "))
}
