//! Calls without a call's syntax: operators, conversions, constructors, destructors, calls of objects, range-based loops, literals.
//!
//! Tokens do not tell which overload an operator is, nor where a value is converted. An operand may be an object of a class.
//! Then its operator counts as a call of all overloads of its sign that the operands may fit. The object counts as a use of its class: of
//! the class's conversions, constructors and destructor, and of those of its members. What can only be numbers or pointers calls nothing.

use crate::source::analysis::call_graph;
use crate::source::analysis::declared_type::{Type, Types};
use crate::source::analysis::operators::Operators;
use crate::source::syntax::declaration;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::function::Function;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::Kind;
use std::collections::BTreeSet;

/// Most parentheses within each other that are read.
const MOST_DEPTH: usize = 64;

/// What may be called without a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Implicit<'a> {
    /// The overloads of these functions.
    Functions(Vec<usize>),
    /// What belongs to values of a class.
    Class(&'a [u8]),
    /// The same of any class.
    AnyClass,
    /// An object, or a lambda, that a variable holds.
    Variable,
}

/// Such a call, where it stands, and the operands that make it none if all of them are numbers.
#[derive(Debug, Clone)]
pub(crate) struct ImplicitCall<'a> {
    pub(crate) at: usize,
    pub(crate) calls: Implicit<'a>,
    pub(crate) unless_numbers: Option<Vec<String>>,
}

/// What a function's text is read with.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a, 'b> {
    pub(crate) source: &'a [u8],
    pub(crate) fragment: &'b Fragment,
    pub(crate) macros: &'b Macros<'a>,
    pub(crate) types: &'b Types<'a>,
    pub(crate) operators: &'b Operators<'a>,
    pub(crate) functions: &'b [&'b Function],
}

/// An operand: its type, and its text if it means the same where the function's body begins.
#[derive(Debug, Clone)]
pub(super) struct Operand<'a> {
    pub(super) at: usize,
    pub(super) of: Type<'a>,
    pub(super) text: Option<String>,
}

/// An expression without commas and parentheses around it, so far.
#[derive(Debug, Default)]
pub(super) struct Expression<'a> {
    pub(super) operands: Vec<Operand<'a>>,
    /// Operators, and whether each stands in front of its only operand.
    pub(super) signs: Vec<(usize, bool)>,
}

/// Reads a function's text.
pub(crate) struct Reader<'a, 'b> {
    pub(super) context: Context<'a, 'b>,
    /// The function, if it is one.
    pub(super) function: Option<&'b Function>,
    /// The class around the function.
    pub(super) class: Option<&'a [u8]>,
    pub(super) class_open: Option<usize>,
    /// Whether operands' texts may be used where the body begins.
    pub(super) has_texts: bool,
    /// The parentheses of its parameters, and the end of its body.
    pub(super) list: Option<((usize, usize), usize)>,
    /// Parameters of templates inside the function.
    inner: BTreeSet<&'a [u8]>,
    /// How deep in parentheses the text is that is read.
    depth: usize,
    found: Vec<ImplicitCall<'a>>,
}

impl<'a, 'b> Reader<'a, 'b> {
    pub(crate) fn new(context: Context<'a, 'b>, function: Option<&'b Function>) -> Self {
        let Context { source, fragment, operators, .. } = context;
        let class_open = function.and_then(|function| operators.class_around(function.head));
        let class = function.and_then(|function| operators.class_of(source, fragment, function));
        // Not every arm has the members that another names.
        let is_chosen = |at: usize| {
            matches!(fragment.kind(at), Some(Kind::ArmIf))
                || (fragment.kind(at) == Some(Kind::If) && fragment.kind(at + 1) == Some(Kind::Constexpr))
        };
        let has_texts = fragment.of_macro.is_none() && function.is_some_and(|function| !(function.head..function.close).any(is_chosen));
        let is_inner =
            |at: &usize| fragment.kind(at - 1) == Some(Kind::Class) || matches!(fragment.text(source, at - 1), b"typename" | b"...");
        let body = function.map_or(1..1, |function| function.open + 1..function.close);
        let list = function.and_then(|function| Some((call_graph::list(fragment, function)?, function.close)));
        let inner = body.filter(is_inner).map(|at| fragment.text(source, at)).collect();
        Self { context, function, class, class_open, has_texts, list, inner, depth: 0, found: Vec::new() }
    }

    /// The calls of a whole function, with its parameters and result.
    pub(crate) fn of_function(mut self, function: &Function) -> Vec<ImplicitCall<'a>> {
        let fragment = self.context.fragment;
        let first = self.head_start(function);
        let list = call_graph::list(fragment, function);
        self.mentions(first, function.open, function);
        if let Some((open, close)) = list {
            self.expression(open + 1, close);
            self.expression(close + 1, function.open);
        }
        self.expression(function.open + 1, function.close);
        self.found
    }

    /// Whether nothing between the tokens can be an object of a class.
    pub(crate) fn type_of(mut self, from: usize, to: usize) -> Type<'a> {
        self.expression(from, to)
    }

    /// Where the declaration begins, in front of the first attribute.
    fn head_start(&self, function: &Function) -> usize {
        let fragment = self.context.fragment;
        let is_part = |at: &usize| {
            matches!(
                fragment.kind(*at),
                Some(Kind::Ident | Kind::Keyword | Kind::Scope | Kind::Constexpr | Kind::Punct(b'*' | b'&' | b'<' | b'>' | b','))
            )
        };
        (function.head.saturating_sub(24)..function.head).rev().take_while(is_part).last().unwrap_or(function.head)
    }

    /// Classes that the head names: values of them are made, and end, where the function is called or returns.
    fn mentions(&mut self, from: usize, to: usize, function: &Function) {
        let Context { source, fragment, .. } = self.context;
        let makes_its_own = function.name.is_some_and(|name| {
            Some(fragment.text(source, name)) == self.class
                || (fragment.kind(name) == Some(Kind::Operator) && matches!(fragment.kind(name + 1), Some(Kind::Assign | Kind::OpAssign)))
        });
        for at in from..to {
            let is_own = makes_its_own && Some(fragment.text(source, at)) == self.class;
            let is_converted = function.name.is_some_and(|name| {
                fragment.kind(name) == Some(Kind::Operator) && at > name && self.list.is_none_or(|((open, _), _)| at < open)
            });
            if fragment.kind(at) == Some(Kind::Ident) && !is_own && !is_converted {
                self.mention(at);
            }
        }
    }

    /// A type's name: values of it, unless a pointer or a scope follows.
    pub(super) fn mention(&mut self, at: usize) {
        let Context { source, fragment, macros, types, .. } = self.context;
        let name = fragment.text(source, at);
        if matches!(fragment.kind(at + 1), Some(Kind::Punct(b'*') | Kind::Scope)) || fragment.kind(at.wrapping_sub(1)) == Some(Kind::Class)
        {
            return;
        }
        let Some(named) = types.named(name, macros).filter(|_| !fragment.is(at.wrapping_sub(1), b'~')) else { return };
        let is_parameter = types.is_parameter(name);
        let text = is_parameter.then(|| self.parameter_text(at)).flatten();
        // What is returned is made in the body.
        let is_result = self.list.is_some_and(|((open, _), _)| at < open);
        let at = self.function.filter(|_| is_result).map_or(at, |function| function.open);
        self.uses(&Operand { at, of: named, text });
    }

    /// The name of a template's parameter, if it is one of the function's or its class's template.
    fn parameter_text(&self, at: usize) -> Option<String> {
        let Context { source, fragment, .. } = self.context;
        let function = self.function.filter(|_| self.has_texts)?;
        let name = fragment.text(source, at);
        let named = |head: usize| {
            let head = (0..head).rev().take(64).take_while(|token| !matches!(fragment.kind(*token), Some(Kind::Punct(b';' | b'{' | b'}'))));
            head.filter(|token| fragment.text(source, *token) == name)
        };
        let is_behind_dots = |token: usize| fragment.kind(token.wrapping_sub(1)) == Some(Kind::Op);
        let is_declared = |head: usize| named(head).any(|token| !is_behind_dots(token));
        // A pack stands for many types, also where `const T &...` names it.
        let is_pack = |head: usize| named(head).any(is_behind_dots);
        let is_visible = is_declared(function.open) || self.class_open.is_some_and(is_declared);
        let is_pack = fragment.kind(at + 1) == Some(Kind::Op) || is_pack(function.open) || self.class_open.is_some_and(is_pack);
        let is_hidden = self.context.types.is_declared_in(name, function.open..function.close);
        (is_visible && !is_pack && !is_hidden && !self.inner.contains(name)).then(|| String::from_utf8_lossy(name).into_owned())
    }

    pub(super) fn note(&mut self, at: usize, calls: Implicit<'a>, unless_numbers: Option<Vec<String>>) {
        self.found.push(ImplicitCall { at, calls, unless_numbers });
    }

    /// A value: it may be converted, copied and destroyed.
    pub(super) fn uses(&mut self, operand: &Operand<'a>) {
        if operand.of.pointer {
            return;
        }
        for class in &operand.of.classes {
            self.note(operand.at, Implicit::Class(class), None);
        }
        if operand.of.any {
            let alone = operand.of.classes.is_empty() && !operand.of.foreign && !operand.of.vector;
            let text = operand.text.clone().filter(|_| alone).map(|text| vec![text]);
            // What initialises a member of a type that is not known makes a part of the object: that descends.
            let is_initialiser = self.function.is_some_and(|function| operand.at < function.open && self.is_constructor(function));
            if !is_initialiser {
                self.note(operand.at, Implicit::AnyClass, text);
            }
        }
    }

    fn is_constructor(&self, function: &Function) -> bool {
        let Context { source, fragment, .. } = self.context;
        function.name.is_some_and(|name| Some(fragment.text(source, name)) == self.class && fragment.kind(name) == Some(Kind::Ident))
    }

    /// The overloads of the operator at the token that its operands may fit.
    pub(super) fn operator(&mut self, at: usize, count: Option<usize>, operands: &[Option<&Type<'a>>], text: Option<&[String]>) {
        let Context { source, fragment, operators, .. } = self.context;
        for sign in Operators::signs_at(source, fragment, at) {
            let found = operators.overloads(&sign, count, operands);
            if !found.is_empty() {
                self.note(at, Implicit::Functions(found), text.map(<[String]>::to_vec));
            }
        }
    }

    /// What an expression's operators call, once it has ended.
    fn end(&mut self, expression: Expression<'a>) -> Type<'a> {
        let Expression { operands, signs } = expression;
        let mut whole = Type { pointer: true, ..Type::default() };
        for operand in &operands {
            whole.join(&operand.of);
        }
        if operands.is_empty() {
            return Type::default();
        }
        if whole.is_number() || operands.iter().all(|operand| operand.of.is_number()) {
            return if operands.len() == 1 { operands[0].of.clone() } else { Type::default() };
        }
        let classy = || operands.iter().filter(|operand| !operand.of.is_number());
        let is_open = |operand: &Operand| operand.of.any && operand.of.classes.is_empty() && !operand.of.foreign && !operand.of.vector;
        let texts = classy().map(|operand| operand.text.clone().filter(|_| is_open(operand))).collect::<Option<Vec<String>>>();
        for (at, is_prefix) in &signs {
            let types: Vec<Option<&Type>> = match (signs.len(), operands.len()) {
                (1, 1 | 2) => operands.iter().map(|operand| Some(&operand.of)).collect(),
                _ => vec![None; if *is_prefix { 1 } else { 2 }],
            };
            self.operator(*at, Some(if *is_prefix { 1 } else { 2 }), &types, texts.as_deref());
        }
        for operand in &operands {
            if !operand.of.is_number() {
                self.uses(operand);
            }
        }
        whole.pointer = false;
        whole
    }

    /// Reads tokens, expression by expression. Returns what the last may be, or any of them.
    pub(super) fn expression(&mut self, from: usize, to: usize) -> Type<'a> {
        if self.depth == MOST_DEPTH {
            return self.not_read(from, to);
        }
        self.depth += 1;
        let fragment = self.context.fragment;
        let mut whole: Option<Type<'a>> = None;
        let mut now = Expression::default();
        let mut at = from;
        while at < to {
            let kind = fragment.tokens[at].kind;
            at = match kind {
                Kind::Punct(b'{') if fragment.mate(at).is_some_and(|close| close > at && self.closes_value(close)) => {
                    let close = fragment.mate(at).unwrap_or(at);
                    self.expression(at + 1, close);
                    let made = self.context.types.named(fragment.text(self.context.source, at - 1), self.context.macros);
                    now.operands.push(Operand { at, of: made.unwrap_or(Type { any: true, ..Type::foreign() }), text: None });
                    close + 1
                }
                Kind::Punct(b';' | b'{' | b'}' | b',' | b'?' | b':')
                | Kind::Return
                | Kind::Assign
                | Kind::OpAssign
                | Kind::Case
                | Kind::Else => {
                    self.separator(at, &mut now, &mut whole);
                    at + 1
                }
                Kind::For if fragment.is(at + 1, b'(') => {
                    self.range_based(at + 1);
                    at + 1
                }
                Kind::Ident if self.context.operators.words.contains(fragment.text(self.context.source, at)) => {
                    now.signs.push((at, !self.ends_operand(at, from)));
                    at + 1
                }
                Kind::Punct(b'(') => self.group(at, &mut now),
                Kind::Punct(b'[') => self.brackets(at, &mut now),
                Kind::Punct(_) | Kind::Op | Kind::Step | Kind::Arrow => {
                    let is_prefix = !self.ends_operand(at, from);
                    now.signs.push((at, is_prefix && !fragment.is(at, b'.')));
                    at + Operators::width(fragment, at)
                }
                Kind::Ident | Kind::Scope | Kind::Number | Kind::Str | Kind::Char | Kind::Keyword | Kind::Operator => {
                    self.operand(at, to, &mut now)
                }
                _ => at + 1,
            };
        }
        let last = self.end(now);
        self.depth -= 1;
        match whole {
            Some(mut whole) => {
                whole.join(&last);
                whole
            }
            None => last,
        }
    }

    /// What lies too deep in parentheses may be anything.
    fn not_read(&mut self, from: usize, to: usize) -> Type<'a> {
        for at in from..to {
            if self.context.fragment.kind(at) == Some(Kind::Ident) {
                self.mention(at);
            } else {
                self.operator(at, None, &[], None);
            }
        }
        if from < to {
            self.note(from, Implicit::AnyClass, None);
            self.note(from, Implicit::Variable, None);
        }
        Type { any: true, ..Type::foreign() }
    }

    /// Whether a value ends in front of the token, within the expression that begins at `from`.
    fn ends_operand(&self, at: usize, from: usize) -> bool {
        let Context { source, fragment, .. } = self.context;
        let Some(before) = at.checked_sub(1).filter(|before| *before >= from) else { return false };
        match fragment.kind(before) {
            Some(Kind::Ident | Kind::Number | Kind::Str | Kind::Char | Kind::Step | Kind::Punct(b']' | b'}')) => true,
            // Behind a cast stands a sign of its own operand.
            Some(Kind::Punct(b')')) => !self.is_cast(before),
            Some(Kind::Keyword) => matches!(fragment.text(source, before), b"this" | b"true" | b"false" | b"nullptr"),
            _ => false,
        }
    }

    /// Whether the parentheses that end there hold a number's type.
    fn is_cast(&self, close: usize) -> bool {
        let Context { source, fragment, .. } = self.context;
        let Some(open) = fragment.mate(close).filter(|open| *open + 1 < close) else { return false };
        (open + 1..close)
            .all(|at| declaration::is_integer(fragment.text(source, at)) || fragment.text(source, at) == b"const" || fragment.is(at, b'*'))
    }

    /// Adds an operand, whose first token is given. Behind a cast to a number it is converted.
    pub(super) fn push(&mut self, now: &mut Expression<'a>, operand: Operand<'a>, first: usize) {
        let Context { source, fragment, .. } = self.context;
        let is_number = first.checked_sub(1).is_some_and(|before| {
            let is_word = fragment.kind(before) == Some(Kind::Keyword) && declaration::is_builtin(fragment.text(source, before));
            is_word || (fragment.is(before, b')') && self.is_cast(before))
        });
        if is_number {
            self.uses(&operand);
        }
        let of = if is_number { Type::default() } else { operand.of };
        now.operands.push(Operand { of, ..operand });
    }

    /// The end of an expression: a comma, an assignment, a statement's end.
    fn separator(&mut self, at: usize, now: &mut Expression<'a>, whole: &mut Option<Type<'a>>) {
        let Context { fragment, operators, .. } = self.context;
        let ended = std::mem::take(now);
        let is_declaration = ended.operands.is_empty();
        let found = self.end(ended);
        let is_assignment = matches!(fragment.kind(at), Some(Kind::Assign | Kind::OpAssign));
        let is_simple = fragment.kind(at) == Some(Kind::Assign);
        if is_assignment && !is_declaration && !(is_simple && found.is_number()) {
            self.operator(at, Some(2), &[Some(&found), None], None);
        } else if fragment.kind(at) == Some(Kind::OpAssign) && operators.has_foreign_target {
            self.operator(at, Some(2), &[None, None], None);
        }
        if fragment.is(at, b',') && operators.has_comma && self.function.is_none_or(|function| function.open < at) {
            self.operator(at, Some(2), &[None, None], None);
        }
        if !is_declaration {
            match whole {
                Some(whole) => whole.join(&found),
                None => *whole = Some(found),
            }
        }
        // A value between braces goes on.
        let goes_on = matches!(
            fragment.kind(at + 1),
            Some(
                Kind::Op
                    | Kind::Arrow
                    | Kind::Punct(b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'<' | b'>' | b'[' | b'(' | b'.')
            )
        );
        if fragment.is(at, b'}') && goes_on && !fragment.is(at + 1, b'*') || (fragment.is(at, b'}') && self.closes_value(at)) {
            now.operands.push(Operand { at, of: Type { any: true, ..Type::foreign() }, text: None });
        }
    }

    /// Whether the braces that end there make a value of the type in front of them.
    fn closes_value(&self, close: usize) -> bool {
        let Context { source, fragment, types, macros, .. } = self.context;
        let before = fragment.mate(close).and_then(|open| open.checked_sub(1));
        before.is_some_and(|before| {
            fragment.is(before, b'>')
                || (fragment.kind(before) == Some(Kind::Ident) && types.named(fragment.text(source, before), macros).is_some())
        })
    }

    /// Parentheses: a value, the arguments of what a value or a sign makes a call of, or a cast.
    fn group(&mut self, open: usize, now: &mut Expression<'a>) -> usize {
        let fragment = self.context.fragment;
        let Some(close) = fragment.mate(open).filter(|close| *close > open) else { return open + 1 };
        let is_behind = |before: usize| matches!(fragment.kind(before), Some(Kind::Punct(b')' | b']' | b'}'))) && !self.is_cast(before);
        let is_called = open.checked_sub(1).is_some_and(is_behind);
        // The object itself: what is called of it, or selected, takes it as it is.
        let is_this = close == open + 3 && fragment.is(open + 1, b'*') && fragment.text(self.context.source, open + 2) == b"this";
        let found = if is_this { self.class.map_or(Type::any(), Type::class) } else { self.expression(open + 1, close) };
        let is_control = open
            .checked_sub(1)
            .is_some_and(|before| matches!(fragment.kind(before), Some(Kind::If | Kind::While | Kind::For | Kind::Switch)));
        if is_called && !now.operands.is_empty() {
            self.variable(open, &Type::any());
            if let Some(last) = now.operands.last_mut() {
                last.of = self.context.operators.result(b"()");
                last.text = None;
            }
        } else if !is_control && !self.is_cast(close) {
            self.push(now, Operand { at: open, of: found, text: None }, open);
        } else if is_control {
            *now = Expression::default();
        }
        close + 1
    }

    /// Brackets: a subscript, or captures of a lambda.
    fn brackets(&mut self, open: usize, now: &mut Expression<'a>) -> usize {
        let Context { source, fragment, operators, .. } = self.context;
        let Some(close) = fragment.mate(open).filter(|close| *close > open) else { return open + 1 };
        if fragment.text(source, open.wrapping_sub(1)) == b"auto" || fragment.text(source, open.wrapping_sub(2)) == b"auto" {
            if !operators.getters.is_empty() {
                self.note(open, Implicit::Functions(operators.getters.clone()), None);
            }
            return close + 1;
        }
        self.expression(open + 1, close);
        if let Some(last) =
            now.operands.pop().filter(|_| open.checked_sub(1).is_some_and(|before| fragment.is(before, b')') || fragment.is(before, b'}')))
        {
            now.operands.push(self.element(open, last));
        }
        close + 1
    }

    /// An element of the operand, whose subscript opens there.
    pub(super) fn element(&mut self, open: usize, operand: Operand<'a>) -> Operand<'a> {
        if operand.of.pointer || operand.of.is_number() {
            return Operand { of: operand.of.target(), ..operand };
        }
        let text = operand.text.clone().map(|text| vec![text]).filter(|_| operand.of.any && operand.of.classes.is_empty());
        self.operator(open, Some(2), &[Some(&operand.of), None], text.as_deref());
        let of = self.context.operators.result(b"[]");
        // An array of the values of a template's parameter.
        let of = if operand.of.any { Type { any: true, ..of } } else { of };
        Operand { of, ..operand }
    }

    /// A call of the variable whose parentheses open there.
    pub(super) fn variable(&mut self, open: usize, of: &Type<'a>) {
        let Context { fragment, operators, .. } = self.context;
        let name = fragment.before(open).unwrap_or(open);
        if of.any || of.foreign || of.classes.iter().any(|class| operators.may_inherit(class)) {
            self.note(name, Implicit::Variable, None);
        }
        let own: Vec<usize> = operators.call_operators_of(&of.classes);
        if !own.is_empty() {
            self.note(name, Implicit::Functions(own), None);
        }
    }

    /// `for (x : range)` calls `begin` and `end`, and the iterator's operators.
    fn range_based(&mut self, open: usize) {
        let Context { fragment, operators, .. } = self.context;
        let Some(close) = fragment.mate(open).filter(|close| *close > open) else { return };
        let mut at = open + 1;
        let mut colon = None;
        while at < close {
            match fragment.kind(at) {
                Some(Kind::Punct(b'(' | b'[' | b'{')) => at = fragment.mate(at).filter(|mate| *mate > at).unwrap_or(at),
                Some(Kind::Punct(b'?')) => return,
                Some(Kind::Punct(b':')) => {
                    colon = Some(at);
                    break;
                }
                _ => {}
            }
            at += 1;
        }
        if let Some(colon) = colon
            && !operators.of_ranges.is_empty()
        {
            self.note(colon, Implicit::Functions(operators.of_ranges.clone()), None);
        }
    }
}
