//! Diagnostics as text, in three formats. Nothing here touches a file or a terminal.
//!
//! Spans are offsets in the bytes as they were read. Bytes that are no UTF-8 are shown as one `?` each, so that offsets stay true.

use crate::common::diagnostic::{Diagnostic, Severity};
use serde_json::{Value, json};
use std::ops::Range;

/// A source that diagnostics point into.
#[derive(Debug, Clone)]
pub struct Source {
    path: String,
    text: String,
    lines: Vec<usize>,
}

/// A place for people: both counted from 1, the column in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Line; `\n` ends one.
    pub line: usize,
    /// Column in bytes.
    pub column: usize,
}

impl Source {
    /// Prepares the bytes of a file for rendering. The path is shown as given, control characters aside.
    #[must_use]
    pub fn new(path: &str, bytes: &[u8]) -> Self {
        let text = text_of_same_length(bytes);
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { path: one_line(path), text, lines }
    }

    /// Where an offset lies. Offsets beyond the end count as the end.
    #[must_use]
    pub fn position(&self, offset: usize) -> Position {
        let offset = offset.min(self.text.len());
        let line = self.lines.partition_point(|&start| start <= offset);
        Position { line, column: offset - self.lines[line - 1] + 1 }
    }

    /// The bytes of a line from a column on, both counted from 1; column 0 stands for the first that is not blank. Blanks at its end are
    /// left out, and lines beyond the end count as the end.
    #[must_use]
    pub fn line(&self, line: usize, column: usize) -> Range<usize> {
        let start = line.checked_sub(1).and_then(|at| self.lines.get(at)).copied().unwrap_or(self.text.len());
        let end = self.lines.get(line).copied().unwrap_or(self.text.len()).max(start);
        let text = self.text[start..end].trim_end_matches(['\n', '\r']);
        let blank = text.len() - text.trim_start().len();
        let from = start + column.checked_sub(1).unwrap_or(blank).min(text.len());
        from..(start + text.trim_end().len()).max(from)
    }

    /// The span, cut to what the text has, its ends moved outward to whole characters.
    fn clamp(&self, span: &Range<usize>) -> Range<usize> {
        let mut start = span.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let mut end = span.end.clamp(start, self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        start..end
    }

    /// Whole lines that hold all the spans, and the number of the first.
    #[cfg(feature = "cli")]
    fn window(&self, spans: impl Iterator<Item = Range<usize>>) -> (Range<usize>, usize) {
        let (mut start, mut end) = (usize::MAX, 0);
        for span in spans {
            start = start.min(span.start);
            end = end.max(span.end);
        }
        let first = self.position(start).line;
        let last = self.position(end).line;
        (self.lines[first - 1]..self.lines.get(last).copied().unwrap_or(self.text.len()), first)
    }
}

/// rustc's look, over several lines, with colours on request. Ends with an empty line.
#[cfg(feature = "cli")]
#[must_use]
pub fn full(source: &Source, diagnostic: &Diagnostic, colour: bool) -> String {
    use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

    let level = match diagnostic.severity {
        Severity::Note => Level::NOTE,
        Severity::Warning => Level::WARNING,
        Severity::Error => Level::ERROR,
    };
    let mut group = annotate_snippets::Group::with_title(level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.id()));
    if let Some(primary) = &diagnostic.primary {
        let labels = std::iter::once((AnnotationKind::Primary, primary))
            .chain(diagnostic.secondary.iter().map(|label| (AnnotationKind::Context, label)))
            .map(|(kind, label)| (kind, source.clamp(&label.span), label.message.as_str()))
            .collect::<Vec<_>>();
        // Only the lines in question go in: the renderer walks all it is given, and an input may be large.
        let (window, first_line) = source.window(labels.iter().map(|(_, span, _)| span.clone()));
        let mut snippet = Snippet::source(&source.text[window.clone()]).line_start(first_line).path(source.path.as_str());
        for (kind, span, message) in labels {
            let mut annotation = kind.span(span.start - window.start..span.end - window.start);
            if !message.is_empty() {
                annotation = annotation.label(message);
            }
            snippet = snippet.annotation(annotation);
        }
        group = group.element(snippet);
    } else {
        group = group.element(Origin::path(source.path.as_str()));
    }
    if let Some(function) = &diagnostic.function {
        group = group.element(Level::NOTE.message(format!("in `{function}`")));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut text = renderer.render(&[group]);
    text.push_str("\n\n");
    text
}

/// One line: `path:line:column: warning[CI010]: message`; without a place, `path: error[CI003]: message`.
#[must_use]
pub fn short(source: &Source, diagnostic: &Diagnostic) -> String {
    let place = diagnostic.primary.as_ref().map_or_else(String::new, |label| {
        let Position { line, column } = source.position(label.span.start);
        format!(":{line}:{column}")
    });
    let Diagnostic { code, severity, message, .. } = diagnostic;
    format!("{}{place}: {}[{}]: {}\n", source.path, word(*severity), code.id(), one_line(message))
}

/// One line that holds one JSON object: `path`, `line`, `column`, `end` (`line`, `column`), `code`, `severity`, `message`, `function`,
/// `help` and `labels` (other places, each with `line`, `column`, `end` and `message`). What does not apply is `null`.
#[must_use]
pub fn json(source: &Source, diagnostic: &Diagnostic) -> String {
    let place = |span: &Range<usize>| {
        let Range { start, end } = source.clamp(span);
        let (start, end) = (source.position(start), source.position(end));
        (start, json!({ "line": end.line, "column": end.column }))
    };
    let (line, column, end) = diagnostic.primary.as_ref().map_or((Value::Null, Value::Null, Value::Null), |label| {
        let (start, end) = place(&label.span);
        (start.line.into(), start.column.into(), end)
    });
    let labels = diagnostic.secondary.iter().map(|label| {
        let (start, end) = place(&label.span);
        json!({ "line": start.line, "column": start.column, "end": end, "message": label.message })
    });
    let object = json!({
        "path": source.path,
        "line": line,
        "column": column,
        "end": end,
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "function": diagnostic.function,
        "help": diagnostic.help,
        "labels": labels.collect::<Vec<_>>(),
    });
    format!("{object}\n")
}

/// The severity as it stands in front of a code.
#[must_use]
pub fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// The text without control characters, which in a path or a message could start a line of their own or steer the terminal.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The bytes as text in which every offset means the same.
fn text_of_same_length(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::diagnostic::Code;

    fn gap(span: Range<usize>) -> Diagnostic {
        Diagnostic::new(Code::NotPolled, "`while` is not polled").at(span).in_function("spin").help("put braces around the body")
    }

    #[test]
    fn columns_are_bytes_from_one() {
        let source = Source::new("k.cu", "ab\nc\u{e4}d\r\n".as_bytes());
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(3), Position { line: 2, column: 1 });
        assert_eq!(source.position(6), Position { line: 2, column: 4 });
        assert_eq!(source.position(99), Position { line: 3, column: 1 });
    }

    #[test]
    fn a_line_is_found_by_its_number() {
        let source = Source::new("k.cu", b"ab\n  cd \n\nef");
        let lines = [(1, 0, 0..2), (2, 0, 5..7), (2, 4, 6..7), (2, 99, 8..8), (3, 0, 9..9), (4, 1, 10..12), (5, 1, 12..12), (0, 0, 12..12)];
        for (line, column, bytes) in lines {
            assert_eq!(source.line(line, column), bytes, "{line}:{column}");
        }
    }

    #[test]
    fn short_is_one_line() {
        let source = Source::new("a\nb.cu", b"x\nwhile");
        assert_eq!(short(&source, &gap(2..7)), "a b.cu:2:1: warning[CI012]: `while` is not polled\n");
        assert_eq!(short(&source, &Diagnostic::new(Code::Empty, "two\nlines")), "a b.cu: error[CI003]: two lines\n");
    }

    #[test]
    fn json_is_one_object_a_line() {
        let source = Source::new("k.cu", b"x\nwhile");
        let text = json(&source, &gap(2..7).with(0..1, "here"));
        assert_eq!(text.matches('\n').count(), 1);
        let value: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(value["code"], "CI012");
        assert_eq!((&value["line"], &value["column"]), (&json!(2), &json!(1)));
        assert_eq!(value["end"], json!({ "line": 2, "column": 6 }));
        assert_eq!(value["labels"][0]["message"], "here");
    }

    #[cfg(feature = "cli")]
    #[test]
    fn full_points_at_the_place() {
        let source = Source::new("k.cu", b"// \xe4\r\nvoid f() {\r\n    while (1);\r\n}\r\n");
        let text = full(&source, &gap(22..27).with(11..12, "of this function"), false);
        assert_eq!(
            text,
            "warning[CI012]: `while` is not polled
 --> k.cu:3:5
  |
2 | void f() {
  |      - of this function
3 |     while (1);
  |     ^^^^^
  |
  = note: in `spin`
  = help: put braces around the body

"
        );
    }

    #[cfg(feature = "cli")]
    #[test]
    fn any_span_on_any_bytes_is_rendered() {
        let texts: [&[u8]; 8] =
            [b"", b"\n", b"\r\n", b"\xef\xbb\xbfa\r\n\r", b"\xff\xfe\n\x00", "\u{e4}\n\u{1f600}".as_bytes(), b"a\n\nb", b"\t\x1b[31m\n"];
        for bytes in texts {
            let source = Source::new("k.cu", bytes);
            for start in 0..bytes.len() + 3 {
                for end in 0..bytes.len() + 3 {
                    let diagnostic = gap(start..end).with(end..start, "there");
                    assert!(!full(&source, &diagnostic, true).contains("\u{1b}[31m\n"));
                    assert_eq!(short(&source, &diagnostic).lines().count(), 1);
                    assert_eq!(json(&source, &diagnostic).lines().count(), 1);
                }
            }
        }
    }
}
