//! Macros that stand for values: `#define N 2048`, `#define HALF (N / 2)`. Wherever a name is defined it stands for numbers and operators that change
//! nothing, so an expression with that name reads variables or none, and whichever definition holds, a loop's body leaves its counter alone.
//!
//! Nothing is believed of the numbers: what a form needs to know of a bound by such a name the compiler is asked (`__builtin_constant_p`), and how often
//! a loop probably runs decides only which form it gets.

use crate::declaration::is_integer;
use crate::fragment::Fragment;
use crate::macros::integer;
use crate::options::ValueMacro;
use crate::token::{Define, Kind, Lexed, Line, is_name_byte};
use std::collections::{BTreeMap, BTreeSet};

/// How deep macros that stand for macros are followed.
const DEPTH: usize = 8;

/// Most tokens of a value.
const MOST_TOKENS: usize = 64;

/// One definition: its text, and what it says.
type Definition<'a> = (&'a [u8], &'a Define, Fragment);

/// The macros of some files.
#[derive(Debug, Default)]
struct Files<'a> {
    definitions: BTreeMap<&'a [u8], Vec<Definition<'a>>>,
}

/// What a macro stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Value {
    /// It names no variable, so nothing that is done with it changes one.
    harmless: bool,
    /// It is one operand, whatever operators stand beside it.
    whole: bool,
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
    let named = |name: &[u8], value: Value| ValueMacro {
        name: String::from_utf8_lossy(name).into_owned(),
        harmless: value.harmless,
        whole: value.whole,
        likely: value.likely,
    };
    let defined = all.definitions.keys().filter_map(|name| Some(named(name, all.value(name, elsewhere.is_some(), DEPTH)?)));
    let others = elsewhere.into_iter().flatten().filter(|name| !all.definitions.contains_key(*name) && is_constants_name(name));
    defined.chain(others.map(|name| named(name, Value { harmless: true, whole: true, likely: None }))).collect()
}

/// Whether constants have such names: no lower case, and none of the compiler's own.
fn is_constants_name(name: &[u8]) -> bool {
    !name.starts_with(b"__") && name.first().is_some_and(|byte| !byte.is_ascii_digit()) && !name.iter().any(u8::is_ascii_lowercase)
}

impl Files<'_> {
    /// What the macro of that name stands for, if that is a value wherever it is defined. `all` says that a name without a definition is no macro.
    fn value(&self, name: &[u8], all: bool, depth: usize) -> Option<Value> {
        let mut found: Option<Value> = None;
        for (source, define, body) in self.definitions.get(name)? {
            if define.function_like || body.len() > MOST_TOKENS {
                return None;
            }
            let one = self.of_body(source, body, all, depth.checked_sub(1)?)?;
            found = Some(found.map_or(one, |other| Value {
                harmless: one.harmless && other.harmless,
                whole: one.whole && other.whole,
                likely: one.likely.max(other.likely),
            }));
        }
        found
    }

    fn of_body(&self, source: &[u8], body: &Fragment, all: bool, depth: usize) -> Option<Value> {
        let mut harmless = true;
        let mut at = 0;
        while at < body.len() {
            let text = body.text(source, at);
            match body.tokens[at].kind {
                Kind::Number | Kind::Char => {}
                Kind::Punct(byte) if b"()+-*/%<>!~?:".contains(&byte) => {}
                Kind::Op if matches!(text, b"<<" | b"<=" | b">=" | b"==" | b"!=" | b"&&" | b"||") => {}
                Kind::Keyword if is_integer(text) || matches!(text, b"sizeof" | b"const" | b"true" | b"false" | b"static_cast") => {}
                Kind::Ident if is_integer(text) => {}
                Kind::Ident if body.is(at + 1, b'(') => {
                    // What it picks is one of its arguments.
                    let close = body.mate(at + 1)?;
                    if !self.picks(text) {
                        return None;
                    }
                    for argument in at + 2..close {
                        match body.tokens[argument].kind {
                            Kind::Punct(b',') | Kind::Number => {}
                            Kind::Ident if !body.is(argument + 1, b'(') => {
                                harmless &= self.of_name(body.text(source, argument), all, depth)?.harmless;
                            }
                            _ => return None,
                        }
                    }
                    at = close;
                }
                Kind::Ident => harmless &= self.of_name(text, all, depth)?.harmless,
                _ => return None,
            }
            at += 1;
        }
        let whole = match body.len() {
            0 => false,
            1 => match body.tokens[0].kind {
                Kind::Number | Kind::Char => true,
                Kind::Ident => !is_integer(body.text(source, 0)) && self.of_name(body.text(source, 0), all, depth)?.whole,
                _ => false,
            },
            length => {
                let open = usize::from(body.tokens[0].kind == Kind::Ident);
                body.is(open, b'(') && body.mate(open) == Some(length - 1) && !is_type(source, body, open + 1..length - 1)
            }
        };
        let mut sum = Sum { files: self, source, body, at: 0, depth };
        let likely = sum.sum().filter(|_| sum.at == body.len());
        Some(Value { harmless, whole, likely })
    }

    /// A name in a value: another one, or a variable, which is one operand.
    fn of_name(&self, name: &[u8], all: bool, depth: usize) -> Option<Value> {
        if self.definitions.contains_key(name) {
            return self.value(name, all, depth);
        }
        // Of a macro from elsewhere nothing is known.
        let is_constant = is_constants_name(name);
        (all || !is_constant).then_some(Value { harmless: is_constant, whole: true, likely: None })
    }

    /// Whether the macro of that name stands for one of its parameters, or something in parentheses, wherever it is defined.
    fn picks(&self, name: &[u8]) -> bool {
        self.definitions.get(name).is_some_and(|definitions| {
            definitions.iter().all(|(source, define, body)| {
                let parameters = source[define.name.end..define.body.start].split(|byte| !is_name_byte(*byte));
                define.function_like
                    && body.len() == 1
                    && body.tokens[0].kind == Kind::Ident
                    && parameters.into_iter().any(|parameter| parameter == body.text(source, 0))
            })
        })
    }
}

/// Whether the tokens are a type in the parentheses of a cast.
fn is_type(source: &[u8], body: &Fragment, range: std::ops::Range<usize>) -> bool {
    range.into_iter().all(|at| is_integer(body.text(source, at)))
}

/// Arithmetic of a value, for a guess.
struct Sum<'a> {
    files: &'a Files<'a>,
    source: &'a [u8],
    body: &'a Fragment,
    at: usize,
    depth: usize,
}

impl Sum<'_> {
    fn takes(&mut self, byte: u8) -> bool {
        let found = self.body.is(self.at, byte);
        self.at += usize::from(found);
        found
    }

    fn sum(&mut self) -> Option<i64> {
        let mut left = self.product()?;
        loop {
            if self.takes(b'+') {
                left = left.checked_add(self.product()?)?;
            } else if self.takes(b'-') {
                left = left.checked_sub(self.product()?)?;
            } else {
                return Some(left);
            }
        }
    }

    fn product(&mut self) -> Option<i64> {
        let mut left = self.factor()?;
        loop {
            if self.takes(b'*') {
                left = left.checked_mul(self.factor()?)?;
            } else if self.takes(b'/') {
                left = left.checked_div(self.factor()?)?;
            } else {
                return Some(left);
            }
        }
    }

    fn factor(&mut self) -> Option<i64> {
        if self.takes(b'-') {
            let (number, depth) = (self.body.kind(self.at)? == Kind::Number, self.depth);
            return (number && depth > 0).then(|| self.factor())?.map(|value| -value);
        }
        let close = self.body.mate(self.at);
        if self.takes(b'(') {
            let mut inside = Sum { depth: self.depth.checked_sub(1)?, at: self.at, ..*self };
            let value = inside.sum().filter(|_| Some(inside.at) == close)?;
            self.at = inside.at + 1;
            return Some(value);
        }
        let text = self.body.text(self.source, self.at);
        let kind = self.body.kind(self.at)?;
        self.at += 1;
        match kind {
            Kind::Number => integer(text).map(|integer| integer.value),
            // The first that it may pick, or the only one.
            Kind::Ident if self.body.is(self.at, b'(') => {
                let close = self.body.mate(self.at)?;
                let name = |at: usize| self.files.value(self.body.text(self.source, at), true, self.depth.checked_sub(1)?)?.likely;
                let found = (self.at + 1..close).find_map(|at| if self.body.kind(at) == Some(Kind::Ident) { name(at) } else { None });
                self.at = close + 1;
                found
            }
            Kind::Ident => self.files.value(text, true, self.depth.checked_sub(1)?)?.likely,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::lex;

    fn of(files: &[&'static str], elsewhere: Option<&BTreeSet<&[u8]>>) -> Vec<String> {
        let lexed: Vec<Lexed> = files.iter().map(|text| lex(text.as_bytes(), 0..text.len(), false)).collect();
        let files: Vec<(&[u8], &Lexed)> = files.iter().map(|text| text.as_bytes()).zip(&lexed).collect();
        let tell = |value: &ValueMacro| {
            let flags = [if value.harmless { "" } else { " reads" }, if value.whole { "" } else { " parts" }].concat();
            format!("{}{flags}{}", value.name, value.likely.map(|likely| format!(" {likely}")).unwrap_or_default())
        };
        of_files(&files, elsewhere).iter().map(tell).collect()
    }

    #[test]
    fn values_are_what_each_definition_in_each_file_says() {
        let one = "#define N 2048\n#define HALF (N / 2)\n#define LESS N - 1\n#define TYPE float\n#define TWO 2\n#define STEPS i++\n#define CALLS next()\n\
                   #define ROUND ROUND\n#define OPENS (\n#define WIDTH width\n#define CAST (int)\n#define LIST 1, 2\n#define COPY N\n#define NOTHING\n";
        let other = "#define TWO (1 + 1)\n#define N 512\n#define SETS (x = 3)\n#define BOUND PICK(N, n)\n#define BAD TAKE(N)\n\
                     #ifdef A\n#define PICK(x, y) x\n#else\n#define PICK(x, y) y\n#endif\n#define TAKE(x) x++\n#define CHANGED 3\n";
        let third = "#define CHANGED k = 3\n";
        assert_eq!(
            of(&[one, other, third], None),
            [
                "BOUND reads 2048",
                "CAST parts",
                "COPY 2048",
                "HALF 1024",
                "LESS parts 2047",
                "N 2048",
                "NOTHING parts",
                "OPENS parts",
                "TWO 2",
                "TYPE parts",
                "WIDTH reads",
            ]
        );
    }

    #[test]
    fn what_no_file_defines_is_no_macro_only_where_all_are_known() {
        let text = "#define HALF (LENGTH / 2)\n#define MINE 3\n";
        assert_eq!(of(&[text], None), ["MINE 3"]);
        let words = BTreeSet::from([&b"LENGTH"[..], b"MINE", b"__LINE__", b"lower", b"3X"]);
        assert_eq!(of(&[text], Some(&words)), ["HALF", "MINE 3", "LENGTH"]);
    }
}
