//! Declarations of a file, as far as its tokens tell. A declared name may mean something else than in CUDA.

use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::integer;
use crate::source::syntax::token::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// Most tokens of a declaration of several names that are read.
const MOST_LISTED: usize = 256;

/// Most tokens of a template's arguments that are read.
const MOST_ARGUMENTS: usize = 64;

/// Names that this file declares.
#[derive(Debug, Default)]
pub(crate) struct Declarations<'a> {
    /// Classes, template parameters, aliases.
    types: BTreeSet<&'a [u8]>,
    /// Names in the place of a declared one: variables, functions, parameters.
    names: BTreeSet<&'a [u8]>,
    /// Names that may stand for a number's type: template parameters and aliases.
    aliases: BTreeSet<&'a [u8]>,
    /// Numbers that names are declared with, in any scope: only a guess at their values.
    numbers: BTreeMap<&'a [u8], i64>,
    /// Names of constants that names are declared with, the same way.
    named: BTreeMap<&'a [u8], &'a [u8]>,
    /// Types that operators take by a reference that is not to a constant.
    changed_by_operators: BTreeSet<&'a [u8]>,
    /// Functions that the compiler may evaluate, for they are `constexpr`.
    evaluated: BTreeSet<&'a [u8]>,
    /// Names of constants, and of what is declared otherwise.
    constants: BTreeSet<&'a [u8]>,
    variables: BTreeSet<&'a [u8]>,
}

impl<'a> Declarations<'a> {
    /// Adds the declarations of a fragment.
    pub(crate) fn read(&mut self, source: &'a [u8], fragment: &Fragment) {
        for at in 0..fragment.len() {
            match fragment.tokens[at].kind {
                Kind::Class => {
                    let is_parameter = matches!(at.checked_sub(1).and_then(|index| fragment.kind(index)), Some(Kind::Punct(b'<' | b',')));
                    self.add_type(source, fragment, at + 1, is_parameter);
                }
                Kind::Keyword if matches!(fragment.text(source, at), b"typename" | b"using") => {
                    self.add_type(source, fragment, at + 1, true);
                }
                Kind::Keyword if fragment.text(source, at) == b"typedef" => {
                    for inner in (at + 1..fragment.len()).take_while(|inner| !fragment.is(*inner, b';')) {
                        self.add_type(source, fragment, inner, true);
                    }
                }
                // An `if constexpr` declares nothing.
                Kind::Constexpr if at == 0 || fragment.kind(at - 1) != Some(Kind::If) => {
                    let ends = |inner: &usize| matches!(fragment.kind(*inner), Some(Kind::Assign | Kind::Punct(b';' | b'{' | b'}')));
                    let mut declarator = (at + 1..fragment.len().min(at + MOST_ARGUMENTS)).take_while(|inner| !ends(inner));
                    let name = declarator.find(|inner| fragment.kind(*inner) == Some(Kind::Ident) && fragment.is(inner + 1, b'('));
                    self.evaluated.extend(name.map(|name| fragment.text(source, name)));
                }
                Kind::Operator => self.changed_by_operators.extend(changed_operands(source, fragment, at)),
                Kind::Ident if is_declared(source, fragment, at) => {
                    self.names.insert(fragment.text(source, at));
                    self.add_number(source, fragment, at);
                    let kind = if is_constant(source, fragment, at) { &mut self.constants } else { &mut self.variables };
                    kind.insert(fragment.text(source, at));
                    if fragment.kind(at + 1) == Some(Kind::Assign) {
                        for other in others(fragment, at) {
                            self.names.insert(fragment.text(source, other));
                            self.add_number(source, fragment, other);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn add_type(&mut self, source: &'a [u8], fragment: &Fragment, at: usize, is_alias: bool) {
        if fragment.kind(at) == Some(Kind::Ident) {
            self.types.insert(fragment.text(source, at));
            if is_alias {
                self.aliases.insert(fragment.text(source, at));
            }
        }
    }

    /// A name that is given a number where it is declared.
    fn add_number(&mut self, source: &'a [u8], fragment: &Fragment, at: usize) {
        let ends = matches!(fragment.kind(at + 3), Some(Kind::Punct(b';' | b',')));
        if fragment.kind(at + 1) == Some(Kind::Assign) && fragment.kind(at + 2) == Some(Kind::Number) && ends {
            self.numbers.extend(integer::literal(fragment.text(source, at + 2)).map(|number| (fragment.text(source, at), number.value)));
        }
        if fragment.kind(at + 1) == Some(Kind::Assign) && fragment.kind(at + 2) == Some(Kind::Ident) && ends {
            self.named.insert(fragment.text(source, at), fragment.text(source, at + 2));
        }
    }

    /// The number that a name probably stands for. Nothing that has to be right may rest on it.
    pub(crate) fn likely(&self, name: &[u8]) -> Option<i64> {
        self.numbers.get(name).copied()
    }

    /// The name of the constant that a name was declared with, for such a guess.
    pub(crate) fn alias(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.named.get(name).copied()
    }

    /// Whether the file has a `constexpr` function of that name, which is a constant where its arguments are.
    pub(crate) fn is_evaluated(&self, name: &[u8]) -> bool {
        self.evaluated.contains(name)
    }

    /// Whether the name is that of a constant of the language wherever the file declares it.
    pub(crate) fn is_constant(&self, name: &[u8]) -> bool {
        self.constants.contains(name) && !self.variables.contains(name)
    }

    pub(crate) fn is_type(&self, name: &[u8]) -> bool {
        self.types.contains(name)
    }

    /// Whether the file declares the name as anything.
    pub(crate) fn declares(&self, name: &[u8]) -> bool {
        self.types.contains(name) || self.names.contains(name)
    }

    /// Whether the file declares the name as something that may be called: a variable, a parameter or a function.
    pub(crate) fn may_be_called(&self, name: &[u8]) -> bool {
        self.names.contains(name) && !self.types.contains(name)
    }

    /// Whether an operator may change a number that is its operand.
    pub(crate) fn has_writing_operator(&self) -> bool {
        self.changed_by_operators.iter().any(|name| *name == b"auto" || is_integer(name) || self.aliases.contains(name))
    }
}

/// Whether the name that is declared at `at` stands for a constant: it is `constexpr`, one number that is `const`, or a template's parameter.
fn is_constant(source: &[u8], fragment: &Fragment, at: usize) -> bool {
    let ends = |index: &usize| matches!(fragment.kind(*index), Some(Kind::Punct(b';' | b'{' | b'}' | b'(' | b')' | b'<' | b',')));
    let start = (0..at).rev().take(MOST_ARGUMENTS).find(ends).map_or(0, |index| index + 1);
    let mut words = (start..at).map(|word| fragment.text(source, word));
    let is_parameter = start > 0
        && matches!(fragment.kind(start - 1), Some(Kind::Punct(b'<' | b',')))
        && matches!(fragment.kind(at + 1), Some(Kind::Punct(b',' | b'>') | Kind::Assign))
        && (0..start)
            .rev()
            .take(MOST_ARGUMENTS)
            .take_while(|index| !matches!(fragment.kind(*index), Some(Kind::Punct(b';' | b'{' | b'}' | b'('))))
            .any(|index| fragment.text(source, index) == b"template");
    let is_number = fragment.kind(at + 1) == Some(Kind::Assign) && fragment.kind(at + 2) == Some(Kind::Number) && fragment.is(at + 3, b';');
    is_parameter || words.any(|word| word == b"constexpr" || (word == b"const" && is_number))
}

/// Names for integers in C's headers and CUDA's.
const INTEGERS: &str =
    "size_t ptrdiff_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uint ushort uchar ulong intptr_t uintptr_t";

/// Whether the word names a type of numbers, by itself or in a header.
pub(crate) fn is_integer(text: &[u8]) -> bool {
    is_builtin(text) || INTEGERS.split_ascii_whitespace().any(|word| word.as_bytes() == text)
}

/// Whether the word names one of CUDA's vector types: aggregates of up to four components `x`, `y`, `z` and `w`, without a constructor, so that no number
/// becomes one. (`dim3` and `half2` have constructors.)
pub(crate) fn is_vector(text: &[u8]) -> bool {
    const OF: &[&[u8]] =
        &[b"char", b"uchar", b"short", b"ushort", b"int", b"uint", b"long", b"ulong", b"longlong", b"ulonglong", b"float", b"double"];
    matches!(text.split_last(), Some((b'1'..=b'4', of)) if OF.contains(&of))
}

/// Whether the word names one of the language's own types of numbers.
pub(crate) fn is_builtin(text: &[u8]) -> bool {
    matches!(text, b"bool" | b"char" | b"short" | b"int" | b"long" | b"unsigned" | b"signed" | b"float" | b"double" | b"void" | b"wchar_t")
}

/// Whether the name at `at` follows a type: `int name`, `Type *name`, `(*name)`, `auto &name`, `using ns::name`.
pub(crate) fn is_declared(source: &[u8], fragment: &Fragment, at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else { return false };
    if is_use_of_integer(source, fragment, at) {
        return false;
    }
    match fragment.tokens[before].kind {
        Kind::Ident | Kind::Class | Kind::Device | Kind::Host | Kind::Global | Kind::Constexpr => true,
        Kind::Keyword => !matches!(fragment.text(source, before), b"this" | b"throw" | b"new" | b"delete" | b"sizeof"),
        // `(column * WIDTH + row)` multiplies: no operator follows a name that is declared.
        Kind::Punct(b'*' | b'&') | Kind::Op if is_operator(fragment, at + 1) => false,
        Kind::Punct(b'*' | b'&') | Kind::Op => {
            let mut type_at = before;
            while matches!(fragment.kind(type_at), Some(Kind::Punct(b'*' | b'&'))) || fragment.text(source, type_at) == b"&&" {
                let Some(next) = type_at.checked_sub(1) else { return false };
                type_at = next;
            }
            match fragment.tokens[type_at].kind {
                Kind::Keyword | Kind::Punct(b'>') => type_at != before,
                // `(*name)(…)` or `(&name)(…)`.
                Kind::Punct(b'(') => type_at + 2 == at && fragment.is(at + 1, b')'),
                Kind::Ident => {
                    type_at != before
                        && !is_in_expression(source, fragment, type_at)
                        && matches!(
                            type_at.checked_sub(1).and_then(|index| fragment.kind(index)),
                            None | Some(
                                Kind::Punct(b';' | b'{' | b'}' | b'(' | b',' | b'>')
                                    | Kind::Keyword
                                    | Kind::Class
                                    | Kind::Device
                                    | Kind::Host
                                    | Kind::Global
                                    | Kind::Constexpr
                                    | Kind::Scope
                            )
                        )
                }
                _ => false,
            }
        }
        // `vector<int> name`, but not `a > name(b)` or `; i > name;`.
        Kind::Punct(b'>') => {
            !matches!(fragment.kind(at + 1), Some(Kind::Punct(b')' | b'?') | Kind::Op)) && ends_arguments(source, fragment, before)
        }
        // `using ns::name;`, but not `i < Type::name;`.
        Kind::Scope if fragment.is(at + 1, b';') => {
            let of_name = |index: &usize| matches!(fragment.kind(*index), Some(Kind::Ident | Kind::Scope));
            let outside = (0..before).rev().find(|index| !of_name(index));
            outside.is_some_and(|index| fragment.is(index, b'>') || matches!(fragment.text(source, index), b"using" | b"typename"))
        }
        _ => false,
    }
}

/// Whether the name at `at` is that of an integer's type in another's declaration: `const size_t n`, `constexpr uint32_t *p`, `vector<const int64_t>`.
/// Where a variable of that name is declared, a type stands in front of it and nothing of the kind behind it.
fn is_use_of_integer(source: &[u8], fragment: &Fragment, at: usize) -> bool {
    let goes_on = matches!(fragment.kind(at + 1), Some(Kind::Ident | Kind::Punct(b'*' | b'&' | b'>')));
    let is_qualifier = |word: &usize| matches!(fragment.text(source, *word), b"const" | b"volatile");
    let has_type = || {
        let before = (0..at).rev().find(|word| !is_qualifier(word));
        before.is_some_and(|word| {
            let text = fragment.text(source, word);
            text == b"auto" || is_integer(text) || matches!(fragment.kind(word), Some(Kind::Class | Kind::Punct(b'*' | b'&')))
        })
    };
    goes_on && is_integer(fragment.text(source, at)) && !has_type()
}

/// Whether the operand at `at`, behind a `(` or a `,`, stands in the parentheses of an expression and in no list of parameters: `sum / (n * m)`,
/// `(float)(n * m)`, `x = f(1, n * m)`.
fn is_in_expression(source: &[u8], fragment: &Fragment, at: usize) -> bool {
    let mut open = at;
    loop {
        let Some(before) = open.checked_sub(1).filter(|before| at - before < MOST_ARGUMENTS) else { return false };
        open = before;
        match fragment.tokens[open].kind {
            Kind::Punct(b'(') => break,
            Kind::Punct(b')' | b']' | b'}') => match fragment.mate(open).filter(|mate| *mate < open) {
                Some(mate) => open = mate,
                None => return false,
            },
            Kind::Punct(b';' | b'{' | b'[' | b'<' | b'>') => return false,
            _ => {}
        }
    }
    // Parentheses behind a function's own name, a type or a declarator's sign may hold its parameters.
    let is_behind_operator = |at: usize| match fragment.kind(at) {
        Some(
            Kind::Assign | Kind::OpAssign | Kind::Return | Kind::Punct(b'+' | b'-' | b'/' | b'%' | b'?' | b'!' | b'|' | b'^' | b'(' | b','),
        ) => true,
        Some(Kind::Op) => fragment.text(source, at) != b"&&",
        _ => false,
    };
    let Some(head) = open.checked_sub(1) else { return false };
    let Some(before) = head.checked_sub(1).filter(|before| fragment.kind(*before) != Some(Kind::Operator)) else { return false };
    match fragment.tokens[head].kind {
        Kind::Ident => is_behind_operator(before),
        // A cast to a number.
        Kind::Punct(b')') => {
            let words = fragment.mate(head).map_or(head..head, |first| first + 1..head);
            !words.is_empty() && words.into_iter().all(|word| is_integer(fragment.text(source, word)))
        }
        _ => is_behind_operator(head),
    }
}

/// Whether an operator follows a name, which no declaration has there.
fn is_operator(fragment: &Fragment, after: usize) -> bool {
    matches!(
        fragment.kind(after),
        Some(
            Kind::Punct(b'+' | b'-' | b'*' | b'/' | b'%' | b'.' | b'?' | b'<' | b'|' | b'^')
                | Kind::Arrow
                | Kind::OpAssign
                | Kind::Step
                | Kind::Op
        )
    )
}

/// Whether the name at `at` is a further one of a statement that declares numbers: `j` and `k` in `int i, j = 0, k;`, and in `float *p, k;`, by
/// the words that name types of numbers.
pub(crate) fn is_further_number(source: &[u8], fragment: &Fragment, at: usize, is_number: impl Fn(&[u8]) -> bool) -> bool {
    let is_name = at > 1 && fragment.is(at - 1, b',') && matches!(fragment.kind(at + 1), Some(Kind::Assign | Kind::Punct(b';' | b',')));
    if !is_name {
        return false;
    }
    let mut start = at - 1;
    while let Some(before) = start.checked_sub(1).filter(|before| at - before < MOST_LISTED) {
        match fragment.tokens[before].kind {
            Kind::Punct(b')' | b']') => match fragment.mate(before).filter(|open| *open < before) {
                Some(open) => start = open,
                None => return false,
            },
            // Between parentheses it may be an argument; and the beginning of an arm of `#if` is not known.
            Kind::Punct(b'(' | b'[') | Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd => return false,
            Kind::Punct(b';' | b'{' | b'}' | b':') => break,
            _ => start = before,
        }
    }
    let is_word = |word: &usize| is_number(fragment.text(source, *word)) || fragment.text(source, *word) == b"const";
    let words = (start..at).take_while(is_word).count();
    let first = (start + words..at).find(|word| !fragment.is(*word, b'*')).unwrap_or(at);
    let has_type = (start..start + words).any(|word| is_number(fragment.text(source, word)));
    has_type && first < at && fragment.kind(first) == Some(Kind::Ident)
}

/// Whether the `>` at `close` may end the arguments of a template: a `<` behind a name belongs to it, and nothing between the two compares.
fn ends_arguments(source: &[u8], fragment: &Fragment, close: usize) -> bool {
    let (mut at, mut open) = (close, 1);
    while let Some(before) = at.checked_sub(1).filter(|before| close - before < MOST_ARGUMENTS) {
        at = fragment.mate(before).filter(|mate| *mate < before).unwrap_or(before);
        match fragment.tokens[at].kind {
            Kind::Punct(b'>') => open += 1,
            Kind::Punct(b'<') => open -= 1,
            Kind::Punct(b';' | b'{' | b'}' | b'?') | Kind::Assign | Kind::OpAssign => return false,
            Kind::Punct(b'(') if at == before => return false,
            Kind::Op if matches!(fragment.text(source, at), b"&&" | b"||") => return false,
            _ => {}
        }
        if open == 0 {
            return at.checked_sub(1).is_some_and(|name| fragment.kind(name) == Some(Kind::Ident));
        }
    }
    false
}

/// The names behind the first of a declaration: `int A = 1, B[2];`.
pub(crate) fn others(fragment: &Fragment, at: usize) -> impl Iterator<Item = usize> {
    let mut index = at + 1;
    std::iter::from_fn(move || {
        while index < fragment.len() && !fragment.is(index, b';') && index < at + MOST_LISTED {
            let here = index;
            index = fragment.mate(here).filter(|close| *close > here).unwrap_or(here) + 1;
            let ends = matches!(fragment.kind(here + 2), Some(Kind::Assign | Kind::Punct(b',' | b';' | b'[' | b'{')));
            if fragment.is(here, b')') || fragment.is(here, b'}') {
                return None;
            }
            if fragment.is(here, b',') && fragment.kind(here + 1) == Some(Kind::Ident) && ends {
                return Some(here + 1);
            }
        }
        None
    })
}

/// The types, by their last word, of the operands that the operator at `at` takes by a reference which is not to a constant.
fn changed_operands<'a>(source: &'a [u8], fragment: &Fragment, at: usize) -> Vec<&'a [u8]> {
    let Some(open) = (at + 1..(at + 5).min(fragment.len())).find(|index| fragment.is(*index, b'(')) else { return Vec::new() };
    // A call of an object is told from an operand by its parentheses, as any function's.
    if open == at + 1 {
        return Vec::new();
    }
    let Some(close) = fragment.mate(open) else { return vec![b"auto"] };
    let mut changed = Vec::new();
    let mut constant = false;
    for index in open + 1..close {
        let text = fragment.text(source, index);
        match fragment.tokens[index].kind {
            Kind::Punct(b',') => constant = false,
            Kind::Keyword if text == b"const" => constant = true,
            Kind::Punct(b'&') | Kind::Op if !constant && matches!(text, b"&" | b"&&") => changed.push(fragment.text(source, index - 1)),
            _ => {}
        }
    }
    changed
}
