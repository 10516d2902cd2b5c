//! Makes CUDA kernels stoppable: rewrites source so that every loop and every exit asks "must I stop?".
//!
//! [`rewrite`] takes and gives back text, and does nothing else. The text passes these folders, each of which imports only those before it:
//!
//! 1. `source/syntax`: tokens, brackets, macros, functions, statements.
//! 2. `source/analysis`: facts about loops, expressions and calls.
//! 3. `source/plan`: the decision what each site gets.
//! 4. `source/emit`: the text of polls, and the prelude.
//!
//! [`rewrite_ptx`] does the same for PTX (`polls`), and [`verify`] proves the result. `common` holds what all of them share.

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
pub use polls::{is_ptx, rewrite_ptx, rewrite_ptx_with_fuel};
pub use source::emit::prelude;
pub use source::rewrite;
