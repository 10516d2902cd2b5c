//! Words of the language that are macros in a file.
//!
//! Inserted text names types and values by words of the prelude's, which no macro takes. So what it says stays. What the
//! user's text says does not: a word that decides where control goes hides what repeats, and one of a type or a value
//! hides how often.

use crate::common::diagnostic::{Code, Diagnostic};
use crate::common::options::Polls;
use crate::source::syntax::token::{Define, Kind, Lexed, Line, Token, kind_of_word, lex};
use crate::source::syntax::{condition, declaration};

/// Words by which the trips of a loop are counted.
const COUNTED: &[&[u8]] = &[
    b"auto",
    b"bool",
    b"char",
    b"const",
    b"decltype",
    b"false",
    b"int",
    b"long",
    b"short",
    b"signed",
    b"sizeof",
    b"static_cast",
    b"true",
    b"unsigned",
    b"void",
];

/// What definitions of macros by the names of words come to.
#[derive(Debug, Default)]
pub(crate) struct Redefined {
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The polls that still hold.
    pub(crate) polls: Polls,
}

/// Definitions of macros that have the names of words.
pub(crate) fn redefined(source: &[u8], lexed: &Lexed) -> Redefined {
    let arms = condition::arms(&lexed.directives);
    let mut found = Redefined::default();
    for (directive, arm) in lexed.directives.iter().zip(&arms) {
        let Line::Define(define) = &directive.line else { continue };
        let word = &source[define.name.clone()];
        let is_control = decides(kind_of_word(word));
        if !arm.live || !(is_control || COUNTED.contains(&word)) || is_harmless(source, word, define) {
            continue;
        }
        let text = String::from_utf8_lossy(word);
        let (hidden, polls) = if is_control {
            // Nothing may stand in front of such a word, or be repeated with it.
            ("what repeats can't be told from the text", Polls::CountDown)
        } else {
            ("how often loops run can't be told from the text, so each polls each time round", Polls::Each)
        };
        found.polls = plainest(found.polls, polls);
        let message = format!("`{text}` is a macro here: {hidden}");
        found.diagnostics.push(Diagnostic::new(Code::KeywordRedefined, message).at(define.name.clone()).help("rename the macro"));
    }
    found
}

/// The one of the two that relies on less.
pub(crate) fn plainest(one: Polls, other: Polls) -> Polls {
    let rank = |polls| match polls {
        Polls::Amortised => 0,
        Polls::CountDown => 1,
        Polls::Each => 2,
    };
    if rank(one) < rank(other) { other } else { one }
}

/// Whether the macro's text means what the word means: `inline` as `__inline__`, `true` as `1`, `bool` as `int`.
fn is_harmless(source: &[u8], word: &[u8], define: &Define) -> bool {
    let tokens = lex(source, define.body.clone(), true).tokens;
    let text = |token: &Token| &source[token.range()];
    let is_number = |token: &Token| text(token) == b"_Bool" || declaration::is_integer(text(token));
    let is_value = |value: &[u8]| without_casts(&tokens, is_number).is_some_and(|token| text(token) == value);
    match (word, &tokens[..]) {
        _ if define.function_like => false,
        (_, [one]) if text(one) == word => true,
        // A spelling of the compilers' own.
        (_, [one]) if COUNTED.contains(&word) && text(one).strip_prefix(b"__").is_some_and(|rest| is_word(rest, word)) => true,
        (b"true", _) => is_value(b"1"),
        (b"false", _) => is_value(b"0"),
        // No loop counts by one.
        (b"bool", [_, ..]) => tokens.iter().all(is_number),
        _ => false,
    }
}

/// Whether it is the word, with two underscores behind it perhaps.
fn is_word(text: &[u8], word: &[u8]) -> bool {
    text.strip_suffix(b"__").unwrap_or(text) == word
}

/// The one token that is left without parentheses around it and types in parentheses in front.
fn without_casts(tokens: &[Token], is_type: impl Fn(&Token) -> bool) -> Option<&Token> {
    let mut rest = tokens;
    loop {
        rest = match rest {
            [one] => return Some(one),
            [open, type_, close, behind @ ..] if open.is(b'(') && is_type(type_) && close.is(b')') => behind,
            [open, inner @ .., close] if open.is(b'(') && close.is(b')') => inner,
            _ => return None,
        };
    }
}

/// Whether the word decides where control goes.
fn decides(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::For
            | Kind::While
            | Kind::Do
            | Kind::If
            | Kind::Else
            | Kind::Switch
            | Kind::Case
            | Kind::Default
            | Kind::Goto
            | Kind::Return
            | Kind::Break
            | Kind::Continue
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_hides_a_loop_or_its_trips_counts() {
        let polls = |text: &str| {
            let lexed = lex(text.as_bytes(), 0..text.len(), false);
            let found = redefined(text.as_bytes(), &lexed);
            assert_eq!(found.diagnostics.is_empty(), found.polls == Polls::Amortised, "{text}");
            found.polls
        };
        for harmless in [
            "true 1",
            "true (1)",
            "true ((bool)1)",
            "false 0",
            "false ((int)0)",
            "bool int",
            "bool unsigned char",
            "bool uint8_t",
            "bool _Bool",
            "double float",
            "float double",
            "inline __inline__",
            "inline",
            "private public",
            "const __const__",
            "int int",
            "while while",
            "volatile",
            "static",
            "restrict",
            "LOOP while",
            "noexcept",
        ] {
            assert_eq!(polls(&format!("#define {harmless}\n")), Polls::Amortised, "{harmless}");
        }
        for counted in [
            "int long long",
            "int",
            "int(x) x",
            "unsigned",
            "true 0",
            "true",
            "false 1",
            "bool Flag",
            "bool",
            "const",
            "auto int",
            "char bool",
        ] {
            assert_eq!(polls(&format!("#if X\n#define {counted}\n#endif\n")), Polls::Each, "{counted}");
        }
        for control in ["for if (0) ; else for", "for __for", "if(x) while (x)", "while", "goto return", "do"] {
            assert_eq!(polls(&format!("#define {control}\n")), Polls::CountDown, "{control}");
        }
        assert_eq!(polls("#define if while\n#define int char\n"), Polls::Each);
        assert_eq!(polls("#if 0\n#define if while\n#endif\n"), Polls::Amortised);
    }
}
