//! Elements of arrays whose value a loop does not change: `row[i + 1]` in `for (int j = row[i]; j < row[i + 1]; ++j)`.
//!
//! A strip may rest on an element that the language lets the compiler keep in a register. There are two cases. The function has the array by a pointer to
//! constants that is `__restrict__`, so nothing writes it while the function runs. Or nothing in the loop stores or waits for others, and only a race could
//! change the element, which has no meaning. The pointer is a parameter to numbers, as the text says it, so no part of it is volatile.

use crate::source::analysis::function_scope::FunctionScope;
use crate::source::analysis::invariant::Invariant;
use crate::source::analysis::purity;
use crate::source::syntax::declaration::{is_declared, is_further_number};
use crate::source::syntax::statement::{Loop, LoopKind};
use crate::source::syntax::token::Kind;

/// Most tokens in front of a parameter's name that are read.
const MOST_WORDS: usize = 8;

/// Beginnings of names of CUDA's own functions that take numbers by value and do more than compute.
const WRITE_OR_WAIT: &[&[u8]] = &[b"atomic", b"__st", b"__sync", b"__threadfence", b"__nanosleep", b"printf", b"assert"];

impl FunctionScope<'_> {
    /// The last token of the element that begins at a name, if it keeps its value while the loop runs. The variables of its index are added.
    pub(crate) fn element(&self, at: usize, end: usize, loop_: &Loop, found: &mut Invariant) -> Option<usize> {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        let close = fragment.mate(at + 1).filter(|close| fragment.is(at + 1, b'[') && *close < end)?;
        // Where a `do` first asks, its body has run: it may never have come to that.
        if loop_.kind == LoopKind::Do
            || fragment.of_macro.is_some()
            || matches!(fragment.kind(close + 1), Some(Kind::Punct(b'[' | b'.') | Kind::Arrow))
        {
            return None;
        }
        let name = fragment.text(source, at);
        let is_read_only = self.is_array_of_numbers(name)?;
        if !is_read_only && !self.stores_nothing(loop_) {
            return None;
        }
        let index = self.invariant(&(at + 2..close), loop_)?;
        for variable in index.variables {
            if !found.variables.contains(&variable) {
                found.variables.push(variable);
            }
        }
        found.constants.extend(index.constants);
        Some(close)
    }

    /// Whether the name is a parameter that points to numbers and is never anything but subscripted; and whether these are constants that are never written.
    fn is_array_of_numbers(&self, name: &[u8]) -> Option<bool> {
        let facts = self.facts;
        let (fragment, source) = (facts.fragment, facts.source);
        let mut parameter = None;
        for at in self.range.clone() {
            if fragment.kind(at) != Some(Kind::Ident) || fragment.text(source, at) != name {
                continue;
            }
            let is_first = parameter.is_none() && at < self.open && is_declared(source, fragment, at);
            let before = at.checked_sub(1).and_then(|before| fragment.kind(before));
            let is_member = matches!(before, Some(Kind::Punct(b'.') | Kind::Arrow | Kind::Scope));
            if is_first {
                parameter = Some(at);
            } else if !fragment.is(at + 1, b'[') || is_member || is_declared(source, fragment, at) {
                return None;
            }
        }
        let at = parameter.filter(|at| matches!(fragment.kind(at + 1), Some(Kind::Punct(b',' | b')'))))?;
        if facts.macros.is_defined(name) {
            return None;
        }
        let begins = |token: &usize| !matches!(fragment.kind(*token), Some(Kind::Punct(b',' | b'(')));
        let words: Vec<&[u8]> = (0..at).rev().take(MOST_WORDS).take_while(begins).map(|token| fragment.text(source, token)).collect();
        let star = words.iter().position(|word| *word == b"*")?;
        let (behind, before) = (&words[..star], &words[star + 1..]);
        let is_restrict = |word: &&[u8]| matches!(*word, b"__restrict__" | b"__restrict" | b"restrict");
        let is_number = |word: &&[u8]| purity::is_number_type(facts.declarations, word);
        let is_plain = before.len() < MOST_WORDS
            && behind.iter().all(|word| is_restrict(word) || *word == b"const")
            && before.iter().all(|word| is_number(word) || *word == b"const")
            && before.iter().any(is_number);
        is_plain.then(|| before.contains(&&b"const"[..]) && behind.iter().any(is_restrict))
    }

    /// Whether the loop assigns to the function's own numbers at most, reads arrays of numbers, and calls nothing that writes or waits.
    fn stores_nothing(&self, loop_: &Loop) -> bool {
        let (fragment, source) = (self.facts.fragment, self.facts.source);
        let Some(end) = loop_.end.filter(|end| *end < fragment.len()) else { return false };
        let is_own = |at: usize| fragment.kind(at) == Some(Kind::Ident) && self.is_own_number(at);
        (loop_.keyword..=end).all(|at| match fragment.tokens[at].kind {
            Kind::Assign | Kind::OpAssign => is_own(at - 1),
            Kind::Step => is_own(at - 1) || is_own(at + 1),
            Kind::Punct(b'[') => {
                fragment.kind(at - 1) == Some(Kind::Ident) && self.is_array_of_numbers(fragment.text(source, at - 1)).is_some()
            }
            Kind::Punct(b'(') => match fragment.kind(at - 1) {
                Some(Kind::Ident) => self.only_reads(at - 1),
                Some(Kind::Keyword) => purity::is_number_type(self.facts.declarations, fragment.text(source, at - 1)),
                Some(Kind::Punct(b')' | b']' | b'>' | b'}') | Kind::Str) => false,
                _ => true,
            },
            Kind::Ident => fragment.is(at + 1, b'(') || is_own(at) || self.is_number(at),
            Kind::Asm | Kind::Arrow | Kind::Scope | Kind::Operator | Kind::Class => false,
            _ => true,
        })
    }

    /// Whether the name at `at`, which is not called, is an array's of numbers, a type's, a constant's, or one that the language gives.
    fn is_number(&self, at: usize) -> bool {
        let facts = self.facts;
        let (fragment, name) = (facts.fragment, facts.fragment.text(facts.source, at));
        let is_given =
            |at: usize| matches!(fragment.text(facts.source, at), b"threadIdx" | b"blockIdx" | b"blockDim" | b"gridDim" | b"warpSize");
        let of_given = fragment.is(at - 1, b'.') && is_given(at - 2);
        let is_own = !facts.declarations.declares(name) && !facts.macros.is_defined(name);
        facts.macros.is_literal(name)
            || of_given
            || (is_own && is_given(at))
            || purity::is_number_type(facts.declarations, name)
            || self.is_array_of_numbers(name).is_some()
    }

    /// Whether the function that is called at `at` is one of CUDA's own that neither writes nor waits, or a type of numbers.
    fn only_reads(&self, at: usize) -> bool {
        let facts = self.facts;
        let name = facts.fragment.text(facts.source, at);
        purity::is_number_type(facts.declarations, name)
            || (purity::is_by_value(facts, at) && !WRITE_OR_WAIT.iter().any(|prefix| name.starts_with(prefix)))
    }

    /// Whether all declarations of the name in this function make it a number of the thread's own.
    fn is_own_number(&self, at: usize) -> bool {
        let facts = self.facts;
        let (fragment, source) = (facts.fragment, facts.source);
        let name = fragment.text(source, at);
        let is_number = |word: &[u8]| purity::is_number_type(facts.declarations, word);
        let mut declared = false;
        for other in self.range.clone().filter(|other| fragment.kind(*other) == Some(Kind::Ident) && fragment.text(source, *other) == name)
        {
            if is_declared(source, fragment, other) {
                if !is_number(fragment.text(source, other - 1)) {
                    return false;
                }
                declared = true;
            } else {
                declared |= is_further_number(source, fragment, other, is_number);
            }
        }
        declared && !facts.macros.is_defined(name)
    }
}
