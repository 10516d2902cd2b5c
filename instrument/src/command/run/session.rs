//! What the program's processes did: the lines that the library leaves in the session's folder (`runtime/interpose/src/session.rs`).

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder that the program's processes write to. It is gone when this is dropped, unless the program is saved, which has files of it open.
pub(super) struct Session {
    folder: PathBuf,
    _temporary: Option<TempDir>,
}

/// One kernel in one process, as the library writes it.
#[derive(Debug, Deserialize)]
struct Line {
    kernel: String,
    symbol: String,
    polled: bool,
    why: Option<String>,
    no_fuel: Option<String>,
    limit: Option<usize>,
    count: usize,
}

/// A kernel, in all processes.
#[derive(Debug, Default)]
struct Kernel {
    name: String,
    why: Option<String>,
    no_fuel: Option<String>,
    launches: u64,
}

/// What the program's processes did.
pub(super) struct Done {
    /// Stops, oldest first.
    stops: Vec<Value>,
    /// Kernels by whether they poll and by symbol.
    kernels: BTreeMap<(bool, String), Kernel>,
    unknown: Vec<String>,
}

impl Session {
    /// In the folder of the program's checkpoints, if it is to be saved.
    pub(super) fn begin(checkpoints: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(checkpoints) = checkpoints {
            let folder = std::path::absolute(checkpoints.join("session"))?;
            fs::create_dir_all(&folder).with_context(|| format!("{} can't be made", folder.display()))?;
            return Ok(Self { folder, _temporary: None });
        }
        let temporary = tempfile::Builder::new().prefix("cuinstr-run-").tempdir().context("a temporary folder can't be made")?;
        Ok(Self { folder: temporary.path().to_owned(), _temporary: Some(temporary) })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file that all processes append their stops to, as `CUINSTR_REPORT` has it.
    pub(super) fn stops(&self) -> String {
        self.file_of_stops().to_string_lossy().replace('%', "%%")
    }

    fn file_of_stops(&self) -> PathBuf {
        self.folder().join("stops")
    }

    /// Reads it all. `names` are the kernels that have limits of their own.
    pub(super) fn read(&self, names: &[String]) -> Done {
        let mut stops: Vec<Value> = lines(&self.file_of_stops()).collect();
        stops.sort_by_key(|stop| stop["unix_ms"].as_u64());
        let mut kernels: BTreeMap<(bool, String), Kernel> = BTreeMap::new();
        let mut used = vec![false; names.len()];
        let entries = fs::read_dir(self.folder()).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")) {
            let counts = fs::read(path.with_extension("counts")).unwrap_or_default();
            for line in lines(&path).filter_map(|line| serde_json::from_value::<Line>(line).ok()) {
                let count = counts.get(line.count * 8..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_ne_bytes(*bytes));
                if let Some(used) = line.limit.and_then(|limit| used.get_mut(limit)) {
                    *used = true;
                }
                let kernel = kernels.entry((line.polled, line.symbol)).or_default();
                (kernel.name, kernel.why, kernel.no_fuel) = (line.kernel, line.why, line.no_fuel);
                kernel.launches += count;
            }
        }
        let unknown = names.iter().zip(used).filter(|(_, used)| !used).map(|(name, _)| name.clone()).collect();
        Done { stops, kernels, unknown }
    }
}

fn lines(path: &Path) -> impl Iterator<Item = Value> {
    let text = fs::read(path).unwrap_or_default();
    let parsed: Vec<Value> = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    parsed.into_iter()
}

impl Done {
    /// Whether a launch was stopped because its time was over, or its process ended for it.
    pub(super) fn was_stopped(&self) -> bool {
        self.stops.iter().any(|stop| stop["why"] != "request")
    }

    /// Whether a limit names a kernel that was not launched.
    pub(super) fn has_unknown_names(&self) -> bool {
        !self.unknown.is_empty()
    }

    /// Whether a kernel without polls was launched.
    pub(super) fn has_unpolled(&self) -> bool {
        self.kernels.iter().any(|((is_polled, _), kernel)| !is_polled && kernel.launches > 0)
    }

    /// Appends to the report: each stop, oldest first, then each kernel. `%p` in its name is the process that was stopped.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let named = |process: &str| PathBuf::from(path.to_string_lossy().replace("%p", process).replace("%%", "%"));
        let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
        for stop in &self.stops {
            let _ = writeln!(files.entry(named(&stop["process"].to_string())).or_default(), "{stop}");
        }
        let all = files.entry(named(&std::process::id().to_string())).or_default();
        for ((is_polled, symbol), kernel) in &self.kernels {
            let line = json!({"cuinstr": 1, "event": "kernel", "kernel": kernel.name, "symbol": symbol, "polled": is_polled, "why": kernel.why, "no_fuel": kernel.no_fuel, "launches": kernel.launches});
            let _ = writeln!(all, "{line}");
        }
        for (path, text) in files {
            fs::OpenOptions::new().append(true).create(true).open(path)?.write_all(text.as_bytes())?;
        }
        Ok(())
    }

    /// What is said at the end.
    pub(super) fn text(&self, is_list: bool, is_quiet: bool) -> String {
        let mut text = String::new();
        for name in &self.unknown {
            let known = self.kernels.values().map(|kernel| kernel.name.as_str());
            let near = cuinstr::nearest::nearest(name, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let _ = writeln!(text, "error: --timeout names the kernel `{name}`, and none of that name was launched{near}");
        }
        if is_quiet && !is_list {
            return text;
        }
        let sum = |wanted: bool| {
            let of = || self.kernels.iter().filter(move |((is_polled, _), _)| *is_polled == wanted).map(|(_, kernel)| kernel.launches);
            (of().count(), of().sum::<u64>())
        };
        let ((with, with_launches), (without, without_launches)) = (sum(true), sum(false));
        let _ = writeln!(
            text,
            "cuinstr: {} with polls, {}; {} without, {}{}",
            counted(with as u64, "kernel"),
            counted(with_launches, "launch"),
            counted(without as u64, "kernel"),
            counted(without_launches, "launch"),
            if without > 0 && !is_list { " (--list names them)" } else { "" }
        );
        for (kernel, why) in self.kernels.values().filter_map(|kernel| Some((kernel, kernel.no_fuel.as_ref()?))) {
            let _ = writeln!(text, "cuinstr: warning: `{}` ran without fuel: {why}", kernel.name);
        }
        for ((is_polled, _), kernel) in self.kernels.iter().filter(|_| is_list) {
            let why = kernel.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            let polls = if *is_polled { "polls" } else { "no polls" };
            let _ = writeln!(text, "  {:>10}  {polls}  {}{why}", kernel.launches, kernel.name);
        }
        text
    }
}

/// `1 kernel`, `2 kernels`, `2 launches`.
fn counted(count: impl Into<u128>, what: &str) -> String {
    let count = count.into();
    let plural = if what.ends_with("ch") { "es" } else { "s" };
    format!("{count} {what}{}", if count == 1 { "" } else { plural })
}
