//! One call of nvcc's compiler from source to PTX, answered by this program: the compiler runs, and polls are inserted into what it wrote.
//!
//! It is asked for line information, so that reports name lines of the source. Where the user did not ask for it, it is taken out of the PTX again.

use super::error::Error;
use super::process::{cannot_start, code_of};
use super::session::Knowledge;
use super::unit_rows;
use super::{hook, host_runtime, polled};
use cuinstr_abi::sites::SiteMap;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes the compiler write line information.
const LINES: &str = "-generate-line-info";

/// Does the work of `cicc`, and gives its exit code.
///
/// # Errors
/// If it can't be started, or what it wrote can't be read, or gets no polls.
pub(super) fn answer(session: &Path, knowledge: &Knowledge, mut words: Vec<OsString>) -> Result<u8, Error> {
    let real = knowledge.cicc.as_ref().map(PathBuf::from).unwrap_or_default();
    hook::note_call(session)?;
    if let Some(error) = hook::without_ptx(&words) {
        return Err(error);
    }
    // nvcc asks it for its version, perhaps.
    let Some(output) = place_of(&words, "-o") else { return run(&real, &words) };
    let destination = PathBuf::from(&words[output]);
    let has = |option: &str| words.iter().any(|word| word == option);
    let drops_lines = !has(LINES) && !has("--debug_mode") && !has("-g");
    // No reader sees PTX without polls, whatever ends this process.
    let plain =
        tempfile::Builder::new().prefix("ptx-").tempfile_in(session).map_err(|error| Error::io("can't write to", session, &error))?;
    words[output] = plain.path().into();
    if drops_lines {
        words.push(LINES.into());
    }
    let code = run(&real, &words)?;
    if code != 0 {
        return Ok(code);
    }
    let ptx = readable(fs::read(plain.path()).map_err(|error| Error::io("can't read", plain.path(), &error))?);
    let value = |option: &str| place_of(&words, option).map(|at| words[at].clone());
    let source = value("--orig_src_file_name").unwrap_or_else(|| destination.clone().into_os_string());
    let Some(polled::Polled { mut text, sites }) =
        polled::insert(&ptx, Path::new(&source), &knowledge.settings, &session.join(hook::FOLDER))?
    else {
        return Ok(1);
    };
    if drops_lines {
        text = without_lines(&text);
    }
    if let (Some(map), Some(unit)) = (&sites, value("--include_file_name")) {
        write_rows(session, &unit, &destination, map, knowledge)?;
    }
    fs::write(&destination, text).map_err(|error| Error::io("can't write", &destination, &error))?;
    Ok(0)
}

fn run(real: &Path, words: &[OsString]) -> Result<u8, Error> {
    Command::new(real).args(words).status().map(code_of).map_err(|error| cannot_start(real, &error))
}

/// Where the value of an option stands.
fn place_of(words: &[OsString], option: &str) -> Option<usize> {
    words.iter().position(|word| word == option).map(|at| at + 1).filter(|at| *at < words.len())
}

/// PTX whose names of files have their quotes in octal, as they have other bytes: ptxas knows no escaped quote.
fn readable(text: Vec<u8>) -> Vec<u8> {
    const QUOTE: &[u8] = b"\\\"";
    if memchr::memmem::find(&text, QUOTE).is_none() {
        return text;
    }
    let mut out = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let is_name = line.trim_ascii_start().starts_with(b".file");
        let mut copied = 0;
        for at in memchr::memmem::find_iter(line, QUOTE).filter(|_| is_name) {
            out.extend_from_slice(&line[copied..at]);
            out.extend_from_slice(b"\\042");
            copied = at + QUOTE.len();
        }
        out.extend_from_slice(&line[copied..]);
    }
    out
}

/// PTX without what line information adds to it: `.loc`, and behind the functions `.file` and the section of inlined functions' names.
fn without_lines(text: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let mut in_section = false;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let word = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty()).unwrap_or_default();
        match word {
            // Its text ends with a brace on a line of its own.
            _ if in_section => in_section = word != b"}",
            b".section" if line.windows(10).any(|part| part == b".debug_str") => in_section = true,
            b".loc" | b".file" => {}
            _ => kept.extend_from_slice(line),
        }
    }
    kept
}

/// Keeps the sites of one architecture's code until nvcc compiles the host's side of the unit.
fn write_rows(session: &Path, unit: &OsStr, output: &Path, map: &SiteMap, knowledge: &Knowledge) -> Result<(), Error> {
    let folder = session.join(unit_rows::FOLDER).join(Path::new(unit).file_name().unwrap_or(unit));
    let mut by_file: BTreeMap<&str, SiteMap> = BTreeMap::new();
    for site in &map.sites {
        let file = site.file.as_deref().unwrap_or(&map.file);
        let of_file = by_file.entry(file).or_insert_with(|| SiteMap { file: file.to_owned(), sites: Vec::new(), ..map.clone() });
        of_file.sites.push(site.clone());
    }
    let text = host_runtime::rows_of_unit(by_file.values(), &knowledge.settings.options(), &map.hash);
    let name = Path::new(output.file_name().unwrap_or_default()).with_extension("hpp");
    let written =
        fs::create_dir_all(&folder).and_then(|()| File::create(folder.join(name))).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Error::io("can't write", &folder, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_information_goes_and_all_else_stays() {
        let with = "\t// .globl f\n{\n\t.local .align 8 .b8 depot[8];\n\t.loc\t1 3 1\n\tret;\n\n}\n\t.file\t1 \"/a/f.cu\"\n\t.section\t.debug_str\n\t{\n$L__info_string0:\n.b8 95,0\n\n\t}\n";
        assert_eq!(
            String::from_utf8_lossy(&without_lines(with.as_bytes())),
            "\t// .globl f\n{\n\t.local .align 8 .b8 depot[8];\n\tret;\n\n}\n"
        );
    }
}
