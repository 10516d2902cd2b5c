//! A stand-in for ptxas, for tools that run ptxas themselves (Triton, clang, CUDA.jl). It inserts polls into the
//! inputs, then the real ptxas runs.

use super::error::{Error, NOT_FOUND};
use super::process::{cannot_start, code_of};
use super::settings::Settings;
use super::{arguments, compiler, polled, signal};
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

/// Options of ptxas behind which PTX stands itself.
const AS_TEXT: [&str; 2] = ["-ias", "--input-as-string"];

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
    let arguments = arguments::expand(arguments.to_vec());
    if let Some(word) = arguments.iter().find(|word| AS_TEXT.iter().any(|option| word.as_encoded_bytes().starts_with(option.as_bytes()))) {
        let message = format!("`{}` hands PTX over without a file, so it can't get polls", word.display());
        return Err(Error { code: 2, ..Error::new(message, "write the text to a file, and name that") });
    }
    let inputs = inputs(&arguments)?;
    if inputs.is_empty() {
        // What names no file only asks, as `--list-version` does.
        if arguments.iter().any(|word| Path::new(word).is_file()) {
            if settings.strict {
                return Err(Error::new("no input holds PTX, so nothing gets polls", "name a file with PTX"));
            }
            eprintln!("cuinstr: warning: no input of ptxas holds PTX, so nothing gets polls");
        }
        return Err(cannot_start(&real, &Command::new(&real).args(arguments).exec()));
    }
    if inputs.len() > 1 {
        let message = "ptxas makes one output of several files, and each would bring the polls' variables along";
        return Err(Error { code: 2, ..Error::new(message, "assemble each file by itself") });
    }
    on_inputs(&real, &arguments, inputs, settings)
}

/// Runs a program on inputs with polls, at these places among its words, and gives its exit code.
///
/// # Errors
/// As for [`run`].
pub(super) fn on_inputs(real: &Path, arguments: &[OsString], inputs: Vec<Input>, settings: &Settings) -> Result<u8, Error> {
    let watch = signal::Watch::begin().map_err(|error| Error::new(format!("signals can't be watched: {error}"), "try again"))?;
    let Some(Polled { words, moved, folder }) = with_polls(arguments, inputs, settings)? else { return Ok(1) };
    let mut child = Command::new(real).args(words).stderr(Stdio::piped()).spawn().map_err(|error| cannot_start(real, &error))?;
    watch.forward_to(&child);
    let mut said = Vec::new();
    // What can't be read of its messages does not change what it did.
    let _ = child.stderr.take().map(|mut stderr| stderr.read_to_end(&mut said));
    let status = child.wait();
    watch.forget_child();
    let status = status.map_err(|error| Error::new(format!("{} can't be waited for: {error}", real.display()), "try again"))?;
    let said = moved.iter().fold(String::from_utf8_lossy(&said).into_owned(), |said, (path, input)| said.replace(path, input));
    let _ = io::stderr().write_all(said.as_bytes());
    drop(folder);
    if !status.success() {
        watch.end();
    }
    Ok(code_of(status))
}

/// An input: where it stands among the words, and what it holds.
pub(super) type Input = (usize, Vec<u8>);

/// Words that name inputs with polls.
pub(super) struct Polled {
    pub(super) words: Vec<OsString>,
    /// Paths of these inputs, and of the user's.
    moved: Vec<(String, String)>,
    /// Where they lie, for as long as they are needed.
    pub(super) folder: tempfile::TempDir,
}

/// Puts polls into inputs; none if one is refused.
///
/// # Errors
/// If temporary files can't be written.
pub(super) fn with_polls(arguments: &[OsString], inputs: Vec<Input>, settings: &Settings) -> Result<Option<Polled>, Error> {
    let folder = tempfile::Builder::new()
        .prefix("cuinstr-ptxas-")
        .tempdir()
        .map_err(|error| Error::io("can't write to", &env::temp_dir(), &error))?;
    let mut words = arguments.to_vec();
    let mut moved = Vec::new();
    for (number, (at, bytes)) in inputs.into_iter().enumerate() {
        let input = PathBuf::from(&arguments[at]);
        let Some(text) = instrumented(&input, bytes, settings, folder.path())? else { return Ok(None) };
        // ptxas notes the file's name.
        let place = folder.path().join(number.to_string());
        let name = input.file_name().filter(|_| input.is_file()).unwrap_or(OsStr::new(UNNAMED));
        let path = place.join(name);
        let written = fs::create_dir(&place).and_then(|()| fs::write(&path, text));
        written.map_err(|error| Error::io("can't write", &path, &error))?;
        moved.push((path.to_string_lossy().into_owned(), input.to_string_lossy().into_owned()));
        words[at] = path.into();
    }
    Ok(Some(Polled { words, moved, folder }))
}

/// The text of an input with polls; none if it is refused. What has polls already is left as it is.
fn instrumented(input: &Path, bytes: Vec<u8>, settings: &Settings, folder: &Path) -> Result<Option<Vec<u8>>, Error> {
    if crate::polls::is_own(&bytes) {
        return Ok(Some(bytes));
    }
    // A tool's temporary file has another name each time, and sites would have other numbers. A pipe has none.
    let name = if input.starts_with(env::temp_dir()) || !input.is_file() { Path::new(UNNAMED) } else { input };
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

/// Inputs among the words: what holds PTX, and is not named by an option as the output. A pipe can be read but once, so what comes from one is kept.
///
/// # Errors
/// If a file or pipe can't be read.
fn inputs(words: &[OsString]) -> Result<Vec<Input>, Error> {
    let is_output = |at: usize| at > 0 && (words[at - 1] == "-o" || words[at - 1] == "--output-file");
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().filter(|(at, _)| !is_output(*at)) {
        let path = Path::new(word);
        let is_standard = word == "-";
        let is_file = path.metadata().is_ok_and(|metadata| !metadata.is_dir());
        if !is_standard && (!is_file || word.as_encoded_bytes().starts_with(b"-")) {
            continue;
        }
        let mut bytes = Vec::new();
        let read = if is_standard { io::stdin().read_to_end(&mut bytes).map(|_| bytes) } else { fs::read(path) };
        let bytes = read.map_err(|error| Error::io("can't read", path, &error))?;
        if is_ptx(&bytes) {
            found.push((at, bytes));
        } else if !path.is_file() {
            return Err(Error::new(format!("what comes from `{}` is no PTX", path.display()), "name a file with PTX"));
        }
    }
    Ok(found)
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
        let found = inputs(&words).expect("they can be read");
        assert_eq!(found.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1]);
    }
}
