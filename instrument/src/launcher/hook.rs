//! How the PTX pass gets behind nvcc's optimizer: nvcc runs this program in place of its `cicc`, the compiler from source to
//! PTX.
//!
//! nvcc finds `cicc` by `CICC_PATH`, which its `nvcc.profile` sets. With `-noprof` nvcc takes that variable, and all others
//! of the profile, from the environment. A dry run of the same command line tells their values, and what nvcc will run.

use super::arguments::{CommandLine, Product, VARIABLES};
use super::compiler;
use super::error::Error;
use super::session::Session;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Folder of the session that holds the link named `cicc`.
pub(super) const FOLDER: &str = "hook";

/// The compiler's name.
pub(super) const CICC: &str = "cicc";

/// What the mark of a call begins with.
const CALL: &str = "call-";

/// Variable that names the folder of `cicc`.
const CICC_PATH: &str = "CICC_PATH";

/// What there is to know of an nvcc to run this program in place of its `cicc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hook {
    /// The real one.
    pub(super) cicc: PathBuf,
    /// Variables of the profile, in nvcc's own order.
    variables: Vec<(String, OsString)>,
    /// Whether nvcc looks for `cicc` on the search path.
    by_search_path: bool,
    /// How often nvcc will run it at least.
    calls: usize,
}

/// What a dry run says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// This is how.
    Hook(Hook),
    /// No code for a GPU is compiled.
    Nothing,
    /// This nvcc works in a way that is not known; why.
    Unknown(String),
}

/// Asks nvcc what it would do with this command line.
///
/// # Errors
/// If the command line compiles to a form that is made without PTX.
pub(super) fn find(nvcc: &Path, line: &CommandLine) -> Result<Found, Error> {
    let run = |command: &mut Command| command.stdin(Stdio::null()).output().map_err(|error| super::process::cannot_start(nvcc, &error));
    let output = run(Command::new(nvcc).arg("--dryrun").args(&line.words))?;
    if output.status.success() {
        return read(&output.stderr);
    }
    // The dry run of nvcc 12 fails with `-t`. What the profile says is the same for a plain command line; and one that nvcc refuses, it refuses again.
    let mut plain = Command::new(nvcc);
    let output =
        run(VARIABLES.iter().fold(plain.args(["--dryrun", "-c", "-x", "cu", "/dev/null"]), |command, name| command.env_remove(name)))?;
    Ok(match read(&output.stderr)? {
        Found::Nothing => Found::Unknown("its dry run fails".to_owned()),
        Found::Hook(hook) if line.product == Product::Nothing => Found::Hook(Hook { calls: 0, ..hook }),
        found => found,
    })
}

/// How often nvcc ran this program in place of its compiler.
pub(super) fn calls(session: &Path) -> usize {
    let entries = fs::read_dir(session.join(FOLDER)).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().as_bytes().starts_with(CALL.as_bytes())).count()
}

/// Notes one of these calls.
///
/// # Errors
/// If the session can't be written.
pub(super) fn note_call(session: &Path) -> Result<(), Error> {
    let folder = session.join(FOLDER);
    let mark = tempfile::Builder::new().prefix(CALL).tempfile_in(&folder).and_then(|mark| Ok(mark.keep()?));
    mark.map(drop).map_err(|error| Error::io("can't write to", &folder, &error))
}

/// Understands what a dry run printed.
fn read(text: &[u8]) -> Result<Found, Error> {
    let mut variables: Vec<(String, OsString)> = Vec::new();
    let mut calls: Vec<Vec<OsString>> = Vec::new();
    let mut command_seen = false;
    for line in text.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"#$ ")) {
        match assignment(line).filter(|_| !command_seen) {
            // Those with an underscore in front are nvcc's own.
            Some((name, _)) if name.starts_with('_') || name.starts_with("NVCC_") => {}
            Some((name, value)) => {
                variables.retain(|(known, _)| known != name);
                variables.push((name.to_owned(), OsString::from_vec(value.to_vec())));
            }
            None => {
                command_seen = true;
                let words = super::arguments::split(line);
                let program = words.first().map(|word| Path::new(word).file_name().unwrap_or(word).to_owned());
                if program.as_deref() == Some(OsStr::new(CICC)) {
                    calls.push(words);
                }
            }
        }
    }
    if calls.is_empty() {
        return Ok(Found::Nothing);
    }
    if let Some(refused) = calls.iter().find_map(|words| without_ptx(words)) {
        return Err(refused);
    }
    let value = |wanted: &str| variables.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
    let by_search_path = calls.iter().any(|words| Path::new(&words[0]).components().count() == 1);
    let folders: Vec<PathBuf> = if by_search_path {
        value("PATH").as_deref().map(std::env::split_paths).into_iter().flatten().collect()
    } else {
        value(CICC_PATH).map(PathBuf::from).into_iter().collect()
    };
    let cicc = folders.iter().map(|folder| folder.join(CICC)).find(|path| compiler::is_program(path));
    Ok(match cicc {
        Some(cicc) if value("TOP").is_some() && value("PATH").is_some() => {
            Found::Hook(Hook { cicc, variables, by_search_path, calls: calls.len() })
        }
        Some(_) => Found::Unknown("it does not say what its nvcc.profile sets".to_owned()),
        None => Found::Unknown(format!("its dry run does not say where its {CICC} lies")),
    })
}

/// A name and its value, if the line is an assignment.
fn assignment(line: &[u8]) -> Option<(&str, &[u8])> {
    let equals = line.iter().position(|byte| *byte == b'=')?;
    let name = std::str::from_utf8(&line[..equals]).ok()?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    is_name.then(|| (name, &line[equals + 1..]))
}

/// Why a call of the compiler can't have polls in its PTX, if it makes something else.
pub(super) fn without_ptx(words: &[OsString]) -> Option<Error> {
    let has = |options: &[&str]| words.iter().any(|word| options.iter().any(|option| word == option));
    let what = if has(&["-lto", "-olto", "--lto"]) {
        "for link-time optimization (-dlto, lto_*)"
    } else if has(&["--emit-optix-ir"]) {
        "to OptiX IR"
    } else {
        return None;
    };
    let help = "leave that option out, or insert polls into the source: CUINSTR_FLAGS=\"--pass source\"";
    Some(Error { code: 2, ..Error::new(format!("a compilation {what} makes no PTX that polls could be inserted into"), help) })
}

impl Hook {
    /// Whether all went by us that nvcc was to compile.
    pub(super) fn was_reached(&self, session: &Session) -> bool {
        calls(session.folder()) >= self.calls
    }

    /// What nvcc is run with beside the user's words: an option, and variables in place of its profile.
    pub(super) fn apply(&self, command: &mut Command, session: &Session) {
        let folder = session.folder().join(FOLDER);
        command.arg("-noprof").envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env(CICC_PATH, &folder);
        let mut path = session.links();
        if self.by_search_path {
            path.push(":");
            path.push(&folder);
        }
        path.push(":");
        path.push(self.variables.iter().find(|(name, _)| name == "PATH").map_or(OsStr::new(""), |(_, value)| value));
        command.env("PATH", path);
    }

    /// What nvcc prints of its profile, which it does not do without one: build systems read it.
    pub(super) fn shown_variables(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for (name, value) in &self.variables {
            text.extend_from_slice(format!("#$ {name}=").as_bytes());
            text.extend_from_slice(value.as_bytes());
            text.push(b'\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dry_run(path: &str, call: &str) -> String {
        format!(
            "#$ _SPACE_= \n#$ TOP=/t\n#$ NVCC_APPEND_FLAGS=\"-O2\"\n#$ CICC_PATH={path}\n#$ PATH={path}:/usr/bin\n#$ gcc -DA=1 -E k.cu\n#$ {call}\n"
        )
    }

    #[test]
    fn a_dry_run_tells_where_the_compiler_is_and_what_the_profile_sets() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().to_str().expect("a readable path");
        std::os::unix::fs::symlink("/bin/true", folder.path().join(CICC)).expect("a link");
        for (call, by_search_path) in [(format!("\"{path}/cicc\" k.ii -o k.ptx"), false), ("cicc k.ii -o k.ptx".to_owned(), true)] {
            let Ok(Found::Hook(hook)) = read(dry_run(path, &call).as_bytes()) else { panic!("{call}") };
            assert_eq!((hook.cicc.as_path(), hook.by_search_path), (folder.path().join(CICC).as_path(), by_search_path));
            let names: Vec<&str> = hook.variables.iter().map(|(name, _)| &**name).collect();
            assert_eq!(names, ["TOP", "CICC_PATH", "PATH"]);
        }
    }

    #[test]
    fn what_is_not_known_is_said_and_what_has_no_ptx_refused() {
        assert_eq!(read(b"#$ TOP=/t\n#$ gcc -E k.cu\n"), Ok(Found::Nothing));
        let unknown = read(dry_run("/nowhere", "\"$CICC_PATH/cicc\" k.ii -o k.ptx").as_bytes());
        assert!(matches!(unknown, Ok(Found::Unknown(_))), "{unknown:?}");
        for option in ["-lto", "-olto k.ltoir", "--emit-optix-ir"] {
            let refused = read(dry_run("/nowhere", &format!("cicc {option} k.ii -o k")).as_bytes());
            assert_eq!(refused.map_err(|error| error.code), Err(2), "{option}");
        }
    }
}
