//! What is known of an overlay, for all processes that read it.

use super::rewritten_file::Facts;
use cuinstr_abi::sites::SiteMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The plan, and the site maps of its files in the same order.
const PLAN: &str = "plan.json";
const MAPS: &str = "maps.json";

/// What all processes that read the overlay must know.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Plan {
    /// Roots by number: as the user spelled them, and without links.
    pub(super) roots: Vec<(OsString, OsString)>,
    pub(super) main: (usize, OsString),
    pub(super) quote: Vec<Option<usize>>,
    pub(super) include: Vec<Option<usize>>,
    pub(super) systems: Vec<Option<usize>>,
    pub(super) forced: Vec<Option<(usize, OsString)>>,
    /// Folders whose headers are the toolkit's or the system's.
    pub(super) system: Vec<OsString>,
    /// Folders of `-isystem` that are neither.
    pub(super) foreign: Vec<OsString>,
    /// Files that are the user's wherever they lie, without links: the source, and what it and others of these name in quotes beside themselves.
    pub(super) own: BTreeSet<OsString>,
    /// What of it is rewritten all the same: the toolkit's libraries of device code.
    pub(super) libraries: Vec<OsString>,
    /// Files of the tree, without links, and what is known of them.
    pub(super) files: Vec<(OsString, Facts)>,
    pub(super) has_prelude: bool,
    /// What the overlay was made by, and the words of the call.
    pub(super) key: String,
    pub(super) words: Vec<OsString>,
}

impl Plan {
    /// Whether the file, by its path without links, is left as it is.
    pub(super) fn is_system(&self, file: &Path) -> bool {
        let is_in = |folders: &[OsString]| folders.iter().any(|folder| file.starts_with(folder));
        is_in(&self.system) && !is_in(&self.libraries) && !self.own.contains(file.as_os_str())
    }

    /// Whether the file, by its path without links, is of others: neither the user's, nor the toolkit's or the system's.
    pub(super) fn is_foreign(&self, file: &Path) -> bool {
        self.foreign.iter().any(|folder| file.starts_with(folder)) && !self.own.contains(file.as_os_str())
    }

    /// How many calls are polled in all of the files.
    pub(super) fn polled_calls(&self) -> usize {
        self.files.iter().map(|(_, facts)| facts.polled_calls).sum()
    }

    /// Each root as the user spelled it, with the slash behind it if it is not empty.
    pub(super) fn spelled(&self) -> Vec<Vec<u8>> {
        let slash = |root: &[u8]| if root.is_empty() || root.ends_with(b"/") { &b""[..] } else { b"/" };
        self.roots.iter().map(|(root, _)| [root.as_bytes(), slash(root.as_bytes())].concat()).collect()
    }

    /// The plan that lies in the folder of an overlay, if that is finished; without the site maps, which no pass reads.
    pub(super) fn read(overlay: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(overlay.join(PLAN)).ok()?).ok()
    }

    /// The same with the site maps.
    pub(super) fn read_all(overlay: &Path) -> Option<Self> {
        let mut plan = Self::read(overlay)?;
        let maps: Vec<Option<SiteMap>> = serde_json::from_slice(&fs::read(overlay.join(MAPS)).ok()?).ok()?;
        for ((_, facts), map) in plan.files.iter_mut().zip(maps) {
            facts.sites = map;
        }
        Some(plan)
    }

    /// Writes it, which finishes the overlay. The site maps are taken out of it.
    ///
    /// # Errors
    /// If the folder can't be written.
    pub(super) fn write(&mut self, overlay: &Path) -> io::Result<()> {
        let maps: Vec<Option<SiteMap>> = self.files.iter_mut().map(|(_, facts)| facts.sites.take()).collect();
        fs::write(overlay.join(MAPS), serde_json::to_vec(&maps)?)?;
        fs::write(overlay.join(PLAN), serde_json::to_vec(self)?)
    }
}
