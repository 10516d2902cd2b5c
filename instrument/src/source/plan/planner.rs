//! The state of planning a file, and the steps that all parts of it share: name a function, register a site, report a gap.

use crate::common::diagnostic::{Code, Diagnostic};
use crate::common::options::CompilerLoop;
use crate::common::site::{Form, Kind as SiteKind, Site, Summary};
use crate::source::analysis::declared_type::Types;
use crate::source::analysis::descent::Descent;
use crate::source::analysis::expansion::Expansion;
use crate::source::analysis::file_facts::CallCost;
use crate::source::plan::call_chain::Link;
use crate::source::plan::insertion::{Insertion, OneReturn, Poll, PollKind, PollStyle};
use crate::source::plan::placement::Place;
use crate::source::plan::weight::Weight;
use crate::source::syntax::declaration::Declarations;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::{self, Function};
use crate::source::syntax::grammar::Grammar;
use crate::source::syntax::pasting::Pasting;
use crate::source::syntax::source_file::SourceFile;
use crate::source::syntax::statement::Body;
use cuinstr_abi::sites::hash;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Everything decided about one file.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// In the order in which they stand, where several stand at one place.
    pub(crate) insertions: Vec<Insertion>,
    /// Sites with their offsets.
    pub(crate) sites: Vec<(usize, Site)>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) summary: Summary,
    /// Why a loop has no better form, by its site.
    pub(crate) reasons: BTreeMap<u64, &'static str>,
}

pub(super) struct Planner<'a> {
    pub(super) input: &'a SourceFile<'a>,
    pub(super) declarations: Declarations<'a>,
    /// The types that the file's names are declared with.
    pub(super) types: Types<'a>,
    /// Names of device functions outside the fragment that is planned.
    pub(super) others: Rc<BTreeSet<&'a [u8]>>,
    /// The activations of that fragment, each with its owner and where its name stands.
    pub(super) links: Vec<(Link, Owner, usize)>,
    pub(super) pasting: Pasting<'a>,
    pub(super) expansion: Expansion<'a>,
    /// Macros whose functions may lead back to themselves through functions of the file.
    pub(super) made_on_cycles: BTreeSet<&'a [u8]>,
    /// Whether a macro calls what it pastes together, which may be any function.
    pub(super) pastes_calls: bool,
    /// Macros that bring loops of the compiler's along, and uses of macros that make their names.
    pub(super) compiler_loops: BTreeMap<Vec<u8>, CompilerLoop>,
    pub(super) pasted_loops: Pasting<'a>,
    pub(super) plan: Plan,
    pub(super) ids: BTreeSet<u64>,
    pub(super) grammar: Grammar,
}

/// A fragment with the facts about its functions.
pub(super) struct Known<'a> {
    pub(super) source: &'a [u8],
    pub(super) fragment: &'a Fragment,
    pub(super) functions: Vec<&'a Function>,
    pub(super) recursive: BTreeMap<usize, Descent>,
    /// Braces of lambdas that may lead back to themselves.
    pub(super) lambdas: BTreeSet<usize>,
    /// Calls in front of bodies that lead back there past no poll.
    pub(super) unpolled: BTreeMap<usize, usize>,
    /// Functions whose threads can't leave.
    pub(super) held: BTreeSet<usize>,
    /// Names of functions: a call costs the caller's budget.
    pub(super) names: BTreeSet<&'a [u8]>,
    /// The cost of a call of each, in tokens.
    pub(super) call_costs: BTreeMap<&'a [u8], CallCost>,
    /// Functions by the braces of their bodies. Heads in several arms of an `#if` share the closing one.
    pub(super) by_open: BTreeMap<usize, usize>,
    pub(super) by_close: BTreeMap<usize, Vec<usize>>,
}

/// Where a scope belongs.
#[derive(Clone)]
pub(super) struct Owner {
    pub(super) function: Option<usize>,
    pub(super) name: String,
    pub(super) style: PollStyle,
    /// Why nothing is inserted.
    pub(super) untouched: Option<&'static str>,
    pub(super) held: bool,
}

impl Planner<'_> {
    pub(super) fn name_of(&self, known: &Known, index: usize) -> String {
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

    pub(super) fn owners(&self, known: &Known, body: &Body) -> Vec<Owner> {
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
                        style: PollStyle {
                            polls: options.polls,
                            host_too,
                            evaluated: function.constexpr && known.fragment.captures_of(function.open).is_none(),
                            inner: false,
                            one_return: Self::one_return(known, self.input.macros, index),
                        },
                        untouched,
                        held: known.held.contains(&index),
                    }
                }
                (None, Some(outer)) => {
                    let mut owner = owners[outer].clone();
                    (owner.style.one_return, owner.style.evaluated) = (OneReturn::No, false);
                    if !owner.style.host_too && function::may_be_evaluated(known.fragment, scope.open) {
                        owner.style = PollStyle { host_too: true, inner: true, ..owner.style };
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
                        style: PollStyle {
                            polls: options.polls,
                            host_too: true,
                            evaluated: false,
                            inner: false,
                            one_return: OneReturn::No,
                        },
                        untouched: None,
                        held,
                    }
                }
            };
            owners.push(owner);
        }
        owners
    }

    pub(super) fn gap(&mut self, code: Code, message: &str, fragment: &Fragment, token: usize, owner: &Owner, kind: SiteKind) {
        let range = fragment.tokens[token].range();
        self.site(kind, range.start, owner, Form::None, Some(message.to_owned()));
        self.plan.summary.gaps += 1;
        self.plan.diagnostics.push(Diagnostic::new(code, message).at(range).in_function(owner.name.clone()));
    }

    pub(super) fn insert(&mut self, insertion: Insertion) {
        self.plan.insertions.push(insertion);
    }

    /// Inserts a poll that counts one unit.
    pub(super) fn poll(&mut self, place: Place, style: PollStyle, site: u64) {
        self.insert(Insertion::Poll { place, poll: Poll { style, site, weight: Weight::Units(1), kind: PollKind::Counted } });
    }

    /// Registers a site; returns its id.
    pub(super) fn site(&mut self, kind: SiteKind, offset: usize, owner: &Owner, form: Form, why: Option<String>) -> u64 {
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
