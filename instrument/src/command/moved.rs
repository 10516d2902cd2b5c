//! Quoted includes of a file whose rewritten form lies in another folder.
//!
//! A compiler looks for `#include "name"` in the folder of the file that includes it. The rewritten file names the same
//! header by the path from its own folder. A header that this run rewrites is named by the path of its rewritten form.

use cuinstr::project::include;
use cuinstr::project::input::Input;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

/// Where the outputs of a run go, by their inputs; both absolute and without links.
#[derive(Debug, Default)]
pub(crate) struct Moved(BTreeMap<PathBuf, PathBuf>);

impl Moved {
    /// Takes note of each input that has a file as its output.
    pub(crate) fn new<'a>(pairs: impl Iterator<Item = (&'a Input, Option<&'a PathBuf>)>) -> Self {
        let places = pairs.filter_map(|(input, output)| Some((input.path.canonicalize().ok()?, place(output?)?)));
        Self(places.collect())
    }

    /// The inputs of the run, whose outputs their includers find.
    pub(crate) fn inputs(&self) -> Vec<String> {
        self.0.keys().map(|path| path.to_string_lossy().into_owned()).collect()
    }

    /// Names of includes to change in the input's text, each with what to put there.
    pub(crate) fn edits(&self, input: &Input, destination: &Path, text: &[u8]) -> Vec<(Range<usize>, Vec<u8>)> {
        let (Some(from), Some(destination)) = (input.folder(), place(destination)) else { return Vec::new() };
        let Some(to) = destination.parent() else { return Vec::new() };
        let references = include::names(text).references.into_iter().filter(|reference| reference.quoted && !reference.next);
        references
            .filter_map(|reference| {
                let name = std::str::from_utf8(&text[reference.name.clone()]).ok()?;
                if Path::new(name).is_absolute() || Path::new(name).components().next().is_none() {
                    return None;
                }
                // Else the compiler finds it by its own search path, or not at all.
                let header = from.join(name).canonicalize().ok().filter(|header| header.is_file())?;
                let target = self.0.get(&header).unwrap_or(&header);
                let is_same = to.join(name).canonicalize().ok().as_ref() == Some(target) || normal(&to.join(name)) == *target;
                let way = way(to, target)?;
                (!is_same).then(|| (reference.name, way.into_bytes()))
            })
            .collect()
    }
}

/// The name by which an output includes a file; as it is spelled where the output is no file, or the way can't be told.
pub(crate) fn name_from(output: Option<&Path>, file: &Path) -> String {
    let relative = || way(place(output?)?.parent()?, &place(file)?);
    relative().unwrap_or_else(|| file.to_string_lossy().into_owned())
}

/// The path as it will be once it is written: absolute, its folder without links.
fn place(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(folder.canonicalize().ok()?.join(path.file_name()?))
}

/// The path without `.` and `..`, by its text alone.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            part => normal.push(part),
        }
    }
    normal
}

/// The way from a folder to a file, with forward slashes; none if it holds what can't stand between quotes.
fn way(from: &Path, to: &Path) -> Option<String> {
    let shared = from.components().zip(to.components()).take_while(|(left, right)| left == right).count();
    let up = from.components().skip(shared).map(|_| "..");
    let down = to.components().skip(shared).map(|part| part.as_os_str().to_str());
    let parts = up.map(Some).chain(down).collect::<Option<Vec<&str>>>()?;
    let way = parts.join("/");
    (!way.contains(['"', '\n', '\\'])).then_some(way)
}

#[cfg(test)]
mod tests {
    use super::{normal, way};
    use std::path::Path;

    #[test]
    fn ways_lead_up_and_down() {
        for (from, to, expected) in
            [("/a/out", "/a/src/k.cuh", "../src/k.cuh"), ("/a", "/a/src/k.cuh", "src/k.cuh"), ("/a/b/c", "/k.cuh", "../../../k.cuh")]
        {
            assert_eq!(way(Path::new(from), Path::new(to)).as_deref(), Some(expected));
        }
        assert_eq!(way(Path::new("/a"), Path::new("/b\"/k.cuh")), None);
        assert_eq!(normal(Path::new("/a/./b/../c.h")), Path::new("/a/c.h"));
    }
}
