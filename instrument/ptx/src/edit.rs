//! Changes to a text that leave all its other bytes as they are.

use crate::Span;

/// Replacements and insertions, in any order.
#[derive(Debug, Clone, Default)]
pub struct Edits {
    all: Vec<(Span, String)>,
}

/// Two edits want the same bytes, or bytes that the text does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the edit of bytes {} to {} meets another or lies outside the text", .0.start, .0.end)]
pub struct EditError(pub Span);

impl Edits {
    /// No edits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a text in front of the byte at an offset. Of several at one offset, the first comes first.
    pub fn insert(&mut self, at: u32, text: impl Into<String>) {
        self.all.push((Span { start: at, end: at }, text.into()));
    }

    /// Puts a text in the place of another.
    pub fn replace(&mut self, span: Span, text: impl Into<String>) {
        self.all.push((span, text.into()));
    }

    /// The text with all edits made.
    ///
    /// # Errors
    /// If edits overlap, or one lies outside the text or within a character.
    pub fn apply(mut self, text: &str) -> Result<String, EditError> {
        // A stable sort: insertions at one place keep their order, and stand in front of what replaces the byte there.
        self.all.sort_by_key(|(span, _)| (span.start, span.end));
        let mut edited = String::with_capacity(text.len() + self.all.iter().map(|(_, new)| new.len()).sum::<usize>());
        let mut at = 0;
        for (span, new) in &self.all {
            let kept = text.get(at..span.start as usize).ok_or(EditError(*span))?;
            text.get(span.start as usize..span.end as usize).ok_or(EditError(*span))?;
            edited.push_str(kept);
            edited.push_str(new);
            at = span.end as usize;
        }
        edited.push_str(&text[at..]);
        Ok(edited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_edited_stays() {
        let mut edits = Edits::new();
        edits.insert(3, "1");
        edits.replace(Span { start: 3, end: 5 }, "X");
        edits.insert(3, "2");
        edits.insert(6, "!");
        assert_eq!(edits.apply("abcdef").as_deref(), Ok("abc12Xf!"));
    }

    #[test]
    fn edits_that_meet_are_refused() {
        for second in [Span { start: 1, end: 2 }, Span { start: 2, end: 9 }, Span { start: 2, end: 1 }] {
            let mut edits = Edits::new();
            edits.replace(Span { start: 0, end: 2 }, "");
            edits.replace(second, "");
            assert!(edits.apply("abcdef").is_err(), "{second:?}");
        }
        let mut edits = Edits::new();
        edits.insert(1, "");
        assert!(edits.apply("é").is_err());
    }
}
