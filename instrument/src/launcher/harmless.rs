//! Headers of one source that lie in the user's folders, for the command, which rewrites that source alone.

use super::rewritten_file::rewritten;
use super::unit_names::UnitNames;
use crate::options::Options;
use crate::project::include::{self, Reference};
use crate::project::input::Input;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Files that a text includes: by their names as they are spelled, with quotes or angle brackets, where they lie.
type Found = Vec<(String, PathBuf)>;

/// The headers that a source includes from beside it and from further folders.
#[derive(Debug)]
pub struct Headers<'a> {
    bytes: &'a [u8],
    own: Found,
    /// All that are included, also by one another, with what each includes.
    read: BTreeMap<PathBuf, (Vec<u8>, Found)>,
}

impl<'a> Headers<'a> {
    /// Reads them. `folders` are searched as those of `-I` are.
    #[must_use]
    pub fn of(source: &Input, bytes: &'a [u8], folders: &[PathBuf]) -> Self {
        let own = source.folder().map_or_else(Vec::new, |folder| found(&folder, bytes, folders));
        let mut read: BTreeMap<PathBuf, (Vec<u8>, Found)> = BTreeMap::new();
        let mut work: Vec<PathBuf> = own.iter().map(|(_, path)| path.clone()).collect();
        while let Some(path) = work.pop() {
            if let Some(folder) = path.parent().filter(|_| !read.contains_key(&path))
                && let Ok(bytes) = fs::read(&path)
            {
                let inner = found(folder, &bytes, folders);
                work.extend(inner.iter().map(|(_, path)| path.clone()));
                read.insert(path, (bytes, inner));
            }
        }
        Self { bytes, own, read }
    }

    /// The source's includes that lead to them, as they are spelled.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        spelled(self.own.iter())
    }

    /// Tells the options for the source what it, its headers and the macros that were given say of the macros and functions that it names, and of words of
    /// the language.
    pub fn tell(&self, options: &mut Options) {
        if self.read.is_empty() && options.given_macros.is_empty() {
            return;
        }
        let mut told = options.clone();
        self.learn(options).tell(self.bytes, &mut told);
        (options.unit_macros, options.polls, options.device_names) = (told.unit_macros, told.polls, told.device_names);
    }

    /// The source's includes of headers whose device code repeats nothing, as they are spelled. They are judged as the launcher judges the files of a
    /// unit. A header counts only if all that it includes is known or found, and counts as well.
    #[must_use]
    pub fn harmless(&self, options: &Options) -> Vec<String> {
        let names = self.learn(options);
        let is_harmless = |bytes: &[u8], inner: &Found| {
            let own_headers = spelled(inner.iter());
            let mut options = Options { harmless_headers: own_headers.clone(), own_headers, ..options.clone() };
            names.tell(bytes, &mut options);
            // So that it is told of headers of its own that are not found.
            options.in_unit = false;
            !rewritten("", bytes, &options, &[]).facts.may_repeat()
        };
        let mut harmless: BTreeSet<&PathBuf> =
            self.read.iter().filter(|(_, (bytes, inner))| is_harmless(bytes, inner)).map(|(path, _)| path).collect();
        loop {
            let known = harmless.clone();
            let is_rewritten = |path: &PathBuf| options.rewritten_too.iter().any(|other| Path::new(other) == path);
            harmless.retain(|path| self.read[*path].1.iter().all(|(_, inner)| known.contains(inner) || is_rewritten(inner)));
            if harmless.len() == known.len() {
                break;
            }
        }
        spelled(self.own.iter().filter(|(_, path)| harmless.contains(path)))
    }

    fn learn(&self, options: &Options) -> UnitNames {
        let mut names = UnitNames::default();
        let read: Vec<(String, &[u8])> =
            self.read.iter().map(|(path, (bytes, _))| (path.to_string_lossy().into_owned(), &**bytes)).collect();
        let texts: Vec<(&str, &[u8])> = read.iter().map(|(name, bytes)| (&**name, *bytes)).chain([("", self.bytes)]).collect();
        names.learn(&texts, &[], &defined(options), options);
        names
    }
}

/// The macros that were given, as a file would define them.
fn defined(options: &Options) -> Vec<u8> {
    let values = options.given_macros.iter().filter_map(|one| Some((&one.name, one.value.as_ref()?)));
    let lines: Vec<String> = values.map(|(name, value)| format!("#define {name} {}\n", value.replace('\n', " "))).collect();
    lines.concat().into_bytes()
}

fn spelled<'a>(found: impl Iterator<Item = &'a (String, PathBuf)>) -> Vec<String> {
    found.map(|(name, _)| name.clone()).collect()
}

/// Headers that the file's own folder leads to, for a name in quotes, or one of the further folders.
fn found(folder: &Path, bytes: &[u8], further: &[PathBuf]) -> Found {
    let found = |reference: Reference| {
        let name = std::str::from_utf8(&bytes[reference.name]).ok()?;
        let folders = Some(folder).filter(|_| reference.quoted).into_iter().chain(further.iter().map(PathBuf::as_path));
        let path = folders.filter_map(|folder| folder.join(name).canonicalize().ok()).find(|path| path.is_file())?;
        Some((if reference.quoted { format!("\"{name}\"") } else { format!("<{name}>") }, path))
    };
    include::names(bytes).references.into_iter().filter(|reference| !reference.next).filter_map(found).collect()
}
