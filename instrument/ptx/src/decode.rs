//! Statements taken apart one after the other.

use crate::Span;
use crate::constant::unsigned;
use crate::declaration::{Declared, RegisterDeclaration};
use crate::effect::{Access, access_of};
use crate::function::{Flow, Function, Statement};
use crate::operand::{List, Name, NameId, Operand};
use crate::registers::Registers;
use crate::symbols::{ByName, Meaning, Symbols};
use crate::token::{Kind, Lexer, Token};

/// Brackets inside each other that are taken apart.
const MOST_DEPTH: u32 = 8;
/// No register.
pub(crate) const NONE: u32 = u32::MAX;
/// A guard that is no register of the function.
pub(crate) const LOST: u32 = u32::MAX - 1;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Decoded {
    pub(crate) first: u32,
    pub(crate) top: u32,
    pub(crate) guard: u32,
    /// Length of the opcode; 0 for one that is in `spaced`.
    pub(crate) opcode: u16,
    pub(crate) when: bool,
    pub(crate) access: Access,
}

#[derive(Debug, Clone, Copy)]
enum Value {
    /// One of a declaration: see [`Registers`].
    Register(u32),
    Name(NameId),
}

/// Takes statements apart, in the order of the text.
pub(crate) struct Decoder<'a> {
    lexer: Lexer<'a>,
    scope: u32,
    symbols: Symbols<'a, Value>,
    outside: ByName<'a, NameId>,
    pub(crate) registers: Registers,
    pub(crate) names: Vec<Name<'a>>,
    pub(crate) operands: Vec<Operand>,
    /// Operands of lists that are not closed.
    open: Vec<Operand>,
}

impl<'a> Decoder<'a> {
    /// In front of a function's first statement.
    pub(crate) fn new(text: &'a str, function: &Function<'a>) -> Self {
        let mut decoder = Self {
            lexer: Lexer::new(text, 0),
            scope: 0,
            symbols: Symbols::default(),
            outside: ByName::default(),
            registers: Registers::new(function.body.end - function.body.start),
            names: Vec::new(),
            operands: Vec::new(),
            open: Vec::new(),
        };
        decoder.symbols.enter();
        for (number, parameter) in (0..).zip(function.results.iter().chain(&function.parameters)) {
            if parameter.space == ".reg" {
                let declaration = decoder.registers.declare(1, 1);
                decoder.symbols.declare(parameter.name, Value::Register(declaration));
            } else {
                decoder.declare(parameter.name, Declared::Parameter(number));
            }
        }
        decoder
    }

    pub(crate) fn declare_register(&mut self, function: &Function<'_>, declared: &RegisterDeclaration<'a>) {
        self.move_to(function, declared.scope);
        let value = Value::Register(self.registers.declare(declared.count.unwrap_or(1), declared.lanes));
        match declared.count {
            Some(count) => self.symbols.declare_range(declared.name, count, value),
            None => self.symbols.declare(declared.name, value),
        }
    }

    pub(crate) fn declare(&mut self, name: &'a str, declared: Declared) {
        let number = self.names.len() as NameId;
        self.names.push(Name { text: name, declared });
        self.symbols.declare(name, Value::Name(number));
    }

    /// Leaves and enters scopes up to another, none of whose declarations were met yet unless it is around the one before.
    pub(crate) fn move_to(&mut self, function: &Function<'_>, to: u32) {
        if self.scope == to {
            return;
        }
        let depth = |scope: u32| function.scopes[scope as usize].depth;
        let outer = |scope: u32| function.scopes[scope as usize].outer;
        let (mut from, mut into) = (self.scope, to);
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
        self.scope = to;
    }

    /// Takes the next statement apart; the opcode's length is 0 if it is written with blanks in it.
    pub(crate) fn statement(&mut self, statement: &Statement) -> Decoded {
        let first = self.operands.len() as u32;
        let mut decoded = Decoded { first, top: first, guard: NONE, opcode: 0, when: true, access: Access::None };
        if statement.guarded {
            self.lexer = Lexer::within(self.lexer.text, Span { start: statement.start + 1, end: statement.opcode });
            decoded.when = !self.lexer.eat(b'!');
            let name = self.lexer.take(Kind::Word).unwrap_or("");
            decoded.guard = match self.symbols.find(name) {
                Some(Meaning::Name(Value::Register(of))) => self.registers.number(of, 0, 0),
                Some(Meaning::Nth(Value::Register(of), nth)) => self.registers.number(of, nth, 0),
                _ => LOST,
            };
        }
        self.lexer = Lexer::within(self.lexer.text, Span { start: statement.opcode, end: statement.end });
        self.lexer.take(Kind::Word);
        if !self.lexer.pass_modifiers() {
            decoded.opcode = u16::try_from(self.lexer.at - statement.opcode as usize).unwrap_or(0);
            decoded.access = access_of(self.lexer.slice(Span { start: statement.opcode, end: self.lexer.at as u32 }));
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
                self.lexer.eat(b',');
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
        self.lexer.skip();
        // Most operands are this.
        if let Some((name, end)) = self.lexer.lone_register()
            && let Some(Meaning::Nth(Value::Register(of), nth)) = self.symbols.find(name)
            && self.registers.lanes(of) == 1
        {
            self.lexer.at = end;
            return Operand::Register(self.registers.number(of, nth, 0));
        }
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
                    let operand = match self.symbols.find(name) {
                        Some(Meaning::Name(value)) => self.valued(value, 0),
                        Some(Meaning::Nth(value, nth)) => self.valued(value, nth),
                        None => self.named(name),
                    };
                    self.open.push(operand);
                }
                _ => {}
            }
            self.lexer.at = span.end as usize;
        }
        if is_constant { Operand::Constant } else { Operand::Unknown(self.close(from)) }
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
            Value::Register(of) if self.registers.lanes(of) == 1 => Operand::Register(self.registers.number(of, nth, 0)),
            Value::Register(of) => {
                let from = self.open.len();
                for lane in 0..self.registers.lanes(of) {
                    self.open.push(Operand::Register(self.registers.number(of, nth, lane)));
                }
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
            (Value::Register(of), Some(lane)) if self.registers.lanes(of) > 1.max(lane) => {
                Operand::Register(self.registers.number(of, nth, lane))
            }
            (Value::Register(of), _) if self.registers.lanes(of) == 1 => Operand::Part(self.registers.number(of, nth, 0)),
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
