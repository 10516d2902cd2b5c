//! Control flow of one function: basic blocks and edges, each edge with a number of its own.

use cuinstr_ptx::Function;

pub(super) use cuinstr_ptx::{Components, Edge};

/// Control flow of a function. Block 0 is its entry.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) blocks: Vec<Block>,
    /// All edges, each block's own in one run.
    edges: Vec<Edge>,
    /// Sources of edges into each block, in one run a block.
    sources: Vec<u32>,
    first_source: Vec<u32>,
    /// Statements that lead nowhere that can be found.
    pub(super) lost: Vec<u32>,
}

/// Statements that are passed one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) first: u32,
    /// Behind its last statement.
    pub(super) end: u32,
    edges: (u32, u32),
}

impl Graph {
    /// The function's graph.
    pub(super) fn new(function: &Function<'_>) -> Self {
        let read = cuinstr_ptx::Graph::new(function);
        let mut graph = Self::default();
        let count = read.blocks.len();
        for (block, number) in read.blocks.iter().zip(0..) {
            let from = graph.edges.len() as u32;
            graph.edges.extend(read.edges(number));
            graph.blocks.push(Block { first: block.first, end: block.end, edges: (from, graph.edges.len() as u32) });
        }
        graph.lost = read.lost;
        graph.first_source = vec![0; count + 1];
        for edge in &graph.edges {
            graph.first_source[edge.to as usize + 1] += 1;
        }
        for index in 0..count {
            graph.first_source[index + 1] += graph.first_source[index];
        }
        let mut next = graph.first_source.clone();
        graph.sources = vec![0; graph.edges.len()];
        for number in 0..count {
            for edge in graph.range(number) {
                let to = graph.edges[edge].to as usize;
                graph.sources[next[to] as usize] = number as u32;
                next[to] += 1;
            }
        }
        graph
    }

    fn range(&self, block: usize) -> std::ops::Range<usize> {
        let (from, to) = self.blocks[block].edges;
        from as usize..to as usize
    }

    /// Ways out of a block.
    pub(super) fn edges(&self, block: u32) -> &[Edge] {
        &self.edges[self.range(block as usize)]
    }

    /// Index of a block's first edge among all edges of the function.
    pub(super) fn first_edge(&self, block: u32) -> usize {
        self.blocks[block as usize].edges.0 as usize
    }

    /// Blocks that lead to a block.
    pub(super) fn sources(&self, block: u32) -> &[u32] {
        let block = block as usize;
        &self.sources[self.first_source[block] as usize..self.first_source[block + 1] as usize]
    }

    /// For each block its place in a reverse postorder from the entry; `u32::MAX` for blocks that can't be reached.
    pub(super) fn reverse_postorder(&self) -> Vec<u32> {
        let mut place = vec![u32::MAX; self.blocks.len()];
        if self.blocks.is_empty() {
            return place;
        }
        let mut seen = vec![false; self.blocks.len()];
        let mut left = Vec::with_capacity(self.blocks.len());
        let mut work = vec![(0_u32, 0_usize)];
        seen[0] = true;
        while let Some((block, edge)) = work.pop() {
            // The last way is walked first, so that what stands first in the text comes first in the order.
            let edges = self.edges(block);
            match edges.len().checked_sub(edge + 1).and_then(|at| edges.get(at)) {
                Some(next) => {
                    work.push((block, edge + 1));
                    if !std::mem::replace(&mut seen[next.to as usize], true) {
                        work.push((next.to, 0));
                    }
                }
                None => left.push(block),
            }
        }
        for (at, block) in left.iter().rev().enumerate() {
            place[*block as usize] = at as u32;
        }
        place
    }
}
