//! A folder of its own for each test, and the command run in it.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_cuinstr");

/// One kernel, one loop that needs a poll.
pub(crate) const SPIN: &str = "__global__ void spin(volatile int *p) {\n    while (*p == 0) {\n    }\n}\n";

/// One kernel with a gap: the loop in the assembly can't be polled (CI013).
pub(crate) const ASM: &str = "__global__ void spin(int *p) {\n    asm volatile(\"L: ld.volatile.global.u32 r, [p]; @q bra L;\");\n}\n";

/// Last line of a summary without a limit.
pub(crate) const NO_LIMIT: &str =
    "no limit compiled in: a host that arms nothing will still hang; add --timeout 2s or launch with cuinstr-runtime";

/// Copies every input: for tests of what happens around the rewrite.
pub(crate) const COPY_ALL: &str = "exclude = [\"**\"]\n";

/// A folder of its own for each test, with these files in it.
pub(crate) struct Project(pub(crate) TempDir);

impl Project {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let project = Self(tempfile::tempdir().expect("a temporary folder can be made"));
        for (path, text) in files {
            project.write(path, text.as_bytes());
        }
        project
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("it lies in the project")).expect("folders can be made");
        fs::write(path, bytes).expect("files can be written");
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> String {
        String::from_utf8(fs::read(self.0.path().join(path)).expect("the file is there")).expect("it is UTF-8")
    }

    pub(crate) fn has(&self, path: impl AsRef<Path>) -> bool {
        self.0.path().join(path).exists()
    }

    /// Names of all that lies in a folder of the project.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.path().join(folder)).expect("the folder is there");
        let mut names = entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect::<Vec<_>>();
        names.sort();
        names
    }

    /// The command in this folder, its arguments split at spaces.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(BINARY);
        command.current_dir(self.0.path()).args(arguments.split(' ').filter(|word| !word.is_empty())).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &str) -> Run {
        Run::new(&self.command(arguments).output().expect("the command starts"))
    }

    pub(crate) fn run_with(&self, arguments: &str, stdin: &[u8]) -> Run {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
        child.stdin.take().expect("it is piped").write_all(stdin).expect("the command reads its input");
        Run::new(&child.wait_with_output().expect("the command ends"))
    }

    /// A shell script in this folder; `$1` is the command.
    #[cfg(unix)]
    pub(crate) fn shell(&self, script: &str) -> Run {
        let mut command = Command::new("sh");
        command.current_dir(self.0.path()).args(["-c", script, "sh", BINARY]).stdin(Stdio::null());
        Run::new(&command.output().expect("there is a shell"))
    }
}

/// What a run gave.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn new(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let run = Self { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) };
        assert!(!run.stderr.contains("panicked"), "{run:?}");
        run
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no {text:?} in {self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn silent(self) -> Self {
        assert!(self.stderr.is_empty(), "{self:?}");
        self
    }

    /// The JSON objects on standard error.
    pub(crate) fn objects(&self) -> Vec<serde_json::Value> {
        self.stderr.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    }
}
