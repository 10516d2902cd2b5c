//! Where processes that are watched can be asked what they run: one socket each, in a folder of their user.
//!
//! A request is one line; the answer is lines of JSON, and then the connection ends.
//!
//! | request | answer |
//! | --- | --- |
//! | `list` | a [`Running`] for each launch that runs |
//! | `stop` | the same for each launch that is told to stop |
//! | `stop FOLDER` | the same, if the process belongs to that session of `cuinstr run` |

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
}
