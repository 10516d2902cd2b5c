//! One input: read, rewrite, write. Jobs of a run share nothing and may run side by side.

use super::cli::{Format, RewriteArgs};
use super::moved::{self, Moved};
use super::report::{Style, status_of};
use super::status::Status;
use super::{listing, output};
use cuinstr::diagnostic::{Code, Diagnostic, Severity};
use cuinstr::launcher::harmless::Headers;
use cuinstr::options::Options;
use cuinstr::project::config::{Config, Used, slashes};
use cuinstr::project::include::edited;
use cuinstr::project::input::Input;
use cuinstr::render::one_line;
use cuinstr::site::{SiteMap, Summary};
use cuinstr::{Rewrite, is_ptx, rewrite, rewrite_ptx};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::path::PathBuf;

/// Most bytes of a line of output, where it can be broken.
const LONGEST: usize = 200;

/// What is to be done with one input.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// The source.
    pub(crate) input: Input,
    /// The file to write; absent where nothing is written, or to standard output.
    pub(crate) destination: Option<PathBuf>,
    /// Configuration that holds for it.
    pub(crate) config: Option<&'a Config>,
    /// The command line.
    pub(crate) args: &'a RewriteArgs,
    /// Where the inputs' outputs go.
    pub(crate) moved: &'a Moved,
    /// How diagnostics look.
    pub(crate) style: Style,
}

/// What came of it; nothing is printed yet.
#[derive(Debug)]
pub(crate) struct Done {
    /// For standard output.
    pub(crate) stdout: Vec<u8>,
    /// For standard error.
    pub(crate) stderr: String,
    /// For `--sites`.
    pub(crate) site_map: Option<SiteMap>,
    /// What it uses of its configuration; absent if it was not read to its end.
    pub(crate) used: Option<Used>,
    /// For the exit code.
    pub(crate) status: Status,
    /// For the summary.
    pub(crate) outcome: Outcome,
}

/// What happened to the input.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It was rewritten.
    Rewritten {
        /// Numbers.
        summary: Summary,
        /// Code of each diagnostic.
        codes: Vec<Code>,
    },
    /// It was copied as it is: the configuration excludes it, or it holds no device code.
    Copied {
        /// How many of the headers that it includes may hold some.
        not_examined: usize,
    },
    /// It was refused, or could not be read or written.
    Failed,
}

impl Job<'_> {
    /// Does it.
    pub(crate) fn run(&self) -> Done {
        let bytes = match self.input.read() {
            Ok(bytes) => bytes,
            Err(diagnostic) => return self.failed(b"", &[*diagnostic]),
        };
        let site_path = self.config.map_or_else(|| slashes(&self.input.name), |config| config.relative(&self.input));
        if let Some(config) = self.config
            && config.excludes(&site_path)
        {
            let done = if self.writes() { "copied unchanged" } else { "left alone" };
            return self.copied(bytes, &format!("{done}, because {} excludes it", one_line(&config.name)), 0);
        }
        let is_ptx = self.input.path.extension().is_some_and(|extension| extension == "ptx") || is_ptx(&bytes);
        let options = self.options(site_path.clone());
        let rewrite = if is_ptx { rewrite_ptx(&bytes, &options) } else { self.rewrite_source(&bytes, options).wrapped(LONGEST) };
        let Rewrite { output, inserted, sites, diagnostics, summary, used_waivers, reasons, .. } = rewrite;
        let used = self.config.map(|config| config.used(&site_path, &bytes, &used_waivers));

        let Some(output) = output else {
            if has_no_device_code(&diagnostics) {
                let done = if self.writes() { "copied unchanged" } else { "nothing to rewrite" };
                let headers = not_examined(&diagnostics);
                return Done { used, ..self.copied(bytes, &format!("{done}: {}", nothing_found(&headers)), headers.len()) };
            }
            let mut done = self.failed(&bytes, &diagnostics);
            if self.args.list && !sites.sites.is_empty() {
                done.stdout = self.listing(&sites, &reasons);
            }
            return done;
        };
        let edits = self.destination.as_ref().map_or_else(Vec::new, |destination| self.moved.edits(&self.input, destination, &bytes));
        let output = edited(&output, &inserted, &edits).unwrap_or(output);
        if let Some(destination) = &self.destination
            && let Err(diagnostic) = output::write(destination, &output)
        {
            let mut done = self.failed(&bytes, &diagnostics);
            done.stderr += &self.style.render(&destination.to_string_lossy(), b"", &[*diagnostic]);
            done.status = Status::Io;
            return done;
        }
        let stdout = if self.args.list {
            self.listing(&sites, &reasons)
        } else if self.args.diff {
            self.diff(&bytes, &output, inserted.first())
        } else if self.to_stdout() {
            output
        } else {
            Vec::new()
        };
        let idle = if is_ptx { self.idle() } else { String::new() };
        Done {
            stdout,
            stderr: idle + &self.style.render(&self.input.name, &bytes, &diagnostics),
            site_map: Some(sites),
            used,
            status: status_of(&diagnostics),
            outcome: Outcome::Rewritten { summary, codes: diagnostics.iter().map(|diagnostic| diagnostic.code).collect() },
        }
    }

    /// A line about the options that mean nothing for PTX, if there are any.
    fn idle(&self) -> String {
        let options = self.args.for_source_alone();
        if options.is_empty() || self.args.how.quiet || self.style.format == Format::Json {
            return String::new();
        }
        format!("warning: {} is PTX, for which these options mean nothing: {}\n", one_line(&self.input.name), options.join(", "))
    }

    /// Headers are judged only where one would be told of.
    fn rewrite_source(&self, bytes: &[u8], mut options: Options) -> Rewrite {
        let headers = Headers::of(&self.input, bytes, &self.args.folders);
        options.own_headers = headers.names();
        headers.tell(&mut options);
        let first = rewrite(bytes, &options);
        if first.diagnostics.iter().all(|diagnostic| diagnostic.code != Code::HeaderNotRewritten) {
            return first;
        }
        options.harmless_headers = headers.harmless(&options);
        if options.harmless_headers.is_empty() { first } else { rewrite(bytes, &options) }
    }

    /// The result for an input that gets no output.
    pub(crate) fn failed(&self, bytes: &[u8], diagnostics: &[Diagnostic]) -> Done {
        let mut stderr = self.style.render(&self.input.name, bytes, diagnostics);
        // A build that goes on would take the output of an earlier run for this one's.
        if let Some(old) =
            self.destination.as_ref().filter(|path| !self.args.how.quiet && self.style.format != Format::Json && path.is_file())
            && diagnostics.iter().all(|diagnostic| diagnostic.code != Code::OutputIsInput)
        {
            let _ = writeln!(stderr, "{} was there before and is unchanged", one_line(&old.to_string_lossy()));
        }
        let status = status_of(diagnostics).max(Status::Refused);
        Done { stdout: Vec::new(), stderr, site_map: None, used: None, status, outcome: Outcome::Failed }
    }

    /// The result for an input whose output is the input itself; says why.
    fn copied(&self, bytes: Vec<u8>, why: &str, not_examined: usize) -> Done {
        let mut status = Status::Done;
        let mut stderr = String::new();
        if !self.args.how.quiet && self.style.format != Format::Json {
            stderr = format!("{}: {why}\n", one_line(&self.input.name));
        }
        let edits = self.destination.as_ref().map_or_else(Vec::new, |destination| self.moved.edits(&self.input, destination, &bytes));
        let bytes = edited(&bytes, &[], &edits).unwrap_or(bytes);
        if let Some(destination) = &self.destination
            && let Err(diagnostic) = output::write(destination, &bytes)
        {
            stderr = self.style.render(&destination.to_string_lossy(), b"", &[*diagnostic]);
            status = Status::Io;
        }
        let outcome = if status == Status::Done { Outcome::Copied { not_examined } } else { Outcome::Failed };
        let stdout = if self.to_stdout() { bytes } else { Vec::new() };
        Done { stdout, stderr, site_map: None, used: Some(Used::default()), status, outcome }
    }

    fn options(&self, site_path: String) -> Options {
        let mut options = Options {
            path: self.input.name.clone(),
            polls: self.args.how.polls(),
            poll_gap: self.args.how.poll_gap,
            at_exit: self.args.how.at_exit(),
            barrier_marks: self.args.how.barrier_marks(),
            limits: self.args.how.limits(),
            pausable: self.args.how.pausable,
            device_macros: self.args.how.device_macro.clone(),
            given_macros: self.args.defined.iter().chain(&self.args.undefined).cloned().collect(),
            strict: self.args.how.strict,
            rewritten_too: self.moved.inputs(),
            ..Options::default()
        };
        if let Some(config) = self.config {
            let own = config.device_macros.iter().filter(|own| self.args.how.device_macro.iter().all(|other| other.name != own.name));
            options.device_macros.extend(own.cloned());
            options.loop_macros.clone_from(&config.loop_macros);
            options.leave_alone.clone_from(&config.leave_alone);
            options.waivers = config.waivers(&site_path);
        }
        options.site_path = site_path;
        options.prelude = self.args.prelude.as_ref().map(|prelude| moved::name_from(self.destination.as_deref(), prelude));
        options
    }

    /// `-v`: what became of the input, and what decided it.
    pub(crate) fn story(&self, done: &Done) -> String {
        let what = match &done.outcome {
            Outcome::Rewritten { summary, .. } => {
                let functions = if summary.functions == 1 { "function" } else { "functions" };
                format!("rewritten, {} polls in {} {functions}", summary.polls, summary.functions)
            }
            Outcome::Copied { .. } => "copied unchanged".to_owned(),
            Outcome::Failed => "refused".to_owned(),
        };
        let output = self.destination.as_ref().map_or_else(String::new, |path| format!(", to {}", path.display()));
        let config = self.config.map_or_else(|| "no cuinstr.toml".to_owned(), |config| format!("configuration {}", config.name));
        format!("{}\n", one_line(&format!("{}: {what}{output}; {config}", self.input.name)))
    }

    /// Whether there is an output, on standard output or elsewhere.
    fn writes(&self) -> bool {
        self.destination.is_some() || self.to_stdout()
    }

    fn to_stdout(&self) -> bool {
        self.args.output.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// The site map as a table or as JSON, with the reasons for the forms of loops.
    fn listing(&self, site_map: &SiteMap, reasons: &BTreeMap<u64, &'static str>) -> Vec<u8> {
        let site_map = &listing::with_reasons(site_map, reasons);
        match self.style.format {
            Format::Json => site_map.to_json() + "\n",
            Format::Full | Format::Short => listing::table(&self.input.name, site_map),
        }
        .into_bytes()
    }

    /// What was inserted into the user's own lines: the prelude, which is the same in front of every file, is left out.
    fn diff(&self, old: &[u8], output: &[u8], prelude: Option<&Range<usize>>) -> Vec<u8> {
        let name = one_line(&self.input.name);
        let mut new = output.to_vec();
        new.drain(prelude.cloned().unwrap_or(0..0));
        let diff = similar::TextDiff::from_lines(old, &new[..]);
        let mut bytes = format!("--- {name}\n+++ {name}\trewritten, without the prelude\n").into_bytes();
        for hunk in diff.unified_diff().iter_hunks() {
            bytes.extend_from_slice(format!("{}\n", hunk.header()).as_bytes());
            for change in hunk.iter_changes() {
                // The library's own writer would replace bytes that are no UTF-8.
                bytes.extend_from_slice(change.tag().to_string().as_bytes());
                bytes.extend_from_slice(change.value());
                if change.missing_newline() {
                    bytes.extend_from_slice(b"\n\\ No newline at end of file\n");
                }
            }
        }
        bytes
    }
}

/// Whether all that speaks against the input is that nothing in it is the device's. PTX and binary files, in which the diagnostic
/// names a place, are refused.
fn has_no_device_code(diagnostics: &[Diagnostic]) -> bool {
    let mut errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    errors.all(|error| error.code == Code::NotCuda && error.primary.is_none())
}

/// Most headers that a message names.
const MOST_NAMED: usize = 3;

/// The headers of these diagnostics, as the source names them.
fn not_examined(diagnostics: &[Diagnostic]) -> Vec<&str> {
    let told = diagnostics.iter().filter(|diagnostic| diagnostic.code == Code::HeaderNotRewritten);
    told.filter_map(|diagnostic| diagnostic.message.split('`').nth(1)).collect()
}

/// That there is no device code, as far as anybody has looked.
fn nothing_found(headers: &[&str]) -> String {
    if headers.is_empty() {
        return "no device code found (cuinstr explain CI006)".to_owned();
    }
    let named: Vec<String> = headers.iter().take(MOST_NAMED).map(|name| format!("`{name}`")).collect();
    let more = headers.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = one_line(&named.join(", "));
    format!("no device code in the file itself; included and not examined: {named}{more} (cuinstr explain CI016)")
}
