//! The cost of an iteration of a loop, by its tokens, and the loops that are short enough to be left alone.

use crate::common::options::{Options, Polls};
use crate::common::poll_interval::MOST_INTERVAL;
use crate::source::analysis::block_share::BlockShare;
use crate::source::analysis::file_facts::{CallCost, FileFacts};
use crate::source::analysis::function_scope::FunctionScope;
use crate::source::analysis::trip_count;
use crate::source::syntax::asm;
use crate::source::syntax::declaration::{is_declared, others};
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::statement::Body;
use crate::source::syntax::token::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// Tokens a loop may take in all before it gets a poll: about the gap between two polls.
const LEFT_ALONE: u64 = 16384;

/// Tokens that a loop over something shared may take in all where a block has one thread: a budget at its largest.
const SHARED: u64 = 16 << MOST_INTERVAL;

/// Most words of a loop that are counted.
const MOST_WORDS: usize = 1024;

/// Most tokens of a value that are read.
const MOST_VALUE: usize = 64;

/// Most loops directly inside another whose costs are told from one another.
const MOST_INNER: usize = 256;

/// Most levels of loops inside a loop whose trip count is read. The question reads the whole loop, at each level again.
const MOST_HEIGHT: usize = 16;

/// Tokens of a subscript that may go to global memory: a full grid takes a third of a microsecond for it.
const GLOBAL: u64 = 128;
/// Tokens of one whose index comes from global memory itself, which takes microseconds. With its statement it must stay below 128 units, since strips
/// weigh powers of two.
const INDIRECT: u64 = 1536;
/// Tokens of one into an array of the block's or the thread's own.
const OWN: u64 = 3;

/// Tokens of a call whose function may run for long.
const CALL: u64 = 1024;

/// The cost of a call of each function of the fragment, by name.
pub(crate) fn of_calls<'a>(
    source: &'a [u8],
    fragment: &Fragment,
    functions: &[&Function],
    macros: &Macros,
) -> BTreeMap<&'a [u8], CallCost> {
    let names: BTreeSet<&[u8]> = functions.iter().filter_map(|function| function.name).map(|name| fragment.text(source, name)).collect();
    let mut costs: BTreeMap<&[u8], CallCost> = BTreeMap::new();
    for function in functions {
        let Some(name) = function.name else { continue };
        let mut cost = 0;
        let mut loops = false;
        for at in function.open..function.close {
            let text = fragment.text(source, at);
            if matches!(fragment.kind(at), Some(Kind::For | Kind::While)) {
                loops |= !asks_for_a_number(fragment, at);
            }
            cost += match fragment.tokens[at].kind {
                Kind::For | Kind::While | Kind::Do | Kind::Goto | Kind::Asm => CALL,
                Kind::Punct(b'[') => CALL / 8,
                Kind::Ident if names.contains(text) || macros.is_defined(text) || waits(text) => CALL,
                _ => 1,
            };
        }
        let known = costs.entry(fragment.text(source, name)).or_default();
        known.tokens = known.tokens.max(cost).min(CALL);
        known.loops |= loops;
    }
    costs
}

/// Whether a number stands in the condition of the loop at the keyword: it is probably one that ends soon.
fn asks_for_a_number(fragment: &Fragment, keyword: usize) -> bool {
    let Some(close) = fragment.mate(keyword + 1) else { return false };
    let ends: Vec<usize> = (keyword + 2..close).filter(|at| fragment.is(*at, b';')).collect();
    let condition = if let [first, second] = ends[..] { first..second } else { keyword + 2..close };
    condition.into_iter().any(|at| fragment.kind(at) == Some(Kind::Number))
}

/// The cost of an iteration of a loop, and whether the loop is left alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// Tokens, where those that may take long count more.
    tokens: u64,
    /// The same where all count alike, as far as anybody asks.
    words: u64,
    /// At most so many trips, if it is.
    pub(crate) left_alone: Option<u64>,
    /// Whether it shares something small among the threads of a block, as far as the text tells.
    pub(crate) shares: bool,
    /// Whether it calls a function that loops for as long as values of run time say.
    pub(crate) calls: bool,
}

impl Cost {
    /// Tokens of an iteration, punctuation left out.
    pub(crate) fn words(self) -> u64 {
        self.words
    }

    /// The units that an iteration takes from the budget of the loop around, if its own loop pays nothing.
    pub(crate) fn weight(self) -> u32 {
        (self.tokens / 16).clamp(1, 1024) as u32
    }

    /// The units that an iteration of a loop that pays takes from the budget. Arithmetic counts thrice, and in full: in
    /// a full grid that does nothing else, a warp's turn comes every sixteenth cycle. Then 1024 units of sixteen tokens
    /// each would last for 190 us (`collatz`).
    pub(crate) fn charge(self) -> u32 {
        (self.tokens + 2 * self.words).div_ceil(16).clamp(1, 1024) as u32
    }
}

/// The cost of each loop of a body, in the same order. Some loops may have known trip counts, and some share something small.
pub(crate) fn of_loops(
    options: &Options,
    scopes: &[FunctionScope],
    body: &Body,
    may_be_known: &[bool],
    tiles: &[Option<BlockShare>],
) -> Vec<Cost> {
    let Some(facts) = scopes.first().map(|scope| scope.facts) else { return Vec::new() };
    let fragment = facts.fragment;
    let leave = options.polls != Polls::Each && options.limits.fuel.is_none();
    let mut costs = vec![Cost { tokens: 0, words: 0, left_alone: None, shares: false, calls: false }; body.loops.len()];
    let memory = Memory::of(facts, body);
    let mut directly_inside: Vec<Vec<usize>> = vec![Vec::new(); body.loops.len()];
    for (index, loop_) in body.loops.iter().enumerate() {
        if let Some(inner) = loop_.outer.map(|outer| &mut directly_inside[outer]).filter(|inner| inner.len() < MOST_INNER) {
            inner.push(index);
        }
    }
    // How deep the loops inside each are nested.
    let mut heights = vec![0_usize; body.loops.len()];
    // Inner loops were found after outer ones.
    for (index, loop_) in body.loops.iter().enumerate().rev() {
        let end = loop_.end.unwrap_or(loop_.body).min(fragment.len().saturating_sub(1));
        let mut inner = std::mem::take(&mut directly_inside[index]);
        inner.retain(|at| body.loops[*at].keyword <= end);
        heights[index] = inner.iter().map(|at| heights[*at] + 1).max().unwrap_or(0);
        let mut tokens = 0_u64;
        let mut folds = false;
        let mut at = loop_.keyword;
        while at <= end {
            if let Ok(nested) = inner.binary_search_by_key(&at, |nested| body.loops[*nested].keyword).map(|found| inner[found])
                && let Some(nested_end) = body.loops[nested].end
            {
                tokens += match costs[nested].left_alone {
                    Some(trips) => trips.saturating_mul(costs[nested].tokens).min(LEFT_ALONE),
                    // A loop that is counted with its nest is added to the weight.
                    None if may_be_known[nested] || costs[nested].shares => {
                        folds = true;
                        1
                    }
                    None => 16,
                };
                // This loop's iterations make the calls of an inner loop, too. In strips it would only occupy a register through all of them.
                costs[index].calls |= costs[nested].calls;
                at = nested_end.max(at) + 1;
                continue;
            }
            let (cost, calls) = token_cost(facts, &memory, at);
            tokens += cost;
            costs[index].calls |= calls;
            at += 1;
        }
        costs[index].tokens = tokens;
        let is_word = |at: &usize| !matches!(fragment.tokens[*at].kind, Kind::Punct(b'(' | b')' | b'{' | b'}' | b']' | b';' | b',' | b'.'));
        costs[index].words = (loop_.body..=end).filter(is_word).take(MOST_WORDS).count() as u64;
        if leave
            && !folds
            && inner.len() < MOST_INNER
            && heights[index] < MOST_HEIGHT
            && let Some(trips) = trip_count::trips(&scopes[loop_.scope], loop_)
        {
            let fits = trips.max(1).saturating_mul(tokens) <= LEFT_ALONE;
            costs[index].left_alone = fits.then_some(trips);
        }
        // A loop around it whose trips the compiler may know needs a weight that it knows.
        let around = || std::iter::successors(loop_.outer, |outer| body.loops[*outer].outer);
        let alone = tiles[index].is_some() && leave && !folds && inner.len() < MOST_INNER && !around().any(|outer| may_be_known[outer]);
        costs[index].shares = alone && tiles[index].as_ref().is_some_and(|tile| tile.trips.saturating_mul(tokens) <= SHARED);
    }
    costs
}

/// The token's cost, and whether it calls a function that may loop for long.
fn token_cost(facts: &FileFacts, memory: &Memory, at: usize) -> (u64, bool) {
    let (source, fragment) = (facts.source, facts.fragment);
    let is_call = || matches!(fragment.kind(at + 1), Some(Kind::Punct(b'(' | b'<'))) && facts.functions.contains(fragment.text(source, at));
    let cost = match fragment.tokens[at].kind {
        Kind::Punct(b'[') if !memory.is_load(source, fragment, at) => OWN,
        Kind::Punct(b'[') if memory.is_indirect(source, fragment, at) => INDIRECT,
        Kind::Ident if memory.is_load(source, fragment, at) && memory.is_indirect(source, fragment, at + 1) => INDIRECT,
        Kind::Punct(b'[') => GLOBAL,
        Kind::Ident if memory.is_load(source, fragment, at) => GLOBAL,
        Kind::Arrow if steps_along(source, fragment, at) => INDIRECT,
        Kind::Ident if is_call() => {
            let call = facts.call_costs.get(fragment.text(source, at));
            return call.map_or((CALL, true), |call| (call.tokens, call.loops));
        }
        Kind::Ident if calls_the_unseen(facts, at) => CALL,
        Kind::Ident if waits(fragment.text(source, at)) => 512,
        Kind::Asm if asm_waits(&asm::text(source, fragment, at)) => 512,
        Kind::Punct(b'(' | b')' | b'{' | b'}' | b']' | b';' | b',' | b'.') => 0,
        _ => 1,
    };
    (cost, false)
}

/// Whether the token calls by a variable, or calls a function that is only declared here. Such a call may run for any time.
pub(crate) fn calls_the_unseen(facts: &FileFacts, at: usize) -> bool {
    let (source, fragment) = (facts.source, facts.fragment);
    let name = fragment.text(source, at);
    fragment.kind(at) == Some(Kind::Ident)
        && fragment.is(at + 1, b'(')
        && !facts.functions.contains(name)
        && !facts.macros.is_defined(name)
        && (facts.declarations.may_be_called(name) || facts.others.contains(name))
        && !is_declared(source, fragment, at)
}

/// The token in front of a subscript's first bracket: `a` for each bracket of `a[i][j]`.
fn base(fragment: &Fragment, mut at: usize) -> usize {
    while let Some(before) = at.checked_sub(1) {
        match fragment.mate(before).filter(|open| *open < before && fragment.is(before, b']')) {
            Some(open) => at = open,
            None => return before,
        }
    }
    at
}

/// The kinds of memory that a body's names stand for.
struct Memory<'a> {
    /// Arrays that the body declares: in shared memory, in registers or in the thread's own.
    own: BTreeSet<&'a [u8]>,
    /// Variables that get values from global memory.
    loaded: BTreeSet<&'a [u8]>,
}

impl<'a> Memory<'a> {
    fn of(facts: &FileFacts<'a>, body: &Body) -> Self {
        let (source, fragment) = (facts.source, facts.fragment);
        let Some(scope) = body.scopes.first() else { return Self { own: BTreeSet::new(), loaded: BTreeSet::new() } };
        let names =
            || (scope.open..fragment.mate(scope.open).unwrap_or(fragment.len())).filter(|at| fragment.kind(*at) == Some(Kind::Ident));
        let mut own = BTreeSet::new();
        for at in names().filter(|at| is_declared(source, fragment, *at)) {
            // Behind a sign may stand a product's other factor, whose list is one of arguments.
            let first = if fragment.is(at + 1, b'[') { Some(at) } else { None };
            let is_list = matches!(fragment.kind(at - 1), Some(Kind::Ident | Kind::Keyword));
            let rest = if is_list { Some(others(fragment, at)) } else { None };
            let arrays = first.into_iter().chain(rest.into_iter().flatten().filter(|other| fragment.is(other + 1, b'[')));
            own.extend(arrays.map(|array| fragment.text(source, array)));
        }
        let mut memory = Self { own, loaded: BTreeSet::new() };
        let is_loaded = |at: &usize| {
            fragment.kind(at + 1) == Some(Kind::Assign)
                && (at + 2..(at + 2 + MOST_VALUE).min(fragment.len()))
                    .take_while(|value| !fragment.is(*value, b';'))
                    .any(|value| memory.is_load(source, fragment, value))
        };
        // A stepped variable is a counter, with any first value.
        let is_stepped = |at: &usize| {
            matches!(fragment.kind(at + 1), Some(Kind::Step | Kind::OpAssign)) || fragment.kind(at.saturating_sub(1)) == Some(Kind::Step)
        };
        let stepped: BTreeSet<&[u8]> = names().filter(is_stepped).map(|at| fragment.text(source, at)).collect();
        let loaded = names().filter(is_loaded).map(|at| fragment.text(source, at));
        memory.loaded = loaded.filter(|name| !stepped.contains(name)).collect();
        memory
    }

    /// Whether a load from memory that the whole device shares begins at the token.
    fn is_load(&self, source: &[u8], fragment: &Fragment, at: usize) -> bool {
        let is_subscript = fragment.is(at, b'[') && !self.own.contains(fragment.text(source, base(fragment, at)));
        is_subscript || (fragment.is(at + 1, b'(') && fragment.text(source, at).starts_with(b"__ld"))
    }

    /// Whether the index, or the address, between the brackets at `open` and its mate comes out of such memory itself.
    fn is_indirect(&self, source: &[u8], fragment: &Fragment, open: usize) -> bool {
        let end = fragment.mate(open).unwrap_or(open);
        (open + 1..end).any(|at| self.is_load(source, fragment, at) || self.loaded.contains(fragment.text(source, at)))
    }
}

/// Whether a pointer goes on to the next of a chain: `p = p->next`.
fn steps_along(source: &[u8], fragment: &Fragment, arrow: usize) -> bool {
    arrow >= 3 && fragment.kind(arrow - 2) == Some(Kind::Assign) && fragment.text(source, arrow - 1) == fragment.text(source, arrow - 3)
}

/// Functions of CUDA's own that take about a microsecond, or wait for other threads.
fn waits(name: &[u8]) -> bool {
    [&b"atomic"[..], b"__nanosleep", b"__sync", b"__threadfence", b"arrive_and_wait"].iter().any(|word| name.starts_with(word))
}

/// The same of inline assembly.
fn asm_waits(text: &str) -> bool {
    ["wait", "nanosleep", "bar", "atom", "red.", "fence", "membar"].iter().any(|word| text.contains(word))
}
