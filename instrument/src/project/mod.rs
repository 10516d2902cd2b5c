//! What surrounds a source: the file that it lies in, and its project's `cuinstr.toml`.

pub mod config;
mod glob;
pub mod input;
