//! What Linux tells of processes and memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// `CAP_SYS_PTRACE`.
pub const CAP_SYS_PTRACE: u32 = 19;
/// `CAP_CHECKPOINT_RESTORE`.
pub const CAP_CHECKPOINT_RESTORE: u32 = 40;

fn proc(pid: u32, name: &str) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join(name)
}

/// Fields of `/proc/PID/stat` from the state on: the name in front of them may hold anything.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(proc(pid, "stat")).ok()?;
    Some(text[text.rfind(')')? + 1..].split_whitespace().map(str::to_owned).collect())
}

/// When a process was started, in ticks since the boot: with its pid, its name for ever. Nothing if it is gone, or only its exit status is left.
#[must_use]
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = stat(pid).filter(|stat| !stat.first().is_some_and(|state| state == "Z" || state == "X"))?;
    stat.get(19)?.parse().ok()
}

/// A line of a status file: its number, without the unit.
fn line(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The user that a process runs as.
fn user(pid: u32) -> Option<u64> {
    line(&fs::read_to_string(proc(pid, "status")).ok()?, "Uid")
}

/// Whether this process has a capability.
#[must_use]
pub fn has_capability(capability: u32) -> bool {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = text.lines().find_map(|line| line.strip_prefix("CapEff:")).and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> capability & 1 == 1)
}

/// Whether this user may reach into a process.
///
/// # Errors
/// Whose process it is, if it is another's.
pub fn may_reach(pid: u32) -> Result<(), String> {
    let own = rustix::process::geteuid();
    match user(pid) {
        Some(user) if user != u64::from(own.as_raw()) && !has_capability(CAP_SYS_PTRACE) => {
            Err(format!("it runs as user {user}, this one as {}, without CAP_SYS_PTRACE", own.as_raw()))
        }
        _ => Ok(()),
    }
}

/// Bytes of a process that only host memory holds, the copy of its GPU memory included.
#[must_use]
pub fn resident(pid: u32) -> u64 {
    let text = fs::read_to_string(proc(pid, "status")).unwrap_or_default();
    ["RssAnon", "RssShmem"].iter().filter_map(|name| line(&text, name)).sum::<u64>() << 10
}

/// Bytes that the host can give, within the limit of this control group.
#[must_use]
pub fn available() -> Option<u64> {
    let host = line(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")? << 10;
    let group = |name: &str| fs::read_to_string(Path::new("/sys/fs/cgroup").join(name)).ok()?.trim().parse::<u64>().ok();
    let within = group("memory.max").and_then(|limit| Some(limit.saturating_sub(group("memory.current")?)));
    Some(within.map_or(host, |within| within.min(host)))
}

/// A process and all that descend from it, parents first.
#[must_use]
pub fn tree(root: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if let Some(parent) = stat(pid).and_then(|stat| stat.get(1)?.parse().ok()) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        found.extend(children.remove(&pid).unwrap_or_default());
        next += 1;
    }
    found
}

/// N of each `/dev/nvidiaN` that a process has open.
#[must_use]
pub fn gpu_files(pid: u32) -> BTreeSet<u32> {
    let files = fs::read_dir(proc(pid, "fd")).into_iter().flatten().flatten();
    let open = files.filter_map(|entry| fs::read_link(entry.path()).ok());
    open.filter_map(|path| path.to_str()?.strip_prefix("/dev/nvidia")?.parse().ok()).collect()
}

/// Whether a process has the driver's library loaded.
#[must_use]
pub fn uses_driver(pid: u32) -> bool {
    fs::read_to_string(proc(pid, "maps")).is_ok_and(|maps| maps.contains("/libcuda.so"))
}

/// Whether a process has managed memory, as far as its mappings tell: those lie where the host's own memory does (measured: driver 580).
#[must_use]
pub fn has_managed_memory(pid: u32) -> bool {
    let is_high = |line: &str| u64::from_str_radix(line.split('-').next().unwrap_or_default(), 16).is_ok_and(|start| start >= 1 << 40);
    let maps = fs::read_to_string(proc(pid, "maps")).unwrap_or_default();
    maps.lines().any(|line| line.ends_with("/dev/nvidia-uvm") && is_high(line))
}

/// The folder of the MPS daemon that a process would find, if that daemon runs.
#[must_use]
pub fn mps_folder(pid: u32) -> Option<PathBuf> {
    let environment = fs::read(proc(pid, "environ")).unwrap_or_default();
    let named = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"CUDA_MPS_PIPE_DIRECTORY="));
    let folder =
        named.map_or_else(|| PathBuf::from("/tmp").join("nvidia-mps"), |name| PathBuf::from(String::from_utf8_lossy(name).into_owned()));
    let daemon: u32 = fs::read_to_string(folder.join("nvidia-cuda-mps-control.pid")).ok()?.trim().parse().ok()?;
    start_time(daemon).map(|_| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_with_its_tree_and_memory() {
        let own = std::process::id();
        assert!(start_time(own).is_some() && resident(own) > 0 && available() > Some(0));
        assert_eq!(may_reach(own), Ok(()));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        assert_eq!(tree(own).first(), Some(&own));
        assert!(tree(own).contains(&child.id()));
        child.kill().expect("it runs");
        // It is a zombie until it is waited for.
        while start_time(child.id()).is_some() {
            std::thread::yield_now();
        }
        child.wait().expect("it ended");
        assert_eq!(start_time(u32::MAX), None);
    }
}
