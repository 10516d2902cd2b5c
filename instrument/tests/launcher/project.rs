//! A folder of its own for each test: sources, a shim in place of nvcc, and a place for temporary files that must be empty in the end.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_cuinstr");

/// Stands in for nvcc: writes down its words, has each source that `SHIM_SOURCES` names preprocessed as nvcc would, into a file with the ending
/// `SHIM_ENDING`, does what `SHIM_THEN` says.
const SHIM: &str = r#"#!/bin/sh
here=$(dirname "$0")
{ echo "session=${CUINSTR_SESSION:+yes}"; for word in "$@"; do echo "word=$word"; done; } > "$here/record"
for variable in NVCC_PREPEND_FLAGS NVCC_APPEND_FLAGS NVCC_CCBIN; do eval "value=\$$variable"; echo "$variable=$value" >> "$here/record"; done
case " $* " in *" --version "*) echo "shim release 13.0"; exit 0 ;; esac
if [ -n "$CUINSTR_SESSION" ]; then
    for source in ${SHIM_SOURCES:-none.cu}; do
        ${SHIM_HOST:-gcc} -E -x c++ -D__CUDACC__ $SHIM_OPTIONS "$source" -o "$here/$(basename "$source")${SHIM_ENDING:-.ii}" || exit
    done
fi
eval "$SHIM_THEN"
"#;

/// One kernel, one loop that needs a poll.
pub(crate) const SPIN: &str = "__global__ void spin(volatile int* p) {\n    while (*p == 0) {\n    }\n}\n";

/// A project with a shim for nvcc.
pub(crate) struct Project {
    pub(crate) folder: TempDir,
}

impl Project {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let project = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        project.write("none.cu", "int none;\n");
        project.write("toolkit/bin/nvcc", SHIM);
        fs::set_permissions(project.shim(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        fs::create_dir(project.temporary()).expect("a folder");
        for (path, text) in files {
            project.write(path, text);
        }
        project
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("it lies in the project")).expect("folders can be made");
        fs::write(path, text).expect("files can be written");
    }

    pub(crate) fn shim(&self) -> PathBuf {
        self.path().join("toolkit/bin/nvcc")
    }

    /// Where temporary files go.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.path().join("tmp")
    }

    /// The program by another name.
    pub(crate) fn link(&self, name: &str) -> PathBuf {
        let link = self.path().join("links").join(name);
        fs::create_dir_all(self.path().join("links")).expect("a folder");
        symlink(BINARY, &link).expect("a link");
        link
    }

    /// A command in the project's folder, with the shim on the search path.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([self.path().join("toolkit/bin")].into_iter().chain(std::env::split_paths(&path))).expect("a path");
        command.current_dir(self.path()).env("PATH", path).env("TMPDIR", self.temporary()).stdin(Stdio::null());
        for name in
            ["CUINSTR_FLAGS", "CUINSTR_SESSION", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "CUDA_HOME", "CUDA_PATH", "CPATH"]
        {
            command.env_remove(name);
        }
        command
    }

    /// `cuinstr nvcc WORDS…`.
    pub(crate) fn launch(&self, words: &[&str]) -> Command {
        let mut command = self.command(BINARY);
        command.arg("nvcc").args(words);
        command
    }

    /// A command that signals end as ever, though whoever runs the tests ignores them: a shell has what it runs in the background ignore Ctrl-C.
    pub(crate) fn signalled(&self, program: impl AsRef<Path>) -> Command {
        let mut command = self.command("env");
        command.arg("--default-signal=HUP,INT,TERM").arg(program.as_ref());
        command
    }

    /// What the shim wrote down: whether it ran in a session, and its words.
    pub(crate) fn record(&self) -> (bool, Vec<String>) {
        let text = fs::read_to_string(self.path().join("toolkit/bin/record")).expect("the shim ran");
        (text.starts_with("session=yes"), text.lines().filter_map(|line| line.strip_prefix("word=")).map(str::to_owned).collect())
    }

    /// A variable as the shim saw it.
    pub(crate) fn variable(&self, name: &str) -> String {
        let text = fs::read_to_string(self.path().join("toolkit/bin/record")).expect("the shim ran");
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).expect("it is written down").to_owned()
    }

    /// A source as the shim had it preprocessed.
    pub(crate) fn preprocessed(&self, source: &str) -> String {
        self.preprocessed_as(source, ".ii")
    }

    /// The same where the file has that ending.
    pub(crate) fn preprocessed_as(&self, source: &str, ending: &str) -> String {
        fs::read_to_string(self.path().join(format!("toolkit/bin/{source}{ending}"))).expect("it was preprocessed")
    }

    /// Whatever is left among temporary files.
    pub(crate) fn left_behind(&self) -> Vec<PathBuf> {
        fs::read_dir(self.temporary()).expect("a folder").map(|entry| entry.expect("readable").path()).collect()
    }
}

/// Runs it; it must give this exit code.
pub(crate) fn expect(command: &mut Command, code: i32) -> Output {
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(code), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    output
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
