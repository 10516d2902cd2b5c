//! What the lanes of a warp do together. A lane that has ended is waited for no more.

use crate::machine::{Block, reduce};
use crate::program::{Program, Warp, WarpKind};
use crate::thread::{State, Wait};

/// Lets the lanes go on that have all come to the same operation.
pub(crate) fn release(program: &Program, block: &mut Block, warp: usize) {
    let first = 32 * warp;
    let last = (first + 32).min(block.threads.len());
    let lanes = &mut block.threads[first..last];
    let live = lanes.iter().filter(|thread| thread.is_live()).fold(0_u32, |mask, thread| mask | 1 << thread.lane());
    for lane in 0..lanes.len() {
        let State::Waits(Wait::Warp { operation, mask, .. }) = &lanes[lane].state else { continue };
        let (operation, mask) = (operation.clone(), mask & live);
        let values: Option<Vec<(usize, [u64; 3])>> = (0..lanes.len())
            .filter(|other| mask >> other & 1 == 1)
            .map(|other| match &lanes[other].state {
                State::Waits(Wait::Warp { operation: theirs, values, mask: own })
                    if own & live == mask && theirs.kind == operation.kind =>
                {
                    Some((other, *values))
                }
                _ => None,
            })
            .collect();
        let Some(values) = values.filter(|values| !values.is_empty()) else { continue };
        for &(member, own) in &values {
            let [one, two] = result(operation.kind, member, own, &values);
            let State::Waits(Wait::Warp { operation: Warp { to, .. }, .. }) = std::mem::replace(&mut lanes[member].state, State::Ready)
            else {
                continue;
            };
            let function = lanes[member].frames.last().map_or(0, |frame| frame.function);
            let widths = &program.functions[function].widths;
            lanes[member].set(to[0], one, widths);
            lanes[member].set(to[1], two, widths);
        }
    }
}

/// What a lane gets: the first and the second result.
fn result(kind: WarpKind, lane: usize, own: [u64; 3], all: &[(usize, [u64; 3])]) -> [u64; 2] {
    let yes = all.iter().filter(|(_, values)| values[0] & 1 == 1).count();
    let ballot =
        |test: &dyn Fn(u64) -> bool| all.iter().filter(|(_, values)| test(values[0])).fold(0_u64, |mask, (lane, _)| mask | 1 << lane);
    match kind {
        WarpKind::Sync => [0, 0],
        WarpKind::All => [u64::from(yes == all.len()), 0],
        WarpKind::Any => [u64::from(yes > 0), 0],
        WarpKind::Uniform => [u64::from(yes == 0 || yes == all.len()), 0],
        WarpKind::Ballot => [ballot(&|value| value & 1 == 1), 0],
        WarpKind::MatchAny => [ballot(&|value| value == own[0]), 0],
        WarpKind::MatchAll => {
            let same = all.iter().all(|(_, values)| values[0] == own[0]);
            [if same { ballot(&|_| true) } else { 0 }, u64::from(same)]
        }
        WarpKind::Elect => {
            let leader = all.first().map_or(0, |(lane, _)| *lane);
            [leader as u64, u64::from(leader == lane)]
        }
        WarpKind::Reduce(kind, signed) => [reduce(kind, signed, all.iter().map(|(_, values)| values[0])), 0],
        WarpKind::Up | WarpKind::Down | WarpKind::Butterfly | WarpKind::Index => {
            let (source, inside) = shuffled(kind, lane as u64, own[1], own[2]);
            let from = if inside { source as usize } else { lane };
            // What a lane that takes no part would give is not defined.
            let value = all.iter().find(|(other, _)| *other == from).map_or(own[0], |(_, values)| values[0]);
            [value, u64::from(inside)]
        }
    }
}

/// The lane that a shuffle reads, and whether it lies in the segment; `bounds` holds the clamp and the segment's mask.
fn shuffled(kind: WarpKind, lane: u64, by: u64, bounds: u64) -> (u64, bool) {
    let (by, clamp, segment) = (by & 31, bounds & 31, bounds >> 8 & 31);
    let least = lane & segment;
    let most = least | clamp & !segment;
    match kind {
        WarpKind::Up => (lane.wrapping_sub(by), lane.checked_sub(by).is_some_and(|from| from >= most)),
        WarpKind::Down => (lane + by, lane + by <= most),
        WarpKind::Butterfly => (lane ^ by, lane ^ by <= most),
        _ => {
            let from = least | by & !segment;
            (from, from <= most)
        }
    }
}
