//! The command as its users see it: files, streams and exit codes.

#[macro_use]
extern crate cuinstr_trial;

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

fn main() -> std::process::ExitCode {
    cuinstr_trial::main()
}
