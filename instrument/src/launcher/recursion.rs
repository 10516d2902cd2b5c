//! Which calls need a poll. The compiler's own output answers that. Most functions that seem to reach themselves by their
//! names are templates, and hand on to others of that name.
//!
//! 1. A unit with such calls is compiled with a mark in place of each poll at one (`__cuinstr_marks_calls`). Marks are
//!    nothing to the machine.
//! 2. When nvcc asks the host's compiler for the object, the unit's PTX is there. The proof says which marks lie on a cycle
//!    that is neither polled nor bounded. Mostly there is none, and the compilation goes on.
//! 3. Else nvcc compiles the unit anew within that step, with polls at those calls. Where they can't be told, all calls get
//!    polls. The other calls get the number 0, which the prelude compiles to nothing. The new object takes the place of the
//!    first one.
//!
//! For `-ptx`, `-cubin` and `-fatbin` there is no such step. The proof is asked when nvcc has ended, and nvcc compiles the
//! unit anew then. Beside a cubin or fatbin nvcc keeps the PTX in the session for that.
//!
//! Files of the session:
//!
//! - `calls/question.json`: nvcc's arguments and environment.
//! - `calls/pass-…`: a file for each pass over the device's side.
//! - `calls/marked`: is there if a pass has marks.
//! - `calls/answer.json`: what came of it.
//! - `calls/settled.o`: the second compilation's object.

use super::arguments::{CommandLine, Product};
use super::error::Error;
use super::host_runtime;
use super::proof;
use super::session::{Knowledge, Session};
use super::settings::{Recursion, Settings};
use super::signal::Watch;
use crate::options::Pass;
use cuinstr_abi::sites::{Form, Kind, SiteMap};
use cuinstr_verify::verify_ptx;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Tells the processes below that they belong to a unit's second compilation. A process that has it from elsewhere is none of these.
pub(super) const SETTLES: &str = "CUINSTR_SETTLES";

/// The macro that makes the prelude leave marks.
pub(super) const MARKS: &str = "-D__cuinstr_marks_calls=1";

const FOLDER: &str = "calls";
const QUESTION: &str = "question.json";
const MARKED: &str = "marked";
const ANSWER: &str = "answer.json";
const OBJECT: &str = "settled.o";

/// What stands in the prelude where a settled text asks for the number 0.
const SETTLED: &str = "(void)\"cuinstr: settled\";";

/// What a site map says of a call whose poll is needless.
const WHY: &str = "in the compiler's output no cycle of calls passes here";

/// What a unit's calls have in the text that is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Polls, without asking.
    Polled,
    /// Marks, since the compiler's output is asked.
    Marked,
    /// Polls, but for those that the answer calls needless.
    Settled,
}

/// What it takes to compile the unit once more.
#[derive(Serialize, Deserialize)]
struct Question {
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

/// What came of it.
#[derive(Default, Serialize, Deserialize)]
struct Answer {
    /// The sites that need no poll, if these can be told.
    needless: Option<BTreeSet<u64>>,
}

/// Whether a call of nvcc can be asked about: it compiles one source for itself, and keeps no intermediate files.
pub(super) fn can_ask(line: &CommandLine, settings: &Settings) -> bool {
    let is_cuda = |source: &&OsString| Path::new(source).extension().is_some_and(|ending| ending == "cu");
    let is_one = line.sources.len() == 1 || line.sources.iter().filter(is_cuda).count() == 1;
    let compiles = line.product != Product::Nothing && line.preprocesses;
    // Nothing is told of text that is not optimised.
    let debugs = line.words.iter().any(|word| word == "-G" || word == "--device-debug");
    // Fuel counts calls.
    settings.pass == Pass::Source
        && settings.recursion != Recursion::Named
        && settings.limits.fuel.is_none()
        && is_one
        && compiles
        && !line.keeps
        && !debugs
        && proof::writes_files(line)
}

/// Whether nvcc makes what is asked for without a step of the host's compiler at its end.
fn ends_without_host(line: &CommandLine) -> bool {
    matches!(line.product, Product::Ptx | Product::Binary(Some(_)))
}

/// Whether the PTX is gone when nvcc ends, unless it is told to keep it.
pub(super) fn must_keep(line: &CommandLine, settings: &Settings) -> bool {
    can_ask(line, settings) && ends_without_host(line)
}

/// Keeps what it takes to ask.
///
/// # Errors
/// If the session can't be written.
pub(super) fn prepare(line: &CommandLine, further: &[OsString], session: &Session) -> Result<(), Error> {
    let mut arguments = session.arguments(line);
    arguments.extend_from_slice(further);
    let own =
        [("PATH".into(), session.search_path()), (super::error::SESSION.into(), session.folder().into()), (SETTLES.into(), "1".into())];
    let changed = session.variables(line).into_iter().map(|(name, value)| (OsString::from(name), value));
    let environment = env::vars_os().chain(changed).chain(own).collect();
    let folder = session.folder().join(FOLDER);
    let text = serde_json::to_vec(&Question { arguments, environment }).map_err(io::Error::from);
    let written = text.and_then(|text| fs::create_dir(&folder).and_then(|()| fs::write(folder.join(QUESTION), text)));
    written.map_err(|error| Error::io("can't write", &folder, &error))
}

impl Stage {
    /// That of the compilation which this process belongs to.
    pub(super) fn of(session: &Path) -> Self {
        if env::var_os(SETTLES).is_some() {
            Self::Settled
        } else if session.join(FOLDER).is_dir() {
            Self::Marked
        } else {
            Self::Polled
        }
    }
}

/// Notes a pass over the device's side, whose output is to be asked. What can't be noted is not claimed: the counts differ.
pub(super) fn note_pass(session: &Path, is_marked: bool) -> Result<(), Error> {
    let folder = session.join(FOLDER);
    let _ = tempfile::Builder::new().prefix("pass-").tempfile_in(&folder).map(tempfile::NamedTempFile::keep);
    // Marks that are not known would be missing polls.
    let noted = if is_marked { File::create(folder.join(MARKED)).map(drop) } else { Ok(()) };
    noted.map_err(|error| Error::io("can't write", &folder, &error))
}

/// Whether it is still open for some marks whether they should be polls.
pub(super) fn is_undecided(session: &Path) -> bool {
    let folder = session.join(FOLDER);
    folder.join(MARKED).exists() && !folder.join(ANSWER).exists()
}

fn answer(folder: &Path) -> Option<Answer> {
    serde_json::from_slice(&fs::read(folder.join(ANSWER)).ok()?).ok()
}

/// The sites that need no poll, if that is known.
pub(super) fn needless(session: &Path) -> Option<BTreeSet<u64>> {
    answer(&session.join(FOLDER))?.needless
}

/// The calls of preprocessed text that need no poll get the number 0.
///
/// # Errors
/// If the text can't be read or written.
pub(super) fn settle(session: &Path, output: &Path) -> Result<(), Error> {
    let Some(needless) = needless(session) else { return Ok(()) };
    let failed = |error: io::Error| Error::io("can't write", output, &error);
    let text = fs::read(output).map_err(failed)?;
    let mut settled = Vec::with_capacity(text.len());
    let mut copied = 0;
    for (at, end, _) in calls(&text).iter().filter(|(.., site)| needless.contains(site)) {
        settled.extend_from_slice(&text[copied..*at]);
        settled.extend_from_slice(b"0ull");
        copied = *end;
    }
    settled.extend_from_slice(&text[copied..]);
    // No other text pays for the question, which would be a branch where nothing is optimised.
    let settled = String::from_utf8_lossy(&settled).replace(SETTLED, "if (__ci_site == 0ull) return;");
    fs::write(output, settled).map_err(failed)
}

/// The site maps' word on calls whose polls were left out.
pub(super) fn tell(session: &Path, maps: &mut [&mut SiteMap]) {
    let Some(needless) = needless(session) else { return };
    for site in maps.iter_mut().flat_map(|map| &mut map.sites).filter(|site| site.kind == Kind::Recursion && site.form != Form::None) {
        if u64::from_str_radix(site.id.trim_start_matches("0x"), 16).is_ok_and(|id| needless.contains(&id)) {
            site.form = Form::None;
            site.why = Some(WHY.to_owned());
        }
    }
}

/// Where the numbers of polls at calls stand, and what they are: `__cuinstr_call_hd(0x1ull)`, `__cuinstr_call_part<…>(0x1ull)`.
fn calls(text: &[u8]) -> Vec<(usize, usize, u64)> {
    const NAME: &[u8] = b"__cuinstr_call";
    let mut found = Vec::new();
    for start in memchr::memmem::find_iter(text, NAME) {
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let behind = start + NAME.len() + text[start + NAME.len()..].iter().take_while(|byte| is_name(byte)).count();
        let open = match text.get(behind) {
            Some(b'(') => behind,
            // Between the angles stands what a program wrote, and behind them the number.
            Some(b'<') => match memchr::memmem::find(&text[behind..], b">(0x") {
                Some(at) => behind + at + 1,
                None => continue,
            },
            _ => continue,
        };
        let digits = text[open + 1..].strip_prefix(b"0x").map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count());
        let end = open + 3 + digits;
        let number = text.get(open + 3..end).and_then(|digits| std::str::from_utf8(digits).ok());
        let number = number.filter(|_| text[end..].starts_with(b"ull)"));
        if let Some(site) = number.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
            found.push((open + 1, end + 3, site));
        }
    }
    // What stands between the angles of one may hold another.
    found.sort_unstable();
    found.dedup();
    found
}

/// Where nvcc asks for a unit's object: whether the compilation that it comes from is as it shall be. If not, another one has made the object when this returns.
///
/// # Errors
/// If the session or the object can't be written, or the second compilation fails, which says why.
pub(super) fn decide(session: &Path, knowledge: &Knowledge, arguments: &[OsString]) -> Result<Decision, Error> {
    let folder = session.join(FOLDER);
    if Stage::of(session) != Stage::Marked || !folder.join(MARKED).exists() {
        return Ok(Decision::Compile);
    }
    let unit = host_runtime::unit(arguments).map(|at| &arguments[at]);
    let output = arguments.iter().position(|word| word == "-o").and_then(|at| arguments.get(at + 1));
    // It is undecided then, which the launch says.
    let (Some(unit), Some(output)) = (unit, output) else { return Ok(Decision::Compile) };
    if note_answer(&folder, &beside(Path::new(unit)).unwrap_or_default())? {
        return Ok(Decision::Compile);
    }
    let said = again(&folder, knowledge.nvcc.as_ref(), |mut command| command.output())?;
    let object = folder.join(OBJECT);
    if !object.exists() {
        pass_on(&said);
        return Ok(Decision::Done(super::process::code_of(said.status).max(1)));
    }
    fs::copy(&object, output).map_err(|error| Error::io("can't write", Path::new(output), &error))?;
    Ok(Decision::Done(0))
}

/// Where nvcc has ended without a step of the host's compiler: has the unit compiled anew if it is not as it shall be. Gives nvcc's code.
///
/// # Errors
/// If the session can't be written, or nvcc can't be started.
pub(super) fn decide_at_end(line: &CommandLine, session: &Session, nvcc: &Path, watch: &Watch) -> Result<u8, Error> {
    let folder = session.folder().join(FOLDER);
    if !ends_without_host(line) || !is_undecided(session.folder()) {
        return Ok(0);
    }
    // Marks are no machine code, so what is there will do.
    if note_answer(&folder, &proof::texts(line, session))? {
        return Ok(0);
    }
    let said = again(&folder, nvcc, |mut command| {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        watch.forward_to(&child);
        let said = child.wait_with_output();
        watch.forget_child();
        said
    })?;
    // What it said of the source, it has said before.
    if !said.status.success() {
        pass_on(&said);
    }
    Ok(super::process::code_of(said.status))
}

/// Asks the compiler's output, and writes down what came of it. Whether no call needs a poll.
fn note_answer(folder: &Path, texts: &[PathBuf]) -> Result<bool, Error> {
    let asked = passes(folder).and_then(|passes| ask(texts, passes));
    let is_done = asked.as_ref().is_some_and(|(_, needed)| needed.is_empty());
    let answer = Answer { needless: asked.map(|(needless, _)| needless) };
    let written = serde_json::to_vec(&answer).map_err(io::Error::from).and_then(|text| fs::write(folder.join(ANSWER), text));
    written.map_err(|error| Error::io("can't write", folder, &error)).map(|()| is_done)
}

/// Has nvcc compile the unit once more.
fn again(folder: &Path, nvcc: &Path, run: impl FnOnce(Command) -> io::Result<Output>) -> Result<Output, Error> {
    let failed = |error: io::Error| Error::io("can't write", folder, &error);
    let question: Question = fs::read(folder.join(QUESTION)).and_then(|text| Ok(serde_json::from_slice(&text)?)).map_err(failed)?;
    let mut command = Command::new(nvcc);
    command.args(&question.arguments).env_clear().envs(question.environment).stdin(Stdio::null());
    run(command).map_err(failed)
}

/// A reader that has gone is no error.
fn pass_on(said: &Output) {
    let _ = io::stdout().write_all(&said.stdout).and_then(|()| io::stderr().write_all(&said.stderr));
}

/// What is left to do for a unit's object.
pub(super) enum Decision {
    /// To compile it.
    Compile,
    /// Nothing but to end with this code.
    Done(u8),
}

/// The host compiler's arguments of a second compilation, whose object goes to the session.
pub(super) fn to_session(session: &Path, mut arguments: Vec<OsString>) -> (Vec<OsString>, PathBuf) {
    let object = session.join(FOLDER).join(OBJECT);
    if let Some(at) = arguments.iter().position(|word| word == "-o").filter(|at| at + 1 < arguments.len()) {
        arguments[at + 1] = object.clone().into_os_string();
    }
    (arguments, object)
}

/// The PTX beside this unit's host side.
fn beside(unit: &Path) -> Option<Vec<PathBuf>> {
    // nvcc names its temporary files by one number, tmpxft_000052ad_00000000-6_a.ptx; what it keeps has a folder of its own.
    let name = unit.file_name()?.to_string_lossy().into_owned();
    let prefix = if name.starts_with("tmpxft_") { &name[..=name.find('-')?] } else { "" };
    let beside = match unit.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let starts = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_bytes().starts_with(prefix.as_bytes()));
    let paths = fs::read_dir(beside).ok()?.flatten().map(|entry| entry.path());
    Some(paths.filter(|path| starts(path) && path.extension().is_some_and(|ending| ending == "ptx")).collect())
}

/// How many passes over the device's side there were.
fn passes(folder: &Path) -> Option<usize> {
    Some(fs::read_dir(folder).ok()?.flatten().filter(is_pass).count())
}

fn is_pass(entry: &fs::DirEntry) -> bool {
    entry.file_name().as_bytes().starts_with(b"pass-")
}

/// The sites of which PTX with marks shows that they need no poll, and those that do. A pass without PTX may have cycles of its own.
fn ask(texts: &[PathBuf], passes: usize) -> Option<(BTreeSet<u64>, BTreeSet<u64>)> {
    let (mut marked, mut needed) = (BTreeSet::new(), BTreeSet::new());
    if texts.is_empty() || texts.len() != passes {
        return None;
    }
    for path in texts {
        let (all, some) = verify_ptx(&String::from_utf8_lossy(&fs::read(path).ok()?)).calls()?;
        marked.extend(all);
        needed.extend(some);
    }
    Some((&marked - &needed, needed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuinstr_abi::sites::Site;

    #[test]
    fn polls_at_calls_are_found_in_preprocessed_text() {
        let text = b"void __cuinstr_call(unsigned long long site);\n{ __cuinstr_call_hd(0xaull); }\n\
            return (__cuinstr_call_smaller_hd<(__cuinstr_terms<decltype(f((__cuinstr_call(0x1bull), x)))>::all < 3)>(0xffffffffffffffffull), g(x));\n\
            __cuinstr_called(site & ~1ull); __cuinstr_call(0x12); __cuinstr_call_part<A, B";
        let found = calls(text);
        assert_eq!(found.iter().map(|(.., site)| *site).collect::<Vec<_>>(), [0xa, 0x1b, u64::MAX]);
        assert_eq!(found.iter().map(|(at, end, _)| &text[*at..*end]).next(), Some(&b"0xaull"[..]));
    }

    const PLAIN: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n";

    #[test]
    fn only_the_ptx_of_each_pass_answers() {
        let folder = tempfile::tempdir().expect("a folder");
        let (session, unit) = (folder.path().join(FOLDER), folder.path().join("tmpxft_1_0-6_a.cudafe1.cpp"));
        fs::create_dir(&session).expect("a folder");
        let none = Some((BTreeSet::new(), BTreeSet::new()));
        let ask = |session: &Path, unit: &Path| ask(&beside(unit)?, passes(session)?);
        let put = |name: &str| fs::write(folder.path().join(name), PLAIN).expect("a file");
        assert_eq!(ask(&session, &unit), None, "there is no PTX");
        // Of other units, and no PTX.
        put("tmpxft_2_0-6_a.ptx");
        put("tmpxft_1_0-6_a.cubin");
        assert_eq!(ask(&session, &unit), None);
        note_pass(folder.path(), false).expect("a note");
        assert_eq!(ask(&session, &unit), None, "a pass has no PTX");
        put("tmpxft_1_0-6_a.ptx");
        assert_eq!(ask(&session, &unit), none);
        assert!(!is_undecided(folder.path()));
        note_pass(folder.path(), true).expect("a note");
        assert!(is_undecided(folder.path()));
        assert_eq!(ask(&session, &unit), None, "one of two passes has no PTX");
        put("tmpxft_1_0-7_a.compute_80.ptx");
        assert_eq!(ask(&session, &unit), none);
        // What nvcc keeps has a folder of its own.
        let kept = folder.path().join("kept");
        fs::create_dir(&kept).expect("a folder");
        put("kept/a.ptx");
        put("kept/b.ptx");
        assert_eq!(ask(&session, &kept.join("a.cudafe1.cpp")), none);
        assert_eq!(ask(&session, &folder.path().join("tmpxft_1")), None, "its name is none of nvcc's");
    }

    #[test]
    fn calls_that_need_no_poll_get_the_number_0_and_the_site_maps_say_so() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join(FOLDER)).expect("a folder");
        let output = folder.path().join("a.ii");
        let text = "void __cuinstr_call(unsigned long long __ci_site) { (void)\"cuinstr: settled\"; }\n__cuinstr_call(0x1aull) + __cuinstr_call_hd(0x2ull);\n";
        fs::write(&output, text).expect("a file");
        let answer = |needless: Option<&[u64]>| {
            let answer = Answer { needless: needless.map(|sites| sites.iter().copied().collect()) };
            fs::write(folder.path().join(FOLDER).join(ANSWER), serde_json::to_vec(&answer).expect("JSON")).expect("a file");
        };
        let settled = || {
            settle(folder.path(), &output).expect("it is written");
            fs::read_to_string(&output).expect("a file")
        };
        answer(None);
        assert_eq!(settled(), text, "all calls keep their polls");
        answer(Some(&[0x1a, 7]));
        assert!(!is_undecided(folder.path()));
        assert_eq!(settled(), text.replace("0x1aull", "0ull").replace(SETTLED, "if (__ci_site == 0ull) return;"));
        let site = |(id, kind, form): (&str, Kind, Form)| {
            let (id, function) = (id.to_owned(), "f".to_owned());
            Site { id, kind, function, file: None, line: 1, column: 1, form, why: None, waiver: None }
        };
        let told = [("0x1a", Kind::Recursion, Form::Each), ("7", Kind::Recursion, Form::None), ("7", Kind::For, Form::Each)];
        let others = [("0x2", Kind::Recursion, Form::Each), ("", Kind::Recursion, Form::Each)];
        let sites: Vec<Site> = told.into_iter().chain(others).map(site).collect();
        let mut map =
            SiteMap { version: SiteMap::VERSION, file: "a.cu".into(), hash: "0".into(), polls_each: false, counts_fuel: false, sites };
        let before = map.sites.clone();
        tell(folder.path(), &mut [&mut map]);
        assert_eq!((map.sites[0].form, map.sites[0].why.as_deref()), (Form::None, Some(WHY)));
        assert_eq!(map.sites[1..], before[1..]);
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let object = folder.path().join(FOLDER).join(OBJECT);
        let (moved, place) = to_session(folder.path(), words(&["-c", "-o", "a.o", "a.cpp"]));
        assert_eq!((moved, &place), (words(&["-c", "-o", object.to_str().expect("text"), "a.cpp"]), &object));
        assert_eq!(to_session(folder.path(), words(&["-c", "-o"])).0, words(&["-c", "-o"]));
    }
}
