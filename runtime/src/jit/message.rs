//! What the compiler said about rewritten text, told about the text that the user wrote.
//!
//! The rewriter never adds a line, so line numbers are right as they are. The source line that the compiler prints
//! holds our text, and the caret below counts it. Both are put back. The line is found by its number, or under the
//! user's own `#line` by its text.

use std::collections::HashMap;
use std::ops::Range;

/// How the compiler indents a source line and the caret under it.
const INDENT: &[u8] = b"  ";

/// One message of the compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// How bad it is.
    pub severity: Severity,
    /// File that it is about.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1, of the user's line; absent if the compiler showed none.
    pub column: Option<u32>,
    /// What was said, over several lines if there is more to it, without the source line.
    pub text: String,
}

/// How bad a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A remark.
    Note,
    /// A warning.
    Warning,
    /// An error; there is no module.
    Error,
}

/// The compiler's log for the user.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) messages: Vec<Message>,
    pub(super) text: String,
}

/// Translates the log of a compilation of `output`, in which our text stands in the ranges `inserted`.
pub(super) fn translate(log: &[u8], output: &[u8], inserted: &[Range<usize>]) -> Translated {
    let lines = Lines::new(output, inserted);
    let mut messages: Vec<Message> = Vec::new();
    let mut text = String::new();
    let mut say = |line: &[u8]| {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    };
    let mut rest = log.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).peekable();
    // Whether the lines that follow still belong to the last message.
    let mut is_open = false;
    while let Some(line) = rest.next() {
        if let Some(message) = header(line) {
            messages.push(message);
            is_open = true;
            say(line);
        } else if line.is_empty() {
            is_open = false;
            say(line);
        } else if let (Some(message), Some(printed), Some(caret)) =
            (messages.last_mut().filter(|_| is_open), line.strip_prefix(INDENT), rest.peek().and_then(|line| caret(line)))
        {
            rest.next();
            let (shown, column) = lines.original(message.line, printed, caret).unwrap_or((printed.into(), caret));
            message.column = u32::try_from(column + 1).ok();
            say(&[INDENT, &shown].concat());
            let before = String::from_utf8_lossy(&shown[..column.min(shown.len())]);
            // Tabs stay tabs, so that the caret stands below its letter.
            let blank: String = before.chars().map(|c| if c == '\t' { c } else { ' ' }).collect();
            say(format!("  {blank}^").as_bytes());
        } else {
            if let Some(message) = messages.last_mut().filter(|_| is_open) {
                message.text.push('\n');
                message.text.push_str(String::from_utf8_lossy(line).trim());
            }
            say(line);
        }
    }
    // The log ends with a line's end and a zero.
    let text = text.trim_end_matches(['\n', '\0']);
    Translated { messages, text: if text.is_empty() { String::new() } else { format!("{text}\n") } }
}

/// `FILE(LINE): error: text`, and the like.
fn header(line: &[u8]) -> Option<Message> {
    let line = std::str::from_utf8(line).ok()?;
    for (word, severity) in [
        ("): error", Severity::Error),
        ("): catastrophic error", Severity::Error),
        ("): internal error", Severity::Error),
        ("): warning", Severity::Warning),
        ("): remark", Severity::Note),
        ("): note", Severity::Note),
    ] {
        let Some((place, rest)) = line.split_once(word) else { continue };
        let Some((file, number)) = place.rsplit_once('(') else { continue };
        // Between the word and the colon may stand the message's number.
        let (Ok(number), Some((_, text))) = (number.parse(), rest.split_once(": ")) else { continue };
        return Some(Message { severity, file: file.to_owned(), line: number, column: None, text: text.to_owned() });
    }
    None
}

/// The offset that a line with nothing but a caret points to.
fn caret(line: &[u8]) -> Option<usize> {
    let line = line.strip_prefix(INDENT)?;
    let blanks = line.strip_suffix(b"^")?;
    blanks.iter().all(|byte| matches!(byte, b' ' | b'\t')).then_some(blanks.len())
}

/// Lines of the rewritten text behind the prelude.
struct Lines<'a> {
    output: &'a [u8],
    inserted: &'a [Range<usize>],
    /// Start of each line and its text.
    starts: Vec<(usize, &'a [u8])>,
    by_text: HashMap<&'a [u8], usize>,
}

impl<'a> Lines<'a> {
    fn new(output: &'a [u8], inserted: &'a [Range<usize>]) -> Self {
        // The first insertion is the prelude, which ends with `#line 1`.
        let mut at = inserted.first().map_or(0, |range| range.end);
        let mut starts = Vec::new();
        let mut by_text = HashMap::new();
        for line in output[at..].split(|byte| *byte == b'\n') {
            let shown = line.strip_suffix(b"\r").unwrap_or(line);
            by_text.entry(shown).or_insert(starts.len());
            starts.push((at, shown));
            at += line.len() + 1;
        }
        Self { output, inserted, starts, by_text }
    }

    /// The user's line for one that the compiler printed, and the offset in it for one in the printed line.
    fn original(&self, number: u32, shown: &[u8], column: usize) -> Option<(Vec<u8>, usize)> {
        let numbered = (number as usize).checked_sub(1).filter(|index| self.starts.get(*index).is_some_and(|(_, line)| *line == shown));
        let (start, line) = self.starts[numbered.or_else(|| self.by_text.get(shown).copied())?];
        let end = start + line.len();
        let first = self.inserted.partition_point(|range| range.end <= start);
        let mut original = Vec::with_capacity(line.len());
        let mut mapped = None;
        let mut at = start;
        let pointed = start + column.min(line.len());
        for range in self.inserted[first..].iter().take_while(|range| range.start < end) {
            // What points into our text points to where it stands.
            if mapped.is_none() && pointed < range.end {
                mapped = Some(original.len() + pointed.min(range.start).saturating_sub(at));
            }
            original.extend_from_slice(&self.output[at..range.start.max(at)]);
            at = range.end.min(end).max(at);
        }
        let mapped = mapped.unwrap_or(original.len() + pointed.saturating_sub(at));
        original.extend_from_slice(&self.output[at..end]);
        Some((original, mapped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rewritten text from one in which ours is marked by «…», and where ours stands.
    fn marked(text: &str) -> (Vec<u8>, Vec<Range<usize>>) {
        let mut output = Vec::new();
        let mut inserted = Vec::new();
        for (index, piece) in text.split(['«', '»']).enumerate() {
            if index % 2 == 1 {
                inserted.push(output.len()..output.len() + piece.len());
            }
            output.extend_from_slice(piece.as_bytes());
        }
        (output, inserted)
    }

    const TEXT: &str = "«prelude\n#line 1\n»__global__ void f()\n{« guard;»\n\tfor (;;« poll») \u{e4} = y;\n}\n«end\n»";

    /// The log for one message about a line of [`TEXT`] with the caret below the first `at` in it.
    fn log(number: u32, at: &str) -> String {
        let text: String = TEXT.chars().filter(|c| !matches!(c, '«' | '»')).collect();
        let line = text.lines().nth(number as usize + 1).expect("a line of the text");
        let before = line.split(at).next().unwrap_or_default();
        let blank: String = before.bytes().map(|byte| if byte == b'\t' { '\t' } else { ' ' }).collect();
        format!("k.cu({number}): error: no such thing\n  {line}\n  {blank}^\n          detected here\n\n1 error detected.\n\0")
    }

    fn translated(log: &str) -> Translated {
        let (output, inserted) = marked(TEXT);
        translate(log.as_bytes(), &output, &inserted)
    }

    #[test]
    fn line_and_caret_are_the_users_own() {
        let Translated { messages, text } = translated(&log(3, "y"));
        assert_eq!(
            text,
            "k.cu(3): error: no such thing\n  \tfor (;;) \u{e4} = y;\n  \t             ^\n          detected here\n\n1 error detected.\n"
        );
        let expected = Message {
            severity: Severity::Error,
            file: "k.cu".into(),
            line: 3,
            column: Some(16),
            text: "no such thing\ndetected here".into(),
        };
        assert_eq!(messages, [expected]);
    }

    #[test]
    fn what_points_into_our_text_points_to_where_it_stands() {
        for (number, at, column) in [(3, "oll", 9), (3, ")", 9), (3, "for", 2), (2, "{", 1), (2, "guard", 2), (1, "void", 12)] {
            assert_eq!(translated(&log(number, at)).messages[0].column, Some(column), "{at}");
        }
    }

    #[test]
    fn a_line_under_another_number_is_known_by_its_text() {
        let Translated { messages, text } = translated(&log(3, "y").replace("k.cu(3)", "generated.y(4711)"));
        assert!(text.starts_with("generated.y(4711): error: no such thing\n  \tfor (;;) \u{e4} = y;\n"), "{text}");
        assert_eq!((messages[0].line, messages[0].column), (4711, Some(16)));
    }

    #[test]
    fn what_is_about_another_file_stays_as_it_is() {
        let log = "a.h(3): warning #177-D: unused\n  int unused;\n      ^\n\nRemark: more\n";
        let Translated { messages, text } = translated(log);
        assert_eq!(text, log);
        assert_eq!((messages[0].severity, messages[0].column, messages[0].text.as_str()), (Severity::Warning, Some(5), "unused"));
        assert_eq!(translated("\0"), Translated { messages: Vec::new(), text: String::new() });
    }

    proptest! {
        #[test]
        fn any_log_of_any_text_is_translated(text in "[a-z \t\n«»\u{e4}]{0,60}", log in "(k\\.cu\\([0-4]\\): error: x\n|  [a-z \t]{0,9}\n|  [ \t]{0,9}\\^\n|\n|\\PC){0,12}") {
            let (output, inserted) = marked(&text);
            let _ = translate(log.as_bytes(), &output, &inserted);
            for (number, line) in output.split(|byte| *byte == b'\n').enumerate() {
                for column in 0..line.len() {
                    let log = [format!("k({number}): error: x\n  ").as_bytes(), line, b"\n  ", " ".repeat(column).as_bytes(), b"^\n"].concat();
                    let _ = translate(&log, &output, &inserted);
                }
            }
        }
    }
}
