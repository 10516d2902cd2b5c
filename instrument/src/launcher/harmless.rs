//! Quoted headers of one source that need no polls, for the command, which rewrites that source alone.

use super::rewritten_file::rewritten;
use super::unit_names::UnitNames;
use crate::options::Options;
use crate::project::include;
use crate::project::input::Input;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Files that a text includes: by their names as they are spelled, where they lie.
type Found = Vec<(String, PathBuf)>;

/// Names by which the source includes headers whose device code repeats nothing, as they are spelled. They are judged as the launcher judges the files of
/// a unit. A header counts only if all that it includes is known or found, and counts as well.
#[must_use]
pub fn harmless_headers(source: &Input, bytes: &[u8], options: &Options) -> Vec<String> {
    let Some(folder) = source.folder() else { return Vec::new() };
    let own = found(&folder, bytes);
    let mut headers: BTreeMap<PathBuf, (Vec<u8>, Found)> = BTreeMap::new();
    let mut work: Vec<PathBuf> = own.iter().map(|(_, path)| path.clone()).collect();
    while let Some(path) = work.pop() {
        if let Some(folder) = path.parent().filter(|_| !headers.contains_key(&path))
            && let Ok(bytes) = fs::read(&path)
        {
            let inner = found(folder, &bytes);
            work.extend(inner.iter().map(|(_, path)| path.clone()));
            headers.insert(path, (bytes, inner));
        }
    }
    let mut names = UnitNames::default();
    let read: Vec<(String, &[u8])> = headers.iter().map(|(path, (bytes, _))| (path.to_string_lossy().into_owned(), &**bytes)).collect();
    let texts: Vec<(&str, &[u8])> = read.iter().map(|(name, bytes)| (&**name, *bytes)).chain([("", bytes)]).collect();
    names.learn(&texts, &[], &[], options);
    let is_harmless = |bytes: &[u8], inner: &Found| {
        let beside = spelled(inner.iter());
        let mut options = Options { harmless_headers: beside.clone(), beside, ..options.clone() };
        names.tell(bytes, &mut options);
        // So that it is told of headers of its own that are not found.
        options.in_unit = false;
        !rewritten("", bytes, &options, &[]).facts.may_repeat()
    };
    let mut harmless: BTreeSet<&PathBuf> =
        headers.iter().filter(|(_, (bytes, inner))| is_harmless(bytes, inner)).map(|(path, _)| path).collect();
    loop {
        let known = harmless.clone();
        let is_rewritten = |path: &PathBuf| options.rewritten_too.iter().any(|other| Path::new(other) == path);
        harmless.retain(|path| headers[*path].1.iter().all(|(_, inner)| known.contains(inner) || is_rewritten(inner)));
        if harmless.len() == known.len() {
            break;
        }
    }
    spelled(own.iter().filter(|(_, path)| harmless.contains(path)))
}

/// Names of the quoted includes that lie beside the source, as they are spelled.
#[must_use]
pub fn beside(source: &Input, bytes: &[u8]) -> Vec<String> {
    source.folder().map_or_else(Vec::new, |folder| spelled(found(&folder, bytes).iter()))
}

fn spelled<'a>(found: impl Iterator<Item = &'a (String, PathBuf)>) -> Vec<String> {
    found.map(|(name, _)| name.clone()).collect()
}

/// Headers that lie where the file's own folder leads.
fn found(folder: &Path, bytes: &[u8]) -> Found {
    let references = include::names(bytes).references.into_iter().filter(|reference| reference.quoted && !reference.next);
    let names = references.filter_map(|reference| String::from_utf8(bytes[reference.name].to_vec()).ok());
    names
        .filter_map(|name| Some((folder.join(&name).canonicalize().ok().filter(|path| path.is_file())?, name)))
        .map(|(path, name)| (name, path))
        .collect()
}
