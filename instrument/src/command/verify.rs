//! `cuinstr verify`.

use super::cli::{VerifyArgs, VerifyFormat};
use super::exceptions::Exceptions;
use super::progress::Progress;
use super::report::{Style, is_wanted, status_of};
use super::sarif;
use super::status::Status;
use super::{cores, output};
use anyhow::Context;
use cuinstr::diagnostic::{Code, Diagnostic};
use cuinstr::project::input::Input;
use cuinstr::render::{self, Source, one_line};
use cuinstr_image::{Content, Kernel, Kind};
use cuinstr_verify::report::{Loop, Place, Report, UnknownCall, Verdict};
use cuinstr_verify::{Program, verify_ptx_on};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::rc::Rc;

/// Largest source that is read to show a line of it, in bytes.
const LARGEST_SOURCE: u64 = 16 << 20;

/// Proves what the command line asks for.
///
/// # Errors
/// If standard output can't be written.
pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<Status> {
    let style = Style::new(super::cli::Format::Full, args.color);
    let colored = is_wanted(args.color, &std::io::stdout());
    let mut exceptions = Exceptions::default();
    if let Some(path) = &args.allow {
        let input = Input { path: path.clone(), name: path.to_string_lossy().into_owned() };
        let bytes = match input.read() {
            Ok(bytes) => bytes,
            Err(diagnostic) => return Ok(complain(style, &input.name, b"", &[*diagnostic])),
        };
        exceptions = match Exceptions::parse(&bytes) {
            Ok(exceptions) => exceptions,
            Err(diagnostic) => return Ok(complain(style, &input.name, &bytes, &[*diagnostic])),
        };
    }
    let mut printer = Printer {
        args,
        colored,
        exceptions,
        text: String::new(),
        sources: BTreeMap::new(),
        results: Vec::new(),
        status: Status::Done,
        progress: Progress::start(),
    };
    let mut status = Status::Done;
    for path in &args.files {
        let input = Input::new(path);
        match input.read() {
            Ok(bytes) => printer.file(&input.name, &bytes)?,
            Err(diagnostic) => status = status.max(complain(style, &input.name, b"", &[*diagnostic])),
        }
        printer.write()?;
    }
    if args.format == VerifyFormat::Sarif {
        output::to_stdout(sarif::log(&printer.results).as_bytes()).context("standard output can't be written")?;
    }
    if let Some(path) = &args.allow
        && status == Status::Done
    {
        let unused = printer.exceptions.stale();
        let bytes = std::fs::read(path).unwrap_or_default();
        status = status.max(complain(style, &path.to_string_lossy(), &bytes, &unused));
    }
    Ok(status.max(printer.status))
}

/// Says what is wrong on standard error.
fn complain(style: Style, path: &str, bytes: &[u8], diagnostics: &[Diagnostic]) -> Status {
    super::report::to_stderr(&style.render(path, bytes, diagnostics));
    status_of(diagnostics)
}

/// Collects what is to be printed.
struct Printer<'a> {
    args: &'a VerifyArgs,
    /// Whether standard output gets colors.
    colored: bool,
    exceptions: Exceptions,
    text: String,
    /// Sources by path, and none for those that are not there.
    sources: BTreeMap<String, Option<Rc<Source>>>,
    results: Vec<sarif::Result>,
    status: Status,
    progress: Progress,
}

/// What is known of a file when its parts are gone.
#[derive(Default)]
struct Unit {
    kernels: usize,
    program: Program,
    /// Calls that lead out of sight, with the name of the part.
    unknown: Vec<(String, UnknownCall)>,
}

impl Printer<'_> {
    /// One input. Its parts are proved one after the other, so that only one of them needs memory.
    fn file(&mut self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let mut unit = Unit::default();
        let mut written = Ok(());
        let scanned = cuinstr_image::scan(bytes, |part| {
            if let Content::Ptx(text) = &part.content {
                let is_file = part.place == cuinstr_image::Place::default();
                let shown = if is_file { name.to_owned() } else { format!("{name}: {}", part.place) };
                self.progress.now(&format!("proving {shown}"));
                self.module(&shown, text, &part.place, &mut unit);
                if written.is_ok() {
                    written = self.write();
                }
            }
        });
        written?;
        let image = match scanned {
            Ok(image) => image,
            Err(error) => {
                self.say(name, None, &Diagnostic::new(Code::UnsoundPtx, error.to_string()), &[], None);
                return Ok(());
            }
        };
        for note in &image.notes {
            self.say(name, None, &Diagnostic::new(Code::UnsoundPtx, note.as_str()), &[], None);
        }
        for part in &image.without_ptx {
            let arch = part.arch.map_or_else(String::new, |arch| format!(" for sm_{arch}"));
            let what = match &part.kind {
                Kind::Unread(why) => format!("a part{arch} can't be read: {why}"),
                Kind::Intermediate => format!("there is intermediate code{arch} without its PTX"),
                Kind::Code(_) if !part.kernels.is_empty() => {
                    let names: Vec<String> = part.kernels.iter().map(|symbol| format!("`{}`", Kernel::new(symbol).name)).collect();
                    format!("there is machine code{arch} of kernels that its PTX lacks: {}", names.join(", "))
                }
                Kind::Code(_) | Kind::Ptx(_) => format!("there is machine code{arch} without PTX of that architecture"),
            };
            let diagnostic = Diagnostic::new(Code::MachineCodeOnly, what)
                .help("compile with PTX kept for each: `-gencode arch=compute_90,code=[sm_90,compute_90]`");
            self.say(&format!("{name}: {}", part.place), None, &diagnostic, &[], None);
        }
        if unit.kernels == 0 && image.without_ptx.is_empty() && image.notes.is_empty() {
            let diagnostic = Diagnostic::new(Code::NothingToProve, "there is no kernel in it").help("name the file that holds the kernels");
            self.say(name, None, &diagnostic, &[], None);
        }
        self.calls_between_units(name, unit);
        Ok(())
    }

    /// Calls that lead out of sight in one part of a file may lead to another.
    fn calls_between_units(&mut self, name: &str, unit: Unit) {
        for (shown, call) in unit.unknown {
            if unit.program.defines(&call.callee) {
                continue;
            }
            let accepted = self.exceptions.accept_call(&call);
            if self.args.format == VerifyFormat::Json {
                // The part's own line names the call.
                self.status = if accepted.is_none() { self.status.max(Status::Refused) } else { self.status };
                continue;
            }
            let callee =
                if call.callee.is_empty() { "through a pointer".to_owned() } else { format!("of `{}`", Kernel::new(&call.callee).name) };
            let diagnostic = Diagnostic::new(Code::UnknownCallee, format!("a call {callee} leads out of sight"))
                .in_function(Kernel::new(&call.function).name);
            if accepted.is_none() {
                self.status = self.status.max(Status::Refused);
            } else if self.args.format != VerifyFormat::Sarif {
                continue;
            }
            match &call.place {
                Some(place) => self.show_source(&diagnostic, place, accepted),
                // Its PTX is not kept until the other parts are read.
                None => self.say_at((shown, call.line, 1), &diagnostic, &[], accepted),
            }
        }
        if unit.program.has_two_controls() {
            let what = "one of several units has a control block of its own, which a host that arms another does not write to";
            self.say(name, None, &Diagnostic::new(Code::UnsoundPtx, what), &[], None);
        }
        for found in unit.program.findings() {
            let Some(code) = found.verdict.code().map(Code::from) else { continue };
            let accepted = self.exceptions.accept_loop(&found);
            if accepted.is_some() && self.args.format != VerifyFormat::Sarif {
                continue;
            }
            let diagnostic = Diagnostic::new(code, format!("calls between units: {}", found.verdict.text()))
                .in_function(Kernel::new(&found.function).name);
            self.say(name, None, &diagnostic, &[], accepted);
        }
    }

    /// Writes what there is to say so far.
    fn write(&mut self) -> anyhow::Result<()> {
        if self.args.format == VerifyFormat::Sarif {
            return Ok(());
        }
        output::to_stdout(std::mem::take(&mut self.text).as_bytes()).context("standard output can't be written")
    }

    /// One PTX text.
    fn module(&mut self, name: &str, text: &str, place: &cuinstr_image::Place, unit: &mut Unit) {
        let report = verify_ptx_on(text, &cores::each);
        unit.kernels += report.kernels.len();
        unit.program.add(&report);
        if place.is_relocatable() {
            unit.program.link(&place.container(), &report);
        }
        if self.args.format == VerifyFormat::Json {
            self.json(name, &report);
            unit.unknown.extend(report.unknown.into_iter().map(|call| (name.to_owned(), call)));
            return;
        }
        let mut source = None;
        let mut ptx = |line: usize| {
            let source: &Rc<Source> = source.get_or_insert_with(|| Rc::new(Source::new(name, text.as_bytes())));
            (Rc::clone(source), source.line(line, 0))
        };
        let (mut bad, mut allowed) = (0, 0);
        for fault in &report.faults {
            let (source, span) = ptx(fault.line);
            self.say(name, Some(&source), &Diagnostic::new(fault.code.into(), fault.message.as_str()).at(span), &[], None);
            bad += 1;
        }
        for found in &report.loops {
            let Some(code) = found.verdict.code().map(Code::from) else { continue };
            let accepted = self.exceptions.accept_loop(found);
            bad += usize::from(accepted.is_none());
            allowed += usize::from(accepted.is_some());
            let what = if found.recursion {
                let names: Vec<String> = found.blocks.iter().map(|name| format!("`{}`", Kernel::new(name).name)).collect();
                format!("functions call each other ({}): {}", names.join(", "), found.verdict.text())
            } else if found.call_tree {
                format!("calls take {}", found.verdict.text())
            } else {
                format!("loop {}", found.verdict.text())
            };
            let mut diagnostic = Diagnostic::new(code, what).in_function(Kernel::new(&found.function).name);
            diagnostic.help = Some(help(found));
            self.show(name, &diagnostic, found.place.as_ref(), found.line, &mut ptx, accepted);
        }
        let outside = report.unknown.len();
        unit.unknown.extend(report.unknown.iter().map(|call| (name.to_owned(), call.clone())));
        if self.args.list && self.args.format != VerifyFormat::Sarif {
            self.list(name, &report);
        }
        if self.args.format == VerifyFormat::Text {
            let count = |holds: fn(&Verdict) -> bool| report.loops.iter().filter(|found| holds(&found.verdict)).count();
            let polled = count(|verdict| matches!(verdict, Verdict::Polled { .. }));
            let bounded = count(|verdict| matches!(verdict, Verdict::Bounded { .. }));
            let others = report.loops.len() - polled - bounded;
            let plural = |count: usize, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
            let verdict = match (bad, allowed) {
                (0, 0) if outside > 0 => format!("every loop here can be stopped or ends, but {outside} functions are called elsewhere"),
                (0, 0) => "every loop can be stopped or ends".to_owned(),
                (0, allowed) => format!("proved but for {allowed} accepted"),
                _ => "NOT PROVED".to_owned(),
            };
            let _ = writeln!(
                self.text,
                "{}: {verdict}: {}, {}: {polled} polled, {bounded} bounded, {others} neither",
                one_line(name),
                plural(report.kernels.len(), "kernel"),
                plural(report.loops.len(), "loop"),
            );
            for assumed in &report.assumptions {
                let function = one_line(&Kernel::new(&assumed.function).name);
                let _ = writeln!(self.text, "  assumed of `{function}`, PTX line {}: {}", assumed.line, assumed.message);
            }
        }
    }

    /// A finding, at its source if that can be read, else in the PTX.
    fn show(
        &mut self,
        name: &str,
        diagnostic: &Diagnostic,
        place: Option<&Place>,
        line: usize,
        ptx: &mut dyn FnMut(usize) -> (Rc<Source>, std::ops::Range<usize>),
        accepted: Option<String>,
    ) {
        if accepted.is_none() {
            self.status = self.status.max(Status::Refused);
        } else if self.args.format != VerifyFormat::Sarif {
            return;
        }
        if let Some(place) = place {
            self.show_source(diagnostic, place, accepted);
        } else {
            let (source, span) = ptx(line);
            self.say(name, Some(&source), &diagnostic.clone().at(span), &[], accepted);
        }
    }

    /// A finding at its source, or with its name alone if that can't be read.
    fn show_source(&mut self, diagnostic: &Diagnostic, place: &Place, accepted: Option<String>) {
        let mut diagnostic = diagnostic.clone();
        if !place.inlined.is_empty() {
            let chain: Vec<String> = place.inlined.iter().map(|frame| format!("{}:{}", one_line(&frame.file), frame.line)).collect();
            let note = format!("inlined at {}", chain.join(", which is inlined at "));
            diagnostic.help = Some(diagnostic.help.map_or_else(|| note.clone(), |help| format!("{help}; {note}")));
        }
        let source = self.sources.entry(place.file.clone()).or_insert_with(|| read_source(&place.file)).clone();
        match source {
            Some(source) if self.args.format != VerifyFormat::Sarif => {
                let span = source.line(place.line as usize, place.column as usize);
                self.say(&place.file, Some(&source), &diagnostic.at(span), &place.inlined, accepted);
            }
            _ => {
                // Without the source the line is still said.
                let at = (place.file.clone(), place.line as usize, place.column as usize);
                self.say_at(at, &diagnostic, &place.inlined, accepted);
            }
        }
    }

    fn say(
        &mut self,
        path: &str,
        source: Option<&Source>,
        diagnostic: &Diagnostic,
        inlined: &[cuinstr_verify::report::Frame],
        accepted: Option<String>,
    ) {
        let none = Source::new(path, b"");
        let source = source.unwrap_or(&none);
        if accepted.is_none() {
            self.status = self.status.max(Status::Refused);
        }
        match self.args.format {
            VerifyFormat::Text => self.text += &render::full(source, diagnostic, self.colored),
            VerifyFormat::Short => self.text += &render::short(source, diagnostic),
            VerifyFormat::Json => self.text += &render::json(source, diagnostic),
            VerifyFormat::Sarif => {
                let position =
                    diagnostic.primary.as_ref().map_or(render::Position { line: 1, column: 0 }, |label| source.position(label.span.start));
                self.result((path.to_owned(), position.line, position.column), diagnostic, inlined, accepted);
            }
        }
    }

    fn say_at(
        &mut self,
        at: (String, usize, usize),
        diagnostic: &Diagnostic,
        inlined: &[cuinstr_verify::report::Frame],
        accepted: Option<String>,
    ) {
        let (file, line, column) = &at;
        match self.args.format {
            VerifyFormat::Sarif => self.result(at, diagnostic, inlined, accepted),
            VerifyFormat::Text => {
                let name = format!("{file}:{line}:{column}");
                self.text += &render::full(&Source::new(&name, b""), diagnostic, self.colored);
            }
            VerifyFormat::Short | VerifyFormat::Json => {
                let name = format!("{file}:{line}:{column}");
                self.text += &render::short(&Source::new(&name, b""), diagnostic);
            }
        }
    }

    fn result(
        &mut self,
        at: (String, usize, usize),
        diagnostic: &Diagnostic,
        inlined: &[cuinstr_verify::report::Frame],
        accepted: Option<String>,
    ) {
        let function = diagnostic.function.as_ref().map_or_else(String::new, |function| format!(", in `{function}`"));
        self.results.push(sarif::Result {
            code: diagnostic.code,
            message: format!("{}{function}", diagnostic.message),
            at,
            inlined: inlined.to_vec(),
            accepted,
        });
    }

    /// Every loop, one a line.
    fn list(&mut self, name: &str, report: &Report) {
        for found in &report.loops {
            let place = found.place.as_ref().map_or_else(
                || format!("{}:{}", one_line(name), found.line),
                |place| format!("{}:{}:{}", one_line(&place.file), place.line, place.column),
            );
            let function = one_line(&Kernel::new(&found.function).name);
            let kind = match (found.recursion, found.call_tree) {
                (true, _) => "recursion",
                (_, true) => "call tree",
                _ => "loop",
            };
            let _ = writeln!(self.text, "{place}: {}{kind} in {function}: {}", "  ".repeat(found.depth), found.verdict.text());
        }
    }

    fn json(&mut self, name: &str, report: &Report) {
        let mut allowed = Vec::new();
        let (mut holds, mut holds_alone) = (report.faults.is_empty(), true);
        for (number, found) in report.loops.iter().enumerate() {
            let accepted = self.exceptions.accept_loop(found);
            holds &= found.verdict.holds() || accepted.is_some();
            allowed.extend(accepted.map(|reason| json!({ "loop": number, "reason": reason })));
        }
        for (number, call) in report.unknown.iter().enumerate() {
            // By itself the part does not hold. Whether the file does is known when all its parts are read.
            let accepted = self.exceptions.accept_call(call);
            holds_alone &= accepted.is_some();
            allowed.extend(accepted.map(|reason| json!({ "unknown": number, "reason": reason })));
        }
        if !holds {
            self.status = self.status.max(Status::Refused);
        }
        let line = Line { path: name, holds: holds && holds_alone, allowed, report };
        self.text += &serde_json::to_string(&line).expect("names are strings");
        self.text.push('\n');
    }
}

/// What is said of a file or part. Written straight to text: a tree of values took a third of the time of the thread that all others wait for.
#[derive(Serialize)]
struct Line<'a> {
    path: &'a str,
    holds: bool,
    allowed: Vec<serde_json::Value>,
    report: &'a Report,
}

/// What a person looks at next: the blocks of the cycle, and from where it is reached.
fn help(found: &Loop) -> String {
    let mut text = format!("PTX line {}", found.line);
    if !found.recursion {
        let some: Vec<&str> = found.blocks.iter().map(String::as_str).take(6).collect();
        let more = if found.blocks.len() > some.len() { ", …" } else { "" };
        let _ = write!(text, ", blocks {}{more}", some.join(" "));
    }
    let kernels: Vec<String> =
        found.kernels.iter().filter(|kernel| **kernel != found.function).map(|kernel| Kernel::new(kernel).name).take(3).collect();
    if !kernels.is_empty() {
        let _ = write!(text, ", reached from {}", kernels.join(", "));
    }
    text
}

fn read_source(path: &str) -> Option<Rc<Source>> {
    let is_small = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LARGEST_SOURCE);
    is_small.then(|| std::fs::read(Path::new(path)).ok()).flatten().map(|bytes| Rc::new(Source::new(path, &bytes)))
}
