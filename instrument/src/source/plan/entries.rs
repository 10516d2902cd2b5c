//! Checks where functions begin, for chains of calls that would run for too long between two checks.

use super::planner::{Known, Owner, Planner};
use crate::common::options::{Options, Polls};
use crate::common::poll_interval::{self, UNITS_OF_SCALED};
use crate::common::site::{Form, Kind as SiteKind};
use crate::source::analysis::call_graph::CallGraph;
use crate::source::analysis::descent::Descent;
use crate::source::analysis::expansion::Expansion;
use crate::source::analysis::file_facts::FileFacts;
use crate::source::analysis::foldable::Nest;
use crate::source::analysis::{census, cost, pack};
use crate::source::plan::backward_goto;
use crate::source::plan::call_chain::{self, Link, Rounds};
use crate::source::plan::insertion::PollStyle;
use crate::source::plan::loop_form::{Decision, LoopForm};
use crate::source::plan::placement::Place;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function;
use crate::source::syntax::scopes::{innermost_scope, innermost_scopes};
use crate::source::syntax::statement::Body;
use crate::source::syntax::token::Kind;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Most instances of a template that call one another in a row: compilers end that.
const MOST_INSTANCES: u64 = 1 << 10;

impl Planner<'_> {
    /// Where chains of calls run for too long, functions check where they begin.
    pub(super) fn checks_at_entries(&mut self, known: &Known, calls: &CallGraph) {
        let mut noted = std::mem::take(&mut self.links);
        noted.sort_by_key(|(link, ..)| (link.range.start, Reverse(link.range.end)));
        let mut links: Vec<Link> = noted.iter().map(|(link, ..)| link.clone()).collect();
        // A name that a macro pastes together may be that of any function with a loop.
        if self.pastes_calls {
            for link in &mut links {
                link.must_check |= !link.loops.is_empty();
            }
        }
        let (fragment, source) = (known.fragment, self.input.source);
        let mut words: BTreeMap<&[u8], BTreeMap<&[u8], u64>> = BTreeMap::new();
        let times = |at: usize, callee: usize| {
            let used = fragment.text(source, at);
            let name = known.functions.get(callee).and_then(|function| function.name).map(|name| fragment.text(source, name));
            let Some(name) = name.filter(|_| at > 0 && self.input.macros.is_own(used)) else { return 1 };
            let brought = words.entry(used).or_insert_with(|| self.expansion.words_of(used));
            brought.get(name).copied().unwrap_or(1)
        };
        for index in call_chain::checked(&links, calls, times) {
            let (link, owner, name) = &noted[index];
            let site = self.site(SiteKind::Recursion, *name, owner, Form::Flag, None);
            let twins = link.function.and_then(|function| known.by_close.get(&known.functions[function].close));
            let opens = twins.map_or(vec![(link.function, link.range.start)], |twins| {
                twins.iter().map(|twin| (Some(*twin), known.functions[*twin].open)).collect()
            });
            for (function, open) in opens {
                let place = Place::Brace { at: self.opening_place(known, owner.style, function, open) };
                self.poll(place, PollStyle { polls: Polls::Each, ..owner.style }, site);
            }
        }
    }
}

/// The work of a body's activations between two checks, each with its owner and the place of its name.
#[expect(clippy::too_many_arguments, reason = "the work of a body is made of all that is known of it")]
pub(super) fn links(
    options: &Options,
    facts: &FileFacts,
    expansion: &Expansion,
    known: &Known,
    owners: &[Owner],
    body: &Body,
    decisions: &[Decision],
    range: (usize, usize),
) -> Vec<(Link, Owner, usize)> {
    let (source, fragment) = (facts.source, facts.fragment);
    let mut noted = Vec::with_capacity(body.scopes.len());
    for (index, scope) in body.scopes.iter().enumerate() {
        let own = known.by_open.get(&scope.open).copied();
        let function = own.map(|index| known.functions[index]);
        let is_bare = index == 0 && body.bare;
        let is_kernel = function.is_some_and(|function| function.spaces.global);
        let name = fragment.tokens[function.and_then(|function| function.name).unwrap_or(scope.open)].start as usize;
        let link = Link {
            range: if is_bare { range.0..range.1 } else { scope.open..fragment.mate(scope.open).unwrap_or(range.1) },
            loops: Vec::new(),
            unseen: Vec::new(),
            function: own,
            is_fixed: is_bare || is_kernel || owners[index].untouched.is_some(),
            is_implicit: function.is_none_or(|function| function::is_called_by_no_name(source, fragment, function)),
            is_tree: own.is_some_and(|index| known.recursive.get(&index) == Some(&Descent::Tree)),
            depth: if own.is_some_and(|index| is_of_instances(known, index)) { MOST_INSTANCES } else { 1 },
            must_check: false,
        };
        noted.push((link, owners[index].clone(), name));
    }
    for (loop_, decision) in body.loops.iter().zip(decisions) {
        let polls_each = options.polls == Polls::Each || body.bare;
        let rounds = match decision.cost.left_alone {
            _ if census::never_repeats(source, fragment, loop_) => Rounds::Few(1),
            Some(trips) => Rounds::Few(trips),
            None if polls_each => Rounds::Paid(1 << poll_interval::MOST_INTERVAL),
            None if matches!(decision.form, LoopForm::Foldable(Nest { scaled: true, .. })) => {
                Rounds::Paid(decision.weight.least().min(u64::from(UNITS_OF_SCALED)))
            }
            None => Rounds::Paid(decision.weight.least()),
        };
        let end = loop_.end.unwrap_or(range.1);
        noted[loop_.scope].0.loops.push((loop_.keyword..end + 1, rounds));
    }
    for goto in &body.gotos {
        let label = fragment.text(source, goto.token + 1);
        if !backward_goto::is_ahead(body, goto.token, label) {
            noted[goto.scope].0.loops.push((range.0..goto.token, Rounds::Paid(1)));
        }
    }
    for pattern in pack::repeated(source, fragment, range.0..range.1.min(fragment.len())) {
        noted[innermost_scope(fragment, body, pattern.start)].0.loops.push((pattern, Rounds::Pack));
    }
    let behind: BTreeMap<usize, usize> = body.macro_uses.iter().filter_map(|use_| Some((use_.name, use_.end?))).collect();
    let scopes = innermost_scopes(fragment, body, range.0..range.1.min(fragment.len()));
    for (at, scope) in (range.0..).zip(scopes) {
        // The loops of a macro take one unit in each iteration, of its arguments and of the statement behind it.
        if fragment.kind(at) == Some(Kind::Ident) && facts.macros.looping(fragment.text(source, at)).is_some() {
            let arguments = fragment.mate(at + 1).filter(|close| fragment.is(at + 1, b'(') && *close > at);
            let end = behind.get(&at).copied().or(arguments).unwrap_or(at);
            noted[scope].0.loops.push((at..end + 1, Rounds::Paid(1)));
        }
        if let Some((arguments, times)) = expansion.repeated(source, fragment, at) {
            noted[scope].0.loops.push((arguments, Rounds::Few(times)));
        }
        let is_made = fragment.of_macro.is_some() && is_pasted_call(fragment, at);
        if is_made || cost::calls_the_unseen(facts, at) {
            let link = &mut noted[scope].0;
            link.must_check |= is_made && link.range.start < at;
            link.unseen.push(at);
        }
    }
    noted
}

/// Whether instances of the function may call one another, each the next one, past no poll.
fn is_of_instances(known: &Known, index: usize) -> bool {
    matches!(known.recursive.get(&index), Some(Descent::Instances | Descent::Deduced))
}

/// Whether a macro's body calls a name that it pastes together.
pub(super) fn pastes_a_call(fragment: &Fragment) -> bool {
    (1..fragment.len()).any(|at| is_pasted_call(fragment, at))
}

/// Whether the token ends a name that `##` pastes together, and parentheses follow.
fn is_pasted_call(fragment: &Fragment, at: usize) -> bool {
    fragment.is(at + 1, b'(') && fragment.is(at.wrapping_sub(1), b'#')
}
