//! Which files a source names: `#include`, `#include_next`, `#import` and `__has_include`, by their text alone.
//!
//! Comments, strings and the arms of `#if` are not told apart. A file that is named and never read costs a little time, and is judged only if the
//! preprocessor does read it; what this does not see (a name that a macro makes, a digraph) the preprocessor's output shows.

use memchr::memchr_iter;
use memchr::memmem;
use std::ops::Range;

/// One name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Where the name stands in the text, without its quotes.
    pub name: Range<usize>,
    /// Whether it is quoted, so that the folder of the file itself comes first.
    pub quoted: bool,
    /// Whether the search goes on behind the folder that the file itself was found in.
    pub next: bool,
}

/// What a text names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    /// Names that it spells out.
    pub references: Vec<Reference>,
    /// Whether it may name more, by ways that are not followed here.
    pub others: bool,
}

/// All names in the text.
#[must_use]
pub fn names(text: &[u8]) -> Names {
    let mut names = Names { others: memmem::find(text, b"%:").is_some(), ..Names::default() };
    for hash in memchr_iter(b'#', text) {
        let at = skip_blanks(text, hash + 1);
        let end = at + text[at..].iter().take_while(|byte| byte.is_ascii_lowercase() || **byte == b'_').count();
        let next = match &text[at..end] {
            b"include" | b"import" => false,
            b"include_next" => true,
            word => {
                // A word that goes on in the next line may be any.
                names.others |= word == b"embed" || text[end..].starts_with(b"\\");
                continue;
            }
        };
        names.add(text, end, next);
    }
    for at in memmem::find_iter(text, b"__has_include") {
        let next = text[at..].starts_with(b"__has_include_next");
        let end = at + if next { b"__has_include_next".len() } else { b"__has_include".len() };
        let bracket = skip_blanks(text, end);
        if text.get(bracket) == Some(&b'(') {
            names.add(text, bracket + 1, next);
        }
    }
    names
}

impl Names {
    /// The name that follows; one that a macro makes is another.
    fn add(&mut self, text: &[u8], at: usize, next: bool) {
        let at = skip_blanks(text, at);
        let close = match text.get(at) {
            Some(b'"') => b'"',
            Some(b'<') => b'>',
            _ => {
                self.others = true;
                return;
            }
        };
        let start = at + 1;
        let Some(length) = text[start..].iter().position(|byte| *byte == close || *byte == b'\n') else { return };
        let name = start..start + length;
        if text[name.end] == close && length > 0 {
            self.references.push(Reference { name, quoted: close == b'"', next });
        }
    }
}

/// Behind blanks, comments and lines that go on.
fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    loop {
        let rest = &text[at.min(text.len())..];
        at += match rest {
            [b' ' | b'\t' | b'\x0b' | b'\x0c', ..] => 1,
            [b'\\', b'\n', ..] => 2,
            [b'\\', b'\r', b'\n', ..] => 3,
            [b'/', b'*', inner @ ..] => match memmem::find(inner, b"*/") {
                Some(length) => length + 4,
                None => return at,
            },
            _ => return at,
        };
    }
}

/// The text with other names of included files, if there are any. Edits count in the text as it was before `inserted` was put in.
#[must_use]
pub fn edited(text: &[u8], inserted: &[Range<usize>], edits: &[(Range<usize>, Vec<u8>)]) -> Option<Vec<u8>> {
    if edits.is_empty() {
        return None;
    }
    let mut changed = text.to_vec();
    let mut edits: Vec<_> = edits.iter().collect();
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    for (range, name) in edits {
        let mut start = range.start;
        for insertion in inserted {
            if insertion.start > start {
                break;
            }
            start += insertion.len();
        }
        changed.splice(start..start + range.len(), name.iter().copied());
    }
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_however_they_are_spelled() {
        let text = b"#include \"a.h\"\n  # /* x */ include \\\n <b/c.h>\n#include_next <d.h>\n#import \"e.h\"\n#if __has_include( \"f.h\") && __has_include_next(<g.h>)\n\
                     #include MACRO\n#define include_path \"no.h\"\n#include \"open\n#include \"\"\n#";
        let names: Vec<_> = names(text)
            .references
            .into_iter()
            .map(|found| (String::from_utf8_lossy(&text[found.name]).into_owned(), found.quoted, found.next))
            .collect();
        let expected = [
            ("a.h", true, false),
            ("b/c.h", false, false),
            ("d.h", false, true),
            ("e.h", true, false),
            ("f.h", true, false),
            ("g.h", false, true),
        ];
        assert_eq!(names, expected.map(|(name, quoted, next)| (name.to_owned(), quoted, next)));
    }

    #[test]
    fn what_is_not_followed_is_known_to_be_there() {
        for (text, others) in [
            (&b"#include <a.h>\n#pragma once\n#if defined(__has_include) && __has_include(\"b.h\")\n"[..], false),
            (b"#include NAME\n", true),
            (b"#if __has_include(NAME)\n", true),
            (b"%:include \"a.h\"\n", true),
            (b"#inc\\\nlude \"a.h\"\n", true),
            (b"#embed \"a.bin\"\n", true),
        ] {
            assert_eq!(names(text).others, others, "{}", String::from_utf8_lossy(text));
        }
    }
}
