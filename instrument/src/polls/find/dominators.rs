//! Dominators, and forests in which one node's being above another is two comparisons.

use super::NONE;
use cuinstr_ptx::Graph;

/// A forest with its nodes numbered so that what is below a node has the numbers behind its own.
#[derive(Debug, Default)]
pub(in crate::polls) struct Forest {
    /// The number of each node; [`NONE`] for one that is not in the forest.
    pub(super) first: Vec<u32>,
    /// Behind the numbers of what is below each.
    pub(super) end: Vec<u32>,
}

impl Forest {
    /// Of nodes below `count`. Those in `order` are in the forest, each behind the one above it.
    pub(super) fn new(count: usize, order: impl DoubleEndedIterator<Item = u32> + Clone, above: impl Fn(u32) -> Option<u32>) -> Self {
        let mut size = vec![1_u32; count];
        for node in order.clone().rev() {
            if let Some(above) = above(node) {
                size[above as usize] += size[node as usize];
            }
        }
        let (mut first, mut end) = (vec![NONE; count], vec![0; count]);
        // Where the next node right below each goes.
        let (mut next, mut next_root) = (vec![0_u32; count], 0);
        for node in order {
            let place = above(node).map_or(&mut next_root, |above| &mut next[above as usize]);
            let at = *place;
            *place += size[node as usize];
            (first[node as usize], next[node as usize], end[node as usize]) = (at, at + 1, at + size[node as usize]);
        }
        Self { first, end }
    }

    /// Whether a node is another one or stands above it.
    pub(super) fn holds(&self, upper: u32, lower: u32) -> bool {
        let at = self.first[lower as usize];
        self.first[upper as usize] <= at && at < self.end[upper as usize]
    }
}

/// Immediate dominators of the blocks (Lengauer and Tarjan 1979), in time that grows like the blocks, edges and tables, but for a logarithm. The entry's is
/// itself; [`NONE`] for blocks that control never comes to.
pub(super) fn dominators(graph: &Graph) -> Vec<u32> {
    let Walk { nodes, number, parent } = Walk::new(graph);
    let count = nodes.len();
    // All by the numbers of the walk.
    let mut links = Links { above: vec![NONE; count], label: (0..count as u32).collect(), semi: (0..count as u32).collect() };
    let mut idom = vec![0_u32; count];
    // Nodes whose semidominator is a node, as lists.
    let (mut head, mut next) = (vec![NONE; count], vec![NONE; count]);
    for at in (1..count as u32).rev() {
        for source in graph.node_sources(nodes[at as usize]).map(|source| number[source as usize]).filter(|source| *source != NONE) {
            let least = links.least(source);
            links.semi[at as usize] = links.semi[at as usize].min(links.semi[least as usize]);
        }
        let (semi, above) = (links.semi[at as usize] as usize, parent[at as usize]);
        next[at as usize] = std::mem::replace(&mut head[semi], at);
        links.above[at as usize] = above;
        let mut one = std::mem::replace(&mut head[above as usize], NONE);
        while one != NONE {
            let least = links.least(one);
            idom[one as usize] = if links.semi[least as usize] < links.semi[one as usize] { least } else { above };
            one = next[one as usize];
        }
    }
    let blocks = graph.blocks.len() as u32;
    let mut dominators = vec![NONE; blocks as usize];
    for at in 0..count {
        if idom[at] != links.semi[at] {
            idom[at] = idom[idom[at] as usize];
        }
        // A table is no block: what comes before it is.
        if nodes[idom[at] as usize] >= blocks {
            idom[at] = idom[idom[at] as usize];
        }
        if let Some(dominator) = dominators.get_mut(nodes[at] as usize) {
            *dominator = nodes[idom[at] as usize];
        }
    }
    dominators
}

/// Nodes in the order in which a walk from the entry first meets them, depth first.
struct Walk {
    nodes: Vec<u32>,
    /// The place of each node in that order; [`NONE`] for what is not met.
    number: Vec<u32>,
    /// From which node, by its place, each was met.
    parent: Vec<u32>,
}

impl Walk {
    fn new(graph: &Graph) -> Self {
        let mut walk = Self { nodes: Vec::new(), number: vec![NONE; graph.node_count() as usize], parent: Vec::new() };
        let mut work = Vec::new();
        walk.meet(0, 0, &mut work);
        while let Some((node, nth)) = work.pop() {
            let Some(to) = graph.step(node, nth) else { continue };
            work.push((node, nth + 1));
            if let Some(to) = to.filter(|to| walk.number[*to as usize] == NONE) {
                walk.meet(to, walk.number[node as usize], &mut work);
            }
        }
        walk
    }

    fn meet(&mut self, node: u32, parent: u32, work: &mut Vec<(u32, u32)>) {
        self.number[node as usize] = self.nodes.len() as u32;
        self.nodes.push(node);
        self.parent.push(parent);
        work.push((node, 0));
    }
}

/// The nodes that are numbered so far, linked to those that they were met from.
struct Links {
    above: Vec<u32>,
    /// The node with the least semidominator between each and what its link passes by.
    label: Vec<u32>,
    semi: Vec<u32>,
}

impl Links {
    /// The node with the least semidominator on the links up from a node, the last left out. Makes them shorter.
    fn least(&mut self, node: u32) -> u32 {
        let mut way = vec![];
        let mut at = node;
        while self.above[at as usize] != NONE && self.above[self.above[at as usize] as usize] != NONE {
            way.push(at);
            at = self.above[at as usize];
        }
        while let Some(one) = way.pop() {
            let above = self.above[one as usize] as usize;
            if self.semi[self.label[above] as usize] < self.semi[self.label[one as usize] as usize] {
                self.label[one as usize] = self.label[above];
            }
            self.above[one as usize] = self.above[above];
        }
        self.label[node as usize]
    }
}
