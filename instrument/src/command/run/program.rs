//! Whether a program can be reached: a library can be loaded in front of it, and sees its calls.

use object::LittleEndian as LE;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bytes of a file that hold its headers.
const HEAD: u64 = 64 << 10;
/// Scripts whose interpreters are scripts, at most, as in Linux.
const SCRIPTS: usize = 5;

/// The program that a shell would start.
pub(super) fn find(name: &OsStr) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(is_program);
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(is_program)
}

/// Looks whether a library can be loaded in front of a program.
///
/// # Errors
/// Says why not, and what to do.
pub(super) fn reach(path: &Path) -> Result<(), String> {
    let mut path = path.to_owned();
    for _ in 0..SCRIPTS {
        let mut head = Vec::new();
        File::open(&path).and_then(|file| file.take(HEAD).read_to_end(&mut head)).map_err(|error| format!("it can't be read: {error}"))?;
        match interpreter(&head) {
            Some(next) => path = next,
            None => return reach_binary(&path, &head),
        }
    }
    Err("its interpreter is a script, whose interpreter is a script, and so on".to_owned())
}

/// What runs a script: the word behind `#!`, or the program that `env` finds.
fn interpreter(head: &[u8]) -> Option<PathBuf> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let first = PathBuf::from(OsString::from_vec(words.next()?.to_vec()));
    if first.file_name() == Some(OsStr::new("env")) {
        let named = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
        return find(OsStr::from_bytes(named));
    }
    Some(first)
}

fn reach_binary(path: &Path, head: &[u8]) -> Result<(), String> {
    let elsewhere = "build the program with `cuinstr nvcc` instead (docs/PROJECTS.md)";
    let header = FileHeader64::<LE>::parse(head).ok().filter(|header| header.is_little_endian());
    let Some(header) = header else { return Err(format!("{} is neither a script nor a 64-bit Linux program", path.display())) };
    let machine = if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 };
    if header.e_machine.get(LE) != machine {
        return Err("it is for another kind of machine than this cuinstr".to_owned());
    }
    let mode = fs::metadata(path).map_err(|error| error.to_string())?;
    if mode.mode() & 0o6000 != 0 && !is_root() {
        return Err("it runs with more rights than its user (set-user-id), so the system loads nothing in front of it; run it as the user that it becomes".to_owned());
    }
    let segments = header.program_headers(LE, head).map_err(|_| "its headers can't be read".to_owned())?;
    let loader = segments.iter().find_map(|segment| segment.interpreter(LE, head).ok().flatten());
    match loader {
        None => Err(format!("it is linked statically, so no library can be loaded in front of it; {elsewhere}")),
        Some(loader) if loader.windows(4).any(|part| part == b"musl") => {
            Err(format!("it is linked with musl, and the library of cuinstr with glibc; {elsewhere}"))
        }
        Some(_) => Ok(()),
    }
}

/// Whether this process may do anything: set-user-id changes nothing for it.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_run_by_what_its_first_line_names() {
        assert_eq!(interpreter(b"#! /bin/sh -e\nexit"), Some("/bin/sh".into()));
        assert_eq!(interpreter(b"#!/usr/bin/env -S A=1 sh\n").and_then(|path| Some(path.file_name()?.to_owned())), Some("sh".into()));
        assert_eq!(interpreter(b"\x7fELF"), None);
    }

    #[test]
    fn what_can_not_be_reached_is_said_before_it_runs() {
        assert_eq!(reach(&std::env::current_exe().expect("a test is a program")), Ok(()));
        let folder = tempfile::tempdir().expect("a folder");
        let text = folder.path().join("text");
        fs::write(&text, "no program").expect("a file");
        assert!(reach(&text).is_err_and(|why| why.contains("neither a script nor")));
        let looping = folder.path().join("looping");
        fs::write(&looping, format!("#!{}\n", looping.display())).expect("a file");
        assert!(reach(&looping).is_err_and(|why| why.contains("and so on")));
    }
}
