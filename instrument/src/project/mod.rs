//! What surrounds a source: the file that it lies in, and its project's `cuinstr.toml`.

pub mod config;
pub mod environment;
mod glob;
pub mod include;
pub mod input;
mod sources;
