//! `cuinstr.toml`: what a project says once instead of on each command line.

use super::glob;
use super::input::{Input, cannot_read};
use super::sources::{Sources, names};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::options::{DeviceMacro, Space, Waiver};
use cuinstr_gpus::Preferences;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Name of the file that is looked for.
const NAME: &str = "cuinstr.toml";

/// A configuration file that holds.
#[derive(Debug)]
pub struct Config {
    /// Path for messages.
    pub name: String,
    /// Folder of the file, absolute and without links: the root of the project.
    pub folder: PathBuf,
    /// Macros that mark device functions.
    pub device_macros: Vec<DeviceMacro>,
    /// Macros that open a loop.
    pub loop_macros: Vec<String>,
    /// Functions that are left as they are.
    pub leave_alone: Vec<String>,
    /// Which GPUs `--gpu auto` prefers.
    pub gpu: Preferences,
    /// Text of the file, for messages.
    pub bytes: Vec<u8>,
    exclude: Vec<String>,
    waivers: Vec<Entry>,
    /// Where each of `leave_alone` stands.
    leave_alone_at: Vec<Range<usize>>,
}

/// A waiver of the file.
#[derive(Debug)]
struct Entry {
    /// The file or the pattern that it is limited to.
    path: Option<String>,
    waiver: Waiver,
    at: Range<usize>,
}

/// What the files of a run use of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Used {
    /// The files, relative to the project.
    files: BTreeSet<String>,
    /// Waivers that accepted something, by their numbers in the configuration.
    waivers: BTreeSet<usize>,
    /// Functions to leave alone that a file names, by their numbers.
    left_alone: BTreeSet<usize>,
}

impl Used {
    /// Takes in what other files use.
    pub fn extend(&mut self, other: Self) {
        self.files.extend(other.files);
        self.waivers.extend(other.waivers);
        self.left_alone.extend(other.left_alone);
    }
}

/// A configuration file that does not.
#[derive(Debug)]
pub struct BadConfig {
    /// Path for messages.
    pub name: String,
    /// What it holds, as far as it could be read.
    pub bytes: Vec<u8>,
    /// What is wrong with it: at least one error.
    pub diagnostics: Vec<Diagnostic>,
}

/// The nearest `cuinstr.toml`, in this folder or above it. One that is no file is found too: reading it then says so.
#[must_use]
pub fn find(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().map(|folder| folder.join(NAME)).find(|path| path.symlink_metadata().is_ok())
}

/// Reads a configuration file.
///
/// # Errors
/// All that is wrong with it.
pub fn load(path: &Path) -> Result<Config, BadConfig> {
    let name = shown(path);
    let bad = |bytes: &[u8], diagnostics| BadConfig { name: shown(path), bytes: bytes.to_vec(), diagnostics };
    let bytes = std::fs::read(path).map_err(|error| bad(b"", vec![*cannot_read(&error)]))?;
    let folder = path.canonicalize().map_err(|error| bad(b"", vec![*cannot_read(&error)]))?;
    let folder = folder.parent().unwrap_or(&folder).to_owned();
    parse(&bytes, name, folder).map_err(|diagnostics| bad(&bytes, diagnostics))
}

impl Config {
    /// The input's path relative to the project, with forward slashes; as spelled if it is not in the project.
    #[must_use]
    pub fn relative(&self, input: &Input) -> String {
        let within = || {
            let path = input.folder()?.join(input.path.file_name()?);
            let relative = path.strip_prefix(&self.folder).ok()?;
            Some(relative.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/"))
        };
        if input.is_stdin() { input.name.clone() } else { within().unwrap_or_else(|| slashes(&input.name)) }
    }

    /// Whether the input is to be copied unchanged.
    #[must_use]
    pub fn excludes(&self, site_path: &str) -> bool {
        self.exclude.iter().any(|pattern| glob::matches(pattern, site_path))
    }

    /// Waivers that hold in this file. One that names this very file is stale if it accepts nothing there; the others speak of further
    /// files.
    #[must_use]
    pub fn waivers(&self, site_path: &str) -> Vec<Waiver> {
        self.holding(site_path).map(|(_, waiver)| waiver.clone()).collect()
    }

    /// The waivers that hold in this file, each with its number in the configuration.
    fn holding<'a>(&'a self, site_path: &'a str) -> impl Iterator<Item = (usize, &'a Waiver)> {
        let holds = |entry: &Entry| entry.path.as_deref().is_none_or(|path| glob::matches(path, site_path));
        self.waivers.iter().enumerate().filter(move |(_, entry)| holds(entry)).map(|(number, entry)| (number, &entry.waiver))
    }

    /// What a file uses of the configuration: the waivers, by their place in [`Config::waivers`], that accepted something, and functions to leave
    /// alone that its text names.
    #[must_use]
    pub fn used(&self, site_path: &str, text: &[u8], waivers: &BTreeSet<usize>) -> Used {
        let held = self.holding(site_path).map(|(number, _)| number);
        let left_alone = self.leave_alone.iter().enumerate().filter(|(_, function)| names(text, function));
        Used {
            files: BTreeSet::from([site_path.to_owned()]),
            waivers: held.enumerate().filter(|(place, _)| waivers.contains(place)).map(|(_, number)| number).collect(),
            left_alone: left_alone.map(|(number, _)| number).collect(),
        }
    }

    /// What of the configuration matches nothing: entries that no file of a run uses, and that no other source of the project can need.
    ///
    /// Reads the project's sources if an entry is in question.
    #[must_use]
    pub fn stale(&self, used: &Used) -> Vec<Diagnostic> {
        let Used { files, waivers, left_alone } = used;
        let sources = Sources::new(self);
        let mut stale = Vec::new();
        for entry in self.waivers.iter().enumerate().filter(|(number, _)| !waivers.contains(number)).map(|(_, entry)| entry) {
            // The library has told of a waiver for one file that is among those of the run.
            let told = !entry.waiver.shared && entry.path.as_ref().is_some_and(|path| files.contains(path));
            let may_need = |path: &str, text: &[u8]| {
                !files.contains(path)
                    && entry.path.as_deref().is_none_or(|pattern| glob::matches(pattern, path))
                    && match &entry.waiver.function {
                        Some(function) => names(text, function),
                        None => names(text, "__global__") || names(text, "__device__"),
                    }
            };
            if !told && !sources.any(may_need) {
                let message = format!("this waiver of {} accepts nothing", entry.waiver.code.id());
                stale.push(
                    Diagnostic::new(Code::StaleWaiver, message).at(entry.at.clone()).help("remove it, or correct its function or path"),
                );
            }
        }
        for (number, (function, at)) in self.leave_alone.iter().zip(&self.leave_alone_at).enumerate() {
            if !left_alone.contains(&number) && !sources.any(|_, text| names(text, function)) {
                let message = format!("no source of this project names a function `{}`", crate::render::one_line(function));
                stale.push(Diagnostic::new(Code::BadConfig, message).at(at.clone()).help("correct the name, or remove it"));
            }
        }
        stale
    }
}

/// The path with forward slashes on every system.
#[must_use]
pub fn slashes(path: &str) -> String {
    if std::path::MAIN_SEPARATOR == '/' { path.to_owned() } else { path.replace(std::path::MAIN_SEPARATOR, "/") }
}

/// The path as seen from the current folder, if it lies there.
fn shown(path: &Path) -> String {
    let current = std::env::current_dir().and_then(|folder| folder.canonicalize()).unwrap_or_default();
    let relative = path.strip_prefix(&current).ok().filter(|path| !current.as_os_str().is_empty() && !path.as_os_str().is_empty());
    relative.unwrap_or(path).to_string_lossy().into_owned()
}

/// The space that `device`, `kernel` or `host-device` names.
#[must_use]
pub fn space_of(word: &str) -> Option<Space> {
    match word {
        "device" => Some(Space::Device),
        "kernel" => Some(Space::Kernel),
        "host-device" => Some(Space::HostDevice),
        _ => None,
    }
}

/// Whether the text could name a macro.
#[must_use]
pub fn is_identifier(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit()) && !text.is_empty() && text.chars().all(|c| c == '_' || c == '$' || c.is_alphanumeric())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Tables {
    #[serde(default)]
    device_macros: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    loop_macros: Vec<Spanned<String>>,
    #[serde(default)]
    leave_alone: Vec<Spanned<String>>,
    #[serde(default)]
    exclude: Vec<Spanned<String>>,
    #[serde(default)]
    waiver: Vec<Spanned<WaiverTable>>,
    #[serde(default)]
    gpu: Preferences,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaiverTable {
    code: Spanned<String>,
    function: Option<Spanned<String>>,
    path: Option<Spanned<String>>,
    reason: Option<Spanned<String>>,
}

fn parse(bytes: &[u8], name: String, folder: PathBuf) -> Result<Config, Vec<Diagnostic>> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        vec![Diagnostic::new(Code::BadConfig, "the configuration is not UTF-8").at(at..at + 1).help("save it as UTF-8")]
    })?;
    // A byte-order mark is no part of TOML; a space of the same width in its place keeps the spans true.
    let unmarked = text.strip_prefix('\u{feff}').map(|rest| format!("   {rest}"));
    let tables: Tables = toml::from_str(unmarked.as_deref().unwrap_or(text)).map_err(|error| {
        let message = crate::render::one_line(error.message());
        let diagnostic = Diagnostic::new(Code::BadConfig, message).help("`cuinstr --help` shows what the file can hold");
        vec![if let Some(span) = error.span() { diagnostic.at(span) } else { diagnostic }]
    })?;

    let mut problems = Vec::new();
    let leave_alone_at = tables.leave_alone.iter().map(Spanned::span).collect();
    let mut names = |list: Vec<Spanned<String>>, what: &str, sound: fn(&str) -> bool| {
        list.into_iter()
            .map(|item| {
                if !sound(item.get_ref()) {
                    let message = format!("`{}` is no {what}", crate::render::one_line(item.get_ref()));
                    problems.push(Diagnostic::new(Code::BadConfig, message).at(item.span()));
                }
                item.into_inner()
            })
            .collect::<Vec<_>>()
    };
    let loop_macros = names(tables.loop_macros, "name of a macro", is_identifier);
    let leave_alone = names(tables.leave_alone, "name of a function", |text| !text.trim().is_empty());
    let exclude = names(tables.exclude, glob::KIND, glob::is_sound);
    let device_macros = tables.device_macros.into_iter().filter_map(|(name, space)| {
        if !is_identifier(name.get_ref()) {
            problems.push(Diagnostic::new(Code::BadConfig, format!("`{}` is no name of a macro", name.get_ref())).at(name.span()));
        }
        let Some(known) = space_of(space.get_ref()) else {
            let message = format!("`{}` is no space of a function", crate::render::one_line(space.get_ref()));
            problems
                .push(Diagnostic::new(Code::BadConfig, message).at(space.span()).help("write \"device\", \"kernel\" or \"host-device\""));
            return None;
        };
        Some(DeviceMacro { name: name.into_inner(), space: known })
    });
    let device_macros = device_macros.collect();
    let waivers = tables.waiver.into_iter().filter_map(|table| waiver(table, &mut problems)).collect();

    if problems.is_empty() {
        Ok(Config {
            name,
            folder,
            device_macros,
            loop_macros,
            leave_alone,
            gpu: tables.gpu,
            bytes: bytes.to_vec(),
            exclude,
            waivers,
            leave_alone_at,
        })
    } else {
        problems.sort_by_key(|problem| problem.primary.as_ref().map(|label| label.span.start));
        Err(problems)
    }
}

/// The waiver and the file or pattern that it is limited to; or what is wrong with it.
fn waiver(table: Spanned<WaiverTable>, problems: &mut Vec<Diagnostic>) -> Option<Entry> {
    let at = table.span();
    let WaiverTable { code, function, path, reason } = table.into_inner();
    let known = Code::from_id(code.get_ref());
    if known.is_none_or(|known| known.severity() == Severity::Error) {
        let text = crate::render::one_line(code.get_ref());
        let message = if known.is_some() { format!("`{text}` is an error and can't be waived") } else { format!("`{text}` is no code") };
        problems.push(Diagnostic::new(Code::UnknownWaiver, message).at(code.span()).help("`cuinstr explain` lists the codes"));
    }
    for text in [&function, &path].into_iter().flatten().filter(|text| text.get_ref().trim().is_empty()) {
        problems
            .push(Diagnostic::new(Code::BadConfig, "this matches nothing").at(text.span()).help("leave the key out to match everything"));
    }
    let reason_span = reason.as_ref().map_or_else(|| at.clone(), Spanned::span);
    let reason = reason.map(|reason| reason.into_inner().trim().to_owned()).filter(|reason| !reason.is_empty());
    if reason.is_none() {
        let help = "add `reason = \"why the gap is harmless\"`";
        problems.push(Diagnostic::new(Code::WaiverWithoutReason, "the waiver gives no reason").at(reason_span).help(help));
    }
    if let Some(path) = path.as_ref().filter(|path| !path.get_ref().trim().is_empty() && !glob::is_sound(path.get_ref())) {
        let message = format!("`{}` is no {}", crate::render::one_line(path.get_ref()), glob::KIND);
        problems.push(Diagnostic::new(Code::BadConfig, message).at(path.span()));
    }
    let path = path.map(Spanned::into_inner);
    let shared = path.as_deref().is_none_or(glob::is_pattern);
    let waiver = Waiver { code: known?, function: function.map(Spanned::into_inner), reason: reason?, shared };
    Some(Entry { path, waiver, at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, Vec<(Code, std::ops::Range<usize>)>> {
        parse(text.as_bytes(), NAME.to_owned(), PathBuf::from("/project"))
            .map_err(|list| list.into_iter().map(|d| (d.code, d.primary.expect("has a place").span)).collect())
    }

    #[test]
    fn every_key_is_read() {
        let config = read(
            "\u{feff}loop-macros = ['LOOP']\nleave-alone = ['f']\nexclude = ['third_party']\n[device-macros]\nDEV = 'device'\nHD = 'host-device'\n\
             [[waiver]]\ncode = 'CI013'\npath = 'a.cu'\nreason = 'ok'\n[[waiver]]\ncode = 'CI012'\nfunction = 'g'\nreason = 'fine'",
        )
        .expect("it is sound");
        assert_eq!(config.device_macros[0], DeviceMacro { name: "DEV".to_owned(), space: Space::Device });
        assert_eq!(config.device_macros[1].space, Space::HostDevice);
        assert_eq!((config.loop_macros.as_slice(), config.leave_alone.as_slice()), (&["LOOP".to_owned()][..], &["f".to_owned()][..]));
        assert!(config.excludes("third_party/x.cu") && !config.excludes("x.cu"));
        assert_eq!(config.waivers("a.cu")[0].code, Code::AsmLoop);
        assert_eq!(config.waivers("b.cu")[0].function.as_deref(), Some("g"));
    }

    #[test]
    fn every_fault_has_its_place() {
        for (text, code, at) in [
            ("loop-macro = []", Code::BadConfig, "loop-macro"),
            ("exclude = 3", Code::BadConfig, "3"),
            ("exclude = ['']", Code::BadConfig, "''"),
            ("exclude = ['[z-a]']", Code::BadConfig, "'[z-a]'"),
            ("[[waiver]]\ncode = 'CI013'\npath = '{a,b}.cu'\nreason = 'x'", Code::BadConfig, "'{a,b}.cu'"),
            ("loop-macros = ['A B']", Code::BadConfig, "'A B'"),
            ("[device-macros]\nA = 'gpu'", Code::BadConfig, "'gpu'"),
            ("[device-macros]\n'a b' = 'device'", Code::BadConfig, "'a b'"),
            ("[[waiver]]\ncode = 'CI999'\nreason = 'x'", Code::UnknownWaiver, "'CI999'"),
            ("[[waiver]]\ncode = 'CI003'\nreason = 'x'", Code::UnknownWaiver, "'CI003'"),
            ("[[waiver]]\ncode = 'CI013'\nreason = ' '", Code::WaiverWithoutReason, "' '"),
            ("[[waiver]]\ncode = 'CI013'\nreason = 'x'\nwhy = 1", Code::BadConfig, "why"),
        ] {
            let faults = read(text).expect_err(text);
            let start = text.find(at).expect("it is in the text");
            assert_eq!(faults, [(code, start..start + at.len())], "{text}");
        }
        assert_eq!(read("[[waiver]]\ncode = 'CI013'").expect_err("no reason")[0].0, Code::WaiverWithoutReason);
        assert!(read("= 1").is_err());
    }

    #[test]
    fn all_faults_come_at_once() {
        assert_eq!(read("loop-macros = ['1', '2']\nexclude = ['']").expect_err("three faults").len(), 3);
    }
}
