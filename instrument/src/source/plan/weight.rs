//! The weight of a loop: the units that an iteration takes from its activation's budget.

use crate::common::poll_interval::NEST_BUDGET;
use crate::source::analysis::block_share::BlockShare;
use crate::source::analysis::cost::Cost;
use crate::source::analysis::foldable::{self, MOST_LOOPS, Nest};
use crate::source::analysis::function_scope::FunctionScope;
use crate::source::analysis::induction::{self, Relation, Step};
use crate::source::analysis::trip_count;
use crate::source::syntax::declaration;
use crate::source::syntax::statement::Loop;
use crate::source::syntax::token::Kind;
use std::fmt::Write as _;
use std::ops::Range;

/// Units, or a sum that the compiler evaluates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Weight {
    Units(u32),
    /// The loop's own units, and those of loops inside it that pay nothing themselves.
    Sum {
        own: u32,
        inner: Vec<InnerWeight>,
        /// Whether threads share one of them: then it is known at run time only, and may be more.
        shares: bool,
    },
}

/// The weight of a loop inside a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InnerWeight {
    pub(crate) trips: Trips,
    /// The units of each of its iterations.
    pub(crate) own: u32,
    pub(crate) inner: Vec<InnerWeight>,
}

/// How often a loop runs, in the user's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trips {
    /// Not known: as often as a nest may.
    Unknown,
    /// So often, shared by the threads of a block, or by so many.
    Shared {
        trips: u64,
        step: Option<String>,
    },
    Counted {
        start: String,
        bound: String,
        steps: String,
        meets: bool,
    },
    /// The bound's type says it.
    Sized {
        start: String,
        bound: String,
        steps: String,
    },
}

impl Weight {
    /// The least that it may be.
    pub(crate) fn least(&self) -> u64 {
        match self {
            Self::Units(units) => (*units).into(),
            // However the sum is spelled, it is no more than a nest may run.
            Self::Sum { own, .. } => (*own).min(NEST_BUDGET).into(),
        }
    }
}

/// A loop that pays nothing itself where the compiler knows enough of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Inner<'a> {
    Nest(Nest),
    BlockShare(&'a BlockShare),
}

/// The weight of a loop: its own, and that of the loops inside it which pay nothing.
pub(crate) fn of_loop<'a>(scope: &FunctionScope, index: usize, costs: &[Cost], inner_of: &dyn Fn(usize) -> Option<Inner<'a>>) -> Weight {
    // A loop that the compiler may unroll pays once in so many units, by no clock.
    let own = if inner_of(index).is_some() { costs[index].weight() } else { costs[index].charge() };
    // All of them are counted down.
    if scope.body.loops.len() > MOST_LOOPS {
        return Weight::Units(own);
    }
    // A loop in the same count has counted itself.
    let counted = if let Some(Inner::Nest(nest)) = inner_of(index) { Some(nest.index) } else { None };
    let paid = |nested: usize| {
        inner_of(nested).filter(|inner| !matches!(inner, Inner::Nest(nest) if nest.begins.is_none() && Some(nest.index) == counted))
    };
    let mut reader = Reader { scope, costs, inner_of: &paid, outermost: &scope.body.loops[index], shares: false };
    let inner = reader.inner(index);
    if inner.is_empty() { Weight::Units(own) } else { Weight::Sum { own, inner, shares: reader.shares } }
}

/// Reads the weights of the loops inside a loop. Each name in them must mean the same in the header of the loop `outermost`.
struct Reader<'a, 'b> {
    scope: &'a FunctionScope<'a>,
    costs: &'a [Cost],
    inner_of: &'a dyn Fn(usize) -> Option<Inner<'b>>,
    outermost: &'a Loop,
    shares: bool,
}

impl Reader<'_, '_> {
    fn inner(&mut self, index: usize) -> Vec<InnerWeight> {
        let loops = &self.scope.body.loops;
        let within = (index + 1..loops.len()).take_while(|at| loops[*at].keyword <= loops[index].end.unwrap_or(usize::MAX));
        let mut found = Vec::new();
        for nested in within.filter(|at| loops[*at].outer == Some(index)) {
            let own = self.costs[nested].weight();
            let trips = match (self.inner_of)(nested) {
                None => continue,
                Some(Inner::BlockShare(BlockShare { trips, by_block, step, .. })) => {
                    self.shares = true;
                    Trips::Shared { trips: *trips, step: by_block.then(|| step.clone()) }
                }
                Some(Inner::Nest(_)) => trips(self.scope, &loops[nested], self.outermost).unwrap_or(Trips::Unknown),
            };
            let inner = if trips == Trips::Unknown { Vec::new() } else { self.inner(nested) };
            found.push(InnerWeight { trips, own, inner });
        }
        found
    }
}

/// How often a loop runs, for a weight only: it may be wrong where a name means another thing in the outer loop's header.
fn trips(scope: &FunctionScope, loop_: &Loop, outermost: &Loop) -> Option<Trips> {
    let facts = scope.facts;
    let induction = induction::read(facts, loop_)?;
    let steps = match (&induction.step, induction.relation) {
        (Step::Up, Relation::Below | Relation::AtMost | Relation::Not) => "1".to_owned(),
        (Step::Plus(amount), Relation::Below | Relation::AtMost | Relation::Not) => plain(scope, amount, outermost)?,
        (Step::Down, Relation::Above | Relation::AtLeast | Relation::Not) => "-1".to_owned(),
        (Step::Minus(amount), Relation::Above | Relation::AtLeast | Relation::Not) => format!("-({})", plain(scope, amount, outermost)?),
        _ => return None,
    };
    let start = plain(scope, &induction.start, outermost)?;
    let Some(bound) = plain(scope, &induction.bound, outermost) else {
        let bound = foldable::typed(scope, &induction.bound)?;
        if induction.relation == Relation::Not || induction.bound.clone().any(|at| is_local(scope, at, outermost)) {
            return None;
        }
        return Some(Trips::Sized { start, bound, steps });
    };
    Some(Trips::Counted { start, bound, steps, meets: induction.relation == Relation::Not })
}

/// Whether the token is a name that is declared inside the outer loop, so that its header may mean another thing by it.
fn is_local(scope: &FunctionScope, at: usize, outermost: &Loop) -> bool {
    let (fragment, source) = (scope.facts.fragment, scope.facts.source);
    let word = fragment.text(source, at);
    let declares = |other| fragment.text(source, other) == word && declaration::is_declared(source, fragment, other);
    fragment.kind(at) == Some(Kind::Ident) && outermost.end.is_none_or(|end| (outermost.keyword..=end).any(declares))
}

/// The text of an expression without side effects, none of whose names is declared inside the outer loop.
fn plain(scope: &FunctionScope, range: &Range<usize>, outermost: &Loop) -> Option<String> {
    let facts = scope.facts;
    let (fragment, source) = (facts.fragment, facts.source);
    let mut text = String::new();
    for at in range.clone() {
        let word = fragment.text(source, at);
        match fragment.tokens[at].kind {
            // Multiplied, not followed as a pointer; and nothing may divide by zero that would not have run.
            Kind::Punct(b'*')
                if at == range.start || !matches!(fragment.kind(at - 1), Some(Kind::Ident | Kind::Number | Kind::Punct(b')'))) =>
            {
                return None;
            }
            Kind::Punct(b'/') if fragment.kind(at + 1) != Some(Kind::Number) => return None,
            Kind::Number | Kind::Scope | Kind::Punct(b'+' | b'-' | b'*' | b'/' | b'(' | b')') => {}
            Kind::Ident if trip_count::literal(facts, &(at..at + 1)).is_some() => {
                let value = trip_count::literal(facts, &(at..at + 1))?.value;
                let _ = write!(text, " {value}");
                continue;
            }
            // A name in capitals that this file does not declare may be a macro that does anything.
            Kind::Ident
                if !fragment.is(at + 1, b'(')
                    && (facts.macros.operand(word).is_some_and(<[String]>::is_empty)
                        || !facts.macros.is_defined(word)
                            && (word.iter().any(u8::is_ascii_lowercase) || facts.declarations.declares(word)))
                    && !is_local(scope, at, outermost) => {}
            _ => return None,
        }
        let _ = write!(text, "{}{}", if text.is_empty() { "" } else { " " }, std::str::from_utf8(word).ok()?);
    }
    (!range.is_empty() && range.len() <= foldable::MOST_TOKENS).then_some(text)
}
