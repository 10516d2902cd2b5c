//! The text behind the opening brace of a body.

use super::loop_header::chunk_counter;
use super::poll::{nest_count, statement, suffix, truth};
use crate::source::plan::insertion::{Opening, PollStyle};
use std::fmt::Write as _;

/// The type of an activation's counters. In some arm of an `#if` a counter may be unused. No macro: its use in a system's header would show in line
/// markers.
const WORD: &str = " __attribute__((__unused__)) __cuinstr_word";

/// The declaration of a kernel's last poll, which stands on every way out behind it.
pub(super) fn last_poll(site: u64) -> String {
    format!(" __cuinstr_exit __cuinstr_guard({site:#x}ull);")
}

/// The text that stands first in a body.
pub(super) fn text(style: PollStyle, opening: &Opening) -> String {
    let mut text = String::new();
    if opening.pausable {
        text.push_str(" __cuinstr_request __cuinstr_asked_to = __cuinstr_decide();");
    }
    match opening.entry {
        Some(site) if opening.short.is_none() => {
            let launch = if opening.budget { format!("{WORD} __cuinstr_units =") } else { String::new() };
            let _ = write!(text, "{launch} __cuinstr_entry<{}>({site:#x}ull);", truth(opening.barriers));
        }
        _ => {}
    }
    if opening.pausable {
        text.push_str(" __cuinstr_decline(__cuinstr_asked_to);");
    }
    match (opening.exit, opening.short) {
        (Some(site), Some(waits)) => {
            let _ = write!(text, " __cuinstr_short_kernel<{}, {}> __cuinstr_guard({site:#x}ull);", truth(waits), truth(opening.barriers));
        }
        (Some(site), None) => text.push_str(&last_poll(site)),
        (None, _) => {}
    }
    if let Some(site) = opening.recursion {
        let parts: Vec<String> = opening.parts.iter().map(|name| format!("decltype({name})")).collect();
        let (word, types) = if parts.is_empty() { ("_unless_numbers", &opening.unless_numbers) } else { ("_part", &parts) };
        let word = if types.is_empty() { suffix(style).to_owned() } else { format!("{word}{}<{}>", suffix(style), types.join(", ")) };
        let call = format!("__cuinstr_call{word}({site:#x}ull)");
        // A comma between template arguments would divide a macro's arguments.
        let call = if types.len() > 1 { format!("({call})") } else { call };
        text.push_str(&statement(style, &call));
    }
    if opening.budget {
        // Where the host may run the function, or the compiler evaluate it, nothing keeps pace with the clock.
        let first = match (style.host_too, opening.entry) {
            (true, _) => "__cuinstr_chunk".to_owned(),
            (false, entry) => {
                text.push_str(" __cuinstr_word __cuinstr_pace;");
                if entry.is_some() { "__cuinstr_first(__cuinstr_pace, __cuinstr_units)" } else { "__cuinstr_first(__cuinstr_pace)" }
                    .to_owned()
            }
        };
        let _ = write!(text, "{WORD} __cuinstr_left = {first};");
    }
    for index in 0..opening.nests {
        let _ = write!(text, "{WORD} {} = 0u;", nest_count(index));
    }
    for index in 0..opening.chunk_counters {
        let _ = write!(text, "{WORD} {} = 0u;", chunk_counter(index));
    }
    text
}
