//! PTX text as tokens. The rules are those of ptxas 13.0, found by asking it.
//!
//! Lines mean nothing. Blanks are space, tab, line feed, carriage return and form feed. A `//` comment ends at a line feed and nowhere else. A
//! string ends at the next quote: it has no escapes, and may hold line feeds.

use crate::Span;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// White space.
    Blank,
    /// A comment of either kind. One that is not closed goes to the text's end.
    Comment,
    /// An identifier: a name, a register, an opcode.
    Word,
    /// A full stop and what follows: a directive (`.reg`), a modifier (`.shared::cta`) or an element (`.x`).
    Dotted,
    /// A number of any kind.
    Number,
    /// A string with its quotes. One that is not closed goes to the text's end.
    Text,
    /// One byte of punctuation.
    Mark(u8),
    /// Bytes that PTX does not have, such as those outside ASCII.
    Stray,
}

/// A piece of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Where it stands.
    pub span: Span,
}

/// All tokens of a text in order, blanks and comments too: together they are the text.
pub fn tokens(text: &str) -> impl Iterator<Item = Token> + '_ {
    let mut lexer = Lexer::new(text, 0);
    std::iter::from_fn(move || lexer.any())
}

const BLANK: u8 = 1;
/// Begins a word.
const LETTER: u8 = 2;
/// Begins a word that has more bytes.
const SIGIL: u8 = 4;
const DIGIT: u8 = 8;
/// Goes on with a word or a modifier.
const INSIDE: u8 = 16;
/// Outside ASCII, or a control character.
const STRAY: u8 = 32;
/// Ends a run of operands, or may.
const STOP: u8 = 64;

const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        class[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' => BLANK,
            b'a'..=b'z' | b'A'..=b'Z' => LETTER | INSIDE,
            b'_' | b'$' => SIGIL | INSIDE,
            b'%' => SIGIL,
            b'0'..=b'9' => DIGIT | INSIDE,
            0..0x20 | 0x7f..=0xff => STRAY | STOP,
            b';' | b':' | b'@' | b'/' | b'"' | b'{' | b'}' | b'?' | b'#' | b'\\' => STOP,
            _ => 0,
        };
        byte += 1;
    }
    class
};

fn is(byte: u8, class: u8) -> bool {
    CLASS[byte as usize] & class != 0
}

/// Cuts a text into tokens from an offset on.
#[derive(Debug, Clone)]
pub(crate) struct Lexer<'a> {
    pub(crate) text: &'a str,
    /// The text up to where the reading ends.
    bytes: &'a [u8],
    /// Offset of the next token.
    pub(crate) at: usize,
    /// Where a comment begins that is not closed, once it was met.
    pub(crate) open_comment: Option<usize>,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str, at: usize) -> Self {
        Self { text, bytes: text.as_bytes(), at, open_comment: None }
    }

    /// The same text up to an offset.
    pub(crate) fn within(text: &'a str, span: Span) -> Self {
        let bytes = text.as_bytes();
        Self { text, bytes: &bytes[..bytes.len().min(span.end as usize)], at: span.start as usize, open_comment: None }
    }

    pub(crate) fn peek_byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Passes bytes that operands consist of, without cutting them into tokens; gives the byte that is none, in front of which it stops. The
    /// colons of a modifier are passed.
    pub(crate) fn pass_operand_bytes(&mut self) -> Option<u8> {
        loop {
            let rest = self.bytes.get(self.at..)?;
            self.at += rest.iter().position(|byte| is(*byte, STOP)).unwrap_or(rest.len());
            if self.byte(self.at) != b':' || self.byte(self.at + 1) != b':' {
                return self.peek_byte();
            }
            self.at += 2;
        }
    }

    /// Passes the modifiers behind an opcode's first word; tells whether blanks or comments stand between.
    pub(crate) fn pass_modifiers(&mut self) -> bool {
        let (mut is_spaced, mut end) = (false, self.at);
        while let Some(Token { span, .. }) = self.take_token(Kind::Dotted) {
            is_spaced |= span.start as usize != end;
            end = self.at;
        }
        is_spaced
    }

    /// The register that stands here alone, up to a comma, a closing bracket or the end, and the offset behind it.
    pub(crate) fn lone_register(&self) -> Option<(&'a str, usize)> {
        if self.byte(self.at) != b'%' {
            return None;
        }
        let end = self.run(self.at + 1, INSIDE);
        matches!(self.bytes.get(end), None | Some(b',' | b'}' | b']' | b')')).then(|| (self.slice(Span::new(self.at, end)), end))
    }

    pub(crate) fn end(&self) -> usize {
        self.bytes.len()
    }

    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// Offset behind the bytes of a class from an offset on.
    fn run(&self, at: usize, class: u8) -> usize {
        let rest = self.bytes.get(at..).unwrap_or_default();
        at + rest.iter().position(|byte| !is(*byte, class)).unwrap_or(rest.len())
    }

    /// The text between two offsets, both of which token rules put beside ASCII bytes.
    pub(crate) fn slice(&self, span: Span) -> &'a str {
        span.of(self.text)
    }

    /// Passes blanks and comments.
    #[inline]
    pub(crate) fn skip(&mut self) {
        let byte = self.byte(self.at);
        if is(byte, BLANK) || byte == b'/' {
            self.skip_some();
        }
    }

    fn skip_some(&mut self) {
        loop {
            self.at = self.run(self.at, BLANK);
            if self.byte(self.at) != b'/' {
                return;
            }
            let Some((end, is_closed)) = self.comment() else { return };
            if !is_closed {
                self.open_comment = Some(self.at);
            }
            self.at = end;
        }
    }

    /// Where the comment that begins here ends, and whether it is closed.
    fn comment(&self) -> Option<(usize, bool)> {
        let rest = &self.bytes[self.at..];
        match rest.get(1) {
            Some(b'/') => Some((memchr::memchr(b'\n', rest).map_or(self.end(), |length| self.at + length), true)),
            Some(b'*') => Some(match memchr::memmem::find(&rest[2..], b"*/") {
                Some(length) => (self.at + length + 4, true),
                None => (self.end(), false),
            }),
            _ => None,
        }
    }

    /// Offset behind the brace that closes the one in front of here, if no string holds any.
    pub(crate) fn closing_brace(&self) -> Option<usize> {
        let (mut ahead, mut depth) = (self.clone(), 1_u32);
        loop {
            ahead.at += memchr::memchr3(b'{', b'}', b'/', self.bytes.get(ahead.at..)?)?;
            match self.bytes[ahead.at] {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => {
                    if let Some((end, _)) = ahead.comment() {
                        ahead.at = end;
                        continue;
                    }
                }
            }
            ahead.at += 1;
            if depth == 0 {
                return Some(ahead.at);
            }
        }
    }

    /// The next token that is neither blank nor comment.
    pub(crate) fn next(&mut self) -> Option<Token> {
        self.skip();
        self.bare()
    }

    /// The next token, and stays in front of it.
    pub(crate) fn peek(&self) -> Option<Token> {
        self.clone().next()
    }

    /// The next token if it is this mark.
    #[inline]
    pub(crate) fn eat(&mut self, mark: u8) -> bool {
        self.skip();
        let found = self.peek_byte() == Some(mark);
        self.at += usize::from(found);
        found
    }

    /// The next token if it is of this kind.
    #[inline]
    pub(crate) fn take(&mut self, kind: Kind) -> Option<&'a str> {
        self.take_token(kind).map(|token| self.slice(token.span))
    }

    /// The next token if it is of this kind, with where it stands.
    #[inline]
    pub(crate) fn take_token(&mut self, kind: Kind) -> Option<Token> {
        let before = self.at;
        self.skip();
        let byte = self.byte(self.at);
        // Its first byte rules most others out.
        let may_be = match kind {
            Kind::Word => is(byte, LETTER | SIGIL),
            Kind::Dotted => byte == b'.',
            Kind::Number => is(byte, DIGIT),
            _ => true,
        };
        let token = if may_be { self.bare().filter(|token| token.kind == kind) } else { None };
        if token.is_none() {
            self.at = before;
        }
        token
    }

    /// The next token of any kind.
    fn any(&mut self) -> Option<Token> {
        let start = self.at;
        let blank = self.run(start, BLANK);
        let (kind, end) = if blank > start {
            (Kind::Blank, blank)
        } else if self.byte(start) == b'/'
            && let Some((end, _)) = self.comment()
        {
            (Kind::Comment, end)
        } else {
            return self.bare();
        };
        self.at = end;
        Some(Token { kind, span: Span::new(start, end) })
    }

    /// The token that begins here.
    fn bare(&mut self) -> Option<Token> {
        let start = self.at;
        let byte = self.peek_byte()?;
        let (kind, end) = if is(byte, LETTER) {
            (Kind::Word, self.run(start, INSIDE))
        } else if is(byte, DIGIT) {
            (Kind::Number, self.number(start))
        } else if is(byte, SIGIL) {
            match self.run(start + 1, INSIDE) {
                // An underscore alone stands for no operand; the other signs alone are nothing.
                end if end == start + 1 && byte != b'_' => (Kind::Mark(byte), end),
                end => (Kind::Word, end),
            }
        } else if byte == b'.' {
            match self.dotted(start + 1) {
                end if end == start + 1 => (Kind::Mark(byte), end),
                end => (Kind::Dotted, end),
            }
        } else if byte == b'"' {
            let rest = &self.bytes[start + 1..];
            (Kind::Text, memchr::memchr(b'"', rest).map_or(self.end(), |length| start + length + 2))
        } else if is(byte, STRAY) {
            // Whole characters, so that offsets stay between them.
            (Kind::Stray, self.run(start, STRAY))
        } else {
            (Kind::Mark(byte), start + 1)
        };
        self.at = end;
        Some(Token { kind, span: Span::new(start, end) })
    }

    /// Offset behind a modifier: `.shared::cta` is one.
    fn dotted(&self, start: usize) -> usize {
        let mut end = self.run(start, INSIDE);
        while self.byte(end) == b':' && self.byte(end + 1) == b':' && is(self.byte(end + 2), INSIDE) {
            end = self.run(end + 2, INSIDE);
        }
        end
    }

    /// Offset behind a number.
    fn number(&self, start: usize) -> usize {
        let digits =
            |from: usize, is_digit: fn(&u8) -> bool| self.bytes[from.min(self.end())..].iter().take_while(|byte| is_digit(byte)).count();
        let suffix = |end: usize| end + usize::from(self.byte(end) == b'U');
        if self.byte(start) == b'0' {
            let behind = start + 2;
            match self.byte(start + 1) {
                b'x' | b'X' => match digits(behind, u8::is_ascii_hexdigit) {
                    0 => {}
                    count => return suffix(behind + count),
                },
                b'b' | b'B' => match digits(behind, |byte| matches!(byte, b'0' | b'1')) {
                    0 => {}
                    count => return suffix(behind + count),
                },
                b'f' | b'F' if digits(behind, u8::is_ascii_hexdigit) >= 8 => return behind + 8,
                b'd' | b'D' if digits(behind, u8::is_ascii_hexdigit) >= 16 => return behind + 16,
                _ => {}
            }
        }
        let whole = start + digits(start, u8::is_ascii_digit);
        let mut end = whole;
        if self.byte(end) == b'.' {
            end += 1;
            end += digits(end, u8::is_ascii_digit);
        }
        if matches!(self.byte(end), b'e' | b'E') {
            let sign = end + 1 + usize::from(matches!(self.byte(end + 1), b'+' | b'-'));
            match digits(sign, u8::is_ascii_digit) {
                0 => {}
                count => return sign + count,
            }
        }
        if end > whole {
            return end;
        }
        // A number that begins with 0 is octal, and ends in front of an 8.
        if self.byte(start) == b'0' {
            return suffix(start + 1 + digits(start + 1, |byte| matches!(byte, b'0'..=b'7')));
        }
        suffix(whole)
    }
}
