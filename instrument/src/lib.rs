//! Makes CUDA kernels stoppable: rewrites source so that every loop and every exit asks "must I stop?".
//!
//! [`rewrite`] is the whole of it, a pure function from text to text. The way through it, each arrow one module:
//!
//! text → `token` (lexer) → `fragment` (brackets, `#if` arms) → `macros`, `function` (what is device code) → `statement` (loops, jumps,
//! barriers) → `tree` (tree-sitter's second opinion) and `census` (what is left over) → `plan` (what each site gets; `place`, `cost`, `bound`,
//! `read_only`, `declaration`, `calls`, `hardware`, `exit`, `release`, `brief`, `asm` answer its questions; `poll` spells it) → `waiver` → `apply` and [`prelude`] → text and [site map](site::SiteMap).

#![forbid(unsafe_code)]

mod address;
mod apply;
mod arithmetic;
mod asm;
mod bound;
mod brief;
#[cfg(feature = "build")]
pub mod build;
mod calls;
mod census;
mod chain;
mod class;
mod cost;
mod declaration;
mod definition;
mod descent;
pub mod diagnostic;
pub mod duration;
mod element;
mod exit;
mod form;
mod fragment;
mod function;
mod hardware;
mod header;
mod induction;
mod instance;
mod invariant;
mod jump;
mod keyword;
#[cfg(feature = "launcher")]
pub mod launcher;
mod macros;
#[cfg(feature = "project")]
pub mod nearest;
mod nest;
pub mod options;
mod overload;
mod place;
mod plan;
mod poll;
mod polls;
pub mod position;
pub mod prelude;
#[cfg(feature = "project")]
pub mod project;
mod read_only;
mod release;
pub mod render;
mod rewrite;
mod run_time;
mod shared;
pub mod site;
mod splice;
mod statement;
mod strip;
mod terms;
mod tile;
mod token;
mod tree;
mod unroll;
mod value;
mod waiver;

pub use cuinstr_verify as verify;
pub use polls::{is_ptx, rewrite_ptx};
pub use rewrite::{Rewrite, rewrite};
