//! Makes CUDA kernels stoppable: rewrites source so that every loop and every exit asks "must I stop?".
//!
//! [`rewrite`] is the whole of it, a pure function from text to text. The way through it, in reading order:
//! `token` (lexer) → `structure` (brackets, functions, statements) → `tree` (mask and second opinion by tree-sitter) →
//! `plan` (what each site gets) → `apply` (insertions and site map).

#![forbid(unsafe_code)]

pub mod diagnostic;
pub mod options;
pub mod render;
pub mod site;

use diagnostic::Diagnostic;
use options::Options;
use site::{SiteMap, Summary};

/// What a rewrite gives back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Rewrite {
    /// The rewritten source; absent if any diagnostic is an error.
    pub output: Option<Vec<u8>>,
    /// Every site.
    pub sites: SiteMap,
    /// Everything there is to say, in order of offsets.
    pub diagnostics: Vec<Diagnostic>,
    /// Numbers.
    pub summary: Summary,
}

/// Rewrites one file.
pub fn rewrite(source: &[u8], options: &Options) -> Rewrite {
    let _ = source;
    Rewrite {
        output: None,
        sites: SiteMap { version: SiteMap::VERSION, file: options.path.clone(), hash: String::new(), polls_each: false, sites: Vec::new() },
        diagnostics: Vec::new(),
        summary: Summary::default(),
    }
}
