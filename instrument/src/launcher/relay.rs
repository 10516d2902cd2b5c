//! What nvcc prints on its way to the user.
//!
//! Below nvcc several programs ask whether they write to a terminal, and print in colour then. So a terminal is relayed by a
//! pseudoterminal, and anything else by a pipe. Where standard output and standard error are one, they stay one. All is
//! passed on as it comes, line by line.
//!
//! A program that nvcc started and left behind may hold its end for ever. So the end of what nvcc printed is a word that is
//! written once nvcc is gone, not the end of the file.

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::SystemTime;

/// Bytes that are read together.
const PIECE: usize = 1 << 16;

/// Takes the place of a stream.
#[derive(Debug)]
pub(super) struct Relay {
    reader: File,
    writer: File,
    end: Vec<u8>,
}

/// Whether what is written to standard output and to standard error goes to one place, in the order in which it is written. A file stays
/// itself, since programs may read from it what they wrote (`-o /dev/stdout`).
pub(super) fn are_one() -> bool {
    let place = |status: &Stat| (status.st_dev, status.st_ino, status.st_rdev);
    let is_file = |status: &Stat| FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    fstat(io::stdout()).is_ok_and(|out| !is_file(&out) && fstat(io::stderr()).is_ok_and(|err| place(&out) == place(&err)))
}

impl Relay {
    /// For a stream that is a terminal, or is none.
    ///
    /// # Errors
    /// If there can be no pipe.
    pub(super) fn open(is_terminal: bool) -> io::Result<Self> {
        let (reader, writer) = match is_terminal.then(pseudoterminal).and_then(Result::ok) {
            Some(pair) => pair,
            None => io::pipe().map(|(reader, writer)| (OwnedFd::from(reader).into(), OwnedFd::from(writer).into()))?,
        };
        // No text holds it by chance.
        let end = format!("\0cuinstr: end {:?} {}\n", SystemTime::now(), std::process::id()).into_bytes();
        Ok(Self { reader, writer, end })
    }

    /// Where a program is to write.
    ///
    /// # Errors
    /// If this process has no file to spare.
    pub(super) fn stream(&self) -> io::Result<Stdio> {
        self.writer.try_clone().map(Stdio::from)
    }

    /// What tells the copy that all is written.
    ///
    /// # Errors
    /// If this process has no file to spare.
    pub(super) fn end(&self) -> io::Result<End> {
        Ok(End(self.writer.try_clone()?, self.end.clone()))
    }

    /// Copies until the end, with each line changed. A reader that has gone is no error of ours.
    pub(super) fn copy(self, out: &mut dyn Write, mut change: impl FnMut(&[u8]) -> Vec<u8>) {
        let Self { mut reader, writer, end } = self;
        // The other end is gone, too, once all programs and the word are.
        drop(writer);
        let (mut text, mut piece) = (Vec::new(), vec![0; PIECE]);
        // Whether the beginning of this line has been passed on.
        let mut in_line = false;
        loop {
            let count = match reader.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // A pseudoterminal that nobody holds.
                Err(_) | Ok(0) => 0,
                Ok(count) => count,
            };
            text.extend_from_slice(&piece[..count]);
            let ended = memchr::memmem::find(&text, &end);
            if let Some(at) = ended {
                text.truncate(at);
            }
            let is_last = ended.is_some() || count == 0;
            let mut passed = 0;
            for line in text.split_inclusive(|byte| *byte == b'\n') {
                if !line.ends_with(b"\n") && !is_last && (may_be_quote(line) && !in_line || may_begin(&end, line)) {
                    break;
                }
                let is_whole = !in_line && (line.ends_with(b"\n") || is_last);
                let changed = if is_whole { Cow::Owned(change(line)) } else { Cow::Borrowed(line) };
                let _ = out.write_all(&changed);
                in_line = !line.ends_with(b"\n");
                passed += line.len();
            }
            let _ = out.flush();
            text.drain(..passed);
            if is_last {
                return;
            }
        }
    }
}

/// Says that all is written.
#[derive(Debug)]
pub(super) struct End(File, Vec<u8>);

impl End {
    /// Says so.
    pub(super) fn tell(mut self) {
        // One that can't be written to has been read to its end.
        let _ = self.0.write_all(&self.1);
    }
}

/// Whether the beginning of a line is worth waiting for the rest of it.
fn may_be_quote(line: &[u8]) -> bool {
    matches!(line, [b' '] | [b' ', b' ', ..] | [b'#', ..])
}

/// Whether the word's beginning may stand at the end of the text.
fn may_begin(word: &[u8], text: &[u8]) -> bool {
    memchr::memrchr(word[0], text).is_some_and(|at| word.starts_with(&text[at..]))
}

/// Both ends of a terminal like the user's, that changes nothing on the way.
fn pseudoterminal() -> io::Result<(File, File)> {
    let reader = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&reader)?;
    unlockpt(&reader)?;
    let path = ptsname(&reader, Vec::new())?;
    // It must not become the terminal that controls this process.
    let writer = File::from(open(path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?);
    let mut modes = tcgetattr(&writer)?;
    modes.make_raw();
    tcsetattr(&writer, OptionalActions::Now, &modes)?;
    if let Ok(size) = tcgetwinsize(io::stderr()) {
        tcsetwinsize(&writer, size)?;
    }
    Ok((File::from(reader), writer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::mpsc;

    /// Tells of each piece that is written.
    struct Told<'a>(&'a Mutex<Vec<u8>>, mpsc::Sender<()>);

    impl Write for Told<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("it is whole").extend_from_slice(bytes);
            let _ = self.1.send(());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_beginning_of_a_word_is_known_at_a_texts_end() {
        for (text, wanted) in
            [(&b"a\0e"[..], true), (b"\0", true), (b"\0end", true), (b"\0enx", false), (b"a", false), (b"\0e\0x", false), (b"", false)]
        {
            assert_eq!(may_begin(b"\0end", text), wanted, "{text:?}");
        }
    }

    #[test]
    fn lines_come_as_they_are_written_and_the_end_comes_though_a_writer_lives() {
        for is_terminal in [false, true] {
            let relay = Relay::open(is_terminal).expect("a relay");
            let (end, mut left_behind) = (relay.end().expect("an end"), relay.writer.try_clone().expect("a writer"));
            let passed = Mutex::new(Vec::new());
            let (told, news) = mpsc::channel();
            std::thread::scope(|scope| {
                let mut out = Told(&passed, told);
                scope.spawn(move || relay.copy(&mut out, |line| [b"<", line].concat()));
                let mut expected = Vec::new();
                // A line; the beginning of one that can't be a quote, and its end; one that may be, in two parts; bytes that are no text.
                for (part, comes) in [
                    (&b"a\n"[..], &b"<a\n"[..]),
                    (b"b: ", b"b: "),
                    (b"c\n", b"c\n"),
                    (b"  d", b""),
                    (b" e\n", b"<  d e\n"),
                    (b"\xff\0\n", b"<\xff\0\n"),
                ] {
                    left_behind.write_all(part).expect("it is read");
                    expected.extend_from_slice(comes);
                    if comes.is_empty() {
                        // What is not to come would have come by then, unless the machine is busy.
                        std::thread::sleep(std::time::Duration::from_millis(50));
                    }
                    loop {
                        let passed = passed.lock().expect("it is whole").clone();
                        assert!(expected.starts_with(&passed), "{}", String::from_utf8_lossy(&passed));
                        if passed == expected {
                            break;
                        }
                        news.recv().expect("more comes");
                    }
                }
                left_behind.write_all(b"  f").expect("it is read");
                end.tell();
            });
            assert!(passed.lock().expect("it is whole").ends_with(b"\n<  f"), "{is_terminal}");
        }
    }
}
