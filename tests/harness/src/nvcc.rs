//! The CUDA compiler, wherever it is.

use crate::fixtures::workspace;
use crate::process::{self, Finished};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The architecture that is built for, unless a plan says otherwise.
pub const ARCH: &str = "sm_90";
/// What experiments with hardware state are built for: some constructs exist for one architecture only.
pub const EXACT_ARCH: &str = "sm_90a";
/// Longest that one compilation may take.
const LIMIT: Duration = Duration::from_secs(900);

/// A compiler that answered; get one with [`Nvcc::find`].
#[derive(Debug, Clone)]
pub struct Nvcc {
    /// The program.
    pub path: PathBuf,
    /// Its toolkit's release, such as `13.0`.
    pub release: String,
    /// The line of `--version` that tells one build from another.
    pub build: String,
}

impl Nvcc {
    /// Looks in `CUDA_HOME`, then on `PATH`, then in the workspace's ignored folder `.cuda` where `scripts/fetch-cuda` puts it. An empty
    /// `CUDA_HOME` counts as none; one without a compiler is an error, not a reason to look elsewhere.
    ///
    /// # Errors
    /// Says where it looked, or what the program that it found answered.
    pub fn find() -> Result<Self, String> {
        if let Some(home) = std::env::var_os("CUDA_HOME").filter(|home| !home.is_empty()) {
            return Self::at(&Path::new(&home).join("bin/nvcc")).map_err(|why| format!("CUDA_HOME: {why}"));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let fetched = workspace().join(".cuda/bin/nvcc");
        let candidates = std::env::split_paths(&path).map(|folder| folder.join("nvcc")).chain([fetched]);
        match candidates.into_iter().find(|candidate| candidate.is_file()) {
            Some(found) => Self::at(&found),
            None => Err("no nvcc in CUDA_HOME, on PATH or in .cuda (scripts/fetch-cuda fetches one)".into()),
        }
    }

    /// The compiler at a path.
    ///
    /// # Errors
    /// If it does not run, or does not answer as nvcc does.
    pub fn at(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let answer = process::run(Command::new(path).arg("--version"), LIMIT).map_err(|error| format!("{shown}: {error}"))?;
        let lines: Vec<&str> = answer.stdout.lines().map(str::trim).collect();
        let release = lines.iter().find_map(|line| line.split_once("release ")?.1.split(',').next());
        match (answer.success(), release, lines.last()) {
            (true, Some(release), Some(build)) => {
                Ok(Self { path: path.to_owned(), release: release.to_owned(), build: (*build).to_owned() })
            }
            _ => Err(format!("{shown} is no nvcc: {}{}", answer.stdout.trim(), answer.stderr.trim())),
        }
    }

    /// Runs it; a compilation that takes more than two minutes is killed.
    ///
    /// # Errors
    /// If it can't be started.
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<Finished, String> {
        process::run(Command::new(&self.path).args(args), LIMIT).map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_compiler_is_an_error() {
        assert!(Nvcc::at(Path::new("/bin/true")).is_err_and(|why| why.contains("is no nvcc")));
        assert!(Nvcc::at(Path::new("/nowhere/nvcc")).is_err());
    }
}
