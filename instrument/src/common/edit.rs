//! Insertions into a text. Nothing is ever taken away: without the insertions it is the input again.

use std::ops::Range;

/// Text to insert before the byte at an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) at: usize,
    /// Whether the text closes what an earlier insertion opened; of insertions at one place, these come first.
    pub(crate) closes: bool,
    pub(crate) text: String,
}

/// Applies insertions: the new text, and where in it they are.
///
/// # Panics
/// If an edit lies outside the text: a bug of the plan.
pub(crate) fn apply(source: &[u8], mut edits: Vec<Edit>) -> (Vec<u8>, Vec<Range<usize>>) {
    edits.sort_by_key(|edit| (edit.at, !edit.closes));
    let inserted: usize = edits.iter().map(|edit| edit.text.len()).sum();
    let mut out = Vec::with_capacity(source.len() + inserted);
    let mut ranges: Vec<Range<usize>> = Vec::with_capacity(edits.len());
    let mut copied = 0;
    for edit in edits {
        assert!(edit.at >= copied && edit.at <= source.len(), "an edit lies inside the text");
        out.extend_from_slice(&source[copied..edit.at]);
        copied = edit.at;
        let start = out.len();
        out.extend_from_slice(edit.text.as_bytes());
        ranges.push(start..out.len());
    }
    out.extend_from_slice(&source[copied..]);
    (out, ranges)
}
