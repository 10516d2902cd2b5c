//! A function's body: statements, scopes, labels and what they name.

use crate::Span;
use crate::constant::unsigned;
use crate::function::{Call, CallTarget, Flow, Function, Inlined, Label, Location, Point, Scope, Statement, Table, TableKind, Target};
use crate::module::Reader;
use crate::symbols::{Meaning, Symbols};
use crate::token::Kind;
use std::borrow::Cow;
use std::collections::HashMap;

/// Most scopes inside each other. ptxas 13.0 takes fewer than 3,000.
const MOST_DEPTH: usize = 4096;
/// Most labels of one `NAME<count>` in a table.
const MOST_IN_RANGE: u64 = 1 << 16;

/// What is known while a body is read.
#[derive(Default)]
struct State<'a> {
    scope: u32,
    /// What is declared so far.
    names: Symbols<'a, Declaration>,
    /// Labels as they are named, in order, and where each leads.
    mentions: Vec<Mention>,
    /// The last mention of each name that a label further on may be meant by; [`NONE`] once there is none.
    open: HashMap<Cow<'a, str>, u32, foldhash::fast::RandomState>,
    /// For the scope and each around it, how many mentions there were at its beginning.
    first_mentions: Vec<u32>,
    /// Branches, by statement.
    branches: Vec<(u32, Branch)>,
    /// For each table the mentions that it lists.
    listed: Vec<std::ops::Range<u32>>,
}

#[derive(Debug, Clone, Copy)]
struct Declaration {
    scope: u32,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    /// A label in front of a statement.
    Label(u32),
    Table(u32),
    /// A register or variable, which hides a function of that name.
    Value,
}

/// A label that is named. As ptxas looks for it: in its own scope, also further on; else in those around it as far as they were read by then; else
/// further on in these.
#[derive(Debug, Clone, Copy)]
struct Mention {
    scope: u32,
    found: Option<u32>,
    /// The open mention of this name before it.
    before: u32,
}

/// No mention.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
enum Branch {
    Mention(u32),
    Table(u32),
    Lost,
}

impl<'a> State<'a> {
    fn declare(&mut self, name: &'a str, what: What) {
        self.names.declare(name, Declaration { scope: self.scope, what });
    }

    /// Notes that a label is named here.
    fn mention(&mut self, name: Cow<'a, str>) -> u32 {
        let number = self.mentions.len() as u32;
        let found = match self.names.find(&name) {
            Some(Meaning::Name(Declaration { scope, what: What::Label(statement) })) => Some((scope, statement)),
            _ => None,
        };
        let is_open = found.is_none_or(|(scope, _)| scope != self.scope);
        let before = if is_open { self.open.insert(name, number) } else { None };
        self.mentions.push(Mention { scope: self.scope, found: found.map(|(_, statement)| statement), before: before.unwrap_or(NONE) });
        number
    }

    /// Notes that a label stands here; false if its scope has that name already.
    fn label(&mut self, name: &'a str, statement: u32) -> bool {
        if !self.is_new(name) {
            return false;
        }
        let first = self.first_mentions.last().copied().unwrap_or(0);
        // Mentions from the scope's beginning on stand in it or in scopes inside it that are closed.
        if let Some(open) = self.open.get_mut(name) {
            while *open != NONE && *open >= first {
                let mention = &mut self.mentions[*open as usize];
                *open = mention.before;
                if mention.found.is_none() || mention.scope == self.scope {
                    mention.found = Some(statement);
                }
            }
        }
        self.declare(name, What::Label(statement));
        true
    }

    /// Whether the scope has not yet declared this name.
    fn is_new(&self, name: &str) -> bool {
        !matches!(self.names.find(name), Some(Meaning::Name(Declaration { scope, .. })) if scope == self.scope)
    }

    fn target(&self, mention: u32) -> Target {
        self.mentions[mention as usize].found.map_or(Target::Lost, Target::Statement)
    }

    /// Puts where branches lead into the function.
    fn finish(self, function: &mut Function<'a>) {
        for (table, listed) in function.tables.iter_mut().zip(&self.listed) {
            if let TableKind::Branches(targets) = &mut table.kind {
                *targets = listed.clone().map(|mention| self.target(mention)).collect();
            }
        }
        let target = |branch: &Branch| match branch {
            Branch::Mention(mention) => self.target(*mention),
            Branch::Table(table) => Target::Table(*table),
            Branch::Lost => Target::Lost,
        };
        function.targets = self.branches.iter().map(|(statement, branch)| (*statement, target(branch))).collect();
    }
}

impl<'a> Reader<'a> {
    /// Reads a body behind its opening brace.
    pub(crate) fn body(&mut self, function: &mut Function<'a>) {
        let mut state = State::default();
        function.body = Span::new(self.lexer.at - 1, self.lexer.at);
        function.scopes.push(Scope { outer: 0, depth: 0 });
        state.first_mentions.push(0);
        state.names.enter();
        for parameter in function.results.iter().chain(&function.parameters) {
            state.declare(parameter.name, What::Value);
        }
        let end = loop {
            self.lexer.skip();
            let Some(token) = self.lexer.peek() else {
                self.fault("the text ends within a function");
                break self.lexer.at;
            };
            let start = token.span.start as usize;
            let behind = token.span.end as usize;
            match token.kind {
                Kind::Mark(b'}') => {
                    self.lexer.at = behind;
                    state.names.leave();
                    state.first_mentions.pop();
                    if state.first_mentions.is_empty() {
                        break start;
                    }
                    state.scope = function.scopes[state.scope as usize].outer;
                }
                Kind::Mark(b'{') => {
                    if state.first_mentions.len() == MOST_DEPTH {
                        self.fault("more than 4,096 scopes inside each other");
                    }
                    self.lexer.at = behind;
                    state.names.enter();
                    state.first_mentions.push(state.mentions.len() as u32);
                    function.scopes.push(Scope { outer: state.scope, depth: state.first_mentions.len() as u32 - 1 });
                    state.scope = function.scopes.len() as u32 - 1;
                }
                Kind::Mark(b'@') => {
                    self.lexer.at = behind;
                    self.lexer.eat(b'!');
                    if self.lexer.take(Kind::Word).is_none() {
                        self.fault("a guard without a register");
                    }
                    self.lexer.skip();
                    if let Some(opcode) = self.lexer.take_token(Kind::Word) {
                        self.statement(function, &mut state, start, opcode.span);
                    } else {
                        self.fault("a statement without an opcode");
                        self.resume();
                    }
                }
                Kind::Dotted => self.directive(function, &mut state),
                Kind::Word => {
                    self.lexer.at = behind;
                    if self.lexer.eat(b':') {
                        self.label(function, &mut state, token.span);
                    } else {
                        self.lexer.at = behind;
                        self.statement(function, &mut state, start, token.span);
                    }
                }
                _ => {
                    self.fault("what begins no statement");
                    self.lexer.at = behind;
                }
            }
        };
        function.body.end = self.lexer.at as u32;
        let end = end as u32;
        function.statements.push(Statement { start: end, opcode: end, end, scope: 0, flow: Flow::Return, guarded: false });
        state.finish(function);
    }

    fn directive(&mut self, function: &mut Function<'a>, state: &mut State<'a>) {
        let mut ahead = self.lexer.clone();
        let word = ahead.take(Kind::Dotted).unwrap_or("");
        let statement = function.statements.len() as u32;
        match word {
            ".loc" => {
                self.lexer = ahead;
                self.location(function);
            }
            ".pragma" => {
                self.lexer = ahead;
                self.pragma();
            }
            ".reg" => {
                self.lexer = ahead;
                let first = function.registers.len();
                self.registers(state.scope, statement, &mut function.registers);
                for declared in &function.registers[first..] {
                    let value = Declaration { scope: state.scope, what: What::Value };
                    match declared.count {
                        Some(count) => state.names.declare_range(declared.name, count, value),
                        None => state.names.declare(declared.name, value),
                    }
                }
            }
            ".extern" | ".visible" | ".weak" | ".func" => {
                self.lexer = ahead;
                if word == ".func" || self.lexer.take(Kind::Dotted) == Some(".func") {
                    self.prototype();
                } else {
                    self.fault("a declaration that can't stand in a function");
                    self.resume();
                }
            }
            ".local" | ".shared" | ".param" | ".global" | ".const" | ".tex" | ".surf" | ".sampler" => {
                let first = function.variables.len();
                self.variables("", state.scope, statement, &mut function.variables);
                for variable in &function.variables[first..] {
                    state.declare(variable.name, What::Value);
                }
            }
            _ => {
                self.fault("a directive that can't stand in a function");
                self.lexer = ahead;
            }
        }
    }

    /// `1 2 3, function_name $L__info_string0 + 4, inlined_at 1 2 3`
    fn location(&mut self, function: &mut Function<'a>) {
        let Some(point) = self.point() else { return };
        let mut inlined = 0;
        if self.lexer.eat(b',') {
            let is_named = self.lexer.take(Kind::Word) == Some("function_name");
            let name = self.lexer.take(Kind::Word).or_else(|| self.lexer.take(Kind::Dotted));
            let offset = if self.lexer.eat(b'+') { self.number() } else { Some(0) };
            let is_placed = self.lexer.eat(b',') && self.lexer.take(Kind::Word) == Some("inlined_at");
            let (true, true, Some(name), Some(offset)) = (is_named, is_placed, name, offset) else {
                return self.fault("a location that can't be read");
            };
            let Some(at) = self.point() else { return };
            let new = Inlined { function: name, offset, at };
            if function.inlined.last() != Some(&new) {
                function.inlined.push(new);
            }
            inlined = function.inlined.len() as u32;
        }
        let location = Location { statement: function.statements.len() as u32, point, inlined };
        match function.locations.last_mut() {
            Some(last) if (last.point, last.inlined) == (point, inlined) => {}
            _ => function.locations.push(location),
        }
    }

    fn point(&mut self) -> Option<Point> {
        let point = self.number().zip(self.number()).zip(self.number());
        if point.is_none() {
            self.fault("a location that can't be read");
        }
        point.map(|((file, line), column)| Point { file, line, column })
    }

    fn number(&mut self) -> Option<u32> {
        u32::try_from(unsigned(self.lexer.take(Kind::Number)?)?).ok()
    }

    /// What stands behind the colon of a label.
    fn label(&mut self, function: &mut Function<'a>, state: &mut State<'a>, at: Span) {
        let name = self.lexer.slice(at);
        let mut ahead = self.lexer.clone();
        let word = ahead.take(Kind::Dotted).unwrap_or("");
        let is_new = if matches!(word, ".branchtargets" | ".calltargets" | ".callprototype") {
            self.lexer = ahead;
            let is_new = state.is_new(name);
            state.declare(name, What::Table(function.tables.len() as u32));
            self.table(function, state, (name, at.start), word);
            is_new
        } else {
            let statement = function.statements.len() as u32;
            function.labels.push(Label { name, at: at.start, scope: state.scope, statement });
            state.label(name, statement)
        };
        if !is_new {
            self.fault("a label whose name is declared already");
        }
    }

    fn table(&mut self, function: &mut Function<'a>, state: &mut State<'a>, (name, start): (&'a str, u32), word: &str) {
        let first = state.mentions.len() as u32;
        let kind = match word {
            ".branchtargets" => {
                self.branch_targets(state);
                TableKind::Branches(Vec::new())
            }
            ".calltargets" => {
                let mut callees = Vec::new();
                loop {
                    match self.lexer.take(Kind::Word) {
                        Some(callee) => callees.push(callee),
                        None => self.fault("a table without names"),
                    }
                    if !self.lexer.eat(b',') {
                        break;
                    }
                }
                TableKind::Callees(callees)
            }
            _ => {
                let results = self.parameters();
                if self.lexer.take(Kind::Word) != Some("_") {
                    self.fault("a prototype without its underscore");
                }
                let parameters = self.parameters();
                while self.lexer.take(Kind::Dotted).is_some() {
                    self.lexer.take(Kind::Number);
                }
                TableKind::Prototype { results, parameters }
            }
        };
        state.listed.push(first..state.mentions.len() as u32);
        self.lexer.skip();
        let span = Span { start, end: self.lexer.at as u32 };
        function.tables.push(Table { name, scope: state.scope, span, kind });
        self.semicolon();
    }

    /// `A, B, C<4>`
    fn branch_targets(&mut self, state: &mut State<'a>) {
        loop {
            let Some(name) = self.lexer.take(Kind::Word) else { return self.fault("a table without names") };
            if self.lexer.eat(b'<') {
                let count = self.lexer.take(Kind::Number).and_then(unsigned).filter(|count| *count <= MOST_IN_RANGE);
                if count.is_none() || !self.lexer.eat(b'>') {
                    return self.fault("a number of labels that can't be read");
                }
                for number in 0..count.unwrap_or(0) {
                    state.mention(Cow::Owned(format!("{name}{number}")));
                }
            } else {
                state.mention(Cow::Borrowed(name));
            }
            if !self.lexer.eat(b',') {
                return;
            }
        }
    }

    /// A statement behind its opcode's first word.
    fn statement(&mut self, function: &mut Function<'a>, state: &mut State<'a>, start: usize, word: Span) {
        let (opcode, guarded) = (word.start, word.start as usize != start);
        let word = self.lexer.slice(word);
        let flow = Flow::of(word);
        let number = function.statements.len() as u32;
        match flow {
            Flow::Branch => {
                let target = self.branch_target();
                let branch = target.map_or(Branch::Lost, |name| Branch::Mention(state.mention(Cow::Borrowed(name))));
                state.branches.push((number, branch));
            }
            Flow::Table => {
                let table = self.branch_table();
                let found = table.and_then(|name| state.names.find(name));
                let branch = match found {
                    Some(Meaning::Name(Declaration { what: What::Table(table), .. })) => Branch::Table(table),
                    _ => Branch::Lost,
                };
                state.branches.push((number, branch));
            }
            Flow::Call => self.call(function, state, number),
            Flow::Next | Flow::Return | Flow::End => {}
        }
        self.operands();
        let end = self.lexer.at as u32;
        function.statements.push(Statement { start: start as u32, opcode, end, scope: state.scope, flow, guarded });
        if !self.lexer.eat(b';') {
            self.fault("a statement is not ended");
            // A colon would begin nothing.
            self.lexer.eat(b':');
        }
    }

    fn modifiers(&mut self) -> bool {
        let mut has_index = false;
        while let Some(word) = self.lexer.take(Kind::Dotted) {
            has_index |= word == ".idx";
        }
        has_index
    }

    /// The label of `bra`, if nothing else stands there.
    fn branch_target(&mut self) -> Option<&'a str> {
        self.modifiers();
        let name = self.lexer.take(Kind::Word)?;
        (self.lexer.peek()?.kind == Kind::Mark(b';')).then_some(name)
    }

    /// The table of `brx.idx`.
    fn branch_table(&mut self) -> Option<&'a str> {
        let has_index = self.modifiers();
        self.lexer.next().filter(|token| matches!(token.kind, Kind::Word | Kind::Number))?;
        let name = self.lexer.eat(b',').then(|| self.lexer.take(Kind::Word))??;
        (has_index && self.lexer.peek()?.kind == Kind::Mark(b';')).then_some(name)
    }

    /// `(results), name, (arguments), table`
    fn call(&mut self, function: &mut Function<'a>, state: &State<'a>, statement: u32) {
        self.modifiers();
        if self.parentheses() {
            self.lexer.eat(b',');
        }
        let target = match self.lexer.take(Kind::Word) {
            Some(name) => match state.names.find(name) {
                Some(Meaning::Name(Declaration { what: What::Value, .. }) | Meaning::Nth(..)) => CallTarget::Pointer,
                _ => CallTarget::Name(name),
            },
            None => CallTarget::Lost,
        };
        let mut table = None;
        while self.lexer.eat(b',') {
            if !self.parentheses()
                && let Some(name) = self.lexer.take(Kind::Word)
            {
                table = match state.names.find(name) {
                    Some(Meaning::Name(Declaration { what: What::Table(table), .. })) => Some(table),
                    _ => None,
                };
            }
        }
        function.calls.push(Call { statement, target, table });
    }

    /// Passes operands up to a semicolon, or in front of what can stand in no statement.
    fn operands(&mut self) {
        let (mut depth, mut conditions) = (0_u32, 0_u32);
        loop {
            match self.lexer.pass_operand_bytes() {
                Some(b'{') => depth += 1,
                Some(b'}') if depth > 0 => depth -= 1,
                // `1 ? 2 : 3`
                Some(b'?') => conditions += 1,
                Some(b':') if conditions > 0 => conditions -= 1,
                // A comment, or a division.
                Some(b'/') => {
                    let start = self.lexer.at;
                    self.lexer.skip();
                    if self.lexer.at > start {
                        continue;
                    }
                }
                _ => return,
            }
            self.lexer.at += 1;
        }
    }
}
