//! The helper process for programs that can't be their own: give its path to `Helper::of_program`, or to `cuinstr_checkpoint_helper` in C.

use std::process::ExitCode;

fn main() -> ExitCode {
    cuinstr_checkpoint::serve_if_asked();
    eprintln!(
        "cuinstr-checkpoint {}: makes the driver's checkpoint calls for another program, which starts it with a socket as its standard input.\n\
         There is nothing to do by hand: `cuinstr checkpoint --help` has the commands.",
        env!("CARGO_PKG_VERSION")
    );
    ExitCode::from(2)
}
