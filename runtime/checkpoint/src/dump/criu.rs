//! CRIU, the program that saves what a process has beside CUDA.
//!
//! Its CUDA plugin is not used: the process is suspended before CRIU sees it, and then holds no GPU.

use super::DumpError;
use crate::system::{self, CAP_CHECKPOINT_RESTORE, CAP_SYS_PTRACE};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// CRIU 3.17, as Debian 12 has it, does not start on Linux 6.18.
const OLDEST: (u32, u32) = (4, 0);
/// How often the size of what CRIU writes is looked at.
const PAUSE: Duration = Duration::from_millis(200);
/// Lines of its log that an error shows.
const LINES: usize = 6;

/// CRIU as it is installed.
#[derive(Debug)]
pub(super) struct Criu {
    program: PathBuf,
    pub(super) version: String,
}

impl Criu {
    /// The one on the search path, or where packages put it.
    pub(super) fn find() -> Result<Self, DumpError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain(["/usr/local/sbin", "/usr/sbin"].map(PathBuf::from));
        let program = folders.map(|folder| folder.join("criu")).find(|path| path.is_file()).ok_or(DumpError::NoCriu)?;
        let output = Command::new(&program).arg("--version").output();
        let output = output.map_err(|error| DumpError::Criu { step: "--version", said: error.to_string() })?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.lines().find_map(|line| line.strip_prefix("Version:")).unwrap_or_default().trim().to_owned();
        let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
        if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < OLDEST {
            return Err(DumpError::CriuTooOld { program, version });
        }
        // CAP_CHECKPOINT_RESTORE does not reach into other processes.
        let may_dump = [CAP_CHECKPOINT_RESTORE, CAP_SYS_PTRACE].into_iter().all(system::has_capability);
        if !may_dump && !rustix::process::geteuid().is_root() {
            return Err(DumpError::Permission);
        }
        Ok(Self { program, version })
    }

    /// Has it do a step, and tells how many bytes the folder of images has meanwhile.
    pub(super) fn run(
        &self,
        step: &'static str,
        images: &Path,
        options: &[OsString],
        written: &mut dyn FnMut(u64),
    ) -> Result<(), DumpError> {
        let failed = |said: String| DumpError::Criu { step, said };
        let log = format!("{step}.log");
        // CRIU changes its folder before it looks for plugins.
        let images = &std::path::absolute(images).map_err(|error| failed(error.to_string()))?;
        let mut command = Command::new(&self.program);
        command.arg(step).arg("--images-dir").arg(images).args(["--shell-job", "-v2", "--log-file", &log]);
        // A folder without plugins.
        command.arg("--libdir").arg(images).args(options).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|error| failed(error.to_string()))? {
                break status;
            }
            written(super::size(images));
            std::thread::sleep(PAUSE);
        };
        if status.success() {
            return Ok(());
        }
        let text = std::fs::read_to_string(images.join(log)).unwrap_or_default();
        let errors: Vec<&str> = text.lines().filter(|line| line.contains("Error")).collect();
        let shown = errors[errors.len().saturating_sub(LINES)..].join("\n  ");
        Err(failed(if shown.is_empty() { format!("{status}; its log tells no error") } else { format!("{status}\n  {shown}") }))
    }
}
