//! Finds the cycles of a function: natural loops, and back edges that belong to none. `counted` recognises loops whose trips can be computed, `bounded`
//! those that end soon, `calls` the functions that calls may lead back to.

pub(super) mod bounded;
pub(super) mod calls;
pub(super) mod counted;
mod irreducible;

use cuinstr_ptx::{Code, Function, Graph, Register};
pub(in crate::polls) use irreducible::Irreducible;

/// No block, or no loop.
pub(in crate::polls) const NONE: u32 = u32::MAX;

/// A function with its control flow and cycles.
pub(in crate::polls) struct Cycles<'c, 'a> {
    pub(in crate::polls) function: &'c Function<'a>,
    pub(in crate::polls) graph: Graph,
    pub(in crate::polls) loops: Loops,
}

impl<'c, 'a> Cycles<'c, 'a> {
    pub(in crate::polls) fn new(function: &'c Function<'a>) -> Self {
        let graph = Graph::new(function);
        let loops = Loops::new(&graph);
        Self { function, graph, loops }
    }
}

/// A cycle's header with the back edges that lead to it.
#[derive(Debug)]
pub(in crate::polls) struct Loop {
    /// The block that back edges lead to.
    pub(in crate::polls) header: u32,
    /// Blocks that a back edge leaves.
    pub(in crate::polls) latches: Vec<u32>,
    /// Whether each way into the cycle leads through the header (a natural loop).
    pub(in crate::polls) is_natural: bool,
    /// The loop around it; [`NONE`] for an outermost one.
    pub(in crate::polls) outer: u32,
    /// Statements in its blocks, those of loops inside left out.
    pub(in crate::polls) statements: u32,
}

/// The cycles of a function. Every cycle of its graph holds a back edge of one of the loops.
#[derive(Debug)]
pub(in crate::polls) struct Loops {
    /// In reverse postorder of their headers: an outer loop stands in front of those inside.
    pub(in crate::polls) all: Vec<Loop>,
    /// Cycles with several ways in.
    pub(in crate::polls) irreducible: Vec<Irreducible>,
    /// The innermost loop of each block.
    inner: Vec<u32>,
    /// Immediate dominators.
    dominators: Vec<u32>,
    /// Place in a reverse postorder; [`NONE`] for what control never comes to.
    place: Vec<u32>,
}

impl Loops {
    /// Finds them, in time that grows like the blocks and edges, but for the depth of nests.
    pub(in crate::polls) fn new(graph: &Graph) -> Self {
        let count = graph.blocks.len();
        let place = graph.reverse_postorder();
        let mut order = vec![NONE; count];
        for (block, at) in (0..).zip(&place).filter(|(_, at)| **at != NONE) {
            order[*at as usize] = block;
        }
        order.retain(|block| *block != NONE);
        let mut loops = Self { all: Vec::new(), irreducible: Vec::new(), inner: vec![NONE; count], dominators: Vec::new(), place };
        loops.headers(graph, &order);
        if !loops.all.is_empty() {
            loops.dominators = dominators(graph, &order, &loops.place);
            loops.collect(graph);
            loops.irreducible = irreducible::find(graph, &loops);
        }
        loops
    }

    /// An edge that does not lead on in a reverse postorder is a back edge, whether its cycle is reducible or not.
    fn headers(&mut self, graph: &Graph, order: &[u32]) {
        for &header in order {
            let is_back = |from: &u32| self.is_reached(*from) && self.place[*from as usize] >= self.place[header as usize];
            let mut latches: Vec<u32> = graph.sources(header).filter(is_back).collect();
            latches.sort_unstable();
            latches.dedup();
            if !latches.is_empty() {
                self.all.push(Loop { header, latches, is_natural: false, outer: NONE, statements: 0 });
            }
        }
    }

    fn collect(&mut self, graph: &Graph) {
        for number in 0..self.all.len() {
            let Loop { header, latches, .. } = &self.all[number];
            self.all[number].is_natural = latches.iter().all(|latch| self.dominates(*header, *latch));
        }
        // Inner loops first. A finished loop stands for all its blocks (`whole`), so that outer loops pass it in one step.
        let mut whole: Vec<u32> = (0..self.inner.len() as u32).collect();
        for number in (0..self.all.len()).rev() {
            let header = self.all[number].header;
            if !self.all[number].is_natural {
                continue;
            }
            self.claim(header, number as u32);
            let mut work: Vec<u32> = self.all[number].latches.iter().map(|latch| find(&mut whole, *latch)).collect();
            while let Some(block) = work.pop() {
                if block == header || find(&mut whole, block) != block {
                    continue;
                }
                self.claim(block, number as u32);
                whole[block as usize] = header;
                for source in graph.sources(block).filter(|source| self.is_reached(*source)) {
                    work.push(find(&mut whole, source));
                }
            }
        }
        for (block, inner) in self.inner.iter().enumerate().filter(|(_, inner)| **inner != NONE) {
            let block = graph.blocks[block];
            self.all[*inner as usize].statements += block.end - block.first;
        }
    }

    /// Puts a block into a loop, or the finished loop that it stands for.
    fn claim(&mut self, block: u32, number: u32) {
        match self.inner[block as usize] {
            NONE => self.inner[block as usize] = number,
            inside => self.all[inside as usize].outer = number,
        }
    }

    /// Whether control may come to a block.
    pub(in crate::polls) fn is_reached(&self, block: u32) -> bool {
        self.place[block as usize] != NONE
    }

    /// Whether a block is an entry of a cycle with several.
    pub(in crate::polls) fn enters_irreducible(&self, block: u32) -> bool {
        self.irreducible.iter().flat_map(|one| &one.entries).any(|entry| entry.block == block)
    }

    /// The innermost loop of a block; [`NONE`] outside of loops.
    pub(in crate::polls) fn innermost(&self, block: u32) -> u32 {
        self.inner[block as usize]
    }

    /// Whether a block lies in a loop.
    pub(in crate::polls) fn holds(&self, number: u32, block: u32) -> bool {
        let mut inner = self.inner[block as usize];
        while inner != NONE && inner > number {
            inner = self.all[inner as usize].outer;
        }
        inner == number
    }

    /// The last block that each way to a block leads through before it; none for the entry.
    pub(in crate::polls) fn dominator(&self, block: u32) -> Option<u32> {
        Some(self.dominators[block as usize]).filter(|dominator| *dominator != block && *dominator != NONE)
    }

    /// The last block that each way to any of the blocks leads through, which may be one of them.
    pub(in crate::polls) fn common_dominator(&self, blocks: impl Iterator<Item = u32>) -> Option<u32> {
        blocks.reduce(|first, second| meet(&self.dominators, &self.place, first, second))
    }

    /// Whether each way from the function's entry to the second block leads through the first.
    pub(in crate::polls) fn dominates(&self, first: u32, second: u32) -> bool {
        if self.place[second as usize] == NONE {
            return false;
        }
        let mut block = second;
        while self.place[block as usize] > self.place[first as usize] {
            block = self.dominators[block as usize];
        }
        block == first
    }
}

/// The block that stands for a block, with path compression.
fn find(whole: &mut [u32], block: u32) -> u32 {
    let mut root = block;
    while whole[root as usize] != root {
        root = whole[root as usize];
    }
    let mut at = block;
    while whole[at as usize] != root {
        at = std::mem::replace(&mut whole[at as usize], root);
    }
    root
}

/// Immediate dominators (Cooper, Harvey and Kennedy 2001).
fn dominators(graph: &Graph, order: &[u32], place: &[u32]) -> Vec<u32> {
    let mut dominator = vec![NONE; graph.blocks.len()];
    let Some(&entry) = order.first() else { return dominator };
    dominator[entry as usize] = entry;
    let mut has_changed = true;
    while has_changed {
        has_changed = false;
        for &block in &order[1..] {
            let mut common = NONE;
            for source in graph.sources(block).filter(|source| dominator[*source as usize] != NONE) {
                common = if common == NONE { source } else { meet(&dominator, place, common, source) };
            }
            has_changed |= common != dominator[block as usize];
            dominator[block as usize] = common;
        }
    }
    dominator
}

fn meet(dominator: &[u32], place: &[u32], mut first: u32, mut second: u32) -> u32 {
    while first != second {
        while place[first as usize] > place[second as usize] {
            first = dominator[first as usize];
        }
        while place[second as usize] > place[first as usize] {
            second = dominator[second as usize];
        }
    }
    first
}

/// Which statements write each register.
#[derive(Debug)]
pub(in crate::polls) struct Writers {
    /// Statements in order, by register.
    all: Vec<u32>,
    /// Where those of each register begin.
    first: Vec<u32>,
}

impl Writers {
    pub(in crate::polls) fn new(function: &Function<'_>, code: &Code<'_>) -> Self {
        let count = code.register_count() as usize;
        let mut pairs: Vec<(Register, u32)> = Vec::new();
        let mut first = vec![0_u32; count + 1];
        for statement in 0..function.statements.len() as u32 {
            let from = pairs.len();
            code.each_written(statement, |register| {
                if !pairs[from..].contains(&(register, statement)) {
                    pairs.push((register, statement));
                    first[register as usize + 1] += 1;
                }
            });
        }
        for register in 0..count {
            first[register + 1] += first[register];
        }
        let mut next = first.clone();
        let mut all = vec![0; pairs.len()];
        for (register, statement) in pairs {
            let at = &mut next[register as usize];
            all[*at as usize] = statement;
            *at += 1;
        }
        Self { all, first }
    }

    /// The statements that write a register, in order.
    pub(in crate::polls) fn of(&self, register: Register) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.all[self.first[register as usize] as usize..self.first[register as usize + 1] as usize].iter().copied()
    }
}
