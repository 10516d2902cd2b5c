//! The C interface of cuinstr: `include/cuinstr.h` says what it promises.
//!
//! [`exports`] takes what C gives and hands it on, and is the only place with unsafe code; `rewriting` and `guarding` do what is asked; [`layout`]
//! holds the structs that both sides share; [`status`] turns errors into numbers and messages; `handles` maps numbers to what they stand for.

pub mod exports;
mod guarding;
mod handles;
pub mod layout;
mod rewriting;
pub mod status;
