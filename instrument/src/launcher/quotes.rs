//! What a compiler quotes of rewritten source in its messages, as it would quote the user's own.
//!
//! nvcc's compilers print a line of their input behind two spaces, and in the next line a caret below the place that they
//! mean. That input is the preprocessor's output. The process that wrote it notes which lines have insertions, and where
//! (`marks`). The one that passes the messages on looks lines up by what they are, and so it needs no order among them.

use super::error::Error;
use super::marks::MarkedLine;
use cuinstr_abi::sites::hash;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Folder of the session with a file for each pass over the device's side.
const FOLDER: &str = "quotes";

/// What stands before a line that is quoted.
const INDENT: &[u8] = b"  ";

/// What every insertion has.
const OURS: &[u8] = b"__cuinstr_";

/// What is noted of the lines of a pass.
#[derive(Debug, Default)]
pub(super) struct Notes(Vec<u8>);

impl Notes {
    /// Notes lines of a text.
    pub(super) fn add(&mut self, text: &[u8], lines: &[MarkedLine]) {
        for MarkedLine { line, inserted } in lines {
            let ends = inserted.iter().flat_map(|range| [range.start as u64, range.end as u64]);
            let words = [hash(0, &text[line.clone()]), inserted.len() as u64].into_iter().chain(ends);
            self.0.extend(words.flat_map(u64::to_le_bytes));
        }
    }

    /// Keeps them for the process that reads the messages.
    ///
    /// # Errors
    /// If the session can't be written.
    pub(super) fn keep(&self, session: &Path) -> Result<(), Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        let folder = session.join(FOLDER);
        let write = || {
            fs::create_dir_all(&folder)?;
            let mut file = tempfile::Builder::new().prefix(".").tempfile_in(&folder)?;
            file.write_all(&self.0)?;
            let name = file.path().file_name().map_or_else(OsString::new, |name| OsString::from(&name.to_string_lossy()[1..]));
            file.persist(folder.join(name)).map_err(|error| error.error).map(drop)
        };
        write().map_err(|error| Error::io("can't write to", &folder, &error))
    }
}

/// Passes the lines of messages on.
#[derive(Debug)]
pub(super) struct Quotes {
    folder: PathBuf,
    read: BTreeSet<OsString>,
    known: BTreeMap<u64, Vec<Range<usize>>>,
    /// The line that was quoted last, with its insertions, if the one below it is still to come.
    last: Option<(Vec<u8>, Vec<Range<usize>>)>,
}

impl Quotes {
    /// For the messages of a session.
    pub(super) fn new(session: &Path) -> Self {
        Self { folder: session.join(FOLDER), read: BTreeSet::new(), known: BTreeMap::new(), last: None }
    }

    /// The line as it would be without us.
    pub(super) fn line<'a>(&mut self, line: &'a [u8]) -> Cow<'a, [u8]> {
        if let Some((quoted, inserted)) = self.last.take()
            && let Some(caret) = caret(line, &quoted, &inserted)
        {
            return Cow::Owned(caret);
        }
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let quoted = text.strip_prefix(INDENT).filter(|text| memchr::memmem::find(text, OURS).is_some());
        let Some((quoted, inserted)) = quoted.and_then(|quoted| Some((quoted, self.inserted(quoted)?))) else { return Cow::Borrowed(line) };
        let own = without(quoted, &inserted);
        // Preprocessed lines do not end with space, unless an insertion ends them.
        let own = [INDENT, own.trim_ascii_end(), &line[text.len()..]].concat();
        self.last = Some((quoted.to_vec(), inserted));
        Cow::Owned(own)
    }

    /// What of a line was inserted, if a pass wrote the line.
    fn inserted(&mut self, line: &[u8]) -> Option<Vec<Range<usize>>> {
        let number = hash(0, line);
        if !self.known.contains_key(&number) {
            self.read_new();
        }
        self.known.get(&number).filter(|inserted| inserted.iter().all(|range| range.end <= line.len())).cloned()
    }

    /// Reads what passes have noted since.
    fn read_new(&mut self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b".") || !self.read.insert(name) {
                continue;
            }
            let bytes = fs::read(entry.path()).unwrap_or_default();
            let mut words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
            while let (Some(line), Some(count)) = (words.next(), words.next()) {
                let ends: Vec<usize> = words.by_ref().take(2 * count as usize).map(|word| word as usize).collect();
                self.known.insert(line, ends.chunks_exact(2).map(|ends| ends[0]..ends[1]).collect());
            }
        }
    }
}

/// The line without what was inserted. Where there was space on both sides of an insertion, preprocessed text has one.
fn without(line: &[u8], inserted: &[Range<usize>]) -> Vec<u8> {
    let mut own = Vec::with_capacity(line.len());
    let mut copied = 0;
    for range in inserted {
        own.extend_from_slice(&line[copied..range.start]);
        copied = range.end;
        let has_space = own.last().is_none_or(|last| *last == b' ');
        copied += usize::from(has_space && line.get(copied) == Some(&b' '));
    }
    own.extend_from_slice(line.get(copied..).unwrap_or_default());
    own
}

/// The line with the caret, moved to the same place of the user's own line; none if it is no such line.
fn caret(line: &[u8], quoted: &[u8], inserted: &[Range<usize>]) -> Option<Vec<u8>> {
    let at = line.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
    let before = line[..at].strip_prefix(INDENT).filter(|_| line[at] == b'^')?.len();
    let place = columns(quoted).nth(before).unwrap_or(quoted.len());
    // What is meant of our own text is the place that it stands at.
    let place = inserted.iter().find(|range| range.contains(&place)).map_or(place, |range| range.start);
    let earlier: Vec<Range<usize>> = inserted.iter().take_while(|range| range.end <= place).cloned().collect();
    let own = without(&quoted[..place], &earlier);
    let indent: Vec<u8> = columns(&own).map(|at| if own[at] == b'\t' { b'\t' } else { b' ' }).collect();
    Some([INDENT, &indent, &line[at..]].concat())
}

/// Where the characters of a line begin. What is no UTF-8 counts byte by byte.
fn columns(line: &[u8]) -> impl Iterator<Item = usize> {
    let mut at = 0;
    line.utf8_chunks().flat_map(move |chunk| {
        let start = at;
        at += chunk.valid().len() + chunk.invalid().len();
        let valid = chunk.valid().char_indices().map(move |(offset, _)| start + offset);
        valid.chain(start + chunk.valid().len()..at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of messages, where a pass wrote a line with these insertions.
    fn passed(written: &str, inserted: &[&str], messages: &[u8]) -> Vec<u8> {
        let session = tempfile::tempdir().expect("a folder");
        let mut quotes = Quotes::new(session.path());
        assert_eq!(*quotes.line(b"  __cuinstr_a\n"), b"  __cuinstr_a\n"[..], "nothing is noted yet");
        let places = inserted.iter().map(|part| written.find(part).map(|at| at..at + part.len()).expect("it is there")).collect();
        let mut notes = Notes::default();
        notes.add(written.as_bytes(), &[MarkedLine { line: 0..written.len(), inserted: places }]);
        notes.keep(session.path()).expect("it can be written");
        messages.split_inclusive(|byte| *byte == b'\n').flat_map(|line| quotes.line(line).into_owned()).collect()
    }

    #[test]
    fn a_quoted_line_and_its_caret_are_those_of_the_user() {
        let written = "for (;; __cuinstr_tick(1), i++) { \"\té\"; int x; }";
        for (place, own) in [("for", 0), ("__cuinstr", 8), ("1)", 8), ("i++", 8), ("int", 21), ("x;", 25), ("}", 28)] {
            let column = written.find(place).expect("it is there");
            let before: String = written[..column].chars().map(|letter| if letter == '\t' { '\t' } else { ' ' }).collect();
            let messages = format!("a.cu(1): warning: it\n  {written}\n  {before}^\n\n  {before}^\n");
            let found = String::from_utf8(passed(written, &["__cuinstr_tick(1), "], messages.as_bytes())).expect("it is text");
            let quoted = "for (;; i++) { \"\té\"; int x; }";
            let caret: String = quoted.chars().take(own).map(|letter| if letter == '\t' { '\t' } else { ' ' }).collect();
            assert_eq!(found, format!("a.cu(1): warning: it\n  {quoted}\n  {caret}^\n\n  {before}^\n"), "{place}");
        }
    }

    #[test]
    fn all_else_is_passed_on_byte_for_byte() {
        let written = "a; __cuinstr_b(); c;";
        let messages = b"  a; __cuinstr_b(); d;\n     ^\n\xff\xfe  a; __cuinstr_b(); c;\na; __cuinstr_b(); c;\n    ^~~\n  tail";
        assert_eq!(passed(written, &["__cuinstr_b(); "], messages), messages);
    }

    #[test]
    fn columns_of_what_is_no_text_are_bytes() {
        assert_eq!(columns(b"a\xff\xe9b\xc3\xa9c").collect::<Vec<_>>(), [0, 1, 2, 3, 4, 6]);
    }
}
