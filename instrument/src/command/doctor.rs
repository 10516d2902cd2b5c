//! `cuinstr doctor`: what this machine has, and which entries work with it.

use super::report::unread_variables;
use cuinstr::launcher::{self, ptxas};
use cuinstr::project::{config, environment};
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What was found of a tool, or what to do about its absence.
type Found = Result<String, &'static str>;

/// What is on the machine.
struct Machine {
    driver: Found,
    gpus: Vec<String>,
    nvcc: Found,
    host_compiler: Found,
    libclang: Found,
}

/// The whole answer.
pub(crate) fn text() -> String {
    let machine = Machine::look();
    let mut text = format!("cuinstr {}", env!("CARGO_PKG_VERSION"));
    if let Ok(path) = std::env::current_exe() {
        let _ = write!(text, ", {}", path.display());
    }
    text.push('\n');
    for (name, found) in
        [("driver", &machine.driver), ("nvcc", &machine.nvcc), ("C++ compiler", &machine.host_compiler), ("libclang", &machine.libclang)]
    {
        let found = found.clone().unwrap_or_else(|help| format!("not found: {help}"));
        let _ = writeln!(text, "  {name:14}{found}");
    }
    for gpu in &machine.gpus {
        let _ = writeln!(text, "  {:14}{gpu}", "GPU");
    }
    let folder = std::env::current_dir().unwrap_or_default();
    let config = config::find(&folder).map_or_else(|| "no cuinstr.toml here or above".to_owned(), |path| path.display().to_string());
    let _ = writeln!(text, "  {:14}{config}", "configuration");
    for (name, reader) in environment::USERS {
        if let Some(value) = std::env::var_os(name) {
            let _ = writeln!(text, "  {name}={}, read by {reader}", value.display());
        }
    }
    text.push_str(&unread_variables());
    text.push_str("works here:\n");
    for (entry, lacks) in machine.entries() {
        let _ = match lacks {
            None => writeln!(text, "  yes  {entry}"),
            Some(lacks) => writeln!(text, "  no   {entry:42} lacks {lacks}"),
        };
    }
    text
}

impl Machine {
    fn look() -> Self {
        let nvcc = launcher::find(OsStr::new("nvcc")).ok();
        Self {
            driver: driver(),
            gpus: gpus(),
            nvcc: nvcc.map(|path| described(&path, "release")).ok_or("install the CUDA toolkit, or set CUDA_HOME"),
            host_compiler: on_path("g++")
                .or_else(|| on_path("clang++"))
                .map(|path| described(&path, ""))
                .ok_or("nvcc needs one; on Debian and Ubuntu `apt-get install g++`"),
            libclang: cuinstr_clang::find()
                .map(|path| path.display().to_string())
                .map_err(|_| "only `audit` needs it; `cuinstr explain CI058` says how to install it"),
        }
    }

    /// Each entry, and what it lacks here.
    fn entries(&self) -> [(&'static str, Option<&'static str>); 9] {
        let lacks = |found: &Found, what| found.is_err().then_some(what);
        let compiler = lacks(&self.nvcc, "nvcc").or(lacks(&self.host_compiler, "a C++ compiler"));
        let driver = lacks(&self.driver, "a driver");
        let gpu = driver.or(self.gpus.is_empty().then_some("a GPU"));
        let dynamic = super::IS_STATIC.then_some("a build that is not static: see `cuinstr gpus`");
        let library = (!super::run::has_library()).then_some("its library: install it as README says");
        [
            ("cuinstr FILE (rewrite a file)", None),
            ("cuinstr verify (prove it on PTX)", None),
            ("cuinstr nvcc (build a project)", compiler),
            ("cuinstr ptxas (assemble PTX)", ptxas::find().is_err().then_some("ptxas")),
            ("cuinstr audit (compare with clang)", dynamic.or(lacks(&self.libclang, "libclang"))),
            ("cuinstr run (a program as it is)", library.or(gpu)),
            ("cuinstr gpus (choose a GPU)", dynamic.or(gpu)),
            ("cuinstr checkpoint (suspend a process)", dynamic.or(gpu)),
            ("launching kernels", gpu),
        ]
    }
}

/// The driver's version. A container has its files in /proc, or `nvidia-smi`, or both.
fn driver() -> Found {
    let told = answer(Path::new("nvidia-smi"), &["--query-gpu=driver_version", "--format=csv,noheader"]);
    let version = told.and_then(|text| text.lines().next().map(|line| line.trim().to_owned())).filter(|line| !line.is_empty());
    let loaded = || {
        let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
        text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')).map(str::to_owned)
    };
    version.or_else(loaded).ok_or("rewriting and compiling work without it, launching does not")
}

/// The GPUs that `nvidia-smi` lists, with their architectures.
fn gpus() -> Vec<String> {
    let told = answer(Path::new("nvidia-smi"), &["--query-gpu=index,name,compute_cap", "--format=csv,noheader"]).unwrap_or_default();
    let gpu = |line: &str| {
        let mut parts = line.split(", ");
        let (index, name, capability) = (parts.next()?, parts.next()?, parts.next()?);
        Some(format!("{index}: {name}, sm_{}", capability.trim().replace('.', "")))
    };
    told.lines().filter_map(gpu).collect()
}

/// A program's path, and the line of its `--version` that holds this word.
fn described(path: &Path, word: &str) -> String {
    let told = answer(path, &["--version"]).unwrap_or_default();
    let line = told.lines().find(|line| line.contains(word)).unwrap_or_default();
    format!("{}: {}", path.display(), line.trim())
}

/// What a program prints, if it runs and succeeds.
fn answer(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file())
}
