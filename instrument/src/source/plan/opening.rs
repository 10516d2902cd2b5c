//! Plans the text behind the opening brace of a body.

use super::planner::{Known, Owner, Planner};
use crate::common::diagnostic::{Code, Diagnostic};
use crate::common::options::Polls;
use crate::common::site::{Form, Kind as SiteKind};
use crate::source::analysis::call_graph;
use crate::source::analysis::descent::Descent;
use crate::source::plan::insertion::{Insertion, OneReturn, Opening, PollStyle};
use crate::source::plan::last_poll;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::statement::Body;
use crate::source::syntax::token::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// The declarations of an activation where it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    /// Whether a loop of it counts down a budget.
    pub(super) budget: bool,
    /// How many loops count their chunks.
    pub(super) chunk_counters: usize,
    /// How many nests of loops count their units.
    pub(super) nests: usize,
    /// Whether anything in the function polls, lambdas and classes in it included.
    pub(super) polls: bool,
    /// Where a kernel's last poll is declared, if not where it begins.
    pub(super) exit: Option<usize>,
}

/// The needs of a body's activations, by their scopes.
pub(super) struct Needs {
    /// Whether a loop counts down a budget.
    pub(super) budget: Vec<bool>,
    /// How many loops count their chunks.
    pub(super) chunk_counters: Vec<usize>,
    /// How many nests of loops count their units.
    pub(super) nests: Vec<usize>,
}

impl Planner<'_> {
    /// Plans the text behind the brace that opens a function or lambda.
    pub(super) fn opening(&mut self, known: &Known, owner: &Owner, open: usize, is_function: bool, counts: Counts) {
        if owner.untouched.is_some() {
            if let (true, Some(index)) = (is_function, owner.function)
                && known.functions[index].tile
            {
                let at = known.fragment.tokens[known.functions[index].name.unwrap_or(open)].range();
                let message = format!("`{}` is tile code: it is left as it is", owner.name);
                self.plan.diagnostics.push(Diagnostic::new(Code::TileCode, message).at(at).in_function(owner.name.clone()));
            }
            return;
        }
        let mut style = owner.style;
        if counts.budget || counts.chunk_counters > 0 || counts.nests > 0 {
            style.one_return = OneReturn::No;
        }
        let at = self.opening_place(known, style, owner.function.filter(|_| is_function), open);
        let mut opening =
            Opening { budget: counts.budget, chunk_counters: counts.chunk_counters, nests: counts.nests, ..Opening::default() };
        if is_function && let Some(index) = owner.function {
            if known.functions[index].spaces.global {
                self.ends_of_kernel(known, owner, index, open, counts, &mut opening);
            } else if let Some(descent) = known.recursive.get(&index) {
                self.recursion(known, owner, index, descent, &mut opening);
            }
        }
        self.insert(Insertion::Opening { at, style, opening });
    }

    /// The polls where a kernel begins and ends.
    fn ends_of_kernel(&mut self, known: &Known, owner: &Owner, index: usize, open: usize, counts: Counts, opening: &mut Opening) {
        let (source, fragment, macros) = (self.input.source, known.fragment, self.input.macros);
        let name_at = fragment.tokens[known.functions[index].name.unwrap_or(open)].start as usize;
        let entry = self.site(SiteKind::Entry, name_at, owner, Form::Flag, None);
        let close = fragment.tokens[known.functions[index].close].start as usize;
        let exit = self.site(SiteKind::Exit, close, owner, Form::Each, None);
        let is_short = !counts.polls && !self.calls_into_the_file(known, index) && !fragment.is_enclosed(open);
        opening.short = is_short.then(|| last_poll::waits(source, fragment, macros, open));
        opening.entry = Some(entry);
        opening.pausable = self.input.options.pausable;
        opening.barriers = last_poll::has_barrier(source, fragment, open);
        match counts.exit.filter(|_| !is_short) {
            Some(at) => self.insert(Insertion::LastPoll { at, site: exit }),
            None => opening.exit = Some(exit),
        }
    }

    /// The poll where a function begins that may reach itself.
    fn recursion(&mut self, known: &Known, owner: &Owner, index: usize, descent: &Descent, opening: &mut Opening) {
        let function = known.functions[index];
        let at = known.fragment.tokens[function.name.unwrap_or(function.open)].start as usize;
        if let Some(why) = descent.why_none() {
            self.site(SiteKind::Recursion, at, owner, Form::None, Some(why.to_owned()));
        } else {
            opening.recursion = Some(self.site(SiteKind::Recursion, at, owner, Form::Each, None));
            match descent {
                Descent::Parts(parts) => opening.parts.clone_from(parts),
                Descent::UnlessNumbers(operands) => opening.unless_numbers.clone_from(operands),
                _ => {}
            }
        }
    }

    /// A lambda that reaches itself polls where it begins, as a recursive function does.
    pub(super) fn lambda(&mut self, fragment: &Fragment, owner: &Owner, open: usize) {
        let name_at = fragment.tokens[open].start as usize;
        let site = self.site(SiteKind::Recursion, name_at, owner, Form::Each, None);
        let opening = Opening { recursion: Some(site), ..Opening::default() };
        let at = fragment.behind_label_declarations(self.input.source, open);
        self.insert(Insertion::Opening { at, style: owner.style, opening });
    }

    /// Whether a kernel calls a function of this file, or uses a macro of its own. The function's loops may be long,
    /// and the macro's text may be anything.
    fn calls_into_the_file(&self, known: &Known, index: usize) -> bool {
        let (source, function) = (self.input.source, known.functions[index]);
        (function.open..function.close).any(|at| {
            let name = known.fragment.text(source, at);
            known.fragment.kind(at) == Some(Kind::Ident) && (known.names.contains(name) || is_looping(self.input.macros, name))
        })
    }

    /// Whether it is all that C++11 lets a constexpr function be.
    pub(super) fn one_return(known: &Known, macros: &Macros, index: usize) -> OneReturn {
        match return_of(known, macros, index) {
            Some(word) if known.fragment.is(word + 1, b'{') => OneReturn::List,
            Some(_) => OneReturn::Value,
            None => OneReturn::No,
        }
    }

    /// Where the text that opens a body stands: behind its brace, or in front of the value that is all of it.
    pub(super) fn opening_place(&self, known: &Known, style: PollStyle, index: Option<usize>, open: usize) -> usize {
        let macros = self.input.macros;
        let word = index.filter(|_| style.one_return == OneReturn::Value).and_then(|index| return_of(known, macros, index));
        match word {
            Some(word) => known.fragment.tokens[word].end as usize,
            None => known.fragment.behind_label_declarations(known.source, open),
        }
    }

    /// Plans the openings of the body and of each lambda and local method in it.
    #[expect(clippy::too_many_arguments, reason = "all of a body's plan meets where its braces open")]
    pub(super) fn openings(
        &mut self,
        known: &Known,
        functions: &BTreeMap<usize, Function>,
        owners: &[Owner],
        body: &Body,
        range: (usize, usize),
        scopes: &[usize],
        needs: &Needs,
        exit: Option<usize>,
    ) {
        let (source, fragment) = (self.input.source, known.fragment);
        let calls_itself = (range.0..range.1.min(fragment.len())).filter(|at| call_graph::calls_its_own_argument(source, fragment, *at));
        let calling_themselves: BTreeSet<usize> = calls_itself.map(|at| scopes[at - range.0]).collect();
        let polls = needs.budget.contains(&true);
        for (index, scope) in body.scopes.iter().enumerate() {
            let is_function = functions.contains_key(&scope.open);
            if index == 0 && body.bare {
                continue;
            }
            let twins = fragment.mate(scope.open).and_then(|close| known.by_close.get(&close)).filter(|_| is_function);
            // A head in another arm of an `#if` has a last poll of its own.
            let exit = exit.filter(|_| index == 0 && twins.is_some_and(|twins| twins.len() == 1));
            let budget = needs.budget[index] && self.input.options.polls != Polls::Each;
            let counts = Counts { budget, chunk_counters: needs.chunk_counters[index], nests: needs.nests[index], polls, exit };
            self.opening(known, &owners[index], scope.open, is_function, counts);
            if !is_function
                && index > 0
                && owners[index].untouched.is_none()
                && (calling_themselves.contains(&index) || known.lambdas.contains(&scope.open))
            {
                self.lambda(fragment, &owners[index], scope.open);
            }
            for &twin in twins.into_iter().flatten() {
                let open = known.functions[twin].open;
                if open != scope.open {
                    let owner = Owner { function: Some(twin), name: self.name_of(known, twin), ..owners[index].clone() };
                    self.opening(known, &owner, open, true, counts);
                }
            }
        }
    }
}

/// The `return` of a constexpr function that has no other statement, but for declarations of names. A macro that brings a loop
/// along needs counters, which are statements of their own.
fn return_of(known: &Known, macros: &Macros, index: usize) -> Option<usize> {
    let (function, fragment) = (known.functions[index], known.fragment);
    let repeats = |at: usize| fragment.kind(at) == Some(Kind::Ident) && is_looping(macros, fragment.text(known.source, at));
    if !function.constexpr || (function.open..function.close).any(repeats) {
        return None;
    }
    let mut at = function.open + 1;
    while matches!(fragment.text(known.source, at), b"static_assert" | b"using" | b"typedef") {
        at = (at..function.close).find(|end| fragment.is(*end, b';'))? + 1;
    }
    let is_last = fragment.kind(at) == Some(Kind::Return) && (at..function.close).filter(|at| fragment.is(*at, b';')).count() == 1;
    is_last.then_some(at)
}

fn is_looping(macros: &Macros, name: &[u8]) -> bool {
    macros.looping(name).is_some() || macros.is_loop_opener(name)
}
