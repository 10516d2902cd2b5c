//! Lexer: bytes to tokens and directives. Comments vanish, except waivers; offsets never move.
//!
//! The lexer knows raw strings, digit separators, `\`-continued lines, directives of several lines and digraphs. It never fails: a byte without a meaning
//! is a token of one byte.

use std::ops::Range;

/// The kind of a token. Keywords that decide structure have kinds of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Ident,
    Number,
    Str,
    Char,
    For,
    While,
    Do,
    If,
    Else,
    Switch,
    Case,
    Default,
    Goto,
    Return,
    Break,
    Continue,
    Try,
    Catch,
    /// `class`, `struct`, `union`, `enum`, `namespace`.
    Class,
    Asm,
    Operator,
    /// `_Pragma` or `__pragma`.
    Pragma,
    /// `__host__`, `__device__`, `__global__`.
    Host,
    Device,
    Global,
    /// `__tile__`, `__tile_global__`.
    BlockShare,
    /// `constexpr` or `consteval`.
    Constexpr,
    /// `requires`.
    Requires,
    /// Any other word of the language that can't be a macro's or a function's name.
    Keyword,
    Scope,
    Arrow,
    /// `=`.
    Assign,
    /// `+=` and its like.
    OpAssign,
    /// `++` or `--`.
    Step,
    /// Another operator of several bytes.
    Op,
    /// One byte of punctuation; `(`, `[`, `{` and their closers among them.
    Punct(u8),
    /// A preprocessor line; the index is into [`Lexed::directives`].
    Directive(u32),
    /// Where the arms of a conditional begin, change and end. Made from directives by [`crate::fragment`].
    ArmIf,
    ArmElse,
    ArmEnd,
}

/// A token of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) kind: Kind,
}

impl Token {
    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(crate) fn is(self, byte: u8) -> bool {
        self.kind == Kind::Punct(byte)
    }
}

/// The effect of a preprocessor line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// `#if`, `#ifdef`, `#ifndef`; the value is known for a literal, and where macros that the user gave tell it.
    If(Option<bool>),
    /// `#elif` and its like, with the value in the same way.
    Elif(Option<bool>),
    Else,
    Endif,
    Define(Define),
    Pragma,
    Include,
    Other,
}

/// A macro's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Define {
    pub(crate) name: Range<usize>,
    /// Whether a parameter list follows the name.
    pub(crate) function_like: bool,
    /// Replacement text.
    pub(crate) body: Range<usize>,
}

/// A preprocessor line, continuations included, without its last newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directive {
    pub(crate) span: Range<usize>,
    pub(crate) line: Line,
}

/// A lexed text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lexed {
    pub(crate) tokens: Vec<Token>,
    pub(crate) directives: Vec<Directive>,
    /// Comments that hold `cuinstr:`.
    pub(crate) remarks: Vec<Range<usize>>,
    /// All comments that hold bytes beyond ASCII.
    pub(crate) foreign_comments: Vec<Range<usize>>,
}

/// Lexes `source[range]`. Directives are recognised unless `in_directive` is set (the body of a macro).
pub(crate) fn lex(source: &[u8], range: Range<usize>, in_directive: bool) -> Lexed {
    let mut lexer = Lexer { text: &source[..range.end], at: range.start, line_start: !in_directive, in_directive, out: Lexed::default() };
    lexer.run();
    lexer.out
}

/// Whether a byte may be part of a name. Bytes beyond ASCII are: UTF-8 names are legal.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    line_start: bool,
    in_directive: bool,
    out: Lexed,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn push(&mut self, start: usize, kind: Kind) {
        self.line_start = false;
        self.out.tokens.push(Token { start: start as u32, end: self.at as u32, kind });
    }

    fn run(&mut self) {
        if self.at == 0 && self.text.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
        while self.at < self.text.len() {
            let start = self.at;
            let byte = self.text[start];
            match byte {
                b'\n' => {
                    self.at += 1;
                    self.line_start = !self.in_directive;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'\\' if splice(self.text, start).is_some() => self.at = splice(self.text, start).unwrap_or(start + 1),
                b'/' if self.peek(1) == b'/' => {
                    self.at = line_end(self.text, start);
                    self.comment(start);
                }
                b'/' if self.peek(1) == b'*' => {
                    self.at = block_comment_end(self.text, start);
                    self.comment(start);
                }
                b'#' if self.line_start => self.directive(start),
                b'%' if self.line_start && self.peek(1) == b':' => self.directive(start),
                b'"' => {
                    self.at = quoted_end(self.text, start + 1, b'"');
                    self.push(start, Kind::Str);
                }
                b'\'' => {
                    self.at = quoted_end(self.text, start + 1, b'\'');
                    self.push(start, Kind::Char);
                }
                b'0'..=b'9' => self.number(start),
                b'.' if self.peek(1).is_ascii_digit() => self.number(start),
                _ if is_name_byte(byte) => self.name(start),
                _ => self.punctuation(start, byte),
            }
        }
    }

    fn comment(&mut self, start: usize) {
        let text = &self.text[start..self.at];
        if text.iter().any(|byte| *byte >= 0x80) {
            self.out.foreign_comments.push(start..self.at);
        }
        if text.windows(8).any(|window| window == b"cuinstr:") {
            self.out.remarks.push(start..self.at);
        }
    }

    /// A preprocessing number: digits, letters, `.`, `'` before a digit or letter, a sign after an exponent.
    fn number(&mut self, start: usize) {
        self.at += 1;
        loop {
            let byte = self.peek(0);
            let last = self.text[self.at - 1];
            let goes_on = byte.is_ascii_alphanumeric()
                || byte == b'.'
                || byte == b'_'
                || (byte == b'\'' && self.peek(1).is_ascii_alphanumeric())
                || (matches!(byte, b'+' | b'-') && matches!(last, b'e' | b'E' | b'p' | b'P') && !self.is_hex_integer(start, last));
            if !goes_on {
                break;
            }
            self.at += 1;
        }
        self.push(start, Kind::Number);
    }

    /// In `0xe+1` the `e` is a digit, and the sign an operator to every compiler's eye but the standard's.
    fn is_hex_integer(&self, start: usize, last: u8) -> bool {
        matches!(last, b'e' | b'E') && self.text[start] == b'0' && matches!(self.text.get(start + 1), Some(b'x' | b'X'))
    }

    fn name(&mut self, start: usize) {
        while self.at < self.text.len() && is_name_byte(self.text[self.at]) {
            self.at += 1;
        }
        let name = &self.text[start..self.at];
        match self.peek(0) {
            b'"' if matches!(name, b"R" | b"LR" | b"uR" | b"UR" | b"u8R") => {
                self.at = raw_string_end(self.text, self.at);
                return self.push(start, Kind::Str);
            }
            b'"' if matches!(name, b"L" | b"u" | b"U" | b"u8") => {
                self.at = quoted_end(self.text, self.at + 1, b'"');
                return self.push(start, Kind::Str);
            }
            b'\'' if matches!(name, b"L" | b"u" | b"U" | b"u8") => {
                self.at = quoted_end(self.text, self.at + 1, b'\'');
                return self.push(start, Kind::Char);
            }
            _ => {}
        }
        let kind = kind_of_word(name);
        self.push(start, kind);
    }

    fn punctuation(&mut self, start: usize, byte: u8) {
        let (next, third) = (self.peek(1), self.peek(2));
        let (length, kind) = match (byte, next) {
            (b':', b':') => (2, Kind::Scope),
            (b'<', b'%') => (2, Kind::Punct(b'{')),
            (b'%', b'>') => (2, Kind::Punct(b'}')),
            (b'<', b':') if third != b':' => (2, Kind::Punct(b'[')),
            (b':', b'>') => (2, Kind::Punct(b']')),
            (b'-', b'>') => (2, Kind::Arrow),
            (b'+', b'+') | (b'-', b'-') => (2, Kind::Step),
            (b'<', b'<') if third == b'<' => (3, Kind::Op),
            (b'<', b'<') if third == b'=' => (3, Kind::OpAssign),
            (b'.', b'.') if third == b'.' => (3, Kind::Op),
            (b'<', b'<') | (b'<' | b'>' | b'=' | b'!', b'=') | (b'&', b'&') | (b'|', b'|') => (2, Kind::Op),
            (b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', b'=') => (2, Kind::OpAssign),
            (b'=', _) => (1, Kind::Assign),
            // `>>` may close two template lists, so each `>` stands alone.
            _ => (1, Kind::Punct(byte)),
        };
        self.at += length;
        self.push(start, kind);
    }

    fn directive(&mut self, start: usize) {
        let end = directive_end(self.text, start);
        let mut inner = Lexer { text: &self.text[..end], at: start + 1, line_start: false, in_directive: true, out: Lexed::default() };
        if self.text[start] == b'%' {
            inner.at += 1;
        }
        inner.skip_space();
        let word_start = inner.at;
        while inner.at < end && is_name_byte(inner.text[inner.at]) {
            inner.at += 1;
        }
        let line = match &self.text[word_start..inner.at] {
            b"if" => Line::If(literal(self.text, inner.at..end)),
            b"elif" => Line::Elif(literal(self.text, inner.at..end)),
            b"ifdef" | b"ifndef" => Line::If(None),
            b"elifdef" | b"elifndef" => Line::Elif(None),
            b"else" => Line::Else,
            b"endif" => Line::Endif,
            b"pragma" => Line::Pragma,
            b"include" | b"include_next" | b"import" => Line::Include,
            b"define" => inner.define(end),
            _ => Line::Other,
        };
        // Comments beside a directive may speak to us too.
        let comments = lex(&self.text[..end], start + 1..end, true);
        self.out.remarks.extend(comments.remarks);
        self.out.foreign_comments.extend(comments.foreign_comments);
        let index = self.out.directives.len() as u32;
        self.out.directives.push(Directive { span: start..end, line });
        self.at = end;
        self.push(start, Kind::Directive(index));
    }

    fn define(&mut self, end: usize) -> Line {
        self.skip_space();
        let name_start = self.at;
        while self.at < end && is_name_byte(self.text[self.at]) {
            self.at += 1;
        }
        let name = name_start..self.at;
        let function_like = self.peek(0) == b'(';
        if function_like {
            while self.at < end && self.text[self.at] != b')' {
                self.at += 1;
            }
            self.at = (self.at + 1).min(end);
        }
        Line::Define(Define { name, function_like, body: self.at..end })
    }

    fn skip_space(&mut self) {
        loop {
            match self.peek(0) {
                b' ' | b'\t' => self.at += 1,
                b'/' if self.peek(1) == b'*' => self.at = block_comment_end(self.text, self.at),
                b'\\' => match splice(self.text, self.at) {
                    Some(next) => self.at = next,
                    None => return,
                },
                _ => return,
            }
        }
    }
}

/// Whether the condition holds, if it is one number, with parentheses and `!` perhaps.
fn literal(text: &[u8], condition: Range<usize>) -> Option<bool> {
    let mut tokens = &lex(text, condition, true).tokens[..];
    let mut is_negated = false;
    loop {
        tokens = match tokens {
            [one] => match &text[one.range()] {
                b"0" => return Some(is_negated),
                b"1" => return Some(!is_negated),
                _ => return None,
            },
            [first, rest @ ..] if first.is(b'!') => {
                is_negated = !is_negated;
                rest
            }
            [first, inner @ .., last] if first.is(b'(') && last.is(b')') => inner,
            _ => return None,
        }
    }
}

/// Where the text goes on after a `\` that ends its line, if it does.
pub(crate) fn splice(text: &[u8], backslash: usize) -> Option<usize> {
    let mut at = backslash + 1;
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\r')) {
        at += 1;
    }
    (text.get(at) == Some(&b'\n')).then_some(at + 1)
}

/// The newline that ends the logical line at `at`, or the end of the text.
pub(crate) fn line_end(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && text[at] != b'\n' {
        at = if text[at] == b'\\' { splice(text, at).unwrap_or(at + 1) } else { at + 1 };
    }
    at
}

fn block_comment_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 2;
    while at < text.len() {
        if text[at] == b'*' && text.get(at + 1) == Some(&b'/') {
            return at + 2;
        }
        at += 1;
    }
    text.len()
}

/// The end of a string or character that began before `at`: after its closing quote, or at the end of its line.
pub(crate) fn quoted_end(text: &[u8], mut at: usize, quote: u8) -> usize {
    while at < text.len() {
        match text[at] {
            b'\\' => at = splice(text, at).unwrap_or(at + 2).min(text.len()),
            b'\n' => return at,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// The end of the raw string whose quote stands at `quote`; an unfinished one is as long as its line.
pub(crate) fn raw_string_end(text: &[u8], quote: usize) -> usize {
    let delimiter_start = quote + 1;
    let Some(length) = text[delimiter_start..].iter().take(17).position(|byte| *byte == b'(') else {
        return quoted_end(text, delimiter_start, b'"');
    };
    let delimiter = &text[delimiter_start..delimiter_start + length];
    let mut at = delimiter_start + length + 1;
    while at < text.len() {
        let close = at + 1 + length;
        if text[at] == b')' && text.get(close) == Some(&b'"') && &text[at + 1..close] == delimiter {
            return close + 1;
        }
        at += 1;
    }
    text.len()
}

/// The end of a directive: its logical line, block comments included, without the newline.
fn directive_end(text: &[u8], start: usize) -> usize {
    let mut at = start;
    while at < text.len() && text[at] != b'\n' {
        at = match text[at] {
            b'\\' => splice(text, at).unwrap_or(at + 1),
            b'/' if text.get(at + 1) == Some(&b'*') => block_comment_end(text, at),
            b'/' if text.get(at + 1) == Some(&b'/') => line_end(text, at),
            quote @ (b'"' | b'\'') => quoted_end(text, at + 1, quote),
            byte if is_name_byte(byte) => word_end(text, at),
            _ => at + 1,
        };
    }
    // A carriage return belongs to the line's end.
    if at > start && text[at - 1] == b'\r' { at - 1 } else { at }
}

/// The end of a name, of a number with its separators, or of a raw string that begins at `start`.
fn word_end(text: &[u8], start: usize) -> usize {
    let is_number = text[start].is_ascii_digit();
    let mut at = start;
    while at < text.len()
        && (is_name_byte(text[at]) || (is_number && text[at] == b'\'' && text.get(at + 1).is_some_and(u8::is_ascii_alphanumeric)))
    {
        at += 1;
    }
    let is_raw = matches!(&text[start..at], b"R" | b"LR" | b"uR" | b"UR" | b"u8R") && text.get(at) == Some(&b'"');
    if is_raw { raw_string_end(text, at) } else { at }
}

/// The kind of token that a word is.
pub(crate) fn kind_of_word(name: &[u8]) -> Kind {
    match name {
        b"for" => Kind::For,
        b"while" => Kind::While,
        b"do" => Kind::Do,
        b"if" => Kind::If,
        b"else" => Kind::Else,
        b"switch" => Kind::Switch,
        b"case" => Kind::Case,
        b"default" => Kind::Default,
        b"goto" => Kind::Goto,
        b"return" | b"co_return" => Kind::Return,
        b"break" => Kind::Break,
        b"continue" => Kind::Continue,
        b"try" => Kind::Try,
        b"catch" => Kind::Catch,
        b"class" | b"struct" | b"union" | b"enum" | b"namespace" => Kind::Class,
        b"asm" | b"__asm__" | b"__asm" => Kind::Asm,
        b"operator" => Kind::Operator,
        b"_Pragma" | b"__pragma" => Kind::Pragma,
        b"__host__" => Kind::Host,
        b"__device__" => Kind::Device,
        b"__global__" => Kind::Global,
        b"__tile__" | b"__tile_global__" => Kind::BlockShare,
        b"constexpr" | b"consteval" => Kind::Constexpr,
        b"requires" => Kind::Requires,
        b"not" => Kind::Punct(b'!'),
        b"compl" => Kind::Punct(b'~'),
        b"bitand" => Kind::Punct(b'&'),
        b"bitor" => Kind::Punct(b'|'),
        b"xor" => Kind::Punct(b'^'),
        b"and" | b"or" | b"not_eq" => Kind::Op,
        b"and_eq" | b"or_eq" | b"xor_eq" => Kind::OpAssign,
        b"alignas" | b"alignof" | b"auto" | b"bool" | b"char" | b"const" | b"const_cast" | b"decltype" | b"delete" | b"double"
        | b"dynamic_cast" | b"explicit" | b"extern" | b"false" | b"final" | b"float" | b"friend" | b"inline" | b"int" | b"long"
        | b"mutable" | b"new" | b"noexcept" | b"nullptr" | b"override" | b"private" | b"protected" | b"public" | b"register"
        | b"reinterpret_cast" | b"short" | b"signed" | b"sizeof" | b"static" | b"static_assert" | b"static_cast" | b"template"
        | b"this" | b"throw" | b"true" | b"typedef" | b"typeid" | b"typename" | b"unsigned" | b"using" | b"virtual" | b"void"
        | b"volatile" | b"wchar_t" | b"__attribute__" | b"__attribute" | b"__location__" | b"__forceinline__" | b"__noinline__"
        | b"__inline__" | b"__launch_bounds__" | b"__restrict__" | b"__restrict" | b"__shared__" | b"__constant__" | b"__managed__"
        | b"__align__" | b"__cluster_dims__" | b"__maxnreg__" | b"__block_size__" | b"__grid_constant__" | b"__declspec"
        | b"__volatile__" => Kind::Keyword,
        _ => Kind::Ident,
    }
}

/// The sign that a word stands for.
pub(crate) fn alternative(word: &[u8]) -> Option<&'static [u8]> {
    Some(match word {
        b"and" => b"&&",
        b"or" => b"||",
        b"not" => b"!",
        b"compl" => b"~",
        b"bitand" => b"&",
        b"bitor" => b"|",
        b"xor" => b"^",
        b"not_eq" => b"!=",
        b"and_eq" => b"&=",
        b"or_eq" => b"|=",
        b"xor_eq" => b"^=",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        lex(text.as_bytes(), 0..text.len(), false).tokens.iter().map(|token| &text[token.range()]).collect()
    }

    #[test]
    fn strings_comments_and_numbers_hide_nothing_and_leak_nothing() {
        assert_eq!(words("a /* for */ b // while\nc"), ["a", "b", "c"]);
        assert_eq!(words(r#"f("for (;;)", 'x', '\'')"#), ["f", "(", "\"for (;;)\"", ",", "'x'", ",", "'\\''", ")"]);
        assert_eq!(words("R\"q(for ) \" (;;))q\" x"), ["R\"q(for ) \" (;;))q\"", "x"]);
        assert_eq!(words("1'000'000u + 0x1p-3f + 1e+5 + 0xe+1"), ["1'000'000u", "+", "0x1p-3f", "+", "1e+5", "+", "0xe", "+", "1"]);
        assert_eq!(words("\u{feff}int x;"), ["int", "x", ";"]);
        assert_eq!(words("a // one \\\n still a comment\nb"), ["a", "b"]);
    }

    #[test]
    fn a_directive_is_one_token_with_its_continuations() {
        let text = "#define LOOP(i, n) \\\n  for (int i = 0; \\\r\n i < n; ++i) /* c\n */ x\nint y;";
        let lexed = lex(text.as_bytes(), 0..text.len(), false);
        assert_eq!(lexed.directives.len(), 1);
        let Line::Define(define) = &lexed.directives[0].line else { panic!("a definition") };
        assert_eq!(&text[define.name.clone()], "LOOP");
        assert!(define.function_like);
        assert!(text[define.body.clone()].trim().starts_with('\\') && text[define.body.clone()].ends_with(" x"));
        assert_eq!(lexed.tokens.len(), 4);
    }

    #[test]
    fn an_unfinished_token_ends_with_the_text() {
        // Comments are no tokens.
        for (text, tokens) in [
            ("/* x", 0),
            ("// x\\", 0),
            ("\\", 1),
            ("\"x", 1),
            ("'", 1),
            ("R\"x(", 1),
            ("R\"", 1),
            ("#define", 1),
            ("#", 1),
            ("1e", 1),
            ("%:", 1),
        ] {
            let found = lex(text.as_bytes(), 0..text.len(), false).tokens;
            assert_eq!((found.len(), found.last().map_or(text.len(), |token| token.end as usize)), (tokens, text.len()), "{text}");
        }
    }
}
