//! Modules that all parts of the crate share: options, diagnostics, sites, and insertions into a text. Nothing here knows CUDA's syntax.

pub(crate) mod block_decision;
pub mod diagnostic;
pub mod duration;
pub(crate) mod edit;
#[cfg(feature = "project")]
pub mod nearest;
pub mod options;
pub(crate) mod poll_interval;
pub mod position;
pub mod render;
pub(crate) mod rewrite;
pub mod site;
pub(crate) mod waiver;
