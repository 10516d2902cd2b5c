//! Checkpoints of the program while it runs (`--checkpoint`), and the start from the latest (`--restart`).
//!
//! Each checkpoint is a folder of its own, numbered. One that fails leaves the others, and a program that runs on.

use crate::command::checkpoint;
use crate::command::cli::KeepArgs;
use crate::command::report::to_stderr;
use cuinstr_checkpoint::dump::{self, DumpError};
use cuinstr_checkpoint::{Helper, Mapping, system};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a program that was restored is looked for.
const PAUSE: Duration = Duration::from_millis(100);

/// What the keeper is told.
pub(super) enum Order {
    /// Save the program, and end it.
    Leave,
    /// The program is gone.
    End,
}

/// A channel of orders: one end to send them, and the keeper's end.
pub(super) fn orders() -> (Sender<Order>, Receiver<Order>) {
    channel()
}

/// Saves the program from time to time, in a thread of its own.
pub(super) struct Keeper {
    sender: Sender<Order>,
    thread: JoinHandle<bool>,
}

impl Keeper {
    /// Nothing, unless the program is to be saved.
    pub(super) fn begin(args: &KeepArgs, process: u32, (sender, receiver): (Sender<Order>, Receiver<Order>)) -> Option<Self> {
        let folder = args.folder()?.to_owned();
        let (every, keep) = (args.every(), args.keep);
        let thread = std::thread::spawn(move || {
            loop {
                let order = match every {
                    Some(every) => receiver.recv_timeout(every),
                    None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
                };
                let is_last = match order {
                    Ok(Order::Leave) => true,
                    Err(RecvTimeoutError::Timeout) => false,
                    Ok(Order::End) | Err(RecvTimeoutError::Disconnected) => return false,
                };
                match save(&folder, process, keep, is_last) {
                    Ok(()) if is_last => return true,
                    Ok(()) => {}
                    Err(why) => to_stderr(&format!("warning: no checkpoint was made, and the program runs on: {why}\n")),
                }
            }
        });
        Some(Self { sender, thread })
    }

    /// The program is gone. Whether it was saved and ended, so that it can be started again from there.
    pub(super) fn end(self) -> bool {
        let _ = self.sender.send(Order::End);
        self.thread.join().unwrap_or(false)
    }
}

/// The checkpoints of a folder, oldest first.
fn checkpoints(folder: &Path) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let numbered = entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())));
    let mut found: Vec<_> = numbered.collect();
    found.sort();
    found
}

fn save(folder: &Path, process: u32, keep: usize, is_last: bool) -> Result<(), String> {
    let next = checkpoints(folder).last().map_or(1, |(number, _)| number + 1);
    checkpoint::save(process, &folder.join(format!("{next:06}")), is_last)?;
    let all = checkpoints(folder);
    for (_, old) in &all[..all.len().saturating_sub(keep)] {
        let _ = fs::remove_dir_all(old);
    }
    Ok(())
}

/// Restores the latest checkpoint that is whole. Answers the process.
///
/// # Errors
/// If there is none, or this machine can't take it.
pub(super) fn restore(folder: &Path) -> anyhow::Result<u32> {
    for (_, path) in checkpoints(folder).into_iter().rev() {
        match dump::restore(Helper::new(), &path, &Mapping::none(), &[], &mut |_, _| {}) {
            Ok(restored) => {
                to_stderr(&format!("cuinstr: process {} goes on from {}\n", restored.pid, path.display()));
                return Ok(restored.pid);
            }
            Err(error @ (DumpError::Damaged { .. } | DumpError::NotADump { .. })) => to_stderr(&format!("warning: {error}\n")),
            Err(error) => return Err(error.into()),
        }
    }
    anyhow::bail!("{}: no checkpoint here is whole; `cuinstr run --checkpoint` makes some", folder.display())
}

/// Waits until a restored program is gone, which is no child of this process.
pub(super) fn wait(process: u32) {
    let start = system::start_time(process);
    while start.is_some() && system::start_time(process) == start {
        std::thread::sleep(PAUSE);
    }
}
