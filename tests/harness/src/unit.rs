//! A translation unit as its author wrote it or rewritten, and what a compiler makes of it.

use crate::fixtures::{self, Fixture};
use crate::kept::Kept;
use crate::nvcc::Nvcc;
use crate::process;
use cuinstr::diagnostic::Severity;
use cuinstr::options::Options;
use cuinstr::site::SiteMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Every warning of the device's and of the host's compiler, as an error.
pub const STRICT: &[&str] = &["-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror"];

/// Longest that one compilation may take.
const LIMIT: Duration = Duration::from_secs(180);

/// A source text with the headers beside it; get one with [`Unit::plain`] or [`Unit::new`], and the rewritten one with [`Unit::rewrite`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// File name, which compilers will name.
    pub name: String,
    /// The text.
    pub text: Vec<u8>,
    /// Headers beside it: name and text.
    pub beside: Vec<(String, Vec<u8>)>,
    /// Where further headers lie.
    pub include: Option<PathBuf>,
    /// What it needs of a compiler: its standard and flags.
    pub needs: Vec<String>,
    /// Site maps of the text and of each header, if they are rewritten.
    pub site_maps: Vec<SiteMap>,
}

/// What a compiler made of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// Whether it was accepted.
    pub accepted: bool,
    /// What was said about it.
    pub said: String,
    /// What was written, empty if nothing was.
    pub image: Vec<u8>,
}

impl Unit {
    /// A text of no fixture's.
    #[must_use]
    pub fn new(name: &str, text: impl Into<Vec<u8>>) -> Self {
        Self { name: name.to_owned(), text: text.into(), beside: Vec::new(), include: None, needs: Vec::new(), site_maps: Vec::new() }
    }

    /// A fixture as it is.
    ///
    /// # Errors
    /// Names the file that can't be read.
    pub fn plain(fixture: &Fixture) -> Result<Self, String> {
        let main = fixtures::workspace().join(&fixture.path);
        let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
        let mut unit = Self::new(&main.file_name().unwrap_or_default().to_string_lossy(), read(&main)?);
        for also in &fixture.header.also {
            unit.beside.push((also.clone(), read(&main.with_file_name(also))?));
        }
        unit.include = Some(fixture.folder());
        unit.needs = std::iter::once(format!("-std=c++{}", fixture.header.std)).chain(fixture.header.flags.iter().cloned()).collect();
        Ok(unit)
    }

    /// The unit rewritten, its headers too; the options' path is set for each file.
    ///
    /// # Errors
    /// Says what the rewriter refused, and why.
    pub fn rewrite(&self, options: &Options) -> Result<Self, String> {
        let mut unit = self.clone();
        unit.site_maps.clear();
        let files = std::iter::once((&self.name, &mut unit.text)).chain(unit.beside.iter_mut().map(|(name, text)| (&*name, text)));
        for (name, text) in files {
            let rewrite = cuinstr::rewrite(text, &Options { path: name.clone(), site_path: String::new(), ..options.clone() });
            let errors = rewrite.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
            let errors: Vec<String> = errors.map(|error| format!("{} {}", error.code.id(), error.message)).collect();
            *text = rewrite.output.ok_or_else(|| format!("the rewriter refused {name}: {}", errors.join("; ")))?;
            unit.site_maps.push(rewrite.sites);
        }
        Ok(unit)
    }

    /// The unit inside `extern "C" { … }`, as `PyCUDA` wraps what it is given.
    #[must_use]
    pub fn in_extern_c(&self) -> Self {
        let text = [b"extern \"C\" {\n", &self.text[..], b"\n}\n"].concat();
        Self { text, ..self.clone() }
    }

    /// Writes the unit into a folder.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn write(&self, folder: &Path) -> Result<(), String> {
        let files = self.beside.iter().map(|(name, text)| (name, text)).chain([(&self.name, &self.text)]);
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(|error| error.to_string())?;
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }

    /// Compiles it with nvcc in a folder of its own, or takes what came of that before.
    ///
    /// # Errors
    /// If nvcc can't be started, or does not end.
    pub fn nvcc(&self, nvcc: &Nvcc, args: &[&str]) -> Result<Compiled, String> {
        let kept = Kept::of(self.parts(nvcc, args)?.iter().map(Vec::as_slice));
        if let Some(compiled) = kept.read().and_then(|bytes| Compiled::from_bytes(&bytes)) {
            return Ok(compiled);
        }
        let compiled = self.compile(nvcc, args)?;
        // A compiler also refuses where memory or disk run out.
        if compiled.accepted {
            kept.keep(&compiled.to_bytes());
        }
        Ok(compiled)
    }

    /// All that a compilation depends on, beside the host's compiler.
    fn parts(&self, nvcc: &Nvcc, args: &[&str]) -> Result<Vec<Vec<u8>>, String> {
        let told = |error: std::io::Error| error.to_string();
        let path = fs::canonicalize(&nvcc.path).map_err(told)?;
        let words = [format!("{} {}", path.display(), nvcc.build), args.join("\0"), self.needs.join("\0"), self.name.clone()];
        let mut parts: Vec<Vec<u8>> = words.into_iter().map(String::into_bytes).collect();
        parts.push(self.text.clone());
        for (name, text) in &self.beside {
            parts.extend([name.clone().into_bytes(), text.clone()]);
        }
        let mut headers = match &self.include {
            Some(folder) => {
                fs::read_dir(folder).map_err(told)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(told)?
            }
            None => Vec::new(),
        };
        headers.retain(|path: &PathBuf| path.is_file() && path.extension().is_none_or(|extension| extension != "cu"));
        headers.sort();
        for header in headers {
            parts.extend([header.to_string_lossy().into_owned().into_bytes(), fs::read(&header).map_err(told)?]);
        }
        Ok(parts)
    }

    fn compile(&self, nvcc: &Nvcc, args: &[&str]) -> Result<Compiled, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        self.write(folder.path())?;
        let mut all: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        all.extend(self.needs.iter().cloned());
        if let Some(include) = &self.include {
            all.extend(["-I".to_owned(), include.to_string_lossy().into_owned()]);
        }
        all.extend(["-o".to_owned(), "out".to_owned(), self.name.clone()]);
        call(&nvcc.path, folder.path(), &all)
    }
}

/// NVRTC of a toolkit, reached through the program `nvrtc-compile`; get one with [`Nvrtc::of`].
#[derive(Debug, Clone)]
pub struct Nvrtc {
    program: PathBuf,
    folder: PathBuf,
}

impl Nvrtc {
    /// The NVRTC that lies beside an nvcc; `program` is `nvrtc-compile`.
    ///
    /// # Errors
    /// If there is none beside it.
    pub fn of(nvcc: &Nvcc, program: &Path) -> Result<Self, String> {
        let real = fs::canonicalize(&nvcc.path).map_err(|error| format!("{}: {error}", nvcc.path.display()))?;
        let root = real.parent().and_then(Path::parent).unwrap_or(&real);
        let holds = |folder: &PathBuf| {
            let mut files = fs::read_dir(folder).into_iter().flatten().flatten();
            files.any(|file| file.file_name().to_string_lossy().starts_with("libnvrtc.so"))
        };
        let mut folders = ["lib64", "lib", "targets/x86_64-linux/lib"].iter().map(|folder| root.join(folder));
        let folder = folders.find(holds).ok_or_else(|| format!("no libnvrtc.so below {}", root.display()))?;
        Ok(Self { program: program.to_owned(), folder })
    }

    /// The folder that holds it, for the loader's path.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Unit {
    /// Compiles it to PTX with NVRTC, which knows no flags of nvcc's: only the standard is taken from what the unit needs.
    ///
    /// # Errors
    /// If the program can't be started, or does not end.
    pub fn nvrtc(&self, nvrtc: &Nvrtc, args: &[&str]) -> Result<Compiled, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        self.write(folder.path())?;
        let mut command = Command::new(&nvrtc.program);
        command.current_dir(folder.path()).env("LD_LIBRARY_PATH", &nvrtc.folder).args([&self.name, "out"]).args(args);
        command.args(self.needs.iter().filter(|need| need.starts_with("-std=")).map(|need| format!("-{need}")));
        finish(&mut command, &folder.path().join("out"))
    }
}

/// Calls a compiler in a folder; what it wrote is the file `out` there.
///
/// # Errors
/// If it can't be started, or does not end.
pub fn call(program: &Path, folder: &Path, args: &[String]) -> Result<Compiled, String> {
    let mut command = Command::new(program);
    command.current_dir(folder).args(args);
    finish(&mut command, &folder.join("out"))
}

/// Runs a compiler's command to its end.
///
/// # Errors
/// If it can't be started, or does not end.
pub fn finish(command: &mut Command, output: &Path) -> Result<Compiled, String> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let finished = process::run(command, LIMIT).map_err(|error| format!("{shown}: {error}"))?;
    if finished.status.is_none() {
        return Err(format!("{shown} was killed for taking too long"));
    }
    let accepted = finished.success();
    let said = [finished.stderr, finished.stdout].concat();
    Ok(Compiled { accepted, said, image: if accepted { fs::read(output).unwrap_or_default() } else { Vec::new() } })
}

impl Compiled {
    /// What was said, behind its length, and what was written.
    fn to_bytes(&self) -> Vec<u8> {
        [&(self.said.len() as u64).to_le_bytes(), self.said.as_bytes(), &self.image].concat()
    }

    /// The same of what was accepted.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (said, image) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        Some(Self { accepted: true, said: String::from_utf8(said.to_vec()).ok()?, image: image.to_vec() })
    }

    /// Whether it was accepted without a word.
    #[must_use]
    pub fn clean(&self) -> bool {
        self.accepted && self.said.trim().is_empty()
    }

    /// What was written, as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.image).into_owned()
    }

    /// The unit must have been accepted without a word.
    ///
    /// # Errors
    /// What was said.
    pub fn expect_clean(self) -> Result<Self, String> {
        if self.clean() {
            return Ok(self);
        }
        let lines: Vec<&str> = self.said.lines().filter(|line| !line.trim().is_empty()).take(30).collect();
        Err(format!("{}:\n{}", if self.accepted { "accepted with warnings" } else { "refused" }, lines.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_goes_into_a_compilation_counts() {
        let nvcc = Nvcc { path: "/bin/sh".into(), release: "1.0".into(), build: "one".into() };
        let unit = Unit { beside: vec![("a.h".into(), b"1".to_vec())], needs: vec!["-std=c++17".into()], ..Unit::new("k.cu", "text") };
        let one = unit.parts(&nvcc, &["-ptx"]);
        assert_eq!(one, unit.clone().parts(&nvcc, &["-ptx"]));
        let others = [
            unit.parts(&Nvcc { build: "two".into(), ..nvcc.clone() }, &["-ptx"]),
            unit.parts(&nvcc, &["-cubin"]),
            Unit { text: b"other".to_vec(), ..unit.clone() }.parts(&nvcc, &["-ptx"]),
            Unit { name: "l.cu".into(), ..unit.clone() }.parts(&nvcc, &["-ptx"]),
            Unit { beside: vec![("a.h".into(), b"2".to_vec())], ..unit.clone() }.parts(&nvcc, &["-ptx"]),
            Unit { needs: Vec::new(), ..unit.clone() }.parts(&nvcc, &["-ptx"]),
            Unit { include: Some(fixtures::workspace().join("kernels")), ..unit.clone() }.parts(&nvcc, &["-ptx"]),
        ];
        assert!(others.iter().all(|other| other.is_ok() && *other != one), "{others:?}");
    }

    #[test]
    fn a_result_comes_back_from_its_bytes() {
        let compiled = Compiled { accepted: true, said: "a warning".into(), image: vec![0, 1, 255] };
        assert_eq!(Compiled::from_bytes(&compiled.to_bytes()), Some(compiled));
        assert_eq!(Compiled::from_bytes(&[9; 12]), None);
    }
}
