//! Loops inside inline assembly: found, listed, never edited.

use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::statement::{Body, Simple};
use crate::source::syntax::token::Kind;

/// Words between `asm` and its parenthesis, and parentheses that are read.
const MOST_WORDS: usize = 4;

/// The `asm` statements of a body that may hold a loop, each with what to tell of it.
pub(crate) fn loops(source: &[u8], fragment: &Fragment, body: &Body) -> Vec<(Simple, &'static str)> {
    body.asms.iter().filter_map(|statement| Some((*statement, may_loop(source, fragment, statement.token)?))).collect()
}

/// Whether the statement that begins at `token` may hold a loop, and what to tell of it.
pub(crate) fn may_loop(source: &[u8], fragment: &Fragment, token: usize) -> Option<&'static str> {
    let Template { text, missing } = template(source, fragment, token);
    if branches_back(&without_comments(&text)) { Some("this loop lies inside inline assembly: it is not polled") } else { missing }
}

/// The same of a macro's use that stands for the word `asm`.
pub(crate) fn use_may_loop(source: &[u8], fragment: &Fragment, macros: &Macros, at: usize) -> Option<&'static str> {
    let is_use = fragment.kind(at) == Some(Kind::Ident) && macros.is_asm(fragment.text(source, at));
    if is_use { may_loop(source, fragment, at) } else { None }
}

/// Whether a macro's body ends with the word `asm`, so that the text stands behind its use.
pub(crate) fn ends_with_word(source: &[u8], body: &Fragment, is_asm: impl Fn(&[u8]) -> bool) -> bool {
    let is_word = |at: &usize| match body.kind(*at) {
        Some(Kind::Asm) => true,
        Some(Kind::Ident) => is_asm(body.text(source, *at)),
        _ => false,
    };
    (0..body.len()).any(|at| is_word(&at) && open_of(body, at).is_none())
}

/// The strings of the statement that begins at `token`, joined.
pub(crate) fn text(source: &[u8], fragment: &Fragment, token: usize) -> String {
    template(source, fragment, token).text
}

/// What is known of the text of an `asm` statement.
struct Template {
    text: String,
    /// What to tell where some of it does not stand in strings.
    missing: Option<&'static str>,
}

fn open_of(fragment: &Fragment, token: usize) -> Option<usize> {
    let is_word = |at: &usize| matches!(fragment.kind(*at), Some(Kind::Ident | Kind::Keyword | Kind::Goto));
    let open = (token + 1..=token + MOST_WORDS + 1).find(|at| !is_word(at))?;
    fragment.is(open, b'(').then_some(open)
}

fn template(source: &[u8], fragment: &Fragment, token: usize) -> Template {
    let mut found = Template { text: String::new(), missing: None };
    let mut open = open_of(fragment, token);
    // Behind a macro of that word its own arguments may stand first.
    for _ in 0..MOST_WORDS {
        let Some(at) = open else { break };
        let close = fragment.mate(at).filter(|close| *close > at).unwrap_or(at);
        found.read(source, fragment, at, close);
        open = Some(close + 1).filter(|next| fragment.is(*next, b'('));
    }
    found
}

impl Template {
    fn read(&mut self, source: &[u8], fragment: &Fragment, open: usize, close: usize) {
        let mut end = close;
        for at in open + 1..close {
            match fragment.kind(at) {
                Some(Kind::Str) => self.text.push_str(&String::from_utf8_lossy(&characters(fragment.text(source, at)))),
                // Operands follow: their constraints are strings too.
                Some(Kind::Punct(b':') | Kind::Scope) => {
                    end = at;
                    break;
                }
                Some(Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd | Kind::Directive(_)) => {}
                _ => {
                    self.text.push(' ');
                    self.missing = Some("a macro makes a part of this inline assembly: if that is a loop, it is not polled");
                }
            }
        }
        if fragment.includes_between(open, end) {
            self.missing = Some("an included file makes a part of this inline assembly: if that is a loop, it is not polled");
        }
    }
}

/// The characters that a literal stands for.
fn characters(literal: &[u8]) -> Vec<u8> {
    let Some(quote) = literal.iter().position(|byte| *byte == b'"') else { return Vec::new() };
    let inner = literal[quote + 1..].strip_suffix(b"\"").unwrap_or(&literal[quote + 1..]);
    if literal[..quote].ends_with(b"R") {
        let open = inner.iter().position(|byte| *byte == b'(').map_or(0, |open| open + 1);
        let close = inner.iter().rposition(|byte| *byte == b')').unwrap_or(inner.len());
        return inner.get(open..close).unwrap_or_default().to_vec();
    }
    let mut found = Vec::with_capacity(inner.len());
    let mut at = 0;
    while at < inner.len() {
        if inner[at] != b'\\' {
            found.push(inner[at]);
            at += 1;
            continue;
        }
        let digits = |from: usize, most: usize, base: u32| {
            let is_digit = |byte: &&u8| char::from(**byte).is_digit(base);
            inner.get(from..).unwrap_or_default().iter().take(most).take_while(is_digit).count()
        };
        let (from, length, base) = match inner.get(at + 1) {
            Some(b'x') => (at + 2, digits(at + 2, usize::MAX, 16), 16),
            Some(b'u') => (at + 2, digits(at + 2, 4, 16), 16),
            Some(b'U') => (at + 2, digits(at + 2, 8, 16), 16),
            Some(b'0'..=b'7') => (at + 1, digits(at + 1, 3, 8), 8),
            _ => (at + 1, 0, 0),
        };
        if length > 0 {
            let number = |number: u32, byte: &u8| number.wrapping_mul(base).wrapping_add(char::from(*byte).to_digit(base).unwrap_or(0));
            found.push(inner[from..from + length].iter().fold(0, number) as u8);
            at = from + length;
            continue;
        }
        match inner.get(at + 1) {
            Some(b'n' | b'r' | b'v' | b'f') => found.push(b'\n'),
            Some(b't' | b'a' | b'b') => found.push(b'\t'),
            Some(b'\n') | None => {}
            Some(byte) => found.push(*byte),
        }
        at += 2;
    }
    found
}

/// PTX without its comments.
fn without_comments(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        found.push_str(&rest[..at]);
        let comment = &rest[at..];
        let length = match comment.as_bytes().get(1) {
            Some(b'/') => comment.find('\n').unwrap_or(comment.len()),
            Some(b'*') => comment[2..].find("*/").map_or(comment.len(), |end| end + 4),
            _ => 1,
        };
        found.push(' ');
        rest = &comment[length..];
    }
    found.push_str(rest);
    found
}

/// Whether the text may branch to what stands above the branch: to a label there, or to one that is not below.
fn branches_back(text: &str) -> bool {
    let is_name = |byte: char| byte.is_ascii_alphanumeric() || matches!(byte, '_' | '$' | '%' | '=');
    let mut words: Vec<(usize, &str)> = Vec::new();
    let mut start = None;
    for (at, byte) in text.char_indices().chain([(text.len(), ' ')]) {
        match (is_name(byte), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                words.push((from, &text[from..at]));
                start = None;
            }
            _ => {}
        }
    }
    let is_label = |at: usize, word: &str| {
        let behind = text[at + word.len()..].trim_start();
        behind.starts_with(':') && !behind.starts_with("::")
    };
    words.iter().enumerate().any(|(index, (at, word))| match *word {
        "brx" | "call" => true,
        "bra" => {
            let target = words[index + 1..].iter().map(|(_, word)| *word).find(|word| *word != "uni");
            let labels = || words.iter().filter(|(at, word)| Some(*word) == target && is_label(*at, word)).map(|(label, _)| label);
            labels().any(|label| label < at) || labels().next().is_none()
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::{branches_back, characters, without_comments};

    #[test]
    fn only_a_branch_downwards_is_no_loop() {
        assert!(branches_back("{\n LAB_WAIT:\n mbarrier.try_wait.b64 p, [%0];\n @p bra DONE;\n bra LAB_WAIT;\n DONE:\n}"));
        assert!(branches_back("L%=: nanosleep.u32 20; @!p bra.uni L%=;"));
        assert!(branches_back("L1:{bra L1;}") && branches_back("bra L1;") && branches_back("bra") && branches_back("brx.idx %0, ts;"));
        assert!(branches_back("call.uni f, (a);"));
        assert!(!branches_back("@p bra DONE; mov.u32 %0, 1; DONE:"));
        assert!(!branches_back("vabsdiff LABRA: x; %bra, braces, recall;"));
    }

    #[test]
    fn literals_and_comments_are_read() {
        let is = |literal: &str, text: &str| assert_eq!(String::from_utf8_lossy(&characters(literal.as_bytes())), text);
        is(r#""a\142ra\x20L\n\t\\\"\?\u0062""#, "abra L\n\t\\\"?b");
        is("R\"x(a\\n)x\"", "a\\n");
        is("\"a\\\nb\"", "ab");
        assert_eq!(without_comments("bra /* x */ L; // y\nL: a / b /*"), "bra   L;  \nL: a   b  ");
    }
}
