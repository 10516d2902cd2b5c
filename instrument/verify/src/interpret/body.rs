//! A function while its loops are proved: what earlier loops leave in registers, and what a register holds in front of
//! a statement.

use crate::domain::interval::Interval;
use crate::domain::name::{LAUNCH, NO_NAME};
use crate::domain::remainder::{self, Remainder};
use crate::domain::transfer::result;
use crate::domain::value::{Kind, Source, Value, bits};
use crate::program::cfg::Graph;
use crate::program::definitions::Definitions;
use crate::program::instruction::{Instruction, Operand, Order, Register};
use cuinstr_ptx::Code;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ops::Deref;

/// Most blocks that are looked at for what a register held before a loop.
const MOST_WALKED: usize = 2048;

/// A statement of which nothing is noted, and one of which it is that nothing is known.
const NOT_NOTED: u32 = u32::MAX;

const UNKNOWN: u32 = u32::MAX - 1;

/// Most blocks in front of a loop that are followed together with it.
const MOST_IN_FRONT: usize = 256;

/// Most loops of a function that are noted to end by themselves.
const MOST_COUNTED: usize = 64;

/// Longest chain of instructions that is followed for it.
const MOST_DEPTH: u32 = 16;

/// Most branches in front of a statement that are asked what they say of a register.
const MOST_BRANCHES: usize = 8;

/// A function with what is asked of it again and again.
#[derive(Debug)]
pub(crate) struct Body<'a> {
    definitions: Definitions<'a>,
    /// What loops that come earlier leave behind in the first result of each statement: where it lies in `left`, or one of two numbers.
    left_at: Vec<u32>,
    left: Vec<Value>,
    /// Blocks of such loops that no values lead to.
    dead: Vec<bool>,
    walks: Cell<usize>,
    /// What statements write to registers, at a depth of the chain, as far as it was asked. They stand in front of the
    /// loop for which it was asked. What is noted of that loop, or of any further down, does not matter to them.
    asked: RefCell<BTreeMap<Asked, Value>>,
    /// The same behind the longest walk of a question, for that question alone.
    given_up: RefCell<BTreeMap<Asked, Value>>,
    /// For each block the last walk that came by.
    marks: RefCell<Vec<u32>>,
    last_mark: Cell<u32>,
    /// Room for a slot of each register, none of which is taken: lent to one slice after the other.
    pub(crate) spare_slots: RefCell<Vec<u32>>,
    /// Whether each block belongs to a loop.
    in_loop: Vec<bool>,
    /// Where each block stands in a reverse postorder; empty until it is noted which blocks belong to loops.
    rpo: Vec<u32>,
    /// Loops that end by themselves.
    counted: Vec<Counted>,
    /// Statements that leave remainders of divisions.
    remainders: OnceCell<BTreeMap<u32, Remainder>>,
}

/// A statement, a register that it writes, and how long the chain is that leads to it.
type Asked = (u32, Register, u32);

/// A loop that ends by itself, and is in no other.
#[derive(Debug)]
struct Counted {
    /// Its blocks, and those of loops inside, sorted.
    blocks: Vec<u32>,
    inside: Vec<u32>,
    /// At most so many of its rounds come back.
    rounds: u64,
}

impl<'a> Body<'a> {
    /// `callees_keep_off` says that no function that this one calls names local memory by a number.
    pub(crate) fn new(code: &'a Code<'a>, graph: &'a Graph, callees_keep_off: impl FnOnce() -> bool) -> Self {
        Self {
            definitions: Definitions::new(code, graph, callees_keep_off),
            left_at: Vec::new(),
            left: Vec::new(),
            dead: vec![false; graph.blocks.len()],
            walks: Cell::new(0),
            asked: RefCell::default(),
            given_up: RefCell::default(),
            marks: RefCell::default(),
            last_mark: Cell::new(0),
            spare_slots: RefCell::default(),
            in_loop: vec![false; graph.blocks.len()],
            rpo: Vec::new(),
            counted: Vec::new(),
            remainders: OnceCell::new(),
        }
    }

    /// A statement taken apart, as the division that it is the last part of.
    pub(crate) fn decode(&self, statement: u32) -> Instruction<'a> {
        let remainders = self.remainders.get_or_init(|| remainder::find(&self.definitions));
        let plain = self.plain(statement);
        match remainders.get(&statement) {
            Some(remainder) => remainder.instead_of(plain),
            None => plain,
        }
    }

    /// Notes what an instruction of a loop leaves in its first result.
    pub(crate) fn note(&mut self, statement: u32, width: u8, value: Value) {
        self.left_at.resize(self.function.statements.len(), NOT_NOTED);
        let value = lasting(value);
        self.left_at[statement as usize] = if !value.range.is_full(bits(width)) || value.kind != Kind::Plain || value.name != NO_NAME {
            self.left.push(value);
            self.left.len() as u32 - 1
        } else {
            UNKNOWN
        };
    }

    /// Forgets what was found by notes that are taken anew.
    pub(crate) fn forget_asked(&mut self) {
        self.asked.get_mut().clear();
    }

    /// Notes that control never comes to a block.
    pub(crate) fn note_dead(&mut self, block: u32) {
        self.dead[block as usize] = true;
    }

    /// Notes which blocks belong to loops, and a reverse postorder of all.
    pub(crate) fn note_loops(&mut self, sets: &[Vec<u32>], rpo: &[u32]) {
        self.rpo = rpo.to_vec();
        self.in_loop = vec![false; self.graph.blocks.len()];
        for block in sets.iter().flatten() {
            self.in_loop[*block as usize] = true;
        }
    }

    /// When a statement of no loop is passed, beside others of none: control that has passed one comes to none of those before it any more. None for
    /// statements of loops, and those that control never comes to.
    pub(crate) fn when(&self, statement: u32) -> Option<(u32, u32)> {
        let block = self.block_of(statement) as usize;
        let rpo = self.rpo.get(block).copied().filter(|rpo| *rpo != u32::MAX)?;
        (!self.in_loop[block]).then_some((rpo, statement))
    }

    /// When a statement is passed in an iteration, beside others of its loop.
    pub(crate) fn order(&self, statement: u32) -> (u32, u32) {
        (self.rpo.get(self.block_of(statement) as usize).copied().unwrap_or(u32::MAX), statement)
    }

    /// Notes that so many rounds at most of a loop come back, whatever happens.
    pub(crate) fn note_counted(&mut self, blocks: &[u32], inside: Vec<u32>, rounds: u64) {
        if self.counted.len() < MOST_COUNTED {
            self.counted.push(Counted { blocks: blocks.to_vec(), inside, rounds });
        }
    }

    /// What a register holds to which a statement adds the same number in each round of such a loop.
    fn added_to(&self, register: Register, statement: u32, instruction: &Instruction<'_>, depth: u32) -> Option<Value> {
        let sign = instruction.op.sums()?;
        let &[Operand::Register(of), Operand::Number(number)] = &instruction.rest[..] else { return None };
        let (block, width) = (self.block_of(statement), self.registers.width(register));
        if of != register || instruction.guard.is_some() || !(1..=64).contains(&width) || !self.in_loop[block as usize] {
            return None;
        }
        let holds = |blocks: &[u32], block: u32| blocks.binary_search(&block).is_ok();
        let counted = self.counted.iter().find(|counted| holds(&counted.blocks, block) && !holds(&counted.inside, block))?;
        let is_alone = self.writers(register).iter().filter(|writer| holds(&counted.blocks, self.block_of(**writer))).count() == 1;
        if !is_alone || counted.blocks.contains(&0) {
            return None;
        }
        let sources = counted.blocks.iter().flat_map(|block| self.graph.sources(*block)).copied();
        let start = self.at_ends(register, sources.filter(|source| !holds(&counted.blocks, *source)).collect(), depth + 1);
        // The first round, those that come back, and one that does not.
        let by = Interval::constant(number, width).signed(width).lo * i128::from(sign);
        let all = by.checked_mul(i128::from(counted.rounds) + 2)?;
        Some(Value::of(Interval::between(start.range.lo + by.min(all), start.range.hi + by.max(all), width)))
    }

    /// Blocks that lead to a set of blocks without passing a loop: the nearest ones.
    pub(crate) fn in_front_of(&self, set: &[u32], rpo: &[u32]) -> Vec<u32> {
        let mut found: Vec<u32> = Vec::new();
        let mut next = 0;
        let is_new = |block: u32, found: &[u32]| {
            rpo[block as usize] != u32::MAX
                && !self.in_loop[block as usize]
                && set.binary_search(&block).is_err()
                && !found.contains(&block)
        };
        let look = |block: u32, found: &mut Vec<u32>| {
            for &source in self.graph.sources(block) {
                if found.len() < MOST_IN_FRONT && is_new(source, found) {
                    found.push(source);
                }
            }
        };
        for &block in set {
            look(block, &mut found);
        }
        while next < found.len() {
            look(found[next], &mut found);
            next += 1;
        }
        found.sort_unstable();
        found
    }

    /// What a register holds where control enters a set of blocks from outside. `member` tells what belongs to the set.
    pub(crate) fn before(&self, register: Register, blocks: &[u32], member: &dyn Fn(u32) -> bool) -> Value {
        let width = bits(self.registers.width(register));
        let mut starts: Vec<u32> = Vec::new();
        for &block in blocks {
            if block == 0 {
                return Value::unknown(width);
            }
            starts.extend(self.graph.sources(block).iter().filter(|source| !member(**source)));
        }
        self.ask_anew();
        self.at_ends(register, starts, 0)
    }

    /// Begins another question.
    fn ask_anew(&self) {
        self.walks.set(0);
        self.given_up.borrow_mut().clear();
    }

    /// A number that no block is marked with.
    fn next_mark(&self) -> u32 {
        let mark = self.last_mark.get().wrapping_add(1);
        self.last_mark.set(mark);
        let mut marks = self.marks.borrow_mut();
        if marks.is_empty() || mark == 0 {
            *marks = vec![u32::MAX; self.graph.blocks.len()];
        }
        mark
    }

    /// What a register holds at the ends of these blocks, whichever of them was passed last.
    fn at_ends(&self, register: Register, mut work: Vec<u32>, depth: u32) -> Value {
        let width = bits(self.registers.width(register));
        let unknown = Value::unknown(width);
        let writers = self.writers(register);
        let mark = self.next_mark();
        let mut known: Option<Value> = None;
        let mut marks = self.marks.borrow_mut();
        while let Some(block) = work.pop() {
            if self.dead[block as usize] || std::mem::replace(&mut marks[block as usize], mark) == mark {
                continue;
            }
            self.walks.set(self.walks.get() + 1);
            if self.walks.get() > MOST_WALKED {
                return unknown;
            }
            let here = self.graph.blocks[block as usize];
            let behind = writers.partition_point(|statement| *statement < here.end);
            match writers[..behind].last().filter(|statement| **statement >= here.first) {
                Some(&statement) => {
                    // It may walk, too.
                    drop(marks);
                    let value = self.written_by(register, statement, depth);
                    marks = self.marks.borrow_mut();
                    let joined = known.map_or(value, |known| known.join(&value, width, NO_NAME));
                    if joined.range.is_full(width) && joined.kind == Kind::Plain && joined.name == NO_NAME {
                        return unknown;
                    }
                    known = Some(joined);
                }
                // Nothing is known of what a register holds before it is first written.
                None if block == 0 => return unknown,
                None => work.extend(self.graph.sources(block)),
            }
        }
        // Where no way leads here, what is said does not matter.
        known.unwrap_or(unknown)
    }

    fn written_by(&self, register: Register, statement: u32, depth: u32) -> Value {
        let key = (statement, register, depth);
        if let Some(known) = self.asked.borrow().get(&key).or(self.given_up.borrow().get(&key)) {
            return *known;
        }
        let value = self.follow_back(register, statement, depth);
        // What was given up for its length may be short where less was walked before. But operands that meet again are as many as ways to them.
        let is_whole = self.walks.get() <= MOST_WALKED;
        if is_whole { &self.asked } else { &self.given_up }.borrow_mut().insert(key, value);
        value
    }

    fn follow_back(&self, register: Register, statement: u32, depth: u32) -> Value {
        let width = bits(self.registers.width(register));
        let instruction = self.decode(statement);
        let Some(nth) = instruction.first.iter().position(|first| *first == register) else { return Value::unknown(width) };
        let noted = if nth == 0 { self.left_at.get(statement as usize).copied().unwrap_or(NOT_NOTED) } else { NOT_NOTED };
        if let Some(value) = self.left.get(noted as usize) {
            return *value;
        }
        let added = (depth < MOST_DEPTH).then(|| self.added_to(register, statement, &instruction, depth)).flatten();
        if let Some(value) = added {
            return value;
        }
        if noted != UNKNOWN
            && depth < MOST_DEPTH
            && let Some(most) = self.what_is_left(statement, &instruction, depth)
        {
            return Value::of(Interval::between(0, most, width));
        }
        if noted == UNKNOWN || instruction.guard.is_some() || depth >= MOST_DEPTH || instruction.writes() != instruction.first {
            return Value::unknown(width);
        }
        lasting(result(&instruction, nth, width, u32::MAX, &Earlier { body: self, statement, depth }))
    }

    /// The most that `max(x, b) - b` can be, of unsigned values: as much as x. Both instructions stand in one block, and b is the same in both.
    fn what_is_left(&self, statement: u32, sub: &Instruction<'a>, depth: u32) -> Option<i128> {
        let ("sub", None, &[Operand::Register(larger), Operand::Register(taken)]) = (sub.op.head, sub.guard, &sub.rest[..]) else {
            return None;
        };
        let (width, _) = sub.op.of.filter(|(width, _)| sub.op.suffix == sub.op.kind && *width == self.registers.width(larger))?;
        let first = self.graph.blocks[self.block_of(statement) as usize].first;
        let at = *self.writers_between(larger, first..statement).last()?;
        let max = self.plain(at);
        let of = match max.rest[..] {
            [of, Operand::Register(other)] | [Operand::Register(other), of] if other == taken && larger != taken => of,
            _ => return None,
        };
        let is_larger = matches!(max.opcode, "max.u32" | "max.u64") && max.op.of == Some((width, false)) && max.guard.is_none();
        let is_kept = self.writers_between(taken, at..statement).is_empty();
        (is_larger && is_kept).then(|| Earlier { body: self, statement: at, depth: depth + 1 }.value(of, width).range.unsigned(width).hi)
    }

    /// What a register holds in front of a statement.
    pub(crate) fn value_at(&self, register: Register, statement: u32) -> Value {
        self.ask_anew();
        self.in_front(register, statement, 0)
    }

    fn in_front(&self, register: Register, statement: u32, depth: u32) -> Value {
        let block = self.block_of(statement);
        let writers = self.writers(register);
        let first = self.graph.blocks[block as usize].first;
        let behind = writers.partition_point(|writer| *writer < statement);
        match writers[..behind].last().filter(|writer| **writer >= first) {
            Some(&writer) => self.written_by(register, writer, depth),
            None if block == 0 => Value::unknown_of(self.registers.width(register)),
            None => {
                let value = self.at_ends(register, self.graph.sources(block).to_vec(), depth);
                Value { range: self.behind_branches(register, block, value.range), ..value }
            }
        }
    }

    /// What is left of a range that a register is in at the beginning of a block, by the branches in front of that.
    ///
    /// Let one edge alone lead to a block, from a block that ends with a branch. Then control has just taken that edge whenever it comes to the block. So
    /// the branch's predicate is as the edge says. Let that block compare the register with a number for the predicate, and write neither of them behind
    /// the comparison. Then the comparison says what the register is. It still says so one such block further on, if that does not write the register.
    fn behind_branches(&self, register: Register, mut block: u32, mut range: Interval) -> Interval {
        for _ in 0..MOST_BRANCHES {
            let &[source] = self.graph.sources(block) else { break };
            // A function begins with its first block.
            if block == 0 {
                break;
            }
            if let Some((order, signed, number, compared)) = self.compared(register, source, block)
                && self.writers_between(register, compared..self.graph.blocks[source as usize].end).is_empty()
            {
                let width = self.registers.width(register);
                // Where nothing is left control does not come.
                range = range.restrict(order, Interval::constant(number, width), signed, width).unwrap_or(range);
            }
            let of = self.graph.blocks[source as usize];
            if !self.writers_between(register, of.first..of.end).is_empty() {
                break;
            }
            block = source;
        }
        range
    }

    /// What the branch at a block's end says of a register where it leads to that other block, by one edge: how it compares with which number, and the
    /// statement that compares them.
    fn compared(&self, register: Register, block: u32, to: u32) -> Option<(Order, bool, i128, u32)> {
        let when = self.graph.edges(block).iter().find(|edge| edge.to == to)?.when?;
        let (branch, first) = (self.graph.last(block)?, self.graph.blocks[block as usize].first);
        let predicate = self.guard(branch)?;
        // No branch writes its own guard: what the last statement would write comes too late for it.
        let at = *self.writers_between(predicate, first..branch).last()?;
        let compared = self.plain(at);
        let (order, signed, width) = compared.op.compares.filter(|_| compared.guard.is_none())?;
        let nth = compared.first.iter().position(|first| *first == predicate)?;
        let holds = (when == self.polarity(branch)) != (nth == 1);
        let order = if holds { order } else { order.not() };
        match compared.rest[..] {
            _ if nth > 1 || width != self.registers.width(register) => None,
            [Operand::Register(of), Operand::Number(number)] if of == register => Some((order, signed, number, at)),
            [Operand::Number(number), Operand::Register(of)] if of == register => Some((order.mirrored(), signed, number, at)),
            _ => None,
        }
    }
}

impl<'a> Deref for Body<'a> {
    type Target = Definitions<'a>;

    fn deref(&self) -> &Definitions<'a> {
        &self.definitions
    }
}

/// What stays true of a value for the rest of the function.
fn lasting(value: Value) -> Value {
    let kind = match value.kind {
        Kind::Control(_) | Kind::Flag | Kind::OwnFlag | Kind::Earlier(_) => value.kind,
        _ => Kind::Plain,
    };
    Value { kind, name: if value.name == LAUNCH { LAUNCH } else { NO_NAME }, delta: None, form: None, ..value }
}

/// Operands of an instruction outside the loop.
struct Earlier<'b, 'a> {
    body: &'b Body<'a>,
    statement: u32,
    depth: u32,
}

impl Source for Earlier<'_, '_> {
    fn value(&self, operand: Operand<'_>, width: u8) -> Value {
        match operand {
            Operand::Register(register) => {
                let own = self.body.registers.width(register);
                if width != 0 && own != width || own == 0 || own > 64 {
                    return Value::unknown_of(width);
                }
                self.body.in_front(register, self.statement, self.depth + 1)
            }
            Operand::Number(value) if width != 0 => Value::of(Interval::immediate(value, width)),
            _ => Value::unknown_of(width),
        }
    }
}
