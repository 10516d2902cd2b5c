//! How precisely each strongly connected set is interpreted: a cheap pass first, then with sums of registers, then with
//! the code in front of it.

use crate::interpret::body::Body;
use crate::interpret::loop_invariant::{entries, follow};
use crate::interpret::parameters::Returns;
use crate::interpret::slice::Slice;
use crate::interpret::slicing::Depth;
use crate::interpret::work::{Work, allotted};
use crate::program::cfg::Components;
use crate::program::instruction::Operand;
use crate::rank::loops::{LoopProof, Proof, Why};
use crate::rank::nest::{Earlier, open, rounds_by};
use crate::rank::weight::weights_of;
use cuinstr_ptx::Flow;
use std::collections::BTreeSet;

/// Most rounds of loops within loops that the first look may come to; beyond that, a closer one may find fewer. What a callee may take multiplies with
/// them, so this is far from [`crate::rank::linear::MOST_TOGETHER`].
const MOST_AT_FIRST: u64 = 1 << 22;

/// Most blocks of a set in which sums of registers are followed everywhere.
const MOST_WITH_SUMS: usize = 2000;

/// Blocks of a set from which on all registers are followed before any sums are: most of its loops need none, and sums of all of them take long.
const LARGE: usize = 150;

/// The loops of each of these strongly connected sets, outermost first.
///
/// A first look at a set forgets most of what it does to registers that its own proof does not need. Loops further down
/// may need one, such as a budget that they go on with. Where one of those is not proved, the sets in front of it are
/// looked at once more, for what they leave behind alone.
pub(crate) fn rounds(
    body: &mut Body<'_>,
    rpo: &[u32],
    sets: &[Vec<u32>],
    scratch: (&mut Components, &mut Vec<u32>),
    returns: &Returns<'_>,
) -> Vec<Vec<LoopProof>> {
    let (components, position) = scratch;
    let mut all: Vec<Vec<LoopProof>> = Vec::with_capacity(sets.len());
    // Sets that one look was enough for.
    let mut coarse: Vec<&[u32]> = Vec::new();
    for set in sets {
        let (mut found, mut is_close) = rounds_of(body, rpo, set, (components, position), returns);
        if !is_proved(&found) && !coarse.is_empty() {
            for earlier in coarse.drain(..) {
                look_again(body, rpo, earlier, (components, position), returns);
            }
            (found, is_close) = rounds_of(body, rpo, set, (components, position), returns);
        }
        if !is_close {
            coarse.push(set);
        }
        all.push(found);
    }
    all
}

/// The loops of one set, and whether more than one look was taken.
fn rounds_of<'a>(
    body: &mut Body<'a>,
    rpo: &[u32],
    set: &[u32],
    (components, position): (&mut Components, &mut Vec<u32>),
    returns: &Returns<'_>,
) -> (Vec<LoopProof>, bool) {
    let mut look = |body: &mut Body<'a>, wide: &[u32], slice: &Slice<'a>, known: Option<&Earlier>, is_last: bool| {
        Earlier::new(rounds_by(body, rpo, (set, wide), slice, (components, position), (returns, known, is_last)), slice)
    };
    let slice = Slice::new(body, set, Depth::Shallow);
    let mut best = look(body, set, &slice, None, false);
    if is_settled(&best.found) {
        return (best.found, false);
    }
    // Where there are no sums the close look is one without them.
    let mut close = None;
    let mut has_sums = || !close.insert(Slice::new(body, set, Depth::Sums)).sums.is_empty();
    let is_large = set.len() > MOST_WITH_SUMS || set.len() > LARGE && has_sums();
    if is_large {
        let known = Some(&best).filter(|best| open(&best.found) > 0);
        let slice = Slice::new(body, set, Depth::Registers);
        let found = look(body, set, &slice, known, known.is_none());
        if is_settled(&found.found) || is_enough(body, &found.found) {
            return (found.found, false);
        }
        best = better(best, found);
    }
    let is_too_large = |round: &LoopProof| round.proof == Proof::None(Why::TooLarge);
    if set.len() > MOST_WITH_SUMS && best.found.iter().any(is_too_large) {
        // A closer look would not come to its end, either.
        return (best.found, true);
    }
    // Mostly a bound less a counter is missing. With all registers a large set may use up its looks, and with fewer not.
    for with_all in [true, false].into_iter().filter(|with_all| !with_all || is_large) {
        let open_blocks = best.open_blocks();
        if open(&best.found) == 0 || !with_all && set.len() > MOST_WITH_SUMS {
            break;
        }
        let slice = Slice::new(body, set, if with_all { Depth::RegistersAndSumsFor(&open_blocks) } else { Depth::SumsFor(&open_blocks) });
        if !slice.sums.is_empty() {
            let found = look(body, set, &slice, Some(&best), false);
            // That threads trap is as good as it gets where leaving is not defined.
            if is_settled(&found.found) || is_enough(body, &found.found) {
                return (found.found, false);
            }
            best = better(best, found);
        }
    }
    let is_cut = |look: &Earlier| look.found.iter().any(|round| round.proof == Proof::None(Why::CutShort));
    if set.len() > MOST_WITH_SUMS && !is_cut(&best) {
        // All registers were followed.
        return (best.found, true);
    }
    let slice = close.unwrap_or_else(|| Slice::new(body, set, closer(set)));
    let mut front: Option<Option<(Vec<u32>, Slice<'a>)>> = None;
    let mut is_last = open(&best.found) == 0 || set.len() > MOST_WITH_SUMS;
    loop {
        let known = Some(&best).filter(|best| open(&best.found) > 0);
        let mut found = look(body, set, &slice, known, is_last);
        if known.is_some() && open(&found.found) == 0 && has_many(&found.found) {
            // What was proved before may be counted better.
            found = better(found, look(body, set, &slice, None, is_last));
        }
        let mut is_more = is_cut(&found);
        best = better(best, found);
        if open(&best.found) > 0
            && let Some((wide, slice)) = front.get_or_insert_with(|| with_front(body, rpo, set, &slice))
        {
            let found = look(body, wide, slice, Some(&best), is_last);
            is_more |= is_cut(&found);
            best = if open(&found.found) < open(&best.found) { found } else { best };
        }
        if is_last || !is_more || open(&best.found) == 0 {
            break;
        }
        is_last = true;
    }
    (best.found, true)
}

/// A set with the blocks in front of it, if these may say how it begins: it reads something for more than an address that it has not made itself.
fn with_front<'a>(body: &Body<'a>, rpo: &[u32], set: &[u32], slice: &Slice<'_>) -> Option<(Vec<u32>, Slice<'a>)> {
    if set.len() > MOST_WITH_SUMS || !depends_on_its_front(body, rpo, set, slice) {
        return None;
    }
    let front = body.in_front_of(set, rpo);
    if front.is_empty() {
        return None;
    }
    let mut wide = [set, &front].concat();
    wide.sort_unstable();
    let slice = Slice::new(body, &wide, Depth::Sums);
    Some((wide, slice))
}

/// Whether a set reads something for more than an address that it has not made itself.
fn depends_on_its_front(body: &Body<'_>, rpo: &[u32], set: &[u32], slice: &Slice<'_>) -> bool {
    let given: BTreeSet<u32> = entries(body, rpo, set).into_iter().flat_map(|entry| slice.live(entry)).copied().collect();
    let is_given = |operand: &Operand<'_>| matches!(operand, Operand::Register(slot) if given.contains(slot));
    slice.guards.values().any(|slot| given.contains(slot)) || slice.steps.iter().any(|step| step.instruction.rest.iter().any(is_given))
}

/// The look that proves more, or comes to fewer rounds; else the closer one, which says better why.
fn better(one: Earlier, two: Earlier) -> Earlier {
    let is_open = |round: &&LoopProof| matches!(round.proof, Proof::None(_) | Proof::TrapOnly);
    let most = |found: &[LoopProof]| weights_of(found).into_iter().map(|weight| weight.rounds).max();
    let rank = |look: &Earlier| (look.found.iter().filter(is_open).count(), most(&look.found));
    if rank(&one) < rank(&two) { one } else { two }
}

/// Notes what a set leaves behind, without a proof.
fn look_again(
    body: &mut Body<'_>,
    rpo: &[u32],
    set: &[u32],
    (components, position): (&mut Components, &mut Vec<u32>),
    returns: &Returns<'_>,
) {
    let slice = Slice::new(body, set, closer(set));
    let budget = allotted(set, &slice);
    let base = follow(
        &mut Work { body, slice: &slice, rpo, position, components, returns, counted: &[], is_last: false, budget, asks_action: false },
        set,
    );
    base.note(body);
    body.forget_asked();
}

/// How closely a set is looked at that one look was not enough for.
fn closer(set: &[u32]) -> Depth<'static> {
    if set.len() > MOST_WITH_SUMS { Depth::Registers } else { Depth::Sums }
}

/// Whether each loop is proved, and those within each other do not multiply to too many rounds.
fn is_proved(found: &[LoopProof]) -> bool {
    open(found) == 0 && weights_of(found).into_iter().all(|weight| !weight.is_too_much())
}

/// Whether nothing more is to be looked for: each loop is proved, and those within each other do not multiply to nearly too many rounds.
fn is_settled(found: &[LoopProof]) -> bool {
    let is_proved = |round: &LoopProof| !matches!(round.proof, Proof::None(_) | Proof::TrapOnly);
    found.iter().all(is_proved) && !has_many(found)
}

/// Whether a closer look has proved each loop of a kernel, be it that threads trap, and no rounds of callees multiply with theirs.
fn is_enough(body: &Body<'_>, found: &[LoopProof]) -> bool {
    let calls = |block: &u32| body.graph.last(*block).is_some_and(|last| body.function.statements[last as usize].flow == Flow::Call);
    let is_proved_so = |round: &LoopProof| round.proof == Proof::TrapOnly || !round.left.iter().any(calls);
    body.function.is_kernel && found.iter().all(is_proved_so) && is_proved(found)
}

/// Whether rounds of loops within each other multiply to nearly too many.
fn has_many(found: &[LoopProof]) -> bool {
    weights_of(found).into_iter().any(|weight| weight.rounds > MOST_AT_FIRST)
}
