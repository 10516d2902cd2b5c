//! The C interface of cuinstr: `include/cuinstr.h` says what it promises.
//!
//! - [`exports`], [`processes`] and [`snapshots`] take the arguments from C. They alone have unsafe code.
//! - `rewriting` and `guarding` do the work.
//! - [`layout`] holds the structs that both sides share.
//! - [`status`] turns errors into numbers and messages.
//! - `handles` maps numbers to what they stand for.

pub mod exports;
mod guarding;
mod handles;
pub mod layout;
pub mod processes;
mod rewriting;
pub mod snapshots;
pub mod status;
