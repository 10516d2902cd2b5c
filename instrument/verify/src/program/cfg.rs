//! The control-flow graph of one function: basic blocks and numbered edges.

pub(crate) use cuinstr_ptx::{Components, Edge};
use cuinstr_ptx::{Flow, Function};

/// Control flow of a function. Block 0 is its entry.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) blocks: Vec<Block>,
    /// All edges, each block's own in one run.
    edges: Vec<Edge>,
    /// Sources of edges into each block, in one run a block.
    sources: Vec<u32>,
    first_source: Vec<u32>,
    /// Statements that lead nowhere that can be found.
    pub(crate) lost: Vec<u32>,
}

/// Statements that are passed one after the other; none for a table that several blocks use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub(crate) first: u32,
    /// Behind its last statement.
    pub(crate) end: u32,
    edges: (u32, u32),
}

impl Graph {
    /// The function's graph.
    pub(crate) fn new(function: &Function<'_>) -> Self {
        let read = cuinstr_ptx::Graph::new(function);
        let mut graph = Self::default();
        let mut count = read.blocks.len() as u32;
        // A table that several blocks use gets an empty block, which they lead to: its edges are there once.
        let mut shared: Vec<Option<u32>> = Vec::with_capacity(read.table_count() as usize);
        for table in 0..read.table_count() {
            let (targets, users) = read.listed(table);
            let is_shared = targets.len() > 1 && users.len() > 1;
            shared.push(is_shared.then_some(count));
            count += u32::from(is_shared);
        }
        for (block, number) in read.blocks.iter().zip(0..) {
            let mut edges = read.edges(number);
            let table = read.table_of(number).and_then(|table| Some((table, shared[table as usize]?)));
            let joint = table.and_then(|(table, to)| Some(Edge { to, ..edges.nth(read.listed(table).0.len() - 1)? }));
            graph.push(block.first, block.end, joint.into_iter().chain(edges));
        }
        let end = function.statements.len() as u32;
        for (table, _) in (0..).zip(&shared).filter(|(_, shared)| shared.is_some()) {
            graph.push(end, end, read.listed(table).0.iter().map(|to| Edge { to: *to, when: None }));
        }
        graph.lost = read.lost;
        graph.find_sources();
        graph
    }

    fn push(&mut self, first: u32, end: u32, edges: impl Iterator<Item = Edge>) {
        let from = self.edges.len() as u32;
        self.edges.extend(edges);
        self.blocks.push(Block { first, end, edges: (from, self.edges.len() as u32) });
    }

    fn find_sources(&mut self) {
        let count = self.blocks.len();
        self.first_source = vec![0; count + 1];
        for edge in &self.edges {
            self.first_source[edge.to as usize + 1] += 1;
        }
        for index in 0..count {
            self.first_source[index + 1] += self.first_source[index];
        }
        let mut next = self.first_source.clone();
        self.sources = vec![0; self.edges.len()];
        for number in 0..count {
            for edge in self.edge_numbers(number as u32) {
                let to = self.edges[edge].to as usize;
                self.sources[next[to] as usize] = number as u32;
                next[to] += 1;
            }
        }
    }

    /// A block's last statement; none for the empty block of a table.
    pub(crate) fn last(&self, block: u32) -> Option<u32> {
        let block = self.blocks[block as usize];
        (block.first < block.end).then(|| block.end - 1)
    }

    /// The numbers of a block's edges among all edges of the function.
    pub(crate) fn edge_numbers(&self, block: u32) -> std::ops::Range<usize> {
        let (from, to) = self.blocks[block as usize].edges;
        from as usize..to as usize
    }

    /// Ways out of a block.
    pub(crate) fn edges(&self, block: u32) -> &[Edge] {
        &self.edges[self.edge_numbers(block)]
    }

    /// Index of a block's first edge among all edges of the function.
    pub(crate) fn first_edge(&self, block: u32) -> usize {
        self.blocks[block as usize].edges.0 as usize
    }

    /// Blocks that lead to a block.
    pub(crate) fn sources(&self, block: u32) -> &[u32] {
        let block = block as usize;
        &self.sources[self.first_source[block] as usize..self.first_source[block + 1] as usize]
    }

    /// For each block whether control may come from there to a return.
    pub(crate) fn may_return(&self, function: &Function<'_>) -> Vec<bool> {
        let mut found = vec![false; self.blocks.len()];
        let is_return = |block: &u32| self.last(*block).is_some_and(|last| function.statements[last as usize].flow == Flow::Return);
        let mut work: Vec<u32> = (0..self.blocks.len() as u32).filter(is_return).collect();
        while let Some(block) = work.pop() {
            if !std::mem::replace(&mut found[block as usize], true) {
                work.extend(self.sources(block));
            }
        }
        found
    }

    /// For each block its place in a reverse postorder from the entry; `u32::MAX` for blocks that can't be reached.
    pub(crate) fn reverse_postorder(&self) -> Vec<u32> {
        let mut rpo = vec![u32::MAX; self.blocks.len()];
        if self.blocks.is_empty() {
            return rpo;
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
            rpo[*block as usize] = at as u32;
        }
        rpo
    }
}
