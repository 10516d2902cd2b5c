//! How Rust tests use the stand-in: a folder that the loader finds it in, and commands to the one that is loaded.

use libloading::Library;
use std::ffi::{CStr, CString, c_char};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The variable with the commands that a program starts with.
pub(crate) const VARIABLE: &str = "CUINSTR_STAND_IN";

/// The shared library, which cargo puts beside the programs of its tests.
///
/// # Errors
/// If the program has no path, or cargo built no library beside it.
pub fn library() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folders = program.ancestors().skip(1).take(2);
    let beside = folders.flat_map(|folder| [folder.join("libcuinstr_stand_in.so"), folder.join("deps/libcuinstr_stand_in.so")]);
    beside
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no libcuinstr_stand_in.so beside the test"))
}

/// Puts the library into a folder under the names that programs load the driver and NVML by. A program that is started with this folder in
/// `LD_LIBRARY_PATH` has the stand-in for its driver.
///
/// # Errors
/// If a link can't be made.
pub fn install(folder: &Path) -> io::Result<()> {
    let library = library()?;
    for name in ["libcuda.so", "libcuda.so.1", "libnvidia-ml.so.1"] {
        symlink(&library, folder.join(name))?;
    }
    Ok(())
}

/// The grids of a program that is about to start stand until this file exists, or a pause is asked for (`gate` in [`crate::control`]). What the
/// command's environment says to the stand-in stays.
pub fn close_gate(command: &mut Command, gate: &Path) {
    // The file is of the program before this one.
    let _ = std::fs::remove_file(gate);
    let said = command.get_envs().find(|(name, _)| *name == VARIABLE).and_then(|(_, said)| said?.to_str()).unwrap_or_default().to_owned();
    command.env(VARIABLE, format!("gate {};{said}", gate.display()));
}

/// Whether this process loads the stand-in for its driver.
#[must_use]
pub fn is_loaded() -> bool {
    loaded().is_some()
}

/// Gives a command to the stand-in that this process has loaded ([`crate::control`]).
///
/// # Panics
/// If there is none, or the command is wrong.
#[allow(clippy::must_use_candidate)]
pub fn command(text: &str) -> i64 {
    let library = loaded().expect("LD_LIBRARY_PATH leads to the stand-in");
    let text = CString::new(text).expect("a command holds no zero");
    // SAFETY: the stand-in has this function, of this type.
    let answer = unsafe {
        let perform = library.get::<extern "C" fn(*const c_char) -> i64>(b"cuinstr_stand_in").expect("a function of the stand-in");
        perform(text.as_ptr())
    };
    assert!(answer >= 0, "{text:?} is no command of the stand-in driver");
    answer
}

/// The names of the driver's functions that this process has called.
///
/// # Panics
/// If the stand-in is not loaded.
#[must_use]
pub fn names() -> Vec<String> {
    let library = loaded().expect("LD_LIBRARY_PATH leads to the stand-in");
    // SAFETY: the stand-in has this function, of this type.
    let mut at =
        unsafe { library.get::<extern "C" fn() -> *const c_char>(b"cuinstr_stand_in_names").expect("a function of the stand-in")() };
    let mut names = Vec::new();
    loop {
        // SAFETY: each name ends with a zero, and behind the last one stands an empty one.
        let name = unsafe { CStr::from_ptr(at) };
        if name.is_empty() {
            return names;
        }
        names.push(name.to_string_lossy().into_owned());
        at = at.wrapping_add(name.to_bytes_with_nul().len());
    }
}

fn loaded() -> Option<&'static Library> {
    static LOADED: OnceLock<Option<Library>> = OnceLock::new();
    let load = || {
        // SAFETY: the library has no initialiser of its own.
        let library = unsafe { Library::new("libcuda.so.1") }.ok()?;
        // SAFETY: only whether there is one is asked.
        let is_ours = unsafe { library.get::<extern "C" fn(*const c_char) -> i64>(b"cuinstr_stand_in") }.is_ok();
        is_ours.then_some(library)
    };
    LOADED.get_or_init(load).as_ref()
}
