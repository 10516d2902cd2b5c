//! A second opinion: tree-sitter's view of a body. Only this module names tree-sitter.
//!
//! The parser sees a copy of the body of the same length, in which everything that only the preprocessor understands is
//! blank. Offsets never move. So a loop of the tree and a loop of the tokens are the same if they begin and end at the
//! same bytes.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use tree_sitter::{ParseOptions, ParseState, Parser};

/// A loop as the grammar sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TreeLoop {
    /// `for`, `for (:)`, `while` or `do`.
    pub(crate) kind: TreeKind,
    /// First byte behind the statement.
    pub(crate) end: usize,
    /// First byte of the body.
    pub(crate) body: usize,
    /// Whether the condition of a `while` declares a variable.
    pub(crate) declares: bool,
}

/// Which statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TreeKind {
    For,
    RangeFor,
    While,
    Do,
}

/// A parser, to be used again for each body.
pub(crate) struct Grammar {
    parser: Parser,
}

impl Grammar {
    /// # Panics
    /// Never: the grammar's version is one that the library supports, which a test of this module holds.
    pub(crate) fn new() -> Self {
        let mut parser = Parser::new();
        parser.set_language(&tree_sitter_cuda::LANGUAGE.into()).expect("the grammar is of a version that tree-sitter supports");
        Self { parser }
    }

    /// Parses `mask`, whose first byte stands at `offset` of the file, as a statement. Returns its loops by the offset of their keyword.
    /// Text that the parser can't make sense of in reasonable time yields none.
    pub(crate) fn loops(&mut self, mask: &[u8], offset: usize) -> BTreeMap<usize, TreeLoop> {
        let mut loops = BTreeMap::new();
        // The work is bounded by a count of steps, not by a clock: the same text always gives the same answer.
        let mut steps = 0_usize;
        let allowed = 2_000 + mask.len() / 16;
        let mut stop = |_: &ParseState| {
            steps += 1;
            if steps > allowed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut stop);
        self.parser.reset();
        let Some(tree) = self.parser.parse_with_options(&mut |at, _| mask.get(at..).unwrap_or(&[]), None, Some(options)) else {
            return loops;
        };
        let mut cursor = tree.walk();
        loop {
            let node = cursor.node();
            let kind = match node.kind() {
                "for_statement" => Some(TreeKind::For),
                "for_range_loop" => Some(TreeKind::RangeFor),
                "while_statement" => Some(TreeKind::While),
                "do_statement" => Some(TreeKind::Do),
                _ => None,
            };
            if let (Some(kind), Some(body)) = (kind, node.child_by_field_name("body")) {
                // An empty body that the parser made up is the sign of a body it did not understand.
                let is_made_up = body.child(0).is_some_and(|child| child.is_missing()) || body.is_missing();
                if !is_made_up {
                    let declares = kind == TreeKind::While
                        && node
                            .child_by_field_name("condition")
                            .and_then(|condition| condition.child_by_field_name("value"))
                            .is_some_and(|value| value.kind().contains("declaration"));
                    loops.insert(
                        offset + node.start_byte(),
                        TreeLoop { kind, end: offset + node.end_byte(), body: offset + body.start_byte(), declares },
                    );
                }
            }
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return loops;
                }
            }
        }
    }
}

/// A copy of `source[span]` for the parser: ASCII, with the given ranges of the file blank. Newlines stay.
pub(crate) fn mask(source: &[u8], span: Range<usize>, blank: &[Range<usize>]) -> Vec<u8> {
    let mut text: Vec<u8> = source[span.clone()].iter().map(|byte| if byte.is_ascii() && *byte != 0 { *byte } else { b'_' }).collect();
    for range in blank {
        let from = range.start.clamp(span.start, span.end) - span.start;
        let to = range.end.clamp(span.start, span.end) - span.start;
        for byte in &mut text[from..to.max(from)] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_alone_is_parsed_as_a_statement() {
        let text = b"{ for (int i = 0; i < n; ++i) { g(i); } while (int x = f()) x; do { } while (y); for (auto v : w) g(v); return; }";
        let loops = Grammar::new().loops(text, 100);
        let kinds: Vec<TreeKind> = loops.values().map(|found| found.kind).collect();
        assert_eq!(kinds, [TreeKind::For, TreeKind::While, TreeKind::Do, TreeKind::RangeFor]);
        assert_eq!(*loops.keys().next().expect("four"), 102);
        assert!(loops.values().nth(1).expect("four").declares);
    }
}
