//! The command. `cuinstr --help` says what it does; [`command`] does it.

#![forbid(unsafe_code)]

mod command;

use std::process::ExitCode;

fn main() -> ExitCode {
    match command::run(std::env::args_os()) {
        Ok(status) => status.into(),
        Err(error) => {
            // Nobody may be left to read this either; the exit code says it too.
            let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("error: {error:#}\n"));
            command::Status::Io.into()
        }
    }
}
