//! What a kernel rewritten by `cuinstr` and the host that stops it agree on; `docs/ABI.md` in words.
//!
//! This crate holds the one definition of the [control block](control::ControlBlock): the Rust struct, the C text that the
//! rewriter puts in front of each kernel, and the table in `docs/ABI.md` all come from it. Beside it the [site map](sites::SiteMap),
//! which the rewriter writes into each module and a host reads back to name the loop that was stopped.

#![forbid(unsafe_code)]

pub mod control;
pub mod sites;
pub mod sockets;
