//! Loop invariants: literals, the launch's own dimensions, and variables of the function that nothing in the loop writes and that have no other name.
//!
//! The text can't tell that a type named here is no reference. The compiler is asked (`decltype`) by the names given back.

use crate::source::analysis::function_scope::FunctionScope;
use crate::source::analysis::{induction, purity, trip_count};
use crate::source::syntax::class;
use crate::source::syntax::declaration::{is_declared, is_further_number};
use crate::source::syntax::integer::Integer;
use crate::source::syntax::statement::Loop;
use crate::source::syntax::token::Kind;
use std::fmt::Write as _;
use std::ops::Range;

/// Most names in one expression.
const MOST_NAMES: usize = 6;

/// An expression that keeps its value while a loop runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Invariant {
    /// Its text on one line.
    pub(crate) text: String,
    /// Variables in it.
    pub(crate) variables: Vec<String>,
    /// Names in it that no function declares: if the compiler takes them for constants, they keep their values.
    pub(crate) constants: Vec<String>,
}

impl FunctionScope<'_> {
    /// The expression, if the loop does not change it. An empty range is none.
    pub(crate) fn invariant(&self, range: &Range<usize>, loop_: &Loop) -> Option<Invariant> {
        self.unchanged(range, loop_, false)
    }

    /// The same, and elements of arrays count, too: it is evaluated where the loop's own condition has just been, and nowhere else.
    pub(crate) fn bound(&self, range: &Range<usize>, loop_: &Loop) -> Option<Invariant> {
        self.unchanged(range, loop_, true)
    }

    fn unchanged(&self, range: &Range<usize>, loop_: &Loop, elements: bool) -> Option<Invariant> {
        let facts = self.facts;
        let (fragment, source) = (facts.fragment, facts.source);
        let mut found = Invariant::default();
        let mut at = range.start;
        while at < range.end {
            let text = fragment.text(source, at);
            let mut last = at;
            match fragment.tokens[at].kind {
                Kind::Number => {}
                Kind::Punct(b'+' | b'-' | b'*' | b'/' | b'%' | b'(' | b')' | b',') => {}
                Kind::Op if text == b"<<" => {}
                Kind::Keyword if purity::is_number_type(facts.declarations, text) => {}
                Kind::Keyword if text == b"static_cast" && fragment.is(at + 1, b'<') => {
                    last = (at + 2..range.end).find(|end| fragment.is(*end, b'>'))?;
                    if !(at + 2..last).all(|word| purity::is_number_type(facts.declarations, fragment.text(source, word))) {
                        return None;
                    }
                }
                Kind::Ident if trip_count::literal(facts, &(at..at + 1)).is_some() => {
                    // By its value: a name that the host's compiler knows as well may be no variable of the device.
                    let Integer { value, unsigned } = trip_count::literal(facts, &(at..at + 1))?;
                    let _ = write!(found.text, " {value}{}", if unsigned { "u" } else { "" });
                    at += 1;
                    continue;
                }
                Kind::Ident if elements && fragment.is(at + 1, b'[') => last = self.element(at, range.end, loop_, &mut found)?,
                Kind::Ident => last = self.name(at, range.end, loop_, &mut found)?,
                _ => return None,
            }
            for token in at..=last {
                if !found.text.is_empty() {
                    found.text.push(' ');
                }
                found.text.push_str(std::str::from_utf8(fragment.text(source, token)).ok()?);
            }
            at = last + 1;
        }
        (!range.is_empty() && found.variables.len() + found.constants.len() <= MOST_NAMES).then_some(found)
    }

    /// The last token of the operand that begins with the name at `at`, if its value does not change.
    fn name(&self, at: usize, end: usize, loop_: &Loop, found: &mut Invariant) -> Option<usize> {
        let facts = self.facts;
        let (fragment, source) = (facts.fragment, facts.source);
        let name = fragment.text(source, at);
        let is_own = !facts.declarations.declares(name) && !facts.macros.is_defined(name);
        let is_member = at + 2 < end && fragment.is(at + 1, b'.');
        match name {
            b"threadIdx" | b"blockIdx" | b"blockDim" | b"gridDim" if is_own => return is_member.then_some(at + 2),
            b"warpSize" if is_own => return Some(at),
            _ => {}
        }
        if purity::is_number_type(facts.declarations, name)
            || (fragment.is(at + 1, b'(') && purity::is_by_value(facts, at) && matches!(name, b"min" | b"max"))
        {
            return Some(at);
        }
        let mut last = at;
        while last + 2 < end && fragment.is(last + 1, b'.') && fragment.kind(last + 2) == Some(Kind::Ident) {
            last += 2;
        }
        if fragment.is(last + 1, b'(') {
            return None;
        }
        if !self.keeps(name, loop_) {
            return self.constant(at, end, loop_, found);
        }
        let mut variable = String::new();
        for token in at..=last {
            variable.push_str(std::str::from_utf8(fragment.text(source, token)).ok()?);
            if (token - at).is_multiple_of(2) && !found.variables.contains(&variable) {
                found.variables.push(variable.clone());
            }
        }
        Some(last)
    }

    /// The last token of a name, with the scopes in front of it, that this function does not declare and that may be a constant.
    fn constant(&self, at: usize, end: usize, loop_: &Loop, found: &mut Invariant) -> Option<usize> {
        let facts = self.facts;
        let (fragment, source) = (facts.fragment, facts.source);
        let mut last = at;
        while last + 2 < end && fragment.kind(last + 1) == Some(Kind::Scope) && fragment.kind(last + 2) == Some(Kind::Ident) {
            last += 2;
        }
        let words = (at..=last).map(|token| fragment.text(source, token));
        // A name in capitals that this file does not declare may be a macro that does anything. Of one that is an operand without side effects in
        // each file the compiler can tell whether it is a constant.
        let is_macro = |word: &[u8]| {
            let may_be = facts.macros.is_defined(word) || !(word.iter().any(u8::is_ascii_lowercase) || facts.declarations.declares(word));
            may_be && facts.macros.operand(word).is_none()
        };
        if words.clone().step_by(2).any(is_macro) || matches!(fragment.kind(last + 1), Some(Kind::Punct(b'(' | b'[' | b'<'))) {
            return None;
        }
        let is_local = self.range.clone().any(|other| {
            fragment.kind(other) == Some(Kind::Ident)
                && fragment.text(source, other) == fragment.text(source, at)
                && is_declared(source, fragment, other)
                && !self.is_constexpr(other)
        });
        if is_local {
            return None;
        }
        // It may stand for variables, which have to keep their values then.
        let reads = if last == at { facts.macros.operand(fragment.text(source, at)).unwrap_or_default() } else { &[] };
        if !reads.is_empty() {
            for name in reads {
                if !self.keeps(name.as_bytes(), loop_) {
                    return None;
                }
                if !found.variables.contains(name) {
                    found.variables.push(name.clone());
                }
            }
            return Some(last);
        }
        let name: Vec<&str> = words.map(std::str::from_utf8).collect::<Result<_, _>>().ok()?;
        let name = name.concat();
        if !found.constants.contains(&name) {
            found.constants.push(name);
        }
        Some(last)
    }

    /// Whether the name is a variable of this function that the loop does not change and whose address is never taken.
    pub(crate) fn keeps(&self, name: &[u8], loop_: &Loop) -> bool {
        purity::leaves_alone(self.facts, name, loop_) && self.is_private(name, loop_)
    }

    /// Whether the name is a variable declared once where the loop sees it, by value, that is read or assigned by name and never else.
    pub(crate) fn is_private(&self, name: &[u8], loop_: &Loop) -> bool {
        let facts = self.facts;
        let (fragment, source) = (facts.fragment, facts.source);
        let text = |at: usize| fragment.text(source, at);
        let Some(scope) = self.scope_of(name, loop_) else { return false };
        let is_counter = induction::read(facts, loop_).is_some_and(|induction| induction.counter == name);
        let mut declared = 0;
        for at in scope {
            if fragment.kind(at) != Some(Kind::Ident) || text(at) != name {
                continue;
            }
            let before = at.checked_sub(1).and_then(|index| fragment.kind(index));
            let after = fragment.kind(at + 1);
            // A member of that name is another thing.
            if matches!(before, Some(Kind::Punct(b'.') | Kind::Arrow | Kind::Scope)) {
                continue;
            }
            let is_further = || is_further_number(source, fragment, at, |word| purity::is_number_type(facts.declarations, word));
            let is_first = is_declared(source, fragment, at);
            // A class of the function's own declares members.
            if (is_first || is_further()) && fragment.opener(at).is_some_and(|open| class::is_class(source, fragment, open)) {
                continue;
            }
            if is_first {
                declared += 1;
                // The condition does not see declarations of the body.
                let in_body = (loop_.body..=loop_.body_end.unwrap_or(loop_.body)).contains(&at);
                if in_body || !self.is_by_value(at) {
                    return false;
                }
                continue;
            }
            if is_further() {
                declared += 1;
                if (loop_.body..=loop_.body_end.unwrap_or(loop_.body)).contains(&at) {
                    return false;
                }
                continue;
            }
            let assigned = matches!(after, Some(Kind::Assign | Kind::OpAssign | Kind::Step)) || before == Some(Kind::Step);
            let of_statement = matches!(
                at.checked_sub(if before == Some(Kind::Step) { 2 } else { 1 }).and_then(|index| fragment.kind(index)),
                Some(Kind::Punct(b';' | b'{' | b'}' | b')' | b'(' | b',') | Kind::Else | Kind::Do)
            );
            let is_followed = is_counter && purity::is_followed(facts, at);
            if !(purity::is_read(facts, at) || is_followed || assigned && of_statement) {
                return false;
            }
        }
        let mut bodies = facts.macros.bodies();
        declared == 1 && !bodies.any(|body| (0..body.len()).any(|at| body.text(source, at) == name))
    }

    /// The tokens in which the name means what it means in the loop's header: the outermost loop around it whose header declares the name,
    /// or the whole function.
    fn scope_of(&self, name: &[u8], loop_: &Loop) -> Option<Range<usize>> {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        let mut outer = loop_.outer;
        while let Some(index) = outer {
            let around = &self.body.loops[index];
            if let Some((open, close)) = around.header
                && let Some((first, _)) = induction::semicolons(fragment, open, close)
                && (open + 1..first).any(|at| fragment.text(source, at) == name && is_declared(source, fragment, at))
            {
                return Some(around.keyword..around.end? + 1);
            }
            outer = around.outer;
        }
        Some(self.range.clone())
    }

    /// Whether the declaration around `at` begins with `constexpr`: then nothing changes the variable.
    fn is_constexpr(&self, at: usize) -> bool {
        self.words_before(at).any(|word| self.facts.fragment.tokens[word].kind == Kind::Constexpr)
    }

    /// Whether this function declares the name as a constant number.
    pub(crate) fn declares_number(&self, name: &[u8]) -> bool {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        let declared = |at: &usize| {
            fragment.kind(*at) == Some(Kind::Ident) && fragment.text(source, *at) == name && is_declared(source, fragment, *at)
        };
        let is_number = |at: usize| purity::is_number_type(self.facts.declarations, fragment.text(source, at));
        self.range.clone().find(declared).is_some_and(|at| self.is_constexpr(at) && self.words_before(at).any(is_number))
    }

    /// The tokens in front of a name in its declaration, from the name on.
    fn words_before(&self, at: usize) -> impl Iterator<Item = usize> {
        let fragment = self.facts.fragment;
        (0..at).rev().take_while(|index| !matches!(fragment.kind(*index), Some(Kind::Punct(b';' | b'{' | b'}' | b'('))))
    }

    /// Whether the declaration of the name at `at` makes a variable of the thread's own.
    fn is_by_value(&self, at: usize) -> bool {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        let after = fragment.kind(at + 1);
        if !matches!(after, Some(Kind::Assign | Kind::Punct(b';' | b',' | b')' | b'(' | b'{'))) {
            return false;
        }
        let mut words = 0;
        for index in (0..at).rev() {
            match fragment.tokens[index].kind {
                Kind::Punct(b'&') => return false,
                Kind::Op if fragment.text(source, index) == b"&&" => return false,
                Kind::Punct(b'*' | b'<' | b'>' | b':') | Kind::Scope | Kind::Number => {}
                Kind::Ident | Kind::Keyword | Kind::Constexpr => {
                    words += 1;
                    let word = fragment.text(source, index);
                    if matches!(word, b"static" | b"extern" | b"volatile" | b"__shared__" | b"__constant__" | b"thread_local") {
                        return false;
                    }
                }
                Kind::Punct(b',') if words == 0 => return false,
                _ => break,
            }
        }
        words > 0
    }
}
