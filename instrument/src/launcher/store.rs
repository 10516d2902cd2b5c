//! Rewritten headers, shared by all calls of a user that run at the same time.
//!
//! An entry is found by a number of the header's bytes and of all that decides how it is rewritten, and holds if both are the same. It is written
//! elsewhere and renamed, so that nobody reads half of one. The store is gone when the last session is.

use super::Error;
use super::unit::{Facts, Unit};
use cuinstr_abi::sites::hash;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The store in a folder.
#[derive(Debug, Clone)]
pub(super) struct Store {
    folder: PathBuf,
}

/// What an entry holds beside texts.
#[derive(Serialize, Deserialize)]
struct Entry {
    key: String,
    facts: Facts,
}

impl Store {
    /// The store in that folder.
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The unit that another call made of these bytes under this key.
    pub(super) fn get(&self, key: &str, bytes: &[u8]) -> Option<Unit> {
        let place = self.place(key, bytes);
        let entry: Entry = serde_json::from_slice(&fs::read(place.join("entry.json")).ok()?).ok()?;
        if entry.key != key || fs::read(place.join("source")).ok()? != bytes {
            return None;
        }
        let text = if entry.facts.rewritten { Some(fs::read(place.join("text")).ok()?) } else { None };
        Some(Unit { facts: entry.facts, text })
    }

    /// Keeps a unit for others. That another call was first is fine: it wrote the same.
    ///
    /// # Errors
    /// If it can't be written.
    pub(super) fn put(&self, key: &str, bytes: &[u8], unit: &Unit) -> Result<(), Error> {
        let entry = Entry { key: key.to_owned(), facts: unit.facts.clone() };
        let write = || {
            let new = tempfile::Builder::new().prefix("new-").tempdir_in(&self.folder)?;
            fs::write(new.path().join("source"), bytes)?;
            if let Some(text) = &unit.text {
                fs::write(new.path().join("text"), text)?;
            }
            fs::write(new.path().join("entry.json"), serde_json::to_vec(&entry)?)?;
            if fs::rename(new.path(), self.place(key, bytes)).is_ok() {
                // It bears another name now, under which nobody is to remove it.
                let _ = new.keep();
            }
            Ok(())
        };
        write().map_err(|error| Error::io("can't write to", &self.folder, &error))
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
        let store = Store::new(folder.path());
        let facts = Facts { rewritten: true, said: "gap\n".to_owned(), ..Facts::default() };
        let unit = Unit { facts, text: Some(b"new".to_vec()) };
        assert_eq!(store.get("key", b"old"), None);
        for _ in 0..2 {
            store.put("key", b"old", &unit).expect("it can be written");
        }
        assert_eq!(store.get("key", b"old"), Some(unit));
        assert_eq!(store.get("other", b"old"), None);
        assert_eq!(store.get("key", b"other"), None);
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }
}
