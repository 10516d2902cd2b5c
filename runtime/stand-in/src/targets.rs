//! Processes that tests suspend and resume: what the stand-in knows of them is files of one folder (processes.rs).

use crate::client;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use tempfile::TempDir;

/// A machine with the stand-in for its driver, and the processes that it knows.
#[derive(Debug)]
pub struct Machine {
    driver: TempDir,
    known: TempDir,
}

/// A process that does nothing. It ends when this is dropped.
#[derive(Debug)]
pub struct Target(pub Child);

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Target {
    /// One that the stand-in knows nothing of.
    ///
    /// # Panics
    /// If there is no `sleep`.
    #[must_use]
    pub fn unknown() -> Self {
        Self(Command::new("sleep").arg("1000").spawn().expect("sleep"))
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> i64 {
        i64::from(self.0.id())
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine {
    /// One that knows no process.
    ///
    /// # Panics
    /// If there is no folder for it, or cargo built no stand-in beside this program.
    #[must_use]
    pub fn new() -> Self {
        let (driver, known) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        client::install(driver.path()).expect("the stand-in beside this test");
        Self { driver, known }
    }

    /// The folder with what is known.
    #[must_use]
    pub fn known(&self) -> &Path {
        self.known.path()
    }

    /// The folder with the driver.
    #[must_use]
    pub fn driver(&self) -> &Path {
        self.driver.path()
    }

    /// The file of a process or of a GPU.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.known().join(name)
    }

    /// The variables that lead a program to this machine; `rules` are further commands for the stand-in.
    #[must_use]
    pub fn variables(&self, rules: &str) -> [(&'static str, String); 2] {
        let commands = format!("processes {};{rules}", self.known().display());
        [("LD_LIBRARY_PATH", self.driver().display().to_string()), ("CUINSTR_STAND_IN", commands)]
    }

    /// Writes down facts: a word and a number for each.
    ///
    /// # Panics
    /// If the folder can't be written.
    pub fn know(&self, name: &str, facts: &[(&str, u64)]) {
        let lines: Vec<String> = facts.iter().map(|(word, number)| format!("{word} {number}\n")).collect();
        fs::write(self.file(name), lines.concat()).expect("a file");
    }

    /// A process with these facts.
    #[must_use]
    pub fn target(&self, facts: &[(&str, u64)]) -> Target {
        let target = Target::unknown();
        self.know(&target.pid().to_string(), facts);
        target
    }
}
