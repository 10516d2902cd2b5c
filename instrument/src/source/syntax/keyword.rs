//! Words of the language that are macros in a file.

use crate::common::diagnostic::{Code, Diagnostic, Severity};
use crate::source::syntax::condition;
use crate::source::syntax::token::{Kind, Lexed, Line, kind_of_word};

/// Words that inserted text uses.
const INSERTED: &[&[u8]] =
    &[b"unsigned", b"int", b"long", b"bool", b"auto", b"void", b"const", b"true", b"false", b"decltype", b"static_cast", b"sizeof"];

/// Definitions of macros that have the names of such words. One that inserted text would trip over, under no condition, is an error.
pub(crate) fn redefined(source: &[u8], lexed: &Lexed) -> Vec<Diagnostic> {
    let arms = condition::arms(&lexed.directives);
    let mut found = Vec::new();
    for (directive, arm) in lexed.directives.iter().zip(&arms) {
        match &directive.line {
            Line::Define(define) if arm.live => {
                let word = &source[define.name.clone()];
                let is_inserted = INSERTED.contains(&word) && arm.depth == 0;
                if is_inserted || decides(kind_of_word(word)) {
                    let text = String::from_utf8_lossy(word);
                    let message = format!("`{text}` is a macro here: what repeats can't be told from the text");
                    let mut diagnostic = Diagnostic::new(Code::KeywordRedefined, message).at(define.name.clone()).help("rename the macro");
                    if is_inserted {
                        diagnostic.severity = Severity::Error;
                    }
                    found.push(diagnostic);
                }
            }
            _ => {}
        }
    }
    found
}

/// Whether the word decides where control goes.
fn decides(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::For
            | Kind::While
            | Kind::Do
            | Kind::If
            | Kind::Else
            | Kind::Switch
            | Kind::Case
            | Kind::Default
            | Kind::Goto
            | Kind::Return
            | Kind::Break
            | Kind::Continue
    )
}
