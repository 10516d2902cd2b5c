//! The decisions: where to poll, where not and why, and the diagnostics for the user. No text is made here.

mod backward_goto;
mod barriers;
mod body;
pub(crate) mod brief_nest;
mod call_chain;
mod compiler_loops;
mod entries;
mod fragment_plan;
pub(crate) mod insertion;
mod last_poll;
pub(crate) mod loop_form;
mod loops;
mod macro_use;
mod opening;
pub(crate) mod placement;
mod planner;
pub(crate) mod weight;

use crate::source::analysis::declared_type::Types;
use crate::source::analysis::expansion::Expansion;
use crate::source::plan::planner::Planner;
use crate::source::syntax::declaration::Declarations;
use crate::source::syntax::definition::{self, DeviceCode};
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function;
use crate::source::syntax::grammar::Grammar;
use crate::source::syntax::pasting::Pasting;
use crate::source::syntax::source_file::SourceFile;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

pub(crate) use crate::source::plan::planner::Plan;

/// Plans the file and the bodies of its macros.
pub(crate) fn plan(input: &SourceFile, file: &Fragment) -> Plan {
    let mut declarations = Declarations::default();
    for fragment in std::iter::once(file).chain(input.macros.bodies()) {
        declarations.read(input.source, fragment);
    }
    let mut types = Types::default();
    types.read(input.source, file, input.macros);
    let others = Rc::new(input.options.device_functions.iter().map(String::as_bytes).collect());
    let mut planner = Planner {
        input,
        declarations,
        types,
        others,
        links: Vec::new(),
        pasting: Pasting::new(input.source, input.macros, input.macros.repeating()),
        expansion: Expansion::new(input.source, input.macros),
        made_on_cycles: BTreeSet::new(),
        pastes_calls: input.macros.fragments.iter().any(entries::pastes_a_call),
        compiler_loops: BTreeMap::new(),
        pasted_loops: Pasting::new(input.source, input.macros, BTreeSet::new()),
        plan: Plan::default(),
        ids: BTreeSet::new(),
        grammar: Grammar::new(),
    };
    let code = definition::device_code(input.source, file, input.macros, input.options);
    let names: Vec<&[u8]> =
        code.functions.values().filter_map(|function| function.name).map(|name| file.text(input.source, name)).collect();
    planner.read_macros(file, &names);
    planner.fragment(file, code);
    Rc::make_mut(&mut planner.others).extend(names);
    for fragment in &input.macros.fragments {
        let functions = function::find(input.source, fragment, input.macros).functions;
        let outside = std::iter::once(0..fragment.len()).collect();
        planner.fragment(fragment, DeviceCode { functions, outside, ..DeviceCode::default() });
    }
    let mut plan = planner.plan;
    plan.sites.sort_by_key(|(offset, site)| (*offset, site.kind as u8));
    plan
}
