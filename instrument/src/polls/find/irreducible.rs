//! Cycles with several ways in (irreducible): loops that no single block leads into.

use super::Loops;
use cuinstr_ptx::{Components, Graph};

/// A strongly connected set of blocks that several of its blocks lead into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::polls) struct Irreducible {
    /// In reverse postorder. The first is the header of a loop that is not natural.
    pub(in crate::polls) entries: Vec<Entry>,
}

/// A block that control may come to from outside of the set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::polls) struct Entry {
    /// Its number.
    pub(in crate::polls) block: u32,
    /// The blocks outside that lead to it, each once. The function's first block has the function's beginning besides.
    pub(in crate::polls) sources: Vec<u32>,
    /// Whether some cycle comes by it and not by the first entry, which has this, too.
    pub(in crate::polls) repeats: bool,
}

/// All of them, those within others too, and of each block a number for the innermost one that it is in. Each cycle of the graph that holds no header of a
/// natural loop leads through an entry of one.
pub(super) fn find(graph: &Graph, loops: &Loops) -> (Vec<Irreducible>, Vec<u32>) {
    let (mut found, mut within) = (Vec::new(), Vec::new());
    let mut is_header = vec![false; graph.blocks.len()];
    for one in loops.all.iter().filter(|one| !one.is_natural) {
        is_header[one.header as usize] = true;
    }
    if !is_header.contains(&true) {
        return (found, within);
    }
    within.resize(graph.blocks.len(), 0);
    let mut scratch = Components::default();
    let all: Vec<u32> = (0..graph.blocks.len() as u32).filter(|block| loops.is_reached(*block)).collect();
    // The set that each block is in; no block is in the set of number zero.
    let (mut set, mut sets) = (vec![1_u32; graph.blocks.len()], 1);
    // Of each table the blocks outside of a set that end with it.
    let mut users = vec![(0_u32, Vec::new()); graph.table_count() as usize];
    let mut work = vec![all];
    while let Some(blocks) = work.pop() {
        let Some(own) = blocks.first().map(|block| set[*block as usize]) else { continue };
        for mut component in graph.components(&blocks, |block| set[block as usize] == own, &mut scratch) {
            // Natural loops alone have no such set inside.
            if !component.iter().any(|block| is_header[*block as usize]) {
                continue;
            }
            sets += 1;
            for block in &component {
                set[*block as usize] = sets;
            }
            let mut entries: Vec<Entry> = Vec::new();
            for &block in &component {
                let is_outside = |source: &u32| loops.is_reached(*source) && set[*source as usize] != sets;
                let mut sources: Vec<u32> = Vec::new();
                for source in graph.node_sources(block) {
                    let Some(table) = source.checked_sub(graph.blocks.len() as u32) else {
                        sources.extend(Some(source).filter(is_outside));
                        continue;
                    };
                    let (of, users) = &mut users[table as usize];
                    if std::mem::replace(of, sets) != sets {
                        *users = graph.listed(table).1.iter().copied().filter(is_outside).collect();
                    }
                    sources.extend_from_slice(users);
                }
                sources.sort_unstable();
                sources.dedup();
                if block == 0 || !sources.is_empty() {
                    entries.push(Entry { block, sources, repeats: false });
                }
            }
            entries.sort_unstable_by_key(|entry| loops.place[entry.block as usize]);
            let Some(first) = entries.first().map(|entry| entry.block) else { continue };
            if entries.len() > 1 {
                for block in &component {
                    within[*block as usize] = sets;
                }
            }
            set[first as usize] = 0;
            component.retain(|block| *block != first);
            if entries.len() > 1 {
                let mut inside = graph.components(&component, |block| set[block as usize] == sets, &mut scratch).concat();
                inside.sort_unstable();
                for entry in &mut entries {
                    entry.repeats = entry.block == first || inside.binary_search(&entry.block).is_ok();
                    if entry.repeats {
                        set[entry.block as usize] = 0;
                    }
                }
                component.retain(|block| set[*block as usize] != 0);
                found.push(Irreducible { entries });
            }
            work.push(component);
        }
    }
    (found, within)
}
