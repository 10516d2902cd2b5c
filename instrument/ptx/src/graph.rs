//! Control flow of one function: basic blocks and edges.

use crate::components::Components;
use crate::function::{Flow, Function, TableKind, Target};

/// Control flow of a function. Block 0 is its entry. Edges of a table are kept once, however many `brx.idx` use it.
#[derive(Debug, Default)]
pub struct Graph {
    /// Blocks, in the order of the text.
    pub blocks: Vec<Block>,
    /// Statements that lead nowhere that can be found.
    pub lost: Vec<u32>,
    /// For each table of the function its blocks, each once.
    tables: Vec<Vec<u32>>,
    /// Sources of edges that are no table's, in one run a block.
    sources: Runs,
    /// For each table the blocks that end with it.
    users: Runs,
    /// For each block the tables that it is in.
    listed: Runs,
    /// The block of each statement.
    block_of: Vec<u32>,
}

/// Lists in one vector.
#[derive(Debug, Default)]
struct Runs {
    all: Vec<u32>,
    first: Vec<u32>,
}

impl Runs {
    /// Of pairs of a list's number and what is in it.
    fn new(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut first = vec![0_u32; count + 1];
        for (list, _) in pairs.clone() {
            first[list as usize + 1] += 1;
        }
        for list in 0..count {
            first[list + 1] += first[list];
        }
        let mut next = first.clone();
        let mut all = vec![0; first[count] as usize];
        for (list, value) in pairs {
            let at = &mut next[list as usize];
            all[*at as usize] = value;
            *at += 1;
        }
        Self { all, first }
    }

    fn get(&self, list: u32) -> &[u32] {
        let run = self.first.get(list as usize).zip(self.first.get(list as usize + 1));
        run.map_or(&[], |(from, to)| &self.all[*from as usize..*to as usize])
    }
}

/// Statements that are passed one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Its first statement.
    pub first: u32,
    /// Behind its last statement.
    pub end: u32,
    /// Whether its last statement is a branch with a guard.
    guarded: bool,
    jump: Jump,
    /// Whether control may go on to the next block.
    goes_on: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Jump {
    None,
    Block(u32),
    Table(u32),
}

/// A way from one block to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The block that it leads to.
    pub to: u32,
    /// Taken only if the guard of the block's last statement lets it take effect (true), or does not (false).
    pub when: Option<bool>,
}

impl Graph {
    /// The function's graph, in time and memory that grow like its statements and tables.
    #[must_use]
    pub fn new(function: &Function<'_>) -> Self {
        let statements = &function.statements;
        let mut graph = Self::default();
        let mut begins = vec![false; statements.len() + 1];
        let mut begin = |target: Target| match target {
            Target::Statement(to) => begins[to as usize] = true,
            Target::Table(_) | Target::Lost => {}
        };
        // Whether it is known where each table leads.
        let mut tables = vec![None; function.tables.len()];
        for (statement, target) in &function.targets {
            begin(*target);
            begin(Target::Statement(statement + 1));
            let is_known = match *target {
                Target::Statement(_) => true,
                Target::Lost => false,
                Target::Table(table) => {
                    let kind = &function.tables[table as usize].kind;
                    *tables[table as usize].get_or_insert_with(|| {
                        let TableKind::Branches(targets) = kind else { return false };
                        for target in targets {
                            begin(*target);
                        }
                        !targets.is_empty() && !targets.contains(&Target::Lost)
                    })
                }
            };
            if !is_known {
                graph.lost.push(*statement);
            }
        }
        for (statement, next) in statements.iter().zip(1..) {
            begins[next] |= matches!(statement.flow, Flow::Call | Flow::Return | Flow::End);
        }
        graph.divide(function, &begins);
        graph
    }

    fn divide(&mut self, function: &Function<'_>, begins: &[bool]) {
        let statements = &function.statements;
        let mut block_of = vec![0_u32; statements.len()];
        let mut first = 0;
        let new =
            |first: usize, end: usize| Block { first: first as u32, end: end as u32, guarded: false, jump: Jump::None, goes_on: false };
        for index in 0..statements.len() {
            if begins[index] && index > first {
                self.blocks.push(new(first, index));
                first = index;
            }
            block_of[index] = self.blocks.len() as u32;
        }
        if !statements.is_empty() {
            self.blocks.push(new(first, statements.len()));
        }
        // A label in front of the closing brace stands in front of the implied `ret`.
        let block_at = |statement: u32| block_of[(statement as usize).min(statements.len() - 1)];
        let mut seen = vec![u32::MAX; self.blocks.len()];
        for (table, number) in function.tables.iter().zip(0..) {
            let mut blocks = Vec::new();
            if let TableKind::Branches(targets) = &table.kind {
                for target in targets {
                    if let Target::Statement(to) = target
                        && std::mem::replace(&mut seen[block_at(*to) as usize], number) != number
                    {
                        blocks.push(block_at(*to));
                    }
                }
            }
            self.tables.push(blocks);
        }
        let mut targets = function.targets.iter().peekable();
        let count = self.blocks.len();
        for (number, block) in self.blocks.iter_mut().enumerate() {
            let last = block.end - 1;
            let statement = statements[last as usize];
            if let Some((_, target)) = targets.next_if(|(at, _)| *at == last) {
                block.jump = match *target {
                    Target::Statement(to) => Jump::Block(block_at(to)),
                    Target::Table(table) => Jump::Table(table),
                    Target::Lost => Jump::None,
                };
            }
            block.guarded = statement.guarded && !matches!(statement.flow, Flow::Next | Flow::Call);
            block.goes_on = number + 1 < count && (block.guarded || matches!(statement.flow, Flow::Next | Flow::Call));
        }
        let numbered = || (0_u32..).zip(&self.blocks);
        let jumps = numbered().filter_map(|(number, block)| if let Jump::Block(to) = block.jump { Some((to, number)) } else { None });
        let steps = numbered().filter(|(_, block)| block.goes_on).map(|(number, _)| (number + 1, number));
        self.sources = Runs::new(count, jumps.chain(steps));
        let users = numbered().filter_map(|(number, block)| if let Jump::Table(table) = block.jump { Some((table, number)) } else { None });
        self.users = Runs::new(self.tables.len(), users);
        let listed = (0_u32..).zip(&self.tables).filter(|(table, _)| !self.users.get(*table).is_empty());
        self.listed = Runs::new(count, listed.flat_map(|(table, blocks)| blocks.iter().map(move |block| (*block, table))));
        self.block_of = block_of;
    }

    /// The block of a statement.
    #[must_use]
    pub fn block_of(&self, statement: u32) -> u32 {
        self.block_of[statement as usize]
    }

    /// The blocks of a table that a block ends with.
    fn table(&self, block: Block) -> &[u32] {
        match block.jump {
            Jump::Table(table) => &self.tables[table as usize],
            Jump::None | Jump::Block(_) => &[],
        }
    }

    /// The number of the table that a block ends with.
    #[must_use]
    pub fn table_of(&self, number: u32) -> Option<u32> {
        match self.blocks[number as usize].jump {
            Jump::Table(table) => Some(table),
            Jump::None | Jump::Block(_) => None,
        }
    }

    /// The blocks of a table of the function, each once, and the blocks that end with it.
    #[must_use]
    pub fn listed(&self, table: u32) -> (&[u32], &[u32]) {
        (&self.tables[table as usize], self.users.get(table))
    }

    /// How many tables there are.
    #[must_use]
    pub fn table_count(&self) -> u32 {
        self.tables.len() as u32
    }

    /// Ways out of a block: those that its last statement jumps, then the one to the next block.
    pub fn edges(&self, number: u32) -> impl Iterator<Item = Edge> + Clone + '_ {
        let block = self.blocks[number as usize];
        let jump = if let Jump::Block(to) = block.jump { Some(to) } else { None };
        let when = move |when: bool| block.guarded.then_some(when);
        let taken = jump.into_iter().chain(self.table(block).iter().copied()).map(move |to| Edge { to, when: when(true) });
        taken.chain(block.goes_on.then(|| Edge { to: number + 1, when: when(false) }))
    }

    /// The ways from one block to another, in the order of [`Graph::edges`]. However long a table is, they are found at once.
    pub fn edges_to(&self, from: u32, to: u32) -> impl Iterator<Item = Edge> + Clone + use<> {
        let block = self.blocks[from as usize];
        let jumps = match block.jump {
            Jump::None => false,
            Jump::Block(target) => target == to,
            Jump::Table(table) => self.listed.get(to).binary_search(&table).is_ok(),
        };
        let when = move |when: bool| Edge { to, when: block.guarded.then_some(when) };
        jumps.then(|| when(true)).into_iter().chain((block.goes_on && from + 1 == to).then(|| when(false)))
    }

    /// One of these ways.
    #[must_use]
    pub fn edge(&self, number: u32, nth: u32) -> Option<Edge> {
        let block = self.blocks[number as usize];
        let when = |when: bool| block.guarded.then_some(when);
        let (jump, jumps) = match block.jump {
            Jump::None => (None, 0),
            Jump::Block(to) => (Some(to), 1),
            Jump::Table(_) => (self.table(block).get(nth as usize).copied(), self.table(block).len() as u32),
        };
        if nth < jumps {
            return jump.map(|to| Edge { to, when: when(true) });
        }
        (nth == jumps && block.goes_on).then(|| Edge { to: number + 1, when: when(false) })
    }

    /// Blocks that lead to a block. One that does so twice may come twice.
    pub fn sources(&self, block: u32) -> impl Iterator<Item = u32> + '_ {
        let by_table = self.listed.get(block).iter().flat_map(|table| self.users.get(*table));
        self.sources.get(block).iter().chain(by_table).copied()
    }

    /// Nodes of the graph in which each table is a node of its own, behind the blocks, so that its edges count once.
    #[must_use]
    pub fn node_count(&self) -> u32 {
        (self.blocks.len() + self.tables.len()) as u32
    }

    /// The nth way on from a node: `Some(None)` where there is none, and None behind the last.
    #[must_use]
    pub fn step(&self, node: u32, nth: u32) -> Option<Option<u32>> {
        let count = self.blocks.len() as u32;
        let Some(block) = self.blocks.get(node as usize) else {
            return self.tables[(node - count) as usize].get(nth as usize).map(|to| Some(*to));
        };
        match (nth, block.jump) {
            (0, Jump::Block(to)) => Some(Some(to)),
            (0, Jump::Table(table)) => Some(Some(count + table)),
            (0, Jump::None) => Some(None),
            (1, _) if block.goes_on => Some(Some(node + 1)),
            _ => None,
        }
    }

    /// Nodes that lead to a node. One that does so twice may come twice.
    pub fn node_sources(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let count = self.blocks.len() as u32;
        let (blocks, tables): (&[u32], &[u32]) = match node.checked_sub(count) {
            Some(table) => (self.users.get(table), &[]),
            None => (self.sources.get(node), self.listed.get(node)),
        };
        blocks.iter().copied().chain(tables.iter().map(move |table| count + table))
    }

    /// Where each block stands in a reverse postorder from the entry; `u32::MAX` for one that control never comes to. What stands first in the text
    /// comes first, as far as that is possible.
    #[must_use]
    pub fn reverse_postorder(&self) -> Vec<u32> {
        let mut place = vec![u32::MAX; self.blocks.len()];
        if self.blocks.is_empty() {
            return place;
        }
        let mut left = Vec::with_capacity(self.blocks.len());
        let mut seen = vec![false; self.blocks.len()];
        // How many of a table's blocks, from its last, were met.
        let mut met = vec![0_usize; self.tables.len()];
        // Of each block on the way here the ways that are walked already: to the next block, then the jump.
        let mut work = vec![(0_u32, 0_u8)];
        seen[0] = true;
        while let Some((number, step)) = work.pop() {
            let block = self.blocks[number as usize];
            let next = match (step, block.jump) {
                (0, _) => {
                    work.push((number, 1));
                    block.goes_on.then_some(number + 1)
                }
                (1, Jump::Block(to)) => {
                    work.push((number, 2));
                    Some(to)
                }
                (1, Jump::Table(table)) => {
                    let (met, blocks) = (&mut met[table as usize], &self.tables[table as usize]);
                    let next = blocks.len().checked_sub(*met + 1).map(|at| blocks[at]);
                    if next.is_some() {
                        *met += 1;
                        work.push((number, 1));
                    } else {
                        left.push(number);
                    }
                    next
                }
                _ => {
                    left.push(number);
                    None
                }
            };
            if let Some(next) = next
                && !std::mem::replace(&mut seen[next as usize], true)
            {
                work.push((next, 0));
            }
        }
        for (at, block) in left.iter().rev().enumerate() {
            place[*block as usize] = at as u32;
        }
        place
    }

    /// Strongly connected components among some of the blocks, `holds` telling which: see [`Components`].
    pub fn components(&self, blocks: &[u32], holds: impl Fn(u32) -> bool, scratch: &mut Components) -> Vec<Vec<u32>> {
        let count = self.blocks.len() as u32;
        let next = |node: u32, nth: u32| Some(self.step(node, nth)?.filter(|to| *to >= count || holds(*to)));
        let mut found = scratch.find(self.node_count() as usize, blocks, next);
        for component in &mut found {
            component.retain(|node| *node < count);
        }
        found
    }
}
