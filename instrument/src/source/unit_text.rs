//! The text of a translation unit about as the compiler reads it: each file stands where another includes it.

use crate::source::syntax::fragment::Fragment;
use crate::source::syntax::token::{Lexed, Line};
use crate::source::syntax::{condition, header};
use std::collections::BTreeMap;
use std::ops::Range;

/// How many times the length of all files the text may have, where files are included again and again.
const MOST_GROWTH: usize = 4;

/// The text, and where each part of it comes from.
pub(crate) struct UnitText {
    pub(crate) text: Vec<u8>,
    /// Where a part begins in the text; its file, and where it begins in that.
    parts: Vec<(usize, usize, usize)>,
}

/// A file with the files that it includes, each behind its directive.
struct File<'a> {
    bytes: &'a [u8],
    includes: Vec<(usize, usize)>,
    /// Whether it is read once, as it says itself.
    once: bool,
}

impl UnitText {
    /// The text of files with these names.
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, (path, _)) in files.iter().enumerate() {
            by_name.entry(path.rsplit('/').next().unwrap_or(path)).or_default().push(index);
        }
        let read: Vec<File> = files.iter().map(|(_, bytes)| read(bytes, files, &by_name)).collect();
        let most = files.iter().map(|(_, bytes)| bytes.len() + 1).sum::<usize>() * MOST_GROWTH;
        let mut unit = Self { text: Vec::new(), parts: Vec::new() };
        let mut seen = vec![false; files.len()];
        for root in 0..files.len() {
            if seen[root] {
                continue;
            }
            let mut work = vec![(root, 0, 0)];
            seen[root] = true;
            while let Some((file, from, next)) = work.pop() {
                let File { bytes, includes, .. } = &read[file];
                let Some((end, included)) = includes.get(next).copied() else {
                    unit.add(file, bytes, from..bytes.len());
                    continue;
                };
                unit.add(file, bytes, from..end);
                work.push((file, end, next + 1));
                let is_open = work.iter().any(|(open, ..)| *open == included);
                let again = !read[included].once && unit.text.len() < most;
                if !is_open && (again || !seen[included]) {
                    seen[included] = true;
                    work.push((included, 0, 0));
                }
            }
        }
        unit
    }

    /// One file behind the other, but for those whose brackets do not match.
    pub(crate) fn of_whole(files: &[(&str, &[u8])]) -> Self {
        let mut unit = Self { text: Vec::new(), parts: Vec::new() };
        for (file, (_, bytes)) in files.iter().enumerate() {
            if Fragment::of_file(&condition::read(bytes)).is_ok() {
                unit.add(file, bytes, 0..bytes.len());
            }
        }
        unit
    }

    fn add(&mut self, file: usize, bytes: &[u8], range: Range<usize>) {
        self.parts.push((self.text.len(), file, range.start));
        self.text.extend_from_slice(&bytes[range]);
        self.text.push(b'\n');
    }

    /// The files that the bytes of the text come from.
    pub(crate) fn files_in(&self, bytes: Range<usize>) -> impl Iterator<Item = usize> {
        let first = self.parts.partition_point(|(begin, ..)| *begin <= bytes.start) - 1;
        self.parts[first..].iter().take_while(move |(begin, ..)| *begin < bytes.end).map(|(_, file, _)| *file)
    }

    /// The file that the byte of the text comes from, and its place there.
    pub(crate) fn place(&self, at: usize) -> (usize, usize) {
        let part = self.parts.partition_point(|(begin, ..)| *begin <= at) - 1;
        let (begin, file, offset) = self.parts[part];
        (file, offset + at - begin)
    }
}

fn read<'a>(bytes: &'a [u8], files: &[(&str, &[u8])], by_name: &BTreeMap<&str, Vec<usize>>) -> File<'a> {
    let Lexed { directives, .. } = condition::read(bytes);
    let target = |span: &Range<usize>| {
        let (name, _) = header::included(&bytes[span.clone()])?;
        let mut name = std::str::from_utf8(name).ok()?;
        while let Some(rest) = name.strip_prefix("./").or_else(|| name.strip_prefix("../")) {
            name = rest;
        }
        let ends = |path: &str| path.strip_suffix(name).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'));
        let mut candidates = by_name.get(name.rsplit('/').next()?)?.iter().copied();
        candidates.find(|index| ends(files[*index].0))
    };
    let arms = condition::arms(&directives);
    let includes = directives.iter().zip(&arms).filter(|(directive, arm)| directive.line == Line::Include && arm.live);
    let includes = includes.filter_map(|(directive, _)| Some((directive.span.end, target(&directive.span)?))).collect();
    let has_guard = directives
        .first()
        .is_some_and(|first| matches!(first.line, Line::If(_)) && bytes[first.span.clone()].windows(6).any(|word| word == b"ifndef"));
    let once =
        has_guard || directives.iter().any(|directive| directive.line == Line::Pragma && bytes[directive.span.clone()].ends_with(b"once"));
    File { bytes, includes, once }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::syntax::token::lex;

    #[test]
    fn files_stand_where_they_are_included() {
        let files: &[(&str, &[u8])] = &[
            ("/p/a.cu", b"#if 0\n#include \"once.h\"\n#endif\nA {\n#include \"sub/piece.inc\"\n}\n#include \"../p/once.h\"\n#include \"sub/piece.inc\"\n"),
            ("/p/once.h", b"#pragma once\n#include \"a.cu\"\nONCE\n"),
            ("/p/sub/piece.inc", b"PIECE\n#include \"once.h\"\n"),
            ("/p/other.h", b"OTHER"),
        ];
        let unit = UnitText::new(files);
        let words: Vec<(&[u8], (usize, usize))> = lex(&unit.text, 0..unit.text.len(), false)
            .tokens
            .iter()
            .filter(|token| unit.text[token.range()].iter().all(u8::is_ascii_uppercase))
            .map(|token| (&unit.text[token.range()], unit.place(token.start as usize)))
            .collect();
        let expected: [(&[u8], (usize, usize)); 5] =
            [(b"A", (0, 31)), (b"PIECE", (2, 0)), (b"ONCE", (1, 29)), (b"PIECE", (2, 0)), (b"OTHER", (3, 0))];
        assert_eq!(words, expected);
    }
}
