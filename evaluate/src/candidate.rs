//! What is to be judged: files, folders of them, lists of them, or mutants of the reference.

use crate::headers::Headers;
use crate::{Error, Result, Spec};
use cuinstr_abi::sites::hash;
use cuinstr_mutate::{Operator, sample};
use serde::{Deserialize, Serialize};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A source that may take the reference's place.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Candidate {
    /// Its name: unique among those judged together, and the same each time.
    pub name: String,
    /// What compilers and reports call it.
    pub path: String,
    /// Its text.
    pub source: Arc<[u8]>,
    /// What was changed, of a mutant.
    pub origin: Option<Origin>,
}

/// The change that made a mutant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Origin {
    /// The operator, such as `loop-bound`.
    pub operator: String,
    /// Function that was changed.
    pub function: String,
    /// Line of the change, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    /// What stood there.
    pub before: String,
    /// What stands there.
    pub after: String,
}

impl Candidate {
    /// A text under a name, which is also what compilers and reports call it.
    #[must_use]
    pub fn new(name: impl Into<String>, source: impl Into<Arc<[u8]>>) -> Self {
        let name = name.into();
        Self { path: name.clone(), name, source: source.into(), origin: None }
    }

    /// The reference, as if it were one.
    #[must_use]
    pub fn reference(spec: &Spec) -> Self {
        let name = spec.reference.file_name().unwrap_or_default().to_string_lossy();
        Self::new(name, spec.source.clone().into_bytes())
    }

    /// Mutants of the reference, all operators unless some are named, and at most so many of them, spread evenly.
    #[must_use]
    pub fn mutants(spec: &Spec, operators: Option<&[Operator]>, most: usize) -> Vec<Self> {
        let mut made = cuinstr_mutate::mutants(&spec.source);
        made.retain(|mutant| operators.is_none_or(|operators| operators.contains(&mutant.operator)));
        let made = sample(made, most);
        let stem = spec.reference.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let path = spec.reference.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let width = made.len().to_string().len();
        let candidate = |(number, mutant): (usize, cuinstr_mutate::Mutant)| Self {
            name: format!("{stem}.{number:0width$}"),
            path: path.clone(),
            source: mutant.apply(&spec.source).into_bytes().into(),
            origin: Some(Origin {
                operator: mutant.operator.name().to_owned(),
                function: mutant.function,
                line: mutant.line,
                column: mutant.column,
                before: mutant.before,
                after: mutant.after,
            }),
        };
        made.into_iter().enumerate().map(candidate).collect()
    }

    /// Candidates of files: a file, a folder with all its `.cu` and `.ptx` files, or `@LIST`, a file with a path on each line, relative to it.
    ///
    /// # Errors
    /// If one can't be read, or there are none.
    pub fn files(paths: &[PathBuf]) -> Result<Vec<Self>> {
        let mut found = Vec::new();
        for path in paths {
            match path.to_str().and_then(|path| path.strip_prefix('@')) {
                Some(list) => {
                    let list = Path::new(list);
                    let text = std::fs::read_to_string(list).map_err(Error::file(list))?;
                    let folder = list.parent().map_or_else(PathBuf::new, Path::to_owned);
                    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
                    found.extend(lines.map(|line| folder.join(line)));
                }
                None if path.is_dir() => {
                    let entries = path.read_dir().and_then(Iterator::collect::<std::io::Result<Vec<_>>>).map_err(Error::file(path))?;
                    let mut files: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
                    files
                        .retain(|file| file.is_file() && file.extension().is_some_and(|extension| extension == "cu" || extension == "ptx"));
                    files.sort();
                    found.extend(files);
                }
                None => found.push(path.clone()),
            }
        }
        if found.is_empty() {
            return Err(Error::NoCandidates("name .cu or .ptx files, folders that hold some, or @LIST, or ask for mutants".into()));
        }
        let mut candidates: Vec<Self> = Vec::with_capacity(found.len());
        let mut paths = std::collections::HashSet::new();
        for path in found {
            // One that is named twice is one.
            if paths.insert(path.clone()) {
                let source = std::fs::read(&path).map_err(Error::file(&path))?;
                let name = path.to_str().map_or_else(|| path.as_os_str().as_bytes().escape_ascii().to_string(), str::to_owned);
                candidates.push(Self::new(name, source));
            }
        }
        Ok(candidates)
    }

    /// Whether it is PTX, and not CUDA source.
    pub(crate) fn is_ptx(&self) -> bool {
        is_ptx(&self.path)
    }

    /// What tells its text, and that of its headers, from others.
    pub(crate) fn hash(&self, headers: &mut Headers) -> String {
        let headers = headers.hash(Path::new(&self.path), &self.source);
        format!("{:016x}", hash(hash(hash(0, self.path.as_bytes()), &self.source), &headers.to_le_bytes()))
    }

    /// A line of its text, from 1.
    pub(crate) fn line(&self, line: u32) -> Option<String> {
        let line = self.source.split(|byte| *byte == b'\n').nth((line as usize).checked_sub(1)?)?;
        Some(String::from_utf8_lossy(line).trim().to_owned())
    }
}

/// Whether a file of this name is PTX.
pub(crate) fn is_ptx(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "ptx")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_come_from_files_folders_and_lists_in_one_order() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["b.cu", "a.cu", "c.txt", "d.cu", "f.ptx"] {
            std::fs::write(at(name), name).unwrap();
        }
        std::fs::create_dir(at("sub")).unwrap();
        std::fs::write(at("sub/e.cu"), "e").unwrap();
        std::fs::write(at("list"), "# some\nsub/e.cu\n\nb.cu\n").unwrap();
        let list = PathBuf::from(format!("@{}", at("list").display()));
        let found = Candidate::files(&[at("d.cu"), folder.path().to_owned(), list]).unwrap();
        let names: Vec<_> = found.iter().map(|found| found.name.rsplit('/').next().unwrap().to_owned()).collect();
        assert_eq!(names, ["d.cu", "a.cu", "b.cu", "f.ptx", "e.cu"]);
        assert_eq!(found.iter().map(Candidate::is_ptx).collect::<Vec<_>>(), [false, false, false, true, false]);
        assert_eq!(found[1].line(1).as_deref(), Some("a.cu"));
        // Two paths are two candidates, whatever they look like.
        let odd = [b"\xff.cu", b"\xfe.cu"].map(|name| folder.path().join(std::ffi::OsStr::from_bytes(name)));
        for path in &odd {
            std::fs::write(path, "").unwrap();
        }
        let names: Vec<_> = Candidate::files(&odd).unwrap().into_iter().map(|found| found.name).collect();
        assert!(names.len() == 2 && names[0].ends_with("\\xff.cu") && names[1].ends_with("\\xfe.cu"), "{names:?}");
        let said = |paths: &[PathBuf]| Candidate::files(paths).unwrap_err().to_string();
        assert!(said(&[at("none.cu")]).contains("none.cu: No such file"));
        std::fs::create_dir(at("empty")).unwrap();
        assert!(said(&[at("empty")]).contains("there are no candidates: name .cu or .ptx files"));
    }
}
