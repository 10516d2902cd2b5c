//! Which calls need a poll, asked of the compiler's own output: of functions that reach themselves by their names, most are templates that hand on to
//! others.
//!
//! Where a unit has such calls, the first pass of nvcc's over its device's side waits at its preprocessor's output and has nvcc compile that side once
//! more, with a mark in place of each poll at a call (`__cuinstr_marks_calls`). The proof then says which marks in its PTX lie on a cycle that is neither
//! polled nor bounded. The others are needless: in the preprocessor's output their polls get the number 0, which the prelude compiles to nothing. Whatever goes
//! wrong on the way, all calls keep their polls.
//!
//! | path in the session | is |
//! | --- | --- |
//! | `question.json` | nvcc's arguments and environment |
//! | `asked/` | what nvcc keeps of that compilation, and a file for each of its passes |
//! | `calls.json` | what came of it |

use super::Error;
use super::arguments::{CommandLine, Product};
use super::session::{Knowledge, Session};
use super::settings::{Recursion, Settings};
use crate::verify::verify_ptx;
use cuinstr_abi::sites::{Form, Kind, SiteMap};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Tells the processes below that they answer a question.
const ASKED: &str = "CUINSTR_ASKED";

/// The macro that makes the prelude leave marks.
pub(super) const MARKS: &str = "-D__cuinstr_marks_calls=1";

const QUESTION: &str = "question.json";
const FOLDER: &str = "asked";
const ANSWER: &str = "calls.json";
const END: &str = "end";

/// What stands in the prelude where a settled text asks for the number 0.
const SETTLED: &str = "(void)\"cuinstr: settled\";";

/// What a site map says of a call whose poll is needless.
const WHY: &str = "in the compiler's output no cycle of calls passes here";

/// How to ask.
#[derive(Serialize, Deserialize)]
struct Question {
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

/// What came of it.
#[derive(Serialize, Deserialize)]
struct Answer {
    /// The sites that need no poll, if these can be told.
    needless: Option<BTreeSet<u64>>,
}

/// Keeps what it takes to ask, where a call of nvcc can be asked about: it compiles one source for itself, and nobody wants its intermediate files.
///
/// # Errors
/// If the session can't be written.
pub(super) fn prepare(line: &CommandLine, session: &Session, settings: &Settings) -> Result<(), Error> {
    let is_cuda = |source: &&OsString| Path::new(source).extension().is_some_and(|ending| ending == "cu");
    let is_one = line.sources.len() == 1 || line.sources.iter().filter(is_cuda).count() == 1;
    let compiles = matches!(line.product, Product::Object | Product::Binary(None)) && line.preprocesses;
    // Fuel counts calls.
    if settings.recursion == Recursion::Named || settings.limits.fuel.is_some() || !is_one || !compiles || line.keeps {
        return Ok(());
    }
    let mut arguments = session.arguments(line);
    arguments.extend(["--keep".into(), "--keep-dir".into(), session.folder().join(FOLDER).into()]);
    let own = [("PATH".into(), session.search_path()), (super::SESSION.into(), session.folder().into()), (ASKED.into(), "1".into())];
    let changed = session.variables(line).into_iter().map(|(name, value)| (OsString::from(name), value));
    let environment = env::vars_os().chain(changed).chain(own).collect();
    let path = session.folder().join(QUESTION);
    let text = serde_json::to_vec(&Question { arguments, environment }).map_err(io::Error::from);
    text.and_then(|text| fs::write(&path, text)).map_err(|error| Error::io("can't write", &path, &error))
}

/// Whether this process stands below a compilation that answers a question.
pub(super) fn is_asked() -> bool {
    env::var_os(ASKED).is_some()
}

/// Notes that the asked compilation has come as far as it shall: the host's compiler is asked for an object.
pub(super) fn note_end(session: &Path) {
    let _ = File::create(session.join(FOLDER).join(END));
}

/// Notes that a pass over the device's side of the asked compilation came by.
pub(super) fn note_pass(session: &Path) {
    // Where it can't be noted, the counts differ, and nothing is claimed.
    let _ = tempfile::Builder::new().prefix("pass-").tempfile_in(session.join(FOLDER)).map(tempfile::NamedTempFile::keep);
}

/// The calls of preprocessed text that need no poll get the number 0.
///
/// # Errors
/// If the text can't be read or written.
pub(super) fn settle(needless: &BTreeSet<u64>, output: &Path) -> Result<(), Error> {
    if needless.is_empty() {
        return Ok(());
    }
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
    let settled = String::from_utf8_lossy(&settled).replace(SETTLED, "if (site == 0ull) return;");
    fs::write(output, settled).map_err(failed)
}

/// The site maps' word on calls whose polls were left out.
pub(super) fn tell(session: &Path, maps: &mut [&mut SiteMap]) {
    let needless = read(session).and_then(|answer| answer.needless).unwrap_or_default();
    for site in maps.iter_mut().flat_map(|map| &mut map.sites).filter(|site| site.kind == Kind::Recursion && site.form != Form::None) {
        if u64::from_str_radix(site.id.trim_start_matches("0x"), 16).is_ok_and(|id| needless.contains(&id)) {
            site.form = Form::None;
            site.why = Some(WHY.to_owned());
        }
    }
}

/// Where the numbers of polls at calls stand, and what they are: `__cuinstr_call_hd(0x1ull)`, `__cuinstr_call_smaller<…>(0x1ull)`.
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
        let number = number.filter(|_| digits > 0 && text[end..].starts_with(b"ull)"));
        if let Some(site) = number.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
            found.push((open + 1, end + 3, site));
        }
    }
    // What stands between the angles of one may hold another.
    found.sort_unstable();
    found.dedup();
    found
}

/// What is known, if anybody has asked.
fn read(session: &Path) -> Option<Answer> {
    serde_json::from_slice(&fs::read(session.join(ANSWER)).ok()?).ok()
}

/// The needless sites, if these can be told. The first pass that wants to know asks, and the others wait.
pub(super) fn needless(session: &Path, knowledge: &Knowledge) -> Option<BTreeSet<u64>> {
    let question = serde_json::from_slice::<Question>(&fs::read(session.join(QUESTION)).ok()?).ok()?;
    let lock = File::create(session.join("asked.lock")).ok()?;
    lock.lock().ok()?;
    if let Some(answer) = read(session) {
        return answer.needless;
    }
    let answer = Answer { needless: ask(session, &knowledge.nvcc, &question) };
    let _ = serde_json::to_vec(&answer).map_err(io::Error::from).and_then(|text| fs::write(session.join(ANSWER), text));
    answer.needless
}

/// Has nvcc compile the unit with marks, and looks at its PTX. That compilation is not finished: it ends where the host's compiler would be asked for an object.
fn ask(session: &Path, nvcc: &OsStr, question: &Question) -> Option<BTreeSet<u64>> {
    let folder = session.join(FOLDER);
    fs::create_dir(&folder).ok()?;
    let mut command = Command::new(nvcc);
    command.args(&question.arguments).env_clear().envs(question.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    // Without the polls a kernel may be one that ptxas can't compile.
    if !folder.join(END).exists() {
        return None;
    }
    let paths: Vec<_> = fs::read_dir(&folder).ok()?.flatten().map(|entry| entry.path()).collect();
    let passes = paths.iter().filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pass-"))).count();
    let texts: Vec<_> = paths.iter().filter(|path| path.extension().is_some_and(|ending| ending == "ptx")).collect();
    // A pass without PTX may have cycles of its own.
    if texts.is_empty() || texts.len() != passes {
        return None;
    }
    let (mut marked, mut needed) = (BTreeSet::new(), BTreeSet::new());
    for path in texts {
        let (all, some) = verify_ptx(&String::from_utf8_lossy(&fs::read(path).ok()?)).calls()?;
        marked.extend(all);
        needed.extend(some);
    }
    let _ = fs::remove_dir_all(&folder);
    Some(&marked - &needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_at_calls_are_found_in_preprocessed_text() {
        let text = b"void __cuinstr_call(unsigned long long site);\n{ __cuinstr_call_hd(0xaull); }\n\
            return (__cuinstr_call_smaller_hd<(__cuinstr_terms<decltype(f((__cuinstr_call(0x1bull), x)))>::all < 3)>(0xffffffffffffffffull), g(x));\n\
            __cuinstr_called(site & ~1ull); __cuinstr_call(0x12); __cuinstr_call_part<A, B";
        let found = calls(text);
        assert_eq!(found.iter().map(|(.., site)| *site).collect::<Vec<_>>(), [0xa, 0x1b, u64::MAX]);
        assert_eq!(found.iter().map(|(at, end, _)| &text[*at..*end]).next(), Some(&b"0xaull"[..]));
    }
}
