//! Variables, parameters and registers as they are declared.

use crate::Span;
use crate::constant::unsigned;
use crate::module::Reader;
use crate::special::is_special;
use crate::token::{Kind, Lexer, Token};

/// What `WARP_SZ` stands for.
const LANES: u64 = 32;

/// A parameter or a returned value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter<'a> {
    /// Its name; `_` in a prototype.
    pub name: &'a str,
    /// Offset of the name.
    pub at: u32,
    /// `.param` or `.reg`.
    pub space: &'a str,
    /// Its type, such as `.u64`.
    pub kind: &'a str,
    /// How many elements it has, if it is an array; 0 if the number is not known.
    pub elements: Option<u32>,
    /// From its first directive to its end.
    pub span: Span,
}

impl Parameter<'_> {
    /// Its size in bits; 0 if that is not known.
    #[must_use]
    pub fn bits(&self) -> u64 {
        u64::from(width_of(self.kind)) * u64::from(self.elements.unwrap_or(1))
    }
}

/// A variable of a module or function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable<'a> {
    /// Its name.
    pub name: &'a str,
    /// Offset of the name.
    pub at: u32,
    /// `.global`, `.shared`, `.local`, …
    pub space: &'a str,
    /// Its type, such as `.b8`.
    pub kind: &'a str,
    /// Bytes that it takes, if the text says how many.
    pub bytes: Option<u64>,
    /// What its address is a multiple of, if the text says so beside its type.
    pub align: Option<u64>,
    /// `.visible`, `.weak`, `.extern` or `.common`; empty for none of these.
    pub linkage: &'a str,
    /// Its initial value.
    pub initial: Option<Span>,
    /// The scope that it is seen in; 0 in a module.
    pub scope: u32,
    /// The first statement that sees it; 0 in a module.
    pub statement: u32,
    /// The whole declaration up to its semicolon, which may declare others too.
    pub span: Span,
}

impl<'a> Variable<'a> {
    /// Names in its initial value, in order.
    pub fn initial_names(&self, text: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut lexer = Lexer::within(text, self.initial.unwrap_or_default());
        std::iter::from_fn(move || {
            loop {
                let token = lexer.next()?;
                let name = lexer.slice(token.span);
                // `generic(name)` is the name's address in all memory. A variable or function may have that name itself.
                let is_operator = name == "generic" && lexer.peek().is_some_and(|next| next.kind == Kind::Mark(b'('));
                if token.kind == Kind::Word && !is_operator {
                    return Some(name);
                }
            }
        })
    }
}

/// One name of a `.reg` declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterDeclaration<'a> {
    /// The name, without the number behind it.
    pub name: &'a str,
    /// Offset of the name.
    pub at: u32,
    /// `%r<9>` declares nine, `%r` itself not among them.
    pub count: Option<u32>,
    /// Registers in each: 2 or 4 for a vector.
    pub lanes: u8,
    /// Its type, such as `.b32`.
    pub kind: &'a str,
    /// Bits of that type: 1 for a predicate, 0 for a type that is not known.
    pub width: u8,
    /// The scope that it is seen in.
    pub scope: u32,
    /// The first statement that sees it.
    pub statement: u32,
}

/// What a name in a function was declared as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declared {
    /// A parameter or a returned value of the function: from 0 the results, then the parameters.
    Parameter(u32),
    /// A variable of the function, by its number.
    Variable(u32),
    /// A label of the function.
    Label,
    /// Nothing in the function: a function, a variable of the module, a special register, or a word of the instruction.
    Outside,
}

/// Directives in front of names.
#[derive(Debug, Default)]
struct Front<'a> {
    space: &'a str,
    kind: &'a str,
    lanes: u8,
    align: Option<u64>,
}

impl<'a> Reader<'a> {
    /// Directives up to the first name: `.global .attribute(.managed) .align 4 .v2 .b32`.
    fn front(&mut self, space: &'a str) -> Front<'a> {
        let mut front = Front { space, kind: "", lanes: 1, align: None };
        while let Some(word) = self.lexer.take(Kind::Dotted) {
            match word {
                ".align" => {
                    front.align = self.lexer.take(Kind::Number).and_then(unsigned);
                }
                ".attribute" => {
                    self.parentheses();
                }
                ".v2" => front.lanes = 2,
                ".v4" => front.lanes = 4,
                ".v8" => front.lanes = 8,
                ".ptr" => {}
                // A pointer parameter says where it points behind its type.
                ".global" | ".const" | ".local" | ".shared" if !front.kind.is_empty() => {}
                _ if front.space.is_empty() => front.space = word,
                _ => front.kind = word,
            }
        }
        front
    }

    /// Passes what parentheses hold, if some stand here.
    pub(crate) fn parentheses(&mut self) -> bool {
        let opens = self.lexer.eat(b'(');
        if opens {
            self.until(b')');
        }
        opens
    }

    /// Passes tokens up to the mark that closes what is open, and that.
    fn until(&mut self, close: u8) {
        let mut depth = 0_u32;
        while let Some(Token { kind, span }) = self.lexer.peek() {
            match kind {
                Kind::Mark(mark) if mark == close && depth == 0 => {
                    self.lexer.at = span.end as usize;
                    return;
                }
                Kind::Mark(b'(' | b'[' | b'{') => depth += 1,
                Kind::Mark(b')' | b']' | b'}') if depth > 0 => depth -= 1,
                Kind::Mark(b')' | b']' | b'}' | b';') | Kind::Stray => break,
                _ => {}
            }
            self.lexer.at = span.end as usize;
        }
        self.fault("brackets that are not closed");
    }

    /// `(.param .u64 a, .reg .b32 b)`, if that stands here.
    pub(crate) fn parameters(&mut self) -> Vec<Parameter<'a>> {
        let mut found = Vec::new();
        if !self.lexer.eat(b'(') || self.lexer.eat(b')') {
            return found;
        }
        loop {
            self.lexer.skip();
            let start = self.lexer.at;
            let front = self.front("");
            let Some(token) = self.lexer.peek().filter(|token| token.kind == Kind::Word) else {
                self.fault("a parameter without a name");
                self.until(b')');
                return found;
            };
            self.lexer.at = token.span.end as usize;
            self.not_special(token, None);
            self.lexer.skip();
            let is_array = front.lanes > 1 || self.lexer.peek_byte() == Some(b'[');
            let elements = self.elements(u64::from(front.lanes)).and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
            let elements = is_array.then_some(elements);
            found.push(Parameter {
                name: self.lexer.slice(token.span),
                at: token.span.start,
                space: front.space,
                kind: front.kind,
                elements,
                span: Span::new(start, self.lexer.at),
            });
            if self.lexer.eat(b')') {
                return found;
            }
            if !self.lexer.eat(b',') {
                self.fault("parameters that do not end");
                self.until(b')');
                return found;
            }
        }
    }

    /// A number, or the one constant that ptxas takes in its place.
    fn count(&mut self) -> Option<u64> {
        let before = self.lexer.at;
        if self.lexer.take(Kind::Word) == Some("WARP_SZ") {
            return Some(LANES);
        }
        self.lexer.at = before;
        self.lexer.take(Kind::Number).and_then(unsigned)
    }

    /// Notes a name that spells a special register, or a range with one that does.
    fn not_special(&mut self, token: Token, count: Option<u32>) {
        if is_special(self.lexer.slice(token.span), count) {
            self.fault_at(token.span.start, "a declared name spells a special register");
        }
    }

    /// So many times the sizes in brackets that stand here; none if one is no number. All brackets are passed.
    fn elements(&mut self, times: u64) -> Option<u64> {
        let mut all = Some(times);
        while self.lexer.eat(b'[') {
            let count = self.count();
            let is_whole = self.lexer.eat(b']');
            if !is_whole {
                self.until(b']');
            }
            all = all.zip(count.filter(|_| is_whole)).and_then(|(all, count)| all.checked_mul(count));
        }
        all
    }

    /// A declaration of variables up to its semicolon.
    pub(crate) fn variables(&mut self, linkage: &'a str, scope: u32, statement: u32, found: &mut Vec<Variable<'a>>) {
        self.lexer.skip();
        let start = self.lexer.at;
        let front = self.front("");
        let first = found.len();
        loop {
            let Some(token) = self.name("a declaration without a name") else { return };
            self.not_special(token, None);
            let lane = Some(u64::from(width_of(front.kind).div_ceil(8))).filter(|bytes| *bytes > 0);
            let bytes = lane.and_then(|bytes| self.elements(u64::from(front.lanes))?.checked_mul(bytes));
            let mut initial = None;
            if self.lexer.eat(b'=') {
                self.lexer.skip();
                let from = self.lexer.at;
                self.value();
                initial = Some(Span::new(from, self.lexer.at));
            }
            found.push(Variable {
                name: self.lexer.slice(token.span),
                at: token.span.start,
                space: front.space,
                kind: front.kind,
                bytes,
                align: front.align,
                linkage,
                initial,
                scope,
                statement,
                span: Span::default(),
            });
            if !self.lexer.eat(b',') {
                break;
            }
        }
        self.lexer.skip();
        let span = Span::new(start, self.lexer.at);
        for variable in &mut found[first..] {
            variable.span = span;
        }
        self.semicolon();
    }

    /// An initial value: all up to a comma or semicolon outside brackets.
    fn value(&mut self) {
        let mut depth = 0_u32;
        while let Some(Token { kind, span }) = self.lexer.peek() {
            match kind {
                Kind::Mark(b',') if depth == 0 => return,
                Kind::Mark(b'(' | b'{' | b'[') => depth += 1,
                Kind::Mark(b')' | b'}' | b']') if depth > 0 => depth -= 1,
                // What stands here belongs to no value: the declaration has lost its end, and would hide it.
                Kind::Mark(b';' | b':' | b'@' | b')' | b'}' | b']') | Kind::Stray | Kind::Text => return,
                _ => {}
            }
            self.lexer.at = span.end as usize;
        }
    }

    /// A `.reg` declaration.
    pub(crate) fn registers(&mut self, scope: u32, statement: u32, found: &mut Vec<RegisterDeclaration<'a>>) {
        let front = self.front(".reg");
        let width = width_of(front.kind);
        loop {
            let Some(token) = self.name("a declaration without a name") else { return };
            let mut count = None;
            if self.lexer.eat(b'<') {
                count = self.count().and_then(|number| u32::try_from(number).ok());
                if count.and_then(|count| count.checked_mul(front.lanes.into())).is_none() || !self.lexer.eat(b'>') {
                    self.fault("a number of registers that can't be read");
                    self.resume();
                    return;
                }
            }
            self.not_special(token, count);
            found.push(RegisterDeclaration {
                name: self.lexer.slice(token.span),
                at: token.span.start,
                count,
                lanes: front.lanes,
                kind: front.kind,
                width,
                scope,
                statement,
            });
            if !self.lexer.eat(b',') {
                break;
            }
        }
        self.semicolon();
    }

    /// The next token, which must be a name.
    fn name(&mut self, otherwise: &'static str) -> Option<Token> {
        let token = self.lexer.peek().filter(|token| token.kind == Kind::Word);
        if let Some(token) = token {
            self.lexer.at = token.span.end as usize;
        } else {
            self.fault(otherwise);
            self.resume();
        }
        token
    }
}

/// Bits of a register type: 32 of `.f16x2`.
fn width_of(kind: &str) -> u8 {
    if kind == ".pred" {
        return 1;
    }
    let digits = kind.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let (bits, times) = digits.split_once('x').unwrap_or((digits, "1"));
    bits.parse().ok().zip(times.parse().ok()).and_then(|(bits, times): (u8, u8)| bits.checked_mul(times)).unwrap_or(0)
}
