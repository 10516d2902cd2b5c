//! Headers in folders of `-isystem`. They stay as they are, but their macros may mark the user's functions, repeat,
//! jump, and change variables.

use super::unit_macros::definitions_of;
use crate::project::include;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Most headers that are read.
const MOST: usize = 4096;

/// Headers of others.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    folders: Vec<PathBuf>,
    seen: BTreeSet<PathBuf>,
    /// Texts of those that hold attributes of device functions, and definitions of macros of the others.
    pub(super) texts: Vec<Vec<u8>>,
}

impl Foreign {
    /// For these folders. The toolkit's own macros are known without being read.
    pub(super) fn new(folders: &[OsString]) -> Self {
        let folders = folders.iter().map(PathBuf::from).filter(|folder| !folder.join("cuda_runtime.h").is_file());
        Self { folders: folders.collect(), ..Self::default() }
    }

    /// Reads the header of that name, which a file in the folder includes, and those that it includes in turn.
    pub(super) fn read(&mut self, beside: Option<&Path>, name: &[u8]) {
        let mut queue = vec![(beside.map(Path::to_owned), name.to_vec())];
        while let Some((beside, name)) = queue.pop() {
            let name = Path::new(OsStr::from_bytes(&name));
            let beside = beside.filter(|folder| self.folders.iter().any(|system| folder.starts_with(system)));
            let mut places = beside.iter().chain(&self.folders).map(|folder| folder.join(name));
            let Some(path) = places.find(|path| path.is_file()) else { continue };
            if self.seen.len() >= MOST || !self.seen.insert(path.clone()) {
                continue;
            }
            // Its reader will say that it can't be read, if it has one.
            let Ok(bytes) = fs::read(&path) else { continue };
            let folder = path.parent().map(Path::to_owned);
            let named = include::names(&bytes).references.into_iter();
            queue.extend(named.map(|reference| (folder.clone(), bytes[reference.name].to_vec())));
            let has = |word: &[u8]| memchr::memmem::find(&bytes, word).is_some();
            if has(b"__device__") || has(b"__global__") || has(b"__attribute__") {
                self.texts.push(bytes);
            } else if has(b"define") || has(b"undef") {
                self.texts.push(definitions_of(&bytes));
            }
        }
    }
}
