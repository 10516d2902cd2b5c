//! The command. `cuinstr --help` says what it does; [`command`] does it.

#![forbid(unsafe_code)]

mod command;

use std::process::ExitCode;

fn main() -> ExitCode {
    // `cuinstr checkpoint` starts this program again to make the driver's calls.
    cuinstr_checkpoint::serve_if_asked();
    // nvcc, started by this program, may call it in place of the host's compiler.
    if let Some(code) = cuinstr::launcher::answer() {
        return code.into();
    }
    // `cuinstr gpus --probe` starts it once for each GPU.
    if let Some(code) = command::answer_probe() {
        return code.into();
    }
    command::run(std::env::args_os()).unwrap_or_else(|error| {
        // The reader may have gone, too; the exit code says it as well.
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("error: {error:#}\n"));
        command::Status::Io.into()
    })
}
