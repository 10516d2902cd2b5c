//! What a folder says of the dump in it: `manifest.json`, with the hash of each file, and the manifest's own hash beside it.

use super::{DumpError, files};
use crate::wire::Look;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The layout that this release writes and reads.
const FORMAT: u32 = 1;
const MANIFEST: &str = "manifest.json";
const HASH: &str = "manifest.blake3";
/// Where CRIU's files are.
pub(super) const IMAGES: &str = "images";

/// What is known of a dump.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// The layout of the folder.
    pub format: u32,
    /// Release of cuinstr that made it.
    pub release: String,
    /// CRIU's version.
    pub criu: String,
    /// The root of the process tree: it has the same pid after the restore.
    pub pid: u32,
    /// The program that it runs.
    pub program: String,
    /// The driver and the GPUs.
    pub machine: Look,
    /// Hash (BLAKE3) and bytes of each file.
    pub files: BTreeMap<String, (String, u64)>,
}

fn hash(path: &Path) -> Result<(String, u64), DumpError> {
    let at = |error| DumpError::File { path: path.to_owned(), error };
    let mut hasher = blake3::Hasher::new();
    let bytes = fs::File::open(path).and_then(|mut file| std::io::copy(&mut file, &mut hasher)).map_err(at)?;
    Ok((hasher.finalize().to_hex().to_string(), bytes))
}

impl Manifest {
    pub(super) fn new(criu: String, pid: u32, machine: Look) -> Self {
        let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default().display().to_string();
        Self { format: FORMAT, release: env!("CARGO_PKG_VERSION").to_owned(), criu, pid, program, machine, files: BTreeMap::new() }
    }

    /// Writes it beside the images.
    pub(super) fn write(mut self, folder: &Path) -> Result<Self, DumpError> {
        for (name, path) in files(&folder.join(IMAGES))? {
            self.files.insert(name, hash(&path)?);
        }
        let text = serde_json::to_vec_pretty(&self).unwrap_or_default();
        for (name, bytes) in [(MANIFEST, &text[..]), (HASH, blake3::hash(&text).to_hex().as_bytes())] {
            let path = folder.join(name);
            let written = fs::write(&path, bytes).and_then(|()| fs::File::open(&path)?.sync_all());
            written.map_err(|error| DumpError::File { path, error })?;
        }
        Ok(self)
    }

    /// Reads it, and checks each file against it.
    pub(super) fn read(folder: &Path) -> Result<Self, DumpError> {
        let path = folder.join(MANIFEST);
        let text = fs::read(&path).map_err(|_| DumpError::NotADump { path: folder.to_owned() })?;
        let damaged = |path: &Path| DumpError::Damaged { path: path.to_owned() };
        if fs::read(folder.join(HASH)).ok().as_deref() != Some(blake3::hash(&text).to_hex().as_bytes()) {
            return Err(damaged(&path));
        }
        let format = serde_json::from_slice::<serde_json::Value>(&text).ok().and_then(|manifest| manifest.get("format")?.as_u64());
        if format != Some(u64::from(FORMAT)) {
            return Err(DumpError::OtherFormat { path: folder.to_owned(), found: format.unwrap_or(0), known: FORMAT });
        }
        let manifest: Self = serde_json::from_slice(&text).map_err(|_| damaged(&path))?;
        for (name, known) in &manifest.files {
            let path = folder.join(IMAGES).join(name);
            if !path.is_file() || hash(&path)? != *known {
                return Err(damaged(&path));
            }
        }
        Ok(manifest)
    }
}
