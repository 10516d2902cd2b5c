//! The format of a snapshot. It knows nothing of CUDA.
//!
//! In this order, with numbers in little endian:
//!
//! - 16 bytes: magic.
//! - 4 bytes: the format.
//! - Contents of modules, memory and paused launches, in the order of the index.
//! - The index: JSON, with the hash (BLAKE3) of each piece of 32 MiB.
//! - 8 bytes: the length of the index.
//! - 32 bytes: the hash of the first 20 bytes and the index.
//! - 16 bytes: magic.
//!
//! So each byte is covered by a hash, or compared with what it must be.

use super::fault::{Fault, Result};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The format that this release writes and reads.
pub(super) const FORMAT: u32 = 3;
/// Bytes that have one hash.
pub(super) const PIECE: usize = 32 << 20;
const MAGIC: [u8; 16] = *b"cuinstr snapshot";
const HEAD: u64 = 20;
const TAIL: u64 = 8 + 32 + 16;

/// What a snapshot holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Index {
    /// Release of cuinstr that wrote it.
    pub(super) release: String,
    pub(super) gpu: String,
    pub(super) capability: (i32, i32),
    /// CUDA version of the driver.
    pub(super) driver: i32,
    /// The addresses that its memory is among, the first and how many; none without memory.
    pub(super) range: Option<(u64, u64)>,
    pub(super) parts: Vec<Part>,
    /// Names of the streams.
    pub(super) streams: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) bytes: u64,
    /// Of each piece.
    pub(super) hashes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    Memory {
        address: u64,
    },
    Module,
    /// Its contents are the blocks that are left, a bit for each.
    Launch(Saved),
    /// Likewise, of a launch that another host made.
    Guarded(SavedGuard),
}

/// A paused launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Saved {
    pub(super) module: String,
    /// Its symbol.
    pub(super) kernel: String,
    pub(super) stream: String,
    pub(super) grid: (u32, u32, u32),
    pub(super) block: (u32, u32, u32),
    pub(super) shared: u32,
    /// The bytes of each.
    pub(super) arguments: Vec<Vec<u8>>,
    pub(super) limits: SavedLimits,
}

/// A paused launch whose kernel and arguments its host knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedGuard {
    pub(super) grid: [u32; 3],
    /// Grid and block for reports, if they are known.
    pub(super) extents: Option<([u32; 3], [u32; 3])>,
    pub(super) limits: SavedLimits,
}

/// What is left of a paused launch's limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedLimits {
    pub(super) timeout: Option<Duration>,
    pub(super) fuel: Option<u64>,
    pub(super) budget_cycles: Option<u64>,
    pub(super) counts_fuel: bool,
    pub(super) has_host_clock: bool,
    pub(super) grace: Duration,
    pub(super) begin_within: Duration,
}

impl Part {
    /// One whose contents are at hand.
    pub(super) fn whole(name: &str, kind: Kind, contents: &[u8]) -> Self {
        let hashes = contents.chunks(PIECE).map(hash).collect();
        Self { name: name.to_owned(), kind, bytes: contents.len() as u64, hashes }
    }
}

/// Lengths of the pieces of so many bytes.
pub(super) fn pieces(bytes: u64) -> impl Iterator<Item = usize> {
    let piece = PIECE as u64;
    (0..bytes.div_ceil(piece)).map(move |index| (bytes - index * piece).min(piece) as usize)
}

pub(super) fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// A snapshot that is being written. What is not finished is removed, and what lay at the path before stays.
pub(super) struct Writer {
    path: PathBuf,
    partial: PathBuf,
    file: Option<File>,
}

impl Writer {
    pub(super) fn new(path: &Path, bytes: u64) -> Result<Self> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        let partial = path.with_file_name(name);
        let mut writer = Self { path: path.to_owned(), partial, file: None };
        let file = File::create(&writer.partial).map_err(|error| writer.fault(error))?;
        let free = rustix::fs::fstatvfs(&file).map_or(u64::MAX, |disk| disk.f_bavail * disk.f_frsize);
        writer.file = Some(file);
        // The index and the ends are small beside a piece.
        let needed = bytes + (1 << 20);
        if free < needed {
            return Err(Fault::DiskFull { path: path.to_owned(), needed, free });
        }
        writer.put(&head())?;
        Ok(writer)
    }

    fn fault(&self, error: io::Error) -> Fault {
        Fault::File { path: self.path.clone(), error }
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.as_mut().map_or(Ok(()), |file| file.write_all(bytes));
        written.map_err(|error| self.fault(error))
    }

    /// Puts the end behind it, and puts it in its place. Gives its size in bytes.
    pub(super) fn finish(mut self, index: &Index) -> Result<u64> {
        let index = serde_json::to_vec(index).map_err(|error| self.fault(error.into()))?;
        self.put(&index)?;
        self.put(&tail(&index))?;
        let finish = |file: &File| {
            file.sync_all()?;
            let bytes = file.metadata()?.len();
            std::fs::rename(&self.partial, &self.path)?;
            Ok(bytes)
        };
        let bytes = self.file.as_ref().map_or(Ok(0), finish).map_err(|error| self.fault(error))?;
        self.file = None;
        Ok(bytes)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}

fn head() -> Vec<u8> {
    [&MAGIC[..], &FORMAT.to_le_bytes()].concat()
}

fn end_hash(index: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&head()).update(index);
    *hasher.finalize().as_bytes()
}

fn tail(index: &[u8]) -> Vec<u8> {
    [&(index.len() as u64).to_le_bytes()[..], &end_hash(index), &MAGIC].concat()
}

/// A snapshot that is read.
#[derive(Debug)]
pub(super) struct Reader {
    path: PathBuf,
    file: File,
    pub(super) index: Index,
}

impl Reader {
    /// Reads the index. The contents are checked piece by piece as they are read.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let fault = |error: io::Error| Fault::File { path: path.to_owned(), error };
        let other = || Fault::NotASnapshot { path: path.to_owned() };
        let damaged = |what: &str| Fault::Damaged { path: path.to_owned(), what: what.to_owned() };
        let mut file = File::open(path).map_err(fault)?;
        let length = file.metadata().map_err(fault)?.len();
        if length < HEAD + TAIL {
            return Err(other());
        }
        let mut first = [0; HEAD as usize];
        file.read_exact(&mut first).map_err(fault)?;
        let (magic, format) = first.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(other());
        }
        let mut last = [0; TAIL as usize];
        file.seek(SeekFrom::End(-TAIL.cast_signed())).and_then(|_| file.read_exact(&mut last)).map_err(fault)?;
        if last[40..] != MAGIC {
            return Err(other());
        }
        let found = u32::from_le_bytes(format.try_into().unwrap_or_default());
        if found != FORMAT {
            return Err(Fault::OtherFormat { path: path.to_owned(), found, known: FORMAT });
        }
        let size = u64::from_le_bytes(last[..8].try_into().unwrap_or_default());
        let begin = (length - TAIL).checked_sub(size).filter(|begin| *begin >= HEAD).ok_or_else(|| damaged("the index"))?;
        let mut text = vec![0; usize::try_from(size).map_err(|_| damaged("the index"))?];
        file.seek(SeekFrom::Start(begin)).and_then(|_| file.read_exact(&mut text)).map_err(fault)?;
        if end_hash(&text)[..] != last[8..40] {
            return Err(damaged("the index"));
        }
        let index: Index = serde_json::from_slice(&text).map_err(|_| damaged("the index"))?;
        let contents: u64 = index.parts.iter().map(|part| part.bytes).sum();
        if contents != begin - HEAD || index.parts.iter().any(|part| part.hashes.len() as u64 != part.bytes.div_ceil(PIECE as u64)) {
            return Err(damaged("the index"));
        }
        file.seek(SeekFrom::Start(HEAD)).map_err(fault)?;
        Ok(Self { path: path.to_owned(), file, index })
    }

    /// Reads the contents of the next part.
    pub(super) fn whole(&mut self, part: &Part) -> Result<Vec<u8>> {
        let mut contents = Vec::new();
        for (bytes, hash) in pieces(part.bytes).zip(&part.hashes) {
            let at = contents.len();
            contents.resize(at + bytes, 0);
            self.piece(&mut contents[at..], hash, &part.name)?;
        }
        Ok(contents)
    }

    /// Reads the next piece, which has this hash.
    pub(super) fn piece(&mut self, to: &mut [u8], wanted: &str, what: &str) -> Result<()> {
        self.file.read_exact(to).map_err(|error| Fault::File { path: self.path.clone(), error })?;
        if hash(to) == wanted { Ok(()) } else { Err(Fault::Damaged { path: self.path.clone(), what: format!("`{what}`") }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tempfile::tempdir;

    fn written(path: &Path, parts: &[Vec<u8>]) -> Index {
        let mut writer = Writer::new(path, 0).expect("a folder");
        let mut index = Index {
            release: "0".into(),
            gpu: "stand-in".into(),
            capability: (9, 0),
            driver: 13_000,
            range: Some((4096, 4096)),
            parts: Vec::new(),
            streams: vec!["one".into()],
        };
        for (number, bytes) in parts.iter().enumerate() {
            writer.put(bytes).expect("room");
            let hashes = bytes.chunks(PIECE).map(hash).collect();
            index.parts.push(Part { name: number.to_string(), kind: Kind::Memory { address: 4096 }, bytes: bytes.len() as u64, hashes });
        }
        writer.finish(&index).expect("room");
        index
    }

    fn read(path: &Path) -> Result<Vec<Vec<u8>>> {
        let mut reader = Reader::open(path)?;
        let parts = reader.index.parts.clone();
        let read = parts.iter().map(|part| {
            let mut bytes = vec![0; part.bytes as usize];
            for (piece, wanted) in bytes.chunks_mut(PIECE).zip(&part.hashes) {
                reader.piece(piece, wanted, &part.name)?;
            }
            Ok(bytes)
        });
        read.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_was_written_is_read_and_no_damage_passes(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..4), at in any::<prop::sample::Index>(), bit in 0..8
        ) {
            let folder = tempdir().expect("a folder");
            let path = folder.path().join("snapshot");
            let index = written(&path, &parts);
            prop_assert_eq!(&Reader::open(&path).expect("whole").index, &index);
            prop_assert_eq!(&read(&path).expect("whole"), &parts);
            let whole = std::fs::read(&path).expect("a file");
            let mut flipped = whole.clone();
            flipped[at.index(whole.len())] ^= 1_u8 << bit;
            std::fs::write(&path, &flipped).expect("a file");
            prop_assert!(read(&path).is_err());
            std::fs::write(&path, &whole[..at.index(whole.len())]).expect("a file");
            prop_assert!(read(&path).is_err());
            std::fs::write(&path, [&whole[..], &[0]].concat()).expect("a file");
            prop_assert!(read(&path).is_err());
        }
    }

    #[test]
    fn each_kind_of_damage_has_its_name() {
        let folder = tempdir().expect("a folder");
        let path = folder.path().join("snapshot");
        written(&path, &[vec![1; 100]]);
        let whole = std::fs::read(&path).expect("a file");
        let with = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            std::fs::write(&path, bytes).expect("a file");
            read(&path).expect_err("it is damaged")
        };
        assert!(matches!(with(0, 0), Fault::NotASnapshot { .. }));
        assert!(matches!(with(16, 9), Fault::OtherFormat { found: 9, known: FORMAT, .. }));
        assert!(matches!(with(60, 0), Fault::Damaged { what, .. } if what == "`0`"));
        assert!(matches!(with(125, 0), Fault::Damaged { what, .. } if what == "the index"));
        std::fs::remove_file(&path).expect("it is there");
        assert!(matches!(Reader::open(&path), Err(Fault::File { .. })));
    }

    #[test]
    fn what_does_not_fit_is_refused_and_what_was_there_stays() {
        let folder = tempdir().expect("a folder");
        let path = folder.path().join("snapshot");
        written(&path, &[vec![1; 100]]);
        assert!(matches!(Writer::new(&path, u64::MAX / 2), Err(Fault::DiskFull { .. })));
        // One that is given up half way.
        let mut writer = Writer::new(&path, 0).expect("a folder");
        writer.put(&[2; 50]).expect("room");
        drop(writer);
        assert_eq!(read(&path).expect("the first one"), [vec![1; 100]]);
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}
