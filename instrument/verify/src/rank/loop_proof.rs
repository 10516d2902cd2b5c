//! The proof of one loop.
//!
//! An infinite run of a function, its callees returning, passes some set of blocks for ever: a strongly connected set
//! S. A loop is a head and the strongly connected set around it. For each loop the proof shows that no S with that head
//! can be passed for ever once the flag is set. Then the head is taken out, and what is still strongly connected inside
//! is a loop of its own. This is enough: each S lies in one of the sets and holds its head, or lies in a set inside.
//!
//! For one head, an iteration is interpreted from the head. It starts from the loop invariant (`base`), and assumes
//! that the flag holds the launch's number. Every edge of S is taken in iterations that begin after the host wrote the
//! flag. So edges that no such iteration can take are not in S. What is left around the head must be empty, or have a
//! ranking function.

use crate::domain::state::State;
use crate::domain::value::{Assumption, MOST_TICKS};
use crate::interpret::edge_cost::{Count, NEVER};
use crate::interpret::step::Step;
use crate::interpret::work::Work;
use crate::program::instruction::Operand;
use crate::rank::loops::{Proof, Why};
use crate::rank::nest_phases::Phases;
use crate::rank::phases::phases;
use crate::rank::ranking::remaining;
use crate::rank::remaining::Remaining;

/// Looks that it is worth to tell a loop's rounds apart, in multiples of those at the loop itself, and beside them: at first, and when nothing else has
/// proved it. Of this repository's kernels each loop that is proved so is at first; of its tests a few need five times as many.
const PHASES_FIRST: (usize, usize) = (1, 60);

const PHASES_LAST: (usize, usize) = (8, 500);

/// What is proved of a loop by what registers hold where its rounds begin.
pub(crate) fn prove(work: &mut Work<'_, '_>, blocks: &[u32], head: u32, base: &(State, bool)) -> (Proof, Remaining) {
    let asked = Assumption { asked: true, ..Assumption::default() };
    let before = work.budget;
    work.asks_action = false;
    let left = remaining(work, blocks, head, base, asked, &[]);
    let (asks_action, spent) = (work.asks_action, before - work.budget);
    // Where no poll is passed the flag does not matter.
    match (left.blocks.is_empty(), left.count) {
        (true, _) if left.asks => return (Proof::Polled, left),
        // Where it is looked at from rounds that another one went before, that one has come back.
        (true, _) => return (Proof::Counted(Count { rounds: u64::from(base.1), ..NEVER }), left),
        (false, Some(count)) if left.asks => return (Proof::PolledWithin(count), left),
        (false, Some(count)) => return (Proof::Counted(count), left),
        (false, None) => {}
    }
    if let Some(timed) = by_clock(work, &left.blocks, head, base) {
        return timed;
    }
    if !work.slice.is_close {
        // A closer look follows.
        return (Proof::None(Why::NoPoll), left);
    }
    // Where only the action decides which way a round goes, it is soon found.
    if asks_action || work.budget <= spent {
        let trap = remaining(work, blocks, head, base, Assumption { trap: true, ..asked }, &[]);
        if trap.blocks.is_empty() || trap.count.is_some() {
            return (Proof::TrapOnly, left);
        }
    } else {
        // It would come to the same.
        work.budget -= spent;
    }
    // Where rounds can be told apart that is found soon; where they can't, each branch is tried for nothing.
    let is_last = work.is_last;
    let (times, looks) = if is_last { PHASES_LAST } else { PHASES_FIRST };
    // Whether threads trap is asked last.
    let mut is_cut = asks_action && !is_last;
    let mut told_apart = |assumption: Assumption| {
        let kept = work.budget;
        work.budget = kept.min((spent * times + looks) * if assumption.trap { 4 } else { 1 });
        let allowed = work.budget;
        let forked = phases(work, &Phases { blocks: &left.blocks, head, base, assumption });
        is_cut |= !is_last && work.budget == 0;
        work.budget = kept - (allowed - work.budget);
        forked
    };
    if let Some((count, together)) = told_apart(asked) {
        let count = Count { rounds: count.rounds.saturating_add(u64::from(base.1)), ..count };
        return (Proof::PolledWithin(count), Remaining { together, ..left });
    }
    if asks_action && is_last && told_apart(Assumption { trap: true, ..asked }).is_some() {
        return (Proof::TrapOnly, left);
    }
    if work.budget == 0 {
        return (Proof::None(Why::TooLarge), left);
    }
    if is_cut {
        return (Proof::None(Why::CutShort), left);
    }
    (Proof::None(if left.asks { Why::GoesOn } else { Why::NoPoll }), left)
}

/// What is proved of a loop that reads a clock, by how far that has gone on: in as few ticks as possible, up to a power of two.
fn by_clock(work: &mut Work<'_, '_>, blocks: &[u32], head: u32, base: &(State, bool)) -> Option<(Proof, Remaining)> {
    let mut steps = blocks.iter().flat_map(|block| &work.slice.steps[work.slice.steps(*block)]);
    if !steps.any(reads_clock) {
        return None;
    }
    let mut after = |ticks: u64| {
        let late = Assumption { asked: true, late: ticks, trap: false };
        let left = remaining(work, blocks, head, base, late, &[]);
        let rounds = if left.blocks.is_empty() { Some(u64::from(base.1)) } else { left.count.map(|count| count.rounds) };
        rounds.map(|rounds| (Proof::Clock { ticks, rounds }, left))
    };
    let mut found = after(MOST_TICKS)?;
    let (mut least, mut most) = (0, MOST_TICKS.ilog2());
    while least < most {
        let middle = u32::midpoint(least, most);
        match after(1 << middle) {
            Some(sooner) => (found, most) = (sooner, middle),
            None => least = middle + 1,
        }
    }
    Some(found)
}

fn reads_clock(step: &Step<'_>) -> bool {
    matches!(step.instruction.rest[..], [Operand::Name("%globaltimer" | "%clock64")])
}
