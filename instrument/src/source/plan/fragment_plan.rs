//! Plans a fragment: the file, or a macro's body.

use super::planner::{Known, Owner, Planner};
use crate::common::diagnostic::{Code, Diagnostic};
use crate::common::options::{AtExit, Options};
use crate::common::site::Kind as SiteKind;
use crate::source::analysis::call_graph::CallGraph;
use crate::source::analysis::descent::Descent;
use crate::source::analysis::{census, cost, descent, hardware, made_function};
use crate::source::plan::insertion::{OneReturn, PollStyle};
use crate::source::syntax::definition::{self, DeviceCode};
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::statement_reader;
use crate::source::syntax::token::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

impl Planner<'_> {
    pub(super) fn fragment(&mut self, fragment: &Fragment, code: DeviceCode) {
        let source = self.input.source;
        let DeviceCode { functions, outside, unmarked, made_elsewhere } = code;
        let list: Vec<&Function> = functions.values().collect();
        let mut types = self.types.clone();
        if fragment.of_macro.is_some() && !list.is_empty() {
            types.read(source, fragment, self.input.macros);
        }
        let calls = CallGraph::new(source, fragment, &list, self.input.macros, types);
        if fragment.of_macro.is_none() {
            self.made_on_cycles = made_function::on_cycles(source, fragment, &list, &calls, self.input.macros, &self.expansion);
        }
        let suspects = list.iter().enumerate().filter(|(_, function)| hardware::forbids_leaving(source, fragment, function));
        let suspects: BTreeSet<usize> = suspects.map(|(index, _)| index).collect();
        let known = self.known(fragment, list, &calls, &suspects);
        self.tell_of_functions(&known, &suspects, unmarked);
        if fragment.of_macro.is_none() {
            self.tell_of_pasted_attributes(fragment);
            self.tell_of_functions_made_elsewhere(fragment, made_elsewhere);
        }
        // Runs of tokens outside functions come first: a macro's body is one, with the functions in it.
        let mut bodies: Vec<(Range<usize>, bool)> = outside.into_iter().map(|range| (range, false)).collect();
        for (index, function) in known.functions.iter().enumerate() {
            if fragment.of_macro.is_none() {
                self.loops_in_head(&known, function);
                self.calls_in_head(&known, index);
            }
            // Heads in several arms of an `#if` share one body: it is read from the last of them, and each gets its own opening.
            let is_last = known.by_close[&function.close].iter().all(|other| known.functions[*other].open <= function.open);
            bodies.extend(is_last.then_some((function.open..function.close, true)));
        }
        bodies.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        if fragment.of_macro.is_none() {
            self.loops_in_arguments(&known, &bodies);
        }
        let mut behind = 0;
        for (range, braces) in bodies {
            if range.start < behind {
                continue;
            }
            behind = range.end;
            let body = statement_reader::read(source, fragment, &functions, (range.start, range.end), braces);
            self.body(&known, &functions, &body, (range.start, range.end));
        }
        self.checks_at_entries(&known, &calls);
        if self.input.options.at_exit == AtExit::Gate {
            for (index, function) in known.functions.iter().enumerate().filter(|(_, function)| function.spaces.global) {
                let name = self.name_of(&known, index);
                self.plan.diagnostics.extend(hardware::gate(source, fragment, function, &name, &known.functions));
            }
        }
    }

    /// Gathers the facts about the fragment's functions.
    fn known<'a>(&self, fragment: &'a Fragment, functions: Vec<&'a Function>, calls: &CallGraph, suspects: &BTreeSet<usize>) -> Known<'a>
    where
        Self: 'a,
    {
        let (source, macros) = (self.input.source, self.input.macros);
        let mut held = suspects.clone();
        if !suspects.is_empty() {
            // A caller of such a function has its hardware in flight, and so have all functions that this caller calls.
            held = calls.reachable(calls.leading_to(suspects).into_iter().filter(|caller| *caller < functions.len()));
        }
        let names = functions.iter().filter_map(|function| function.name).map(|name| fragment.text(source, name)).collect();
        let by_open = functions.iter().enumerate().map(|(index, function)| (function.open, index)).collect();
        let mut by_close: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, function) in functions.iter().enumerate() {
            by_close.entry(function.close).or_default().push(index);
        }
        let call_costs = cost::of_calls(source, fragment, &functions, macros);
        let mut recursive = descent::of_cycles(source, fragment, &functions, macros, &calls.cycles());
        let entered = &self.input.options.entered;
        let is_entered = |function: &Function| entered.contains(&(fragment.tokens[function.open].start as usize));
        let by_others = functions.iter().enumerate().filter(|(_, function)| fragment.of_macro.is_none() && is_entered(function));
        recursive.extend(by_others.map(|(index, _)| (index, Descent::Unknown)));
        let leads_back = fragment.of_macro.clone().is_some_and(|name| self.made_on_cycles.contains(&source[name]));
        recursive.extend((0..functions.len()).filter(|_| leads_back).map(|index| (index, Descent::Unknown)));
        let is_polled = |(_, descent): &(&usize, &Descent)| matches!(descent, Descent::Unknown | Descent::Parts(_) | Descent::Tree);
        let polled = recursive.iter().filter(is_polled).map(|(index, _)| *index).collect();
        for (index, operands) in calls.cycles_unless_numbers(&polled) {
            recursive.insert(index, Descent::UnlessNumbers(operands.into_iter().collect()));
        }
        let heads = calls.cycles_in_heads(fragment, &functions).into_iter().flatten();
        let unpolled = heads.filter_map(|(index, calls)| Some((index, calls.first()?.at))).collect();
        Known {
            source,
            fragment,
            functions,
            recursive,
            lambdas: calls.lambdas.clone(),
            unpolled,
            held,
            names,
            call_costs,
            by_open,
            by_close,
        }
    }

    /// Tells of macros that may mark device functions by words which they paste together.
    fn tell_of_pasted_attributes(&mut self, fragment: &Fragment) {
        for at in (0..fragment.len()).filter(|at| self.pasting.may_mark(fragment, *at)).collect::<Vec<_>>() {
            self.plan.summary.gaps += 1;
            let message =
                "this macro makes words or attributes that may mark a device function: if it does, the function's loops are not polled";
            self.plan.diagnostics.push(Diagnostic::new(Code::NotPolled, message).at(fragment.tokens[at].range()));
        }
    }

    /// Tells of device functions that macros make of texts which get no polls: those of the command line, or of headers that stay as they are.
    fn tell_of_functions_made_elsewhere(&mut self, fragment: &Fragment, uses: Vec<usize>) {
        for at in uses {
            self.plan.summary.loops += 1;
            let message = "this macro of the command line, or of a header that is not rewritten, makes device code that may repeat: \
                           it is not polled";
            self.gap(Code::NotPolled, message, fragment, at, &outside_functions(self.input.options), SiteKind::MacroLoop);
        }
    }

    /// Loops in host code that macros of this file take into device code: no function is seen around them.
    fn loops_in_arguments(&mut self, known: &Known, bodies: &[(Range<usize>, bool)]) {
        let (source, fragment, macros) = (self.input.source, known.fragment, self.input.macros);
        let owner = outside_functions(self.input.options);
        let mut behind = 0;
        for name in 0..fragment.len() {
            let is_use = fragment.kind(name) == Some(Kind::Ident) && macros.makes_device_code(fragment.text(source, name));
            let Some(close) = fragment.mate(name + 1).filter(|close| is_use && fragment.is(name + 1, b'(') && *close > behind) else {
                continue;
            };
            for at in (name + 2).max(behind)..close {
                let repeats = definition::is_loop(source, fragment, macros, at) || macros.looping(fragment.text(source, at)).is_some();
                if repeats && !bodies.iter().any(|(range, _)| range.contains(&at)) {
                    self.plan.summary.loops += 1;
                    let message = "a macro may make device code of this loop: it is not polled";
                    self.gap(Code::NotPolled, message, fragment, at, &owner, census::loop_kind(fragment, at));
                }
            }
            behind = close;
        }
    }

    /// Counts functions, and tells of those whose threads can't leave or that no attribute marks.
    fn tell_of_functions(&mut self, known: &Known, suspects: &BTreeSet<usize>, unmarked: Vec<usize>) {
        let (source, fragment) = (self.input.source, known.fragment);
        for index in suspects {
            let name = self.name_of(known, *index);
            let at = fragment.tokens[known.functions[*index].name.unwrap_or(known.functions[*index].open)].range();
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
            let name = self.name_of(known, index);
            let at = fragment.tokens[known.functions[index].name.unwrap_or(open)].range();
            let message = format!("`{name}` looks like device code, but no attribute or known macro marks it: it is polled in case it is");
            let advice = "name the macro in front of it in cuinstr.toml, under [device-macros]";
            self.plan.diagnostics.push(Diagnostic::new(Code::UnmarkedDeviceCode, message).at(at).in_function(name).help(advice));
        }
    }
}

/// The owner of what stands outside every function.
fn outside_functions(options: &Options) -> Owner {
    let style = PollStyle { polls: options.polls, host_too: true, evaluated: false, inner: false, one_return: OneReturn::No };
    Owner { function: None, name: String::new(), style, untouched: None, held: false }
}
