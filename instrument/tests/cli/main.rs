//! The command as its users see it: files, streams and exit codes.

mod arguments;
mod audit;
mod checkpoint;
mod config;
mod diagnostics;
mod files;
mod gpus;
mod project;
mod rewriting;
mod verify;
