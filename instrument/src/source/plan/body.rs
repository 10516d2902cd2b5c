//! Plans a body: of a function, with all lambdas and local classes in it, or a run of tokens outside functions.

use super::planner::{Known, Owner, Planner};
use crate::common::diagnostic::{Code, Diagnostic};
use crate::common::site::Kind as SiteKind;
use crate::source::analysis::census;
use crate::source::analysis::check_elision::{self, Elision};
use crate::source::analysis::file_facts::FileFacts;
use crate::source::analysis::function_scope::FunctionScope;
use crate::source::plan::brief_nest::{self, BriefNest};
use crate::source::plan::insertion::Insertion;
use crate::source::plan::loop_form::{self, Decision, LoopForm};
use crate::source::plan::opening::Needs;
use crate::source::plan::{backward_goto, entries, last_poll};
use crate::source::syntax::asm;
use crate::source::syntax::function::Function;
use crate::source::syntax::scopes::{innermost_scope, innermost_scopes};
use crate::source::syntax::statement::Body;
use crate::source::syntax::token::Kind;
use std::collections::BTreeMap;
use std::rc::Rc;

impl Planner<'_> {
    /// Plans one body with everything nested in it.
    pub(super) fn body(&mut self, known: &Known, functions: &BTreeMap<usize, Function>, body: &Body, range: (usize, usize)) {
        let fragment = known.fragment;
        let first = self.plan.insertions.len();
        let owners = self.owners(known, body);
        let others = Rc::clone(&self.others);
        let facts = FileFacts {
            source: self.input.source,
            lexed: self.input.lexed,
            fragment,
            macros: self.input.macros,
            declarations: &self.declarations,
            functions: &known.names,
            others: &others,
            call_costs: &known.call_costs,
        };
        let function_scopes = function_scopes(&facts, known, &owners, body);
        let decisions = loop_form::of_loops(self.input.options, &facts, &function_scopes);
        self.links.extend(entries::links(self.input.options, &facts, &self.expansion, known, &owners, body, &decisions, range));
        let function = owners[0].function.map(|index| known.functions[index]);
        let is_kernel = function.is_some_and(|function| function.spaces.global);
        let brief = if is_kernel { brief_nest::nests(&function_scopes, &decisions) } else { Vec::new() };
        let elision = if is_kernel { check_elision::of_kernel(&function_scopes[0], &known.functions) } else { Elision::default() };
        let made = self.compiler_loops_in(&facts, range.0..range.1.min(fragment.len()));
        let exit = function.and_then(|function| last_poll::place(&facts, self.input.options, function, body));
        if !body.bare {
            self.compare(known, &owners, body, range);
        }
        let mut needs = Needs { budget: vec![false; owners.len()], chunk_counters: vec![0; owners.len()], nests: vec![0; owners.len()] };
        self.loops(known, &owners, body, &decisions, &mut needs);
        write_twice(brief, &mut self.plan.insertions, first);
        self.lost_loops(known, &owners, body, range);
        let unpaid = backward_goto::Unpaid::of(body, &decisions);
        for goto in &body.gotos {
            self.goto(known, &owners[goto.scope], body, &unpaid, goto, &mut needs.budget[goto.scope]);
        }
        for use_ in &body.macro_uses {
            self.macro_use(known, &owners[use_.scope], use_, &mut needs.budget[use_.scope]);
        }
        self.barriers(known, &owners, body, &elision, is_kernel);
        for (found, message) in asm::loops(self.input.source, fragment, body) {
            let owner = &owners[found.scope];
            self.gap(Code::AsmLoop, message, fragment, found.token, owner, SiteKind::AsmLoop);
        }
        self.plan.diagnostics.extend(census::barriers(self.input.source, fragment, body, range, |scope| owners[scope].name.clone()));
        let scopes = innermost_scopes(fragment, body, range.0..range.1.min(fragment.len()));
        self.words(known, &owners, body, range, &scopes, &mut needs.budget);
        self.tell_of_compiler_loops(fragment, made, |at| owners[scopes[at - range.0]].clone());
        let first_opening = self.plan.insertions.len();
        self.openings(known, functions, &owners, body, range, &scopes, &needs, exit);
        // The text that opens a body stands first behind its brace.
        self.plan.insertions[first..].rotate_left(first_opening - first);
    }

    fn loops(&mut self, known: &Known, owners: &[Owner], body: &Body, decisions: &[Decision], needs: &mut Needs) {
        for (loop_, decision) in body.loops.iter().zip(decisions) {
            let scope = loop_.scope;
            if let (LoopForm::Foldable(nest), None) = (&decision.form, decision.cost.left_alone) {
                needs.nests[scope] = needs.nests[scope].max(nest.index + 1);
            }
            self.repeat(known, &owners[scope], body, loop_, decision, (&mut needs.budget[scope], &mut needs.chunk_counters[scope]));
        }
    }

    /// Loops whose keywords stand in the range, and of which no loop was made.
    fn lost_loops(&mut self, known: &Known, owners: &[Owner], body: &Body, range: (usize, usize)) {
        let fragment = known.fragment;
        for lost in census::lost(fragment, body, range) {
            let owner = &owners[innermost_scope(fragment, body, lost)];
            self.plan.summary.loops += 1;
            let message = "this loop's extent can't be told: it is not polled";
            self.gap(Code::NotPolled, message, fragment, lost, owner, census::loop_kind(fragment, lost));
        }
    }

    /// Launches, and uses of macros that may bring a loop along: such a use needs the budget of the activation it lands in.
    fn words(&mut self, known: &Known, owners: &[Owner], body: &Body, range: (usize, usize), scopes: &[usize], budget: &mut [bool]) {
        let (source, fragment) = (self.input.source, known.fragment);
        for at in range.0..range.1.min(fragment.len()) {
            if self.input.options.pausable && fragment.kind(at) == Some(Kind::Op) && fragment.text(source, at) == b"<<<" {
                let owner = &owners[scopes[at - range.0]];
                let message = format!("`{}` launches a kernel: what the device launches can't be paused", owner.name);
                let diagnostic = Diagnostic::new(Code::PausableLaunches, message).at(fragment.tokens[at].range());
                self.plan.diagnostics.push(diagnostic.in_function(owner.name.clone()));
            }
            if fragment.kind(at) != Some(Kind::Ident) {
                continue;
            }
            if self.pasting.may_loop(fragment, at) {
                let owner = &owners[scopes[at - range.0]];
                self.plan.summary.loops += 1;
                let message = "this macro pastes words that may make a loop: it is not polled";
                self.gap(Code::NotPolled, message, fragment, at, owner, SiteKind::MacroLoop);
            }
            self.repeating_macro(known, &owners[scopes[at - range.0]], at);
            if let Some(message) = asm::use_may_loop(source, fragment, self.input.macros, at) {
                self.gap(Code::AsmLoop, message, fragment, at, &owners[scopes[at - range.0]], SiteKind::AsmLoop);
            }
            let loops = |name: &[u8]| self.input.macros.looping(name).is_some();
            if loops(fragment.text(source, at)) || self.pasting.names_of(fragment, at).into_iter().any(loops) {
                budget[scopes[at - range.0]] = true;
            }
            if fragment.of_macro.is_none() {
                self.jump_of_macro(known, owners, body, at);
            }
        }
    }
}

/// The functions, lambdas and local methods of a body, each for its scope.
fn function_scopes<'a>(facts: &'a FileFacts<'a>, known: &Known, owners: &[Owner], body: &'a Body) -> Vec<FunctionScope<'a>> {
    let function_scope = |(scope, owner): (&crate::source::syntax::statement::Scope, &Owner)| {
        let open = scope.open;
        // From the list of parameters on.
        let head = known.by_open.get(&open).and_then(|index| known.functions[*index].name).map_or(open, |name| name + 1);
        let range = head..facts.fragment.mate(open).unwrap_or(open);
        FunctionScope { facts, body, range, open, host_too: owner.style.host_too }
    };
    body.scopes.iter().zip(owners).map(function_scope).collect()
}

/// Has the nests stand there twice: the insertions of their loops, from the one at `first` on, go into the second text.
fn write_twice(nests: Vec<BriefNest>, insertions: &mut Vec<Insertion>, first: usize) {
    for nest in nests {
        let inside: Vec<Insertion> = insertions.extract_if(first.., |insertion| nest.span.contains(&insertion.at())).collect();
        // A function that is left alone by the configuration has none.
        if !inside.is_empty() {
            insertions.push(Insertion::Brief { nest, inside });
        }
    }
}
