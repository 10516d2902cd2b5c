//! Candidates to images: rewritten and compiled in helper processes, several at a time, since a compiler may crash or take for ever, too.

use crate::candidate::is_ptx;
use crate::child::{Helper, Killer, MOST_PAYLOAD, Program, Role, receive, send};
use crate::headers::values;
use crate::spec::{Spec, With};
use crate::verdict::{Finding, Place, Verdict};
use crate::{Candidate, Error, Result};
use cuinstr::options::{Limits, Options, Polls};
use cuinstr_image::Arch;
use cuinstr_runtime::jit::{self, ProgramError};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A candidate as the compiler left it: an image with the kernel's symbol, or a verdict.
pub type Built = std::result::Result<Arc<Image>, Box<Finding>>;

/// Largest image, in bytes.
const MOST_IMAGE: u64 = 1 << 30;

/// Compiled code.
#[derive(Debug, Clone)]
pub struct Image {
    /// What the driver loads.
    pub code: Vec<u8>,
    /// Name to find the kernel by.
    pub kernel: String,
    /// Name and version of what compiled it.
    pub compiler: String,
}

/// How all candidates of a specification are compiled.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// Number of the architecture, and whether it is the one with all its instructions.
    arch: (u32, Option<char>),
    kernel: String,
    instantiate: bool,
    by_nvcc: bool,
    options: Vec<String>,
    include: Vec<PathBuf>,
    polls_each: bool,
    fuel: bool,
    /// As it is, not rewritten.
    is_plain: bool,
    /// What compilers and reports call the source.
    path: String,
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    /// With the image.
    Compiled { kernel: String, compiler: String },
    /// The candidate is to blame.
    Failed { is_refused: bool, message: String, line: Option<u32>, column: u32 },
    /// The machine is.
    Broken { what: String },
}

impl Order {
    /// For an architecture, and to count fuel or not.
    #[must_use]
    pub fn new(spec: &Spec, arch: Arch, fuel: bool) -> Self {
        Self {
            arch: (arch.number, arch.suffix),
            kernel: spec.kernel.clone(),
            instantiate: spec.instantiate,
            by_nvcc: spec.compile.with == With::Nvcc,
            options: spec.compile.options.iter().map(|option| below(&spec.root, option)).collect(),
            include: spec.compile.include.iter().map(|include| spec.located(include)).chain(include_of_reference(spec)).collect(),
            polls_each: spec.compile.polls_each,
            fuel,
            is_plain: false,
            path: String::new(),
        }
    }

    /// The same for sources as they are.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.is_plain = true;
        self
    }
}

impl Order {
    /// Folders of the user's that a compilation reads.
    fn readable(&self) -> Vec<PathBuf> {
        let folders = values(&self.options, &["-I", "--include-path", "-isystem"]).map(PathBuf::from);
        let files = values(&self.options, &["-include", "--pre-include"]).filter_map(|file| Some(Path::new(file).parent()?.to_owned()));
        let search = std::env::var_os("PATH").unwrap_or_default();
        // An absolute path stays what it is.
        let nvcc = std::env::split_paths(&search).map(|folder| folder.join(nvcc_program())).find(|path| path.is_file());
        let toolkit = nvcc.filter(|_| self.by_nvcc).and_then(|path| Some(path.canonicalize().ok()?.parent()?.parent()?.to_owned()));
        self.include.iter().cloned().chain(folders).chain(files).chain(toolkit).collect()
    }
}

/// An option as it is where absolute paths lie below another folder.
fn below(root: &Path, option: &str) -> String {
    let names = ["-I", "--include-path=", "-isystem", "-include", "--pre-include=", ""];
    let place = names.into_iter().find_map(|name| Some((name, option.strip_prefix(name)?.strip_prefix('/')?)));
    let shipped = place.map(|(name, path)| (name, root.join(path))).filter(|(_, path)| path.exists());
    shipped.map_or_else(|| option.to_owned(), |(name, path)| format!("{name}{}", path.display()))
}

/// Headers beside the reference are found by what is judged in its place.
fn include_of_reference(spec: &Spec) -> Option<PathBuf> {
    let folder = spec.reference.parent()?;
    Some(if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() })
}

/// A helper that compiles, replaced when it is lost.
#[derive(Debug)]
pub struct Compiler {
    program: Program,
    order: Order,
    within: Duration,
    helper: Helper,
}

impl Compiler {
    /// Starts it. A compilation that takes longer than `within` is killed.
    ///
    /// # Errors
    /// If its process can't be started.
    pub fn start(program: &Program, order: Order, within: Duration) -> Result<Self> {
        let helper = Helper::start(program, Role::Compile, &order.readable())?;
        Ok(Self { program: program.clone(), order, within, helper })
    }

    /// What kills it.
    #[must_use]
    pub fn killer(&self) -> Killer {
        self.helper.killer()
    }

    /// Compiles one source.
    ///
    /// # Errors
    /// If the compiler is missing or the helper does not do its work: of the candidate itself there is a finding.
    pub fn compile(&mut self, candidate: &Candidate) -> Result<Built> {
        match self.once(candidate)? {
            Some(built) => Ok(built),
            // Something else may have ended the process, such as a lack of memory.
            None => Ok(self
                .once(candidate)?
                .unwrap_or_else(|| Err(Box::new(Finding::new(Verdict::CompileError, "the compiler crashed twice".to_owned()))))),
        }
    }

    /// `None` if the compiler's process was lost.
    fn once(&mut self, candidate: &Candidate) -> Result<Option<Built>> {
        let order = Order { path: candidate.path.clone(), ..self.order.clone() };
        let until = Instant::now() + self.within;
        let answer = self.helper.tell(&order, &candidate.source).and_then(|()| self.helper.hear::<Answer>(until, MOST_IMAGE));
        let (answer, code) = match answer {
            Ok(answer) => answer,
            Err(error) => {
                // One that was told to end is not replaced.
                let is_killed = self.helper.killer().is_done();
                if !is_killed {
                    self.helper = Helper::start(&self.program, Role::Compile, &self.order.readable())?;
                }
                return match error.kind() {
                    io::ErrorKind::TimedOut => {
                        let message = format!("the compiler took longer than {:?}, and was killed", self.within);
                        Ok(Some(Err(Box::new(Finding::new(Verdict::CompileError, message)))))
                    }
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(None),
                    _ => {
                        let program = self.program.path.clone().unwrap_or_else(|| "of this process".into()).display().to_string();
                        Err(Error::Helper { program, why: format!("is no helper: {error}") })
                    }
                };
            }
        };
        Ok(Some(match answer {
            Answer::Compiled { kernel, compiler } => Ok(Arc::new(Image { code, kernel, compiler })),
            Answer::Broken { what } => return Err(Error::Compiler(what)),
            Answer::Failed { is_refused, message, line, column } => {
                let verdict = if is_refused { Verdict::Refused } else { Verdict::CompileError };
                let mut finding = Finding::new(verdict, message);
                finding.place = line.map(|line| Place {
                    file: candidate.path.clone(),
                    line,
                    column,
                    function: String::new(),
                    text: candidate.line(line),
                });
                Err(Box::new(finding))
            }
        }))
    }
}

/// The helper's side.
pub(crate) fn serve(stream: &mut UnixStream) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut compiler = None;
    loop {
        let (order, source): (Order, _) = receive(stream, None, MOST_PAYLOAD)?;
        let (answer, code) = match one(&order, &source, folder.path()) {
            Ok((code, kernel)) => (Answer::Compiled { kernel, compiler: compiler.get_or_insert_with(|| named(&order)).clone() }, code),
            Err(answer) => (answer, Vec::new()),
        };
        send(stream, &answer, &code)?;
    }
}

fn one(order: &Order, source: &[u8], folder: &Path) -> std::result::Result<(Vec<u8>, String), Answer> {
    let (number, suffix) = order.arch;
    let arch = Arch { number, suffix };
    let limits = Limits { fuel: order.fuel.then_some(Limits::MAX_FUEL), ..Limits::default() };
    let polls = if order.polls_each { Polls::Each } else { Polls::Amortised };
    let rewriting = Options { path: order.path.clone(), limits, polls, ..Options::default() };
    let is_ptx = is_ptx(&order.path);
    if is_ptx || order.by_nvcc {
        let text = if order.is_plain { source.to_vec() } else { rewritten(source, is_ptx, &rewriting)? };
        // Without nvcc the driver assembles PTX, when a bench loads it.
        let code = if order.by_nvcc { nvcc(order, &text, arch, folder)? } else { text };
        return Ok((code, order.kernel.clone()));
    }
    let mut program = jit::Program::from_cuda(source);
    program.rewriting(rewriting);
    for option in &order.options {
        program.option(option);
    }
    for include in &order.include {
        program.include(include);
    }
    if let Some(home) = std::env::var_os("CUDA_HOME") {
        program.include(Path::new(&home).join("include"));
    }
    if order.instantiate {
        program.instantiate(&order.kernel);
    }
    let compiled = if order.is_plain { program.compile_plain(arch) } else { program.compile(arch) };
    let mut compiled = compiled.map_err(|error| failed(error, source, &order.path))?;
    let kernel = compiled.symbols.remove(&order.kernel).unwrap_or_else(|| order.kernel.clone());
    Ok((compiled.code, kernel))
}

/// The compiler that an order is for: its name and version.
fn named(order: &Order) -> String {
    if !order.by_nvcc {
        return jit::version().map_or_else(|_| "NVRTC".into(), |(major, minor)| format!("NVRTC {major}.{minor}"));
    }
    let said = Command::new(nvcc_program()).arg("--version").stdin(Stdio::null()).output();
    let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
    let version = said.split_whitespace().rfind(|word| word.starts_with('V') && word[1..].starts_with(|c: char| c.is_ascii_digit()));
    version.map_or_else(|| "nvcc".into(), |version| format!("nvcc {version}"))
}

fn nvcc_program() -> PathBuf {
    std::env::var_os("CUDA_HOME").map_or_else(|| "nvcc".into(), |home| Path::new(&home).join("bin/nvcc"))
}

fn failed(error: ProgramError, source: &[u8], path: &str) -> Answer {
    match error {
        ProgramError::Rewrite { diagnostics, .. } => refused(&diagnostics, source, path),
        ProgramError::Compile { messages, text } => {
            let first = messages.iter().find(|message| message.severity == jit::Severity::Error);
            let (line, column) = first.map_or((None, 0), |first| (Some(first.line), first.column.unwrap_or(0)));
            let message = first.map_or(text, |first| first.text.clone());
            let message = message.trim().lines().next().unwrap_or_default().to_owned();
            Answer::Failed { is_refused: false, message, line, column }
        }
        ProgramError::ZeroByte(_) => Answer::Failed { is_refused: false, message: error.to_string(), line: None, column: 0 },
        other => Answer::Broken { what: other.to_string() },
    }
}

fn refused(diagnostics: &[cuinstr::diagnostic::Diagnostic], source: &[u8], path: &str) -> Answer {
    let error = diagnostics.iter().find(|diagnostic| diagnostic.severity == cuinstr::diagnostic::Severity::Error);
    let Some(error) = error else {
        return Answer::Failed { is_refused: false, message: format!("the rewriter refuses {path}"), line: None, column: 0 };
    };
    let place = error.primary.as_ref().map(|label| {
        let before = &source[..label.span.start.min(source.len())];
        let line = before.split(|byte| *byte == b'\n').count();
        let column = before.len() - before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1) + 1;
        (line as u32, column as u32)
    });
    let message = format!("{}: {}", error.code.id(), error.message);
    let (line, column) = place.map_or((None, 0), |(line, column)| (Some(line), column));
    Answer::Failed { is_refused: error.code == cuinstr::diagnostic::Code::OwnOutput, message, line, column }
}

fn rewritten(source: &[u8], is_ptx: bool, options: &Options) -> std::result::Result<Vec<u8>, Answer> {
    let rewrite = if is_ptx { cuinstr::rewrite_ptx(source, options) } else { cuinstr::rewrite(source, options) };
    rewrite.output.ok_or_else(|| refused(&rewrite.diagnostics, source, &options.path))
}

fn nvcc(order: &Order, text: &[u8], arch: Arch, folder: &Path) -> std::result::Result<Vec<u8>, Answer> {
    let broken = |what: String| Answer::Broken { what };
    let name = Path::new(&order.path).file_name().unwrap_or("kernel.cu".as_ref());
    let (input, output) = (folder.join(name), folder.join("image.cubin"));
    std::fs::write(&input, text).map_err(|error| broken(format!("{}: {error}", input.display())))?;
    let _ = std::fs::remove_file(&output);
    let program = nvcc_program();
    let mut command = Command::new(&program);
    command.arg("-cubin").arg(format!("-arch=sm_{arch}")).args(&order.options).arg("-o").arg(&output).arg(&input);
    for include in &order.include {
        command.arg("-I").arg(include);
    }
    let said = command.stdin(Stdio::null()).output().map_err(|error| broken(format!("{}: {error}", program.display())))?;
    if said.status.success() {
        return std::fs::read(&output).map_err(|error| broken(format!("{}: {error}", output.display())));
    }
    let text = [said.stderr, said.stdout].concat();
    let text = String::from_utf8_lossy(&text);
    // `path(line): error: message`.
    let error = text.lines().find(|line| line.contains("error")).unwrap_or_else(|| text.trim());
    let line = error.split_once('(').and_then(|(_, rest)| rest.split_once(')')).and_then(|(line, _)| line.parse().ok());
    let message = error.split_once("error: ").map_or(error, |(_, message)| message).trim().to_owned();
    Err(Answer::Failed { is_refused: false, message, line, column: 0 })
}
