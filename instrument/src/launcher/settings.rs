//! What holds for all files of a project's build.

use crate::options::{AtExit, BarrierMarks, DeviceMacro, Limits, Options, Pass, PollGap, Polls};
use cuinstr_abi::sites::hash;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Which calls of functions that may reach themselves are polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Recursion {
    /// Those that lie on a cycle in the compiler's output. A unit that has some by its functions' names is compiled to PTX once more to find out.
    #[default]
    Proved,
    /// All that lie on a cycle by their functions' names.
    Named,
}

/// How source is rewritten, beside what `cuinstr.toml` says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Settings {
    /// Where in the compilation polls are inserted.
    pub pass: Pass,
    /// Where polls stand.
    pub polls: Polls,
    /// How far apart they should lie.
    pub poll_gap: PollGap,
    /// What a thread does at its end.
    pub at_exit: AtExit,
    /// Where threads at barriers are told of those that have left.
    pub barrier_marks: BarrierMarks,
    /// Limits compiled in.
    pub limits: Limits,
    /// Whether blocks can decline to run.
    pub pausable: bool,
    /// Which calls are polled.
    pub recursion: Recursion,
    /// Macros that mark device functions.
    pub device_macros: Vec<DeviceMacro>,
    /// The configuration file; absent: the `cuinstr.toml` found upward from each file.
    pub config: Option<PathBuf>,
    /// Whether a gap fails the compilation.
    pub strict: bool,
    /// Whether a loop fails the compilation of which it is not proved, on the PTX, that it can be stopped or ends.
    pub verify: bool,
    /// Whether gaps go unsaid.
    pub quiet: bool,
    /// Whether the toolkit's libraries of device code are rewritten, too.
    pub system_headers: bool,
    /// Where to write what became of each unit's files. It decides nothing about objects, and so is no part of their number.
    #[serde(skip)]
    pub coverage: Option<PathBuf>,
}

impl Settings {
    /// A number for all that decides what becomes of a source: the settings, and this build by its own source.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let config = self.config.as_ref().and_then(|path| std::fs::read(path).ok());
        let found = std::env::current_dir().ok().and_then(|folder| crate::project::config::find(&folder));
        let config = config.or_else(|| std::fs::read(found?).ok()).unwrap_or_default();
        let parts: [&[u8]; 4] = [
            super::host_runtime::identity().as_bytes(),
            env!("CUINSTR_SOURCE").as_bytes(),
            &serde_json::to_vec(self).unwrap_or_default(),
            &config,
        ];
        parts.iter().fold(0, |sum, part| hash(sum, part))
    }

    /// The line behind nvcc's own version: caches that ask for it tell our objects from plain ones, and from those of other settings.
    #[must_use]
    pub fn version_line(&self) -> String {
        format!("cuinstr {}, options {:016x}", env!("CARGO_PKG_VERSION"), self.digest())
    }

    /// The library's options, without a path.
    pub(super) fn options(&self) -> Options {
        Options {
            polls: self.polls,
            poll_gap: self.poll_gap,
            at_exit: self.at_exit,
            barrier_marks: self.barrier_marks,
            limits: self.limits,
            pausable: self.pausable,
            device_macros: self.device_macros.clone(),
            strict: self.strict,
            ..Options::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_of_all_that_decides_what_becomes_of_a_source() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("cuinstr.toml");
        let write = |text: &str| std::fs::write(&path, text).expect("it can be written");
        write("strict = true\n");
        let plain = Settings { config: Some(path.clone()), ..Settings::default() };
        let digest = plain.digest();
        assert_eq!(digest, plain.digest());
        assert_ne!(digest, Settings { strict: true, ..plain.clone() }.digest());
        assert_ne!(digest, Settings { pausable: true, ..plain.clone() }.digest());
        assert_eq!(digest, Settings { coverage: Some(path.clone()), ..plain.clone() }.digest());
        write("strict = false\n");
        assert_ne!(digest, plain.digest(), "what the file holds counts, not its name");
        assert_eq!(plain.version_line(), format!("cuinstr {}, options {:016x}", env!("CARGO_PKG_VERSION"), plain.digest()));
    }

    #[test]
    fn each_setting_of_the_library_is_passed_on() {
        let settings = Settings {
            polls: Polls::Each,
            poll_gap: PollGap::from_nanoseconds(2_000).expect("a gap"),
            at_exit: AtExit::Gate,
            limits: Limits { fuel: Some(7), ..Limits::default() },
            pausable: true,
            strict: true,
            ..Settings::default()
        };
        let (own, options) = (settings.clone(), settings.options());
        assert_eq!((options.polls, options.poll_gap, options.at_exit), (own.polls, own.poll_gap, own.at_exit));
        assert_eq!((options.limits, options.pausable, options.strict), (own.limits, true, true));
    }
}
