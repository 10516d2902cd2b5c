//! Whether a loop's body leaves its counter alone. Each token of the loop must be of a kind that is known to be
//! harmless. Each use of the counter must plainly be a read. Everything else counts as a change.

use crate::source::analysis::file_facts::FileFacts;
use crate::source::analysis::induction;
use crate::source::syntax::declaration::{Declarations, is_builtin, is_integer};
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::known_names::{self, takes_values, writes_through_pointers};
use crate::source::syntax::statement::{Loop, LoopKind};
use crate::source::syntax::token::{Kind, Line, is_name_byte, splice};
use std::collections::BTreeSet;

/// Whether nothing in the loop's body can change the variable, and nothing in its header but the counter's own step does.
pub(crate) fn leaves_alone(facts: &FileFacts, counter: &[u8], loop_: &Loop) -> bool {
    let (fragment, source) = (facts.fragment, facts.source);
    let induction = induction::read(facts, loop_);
    let (rest, in_body, is_counter) = induction.map_or((0..0, 0..0, false), |induction| {
        // Only the counter has a step.
        let is_counter = induction.counter == counter;
        (induction.rest, if is_counter { induction.in_body } else { 0..0 }, is_counter)
    });
    let (Some((_, header_end)), Some(end)) = (loop_.header, loop_.body_end) else { return false };
    // The header of a `do` stands behind its body.
    let (last, unchecked) = if loop_.kind == LoopKind::Do { (header_end, loop_.keyword) } else { (end, header_end) };
    if end.max(last) >= fragment.len() || facts.declarations.has_writing_operator() || !is_spelled_plainly(facts, loop_.keyword, last) {
        return false;
    }
    if let Some(name) = &fragment.of_macro {
        // The text behind the macro's use could continue an open statement; and the macro's arguments may be anything.
        let whole = fragment.is(loop_.body, b'{') && fragment.mate(loop_.body) == Some(end);
        let parameters = parameters(source, name.end);
        let given = |text: &[u8]| text.starts_with(b"__VA_") || parameters.contains(text);
        if !whole || (loop_.keyword..=end).any(|at| given(fragment.text(source, at))) {
            return false;
        }
    }
    (loop_.keyword..=end).all(|at| {
        let text = fragment.text(source, at);
        let is_word = text.first().is_some_and(|byte| is_name_byte(*byte)) && !matches!(fragment.kind(at), Some(Kind::Number));
        if is_word && facts.macros.is_defined(text) && !facts.macros.is_literal(text) && !stands_for_a_value(facts, at) {
            return false;
        }
        let is_checked = (at > unchecked || rest.contains(&at)) && !in_body.contains(&at);
        !is_checked || if text == counter { is_read(facts, at) || (is_counter && is_followed(facts, at)) } else { is_harmless(facts, at) }
    })
}

/// Whether the name at `at` is a macro with which nothing can be changed: no word of the language, and no type, which it would give another meaning.
pub(crate) fn stands_for_a_value(facts: &FileFacts, at: usize) -> bool {
    let (fragment, name) = (facts.fragment, facts.fragment.text(facts.source, at));
    fragment.kind(at) == Some(Kind::Ident) && !is_integer(name) && facts.macros.is_harmless(name, fragment.is(at + 1, b'('))
}

/// Whether the lexer has read the loop's bytes as the compiler will: no directive among them that may bring text along, no trigraph, no token
/// that a `\` at the end of a line splits.
fn is_spelled_plainly(facts: &FileFacts, first: usize, last: usize) -> bool {
    let (from, to) = (facts.fragment.tokens[first].start as usize, facts.fragment.tokens[last].end as usize);
    let directives = &facts.lexed.directives;
    let inside = directives.partition_point(|directive| directive.span.end <= from);
    if facts.fragment.of_macro.is_none()
        && directives[inside..]
            .iter()
            .take_while(|directive| directive.span.start < to)
            .any(|directive| matches!(directive.line, Line::Include | Line::Other | Line::Define(_)))
    {
        return false;
    }
    let text = &facts.source[from..to];
    !text.windows(2).any(|pair| pair == b"??") && !splits_a_token(text)
}

/// Whether a `\` at the end of a line stands in the middle of a possible token.
fn splits_a_token(text: &[u8]) -> bool {
    (1..text.len()).any(|at| {
        text[at] == b'\\'
            && !text[at - 1].is_ascii_whitespace()
            && splice(text, at).and_then(|next| text.get(next)).is_some_and(|byte| !byte.is_ascii_whitespace())
    })
}

/// The names between the parentheses that follow a macro's name.
pub(crate) fn parameters(source: &[u8], at: usize) -> BTreeSet<&[u8]> {
    if source.get(at) != Some(&b'(') {
        return BTreeSet::new();
    }
    let end = source[at..].iter().position(|byte| *byte == b')').map_or(source.len(), |length| at + length);
    source[at..end].split(|byte| !is_name_byte(*byte)).filter(|name| !name.is_empty()).collect()
}

/// Whether a token of the body that is not the counter can have no part in changing it.
fn is_harmless(facts: &FileFacts, at: usize) -> bool {
    let (fragment, source) = (facts.fragment, facts.source);
    let text = fragment.text(source, at);
    let before = at.checked_sub(1).and_then(|index| fragment.kind(index));
    match fragment.tokens[at].kind {
        // Behind an operand it is a subscript, elsewhere it begins a lambda, an attribute or a list of names.
        Kind::Punct(b'[') => {
            matches!(before, Some(Kind::Ident | Kind::Str | Kind::Punct(b')' | b']')))
                || follows(facts, at, b"this")
                || is_of_template(facts, at)
        }
        Kind::Punct(byte) => b"(){}];,.+-*/%<>&|^!~?:".contains(&byte),
        Kind::Op => matches!(text, b"<<" | b"<=" | b">=" | b"==" | b"!=" | b"&&" | b"||"),
        Kind::Keyword => {
            is_builtin(text)
                || matches!(
                    text,
                    b"auto"
                        | b"const"
                        | b"false"
                        | b"nullptr"
                        | b"reinterpret_cast"
                        | b"sizeof"
                        | b"static"
                        | b"static_cast"
                        | b"this"
                        | b"true"
                        | b"volatile"
                        | b"typename"
                        | b"template"
                        | b"__restrict__"
                        | b"__shared__"
                        | b"__volatile__"
                )
        }
        Kind::Pragma => fragment.text(source, at + 2).windows(6).any(|word| word == b"unroll"),
        Kind::Ident => is_harmless_name(facts, at),
        Kind::Number
        | Kind::Str
        | Kind::Char
        | Kind::For
        | Kind::While
        | Kind::Do
        | Kind::If
        | Kind::Else
        | Kind::Switch
        | Kind::Case
        | Kind::Default
        | Kind::Return
        | Kind::Break
        | Kind::Continue
        | Kind::Asm
        | Kind::Constexpr
        | Kind::Scope
        | Kind::Arrow
        | Kind::Assign
        | Kind::OpAssign
        | Kind::Step => true,
        // A jump may come back without passing the counter's step; an arm may hold what the other arms don't; the rest is no plain code.
        _ => false,
    }
}

/// Whether the bracket at `open` is the subscript of a variable that a template declares: `mask<T>[j]`. What stands behind it can't stand behind
/// what a lambda begins with, and no operator takes one as it is.
fn is_of_template(facts: &FileFacts, open: usize) -> bool {
    let fragment = facts.fragment;
    let goes_on = |close: usize| {
        matches!(
            fragment.kind(close + 1),
            Some(
                Kind::Punct(b';' | b',' | b')' | b']' | b'}' | b'+' | b'-' | b'*' | b'/' | b'.' | b'[' | b'?' | b':')
                    | Kind::Assign
                    | Kind::OpAssign
            )
        )
    };
    open > 0 && fragment.is(open - 1, b'>') && fragment.mate(open).is_some_and(goes_on)
}

fn follows(facts: &FileFacts, at: usize, word: &[u8]) -> bool {
    at > 0 && facts.fragment.text(facts.source, at - 1) == word
}

/// Whether a name is no macro from elsewhere, as far as can be told: a macro may change the counter out of our sight.
fn is_harmless_name(facts: &FileFacts, at: usize) -> bool {
    let (fragment, source) = (facts.fragment, facts.source);
    let name = fragment.text(source, at);
    if facts.macros.is_literal(name) {
        return true;
    }
    let before = at.checked_sub(1).and_then(|index| fragment.kind(index));
    let after = fragment.kind(at + 1);
    if name.windows(6).any(|word| word.eq_ignore_ascii_case(b"unroll")) && matches!(after, Some(Kind::For | Kind::While | Kind::Do)) {
        return true;
    }
    if after == Some(Kind::Punct(b'(')) {
        let declared_here = matches!(before, Some(Kind::Keyword)) && is_builtin(fragment.text(source, at - 1));
        return declared_here
            || facts.functions.contains(name)
            || facts.declarations.is_type(name)
            || is_by_value(facts, at)
            || stands_for_a_value(facts, at)
            || (is_own(facts, at) && writes_through_pointers(name))
            || (follows(facts, at, b"::") && at > 1 && fragment.text(source, at - 2) == b"std" && takes_values(name))
            // A member, or a name of a namespace, is no macro of another file, just as a variable is none; and what it does reaches no
            // variable of which it is given nothing. (Each argument is judged where it stands.)
            || is_qualified(facts, at)
            || is_integer(name);
    }
    if starts_statement(facts, at) {
        let goes_on = matches!(
            after,
            Some(
                Kind::Assign
                    | Kind::OpAssign
                    | Kind::Step
                    | Kind::Arrow
                    | Kind::Scope
                    | Kind::Op
                    | Kind::Ident
                    | Kind::Punct(b'[' | b'.' | b'<' | b'>' | b'*' | b'&' | b',')
            )
        );
        if !goes_on {
            return false;
        }
    }
    let in_capitals = !name.iter().any(u8::is_ascii_lowercase);
    !in_capitals
        || facts.declarations.declares(name)
        || before == Some(Kind::Scope)
        || stands_for_a_value(facts, at)
        || is_constant_of_c(facts, name)
}

/// Whether the name is that of a constant of C's headers or CUDA's, and this file defines no macro of that name.
fn is_constant_of_c(facts: &FileFacts, name: &[u8]) -> bool {
    !facts.macros.is_defined(name) && known_names::is_constant(name)
}

/// Whether a name, not in capitals, stands behind `.`, `->` or `::`.
fn is_qualified(facts: &FileFacts, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|index| facts.fragment.kind(index));
    let name = facts.fragment.text(facts.source, at);
    matches!(before, Some(Kind::Punct(b'.') | Kind::Arrow | Kind::Scope)) && name.iter().any(u8::is_ascii_lowercase)
}

/// Whether something in the loop is called of which nothing is known but that it leaves the loop's variables alone: it may take long.
pub(crate) fn calls_the_unknown(facts: &FileFacts, loop_: &Loop) -> bool {
    let (fragment, source) = (facts.fragment, facts.source);
    let end = loop_.end.unwrap_or(loop_.body).min(fragment.len().saturating_sub(1));
    let is_unknown = |at: usize| {
        let name = fragment.text(source, at);
        fragment.kind(at) == Some(Kind::Ident)
            && fragment.is(at + 1, b'(')
            && is_qualified(facts, at)
            && !facts.functions.contains(name)
            && !facts.declarations.is_type(name)
            && !(follows(facts, at, b"::") && at > 1 && fragment.text(source, at - 2) == b"std" && takes_values(name))
    };
    (loop_.keyword..=end).any(is_unknown)
}

/// Whether a statement may begin at the token.
pub(crate) fn starts_statement(facts: &FileFacts, at: usize) -> bool {
    let fragment = facts.fragment;
    match at.checked_sub(1).and_then(|index| fragment.kind(index)) {
        None | Some(Kind::Punct(b';' | b'{' | b'}') | Kind::Else | Kind::Do) => true,
        Some(Kind::Punct(b')')) => closes_condition(fragment, at - 1),
        _ => false,
    }
}

/// Whether the parenthesis ends the head of an `if`, a `switch` or a loop.
fn closes_condition(fragment: &Fragment, close: usize) -> bool {
    let before = fragment.mate(close).and_then(|open| open.checked_sub(1)).and_then(|index| fragment.kind(index));
    matches!(before, Some(Kind::If | Kind::For | Kind::While | Kind::Switch | Kind::Constexpr))
}

/// Whether the word names a number's type that this file does not declare anew.
pub(crate) fn is_number_type(declarations: &Declarations, text: &[u8]) -> bool {
    is_builtin(text) || (is_integer(text) && !declarations.declares(text))
}

/// Whether the name at `at` is a function of CUDA's own that takes numbers by value, and no other function.
pub(crate) fn is_by_value(facts: &FileFacts, at: usize) -> bool {
    is_own(facts, at) && takes_values(facts.fragment.text(facts.source, at))
}

/// Whether the function's name at `at` is no member's and none of this file's. `std::min` hands on a reference to what it was given.
fn is_own(facts: &FileFacts, at: usize) -> bool {
    let fragment = facts.fragment;
    let name = fragment.text(facts.source, at);
    !matches!(at.checked_sub(1).and_then(|index| fragment.kind(index)), Some(Kind::Punct(b'.') | Kind::Arrow | Kind::Scope))
        && !facts.declarations.declares(name)
        && !facts.functions.contains(name)
        && !facts.others.contains(name)
        && !facts.macros.is_defined(name)
}

/// Whether a fetch from a texture, `tex2D<float>`, ends at the token. All coordinates are values.
fn is_texture(facts: &FileFacts, close: usize) -> bool {
    let fragment = facts.fragment;
    let open = (close.saturating_sub(4)..close).rev().find(|index| fragment.is(*index, b'<')).filter(|_| fragment.is(close, b'>'));
    let Some(name) = open.and_then(|open| open.checked_sub(1)) else { return false };
    let text = fragment.text(facts.source, name);
    let is_fetch = ["tex1D", "tex2D", "tex3D", "tex1Dfetch", "tex1DLod", "tex2DLod", "tex3DLod", "tex1DLayered", "tex2DLayered"];
    is_fetch.iter().any(|word| word.as_bytes() == text) && is_own(facts, name)
}

/// Whether the variable at `at` is followed as a pointer, read or written: `*q = 0`, `q[1] += 2`, `q->next`. That
/// changes no pointer. It may change what only looks like one; so this is for counters, of which the compiler says what they are.
pub(crate) fn is_followed(facts: &FileFacts, at: usize) -> bool {
    let fragment = facts.fragment;
    let after = fragment.kind(at + 1);
    let is_pointed = at > 0 && fragment.is(at - 1, b'*') && !matches!(after, None | Some(Kind::Step | Kind::Punct(b'(' | b'.')));
    is_pointed || matches!(after, Some(Kind::Punct(b'[') | Kind::Arrow))
}

/// Whether the variable at `at`, or the member of it that is named there, is read and nothing else: what is around it takes its value at
/// once.
pub(crate) fn is_read(facts: &FileFacts, at: usize) -> bool {
    let (fragment, source) = (facts.fragment, facts.source);
    let (mut first, mut last) = (at, at);
    while fragment.is(last + 1, b'.') && fragment.kind(last + 2) == Some(Kind::Ident) && !fragment.is(last + 3, b'(') {
        last += 2;
    }
    // Parentheses and casts to unknown types hand on their operand; few of them are enough for real code.
    for _ in 0..8 {
        let (Some(before), Some(after)) = (first.checked_sub(1), fragment.kind(last + 1)) else { return false };
        // `>>=` comes as `>`, `>=`.
        if fragment.is(last + 1, b'>') && fragment.text(source, last + 2) == b">=" {
            return false;
        }
        let operator_after = is_binary(after, fragment.text(source, last + 1));
        if !operator_after && !matches!(after, Kind::Punct(b';' | b',' | b')' | b']' | b'}' | b':' | b'?')) {
            return false;
        }
        let ends_argument = matches!(after, Kind::Punct(b',' | b')'));
        match fragment.tokens[before].kind {
            // `(x) & i` may take an address behind a cast; `type & i` declares.
            Kind::Punct(b'&') => return before > 0 && matches!(fragment.kind(before - 1), Some(Kind::Number | Kind::Punct(b']'))),
            Kind::OpAssign | Kind::Punct(b'!' | b'~') => return true,
            kind if is_binary(kind, fragment.text(source, before)) => return true,
            Kind::Return if fragment.is(last + 1, b';') => return true,
            Kind::Assign | Kind::Return | Kind::Else | Kind::Case | Kind::Punct(b'(' | b'[' | b'{' | b',' | b';' | b'}' | b'?' | b':')
                if operator_after =>
            {
                return true;
            }
            Kind::Assign => return matches!(after, Kind::Punct(b';' | b',' | b')')) && assigns_a_value(facts, before),
            Kind::Punct(b'[') => {
                return after == Kind::Punct(b']')
                    && before > 0
                    && (matches!(fragment.kind(before - 1), Some(Kind::Ident | Kind::Punct(b')' | b']')))
                        || is_of_template(facts, before));
            }
            Kind::Punct(b'(') if after == Kind::Punct(b')') => {
                let Some(head) = before.checked_sub(1) else { return false };
                match fragment.tokens[head].kind {
                    Kind::If | Kind::While | Kind::Switch => return true,
                    Kind::Keyword => return is_builtin(fragment.text(source, head)),
                    Kind::Ident => {
                        return is_by_value(facts, head) || is_number_type(facts.declarations, fragment.text(source, head));
                    }
                    // A suffix binds closer than a cast: `(float)(i)++`.
                    Kind::Punct(b')') if matches!(cast(facts, head), Cast::Value) => (first, last) = (before, last + 1),
                    Kind::Punct(b'>') => {
                        let Some(open) = (head.saturating_sub(6)..head).rev().find(|index| fragment.is(*index, b'<')) else { return false };
                        if open == 0 || fragment.text(source, open - 1) != b"static_cast" {
                            return false;
                        }
                        match type_between(facts, open, head) {
                            Cast::Value => return true,
                            Cast::Unknown => (first, last) = (open - 1, last + 1),
                            Cast::None => return false,
                        }
                    }
                    Kind::Punct(b')' | b']' | b'}') => return false,
                    Kind::Punct(_) | Kind::Op | Kind::Assign | Kind::OpAssign | Kind::Return => (first, last) = (before, last + 1),
                    _ => return false,
                }
            }
            Kind::Punct(b'(' | b',') if ends_argument => return is_argument_by_value(facts, first),
            Kind::Punct(b')') => match cast(facts, before) {
                Cast::Value => return true,
                Cast::Unknown => first = fragment.mate(before).unwrap_or(0),
                Cast::None => return false,
            },
            _ => return false,
        }
    }
    false
}

/// The effect of a type in parentheses on its operand.
enum Cast {
    /// A number.
    Value,
    /// Perhaps a reference.
    Unknown,
    None,
}

/// The cast that the parenthesis at `close` ends.
fn cast(facts: &FileFacts, close: usize) -> Cast {
    facts.fragment.mate(close).map_or(Cast::None, |open| type_between(facts, open, close))
}

fn type_between(facts: &FileFacts, open: usize, close: usize) -> Cast {
    let fragment = facts.fragment;
    let words = || (open + 1..close).map(|at| fragment.text(facts.source, at));
    if words().next().is_none() {
        return Cast::None;
    }
    if words().all(|word| word == b"const" || is_number_type(facts.declarations, word)) {
        return Cast::Value;
    }
    if close == open + 2 && fragment.kind(open + 1) == Some(Kind::Ident) { Cast::Unknown } else { Cast::None }
}

/// Whether the operator takes the values of the operands on both sides.
fn is_binary(kind: Kind, text: &[u8]) -> bool {
    match kind {
        Kind::Punct(byte) => b"+-*/%<>&|^".contains(&byte),
        Kind::Op => matches!(text, b"<<" | b"<=" | b">=" | b"==" | b"!=" | b"&&" | b"||"),
        _ => false,
    }
}

/// Whether the target in front of the `=` takes a copy: an element, a variable that exists, or a new one of a number's type.
fn assigns_a_value(facts: &FileFacts, assign: usize) -> bool {
    let (fragment, source) = (facts.fragment, facts.source);
    let Some(target) = assign.checked_sub(1) else { return false };
    if fragment.is(target, b']') {
        return true;
    }
    if fragment.kind(target) != Some(Kind::Ident) || target < 2 {
        return false;
    }
    match fragment.tokens[target - 1].kind {
        Kind::Keyword => {
            let word = fragment.text(source, target - 1);
            word == b"auto" || is_builtin(word) || (word == b"const" && is_builtin(fragment.text(source, target - 2)))
        }
        Kind::Ident => is_number_type(facts.declarations, fragment.text(source, target - 1)),
        Kind::Punct(b'.') => matches!(fragment.kind(target - 2), Some(Kind::Ident | Kind::Punct(b')' | b']'))),
        Kind::Arrow | Kind::Else | Kind::Do | Kind::Punct(b'*' | b';' | b'{' | b'}' | b'(' | b':') => true,
        Kind::Punct(b')') => closes_condition(fragment, target - 1),
        _ => false,
    }
}

/// Whether the bare argument at `at` goes to a function that takes it by value.
fn is_argument_by_value(facts: &FileFacts, at: usize) -> bool {
    let fragment = facts.fragment;
    let mut index = at;
    for _ in 0..64 {
        let Some(before) = index.checked_sub(1) else { return false };
        index = before;
        match fragment.tokens[index].kind {
            Kind::Punct(b')' | b']' | b'}') => match fragment.mate(index) {
                Some(open) => index = open,
                None => return false,
            },
            Kind::Punct(b'(') => {
                return index > 0
                    && (is_by_value(facts, index - 1)
                        || is_texture(facts, index - 1)
                        || facts.macros.computes(fragment.text(facts.source, index - 1)));
            }
            Kind::Punct(b'[' | b'{' | b';') => return false,
            _ => {}
        }
    }
    false
}
