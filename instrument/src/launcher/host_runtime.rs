//! The host runtime, also called host half. With it a program that knows nothing of us obeys `CUINSTR_TIMEOUT` and its kin.
//! In its last step for a unit nvcc hands text to the host's compiler. The host runtime stands in front of that text, and
//! so travels in each object. `host_runtime/` holds its text. The build script compiles it once.
//!
//! In reading order, in `host_runtime/`:
//!
//! - `redirect.hpp`: a source's launches reach us. `stand_in.hpp` answers them.
//! - `launch.hpp`: a launch on its way. `watch.hpp`: the thread that looks whether launches are in time.
//! - `control.hpp`, `listen.hpp`: what others may ask of a process.
//! - `report.hpp`: what is said of a stop.
//! - `pause.hpp`: pauses at block boundaries. `process.hpp`: what all halves of a process share.
//! - `room.hpp`: launches for which our own words in shared memory leave no room.
//!
//! All of them use `environment.hpp` (the variables) and `driver.hpp` (what is shared with the GPU).

use super::error::Error;
use super::unit_rows;
use crate::options::{AtExit, Options};
use crate::prelude::push_in_quotes;
use crate::site::SiteMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The host runtime as C++.
const TEXT: &str = include_str!(concat!(env!("OUT_DIR"), "/host_runtime.cpp"));
/// The same compiled, for machines like the one that this program is for; empty if it was built without a C++ compiler.
const COMPILED: &str = include_str!(concat!(env!("OUT_DIR"), "/host_runtime.inc"));
const REDIRECT: &str = include_str!(concat!(env!("OUT_DIR"), "/redirect.hpp"));
/// Macros by which compilers say what machine they compile for.
const MACHINES: [(&str, &str); 2] = [("x86_64", "__x86_64__"), ("aarch64", "__aarch64__")];

/// All that decides what it does, for the number of the settings.
pub(super) fn identity() -> &'static str {
    REDIRECT
}

/// What stands in front of a unit. `as_text` is for compilers that keep no assembly, as for optimisation when linking.
fn header(as_text: bool) -> String {
    let own = MACHINES.iter().find(|(machine, _)| *machine == env!("CUINSTR_HOST_MACHINE")).map(|(_, name)| *name);
    let mut header = String::from("# 1 \"<cuinstr>\" 3\n#pragma GCC system_header\n#if defined(__PRAGMA_REDEFINE_EXTNAME)\n");
    match own.filter(|_| !as_text && !COMPILED.is_empty()) {
        Some(own) => {
            let _ = write!(header, "#if defined({own}) && !defined(__ILP32__)\n{COMPILED}#else\n{TEXT}#endif\n");
        }
        None => header.push_str(TEXT),
    }
    header.push_str(REDIRECT);
    header.push_str("#endif\n");
    header
}

/// Which of the arguments is the host's side of a unit.
pub(super) fn unit(arguments: &[OsString]) -> Option<usize> {
    arguments.iter().position(|word| word.as_bytes().ends_with(b".cudafe1.cpp"))
}

/// The arguments of the host's compiler with the host runtime in front of the source; none if they are not those of nvcc's last step for a unit.
///
/// # Errors
/// If the host runtime can't be written to the session's folder.
pub(super) fn in_front(session: &Path, arguments: &[OsString]) -> Result<Option<Vec<OsString>>, Error> {
    let compiles = arguments.iter().any(|word| word == "-c" || word == "-S");
    let Some(main) = unit(arguments).filter(|_| compiles) else { return Ok(None) };
    let as_text = arguments.iter().any(|word| word.as_bytes().starts_with(b"-flto") || word == "-S");
    let path = session.join(if as_text { "host-runtime-text.hpp" } else { "host-runtime.hpp" });
    if !path.is_file() {
        write(session, &path, &header(as_text)).map_err(|error| Error::io("can't write", &path, &error))?;
    }
    let files = [path].into_iter().chain(unit_rows::files(session, Path::new(&arguments[main])));
    let mut words = arguments.to_vec();
    words.splice(main..main, files.flat_map(|path| [OsStr::new("-include").to_owned(), path.into_os_string()]));
    Ok(Some(words))
}

/// Under its name all at once: steps of other units may run beside this one.
fn write(session: &Path, path: &PathBuf, text: &str) -> std::io::Result<()> {
    let mut new = tempfile::Builder::new().prefix("host-runtime-").tempfile_in(session)?;
    new.write_all(text.as_bytes())?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// The sites of a unit's files for the host runtime's reports, as a variable of the host's side in a section of its own.
///
/// Letters behind a file's name say what was compiled in: fuel (`f`), any limit or a gate (`l`); behind no name that marks of barriers lie in shared memory (`m`).
pub(super) fn rows<'a>(maps: impl Iterator<Item = &'a SiteMap>, options: &Options, has_marks: bool) -> String {
    let Some(mut text) = literal(maps, options, "__cuinstr_rows") else { return String::new() };
    if has_marks {
        text.push_str("\n#if !defined(__CUDACC_RDC__)\n    \":\\tm\\n\"\n#endif\n    \"\"");
    }
    format!("#if !defined(__CUDA_ARCH__) && !defined(__CUDACC_RTC__)\n{text};\n#endif\n")
}

/// The same for a unit's PTX, in front of what the host's compiler reads of the unit last. `number` tells the variable from that of another architecture.
pub(super) fn rows_of_unit<'a>(maps: impl Iterator<Item = &'a SiteMap>, options: &Options, number: &str) -> String {
    literal(maps, options, &format!("__cuinstr_rows_{number}")).map_or_else(String::new, |text| format!("{text};\n"))
}

/// The variable without the semicolon at its end; none without sites.
fn literal<'a>(maps: impl Iterator<Item = &'a SiteMap>, options: &Options, name: &str) -> Option<String> {
    let one_line = |text: &str| text.replace(|c: char| c.is_control(), "?");
    let mut rows = String::new();
    for sites in maps {
        let _ = write!(rows, ":{}\t", one_line(&sites.file));
        rows.extend(options.limits.fuel.map(|_| 'f'));
        rows.extend((options.limits.any() || options.at_exit == AtExit::Gate).then_some('l'));
        rows.push('\n');
        for site in &sites.sites {
            let kind = serde_json::to_value(site.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
            let id = site.id.trim_start_matches("0x");
            // PTX has its functions by their symbols.
            let function = cuinstr_image::Kernel::new(&site.function).name;
            let _ = writeln!(rows, "{id}\t{}\t{}\t{kind}\t{}", site.line, site.column, one_line(&function));
        }
    }
    if rows.is_empty() {
        return None;
    }
    let mut text = format!("static const char {name}[] __attribute__((__section__(\"cuinstr_rows\"), __used__)) =");
    for line in rows.split_inclusive('\n') {
        text.push_str("\n    \"");
        line.bytes().for_each(|byte| push_in_quotes(&mut text, byte));
        text.push('"');
    }
    Some(text)
}
