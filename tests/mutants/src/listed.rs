//! The faults as `cargo mutants --list --json` names them.

use anyhow::{Context, Result, ensure};
use proc_macro2::LineColumn;
use serde::Deserialize;
use std::path::Path;
use std::process::Command;

/// What kind of fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Genre {
    BinaryOperator,
    UnaryOperator,
    FnValue,
    MatchArm,
    MatchArmGuard,
    /// A field is left out of a struct that takes the rest from another: this has no form that can be switched.
    StructField,
}

/// A line and a column, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct Place {
    line: usize,
    column: usize,
}

impl From<LineColumn> for Place {
    fn from(at: LineColumn) -> Self {
        Self { line: at.line, column: at.column + 1 }
    }
}

impl Place {
    /// Its byte in the text.
    pub(crate) fn offset(self, text: &str) -> usize {
        let line: usize = text.split_inclusive('\n').take(self.line - 1).map(str::len).sum();
        line + text[line..].chars().take(self.column - 1).map(char::len_utf8).sum::<usize>()
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Span {
    pub(crate) start: Place,
    pub(crate) end: Place,
}

/// A fault.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Mutant {
    pub(crate) file: String,
    pub(crate) genre: Genre,
    pub(crate) name: String,
    pub(crate) replacement: String,
    pub(crate) span: Span,
}

/// All faults of these files, and of the files in these folders.
pub(crate) fn list(root: &Path, paths: &[String]) -> Result<Vec<Mutant>> {
    let mut command = Command::new("cargo");
    command.args(["mutants", "--workspace", "--list", "--json"]).current_dir(root);
    for path in paths {
        command.arg("-f").arg(if root.join(path).is_dir() { format!("{path}/**") } else { path.clone() });
    }
    let output = command.output()?;
    ensure!(output.status.success(), "cargo mutants: {} (cargo install cargo-mutants --locked)", String::from_utf8_lossy(&output.stderr));
    let mut mutants: Vec<Mutant> = serde_json::from_slice(&output.stdout).context("the list of cargo mutants")?;
    mutants.sort_by(|a, b| (&a.file, a.span.start, &a.name).cmp(&(&b.file, b.span.start, &b.name)));
    Ok(mutants)
}

/// The same in an order that the seed alone decides.
pub(crate) fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for last in (1..items.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        items.swap(last, usize::try_from(state % (last as u64 + 1)).unwrap_or(0));
    }
}
