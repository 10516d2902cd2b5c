//! All text that is inserted: the prelude in front of the file, and the polls in it.

mod brief_nest;
mod loop_header;
mod opening;
mod poll;
pub mod prelude;
mod weight;
mod wrap;

use crate::common::edit::Edit;
use crate::source::plan::insertion::{Check, Insertion};
use crate::source::plan::placement::Place;

/// The text of each insertion.
pub(crate) fn edits(source: &[u8], insertions: &[Insertion]) -> Vec<Edit> {
    let mut edits = Vec::with_capacity(2 * insertions.len());
    for insertion in insertions {
        add(&mut edits, source, insertion);
    }
    edits
}

fn add(edits: &mut Vec<Edit>, source: &[u8], insertion: &Insertion) {
    let mut insert = |at: usize, closes: bool, text: String| {
        debug_assert!(!text.contains(['\n', '#', '"', '\'']), "inserted text may land in a macro's body or argument");
        edits.push(Edit { at, closes, text });
    };
    match insertion {
        Insertion::Opening { at, style, opening } => {
            let text = opening::text(*style, opening);
            if !text.is_empty() {
                insert(*at, false, text);
            }
        }
        Insertion::LastPoll { at, site } => insert(*at, false, opening::last_poll(*site)),
        Insertion::Unroll { at } => insert(*at, false, "__cuinstr_pragma(unroll) ".to_owned()),
        Insertion::NestBegins { at, index } => insert(*at, false, format!(" {} = 0u;", poll::nest_count(*index))),
        Insertion::Poll { place, poll } => {
            let style = poll.style;
            let poll = poll::text(poll);
            match *place {
                Place::Brace { at } => insert(at, false, poll::statement(style, &poll)),
                Place::Step { at, empty } => insert(at, false, if empty { format!(" {poll}") } else { format!(" {poll},") }),
                Place::Condition { open, close } => {
                    // No operator `,` of the user's takes a `bool`. Behind a comma nvcc still sees that a condition is always true.
                    insert(open, false, format!("({poll}, (__cuinstr_bool)("));
                    insert(close, true, "))".to_owned());
                }
                Place::Wrap { open, close } => {
                    insert(open, false, format!(" {{ {poll};"));
                    insert(close, true, " }".to_owned());
                }
            }
        }
        Insertion::Goto { statement, poll } => {
            insert(statement.start, false, format!("{{ {}; ", poll::text(poll)));
            insert(statement.end, true, " }".to_owned());
        }
        Insertion::Barrier { call, check } => {
            insert(call.start, false, "{ ".to_owned());
            insert(call.end, true, format!(" {}; }}", barrier(check)));
        }
        Insertion::BehindLoop { at, check } => insert(*at, true, format!(" {};", barrier(check))),
        Insertion::Reshaped(reshaped) => edits.extend(loop_header::edits(reshaped)),
        Insertion::Brief { nest, inside } => edits.extend(brief_nest::edits(source, nest, self::edits(source, inside))),
    }
}

fn barrier(check: &Check) -> String {
    poll::barrier(check.style, check.site, check.in_kernel)
}
