//! Macros that stand for values: `#define N 2048`, `#define HALF (N / 2)`.
//!
//! Each definition of such a name consists of numbers and operators without side effects. An expression with the name therefore reads variables or
//! none, and a loop's body with it leaves the counter alone, whichever definition holds.
//!
//! The numbers themselves are not trusted. Where a form depends on a bound by such a name, the compiler is asked (`__builtin_constant_p`). A guess at
//! the number of iterations only decides which form a loop gets.

use crate::common::options::ValueMacro;
use crate::source::syntax::declaration::is_integer;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::integer::{self, Integer};
use crate::source::syntax::known_names::takes_values;
use crate::source::syntax::token::{Define, Kind, Lexed, Line, Token, is_name_byte};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// How deep macros that stand for macros are followed.
const DEPTH: usize = 8;

/// Most tokens of a value.
const MOST_TOKENS: usize = 64;

/// One definition, with its meaning.
type Definition<'a> = (&'a [u8], &'a Define, Fragment);

/// The macros of some files.
#[derive(Debug, Default)]
struct Files<'a> {
    definitions: BTreeMap<&'a [u8], Vec<Definition<'a>>>,
    /// Functions of theirs with names that CUDA's own have.
    functions: BTreeSet<&'a [u8]>,
}

/// The meaning of a macro.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Value<'a> {
    /// Nothing that is done with it changes a variable that it names.
    harmless: bool,
    /// It is a result of arithmetic, so nothing that is done with it changes its arguments either.
    computed: bool,
    /// It is one operand, whatever operators stand beside it, and asks no memory.
    whole: bool,
    /// It is made of constants and of its arguments: nothing that memory holds, by itself or by a function.
    constant: bool,
    /// Variables that it names.
    reads: BTreeSet<&'a [u8]>,
    likely: Option<i64>,
}

/// The macros of these files, each with its tokens, that stand for values in all of them. A name that none of them defines may be anything if `elsewhere` does
/// not tell: those are the words that may be used as values and are no macros but perhaps a system's, which knows no variable of the user's.
pub(crate) fn of_files(files: &[(&[u8], &Lexed)], elsewhere: Option<&BTreeSet<&[u8]>>) -> Vec<ValueMacro> {
    let mut all = Files::default();
    for (source, lexed) in files {
        for directive in &lexed.directives {
            if let Line::Define(define) = &directive.line {
                let body = Fragment::of_macro(source, define.name.clone(), define.body.clone());
                all.definitions.entry(&source[define.name.clone()]).or_default().push((source, define, body));
            }
        }
    }
    all.functions = files.iter().flat_map(|(source, lexed)| declared(source, lexed)).collect();
    let named = |name: &[u8], value: Value, takes_arguments: bool| ValueMacro {
        name: String::from_utf8_lossy(name).into_owned(),
        takes_arguments,
        harmless: value.harmless,
        computed: value.computed,
        whole: value.whole && !takes_arguments,
        constant: value.constant && value.reads.is_empty(),
        reads: value.reads.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
        likely: value.likely,
    };
    let of = |name: &'_ &[u8], takes_arguments: bool| {
        all.value(name, takes_arguments, elsewhere.is_some(), DEPTH).map(|value| named(name, value, takes_arguments))
    };
    let defined = all.definitions.keys().filter_map(|name| of(name, false).or_else(|| of(name, true)));
    let others = elsewhere.into_iter().flatten().filter(|name| !all.definitions.contains_key(*name) && is_constants_name(name));
    defined.chain(others.map(|name| named(name, Value { harmless: true, whole: true, ..Value::default() }, false))).collect()
}

/// Functions with names of CUDA's own that the file declares: a type stands in front of them.
fn declared<'a>(source: &'a [u8], lexed: &Lexed) -> impl Iterator<Item = &'a [u8]> {
    let is_declared = |words: &&[Token]| {
        words[1].kind == Kind::Ident
            && words[2].is(b'(')
            && matches!(words[0].kind, Kind::Ident | Kind::Keyword | Kind::Punct(b'*' | b'&' | b'>'))
            && takes_values(&source[words[1].range()])
    };
    lexed.tokens.windows(3).filter(is_declared).map(|words| &source[words[1].range()])
}

/// Whether constants have such names: no lower case, and none of the compiler's own.
fn is_constants_name(name: &[u8]) -> bool {
    !name.starts_with(b"__") && name.first().is_some_and(|byte| !byte.is_ascii_digit()) && !name.iter().any(u8::is_ascii_lowercase)
}

impl<'a> Files<'a> {
    /// What the macro of that name stands for, if that is a value wherever it is defined. `all` says that a name without a definition is no macro.
    fn value(&self, name: &[u8], takes_arguments: bool, all: bool, depth: usize) -> Option<Value<'a>> {
        let mut found: Option<Value> = None;
        for (source, define, body) in self.definitions.get(name)? {
            if define.function_like != takes_arguments || body.len() > MOST_TOKENS {
                return None;
            }
            let mut one = self.of_body(source, define, body, all, depth.checked_sub(1)?)?;
            if let Some(other) = found {
                one.harmless &= other.harmless;
                one.computed &= other.computed;
                one.whole &= other.whole;
                one.constant &= other.constant;
                one.reads.extend(other.reads);
                one.likely = one.likely.max(other.likely);
            }
            found = Some(one);
        }
        found
    }

    fn of_body(&self, source: &'a [u8], define: &Define, body: &Fragment, all: bool, depth: usize) -> Option<Value<'a>> {
        let parameters = if define.function_like { &source[define.name.end..define.body.start] } else { &[] };
        let is_parameter = |text: &[u8]| parameters.split(|byte| !is_name_byte(*byte)).any(|parameter| parameter == text);
        let (mut reads, mut asks_memory, mut constant) = (BTreeSet::new(), false, true);
        for at in 0..body.len() {
            let text = body.text(source, at);
            let before = at.checked_sub(1).and_then(|index| body.kind(index));
            match body.tokens[at].kind {
                Kind::Number | Kind::Char => {}
                Kind::Punct(b'*') if !matches!(before, Some(Kind::Ident | Kind::Number | Kind::Punct(b')' | b']'))) => asks_memory = true,
                Kind::Punct(b'[' | b']' | b'.') | Kind::Arrow => asks_memory = true,
                // Only the functions below may be called: no member, no parameter, nothing behind a pointer, and no template's function.
                Kind::Punct(b'(') if calls_the_unknown(source, body, at) => return None,
                Kind::Punct(byte) if b"()+-*/%<>!~?:".contains(&byte) => {}
                Kind::Punct(b',') if is_in_call(body, at) => {}
                Kind::Op if matches!(text, b"<<" | b"<=" | b">=" | b"==" | b"!=" | b"&&" | b"||") => {}
                Kind::Keyword if is_integer(text) || matches!(text, b"sizeof" | b"const" | b"true" | b"false") => {}
                Kind::Ident if is_integer(text) => {}
                Kind::Ident if is_parameter(text) || matches!(before, Some(Kind::Punct(b'.') | Kind::Arrow)) => {
                    if body.is(at + 1, b'(') {
                        return None;
                    }
                }
                Kind::Ident if body.is(at + 1, b'(') => {
                    // A function of CUDA's own, unless it is a macro, or a macro that changes none of its arguments.
                    let is_function = !self.definitions.contains_key(text) && !self.functions.contains(text) && takes_values(text);
                    let function = Value { computed: true, constant: matches!(text, b"min" | b"max" | b"abs"), ..Value::default() };
                    let called = if is_function { function } else { self.value(text, true, all, depth)? };
                    if !called.computed && !self.picks(text) {
                        return None;
                    }
                    constant &= called.constant;
                    reads.extend(called.reads);
                }
                Kind::Ident if self.definitions.contains_key(text) => {
                    let value = self.value(text, false, all, depth)?;
                    constant &= value.constant;
                    reads.extend(value.reads);
                }
                // A macro from elsewhere is not known, and a name without a definition may be a variable.
                Kind::Ident if is_constants_name(text) => {
                    if !all {
                        return None;
                    }
                    constant = false;
                }
                Kind::Ident => _ = reads.insert(text),
                _ => return None,
            }
        }
        let (mut from, mut to) = (0, body.len());
        while to > from + 1 && body.is(from, b'(') && body.mate(from) == Some(to - 1) {
            (from, to) = (from + 1, to - 1);
        }
        let is_single = body.len() == 1 && (body.tokens[0].kind == Kind::Number || self.is_operand(body.text(source, 0), all, depth));
        let is_picked = to == body.len() && body.is(1, b'(') && body.mate(1) == Some(to - 1) && self.picks(body.text(source, 0));
        let computed = is_computed(source, body, from..to);
        let whole = !asks_memory && (is_single || is_picked || (from > 0 && !is_type(source, body, from..to)));
        let harmless = computed || reads.is_empty() || (to > from && body.is(to - 1, b']'));
        let operand = |at: usize| self.likely_operand(source, body, at, depth);
        let likely = integer::value(body, &(0..body.len()), i64::MAX, &operand).map(|integer| integer.value);
        Some(Value { harmless, computed, whole, constant: constant && !asks_memory, reads, likely })
    }

    /// The number that an operand probably stands for, and the token behind it.
    fn likely_operand(&self, source: &[u8], body: &Fragment, at: usize, depth: usize) -> Option<(Integer, usize)> {
        let text = body.text(source, at);
        let named = |at: usize| {
            let value = self.value(body.text(source, at), false, true, depth.checked_sub(1)?)?.likely?;
            Some(Integer { value, unsigned: false })
        };
        match body.kind(at)? {
            Kind::Number => integer::literal(text).map(|integer| (integer, at + 1)),
            // The first that it may pick, or the only one.
            Kind::Ident if body.is(at + 1, b'(') => {
                let close = body.mate(at + 1)?;
                let found = (at + 2..close).find_map(|at| if body.kind(at) == Some(Kind::Ident) { named(at) } else { None });
                Some((found?, close + 1))
            }
            Kind::Ident => Some((named(at)?, at + 1)),
            _ => None,
        }
    }

    /// Whether a name by itself is one operand: a variable, or another value.
    fn is_operand(&self, name: &[u8], all: bool, depth: usize) -> bool {
        let is_name = name.first().is_some_and(|byte| is_name_byte(*byte)) && !is_integer(name);
        is_name && (!self.definitions.contains_key(name) || self.value(name, false, all, depth).is_some_and(|value| value.whole))
    }

    /// Whether the macro of that name stands for one of its arguments, wherever it is defined.
    fn picks(&self, name: &[u8]) -> bool {
        self.definitions.get(name).is_some_and(|definitions| {
            definitions.iter().all(|(source, define, body)| {
                let mut parameters = source[define.name.end..define.body.start].split(|byte| !is_name_byte(*byte));
                define.function_like && body.len() == 1 && parameters.any(|parameter| parameter == body.text(source, 0))
            })
        })
    }
}

/// Whether the parenthesis may begin the arguments of something that is no name.
fn calls_the_unknown(source: &[u8], body: &Fragment, open: usize) -> bool {
    match open.checked_sub(1).and_then(|before| body.kind(before)) {
        // Behind the parentheses of a cast.
        Some(Kind::Punct(b')')) => body.mate(open - 1).is_none_or(|first| !is_type(source, body, first + 1..open - 1)),
        Some(Kind::Punct(b']')) => true,
        // A comparison, unless a name was compared by `<` before.
        Some(Kind::Punct(b'>')) => (1..open).any(|at| body.is(at, b'<') && body.kind(at - 1) == Some(Kind::Ident)),
        _ => false,
    }
}

/// Whether the token stands among the arguments of a call.
fn is_in_call(body: &Fragment, at: usize) -> bool {
    let around = (1..at).rev().find(|open| body.is(*open, b'(') && body.mate(*open).is_some_and(|close| close > at));
    around.is_some_and(|open| body.kind(open - 1) == Some(Kind::Ident))
}

/// Whether the tokens are a sum, a product, a shift or a comparison, with nothing around that picks one of several: a number, and no variable by another name.
fn is_computed(source: &[u8], body: &Fragment, range: Range<usize>) -> bool {
    let (mut at, mut found) = (range.start, false);
    while at < range.end {
        let is_behind_operand =
            at > range.start && matches!(body.kind(at - 1), Some(Kind::Ident | Kind::Number | Kind::Punct(b')' | b']')));
        match body.tokens[at].kind {
            Kind::Punct(b'(' | b'[') => match body.mate(at) {
                Some(close) => at = close,
                None => return false,
            },
            Kind::Punct(b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>') => found |= is_behind_operand,
            Kind::Op if matches!(body.text(source, at), b"<<" | b"<=" | b">=" | b"==" | b"!=" | b"&&" | b"||") => found = true,
            Kind::Punct(b'?' | b':' | b',') => return false,
            _ => {}
        }
        at += 1;
    }
    found
}

/// Whether the tokens are a type in the parentheses of a cast.
fn is_type(source: &[u8], body: &Fragment, range: Range<usize>) -> bool {
    !range.is_empty() && range.into_iter().all(|at| is_integer(body.text(source, at)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::syntax::token::lex;

    fn of(files: &[&'static str], elsewhere: Option<&BTreeSet<&[u8]>>) -> Vec<String> {
        let lexed: Vec<Lexed> = files.iter().map(|text| lex(text.as_bytes(), 0..text.len(), false)).collect();
        let files: Vec<(&[u8], &Lexed)> = files.iter().map(|text| text.as_bytes()).zip(&lexed).collect();
        let tell = |value: &ValueMacro| {
            let flags = [(value.takes_arguments, "()"), (!value.harmless, " bare"), (value.computed, " computed"), (value.whole, " whole")];
            let flags: String = flags.iter().filter(|(holds, _)| *holds).map(|(_, word)| *word).collect();
            let reads: String = value.reads.iter().flat_map(|name| [" <", name, ">"]).collect();
            format!("{}{flags}{reads}{}", value.name, value.likely.map(|likely| format!(" {likely}")).unwrap_or_default())
        };
        of_files(&files, elsewhere).iter().map(tell).collect()
    }

    #[test]
    fn values_are_what_each_definition_in_each_file_says() {
        let one = "#define N 2048\n#define HALF (N / 2)\n#define LESS N - 1\n#define TYPE float\n#define TWO 2\n#define STEPS i++\n#define CALLS next()\n\
                   #define ROUND ROUND\n#define WIDTH width\n#define CAST (int)\n#define LIST 1, 2\n#define COPY N\n#define NOTHING\n\
                   #define LAST (n - 1)\n#define AT(i, j) ((i) * N + (j))\n#define ELEMENT(i) a[i]\n#define MAX(a, b) ((a) > (b) ? (a) : (b))\n\
                   #define DOT(a, b) ((a.x) * (b.x) + fminf(a.y, b.y))\n#define SET(a) (a = 3)\n#define OF(a) (&a + 1)\n#define LOOKS (*p)\n\
                   #define SQUARE(x) ((float)(x) * (x))\n#define TEMPLATE take<3>(i)\n#define MEMBER q.next(3)\n#define BEHIND (*f)(i)\n\
                   #define APPLY(f) (f(i) + 1)\n#define TABLE f[0](i)\n#define PAIR {1, 2}\n";
        let other = "#define TWO (1 + 1)\n#define N 512\n#define SETS (x = 3)\n#define BOUND PICK(N, n)\n#define BAD TAKE(N)\n\
                     #ifdef A\n#define PICK(x, y) x\n#else\n#define PICK(x, y) y\n#endif\n#define TAKE(x) x++\n#define CHANGED 3\n";
        let third = "#define CHANGED k = 3\n";
        assert_eq!(
            of(&[one, other, third], None),
            [
                "AT() computed",
                "BOUND bare whole <n> 2048",
                "CAST",
                "COPY whole 2048",
                "DOT() computed",
                "ELEMENT() <a>",
                "HALF computed whole 1024",
                "LAST computed whole <n>",
                "LESS computed 2047",
                "LOOKS bare <p>",
                "MAX()",
                "N whole 2048",
                "NOTHING",
                "PICK()",
                "SQUARE() computed",
                "TWO whole 2",
                "TYPE",
                "WIDTH bare whole <width>",
            ]
        );
    }

    #[test]
    fn what_no_file_defines_is_no_macro_only_where_all_are_known() {
        let text = "#define HALF (LENGTH / 2)\n#define MINE 3\n";
        assert_eq!(of(&[text], None), ["MINE whole 3"]);
        let words = BTreeSet::from([&b"LENGTH"[..], b"MINE", b"__LINE__", b"lower", b"3X"]);
        assert_eq!(of(&[text], Some(&words)), ["HALF computed whole", "MINE whole 3", "LENGTH whole"]);
    }
}
