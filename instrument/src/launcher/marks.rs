//! Marks around what was inserted into a source, which a preprocessor carries into its output.
//!
//! A preprocessor moves text: macros expand, lines of an argument join. So only its output can tell where an insertion ended
//! up. Names of ours stand before and behind each insertion in the overlay's files. They are taken out of the output again,
//! and leave the places. Each mark says where there was space beside it, since it stands between spaces of its own.

use std::ops::Range;

/// What all marks begin with.
const MARK: &[u8] = b"__cuinstr_mark_";

/// Which side of an insertion a mark stands on, and where there was space before there was a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    opens: bool,
    /// Whether the user's own text has space there.
    own_space: bool,
    /// Whether the insertion has.
    our_space: bool,
    /// The line of the source that it stands in.
    line: usize,
    /// How many bytes stand in that line before it that are not the user's.
    shift: usize,
}

impl Mark {
    fn name(self) -> String {
        let spaces = u8::from(self.own_space) + 2 * u8::from(self.our_space);
        format!("__cuinstr_mark_{}{spaces}_{}_{}_", if self.opens { 'o' } else { 'c' }, self.line, self.shift)
    }

    /// The mark whose name this text begins with, and the name's length.
    fn read(text: &[u8]) -> Option<(Self, usize)> {
        let mut parts = text.strip_prefix(MARK)?.splitn(4, |byte| *byte == b'_');
        let (kind, line, shift, rest) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<usize>().ok();
        let &[side @ (b'o' | b'c'), spaces] = kind else { return None };
        let (opens, spaces) = (side == b'o', spaces.checked_sub(b'0').filter(|spaces| *spaces < 4)?);
        let mark = Self { opens, own_space: spaces & 1 != 0, our_space: spaces & 2 != 0, line: number(line)?, shift: number(shift)? };
        Some((mark, text.len() - rest.len()))
    }
}

/// The columns by which our text moves the rest of a line of the source.
#[derive(Debug, Clone, Copy, Default)]
struct Shift {
    line: usize,
    columns: usize,
}

/// A line of a preprocessor's output, and what of it was inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MarkedLine {
    /// The line, by its place in the text.
    pub(super) line: Range<usize>,
    /// What was inserted, by its places in the line.
    pub(super) inserted: Vec<Range<usize>>,
}

/// Puts marks around insertions, which then are larger by these.
pub(super) fn put(text: &[u8], inserted: &mut Vec<Range<usize>>) -> Vec<u8> {
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(inserted.len());
    for range in inserted.drain(..).filter(|range| !range.is_empty()) {
        match joined.last_mut().filter(|last| last.end == range.start) {
            Some(last) => last.end = range.end,
            None => joined.push(range),
        }
    }
    let mut marked = Vec::with_capacity(text.len() + joined.len() * 2 * (MARK.len() + 16));
    let (mut copied, mut line, mut shift) = (0, 1, 0);
    for range in &joined {
        let ours = &text[range.clone()];
        let lines = memchr::memchr_iter(b'\n', &text[copied..range.start]).count();
        (line, shift) = (line + lines, if lines == 0 { shift } else { 0 });
        let (own_space, our_space) = (ends_with_space(&text[..range.start]), ours[0].is_ascii_whitespace());
        let opening = Mark { opens: true, own_space, our_space, line, shift };
        marked.extend_from_slice(&text[copied..range.start]);
        let start = marked.len();
        // The column of a line's first token is kept in the output.
        marked.extend_from_slice(if own_space { b"" } else { b" " });
        marked.extend_from_slice(opening.name().as_bytes());
        marked.push(b' ');
        marked.extend_from_slice(ours);
        marked.push(b' ');
        let (own_space, our_space) = (begins_with_space(&text[range.end..]), ends_with_space(ours));
        let closing = Mark { opens: false, own_space, our_space, line, shift: shift + marked.len() - start };
        marked.extend_from_slice(closing.name().as_bytes());
        marked.extend_from_slice(if own_space { b"" } else { b" " });
        shift += marked.len() - start;
        inserted.push(start..marked.len());
        copied = range.end;
    }
    marked.extend_from_slice(&text[copied..]);
    marked
}

/// Whether the text has marks.
pub(super) fn are_in(text: &[u8]) -> bool {
    memchr::memmem::find(text, MARK).is_some()
}

/// Takes the marks out of a preprocessor's output; the lines that they stood in.
pub(super) fn take(text: &[u8]) -> (Vec<u8>, Vec<MarkedLine>) {
    let mut out = Vec::with_capacity(text.len());
    let mut events: Vec<(usize, bool)> = Vec::new();
    let mut copied = 0;
    let mut shift = Shift::default();
    for at in memchr::memmem::find_iter(text, MARK) {
        let Some((mark, length)) = Mark::read(&text[at..]) else { continue };
        copy(&text[copied..at], shift, &mut out);
        shift = Shift { line: mark.line, columns: mark.shift + length + usize::from(!mark.own_space) };
        copied = at + length;
        // A line's first mark has the line's own indentation before it.
        if !(mark.opens && mark.own_space) && out.last() == Some(&b' ') {
            out.pop();
        }
        copied += usize::from(text.get(copied) == Some(&b' '));
        let next = text.get(copied).copied().unwrap_or(b'\n');
        let last = out.last().copied().unwrap_or(b'\n');
        let wanted = mark.own_space || mark.our_space || join(last, next);
        let space: &[u8] = if wanted && !last.is_ascii_whitespace() && next != b'\n' { b" " } else { b"" };
        // The space is the user's before an insertion, or the insertion's own at its end. Else it lies on the other side.
        if mark.opens == mark.own_space {
            out.extend_from_slice(space);
            events.push((out.len(), mark.opens));
        } else {
            events.push((out.len(), mark.opens));
            out.extend_from_slice(space);
        }
    }
    copy(&text[copied..], shift, &mut out);
    let lines = lines(&out, &events);
    (out, lines)
}

/// Copies text behind a mark. Where a macro of the system's stands in a line, the preprocessor breaks the line, and gives the
/// rest the column that it has in the source. That of the user's own source is smaller.
fn copy(text: &[u8], shift: Shift, out: &mut Vec<u8>) {
    let Some(mut end) = memchr::memchr(b'\n', text).map(|at| at + 1).filter(|_| shift.columns > 0) else {
        out.extend_from_slice(text);
        return;
    };
    let mut copied = 0;
    let same_line = |marker: &[u8]| {
        let number = marker.strip_prefix(b"# ").and_then(|rest| rest.split(|byte| *byte == b' ').next());
        number.is_some_and(|number| number == shift.line.to_string().as_bytes())
            && !marker.ends_with(b"\" 1\n")
            && !marker.ends_with(b"\" 2\n")
    };
    while let Some(marker) =
        memchr::memchr(b'\n', &text[end..]).map(|at| end..end + at + 1).filter(|marker| same_line(&text[marker.clone()]))
    {
        out.extend_from_slice(&text[copied..marker.end]);
        let spaces = text[marker.end..].iter().take_while(|byte| **byte == b' ').count();
        copied = marker.end + spaces.min(shift.columns);
        let Some(at) = memchr::memchr(b'\n', &text[copied..]) else { break };
        end = copied + at + 1;
    }
    out.extend_from_slice(&text[copied..]);
}

/// The lines with insertions, of the places where these begin and end. Where one has no end in its line, nothing is known of the line.
fn lines(text: &[u8], events: &[(usize, bool)]) -> Vec<MarkedLine> {
    let mut lines = Vec::new();
    let mut rest = events;
    while let Some((first, _)) = rest.first() {
        let start = memchr::memrchr(b'\n', &text[..*first]).map_or(0, |at| at + 1);
        let end = memchr::memchr(b'\n', &text[*first..]).map_or(text.len(), |at| first + at);
        let count = rest.iter().take_while(|(at, _)| *at <= end).count();
        let (mut depth, mut open, mut inserted) = (0_usize, 0, Vec::new());
        let mut is_whole = true;
        for (at, opens) in &rest[..count] {
            match (opens, depth) {
                (true, 0) => (depth, open) = (1, *at),
                (true, _) => depth += 1,
                (false, 0) => is_whole = false,
                (false, 1) => {
                    depth = 0;
                    inserted.push(open - start..at - start);
                }
                (false, _) => depth -= 1,
            }
        }
        if is_whole && depth == 0 {
            lines.push(MarkedLine { line: start..end, inserted });
        }
        rest = &rest[count..];
    }
    lines
}

/// Whether two characters side by side may be one token.
fn join(left: u8, right: u8) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'"' | b'\'' | b'.' | b'\\') || !byte.is_ascii();
    let is_operator = |byte: u8| b"+-*/%<>=!&|^:.#?".contains(&byte);
    is_word(left) && is_word(right) || is_operator(left) && is_operator(right)
}

fn ends_with_space(text: &[u8]) -> bool {
    let text = text.strip_suffix(b"\\\n").unwrap_or(text);
    text.last().is_none_or(u8::is_ascii_whitespace) || text.ends_with(b"*/")
}

fn begins_with_space(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\\\n").unwrap_or(text);
    text.first().is_none_or(u8::is_ascii_whitespace) || text.starts_with(b"/*") || text.starts_with(b"//")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with its insertions, which stand in brackets here, marked.
    fn marked(text: &str) -> Vec<u8> {
        let (mut plain, mut inserted) = (Vec::new(), Vec::new());
        for part in text.split_inclusive(']') {
            let (own, ours) = part.split_once('[').unwrap_or((part, ""));
            plain.extend_from_slice(own.as_bytes());
            let start = plain.len();
            plain.extend_from_slice(ours.trim_end_matches(']').as_bytes());
            inserted.push(start..plain.len());
        }
        // A preprocessor makes one space of several, but for those that a line begins with.
        let marked = String::from_utf8(put(&plain, &mut inserted)).expect("it is text");
        let line = |line: &str| {
            let own = line.trim_start();
            line[..line.len() - own.len()].to_owned() + &own.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        };
        marked.split_inclusive('\n').map(line).collect::<String>().into_bytes()
    }

    /// What is left of a preprocessor's output, with brackets around insertions.
    fn taken(text: &[u8]) -> String {
        let (out, lines) = take(text);
        let mut places: Vec<(usize, char)> = lines
            .iter()
            .flat_map(|MarkedLine { line, inserted }| {
                inserted.iter().flat_map(|range| [(line.start + range.start, '['), (line.start + range.end, ']')])
            })
            .collect();
        let mut text = String::from_utf8(out).expect("it is text");
        places.reverse();
        for (at, bracket) in places {
            text.insert(at, bracket);
        }
        text
    }

    #[test]
    fn marks_that_are_put_are_taken_and_leave_the_places() {
        for text in
            ["for (;;[ tick(),] i++)[ {] x;\n  y;[ }]\n", "if (a) [w(b) && (]c[)] d\n[e ]f", "[a]", "int a;[ b;]\n\t[c(); ]d;\n", "none\n"]
        {
            assert_eq!(taken(&marked(text)), text);
        }
    }

    /// Any tokens, some of them inserted, with space on one side of an insertion's ends, on none where the tokens stay two, and lines in between.
    #[test]
    fn any_insertions_leave_their_places() {
        const TOKENS: [&str; 12] = ["a", "b7", "(", ")", ";", "{", "}", "+", "<", "\"s\"", "1.5", ","];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut below = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % bound as u64) as usize
        };
        for _ in 0..20_000 {
            let (mut text, mut last) = (String::new(), None);
            for part in 0..=below(6) {
                let is_ours = part % 2 == 1;
                if is_ours {
                    text.push('[');
                }
                let begins = text.len();
                for nth in 0..=below(3) {
                    let token = TOKENS[below(TOKENS.len())];
                    let joins = last.is_some_and(|last: u8| join(last, token.as_bytes()[0]));
                    // At an insertion's begin the space is the user's where there is any, at its end the insertion's.
                    let is_edge = nth == 0;
                    if joins || below(2) == 0 && last.is_some() && !is_edge {
                        text.push(' ');
                    }
                    text.push_str(token);
                    last = token.bytes().last();
                }
                if is_ours {
                    text.push(']');
                } else if begins > 0 && below(4) == 0 {
                    text.push_str("\n    x");
                    last = Some(b'x');
                }
            }
            text.push('\n');
            assert_eq!(taken(&marked(&text)), text);
        }
    }

    #[test]
    fn space_that_a_preprocessor_adds_or_takes_is_no_part_of_a_token() {
        let open = |spaces: u8| format!("__cuinstr_mark_o{spaces}_1_0_");
        let close = |spaces: u8| format!("__cuinstr_mark_c{spaces}_1_0_");
        // As in a macro's argument, where what was a line's end is a space.
        assert_eq!(taken(format!("a; {} b; {} c\n", open(1), close(1)).as_bytes()), "a; [b;] c\n");
        // A preprocessor that leaves the spaces out.
        assert_eq!(taken(format!("a{}b{}c\n", open(0), close(0)).as_bytes()), "a[ b ]c\n");
        // An argument that is inserted once more, and one without an end.
        assert_eq!(taken(format!("x {0} y {0} z {1} w {1} v\n", open(1), close(1)).as_bytes()), "x [y z w] v\n");
        assert_eq!(taken(format!("x {} y\nz {} v\n", open(1), close(1)).as_bytes()), "x y\nz v\n");
        assert_eq!(
            taken(b"__cuinstr_mark_o9_1_0_ __cuinstr_mark_ __cuinstr_mark_o1_x_0_"),
            "__cuinstr_mark_o9_1_0_ __cuinstr_mark_ __cuinstr_mark_o1_x_0_"
        );
    }

    #[test]
    fn the_rest_of_a_broken_line_has_the_users_column() {
        let text = marked("a;\n{[ b();] assert(c); d;\n");
        let shift = text.len() - "a;\n{ assert(c); d;\n".len() + 1;
        let text = String::from_utf8(text).expect("it is text");
        let indent = " ".repeat(shift);
        let broken = text.replace("assert(c);", &format!("\n# 2 \"a.cu\" 3 4\n{indent}  (void)\n# 2 \"a.cu\"\n{indent}         c;"));
        let expected = "a;\n{[ b();]\n# 2 \"a.cu\" 3 4\n  (void)\n# 2 \"a.cu\"\n         c; d;\n";
        assert_eq!(taken(broken.as_bytes()), expected);
        // A line of its own, and a file of its own, have nothing to do with it.
        let other = text.replace(" d;\n", &format!("\n# 3 \"a.cu\"\n{indent} e;\n# 2 \"b.cuh\" 1\n{indent} f;\n"));
        assert!(taken(other.as_bytes()).contains(&format!("# 3 \"a.cu\"\n{indent} e;\n# 2 \"b.cuh\" 1\n{indent} f;\n")));
    }
}
