//! The function or lambda that a loop stands in.

use crate::source::analysis::file_facts::FileFacts;
use crate::source::syntax::statement::Body;
use std::ops::Range;

/// The function or lambda that a loop stands in.
pub(crate) struct FunctionScope<'a> {
    pub(crate) facts: &'a FileFacts<'a>,
    pub(crate) body: &'a Body,
    /// From the function's first word to the brace that ends it.
    pub(crate) range: Range<usize>,
    /// The brace that opens it.
    pub(crate) open: usize,
    /// The host, or the compiler, may run it too.
    pub(crate) host_too: bool,
}
