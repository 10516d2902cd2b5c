//! A function with its statements, as it is read.

use crate::Span;
use crate::declaration::{Parameter, RegisterDeclaration, Variable};
use crate::token::{Kind, Lexer};
use std::borrow::Cow;

/// A `.func` or `.entry` with its body.
#[derive(Debug, Default)]
pub struct Function<'a> {
    /// Its name as the linker knows it.
    pub name: &'a str,
    /// Where the name stands.
    pub at: Span,
    /// `.entry`.
    pub is_kernel: bool,
    /// `.visible`, `.weak` or `.extern`; empty for a function that other units do not see.
    pub linkage: &'a str,
    /// From the first of its directives (`.visible`) up to the body's brace.
    pub head: Span,
    /// The body with its braces.
    pub body: Span,
    /// What it takes.
    pub parameters: Vec<Parameter<'a>>,
    /// What it returns.
    pub results: Vec<Parameter<'a>>,
    /// Statements in order. The last is an empty one that stands for the `ret` at the closing brace.
    pub statements: Vec<Statement>,
    /// Labels in order, without those of tables.
    pub labels: Vec<Label<'a>>,
    /// `.branchtargets`, `.calltargets` and `.callprototype`, in order.
    pub tables: Vec<Table<'a>>,
    /// Scopes by number. The first is the body.
    pub scopes: Vec<Scope>,
    /// `.reg` declarations in order.
    pub registers: Vec<RegisterDeclaration<'a>>,
    /// Variables that are declared in the body, in order.
    pub variables: Vec<Variable<'a>>,
    /// `.loc` directives in order. The last one in front of a statement is in force; those before it still say where code was inlined.
    pub locations: Vec<Location>,
    /// Where the code of `.loc` directives was inlined.
    pub inlined: Vec<Inlined<'a>>,
    /// `call`s in order.
    pub calls: Vec<Call<'a>>,
    /// Where `bra` and `brx.idx` lead, by statement.
    pub(crate) targets: Vec<(u32, Target)>,
}

/// One statement without its semicolon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement {
    /// Offset of its first byte: the guard's, if it has one.
    pub start: u32,
    /// Offset of the opcode.
    pub opcode: u32,
    /// Offset of the semicolon.
    pub end: u32,
    /// The scope it stands in.
    pub scope: u32,
    /// What it does to control.
    pub flow: Flow,
    /// Whether it has a guard (`@%p`).
    pub guarded: bool,
}

impl Statement {
    /// Where it stands.
    #[must_use]
    pub fn span(&self) -> Span {
        Span { start: self.start, end: self.end }
    }

    /// The first word of its opcode: `setp` of `setp.lt.u32`.
    #[must_use]
    pub fn opcode<'a>(&self, text: &'a str) -> &'a str {
        Lexer::within(text, Span { start: self.opcode, end: self.end }).take(Kind::Word).unwrap_or("")
    }

    /// Its opcode with all modifiers, without what blanks and comments stand between.
    #[must_use]
    pub fn whole_opcode<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut lexer = Lexer::within(text, Span { start: self.opcode, end: self.end });
        lexer.take(Kind::Word);
        let mut end = lexer.at;
        let mut whole: Option<String> = None;
        while let Some(token) = lexer.peek().filter(|token| token.kind == Kind::Dotted) {
            if token.span.start as usize != end && whole.is_none() {
                whole = Some(Span { start: self.opcode, end: end as u32 }.of(text).to_owned());
            }
            if let Some(whole) = &mut whole {
                whole.push_str(token.span.of(text));
            }
            end = token.span.end as usize;
            lexer.at = end;
        }
        whole.map_or_else(|| Cow::Borrowed(Span { start: self.opcode, end: end as u32 }.of(text)), Cow::Owned)
    }
}

/// What a statement does to control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Goes on to the next.
    Next,
    /// `bra`.
    Branch,
    /// `brx.idx`.
    Table,
    /// `call`.
    Call,
    /// `ret`.
    Return,
    /// `exit` or `trap`: the thread is gone.
    End,
}

impl Flow {
    /// By the opcode's first word.
    pub(crate) fn of(opcode: &str) -> Self {
        match opcode {
            "bra" => Self::Branch,
            "brx" => Self::Table,
            "call" => Self::Call,
            "ret" => Self::Return,
            "exit" | "trap" => Self::End,
            _ => Self::Next,
        }
    }
}

/// Where a branch leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// To a statement.
    Statement(u32),
    /// To the statements of a table, by its number.
    Table(u32),
    /// Nowhere that can be found.
    Lost,
}

/// A `call`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// Which statement it is.
    pub statement: u32,
    /// What it calls.
    pub target: CallTarget<'a>,
    /// The table behind a pointer, by its number in [`Function::tables`].
    pub table: Option<u32>,
}

/// What a `call` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallTarget<'a> {
    /// A function.
    Name(&'a str),
    /// A register, or something else that hides a function of its name.
    Pointer,
    /// Nothing that can be read.
    Lost,
}

/// A label and the statement that it stands in front of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label<'a> {
    /// Its name.
    pub name: &'a str,
    /// Offset of the name.
    pub at: u32,
    /// The scope it is seen in.
    pub scope: u32,
    /// The statement behind it.
    pub statement: u32,
}

/// Braces and what is seen in them only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// The scope around it; the body is its own.
    pub outer: u32,
    /// How many scopes are around it.
    pub depth: u32,
}

/// A label with a list behind it.
#[derive(Debug, Clone)]
pub struct Table<'a> {
    /// Its name.
    pub name: &'a str,
    /// The scope it stands in, in which its names are looked up.
    pub scope: u32,
    /// From the name up to the semicolon.
    pub span: Span,
    /// What it lists.
    pub kind: TableKind<'a>,
}

/// What a table lists.
#[derive(Debug, Clone)]
pub enum TableKind<'a> {
    /// `.branchtargets`: statements, in order. `Lost` for a label that is not there.
    Branches(Vec<Target>),
    /// `.calltargets`: functions.
    Callees(Vec<&'a str>),
    /// `.callprototype`: what is returned and what is taken.
    Prototype {
        /// What the function returns.
        results: Vec<Parameter<'a>>,
        /// What it takes.
        parameters: Vec<Parameter<'a>>,
    },
}

/// A line and column of a file, by the number of its `.file`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Point {
    /// Number of the file.
    pub file: u32,
    /// From 1; 0 stands for no line.
    pub line: u32,
    /// From 1; 0 if unknown.
    pub column: u32,
}

/// A `.loc` directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The first statement that it is about.
    pub statement: u32,
    /// What it names.
    pub point: Point,
    /// Index in [`Function::inlined`], from 1; 0 for code that was not inlined.
    pub inlined: u32,
}

/// Of which function code is, and where that was inlined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inlined<'a> {
    /// Label in `.debug_str` of the function's name.
    pub function: &'a str,
    /// Bytes behind that label.
    pub offset: u32,
    /// Where it was inlined.
    pub at: Point,
}

impl<'a> Function<'a> {
    /// The `.loc` in force at a statement.
    #[must_use]
    pub fn location(&self, statement: u32) -> Option<&Location> {
        self.locations[..self.locations.partition_point(|location| location.statement <= statement)].last()
    }

    /// Where the code of a location was inlined.
    #[must_use]
    pub fn inlined(&self, location: &Location) -> Option<&Inlined<'a>> {
        self.inlined.get((location.inlined as usize).checked_sub(1)?)
    }

    /// Where the branch with that number leads; `Lost` for what is no branch.
    #[must_use]
    pub fn target(&self, statement: u32) -> Target {
        let at = self.targets.binary_search_by_key(&statement, |(statement, _)| *statement);
        at.map_or(Target::Lost, |at| self.targets[at].1)
    }

    /// The call that a statement is.
    #[must_use]
    pub fn call(&self, statement: u32) -> Option<&Call<'a>> {
        let at = self.calls.binary_search_by_key(&statement, |call| call.statement).ok()?;
        self.calls.get(at)
    }

    /// How many parameters are registers, which are numbered first.
    pub(crate) fn parameter_registers(&self) -> usize {
        self.results.iter().chain(&self.parameters).filter(|parameter| parameter.space == ".reg").count()
    }

    /// The statement that an offset lies in or in front of.
    #[must_use]
    pub fn statement_at(&self, offset: u32) -> u32 {
        self.statements.partition_point(|statement| statement.end <= offset).min(self.statements.len().saturating_sub(1)) as u32
    }
}
