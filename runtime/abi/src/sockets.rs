//! Sockets at which a watched process answers what it runs. They lie in a folder of the process's user. A process has one
//! socket. It has several if several parts of it were made by cuinstr.
//!
//! A request is one line. The answer is lines of JSON, and then the connection ends:
//!
//! - `list`: a [`Running`] for each launch that runs or is paused.
//! - `stop`: a [`Running`] for each launch that is told to stop.
//! - `stop FOLDER`: the same, if the process belongs to that session of `cuinstr run`.
//! - `pause`: a [`Running`] for each launch that still runs. Later launches wait.
//! - `pause blocks`: the same, and launches that run pause at block boundaries, if they can. `list` shows when they have.
//! - `resume`: no line. Launches wait no more.
//! - `state`: one [`State`].
//! - `where`: a [`Whereabouts`] for each launch that runs.
//!
//! Beside its sockets a process has a file `NUMBER.BEGAN.words`, of some words that its parts share: whichever is asked,
//! all of them pause.
//!
//! A process that does not know a request answers with no line. `state` after `pause` shows whether the process knew it.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;

/// The folder, from the value of `XDG_RUNTIME_DIR` (an absolute path, or nothing), that of `TMPDIR`, and the user's number. Only its user may enter it.
#[must_use]
pub fn folder(runtime: Option<OsString>, temporary: Option<OsString>, user: u32) -> PathBuf {
    match runtime.map(PathBuf::from).filter(|path| path.is_absolute()) {
        Some(runtime) => runtime.join("cuinstr"),
        None => temporary
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .unwrap_or_else(|| "/tmp".into())
            .join(format!("cuinstr-run-{user}")),
    }
}

/// The name of a process's socket of this number, from 0.
#[must_use]
pub fn name(process: u32, number: u32) -> String {
    if number == 0 { format!("{process}.sock") } else { format!("{process}.{number}.sock") }
}

/// The process whose socket has this name.
#[must_use]
pub fn process(name: &str) -> Option<u32> {
    name.strip_suffix(".sock")?.split('.').next()?.parse().ok()
}

/// Whether a file of this name holds what the parts of a process share.
#[must_use]
pub fn is_words_of(name: &str, process: u32) -> bool {
    let number = name.strip_suffix(".words").and_then(|rest| rest.split_once('.')).map(|(number, _)| number.parse());
    number == Some(Ok(process))
}

/// What is true of a process as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Whether launches wait.
    pub paused: bool,
    /// Whether kernels that are stopped leave the GPU's state as it is, rather than trap.
    pub leaves: bool,
}

/// Where a launch can be that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whereabouts {
    /// The launch.
    pub launch: Running,
    /// The loops of its kernel that poll. A thread that runs for long is in one of them, or in a function that the kernel calls.
    pub loops: Vec<Loop>,
}

/// A loop of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Loop {
    /// Its file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// Its kind, as site maps have it.
    pub kind: String,
}

/// A launch that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// The kernel, as declared.
    pub kernel: String,
    /// Whether it polls.
    pub polled: bool,
    /// For how long it has run.
    pub ran_ns: u64,
    /// Its limit; 0 if it has none.
    pub timeout_ns: u64,
    /// What a pause at block boundaries has come to, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
}

/// What a pause at block boundaries has come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pause {
    /// Blocks that have begun still run.
    Asked,
    /// Nothing of the launch runs.
    Paused {
        /// Blocks that have run.
        done: u32,
        /// Blocks that have not.
        left: u32,
    },
    /// The launch runs on to its end.
    RunsOn {
        /// Why, as the end of a sentence.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_the_users_own() {
        let of = |runtime: Option<&str>, temporary: Option<&str>| folder(runtime.map(Into::into), temporary.map(Into::into), 7);
        assert_eq!(of(Some("/run/user/7"), Some("/t")), PathBuf::from("/run/user/7/cuinstr"));
        assert_eq!(of(Some("run"), Some("/t")), PathBuf::from("/t/cuinstr-run-7"));
        let common = of(None, None);
        assert_eq!(of(None, Some("t")), common);
        assert!(common.is_absolute() && common.ends_with("cuinstr-run-7") && common.components().count() == 3);
    }

    #[test]
    fn a_socket_bears_its_process_and_its_number() {
        assert_eq!([name(12, 0), name(12, 3)], ["12.sock", "12.3.sock"]);
        assert_eq!(["12.sock", "12.3.sock", "x.sock", "12.json", "12"].map(process), [Some(12), Some(12), None, None, None]);
        let names = ["12.345.words", "1.345.words", "12.sock", "12.words", "x.3.words"];
        assert_eq!(names.map(|name| is_words_of(name, 12)), [true, false, false, false, false]);
    }
}
