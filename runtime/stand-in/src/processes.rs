//! Checkpoints of processes by pid. What is known of a process is a file of one folder, so that helper, target and test see
//! the same.
//!
//! A line of a file is a word and a number. A word that is missing stands for 0. `DIR/PID` has:
//!
//! - `state`: 0 running, 1 locked, 2 checkpointed, 3 failed, or any other.
//! - `bytes`: GPU memory. `gpu`: the number of the GPU that they are on.
//! - `busy`: the kernels of the process run on.
//! - `managed`: its checkpoint answers 801.
//! - `breaks`: its checkpoint fails for good.
//!
//! `DIR/PID.busy` is there while kernels of a process run that has the stand-in for its driver. `DIR/gpuN` has `used`, the
//! bytes of others, and `mig`. A pid without a file does not use CUDA. A GPU without a file is there if N is 0.

#![allow(non_snake_case, missing_docs)]

use crate::calls::{calls, give};
use crate::control;
use crate::machine::code;
use crate::raw::{bytes, get};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a GPU.
pub(crate) const GPU: u64 = 80 << 30;
/// How often what waits looks again.
const PAUSE: Duration = Duration::from_millis(1);

const RUNNING: u64 = 0;
const LOCKED: u64 = 1;
const CHECKPOINTED: u64 = 2;
const FAILED: u64 = 3;

/// The numbers of a file by their words.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    path: PathBuf,
    numbers: BTreeMap<String, u64>,
}

impl Facts {
    pub(crate) fn read(path: PathBuf) -> Option<Self> {
        let text = fs::read_to_string(&path).ok()?;
        let numbers =
            text.lines().filter_map(|line| line.split_once(' ')).filter_map(|(word, number)| Some((word.to_owned(), number.parse().ok()?)));
        Some(Self { path, numbers: numbers.collect() })
    }

    pub(crate) fn number(&self, word: &str) -> u64 {
        self.numbers.get(word).copied().unwrap_or(0)
    }

    fn is_busy(&self) -> bool {
        self.number("busy") != 0 || self.path.with_extension("busy").exists()
    }

    fn set_state(&mut self, state: u64) {
        self.numbers.insert("state".to_owned(), state);
        let lines: Vec<String> = self.numbers.iter().map(|(word, number)| format!("{word} {number}\n")).collect();
        // Another process may read it meanwhile.
        let next = self.path.with_extension("next");
        let _ = fs::write(&next, lines.concat()).and_then(|()| fs::rename(&next, &self.path));
    }
}

fn process(pid: c_int) -> Result<Facts, u32> {
    let folder = control::processes().ok_or(code::NOT_SUPPORTED)?;
    Facts::read(folder.join(pid.to_string())).ok_or(code::NOT_INITIALIZED)
}

fn in_state(pid: c_int, state: u64) -> Result<Facts, u32> {
    process(pid).and_then(|process| if process.number("state") == state { Ok(process) } else { Err(code::ILLEGAL_STATE) })
}

/// The processes of a folder with what they have on a GPU.
pub(crate) fn on_gpu(folder: &Path, gpu: u32) -> Vec<(u32, u64)> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let known = files.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, Facts::read(entry.path())?)));
    let is_there = |facts: &Facts| [RUNNING, LOCKED].contains(&facts.number("state")) && facts.number("gpu") == u64::from(gpu);
    known.filter(|(_, facts)| is_there(facts)).map(|(pid, facts)| (pid, facts.number("bytes"))).collect()
}

/// Bytes of a GPU that are free.
pub(crate) fn free(folder: &Path, gpu: u32) -> u64 {
    let others = Facts::read(folder.join(format!("gpu{gpu}"))).map_or(0, |facts| facts.number("used"));
    GPU.saturating_sub(others + on_gpu(folder, gpu).iter().map(|(_, bytes)| bytes).sum::<u64>())
}

/// A GPU's UUID: sixteen times its number.
pub(crate) fn uuid(gpu: u32) -> [u8; 16] {
    [gpu as u8; 16]
}

/// How many GPUs a folder has.
pub(crate) fn count(folder: &Path) -> u32 {
    (1..8).find(|gpu| !folder.join(format!("gpu{gpu}")).exists()).unwrap_or(8)
}

/// Kernels of this process run, or none does.
pub(crate) fn note_busy(is_busy: bool) {
    let Some(folder) = control::processes() else { return };
    let path = folder.join(format!("{}.busy", std::process::id()));
    let _ = if is_busy { fs::write(path, "") } else { fs::remove_file(path) };
}

/// A process that is locked or checkpointed makes no call.
pub(crate) fn wait_until_unlocked(folder: &Path) {
    let own = folder.join(std::process::id().to_string());
    while Facts::read(own.clone()).is_some_and(|facts| [LOCKED, CHECKPOINTED].contains(&facts.number("state"))) {
        thread::sleep(PAUSE);
    }
}

/// Whether all but the first so many bytes of a struct of 64 are zero, as the driver wants what is reserved.
fn is_zero_from(arguments: *const c_void, from: usize) -> bool {
    arguments.is_null() || bytes(arguments, 64)[from..].iter().all(|byte| *byte == 0)
}

/// The new place of a GPU among pairs of UUIDs, which must name every GPU.
fn mapped(arguments: *const c_void, folder: &Path, gpu: u64) -> Result<u64, u32> {
    let count_of = || get(arguments.cast::<c_uint>().wrapping_add(2)).unwrap_or(0) as usize;
    let pairs = if arguments.is_null() { 0 } else { count_of() };
    if pairs == 0 {
        return Ok(gpu);
    }
    let first = get(arguments.cast::<*const [[u8; 16]; 2]>()).ok_or(code::INVALID_VALUE)?;
    let pairs: Vec<[[u8; 16]; 2]> = (0..pairs).filter_map(|index| get(first.wrapping_add(index))).collect();
    let number = |wanted: [u8; 16]| (0..count(folder)).find(|gpu| uuid(*gpu) == wanted).ok_or(code::INVALID_VALUE);
    let pairs = pairs.into_iter().map(|[old, new]| Ok((number(old)?, number(new)?))).collect::<Result<BTreeMap<u32, u32>, u32>>()?;
    if pairs.len() != count(folder) as usize {
        return Err(code::INVALID_VALUE);
    }
    pairs.get(&(gpu as u32)).map(|gpu| u64::from(*gpu)).ok_or(code::INVALID_VALUE)
}

calls! {
    fn cuCheckpointProcessGetState(pid: c_int, state: *mut c_uint) { give(state, process(pid)?.number("state") as c_uint) }
    fn cuCheckpointProcessGetRestoreThreadId(pid: c_int, thread: *mut c_int) { process(pid).and_then(|_| give(thread, pid)) }
    fn cuCheckpointProcessLock(pid: c_int, arguments: *const c_void) {
        if !is_zero_from(arguments, 4) { return Err(code::INVALID_VALUE); }
        let limit = get(arguments.cast::<c_uint>()).filter(|ms| *ms > 0).map(|ms| Duration::from_millis(u64::from(ms)));
        let since = Instant::now();
        while in_state(pid, RUNNING)?.is_busy() {
            if limit.is_some_and(|limit| since.elapsed() >= limit) { return Err(code::NOT_READY); }
            thread::sleep(PAUSE);
        }
        in_state(pid, RUNNING)?.set_state(LOCKED);
        Ok(())
    }
    fn cuCheckpointProcessCheckpoint(pid: c_int, arguments: *const c_void) {
        let mut process = in_state(pid, LOCKED)?;
        if !is_zero_from(arguments, 0) { return Err(code::INVALID_VALUE); }
        if process.number("managed") != 0 { return Err(code::NOT_SUPPORTED); }
        if process.number("breaks") != 0 {
            process.set_state(FAILED);
            return Err(999);
        }
        process.set_state(CHECKPOINTED);
        Ok(())
    }
    fn cuCheckpointProcessRestore(pid: c_int, arguments: *const c_void) {
        let mut process = in_state(pid, CHECKPOINTED)?;
        if !is_zero_from(arguments, 12) { return Err(code::INVALID_VALUE); }
        let folder = control::processes().ok_or(code::NOT_SUPPORTED)?;
        let gpu = mapped(arguments, &folder, process.number("gpu"))?;
        // What does not fit is lost.
        if process.number("bytes") > free(&folder, gpu as u32) {
            process.set_state(FAILED);
            return Err(code::OUT_OF_MEMORY);
        }
        process.numbers.insert("gpu".to_owned(), gpu);
        process.set_state(LOCKED);
        Ok(())
    }
    fn cuCheckpointProcessUnlock(pid: c_int, arguments: *const c_void) {
        if !is_zero_from(arguments, 0) { return Err(code::INVALID_VALUE); }
        in_state(pid, LOCKED)?.set_state(RUNNING);
        Ok(())
    }
}
