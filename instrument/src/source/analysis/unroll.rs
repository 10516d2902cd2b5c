//! What a pragma in front of a loop asks the compiler to do with it.

use crate::source::analysis::file_facts::FileFacts;
use crate::source::syntax::statement::{Body, Loop};
use crate::source::syntax::token::{Kind, Line};

/// What stands in front of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unroll {
    /// Nothing.
    Unasked,
    /// A pragma of this text, which the loop inside a strip can bear.
    Pragma(String),
    /// Something that is not known: it belongs to the loop that the user wrote.
    Unknown,
}

/// Reads the pragmas and other words in front of a loop.
pub(crate) fn of_loop(facts: &FileFacts, body: &Body, loop_: &Loop) -> Unroll {
    let (source, lexed, fragment) = (facts.source, facts.lexed, facts.fragment);
    let start = fragment.tokens[loop_.keyword].start as usize;
    let before = loop_.keyword.checked_sub(1);
    if let Some((from, to)) = body.prefixes.iter().find(|(_, to)| Some(*to) == before).copied() {
        // `_Pragma("unroll 4") for`. A macro's name tells too little.
        let is_pragma = fragment.kind(from) == Some(Kind::Pragma) && to == from + 3 && fragment.kind(from + 2) == Some(Kind::Str);
        return if is_pragma { of_text(fragment.text(source, from + 2).trim_ascii().trim_ascii_start()) } else { Unroll::Unknown };
    }
    // A macro with arguments, as `UNROLL(4) for`, bears the user's own loop.
    if body.macro_uses.iter().any(|use_| use_.arguments.is_some_and(|(_, close)| Some(close) == before)) {
        return Unroll::Unknown;
    }
    let behind = before.map_or(0, |index| fragment.tokens[index].end as usize);
    let directives = &lexed.directives;
    let mut index = directives.partition_point(|directive| directive.span.end <= start);
    while index > 0 && directives[index - 1].span.start >= behind {
        index -= 1;
        if directives[index].line == Line::Pragma {
            let text = &source[directives[index].span.clone()];
            let word = text.windows(6).position(|word| word == b"pragma").map_or(0, |at| at + 6);
            if text.windows(6).any(|word| word.eq_ignore_ascii_case(b"unroll")) {
                return of_text(&text[word..]);
            }
        }
    }
    Unroll::Unasked
}

/// The text behind `pragma`, or a literal that holds it.
fn of_text(text: &[u8]) -> Unroll {
    let text = text.trim_ascii();
    let text = text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text).trim_ascii();
    let plain = text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_ ()*+-".contains(byte));
    match std::str::from_utf8(text) {
        Ok(text) if (plain && text.starts_with("unroll") && text != "unroll_completely") || text == "nounroll" => {
            Unroll::Pragma(text.to_owned())
        }
        _ => Unroll::Unknown,
    }
}
