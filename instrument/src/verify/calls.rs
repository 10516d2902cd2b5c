//! Who calls whom.

use super::graph::names;
use super::instruction::{split_guard, text_of};
use super::system::is_system;
use super::text::{Flow, Function, Module, Statement, uncommented};
use std::collections::BTreeMap;

/// What a `call` leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Callee<'a> {
    /// A function of the module, by index.
    Known(u32),
    /// Through a pointer: any of these.
    Pointer(Vec<u32>),
    /// A function of the system.
    System,
    /// A function that is not in sight, by name; empty for a pointer that no function of the module fits.
    Unknown(&'a str),
}

/// Functions by name, and those whose address is taken.
#[derive(Debug)]
pub(super) struct Callees<'a> {
    by_name: BTreeMap<&'a str, u32>,
    addressed: Vec<u32>,
    arity: Vec<(usize, usize)>,
}

impl<'a> Callees<'a> {
    pub(super) fn new(module: &Module<'a>, text: &'a str) -> Self {
        let by_name: BTreeMap<&str, u32> = module.functions.iter().zip(0..).map(|(function, index)| (function.name, index)).collect();
        let mut addressed = vec![false; module.functions.len()];
        let mut note = |text: &str, by_name: &BTreeMap<&str, u32>| {
            for name in names(text) {
                if let Some(index) = by_name.get(name) {
                    addressed[*index as usize] = true;
                }
            }
        };
        let indirect = module.functions.iter().any(|function| {
            function.statements.iter().any(|statement| statement.flow == Flow::Call && callee_name(text, statement).starts_with('%'))
        });
        if indirect {
            for variable in &module.variables {
                if let Some((_, values)) = variable.split_once('=') {
                    note(values, &by_name);
                }
            }
            for function in &module.functions {
                for statement in &function.statements {
                    let body = text_of(text, statement);
                    if statement.flow == Flow::Next && (body.starts_with("mov") || body.starts_with('@') || body.starts_with("st")) {
                        note(body, &by_name);
                    }
                }
            }
        }
        let addressed = (0..).zip(addressed).filter(|(_, addressed)| *addressed).map(|(index, _)| index).collect();
        let arity = module.functions.iter().map(|function| (0, parameters(function.head))).collect();
        Self { by_name, addressed, arity }
    }

    /// What a call leads to.
    pub(super) fn of(&self, function: &Function<'a>, text: &'a str, statement: &Statement) -> Callee<'a> {
        let name = callee_name(text, statement);
        if let Some(&index) = self.by_name.get(name) {
            return Callee::Known(index);
        }
        if !name.starts_with('%') {
            return if is_system(name) { Callee::System } else { Callee::Unknown(name) };
        }
        let last = names(text_of(text, statement)).last().unwrap_or("");
        let label = function.label(statement.scope, last).and_then(|label| label.table);
        let fits: Vec<u32> = match label {
            Some(table) if table.starts_with(".calltargets") => {
                let targets: Option<Vec<u32>> = names(table).skip(1).map(|name| self.by_name.get(name).copied()).collect();
                return targets.map_or(Callee::Unknown(""), Callee::Pointer);
            }
            Some(table) => {
                let wanted = parameters(table.rsplit_once('_').map_or("", |(_, behind)| behind));
                self.addressed.iter().copied().filter(|index| self.arity[*index as usize].1 == wanted).collect()
            }
            None => self.addressed.clone(),
        };
        if fits.is_empty() { Callee::Unknown("") } else { Callee::Pointer(fits) }
    }
}

/// The name behind `call`, of a function or of a register.
fn callee_name<'a>(text: &'a str, statement: &Statement) -> &'a str {
    let body = split_guard(text_of(text, statement)).1;
    let clean = uncommented(body);
    if clean.len() != body.len() {
        // Rare; the name is looked for behind the comments all the same.
        return names(body).find(|name| !name.starts_with("call") && !name.starts_with("ret")).unwrap_or("");
    }
    names(behind_results(body)).next().unwrap_or("")
}

/// What stands behind `call` and what it returns.
fn behind_results(body: &str) -> &str {
    let rest = body.trim_start_matches(|next: char| next.is_ascii_alphanumeric() || next == '.').trim_start();
    if !rest.starts_with('(') {
        return rest;
    }
    rest.split_once(')').map_or("", |(_, behind)| behind).trim_start_matches([',', ' ', '\t', '\r', '\n'])
}

/// The names of what a call hands on, in order.
pub(super) fn arguments<'a>(text: &'a str, statement: &Statement) -> impl Iterator<Item = &'a str> + use<'a> {
    let body = split_guard(text_of(text, statement)).1;
    let rest = if uncommented(body).len() == body.len() { behind_results(body) } else { "" };
    let inside = rest.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(inside, _)| inside);
    inside.split(',').map(str::trim)
}

/// How many parameters the first parentheses hold.
fn parameters(text: &str) -> usize {
    let inside = text.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(inside, _)| inside);
    if inside.trim().is_empty() { 0 } else { inside.split(',').count() }
}
