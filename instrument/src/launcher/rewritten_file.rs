//! One file of the user's, rewritten or left as it is.

use super::cache::Cache;
use super::error::Error;
use super::marks;
use super::process::absolute;
use super::settings::Settings;
use super::unit_names::UnitNames;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::options::{GivenMacro, Options};
use crate::prelude;
use crate::project::config::{self, Config, slashes};
use crate::project::include::edited;
use crate::project::input::Input;
use crate::render::{self, Source};
use crate::site::{Kind, Site, SiteMap};
use crate::source::syntax::macros::Macros;
use crate::source::syntax::token::{self, lex};
use crate::source::syntax::{condition, splice};
use crate::{Rewrite, rewrite};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RewrittenFile {
    /// What is known beside its text.
    pub(super) facts: Facts,
    /// Its text, if that is not the user's own.
    pub(super) text: Option<Vec<u8>>,
}

/// What is known of a file beside its text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Facts {
    /// The site map, if there are sites.
    pub(super) sites: Option<SiteMap>,
    /// Whether it has barriers after which threads check.
    pub(super) barriers: bool,
    /// Whether it declares shared memory whose size the launch says.
    pub(super) dynamic: bool,
    /// Whether it may declare virtual functions.
    pub(super) virtuals: bool,
    /// Bytes of shared memory that it declares; the largest number where its text does not tell.
    pub(super) shared_bytes: u64,
    /// Gaps and refusals, one line each.
    pub(super) said: String,
    /// Whether a compilation that reads it must fail.
    pub(super) refused: bool,
    /// Whether its text is rewritten.
    pub(super) rewritten: bool,
    /// How many calls are polled, since functions may reach themselves.
    pub(super) polled_calls: usize,
}

impl Facts {
    /// Whether device code of the file repeats, by loops or by calls, or may do so.
    pub(super) fn may_repeat(&self) -> bool {
        let repeats = |site: &Site| !matches!(site.kind, Kind::Entry | Kind::Exit | Kind::Barrier);
        !self.said.is_empty() || self.refused || self.sites.as_ref().is_some_and(|map| map.sites.iter().any(repeats))
    }
}

/// Rewrites the files of a translation unit.
pub(super) struct Maker<'a> {
    settings: &'a Settings,
    cache: Cache,
    configs: BTreeMap<PathBuf, Config>,
    /// What the files of its translation unit say of names.
    names: UnitNames,
    /// Macros of the command line that none of the unit's files gives another meaning.
    given: Vec<GivenMacro>,
    /// What decides what becomes of a source, the text that is inserted too: two builds of this tool may run at once.
    digest: u64,
}

impl<'a> Maker<'a> {
    /// For these settings; what is shared lies in the cache.
    pub(super) fn new(settings: &'a Settings, cache: Cache) -> Self {
        Self { settings, cache, configs: BTreeMap::new(), names: UnitNames::default(), given: Vec::new(), digest: settings.digest() }
    }

    /// Learns what the unit's files say of names ([`UnitNames::learn`]).
    pub(super) fn learn(&mut self, files: &[(&str, &[u8])], foreign: &[Vec<u8>], defined: &[u8]) {
        self.names.learn(files, foreign, defined, &self.settings.options());
    }

    /// Learns which macros of the command line decide conditions. A file that gives one another meaning may be read before any other, so nothing is known
    /// of that one.
    pub(super) fn give(&mut self, files: &[&[u8]], foreign: &[Vec<u8>], mut given: Vec<GivenMacro>) {
        let files = files.iter().copied().chain(foreign.iter().map(Vec::as_slice));
        let joined: Vec<_> = files.filter(|_| !given.is_empty()).map(splice::join).collect();
        loop {
            let known = given.len();
            for joined in &joined {
                let anew = condition::decide(&joined.text, &mut lex(&joined.text, 0..joined.text.len(), false), &given);
                given.retain(|one| !anew.contains(one.name.as_bytes()));
            }
            if given.len() == known {
                break;
            }
        }
        self.given = given;
    }

    /// What becomes of a file: `path` is spelled as compilers will name it, `edits` are names of included files that others take the place of.
    ///
    /// # Errors
    /// If the configuration that holds for the file can't be used, or the cache can't be written.
    pub(super) fn make(
        &mut self,
        path: &Path,
        bytes: &[u8],
        edits: &[(Range<usize>, Vec<u8>)],
        shared: bool,
    ) -> Result<RewrittenFile, Error> {
        let input = Input::new(path);
        let settings = self.settings;
        let config = holding(&mut self.configs, settings, &input)?;
        let site_path = config.map_or_else(|| without_detours(&slashes(&input.name)), |config| config.relative(&input));
        let mut options = Options { path: input.name.clone(), given_macros: self.given.clone(), ..settings.options() };
        if let Some(config) = config {
            if config.excludes(&site_path) {
                return Ok(RewrittenFile { text: edited(bytes, &[], edits), facts: Facts::default() });
            }
            let own = config.device_macros.iter().filter(|own| settings.device_macros.iter().all(|other| other.name != own.name));
            options.device_macros.extend(own.cloned());
            options.loop_macros.clone_from(&config.loop_macros);
            options.leave_alone.clone_from(&config.leave_alone);
            options.waivers = config.waivers(&site_path);
        }
        options.site_path = site_path;
        self.names.tell(bytes, &mut options);
        if !shared || !edits.is_empty() {
            return Ok(rewritten(&input.name, bytes, &options, edits));
        }
        let key = format!("{:016x} {options:?}", self.digest);
        if let Some(file) = self.cache.get(&key, bytes) {
            return Ok(file);
        }
        let file = rewritten(&input.name, bytes, &options, edits);
        self.cache.put(&key, bytes, &file)?;
        Ok(file)
    }
}

/// The configuration that holds for the file.
pub(super) fn holding<'a>(
    configs: &'a mut BTreeMap<PathBuf, Config>,
    settings: &Settings,
    input: &Input,
) -> Result<Option<&'a Config>, Error> {
    let path = settings.config.as_ref().map(|path| absolute(path)).or_else(|| config::find(&input.folder()?));
    let Some(path) = path else { return Ok(None) };
    if !configs.contains_key(&path) {
        let config = config::load(&path).map_err(|bad| {
            let source = Source::new(&bad.name, &bad.bytes);
            let said: String = bad.diagnostics.iter().map(|diagnostic| render::short(&source, diagnostic)).collect();
            Error::new(said.trim_end(), "mend the configuration: `cuinstr --help` shows what it can hold")
        })?;
        configs.insert(path.clone(), config);
    }
    Ok(configs.get(&path))
}

/// The path without `x/..`, so that a header has one name for its sites, whichever way a source goes to it.
fn without_detours(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for (index, part) in path.split('/').enumerate() {
        match (part, parts.last()) {
            ("..", Some(last)) if !["", ".", ".."].contains(last) => drop(parts.pop()),
            ("." | "", Some(_)) if index > 0 => {}
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

pub(super) fn rewritten(name: &str, bytes: &[u8], options: &Options, edits: &[(Range<usize>, Vec<u8>)]) -> RewrittenFile {
    let Rewrite { output, mut inserted, sites, mut diagnostics, shared_bytes, .. } = rewrite(bytes, options);
    let Some(mut output) = output else {
        let refused = !left_as_it_is(bytes, options, &mut diagnostics);
        let dynamic = prelude::has_dynamic_memory(bytes);
        let shared_bytes = if memchr::memmem::find(bytes, b"__shared__").is_none() { 0 } else { u64::MAX };
        let facts = Facts { said: said(name, bytes, &diagnostics), refused, dynamic, shared_bytes, ..Facts::default() };
        return RewrittenFile { text: edited(bytes, &[], edits), facts };
    };
    // All files of a translation unit share one prelude, which stands in front of the first.
    let first = inserted.remove(0);
    output.drain(first.clone());
    for range in &mut inserted {
        *range = range.start - first.len()..range.end - first.len();
    }
    let facts = Facts {
        barriers: prelude::has_barriers(&sites),
        dynamic: prelude::has_dynamic_memory(bytes),
        virtuals: prelude::has_virtual_functions(bytes),
        shared_bytes: shared_bytes.unwrap_or(u64::MAX),
        polled_calls: prelude::polled_calls(&sites),
        sites: Some(sites).filter(|map| !map.sites.is_empty()),
        said: said(name, bytes, &diagnostics),
        refused: false,
        rewritten: !inserted.is_empty(),
    };
    let output = marks::put(&output, &mut inserted);
    let text = edited(&output, &inserted, edits).or(facts.rewritten.then_some(output));
    RewrittenFile { facts, text }
}

/// Whether a file that can't be rewritten may be compiled as it is; what is said is then no more than a warning.
///
/// A build must not fail over a header that only an older compiler's eyes can read; but source that has names of ours might interfere, and what the
/// user asked for (`--strict`, waivers that hold) is not let go.
fn left_as_it_is(bytes: &[u8], options: &Options, diagnostics: &mut Vec<Diagnostic>) -> bool {
    let may_pass = |code| matches!(code, Code::NotUtf8 | Code::Empty | Code::Unbalanced | Code::NotCuda | Code::TooLarge);
    if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error && !may_pass(diagnostic.code)) {
        return false;
    }
    let has = |word: &[u8]| memchr::memmem::find(bytes, word).is_some();
    let is_unbalanced = diagnostics.iter().any(|diagnostic| diagnostic.code == Code::Unbalanced);
    let may_be_device_code = has(b"__global__") || has(b"__device__") || (is_unbalanced && repeats_or_marks(bytes, options));
    // A zero byte is told where it stands; that nothing is found in a file is no news.
    let is_news =
        |diagnostic: &Diagnostic| diagnostic.code != Code::Empty && (diagnostic.code != Code::NotCuda || diagnostic.primary.is_some());
    // What a header makes of a word holds in all files of the unit.
    let is_of_unit = |diagnostic: &Diagnostic| diagnostic.code == Code::KeywordRedefined;
    diagnostics.retain(|diagnostic| is_of_unit(diagnostic) || (may_be_device_code && is_news(diagnostic)));
    if options.strict && diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return false;
    }
    for diagnostic in diagnostics.iter_mut().filter(|diagnostic| !is_of_unit(diagnostic)) {
        diagnostic.severity = diagnostic.severity.min(Severity::Warning);
        diagnostic.message.push_str("; the file is compiled as it is");
    }
    true
}

/// Whether a text has a loop, which may stand in a function of a file that includes it, or a macro that marks device functions.
fn repeats_or_marks(bytes: &[u8], options: &Options) -> bool {
    let lexed = lex(bytes, 0..bytes.len(), false);
    let macros = Macros::read(bytes, &lexed, options);
    lexed.tokens.iter().any(|token| match token.kind {
        token::Kind::For | token::Kind::While | token::Kind::Do | token::Kind::Goto => true,
        token::Kind::Ident => macros.spaces_of(token.kind, &bytes[token.range()]).on_device(),
        _ => false,
    })
}

/// Gaps and errors, one line each.
fn said(name: &str, bytes: &[u8], diagnostics: &[Diagnostic]) -> String {
    if diagnostics.iter().all(|diagnostic| diagnostic.severity < Severity::Warning) {
        return String::new();
    }
    let source = Source::new(name, bytes);
    diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity >= Severity::Warning)
        .map(|diagnostic| render::short(&source, diagnostic))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_byte_in_device_code_is_told() {
        let text = b"__global__ void k() { /* \0 */ while (true) {} }";
        for (strict, passes) in [(false, true), (true, false)] {
            let options = Options { strict, ..Options::default() };
            let mut found = crate::rewrite(text, &options).diagnostics;
            assert_eq!(left_as_it_is(text, &options, &mut found), passes);
            assert_eq!(found.iter().map(|found| found.code).collect::<Vec<_>>(), [Code::NotCuda]);
        }
    }
    use crate::options::Polls;
    use std::fs;

    fn made(source: &str, settings: &Settings) -> RewrittenFile {
        rewritten("a.cu", source.as_bytes(), &settings.options(), &[])
    }

    #[test]
    fn what_can_not_be_rewritten_is_compiled_as_it_is_unless_it_might_interfere() {
        let settings = Settings::default();
        assert_eq!(made("int f();\n", &settings), RewrittenFile::default());
        assert_eq!(made("", &settings), RewrittenFile::default());
        assert_eq!(made("namespace a {\n", &settings), RewrittenFile::default());
        let open = made("namespace a {\n__device__ void f() { while (1) {} }\n", &settings).facts;
        assert!(!open.refused && open.said.contains("a.cu:1:13: warning[CI005]"), "{open:?}");
        // A loop may stand in another file's function, and a macro may mark one.
        for source in ["for (;;) { while (*p) { }\n", "CUDA_GLOBAL void f() { if OPEN *p) { } }\n"] {
            assert!(made(source, &settings).facts.said.contains("warning[CI005]"), "{source}");
        }
        let strict = made("namespace a {\n__device__ void f() { while (1) {} }\n", &Settings { strict: true, ..Settings::default() }).facts;
        assert!(strict.refused && strict.said.contains("error[CI005]"), "{strict:?}");
        assert!(!made("namespace a {\n", &Settings { strict: true, ..Settings::default() }).facts.refused);
        let ours = made("__device__ int __cuinstr_x;\n", &settings).facts;
        assert!(ours.refused && ours.said.contains("error[CI004]"), "{ours:?}");
        let gap = "__global__ void f() { asm(\"L: bra L;\"); }\n";
        assert!(!made(gap, &settings).facts.refused && made(gap, &settings).facts.said.contains("warning[CI013]"));
        assert!(made(gap, &Settings { strict: true, ..settings }).facts.refused);
    }

    #[test]
    fn a_unit_knows_what_macros_of_its_other_files_and_of_the_command_line_stand_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = Settings::default();
        let source = b"__global__ void k(int *p, int n) { for (int i = 0; i < n; ++i) p[i * WIDTH] = HEIGHT; }\n";
        let strips = |header: &[u8], defined: &[u8]| {
            let mut maker = Maker::new(&settings, Cache::new(folder.path()));
            maker.learn(&[("a.cu", source), ("b.cuh", header)], &[], defined);
            let file = maker.make(&folder.path().join("a.cu"), source, &[], false).expect("a file");
            String::from_utf8(file.text.expect("it is rewritten")).expect("it is text").contains("__cuinstr_below<")
        };
        assert!(strips(b"#define WIDTH (3 * 5)\n", b"#define HEIGHT 7\n"));
        assert!(!strips(b"#define WIDTH i--\n", b"#define HEIGHT 7\n"));
        assert!(!strips(b"#define WIDTH 15\n", b"#define HEIGHT ++i\n"));
        assert!(strips(b"enum { WIDTH, HEIGHT };\n", b""), "no macro of any file");
    }

    #[test]
    fn a_function_of_the_users_is_none_of_cudas_of_that_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = Settings::default();
        let is_left_alone = |header: &[u8], called: &str| {
            let source = format!(
                "#define LEAST(a, b) (fmaxf(a, b) + 1)\n__global__ void k(float *p) {{ for (int i = 0; i < 16; ++i) p[0] = {called}; }}\n"
            );
            let mut maker = Maker::new(&settings, Cache::new(folder.path()));
            maker.learn(&[("a.cu", source.as_bytes()), ("b.cuh", header)], &[], b"");
            let file = maker.make(&folder.path().join("a.cu"), source.as_bytes(), &[], false).expect("a file");
            !String::from_utf8(file.text.expect("it is rewritten")).expect("it is text").contains("__cuinstr_left =")
        };
        for called in ["fmaxf(i, p[0])", "LEAST(i, p[0])"] {
            assert!(is_left_alone(b"__device__ float other(int &i, float f);\n", called), "{called}");
            for header in
                ["__device__ float fmaxf(int &i, float f) { --i; return f; }\n", "extern __device__ float fmaxf(int &i, float f);\n"]
            {
                assert!(!is_left_alone(header.as_bytes(), called), "{called}: {header}");
            }
        }
    }

    #[test]
    fn a_header_of_one_call_is_not_taken_for_that_of_a_call_with_other_options() {
        let folder = tempfile::tempdir().expect("a folder");
        let header = b"__device__ void f(int *p) { while (*p) ; }\n";
        let made = |settings: &Settings, names: &[&[u8]]| {
            let mut maker = Maker::new(settings, Cache::new(folder.path()));
            maker.learn(&[("a.cuh", &[header, names.concat().as_slice()].concat())], &[], b"");
            maker.make(&folder.path().join("a.cuh"), header, &[], true).expect("a file").text
        };
        let default = Settings::default();
        let plain = made(&default, &[]);
        assert_eq!(plain, made(&default, &[]));
        assert_ne!(plain, made(&Settings { polls: Polls::Each, ..Settings::default() }, &[]));
        // What the other files of its unit say of it counts, too.
        assert_ne!(plain, made(&default, &[b"#define while if (0) ; else while\n"]));
    }

    #[test]
    fn what_other_calls_can_not_use_is_not_kept_for_them() {
        let header = b"#include \"b.cuh\"\n__device__ void f(int *p) { while (*p) ; }\n";
        let include = [(9..16, b"<b.cuh>".to_vec())];
        for (edits, shared, kept) in
            [(&include[..0], true, 1), (&include[..0], false, 0), (&include[..], true, 0), (&include[..], false, 0)]
        {
            let folder = tempfile::tempdir().expect("a folder");
            let settings = Settings::default();
            let mut maker = Maker::new(&settings, Cache::new(folder.path()));
            let file = maker.make(Path::new("a.cuh"), header, edits, shared).expect("a file");
            let text = String::from_utf8(file.text.expect("it is rewritten")).expect("it is text");
            assert_eq!(text.contains("#include <b.cuh>"), !edits.is_empty(), "{text}");
            assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), kept, "{edits:?} {shared}");
        }
    }

    #[test]
    fn code_of_one_file_that_another_names_is_device_code() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = Settings::default();
        let header = b"ODD_COUNT count(int n) { while (n--) ; return n; }\nint steps(int n) { for (;;) if (n--) return n; }\n";
        let polls = |source: &[u8], foreign: &[Vec<u8>], defined: &[u8]| {
            let mut maker = Maker::new(&settings, Cache::new(folder.path()));
            maker.learn(&[("a.cu", source), ("a.cuh", header)], foreign, defined);
            let file = maker.make(&folder.path().join("a.cuh"), header, &[], false).expect("a file");
            String::from_utf8_lossy(&file.text.unwrap_or_default()).matches("__cuinstr_left =").count()
        };
        assert_eq!(polls(b"__global__ void k(int *p) { p[0] = 1; }\n", &[], b""), 0);
        assert_eq!(polls(b"__global__ void k(int *p) { p[0] = steps(p[1]); }\n", &[], b""), 1);
        assert_eq!(polls(b"", &[], b"#define ODD_COUNT __device__ int\n"), 1);
        assert_eq!(polls(b"", &[b"#define ODD_COUNT __device__ int\n".to_vec()], b""), 1);
    }

    #[test]
    fn a_header_has_one_name() {
        for (path, name) in
            [("a/../b.h", "b.h"), ("/p/src/../../q/x.h", "/q/x.h"), ("../x/../y.h", "../y.h"), ("./a/./b.h", "./a/b.h"), ("a//b", "a/b")]
        {
            assert_eq!(without_detours(path), name);
        }
        for (path, name) in [("../../x.h", "../../x.h"), ("a/../../b.h", "../b.h"), ("/../x.h", "/../x.h"), ("./../x.h", "./../x.h")] {
            assert_eq!(without_detours(path), name);
        }
    }

    #[test]
    fn names_of_included_files_change_where_they_stand() {
        let source = b"#include \"/a.h\"\n__device__ void f(int* p) { while (*p) {} }\n#include \"/b.h\"\n";
        let at = |name: &[u8]| memchr::memmem::find(source, name).map(|at| at..at + name.len()).expect("it is there");
        let edits = [(at(b"/a.h"), b"/overlay/r1/a.h".to_vec()), (at(b"/b.h"), b"b".to_vec())];
        let text = rewritten("a.cu", source, &Options::default(), &edits).text.expect("it is rewritten");
        let text = String::from_utf8(text).expect("it is text");
        assert!(
            text.starts_with("#include \"/overlay/r1/a.h\"\n__device__ void f(int* p) {") && text.ends_with("#include \"b\"\n"),
            "{text}"
        );
        assert!(text.contains("__cuinstr_") && text.lines().count() == 3);
    }
}
