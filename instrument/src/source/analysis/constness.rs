//! Values that are surely not known before the kernel runs.
//!
//! A loop whose trip count the compiler may know stays the user's own loop. The compiler can then unroll it as a whole, and keep arrays that it indexes in
//! registers.

use crate::source::analysis::function_scope::FunctionScope;
use crate::source::analysis::induction::{self, Induction};
use crate::source::analysis::purity;
use crate::source::analysis::unroll::{self, Unroll};
use crate::source::syntax::declaration::{is_declared, is_further_number};
use crate::source::syntax::statement::Loop;
use crate::source::syntax::token::Kind;
use std::ops::Range;

/// How many declarations are followed from one to another.
const DEPTH: usize = 4;

impl FunctionScope<'_> {
    /// Whether the value of the tokens is known at run time only, for they name something that is.
    pub(crate) fn is_of_run_time(&self, range: Range<usize>, loop_: &Loop) -> bool {
        self.any_of_run_time(range, Some(loop_), DEPTH)
    }

    /// Whether start and bound may be the same but for a constant: `for (int y = row - 1; y <= row + 1; ++y)`.
    pub(crate) fn differ_by_a_constant(&self, induction: &Induction) -> bool {
        let (start, bound) = (self.terms(&induction.start, DEPTH), self.terms(&induction.bound, DEPTH));
        !start.is_empty() && start == bound
    }

    /// The terms of a sum that are no numbers, sorted, with their signs. A variable that is never assigned again stands for its first value.
    fn terms(&self, range: &Range<usize>, depth: usize) -> Vec<(bool, Vec<u8>)> {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        let mut terms = Vec::new();
        let (mut from, mut negative) = (range.start, false);
        let mut at = range.start;
        while at <= range.end {
            let ends = at == range.end || (at > from && matches!(fragment.kind(at), Some(Kind::Punct(b'+' | b'-'))));
            if ends {
                let term = from..at;
                let first_value = if term.len() == 1 && depth > 0 { self.first_value(fragment.text(source, from)) } else { None };
                match first_value {
                    Some(value) => terms.extend(self.terms(&value, depth - 1).into_iter().map(|(sign, text)| (sign ^ negative, text))),
                    None if term.len() == 1 && fragment.kind(from) == Some(Kind::Number) => {}
                    None => {
                        terms.push((negative, term.flat_map(|token| [fragment.text(source, token), b" "].concat()).collect()));
                    }
                }
                negative = at < range.end && fragment.is(at, b'-');
                from = at + 1;
            } else if at == from && matches!(fragment.kind(at), Some(Kind::Punct(b'-' | b'+'))) {
                negative ^= fragment.is(at, b'-');
                from = at + 1;
            } else if let Some(close) = fragment.mate(at).filter(|close| *close > at && *close < range.end) {
                at = close;
            }
            at += 1;
        }
        terms.sort();
        terms
    }

    /// The tokens of the value that a local variable is declared with, in front of the loop.
    pub(crate) fn first_value_before(&self, name: &[u8], loop_: &Loop) -> Option<Range<usize>> {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        let declared = |at: &usize| fragment.text(source, *at) == name && is_declared(source, fragment, *at);
        let at = (self.open..loop_.keyword).rev().find(|at| fragment.kind(*at) == Some(Kind::Ident) && declared(at))?;
        let end = (at..loop_.keyword).find(|index| fragment.is(*index, b';') || fragment.is(*index, b','))?;
        (fragment.kind(at + 1) == Some(Kind::Assign)).then_some(at + 2..end)
    }

    /// The tokens of a local variable's first value, if it has no other.
    pub(crate) fn first_value(&self, name: &[u8]) -> Option<Range<usize>> {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        let mut found = None;
        for at in self.open.max(self.range.start)..self.range.end {
            if fragment.kind(at) != Some(Kind::Ident) || fragment.text(source, at) != name {
                continue;
            }
            if is_declared(source, fragment, at) {
                let end = (at..self.range.end).find(|index| fragment.is(*index, b';'))?;
                found = Some((found.is_none() && fragment.kind(at + 1) == Some(Kind::Assign)).then_some(at + 2..end)?);
            } else if matches!(fragment.kind(at + 1), Some(Kind::Assign | Kind::OpAssign | Kind::Step))
                || fragment.kind(at - 1) == Some(Kind::Step)
            {
                return None;
            }
        }
        found
    }

    /// Whether a name is surely no constant in the loop: no array's length, no template's argument.
    pub(crate) fn is_no_constant(&self, name: &[u8], loop_: &Loop) -> bool {
        self.is_variable_of_run_time(name, Some(loop_), DEPTH)
    }

    fn any_of_run_time(&self, range: Range<usize>, loop_: Option<&Loop>, depth: usize) -> bool {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        let mut at = range.start;
        while at < range.end {
            let is_known = match fragment.tokens[at].kind {
                Kind::Punct(b'[') | Kind::Arrow => false,
                // The size of every type is known.
                Kind::Keyword if matches!(fragment.text(source, at), b"sizeof" | b"alignof" | b"decltype") && fragment.is(at + 1, b'(') => {
                    at = fragment.mate(at + 1).unwrap_or(at);
                    true
                }
                Kind::Ident if let Some(end) = self.end_of_typed(at, range.end, loop_) => {
                    at = end;
                    true
                }
                Kind::Ident => {
                    let name = fragment.text(source, at);
                    let is_member = at > 0 && matches!(fragment.kind(at - 1), Some(Kind::Punct(b'.') | Kind::Scope));
                    is_member
                        || (!matches!(name, b"threadIdx" | b"blockIdx" | b"blockDim" | b"gridDim")
                            && (!fragment.is(at + 1, b'(') || purity::is_by_value(self.facts, at) || self.may_be_evaluated(at, loop_))
                            && (depth == 0 || !self.is_variable_of_run_time(name, loop_, depth - 1))
                            && (depth == 0 || !self.stands_for_run_time(name, loop_, depth - 1)))
                }
                _ => true,
            };
            if !is_known {
                return true;
            }
            at += 1;
        }
        false
    }

    /// Whether the compiler may know what the function called at `at` returns, given that it knows the arguments: it is `constexpr`
    /// (`thread_work_size()`), or a pragma counts on it.
    fn may_be_evaluated(&self, at: usize, loop_: Option<&Loop>) -> bool {
        let name = self.facts.fragment.text(self.facts.source, at);
        self.facts.declarations.is_evaluated(name) || loop_.is_some_and(|loop_| self.is_unrolled_whole(loop_))
    }

    /// Whether the name is a macro that stands for a variable of run time.
    fn stands_for_run_time(&self, name: &[u8], loop_: Option<&Loop>, depth: usize) -> bool {
        let reads = self.facts.macros.operand(name).unwrap_or_default();
        reads.iter().any(|read| self.is_variable_of_run_time(read.as_bytes(), loop_, depth))
    }

    /// The last token of what begins at a name and may be known by its type alone. A class may hold its sizes as
    /// template arguments: `size<1>(tensor)`, `size(tensor)`, `array.size()`, `Policy<T>::items`.
    fn end_of_typed(&self, at: usize, to: usize, loop_: Option<&Loop>) -> Option<usize> {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        if fragment.is(at + 1, b'<') {
            let close = induction::template_arguments(fragment, at + 1, to)?;
            return if fragment.is(close + 1, b'(') { fragment.mate(close + 1).filter(|end| *end < to) } else { Some(close + 1) };
        }
        // A member of an instance of a template may be a constant of that; where a pragma unrolls the loop as a whole, it is meant to be.
        let is_member_of = fragment.is(at + 1, b'.') && fragment.kind(at + 2) == Some(Kind::Ident) && !fragment.is(at + 3, b'(');
        if is_member_of && at + 2 < to && loop_.is_some_and(|loop_| self.is_unrolled_whole(loop_)) {
            return self.is_of_class_template(fragment.text(source, at)).then_some(at + 2);
        }
        let of_object = fragment.is(at + 1, b'.') && fragment.is(at + 3, b'(');
        if of_object {
            let end = fragment.mate(at + 3).filter(|end| *end == at + 4 && *end < to)?;
            return self.is_of_class(fragment.text(source, at)).then_some(end);
        }
        let is_member = at > 0 && matches!(fragment.kind(at - 1), Some(Kind::Punct(b'.') | Kind::Arrow));
        if is_member || !fragment.is(at + 1, b'(') || purity::is_by_value(self.facts, at) {
            return None;
        }
        let end = fragment.mate(at + 1).filter(|end| *end < to)?;
        let is_object = |argument: usize| match fragment.kind(argument) {
            Some(Kind::Ident) => !fragment.is(argument + 1, b'(') && self.is_of_class(fragment.text(source, argument)),
            Some(Kind::Punct(b',')) => true,
            _ => false,
        };
        (at + 2 < end && (at + 2..end).all(is_object)).then_some(end)
    }

    /// Whether the function declares the name, with the type of neither a number nor a pointer.
    fn is_of_class(&self, name: &[u8]) -> bool {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        self.end_of_type(name).is_some_and(|of| match fragment.kind(of) {
            Some(Kind::Punct(b'>')) => true,
            Some(Kind::Ident | Kind::Keyword) => !purity::is_number_type(self.facts.declarations, fragment.text(source, of)),
            _ => false,
        })
    }

    /// Whether the function declares the name, with an instance of a template for its type.
    fn is_of_class_template(&self, name: &[u8]) -> bool {
        self.end_of_type(name).is_some_and(|of| self.facts.fragment.is(of, b'>'))
    }

    /// The last token of the type that the function declares the name with, references left out.
    fn end_of_type(&self, name: &[u8]) -> Option<usize> {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        let declared = |at: &usize| fragment.text(source, *at) == name && is_declared(source, fragment, *at);
        let at = self.range.clone().find(|at| fragment.kind(*at) == Some(Kind::Ident) && declared(at))?;
        let is_reference =
            |index: usize| fragment.is(index, b'&') || fragment.text(source, index) == b"&&" || fragment.text(source, index) == b"const";
        (self.range.start..at).rev().find(|index| !is_reference(*index))
    }

    /// Whether a pragma asks for all of the loop to be unrolled.
    fn is_unrolled_whole(&self, loop_: &Loop) -> bool {
        matches!(unroll::of_loop(self.facts, self.body, loop_), Unroll::Pragma(text) if text == "unroll")
    }

    /// Whether the function has a variable of that name whose value comes from its caller, from memory or from a loop.
    fn is_variable_of_run_time(&self, name: &[u8], loop_: Option<&Loop>, depth: usize) -> bool {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        let mut outer = loop_.and_then(|loop_| loop_.outer);
        while let Some(index) = outer {
            let around = &self.body.loops[index];
            if let Some(found) = induction::read(self.facts, around)
                && found.counter == name
                && !found.type_.is_empty()
            {
                // A counter of a loop that may be unrolled is a constant in each copy.
                return [found.start, found.bound].into_iter().any(|range| self.any_of_run_time(range, Some(around), depth));
            }
            outer = around.outer;
        }
        let mut declared = None;
        for at in self.range.clone() {
            if fragment.kind(at) != Some(Kind::Ident) || fragment.text(source, at) != name {
                continue;
            }
            let before = at.checked_sub(1).and_then(|index| fragment.kind(index));
            if matches!(before, Some(Kind::Punct(b'.') | Kind::Arrow | Kind::Scope)) {
                continue;
            }
            // `const Type *name` declares the name; the type is none of the function's variables.
            let is_type = matches!(fragment.kind(at + 1), Some(Kind::Ident | Kind::Punct(b'*' | b'&')));
            let is_further = || is_further_number(source, fragment, at, |word| purity::is_number_type(self.facts.declarations, word));
            if (is_declared(source, fragment, at) && !is_type) || is_further() {
                declared = declared.or(Some(at));
            } else if matches!(fragment.kind(at + 1), Some(Kind::Assign | Kind::OpAssign | Kind::Step)) || before == Some(Kind::Step) {
                return declared.is_some();
            }
        }
        let Some(at) = declared else { return false };
        if at < self.open {
            return true;
        }
        // A constant of the language is one, in every way of computing it.
        let begins = |index: &usize| !matches!(fragment.kind(*index), Some(Kind::Punct(b';' | b'{' | b'}' | b'(' | b')')));
        if (self.open..at).rev().take_while(begins).any(|index| fragment.text(source, index) == b"constexpr") {
            return false;
        }
        let end = (at..self.range.end).find(|index| fragment.is(*index, b';')).unwrap_or(at);
        self.any_of_run_time(at + 1..end, None, depth)
    }
}
