//! The launcher as build systems see it: `cuinstr nvcc …`, in place of nvcc. Most of it is shown with a shim that
//! stands in for nvcc. The shim records how it was called, and has the host's compiler preprocess, as nvcc does; the
//! rest needs nvcc itself.

#[macro_use]
extern crate cuinstr_trial;

mod arguments;
mod cargo;
mod coverage;
mod doors;
mod failures;
mod half;
mod headers;
mod hook;
mod macros;
mod project;
mod quotes;
mod recursion;
mod run;
mod toolkit;
mod unlucky;

fn main() -> std::process::ExitCode {
    cuinstr_trial::main()
}
