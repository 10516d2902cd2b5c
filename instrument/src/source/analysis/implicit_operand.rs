//! Operands of expressions: names with what is called, subscripted and selected of them, literals and keywords. What each may be, and what it calls.

use super::implicit_call::{Context, Expression, Implicit, Operand, Reader};
use crate::source::analysis::call_graph;
use crate::source::analysis::declared_type::{self, Type};
use crate::source::analysis::induction;
use crate::source::analysis::operators::Operators;
use crate::source::syntax::declaration;
use crate::source::syntax::known_names;
use crate::source::syntax::token::Kind;

/// Most tokens of a cast's type.
const MOST_CAST: usize = 48;

impl<'a> Reader<'a, '_> {
    /// An operand that begins at the token, with what is called, subscripted and selected of it.
    pub(super) fn operand(&mut self, at: usize, to: usize, now: &mut Expression<'a>) -> usize {
        let Context { source, fragment, operators, .. } = self.context;
        let text = fragment.text(source, at);
        match fragment.kind(at) {
            Some(Kind::Number) => {
                self.literal(at, text.contains(&b'_'), now);
                return at + 1;
            }
            Some(Kind::Str | Kind::Char) => {
                let is_own = fragment.kind(at + 1) == Some(Kind::Ident) && fragment.tokens[at].end == fragment.tokens[at + 1].start;
                self.literal(at, is_own, now);
                return at + 1 + usize::from(is_own);
            }
            Some(Kind::Operator) => {
                let found = operators.named_at(source, fragment, at);
                if !found.is_empty() {
                    self.note(at, Implicit::Functions(found), None);
                }
                now.operands.push(Operand { at, of: Type { any: true, ..Type::foreign() }, text: None });
                return Operators::name_end(fragment, at);
            }
            Some(Kind::Keyword) => return self.keyword(at, now),
            _ => {}
        }
        if fragment.kind(at) == Some(Kind::Scope) {
            return at + 1;
        }
        let is_declared = declaration::is_declared(source, fragment, at);
        let (next, operand) = self.postfix(at, to);
        if let Some(operand) = operand.filter(|_| !is_declared) {
            let operand = self.dereferenced(operand, now, at);
            self.push(now, operand, at);
        }
        next
    }

    /// The operand without the `*` in front of it, if one stands there.
    fn dereferenced(&mut self, operand: Operand<'a>, now: &mut Expression<'a>, at: usize) -> Operand<'a> {
        let is_target = at > 0 && now.signs.last() == Some(&(at - 1, true)) && self.context.fragment.is(at - 1, b'*');
        if is_target && operand.of.pointer {
            now.signs.pop();
            return Operand { of: operand.of.clone().target(), text: None, ..operand };
        }
        operand
    }

    fn literal(&mut self, at: usize, is_own: bool, now: &mut Expression<'a>) {
        let operators = self.context.operators;
        if is_own && !operators.literals.is_empty() {
            self.note(at, Implicit::Functions(operators.literals.clone()), None);
            now.operands.push(Operand { at, of: Type { any: true, ..Type::foreign() }, text: None });
        } else {
            now.operands.push(Operand { at, of: Type::default(), text: None });
        }
    }

    fn keyword(&mut self, at: usize, now: &mut Expression<'a>) -> usize {
        let Context { source, fragment, operators, .. } = self.context;
        let behind = |at: usize| fragment.mate(at).filter(|close| *close > at).map_or(at, |close| close + 1);
        match fragment.text(source, at) {
            b"sizeof" | b"alignof" | b"decltype" | b"noexcept" | b"alignas" | b"static_assert" | b"typeid" => {
                now.operands.push(Operand { at, of: Type::default(), text: None });
                if fragment.is(at + 1, b'(') { behind(at + 1) } else { at + 1 }
            }
            b"this" => {
                let is_whole = at > 0 && fragment.is(at - 1, b'*');
                let is_returned = is_whole && at > 1 && fragment.kind(at - 2) == Some(Kind::Return) && fragment.is(at + 1, b';');
                if is_returned {
                    *now = Expression::default();
                    return at + 1;
                }
                if fragment.kind(at + 1) == Some(Kind::Arrow) && Operators::width(fragment, at + 1) == 1 {
                    return at + 2;
                }
                let of = if is_whole { self.class.map_or(Type::any(), Type::class) } else { Type::default() };
                if is_whole {
                    now.signs.pop();
                }
                let operand = Operand { at, of, text: None };
                now.operands.push(operand);
                at + 1
            }
            b"static_cast" | b"const_cast" | b"reinterpret_cast" | b"dynamic_cast" => self.cast(at, now),
            b"new" | b"delete" => {
                let found = operators.allocation(fragment.text(source, at));
                if !found.is_empty() {
                    self.note(at, Implicit::Functions(found), None);
                }
                at + 1
            }
            b"true" | b"false" | b"nullptr" => {
                now.operands.push(Operand { at, of: Type::default(), text: None });
                at + 1
            }
            _ => at + 1,
        }
    }

    /// `static_cast<…>(…)`.
    fn cast(&mut self, at: usize, now: &mut Expression<'a>) -> usize {
        let Context { source, fragment, macros, types, .. } = self.context;
        let Some(open) =
            (at + 1..(at + MOST_CAST).min(fragment.len())).find(|open| fragment.is(*open, b'(') && fragment.is(open - 1, b'>'))
        else {
            return at + 1;
        };
        let Some(close) = fragment.mate(open).filter(|close| *close > open) else { return open };
        let of = self.expression(open + 1, close);
        self.uses(&Operand { at: open, of, text: None });
        for word in at + 2..open - 1 {
            if fragment.kind(word) == Some(Kind::Ident) {
                self.mention(word);
            }
        }
        let of = types.of_words(source, fragment, macros, at + 2..open - 1);
        now.operands.push(Operand { at, of, text: None });
        close + 1
    }

    /// A name with what follows it, and its value; no value for a type that no parentheses follow.
    fn postfix(&mut self, at: usize, to: usize) -> (usize, Option<Operand<'a>>) {
        let Context { fragment, .. } = self.context;
        let mut name = at;
        let (mut end, mut operand) = self.name(at, None);
        loop {
            let is_chain = operand.as_ref().is_some_and(|operand| operand.text.is_some());
            match fragment.kind(end) {
                Some(Kind::Punct(b'<')) => {
                    let Some(close) = induction::template_arguments(fragment, end, to) else { break };
                    for inner in end + 1..close {
                        if fragment.kind(inner) == Some(Kind::Ident) {
                            self.mention(inner);
                        }
                    }
                    end = close + 1;
                    if fragment.is(end, b'(') {
                        (end, operand) = self.call(name, end, operand);
                    }
                }
                Some(Kind::Punct(b'(')) if end == name + 1 => (end, operand) = self.call(name, end, operand),
                Some(Kind::Punct(b'(')) => {
                    let Some(close) = fragment.mate(end).filter(|close| *close > end) else { break };
                    self.expression(end + 1, close);
                    self.variable(end, &operand.as_ref().map_or_else(Type::any, |operand| operand.of.clone()));
                    operand = Some(Operand { at: end, of: self.context.operators.result(b"()"), text: None });
                    end = close + 1;
                }
                Some(Kind::Punct(b'[')) => {
                    let Some(close) = fragment.mate(end).filter(|close| *close > end) else { break };
                    self.expression(end + 1, close);
                    operand = operand.map(|operand| self.element(end, operand));
                    end = close + 1;
                }
                Some(Kind::Scope | Kind::Arrow | Kind::Punct(b'.')) if matches!(fragment.kind(end + 1), Some(Kind::Ident)) => {
                    if fragment.kind(end) == Some(Kind::Arrow)
                        && let Some(object) = operand.as_ref().filter(|operand| !operand.of.is_number())
                    {
                        let text = object.text.clone().filter(|_| object.of.any && object.of.classes.is_empty()).map(|text| vec![text]);
                        let of = object.of.clone();
                        self.operator(end, Some(1), &[Some(&of)], text.as_deref());
                    }
                    let before = operand.take().filter(|_| fragment.kind(end) != Some(Kind::Scope));
                    let prefix = before.as_ref().and_then(|before| before.text.clone()).filter(|_| is_chain && fragment.is(end, b'.'));
                    let is_vector = before.is_some_and(|before| before.of.vector || before.of.foreign);
                    name = end + 1;
                    let (next, member) = self.name(name, Some(&(prefix, is_vector)));
                    (end, operand) = (next, member);
                }
                Some(Kind::Step) => {
                    if let Some(object) = operand.as_ref().filter(|operand| !operand.of.is_number()) {
                        let text = object.text.clone().filter(|_| object.of.any && object.of.classes.is_empty()).map(|text| vec![text]);
                        let of = object.of.clone();
                        self.operator(end, Some(2), &[Some(&of), None], text.as_deref());
                    }
                    end += 1;
                }
                _ => break,
            }
        }
        (end, operand)
    }

    /// A name alone, behind an object's text perhaps.
    fn name(&mut self, at: usize, of: Option<&(Option<String>, bool)>) -> (usize, Option<Operand<'a>>) {
        let Context { source, fragment, macros, types, .. } = self.context;
        let name = fragment.text(source, at);
        if of.is_none() && types.named(name, macros).is_some() && types.of_variable(name).is_none() {
            self.mention(at);
            let makes = matches!(fragment.kind(at + 1), Some(Kind::Punct(b'(')));
            let of = types.named(name, macros).filter(|_| makes);
            return (at + 1, of.map(|of| Operand { at, of, text: None }));
        }
        if of.is_none() && macros.is_defined(name) && !declared_type::is_known_number(name, macros) {
            return self.of_macro(at);
        }
        let parameter = self.list.filter(|_| of.is_none()).and_then(|(list, close)| types.of_parameter(name, list, close));
        let known = parameter.or_else(|| types.of_variable(name).cloned());
        let (prefix, is_vector) = of.cloned().unwrap_or_default();
        let value = match known {
            Some(known) => known,
            None if declared_type::is_known_number(name, macros) => Type::default(),
            None if is_vector && matches!(name, b"x" | b"y" | b"z" | b"w") => Type::default(),
            None if matches!(name, b"threadIdx" | b"blockIdx" | b"blockDim" | b"gridDim") => Type { vector: true, ..Type::default() },
            None if declaration::is_integer(name) => {
                return (at + 1, fragment.is(at + 1, b'(').then(|| Operand { at, of: Type::default(), text: None }));
            }
            None => Type::foreign(),
        };
        let text = match (of, prefix) {
            (Some(_), Some(prefix)) => Some(format!("{}.{})", prefix.trim_end_matches(')'), String::from_utf8_lossy(name))),
            (Some(_), None) => None,
            (None, _) => self.text_of(at),
        };
        (at + 1, Some(Operand { at, of: value, text }))
    }

    /// The text of a parameter or member of the function's class, if it means the same where the body begins.
    fn text_of(&self, at: usize) -> Option<String> {
        let Context { source, fragment, types, operators, .. } = self.context;
        let function = self.function.filter(|_| self.has_texts)?;
        let name = fragment.text(source, at);
        if types.is_declared_in(name, function.open..function.close) {
            return None;
        }
        let (open, close) = call_graph::list(fragment, function)?;
        let parameter = types.declared_in(name, open..close).next();
        let is_parameter = parameter.is_some_and(|parameter| fragment.kind(parameter - 1) != Some(Kind::Op));
        let is_member = || {
            self.class_open.is_some_and(|class| {
                let end = fragment.mate(class).unwrap_or(class);
                parameter.is_none()
                    && types.declared_in(name, class..end).any(|place| {
                        operators.class_around(place) == Some(class) && !fragment.is_enclosed(place) && !fragment.is(place + 1, b'(')
                    })
            })
        };
        (is_parameter || is_member()).then(|| format!("decltype({})", String::from_utf8_lossy(name)))
    }

    /// A macro's use: its arguments, and what its text may call.
    fn of_macro(&mut self, at: usize) -> (usize, Option<Operand<'a>>) {
        let Context { source, fragment, macros, operators, .. } = self.context;
        let name = fragment.text(source, at);
        let mut end = at + 1;
        let mut arguments = Type::default();
        if fragment.is(end, b'(')
            && let Some(close) = fragment.mate(end).filter(|close| *close > end)
        {
            arguments = self.expression(end + 1, close);
            end = close + 1;
        }
        if macros.computes(name) && arguments.is_number() {
            return (end, Some(Operand { at, of: Type::default(), text: None }));
        }
        for found in operators.behind_macro(source, macros, name).iter() {
            self.note(at, found.clone(), None);
        }
        (end, Some(Operand { at, of: Type { any: true, ..Type::foreign() }, text: None }))
    }

    /// A call of what the name stands for, whose parentheses open there.
    fn call(&mut self, name: usize, open: usize, called: Option<Operand<'a>>) -> (usize, Option<Operand<'a>>) {
        let Context { source, fragment, operators, types, macros, .. } = self.context;
        let Some(close) = fragment.mate(open).filter(|close| *close > open) else { return (open + 1, called) };
        let text = fragment.text(source, name);
        let arguments = self.expression(open + 1, close);
        let is_function = operators.names.contains(text);
        let is_type = types.named(text, macros).is_some() && types.of_variable(text).is_none();
        let value = if is_function || is_type {
            called.map(|called| called.of)
        } else if known_names::takes_values(text) {
            Some(if arguments.is_number() {
                if declaration::is_vector(text) || text.starts_with(b"make_") {
                    Type { vector: true, ..Type::default() }
                } else {
                    Type::default()
                }
            } else {
                Type { foreign: true, ..arguments }
            })
        } else if types.of_variable(text).is_some() {
            let of = called.map_or(Type::any(), |called| called.of);
            // A member that is declared may be a function that the file only declares.
            if of.is_number() {
                Some(of)
            } else {
                self.variable(open, &of);
                let mut result = operators.result(b"()");
                if of.any || of.foreign {
                    result.join(&Type { any: of.any, ..Type::foreign() });
                }
                Some(result)
            }
        } else {
            Some(Type { foreign: true, pointer: false, ..arguments })
        };
        (close + 1, value.map(|of| Operand { at: name, of, text: None }))
    }
}
