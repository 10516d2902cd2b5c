//! Which arms of an `#if` are compiled, as far as literals and the macros that the user gave tell.

use crate::common::options::{GivenMacro, Options};
use crate::source::syntax::token::{Directive, Kind, Lexed, Line, Token, lex};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// How deep parentheses and signs are followed.
const DEPTH: usize = 32;

/// What holds behind a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arm {
    /// The border of an arm that the directive is; none where its condition is known.
    pub(crate) border: Option<Kind>,
    /// Whether the text behind it may be compiled.
    pub(crate) live: bool,
    /// In how many conditions it stands.
    pub(crate) depth: usize,
}

/// A condition whose end has not come yet.
#[derive(Debug)]
struct Conditional {
    /// Whether the text before it is live.
    outer: bool,
    /// An arm is known to be the one compiled: later ones are dead.
    decided: bool,
    /// Whether a border has been written, so that further ones are `ArmElse`.
    open: bool,
}

/// Follows directives.
#[derive(Debug)]
struct Walk {
    stack: Vec<Conditional>,
    live: bool,
}

impl Walk {
    fn new() -> Self {
        Self { stack: Vec::new(), live: true }
    }

    fn step(&mut self, line: &Line) -> Arm {
        let border = match line {
            Line::If(value) => {
                let open = self.live && value.is_none();
                self.stack.push(Conditional { outer: self.live, decided: *value == Some(true), open });
                self.live &= *value != Some(false);
                open.then_some(Kind::ArmIf)
            }
            Line::Elif(value) => self.next_arm(*value),
            Line::Else => self.next_arm(Some(true)),
            Line::Endif => self.stack.pop().and_then(|top| {
                self.live = top.outer;
                top.open.then_some(Kind::ArmEnd)
            }),
            Line::Define(_) | Line::Pragma | Line::Include | Line::Other => None,
        };
        Arm { border, live: self.live, depth: self.stack.len() }
    }

    fn next_arm(&mut self, value: Option<bool>) -> Option<Kind> {
        let top = self.stack.last_mut()?;
        self.live = top.outer && !top.decided && value != Some(false);
        if !self.live {
            return None;
        }
        top.decided = value == Some(true);
        // Behind dead arms the next may be the whole of it.
        if top.open {
            return Some(Kind::ArmElse);
        }
        top.open = !top.decided;
        top.open.then_some(Kind::ArmIf)
    }
}

/// What holds behind each directive.
pub(crate) fn arms(directives: &[Directive]) -> Vec<Arm> {
    let mut walk = Walk::new();
    directives.iter().map(|directive| walk.step(&directive.line)).collect()
}

/// Texts between directives that are never compiled.
pub(crate) fn dead(directives: &[Directive]) -> Vec<Range<usize>> {
    let next = directives.iter().skip(1).map(|directive| directive.span.start);
    let behind = directives.iter().zip(arms(directives)).zip(next);
    behind.filter(|((_, arm), _)| !arm.live).map(|((directive, _), next)| directive.span.end..next).collect()
}

/// Whether it is a word with a value, unless a macro has its name.
fn is_truth(name: &[u8]) -> bool {
    matches!(name, b"true" | b"false")
}

/// The macros that decide conditions, and macros of the unit's other files by the names of `true` and `false`.
pub(crate) fn given(options: &Options) -> Vec<GivenMacro> {
    let others = options.unit_macros.iter().filter(|other| is_truth(other.name.as_bytes()));
    let others = others.map(|other| GivenMacro { name: other.name.clone(), value: Some(String::new()) });
    options.given_macros.iter().cloned().chain(others).collect()
}

/// Values that a condition's names have; a name that is none of these is unknown.
type Known<'a> = BTreeMap<&'a [u8], Option<&'a [u8]>>;

/// Gives conditions the values that they have under these macros, or whatever the macros are: `0 && A`. From a line on that defines a name anew, the name is unknown. Says which names these are.
pub(crate) fn decide<'a>(source: &'a [u8], lexed: &mut Lexed, given: &[GivenMacro]) -> BTreeSet<&'a [u8]> {
    let mut anew = BTreeSet::new();
    let mut known: Known = given.iter().map(|one| (one.name.as_bytes(), one.value.as_ref().map(String::as_bytes))).collect();
    // CUDA is C++, of whatever version.
    known.entry(b"__cplusplus").or_insert(Some(b""));
    let mut walk = Walk::new();
    for directive in &mut lexed.directives {
        let is_asked = matches!(directive.line, Line::If(None) | Line::Elif(None) | Line::Other);
        let words = if is_asked { lex(source, directive.span.clone(), true).tokens } else { Vec::new() };
        let first = words.iter().position(|word| matches!(word.kind, Kind::Ident | Kind::Keyword | Kind::If | Kind::Else));
        let (word, rest) = first.map_or((&[][..], &[][..]), |first| (&source[words[first].range()], &words[first + 1..]));
        match &mut directive.line {
            Line::If(value) | Line::Elif(value) => *value = value.or_else(|| holds(source, word, rest, &known)),
            Line::Define(define) if walk.live => {
                let name = &source[define.name.clone()];
                anew.extend(known.remove(name).map(|_| name));
                if is_truth(name) {
                    known.insert(name, Some(b""));
                }
            }
            Line::Other if walk.live && word == b"undef" => {
                let name = rest.first().map_or(&[][..], |name| &source[name.range()]);
                anew.extend(known.remove(name).map(|_| name));
            }
            _ => {}
        }
        walk.step(&directive.line);
    }
    anew.remove(&b"__cplusplus"[..]);
    anew
}

/// A text with the values of those of its conditions that no macro of the user's decides.
#[cfg(feature = "launcher")]
pub(crate) fn read(source: &[u8]) -> Lexed {
    let mut lexed = lex(source, 0..source.len(), false);
    decide(source, &mut lexed, &[]);
    lexed
}

/// Whether a condition holds, if that is known.
fn holds(source: &[u8], word: &[u8], rest: &[Token], known: &Known) -> Option<bool> {
    let mut reader = Reader { source, tokens: rest, at: 0, depth: 0, known };
    let negated = word.ends_with(b"ndef");
    if negated || word.ends_with(b"def") {
        return reader.defined().map(|value| value != negated);
    }
    match reader.level(0)? {
        Value::Is(value) if reader.at == rest.len() => Some(value != 0),
        _ => None,
    }
}

/// The value of a part of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Is(i64),
    Unknown,
}

impl Value {
    fn of(value: Option<i64>) -> Self {
        value.map_or(Self::Unknown, Self::Is)
    }

    fn map(self, change: impl Fn(i64) -> Option<i64>) -> Self {
        match self {
            Self::Is(value) => Self::of(change(value)),
            Self::Unknown => self,
        }
    }
}

/// Reads an expression. Parts that can't be read have no value at all.
struct Reader<'a> {
    source: &'a [u8],
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    known: &'a Known<'a>,
}

/// Operators from the loosest level to the tightest.
const LEVELS: [&[&[u8]]; 6] = [&[b"||"], &[b"&&"], &[b"==", b"!="], &[b"<=", b">=", b"<", b">"], &[b"+", b"-"], &[b"*", b"/", b"%"]];

impl<'a> Reader<'a> {
    fn text(&self) -> &'a [u8] {
        self.tokens.get(self.at).map_or(&[], |token| &self.source[token.range()])
    }

    fn takes(&mut self, text: &[u8]) -> bool {
        let found = self.text() == text;
        self.at += usize::from(found);
        found
    }

    /// Whether the name that comes is defined. A macro for `true` may be defined elsewhere only.
    fn defined(&mut self) -> Option<bool> {
        let name = self.text();
        self.at += 1;
        self.known.get(name).filter(|_| !is_truth(name)).map(Option::is_some)
    }

    fn level(&mut self, level: usize) -> Option<Value> {
        let Some(operators) = LEVELS.get(level) else { return self.operand() };
        let mut left = self.level(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.text() == **operator) {
            self.at += 1;
            let right = self.level(level + 1)?;
            left = result(operator, left, right);
        }
        Some(left)
    }

    fn operand(&mut self) -> Option<Value> {
        self.depth += 1;
        let value = if self.depth > DEPTH { None } else { self.operand_within() };
        self.depth -= 1;
        value
    }

    fn operand_within(&mut self) -> Option<Value> {
        let token = *self.tokens.get(self.at)?;
        let text = self.text();
        self.at += 1;
        match (text, token.kind) {
            (b"!", _) => Some(self.operand()?.map(|value| Some(i64::from(value == 0)))),
            (b"-", _) => Some(self.operand()?.map(i64::checked_neg)),
            (b"(", _) => {
                let value = self.level(0)?;
                self.takes(b")").then_some(value)
            }
            (b"defined", _) => {
                let is_enclosed = self.takes(b"(");
                let value = Value::of(self.defined().map(i64::from));
                (!is_enclosed || self.takes(b")")).then_some(value)
            }
            (b"true" | b"false", _) => {
                Some(if self.known.contains_key(text) { Value::Unknown } else { Value::Is(i64::from(text == b"true")) })
            }
            (_, Kind::Number) => Some(Value::of(number(text))),
            // A macro with arguments, or `__has_include`.
            (_, Kind::Ident) if self.text() != b"(" => Some(match self.known.get(text) {
                Some(Some(value)) => Value::of(number(value)),
                Some(None) => Value::Is(0),
                None => Value::Unknown,
            }),
            _ => None,
        }
    }
}

/// A decimal integer without a sign that fits into 32 bits, so that it is the same with and without a type's suffix.
fn number(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?.trim_end_matches(['l', 'L']);
    let is_octal = text.starts_with('0') && text != "0";
    text.parse::<u32>().ok().filter(|_| !is_octal && !text.starts_with('+')).map(i64::from)
}

fn result(operator: &[u8], left: Value, right: Value) -> Value {
    let is = |wanted: bool| [left, right].iter().any(|value| matches!(value, Value::Is(value) if (*value != 0) == wanted));
    let (left, right) = match (operator, left, right) {
        (b"||", _, _) if is(true) => return Value::Is(1),
        (b"&&", _, _) if is(false) => return Value::Is(0),
        (_, Value::Is(left), Value::Is(right)) => (left, right),
        _ => return Value::Unknown,
    };
    Value::of(match operator {
        b"||" => Some(0),
        b"&&" => Some(1),
        b"==" => Some(i64::from(left == right)),
        b"!=" => Some(i64::from(left != right)),
        b"<" => Some(i64::from(left < right)),
        b">" => Some(i64::from(left > right)),
        b"<=" => Some(i64::from(left <= right)),
        b">=" => Some(i64::from(left >= right)),
        b"+" => left.checked_add(right),
        b"-" => left.checked_sub(right),
        b"*" => left.checked_mul(right),
        b"/" => left.checked_div(right),
        _ => left.checked_rem(right),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The letters of the text that may be compiled with `A` 3, `B` 1, `E` empty, and no `U`.
    fn live(text: &str) -> String {
        let given = |name: &str, value: Option<&str>| GivenMacro { name: name.to_owned(), value: value.map(str::to_owned) };
        let given = [given("A", Some("3")), given("B", Some("1")), given("E", Some("")), given("U", None)];
        let mut lexed = lex(text.as_bytes(), 0..text.len(), false);
        decide(text.as_bytes(), &mut lexed, &given);
        let dead = dead(&lexed.directives);
        let is_live = |token: &&Token| token.kind == Kind::Ident && !dead.iter().any(|dead| dead.contains(&(token.start as usize)));
        lexed.tokens.iter().filter(is_live).map(|token| &text[token.range()]).collect()
    }

    #[test]
    fn conditions_have_the_values_that_macros_give_them() {
        let both = |condition: &str| live(&format!("#if {condition}\nx\n#else\ny\n#endif\n"));
        for condition in [
            "A == 3",
            "A",
            "defined A",
            "defined(A) && !defined(U)",
            "U == 0",
            "A > 2 && (A < 4)",
            "X || B",
            "!U",
            "A - 3 == U",
            "A * 2 % 4 == 2",
            "-A < 0",
            "defined(E)",
            "A /* three */ >= 3L",
        ] {
            assert_eq!(both(condition), "x", "{condition}");
            assert_eq!(both(&format!("!({condition})")), "y", "{condition}");
        }
        for condition in
            ["X", "A == X", "defined(X)", "A(3)", "E", "A << 1", "__has_include(<a.h>)", "A == 0x3", "X && B", "A /", "1 / U", "A ? 1 : 0"]
        {
            assert_eq!(both(condition), "xy", "{condition}");
        }
        assert_eq!(both("X && U"), "y");
        assert_eq!(live("#ifdef A\nx\n#else\ny\n#endif\n#ifndef A\nz\n#endif\n#ifdef U\nu\n#endif\n#ifndef U\nv\n#endif\n"), "xv");
    }

    #[test]
    fn conditions_without_names_have_their_values_whatever_is_given() {
        let arms = |condition: &str| {
            let text = format!("#if {condition}\na\n#elif {condition}\nb\n#else\nc\n#endif\n#ifdef X\nd\n#elif {condition}\ne\n#endif\n");
            let mut lexed = lex(text.as_bytes(), 0..text.len(), false);
            assert!(decide(text.as_bytes(), &mut lexed, &[]).is_empty());
            let dead = dead(&lexed.directives);
            let is_live = |token: &&Token| token.kind == Kind::Ident && !dead.iter().any(|dead| dead.contains(&(token.start as usize)));
            lexed.tokens.iter().filter(is_live).map(|token| &text[token.range()]).collect::<String>()
        };
        for condition in ["0", "(0)", "!1", "! ( 1 )", "0 // off", "0 /* off */", "false", "not 1", "0 && X", "X && 0", "1 - 1", "2 < 1"] {
            assert_eq!(arms(condition), "cd", "{condition}");
            assert_eq!(arms(&format!("!({condition}\n)").replace("// off", "").replace('\n', "")), "ade", "{condition}");
        }
        for condition in ["!defined(__cplusplus)", "!defined __cplusplus && X"] {
            assert_eq!(arms(condition), "cd", "{condition}");
        }
        assert_eq!(arms("__cplusplus < 201703L"), "abcde");
        for condition in ["X", "(0) || X", "!X", "(0)(1)", "X || 0", "0 + X", "__has_include(<a>) && 0"] {
            assert_eq!(arms(condition), "abcde", "{condition}");
        }
    }

    #[test]
    fn arms_behind_the_one_that_is_compiled_are_dead() {
        assert_eq!(live("#if U\na\n#elif A == 3\nb\n#elif X\nc\n#else\nd\n#endif\ne\n"), "be");
        assert_eq!(live("#if X\na\n#elif A == 3\nb\n#else\nc\n#endif\n"), "ab");
        assert_eq!(live("#if X\na\n#elif U\nb\n#else\nc\n#endif\n"), "ac");
        assert_eq!(live("#if U\n#if A\na\n#else\nb\n#endif\nc\n#elif X\nd\n#else\ne\n#endif\n"), "de");
        assert_eq!(live("#ifdef U\na\n#elifdef B\nb\n#else\nc\n#endif\n"), "b");
    }

    #[test]
    fn a_name_that_the_file_defines_anew_is_unknown() {
        assert_eq!(live("#undef A\n#if A\nx\n#else\ny\n#endif\n"), "xy");
        assert_eq!(live("#if X\n#define U 1\n#endif\n#if U\nx\n#else\ny\n#endif\n"), "xy");
        assert_eq!(live("#ifndef A\n#define A 7\n#endif\n#if A == 3\nx\n#else\ny\n#endif\n"), "x");
        assert_eq!(live("#if X\n#define false 1\n#endif\n#if defined(false)\nx\n#else\ny\n#endif\n#if !false\nz\n#endif\n"), "xyz");
        assert_eq!(live("#if true\nx\n#else\ny\n#endif\n#define true 0\n#if true\nx\n#else\ny\n#endif\n"), "xxy");
    }
}
