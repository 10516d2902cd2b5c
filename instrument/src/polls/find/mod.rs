//! Finds the cycles of a function: natural loops, and back edges that belong to none. `counted` and `strided` recognise loops whose trips can be
//! computed, `bounded` those that end soon, `calls` the functions that calls may lead back to.

pub(super) mod bounded;
pub(super) mod calls;
pub(super) mod counted;
pub(super) mod declared;
mod dominators;
mod irreducible;
mod shifted;
pub(super) mod strided;
mod writers;

use cuinstr_ptx::{Function, Graph};
use dominators::{Forest, dominators};
pub(in crate::polls) use irreducible::Irreducible;
pub(in crate::polls) use writers::Writers;

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
    /// Of the blocks that a back edge leaves, those that are met first and last where each block is met behind its dominators.
    latches: (u32, u32),
    /// Whether each way into the cycle leads through the header (a natural loop).
    pub(in crate::polls) is_natural: bool,
    /// Whether there is no loop inside.
    pub(in crate::polls) is_innermost: bool,
    /// The loop around it; [`NONE`] for an outermost one.
    pub(in crate::polls) outer: u32,
    /// Statements in its blocks, those of loops inside left out.
    pub(in crate::polls) statements: u32,
}

impl Loop {
    /// The block that a back edge leaves, if it is the only one.
    pub(in crate::polls) fn latch(&self) -> Option<u32> {
        (self.latches.0 == self.latches.1).then_some(self.latches.0)
    }
}

/// The cycles of a function. Every cycle of its graph holds a back edge of one of the loops.
#[derive(Debug)]
pub(in crate::polls) struct Loops {
    /// In reverse postorder of their headers: an outer loop stands in front of those inside.
    pub(in crate::polls) all: Vec<Loop>,
    /// Cycles with several ways in.
    pub(in crate::polls) irreducible: Vec<Irreducible>,
    /// If there are some, of each block whether it is an entry, and whether it is one or leads to one from outside.
    entries: Vec<(bool, bool)>,
    /// If there are some, of each block a number for the innermost one that it is in. They are no loops of `inner` and `nest`.
    within: Vec<u32>,
    /// The innermost loop of each block.
    inner: Vec<u32>,
    /// Loops within loops.
    nest: Forest,
    /// The blocks in loops, by the number of their innermost one in `nest`, and where those of each number begin.
    members: (Vec<u32>, Vec<u32>),
    /// Immediate dominators.
    dominators: Vec<u32>,
    /// Blocks below their dominators.
    dominated: Forest,
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
        let mut loops = Self {
            all: Vec::new(),
            irreducible: Vec::new(),
            entries: Vec::new(),
            within: Vec::new(),
            inner: vec![NONE; count],
            nest: Forest::default(),
            members: (Vec::new(), Vec::new()),
            dominators: Vec::new(),
            dominated: Forest::default(),
            place,
        };
        let tables = Tables::new(graph, &loops.place);
        let headers = loops.headers(graph, &tables, &order);
        if !headers.is_empty() {
            loops.dominators = dominators(graph);
            loops.dominated = Forest::new(count, order.iter().copied(), |block| loops.dominator(block));
            loops.add(graph, &tables, &headers);
            loops.collect(graph, &tables);
            (loops.irreducible, loops.within) = irreducible::find(graph, &loops);
            loops.enter(count);
        }
        loops
    }

    /// An edge that does not lead on in a reverse postorder is a back edge, whether its cycle is reducible or not.
    fn headers(&self, graph: &Graph, tables: &Tables, order: &[u32]) -> Vec<u32> {
        let is_header = |header: &u32| graph.node_sources(*header).any(|source| self.is_back(graph, tables, source, *header));
        order.iter().copied().filter(is_header).collect()
    }

    /// Whether a block, or one that ends with a table, leads back to a header.
    fn is_back(&self, graph: &Graph, tables: &Tables, source: u32, header: u32) -> bool {
        let place = match source.checked_sub(graph.blocks.len() as u32) {
            Some(table) => tables.users[table as usize].last().map_or(NONE, |user| self.place[*user as usize]),
            None => self.place[source as usize],
        };
        place != NONE && place >= self.place[header as usize]
    }

    /// Those of the blocks that end with a table that lead back to a header.
    fn back_users<'t>(&self, tables: &'t Tables, table: u32, header: u32) -> &'t [u32] {
        let users = &tables.users[table as usize];
        &users[users.partition_point(|user| self.place[*user as usize] < self.place[header as usize])..]
    }

    fn add(&mut self, graph: &Graph, tables: &Tables, headers: &[u32]) {
        let count = graph.blocks.len() as u32;
        let first = |block: &u32| self.dominated.first[*block as usize];
        let both = |one: (u32, u32), other: (u32, u32)| {
            let [least, most] = [[one.0, other.0], [one.1, other.1]];
            (least.into_iter().min_by_key(first).unwrap_or(one.0), most.into_iter().max_by_key(first).unwrap_or(one.1))
        };
        // Of each user of a table and those behind it.
        let extremes: Vec<Vec<(u32, u32)>> = tables
            .users
            .iter()
            .map(|users| {
                let mut found = Vec::with_capacity(users.len());
                for &user in users.iter().rev() {
                    found.push(found.last().map_or((user, user), |last| both(*last, (user, user))));
                }
                found
            })
            .collect();
        for &header in headers {
            let sources = graph.node_sources(header).filter(|source| self.is_back(graph, tables, *source, header));
            let latches = sources.map(|source| match source.checked_sub(count) {
                Some(table) => extremes[table as usize][self.back_users(tables, table, header).len() - 1],
                None => (source, source),
            });
            let Some(latches) = latches.reduce(both) else { continue };
            let is_natural = self.dominates(header, latches.0) && self.dominates(header, latches.1);
            self.all.push(Loop { header, latches, is_natural, is_innermost: true, outer: NONE, statements: 0 });
        }
    }

    fn collect(&mut self, graph: &Graph, tables: &Tables) {
        let count = graph.blocks.len() as u32;
        // Inner loops first. A finished loop stands for all its blocks (`whole`), so that outer loops pass it in one step.
        let mut whole: Vec<u32> = (0..graph.node_count()).collect();
        for number in (0..self.all.len()).rev() {
            let header = self.all[number].header;
            if !self.all[number].is_natural {
                continue;
            }
            self.claim(header, number as u32);
            let mut work = Vec::new();
            for source in graph.node_sources(header).filter(|source| self.is_back(graph, tables, *source, header)) {
                match source.checked_sub(count) {
                    Some(table) if find(&mut whole, source) == source => {
                        let users = self.back_users(tables, table, header);
                        work.extend(users.iter().map(|user| find(&mut whole, *user)));
                        if users.len() == tables.users[table as usize].len() {
                            whole[source as usize] = header;
                        }
                    }
                    _ => work.push(find(&mut whole, source)),
                }
            }
            while let Some(node) = work.pop() {
                if node == header || find(&mut whole, node) != node {
                    continue;
                }
                if node < count {
                    self.claim(node, number as u32);
                }
                whole[node as usize] = header;
                let is_reached = |source: &u32| match source.checked_sub(count) {
                    Some(table) => !tables.users[table as usize].is_empty(),
                    None => self.is_reached(*source),
                };
                for source in graph.node_sources(node).filter(is_reached) {
                    work.push(find(&mut whole, source));
                }
            }
        }
        for (block, inner) in self.inner.iter().enumerate().filter(|(_, inner)| **inner != NONE) {
            let block = graph.blocks[block];
            self.all[*inner as usize].statements += block.end - block.first;
        }
        let all = &self.all;
        self.nest = Forest::new(all.len(), 0..all.len() as u32, |number| Some(all[number as usize].outer).filter(|outer| *outer != NONE));
        for number in 0..self.all.len() {
            let outer = self.all[number].outer;
            if let Some(outer) = self.all.get_mut(outer as usize) {
                outer.is_innermost = false;
            }
        }
        let mut members: Vec<u32> = (0..count).filter(|block| self.inner[*block as usize] != NONE).collect();
        let nest = |block: &u32| self.nest.first[self.inner[*block as usize] as usize];
        members.sort_by_key(nest);
        let first = |number: u32| members.partition_point(|block| nest(block) < number) as u32;
        let first = (0..=self.all.len() as u32).map(first).collect();
        self.members = (members, first);
    }

    fn enter(&mut self, count: usize) {
        for entry in self.irreducible.iter().flat_map(|one| &one.entries) {
            self.entries.resize(count, (false, false));
            self.entries[entry.block as usize] = (true, true);
            for source in &entry.sources {
                self.entries[*source as usize].1 = true;
            }
        }
    }

    /// Puts a block into a loop, or the finished loop that it stands for.
    fn claim(&mut self, block: u32, number: u32) {
        match self.inner[block as usize] {
            NONE => self.inner[block as usize] = number,
            inside => self.all[inside as usize].outer = number,
        }
    }

    /// The blocks that a back edge of a loop leaves, in order.
    pub(in crate::polls) fn latches(&self, graph: &Graph, number: u32) -> Vec<u32> {
        let header = self.all[number as usize].header;
        let is_back = |from: &u32| self.is_reached(*from) && self.place[*from as usize] >= self.place[header as usize];
        let mut latches: Vec<u32> = graph.sources(header).filter(is_back).collect();
        latches.sort_unstable();
        latches.dedup();
        latches
    }

    /// The one of these that each way to any of them leads through.
    pub(in crate::polls) fn first_latch(&self, number: u32) -> Option<u32> {
        let (first, last) = self.all[number as usize].latches;
        self.dominates(first, last).then_some(first)
    }

    /// The blocks whose innermost loop this is, in order.
    pub(in crate::polls) fn members(&self, number: u32) -> &[u32] {
        let ((members, first), at) = (&self.members, self.nest.first[number as usize] as usize);
        &members[first[at] as usize..first[at + 1] as usize]
    }

    /// How many blocks a loop has, with those of loops inside.
    pub(in crate::polls) fn block_count(&self, number: u32) -> u32 {
        let first = |at: &[u32]| self.members.1[at[number as usize] as usize];
        first(&self.nest.end) - first(&self.nest.first)
    }

    /// Whether control may come to a block.
    pub(in crate::polls) fn is_reached(&self, block: u32) -> bool {
        self.place[block as usize] != NONE
    }

    /// Whether a block is an entry of a cycle with several, and whether it is one or leads to one from outside.
    pub(in crate::polls) fn enters_irreducible(&self, block: u32) -> (bool, bool) {
        self.entries.get(block as usize).copied().unwrap_or_default()
    }

    /// The cycle whose back edges lead to a block.
    pub(in crate::polls) fn of_header(&self, block: u32) -> Option<u32> {
        let place = |block: u32| self.place[block as usize];
        self.all.binary_search_by_key(&place(block), |one| place(one.header)).ok().map(|number| number as u32)
    }

    /// The innermost loop of a block; [`NONE`] outside of loops.
    pub(in crate::polls) fn innermost(&self, block: u32) -> u32 {
        self.inner[block as usize]
    }

    /// Whether a block lies in a cycle with several ways in.
    pub(in crate::polls) fn is_in_irreducible(&self, block: u32) -> bool {
        self.within.get(block as usize).is_some_and(|cycle| *cycle != 0)
    }

    /// Whether two blocks lie in the same cycles with several ways in.
    pub(in crate::polls) fn share_irreducible(&self, one: u32, other: u32) -> bool {
        self.within.get(one as usize) == self.within.get(other as usize)
    }

    /// Whether a block lies in a loop, and in no other cycle inside of that.
    pub(in crate::polls) fn runs_in(&self, number: u32, block: u32) -> bool {
        self.inner[block as usize] == number && self.share_irreducible(block, self.all[number as usize].header)
    }

    /// Whether a block lies in the cycles around a loop, and in no other.
    pub(in crate::polls) fn runs_beside(&self, number: u32, block: u32) -> bool {
        let one = &self.all[number as usize];
        self.inner[block as usize] == one.outer && self.share_irreducible(block, one.header)
    }

    /// Whether a block lies in a loop.
    pub(in crate::polls) fn holds(&self, number: u32, block: u32) -> bool {
        let inner = self.inner[block as usize];
        inner == number || inner != NONE && self.nest.holds(number, inner)
    }

    /// The last block that each way to a block leads through before it; none for the entry.
    pub(in crate::polls) fn dominator(&self, block: u32) -> Option<u32> {
        Some(self.dominators[block as usize]).filter(|dominator| *dominator != block && *dominator != NONE)
    }

    /// The last block that each way to any of the blocks leads through, which may be one of them.
    pub(in crate::polls) fn common_dominator(&self, blocks: impl Iterator<Item = u32> + Clone) -> Option<u32> {
        let first = |block: &u32| self.dominated.first[*block as usize];
        let last = blocks.clone().max_by_key(first)?;
        let mut block = blocks.min_by_key(first)?;
        while !self.dominates(block, last) {
            block = self.dominator(block)?;
        }
        Some(block)
    }

    /// Whether each way from the function's entry to the second block leads through the first.
    pub(in crate::polls) fn dominates(&self, first: u32, second: u32) -> bool {
        self.dominated.holds(first, second)
    }
}

/// The tables of a function.
struct Tables {
    /// Blocks that end with each and that control comes to, in a reverse postorder.
    users: Vec<Vec<u32>>,
}

impl Tables {
    fn new(graph: &Graph, place: &[u32]) -> Self {
        let users = |table: u32| {
            let mut users: Vec<u32> = graph.listed(table).1.iter().copied().filter(|user| place[*user as usize] != NONE).collect();
            users.sort_unstable_by_key(|user| place[*user as usize]);
            users
        };
        Self { users: (0..graph.table_count()).map(users).collect() }
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
