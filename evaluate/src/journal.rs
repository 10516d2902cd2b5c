//! The journal: what was judged, one JSON object a line, so that an evaluation which was interrupted goes on where it was.
//!
//! The first line is the head: of which specification, under which limits. Each line after it is a [`Judgement`]. One
//! call of the system writes a line as soon as its verdict is known. So whatever ends the evaluator, each line is there
//! as a whole. At worst the last one is cut off: what is cut off is dropped, and judged again.

use crate::evaluation::BRIEF;
use crate::limits::Limits;
use crate::spec::Case;
use crate::verdict::Judgement;
use crate::{Error, Result};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Version of the journal's format.
pub const VERSION: u32 = 2;
/// How long a lock may outlive who held it.
const MOMENT: Duration = Duration::from_secs(2);

/// What verdicts depend on, by name: reference, data, limits, compiler, device.
pub type Conditions = BTreeMap<String, String>;

/// How a head's line begins.
const HEAD_BEGINS: &[u8] = b"{\"journal\":";

/// The first line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Head {
    /// Version of the format.
    pub journal: u32,
    /// Release of cuinstr.
    pub cuinstr: String,
    /// What the verdicts depend on. Where one differs, a journal is refused.
    pub conditions: Conditions,
    /// Path of the specification.
    pub spec: String,
    /// Name of the GPU; empty if nothing was run.
    pub device: String,
    /// Limits of each case; empty if nothing was run.
    pub limits: Vec<Limits>,
}

/// A journal that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: Option<File>,
    head: Option<Head>,
    known: HashMap<(String, u32), Judgement>,
    /// Made by this process, and empty so far.
    is_empty: bool,
}

/// Reads a journal: its head, if there is one yet, and its judgements in their order.
///
/// # Errors
/// If it can't be read, or is no journal.
pub fn read(path: &Path) -> Result<(Option<Head>, Vec<Judgement>)> {
    let mut text = Vec::new();
    File::open(path).and_then(|mut file| file.read_to_end(&mut text)).map_err(Error::file(path))?;
    parse(path, &text).map(|(head, judgements, _)| (head, judgements))
}

/// Also says how many bytes of it are whole lines.
fn parse(path: &Path, text: &[u8]) -> Result<(Option<Head>, Vec<Judgement>, usize)> {
    // What comes after the last end of a line was being written when its writer ended.
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut lines = text[..whole].split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
    let damaged = |index: usize, error: serde_json::Error| Error::Journal {
        path: path.to_owned(),
        what: format!("line {}: {error}; this is no journal, or a damaged one: name another file", index + 1),
    };
    let Some((index, first)) = lines.next() else { return Ok((None, Vec::new(), whole)) };
    let head: Head = serde_json::from_slice(first).map_err(|error| damaged(index, error))?;
    if head.journal != VERSION {
        let what = format!("its format is version {}, and this release writes {VERSION}: name another file", head.journal);
        return Err(Error::Journal { path: path.to_owned(), what });
    }
    let judgement = |(index, line)| serde_json::from_slice(line).map_err(|error| damaged(index, error));
    Ok((Some(head), lines.map(judgement).collect::<Result<_>>()?, whole))
}

impl Journal {
    /// None at all: nothing is kept.
    pub(crate) fn none() -> Self {
        Self { path: PathBuf::new(), file: None, head: None, known: HashMap::new(), is_empty: false }
    }

    /// Opens it, or makes it, for this process alone. What was cut off is dropped.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let is_new = !path.exists();
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(Error::file(path))?;
        let refused = |what: &str| Error::Journal { path: path.to_owned(), what: what.into() };
        // Of a device there may be no end.
        if !file.metadata().map_err(Error::file(path))?.is_file() {
            return Err(refused("it is no regular file, and a journal is read again: name another one"));
        }
        // A process that is being started has its parent's files for a moment, and so an evaluator's lock beyond that one's end.
        let until = Instant::now() + MOMENT;
        while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            if Instant::now() >= until {
                return Err(refused("another evaluator is writing it: wait for that one, or name another file"));
            }
            thread::sleep(BRIEF);
        }
        let mut text = Vec::new();
        let mut reader = &file;
        reader.seek(SeekFrom::Start(0)).and_then(|_| reader.read_to_end(&mut text)).map_err(Error::file(path))?;
        let (head, judgements, whole) = parse(path, &text)?;
        // A first line that was cut off is dropped only if it is one of ours.
        let is_ours = text.iter().zip(HEAD_BEGINS).all(|(theirs, ours)| theirs == ours);
        if head.is_none() && !is_ours {
            return Err(refused("it is no journal: name another file"));
        }
        file.set_len(whole as u64).map_err(Error::file(path))?;
        let known = judgements.into_iter().map(|judgement| ((judgement.candidate.clone(), judgement.round), judgement)).collect();
        let is_empty = is_new && text.is_empty();
        Ok(Self { path: path.to_owned(), file: Some(file), head, known, is_empty })
    }

    fn refused(&self, what: String) -> Error {
        Error::Journal { path: self.path.clone(), what }
    }

    /// Whether its verdicts were given under these conditions, as far as they are known yet.
    pub(crate) fn check(&self, conditions: &Conditions) -> Result<()> {
        let Some(head) = &self.head else { return Ok(()) };
        let differs = |(name, now): (&String, &String)| {
            let then = head.conditions.get(name).map_or("none", String::as_str);
            (then != now).then(|| format!("{name} (then {then}, now {now})"))
        };
        let different: Vec<String> = conditions.iter().filter_map(differs).collect();
        if different.is_empty() {
            return Ok(());
        }
        Err(self.refused(format!("its verdicts are of another {}: name another file, or remove it", different.join(", "))))
    }

    /// One of the conditions of its verdicts.
    pub(crate) fn condition(&self, name: &str) -> Option<&str> {
        self.head.as_ref()?.conditions.get(name).map(String::as_str)
    }

    /// The limits under which its verdicts were given, one for each of these cases.
    pub(crate) fn limits(&self, cases: &[Case]) -> Result<Option<Vec<Limits>>> {
        let Some(head) = &self.head else { return Ok(None) };
        if head.limits.iter().map(|limits| &limits.case).eq(cases.iter().map(|case| &case.name)) {
            return Ok(Some(head.limits.clone()));
        }
        Err(self.refused("its first line does not have the limits of each case: it is damaged, name another file".into()))
    }

    /// Writes the head, unless it is there.
    pub(crate) fn begin(&mut self, head: Head) -> Result<()> {
        self.check(&head.conditions)?;
        if self.head.is_none() {
            self.write(&head)?;
            self.head = Some(head);
        }
        Ok(())
    }

    /// What is known of a candidate, if it has the same text still.
    pub(crate) fn known(&self, candidate: &str, hash: &str, round: u32) -> Option<&Judgement> {
        self.known.get(&(candidate.to_owned(), round)).filter(|known| known.hash == hash)
    }

    pub(crate) fn add(&mut self, judgement: &Judgement) -> Result<()> {
        self.write(judgement)
    }

    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut text = serde_json::to_vec(line).map_err(|error| Error::file(&self.path)(error.into()))?;
        text.push(b'\n');
        self.is_empty = false;
        file.write_all(&text).map_err(Error::file(&self.path))
    }
}

impl Drop for Journal {
    /// Leaves no file behind where nothing could be judged, and lets others have it.
    fn drop(&mut self) {
        if self.is_empty {
            let _ = std::fs::remove_file(&self.path);
        }
        if let Some(file) = &self.file {
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Verdict;

    fn judgement(candidate: &str, round: u32) -> Judgement {
        Judgement {
            candidate: candidate.into(),
            hash: "7".into(),
            round,
            verdict: Verdict::Pass,
            case: None,
            cases: Vec::new(),
            by: None,
            place: None,
            message: None,
            elapsed_ms: 1.5,
            times: Vec::new(),
            device: Some(0),
            node: None,
            mutant: None,
        }
    }

    fn conditions(compiler: &str) -> Conditions {
        [("compiler", compiler), ("reference", "7")].map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    fn head(compiler: &str) -> Head {
        Head {
            journal: VERSION,
            cuinstr: "0".into(),
            conditions: conditions(compiler),
            spec: "s".into(),
            device: String::new(),
            limits: vec![Limits { case: "1".into(), timeout_s: 0.01, fuel: Some(5), reference_s: 1e-5, reference_fuel: Some(0) }],
        }
    }

    #[test]
    fn a_line_that_was_cut_off_anywhere_is_dropped_and_the_rest_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        journal.begin(head("f")).unwrap();
        for name in ["a", "b"] {
            journal.add(&judgement(name, 1)).unwrap();
        }
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        let lines: Vec<usize> = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut journal = Journal::open(&path).unwrap();
            assert_eq!(journal.head.as_ref(), (cut >= lines[0]).then(|| head("f")).as_ref(), "{cut}");
            assert_eq!(journal.known("a", "7", 1).is_some(), cut >= lines[1], "{cut}");
            assert_eq!(journal.known("b", "7", 1).is_some(), cut >= lines[2], "{cut}");
            // What follows is a line of its own.
            journal.begin(head("f")).unwrap();
            journal.add(&judgement("c", 2)).unwrap();
            let (_, read) = read(&path).unwrap();
            assert_eq!(read.last(), Some(&judgement("c", 2)), "{cut}");
        }
    }

    #[test]
    fn a_journal_of_something_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        journal.begin(head("f")).unwrap();
        let said = || Journal::open(&path).unwrap_err().to_string();
        assert!(said().contains("another evaluator is writing it"));
        drop(journal);
        let open = Journal::open(&path).unwrap();
        let refused = open.check(&conditions("g")).unwrap_err().to_string();
        assert!(refused.ends_with("its verdicts are of another compiler (then f, now g): name another file, or remove it"), "{refused}");
        open.check(&conditions("f")).unwrap();
        assert_eq!(["compiler", "reference", "device"].map(|name| open.condition(name)), [Some("f"), Some("7"), None]);
        open.check(&[("reference".to_owned(), "7".to_owned())].into()).unwrap();
        let unknown = open.check(&[("device".to_owned(), "x".to_owned())].into()).unwrap_err().to_string();
        assert!(unknown.contains("another device (then none, now x)"), "{unknown}");
        drop(open);
        std::fs::write(&path, "{\"a\": 1}\n").unwrap();
        assert!(said().contains("line 1: missing field"), "{}", said());
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"a\": 1}\n");
        std::fs::write(&path, serde_json::to_string(&head("f")).unwrap().replace("\"journal\":2", "\"journal\":9") + "\n").unwrap();
        assert!(said().contains("version 9"));
        std::fs::write(&path, "no line at all").unwrap();
        assert!(said().contains("it is no journal"), "{}", said());
        assert_eq!(std::fs::read(&path).unwrap(), b"no line at all");
        let endless = Journal::open(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(endless.contains("it is no regular file"), "{endless}");
    }

    #[test]
    fn a_lock_may_outlive_its_evaluator_for_a_moment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j.jsonl");
        let mut holder = Journal::open(&path).unwrap();
        holder.begin(head("f")).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(BRIEF * 2);
                drop(holder);
            });
            Journal::open(&path).unwrap();
        });
    }

    #[test]
    fn a_candidate_whose_text_has_changed_is_not_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        journal.begin(head("f")).unwrap();
        journal.add(&judgement("a", 1)).unwrap();
        drop(journal);
        let journal = Journal::open(&path).unwrap();
        assert!(journal.known("a", "7", 1).is_some());
        assert!(journal.known("a", "8", 1).is_none() && journal.known("a", "7", 2).is_none());
    }

    #[test]
    fn limits_are_those_of_each_case_or_the_head_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        let case =
            |name: &str| Case { name: name.into(), grid: [1; 3], block: [1; 3], shared: 0, cooperative: false, arguments: Vec::new() };
        assert_eq!(journal.limits(&[case("1")]).unwrap(), None);
        journal.begin(head("f")).unwrap();
        assert_eq!(journal.limits(&[case("1")]).unwrap().unwrap(), head("f").limits);
        for cases in [&[case("1"), case("2")][..], &[case("2")]] {
            assert!(journal.limits(cases).unwrap_err().to_string().contains("does not have the limits of each case"));
        }
    }

    #[test]
    fn a_journal_without_a_line_is_not_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j.jsonl");
        drop(Journal::open(&path).unwrap());
        assert!(!path.exists());
        // Somebody else's file stays, empty as it is.
        std::fs::write(&path, "").unwrap();
        drop(Journal::open(&path).unwrap());
        assert!(path.exists());
    }
}
