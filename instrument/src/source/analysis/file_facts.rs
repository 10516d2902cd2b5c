//! The facts about a file that all analyses of a fragment use.

use crate::source::syntax::declaration::Declarations;
use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::Lexed;
use std::collections::{BTreeMap, BTreeSet};

/// The cost of a call of a function.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallCost {
    /// Its tokens, if nothing in it repeats.
    pub(crate) tokens: u64,
    /// Whether it has a loop in whose condition no number stands.
    pub(crate) loops: bool,
}

/// The facts about the file of a fragment.
#[derive(Clone, Copy)]
pub(crate) struct FileFacts<'a> {
    pub(crate) source: &'a [u8],
    pub(crate) lexed: &'a Lexed,
    pub(crate) fragment: &'a Fragment,
    pub(crate) macros: &'a Macros<'a>,
    pub(crate) declarations: &'a Declarations<'a>,
    /// Device functions of the fragment.
    pub(crate) functions: &'a BTreeSet<&'a [u8]>,
    /// Device functions of other files, or of this one where the fragment is a macro's body.
    pub(crate) others: &'a BTreeSet<&'a [u8]>,
    /// The cost of a call of each, in tokens.
    pub(crate) call_costs: &'a BTreeMap<&'a [u8], CallCost>,
}
