//! The text of polls. `prelude/` defines the functions that are named here.

use super::weight;
use crate::common::options::Polls;
use crate::source::analysis::block_share::{self, BlockShare};
use crate::source::analysis::foldable::{Extent, Nest};
use crate::source::plan::insertion::{OneReturn, Poll, PollKind, PollStyle};

/// The poll of a loop, an expression of type `void`.
pub(super) fn text(poll: &Poll) -> String {
    let Poll { style, site, weight, kind } = poll;
    let call = match kind {
        PollKind::Counted => repeat(*style, *site, &weight::text(weight)),
        PollKind::InNest(nest, extent) => {
            let weight = if extent.as_ref().is_none_or(|extent| extent.kept) { weight::text(weight) } else { weight::odd(weight) };
            in_nest(*style, nest, extent.as_ref(), *site, &weight)
        }
        PollKind::Shared(tile) => of_share(tile, *site, &weight::text(weight)),
    };
    // A compiler that evaluates the function counts calls, and refuses more than so many.
    if style.evaluated { format!("__cuinstr_in_round({call})") } else { call }
}

/// The variable that counts the units of a nest.
pub(super) fn nest_count(index: usize) -> String {
    format!("__cuinstr_nest_{index}")
}

/// The ending of names of functions that the host may run, too.
pub(super) fn suffix(style: PollStyle) -> &'static str {
    if style.host_too { "_hd" } else { "" }
}

/// A call of one of the prelude's functions as a statement.
pub(super) fn statement(style: PollStyle, call: &str) -> String {
    match style.one_return {
        OneReturn::No => format!(" {call};"),
        OneReturn::Value => format!(" __cuinstr_before_value({call})"),
        OneReturn::List => format!(" __cuinstr_beside_return({call})"),
    }
}

/// The variable that holds the poll interval; where nothing measures time, a constant.
fn interval(style: PollStyle) -> &'static str {
    if style.inner { "::__cuinstr_pace" } else { "__cuinstr_pace" }
}

/// The poll of a loop, an expression of type `void`.
fn repeat(style: PollStyle, site: u64, weight: &str) -> String {
    match style.polls {
        Polls::Each => format!("__cuinstr_poll{}({site:#x}ull)", suffix(style)),
        Polls::Amortised | Polls::CountDown => {
            format!("__cuinstr_tick{}(__cuinstr_left, {}, {weight}, {site:#x}ull)", suffix(style), interval(style))
        }
    }
}

/// The poll of a loop in a nest of its activation.
fn in_nest(style: PollStyle, in_nest: &Nest, extent: Option<&Extent>, site: u64, weight: &str) -> String {
    let run = nest_count(in_nest.index);
    let Some(Extent { counter, start, bound, by_type, amount, sure, .. }) = extent else {
        let name = if in_nest.scaled { "scaled" } else { "nest" };
        return format!("__cuinstr_tick_{name}{}({run}, __cuinstr_left, {}, {weight}, {site:#x}ull)", suffix(style), interval(style));
    };
    if *by_type {
        return format!(
            "__cuinstr_tick_sized{}<decltype({bound})>({run}, __cuinstr_left, {}, {weight}, {site:#x}ull, {start}, {amount})",
            suffix(style),
            interval(style)
        );
    }
    let names: Vec<&String> = [start, bound, amount].into_iter().filter(|text| text.parse::<i64>().is_err()).collect();
    let asked: Vec<String> = names.iter().map(|text| format!("__cuinstr_constant({text})")).collect();
    let known = if asked.is_empty() { truth(true).to_owned() } else { asked.join(" && ") };
    let all = format!("<{}, {known}, decltype({counter})>", truth(*sure && in_nest.begins.is_some()));
    format!("__cuinstr_tick_known{all}({run}, __cuinstr_left, __cuinstr_pace, {weight}, {site:#x}ull, ({start}), ({bound}), ({amount}))")
}

/// The poll of a loop over a block's share of something that is probably small.
fn of_share(tile: &BlockShare, site: u64, weight: &str) -> String {
    let BlockShare { bound, step, by_block, .. } = tile;
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

/// `true` or `false`. A macro of the user's may have either word's name, as it may have that of any type: inserted text names the prelude's own.
pub(super) fn truth(holds: bool) -> &'static str {
    if holds { "!0" } else { "!1" }
}

/// The poll behind a barrier; `here` is a kernel's own body.
pub(super) fn barrier(style: PollStyle, site: u64, here: bool) -> String {
    let suffix = if here { "_here" } else { suffix(style) };
    format!("__cuinstr_barrier{suffix}({site:#x}ull)")
}
