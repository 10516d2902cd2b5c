//! Who calls whom.

use crate::Span;
use crate::code::Code;
use crate::declaration::Parameter;
use crate::function::{Call, CallTarget, Flow, Function, TableKind};
use crate::module::Module;
use crate::operand::Operand;
use crate::symbols::ByName;
use crate::system::launches;
use crate::token::{Kind, Lexer};
use std::collections::{BTreeMap, BTreeSet};

/// What a `call` leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callee<'c, 'a> {
    /// A function of the module, by index.
    Known(u32),
    /// Through a pointer: any of these, sorted.
    Pointer(&'c [u32]),
    /// The system launches a kernel there: one of these, sorted.
    Launch(&'c [u32]),
    /// A function without a body in the module.
    Outside(&'a str),
    /// What can't be told: a pointer that no function of the module fits, or a list that names functions out of sight.
    Lost,
}

/// The calls of a module.
#[derive(Debug)]
pub struct Calls<'a> {
    by_name: ByName<'a, u32>,
    /// Functions whose address is taken, sorted.
    addressed: Vec<u32>,
    /// Of those, by the sizes in bits of what they return and take.
    by_type: BTreeMap<Type, Vec<u32>>,
    /// Functions of each `.calltargets`, by where it stands; none if some are out of sight.
    listed: BTreeMap<u32, Option<Vec<u32>>>,
    /// Kernels that a call launches, by where the call stands.
    launched: BTreeMap<u32, Vec<u32>>,
}

type Type = (Vec<u64>, Vec<u64>);

impl<'a> Calls<'a> {
    /// Finds the functions of a module that calls may lead to.
    #[must_use]
    pub fn new(text: &'a str, module: &Module<'a>) -> Self {
        let mut by_name: ByName<'a, u32> = module.functions.iter().map(|function| function.name).zip(0..).collect();
        for (alias, function) in &module.aliases {
            if let Some(index) = by_name.get(function).copied() {
                by_name.entry(alias).or_insert(index);
            }
        }
        let mut calls =
            Self { by_name, addressed: Vec::new(), by_type: BTreeMap::new(), listed: BTreeMap::new(), launched: BTreeMap::new() };
        for table in module.functions.iter().flat_map(|function| &function.tables) {
            if let TableKind::Callees(names) = &table.kind {
                let all: Option<BTreeSet<u32>> = names.iter().map(|name| calls.by_name.get(name).copied()).collect();
                calls.listed.insert(table.span.start, all.map(|all| all.into_iter().collect()));
            }
        }
        let is_pointer = |call: &Call<'_>| call.target == CallTarget::Pointer;
        if module.functions.iter().any(|function| function.calls.iter().any(is_pointer)) {
            let taken = calls.taken(text, module);
            for index in &taken {
                let function = &module.functions[*index as usize];
                calls.by_type.entry(type_of(&function.results, &function.parameters)).or_default().push(*index);
            }
            calls.addressed = taken.into_iter().collect();
        }
        for function in &module.functions {
            calls.find_launches(text, module, function);
        }
        calls
    }

    /// Finds which kernels the calls of a function launch.
    fn find_launches(&mut self, text: &'a str, module: &Module<'a>, function: &Function<'a>) {
        let is_launch =
            |call: &&Call<'a>| matches!(call.target, CallTarget::Name(name) if launches(name) && !self.by_name.contains_key(name));
        let found: Vec<u32> = function.calls.iter().filter(is_launch).map(|call| call.statement).collect();
        if found.is_empty() {
            return;
        }
        let code = Code::new(text, function);
        for call in found {
            let kernels = self.launched_by(&code, call).unwrap_or_else(|| self.taken(text, module));
            let kernels: Vec<u32> = kernels.into_iter().filter(|index| module.functions[*index as usize].is_kernel).collect();
            if !kernels.is_empty() {
                self.launched.insert(function.statements[call as usize].opcode, kernels);
            }
        }
    }

    /// The functions whose address is a call's first argument; none if that may be another.
    fn launched_by(&self, code: &Code<'a>, call: u32) -> Option<BTreeSet<u32>> {
        // What is returned stands in front of the callee.
        let arguments =
            code.operands(call).iter().skip(1).find_map(|operand| if let Operand::Group(list) = operand { Some(*list) } else { None })?;
        let &[Operand::Name(argument, 0), ..] = code.list(arguments) else { return None };
        let is_it = |operand: &Operand| matches!(operand, Operand::Name(name, _) | Operand::AtName(name, _) if *name == argument);
        let names = |at: &u32| code.all_operands(*at).iter().any(is_it);
        let is_call = |at: u32| code.function.statements[at as usize].flow == Flow::Call;
        // Only calls and loads and stores by its name: nothing else may write it.
        let is_plain = |at: u32| {
            is_call(at) || code.all_operands(at).iter().all(|operand| !matches!(operand, Operand::Name(name, _) if *name == argument))
        };
        let store = (0..call).rev().find(names)?;
        // No other way may lead to the call.
        let is_entered = code.function.labels.iter().any(|label| (store + 1..=call).contains(&label.statement));
        let is_whole = code.opcode(store).starts_with("st.param.") && code.opcode(store).ends_with("64") && code.guard(store).is_none();
        let &[Operand::AtName(_, 0), Operand::Register(register)] = code.operands(store) else { return None };
        if is_entered || !is_whole || !(0..code.function.statements.len() as u32).all(is_plain) {
            return None;
        }
        let (mut found, mut registers, mut next) = (BTreeSet::new(), vec![register], 0);
        while let Some(register) = registers.get(next).copied() {
            next += 1;
            let mut is_set = false;
            for at in 0..code.function.statements.len() as u32 {
                let mut is_written = false;
                code.each_written(at, |written| is_written |= written == register);
                is_set |= is_written;
                match *code.operands(at) {
                    _ if !is_written => {}
                    [_, Operand::Name(name, 0)] if code.opcode(at).starts_with("mov.") => {
                        found.insert(*self.by_name.get(code.name(name).text)?);
                    }
                    [_, Operand::Register(from)] if code.opcode(at).starts_with("mov.") => {
                        if !registers.contains(&from) {
                            registers.push(from);
                        }
                    }
                    _ => return None,
                }
            }
            // What the caller put there is not in sight.
            if !is_set {
                return None;
            }
        }
        Some(found)
    }

    /// Functions that are named anywhere but as what a `call` calls.
    fn taken(&self, text: &'a str, module: &Module<'a>) -> BTreeSet<u32> {
        let mut taken = BTreeSet::new();
        let variables = module.functions.iter().flat_map(|function| &function.variables);
        for variable in module.variables.iter().chain(variables) {
            taken.extend(variable.initial_names(text).filter_map(|name| self.by_name.get(name)));
        }
        for function in &module.functions {
            let mut calls = function.calls.iter().peekable();
            for (number, statement) in (0..).zip(&function.statements) {
                let call = calls.next_if(|call| call.statement == number);
                let mut callee = call.and_then(|call| if let CallTarget::Name(name) = call.target { Some(name) } else { None });
                let mut lexer = Lexer::within(text, Span { start: statement.opcode, end: statement.end });
                lexer.take(Kind::Word);
                while let Some(token) = lexer.next() {
                    let name = lexer.slice(token.span);
                    if callee.take_if(|callee| *callee == name).is_none() {
                        taken.extend(self.by_name.get(name));
                    }
                }
            }
        }
        taken
    }

    /// Functions whose address is taken, sorted; none if nothing is called through a pointer.
    #[must_use]
    pub fn addressed(&self) -> &[u32] {
        &self.addressed
    }

    /// What a call leads to.
    #[must_use]
    pub fn callee(&self, function: &Function<'a>, call: &Call<'a>) -> Callee<'_, 'a> {
        match call.target {
            CallTarget::Name(name) => {
                match (self.by_name.get(name), self.launched.get(&function.statements[call.statement as usize].opcode)) {
                    (Some(index), _) => Callee::Known(*index),
                    (None, Some(kernels)) => Callee::Launch(kernels),
                    (None, None) => Callee::Outside(name),
                }
            }
            CallTarget::Lost => Callee::Lost,
            CallTarget::Pointer => {
                let table = call.table.and_then(|table| function.tables.get(table as usize));
                let fits = match table.map(|table| (table.span.start, &table.kind)) {
                    Some((at, TableKind::Callees(_))) => self.listed.get(&at).and_then(Option::as_ref),
                    Some((_, TableKind::Prototype { results, parameters })) => self.by_type.get(&type_of(results, parameters)),
                    Some((_, TableKind::Branches(_))) | None => Some(&self.addressed),
                };
                fits.filter(|fits| !fits.is_empty()).map_or(Callee::Lost, |fits| Callee::Pointer(fits))
            }
        }
    }
}

/// Functions are told apart by the sizes of what they return and take. A size that is not known fits none that is.
fn type_of(results: &[Parameter<'_>], parameters: &[Parameter<'_>]) -> Type {
    let sizes = |all: &[Parameter<'_>]| all.iter().map(Parameter::bits).collect();
    (sizes(results), sizes(parameters))
}
