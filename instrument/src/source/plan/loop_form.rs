//! The form of each loop's poll: left alone, strip-mined, chunked or counted down, and why not a better one.

use crate::common::options::{Options, Polls};
use crate::source::analysis::block_share::{self, BlockShare};
use crate::source::analysis::cost::{self, Cost};
use crate::source::analysis::file_facts::FileFacts;
use crate::source::analysis::foldable::{self, Extent, MOST_LOOPS, Nest};
use crate::source::analysis::function_scope::FunctionScope;
use crate::source::analysis::strip_mine::{self, Strip};
use crate::source::analysis::unroll::{self, Unroll};
use crate::source::analysis::{induction, purity};
use crate::source::plan::placement;
use crate::source::plan::weight::{self, Inner, Weight};
use crate::source::syntax::statement::{Loop, LoopKind};
use crate::source::syntax::token::Kind;
use std::ops::Range;

/// The largest weight of an iteration in chunks. Beyond it, the poll costs little beside the body.
const HEAVY: u32 = 64;

/// Most tokens in front of a function's name that are read.
const MOST_HEAD: usize = 24;

/// Most iterations of a chunk.
const MOST_LENGTH: u32 = 64;

/// How a loop that gets a poll gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoopForm {
    /// Strips of as many iterations as will run for sure, with the pragma of the inner loop.
    Strip(Strip, Unroll),
    /// Chunks of a constant number of iterations, with the pragma of the inner loop. The user's condition is asked before each iteration.
    Chunk(Chunk, Unroll),
    /// Each iteration is counted from where the loop's nest is entered, and pays only when many have run.
    Foldable(Nest),
    /// The user's own loop if the compiler finds that the block shares something small. Otherwise the budget is counted down in each iteration.
    Shared(BlockShare),
    /// The budget is counted down in each iteration.
    CountDown,
}

impl LoopForm {
    /// Whether the loop is in strips or chunks, not just counted.
    pub(crate) fn is_reshaped(&self) -> bool {
        matches!(self, Self::Strip(..) | Self::Chunk(..))
    }

    /// Whether a loop of that kind needs a variable of its activation that counts its chunks down.
    pub(crate) fn counts_chunks(&self, kind: LoopKind) -> bool {
        match self {
            Self::Strip(strip, _) if kind == LoopKind::Do => strip.breaks,
            // A plain `for` ends at its bound and nowhere else.
            Self::Strip(strip, _) => kind != LoopKind::For || strip.breaks || strip.rest.is_some() || !strip.constants.is_empty(),
            Self::Chunk(..) => true,
            Self::Foldable(_) | Self::Shared(_) | Self::CountDown => false,
        }
    }
}

/// The decision about a loop.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    pub(crate) cost: Cost,
    pub(crate) form: LoopForm,
    /// The units that an iteration takes from the budget.
    pub(crate) weight: Weight,
    /// What the compiler may know of a foldable loop's trip count.
    pub(crate) extent: Option<Extent>,
    /// Why the form is not a better one: a chunk no strip, a count-down no chunk.
    pub(crate) why: Option<&'static str>,
}

/// A chunk of iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// How many.
    pub(crate) length: u32,
    /// Whether the loop has a condition at all.
    pub(crate) has_condition: bool,
}

/// Decides the forms of a body's loops, each with the function that it stands in.
pub(crate) fn of_loops(options: &Options, facts: &FileFacts, scopes: &[FunctionScope]) -> Vec<Decision> {
    let Some(body) = scopes.first().map(|scope| scope.body) else { return Vec::new() };
    let few = body.loops.len() <= MOST_LOOPS;
    let may_be_known: Vec<bool> = body.loops.iter().map(|loop_| few && foldable::may_be_known(&scopes[loop_.scope], loop_)).collect();
    let is_asked = |scope: &FunctionScope| few && options.polls == Polls::Amortised && !scope.host_too && facts.fragment.of_macro.is_none();
    let tile = |scope: &FunctionScope, loop_: &Loop| if is_asked(scope) { block_share::of_loop(scope, loop_) } else { None };
    let tiles: Vec<Option<BlockShare>> = body.loops.iter().map(|loop_| tile(&scopes[loop_.scope], loop_)).collect();
    let costs = cost::of_loops(options, scopes, body, &may_be_known, &tiles);
    let is_rolled = |at: usize, loop_: &Loop| few && may_be_known[at] && rolled(options, &scopes[loop_.scope], loop_, costs[at]).is_some();
    let words = if few { foldable::words(scopes, body, &costs) } else { vec![u64::MAX; costs.len()] };
    let are_rolled: Vec<bool> = body.loops.iter().enumerate().map(|(at, loop_)| is_rolled(at, loop_)).collect();
    let mut forms: Vec<LoopForm> = Vec::with_capacity(body.loops.len());
    let mut reasons: Vec<Option<&'static str>> = Vec::with_capacity(body.loops.len());
    let mut nests = vec![0; body.scopes.len()];
    for (index, loop_) in body.loops.iter().enumerate() {
        let around = loop_.outer.filter(|outer| body.loops[*outer].scope == loop_.scope && costs[*outer].left_alone.is_none());
        let entry = if few { foldable::entry(&scopes[loop_.scope], loop_) } else { None };
        let nest = match (entry, around.map(|outer| &forms[outer])) {
            (Some(begins), _) => Some(Nest { index: nests[loop_.scope], begins: Some(begins), unrolled: false, scaled: false }),
            (None, Some(LoopForm::Foldable(nest))) => Some(Nest { begins: None, unrolled: false, ..*nest }),
            (None, _) => None,
        };
        let within = (index + 1..body.loops.len()).take_while(|at| loop_.end.is_some_and(|end| body.loops[*at].keyword <= end));
        let around_shared = few && within.clone().any(|at| costs[at].shares);
        let pays = |at: usize| costs[at].left_alone.is_none() && (!may_be_known[at] || are_rolled[at]) && !costs[at].shares;
        let around_paid = few && within.into_iter().any(|at| body.loops[at].scope == loop_.scope && pays(at));
        // Where the outer loop is not unrolled, the trip count of a loop that depends on its counter varies.
        let stays = |outer: usize| !matches!(forms[outer], LoopForm::Foldable(Nest { unrolled: true, .. }));
        let mut outers = std::iter::successors(loop_.outer, |outer| body.loops[*outer].outer);
        let varies = few && outers.any(|outer| stays(outer) && foldable::depends_on(&scopes[loop_.scope], loop_, &body.loops[outer]));
        let words = if varies { u64::MAX } else { words[index] };
        let known = Known { cost: costs[index], words, is_open: !may_be_known[index], nest, around_shared, around_paid };
        let tile = tiles[index].clone().filter(|_| costs[index].shares).map(LoopForm::Shared);
        let (form, why) = match tile {
            Some(tile) => (tile, None),
            None => better(options, &scopes[loop_.scope], loop_, known).unwrap_or_else(|why| (LoopForm::CountDown, Some(why))),
        };
        if let LoopForm::Foldable(Nest { begins: Some(_), .. }) = form
            && costs[index].left_alone.is_none()
        {
            nests[loop_.scope] += 1;
        }
        forms.push(form);
        reasons.push(why);
    }
    let inner_of = |index: usize| match &forms[index] {
        LoopForm::Foldable(nest) if costs[index].left_alone.is_none() => Some(Inner::Nest(*nest)),
        LoopForm::Shared(tile) => Some(Inner::BlockShare(tile)),
        _ => None,
    };
    let weights: Vec<Weight> =
        body.loops.iter().enumerate().map(|(index, loop_)| weight::of_loop(&scopes[loop_.scope], index, &costs, &inner_of)).collect();
    let extent_of = |index: usize| match inner_of(index)? {
        Inner::Nest(_) => foldable::extent(&scopes[body.loops[index].scope], &body.loops[index]),
        Inner::BlockShare(_) => None,
    };
    let extents: Vec<Option<Extent>> = (0..body.loops.len()).map(extent_of).collect();
    let decided = forms.into_iter().zip(costs).zip(weights).zip(extents).zip(reasons);
    decided.map(|((((form, cost), weight), extent), why)| Decision { cost, form, weight, extent, why }).collect()
}

/// Facts about a loop before its form is decided.
#[derive(Debug, Clone, Copy)]
struct Known {
    cost: Cost,
    /// Tokens of an iteration, for an unroller. The largest number if no compiler can know the trip count.
    words: u64,
    /// Whether something in its header is known at run time only.
    is_open: bool,
    /// The nest that it would belong to, if it can.
    nest: Option<Nest>,
    /// Whether a loop inside it is shared by the block's threads.
    around_shared: bool,
    /// Whether a loop inside it takes its own units from the budget.
    around_paid: bool,
}

/// Whether a `while (…);` may be the end of a loop that a macro opens: `REPEAT { … } while (…);`. Nothing may stand in front of it then.
fn may_end_another(scope: &FunctionScope, loop_: &Loop) -> bool {
    let fragment = scope.facts.fragment;
    let block = fragment.before(loop_.keyword).filter(|brace| loop_.kind == LoopKind::While && fragment.is(*brace, b'}'));
    let word = block.and_then(|brace| fragment.before(fragment.mate(brace)?));
    word.is_some_and(|word| fragment.kind(word) == Some(Kind::Ident)) && fragment.is(loop_.body, b';')
}

/// The best form, with the reason why it is no strip; or why there is none but counting down.
fn better(options: &Options, scope: &FunctionScope, loop_: &Loop, known: Known) -> Result<(LoopForm, Option<&'static str>), &'static str> {
    let (facts, cost) = (scope.facts, known.cost);
    if options.polls != Polls::Amortised {
        return Err("`--polls` asks for this form");
    }
    if scope.body.bare {
        return Err("it stands in a macro");
    }
    if may_end_another(scope, loop_) {
        return Err("a macro in front of its block may stand for `do`");
    }
    if scope.body.loops.len() > MOST_LOOPS {
        return Err("its function has more than 1024 loops");
    }
    // The compiler may unroll such a loop as a whole and keep an array that it indexes in registers. Only the user's own loop allows that.
    if !known.is_open {
        // A loop that the compiler would never unroll is better off in strips: between two checks nothing of ours then keeps a sum of the user's in memory.
        // But where each iteration costs fuel no strip is sound, and nothing of the loop would fold but the check.
        if let Some(strip) = rolled(options, scope, loop_, cost) {
            return Ok((LoopForm::Strip(strip, Unroll::Unasked), None));
        }
        let is_plain = may_be_plain(options, scope, loop_);
        let nest = known.nest.ok_or("nothing can stand in front of it")?;
        let unrolled = is_plain && !known.around_paid && foldable::is_unrolled(scope, loop_, known.words);
        return Ok((LoopForm::Foldable(Nest { unrolled, scaled: foldable::is_scaled(scope, loop_), ..nest }), None));
    }
    if options.limits.fuel.is_some() {
        return Err("each iteration costs fuel");
    }
    if scope.host_too {
        return Err("the host runs it too");
    }
    // Each call of a function has its own budget, and a strip may make as many calls as a budget has units. The strip would run for the
    // product of both. The body outweighs a poll in any case.
    if cost.calls {
        return Err("what it calls may loop for long");
    }
    // The loops in a strip lack the units that the strip took ahead. They check at once, find that little time has passed, and from then on the poll
    // interval is too long. The strip's end, or its count, would also occupy a register through all of them, and only the innermost loop is unrolled.
    if known.around_paid {
        return Err("the loops in it pay for themselves");
    }
    let unroll = unroll::of_loop(facts, scope.body, loop_);
    if unroll == Unroll::Unknown {
        return Err("what stands in front of it may be meant for the user's own loop");
    }
    let why = match strip_mine::of_loop(scope, loop_) {
        Ok(strip) if !jumps(scope, loop_) => return Ok((LoopForm::Strip(strip, unroll), None)),
        Ok(_) => "a jump leads into it or out of it",
        Err(why) => why,
    };
    if cost.weight() > HEAVY {
        return Err("its body outweighs its poll");
    }
    // A chunk is paid for as a whole. With one thread in a block that would be more than the largest budget.
    if known.around_shared {
        return Err("a loop in it is long where a block has few threads");
    }
    let condition = condition(scope, loop_).filter(|condition| is_chunkable(scope, loop_, condition)).ok_or(why)?;
    let chunk = Chunk { length: (4 * HEAVY / cost.weight()).clamp(4, MOST_LENGTH), has_condition: !condition.is_empty() };
    Ok((LoopForm::Chunk(chunk, unroll), Some(why)))
}

/// Whether the compiler alone decides how the loop is unrolled, and its iterations may be paid for together.
fn may_be_plain(options: &Options, scope: &FunctionScope, loop_: &Loop) -> bool {
    let may_be_paid_for = options.polls == Polls::Amortised && options.limits.fuel.is_none() && scope.facts.fragment.of_macro.is_none();
    may_be_paid_for && !scope.host_too && unroll::of_loop(scope.facts, scope.body, loop_) == Unroll::Unasked
}

/// The strips of a loop that the compiler may know, but would not unroll as a whole.
fn rolled(options: &Options, scope: &FunctionScope, loop_: &Loop, cost: Cost) -> Option<Strip> {
    let is_rolled = may_be_plain(options, scope, loop_) && foldable::stays_rolled(scope, loop_, cost);
    if is_rolled { strip_mine::of_loop(scope, loop_).ok().filter(|_| !jumps(scope, loop_)) } else { None }
}

/// The condition that is asked before each iteration.
fn condition(scope: &FunctionScope, loop_: &Loop) -> Option<Range<usize>> {
    let fragment = scope.facts.fragment;
    let (open, close) = loop_.header?;
    if fragment.tokens[open..=close].iter().any(|token| matches!(token.kind, Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd)) {
        return None;
    }
    match loop_.kind {
        LoopKind::For => induction::semicolons(fragment, open, close).map(|(first, second)| first + 1..second),
        LoopKind::While | LoopKind::Do => Some(open + 1..close),
        LoopKind::RangeFor => None,
    }
}

/// Whether the loop can run in chunks of a constant length. After a chunk its count tells whether the chunk was used up, so no jump may skip the count.
fn is_chunkable(scope: &FunctionScope, loop_: &Loop, condition: &Range<usize>) -> bool {
    let facts = scope.facts;
    let fragment = facts.fragment;
    if placement::declares(fragment, condition.start - 1, condition.end) || jumps(scope, loop_) {
        return false;
    }
    // `for (;;)` and `while (true)` run until a statement in them ends them, and no compiler unrolls them.
    let is_constant = |at: usize| matches!(fragment.kind(at), Some(Kind::Number)) || fragment.text(facts.source, at) == b"true";
    let is_endless = condition.is_empty() || (condition.len() == 1 && is_constant(condition.start));
    // Where no statement follows an endless loop, compilers know that the function does not end there. Of chunks they would warn, and in a function that is
    // declared not to return they would return behind the loop.
    let end = loop_.end.unwrap_or(loop_.body).min(fragment.len().saturating_sub(1));
    let ends = |at: usize| matches!(fragment.kind(at), Some(Kind::Break | Kind::Return)) || fragment.text(facts.source, at) == b"throw";
    if is_endless && !(loop_.keyword..=end).any(ends) {
        return false;
    }
    !is_endless || returns_nothing(scope) || loop_.end.is_some_and(|end| !fragment.is(fragment.skip_arms(end + 1), b'}'))
}

/// Whether the function says that it returns nothing.
fn returns_nothing(scope: &FunctionScope) -> bool {
    let (fragment, source) = (scope.facts.fragment, scope.facts.source);
    let Some(name) = scope.range.start.checked_sub(1).filter(|name| *name < scope.open && fragment.kind(*name) == Some(Kind::Ident)) else {
        return false;
    };
    let head = (0..name).rev().take(MOST_HEAD).take_while(|at| !matches!(fragment.kind(*at), Some(Kind::Punct(b';' | b'{' | b'}'))));
    head.into_iter().any(|at| fragment.text(source, at) == b"void" && !fragment.is(at + 1, b'*'))
}

/// Whether a jump, or a macro that may hide one, leads out of the loop or into it.
fn jumps(scope: &FunctionScope, loop_: &Loop) -> bool {
    let facts = scope.facts;
    let (fragment, source) = (facts.fragment, facts.source);
    let Some(end) = loop_.end else { return true };
    let end = end.min(fragment.len().saturating_sub(1));
    let mut switches: Vec<usize> = Vec::new();
    for at in loop_.keyword..=end {
        match fragment.tokens[at].kind {
            Kind::Goto => return true,
            Kind::Switch => {
                let body = (fragment.is(at + 1, b'(')).then(|| fragment.mate(at + 1)).flatten().map(|close| close + 1);
                match body.filter(|open| fragment.is(*open, b'{')).and_then(|open| fragment.mate(open)) {
                    Some(close) => switches.push(close),
                    None => return true,
                }
            }
            Kind::Case | Kind::Default if !switches.iter().any(|close| at < *close) => return true,
            Kind::Ident => {
                let name = fragment.text(source, at);
                let is_unknown = !facts.macros.is_literal(name)
                    && !purity::stands_for_a_value(facts, at)
                    && (facts.macros.may_leave(name) || (is_capital(name) && purity::starts_statement(facts, at)));
                if is_unknown {
                    return true;
                }
            }
            _ => {}
        }
    }
    scope.body.labels.iter().any(|label| (loop_.keyword..=end).contains(&label.token))
}

fn is_capital(name: &[u8]) -> bool {
    name.len() > 1 && !name.iter().any(u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::is_capital;

    #[test]
    fn a_macro_is_told_by_its_capitals() {
        assert_eq!([&b"AB"[..], b"EACH_ROW", b"X", b"Each", b"each"].map(is_capital), [true, true, false, false, false]);
    }
}
