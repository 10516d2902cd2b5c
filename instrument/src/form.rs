//! The form of each loop's poll: left alone, strip-mined, chunked or counted down, and why not a better one.

use crate::cost::Cost;
use crate::invariant::Home;
use crate::options::{Options, Polls};
use crate::read_only;
use crate::statement::{Loop, LoopKind};
use crate::strip::{self, Strip};
use crate::token::Kind;
use crate::unroll::{self, Unroll};
use crate::{induction, place};
use std::ops::Range;

/// What an iteration may weigh for chunks of it to pay: beyond, the poll is lost in the body.
const HEAVY: u32 = 64;

/// Most iterations of a chunk.
const MOST_TURNS: u32 = 64;

/// How a loop that gets a poll gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Chunks of as many iterations as will run for sure, with what unrolls the inner loop.
    Strip(Strip, Unroll),
    /// Chunks of a constant number of iterations, the user's condition asked before each, with the same.
    Chunk(Chunk, Unroll),
    /// The allowance is counted down in each iteration.
    CountDown,
}

/// A chunk of iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// How many.
    pub(crate) turns: u32,
    /// Whether the loop has a condition at all.
    pub(crate) has_condition: bool,
}

/// Decides the form of a loop.
pub(crate) fn of_loop(options: &Options, home: &Home, loop_: &Loop, cost: Cost) -> Shape {
    better(options, home, loop_, cost).unwrap_or(Shape::CountDown)
}

/// The best form, or why there is none but counting down.
fn better(options: &Options, home: &Home, loop_: &Loop, cost: Cost) -> Result<Shape, &'static str> {
    let context = home.context;
    if options.polls == Polls::Each {
        return Err("each iteration polls");
    }
    if options.limits.fuel.is_some() {
        return Err("each iteration costs fuel");
    }
    if home.host_too {
        return Err("the host runs it too");
    }
    if context.fragment.of_macro.is_some() {
        return Err("it stands in a macro");
    }
    let unroll = unroll::of_loop(context, home.body, loop_);
    // The compiler may unroll all of such a loop and keep an array that it indexes in registers. Only the user's own loop lets it.
    if unroll == Unroll::Whole {
        return Err("it may be unrolled as a whole");
    }
    let why = match strip::of_loop(home, loop_) {
        Ok(strip) if !jumps(home, loop_) => return Ok(Shape::Strip(strip, unroll)),
        Ok(_) => "a jump leads into it or out of it",
        Err(strip::MAY_BE_KNOWN) => return Err(strip::MAY_BE_KNOWN),
        Err(why) => why,
    };
    if cost.weight() > HEAVY {
        return Err("its body outweighs its poll");
    }
    let condition = condition(home, loop_).filter(|condition| is_chunkable(home, loop_, condition)).ok_or(why)?;
    let chunk = Chunk { turns: (4 * HEAVY / cost.weight()).clamp(4, MOST_TURNS), has_condition: !condition.is_empty() };
    Ok(Shape::Chunk(chunk, unroll))
}

/// The condition that is asked before each iteration.
fn condition(home: &Home, loop_: &Loop) -> Option<Range<usize>> {
    let fragment = home.context.fragment;
    let (open, close) = loop_.header?;
    if fragment.tokens[open..=close].iter().any(|token| matches!(token.kind, Kind::ArmIf | Kind::ArmElse | Kind::ArmEnd)) {
        return None;
    }
    match loop_.kind {
        LoopKind::For => induction::semicolons(fragment, open, close).map(|(first, second)| first + 1..second),
        LoopKind::While => Some(open + 1..close),
        LoopKind::RangeFor | LoopKind::Do => None,
    }
}

/// Whether a constant chunk can stand around the loop. The count of a chunk tells, where the loop comes by again, whether its last chunk was
/// used up: no jump may pass that by.
fn is_chunkable(home: &Home, loop_: &Loop, condition: &Range<usize>) -> bool {
    let context = home.context;
    let fragment = context.fragment;
    if place::declares(fragment, condition.start - 1, condition.end) || jumps(home, loop_) {
        return false;
    }
    // `for (;;)` and `while (true)` run until something in them ends them, and nobody unrolls them.
    let is_constant = |at: usize| matches!(fragment.kind(at), Some(Kind::Number)) || fragment.text(context.source, at) == b"true";
    if condition.is_empty() || (condition.len() == 1 && is_constant(condition.start)) {
        return true;
    }
    match induction::read(context, loop_) {
        Some(induction) => [induction.start, induction.bound].into_iter().any(|range| home.is_of_run_time(range, loop_)),
        None => home.is_of_run_time(condition.clone(), loop_),
    }
}

/// Whether a jump, or what may hide one, leads out of the loop or into it.
fn jumps(home: &Home, loop_: &Loop) -> bool {
    let context = home.context;
    let (fragment, source) = (context.fragment, context.source);
    let Some(end) = loop_.end else { return true };
    let end = end.min(fragment.len().saturating_sub(1));
    let mut switches: Vec<usize> = Vec::new();
    for at in loop_.keyword..=end {
        match fragment.tokens[at].kind {
            Kind::Goto => return true,
            Kind::Switch => {
                let body = (fragment.is(at + 1, b'(')).then(|| fragment.mate(at + 1)).flatten().map(|close| close + 1);
                match body.filter(|open| fragment.is(*open, b'{')).and_then(|open| fragment.mate(open)) {
                    Some(close) => switches.push(close),
                    None => return true,
                }
            }
            Kind::Case | Kind::Default if !switches.iter().any(|close| at < *close) => return true,
            Kind::Ident => {
                let name = fragment.text(source, at);
                let is_unknown = !context.macros.is_literal(name)
                    && (context.macros.is_defined(name) || (is_capital(name) && read_only::starts_statement(context, at)));
                if is_unknown {
                    return true;
                }
            }
            _ => {}
        }
    }
    home.body.labels.iter().any(|label| (loop_.keyword..=end).contains(&label.token))
}

fn is_capital(name: &[u8]) -> bool {
    name.len() > 1 && !name.iter().any(u8::is_ascii_lowercase)
}
