//! Rewritten headers, shared by all calls of a user that run at the same time.
//!
//! An entry is found by a hash of the header's bytes and of all that decides how the header is rewritten. It holds if both
//! are the same. It is written elsewhere and renamed, so that no reader sees half of one. The cache is removed together
//! with the last session.

use super::error::Error;
use super::rewritten_file::{Facts, RewrittenFile};
use cuinstr_abi::sites::hash;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The cache in a folder.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    folder: PathBuf,
}

/// The first line of an entry; the header's bytes follow, then its text.
#[derive(Serialize, Deserialize)]
struct Entry {
    key: String,
    facts: Facts,
    bytes: usize,
    has_text: bool,
}

impl Cache {
    /// The cache in that folder.
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The file that another call made of these bytes under this key.
    pub(super) fn get(&self, key: &str, bytes: &[u8]) -> Option<RewrittenFile> {
        let content = fs::read(self.place(key, bytes)).ok()?;
        let line = memchr::memchr(b'\n', &content)?;
        let entry: Entry = serde_json::from_slice(&content[..line]).ok()?;
        let (kept, text) = content[line + 1..].split_at_checked(entry.bytes)?;
        (entry.key == key && kept == bytes).then(|| RewrittenFile { facts: entry.facts, text: entry.has_text.then(|| text.to_vec()) })
    }

    /// Keeps a file for others. That another call was first is fine: it wrote the same.
    ///
    /// # Errors
    /// If it can't be written.
    pub(super) fn put(&self, key: &str, bytes: &[u8], file: &RewrittenFile) -> Result<(), Error> {
        let entry = Entry { key: key.to_owned(), facts: file.facts.clone(), bytes: bytes.len(), has_text: file.text.is_some() };
        let write = || {
            let mut content = serde_json::to_vec(&entry)?;
            content.push(b'\n');
            content.extend_from_slice(bytes);
            content.extend_from_slice(file.text.as_deref().unwrap_or_default());
            let mut new = tempfile::Builder::new().prefix("new-").tempfile_in(&self.folder)?;
            new.write_all(&content)?;
            new.persist(self.place(key, bytes)).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|error: io::Error| Error::io("can't write to", &self.folder, &error))
    }

    fn place(&self, key: &str, bytes: &[u8]) -> PathBuf {
        self.folder.join(format!("{:016x}", hash(hash(0, key.as_bytes()), bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_holds_for_its_key_and_bytes_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::new(folder.path());
        let facts = Facts { rewritten: true, said: "gap\n".to_owned(), ..Facts::default() };
        let file = RewrittenFile { facts, text: Some(b"new".to_vec()) };
        assert_eq!(cache.get("key", b"old"), None);
        for _ in 0..2 {
            cache.put("key", b"old", &file).expect("it can be written");
        }
        assert_eq!(cache.get("key", b"old"), Some(file));
        assert_eq!(cache.get("other", b"old"), None);
        assert_eq!(cache.get("key", b"other"), None);
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }
}
