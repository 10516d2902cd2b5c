//! What each site gets: the decision where to poll, where not and why, and what to tell the user. No text is changed here.

pub(crate) mod backward_goto;
pub(crate) mod call_chain;
mod entries;
pub(crate) mod last_poll;
pub(crate) mod loop_form;
mod macro_use;
pub(crate) mod placement;

use crate::common::diagnostic::{Code, Diagnostic};
use crate::common::edit::Edit;
use crate::common::options::{AtExit, Polls};
use crate::common::site::{Form, Kind as SiteKind, Site, Summary};
use crate::source::analysis::call_graph::{self, CallGraph};
use crate::source::analysis::census;
use crate::source::analysis::check_elision;
use crate::source::analysis::cost;
use crate::source::analysis::descent::{self, Descent};
use crate::source::analysis::file_facts::{CallCost, Context};
use crate::source::analysis::function_scope::Home;
use crate::source::analysis::hardware;
use crate::source::emit::brief;
use crate::source::emit::poll_text;
use crate::source::emit::poll_text::{Opening, Spelling};
use crate::source::plan::call_chain::Link;
use crate::source::plan::loop_form::{Decision, Shape};
use crate::source::plan::placement::Place;
use crate::source::syntax::asm;
use crate::source::syntax::declaration::Declarations;
use crate::source::syntax::definition::{self, DeviceCode};
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::{self, Function};
use crate::source::syntax::grammar::Grammar;
use crate::source::syntax::scopes::{innermost_scope, innermost_scopes};
use crate::source::syntax::source_file::SourceFile;
use crate::source::syntax::statement::{self, Body, Loop, LoopKind};
use crate::source::syntax::token::Kind;
use cuinstr_abi::sites::hash;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Everything decided about one file.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) edits: Vec<Edit>,
    /// Sites with their offsets.
    pub(crate) sites: Vec<(usize, Site)>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) summary: Summary,
    /// Why a loop has no better form, by its site.
    pub(crate) reasons: BTreeMap<u64, &'static str>,
}

/// Plans the file and the bodies of its macros.
pub(crate) fn plan(input: &SourceFile, file: &Fragment) -> Plan {
    let mut declarations = Declarations::default();
    for fragment in std::iter::once(file).chain(input.macros.bodies()) {
        declarations.read(input.source, fragment);
    }
    let others = input.options.device_functions.iter().map(String::as_bytes).collect();
    let mut planner =
        Planner { input, declarations, others, links: Vec::new(), plan: Plan::default(), ids: BTreeSet::new(), grammar: Grammar::new() };
    let code = definition::device_code(input.source, file, input.macros, input.options);
    let names: Vec<&[u8]> =
        code.functions.values().filter_map(|function| function.name).map(|name| file.text(input.source, name)).collect();
    planner.fragment(file, code);
    planner.others.extend(names);
    for fragment in &input.macros.fragments {
        let functions = function::find(input.source, fragment, input.macros).functions;
        planner.fragment(fragment, DeviceCode { functions, outside: std::iter::once(0..fragment.len()).collect(), unmarked: Vec::new() });
    }
    let mut plan = planner.plan;
    plan.sites.sort_by_key(|(offset, site)| (*offset, site.kind as u8));
    plan
}

struct Planner<'a> {
    input: &'a SourceFile<'a>,
    declarations: Declarations<'a>,
    /// Names of device functions outside the fragment that is planned.
    others: BTreeSet<&'a [u8]>,
    /// The activations of that fragment, each with its owner and where its name stands.
    links: Vec<(Link, Owner, usize)>,
    plan: Plan,
    ids: BTreeSet<u64>,
    grammar: Grammar,
}

/// A fragment with what is known of its functions.
struct Known<'a> {
    fragment: &'a Fragment,
    functions: Vec<&'a Function>,
    recursive: BTreeMap<usize, Descent>,
    /// Functions whose threads can't leave.
    held: BTreeSet<usize>,
    /// Names of functions: a call costs the caller's allowance.
    names: BTreeSet<&'a [u8]>,
    /// What a call of each costs, in tokens.
    call_costs: BTreeMap<&'a [u8], CallCost>,
    /// Functions by the braces of their bodies. Heads in several arms of an `#if` share the closing one.
    by_open: BTreeMap<usize, usize>,
    by_close: BTreeMap<usize, Vec<usize>>,
}

/// What an activation declares where it begins.
#[derive(Debug, Clone, Copy)]
struct Counts {
    allowance: bool,
    turns: usize,
    nests: usize,
    /// Whether anything in the function polls, lambdas and classes in it included.
    polls: bool,
    /// Where a kernel's last poll is declared, if not where it begins.
    exit: Option<usize>,
}

/// The same while it is found out.
struct Activation<'a> {
    allowance: &'a mut bool,
    turns: &'a mut usize,
}

/// Where a scope belongs.
#[derive(Clone)]
struct Owner {
    function: Option<usize>,
    name: String,
    spelling: Spelling,
    /// Why nothing is inserted.
    untouched: Option<&'static str>,
    held: bool,
}

impl Planner<'_> {
    fn fragment(&mut self, fragment: &Fragment, code: DeviceCode) {
        let source = self.input.source;
        let DeviceCode { functions, outside, unmarked } = code;
        let list: Vec<&Function> = functions.values().collect();
        let calls = CallGraph::new(source, fragment, &list, self.input.macros);
        let suspects =
            list.iter().enumerate().filter(|(_, function)| hardware::forbids_leaving(source, fragment, function)).map(|(index, _)| index);
        let suspects: BTreeSet<usize> = suspects.collect();
        let mut held = suspects.clone();
        if !suspects.is_empty() {
            // Whoever calls such a function has its hardware in flight, and so has whatever that caller calls.
            let callers = (0..list.len()).filter(|index| calls.reachable([*index]).intersection(&suspects).next().is_some());
            held = calls.reachable(callers.collect::<Vec<_>>());
        }
        let names = list.iter().filter_map(|function| function.name).map(|name| fragment.text(source, name)).collect();
        let by_open = list.iter().enumerate().map(|(index, function)| (function.open, index)).collect();
        let mut by_close: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, function) in list.iter().enumerate() {
            by_close.entry(function.close).or_default().push(index);
        }
        let call_costs = cost::of_calls(source, fragment, &list, self.input.macros);
        let recursive = descent::of_cycles(source, fragment, &list, self.input.macros, &calls.cycles());
        let known = Known { fragment, recursive, held, functions: list, names, call_costs, by_open, by_close };
        for index in suspects {
            let name = self.name_of(&known, index);
            let at = fragment.tokens[known.functions[index].name.unwrap_or(known.functions[index].open)].range();
            let message = format!("threads of `{name}` do not leave under `leave`: the launch falls to the next tier");
            self.plan.diagnostics.push(Diagnostic::new(Code::LeaveUndefined, message).at(at).in_function(name));
        }
        let counts = |function: &&&Function| {
            function.marked || (function.open..function.close).any(|at| definition::is_loop(source, fragment, self.input.macros, at))
        };
        self.plan.summary.functions += known.functions.iter().filter(counts).count();
        self.plan.summary.kernels += known.functions.iter().filter(|function| function.spaces.global).count();
        for open in unmarked {
            let index = known.by_open[&open];
            let name = self.name_of(&known, index);
            let at = fragment.tokens[known.functions[index].name.unwrap_or(open)].range();
            let message = format!("`{name}` looks like device code, but no attribute or known macro marks it: it is polled in case it is");
            let advice = "name the macro in front of it in cuinstr.toml, under [device-macros]";
            self.plan.diagnostics.push(Diagnostic::new(Code::UnmarkedDeviceCode, message).at(at).in_function(name).help(advice));
        }
        // Runs of tokens outside functions come first: a macro's body is one, with the functions in it.
        let mut bodies: Vec<(Range<usize>, bool)> = outside.into_iter().map(|range| (range, false)).collect();
        for function in &known.functions {
            if fragment.of_macro.is_none() {
                self.loops_in_head(&known, function);
            }
            // Heads in several arms of an `#if` share one body: it is read from the last of them, and each gets what opens it.
            let is_last = known.by_close[&function.close].iter().all(|other| known.functions[*other].open <= function.open);
            bodies.extend(is_last.then_some((function.open..function.close, true)));
        }
        bodies.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut behind = 0;
        for (range, braces) in bodies {
            if range.start < behind {
                continue;
            }
            behind = range.end;
            let body = statement::read(source, fragment, &functions, (range.start, range.end), braces);
            self.body(&known, &functions, &body, (range.start, range.end));
        }
        self.looks_at_entries(&known, &calls);
        if self.input.options.at_exit == AtExit::Gate {
            for (index, function) in known.functions.iter().enumerate().filter(|(_, function)| function.spaces.global) {
                let name = self.name_of(&known, index);
                self.plan.diagnostics.extend(hardware::gate(source, fragment, function, &name, &known.functions));
            }
        }
    }

    fn name_of(&self, known: &Known, index: usize) -> String {
        known.functions[index].name.map_or("lambda".to_owned(), |name| {
            let text = String::from_utf8_lossy(known.fragment.text(self.input.source, name)).into_owned();
            if text == "operator" {
                // The signs that make an operator's name follow it.
                let mut sign = String::new();
                for at in name + 1..(name + 4).min(known.fragment.len()) {
                    if known.fragment.is(at, b'(') && !(sign.is_empty() && known.fragment.is(at + 1, b')')) {
                        break;
                    }
                    sign.push_str(&String::from_utf8_lossy(known.fragment.text(self.input.source, at)));
                    if sign == "()" {
                        break;
                    }
                }
                return text + &sign;
            }
            text
        })
    }

    fn owners(&self, known: &Known, body: &Body) -> Vec<Owner> {
        let options = self.input.options;
        let mut owners: Vec<Owner> = Vec::with_capacity(body.scopes.len());
        for scope in &body.scopes {
            let owner = match (known.by_open.get(&scope.open).copied(), scope.outer) {
                (Some(index), _) => {
                    let function = known.functions[index];
                    let name = self.name_of(known, index);
                    let untouched = if function.tile {
                        Some("tile code has no threads that could leave")
                    } else if options.leave_alone.contains(&name) {
                        Some("left alone by the configuration")
                    } else {
                        None
                    };
                    let host_too = function.spaces.host || function.constexpr;
                    Owner {
                        function: Some(index),
                        name,
                        spelling: Spelling { polls: options.polls, host_too, inner: false },
                        untouched,
                        held: known.held.contains(&index),
                    }
                }
                (None, Some(outer)) => {
                    let mut owner = owners[outer].clone();
                    if !owner.spelling.host_too && function::may_be_evaluated(known.fragment, scope.open) {
                        owner.spelling = Spelling { host_too: true, inner: true, ..owner.spelling };
                    }
                    owner
                }
                (None, None) => {
                    let name = known
                        .fragment
                        .of_macro
                        .clone()
                        .map_or(String::new(), |name| format!("#define {}", String::from_utf8_lossy(&self.input.source[name])));
                    let held = !known.held.is_empty();
                    Owner {
                        function: None,
                        name,
                        spelling: Spelling { polls: options.polls, host_too: true, inner: false },
                        untouched: None,
                        held,
                    }
                }
            };
            owners.push(owner);
        }
        owners
    }

    /// Plans one body with everything nested in it.
    fn body(&mut self, known: &Known, functions: &BTreeMap<usize, Function>, body: &Body, range: (usize, usize)) {
        let fragment = known.fragment;
        let first_edit = self.plan.edits.len();
        let owners = self.owners(known, body);
        let mut allowance = vec![false; body.scopes.len()];
        let others = self.others.clone();
        let context = Context {
            source: self.input.source,
            lexed: self.input.lexed,
            fragment,
            macros: self.input.macros,
            declarations: &self.declarations,
            functions: &known.names,
            others: &others,
            call_costs: &known.call_costs,
        };
        let homes: Vec<Home> = (0..body.scopes.len())
            .map(|scope| {
                let open = body.scopes[scope].open;
                // From the list of parameters on.
                let head = known.by_open.get(&open).and_then(|index| known.functions[*index].name).map_or(open, |name| name + 1);
                let range = head..fragment.mate(open).unwrap_or(open);
                Home { context: &context, body, range, open, host_too: owners[scope].spelling.host_too }
            })
            .collect();
        let decisions = loop_form::of_loops(self.input.options, &context, &homes);
        self.links.extend(entries::links(self.input.options, &context, known, &owners, body, &decisions, range));
        let function = owners[0].function.map(|index| known.functions[index]);
        let is_kernel = function.is_some_and(|function| function.spaces.global);
        let brief = if is_kernel { brief::nests(&homes, &decisions) } else { Vec::new() };
        let release = if is_kernel { check_elision::of_kernel(&homes[0], &known.functions) } else { check_elision::Release::default() };
        let exit = function.and_then(|function| last_poll::place(&context, self.input.options, function, body));
        if !body.bare {
            self.compare(known, &owners, body, range);
        }
        let (mut turns, mut nests) = (vec![0; body.scopes.len()], vec![0; body.scopes.len()]);
        for (loop_, decision) in body.loops.iter().zip(&decisions) {
            let scope = loop_.scope;
            if let (Shape::Foldable(nest), None) = (&decision.shape, decision.cost.left_alone) {
                nests[scope] = nests[scope].max(nest.index + 1);
            }
            let mut activation = Activation { allowance: &mut allowance[scope], turns: &mut turns[scope] };
            self.repeat(known, &owners[scope], body, loop_, decision, &mut activation);
        }
        brief::twice(self.input.source, fragment, body, &brief, &mut self.plan.edits, first_edit);
        for lost in census::lost(fragment, body, range) {
            let owner = &owners[innermost_scope(fragment, body, lost)];
            self.plan.summary.loops += 1;
            self.gap(
                Code::NotPolled,
                "this loop's extent can't be told: it is not polled",
                fragment,
                lost,
                owner,
                census::loop_kind(fragment, lost),
            );
        }
        let unpaid = backward_goto::Unpaid::of(body, &decisions);
        for goto in &body.gotos {
            self.goto(known, &owners[goto.scope], body, &unpaid, goto, &mut allowance[goto.scope]);
        }
        for use_ in &body.macro_uses {
            self.macro_use(known, &owners[use_.scope], use_, &mut allowance[use_.scope]);
        }
        for barrier in &body.barriers {
            let owner = &owners[barrier.scope];
            if owner.untouched.is_some() || owner.held {
                continue;
            }
            let first = fragment.tokens[barrier.token].start as usize;
            let last = fragment.tokens[barrier.token + 3].end as usize;
            let behind = release.behind(body, barrier.token);
            let why = behind.is_none() && release.unchecked.contains(&barrier.token);
            let form = if why { Form::None } else { Form::Flag };
            let site = self.site(SiteKind::Barrier, first, owner, form, why.then(|| check_elision::WHY.to_owned()));
            let check = owner.spelling.barrier(site, barrier.scope == 0 && is_kernel);
            if let Some(loop_end) = behind {
                self.insert(fragment.tokens[loop_end].end as usize, true, format!(" {check};"));
            }
            if !release.unchecked.contains(&barrier.token) {
                self.insert(first, false, "{ ".to_owned());
                self.insert(last, true, format!(" {check}; }}"));
            }
        }
        for found in asm::loops(self.input.source, fragment, body) {
            let owner = &owners[found.scope];
            self.gap(
                Code::AsmLoop,
                "this loop lies inside inline assembly: it is not polled",
                fragment,
                found.token,
                owner,
                SiteKind::AsmLoop,
            );
        }
        self.plan.diagnostics.extend(census::barriers(self.input.source, fragment, body, range, |scope| owners[scope].name.clone()));
        let scopes = innermost_scopes(fragment, body, range.0..range.1.min(fragment.len()));
        // A use of a macro that brings a loop along needs the allowance of the activation it lands in.
        for at in range.0..range.1.min(fragment.len()) {
            if self.input.options.pausable && fragment.kind(at) == Some(Kind::Op) && fragment.text(self.input.source, at) == b"<<<" {
                let owner = &owners[scopes[at - range.0]];
                let message = format!("`{}` launches a kernel: what the device launches can't be paused", owner.name);
                let diagnostic = Diagnostic::new(Code::PausableLaunches, message).at(fragment.tokens[at].range());
                self.plan.diagnostics.push(diagnostic.in_function(owner.name.clone()));
            }
            if fragment.kind(at) != Some(Kind::Ident) {
                continue;
            }
            if self.input.macros.may_paste_a_loop(self.input.source, fragment, at) {
                let owner = &owners[scopes[at - range.0]];
                self.plan.summary.loops += 1;
                let message = "this macro pastes words that may make a loop: it is not polled";
                self.gap(Code::NotPolled, message, fragment, at, owner, SiteKind::MacroLoop);
            }
            if self.input.macros.looping(fragment.text(self.input.source, at)).is_some() {
                allowance[scopes[at - range.0]] = true;
            }
            if fragment.of_macro.is_none() {
                self.jump_of_macro(known, &owners, body, at);
            }
        }
        let source = self.input.source;
        let calls_itself = (range.0..range.1.min(fragment.len())).filter(|at| call_graph::calls_its_own_argument(source, fragment, *at));
        let calling_themselves: BTreeSet<usize> = calls_itself.map(|at| scopes[at - range.0]).collect();
        let polls = allowance.contains(&true);
        let first_opening = self.plan.edits.len();
        for (index, scope) in body.scopes.iter().enumerate() {
            let is_function = functions.contains_key(&scope.open);
            if index == 0 && body.bare {
                continue;
            }
            let twins = fragment.mate(scope.open).and_then(|close| known.by_close.get(&close)).filter(|_| is_function);
            // A head in another arm of an `#if` has a last poll of its own.
            let exit = exit.filter(|_| index == 0 && twins.is_some_and(|twins| twins.len() == 1));
            let counts = Counts { allowance: allowance[index], turns: turns[index], nests: nests[index], polls, exit };
            self.opening(known, &owners[index], scope.open, is_function, counts);
            if !is_function && index > 0 && owners[index].untouched.is_none() && calling_themselves.contains(&index) {
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
        // What opens a body stands in front of whatever else its brace is followed by.
        self.plan.edits[first_edit..].rotate_left(first_opening - first_edit);
    }

    /// What follows the brace that opens a function or lambda.
    fn opening(&mut self, known: &Known, owner: &Owner, open: usize, is_function: bool, counts: Counts) {
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
        let at = known.fragment.tokens[open].end as usize;
        let allowance = counts.allowance && self.input.options.polls != Polls::Each;
        let mut opening = Opening { allowance, turns: counts.turns, nests: counts.nests, ..Opening::default() };
        if is_function && let Some(index) = owner.function {
            let name_at = known.fragment.tokens[known.functions[index].name.unwrap_or(open)].start as usize;
            if known.functions[index].spaces.global {
                let entry = self.site(SiteKind::Entry, name_at, owner, Form::Flag, None);
                let close = known.fragment.tokens[known.functions[index].close].start as usize;
                let exit = self.site(SiteKind::Exit, close, owner, Form::Each, None);
                let is_short = !counts.polls && !self.calls_into_the_file(known, index) && !known.fragment.is_enclosed(open);
                opening.short = is_short.then(|| last_poll::waits(self.input.source, known.fragment, self.input.macros, open));
                opening.entry = Some(entry);
                opening.pausable = self.input.options.pausable;
                opening.barriers = last_poll::has_barrier(self.input.source, known.fragment, open);
                match counts.exit.filter(|_| !is_short) {
                    Some(at) => self.insert(at, false, poll_text::exit(exit)),
                    None => opening.exit = Some(exit),
                }
            } else if let Some(descent) = known.recursive.get(&index) {
                let is_short = known.functions[index].constexpr && Self::is_one_return(known, index);
                let no_room = "a constexpr function of one return has no room for a poll; its depth is bounded by the stack";
                let why = if is_short { Some(no_room) } else { descent.why_none() };
                if let Some(why) = why {
                    self.site(SiteKind::Recursion, name_at, owner, Form::None, Some(why.to_owned()));
                } else {
                    opening.recursion = Some(self.site(SiteKind::Recursion, name_at, owner, Form::Each, None));
                    opening.parts = if let Descent::Parts(parts) = descent { parts.clone() } else { Vec::new() };
                }
            }
        }
        let text = owner.spelling.opening(&opening);
        if !text.is_empty() {
            self.insert(at, false, text);
        }
    }

    /// A lambda that reaches itself polls where it begins, as a recursive function does.
    fn lambda(&mut self, fragment: &Fragment, owner: &Owner, open: usize) {
        let at = fragment.tokens[open].range();
        let site = self.site(SiteKind::Recursion, at.start, owner, Form::Each, None);
        self.insert(at.end, false, owner.spelling.opening(&Opening { recursion: Some(site), ..Opening::default() }));
    }

    /// Whether a kernel calls a function of this file, whose loops may be long, or uses a macro of its own, whose text may be anything.
    fn calls_into_the_file(&self, known: &Known, index: usize) -> bool {
        let (source, function) = (self.input.source, known.functions[index]);
        (function.open..function.close).any(|at| {
            let name = known.fragment.text(source, at);
            known.fragment.kind(at) == Some(Kind::Ident)
                && (known.names.contains(name) || self.input.macros.looping(name).is_some() || self.input.macros.is_loop_opener(name))
        })
    }

    fn is_one_return(known: &Known, index: usize) -> bool {
        let function = known.functions[index];
        known.fragment.kind(function.open + 1) == Some(Kind::Return)
            && (function.open..function.close).filter(|at| known.fragment.is(*at, b';')).count() == 1
    }

    /// A loop by keyword: left alone, or polled where its shape allows.
    fn repeat(
        &mut self,
        known: &Known,
        owner: &Owner,
        body: &Body,
        loop_: &Loop,
        Decision { cost, shape, weight, extent, why }: &Decision,
        activation: &mut Activation,
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
        let Some(place) = placement::of_loop(fragment, body, loop_) else {
            return self.gap(Code::NotPolled, "this loop has no place for a poll", fragment, loop_.keyword, owner, kind);
        };
        let site = self.site(kind, at, owner, owner.spelling.form_of(shape), None);
        self.plan.reasons.extend(why.map(|why| (site, why)));
        self.plan.summary.polled += 1;
        let poll = if let Shape::Foldable(nest) = shape {
            if nest.unrolled {
                self.insert(at, false, poll_text::unroll());
            }
            if let Some(at) = nest.begins {
                self.insert(at, false, poll_text::nest_begins(nest.index));
            }
            owner.spelling.in_nest(nest, extent.as_ref(), site, weight)
        } else if let Shape::Shared(tile) = shape {
            Spelling::of_share(tile, site, weight)
        } else {
            owner.spelling.repeat(site, weight)
        };
        *activation.allowance = true;
        if let Some((counts, edits)) = placement::of_shape(fragment, loop_, shape, weight, *activation.turns, site) {
            *activation.turns += usize::from(counts);
            self.plan.edits.extend(edits);
            return;
        }
        match place {
            Place::Step { at, empty } => self.insert(at, false, if empty { format!(" {poll}") } else { format!(" {poll},") }),
            Place::Brace { at } => self.insert(at, false, format!(" {poll};")),
            Place::Condition { open, close } => {
                self.insert(open, false, format!("({poll}, true) && ("));
                self.insert(close, true, ")".to_owned());
            }
            Place::Wrap { open, close } => {
                self.insert(open, false, format!(" {{ {poll};"));
                self.insert(close, true, " }".to_owned());
            }
        }
    }

    fn goto(
        &mut self,
        known: &Known,
        owner: &Owner,
        body: &Body,
        unpaid: &backward_goto::Unpaid,
        goto: &statement::Simple,
        allowance: &mut bool,
    ) {
        let (source, fragment) = (self.input.source, known.fragment);
        let label = fragment.text(source, goto.token + 1);
        if owner.untouched.is_some() || backward_goto::is_ahead(body, goto.token, label) {
            return;
        }
        self.plan.summary.loops += 1;
        if fragment.kind(goto.token + 1) != Some(Kind::Ident) || !fragment.is(goto.token + 2, b';') {
            return self.gap(Code::NotPolled, "this jump has no place for a poll", fragment, goto.token, owner, SiteKind::Goto);
        }
        let at = fragment.tokens[goto.token].start as usize;
        let site = self.site(SiteKind::Goto, at, owner, owner.spelling.form(), None);
        *allowance = true;
        self.plan.summary.polled += 1;
        let weight = unpaid.weight(body, goto.token, label);
        self.insert(at, false, format!("{{ {}; ", owner.spelling.repeat(site, &format!("{weight}u"))));
        self.insert(fragment.tokens[goto.token + 2].end as usize, true, " }".to_owned());
    }

    /// Loops in the initialisers between a constructor's parameters and its body.
    fn loops_in_head(&mut self, known: &Known, function: &Function) {
        for at in function.head..function.open {
            if matches!(known.fragment.kind(at), Some(Kind::For | Kind::While | Kind::Do)) {
                let owner = Owner {
                    function: None,
                    name: function
                        .name
                        .map_or(String::new(), |name| String::from_utf8_lossy(known.fragment.text(self.input.source, name)).into_owned()),
                    spelling: Spelling { polls: self.input.options.polls, host_too: false, inner: false },
                    untouched: None,
                    held: false,
                };
                self.plan.summary.loops += 1;
                let kind = census::loop_kind(known.fragment, at);
                self.gap(Code::NotPolled, "a loop in an initialiser is not polled", known.fragment, at, &owner, kind);
            }
        }
    }

    /// Each loop of the tokens must be a loop of the tree, with the same keyword and end.
    fn compare(&mut self, known: &Known, owners: &[Owner], body: &Body, range: (usize, usize)) {
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

    fn gap(&mut self, code: Code, message: &str, fragment: &Fragment, token: usize, owner: &Owner, kind: SiteKind) {
        let range = fragment.tokens[token].range();
        self.site(kind, range.start, owner, Form::None, Some(message.to_owned()));
        self.plan.summary.gaps += 1;
        self.plan.diagnostics.push(Diagnostic::new(code, message).at(range).in_function(owner.name.clone()));
    }

    fn insert(&mut self, at: usize, closes: bool, text: String) {
        debug_assert!(!text.contains(['\n', '#', '"', '\'']), "inserted text may land in a macro's body or argument");
        self.plan.edits.push(Edit { at, closes, text });
    }

    /// Registers a site; returns its id.
    fn site(&mut self, kind: SiteKind, offset: usize, owner: &Owner, form: Form, why: Option<String>) -> u64 {
        let mut id = hash(self.input.hash, &[&offset.to_le_bytes()[..], &[kind as u8]].concat()) & !1;
        // Two sites of one file never share an id, nor is any zero.
        while id == 0 || !self.ids.insert(id) {
            id = id.wrapping_add(2);
        }
        let held = owner.held && !matches!(kind, SiteKind::Entry);
        id |= u64::from(held);
        if form != Form::None {
            self.plan.summary.polls += 1;
        }
        let (line, column) = self.input.lines.position(offset);
        let site =
            Site { id: format!("{id:#018x}"), kind, function: owner.name.clone(), file: None, line, column, form, why, waiver: None };
        self.plan.sites.push((offset, site));
        id
    }
}
