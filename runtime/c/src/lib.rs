//! The C interface of cuinstr: `include/cuinstr.h` says what it promises.
//!
//! [`exports`], [`processes`] and [`snapshots`] take what C gives and hand it on, and are the only places with unsafe code; `rewriting` and `guarding` do what is
//! asked; [`layout`] holds the structs that both sides share; [`status`] turns errors into numbers and messages; `handles` maps numbers to what they stand for.

pub mod exports;
mod guarding;
mod handles;
pub mod layout;
pub mod processes;
mod rewriting;
pub mod snapshots;
pub mod status;
