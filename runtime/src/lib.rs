//! What a kernel rewritten by `cuinstr` and the host that stops it agree on.
//!
//! This crate holds the one definition of the [control block](control::ControlBlock): the Rust struct, the C text that the
//! rewriter puts in front of each kernel, and the table in `docs/ABI.md` all come from it.

#![forbid(unsafe_code)]

pub mod control;
