//! `--verify`: a compilation fails if the PTX that it made has a loop that can't be stopped. nvcc keeps its PTX in the session for that.

use super::arguments::{CommandLine, Product};
use super::error::Error;
use super::process::absolute;
use super::session::Session;
use cuinstr_image::Kernel;
use cuinstr_verify::verify_ptx;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// Words that make nvcc keep its PTX; none where it makes none.
///
/// # Errors
/// If the command line keeps intermediate files itself: nvcc has one folder for them.
pub(super) fn words(line: &CommandLine, session: &Session) -> Result<Vec<OsString>, Error> {
    if line.keeps {
        return Err(Error { code: 2, ..Error::new("--verify and nvcc's own --keep do not go together", "leave out one of them") });
    }
    if !matches!(line.product, Product::Object | Product::Binary(_)) {
        return Ok(Vec::new());
    }
    let folder = folder(session);
    fs::create_dir(&folder).map_err(|error| Error::io("can't make the folder", &folder, &error))?;
    Ok(vec!["--keep".into(), "--keep-dir".into(), folder.into()])
}

/// What is not proved of the PTX that nvcc made, one line each.
///
/// # Errors
/// If there is no PTX to prove anything of, or it can't be read.
pub(super) fn findings(line: &CommandLine, session: &Session) -> Result<BTreeSet<String>, Error> {
    if line.product == Product::Nothing {
        return Ok(BTreeSet::new());
    }
    let texts = texts(line, session);
    if texts.is_empty() {
        return Err(Error::new("--verify found no PTX that nvcc made", "leave out --verify, or compile without -dlto and the like"));
    }
    let mut findings = BTreeSet::new();
    for path in &texts {
        let bytes = fs::read(path).map_err(|error| Error::io("can't read", path, &error))?;
        let report = verify_ptx(&String::from_utf8_lossy(&bytes));
        for fault in &report.faults {
            findings.insert(format!("{}:{}: error[{}]: {}", path.display(), fault.line, fault.code.id(), fault.message));
        }
        // Calls of other units' functions are no cycles; whether those units' loops stop, their own compilations say.
        for found in &report.loops {
            let Some(code) = found.verdict.code() else { continue };
            let mut text = match &found.place {
                Some(place) => format!("{}:{}:{}: ", place.file, place.line, place.column),
                None => String::new(),
            };
            let _ = write!(text, "error[{}]: {}", code.id(), found.sentence(&Kernel::new(&found.function).name));
            if found.place.is_none() {
                text.push_str(" (-lineinfo shows its line)");
            }
            findings.insert(text);
        }
    }
    Ok(findings)
}

/// Whether nvcc writes files alone. What goes to a pipe can neither be read again nor be written anew.
pub(super) fn writes_files(line: &CommandLine) -> bool {
    outputs(line).iter().all(|path| path.is_file() || !path.exists())
}

/// The PTX that nvcc made or kept.
pub(super) fn texts(line: &CommandLine, session: &Session) -> Vec<PathBuf> {
    let mut texts: Vec<PathBuf> = match line.product {
        Product::Nothing => Vec::new(),
        Product::Ptx => outputs(line),
        Product::Object | Product::Binary(_) => {
            let entries = fs::read_dir(folder(session)).into_iter().flatten().flatten().map(|entry| entry.path());
            entries.filter(|path| path.extension().is_some_and(|extension| extension == "ptx")).collect()
        }
    };
    texts.sort();
    texts
}

/// Removes what nvcc wrote, as far as these are files of their own: no device and no pipe.
///
/// # Errors
/// If one can't be removed.
pub(super) fn remove_outputs(line: &CommandLine) -> Result<(), Error> {
    let sources: Vec<PathBuf> = line.sources.iter().map(|source| absolute(source.as_ref())).collect();
    for path in outputs(line).iter().filter(|path| path.is_file() && !sources.contains(path)) {
        fs::remove_file(path).map_err(|error| Error::io("can't remove", path, &error))?;
    }
    Ok(())
}

fn folder(session: &Session) -> PathBuf {
    session.folder().join("kept")
}

/// The files that nvcc writes.
fn outputs(line: &CommandLine) -> Vec<PathBuf> {
    if let Some(output) = &line.output {
        return vec![absolute(output.as_ref())];
    }
    let ending = match line.product {
        Product::Ptx => "ptx",
        Product::Object => "o",
        Product::Binary(Some(ending)) => ending,
        Product::Binary(None) => return vec![absolute("a.out".as_ref())],
        Product::Nothing => return Vec::new(),
    };
    let folder = line.output_folder.as_ref().map(PathBuf::from).unwrap_or_default();
    let stems = line.sources.iter().filter_map(|source| PathBuf::from(source).file_stem().map(std::ffi::OsStr::to_owned));
    stems.map(|stem| absolute(&folder.join(stem).with_extension(ending))).collect()
}
