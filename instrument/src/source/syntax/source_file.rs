//! A file as all parts of the source pass see it.

use crate::common::options::Options;
use crate::common::position::LineIndex;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::Lexed;
use std::ops::Range;

/// A text with its tokens, its macros, and the options of its rewrite.
pub(crate) struct SourceFile<'a> {
    pub(crate) source: &'a [u8],
    pub(crate) lexed: &'a Lexed,
    pub(crate) macros: &'a Macros<'a>,
    pub(crate) options: &'a Options,
    pub(crate) lines: &'a LineIndex,
    /// Texts between directives that are never compiled, in their order.
    pub(crate) dead: &'a [Range<usize>],
    /// Hash of path and text, which site ids are made from.
    pub(crate) hash: u64,
}
