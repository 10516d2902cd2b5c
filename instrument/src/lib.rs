//! Makes CUDA kernels stoppable: rewrites source so that every loop and every exit asks "must I stop?".
//!
//! [`rewrite`] is the whole of it, a pure function from text to text. The way through it, each arrow one module:
//!
//! text → `token` (lexer) → `fragment` (brackets, `#if` arms) → `macros`, `function` (what is device code) → `statement` (loops, jumps,
//! barriers) → `tree` (tree-sitter's second opinion) and `census` (what is left over) → `plan` (what each site gets; `place`, `cost`, `bound`,
//! `read_only`, `declaration`, `calls`, `hardware`, `exit`, `release`, `brief`, `asm` answer its questions; `poll` spells it) → `waiver` → `apply` and [`prelude`] → text and [site map](site::SiteMap).

#![forbid(unsafe_code)]

#[cfg(feature = "build")]
pub mod build;
mod common;
#[cfg(feature = "launcher")]
pub mod launcher;
mod polls;
#[cfg(feature = "project")]
pub mod project;
mod source;

pub use cuinstr_verify as verify;

#[cfg(feature = "project")]
pub use common::nearest;
pub use common::rewrite::Rewrite;
pub use common::{diagnostic, duration, options, position, render, site};
pub use polls::{is_ptx, rewrite_ptx};
pub use source::emit::prelude;
pub use source::rewrite;
