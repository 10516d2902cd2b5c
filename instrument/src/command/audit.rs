//! `cuinstr audit`: the rewriter's sites against the loops that a real front end sees.

use super::cli::{AuditArgs, AuditFormat, Format};
use super::output;
use super::report::{Style, status_of, to_stderr};
use super::status::Status;
use anyhow::Context;
use cuinstr::diagnostic::{Code, Diagnostic};
use cuinstr::options::Options;
use cuinstr::position::LineIndex;
use cuinstr::project::config;
use cuinstr::project::input::Input;
use cuinstr::site::{Form, Kind, Site};
use cuinstr_clang::{Error, Function, Loop, Place, Unit, parse};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A folder that need not exist, for headers that clang's own headers include and a toolkit may lack.
const STAND_INS: &str = "/cuinstr-stand-ins";
/// CUDA 13 has no texture references any more, and a toolkit may come without cuRAND: no loop is lost by leaving both out. The declaration is
/// for a clang that does not know the toolkit's version, and then takes launches for those of an old one.
const LEFT_OUT: &[(&str, &str)] = &[
    ("texture_fetch_functions.h", "extern \"C\" unsigned cudaConfigureCall(dim3, dim3, unsigned long = 0, void* = 0);\n"),
    ("curand_mtgp32_kernel.h", ""),
];
/// Architecture if the flags name none.
const ARCH: &str = "sm_90";
/// Most errors of clang that are shown.
const MOST_ERRORS: usize = 5;

/// Audits one file.
///
/// # Errors
/// If standard output can't be written.
pub(crate) fn run(args: &AuditArgs) -> anyhow::Result<Status> {
    let style = Style::new(Format::Full, args.color);
    let name = args.file.to_string_lossy().into_owned();
    let say = |diagnostic: Diagnostic| {
        to_stderr(&style.render(&name, b"", std::slice::from_ref(&diagnostic)));
        status_of(&[diagnostic])
    };
    let options = match options(args) {
        Ok(options) => options,
        Err(bad) => {
            to_stderr(&style.render(&bad.name, &bad.bytes, &bad.diagnostics));
            return Ok(status_of(&bad.diagnostics));
        }
    };
    if let Err(diagnostic) = Input::new(&args.file).read() {
        return Ok(say(*diagnostic));
    }
    let Some(toolkit) = toolkit(args) else {
        let diagnostic = Diagnostic::new(Code::NoToolkit, "no CUDA headers were found");
        return Ok(say(diagnostic.help("name the toolkit's folder: `cuinstr audit --cuda-path /usr/local/cuda …`, or set CUDA_HOME")));
    };
    let unit = Unit {
        path: name.clone(),
        args: clang_args(&args.flags, &toolkit),
        files: LEFT_OUT.iter().map(|(header, text)| (format!("{STAND_INS}/{header}"), (*text).to_owned())).collect(),
    };
    let parsed = match parse(&unit) {
        Ok(mut parsed) => {
            let own = OwnFolders::of(&unit.args);
            // A library may say of its own headers that they are the system's. The launcher goes by folders, and so does this.
            for function in parsed.functions.iter_mut().filter(|function| function.is_system) {
                function.is_system = !own.hold(&function.file);
            }
            parsed
        }
        Err(error @ Error::NoLibrary(_)) => {
            let help = "install libclang 16 or newer with its headers (Debian: `apt-get install libclang1-19 libclang-common-19-dev`), or set LIBCLANG_PATH";
            return Ok(say(Diagnostic::new(Code::NoClang, error.to_string()).help(help)));
        }
        Err(error) => return Ok(say(Diagnostic::new(Code::NotParsed, error.to_string()).help("check the flags behind `--`"))),
    };
    let mut status = Status::Done;
    for error in parsed.errors.iter().take(MOST_ERRORS) {
        status = status.max(say(Diagnostic::new(Code::NotParsed, error.as_str())));
    }
    let rows = census(&parsed.functions, &mut Sites { options, files: BTreeMap::new() });
    if rows.iter().any(|row| row.is_own && row.cover == Cover::None) {
        status = status.max(Status::Refused);
    }
    let text = match args.format {
        AuditFormat::Text => table(&name, &rows),
        AuditFormat::Json => as_json(&name, &parsed.version, &parsed.errors, &rows),
    };
    output::to_stdout(text.as_bytes()).context("standard output can't be written")?;
    Ok(status)
}

fn options(args: &AuditArgs) -> Result<Options, config::BadConfig> {
    let found = || Input::new(&args.file).folder().and_then(|folder| config::find(&folder));
    let mut options = Options::default();
    if let Some(path) = args.config.clone().or_else(found) {
        let config = config::load(&path)?;
        options.device_macros = config.device_macros;
        options.loop_macros = config.loop_macros;
        options.leave_alone = config.leave_alone;
    }
    Ok(options)
}

/// The toolkit's folder: that in which `include/cuda_runtime.h` lies.
fn toolkit(args: &AuditArgs) -> Option<PathBuf> {
    let has_headers = |folder: &PathBuf| folder.join("include/cuda_runtime.h").is_file();
    if let Some(path) = &args.cuda_path {
        return Some(path.clone()).filter(has_headers);
    }
    let home = std::env::var_os("CUDA_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let by_path = std::env::split_paths(&path).filter(|folder| folder.join("nvcc").is_file());
    // nvcc is often reached through a link.
    let around = |folder: PathBuf| folder.join("nvcc").canonicalize().ok().and_then(|nvcc| Some(nvcc.parent()?.parent()?.to_owned()));
    home.into_iter().chain(by_path.filter_map(around)).chain([PathBuf::from("/usr/local/cuda")]).find(has_headers)
}

/// clang's arguments for nvcc's: the device side, for one architecture.
fn clang_args(flags: &[String], toolkit: &Path) -> Vec<String> {
    let (mut kept, mut arch): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut rest = flags.iter().peekable();
    while let Some(flag) = rest.next() {
        let value = |long: &str| flag.strip_prefix(long).and_then(|behind| behind.strip_prefix('=').map(str::to_owned));
        if let Some(found) = flag.strip_prefix("-arch=").map(str::to_owned).or_else(|| value("--gpu-architecture")) {
            arch = Some(found);
        } else if matches!(flag.as_str(), "-arch" | "--gpu-architecture") {
            arch = rest.next().cloned();
        } else if flag.starts_with("-gencode") || flag.starts_with("--generate-code") {
            let text = if flag.contains('=') { flag.clone() } else { rest.next().cloned().unwrap_or_default() };
            arch = text.split(['=', ',']).find(|part| part.starts_with("compute_")).map(str::to_owned).or(arch);
        } else if matches!(flag.as_str(), "-I" | "-D" | "-U" | "-isystem" | "-include") {
            kept.push(flag.clone());
            kept.extend(rest.next().cloned());
        } else if ["-I", "-D", "-U", "-isystem", "-include", "-std="].iter().any(|known| flag.starts_with(known)) {
            kept.push(flag.clone());
        } else if let Some(standard) = value("--std") {
            kept.push(format!("-std={standard}"));
        }
    }
    // Virtual architectures, and those with features of one generation only, are clang's by their number.
    let arch = arch.map_or_else(|| ARCH.to_owned(), |arch| arch.replace("compute_", "sm_"));
    let known =
        arch.strip_prefix("sm_").is_some_and(|number| number.trim_end_matches(['a', 'f']).parse().is_ok_and(|number: u32| number <= 90));
    let include = toolkit.join("include");
    let mut args: Vec<String> = ["-x", "cuda", "--cuda-device-only", "-nocudalib", "-Wno-unknown-cuda-version", "-ferror-limit=0"]
        .iter()
        .map(|arg| (*arg).to_owned())
        .collect();
    args.push(format!("--cuda-gpu-arch={}", if known { arch.as_str() } else { ARCH }));
    args.push(format!("--cuda-path={}", toolkit.display()));
    args.extend(["-isystem".to_owned(), STAND_INS.to_owned()]);
    // nvcc looks there without being told; CUDA 13 keeps libcu++, Thrust and CUB in a folder of their own.
    for folder in [include.join("cccl"), include] {
        args.extend(["-isystem".to_owned(), folder.display().to_string()]);
    }
    if !kept.iter().any(|flag| flag.starts_with("-std=")) {
        args.push("-std=c++17".to_owned());
    }
    args.extend(kept);
    args
}

/// Folders whose headers are the user's own: those of `-I`, but for what lies in a folder of the system's as well.
struct OwnFolders {
    own: Vec<PathBuf>,
    system: Vec<PathBuf>,
}

impl OwnFolders {
    fn of(args: &[String]) -> Self {
        let folders = |option: &str| -> Vec<PathBuf> {
            let behind = args.windows(2).filter(|pair| pair[0] == option).map(|pair| pair[1].as_str());
            let joined = args.iter().filter_map(|arg| arg.strip_prefix(option)).filter(|folder| !folder.is_empty());
            behind.chain(joined).filter_map(|folder| Path::new(folder).canonicalize().ok()).collect()
        };
        Self { own: folders("-I"), system: folders("-isystem") }
    }

    fn hold(&self, file: &str) -> bool {
        let Ok(file) = Path::new(file).canonicalize() else { return false };
        let is_in = |folders: &[PathBuf]| folders.iter().any(|folder| file.starts_with(folder));
        is_in(&self.own) && !is_in(&self.system)
    }
}

/// What the rewriter says of one file: its sites, and diagnostics with their lines.
type Rewritten = (Vec<Site>, Vec<(u32, Diagnostic)>);

/// The rewriter's sites of the files that loops stand in; none of those that can't be read.
struct Sites {
    options: Options,
    files: BTreeMap<String, Option<Rewritten>>,
}

/// What covers a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cover {
    /// A site, and whether it polls.
    Site(Site),
    /// A diagnostic that names the line.
    Diagnostic(Code),
    /// It stands in a header of the system, which is never rewritten.
    Header,
    /// It is `do … while (0)`.
    Once,
    /// Nothing.
    None,
}

/// A loop with what covers it.
struct Row<'a> {
    function: &'a Function,
    found: &'a Loop,
    is_own: bool,
    cover: Cover,
}

/// Every loop of device code, those in system headers only where the user's device code reaches them.
fn census<'a>(functions: &'a [Function], sites: &mut Sites) -> Vec<Row<'a>> {
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, function) in functions.iter().enumerate() {
        by_name.entry(&function.usr).or_default().push(index);
    }
    let mut reached: BTreeSet<usize> = BTreeSet::new();
    let mut work: Vec<usize> = (0..functions.len()).filter(|index| functions[*index].is_device && !functions[*index].is_system).collect();
    while let Some(index) = work.pop() {
        if reached.insert(index) {
            let named = functions[index].names.iter().filter_map(|name| by_name.get(name.as_str())).flatten();
            // What device code calls is device code, `constexpr` functions without a mark included.
            work.extend(named.filter(|index| !reached.contains(index)));
        }
    }
    let mut rows = Vec::new();
    let mut seen: BTreeSet<(&Place, &Place)> = BTreeSet::new();
    for function in reached.into_iter().map(|index| &functions[index]) {
        for found in &function.loops {
            if seen.insert((&found.written, &found.expanded)) {
                let cover = match () {
                    () if function.is_system => Cover::Header,
                    () if found.runs_once => Cover::Once,
                    () => sites.cover(found),
                };
                rows.push(Row { function, found, is_own: !function.is_system, cover });
            }
        }
    }
    rows.sort_by(|a, b| (!a.is_own, &a.found.expanded, &a.found.written).cmp(&(!b.is_own, &b.found.expanded, &b.found.written)));
    rows
}

impl Sites {
    /// What covers a loop: where it is written, or else where the macro that it comes from is used.
    fn cover(&mut self, found: &Loop) -> Cover {
        for place in [&found.written, &found.expanded] {
            let Some((sites, diagnostics)) = self.of(&place.file) else { continue };
            let is_loop = |site: &&Site| !matches!(site.kind, Kind::Entry | Kind::Exit | Kind::Barrier | Kind::Recursion);
            let here = |site: &&Site| site.line == place.line && site.column == place.column;
            if let Some(site) = sites.iter().filter(is_loop).find(here) {
                return Cover::Site(site.clone());
            }
            if let Some((_, diagnostic)) = diagnostics.iter().find(|(line, _)| *line == place.line) {
                return Cover::Diagnostic(diagnostic.code);
            }
        }
        Cover::None
    }

    fn of(&mut self, file: &str) -> Option<&Rewritten> {
        let options = &self.options;
        let read = || {
            let bytes = Input::new(Path::new(file)).read().ok()?;
            let rewrite = cuinstr::rewrite(&bytes, &Options { path: file.to_owned(), ..options.clone() });
            let index = LineIndex::new(&bytes);
            let line = |diagnostic: &Diagnostic| diagnostic.primary.as_ref().map(|label| index.position(label.span.start).0);
            let diagnostics = rewrite.diagnostics.into_iter().filter_map(|diagnostic| Some((line(&diagnostic)?, diagnostic)));
            Some((rewrite.sites.sites, diagnostics.collect()))
        };
        self.files.entry(file.to_owned()).or_insert_with(read).as_ref()
    }
}

fn word(kind: cuinstr_clang::Kind) -> &'static str {
    match kind {
        cuinstr_clang::Kind::For => "for",
        cuinstr_clang::Kind::RangeFor => "range-for",
        cuinstr_clang::Kind::While => "while",
        cuinstr_clang::Kind::Do => "do",
        cuinstr_clang::Kind::Goto => "goto",
    }
}

fn shown(place: &Place) -> String {
    format!("{}:{}:{}", place.file, place.line, place.column)
}

impl Row<'_> {
    fn function(&self) -> String {
        if self.function.name.is_empty() { "a lambda".to_owned() } else { format!("`{}`", self.function.name) }
    }

    fn text(&self) -> String {
        let cover = match &self.cover {
            Cover::Site(site) if site.form == Form::None => {
                format!("left alone: {} (site {})", site.why.as_deref().unwrap_or("no reason is given"), site.id)
            }
            Cover::Site(site) => format!("polled (site {})", site.id),
            Cover::Diagnostic(code) => format!("named by {}", code.id()),
            Cover::Header => "in a header of the system, not rewritten".to_owned(),
            Cover::Once => "never comes round".to_owned(),
            Cover::None => "NO SITE".to_owned(),
        };
        let mut text = format!("{}: {} in {}: {cover}", shown(&self.found.expanded), word(self.found.kind), self.function());
        if self.found.written != self.found.expanded {
            let _ = write!(text, "; written at {}", shown(&self.found.written));
        }
        text
    }
}

fn table(name: &str, rows: &[Row<'_>]) -> String {
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(text, "{}", row.text());
    }
    let count = |wanted: fn(&Cover) -> bool| rows.iter().filter(|row| wanted(&row.cover)).count();
    let polled = count(|cover| matches!(cover, Cover::Site(site) if site.form != Form::None));
    let left = count(|cover| matches!(cover, Cover::Site(site) if site.form == Form::None) || *cover == Cover::Once);
    let (named, headers, none) = (
        count(|cover| matches!(cover, Cover::Diagnostic(_))),
        count(|cover| *cover == Cover::Header),
        count(|cover| *cover == Cover::None),
    );
    let _ = writeln!(
        text,
        "{name}: {} loops in device code: {polled} polled, {left} left alone, {named} named by a diagnostic, {headers} in headers of the system, {none} without a site",
        rows.len()
    );
    text
}

fn as_json(name: &str, version: &str, errors: &[String], rows: &[Row<'_>]) -> String {
    let place = |place: &Place| json!({ "file": place.file, "line": place.line, "column": place.column });
    let loops: Vec<_> = rows
        .iter()
        .map(|row| {
            let (cover, site, code) = match &row.cover {
                Cover::Site(site) => (if site.form == Form::None { "left-alone" } else { "polled" }, Some(site), None),
                Cover::Diagnostic(code) => ("diagnostic", None, Some(code.id())),
                Cover::Header => ("system-header", None, None),
                Cover::Once => ("never-repeats", None, None),
                Cover::None => ("none", None, None),
            };
            json!({
                "kind": word(row.found.kind), "function": row.function.name, "written": place(&row.found.written),
                "expanded": place(&row.found.expanded), "cover": cover, "site": site, "code": code,
            })
        })
        .collect();
    json!({ "file": name, "clang": version, "errors": errors, "loops": loops }).to_string() + "\n"
}
