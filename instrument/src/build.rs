//! For build scripts: CUDA source compiled by nvcc, every loop of it stoppable.
//!
//! ```no_run
//! // First of all in build.rs: nvcc calls this very program in place of the host's compiler.
//! let mut build = cuinstr::build::Build::new();
//! build.file("cuda/work.cu").include("cuda/include").timeout(std::time::Duration::from_secs(2)).compile("work");
//! ```
//!
//! In the manifest `cuinstr = { version = "0.1", default-features = false, features = ["build"] }` under `[build-dependencies]` is enough: nothing of the
//! command line comes with it.

mod binding;

use crate::launcher::{self, Recursion, Settings};
use crate::options::{BarrierMarks, DeviceMacro, PollGap, Polls};
use cuinstr_verify::Report;
use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What a compilation makes of a source for the GPU alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image {
    /// PTX, which the driver compiles for the GPU that it finds.
    Ptx,
    /// Machine code for one architecture.
    Cubin,
    /// Both, for several architectures.
    Fatbin,
}

impl Image {
    fn option(self) -> &'static str {
        match self {
            Self::Ptx => "-ptx",
            Self::Cubin => "-cubin",
            Self::Fatbin => "-fatbin",
        }
    }
}

/// Why a build failed: what to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<launcher::Error> for Error {
    fn from(error: launcher::Error) -> Self {
        Self(error.to_string())
    }
}

/// A compilation that is being put together, in the manner of `cc::Build`.
#[derive(Debug, Clone, Default)]
pub struct Build {
    files: Vec<PathBuf>,
    includes: Vec<PathBuf>,
    defines: Vec<(String, Option<String>)>,
    flags: Vec<OsString>,
    architectures: Vec<String>,
    nvcc: Option<PathBuf>,
    settings: Settings,
    relocatable: bool,
    verify: bool,
}

impl Build {
    /// An empty compilation.
    ///
    /// Call this before the build script does or prints anything: in a process that nvcc started in place of the host's compiler it does that
    /// compiler's work and does not return.
    #[must_use]
    pub fn new() -> Self {
        if let Some(code) = launcher::answer() {
            std::process::exit(code.into());
        }
        Self { settings: Settings { quiet: true, ..Settings::default() }, ..Self::default() }
    }

    /// Adds a CUDA source.
    pub fn file(&mut self, path: impl AsRef<Path>) -> &mut Self {
        self.files.push(path.as_ref().to_owned());
        self
    }

    /// Adds CUDA sources.
    pub fn files<P: AsRef<Path>>(&mut self, paths: impl IntoIterator<Item = P>) -> &mut Self {
        self.files.extend(paths.into_iter().map(|path| path.as_ref().to_owned()));
        self
    }

    /// Adds a folder of headers. Those of its headers that hold device code are rewritten like sources.
    pub fn include(&mut self, folder: impl AsRef<Path>) -> &mut Self {
        self.includes.push(folder.as_ref().to_owned());
        self
    }

    /// Defines a macro.
    pub fn define<'a>(&mut self, name: &str, value: impl Into<Option<&'a str>>) -> &mut Self {
        self.defines.push((name.to_owned(), value.into().map(str::to_owned)));
        self
    }

    /// Adds an argument of nvcc's.
    pub fn flag(&mut self, flag: impl Into<OsString>) -> &mut Self {
        self.flags.push(flag.into());
        self
    }

    /// Compiles for this architecture, such as `sm_90`; may be repeated. PTX is kept beside the machine code of each. Without one, nvcc's own choice.
    pub fn architecture(&mut self, name: &str) -> &mut Self {
        self.architectures.push(name.to_owned());
        self
    }

    /// Takes this nvcc instead of that of `NVCC`, of `PATH` or of `CUDA_HOME`.
    pub fn nvcc(&mut self, path: impl Into<PathBuf>) -> &mut Self {
        self.nvcc = Some(path.into());
        self
    }

    /// Lets device code of one source call that of another (`-rdc=true`).
    pub fn relocatable(&mut self, on: bool) -> &mut Self {
        self.relocatable = on;
        self
    }

    /// Stops threads that run longer than this, counted from their own entry. It does not matter which host launches
    /// them. Fractions of a nanosecond and more than 584 years are cut off.
    pub fn timeout(&mut self, timeout: Duration) -> &mut Self {
        self.settings.limits.timeout_ns = Some(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX).max(1));
        self
    }

    /// Stops threads that take more than this many cycles of their multiprocessor.
    pub fn budget_cycles(&mut self, cycles: u64) -> &mut Self {
        self.settings.limits.budget_cycles = Some(cycles.max(1));
        self
    }

    /// Stops each thread after this many iterations, the same on every run; at most [`Limits::MAX_FUEL`](crate::options::Limits::MAX_FUEL).
    pub fn fuel(&mut self, iterations: u64) -> &mut Self {
        self.settings.limits.fuel = Some(iterations.clamp(1, crate::options::Limits::MAX_FUEL));
        self
    }

    /// Where polls stand.
    pub fn polls(&mut self, polls: Polls) -> &mut Self {
        self.settings.polls = polls;
        self
    }

    /// How far apart in time two polls of a thread should lie.
    pub fn poll_gap(&mut self, gap: PollGap) -> &mut Self {
        self.settings.poll_gap = gap;
        self
    }

    /// Where a thread that leaves tells those that it may release from a block's barrier.
    pub fn barrier_marks(&mut self, marks: BarrierMarks) -> &mut Self {
        self.settings.barrier_marks = marks;
        self
    }

    /// Whether blocks can decline to run, so that a host may pause launches.
    pub fn pausable(&mut self, pausable: bool) -> &mut Self {
        self.settings.pausable = pausable;
        self
    }

    /// Which calls of functions that may reach themselves are polled.
    pub fn recursion(&mut self, recursion: Recursion) -> &mut Self {
        self.settings.recursion = recursion;
        self
    }

    /// Treats a macro in front of a function's name as an attribute of device code.
    pub fn device_macro(&mut self, device_macro: DeviceMacro) -> &mut Self {
        self.settings.device_macros.push(device_macro);
        self
    }

    /// Takes this configuration instead of the `cuinstr.toml` found upward from each file.
    pub fn config(&mut self, path: impl Into<PathBuf>) -> &mut Self {
        self.settings.config = Some(path.into());
        self
    }

    /// Makes a gap an error.
    pub fn strict(&mut self, on: bool) -> &mut Self {
        self.settings.strict = on;
        self
    }

    /// Proves on the PTX of every source that each loop can be stopped or ends, and fails if that can't be shown. Takes one more compilation of
    /// each source where no PTX is asked for.
    pub fn verify(&mut self, on: bool) -> &mut Self {
        self.verify = on;
        self
    }

    /// Compiles all sources into the static library `lib{name}.a`, and tells Cargo to link it, the C++ library and the CUDA runtime.
    ///
    /// # Panics
    /// Ends the build script with the message if [`Build::try_compile`] fails.
    pub fn compile(&self, name: &str) {
        or_end(self.try_compile(name));
    }

    /// As [`Build::compile`].
    ///
    /// # Errors
    /// If there is no nvcc, a source does not compile, something in it is refused, or the proof does not hold.
    pub fn try_compile(&self, name: &str) -> Result<(), Error> {
        let nvcc = self.find_nvcc()?;
        let out = out_folder()?;
        let mut cc = cc::Build::new();
        cc.cpp(true);
        let host = cc.try_get_compiler().map_err(|error| Error(format!("cuinstr: error: {error}")))?;
        let mut objects = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            let object = out.join(format!("{}-{number}.o", stem(file)));
            let mut words: Vec<OsString> =
                vec!["-c".into(), file.into(), "-o".into(), object.clone().into(), "-ccbin".into(), host.path().into()];
            words.extend(["-Xcompiler", "-fPIC"].map(OsString::from));
            self.run(&nvcc, file, words)?;
            if self.verify {
                let ptx = out.join(format!("{}-{number}.ptx", stem(file)));
                self.image(&nvcc, Image::Ptx, file, &ptx)?;
            }
            objects.push(object);
        }
        if self.relocatable {
            let linked = out.join(format!("{name}-linked.o"));
            let mut command = Command::new(&nvcc);
            command
                .arg("-dlink")
                .args(&objects)
                .arg("-o")
                .arg(&linked)
                .args(["-Xcompiler", "-fPIC"])
                .args(self.generate())
                .arg("-ccbin")
                .arg(host.path());
            let status =
                command.status().map_err(|error| Error(format!("cuinstr: error: `{}` can't be started: {error}", nvcc.display())))?;
            if !status.success() {
                return Err(Error(format!("cuinstr: error: nvcc could not link the device code of `{name}`: {status}")));
            }
            objects.push(linked);
        }
        cc.objects(&objects).try_compile(name).map_err(|error| Error(format!("cuinstr: error: {error}")))?;
        for folder in runtime_folders(&nvcc) {
            println!("cargo:rustc-link-search=native={}", folder.display());
        }
        let device = if self.relocatable { &["static=cudadevrt"][..] } else { &[] };
        for library in device.iter().chain(&["static=cudart_static", "dl", "rt", "pthread"]) {
            println!("cargo:rustc-link-lib={library}");
        }
        Ok(())
    }

    /// Compiles the only source for the GPU alone, into `OUT_DIR/{name}.ptx`, `.cubin` or `.fatbin`, and gives that path.
    ///
    /// `cuinstr_runtime::include_module!(mod name);` makes a module of it, with a method for each kernel, so that a name that is spelled wrong does not
    /// compile. A crate that launches by other means takes `include!(concat!(env!("OUT_DIR"), "/{name}.rs"))`: `IMAGE`, the bytes, and `kernel`, a
    /// constant for each kernel.
    ///
    /// # Panics
    /// Ends the build script with the message if [`Build::try_compile_image`] fails.
    #[expect(clippy::must_use_candidate, reason = "the path is known to whoever names the image")]
    pub fn compile_image(&self, image: Image, name: &str) -> PathBuf {
        or_end(self.try_compile_image(image, name))
    }

    /// As [`Build::compile_image`].
    ///
    /// # Errors
    /// As for [`Build::try_compile`], and if there is not exactly one source.
    pub fn try_compile_image(&self, image: Image, name: &str) -> Result<PathBuf, Error> {
        let [file] = &self.files[..] else {
            return Err(Error(format!("cuinstr: error: an image is made of one source, and {} are given", self.files.len())));
        };
        let nvcc = self.find_nvcc()?;
        let out = out_folder()?;
        let path = out.join(format!("{name}.{}", &image.option()[1..]));
        self.image(&nvcc, image, file, &path)?;
        let bytes = fs::read(&path).map_err(|error| cannot("read", &path, &error))?;
        let read = cuinstr_image::read(&bytes).map_err(|error| Error(format!("cuinstr: error: `{}`: {error}", path.display())))?;
        let kernels = read.kernels();
        for (end, text) in [("rs", binding::constants(file, &path, &kernels)), ("module.rs", binding::module(file, &kernels))] {
            let path = out.join(format!("{name}.{end}"));
            fs::write(&path, text).map_err(|error| cannot("write", &path, &error))?;
        }
        Ok(path)
    }

    /// Makes an image of a source and proves what there is to prove.
    fn image(&self, nvcc: &Path, image: Image, file: &Path, path: &Path) -> Result<(), Error> {
        self.run(nvcc, file, vec![image.option().into(), "-lineinfo".into(), file.into(), "-o".into(), path.into()])?;
        if !self.verify {
            return Ok(());
        }
        let mut ptx = path.to_owned();
        if image != Image::Ptx {
            ptx = path.with_extension("verified.ptx");
            self.run(nvcc, file, vec!["-ptx".into(), "-lineinfo".into(), file.into(), "-o".into(), ptx.clone().into()])?;
        }
        prove(&fs::read_to_string(&ptx).map_err(|error| cannot("read", &ptx, &error))?)
    }

    /// Runs nvcc on rewritten source, and tells Cargo what it read and what it says.
    fn run(&self, nvcc: &Path, file: &Path, mut words: Vec<OsString>) -> Result<(), Error> {
        let is_image = words.iter().any(|word| word == "-ptx" || word == "-cubin");
        let dependencies = words.iter().skip_while(|word| *word != "-o").nth(1).map(|output| {
            let mut path = output.clone();
            path.push(".d");
            PathBuf::from(path)
        });
        words.extend(self.includes.iter().flat_map(|folder| ["-I".into(), folder.into()]));
        for (name, value) in &self.defines {
            words.push(value.as_ref().map_or_else(|| format!("-D{name}"), |value| format!("-D{name}={value}")).into());
        }
        // PTX and machine code are made for one architecture.
        match &self.architectures[..] {
            [] => {}
            [first, ..] if is_image => words.push(format!("-arch={first}").into()),
            _ => words.extend(self.generate().into_iter().map(OsString::from)),
        }
        if self.relocatable {
            words.push("-rdc=true".into());
        }
        let level = env::var("OPT_LEVEL").unwrap_or_default();
        words.push(if level == "0" { "-O0" } else { "-O3" }.into());
        if let Some(path) = &dependencies {
            words.extend(["-MMD".into(), "-MF".into(), path.into()]);
        }
        words.extend(self.flags.iter().cloned());
        println!("cargo:rerun-if-changed={}", file.display());
        let done = launcher::launch(nvcc.as_os_str(), &words, &self.settings)?;
        for line in &done.said {
            println!("cargo:warning={line}");
        }
        if done.code != 0 {
            return Err(Error(format!(
                "cuinstr: error: nvcc ended with code {} on `{}`; what it said stands above",
                done.code,
                file.display()
            )));
        }
        let text = dependencies.and_then(|path| fs::read(path).ok()).unwrap_or_default();
        for path in prerequisites(&String::from_utf8_lossy(&text)) {
            println!("cargo:rerun-if-changed={path}");
        }
        Ok(())
    }

    fn generate(&self) -> Vec<String> {
        let number = |name: &String| name.trim_start_matches(|c: char| !c.is_ascii_digit()).to_owned();
        let both = |number: String| format!("-gencode=arch=compute_{number},code=[compute_{number},sm_{number}]");
        self.architectures.iter().map(|name| both(number(name))).collect()
    }

    fn find_nvcc(&self) -> Result<PathBuf, Error> {
        for name in ["NVCC", "CUDA_HOME", "CUDA_PATH", "CUINSTR_FLAGS", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN"] {
            println!("cargo:rerun-if-env-changed={name}");
        }
        let named = self.nvcc.clone().map(PathBuf::into_os_string).or_else(|| env::var_os("NVCC"));
        Ok(launcher::find(&named.unwrap_or_else(|| "nvcc".into()))?)
    }
}

/// The value, or the end of the build script with one readable message.
fn or_end<T>(result: Result<T, Error>) -> T {
    result.unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(1);
    })
}

fn out_folder() -> Result<PathBuf, Error> {
    let folder = env::var_os("OUT_DIR").map(PathBuf::from);
    folder.ok_or_else(|| Error("cuinstr: error: OUT_DIR is not set: call this from a build script".to_owned()))
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Folders of the toolkit that hold the CUDA runtime.
fn runtime_folders(nvcc: &Path) -> Vec<PathBuf> {
    let nvcc = nvcc.canonicalize().unwrap_or_else(|_| nvcc.to_owned());
    let Some(root) = nvcc.parent().and_then(Path::parent) else { return Vec::new() };
    let target = format!("targets/{}-linux/lib", env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_else(|_| env::consts::ARCH.to_owned()));
    [target.as_str(), "lib64", "lib"]
        .iter()
        .map(|name| root.join(name))
        .filter(|folder| folder.join("libcudart_static.a").is_file())
        .collect()
}

/// Fails with each loop that is not proved.
fn prove(ptx: &str) -> Result<(), Error> {
    let report: Report = cuinstr_verify::verify_ptx(ptx);
    if report.holds() {
        return Ok(());
    }
    let mut text = "cuinstr: error: it is not proved that every loop can be stopped".to_owned();
    for found in report.loops.iter().filter(|found| !found.verdict.holds()) {
        let _ = write!(text, "\n  {}: PTX line {}: {}", found.function, found.line, found.verdict.text());
    }
    for name in &report.unknown {
        let _ = write!(text, "\n  a function is not in sight: {name:?}");
    }
    for fault in &report.faults {
        let _ = write!(text, "\n  {fault:?}");
    }
    text.push_str("\n  help: `cuinstr verify` on the PTX in OUT_DIR shows the lines");
    Err(Error(text))
}

/// Files that a rule of a makefile names as prerequisites.
fn prerequisites(text: &str) -> BTreeSet<String> {
    let text = text.replace("\\\n", " ").replace("\\ ", "\u{0}");
    let rules = text.lines().filter_map(|line| Some(line.split_once(" : ").or_else(|| line.split_once(": "))?.1));
    rules.flat_map(str::split_whitespace).map(|path| path.replace('\u{0}', " ")).collect()
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error(format!("cuinstr: error: can't {what} `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prerequisites_are_read_as_make_does() {
        let read: Vec<String> = prerequisites("out/a.o : a.cu \\\n    inc/with\\ blank.h \\\n    b.h\n").into_iter().collect();
        assert_eq!(read, ["a.cu", "b.h", "inc/with blank.h"]);
        assert!(prerequisites("").is_empty());
    }
}
