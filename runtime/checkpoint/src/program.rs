//! NVIDIA's program `cuda-checkpoint`, which is all that drivers 550 to 569 have.

use crate::wire::Refusal;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program on the search path.
pub(crate) fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("cuda-checkpoint")).find(|path| path.is_file())
}

/// Runs it for a process, and gives what it prints.
fn run(program: &Path, arguments: &[&str], pid: u32) -> Result<String, Refusal> {
    let output = Command::new(program).args(arguments).args(["--pid", &pid.to_string()]).output();
    let output = output.map_err(|error| Refusal::Program(format!("{}: {error}", program.display())))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let said = [text(&output.stderr), text(&output.stdout)].into_iter().find(|text| !text.is_empty());
    Err(Refusal::Program(said.unwrap_or_else(|| output.status.to_string())))
}

/// Running to checkpointed, or back.
pub(crate) fn toggle(program: &Path, pid: u32) -> Result<(), Refusal> {
    run(program, &["--toggle"], pid).map(drop)
}

/// The state by the driver's number.
pub(crate) fn state(program: &Path, pid: u32) -> Result<u32, Refusal> {
    let said = run(program, &["--get-state"], pid)?;
    let known = ["running", "locked", "checkpointed", "failed"].iter().position(|state| said.eq_ignore_ascii_case(state));
    known.map(|number| number as u32).ok_or_else(|| Refusal::Program(format!("it tells no state, but `{said}`")))
}
