//! Plans loops and jumps back.

use super::planner::{Known, Owner, Planner};
use crate::common::diagnostic::{Code, Diagnostic};
use crate::common::site::{Form, Kind as SiteKind};
use crate::source::analysis::census;
use crate::source::plan::insertion::{Insertion, OneReturn, Poll, PollKind, PollStyle, Reshaped};
use crate::source::plan::loop_form::{Decision, LoopForm};
use crate::source::plan::placement;
use crate::source::syntax::function::Function;
use crate::source::syntax::statement::{Body, Loop, LoopKind};
use crate::source::syntax::token::Kind;

/// Words of a head in front of an expression that only the compiler evaluates.
const COMPILED_AWAY: &[&[u8]] = &[b"noexcept", b"alignas", b"decltype", b"sizeof"];

impl Planner<'_> {
    /// A loop by keyword: left alone, or polled where its form allows.
    pub(super) fn repeat(
        &mut self,
        known: &Known,
        owner: &Owner,
        body: &Body,
        loop_: &Loop,
        Decision { cost, form, weight, extent, why }: &Decision,
        (budget, chunk_counters): (&mut bool, &mut usize),
    ) {
        let fragment = known.fragment;
        if census::never_repeats(self.input.source, fragment, loop_) {
            return;
        }
        self.plan.summary.loops += 1;
        let at = fragment.tokens[loop_.keyword].start as usize;
        let kind = match loop_.kind {
            LoopKind::For => SiteKind::For,
            LoopKind::RangeFor => SiteKind::RangeFor,
            LoopKind::While => SiteKind::While,
            LoopKind::Do => SiteKind::Do,
        };
        if let Some(why) = owner.untouched {
            self.site(kind, at, owner, Form::None, Some(why.to_owned()));
            return;
        }
        if let Some(trips) = cost.left_alone {
            self.plan.summary.bounded += 1;
            self.site(kind, at, owner, Form::None, Some(format!("runs at most {trips} times")));
            return;
        }
        let Some(place) = placement::of_loop(self.input.source, fragment, body, loop_) else {
            return self.gap(Code::NotPolled, "this loop has no place for a poll", fragment, loop_.keyword, owner, kind);
        };
        let site = self.site(kind, at, owner, owner.style.form_of(form), None);
        self.plan.reasons.extend(why.map(|why| (site, why)));
        self.plan.summary.polled += 1;
        *budget = true;
        if form.is_reshaped() {
            let rest = if let LoopForm::Strip(strip, _) = form { strip.rest } else { None };
            if let Some(offsets) = placement::offsets(fragment, loop_, rest) {
                let reshaped = Reshaped { offsets, form: form.clone(), weight: weight.clone(), index: *chunk_counters, site };
                *chunk_counters += usize::from(form.counts_chunks(loop_.kind));
                self.insert(Insertion::Reshaped(Box::new(reshaped)));
            }
            return;
        }
        let kind = match form {
            LoopForm::Foldable(nest) => {
                if nest.unrolled {
                    self.insert(Insertion::Unroll { at });
                }
                if let Some(at) = nest.begins {
                    self.insert(Insertion::NestBegins { at, index: nest.index });
                }
                PollKind::InNest(*nest, extent.clone())
            }
            LoopForm::Shared(tile) => PollKind::Shared(tile.clone()),
            LoopForm::Strip(..) | LoopForm::Chunk(..) | LoopForm::CountDown => PollKind::Counted,
        };
        self.insert(Insertion::Poll { place, poll: Poll { style: owner.style, site, weight: weight.clone(), kind } });
    }

    /// Loops in the initialisers between a constructor's parameters and its body. Those of `noexcept(…)` run in the compiler alone.
    pub(super) fn loops_in_head(&mut self, known: &Known, function: &Function) {
        let mut evaluated = 0;
        for at in function.head..function.open {
            if COMPILED_AWAY.contains(&known.fragment.text(self.input.source, at)) && known.fragment.is(at + 1, b'(') {
                evaluated = known.fragment.mate(at + 1).unwrap_or(at).max(evaluated);
            }
            if at > evaluated && matches!(known.fragment.kind(at), Some(Kind::For | Kind::While | Kind::Do)) {
                let owner = Owner {
                    function: None,
                    name: function
                        .name
                        .map_or(String::new(), |name| String::from_utf8_lossy(known.fragment.text(self.input.source, name)).into_owned()),
                    style: PollStyle {
                        polls: self.input.options.polls,
                        host_too: false,
                        evaluated: false,
                        inner: false,
                        one_return: OneReturn::No,
                    },
                    untouched: None,
                    held: false,
                };
                self.plan.summary.loops += 1;
                let kind = census::loop_kind(known.fragment, at);
                self.gap(Code::NotPolled, "a loop in an initialiser is not polled", known.fragment, at, &owner, kind);
            }
        }
    }

    /// A constructor whose initialisers may construct such an object again comes to no poll in its body.
    pub(super) fn calls_in_head(&mut self, known: &Known, index: usize) {
        if let Some(at) = known.unpolled.get(&index) {
            let style =
                PollStyle { polls: self.input.options.polls, host_too: false, evaluated: false, inner: false, one_return: OneReturn::No };
            let owner = Owner { function: None, name: self.name_of(known, index), style, untouched: None, held: false };
            let message = "a call in an initialiser may lead back here: it is not polled";
            self.gap(Code::NotPolled, message, known.fragment, *at, &owner, SiteKind::Recursion);
        }
    }

    /// Each loop of the tokens must be a loop of the tree, with the same keyword and end.
    pub(super) fn compare(&mut self, known: &Known, owners: &[Owner], body: &Body, range: (usize, usize)) {
        let fragment = known.fragment;
        for index in census::unseen_by_tree(self.input, fragment, body, range, &mut self.grammar) {
            let loop_ = &body.loops[index];
            let owner = &owners[loop_.scope];
            if owner.untouched.is_some() || census::never_repeats(self.input.source, fragment, loop_) {
                continue;
            }
            let message = format!("the parser does not see this loop of `{}`; its tokens do", owner.name);
            self.plan.diagnostics.push(
                Diagnostic::new(Code::TokensOnly, message).at(fragment.tokens[loop_.keyword].range()).in_function(owner.name.clone()),
            );
        }
    }
}
