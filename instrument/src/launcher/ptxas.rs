//! A stand-in for ptxas, for tools that run ptxas themselves (Triton, clang, CUDA.jl). It inserts polls into the
//! inputs, then the real ptxas runs.

use super::error::{Error, NOT_FOUND};
use super::process::{cannot_start, code_of};
use super::settings::Settings;
use super::{compiler, polled, signal};
use crate::is_ptx;
use cuinstr_image::Kernel;
use cuinstr_verify::verify_ptx;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Variable that names the real one.
const REAL: &str = "CUINSTR_PTXAS";

/// Name of the program, and of links to this one that stand in for it.
pub const NAME: &str = "ptxas";

/// What an input is called in site maps if its own name is a random one.
const UNNAMED: &str = "kernel.ptx";

/// Runs ptxas on inputs with polls, and gives its exit code.
///
/// # Errors
/// If there is no ptxas, an input gets no polls, or temporary files can't be written.
pub fn run(arguments: &[OsString], settings: &Settings) -> Result<u8, Error> {
    let real = find()?;
    let asks = |options: &[&str]| arguments.iter().any(|word| options.iter().any(|option| word == option));
    if asks(&["--version", "-V"]) {
        // Tools whose caches go by this text tell what has polls from what has none.
        let status = Command::new(&real).args(arguments).status().map_err(|error| cannot_start(&real, &error))?;
        println!("{}", settings.version_line());
        return Ok(code_of(status));
    }
    let inputs = inputs(arguments);
    if inputs.is_empty() {
        return Err(cannot_start(&real, &Command::new(&real).args(arguments).exec()));
    }
    let watch = signal::Watch::begin().map_err(|error| Error::new(format!("signals can't be watched: {error}"), "try again"))?;
    let folder = tempfile::Builder::new()
        .prefix("cuinstr-ptxas-")
        .tempdir()
        .map_err(|error| Error::io("can't write to", &env::temp_dir(), &error))?;
    let mut words = arguments.to_vec();
    let mut moved = Vec::new();
    for (number, at) in inputs.into_iter().enumerate() {
        let input = PathBuf::from(&arguments[at]);
        let Some(text) = instrumented(&input, settings, folder.path())? else { return Ok(1) };
        // ptxas notes the file's name.
        let place = folder.path().join(number.to_string());
        let path = place.join(input.file_name().unwrap_or_default());
        let written = fs::create_dir(&place).and_then(|()| fs::write(&path, text));
        written.map_err(|error| Error::io("can't write", &path, &error))?;
        moved.push((path.to_string_lossy().into_owned(), input.to_string_lossy().into_owned()));
        words[at] = path.into();
    }
    let mut child = Command::new(&real).args(words).stderr(Stdio::piped()).spawn().map_err(|error| cannot_start(&real, &error))?;
    watch.forward_to(&child);
    let mut said = Vec::new();
    // What can't be read of its messages does not change what it did.
    let _ = child.stderr.take().map(|mut stderr| stderr.read_to_end(&mut said));
    let status = child.wait();
    watch.forget_child();
    let status = status.map_err(|error| Error::new(format!("ptxas can't be waited for: {error}"), "try again"))?;
    let said = moved.iter().fold(String::from_utf8_lossy(&said).into_owned(), |said, (path, input)| said.replace(path, input));
    let _ = io::stderr().write_all(said.as_bytes());
    drop(folder);
    if !status.success() {
        watch.end();
    }
    Ok(code_of(status))
}

/// The text of an input with polls; none if it is refused. What has polls already is left as it is.
fn instrumented(input: &Path, settings: &Settings, folder: &Path) -> Result<Option<Vec<u8>>, Error> {
    let bytes = fs::read(input).map_err(|error| Error::io("can't read", input, &error))?;
    if crate::polls::is_own(&bytes) {
        return Ok(Some(bytes));
    }
    // A tool's temporary file has another name each time, and sites would have other numbers.
    let name = if input.starts_with(env::temp_dir()) { Path::new(UNNAMED) } else { input };
    let Some(polled::Polled { text, .. }) = polled::insert(&bytes, name, settings, folder)? else { return Ok(None) };
    if !settings.verify {
        return Ok(Some(text));
    }
    let report = verify_ptx(&String::from_utf8_lossy(&text));
    for found in report.loops.iter().filter(|found| !found.verdict.holds()) {
        let code = found.verdict.code().map_or("", |code| code.id());
        let sentence = found.sentence(&Kernel::new(&found.function).name);
        eprintln!("{}:{}: error[{code}]: {sentence}", name.display(), found.line);
    }
    Ok(Some(text).filter(|_| report.faults.is_empty() && report.loops.iter().all(|found| found.verdict.holds())))
}

/// Where inputs stand among the words: files that hold PTX, and that no option names as the output.
fn inputs(words: &[OsString]) -> Vec<usize> {
    let is_output = |at: usize| at > 0 && (words[at - 1] == "-o" || words[at - 1] == "--output-file");
    let is_input = |at: &usize| {
        let path = Path::new(&words[*at]);
        let begins = || {
            let mut bytes = Vec::new();
            let read = fs::File::open(path).and_then(|file| file.take(1 << 16).read_to_end(&mut bytes));
            read.is_ok() && is_ptx(&bytes)
        };
        !words[*at].as_encoded_bytes().starts_with(b"-") && !is_output(*at) && path.is_file() && begins()
    };
    (0..words.len()).filter(is_input).collect()
}

/// The real ptxas: of the variable, else the next on the search path, else the toolkit's.
///
/// # Errors
/// If there is none, or the variable names none.
pub fn find() -> Result<PathBuf, Error> {
    if let Some(named) = env::var_os(REAL).filter(|value| !value.is_empty()) {
        let path = PathBuf::from(named);
        let usable = compiler::is_program(&path) && !compiler::is_this(&path);
        let help = format!("set {REAL} to the path of NVIDIA's ptxas");
        return if usable {
            Ok(path)
        } else {
            Err(Error { code: NOT_FOUND, ..Error::new(format!("{REAL} names `{}`, which is no ptxas", path.display()), help) })
        };
    }
    compiler::on_search_path(OsStr::new(NAME)).ok_or_else(|| {
        let help = format!("install the CUDA toolkit, or set {REAL} to the path of NVIDIA's ptxas");
        Error { code: NOT_FOUND, ..Error::new("there is no ptxas on PATH or in CUDA_HOME", help) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_told_by_what_they_hold() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("it can be written");
            path.into_os_string()
        };
        let (ptx, other) = (path("a", "// x\n.version 9.0\n"), path("b.ptx", "text"));
        let words: Vec<OsString> = vec!["-arch=sm_90".into(), ptx.clone(), "-o".into(), ptx.clone(), other, "--output-file".into(), ptx];
        assert_eq!(inputs(&words), [1]);
    }
}
