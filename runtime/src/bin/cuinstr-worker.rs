//! The worker process for programs that can't be their own: give its path to `cuinstr_runtime::worker::Builder::program`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cuinstr_runtime::worker::serve_if_asked();
    eprintln!(
        "cuinstr-worker {}: runs CUDA kernels for another program, which starts it with a pipe as its standard input.\n\
         There is nothing to do by hand; see cuinstr_runtime::worker::Builder::program.",
        env!("CARGO_PKG_VERSION")
    );
    ExitCode::from(2)
}
