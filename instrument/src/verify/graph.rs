//! Control flow of one function: basic blocks, edges, and what is strongly connected.

use super::text::{Flow, Function, uncommented};

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

/// A way from one block to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) to: u32,
    /// Taken only if the guard of the block's last statement has this value.
    pub(super) when: Option<bool>,
}

impl Graph {
    /// The function's graph. Linear in its statements and labels.
    pub(super) fn new(function: &Function<'_>, text: &str) -> Self {
        let statements = &function.statements;
        let mut graph = Self::default();
        // Targets first: they are what begins blocks.
        let mut targets: Vec<(u32, u32)> = Vec::new();
        let mut begins = vec![false; statements.len() + 1];
        for (index, statement) in statements.iter().enumerate() {
            let is_jump = match statement.flow {
                Flow::Branch | Flow::Table => {
                    let found = targets.len();
                    let body = &*uncommented(&text[statement.start as usize..statement.end as usize]);
                    let known = match last_name(body) {
                        Some(name) if statement.flow == Flow::Branch => match function.label(statement.scope, name) {
                            Some(label) => {
                                targets.push((index as u32, label.statement));
                                true
                            }
                            None => false,
                        },
                        Some(name) => match function.label(statement.scope, name).and_then(|label| label.table) {
                            Some(table) => names(&uncommented(table)).skip(1).all(|name| match function.label(statement.scope, name) {
                                Some(label) => {
                                    targets.push((index as u32, label.statement));
                                    true
                                }
                                None => false,
                            }),
                            None => false,
                        },
                        None => false,
                    };
                    if !known || targets.len() == found {
                        graph.lost.push(index as u32);
                    }
                    for (_, to) in &targets[found..] {
                        begins[*to as usize] = true;
                    }
                    true
                }
                Flow::Next => false,
                Flow::Call | Flow::Return | Flow::End => true,
            };
            if is_jump {
                begins[index + 1] = true;
            }
        }
        graph.divide(function, &begins, &targets);
        graph
    }

    fn divide(&mut self, function: &Function<'_>, begins: &[bool], targets: &[(u32, u32)]) {
        let statements = &function.statements;
        let mut block_of = vec![0_u32; statements.len() + 1];
        let mut first = 0;
        for index in 0..statements.len() {
            if begins[index] && index > first {
                self.blocks.push(Block { first: first as u32, end: index as u32, edges: (0, 0) });
                first = index;
            }
            block_of[index] = self.blocks.len() as u32;
        }
        if !statements.is_empty() {
            self.blocks.push(Block { first: first as u32, end: statements.len() as u32, edges: (0, 0) });
        }
        let mut next_target = 0;
        let count = self.blocks.len();
        for number in 0..count {
            let last = self.blocks[number].end - 1;
            let statement = statements[last as usize];
            let from = self.edges.len() as u32;
            while targets.get(next_target).is_some_and(|(at, _)| *at == last) {
                let (_, to) = targets[next_target];
                let when = statement.guarded.then_some(true);
                // A label in front of the closing brace stands in front of the implied `ret`.
                self.edges.push(Edge { to: block_of[(to as usize).min(statements.len() - 1)], when });
                next_target += 1;
            }
            let goes_on = match statement.flow {
                Flow::Next | Flow::Call => Some(None),
                _ if statement.guarded => Some(Some(false)),
                _ => None,
            };
            if let Some(when) = goes_on
                && number + 1 < count
            {
                self.edges.push(Edge { to: number as u32 + 1, when });
            }
            self.blocks[number].edges = (from, self.edges.len() as u32);
        }
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
            for edge in self.range(number) {
                let to = self.edges[edge].to as usize;
                self.sources[next[to] as usize] = number as u32;
                next[to] += 1;
            }
        }
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

/// Names and numbers in the text, in order.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|next: char| !(next.is_ascii_alphanumeric() || matches!(next, '_' | '$' | '%' | '.') || !next.is_ascii()))
        .filter(|name| !name.is_empty())
}

fn last_name(text: &str) -> Option<&str> {
    names(text).last()
}

/// Strongly connected sets of more than one node, or of one that leads to itself, in reverse topological order (Tarjan 1972, without
/// recursion). Scratch space is kept between calls, so a call costs what it looks at.
#[derive(Debug, Default)]
pub(super) struct Components {
    index: Vec<u32>,
    low: Vec<u32>,
    stack: Vec<u32>,
    work: Vec<(u32, u32)>,
}

impl Components {
    /// `nodes` are those to look at; `next(node, n)` is the node's n-th way on, `Some(None)` where that leaves the set.
    pub(super) fn find(&mut self, count: usize, nodes: &[u32], next: impl Fn(u32, u32) -> Option<Option<u32>>) -> Vec<Vec<u32>> {
        const NEW: u32 = u32::MAX;
        const PLACED: u32 = u32::MAX - 1;
        self.index.resize(count.max(self.index.len()), NEW);
        self.low.resize(count.max(self.low.len()), 0);
        let mut found = Vec::new();
        let mut order = 0;
        for &root in nodes {
            if self.index[root as usize] != NEW {
                continue;
            }
            self.work.push((root, 0));
            while let Some((node, edge)) = self.work.pop() {
                let at = node as usize;
                if edge == 0 {
                    self.index[at] = order;
                    self.low[at] = order;
                    order += 1;
                    self.stack.push(node);
                }
                if let Some(to) = next(node, edge) {
                    self.work.push((node, edge + 1));
                    let Some(to) = to else { continue };
                    match self.index[to as usize] {
                        NEW => self.work.push((to, 0)),
                        PLACED => {}
                        index => self.low[at] = self.low[at].min(index),
                    }
                } else {
                    {
                        if let Some(&(parent, _)) = self.work.last() {
                            self.low[parent as usize] = self.low[parent as usize].min(self.low[at]);
                        }
                        if self.low[at] == self.index[at] {
                            let from = self.stack.iter().rposition(|&other| other == node).unwrap_or(0);
                            let component = self.stack.split_off(from);
                            for &member in &component {
                                self.index[member as usize] = PLACED;
                            }
                            let repeats = component.len() > 1 || (0..).map_while(|edge| next(node, edge)).any(|to| to == Some(node));
                            if repeats {
                                found.push(component);
                            }
                        }
                    }
                }
            }
        }
        for &node in nodes {
            self.index[node as usize] = NEW;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn components(edges: &[&[u32]]) -> Vec<Vec<u32>> {
        let nodes: Vec<u32> = (0..edges.len() as u32).collect();
        let mut found =
            Components::default().find(edges.len(), &nodes, |node, edge| edges[node as usize].get(edge as usize).map(|to| Some(*to)));
        for component in &mut found {
            component.sort_unstable();
        }
        found
    }

    #[test]
    fn what_leads_back_is_a_component() {
        assert_eq!(components(&[&[1], &[2], &[]]), Vec::<Vec<u32>>::new());
        assert_eq!(components(&[&[1], &[0, 2], &[2]]), [vec![2], vec![0, 1]]);
        assert_eq!(components(&[&[1, 2], &[3], &[3], &[0]]), [vec![0, 1, 2, 3]]);
    }
}
