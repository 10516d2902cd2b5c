//! PTX with polls that another run made, in the user's cache, and the PTX of machine code. What the driver compiles of it lies in the driver's own cache.
//!
//! An entry is found by the text that it was made of and by this program's source. Its first line has the lengths and the
//! hashes of its parts, so a damaged entry is made anew. An entry is written elsewhere and renamed, so that no reader sees
//! half of one.

use cuinstr::options::Options;
use cuinstr_abi::sites::{SiteMap, hash};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::SystemTime;

/// Bytes that the cache may hold, and what is left when that was too much.
const MOST: u64 = 512 << 20;
const LEFT: u64 = MOST / 4 * 3;

/// The cache, and what is looked for.
pub(crate) struct Place {
    folder: PathBuf,
    name: String,
}

/// A number for bytes: two of 64 bits, one of them begun otherwise.
pub(crate) fn number(bytes: &[u8]) -> u128 {
    u128::from(hash(0, bytes)) << 64 | u128::from(hash(!0, bytes))
}

/// What lies in an entry: its two parts, and what is said of them.
type Parts = (Vec<u8>, Vec<u8>, Option<String>);

impl Place {
    /// Where the result of this text under these options lies; none without a folder for caches.
    pub(crate) fn of(text: &[u8], options: &Options) -> Option<Self> {
        let source = env!("CUINSTR_INTERPOSE_SOURCE");
        let number = number(&[source.as_bytes(), format!("{options:?}").as_bytes(), text].concat());
        Self::named(format!("{number:032x}-{:x}", text.len()))
    }

    /// Where the PTX lies that machine code was made of, by the code's number.
    pub(crate) fn of_source(number: u128) -> Option<Self> {
        Self::named(format!("{number:032x}-source"))
    }

    fn named(name: String) -> Option<Self> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let caches = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
        Some(Self { folder: caches.join("cuinstr/polled"), name })
    }

    /// The text with polls, its sites, and what kept fuel from being counted, if they are there and whole.
    pub(crate) fn get(&self) -> Option<(Vec<u8>, SiteMap, Option<String>)> {
        let (text, sites, no_fuel) = self.read()?;
        Some((text, serde_json::from_slice(&sites).ok()?, no_fuel))
    }

    /// Keeps a result. That it can't be kept is no fault.
    pub(crate) fn put(&self, text: &[u8], sites: &SiteMap, no_fuel: Option<&str>) {
        let _ = self.write(text, sites.to_json().as_bytes(), no_fuel).and_then(|()| self.bound());
    }

    /// PTX that was kept.
    pub(crate) fn kept(&self) -> Option<Vec<u8>> {
        self.read().map(|(text, ..)| text)
    }

    /// Keeps PTX.
    pub(crate) fn keep(&self, text: &[u8]) {
        let _ = self.write(text, b"", None).and_then(|()| self.bound());
    }

    fn read(&self) -> Option<Parts> {
        let path = self.folder.join(&self.name);
        let entry = fs::read(&path).ok()?;
        let line = entry.iter().position(|byte| *byte == b'\n')?;
        let (length, check, said): (usize, u64, Option<String>) = serde_json::from_slice(&entry[..line]).ok()?;
        let parts = &entry[line + 1..];
        let (first, second) = parts.split_at_checked(length)?;
        if hash(0, parts) != check {
            return None;
        }
        // What was used last goes last.
        let _ = File::options().write(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some((first.to_vec(), second.to_vec(), said))
    }

    fn write(&self, first: &[u8], second: &[u8], said: Option<&str>) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let parts = [first, second].concat();
        let new = self.folder.join(format!("new-{}-{}", std::process::id(), self.name));
        let mut file = File::create(&new)?;
        writeln!(file, "{}", serde_json::to_string(&(first.len(), hash(0, &parts), said))?)?;
        file.write_all(&parts)?;
        fs::rename(&new, self.folder.join(&self.name))
    }

    /// Removes what was used longest ago, if there is too much. Other processes may do the same: that a file is gone is what was wanted.
    fn bound(&self) -> io::Result<()> {
        let about = |entry: fs::DirEntry| {
            let found = entry.metadata().ok()?;
            Some((found.modified().ok()?, found.len(), entry.path()))
        };
        let mut entries: Vec<_> = fs::read_dir(&self.folder)?.flatten().filter_map(about).collect();
        let mut sum: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
        if sum <= MOST {
            return Ok(());
        }
        entries.sort();
        for (_, bytes, path) in entries {
            if sum <= LEFT {
                break;
            }
            let _ = fs::remove_file(path);
            sum -= bytes;
        }
        Ok(())
    }
}
