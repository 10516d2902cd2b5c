//! The headers that sources include, as far as their text names them: verdicts depend on these, too.

use crate::spec::Spec;
use cuinstr_abi::sites::hash;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest header that is read, in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// What is known of a file: a number for its text, and the names that it includes.
type Known = Option<Arc<(u64, Vec<String>)>>;

/// The folders in which an evaluation's compiler looks for headers, and what lies there.
#[derive(Debug)]
pub(crate) struct Headers {
    folders: Vec<PathBuf>,
    /// The toolkit's folder, which each machine has of its own.
    toolkit: Option<PathBuf>,
    /// What the options have included in front of each source.
    first: Vec<String>,
    known: HashMap<PathBuf, Known>,
}

impl Headers {
    pub(crate) fn of(spec: &Spec) -> Self {
        let toolkit = std::env::var_os("CUDA_HOME").map(|home| Path::new(&home).join("include"));
        let mut folders: Vec<PathBuf> = spec.reference.parent().map(Path::to_owned).into_iter().collect();
        folders.extend(spec.compile.include.iter().map(|include| spec.located(include)));
        folders.extend(values(&spec.compile.options, &["-I", "--include-path", "-isystem"]).map(PathBuf::from));
        folders.extend(toolkit.clone());
        let first = values(&spec.compile.options, &["-include", "--pre-include"]).map(str::to_owned).collect();
        Self { folders, toolkit, first, known: HashMap::new() }
    }

    /// A number for all headers that a source of that path includes, directly or not.
    pub(crate) fn hash(&mut self, path: &Path, source: &[u8]) -> u64 {
        let found: BTreeSet<(String, u64)> = self.included(path, source).into_iter().map(|(_, name, number)| (name, number)).collect();
        found.iter().fold(0, |sum, (name, number)| hash(hash(sum, name.as_bytes()), &number.to_le_bytes()))
    }

    /// The same headers' files, but for the toolkit's.
    pub(crate) fn files(&mut self, path: &Path, source: &[u8]) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = self.included(path, source).into_iter().map(|(file, ..)| file).collect();
        files.retain(|file| self.toolkit.as_ref().is_none_or(|toolkit| !file.starts_with(toolkit)));
        files
    }

    /// Each header's file, its name as it is included, and a number for its text. Where several folders hold a name, all of its files count, as do
    /// those in inactive branches of the preprocessor: more than the compiler reads, and never less.
    fn included(&mut self, path: &Path, source: &[u8]) -> Vec<(PathBuf, String, u64)> {
        let mut seen: HashSet<PathBuf> = HashSet::new();
        let mut found = Vec::new();
        let names = self.first.iter().cloned().chain(includes(source));
        let own = path.parent().unwrap_or(Path::new("")).to_owned();
        let mut open: Vec<(PathBuf, String)> = names.map(|name| (own.clone(), name)).collect();
        while let Some((beside, name)) = open.pop() {
            let candidates: Vec<PathBuf> = [&beside].into_iter().chain(&self.folders).map(|folder| folder.join(&name)).collect();
            for path in candidates {
                if !seen.insert(path.clone()) {
                    continue;
                }
                let Some(known) = self.known(&path) else { continue };
                let (number, names) = &*known;
                let beside = path.parent().unwrap_or(Path::new("")).to_owned();
                found.push((path, name.clone(), *number));
                open.extend(names.iter().map(|name| (beside.clone(), name.clone())));
            }
        }
        found
    }

    fn known(&mut self, path: &Path) -> Known {
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        // A pipe would be waited for.
        let is_header = path.metadata().is_ok_and(|about| about.is_file() && about.len() <= MOST_BYTES);
        let text = is_header.then(|| std::fs::read(path).ok()).flatten();
        let known = text.map(|text| Arc::new((hash(0, &text), includes(&text).collect())));
        self.known.insert(path.to_owned(), known.clone());
        known
    }
}

/// What options of these names are given, in the same word (with or without `=`) or in the next.
pub(crate) fn values<'a>(options: &'a [String], names: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let value = move |(index, option): (usize, &'a String)| {
        let rest = names.iter().find_map(|name| option.strip_prefix(name))?;
        let rest = rest.strip_prefix('=').unwrap_or(rest).trim();
        if rest.is_empty() { options.get(index + 1).map(String::as_str) } else { Some(rest) }
    };
    options.iter().enumerate().filter_map(value)
}

/// The names in `#include "name"` and `#include <name>`.
fn includes(text: &[u8]) -> impl Iterator<Item = String> {
    let name = |line: &[u8]| {
        let line = line.trim_ascii_start().strip_prefix(b"#")?.trim_ascii_start().strip_prefix(b"include")?;
        let rest = line.strip_prefix(b"_next").unwrap_or(line).trim_ascii_start();
        let end = match rest.first()? {
            b'"' => b'"',
            b'<' => b'>',
            _ => return None,
        };
        let length = rest[1..].iter().position(|byte| *byte == end)?;
        Some(String::from_utf8_lossy(&rest[1..=length]).into_owned())
    };
    text.split(|byte| *byte == b'\n').filter_map(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_people_write_them() {
        let text = b"#include \"a.h\"\n  #  include<b/c.cuh> // d\n#include NAME\n// #include \"e.h\"\n#include_next <f.h>\n#include \"g";
        assert_eq!(includes(text).collect::<Vec<_>>(), ["a.h", "b/c.cuh", "f.h"]);
        let options = ["-Ia", "-I", "b", "--include-path=c", "-DX", "-include", "d.h"].map(str::to_owned);
        assert_eq!(values(&options, &["-I", "--include-path"]).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(values(&options, &["-include"]).collect::<Vec<_>>(), ["d.h"]);
    }

    #[test]
    fn a_header_of_a_header_counts() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("k.cu"), "__global__ void k(int* x) {}").unwrap();
        let spec = "reference = \"k.cu\"\nkernel = \"k\"\ngrid = [1]\nblock = [1]\n[[case]]\narguments = [{ out = \"i32\", count = 2 }]\n";
        std::fs::write(at("spec.toml"), spec).unwrap();
        std::fs::create_dir(at("sub")).unwrap();
        std::fs::write(at("sub/a.h"), "#include \"b.h\"\n#include \"a.h\"\n").unwrap();
        std::fs::write(at("sub/b.h"), "int b;").unwrap();
        let spec = Spec::read(&at("spec.toml")).unwrap();
        let hash = |source: &str| Headers::of(&spec).hash(Path::new("elsewhere/x.cu"), source.as_bytes());
        let (none, before) = (hash(""), hash("#include \"sub/a.h\"\n"));
        assert_ne!(none, before);
        assert_eq!(hash("#include \"missing.h\"\n"), none);
        std::fs::write(at("sub/b.h"), "int c;").unwrap();
        assert_ne!(hash("#include \"sub/a.h\"\n"), before);
    }
}
