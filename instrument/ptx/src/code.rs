//! The operands of a function's statements.

use crate::Span;
use crate::declaration::{Declared, RegisterDeclaration};
use crate::decode::{Decoded, Decoder, LOST, NONE};
use crate::effect::{Access, access_of};
use crate::function::{Flow, Function};
use crate::operand::{List, Name, NameId, Operand, Register};

/// A function with the operands of all its statements, names resolved where they stand.
#[derive(Debug)]
pub struct Code<'a> {
    text: &'a str,
    /// The function.
    pub function: &'a Function<'a>,
    statements: Vec<Decoded>,
    /// Those of a statement in one run: lists first, then the operands themselves.
    operands: Vec<Operand>,
    names: Vec<Name<'a>>,
    /// Opcodes with blanks or comments in them, without these, by statement.
    spaced: Vec<(u32, String)>,
    /// The declaration of each register.
    owners: Vec<u32>,
    /// Parameters that are registers, which are declared first.
    parameter_registers: usize,
}

impl<'a> Code<'a> {
    /// Takes all statements of a function apart. The text is the module's. A branch's label is no operand: see [`Function::target`].
    #[must_use]
    pub fn new(text: &'a str, function: &'a Function<'a>) -> Self {
        let mut decoder = Decoder::new(text, function);
        let mut statements = Vec::with_capacity(function.statements.len());
        let mut spaced = Vec::new();
        let (mut registers, mut variables) = (function.registers.iter().peekable(), (0..).zip(&function.variables).peekable());
        for (number, statement) in (0..).zip(&function.statements) {
            // Declarations in front of the statement, in the order of the text.
            loop {
                let register = registers.peek().filter(|declared| declared.statement <= number);
                let variable = variables.peek().filter(|(_, declared)| declared.statement <= number);
                let is_register = match (register, variable) {
                    (Some(register), Some((_, variable))) => register.at < variable.at,
                    (register, None) if register.is_none() => break,
                    (register, _) => register.is_some(),
                };
                if is_register && let Some(declared) = registers.next() {
                    decoder.declare_register(function, declared);
                } else if let Some((index, declared)) = variables.next() {
                    decoder.move_to(function, declared.scope);
                    decoder.declare(declared.name, Declared::Variable(index));
                }
            }
            decoder.move_to(function, statement.scope);
            let mut taken = decoder.statement(statement);
            if taken.opcode == 0 && statement.end > statement.opcode {
                let opcode = statement.whole_opcode(text).into_owned();
                taken.access = access_of(&opcode);
                spaced.push((number, opcode));
            }
            statements.push(taken);
        }
        let Decoder { operands, names, registers, .. } = decoder;
        Self {
            text,
            function,
            statements,
            operands,
            names,
            spaced,
            owners: registers.owners,
            parameter_registers: function.parameter_registers(),
        }
    }

    fn decoded(&self, statement: u32) -> Option<&Decoded> {
        self.statements.get(statement as usize)
    }

    fn end(&self, statement: u32) -> usize {
        self.decoded(statement + 1).map_or(self.operands.len(), |next| next.first as usize)
    }

    /// The opcode with its modifiers, without blanks; empty for the statement at the closing brace.
    #[must_use]
    pub fn opcode(&self, statement: u32) -> &str {
        let (Some(decoded), Some(at)) = (self.decoded(statement), self.function.statements.get(statement as usize)) else { return "" };
        if decoded.opcode != 0 {
            return Span { start: at.opcode, end: at.opcode + u32::from(decoded.opcode) }.of(self.text);
        }
        let found = self.spaced.binary_search_by_key(&statement, |(statement, _)| *statement);
        found.map_or("", |found| &self.spaced[found].1)
    }

    /// The guard: its register, if it is one of the function, and whether it must be true for the statement to take effect.
    #[must_use]
    pub fn guard(&self, statement: u32) -> Option<(Option<Register>, bool)> {
        let decoded = self.decoded(statement).filter(|decoded| decoded.guard != NONE)?;
        Some(((decoded.guard != LOST).then_some(decoded.guard), decoded.when))
    }

    /// The operands of a statement.
    #[must_use]
    pub fn operands(&self, statement: u32) -> &[Operand] {
        self.decoded(statement).map_or(&[], |decoded| &self.operands[decoded.top as usize..self.end(statement)])
    }

    /// What an operand holds.
    #[must_use]
    pub fn list(&self, list: List) -> &[Operand] {
        self.operands.get(list.first as usize..(list.first + list.count) as usize).unwrap_or(&[])
    }

    /// A name.
    #[must_use]
    pub fn name(&self, name: NameId) -> Name<'a> {
        self.names.get(name as usize).copied().unwrap_or(Name { text: "", declared: Declared::Outside })
    }

    /// All names that the function mentions, each once.
    #[must_use]
    pub fn names(&self) -> &[Name<'a>] {
        &self.names
    }

    /// How many registers there are: their numbers are below.
    #[must_use]
    pub fn register_count(&self) -> u32 {
        self.owners.len() as u32
    }

    /// Bits of a register; 1 for a predicate, 0 if unknown.
    #[must_use]
    pub fn width(&self, register: Register) -> u8 {
        self.declaration(register).map_or(0, |declared| declared.width)
    }

    /// The declaration of a register; none for a parameter.
    #[must_use]
    pub fn declaration(&self, register: Register) -> Option<&RegisterDeclaration<'a>> {
        let owner = self.owners.get(register as usize)?;
        self.function.registers.get((*owner as usize).checked_sub(self.parameter_registers)?)
    }

    /// All operands of a statement, with those inside others.
    #[must_use]
    pub fn all_operands(&self, statement: u32) -> &[Operand] {
        self.decoded(statement).map_or(&[], |decoded| &self.operands[decoded.first as usize..self.end(statement)])
    }

    /// Each register that a statement names, but for its guard. One that is named twice comes twice.
    pub fn registers(&self, statement: u32) -> impl Iterator<Item = Register> + '_ {
        self.all_operands(statement).iter().filter_map(|operand| operand.register())
    }

    /// Calls `found` with each register in an operand, also in lists.
    pub fn each_register(&self, operand: Operand, found: &mut impl FnMut(Register)) {
        if let Some(register) = operand.register() {
            found(register);
        }
        if let Some(list) = operand.list() {
            for inner in self.list(list) {
                self.each_register(*inner, found);
            }
        }
    }

    /// Which operands a statement may write: [`access_of`] of its opcode.
    #[must_use]
    pub fn access(&self, statement: u32) -> Access {
        self.decoded(statement).map_or(Access::None, |decoded| decoded.access)
    }

    /// Calls `found` with each register that a statement may write, if its guard lets it.
    pub fn each_written(&self, statement: u32, mut found: impl FnMut(Register)) {
        match self.access(statement) {
            Access::None => {}
            Access::Any => self.registers(statement).for_each(found),
            Access::First | Access::FirstRead => {
                if let Some(first) = self.operands(statement).first().copied()
                    && !matches!(first, Operand::At(..) | Operand::Address(_))
                {
                    self.each_register(first, &mut found);
                }
            }
        }
    }

    /// Calls `found` with each register that a statement may read, its guard too. What it writes without reading it is not among them.
    pub fn each_read(&self, statement: u32, mut found: impl FnMut(Register)) {
        if let Some((Some(guard), _)) = self.guard(statement) {
            found(guard);
        }
        let is_read = |first: Operand| match first {
            Operand::At(..) | Operand::Address(_) | Operand::Part(_) | Operand::Unknown(_) => true,
            _ => self.access(statement) != Access::First,
        };
        for (nth, operand) in self.operands(statement).iter().enumerate() {
            // A call without results has its target first.
            let is_callee = self.function.statements[statement as usize].flow == Flow::Call && !matches!(operand, Operand::Group(_));
            if nth > 0 || is_callee || is_read(*operand) {
                self.each_register(*operand, &mut found);
            }
        }
    }
}
