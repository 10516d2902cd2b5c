//! What this process has rewritten itself: reports on it show its lines though no file holds them.

use crate::sources::{Folder, Sources};
use cuinstr_abi::sites::SiteMap;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Most rewrites that are remembered.
const MOST: usize = 256;
/// Most bytes of source that are remembered.
const MOST_BYTES: usize = 64 << 20;

/// A source before it was rewritten, and the sites that it got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The sites.
    pub sites: SiteMap,
    /// The source, as it was.
    pub text: Vec<u8>,
}

static RECENT: Mutex<VecDeque<Arc<Origin>>> = Mutex::new(VecDeque::new());

/// Keeps a rewrite of this process in mind, so that modules compiled from it are known by it. The latest 256 are kept, and of those at most
/// 64 MiB of source.
pub fn remember(origin: Origin) -> Arc<Origin> {
    let origin = Arc::new(origin);
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    recent.retain(|known| known.sites.hash != origin.sites.hash);
    recent.push_back(Arc::clone(&origin));
    trim(&mut recent);
    origin
}

/// What is kept in mind, the latest last.
#[must_use]
pub fn recent() -> Vec<Arc<Origin>> {
    RECENT.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

fn trim(recent: &mut VecDeque<Arc<Origin>>) {
    let mut bytes: usize = recent.iter().map(|origin| origin.text.len()).sum();
    while recent.len() > MOST || (bytes > MOST_BYTES && recent.len() > 1) {
        bytes -= recent.pop_front().map_or(0, |origin| origin.text.len());
    }
}

/// Sources that were rewritten here, then files.
pub(super) struct Texts {
    pub(super) origins: Vec<Arc<Origin>>,
    pub(super) folder: Option<PathBuf>,
}

impl Sources for Texts {
    fn source(&self, path: &str) -> Option<Vec<u8>> {
        let known = self.origins.iter().rev().find(|origin| origin.sites.file == path);
        known.map(|origin| origin.text.clone()).or_else(|| Folder(self.folder.clone()?).source(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(number: usize, bytes: usize) -> Arc<Origin> {
        let sites = SiteMap {
            version: SiteMap::VERSION,
            file: format!("{number}.cu"),
            hash: number.to_string(),
            polls_each: false,
            counts_fuel: false,
            sites: Vec::new(),
        };
        Arc::new(Origin { sites, text: vec![b' '; bytes] })
    }

    #[test]
    fn only_the_latest_are_kept_and_a_large_one_alone() {
        let mut recent: VecDeque<_> = (0..MOST + 3).map(|number| origin(number, 1)).collect();
        trim(&mut recent);
        assert_eq!((recent.len(), recent[0].sites.hash.as_str()), (MOST, "3"));
        recent.push_back(origin(7000, MOST_BYTES + 1));
        trim(&mut recent);
        assert_eq!((recent.len(), recent[0].sites.hash.as_str()), (1, "7000"));
    }

    #[test]
    fn a_source_rewritten_here_comes_before_a_file() {
        let texts = Texts { origins: vec![origin(1, 3)], folder: Some(PathBuf::from(env!("CARGO_MANIFEST_DIR"))) };
        assert_eq!(texts.source("1.cu").as_deref(), Some(&b"   "[..]));
        assert!(texts.source("Cargo.toml").is_some());
        assert_eq!(Texts { folder: None, ..texts }.source("Cargo.toml"), None);
    }

    #[test]
    fn the_same_source_is_remembered_once() {
        let first = remember((*origin(987_654, 1)).clone());
        let _ = remember((*first).clone());
        assert_eq!(recent().iter().filter(|known| known.sites.hash == "987654").count(), 1);
    }
}
