//! Tokens that are split by a `\` at the end of a line. A copy of the text, of the same length, has each of them whole. It has
//! line ends and `\` as they are written elsewhere, too, in the place of a carriage return alone and of `??/`.
//!
//! A line end inside a token moves behind this token. Offsets of tokens stay the same, and every later step compares whole words.

use crate::source::syntax::token::{is_name_byte, line_end, quoted_end, raw_string_end, splice};
use std::borrow::Cow;
use std::ops::Range;

/// Bytes that operators of several bytes are made of.
const OPERATORS: &[u8] = b":+-<>=&|*/%!^#.";

/// A text without split tokens.
#[derive(Debug)]
pub(crate) struct Joined<'a> {
    /// The text.
    pub(crate) text: Cow<'a, [u8]>,
    /// Line ends that were moved: from where their token ends now to where it ends in the source.
    moved: Vec<Range<usize>>,
}

impl Joined<'_> {
    /// The offset in the source of an offset of the joined text.
    pub(crate) fn in_source(&self, at: usize) -> usize {
        let index = self.moved.partition_point(|range| range.end <= at);
        self.moved.get(index).filter(|range| range.start <= at).map_or(at, |range| range.end)
    }
}

/// Joins all tokens that line ends split.
pub(crate) fn join(source: &[u8]) -> Joined<'_> {
    match plain(source) {
        Cow::Borrowed(source) => join_plain(source),
        Cow::Owned(plain) => {
            let Joined { text, moved } = join_plain(&plain);
            Joined { text: Cow::Owned(text.into_owned()), moved }
        }
    }
}

/// The text with its line ends spelled one way. In a comment `??/` may be three signs, and the next line code.
fn plain(source: &[u8]) -> Cow<'_, [u8]> {
    let returns = memchr::memchr_iter(b'\r', source).filter(|at| source.get(at + 1).is_some_and(|next| !matches!(next, b'\n' | b'\r')));
    let trigraphs = memchr::memmem::find_iter(source, b"??/").filter(|at| splice(source, at + 2).is_some()).filter(|at| {
        let line = memchr::memrchr(b'\n', &source[..*at]).map_or(0, |end| end + 1);
        memchr::memmem::find(&source[line..*at], b"//").is_none()
    });
    let (returns, trigraphs): (Vec<usize>, Vec<usize>) = (returns.collect(), trigraphs.collect());
    if returns.is_empty() && trigraphs.is_empty() {
        return Cow::Borrowed(source);
    }
    let mut text = source.to_vec();
    for at in returns {
        text[at] = b'\n';
    }
    for at in trigraphs {
        text[at..at + 3].copy_from_slice(b"\\  ");
    }
    Cow::Owned(text)
}

fn join_plain(source: &[u8]) -> Joined<'_> {
    let splits = memchr::memchr_iter(b'\\', source).any(|at| {
        let before = at.checked_sub(1).map_or(b' ', |before| source[before]);
        !before.is_ascii_whitespace()
            && behind_splices(source, at).is_some_and(|next| !source[next..].first().is_none_or(u8::is_ascii_whitespace))
    });
    if !splits {
        return Joined { text: Cow::Borrowed(source), moved: Vec::new() };
    }
    let mut joiner = Joiner { source, at: 0, out: Vec::with_capacity(source.len()), moved: Vec::new() };
    while joiner.at < source.len() {
        joiner.step();
    }
    Joined { text: Cow::Owned(joiner.out), moved: joiner.moved }
}

/// Where the text goes on behind one or more line ends, if one begins at `at`.
fn behind_splices(source: &[u8], at: usize) -> Option<usize> {
    let mut next = None;
    while let Some(behind) = Some(next.unwrap_or(at)).filter(|at| source.get(*at) == Some(&b'\\')).and_then(|at| splice(source, at)) {
        next = Some(behind);
    }
    next
}

struct Joiner<'a> {
    source: &'a [u8],
    at: usize,
    out: Vec<u8>,
    moved: Vec<Range<usize>>,
}

impl Joiner<'_> {
    /// Copies a token, a comment, a string or one byte.
    fn step(&mut self) {
        let (source, start) = (self.source, self.at);
        match source[start] {
            b'/' => {
                let next = behind_splices(source, start + 1).unwrap_or(start + 1);
                match source.get(next) {
                    Some(b'/') => {
                        self.token(|byte| byte == b'/', 2);
                        self.copy(line_end(source, self.at));
                    }
                    Some(b'*') => {
                        self.token(|byte| matches!(byte, b'/' | b'*'), 2);
                        self.block_comment();
                    }
                    _ => self.token(|byte| OPERATORS.contains(&byte), usize::MAX),
                }
            }
            b'"' => {
                let prefix = self.out.iter().rev().take_while(|byte| is_name_byte(**byte)).count();
                let is_raw = matches!(&self.out[self.out.len() - prefix..], b"R" | b"LR" | b"uR" | b"UR" | b"u8R");
                self.copy(if is_raw { raw_string_end(source, start) } else { quoted_end(source, start + 1, b'"') });
            }
            b'\'' => self.copy(quoted_end(source, start + 1, b'\'')),
            byte if byte.is_ascii_digit() => self.token(|byte| is_name_byte(byte) || byte == b'\'', usize::MAX),
            byte if is_name_byte(byte) => self.token(is_name_byte, usize::MAX),
            byte if OPERATORS.contains(&byte) => self.token(|byte| OPERATORS.contains(&byte), usize::MAX),
            _ => self.copy(start + 1),
        }
    }

    fn copy(&mut self, end: usize) {
        let end = end.clamp(self.at, self.source.len());
        self.out.extend_from_slice(&self.source[self.at..end]);
        self.at = end;
    }

    /// Copies a run of at most that many bytes, then the line ends that stood in it.
    fn token(&mut self, belongs: impl Fn(u8) -> bool, most: usize) {
        let source = self.source;
        let mut held: Vec<u8> = Vec::new();
        let mut count = 0;
        while count < most {
            let next = behind_splices(source, self.at).unwrap_or(self.at);
            let Some(byte) = source.get(next).copied().filter(|byte| belongs(*byte)) else { break };
            // A comment behind an operator is a token of its own.
            let follows = behind_splices(source, next + 1).unwrap_or(next + 1);
            if byte == b'/' && most == usize::MAX && count > 0 && matches!(source.get(follows), Some(b'/' | b'*')) {
                break;
            }
            held.extend_from_slice(&source[self.at..next]);
            self.out.push(byte);
            self.at = next + 1;
            count += 1;
        }
        if !held.is_empty() {
            self.moved.push(self.out.len()..self.at);
            self.out.extend_from_slice(&held);
        }
        if count == 0 {
            self.copy(self.at + 1);
        }
    }

    /// Copies the rest of a comment, whose end may be split too.
    fn block_comment(&mut self) {
        let source = self.source;
        while self.at < source.len() {
            let next = behind_splices(source, self.at + 1).unwrap_or(self.at + 1);
            if source[self.at] == b'*' && source.get(next) == Some(&b'/') {
                return self.token(|byte| matches!(byte, b'*' | b'/'), 2);
            }
            self.copy(self.at + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_token_is_whole_and_nothing_else_moves() {
        for (source, joined) in [
            ("d\\\no { }", "do\\\n { }"),
            ("wh\\\r\ni\\\nle(x) y", "while\\\r\n\\\n(x) y"),
            ("a -\\\n> b", "a ->\\\n b"),
            ("/\\\n/ one \\\n two\nf\\\nor", "//\\\n one \\\n two\nfor\\\n"),
            ("/\\\n* f\\\nor *\\\n/ x", "/*\\\n f\\\nor */\\\n x"),
            ("\"d\\\no\" 'd\\\no' R\"(d\\\no)\" 1'0\\\n0", "\"d\\\no\" 'd\\\no' R\"(d\\\no)\" 1'00\\\n"),
            ("#define A x \\\n y\n", "#define A x \\\n y\n"),
            ("x = a \\\n/ b; // d\\\no", "x = a \\\n/ b; // d\\\no"),
            ("a +\\\n/* b */ c", "a +\\\n/* b */ c"),
            ("wh??/\nile // so??/\nx", "while\\  \n // so??/\nx"),
            ("// x\ry \r\n\r\r\n", "// x\ny \r\n\r\r\n"),
        ] {
            assert_eq!(String::from_utf8_lossy(&join(source.as_bytes()).text), joined);
        }
    }

    #[test]
    fn the_end_of_a_whole_token_is_its_end_in_the_source() {
        let joined = join(b"d\\\no {");
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|at| joined.in_source(at)), [0, 1, 4, 4, 4, 5, 6]);
    }
}
