//! From paths of an overlay back to those that the user's own compilation would name.
//!
//! A path of an overlay is `VIEW/rN/REST`, where `N` stands for a folder as the user spelled it. Where the preprocessor has
//! followed links, it is `VIEW/tree/PATH`. `VIEW` holds a name that no source can guess. So the text is replaced wherever it
//! stands: in line markers, in what `__FILE__` became, in messages.

use memchr::memmem::Finder;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// What stands in front of sources, on either side.
const PRELUDES: [&[u8]; 2] = [b"prelude.cuh", b"host.cuh"];

/// Path that stands for the prelude: in angle brackets, as the preprocessor's own, which nvcc leaves out of dependencies.
const PRELUDE: &[u8] = b"<cuinstr>";

/// Translates the paths of one overlay.
pub(super) struct Translator {
    /// The overlay's folder and a slash, as it is.
    plain: Finder<'static>,
    /// The same as it stands in a string literal.
    escaped: Finder<'static>,
    /// Each root as the user spelled it, with the slash behind it if it is not empty.
    roots: Vec<Vec<u8>>,
}

impl Translator {
    /// For the folder of an overlay, and the spellings of its roots.
    pub(super) fn new(overlay: &[u8], roots: Vec<Vec<u8>>) -> Self {
        let mut folder = overlay.to_vec();
        folder.push(b'/');
        Self { plain: Finder::new(&folder).into_owned(), escaped: Finder::new(&escape(&folder)).into_owned(), roots }
    }

    /// Writes preprocessed text.
    ///
    /// # Errors
    /// If that fails.
    pub(super) fn preprocessed(&self, text: &[u8], out: &mut impl Write) -> io::Result<()> {
        translate(&self.escaped, text, |part| out.write_all(part), |root| escape(&self.roots[root]), self.roots.len())
    }

    /// A message for people.
    pub(super) fn message(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let mut write = |part: &[u8]| {
            out.extend_from_slice(part);
            Ok::<(), io::Error>(())
        };
        // A vector takes whatever it is given.
        let _ = translate(&self.plain, text, &mut write, |root| self.roots[root].clone(), self.roots.len());
        out
    }

    /// All files that line markers of the text name, as they are named, with whether they count as a system's.
    pub(super) fn line_markers(text: &[u8]) -> BTreeSet<(Vec<u8>, bool)> {
        let mut names = BTreeSet::new();
        // Most markers follow upon others of the same file.
        let mut seen: BTreeSet<&[u8]> = BTreeSet::new();
        let starts = memchr::memmem::find_iter(text, b"\n# ").map(|at| at + 1);
        for start in text.starts_with(b"# ").then_some(0).into_iter().chain(starts) {
            let line = &text[start..];
            let line = &line[..memchr::memchr(b'\n', line).unwrap_or(line.len())];
            let name = memchr::memchr(b'"', line).map_or(line, |at| &line[at..]);
            if seen.insert(name) {
                names.extend(Self::line_marker(line));
            }
        }
        names
    }

    /// The file that a line marker names, as it is named, and whether it counts as a system's. Ends of included files are no news.
    fn line_marker(line: &[u8]) -> Option<(Vec<u8>, bool)> {
        let rest = line.strip_prefix(b"# ")?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let rest = rest[digits..].strip_prefix(b" \"").filter(|_| digits > 0)?;
        let mut name = Vec::new();
        let mut bytes = rest.iter();
        loop {
            match bytes.next()? {
                b'"' => break,
                b'\\' => match bytes.next()? {
                    // Older compilers write what is no ASCII in octal.
                    first @ b'0'..=b'3'
                        if bytes.as_slice().len() >= 2 && bytes.as_slice()[..2].iter().all(|byte| (b'0'..=b'7').contains(byte)) =>
                    {
                        let (second, third) = (bytes.next()?, bytes.next()?);
                        name.push((first - b'0') << 6 | (second - b'0') << 3 | (third - b'0'));
                    }
                    other => name.push(*other),
                },
                other => name.push(*other),
            }
        }
        let flags = bytes.as_slice();
        let has = |flag: u8| flags.split(u8::is_ascii_whitespace).any(|word| word == [flag]);
        Some((name, has(b'3')))
    }
}

fn translate<E>(
    folder: &Finder,
    text: &[u8],
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
    root: impl Fn(usize) -> Vec<u8>,
    roots: usize,
) -> Result<(), E> {
    let mut copied = 0;
    for found in folder.find_iter(text) {
        if found < copied {
            continue;
        }
        let rest = &text[found + folder.needle().len()..];
        let (replacement, length) = if let Some(name) = PRELUDES.iter().find(|name| rest.starts_with(name)) {
            (PRELUDE.to_vec(), name.len())
        } else if rest.starts_with(b"tree/") {
            (b"/".to_vec(), b"tree/".len())
        } else {
            let digits = rest.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
            let number = rest.strip_prefix(b"r").and_then(|rest| std::str::from_utf8(&rest[..digits]).ok()?.parse::<usize>().ok());
            match number.filter(|number| *number < roots && rest.get(1 + digits) == Some(&b'/')) {
                Some(number) => (root(number), digits + 2),
                None => continue,
            }
        };
        write(&text[copied..found])?;
        write(&replacement)?;
        copied = found + folder.needle().len() + length;
    }
    write(&text[copied..])
}

/// As the preprocessor writes paths in string literals.
fn escape(path: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(path.len());
    for byte in path {
        match byte {
            b'\\' | b'"' => escaped.extend_from_slice(&[b'\\', *byte]),
            b'\n' => escaped.extend_from_slice(b"\\n"),
            other => escaped.push(*other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_the_users_own_wherever_they_stand() {
        let translator = Translator::new(b"/t/s-1/v-2", vec![b"a \"b\"/".to_vec(), Vec::new()]);
        let mut out = Vec::new();
        let text = b"# 1 \"/t/s-1/v-2/r0/x.h\" 1\nf(\"/t/s-1/v-2/r1/../y.cu\", \"/t/s-1/v-2/r2/z\"); # 1 \"/t/s-1/v-2/prelude.cuh\" 1\n";
        translator.preprocessed(text, &mut out).expect("a vector takes it");
        let expected = "# 1 \"a \\\"b\\\"/x.h\" 1\nf(\"../y.cu\", \"/t/s-1/v-2/r2/z\"); # 1 \"<cuinstr>\" 1\n";
        assert_eq!(String::from_utf8_lossy(&out), expected);
        assert_eq!(translator.message(b"/t/s-1/v-2/r0/x.h:3: error"), b"a \"b\"/x.h:3: error");
    }

    #[test]
    fn line_markers_name_files() {
        assert_eq!(Translator::line_marker(b"# 12 \"a\\\"b.h\" 1 3 4\n"), Some((b"a\"b.h".to_vec(), true)));
        assert_eq!(Translator::line_marker(b"# 0 \"<built-in>\"\n"), Some((b"<built-in>".to_vec(), false)));
        assert_eq!(Translator::line_marker(b"# 1 \"\\303\\244.h\" 2\n"), Some(("ä.h".as_bytes().to_vec(), false)));
        let text = b"# 1 \"a\" 1\nint i; # 3 \"b\"\n# 2 \"c\" 1 3\n# 9 \"a\" 1";
        assert_eq!(Translator::line_markers(text), BTreeSet::from([(b"a".to_vec(), false), (b"c".to_vec(), true)]));
        for other in [&b"#pragma once\n"[..], b"# x\n", b"int i;\n", b"# 1 \"open\n"] {
            assert_eq!(Translator::line_marker(other), None);
        }
    }
}
