//! Reads statements from tokens.
//!
//! It is one pass with an explicit stack, so that no nesting is too deep. The stack is a tree of nodes that never change: each arm of an `#if`
//! starts from the same node.

use crate::source::syntax::fragment::{Fragment, NONE};
use crate::source::syntax::function::{Function, is_lambda_body};
use crate::source::syntax::statement::{Body, Loop, LoopKind, MacroUse, Scope, Simple};
use crate::source::syntax::statement_frame::{Arm, Frame, Node};
use crate::source::syntax::token::Kind;
use std::collections::BTreeMap;

/// Reads the body whose braces are at `open` and `close`. For a run of tokens without braces, pass its first token and the index behind its
/// last with `braces` unset.
pub(crate) fn read(source: &[u8], fragment: &Fragment, functions: &BTreeMap<usize, Function>, range: (usize, usize), braces: bool) -> Body {
    let mut reader = Reader {
        source,
        fragment,
        functions,
        nodes: Vec::new(),
        top: NONE,
        at_start: true,
        arms: Vec::new(),
        open_dos: 0,
        out: Body::default(),
    };
    reader.out.scopes.push(Scope { open: range.0, outer: None });
    reader.out.bare = !braces;
    reader.push(Frame::Block { scope: 0 });
    let first = if braces { range.0 + 1 } else { range.0 };
    let mut at = first;
    while at < range.1 {
        at = reader.token(at, range.1);
    }
    // Behind an `#if` the first arm's constructs go on; a loop that another arm opened ends with the brace that they share.
    for loop_ in
        reader.out.loops.iter_mut().filter(|loop_| loop_.end.is_none() && loop_.kind != LoopKind::Do && fragment.is(loop_.body, b'{'))
    {
        loop_.body_end = fragment.mate(loop_.body);
        loop_.end = loop_.body_end;
    }
    reader.out
}

struct Reader<'a> {
    source: &'a [u8],
    fragment: &'a Fragment,
    functions: &'a BTreeMap<usize, Function>,
    nodes: Vec<Node>,
    top: u32,
    at_start: bool,
    arms: Vec<Arm>,
    /// How many `do` were opened in arms that reading doesn't go on from: their `while` comes in a later arm.
    open_dos: usize,
    out: Body,
}

impl Reader<'_> {
    fn frame(&self) -> Option<Frame> {
        self.nodes.get(self.top as usize).map(|node| node.frame)
    }

    fn scope(&self) -> u32 {
        self.nodes.get(self.top as usize).map_or(0, |node| node.scope)
    }

    fn innermost_loop(&self) -> Option<usize> {
        self.nodes.get(self.top as usize).map(|node| node.innermost_loop).filter(|index| *index != NONE).map(|index| index as usize)
    }

    fn push(&mut self, frame: Frame) {
        let (mut scope, mut innermost_loop) = self.nodes.get(self.top as usize).map_or((0, NONE), |node| (node.scope, node.innermost_loop));
        match frame {
            Frame::Block { scope: own } if own != scope => {
                scope = own;
                innermost_loop = NONE;
            }
            Frame::LoopBody { index } | Frame::DoBody { index } => innermost_loop = index,
            _ => {}
        }
        self.nodes.push(Node { frame, parent: self.top, scope, innermost_loop });
        self.top = self.nodes.len() as u32 - 1;
    }

    fn pop(&mut self) {
        if let Some(node) = self.nodes.get(self.top as usize) {
            self.top = node.parent;
        }
    }

    fn replace(&mut self, frame: Frame) {
        self.pop();
        self.push(frame);
    }

    fn simple(&self, token: usize) -> Simple {
        Simple { token, scope: self.scope() as usize, inside: self.innermost_loop() }
    }

    /// Takes one token, or a few that belong together; returns the index to go on with.
    fn token(&mut self, at: usize, end: usize) -> usize {
        match self.fragment.tokens[at].kind {
            Kind::ArmIf => {
                self.arms.push(Arm { saved: (self.top, self.at_start), first_end: None, nodes: self.nodes.len() });
                at + 1
            }
            Kind::ArmElse => {
                let now = (self.top, self.at_start);
                if let Some(Arm { saved, first_end, nodes }) = self.arms.pop() {
                    if first_end.is_some() {
                        self.leave_dos(nodes);
                    }
                    (self.top, self.at_start) = saved;
                    self.arms.push(Arm { saved, first_end: first_end.or(Some(now)), nodes });
                }
                at + 1
            }
            Kind::ArmEnd => {
                if let Some(Arm { first_end: Some(first), nodes, .. }) = self.arms.pop() {
                    self.leave_dos(nodes);
                    (self.top, self.at_start) = first;
                }
                at + 1
            }
            kind if self.at_start => self.at_statement(at, kind, end),
            kind => self.in_expression(at, kind),
        }
    }

    /// Counts the `do` that the arm opened whose nodes begin there. Reading goes on from another arm.
    fn leave_dos(&mut self, nodes: usize) {
        let mut top = self.top;
        while let Some(node) = self.nodes.get(top as usize).filter(|_| top as usize >= nodes) {
            self.open_dos += usize::from(matches!(node.frame, Frame::DoBody { .. }));
            top = node.parent;
        }
    }

    /// Whether a `while` may end a `do` of another arm: `} while (…);`.
    fn may_end_a_do(&self, at: usize) -> bool {
        self.open_dos > 0
            && self.fragment.before(at).is_some_and(|before| self.fragment.is(before, b'}'))
            && self.group_after(at).is_some_and(|close| self.fragment.is(close + 1, b';'))
    }

    fn at_statement(&mut self, at: usize, kind: Kind, end: usize) -> usize {
        if let Some(Frame::DoTail { index }) = self.frame()
            && kind != Kind::While
        {
            // A `do` without its `while`: the macro that holds it is not in sight.
            self.out.lost.push(self.out.loops[index as usize].keyword);
            self.pop();
        }
        match kind {
            Kind::Punct(b'{') => self.open_block(at),
            Kind::Punct(b'}' | b')' | b']') => return self.in_expression(at, kind),
            Kind::Punct(b';') => self.complete(at),
            Kind::While if matches!(self.frame(), Some(Frame::DoTail { .. })) => {
                let Some(Frame::DoTail { index }) = self.frame() else { return at + 1 };
                self.replace(Frame::DoCondition { index });
                self.at_start = false;
            }
            Kind::While if self.may_end_a_do(at) => {
                self.open_dos -= 1;
                self.out.lost.push(at);
                self.begin_expression();
            }
            Kind::For | Kind::While => self.open_loop(at, if kind == Kind::For { LoopKind::For } else { LoopKind::While }),
            Kind::Do => {
                let index = self.add_loop(at, LoopKind::Do, None);
                self.push(Frame::DoBody { index });
            }
            Kind::If => {
                self.push(Frame::Condition { is_if: true });
                self.at_start = false;
            }
            Kind::Switch | Kind::Catch => {
                self.push(Frame::Condition { is_if: false });
                self.at_start = false;
            }
            Kind::Else => {
                if self.frame() == Some(Frame::Then) {
                    self.replace(Frame::Else);
                }
            }
            Kind::Try => {}
            // `[[likely]]` and its like.
            Kind::Punct(b'[') if self.fragment.is(at + 1, b'[') => return self.fragment.mate(at).unwrap_or(at) + 1,
            Kind::Pragma => {
                if let Some(close) = self.group_after(at) {
                    self.out.prefixes.push((at, close));
                    return close + 1;
                }
            }
            Kind::Case => {
                self.push(Frame::CaseLabel);
                self.at_start = false;
            }
            Kind::Default if self.fragment.is(at + 1, b':') => return at + 2,
            Kind::Ident => return self.word(at, end),
            _ => {
                self.push(Frame::Expression { class_head: kind == Kind::Class });
                self.at_start = false;
                match kind {
                    Kind::Return => self.out.returns.push(self.simple(at)),
                    Kind::Goto => self.out.gotos.push(self.simple(at)),
                    _ => return self.in_expression(at, kind),
                }
            }
        }
        at + 1
    }

    fn group_after(&self, at: usize) -> Option<usize> {
        if self.fragment.is(at + 1, b'(') { self.fragment.mate(at + 1) } else { None }
    }

    /// A statement that begins with a name: a label, a macro before a statement, or an expression.
    fn word(&mut self, at: usize, end: usize) -> usize {
        let fragment = self.fragment;
        let in_class = matches!(self.frame(), Some(Frame::Members));
        if fragment.is(at + 1, b':') && !in_class {
            self.out.labels.push(self.simple(at));
            let name = fragment.text(self.source, at).to_vec();
            self.out.label_places.entry(name).or_insert(at);
            return at + 2;
        }
        let name = fragment.text(self.source, at);
        if name == b"__syncthreads" && fragment.is(at + 1, b'(') && fragment.is(at + 2, b')') && fragment.is(at + 3, b';') {
            self.out.barriers.push(self.simple(at));
        }
        // `UNROLL for (…)`, `UNROLL(4) while (…)`, `SETUP for (…)`.
        let close = self.group_after(at);
        let after = fragment.skip_arms(close.unwrap_or(at) + 1);
        let follows = if after < end { fragment.kind(after) } else { None };
        let statement_follows = matches!(
            follows,
            Some(
                Kind::For
                    | Kind::While
                    | Kind::Do
                    | Kind::If
                    | Kind::Switch
                    | Kind::Return
                    | Kind::Goto
                    | Kind::Break
                    | Kind::Continue
                    | Kind::Asm
                    | Kind::Pragma
            )
        );
        let block = if follows == Some(Kind::Punct(b'{')) && !in_class { Some(after) } else { None };
        let Some(close) = close else {
            // `UNROLL LIKELY for (…)`: no declaration goes on with a loop.
            let words = (at..end).take_while(|index| fragment.kind(*index) == Some(Kind::Ident)).count();
            if words > 1 && matches!(fragment.kind(at + words), Some(Kind::For | Kind::While | Kind::Do)) {
                self.out.prefixes.push((at, at + words - 1));
                return at + words;
            }
            if statement_follows {
                self.out.prefixes.push((at, at));
                return at + 1;
            }
            // `FOREVER { … }`.
            if block.is_some() && name.len() > 1 && !name.iter().any(u8::is_ascii_lowercase) {
                self.macro_use(at, None, block);
                return at + 1;
            }
            self.begin_expression();
            return self.in_expression(at, Kind::Ident);
        };
        if !in_class {
            // `CHECK(x) y = 1;`: neither a name nor `++y` after the list can go on an expression.
            let steps = follows == Some(Kind::Step) && fragment.kind(after + 1) == Some(Kind::Ident);
            let this = follows == Some(Kind::Keyword) && fragment.text(self.source, after) == b"this";
            if block.is_some() || statement_follows || steps || this || follows == Some(Kind::Ident) {
                self.macro_use(at, Some((at + 1, close)), block);
                // The arguments may hold a lambda.
                self.at_start = false;
                return at + 1;
            }
        }
        self.begin_expression();
        self.in_expression(at, Kind::Ident)
    }

    fn macro_use(&mut self, name: usize, arguments: Option<(usize, usize)>, block: Option<usize>) {
        let index = self.out.macro_uses.len() as u32;
        self.out.macro_uses.push(MacroUse { name, arguments, block, scope: self.scope() as usize, end: None });
        self.push(Frame::MacroBody { index });
    }

    fn begin_expression(&mut self) {
        self.push(Frame::Expression { class_head: false });
        self.at_start = false;
    }

    fn add_loop(&mut self, keyword: usize, kind: LoopKind, header: Option<(usize, usize)>) -> u32 {
        let outer = self.innermost_loop();
        let body = header.map_or(keyword + 1, |(_, close)| close + 1);
        self.out.loops.push(Loop { kind, keyword, header, body, body_end: None, end: None, scope: self.scope() as usize, outer });
        self.out.loops.len() as u32 - 1
    }

    fn open_loop(&mut self, at: usize, kind: LoopKind) {
        let Some(close) = self.group_after(at) else {
            self.out.lost.push(at);
            return;
        };
        let kind = if kind == LoopKind::For && self.is_range_header(at + 1, close) { LoopKind::RangeFor } else { kind };
        let index = self.add_loop(at, kind, Some((at + 1, close)));
        self.push(Frame::Header { index });
        self.at_start = false;
    }

    /// A colon between the parentheses, with at most one semicolon before it.
    fn is_range_header(&self, open: usize, close: usize) -> bool {
        let mut at = open + 1;
        let mut questions = 0;
        while at < close {
            match self.fragment.tokens[at].kind {
                Kind::Punct(b'(' | b'[' | b'{') => at = self.fragment.mate(at).unwrap_or(at),
                Kind::Punct(b'?') => questions += 1,
                Kind::Punct(b':') if questions > 0 => questions -= 1,
                Kind::Punct(b':') => return true,
                _ => {}
            }
            at += 1;
        }
        false
    }

    fn open_block(&mut self, at: usize) {
        let scope = self.scope();
        if let Some(Frame::Members) = self.frame() {
            // Not a statement: `{` right after another member, as the values of something unseen.
            self.push(Frame::Group);
            self.at_start = false;
            return;
        }
        self.note_body(at);
        self.push(Frame::Block { scope });
        self.at_start = true;
    }

    /// The body of the innermost construct that waits for one begins here.
    fn note_body(&mut self, at: usize) {
        if let Some(Frame::LoopBody { index } | Frame::DoBody { index }) = self.frame() {
            self.out.loops[index as usize].body = at;
        }
    }

    fn in_expression(&mut self, at: usize, kind: Kind) -> usize {
        match kind {
            Kind::Punct(b'(' | b'[') => self.push(Frame::Group),
            Kind::Punct(b')' | b']') => self.close_group(at),
            Kind::Punct(b'{') => self.open_brace(at),
            Kind::Punct(b'}') => self.close_brace(at),
            Kind::Punct(b';') => match self.frame() {
                Some(Frame::Expression { .. }) => {
                    self.pop();
                    self.complete(at);
                }
                Some(Frame::DoCondition { index }) => {
                    self.out.loops[index as usize].end = Some(at);
                    self.pop();
                    self.complete(at);
                }
                // A header that never came, or statements handed to a macro.
                Some(Frame::Header { .. } | Frame::Condition { .. } | Frame::CaseLabel | Frame::MacroBody { .. }) => {
                    self.pop();
                    self.complete(at);
                }
                _ => {}
            },
            Kind::Punct(b':') if self.frame() == Some(Frame::CaseLabel) => {
                self.pop();
                self.at_start = true;
            }
            Kind::For | Kind::While | Kind::Do | Kind::If | Kind::Switch | Kind::Return | Kind::Goto | Kind::Case => {
                // A statement in the middle of an expression: its semicolon stands in a macro, or it is a macro's argument.
                if kind == Kind::If && matches!(self.frame(), Some(Frame::Condition { .. })) {
                    return at + 1;
                }
                if matches!(self.frame(), Some(Frame::Expression { .. })) {
                    self.pop();
                    self.settle(at);
                }
                self.at_start = true;
                return self.at_statement(at, kind, usize::MAX);
            }
            Kind::Class if matches!(self.frame(), Some(Frame::Expression { .. })) => self.replace(Frame::Expression { class_head: true }),
            Kind::Asm => self.out.asms.push(self.simple(at)),
            _ => {}
        }
        at + 1
    }

    /// `)` or `]`: whatever was open inside is over.
    fn close_group(&mut self, at: usize) {
        while let Some(frame) = self.frame() {
            match frame {
                Frame::Group => break,
                Frame::Block { .. } | Frame::Members => return,
                _ => {
                    self.note_end(frame, at.saturating_sub(1));
                    self.pop();
                }
            }
        }
        self.pop();
        self.at_start = match self.frame() {
            Some(Frame::Header { index }) => {
                self.out.loops[index as usize].body = at + 1;
                self.replace(Frame::LoopBody { index });
                true
            }
            Some(Frame::Condition { is_if: true }) => {
                self.replace(Frame::Then);
                true
            }
            Some(Frame::Condition { is_if: false }) => {
                self.pop();
                true
            }
            Some(Frame::DoCondition { index }) => {
                let open = self.fragment.mate(at);
                self.out.loops[index as usize].header = open.map(|open| (open, at));
                self.out.loops[index as usize].end = Some(at);
                false
            }
            Some(Frame::MacroBody { .. }) => true,
            Some(Frame::Then | Frame::Else | Frame::LoopBody { .. }) => true,
            _ => false,
        };
    }

    fn open_brace(&mut self, at: usize) {
        if let Some(function) = self.functions.get(&at) {
            return self.open_scope(function.open);
        }
        if is_lambda_body(self.fragment, at) || self.is_method_body(at) {
            return self.open_scope(at);
        }
        if let Some(Frame::Expression { class_head: true }) = self.frame() {
            self.push(Frame::Members);
            self.at_start = true;
            return;
        }
        if self.fragment.before(at).is_some_and(|before| self.fragment.is(before, b'(')) {
            // A GNU statement expression, or statements handed to a macro.
            let scope = self.scope();
            self.push(Frame::Block { scope });
            self.at_start = true;
            return;
        }
        self.push(Frame::Group);
    }

    fn open_scope(&mut self, open: usize) {
        let scope = self.out.scopes.len() as u32;
        let outer = Some(self.scope() as usize);
        self.out.scopes.push(Scope { open, outer });
        self.push(Frame::Block { scope });
        self.at_start = true;
    }

    fn is_method_body(&self, at: usize) -> bool {
        let Some(node) = self.nodes.get(self.top as usize) else { return false };
        let in_class = matches!(node.frame, Frame::Expression { .. })
            && self.nodes.get(node.parent as usize).is_some_and(|parent| parent.frame == Frame::Members);
        in_class
            && (at.saturating_sub(24)..at)
                .rev()
                .take_while(|index| !self.fragment.is(*index, b';'))
                .any(|index| self.fragment.is(index, b')'))
    }

    /// `}`: unwinds to the construct that the brace opened, and closes it.
    fn close_brace(&mut self, at: usize) {
        while let Some(frame) = self.frame() {
            if matches!(frame, Frame::Block { .. } | Frame::Members | Frame::Group) {
                break;
            }
            self.note_end(frame, at.saturating_sub(1));
            self.pop();
        }
        let Some(frame) = self.frame() else { return };
        // The outermost block is the body itself, which `read` ends.
        if self.nodes[self.top as usize].parent == NONE {
            return;
        }
        self.pop();
        match (frame, self.frame()) {
            // A value, a class, a lambda inside an expression: the expression goes on.
            (Frame::Group | Frame::Members, _) | (Frame::Block { .. }, Some(Frame::Group)) => self.at_start = false,
            (Frame::Block { .. }, Some(Frame::Expression { .. })) => {
                let parent = self.nodes[self.top as usize].parent;
                let is_method = self.nodes.get(parent as usize).is_some_and(|node| node.frame == Frame::Members);
                self.at_start = false;
                if is_method {
                    self.pop();
                    self.at_start = true;
                }
            }
            _ => self.complete(at),
        }
    }

    fn note_end(&mut self, frame: Frame, at: usize) {
        match frame {
            Frame::LoopBody { index } => {
                let loop_ = &mut self.out.loops[index as usize];
                loop_.body_end = loop_.body_end.or(Some(at));
                loop_.end = Some(at);
            }
            Frame::DoBody { index } | Frame::DoTail { index } => self.out.lost.push(self.out.loops[index as usize].keyword),
            Frame::MacroBody { index } => self.out.macro_uses[index as usize].end = Some(at),
            _ => {}
        }
    }

    /// A statement ended with the token at `at`: so do the constructs that it is the body of.
    fn complete(&mut self, at: usize) {
        loop {
            self.at_start = true;
            match self.frame() {
                Some(Frame::LoopBody { index }) => {
                    let loop_ = &mut self.out.loops[index as usize];
                    loop_.body_end = Some(at);
                    loop_.end = Some(at);
                    self.pop();
                }
                Some(Frame::DoBody { index }) => {
                    self.out.loops[index as usize].body_end = Some(at);
                    return self.replace(Frame::DoTail { index });
                }
                Some(Frame::MacroBody { index }) => {
                    self.out.macro_uses[index as usize].end = Some(at);
                    self.pop();
                }
                Some(Frame::Then) => {
                    if self.fragment.kind(self.fragment.skip_arms(at + 1)) == Some(Kind::Else) {
                        return;
                    }
                    self.pop();
                }
                Some(Frame::Else) => self.pop(),
                Some(Frame::Block { .. } | Frame::Members) | None => return,
                Some(_) => {
                    self.at_start = false;
                    return;
                }
            }
        }
    }

    /// A keyword cut off an expression. The construct whose body it was ends.
    fn settle(&mut self, at: usize) {
        self.complete(at.saturating_sub(1));
    }
}
