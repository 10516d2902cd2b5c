//! Where a report gets the text of the sources that it names.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

/// Longest source that [`Folder`] reads, in bytes.
const LONGEST: u64 = 64 << 20;

/// Gives the bytes of a source by the path in its site map, or nothing.
///
/// A closure from `&str` to `Option<Vec<u8>>` is one; [`Folder`] reads files; [`NoSources`] has none.
pub trait Sources {
    /// The bytes of the file.
    fn source(&self, path: &str) -> Option<Vec<u8>>;
}

impl<F: Fn(&str) -> Option<Vec<u8>>> Sources for F {
    fn source(&self, path: &str) -> Option<Vec<u8>> {
        self(path)
    }
}

/// No source is at hand: reports name places and show no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoSources;

impl Sources for NoSources {
    fn source(&self, _: &str) -> Option<Vec<u8>> {
        None
    }
}

/// Reads files below a folder, the one that site maps' paths are relative to.
///
/// A module names these paths, and it may be anybody's: paths that lead out of the folder, and what is no regular file, are not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder(pub PathBuf);

impl Sources for Folder {
    fn source(&self, path: &str) -> Option<Vec<u8>> {
        let path = Path::new(path);
        if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return None;
        }
        let path = self.0.join(path);
        // Asked before it is opened: opening a pipe would wait for its writer.
        if !path.metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(LONGEST + 1).read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= LONGEST).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_what_lies_in_it_and_nothing_else() {
        let folder = Folder(Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        assert!(folder.source("sources.rs").is_some_and(|text| text.starts_with(b"//! Where")));
        assert!(folder.source("./report/text.rs").is_some());
        for path in ["../Cargo.toml", "/etc/hostname", "report", "absent.rs", "", "report/../sources.rs"] {
            assert_eq!(folder.source(path), None, "{path}");
        }
    }
}
