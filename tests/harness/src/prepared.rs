//! A prepared folder, which travels to a machine with a GPU together with the program that reads it.

use serde::Serialize;
use std::path::{Path, PathBuf};

/// The folder that the command line names, or the one in which this program lies.
#[must_use]
pub fn folder(named: Option<PathBuf>) -> PathBuf {
    let beside = || std::env::current_exe().ok().and_then(|program| program.parent().map(Path::to_path_buf)).unwrap_or_default();
    named.unwrap_or_else(beside)
}

/// Writes what was found, once as JSON and once as text: `NAME.json` and `NAME.ENDING`.
///
/// # Errors
/// What the system says if the folder can't be written.
pub fn write(out: &Path, name: &str, found: &impl Serialize, (ending, text): (&str, &str)) -> Result<(), String> {
    let told = |error: std::io::Error| format!("{}: {error}", out.display());
    std::fs::create_dir_all(out).map_err(told)?;
    let json = serde_json::to_string_pretty(found).map_err(|error| error.to_string())?;
    std::fs::write(out.join(name).with_extension("json"), json + "\n").map_err(told)?;
    std::fs::write(out.join(name).with_extension(ending), text).map_err(told)
}
