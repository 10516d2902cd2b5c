//! The kernel files with their headers, and the line on which each hang is expected.

use crate::header::{Header, Place};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Where a hang never ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HangLine {
    /// File name, of the kernel file or of a header beside it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Lines marked `// IN HANG`: loops inside it, in which threads may be found just as well.
    pub inside: Vec<u32>,
    /// What stands there.
    pub text: String,
}

/// One kernel file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fixture {
    /// `saxpy`, `hang/while_true` or `probe/nap`.
    pub name: String,
    /// Path from the workspace's root.
    pub path: String,
    /// Its header.
    pub header: Header,
    /// The line marked `// HANG`.
    pub hang: Option<HangLine>,
}

impl Fixture {
    /// Reads one file; `path` counts from the workspace's root.
    ///
    /// # Errors
    /// Names the file and what is wrong with it or its header.
    pub fn read(path: &Path, prefix: &str, place: Place) -> Result<Self, String> {
        let shown = path.display();
        let text = text(path)?;
        let header = Header::parse(&text, place).map_err(|why| format!("{shown}: {why}"))?;
        let mut hang = hang_line(path, &text);
        for also in &header.also {
            let beside = path.with_file_name(also);
            hang = hang.or(hang_line(&beside, &self::text(&beside)?));
        }
        if place == Place::Hang && hang.is_none() {
            return Err(format!("{shown}: no line is marked `// HANG`"));
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Self { name: format!("{prefix}{stem}"), path: relative(path), header, hang })
    }

    /// Tier of a hang, 0 for what does not hang.
    #[must_use]
    pub fn tier(&self) -> u8 {
        self.header.tier.unwrap_or(0)
    }

    /// Folder of the file.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        workspace().join(&self.path).parent().map(Path::to_path_buf).unwrap_or_default()
    }
}

/// Every kernel, hang and probe, in order of their names within their folders.
///
/// # Errors
/// Everything that is wrong with any file, one a line.
pub fn all() -> Result<Vec<Fixture>, String> {
    read(&[("kernels", "", Place::Kernel), ("kernels/hang", "hang/", Place::Hang), ("tests/kernels", "probe/", Place::Kernel)])
}

/// The benchmarks, in order of their names.
///
/// # Errors
/// Everything that is wrong with any file, one a line.
pub fn benchmarks() -> Result<Vec<Fixture>, String> {
    read(&[("kernels/bench", "bench/", Place::Bench)])
}

/// The experiments with hardware state, and what checks after them.
///
/// # Errors
/// Everything that is wrong with any file, one a line.
pub fn experiments() -> Result<Vec<Fixture>, String> {
    read(&[("tests/kernels/hardware", "hardware/", Place::Kernel)])
}

/// The barriers whose cost is compared.
///
/// # Errors
/// Everything that is wrong with any file, one a line.
pub fn barriers() -> Result<Vec<Fixture>, String> {
    read(&[("tests/kernels/barriers", "barriers/", Place::Kernel)])
}

fn read(folders: &[(&str, &str, Place)]) -> Result<Vec<Fixture>, String> {
    let (mut fixtures, mut errors) = (Vec::new(), Vec::new());
    for &(folder, prefix, place) in folders {
        for path in files(&workspace().join(folder)) {
            match Fixture::read(&path, prefix, place) {
                Ok(fixture) => fixtures.push(fixture),
                Err(error) => errors.push(error),
            }
        }
    }
    if errors.is_empty() { Ok(fixtures) } else { Err(errors.join("\n")) }
}

/// The workspace's root: `CUINSTR_WORKSPACE` names it where tests run on another machine, else it is as it was when this crate was compiled.
///
/// # Panics
/// Never: the crate lies in a folder of the workspace.
#[must_use]
pub fn workspace() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let built =
            || Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate lies in a folder of the workspace's tests");
        std::env::var_os("CUINSTR_WORKSPACE").map_or_else(|| built().to_owned(), PathBuf::from)
    });
    &ROOT
}

/// The `.cu` files of a folder in order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|extension| extension == "cu")).collect();
    files.sort();
    files
}

/// A source file's text; comments in other encodings than UTF-8 are none of our business here.
fn text(path: &Path) -> Result<String, String> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

fn hang_line(path: &Path, text: &str) -> Option<HangLine> {
    let (index, line) = text.lines().enumerate().find(|(_, line)| line.contains("// HANG"))?;
    let inside = text.lines().enumerate().filter(|(_, line)| line.contains("// IN HANG")).map(|(index, _)| index as u32 + 1).collect();
    let file = path.file_name()?.to_string_lossy().into_owned();
    Some(HangLine { file, line: index as u32 + 1, inside, text: line.trim().to_owned() })
}

fn relative(path: &Path) -> String {
    path.strip_prefix(workspace()).unwrap_or(path).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_is_right() {
        let fixtures = all().unwrap_or_else(|errors| panic!("{errors}"));
        assert!(benchmarks().unwrap_or_else(|errors| panic!("{errors}")).len() >= 24);
        assert!(fixtures.iter().any(|fixture| fixture.name.starts_with("probe/")));
        for hang in fixtures.iter().filter(|fixture| fixture.name.starts_with("hang/")) {
            assert!((1..=3).contains(&hang.tier()), "{}", hang.name);
        }
    }

    #[test]
    fn the_marked_line_is_found() {
        let found = hang_line(Path::new("k/a.cu"), "int x;\n  for (;;) ; // HANG\n").expect("it is there");
        assert_eq!((found.file.as_str(), found.line, found.text.as_str()), ("a.cu", 2, "for (;;) ; // HANG"));
    }
}
