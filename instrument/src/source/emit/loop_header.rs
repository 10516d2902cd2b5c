//! The text of loops in strips and in chunks.

use super::poll::truth;
use super::weight;
use crate::common::edit::Edit;
use crate::source::analysis::induction::Relation;
use crate::source::analysis::strip_mine::Strip;
use crate::source::analysis::unroll::Unroll;
use crate::source::plan::insertion::Reshaped;
use crate::source::plan::loop_form::{Chunk, LoopForm};
use crate::source::plan::placement::LoopOffsets;
use crate::source::plan::weight::Weight;
use crate::source::syntax::statement::LoopKind;

/// All that is inserted for a loop in strips or chunks.
pub(super) fn edits(reshaped: &Reshaped) -> Vec<Edit> {
    let Reshaped { offsets, form, weight, index, site } = reshaped;
    let edits = if offsets.kind == LoopKind::Do {
        around(form, weight, *index, *site).map(|text| around_loop(offsets, text))
    } else {
        header(form, offsets, weight, *index, *site).map(|text| in_header(offsets, text))
    };
    let mut edits = edits.unwrap_or_default();
    edits.retain(|edit| !edit.text.is_empty());
    edits
}

/// All of the text stands in the header.
fn in_header(offsets: &LoopOffsets, header: Header) -> Vec<Edit> {
    let mut edits = vec![
        Edit { at: offsets.keyword.start, closes: false, text: header.keyword },
        Edit { at: offsets.condition.start, closes: false, text: header.before },
        Edit { at: offsets.condition.end, closes: true, text: header.behind },
    ];
    edits.extend(header.inside.map(|(at, text)| Edit { at, closes: true, text }));
    if let Some((at, is_empty)) = offsets.step {
        edits.push(Edit { at, closes: false, text: if is_empty { header.step } else { header.step + "," } });
    }
    edits
}

/// The text stands around the keyword and the condition.
fn around_loop(offsets: &LoopOffsets, around: Around) -> Vec<Edit> {
    vec![
        Edit { at: offsets.keyword.start, closes: false, text: around.keyword },
        Edit { at: offsets.keyword.end, closes: false, text: around.body },
        Edit { at: offsets.condition.start, closes: false, text: around.before },
        Edit { at: offsets.condition.end, closes: true, text: around.behind },
    ]
}

/// The variable that counts a loop's chunks down.
pub(super) fn chunk_counter(index: usize) -> String {
    format!("__cuinstr_turns_{index}")
}

/// The text inserted into a loop's header.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    /// In front of the loop's keyword.
    keyword: String,
    /// In front of the condition.
    before: String,
    /// In front of a `&&` inside it.
    inside: Option<(usize, String)>,
    /// Behind it.
    behind: String,
    /// In front of the step of a `for`.
    step: String,
}

/// The text of a `do` that is not just counted down; `index` is a free variable of its activation.
///
/// In chunks `do B while (c);` becomes `while (pays) do B while (c && goes on);`. The count is zero only where a
/// condition that held used up a chunk. So anything else, where `pays` is asked again, tells that the condition or a
/// `break` has ended the loop; the condition is asked once an iteration and behind it, as the user's. In strips it
/// becomes `do for (strip) B while (check && c);`.
fn around(form: &LoopForm, weight: &Weight, index: usize, site: u64) -> Option<Around> {
    let count = chunk_counter(index);
    match form {
        LoopForm::Strip(strip, unroll) => {
            let (keyword, inner) = pragmas(unroll);
            let pass = format!("(__cuinstr_pass(__cuinstr_left, __cuinstr_pace, {site:#x}ull), !0)");
            let Strip { counter, bound, amount, .. } = strip;
            let holds = format!("{counter} {} ({bound})", sign_of(strip.relation));
            let length_now =
                format!("({holds}) ? {} : __cuinstr_turns(__cuinstr_left, {}, 1u)", length(strip, weight), weight::shift(weight));
            let values = values(strip);
            let (text, before) = if strip.breaks {
                let text = format!("for ({count} = {length_now}; {count} != 0u; __cuinstr_step({count}, {site:#x}ull))");
                (text, format!("__cuinstr_unbroken({count}) && {pass}"))
            } else if strip.constant && strip.steady {
                let sign = if strip.up { "" } else { "-" };
                let end = format!("__cuinstr_to<{values}>({counter}, ({bound}), {length_now}, {sign}({amount}))");
                let goes_on = format!("__cuinstr_on(__cuinstr_strip, {counter}); __cuinstr_on_by(__cuinstr_strip, {site:#x}ull)");
                (format!("for (auto __cuinstr_strip = {end}; {goes_on})"), pass)
            } else {
                let text = "for (__cuinstr_word __cuinstr_strip = ".to_owned() + &length_now;
                (format!("{text}; __cuinstr_strip != 0u; __cuinstr_step(__cuinstr_strip, {site:#x}ull))"), pass)
            };
            let body = format!(" {inner}{text}");
            Some(Around { keyword, body, before: format!("{before} && (__cuinstr_bool)("), behind: ")".to_owned() })
        }
        LoopForm::Chunk(Chunk { length: chunk, .. }, unroll) => {
            let ((keyword, inner), units) = (pragmas(unroll), weight::text(weight));
            let again = format!("__cuinstr_again({count}, {chunk}u, __cuinstr_left, __cuinstr_pace, {chunk}u * {units}, {site:#x}ull)");
            Some(Around {
                keyword: format!("{keyword}while ({again}) {inner}"),
                body: String::new(),
                before: "(__cuinstr_bool)(".to_owned(),
                behind: format!(") && __cuinstr_goes_on({count}, {site:#x}ull)"),
            })
        }
        LoopForm::Foldable(_) | LoopForm::Shared(_) | LoopForm::CountDown => None,
    }
}

/// The text inserted around the parts of a `do`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Around {
    /// In front of the keyword.
    keyword: String,
    /// Behind it.
    body: String,
    /// In front of the condition.
    before: String,
    /// Behind it.
    behind: String,
}

/// Whether the compiler knows that all of a strip's variables are values, as text.
fn values(strip: &Strip) -> String {
    let types: Vec<String> = strip.typed.iter().map(|name| format!("decltype({name})")).collect();
    format!("__cuinstr_values<{}>::__ci_all", types.join(", "))
}

/// The length of a strip without names that may be constants, as text.
fn length(strip: &Strip, weight: &Weight) -> String {
    let name = format!("{}{}", strip_of(strip), if strip.late { "_by" } else { "" });
    let Strip { counter, bound, amount, .. } = strip;
    format!("__cuinstr_{name}<{}>(__cuinstr_left, {}, {counter}, ({bound}), ({amount}))", values(strip), weight::shift(weight))
}

/// The length of a strip whose loop may be cut evenly, as text, and whether it will be: it goes up by a number, from
/// one to a bound that is a number as well, or of which the compiler can be asked. Such a strip is counted down: its
/// length may be a constant. Then nothing is left behind in a loop that is unrolled as a whole, and a proof knows that
/// any other loop ends.
fn even(strip: &Strip, offsets: &LoopOffsets, weight: &Weight) -> Option<(String, String)> {
    // In a loop around it, the proof of that one does not yet follow what such strips take from the budget.
    if !offsets.is_outermost {
        return None;
    }
    let name = match strip.relation {
        Relation::Below => "below",
        Relation::AtMost => "at_most",
        Relation::Above | Relation::AtLeast | Relation::Not => return None,
    };
    let Strip { counter, bound, amount, start: Some(start), constant: true, known, constants, .. } = strip else { return None };
    let (known, settles) = match (known, constants.is_empty()) {
        (true, true) => (truth(true).to_owned(), truth(true).to_owned()),
        (false, true) => return None,
        (_, false) => (asked(constants), format!("__cuinstr_constant({bound})")),
    };
    let of = format!("{}, {known}, {settles}", values(strip));
    Some((
        format!("__cuinstr_even_{name}<{of}>(__cuinstr_left, {}, {counter}, ({bound}), ({amount}), {start})", weight::shift(weight)),
        settles,
    ))
}

/// Whether the compiler takes names for constants, as text.
fn asked(names: &[String]) -> String {
    names.iter().map(|name| format!("__cuinstr_constant({name})")).collect::<Vec<_>>().join(" && ")
}

/// The header of a loop that is not just counted down; `index` is a free variable of its activation.
fn header(form: &LoopForm, offsets: &LoopOffsets, weight: &Weight, index: usize, site: u64) -> Option<Header> {
    match form {
        LoopForm::Strip(form, unroll) => Some(strip(form, offsets, unroll, weight, index, site)),
        LoopForm::Chunk(chunk, unroll) => Some(chunked(*chunk, offsets, unroll, weight, index, site)),
        LoopForm::Foldable(_) | LoopForm::Shared(_) | LoopForm::CountDown => None,
    }
}

/// In front of our loop and of the user's inside it.
fn pragmas(unroll: &Unroll) -> (String, String) {
    match unroll {
        Unroll::Pragma(text) => ("__cuinstr_rolled ".to_owned(), format!("__cuinstr_pragma({text}) ")),
        Unroll::Unasked | Unroll::Unknown => (String::new(), String::new()),
    }
}

/// The header of a strip-mined loop: `for (I; i < n` `; check) for (strip; goes on` `&& more; ` `count,` `S)`, or `while (check &&` `i < n`
/// `) for (strip; goes on` `&& more` `; count` `)`. Unless the loop ends at its bound and nowhere else, the strip's count says how it ended:
/// what is left of it is zero where the strip was run to its end.
fn strip(strip: &Strip, offsets: &LoopOffsets, unroll: &Unroll, weight: &Weight, index: usize, site: u64) -> Header {
    let (shift, name) = (weight::shift(weight), format!("{}{}", strip_of(strip), if strip.late { "_by" } else { "" }));
    let Strip { counter, bound, amount, .. } = strip;
    let values = values(strip);
    let three = format!("{counter}, ({bound}), ({amount})");
    let (keyword, inner) = pragmas(unroll);
    let pass = format!("__cuinstr_pass(__cuinstr_left, __cuinstr_pace, {site:#x}ull)");
    let is_for = offsets.kind == LoopKind::For;
    let mut header = Header { keyword, before: String::new(), inside: None, behind: String::new(), step: String::new() };
    if is_for && !strip.breaks && strip.rest.is_none() && strip.constants.is_empty() {
        let even = even(strip, offsets, weight);
        let ends = if even.is_some() { truth(false) } else { &values };
        let length_now = even.map_or_else(|| length(strip, weight), |(length, _)| length);
        if strip.constant {
            let sign = if strip.up { "" } else { "-" };
            let end = format!("__cuinstr_to<{ends}>({counter}, ({bound}), {length_now}, {sign}({amount}))");
            header.behind = format!("; {pass}) {inner}for (auto __cuinstr_strip = {end}; __cuinstr_on(__cuinstr_strip, {counter})");
            header.step = format!(" __cuinstr_on_by(__cuinstr_strip, {site:#x}ull)");
        } else {
            header.behind = format!("; {pass}) {inner}for (__cuinstr_word __cuinstr_strip = {length_now}; __cuinstr_strip != 0u");
            header.step = format!(" __cuinstr_step(__cuinstr_strip, {site:#x}ull)");
        }
        return header;
    }
    let (count, mut ends) = (chunk_counter(index), values.clone());
    // Where a name turns out to be no constant, the condition is asked in each iteration.
    let (length_now, asked) = if strip.constants.is_empty() {
        (length(strip, weight), String::new())
    } else {
        let known = format!("<{values}, {}>", asked(&strip.constants));
        let asks = format!(" && (__cuinstr_sure{known}({three}) || {counter} {} ({bound}))", sign_of(strip.relation));
        let even = even(strip, offsets, weight);
        if let Some((_, settles)) = &even {
            ends = format!("{values} && !{settles}");
        }
        let maybe = || format!("__cuinstr_maybe_{name}{known}(__cuinstr_left, {shift}, {three})");
        (even.map_or_else(maybe, |(length, _)| length), asks)
    };
    // With a constant step the counter itself tells where it was when the loop was left.
    let (inside, count, ended) = if strip.constant && strip.steady {
        let sign = if strip.up { "" } else { "-" };
        let types = format!("<{ends}, decltype(({bound}))>");
        let strip_now = format!("__cuinstr_leg{types}({count}, {counter}, {length_now}, {sign}({amount}))");
        let goes_on = format!("__cuinstr_on(__cuinstr_strip, {counter}, {count}){asked}");
        let inside = format!("for (auto __cuinstr_strip = {strip_now}; {goes_on}");
        (inside, format!(" __cuinstr_on_by(__cuinstr_strip, {site:#x}ull)"), format!("__cuinstr_arrived{types}({count}, {counter})"))
    } else {
        let inside = format!("for ({count} = {length_now}; {count} != 0u{asked}");
        (inside, format!(" __cuinstr_step({count}, {site:#x}ull)"), format!("__cuinstr_unbroken({count})"))
    };
    header.before = format!(" {ended} && (__cuinstr_bool)(");
    let inside = if is_for { format!("); {pass}) {inner}{inside}") } else { format!(")) {inner}{inside}") };
    let behind = if is_for { String::new() } else { format!(";{count}") };
    if is_for {
        header.step = count;
    } else {
        header.before = format!(" {ended} && ({pass}, !0) && (__cuinstr_bool)(");
    }
    match offsets.rest {
        Some(at) => (header.inside, header.behind) = (Some((at, inside + " ")), behind),
        None => header.behind = inside + &behind,
    }
    header
}

/// Which of the prelude's functions tells a strip's length.
fn strip_of(strip: &Strip) -> &'static str {
    match strip.relation {
        Relation::Below => "below",
        Relation::AtMost => "at_most",
        Relation::Above => "above",
        Relation::AtLeast => "at_least",
        Relation::Not if strip.up => "not_up",
        Relation::Not => "not_down",
    }
}

fn sign_of(relation: Relation) -> &'static str {
    match relation {
        Relation::Below => "<",
        Relation::AtMost => "<=",
        Relation::Above => ">",
        Relation::AtLeast => ">=",
        Relation::Not => "!=",
    }
}

/// The header of a `for` or `while` in chunks of a constant number of iterations.
fn chunked(chunk: Chunk, offsets: &LoopOffsets, unroll: &Unroll, weight: &Weight, index: usize, site: u64) -> Header {
    let (count, units) = (chunk_counter(index), weight::text(weight));
    let (is_for, Chunk { length: chunk, has_condition }) = (offsets.kind == LoopKind::For, chunk);
    let (keyword, inner) = pragmas(unroll);
    let semicolon = if is_for { ";" } else { "" };
    let again = format!(" __cuinstr_again({count}, {chunk}u, __cuinstr_left, __cuinstr_pace, {chunk}u * {units}, {site:#x}ull){semicolon}");
    let again = format!("{again}) {inner}for (; {count} != 0u");
    let step = format!(" __cuinstr_step({count}, {site:#x}ull)");
    Header {
        keyword,
        before: if has_condition { format!("{again} && (__cuinstr_bool)(") } else { again },
        inside: None,
        behind: format!("{}{}", if has_condition { ")" } else { "" }, if is_for { String::new() } else { format!(";{step}") }),
        step,
    }
}
