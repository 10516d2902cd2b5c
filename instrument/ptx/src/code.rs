//! The operands of a function's statements.

use crate::Span;
use crate::constant::unsigned;
use crate::declaration::Declared;
use crate::effect::{Access, access_of};
use crate::function::{Flow, Function, Statement};
use crate::operand::{List, Name, NameId, Operand, Register};
use crate::symbols::{ByName, Meaning, Symbols};
use crate::token::{Kind, Lexer, Token};

/// Brackets inside each other that are taken apart.
const MOST_DEPTH: u32 = 8;
/// No register.
const NONE: u32 = u32::MAX;
/// A guard that is no register of the function.
const LOST: u32 = u32::MAX - 1;

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
    widths: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Decoded {
    first: u32,
    top: u32,
    guard: u32,
    /// Length of the opcode; 0 for one that is in `spaced`.
    opcode: u16,
    when: bool,
}

#[derive(Debug, Clone, Copy)]
enum Value {
    Register { first: Register, lanes: u8 },
    Name(NameId),
}

struct Decoder<'a> {
    lexer: Lexer<'a>,
    symbols: Symbols<'a, Value>,
    outside: ByName<'a, NameId>,
    names: Vec<Name<'a>>,
    operands: Vec<Operand>,
    /// Operands of lists that are not closed.
    open: Vec<Operand>,
}

impl<'a> Code<'a> {
    /// Takes all statements of a function apart. The text is the module's. A branch's label is no operand: see [`Function::target`].
    #[must_use]
    pub fn new(text: &'a str, function: &'a Function<'a>) -> Self {
        let mut decoder = Decoder {
            lexer: Lexer::new(text, 0),
            symbols: Symbols::default(),
            outside: ByName::default(),
            names: Vec::new(),
            operands: Vec::new(),
            open: Vec::new(),
        };
        let mut code = Self {
            text,
            function,
            statements: Vec::with_capacity(function.statements.len()),
            operands: Vec::new(),
            names: Vec::new(),
            spaced: Vec::new(),
            widths: vec![0; function.register_count as usize],
        };
        decoder.symbols.enter();
        for (number, parameter) in (0..).zip(function.results.iter().chain(&function.parameters)) {
            decoder.declare(parameter.name, Declared::Parameter(number));
        }
        let (mut registers, mut variables) = (function.registers.iter().peekable(), (0..).zip(&function.variables).peekable());
        let mut scope = 0;
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
                    decoder.move_to(function, &mut scope, declared.scope);
                    let all = declared.first as usize..(declared.first + declared.registers()) as usize;
                    code.widths[all].fill(declared.width);
                    let value = Value::Register { first: declared.first, lanes: declared.lanes };
                    match declared.count {
                        Some(count) => decoder.symbols.declare_range(declared.name, count, value),
                        None => decoder.symbols.declare(declared.name, value),
                    }
                } else if let Some((index, declared)) = variables.next() {
                    decoder.move_to(function, &mut scope, declared.scope);
                    decoder.declare(declared.name, Declared::Variable(index));
                }
            }
            decoder.move_to(function, &mut scope, statement.scope);
            let taken = decoder.statement(statement);
            if taken.opcode == 0 && statement.end > statement.opcode {
                let mut lexer = Lexer::within(text, Span { start: statement.opcode, end: statement.end });
                let mut opcode = lexer.take(Kind::Word).unwrap_or("").to_owned();
                while let Some(part) = lexer.take(Kind::Dotted) {
                    opcode.push_str(part);
                }
                code.spaced.push((number, opcode));
            }
            code.statements.push(taken);
        }
        code.operands = decoder.operands;
        code.names = decoder.names;
        code
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

    /// Bits of a register; 1 for a predicate, 0 if unknown.
    #[must_use]
    pub fn width(&self, register: Register) -> u8 {
        self.widths.get(register as usize).copied().unwrap_or(0)
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

    /// Calls `found` with each register that a statement may write, if its guard lets it.
    pub fn each_written(&self, statement: u32, mut found: impl FnMut(Register)) {
        match access_of(self.opcode(statement)) {
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
            _ => access_of(self.opcode(statement)) != Access::First,
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

impl<'a> Decoder<'a> {
    fn declare(&mut self, name: &'a str, declared: Declared) {
        let number = self.names.len() as NameId;
        self.names.push(Name { text: name, declared });
        self.symbols.declare(name, Value::Name(number));
    }

    /// Leaves and enters scopes up to another, none of whose declarations were met yet unless it is around the one before.
    fn move_to(&mut self, function: &Function<'_>, scope: &mut u32, to: u32) {
        if *scope == to {
            return;
        }
        let depth = |scope: u32| function.scopes[scope as usize].depth;
        let outer = |scope: u32| function.scopes[scope as usize].outer;
        let (mut from, mut into) = (*scope, to);
        while depth(from) > depth(into) {
            self.symbols.leave();
            from = outer(from);
        }
        let mut entered = 0;
        while depth(into) > depth(from) {
            into = outer(into);
            entered += 1;
        }
        while from != into {
            self.symbols.leave();
            (from, into) = (outer(from), outer(into));
            entered += 1;
        }
        for _ in 0..entered {
            self.symbols.enter();
        }
        *scope = to;
    }

    fn statement(&mut self, statement: &Statement) -> Decoded {
        let first = self.operands.len() as u32;
        let mut decoded = Decoded { first, top: first, guard: NONE, opcode: 0, when: true };
        if statement.guarded {
            self.lexer = Lexer::within(self.lexer.text, Span { start: statement.start + 1, end: statement.opcode });
            decoded.when = !self.lexer.eat(b'!');
            let name = self.lexer.take(Kind::Word).unwrap_or("");
            decoded.guard = match self.symbols.find(name) {
                Some(Meaning::Name(Value::Register { first, lanes: 1 })) => first,
                Some(Meaning::Nth(Value::Register { first, lanes: 1 }, nth)) => first + nth,
                _ => LOST,
            };
        }
        self.lexer = Lexer::within(self.lexer.text, Span { start: statement.opcode, end: statement.end });
        self.lexer.take(Kind::Word);
        let mut end = self.lexer.at;
        let mut is_spaced = false;
        while let Some(token) = self.lexer.peek().filter(|token| token.kind == Kind::Dotted) {
            is_spaced |= token.span.start as usize != end;
            end = token.span.end as usize;
            self.lexer.at = end;
        }
        if !is_spaced {
            decoded.opcode = u16::try_from(end - statement.opcode as usize).unwrap_or(0);
        }
        if statement.flow != Flow::Branch {
            let is_call = statement.flow == Flow::Call;
            let from = self.open.len();
            loop {
                self.lexer.skip();
                if self.lexer.peek_byte().is_none() {
                    break;
                }
                let operand = self.operand(is_call, 0);
                self.open.push(operand);
                if !self.lexer.eat(b',') && matches!(self.lexer.peek_byte(), Some(b'}' | b']' | b')' | b'|')) {
                    // It closes nothing.
                    self.lexer.at += 1;
                }
            }
            decoded.top = self.operands.len() as u32;
            self.operands.extend(self.open.drain(from..));
        }
        decoded
    }

    /// Moves operands from a list's beginning on to where they stay.
    fn close(&mut self, from: usize) -> List {
        let first = self.operands.len() as u32;
        self.operands.extend(self.open.drain(from..));
        List { first, count: self.operands.len() as u32 - first }
    }

    /// The next operand, up to a comma or what closes a list.
    fn operand(&mut self, is_call: bool, depth: u32) -> Operand {
        let first = self.part(is_call, depth);
        self.lexer.skip();
        match self.lexer.peek_byte() {
            None | Some(b',' | b'}' | b']' | b')') => first,
            Some(b'|') if depth < MOST_DEPTH && self.is_pair() => {
                self.lexer.at += 1;
                let from = self.open.len();
                self.open.push(first);
                let second = self.operand(is_call, depth + 1);
                self.open.push(second);
                Operand::Pair(self.close(from))
            }
            Some(_) => self.rest(first),
        }
    }

    /// Whether the bar here is one alone, rather than an operator.
    fn is_pair(&self) -> bool {
        self.lexer.text.as_bytes().get(self.lexer.at + 1) != Some(&b'|')
    }

    /// What is no operand of a known form, up to its end.
    fn rest(&mut self, first: Operand) -> Operand {
        // A name or register and a number are still something.
        if let Operand::Name(name, 0) = first {
            let before = self.lexer.clone();
            if let Some(offset) = self.offset() {
                return Operand::Name(name, offset);
            }
            self.lexer = before;
        }
        let from = self.open.len();
        let mut is_constant = matches!(first, Operand::Integer(_) | Operand::Unsigned(_) | Operand::Constant);
        if !is_constant {
            self.open.push(first);
        }
        let mut depth = 0_u32;
        while let Some(Token { kind, span }) = self.lexer.peek() {
            match kind {
                Kind::Mark(b',' | b'}' | b']' | b')') if depth == 0 => break,
                Kind::Mark(b'(' | b'[' | b'{') => depth += 1,
                Kind::Mark(b')' | b']' | b'}') => depth -= 1,
                Kind::Word => {
                    is_constant = false;
                    let name = self.lexer.slice(span);
                    if let Some(Meaning::Name(value) | Meaning::Nth(value, _)) = self.symbols.find(name) {
                        let operand = self.valued(value, self.nth(name));
                        self.open.push(operand);
                    } else {
                        let operand = self.named(name);
                        self.open.push(operand);
                    }
                }
                _ => {}
            }
            self.lexer.at = span.end as usize;
        }
        if is_constant && self.open.len() == from { Operand::Constant } else { Operand::Unknown(self.close(from)) }
    }

    fn nth(&self, name: &str) -> u32 {
        match self.symbols.find(name) {
            Some(Meaning::Nth(_, nth)) => nth,
            _ => 0,
        }
    }

    /// `+ 4` or `+ -4` up to a comma or bracket.
    fn offset(&mut self) -> Option<i64> {
        if !self.lexer.eat(b'+') {
            return None;
        }
        let is_negative = self.lexer.eat(b'-');
        let value = i64::try_from(unsigned(self.lexer.take(Kind::Number)?)?).ok()?;
        self.lexer.skip();
        let is_end = matches!(self.lexer.peek_byte(), None | Some(b',' | b'}' | b']' | b')'));
        is_end.then_some(if is_negative { -value } else { value })
    }

    /// An operand as far as one token, or one pair of brackets, says.
    fn part(&mut self, is_call: bool, depth: u32) -> Operand {
        let Some(token) = self.lexer.next() else { return Operand::Constant };
        let word = self.lexer.slice(token.span);
        match token.kind {
            Kind::Word if word == "_" => Operand::Sink,
            Kind::Word => self.word(token, word),
            Kind::Number => number(word, false),
            Kind::Mark(b'{') if depth < MOST_DEPTH => Operand::Vector(self.items(b'}', depth)),
            Kind::Mark(b'(') if is_call && depth < MOST_DEPTH => Operand::Group(self.items(b')', depth)),
            Kind::Mark(b'[') if depth < MOST_DEPTH => self.address(depth),
            Kind::Mark(sign @ (b'!' | b'-')) => {
                let before = self.lexer.at;
                match self.lexer.next().map(|token| (token, self.lexer.slice(token.span))) {
                    Some((Token { kind: Kind::Number, .. }, word)) if sign == b'-' => number(word, true),
                    Some((token @ Token { kind: Kind::Word, .. }, word)) => match self.word(token, word) {
                        Operand::Register(register) => Operand::Negated(register),
                        other => {
                            let from = self.open.len();
                            self.open.push(other);
                            Operand::Unknown(self.close(from))
                        }
                    },
                    _ => {
                        self.lexer.at = before;
                        Operand::Constant
                    }
                }
            }
            // What opens here belongs to an expression.
            Kind::Mark(b'(' | b'{' | b'[') => {
                self.lexer.at = token.span.start as usize;
                Operand::Constant
            }
            _ => Operand::Constant,
        }
    }

    /// Operands up to a closing bracket.
    fn items(&mut self, close: u8, depth: u32) -> List {
        let from = self.open.len();
        loop {
            if self.lexer.eat(close) || self.lexer.peek_byte().is_none() {
                return self.close(from);
            }
            let operand = self.operand(false, depth + 1);
            self.open.push(operand);
            if !self.lexer.eat(b',') && !matches!(self.lexer.peek_byte(), Some(byte) if byte == close) {
                // A bracket of another kind.
                self.lexer.at = (self.lexer.at + 1).min(self.lexer.end());
            }
        }
    }

    /// `[base + offset]`
    fn address(&mut self, depth: u32) -> Operand {
        let list = self.items(b']', depth);
        if list.count == 1
            && let Some(only) = self.operands.get(list.first as usize).copied()
        {
            let simple = match only {
                Operand::Register(register) => Some(Operand::At(register, 0)),
                Operand::At(register, offset) => Some(Operand::At(register, offset)),
                Operand::Name(name, offset) => Some(Operand::AtName(name, offset)),
                Operand::Integer(value) => Some(Operand::AtNumber(value)),
                _ => None,
            };
            if let Some(simple) = simple {
                self.operands.truncate(list.first as usize);
                return simple;
            }
        }
        Operand::Address(list)
    }

    /// What a word stands for, with the element behind it.
    fn word(&mut self, token: Token, word: &'a str) -> Operand {
        let found = self.symbols.find(word);
        let element = self.lexer.take(Kind::Dotted);
        let nth = if let Some(Meaning::Nth(_, nth)) = found { nth } else { 0 };
        match (found, element) {
            (Some(Meaning::Name(value) | Meaning::Nth(value, _)), None) => {
                let value = self.valued(value, nth);
                if let Operand::Register(register) = value
                    && self.lexer.peek_byte() != Some(b',')
                {
                    // `register + number` is an address's.
                    let before = self.lexer.clone();
                    if let Some(offset) = self.offset()
                        && self.lexer.peek_byte() == Some(b']')
                    {
                        return Operand::At(register, offset);
                    }
                    self.lexer = before;
                }
                value
            }
            (Some(Meaning::Name(value) | Meaning::Nth(value, _)), Some(element)) => self.element(value, nth, element),
            (None, None) => self.named(word),
            // The element of a special register, unless blanks stand between.
            (None, Some(element)) => {
                let end = token.span.start as usize + word.len() + element.len();
                let whole = self.lexer.text.get(token.span.start as usize..end).filter(|whole| whole.ends_with(element));
                self.named(whole.unwrap_or(word))
            }
        }
    }

    /// A name that the function does not declare.
    fn named(&mut self, word: &'a str) -> Operand {
        let next = self.names.len() as NameId;
        let number = *self.outside.entry(word).or_insert(next);
        if number == next {
            self.names.push(Name { text: word, declared: Declared::Outside });
        }
        Operand::Name(number, 0)
    }

    fn valued(&mut self, value: Value, nth: u32) -> Operand {
        match value {
            Value::Name(name) => Operand::Name(name, 0),
            Value::Register { first, lanes: 1 } => Operand::Register(first + nth),
            Value::Register { first, lanes } => {
                let from = self.open.len();
                let lane = first + nth * u32::from(lanes);
                self.open.extend((lane..lane + u32::from(lanes)).map(Operand::Register));
                Operand::Vector(self.close(from))
            }
        }
    }

    fn element(&mut self, value: Value, nth: u32, element: &str) -> Operand {
        let lane = match element {
            ".x" | ".r" => Some(0),
            ".y" | ".g" => Some(1),
            ".z" | ".b" => Some(2),
            ".w" | ".a" => Some(3),
            _ => None,
        };
        match (value, lane) {
            (Value::Register { first, lanes }, Some(lane)) if lane < u32::from(lanes) && lanes > 1 => {
                Operand::Register(first + nth * u32::from(lanes) + lane)
            }
            (Value::Register { first, lanes: 1 }, _) => Operand::Part(first + nth),
            (value, _) => {
                let from = self.open.len();
                let inner = self.valued(value, nth);
                self.open.push(inner);
                Operand::Unknown(self.close(from))
            }
        }
    }
}

fn number(word: &str, is_negative: bool) -> Operand {
    match (unsigned(word), is_negative) {
        (Some(value), false) => i64::try_from(value).map_or(Operand::Unsigned(value), Operand::Integer),
        (Some(value), true) if value <= 1 << 63 => Operand::Integer(value.cast_signed().wrapping_neg()),
        _ => Operand::Constant,
    }
}
