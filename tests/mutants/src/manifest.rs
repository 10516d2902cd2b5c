//! What was built, in a form that another machine can run.

use crate::judge::Program;
use crate::suite::Tests;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// All faults of a build, and the tests that judge them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Of the faults that were chosen: verdicts of others are none of these.
    pub(crate) digest: String,
    pub(crate) seed: u64,
    /// The copy of the tree that the programs were built from, which they read their data from.
    pub(crate) tree: PathBuf,
    pub(crate) tests: Vec<Runnable>,
    pub(crate) parts: Vec<Part>,
}

/// Tests and their program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Runnable {
    pub(crate) tests: Tests,
    pub(crate) program: Program,
}

/// A part of the code with its faults.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// How many faults cargo-mutants knows of it.
    pub(crate) known: usize,
    /// How many of those looked at have no form that can be switched.
    pub(crate) without_form: usize,
    /// How many of those chosen do not compile.
    pub(crate) broken: usize,
    pub(crate) mutants: Vec<Numbered>,
    /// Indices of tests.
    pub(crate) tests: Vec<usize>,
}

/// A fault and its number.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Numbered {
    pub(crate) number: usize,
    pub(crate) name: String,
}

/// How a fault fared.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Verdict {
    pub(crate) digest: String,
    pub(crate) number: usize,
    /// The test programs that execute the fault's place and were run.
    pub(crate) reached: Vec<String>,
    /// The test that noticed.
    pub(crate) by: Option<String>,
    pub(crate) seconds: f64,
}

impl Verdict {
    pub(crate) fn line(&self, manifest: &Manifest) -> String {
        let all = manifest.parts.iter().flat_map(|part| &part.mutants);
        let name = all.clone().find(|mutant| mutant.number == self.number).map_or("?", |mutant| mutant.name.as_str());
        match (&self.by, self.reached.is_empty()) {
            (Some(by), _) => format!("noticed   {:4}  {name}  ({by}, {:.0} s)", self.number, self.seconds),
            (None, false) => format!("SURVIVES  {:4}  {name}  ({:.0} s)", self.number, self.seconds),
            (None, true) => format!("SURVIVES  {:4}  {name}  (no test reaches it)", self.number),
        }
    }
}

impl Manifest {
    /// The verdicts of each part, and how many were noticed.
    pub(crate) fn table(&self, verdicts: &[Verdict]) -> String {
        let mut text = String::new();
        for part in &self.parts {
            let own: Vec<&Verdict> =
                part.mutants.iter().filter_map(|mutant| verdicts.iter().find(|verdict| verdict.number == mutant.number)).collect();
            let noticed = own.iter().filter(|verdict| verdict.by.is_some()).count();
            for verdict in own.iter().filter(|verdict| verdict.by.is_none()) {
                text.push_str(&verdict.line(self));
                text.push('\n');
            }
            text.push_str(&format!(
                "{}: {noticed} of {} noticed, {} not judged; {} known, {} that do not compile, {} without a form, seed {}\n",
                part.name,
                own.len(),
                part.mutants.len() - own.len(),
                part.known,
                part.broken,
                part.without_form,
                self.seed
            ));
        }
        text
    }

    /// Puts all that another machine needs into a folder.
    pub(crate) fn pack(&self, folder: &Path, others: impl IntoIterator<Item = PathBuf>) -> Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("manifest.json"), serde_json::to_vec_pretty(self)?)?;
        let staging = folder.join("staging");
        let programs = self.tests.iter().map(|runnable| runnable.program.path.clone());
        let mut names = BTreeSet::new();
        for file in programs.chain(others) {
            let name = file.strip_prefix("/")?.to_owned();
            strip(&file, &staging.join(&name))?;
            names.insert(name);
        }
        strip(&std::env::current_exe()?, &folder.join("mutants"))?;
        let mut command = Command::new("tar");
        command.args(["--create", "--xz", "--file"]).arg(folder.join("programs.tar.xz")).arg("--directory").arg(&staging).args(names);
        // Links lead to compilers of this machine.
        command.args(["--exclude", "*/tree/.c*", "--directory", "/"]).arg(self.tree.strip_prefix("/")?);
        ensure!(command.env("XZ_OPT", "-6 -T2").status()?.success(), "tar fails");
        fs::remove_dir_all(&staging)?;
        Ok(())
    }

    /// Reads such a folder. Puts the programs and their tree where they were built.
    pub(crate) fn unpack(folder: &Path) -> Result<Self> {
        let manifest = folder.join("manifest.json");
        let manifest: Self = serde_json::from_slice(&fs::read(&manifest).with_context(|| manifest.display().to_string())?)?;
        if !manifest.tests.iter().all(|runnable| runnable.program.path.is_file()) {
            let archive = folder.join("programs.tar.xz");
            let status = Command::new("tar").args(["--extract", "--file"]).arg(&archive).args(["--directory", "/"]).status()?;
            ensure!(status.success(), "tar can't take {} apart", archive.display());
        }
        Ok(manifest)
    }
}

/// A program without its symbols.
fn strip(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("a folder")?)?;
    let status = Command::new("strip").arg("-o").args([to, from]).status().context("strip")?;
    ensure!(status.success(), "strip {} fails", from.display());
    Ok(())
}
