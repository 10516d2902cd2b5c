//! What a process had on each GPU when it was checkpointed, kept for whichever process restores it: NVML does not know it any more.

use crate::gpu::Uuid;
use crate::handle::Handle;
use crate::system;
use crate::wire::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;

#[derive(Serialize, Deserialize)]
struct Record {
    start: u64,
    bytes: Bytes,
}

/// The user's own folder: one that the system clears at a boot, as it ends all processes.
fn folder() -> PathBuf {
    let own = rustix::process::geteuid().as_raw();
    let shared = || std::env::temp_dir().join(format!("cuinstr-{own}"));
    std::env::var_os("XDG_RUNTIME_DIR").map_or_else(shared, |folder| PathBuf::from(folder).join("cuinstr"))
}

/// The file of a process, if nobody else can write there.
fn path(pid: u32) -> Option<PathBuf> {
    let folder = folder();
    let about = fs::symlink_metadata(&folder).ok()?;
    let is_own = about.is_dir() && about.uid() == rustix::process::geteuid().as_raw() && about.mode() & 0o022 == 0;
    is_own.then(|| folder.join(format!("checkpoint-{pid}.json")))
}

/// A restore without it takes the process's host memory for its measure, so one that can't be written is no error.
pub(crate) fn write(process: &Handle, bytes: &Bytes) {
    let _ = fs::DirBuilder::new().mode(0o700).recursive(true).create(folder());
    let record = Record { start: process.start_time(), bytes: bytes.clone() };
    if let (Some(path), Ok(text)) = (path(process.pid()), serde_json::to_vec(&record)) {
        let _ = fs::write(path, text);
    }
}

pub(crate) fn read(process: &Handle) -> Option<BTreeMap<Uuid, u64>> {
    let bytes = of(process.pid(), process.start_time())?;
    Some(bytes.into_iter().filter_map(|(gpu, bytes)| Some((gpu.parse().ok()?, bytes))).collect())
}

/// Whether cuinstr has suspended a process of this user and not resumed it since. The driver, which may block, is not asked.
#[must_use]
pub fn is_suspended(pid: u32) -> bool {
    system::start_time(pid).is_some_and(|start| of(pid, start).is_some())
}

/// The record of a process, not that of an earlier one of its number.
fn of(pid: u32, start: u64) -> Option<Bytes> {
    let record: Record = serde_json::from_slice(&fs::read(path(pid)?).ok()?).ok()?;
    (record.start == start).then_some(record.bytes)
}

pub(crate) fn remove(process: &Handle) {
    if let Some(path) = path(process.pid()) {
        let _ = fs::remove_file(path);
    }
}
