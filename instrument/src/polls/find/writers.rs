//! Which statements write each register, in the whole function and in a loop.

use super::{Loops, NONE};
use cuinstr_ptx::{Code, Function, Graph, Register};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

/// Most statements that write a register and are looked at one by one.
const FEW: u32 = 32;

/// Which statements write each register.
#[derive(Debug)]
pub(in crate::polls) struct Writers {
    /// Statements in order, by register.
    all: Vec<u32>,
    /// Where those of each register begin.
    first: Vec<u32>,
    /// Registers that more than [`FEW`] statements write.
    many: BTreeMap<Register, ByLoop>,
}

impl Writers {
    pub(in crate::polls) fn new(function: &Function<'_>, code: &Code<'_>, graph: &Graph, loops: &Loops) -> Self {
        let count = code.register_count() as usize;
        let mut pairs: Vec<(Register, u32)> = Vec::new();
        let mut first = vec![0_u32; count + 1];
        let mut many = Vec::new();
        for statement in 0..function.statements.len() as u32 {
            let from = pairs.len();
            code.each_written(statement, |register| {
                if !pairs[from..].contains(&(register, statement)) {
                    pairs.push((register, statement));
                    let count = &mut first[register as usize + 1];
                    *count += 1;
                    if *count == FEW + 1 {
                        many.push(register);
                    }
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
        let mut writers = Self { all, first, many: BTreeMap::new() };
        for register in many {
            let by_loop = ByLoop::new(writers.slice(register), graph, loops);
            writers.many.insert(register, by_loop);
        }
        writers
    }

    fn slice(&self, register: Register) -> &[u32] {
        &self.all[self.first[register as usize] as usize..self.first[register as usize + 1] as usize]
    }

    /// The statements that write a register, in order.
    pub(in crate::polls) fn of(&self, register: Register) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.slice(register).iter().copied()
    }

    /// The last of some statements that writes a register.
    pub(super) fn last_of(&self, register: Register, among: Range<u32>) -> Option<u32> {
        let all = self.slice(register);
        let last = all[..all.partition_point(|statement| *statement < among.end)].last();
        last.copied().filter(|last| among.contains(last))
    }

    /// The statements of a loop that write a register, in order.
    pub(super) fn within<'w>(&'w self, register: Register, graph: &'w Graph, loops: &'w Loops, number: u32) -> Within<'w> {
        let many = if self.many.is_empty() { None } else { self.many.get(&register) };
        match many {
            Some(many) => Within { few: [].iter(), graph, loops, number, many: Some(Box::new(many.within(loops, number))) },
            None => Within { few: self.slice(register).iter(), graph, loops, number, many: None },
        }
    }
}

/// Those of some statements that lie in a loop.
pub(super) struct Within<'w> {
    few: std::slice::Iter<'w, u32>,
    graph: &'w Graph,
    loops: &'w Loops,
    number: u32,
    many: Option<Box<InOrder<'w>>>,
}

impl Iterator for Within<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (graph, loops, number) = (self.graph, self.loops, self.number);
        let found = self.few.find(|statement| loops.holds(number, graph.block_of(**statement)));
        found.copied().or_else(|| self.many.as_mut()?.next())
    }
}

/// The statements in loops that write a register, those of a loop together.
#[derive(Debug)]
struct ByLoop {
    /// The number of a statement's loop in the forest of loops, and the statement, sorted.
    all: Vec<(u32, u32)>,
    /// Which of these is the first statement: of one, and in front of them of each two that lie together, as a tree.
    least: Vec<u32>,
}

impl ByLoop {
    fn new(statements: &[u32], graph: &Graph, loops: &Loops) -> Self {
        let in_loops = statements.iter().filter_map(|statement| {
            let inner = loops.innermost(graph.block_of(*statement));
            (inner != NONE).then(|| (loops.nest.first[inner as usize], *statement))
        });
        let mut all: Vec<(u32, u32)> = in_loops.collect();
        all.sort_unstable();
        let count = all.len();
        let mut least = vec![0; count];
        least.extend(0..count as u32);
        for node in (1..count).rev() {
            least[node] = earlier(&all, least[2 * node], least[2 * node + 1]);
        }
        Self { all, least }
    }

    fn within(&self, loops: &Loops, number: u32) -> InOrder<'_> {
        let [from, end] = [loops.nest.first[number as usize], loops.nest.end[number as usize]]
            .map(|bound| self.all.partition_point(|(nest, _)| *nest < bound) as u32);
        let mut found = InOrder { by_loop: self, heap: BinaryHeap::new() };
        found.push(from, end);
        found
    }

    /// Which of some is the first statement.
    fn first(&self, from: u32, end: u32) -> u32 {
        let count = self.all.len();
        let (mut found, mut left, mut right) = (from, from as usize + count, end as usize + count);
        while left < right {
            if left % 2 == 1 {
                found = earlier(&self.all, found, self.least[left]);
                left += 1;
            }
            if right % 2 == 1 {
                right -= 1;
                found = earlier(&self.all, found, self.least[right]);
            }
            (left, right) = (left / 2, right / 2);
        }
        found
    }
}

fn earlier(all: &[(u32, u32)], one: u32, other: u32) -> u32 {
    if all[other as usize].1 < all[one as usize].1 { other } else { one }
}

/// Statements in order, each found when it is asked for.
struct InOrder<'w> {
    by_loop: &'w ByLoop,
    /// The first statement of each part that is left, its place, and where the part begins and ends.
    heap: BinaryHeap<Reverse<(u32, u32, u32, u32)>>,
}

impl InOrder<'_> {
    fn push(&mut self, from: u32, end: u32) {
        if from < end {
            let at = self.by_loop.first(from, end);
            self.heap.push(Reverse((self.by_loop.all[at as usize].1, at, from, end)));
        }
    }
}

impl Iterator for InOrder<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let Reverse((statement, at, from, end)) = self.heap.pop()?;
        self.push(from, at);
        self.push(at + 1, end);
        Some(statement)
    }
}
