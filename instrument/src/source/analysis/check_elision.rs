//! Barriers that need no check whether other threads of the block have left.
//!
//! A thread that others release from a barrier by leaving runs on values that they have not written. It must not make results from these values visible, nor
//! use them as an address, since a fault would cost the process its context. So a check stands behind each barrier of a kernel.
//!
//! The check is missing where the thread does neither before it comes to another check. Up to there it writes only to
//! its registers and to the block's own memory, which vanish with the block. The addresses do not depend on memory
//! ([`super::uniform_address`]). It reads memory where the plain kernel would. It calls only functions of CUDA's own
//! that compute. Each loop on the way ends or polls in any case. So the thread runs a little longer, and leaves at its
//! own next check.
//!
//! This is told of loops with barriers among the statements of their bodies. From a barrier the way leads to the next one, or round through the loop's header
//! to the first, or out. A check behind the loop stands for the missing ones, outside of the hot path. A `break` leads there, too, and a `return` to
//! the thread's end.

use crate::source::analysis::function_scope::FunctionScope;
use crate::source::analysis::uniform_address::{self, Addresses, Stands, is_operand, is_unknown_macro};
use crate::source::analysis::{induction, purity};
use crate::source::syntax::declaration;
use crate::source::syntax::function::Function;
use crate::source::syntax::statement::{Body, Loop, LoopKind};
use crate::source::syntax::token::{Kind, Line};
use std::collections::BTreeSet;
use std::ops::Range;

/// Most tokens of a kernel that are read.
const MOST_TOKENS: usize = 8192;

/// Most tokens of a function that is taken for one which computes.
const MOST_OF_FUNCTION: usize = 256;

/// Barriers without a check, and loops with one behind them.
#[derive(Debug, Default)]
pub(crate) struct Elision {
    /// Barriers by their name's token.
    pub(crate) unchecked: BTreeSet<usize>,
    /// Loops by index, each with one of its barriers' tokens.
    behind: Vec<(usize, usize)>,
}

/// Why a barrier has no check.
pub(crate) const WHY: &str = "nothing up to the next check shows what others have not written";

impl Elision {
    /// The last token of the loop with a check behind it that stands for the one of this barrier.
    pub(crate) fn behind(&self, body: &Body, barrier: usize) -> Option<usize> {
        let (index, _) = self.behind.iter().find(|(_, of)| *of == barrier)?;
        body.loops[*index].end
    }
}

/// Looks at a kernel's own body; `functions` are the file's.
pub(crate) fn of_kernel(scope: &FunctionScope, functions: &[&Function]) -> Elision {
    let (body, facts, open) = (scope.body, scope.facts, scope.open);
    let mut elision = Elision::default();
    let others = body.labels.len() + body.gotos.len() + body.lost.len() + body.asms.len();
    let is_plain = body.scopes.len() == 1 && others == 0 && !has_directive(scope, scope.range.clone());
    if body.barriers.is_empty() || !is_plain || scope.range.len() > MOST_TOKENS || facts.fragment.of_macro.is_some() {
        return elision;
    }
    let Some(addresses) = Addresses::of_kernel(facts, functions, scope.range.clone(), open) else { return elision };
    // A value from memory may keep a thread from a barrier.
    if body.barriers.iter().any(|barrier| !addresses.is_sure(barrier.token)) {
        return elision;
    }
    let harm = Harm { scope, addresses: &addresses, functions };
    for (index, loop_) in body.loops.iter().enumerate() {
        let (Some((header, close)), Some(end)) = (loop_.header, loop_.body_end) else { continue };
        if loop_.kind != LoopKind::For || loop_.end != Some(end) || !facts.fragment.is(loop_.body, b'{') || !stands_alone(scope, loop_) {
            continue;
        }
        let barriers: Vec<usize> = direct_barriers(scope, loop_);
        let (Some(first), Some(last)) = (barriers.first(), barriers.last()) else { continue };
        // The first part of a header runs before any barrier of the loop; it does no harm to judge it, too.
        let goes_round = harm.is_none(*last..end) && harm.is_none(header..close) && harm.is_none(loop_.body + 1..*first);
        let mut unchecked: BTreeSet<usize> = BTreeSet::new();
        for pair in barriers.windows(2) {
            let may_leave = (pair[0]..pair[1]).any(|at| matches!(facts.fragment.kind(at), Some(Kind::Break | Kind::Continue)));
            if harm.is_none(pair[0]..pair[1]) && (goes_round || !may_leave) {
                unchecked.insert(pair[0]);
            }
        }
        if goes_round {
            unchecked.insert(*last);
            elision.behind.push((index, *last));
        }
        elision.unchecked.extend(unchecked);
    }
    elision
}

/// Whether a line of the preprocessor that may bring text along stands among the tokens.
fn has_directive(scope: &FunctionScope, range: Range<usize>) -> bool {
    let (fragment, directives) = (scope.facts.fragment, &scope.facts.lexed.directives);
    let bytes = fragment.tokens[range.start].start as usize..fragment.tokens[range.end - 1].end as usize;
    let is_arm = |at: usize| matches!(fragment.kind(at), Some(Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd));
    directives.iter().any(|directive| bytes.contains(&directive.span.start) && directive.line != Line::Pragma)
        || range.into_iter().any(is_arm)
}

/// Whether the loop is a statement among others, so that one can follow it.
fn stands_alone(scope: &FunctionScope, loop_: &Loop) -> bool {
    let fragment = scope.facts.fragment;
    let mut first = loop_.keyword;
    while let Some((from, _)) = scope.body.prefixes.iter().find(|(_, to)| to + 1 == first) {
        first = *from;
    }
    let before = first - 1;
    let is_header = scope.body.loops.iter().any(|other| other.header.is_some_and(|(open, close)| (open..close).contains(&before)));
    !is_header && before >= scope.open && matches!(fragment.kind(before), Some(Kind::Punct(b';' | b'{' | b'}')))
}

/// The barriers among the statements of a loop's body.
fn direct_barriers(scope: &FunctionScope, loop_: &Loop) -> Vec<usize> {
    let fragment = scope.facts.fragment;
    let Some(end) = loop_.body_end else { return Vec::new() };
    let mut found = Vec::new();
    let mut at = loop_.body + 1;
    while at < end {
        if scope.body.barriers.iter().any(|barrier| barrier.token == at) {
            found.push(at);
        }
        match uniform_address::statement_end(fragment, at, end, 0) {
            Some(last) => at = last + 1,
            None => return Vec::new(),
        }
    }
    found
}

/// Deeds that a released thread must not do.
struct Harm<'a> {
    scope: &'a FunctionScope<'a>,
    addresses: &'a Addresses<'a>,
    functions: &'a [&'a Function],
}

impl Harm<'_> {
    /// Whether nothing among the tokens does harm.
    fn is_none(&self, range: Range<usize>) -> bool {
        range.into_iter().all(|at| self.is_harmless(at))
    }

    fn is_harmless(&self, at: usize) -> bool {
        let (facts, fragment) = (self.scope.facts, self.scope.facts.fragment);
        let text = fragment.text(facts.source, at);
        match fragment.tokens[at].kind {
            Kind::Ident => self.is_harmless_name(at),
            Kind::Punct(b'[') => fragment.is(at - 1, b']') || self.is_harmless_subscript(at),
            // Followed as a pointer, or part of a type.
            Kind::Punct(b'*') => self.is_of_type(at) || (is_operand(fragment, at - 1) && !self.ends_condition(at - 1)),
            Kind::Punct(b'&') => is_operand(fragment, at - 1) && !self.ends_condition(at - 1) || self.is_lent_to_cuda(at),
            Kind::Punct(byte) => b"(){}];,.+-/%<>|^!~?:".contains(&byte),
            Kind::Op => text != b"->*" && text != b".*",
            Kind::Assign | Kind::OpAssign => self.is_own_target(at - 1),
            Kind::Step => self.is_own_target(at - 1) || self.is_own_after(at + 1),
            Kind::Keyword => {
                const WORDS: &[&[u8]] = &[
                    b"const",
                    b"true",
                    b"false",
                    b"sizeof",
                    b"static_cast",
                    b"reinterpret_cast",
                    b"nullptr",
                    b"auto",
                    b"float",
                    b"double",
                    b"bool",
                ];
                WORDS.contains(&text) || uniform_address::is_number(facts, text)
            }
            Kind::Number | Kind::For | Kind::While | Kind::Do | Kind::If | Kind::Else | Kind::Return | Kind::Break | Kind::Continue => true,
            Kind::Constexpr => true,
            _ => false,
        }
    }

    fn is_harmless_name(&self, at: usize) -> bool {
        let (facts, fragment) = (self.scope.facts, self.scope.facts.fragment);
        let name = fragment.text(facts.source, at);
        if uniform_address::is_constant_macro(facts, at) {
            return true;
        }
        if facts.macros.is_defined(name) {
            return false;
        }
        let before = fragment.kind(at - 1);
        if matches!(before, Some(Kind::Scope | Kind::Arrow)) || fragment.kind(at + 1) == Some(Kind::Scope) {
            return false;
        }
        if !fragment.is(at + 1, b'(') {
            // A function's template arguments may follow its name, and an unknown macro may be anything.
            let is_function = facts.functions.contains(name) && self.addresses.stands(name).is_none();
            return !is_function && !is_unknown_macro(facts, at);
        }
        if before == Some(Kind::Punct(b'.')) {
            return false;
        }
        let is_barrier = name == b"__syncthreads" || name == b"__syncwarp";
        let is_number = uniform_address::is_number(facts, name);
        let computes = purity::is_by_value(facts, at) && !TOUCH.iter().any(|prefix| name.starts_with(prefix));
        is_barrier || is_number || computes || lends(name) && !facts.declarations.declares(name) || self.only_computes(name)
    }

    /// Whether each function of this file with that name takes numbers and computes with them: no memory, no other functions.
    fn only_computes(&self, name: &[u8]) -> bool {
        let mut named = uniform_address::named(self.scope.facts, self.functions, name).peekable();
        self.addresses.stands(name).is_none() && named.peek().is_some() && named.all(|(name, function)| self.computes(name, function))
    }

    fn computes(&self, name: usize, function: &Function) -> bool {
        let (facts, fragment) = (self.scope.facts, self.scope.facts.fragment);
        let is_value = |at: usize| !matches!(fragment.kind(at), Some(Kind::Op | Kind::Punct(b'*' | b'&' | b'[')));
        let whole = name + 1..function.close;
        let declares = |at: usize| {
            let mut at = at;
            while fragment.kind(at) == Some(Kind::Ident) && fragment.is(at - 1, b'.') {
                at -= 2;
            }
            let text = fragment.text(facts.source, at);
            let is_it =
                |other: usize| fragment.text(facts.source, other) == text && declaration::is_declared(facts.source, fragment, other);
            fragment.kind(at) == Some(Kind::Ident) && whole.clone().any(is_it)
        };
        let is_known = |at: usize| {
            let text = fragment.text(facts.source, at);
            match fragment.tokens[at].kind {
                Kind::Ident if uniform_address::is_constant_macro(facts, at) => true,
                Kind::Ident if facts.macros.is_defined(text) => false,
                Kind::Ident if fragment.is(at + 1, b'(') => {
                    uniform_address::is_number(facts, text)
                        || (purity::is_by_value(facts, at) && !TOUCH.iter().any(|prefix| text.starts_with(prefix)))
                }
                Kind::Ident => !is_unknown_macro(facts, at),
                Kind::Assign | Kind::OpAssign => declares(at - 1),
                Kind::Step => declares(at - 1) || declares(at + 1),
                Kind::Punct(b'*' | b'&') => is_operand(fragment, at - 1) && !self.ends_condition(at - 1),
                Kind::Punct(byte) => b"(){};,.+-/%<>|^!~?:".contains(&byte),
                Kind::Keyword => {
                    matches!(text, b"const" | b"true" | b"false" | b"static_cast" | b"float" | b"double" | b"bool")
                        || uniform_address::is_number(facts, text)
                }
                Kind::Number | Kind::Op | Kind::If | Kind::Else | Kind::For | Kind::While | Kind::Do => true,
                Kind::Return | Kind::Break | Kind::Continue => true,
                _ => false,
            }
        };
        whole.len() <= MOST_OF_FUNCTION && (name + 1..function.open).all(is_value) && whole.clone().all(is_known)
    }

    /// Whether the parenthesis at `close` ends the head of a statement, or a cast.
    fn ends_condition(&self, close: usize) -> bool {
        let (facts, fragment) = (self.scope.facts, self.scope.facts.fragment);
        let Some(open) = fragment.mate(close).filter(|open| *open < close && fragment.is(close, b')')) else { return false };
        let is_head = matches!(fragment.kind(open - 1), Some(Kind::If | Kind::For | Kind::While | Kind::Switch | Kind::Constexpr));
        let is_type = |at: usize| {
            let text = fragment.text(facts.source, at);
            uniform_address::is_number(facts, text)
                || facts.declarations.is_type(text)
                || matches!(text, b"const" | b"*" | b"float" | b"double")
        };
        is_head || (open + 1..close).all(is_type)
    }

    /// Whether the star belongs to a type: behind a word of one, in front of a name that is declared or a bracket that ends a cast.
    fn is_of_type(&self, at: usize) -> bool {
        let (facts, fragment) = (self.scope.facts, self.scope.facts.fragment);
        let word = fragment.text(facts.source, at - 1);
        let is_word = uniform_address::is_number(facts, word) || matches!(word, b"float" | b"double" | b"const");
        is_word && matches!(fragment.kind(at + 1), Some(Kind::Ident | Kind::Keyword | Kind::Punct(b'>' | b')')))
    }

    /// Whether it takes the address of a variable of the thread's own for a function of CUDA's that writes a result there.
    fn is_lent_to_cuda(&self, at: usize) -> bool {
        let (facts, fragment) = (self.scope.facts, self.scope.facts.fragment);
        let is_own = self.addresses.stands(fragment.text(facts.source, at + 1)) == Some(Stands::Value);
        if !is_own
            || !matches!(fragment.kind(at - 1), Some(Kind::Punct(b'(' | b',')))
            || !matches!(fragment.kind(at + 2), Some(Kind::Punct(b')' | b',')))
        {
            return false;
        }
        let open =
            (at.saturating_sub(64)..at).rev().find(|open| fragment.is(*open, b'(') && fragment.mate(*open).is_some_and(|close| close > at));
        open.is_some_and(|open| lends(fragment.text(facts.source, open - 1)))
    }

    /// Whether a subscript goes to memory of the block's own, or reads where the plain kernel would.
    fn is_harmless_subscript(&self, open: usize) -> bool {
        let (facts, fragment) = (self.scope.facts, self.scope.facts.fragment);
        let base = open - 1;
        let name = fragment.text(facts.source, base);
        if fragment.kind(base) != Some(Kind::Ident)
            || matches!(fragment.kind(base - 1), Some(Kind::Punct(b'.') | Kind::Arrow | Kind::Scope))
        {
            return false;
        }
        let (mut last, mut dimensions) = (open, 0);
        let (mut settled, mut is_bare) = (true, true);
        let mut names: Vec<&[u8]> = Vec::new();
        loop {
            let Some(close) = fragment.mate(last) else { return false };
            settled &= self.addresses.is_settled(last + 1..close);
            is_bare &= close == last + 2;
            names.extend(
                (last + 1..close)
                    .filter(|at| fragment.kind(*at) == Some(Kind::Ident) && !fragment.is(at - 1, b'.'))
                    .map(|at| fragment.text(facts.source, at)),
            );
            dimensions += 1;
            if !fragment.is(close + 1, b'[') {
                last = close;
                break;
            }
            last = close + 1;
        }
        // Where it is declared it is no access.
        let declares = declaration::is_declared(facts.source, fragment, base);
        let is_own = self.addresses.stands(name) == Some(Stands::Array(dimensions));
        if declares {
            return is_own;
        }
        if !settled || !self.is_asked_by_settled(base) {
            return false;
        }
        if is_own {
            // A loop inside the tokens says by itself how far its counter goes.
            return self.addresses.unsure(base).all(|guard| is_bare && names.iter().all(|name| self.counts_within(name, &guard.extent)));
        }
        while fragment.is(last + 1, b'.') && fragment.kind(last + 2) == Some(Kind::Ident) {
            last += 2;
        }
        let behind = fragment.kind(last + 1);
        let is_shift = fragment.is(last + 1, b'>') && fragment.text(facts.source, last + 2) == b">=";
        let is_stored =
            is_shift || matches!(behind, Some(Kind::Assign | Kind::OpAssign | Kind::Step)) || fragment.kind(base - 1) == Some(Kind::Step);
        let is_followed = matches!(behind, Some(Kind::Arrow | Kind::Punct(b'(')));
        !is_stored && !is_followed && self.addresses.is_settled_pointer(name) && self.addresses.is_sure(base)
    }

    /// Whether the name is the counter of a `for` inside the tokens, each of that name.
    fn counts_within(&self, name: &[u8], within: &Range<usize>) -> bool {
        let (facts, fragment) = (self.scope.facts, self.scope.facts.fragment);
        let counts = |loop_: &Loop| {
            loop_.kind == LoopKind::For
                && within.contains(&loop_.keyword)
                && induction::read(facts, loop_).is_some_and(|induction| induction.counter == name && !induction.type_.is_empty())
        };
        let declared = self
            .scope
            .range
            .clone()
            .filter(|at| fragment.text(facts.source, *at) == name)
            .filter(|at| declaration::is_declared(facts.source, fragment, *at));
        let headers = self.scope.body.loops.iter().filter(|loop_| counts(loop_)).count();
        let inside = declared.filter(|at| within.contains(at)).count();
        headers > 0 && headers == inside
    }

    /// Whether what stands in front of the token in its statement, and may decide whether it is reached, is settled.
    fn is_asked_by_settled(&self, at: usize) -> bool {
        let (facts, fragment) = (self.scope.facts, self.scope.facts.fragment);
        let mut first = at;
        let mut asks = false;
        while first > self.scope.open {
            let before = first - 1;
            match fragment.kind(before) {
                Some(Kind::Punct(b';' | b'{' | b'}') | Kind::Assign | Kind::OpAssign | Kind::Else | Kind::Do | Kind::Return) => break,
                Some(Kind::Op) if matches!(fragment.text(facts.source, before), b"&&" | b"||") => asks = true,
                Some(Kind::Punct(b'?')) => asks = true,
                _ => {}
            }
            first = before;
        }
        // A call around it asks nothing.
        let calls = |token: usize| fragment.is(token + 1, b'(') && fragment.mate(token + 1).is_some_and(|close| close > at);
        let is_head = |token: usize| matches!(fragment.kind(token), Some(Kind::If | Kind::While | Kind::For));
        !asks || (first..at).all(|token| is_head(token) || calls(token) || self.addresses.is_settled(token..token + 1))
    }

    /// Whether what ends at `last` is a variable of the thread's or block's own, or an element of such an array. The
    /// subscript is checked by itself.
    fn is_own_target(&self, last: usize) -> bool {
        let (facts, fragment) = (self.scope.facts, self.scope.facts.fragment);
        let mut at = last;
        // `>>=` comes as `>`, `>=`.
        if fragment.is(at, b'>') {
            at -= 1;
        }
        while fragment.kind(at) == Some(Kind::Ident) && fragment.is(at - 1, b'.') {
            at -= 2;
        }
        let mut dimensions = 0;
        while fragment.is(at, b']') {
            let Some(open) = fragment.mate(at) else { return false };
            dimensions += 1;
            at = open - 1;
        }
        if fragment.kind(at) != Some(Kind::Ident) || matches!(fragment.kind(at - 1), Some(Kind::Punct(b'.') | Kind::Arrow | Kind::Scope)) {
            return false;
        }
        // `*p = 0`, if it is no declaration.
        let is_followed = fragment.is(at - 1, b'*') && !self.is_of_type(at - 1);
        let stands = self.addresses.stands(fragment.text(facts.source, at));
        !is_followed
            && if dimensions == 0 {
                matches!(stands, Some(Stands::Value | Stands::Shared))
            } else {
                stands == Some(Stands::Array(dimensions))
            }
    }

    /// The same of what begins at `at`, behind a step in front of it.
    fn is_own_after(&self, at: usize) -> bool {
        let fragment = self.scope.facts.fragment;
        let mut last = at;
        while fragment.is(last + 1, b'.') || fragment.is(last + 1, b'[') {
            last = if fragment.is(last + 1, b'[') { fragment.mate(last + 1).unwrap_or(last + 1) } else { last + 2 };
        }
        self.is_own_target(last)
    }
}

/// Functions of CUDA's own that do more than compute.
const TOUCH: &[&[u8]] = &[b"atomic", b"__st", b"__ld", b"__sync", b"printf", b"assert", b"__nanosleep", b"__threadfence", b"__cvta"];

/// Functions of CUDA's own that write results where they are told to.
fn lends(name: &[u8]) -> bool {
    matches!(name, b"sincos" | b"sincosf" | b"sincospi" | b"sincospif" | b"__sincosf" | b"modff" | b"modf" | b"frexpf" | b"frexp")
}
