//! Strings of `.debug_str` sections, which name the functions that were inlined.

use crate::Span;
use crate::constant::unsigned;
use crate::module::Module;
use crate::symbols::ByName;
use crate::token::{Kind, Lexer};

/// The strings of a module by their labels.
#[derive(Debug)]
pub struct Strings<'a> {
    text: &'a str,
    /// For each label the data behind it, up to its section's end.
    labels: ByName<'a, Span>,
}

impl<'a> Strings<'a> {
    /// Finds the labels.
    #[must_use]
    pub fn new(text: &'a str, module: &Module<'a>) -> Self {
        let mut labels = ByName::default();
        for section in &module.strings {
            let mut lexer = Lexer::within(text, *section);
            while let Some(token) = lexer.next() {
                if token.kind == Kind::Word && lexer.eat(b':') {
                    labels.insert(lexer.slice(token.span), Span { start: lexer.at as u32, end: section.end });
                }
            }
        }
        Self { text, labels }
    }

    /// The string that begins so many bytes behind a label, up to its zero; empty if there is none.
    #[must_use]
    pub fn get(&self, label: &str, offset: u32) -> String {
        let Some(data) = self.labels.get(label) else { return String::new() };
        let mut lexer = Lexer::within(self.text, *data);
        let bytes = std::iter::from_fn(move || {
            loop {
                let token = lexer.next()?;
                match token.kind {
                    Kind::Number => {
                        return Some(unsigned(lexer.slice(token.span)).and_then(|byte| u8::try_from(byte).ok()).unwrap_or(b'?'));
                    }
                    Kind::Dotted if lexer.slice(token.span) != ".b8" => return None,
                    _ => {}
                }
            }
        });
        let bytes: Vec<u8> = bytes.skip(offset as usize).take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_at_their_zero() {
        let text = ".version 9.0 .target sm_90 .section .debug_str { a:\n.b8 102,111 // .b8 1\n.b8 111\n.b8 0 b: .b8 98, 0x61, 0 c: .b8 99 .b32 100 }";
        let strings = Strings::new(text, &crate::parse(text));
        let all = [("a", 0), ("a", 1), ("a", 4), ("b", 0), ("b", 9), ("c", 0), ("d", 0)];
        assert_eq!(all.map(|(label, offset)| strings.get(label, offset)), ["foo", "oo", "ba", "ba", "", "c", ""]);
    }
}
