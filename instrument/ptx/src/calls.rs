//! Who calls whom.

use crate::Span;
use crate::code::Code;
use crate::declaration::Parameter;
use crate::function::{Call, CallTarget, Flow, Function, TableKind};
use crate::module::Module;
use crate::operand::{NameId, Operand, Register};
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
#[derive(Debug, Default)]
pub struct Calls<'a> {
    by_name: ByName<'a, u32>,
    /// Functions whose address is taken, sorted.
    addressed: Vec<u32>,
    /// Of those, by the sizes in bits of what they return and take, with those in `any_type`.
    by_type: BTreeMap<Type, Vec<u32>>,
    /// Of those, where a size is not known.
    any_type: Vec<u32>,
    /// Functions of each `.calltargets`, by where it stands; none if some are out of sight.
    listed: BTreeMap<u32, Option<Vec<u32>>>,
    /// Which of the lists has the kernels that a call launches, by where the call stands.
    launched: BTreeMap<u32, u32>,
    /// Kernels that calls launch.
    kernels: Vec<Vec<u32>>,
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
        let mut calls = Self { by_name, ..Self::default() };
        for table in module.functions.iter().flat_map(|function| &function.tables) {
            if let TableKind::Callees(names) = &table.kind {
                let all: Option<BTreeSet<u32>> = names.iter().map(|name| calls.by_name.get(name).copied()).collect();
                calls.listed.insert(table.span.start, all.map(|all| all.into_iter().collect()));
            }
        }
        let is_pointer = |call: &Call<'_>| call.target == CallTarget::Pointer;
        if module.functions.iter().any(|function| function.calls.iter().any(is_pointer)) {
            let taken = calls.taken(text, module);
            calls.take(module, taken);
        }
        let mut any = None;
        for function in &module.functions {
            calls.find_launches(text, module, function, &mut any);
        }
        calls
    }

    /// Notes where calls through pointers may lead.
    fn take(&mut self, module: &Module<'a>, mut taken: BTreeSet<u32>) {
        let type_of = |index: u32| type_of(&module.functions[index as usize].results, &module.functions[index as usize].parameters);
        for index in &taken {
            match type_of(*index) {
                Some(of) => self.by_type.entry(of).or_default().push(*index),
                None => self.any_type.push(*index),
            }
        }
        // Another unit may take the address of a function that it sees, and hand it to this one. A call that fits none of this unit's own leads out
        // of sight for all that.
        let seen = module.functions.iter().map(|function| !function.is_kernel && matches!(function.linkage, ".visible" | ".weak"));
        let seen: Vec<u32> = (0..)
            .zip(seen)
            .filter(|(index, is_seen)| *is_seen && !taken.is_empty() && !taken.contains(index))
            .map(|(index, _)| index)
            .collect();
        for index in seen {
            match type_of(index) {
                Some(of) if !self.any_type.is_empty() => self.by_type.entry(of).or_default().push(index),
                Some(of) => self.by_type.get_mut(&of).into_iter().for_each(|all| all.push(index)),
                None => self.by_type.values_mut().chain([&mut self.any_type]).filter(|all| !all.is_empty()).for_each(|all| all.push(index)),
            }
            taken.insert(index);
        }
        for all in self.by_type.values_mut() {
            all.extend(&self.any_type);
            all.sort_unstable();
            all.dedup();
        }
        self.any_type.sort_unstable();
        self.addressed = taken.into_iter().collect();
    }

    /// Finds which kernels the calls of a function launch. `any` is the list of all that may be launched, once it is asked for.
    fn find_launches(&mut self, text: &'a str, module: &Module<'a>, function: &Function<'a>, any: &mut Option<u32>) {
        let is_launch =
            |call: &&Call<'a>| matches!(call.target, CallTarget::Name(name) if launches(name) && !self.by_name.contains_key(name));
        let found: Vec<u32> = function.calls.iter().filter(is_launch).map(|call| call.statement).collect();
        if found.is_empty() {
            return;
        }
        let code = Code::new(text, function);
        let mentions = Mentions::new(&code);
        // Lists by the register that is stored; none where any kernel may be launched.
        let mut lists: BTreeMap<Option<Register>, u32> = any.iter().map(|list| (None, *list)).collect();
        for call in found {
            let register = mentions.stored(call);
            let list = lists.get(&register).copied().unwrap_or_else(|| {
                let known = register.and_then(|register| mentions.held(register, &self.by_name));
                let of = register.filter(|_| known.is_some());
                let list = *lists.entry(of).or_insert_with(|| {
                    // Its name may come from the host, or from another unit.
                    let kernels = known.unwrap_or_else(|| (0..module.functions.len() as u32).collect()).into_iter();
                    self.kernels.push(kernels.filter(|index| module.functions[*index as usize].is_kernel).collect());
                    self.kernels.len() as u32 - 1
                });
                lists.insert(register, list);
                list
            });
            if !self.kernels[list as usize].is_empty() {
                self.launched.insert(function.statements[call as usize].opcode, list);
            }
        }
        *any = lists.get(&None).copied();
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

    /// Functions whose address is taken and that fit a prototype.
    fn of_type(&self, results: &[Parameter<'_>], parameters: &[Parameter<'_>]) -> &Vec<u32> {
        match type_of(results, parameters) {
            Some(of) => self.by_type.get(&of).unwrap_or(&self.any_type),
            None => &self.addressed,
        }
    }

    /// What a call leads to.
    #[must_use]
    pub fn callee(&self, function: &Function<'a>, call: &Call<'a>) -> Callee<'_, 'a> {
        match call.target {
            CallTarget::Name(name) => {
                match (self.by_name.get(name), self.launched.get(&function.statements[call.statement as usize].opcode)) {
                    (Some(index), _) => Callee::Known(*index),
                    (None, Some(list)) => Callee::Launch(&self.kernels[*list as usize]),
                    (None, None) => Callee::Outside(name),
                }
            }
            CallTarget::Lost => Callee::Lost,
            CallTarget::Pointer => {
                let table = call.table.and_then(|table| function.tables.get(table as usize));
                let fits = match table.map(|table| (table.span.start, &table.kind)) {
                    Some((at, TableKind::Callees(_))) => self.listed.get(&at).and_then(Option::as_ref),
                    Some((_, TableKind::Prototype { results, parameters })) => Some(self.of_type(results, parameters)),
                    Some((_, TableKind::Branches(_))) | None => Some(&self.addressed),
                };
                fits.filter(|fits| !fits.is_empty()).map_or(Callee::Lost, |fits| Callee::Pointer(fits))
            }
        }
    }
}

/// Where a function mentions its names and writes its registers.
struct Mentions<'c, 'a> {
    code: &'c Code<'a>,
    /// Statements that have a name among their operands, in order.
    naming: BTreeMap<NameId, Vec<u32>>,
    /// Names that more than calls, and loads and stores by them, mention: something else may write them.
    taken: BTreeSet<NameId>,
    /// Statements that write a register.
    writers: BTreeMap<Register, Vec<u32>>,
}

impl<'c, 'a> Mentions<'c, 'a> {
    fn new(code: &'c Code<'a>) -> Self {
        let mut mentions = Self { code, naming: BTreeMap::new(), taken: BTreeSet::new(), writers: BTreeMap::new() };
        for (at, statement) in (0..).zip(&code.function.statements) {
            for operand in code.all_operands(at) {
                if let Operand::Name(name, _) | Operand::AtName(name, _) = operand {
                    mentions.naming.entry(*name).or_default().push(at);
                }
                if let (Operand::Name(name, _), true) = (operand, statement.flow != Flow::Call) {
                    mentions.taken.insert(*name);
                }
            }
            code.each_written(at, |register| mentions.writers.entry(register).or_default().push(at));
        }
        mentions
    }

    /// The register that is stored as a call's first argument; none if that may be another.
    fn stored(&self, call: u32) -> Option<Register> {
        let code = self.code;
        // What is returned stands in front of the callee.
        let arguments =
            code.operands(call).iter().skip(1).find_map(|operand| if let Operand::Group(list) = operand { Some(*list) } else { None })?;
        let &[Operand::Name(argument, 0), ..] = code.list(arguments) else { return None };
        let naming = self.naming.get(&argument)?;
        let store = *naming[..naming.partition_point(|at| *at < call)].last()?;
        // No other way may lead to the call.
        let labels = &code.function.labels;
        let label = labels.get(labels.partition_point(|label| label.statement <= store));
        let is_entered = label.is_some_and(|label| label.statement <= call);
        let is_whole = code.opcode(store).starts_with("st.param.") && code.opcode(store).ends_with("64") && code.guard(store).is_none();
        let &[Operand::AtName(_, 0), Operand::Register(register)] = code.operands(store) else { return None };
        (!is_entered && is_whole && !self.taken.contains(&argument)).then_some(register)
    }

    /// The functions whose address a register may hold; none if that may be anything else.
    fn held(&self, register: Register, by_name: &ByName<'a, u32>) -> Option<BTreeSet<u32>> {
        let code = self.code;
        let (mut found, mut met, mut work) = (BTreeSet::new(), BTreeSet::from([register]), vec![register]);
        while let Some(register) = work.pop() {
            // Where nothing sets it, what the caller put there is not in sight.
            for &at in self.writers.get(&register)? {
                match *code.operands(at) {
                    [_, Operand::Name(name, 0)] if code.opcode(at).starts_with("mov.") => {
                        found.insert(*by_name.get(code.name(name).text)?);
                    }
                    [_, Operand::Register(from)] if code.opcode(at).starts_with("mov.") => {
                        if met.insert(from) {
                            work.push(from);
                        }
                    }
                    _ => return None,
                }
            }
        }
        Some(found)
    }
}

/// Functions are told apart by the sizes of what they return and take; none if a size is not known, which fits any.
fn type_of(results: &[Parameter<'_>], parameters: &[Parameter<'_>]) -> Option<Type> {
    let size = |parameter: &Parameter<'_>| Some(parameter.bits()).filter(|bits| *bits > 0);
    let sizes = |all: &[Parameter<'_>]| all.iter().map(size).collect::<Option<Vec<u64>>>();
    sizes(results).zip(sizes(parameters))
}
