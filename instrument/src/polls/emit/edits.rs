//! Insertions into a PTX text. A text that stands in many places is kept once.

use std::fmt;
use std::ops::Range;

/// A text that stands in many places, by its number in [`Edits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::polls) struct Common(u32);

/// Insertions, in any order. Of several at one offset, the first comes first.
#[derive(Debug, Default)]
pub(in crate::polls) struct Edits {
    /// Texts that stand in one place, one behind the other.
    own: String,
    common: Vec<String>,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
struct Piece {
    /// Offset in the input of the byte that the piece stands in front of.
    at: u32,
    /// Whether it is the first of its insertion.
    begins: bool,
    what: What,
}

#[derive(Debug)]
enum What {
    Own(Range<usize>),
    Common(Common),
    /// A text as a list of its bytes.
    Bytes(String),
}

impl Edits {
    /// Keeps a text for [`Insertion::common`].
    pub(in crate::polls) fn keep(&mut self, text: String) -> Common {
        self.common.push(text);
        Common(self.common.len() as u32 - 1)
    }

    /// Begins an insertion in front of the byte at an offset.
    pub(in crate::polls) fn at(&mut self, at: u32) -> Insertion<'_> {
        Insertion { edits: self, at, begins: true }
    }

    /// The text with all insertions, and where in it they stand.
    ///
    /// # Panics
    /// If an insertion lies outside the text: a bug of the pass.
    pub(in crate::polls) fn apply(mut self, source: &[u8]) -> (Vec<u8>, Vec<Range<usize>>) {
        self.pieces.sort_by_key(|piece| piece.at);
        let inserted: usize = self.pieces.iter().map(|piece| self.length(piece)).sum();
        let mut out = Vec::with_capacity(source.len() + inserted);
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let mut copied = 0;
        for piece in &self.pieces {
            let at = piece.at as usize;
            out.extend_from_slice(&source[copied..at]);
            let start = out.len();
            self.write(piece, &mut out);
            match ranges.last_mut() {
                Some(last) if !piece.begins => last.end = out.len(),
                _ => ranges.push(start..out.len()),
            }
            copied = at;
        }
        out.extend_from_slice(&source[copied..]);
        (out, ranges)
    }

    fn length(&self, piece: &Piece) -> usize {
        match &piece.what {
            What::Own(range) => range.len(),
            What::Common(Common(number)) => self.common[*number as usize].len(),
            // At most three digits and a comma for each.
            What::Bytes(text) => text.len() * 4,
        }
    }

    fn write(&self, piece: &Piece, out: &mut Vec<u8>) {
        match &piece.what {
            What::Own(range) => out.extend_from_slice(self.own[range.clone()].as_bytes()),
            What::Common(Common(number)) => out.extend_from_slice(self.common[*number as usize].as_bytes()),
            What::Bytes(text) => {
                for byte in text.bytes() {
                    let digits = [b'0' + byte / 100, b'0' + byte / 10 % 10, b'0' + byte % 10, b','];
                    out.extend_from_slice(&digits[if byte < 10 { 2 } else { usize::from(byte < 100) }..]);
                }
                out.pop();
            }
        }
    }
}

/// What stands in front of one byte. `write!` adds to it.
pub(in crate::polls) struct Insertion<'e> {
    edits: &'e mut Edits,
    at: u32,
    begins: bool,
}

impl Insertion<'_> {
    /// Adds a text of its own.
    pub(in crate::polls) fn push(&mut self, text: &str) {
        let own = &mut self.edits.own;
        let start = own.len();
        own.push_str(text);
        match self.edits.pieces.last_mut() {
            Some(Piece { what: What::Own(range), .. }) if !self.begins => range.end = own.len(),
            _ => {
                let range = start..own.len();
                self.add(What::Own(range));
            }
        }
    }

    /// Adds a text that stands in many places.
    pub(in crate::polls) fn common(&mut self, text: Common) {
        self.add(What::Common(text));
    }

    /// Adds a text as a list of its bytes.
    pub(in crate::polls) fn bytes(&mut self, text: String) {
        self.add(What::Bytes(text));
    }

    fn add(&mut self, what: What) {
        self.edits.pieces.push(Piece { at: self.at, begins: self.begins, what });
        self.begins = false;
    }
}

impl fmt::Write for Insertion<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    #[test]
    fn insertions_come_in_order() {
        let mut edits = Edits::default();
        let twice = edits.keep("<>".to_owned());
        edits.at(2).push("b");
        let mut first = edits.at(1);
        first.common(twice);
        let _ = write!(first, "a{}", 1);
        edits.at(2).common(twice);
        edits.at(3).bytes("!cd".to_owned());
        let (text, ranges) = edits.apply(b"xyz");
        assert_eq!(String::from_utf8(text).as_deref(), Ok("x<>a1yb<>z33,99,100"));
        assert_eq!(ranges, [1..5, 6..7, 7..9, 10..19]);
    }
}
