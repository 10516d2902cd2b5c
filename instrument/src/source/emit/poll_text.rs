//! The text of polls: the one place that knows how a form is spelled. `prelude/` defines what is named here.

use crate::common::options::Polls;
use crate::common::site::Form;
use crate::source::analysis::block_share::{self, Tile};
use crate::source::analysis::foldable::{Extent, Nest};
use crate::source::analysis::induction::Relation;
use crate::source::analysis::strip_mine::Strip;
use crate::source::analysis::unroll::Unroll;
use crate::source::plan::loop_form::{Chunk, Shape};
use crate::source::syntax::statement::{Loop, LoopKind};
use std::fmt::Write as _;

/// How polls of a function are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spelling {
    pub(crate) polls: Polls,
    /// The host, or the compiler, may run the function too.
    pub(crate) host_too: bool,
    /// It is a lambda or a local class's method in a function of the device, whose pace it must not name.
    pub(crate) inner: bool,
}

impl Spelling {
    fn suffix(self) -> &'static str {
        if self.host_too { "_hd" } else { "" }
    }

    /// What keeps pace with the clock; where nothing does, a constant.
    fn pace(self) -> &'static str {
        if self.inner { "::__cuinstr_pace" } else { "__cuinstr_pace" }
    }

    /// The poll of a loop, an expression of type `void`.
    pub(crate) fn repeat(self, site: u64, weight: &str) -> String {
        match self.polls {
            Polls::Each => format!("__cuinstr_poll{}({site:#x}ull)", self.suffix()),
            Polls::Amortised | Polls::CountDown => {
                format!("__cuinstr_tick{}(__cuinstr_left, {}, {weight}, {site:#x}ull)", self.suffix(), self.pace())
            }
        }
    }

    /// The poll of a loop in a nest of its activation.
    pub(crate) fn in_nest(self, in_nest: &Nest, extent: Option<&Extent>, site: u64, weight: &str) -> String {
        let run = nest(in_nest.index);
        let Some(Extent { counter, start, bound, by_type, amount, sure }) = extent else {
            return format!("__cuinstr_tick_nest{}({run}, __cuinstr_left, {}, {weight}, {site:#x}ull)", self.suffix(), self.pace());
        };
        if *by_type {
            return format!(
                "__cuinstr_tick_sized{}<decltype({bound})>({run}, __cuinstr_left, {}, {weight}, {site:#x}ull, {start}, {amount})",
                self.suffix(),
                self.pace()
            );
        }
        let names: Vec<&String> = [start, bound, amount].into_iter().filter(|text| text.parse::<i64>().is_err()).collect();
        let asked: Vec<String> = names.iter().map(|text| format!("__cuinstr_constant({text})")).collect();
        let known = if asked.is_empty() { "true".to_owned() } else { asked.join(" && ") };
        let all = format!("<{}, {known}, decltype({counter})>", *sure && in_nest.begins.is_some());
        format!(
            "__cuinstr_tick_known{all}({run}, __cuinstr_left, __cuinstr_pace, {weight}, {site:#x}ull, ({start}), ({bound}), ({amount}))"
        )
    }

    /// The poll of a loop over a block's share of something that is probably small.
    pub(crate) fn of_share(tile: &Tile, site: u64, weight: &str) -> String {
        let Tile { bound, step, by_block, .. } = tile;
        let (is_constant, step) = if *by_block {
            (format!("__cuinstr_settled({bound})"), "1".to_owned())
        } else {
            (format!("__cuinstr_settled({bound}) && __cuinstr_settled({step})"), format!("({step})"))
        };
        format!(
            "__cuinstr_tick_share<{is_constant}>(({bound}), {step}, {}, __cuinstr_left, __cuinstr_pace, {weight}, {site:#x}ull)",
            block_share::MOST
        )
    }

    /// How a loop's poll appears in the site map.
    pub(crate) fn form(self) -> Form {
        match self.polls {
            Polls::Each => Form::Each,
            Polls::Amortised | Polls::CountDown => Form::CountDown,
        }
    }

    /// How a loop of that shape appears in the site map.
    pub(crate) fn form_of(self, shape: &Shape) -> Form {
        match shape {
            Shape::Strip(..) => Form::Strip,
            Shape::Chunk(..) => Form::Chunk,
            Shape::Foldable(_) | Shape::Shared(_) => Form::Foldable,
            Shape::CountDown => self.form(),
        }
    }

    /// The poll behind a barrier; `here` is a kernel's own body.
    pub(crate) fn barrier(self, site: u64, here: bool) -> String {
        let suffix = if here { "_here" } else { self.suffix() };
        format!("__cuinstr_barrier{suffix}({site:#x}ull)")
    }

    /// What stands first in a body.
    pub(crate) fn opening(self, opening: &Opening) -> String {
        let mut text = String::new();
        if opening.pausable {
            text.push_str(" const __cuinstr_request __cuinstr_asked_to = __cuinstr_decide();");
        }
        match opening.entry {
            Some(site) if opening.short.is_none() => {
                let launch = if opening.allowance { format!("{WORD} __cuinstr_units =") } else { String::new() };
                let _ = write!(text, "{launch} __cuinstr_entry<{}>({site:#x}ull);", opening.barriers);
            }
            _ => {}
        }
        if opening.pausable {
            text.push_str(" __cuinstr_decline(__cuinstr_asked_to);");
        }
        match (opening.exit, opening.short) {
            (Some(site), Some(waits)) => {
                let _ = write!(text, " __cuinstr_short_kernel<{waits}, {}> __cuinstr_guard({site:#x}ull);", opening.barriers);
            }
            (Some(site), None) => text.push_str(&exit(site)),
            (None, _) => {}
        }
        if let Some(site) = opening.recursion {
            let parts: Vec<String> = opening.parts.iter().map(|name| format!("decltype({name})")).collect();
            let parts = if parts.is_empty() { String::new() } else { format!("_part{}<{}>", self.suffix(), parts.join(", ")) };
            let call = if parts.is_empty() { self.suffix() } else { &parts };
            let call = format!("__cuinstr_call{call}({site:#x}ull)");
            let _ = if opening.parts.len() > 1 { write!(text, " ({call});") } else { write!(text, " {call};") };
        }
        if opening.allowance {
            // Where the host may run the function, or the compiler evaluate it, nothing keeps pace with the clock.
            let first = match (self.host_too, opening.entry) {
                (true, _) => "__cuinstr_chunk".to_owned(),
                (false, entry) => {
                    text.push_str(" unsigned int __cuinstr_pace;");
                    if entry.is_some() { "__cuinstr_first(__cuinstr_pace, __cuinstr_units)" } else { "__cuinstr_first(__cuinstr_pace)" }
                        .to_owned()
                }
            };
            let _ = write!(text, "{WORD} __cuinstr_left = {first};");
        }
        for index in 0..opening.nests {
            let _ = write!(text, "{WORD} {} = 0u;", nest(index));
        }
        for index in 0..opening.turns {
            let _ = write!(text, "{WORD} {} = 0u;", turns(index));
        }
        text
    }
}

/// The type of what an activation counts in; in some arm of an `#if` nothing may. No macro: its use in a system's header would show in line
/// markers.
const WORD: &str = " __attribute__((__unused__)) unsigned int";

/// What a body's opening brace is followed by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Opening {
    /// The entry site of a kernel.
    pub(crate) entry: Option<u64>,
    /// The exit site of a kernel whose last poll is declared here.
    pub(crate) exit: Option<u64>,
    /// The site of a recursive function.
    pub(crate) recursion: Option<u64>,
    /// Members of its object that are all that it calls on, if they have the types of values.
    pub(crate) parts: Vec<String>,
    /// Of a kernel in which nothing polls but its end, whether it may wait.
    pub(crate) short: Option<bool>,
    /// Whether a kernel's blocks can decline to run.
    pub(crate) pausable: bool,
    /// Whether a kernel has barriers of its own.
    pub(crate) barriers: bool,
    /// Whether a loop of this activation counts down.
    pub(crate) allowance: bool,
    /// How many loops count their chunks.
    pub(crate) turns: usize,
    /// How many nests of loops count what they have run.
    pub(crate) nests: usize,
}

/// The declaration of a kernel's last poll, which stands on every way out behind it.
pub(crate) fn exit(site: u64) -> String {
    format!(" __cuinstr_exit __cuinstr_guard({site:#x}ull);")
}

/// What asks for a loop to be unrolled, in front of its keyword.
pub(crate) fn unroll() -> String {
    "__cuinstr_pragma(unroll) ".to_owned()
}

/// The statement in front of a nest.
pub(crate) fn nest_begins(index: usize) -> String {
    format!(" {} = 0u;", nest(index))
}

/// The variable that counts what a nest has run.
fn nest(index: usize) -> String {
    format!("__cuinstr_nest_{index}")
}

/// The variable that counts a loop's chunks down.
fn turns(index: usize) -> String {
    format!("__cuinstr_turns_{index}")
}

/// What is inserted into a loop's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// In front of the loop's keyword.
    pub(crate) keyword: String,
    /// In front of the condition.
    pub(crate) before: String,
    /// In front of a `&&` inside it.
    pub(crate) inside: Option<(usize, String)>,
    /// Behind it.
    pub(crate) behind: String,
    /// In front of the step of a `for`.
    pub(crate) step: String,
    /// Whether it counts in a variable of the activation.
    pub(crate) counts: bool,
}

/// The text of a `do` that is not just counted down; `index` is a free variable of its activation.
///
/// In chunks `do B while (c);` becomes `while (pays) do B while (c && goes on);`. The count is zero only where a chunk was used up by a
/// condition that held, so where `pays` is asked again anything else tells that the condition or a `break` has ended the loop; the condition
/// is asked once an iteration and behind it, as the user's. In strips it becomes `do for (strip) B while (look && c);`.
pub(crate) fn around(shape: &Shape, weight: &str, index: usize, site: u64) -> Option<Around> {
    let turns = turns(index);
    match shape {
        Shape::Strip(strip, unroll) => {
            let (keyword, inner) = pragmas(unroll);
            let pass = format!("(__cuinstr_pass(__cuinstr_left, __cuinstr_pace, {site:#x}ull), true)");
            let Strip { counter, bound, amount, .. } = strip;
            let holds = format!("{counter} {} ({bound})", sign_of(strip.relation));
            let turns_now = format!("({holds}) ? {} : __cuinstr_turns(__cuinstr_left, {}, 1u)", length(strip, weight), shift(weight));
            let values = values(strip);
            let (text, before) = if strip.breaks {
                let text = format!("for ({turns} = {turns_now}; {turns} != 0u; __cuinstr_step({turns}, {site:#x}ull))");
                (text, format!("__cuinstr_unbroken({turns}) && {pass}"))
            } else if strip.constant && strip.steady {
                let sign = if strip.up { "" } else { "-" };
                let end = format!("__cuinstr_to<{values}>({counter}, ({bound}), {turns_now}, {sign}({amount}))");
                let goes_on = format!("__cuinstr_on(__cuinstr_strip, {counter}); __cuinstr_on_by(__cuinstr_strip, {site:#x}ull)");
                (format!("for (auto __cuinstr_strip = {end}; {goes_on})"), pass)
            } else {
                let text = "for (unsigned int __cuinstr_strip = ".to_owned() + &turns_now;
                (format!("{text}; __cuinstr_strip != 0u; __cuinstr_step(__cuinstr_strip, {site:#x}ull))"), pass)
            };
            let body = format!(" {inner}{text}");
            Some(Around { keyword, body, before: format!("{before} && ("), behind: ")".to_owned(), counts: strip.breaks })
        }
        Shape::Chunk(Chunk { turns: chunk, .. }, unroll) => {
            let (keyword, inner) = pragmas(unroll);
            let again = format!("__cuinstr_again({turns}, {chunk}u, __cuinstr_left, __cuinstr_pace, {chunk}u * {weight}, {site:#x}ull)");
            Some(Around {
                keyword: format!("{keyword}while ({again}) {inner}"),
                body: String::new(),
                before: "(bool)(".to_owned(),
                behind: format!(") && __cuinstr_goes_on({turns}, {site:#x}ull)"),
                counts: true,
            })
        }
        Shape::Foldable(_) | Shape::Shared(_) | Shape::CountDown => None,
    }
}

/// What is inserted around the parts of a `do`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Around {
    /// In front of the keyword.
    pub(crate) keyword: String,
    /// Behind it.
    pub(crate) body: String,
    /// In front of the condition.
    pub(crate) before: String,
    /// Behind it.
    pub(crate) behind: String,
    /// Whether it counts in a variable of the activation.
    pub(crate) counts: bool,
}

/// Whether the compiler knows that all of a strip's variables are values, as text.
fn values(strip: &Strip) -> String {
    let types: Vec<String> = strip.typed.iter().map(|name| format!("decltype({name})")).collect();
    format!("__cuinstr_values<{}>::all", types.join(", "))
}

/// The length of a strip without names that may be constants, as text.
fn length(strip: &Strip, weight: &str) -> String {
    let name = format!("{}{}", strip_of(strip), if strip.late { "_by" } else { "" });
    let Strip { counter, bound, amount, .. } = strip;
    format!("__cuinstr_{name}<{}>(__cuinstr_left, {}, {counter}, ({bound}), ({amount}))", values(strip), shift(weight))
}

/// The length of a strip whose loop may be cut evenly, as text, and whether it will be: it goes up by a number, from one to a bound that is a number as
/// well, or of which the compiler can be asked. Such a strip is counted down: where its length is a constant, that leaves nothing behind in a loop which
/// is unrolled as a whole, and of one which is not a proof knows that it ends.
fn even(strip: &Strip, loop_: &Loop, weight: &str) -> Option<(String, String)> {
    // In a loop around it, the proof of that one does not yet follow what such strips take from the allowance.
    if loop_.outer.is_some() {
        return None;
    }
    let name = match strip.relation {
        Relation::Below => "below",
        Relation::AtMost => "at_most",
        Relation::Above | Relation::AtLeast | Relation::Not => return None,
    };
    let Strip { counter, bound, amount, start: Some(start), constant: true, known, constants, .. } = strip else { return None };
    let (known, settles) = match (known, constants.is_empty()) {
        (true, true) => ("true".to_owned(), "true".to_owned()),
        (false, true) => return None,
        (_, false) => (asked(constants), format!("__cuinstr_constant({bound})")),
    };
    let of = format!("{}, {known}, {settles}", values(strip));
    Some((format!("__cuinstr_even_{name}<{of}>(__cuinstr_left, {}, {counter}, ({bound}), ({amount}), {start})", shift(weight)), settles))
}

/// Whether the compiler takes names for constants, as text.
fn asked(names: &[String]) -> String {
    names.iter().map(|name| format!("__cuinstr_constant({name})")).collect::<Vec<_>>().join(" && ")
}

/// The header of a loop that is not just counted down; `index` is a free variable of its activation.
pub(crate) fn header(shape: &Shape, loop_: &Loop, weight: &str, index: usize, site: u64) -> Option<Header> {
    match shape {
        Shape::Strip(form, unroll) => Some(strip(form, loop_, unroll, weight, index, site)),
        Shape::Chunk(chunk, unroll) => Some(chunked(*chunk, loop_, unroll, weight, index, site)),
        Shape::Foldable(_) | Shape::Shared(_) | Shape::CountDown => None,
    }
}

/// In front of our loop and of the user's inside it.
fn pragmas(unroll: &Unroll) -> (String, String) {
    match unroll {
        Unroll::Pragma(text) => ("__cuinstr_rolled ".to_owned(), format!("__cuinstr_pragma({text}) ")),
        Unroll::Unasked | Unroll::Unknown => (String::new(), String::new()),
    }
}

/// The least that a weight may be, from its text.
pub(crate) fn least_weight(weight: &str) -> u64 {
    let number = weight.trim_start_matches(|c: char| !c.is_ascii_digit());
    let digits = number.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    if weight.starts_with(|c: char| c.is_ascii_digit()) || weight.starts_with("__cuinstr_weigh") { digits.parse().unwrap_or(1) } else { 1 }
}

/// The weight as a power of two, as text.
fn shift(weight: &str) -> String {
    match weight.strip_suffix('u').and_then(|number| number.parse::<u32>().ok()) {
        Some(weight) => format!("{}u", weight.max(1).ilog2() + u32::from(!weight.is_power_of_two())),
        None => format!("__cuinstr_shift({weight})"),
    }
}

/// The header of a strip-mined loop: `for (I; i < n` `; look) for (strip; goes on` `&& more; ` `count,` `S)`, or `while (look &&` `i < n`
/// `) for (strip; goes on` `&& more` `; count` `)`. Unless the loop ends at its bound and nowhere else, the strip's count says how it ended:
/// what is left of it is zero where the strip was run to its end.
fn strip(strip: &Strip, loop_: &Loop, unroll: &Unroll, weight: &str, index: usize, site: u64) -> Header {
    let (shift, name) = (shift(weight), format!("{}{}", strip_of(strip), if strip.late { "_by" } else { "" }));
    let Strip { counter, bound, amount, .. } = strip;
    let values = values(strip);
    let three = format!("{counter}, ({bound}), ({amount})");
    let (keyword, inner) = pragmas(unroll);
    let pass = format!("__cuinstr_pass(__cuinstr_left, __cuinstr_pace, {site:#x}ull)");
    let is_for = loop_.kind == LoopKind::For;
    let mut header = Header { keyword, before: String::new(), inside: None, behind: String::new(), step: String::new(), counts: false };
    if is_for && !strip.breaks && strip.rest.is_none() && strip.constants.is_empty() {
        let even = even(strip, loop_, weight);
        let ends = if even.is_some() { "false" } else { &values };
        let turns_now = even.map_or_else(|| length(strip, weight), |(turns, _)| turns);
        if strip.constant {
            let sign = if strip.up { "" } else { "-" };
            let end = format!("__cuinstr_to<{ends}>({counter}, ({bound}), {turns_now}, {sign}({amount}))");
            header.behind = format!("; {pass}) {inner}for (auto __cuinstr_strip = {end}; __cuinstr_on(__cuinstr_strip, {counter})");
            header.step = format!(" __cuinstr_on_by(__cuinstr_strip, {site:#x}ull)");
        } else {
            header.behind = format!("; {pass}) {inner}for (unsigned int __cuinstr_strip = {turns_now}; __cuinstr_strip != 0u");
            header.step = format!(" __cuinstr_step(__cuinstr_strip, {site:#x}ull)");
        }
        return header;
    }
    let (turns, mut ends) = (turns(index), values.clone());
    // Where a name turns out to be no constant, the condition is asked in each iteration.
    let (turns_now, asked) = if strip.constants.is_empty() {
        (length(strip, weight), String::new())
    } else {
        let known = format!("<{values}, {}>", asked(&strip.constants));
        let asks = format!(" && (__cuinstr_sure{known}({three}) || {counter} {} ({bound}))", sign_of(strip.relation));
        let even = even(strip, loop_, weight);
        if let Some((_, settles)) = &even {
            ends = format!("{values} && !{settles}");
        }
        let maybe = || format!("__cuinstr_maybe_{name}{known}(__cuinstr_left, {shift}, {three})");
        (even.map_or_else(maybe, |(turns, _)| turns), asks)
    };
    // With a constant step the counter itself tells where it was when the loop was left.
    let (inside, count, ended) = if strip.constant && strip.steady {
        let sign = if strip.up { "" } else { "-" };
        let types = format!("<{ends}, decltype(({bound}))>");
        let strip_now = format!("__cuinstr_leg{types}({turns}, {counter}, {turns_now}, {sign}({amount}))");
        let goes_on = format!("__cuinstr_on(__cuinstr_strip, {counter}, {turns}){asked}");
        let inside = format!("for (auto __cuinstr_strip = {strip_now}; {goes_on}");
        (inside, format!(" __cuinstr_on_by(__cuinstr_strip, {site:#x}ull)"), format!("__cuinstr_arrived{types}({turns}, {counter})"))
    } else {
        let inside = format!("for ({turns} = {turns_now}; {turns} != 0u{asked}");
        (inside, format!(" __cuinstr_step({turns}, {site:#x}ull)"), format!("__cuinstr_unbroken({turns})"))
    };
    header.counts = true;
    header.before = format!(" {ended} && ");
    let inside = if is_for { format!("; {pass}) {inner}{inside}") } else { format!(") {inner}{inside}") };
    let behind = if is_for { String::new() } else { format!(";{count}") };
    if is_for {
        header.step = count;
    } else {
        header.before = format!(" {ended} && ({pass}, true) && ");
    }
    match strip.rest {
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
fn chunked(chunk: Chunk, loop_: &Loop, unroll: &Unroll, weight: &str, index: usize, site: u64) -> Header {
    let turns = turns(index);
    let (is_for, Chunk { turns: chunk, has_condition }) = (loop_.kind == LoopKind::For, chunk);
    let (keyword, inner) = pragmas(unroll);
    let semicolon = if is_for { ";" } else { "" };
    let again =
        format!(" __cuinstr_again({turns}, {chunk}u, __cuinstr_left, __cuinstr_pace, {chunk}u * {weight}, {site:#x}ull){semicolon}");
    let again = format!("{again}) {inner}for (; {turns} != 0u");
    let step = format!(" __cuinstr_step({turns}, {site:#x}ull)");
    Header {
        keyword,
        before: if has_condition { format!("{again} && (bool)(") } else { again },
        inside: None,
        behind: format!("{}{}", if has_condition { ")" } else { "" }, if is_for { String::new() } else { format!(";{step}") }),
        step,
        counts: true,
    }
}
