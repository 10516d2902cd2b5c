//! Liveness: at the beginning of which blocks each slot matters. (Aho, Lam, Sethi, Ullman: Compilers, 2nd edition, 9.2.5.)

use crate::interpret::body::Body;
use crate::interpret::parameters::handed;
use crate::interpret::slice::Slice;
use crate::interpret::step::each_needed;
use crate::program::instruction::Operand;
use std::collections::BTreeMap;

/// Most values of registers that are kept at once: registers times the blocks at whose beginning they matter.
const MOST_VALUES: usize = 1 << 20;

/// Slots, each with a block.
type Uses = Vec<(u32, u32)>;

/// The slots that are live at the beginning of each block, sorted.
pub(crate) fn find(slice: &Slice<'_>, body: &Body<'_>, blocks: &[u32]) -> BTreeMap<u32, Vec<u32>> {
    let (reads, writes) = uses(slice, body, blocks);
    let sources: Vec<Vec<u32>> = blocks
        .iter()
        .map(|block| body.graph.sources(*block).iter().filter_map(|source| blocks.binary_search(source).ok()).map(|at| at as u32).collect())
        .collect();
    // By block; slot after slot, so that each list is sorted.
    let mut live: Vec<Vec<u32>> = vec![Vec::new(); blocks.len()];
    let mut values = 0;
    // For which slot each block was last seen, and last seen to write it.
    let mut seen = vec![u32::MAX; blocks.len()];
    let mut writes_it = vec![u32::MAX; blocks.len()];
    let mut work: Vec<u32> = Vec::new();
    let mut writes = writes.into_iter().peekable();
    let mut at = 0;
    while at < reads.len() && values < MOST_VALUES {
        let slot = reads[at].0;
        while let Some((_, block)) = reads.get(at).filter(|(of, _)| *of == slot) {
            work.push(*block);
            at += 1;
        }
        while let Some((of, block)) = writes.next_if(|(of, _)| *of <= slot) {
            writes_it[block as usize] = of;
        }
        while let Some(block) = work.pop() {
            if std::mem::replace(&mut seen[block as usize], slot) == slot {
                continue;
            }
            live[block as usize].push(slot);
            values += 1;
            work.extend(sources[block as usize].iter().filter(|source| writes_it[**source as usize] != slot));
        }
    }
    blocks.iter().copied().zip(live).filter(|(_, slots)| !slots.is_empty()).collect()
}

/// Slots with the blocks that read them before they write them, and those with the blocks that write them whatever their guards say. Blocks are
/// given by their place in the set; both lists are sorted.
fn uses(slice: &Slice<'_>, body: &Body<'_>, blocks: &[u32]) -> (Uses, Uses) {
    let mut reads: Vec<(u32, u32)> = Vec::new();
    let mut writes: Vec<(u32, u32)> = Vec::new();
    // The last block that wrote each slot.
    let mut written_in = vec![u32::MAX; slice.slots.len()];
    for (at, &block) in (0_u32..).zip(blocks) {
        for step in &slice.steps[slice.steps(block)] {
            let mut read = |slot: u32| {
                if written_in[slot as usize] != at {
                    reads.push((slot, at));
                }
            };
            each_needed(&step.instruction, &mut read);
            if step.is_again {
                step.writes.iter().copied().for_each(&mut read);
            }
            let named = step.apart.map(|apart| apart.sum).into_iter().chain(step.derived.map(|derived| derived.sum));
            // How far a register of a sum moves is asked of what it held before.
            step.writes.iter().copied().filter(|slot| !slice.sums_of(*slot).is_empty()).for_each(&mut read);
            for sum in named.chain(step.writes.iter().flat_map(|slot| slice.sums_of(*slot).iter().copied())) {
                read(slice.first_sum + sum);
            }
            for &slot in step.writes.iter().filter(|slot| **slot != u32::MAX) {
                if step.instruction.guard.is_some() {
                    if written_in[slot as usize] != at {
                        reads.push((slot, at));
                    }
                } else if written_in[slot as usize] != at {
                    written_in[slot as usize] = at;
                    writes.push((slot, at));
                }
            }
        }
        let given = handed(body, block).into_iter().filter_map(|(_, operand)| match operand {
            Operand::Register(register) => slice.followed(register),
            _ => None,
        });
        for slot in slice.guards.get(&block).copied().into_iter().chain(given) {
            if written_in[slot as usize] != at {
                reads.push((slot, at));
            }
        }
    }
    reads.sort_unstable();
    reads.dedup();
    writes.sort_unstable();
    (reads, writes)
}
