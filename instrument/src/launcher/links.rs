//! Where paths lead.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Paths without links. To follow links costs a call of the system for each part of a path. A pass reads hundreds of
/// headers, most of them in few folders, so each folder is asked once.
#[derive(Debug, Default)]
pub(super) struct Links(RefCell<BTreeMap<PathBuf, Option<PathBuf>>>);

impl Links {
    /// The path of what is there, without links.
    pub(super) fn real(&self, path: &Path) -> Option<PathBuf> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return path.canonicalize().ok() };
        let mut known = self.0.borrow_mut();
        let real = known.entry(folder.to_owned()).or_insert_with(|| {
            let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            here.canonicalize().ok()
        });
        let path = real.as_ref()?.join(name);
        if path.symlink_metadata().ok()?.is_symlink() { path.canonicalize().ok() } else { Some(path) }
    }
}
