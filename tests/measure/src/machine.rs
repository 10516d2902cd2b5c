//! What a page of figures says of the machine and the moment.

use cuinstr_harness::process;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Now, in UTC, to the minute.
#[must_use]
pub fn date() -> String {
    let finished = process::run(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"]), Duration::from_secs(10));
    finished.map(|finished| finished.stdout.trim().to_owned()).unwrap_or_default()
}

/// The host's processor, with the number of cores that this process may use.
#[must_use]
pub fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!("{} ({cores} cores)", name.map_or("unknown", |(_, name)| name.trim()))
}
