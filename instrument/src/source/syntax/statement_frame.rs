//! What a reader of statements is in the middle of.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// `{ … }` of statements.
    Block {
        scope: u32,
    },
    /// `{ … }` of a class.
    Members,
    /// `{ … }` of values, or `( … )`, `[ … ]`.
    Group,
    /// An expression or declaration up to its semicolon; the flag says that it began with `class` or the like.
    Expression {
        class_head: bool,
    },
    /// The header of a loop comes next.
    Header {
        index: u32,
    },
    /// The body of a loop comes next.
    LoopBody {
        index: u32,
    },
    DoBody {
        index: u32,
    },
    /// `while` comes next.
    DoTail {
        index: u32,
    },
    /// Its parentheses, then a semicolon.
    DoCondition {
        index: u32,
    },
    /// The parentheses of `if`, `switch`, `catch` come next, then a statement.
    Condition {
        is_if: bool,
    },
    Then,
    Else,
    /// A block or statement behind a macro.
    MacroBody {
        index: u32,
    },
    /// `case …` up to its colon.
    CaseLabel,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) frame: Frame,
    pub(super) parent: u32,
    pub(super) scope: u32,
    pub(super) innermost_loop: u32,
}

/// An arm of an `#if`.
pub(super) struct Arm {
    pub(super) saved: (u32, bool),
    pub(super) first_end: Option<(u32, bool)>,
    /// How many nodes there were when it began.
    pub(super) nodes: usize,
}
