//! Statements of device functions, read from tokens alone: loops with their extents, jumps, barriers, macros in statement position,
//! lambdas and local classes.

use std::collections::BTreeMap;

/// Which keyword a loop has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopKind {
    For,
    RangeFor,
    While,
    Do,
}

/// A loop, as token indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Loop {
    pub(crate) kind: LoopKind,
    pub(crate) keyword: usize,
    /// Parentheses of the header; for `do` those of its `while`.
    pub(crate) header: Option<(usize, usize)>,
    /// First token of the body.
    pub(crate) body: usize,
    /// Last token of the body, if the end was found.
    pub(crate) body_end: Option<usize>,
    /// Last token of the whole statement.
    pub(crate) end: Option<usize>,
    /// Index into [`Body::scopes`].
    pub(crate) scope: usize,
    /// The loop around it, in the same pass.
    pub(crate) outer: Option<usize>,
}

/// A function's body, or a lambda's or local method's inside it. A `return` leaves it, and its local variables are visible in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The brace that opens it; for a macro's body the first token.
    pub(crate) open: usize,
    /// The scope around it.
    pub(crate) outer: Option<usize>,
}

/// A macro followed by a block or a bare statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MacroUse {
    pub(crate) name: usize,
    /// Parentheses of its arguments, if any.
    pub(crate) arguments: Option<(usize, usize)>,
    /// The brace of the block behind it, or none where a bare statement follows.
    pub(crate) block: Option<usize>,
    pub(crate) scope: usize,
    /// Last token of the statement or block behind it.
    pub(crate) end: Option<usize>,
}

/// A `goto`, a `return`, a barrier or an `asm` statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) token: usize,
    pub(crate) scope: usize,
    /// The innermost loop around it.
    pub(crate) inside: Option<usize>,
}

/// The statements of one body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) loops: Vec<Loop>,
    pub(crate) scopes: Vec<Scope>,
    /// Labels by their name's token.
    pub(crate) labels: Vec<Simple>,
    /// The first token of each label, by its name.
    pub(crate) label_places: BTreeMap<Vec<u8>, usize>,
    pub(crate) gotos: Vec<Simple>,
    pub(crate) returns: Vec<Simple>,
    /// `__syncthreads();` as a statement of its own: token of the name.
    pub(crate) barriers: Vec<Simple>,
    pub(crate) asms: Vec<Simple>,
    pub(crate) macro_uses: Vec<MacroUse>,
    /// Words in front of a loop or statement that only the preprocessor understands: token ranges, inclusive.
    pub(crate) prefixes: Vec<(usize, usize)>,
    /// Loop keywords that the pass could not place.
    pub(crate) lost: Vec<usize>,
    /// Whether no brace opens it, so that nothing can be declared where it begins: a macro's body, or code outside every function.
    pub(crate) bare: bool,
}
