//! CUDA source or PTX to a module in one call. Source is compiled with NVRTC, its messages on the user's own lines; polls are inserted into the
//! source ([`Pass::Source`]) or into the PTX that NVRTC makes of it ([`Pass::Ptx`]).
//!
//! Rewriting and compiling source need no GPU, only NVRTC (`libnvrtc`, from the CUDA toolkit or NVIDIA's wheels), which is loaded at run time.

mod install;
mod message;
mod nvrtc;

pub use cuinstr;
pub use install::folders_with_nvrtc;
pub use message::{Message, Severity};
pub use nvrtc::version;

use crate::driver;
use crate::error::Error;
use crate::module::Module;
use crate::sources::Sources;
use cudarc::driver::CudaContext;
use cuinstr::Rewrite;
use cuinstr::diagnostic::{Diagnostic, Severity as Weight};
use cuinstr::options::{Options, Pass};
use cuinstr::render::{self, Source};
use cuinstr_abi::sites::SiteMap;
use cuinstr_image::{Arch, Form};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Names of sources that were given none.
const UNNAMED: &str = "kernel.cu";
const UNNAMED_PTX: &str = "kernel.ptx";

/// CUDA source or PTX on its way to a module. Begin with [`Program::from_cuda`] or [`Program::from_ptx`], end with [`Program::load`], or with
/// [`Program::compile`] on a machine without a GPU.
///
/// The source pass does not rewrite what the source includes: loops in headers are not polled. The PTX pass polls them too.
///
/// # Examples
/// ```no_run
/// use cuinstr_runtime::jit::Program;
///
/// let context = cuinstr_runtime::open(0)?;
/// let source = "__global__ void fill(float* out, int n) { for (int i = 0; i < n; ++i) out[i] = 1; }";
/// let (module, compiled) = Program::from_cuda(source).file("fill.cu").load(&context)?;
/// let kernel = module.kernel("fill")?;
/// println!("`{}` has {} sites", kernel.name(), compiled.sites.sites.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// PTX that another compiler made, such as Triton, clang or `nvcc -ptx`, needs no NVRTC:
///
/// ```no_run
/// use cuinstr_runtime::jit::Program;
///
/// let context = cuinstr_runtime::open(0)?;
/// let (module, _) = Program::from_ptx(std::fs::read("fill.ptx")?).file("fill.ptx").load(&context)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// For another architecture than that of a context, and with an instance of a template:
///
/// ```no_run
/// use cuinstr_runtime::image::Arch;
/// use cuinstr_runtime::jit::Program;
///
/// let source = "template <typename T> __global__ void fill(T* out, int n) { for (int i = 0; i < n; ++i) out[i] = 1; }";
/// let compiled = Program::from_cuda(source).file("fill.cu").instantiate("fill<float>").compile(Arch { number: 90, suffix: None })?;
/// println!("{} bytes for {}", compiled.code.len(), compiled.symbols["fill<float>"]);
/// # Ok::<(), cuinstr_runtime::jit::ProgramError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Program {
    source: Vec<u8>,
    language: Language,
    pass: Pass,
    rewriting: Options,
    options: Vec<String>,
    expressions: Vec<String>,
}

/// What a program's source is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Cuda,
    Ptx,
}

/// A program that can be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compiled {
    /// The module: a cubin; or PTX, of the PTX pass, and if this NVRTC does not know the architecture and the driver must.
    pub code: Vec<u8>,
    /// Which of the two it is.
    pub form: Form,
    /// What it was compiled for. For [`Program::from_ptx`] what was asked for: the driver compiles the PTX for its device.
    pub arch: Arch,
    /// The sites; the module holds the same as a record.
    pub sites: SiteMap,
    /// The symbol of each name that [`Program::instantiate`] was given.
    pub symbols: BTreeMap<String, String>,
    /// What the rewriter said: gaps that no poll covers, above all.
    pub diagnostics: Vec<Diagnostic>,
    /// What the compiler warned of.
    pub warnings: Vec<Message>,
}

/// Why a program could not be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The rewriter refuses the source.
    #[error("the source can't be rewritten:\n{text}")]
    Rewrite {
        /// All that it said.
        diagnostics: Vec<Diagnostic>,
        /// The errors among it, one a line.
        text: String,
    },
    /// The source does not compile.
    #[error("the source does not compile:\n{text}")]
    Compile {
        /// What the compiler said, warnings included.
        messages: Vec<Message>,
        /// The compiler's text, with the user's own lines and the caret where it belongs in them.
        text: String,
    },
    /// NVRTC can't be loaded.
    #[error("{}", install::no_nvrtc(.found))]
    NoNvrtc {
        /// Folders, not on the loader's path, in which it was found.
        found: Vec<String>,
    },
    /// NVRTC can't load the library with its built-in functions.
    #[error("{}", install::no_builtins(.library, .beside.as_deref()))]
    NoBuiltins {
        /// File name of the library.
        library: String,
        /// The folder that NVRTC itself was loaded from.
        beside: Option<String>,
    },
    /// The program, or an option, holds a zero byte, which NVRTC would take for its end.
    #[error("{0} holds a zero byte")]
    ZeroByte(String),
    /// The driver can't load what was compiled.
    #[error(transparent)]
    Load(#[from] Error),
    /// Any other answer of NVRTC.
    #[error("{call}: {name} ({code}){}{log}", if log.is_empty() { "" } else { "\n" })]
    Nvrtc {
        /// Name of the call.
        call: &'static str,
        /// Name of the error.
        name: String,
        /// Number of the error, as in `nvrtc.h`.
        code: u32,
        /// What NVRTC wrote about it.
        log: String,
    },
}

impl Program {
    /// A program of one source, called `kernel.cu` until [`Program::file`] says otherwise.
    pub fn from_cuda(source: impl Into<Vec<u8>>) -> Self {
        let rewriting = Options { path: UNNAMED.into(), ..Options::default() };
        let (language, pass) = (Language::Cuda, Pass::Source);
        Self { source: source.into(), language, pass, rewriting, options: Vec::new(), expressions: Vec::new() }
    }

    /// A program of one text of PTX, called `kernel.ptx` until [`Program::file`] says otherwise. Options of NVRTC mean nothing for it.
    pub fn from_ptx(ptx: impl Into<Vec<u8>>) -> Self {
        let mut ptx = ptx.into();
        // NVRTC and the driver hand on texts with a zero behind them.
        if ptx.ends_with(b"\0") {
            ptx.pop();
        }
        let rewriting = Options { path: UNNAMED_PTX.into(), ..Options::default() };
        let (language, pass) = (Language::Ptx, Pass::Ptx);
        Self { source: ptx, language, pass, rewriting, options: Vec::new(), expressions: Vec::new() }
    }

    /// Where polls are inserted into a program of CUDA source; into the source if nothing is said. Programs of PTX know one way only.
    ///
    /// With [`Pass::Ptx`] the module is PTX, so the driver must know the PTX version that NVRTC writes: it is as new as NVRTC, or newer.
    pub fn pass(&mut self, pass: Pass) -> &mut Self {
        if self.language == Language::Cuda {
            self.pass = pass;
        }
        self
    }

    /// The name that compiler, rewriter and reports call the source by.
    pub fn file(&mut self, path: impl Into<String>) -> &mut Self {
        self.rewriting.path = path.into();
        self
    }

    /// How to rewrite. The path in the options counts unless it is empty.
    pub fn rewriting(&mut self, options: Options) -> &mut Self {
        let path = std::mem::replace(&mut self.rewriting, options).path;
        if self.rewriting.path.is_empty() {
            self.rewriting.path = path;
        }
        self
    }

    /// Lets launches of its kernels be paused ([`Prepared::pausable`](crate::Prepared::pausable)).
    pub fn pausable(&mut self) -> &mut Self {
        self.rewriting.pausable = true;
        self
    }

    /// An option of NVRTC, such as `--std=c++20` or `--use_fast_math`. The architecture is set by [`Program::compile`].
    pub fn option(&mut self, option: impl Into<String>) -> &mut Self {
        self.options.push(option.into());
        self
    }

    /// Defines a macro; an empty value defines it as nothing.
    pub fn define(&mut self, name: &str, value: &str) -> &mut Self {
        self.option(format!("--define-macro={name}={value}"))
    }

    /// A folder to find headers in.
    pub fn include(&mut self, folder: impl AsRef<Path>) -> &mut Self {
        self.option(format!("--include-path={}", folder.as_ref().display()))
    }

    /// A kernel that must be in the module, as an expression: `gemm<float, 16>`, `&ns::gemm`. Instances of templates are only made if asked for.
    /// [`Compiled::symbols`] then has its symbol.
    pub fn instantiate(&mut self, expression: impl Into<String>) -> &mut Self {
        self.expressions.push(expression.into());
        self
    }

    /// Rewrites and compiles, for the architecture itself if NVRTC knows it, else to PTX for the nearest older one. The PTX pass gives PTX.
    ///
    /// # Errors
    /// If the rewriter refuses the source or the PTX, the source does not compile, or NVRTC or its builtins are missing.
    pub fn compile(&self, arch: Arch) -> Result<Compiled, ProgramError> {
        match (self.language, self.pass) {
            (Language::Ptx, _) => {
                let (code, sites, diagnostics) = self.polled(cuinstr::rewrite_ptx(&self.source, &self.rewriting), &self.source)?;
                Ok(Compiled { code, form: Form::Ptx, arch, symbols: BTreeMap::new(), warnings: Vec::new(), sites, diagnostics })
            }
            (Language::Cuda, Pass::Source) => {
                let rewrite = cuinstr::rewrite(&self.source, &self.rewriting);
                let inserted = rewrite.inserted.clone();
                let (text, sites, diagnostics) = self.polled(rewrite, &self.source)?;
                self.compile_text(&text, &inserted, arch, Form::Cubin, sites, diagnostics)
            }
            (Language::Cuda, Pass::Ptx) => {
                let mut program = self.clone();
                // Reports name lines of the source. The compiler's code is the same without its locations.
                program.option("--generate-line-info");
                let plain = program.compile_text(&self.source, &[], arch, Form::Ptx, self.no_sites(), Vec::new())?;
                let ptx = plain.code.strip_suffix(b"\0").unwrap_or(&plain.code);
                let (code, sites, diagnostics) = self.polled(cuinstr::rewrite_ptx(ptx, &self.rewriting), ptx)?;
                Ok(Compiled { code, sites, diagnostics, ..plain })
            }
        }
    }

    /// Text, sites and diagnostics of a rewrite, if it was not refused.
    fn polled(&self, rewrite: Rewrite, from: &[u8]) -> Result<(Vec<u8>, SiteMap, Vec<Diagnostic>), ProgramError> {
        let Some(output) = rewrite.output else {
            let shown = Source::new(&self.rewriting.path, from);
            let errors = rewrite.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Weight::Error);
            let text = errors.map(|diagnostic| render::short(&shown, diagnostic)).collect();
            return Err(ProgramError::Rewrite { diagnostics: rewrite.diagnostics, text });
        };
        Ok((output, rewrite.sites, rewrite.diagnostics))
    }

    fn no_sites(&self) -> SiteMap {
        let file = self.rewriting.path.clone();
        SiteMap { version: SiteMap::VERSION, file, hash: String::new(), polls_each: false, counts_fuel: false, sites: Vec::new() }
    }

    /// Compiles the source as it is, not rewritten, and leaves PTX as it is: nothing can stop its kernels, and no module of this crate's is made
    /// of it. For comparisons.
    ///
    /// # Errors
    /// If it does not compile, or NVRTC or its builtins are missing.
    pub fn compile_plain(&self, arch: Arch) -> Result<Compiled, ProgramError> {
        if self.language == Language::Ptx {
            let sites = self.no_sites();
            let (code, form) = (self.source.clone(), Form::Ptx);
            return Ok(Compiled { code, form, arch, symbols: BTreeMap::new(), warnings: Vec::new(), sites, diagnostics: Vec::new() });
        }
        self.compile_text(&self.source, &[], arch, Form::Cubin, self.no_sites(), Vec::new())
    }

    fn compile_text(
        &self,
        text: &[u8],
        inserted: &[Range<usize>],
        arch: Arch,
        wanted: Form,
        sites: SiteMap,
        diagnostics: Vec<Diagnostic>,
    ) -> Result<Compiled, ProgramError> {
        let (form, arch) = target(arch, &nvrtc::architectures()?);
        let form = if wanted == Form::Ptx { Form::Ptx } else { form };
        let real = if form == Form::Cubin { "sm" } else { "compute" };
        let mut options = vec![format!("--gpu-architecture={real}_{arch}")];
        options.extend(self.options.iter().cloned());
        let answer = nvrtc::compile(text, &self.rewriting.path, &options, &self.expressions, form == Form::Cubin);
        let log = |log: &[u8]| message::translate(log, text, inserted);
        match answer {
            Ok(done) => {
                let warnings = log(&done.log).messages;
                Ok(Compiled { code: done.code, form, arch, symbols: done.symbols, warnings, sites, diagnostics })
            }
            Err(nvrtc::Failed::Source(said)) => {
                let message::Translated { messages, text } = log(&said);
                Err(ProgramError::Compile { messages, text })
            }
            Err(nvrtc::Failed::Other(error)) => Err(error),
        }
    }

    /// Rewrites, compiles for the context's own architecture, its special instructions included, and loads. Reports on the module's kernels
    /// show this program's lines.
    ///
    /// # Errors
    /// As [`Program::compile`], and [`ProgramError::Load`] as [`Module::load`].
    pub fn load(&self, context: &Arc<CudaContext>) -> Result<(Module, Compiled), ProgramError> {
        let asked = |error| ProgramError::Load(driver::fault("cuDeviceGetAttribute", error).into());
        let (major, minor) = context.compute_capability().map_err(asked)?;
        let compiled = self.compile(arch(major, minor))?;
        let module = Module::load_with(context, &compiled.code, self.clone())?;
        Ok((module, compiled))
    }

    /// Diagnostics of this program, one a line: `path:line:column: warning[CI010]: message`.
    #[must_use]
    pub fn rendered<'a>(&self, diagnostics: impl IntoIterator<Item = &'a Diagnostic>) -> String {
        let source = Source::new(&self.rewriting.path, &self.source);
        diagnostics.into_iter().map(|diagnostic| render::short(&source, diagnostic)).collect()
    }
}

/// A report on one of its kernels shows its lines, though no file holds them.
impl Sources for Program {
    fn source(&self, path: &str) -> Option<Vec<u8>> {
        let Options { path: own, site_path, .. } = &self.rewriting;
        (path == if site_path.is_empty() { own } else { site_path }).then(|| self.source.clone())
    }
}

/// The architecture of a compute capability. From 9.0 on it has a variant with all its instructions, for this device alone.
fn arch(major: i32, minor: i32) -> Arch {
    Arch { number: u32::try_from(10 * major + minor).unwrap_or(0), suffix: (major >= 9).then_some('a') }
}

/// What to compile for: the architecture as machine code if NVRTC knows it, else the newest one before it as PTX, which the driver compiles.
fn target(arch: Arch, known: &[u32]) -> (Form, Arch) {
    if known.contains(&arch.number) {
        return (Form::Cubin, arch);
    }
    let nearest = known.iter().copied().filter(|number| *number < arch.number).max();
    // One that is older than all is left to NVRTC to refuse.
    nearest.map_or((Form::Cubin, arch), |number| (Form::Ptx, Arch { number, suffix: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_architecture_is_left_to_the_driver() {
        let arch = |number, suffix| Arch { number, suffix };
        let known = [75, 80, 90, 100];
        assert_eq!(target(arch(90, Some('a')), &known), (Form::Cubin, arch(90, Some('a'))));
        assert_eq!(target(arch(89, None), &known), (Form::Ptx, arch(80, None)));
        assert_eq!(target(arch(150, Some('a')), &known), (Form::Ptx, arch(100, None)));
        assert_eq!(target(arch(52, None), &known), (Form::Cubin, arch(52, None)));
    }

    #[test]
    fn a_device_is_compiled_for_with_all_that_it_has() {
        let shown = [(8, 9), (9, 0), (12, 1)].map(|(major, minor)| arch(major, minor).to_string());
        assert_eq!(shown, ["89", "90a", "121a"]);
    }

    #[test]
    fn a_program_is_the_source_of_its_own_reports() {
        let mut program = Program::from_cuda("text");
        assert_eq!(program.source("kernel.cu").as_deref(), Some(&b"text"[..]));
        program.file("a.cu").rewriting(Options { site_path: "src/a.cu".into(), ..Options::default() });
        assert_eq!(["kernel.cu", "a.cu", "src/a.cu"].map(|path| program.source(path).is_some()), [false, false, true]);
    }

    #[test]
    fn what_the_rewriter_refuses_needs_no_compiler() {
        let error = Program::from_cuda("").file("empty.cu").compile(Arch { number: 80, suffix: None }).expect_err("nothing is there");
        assert!(error.to_string().starts_with("the source can't be rewritten:\nempty.cu: error[CI003]: "), "{error}");
    }
}
