//! Slicing: which registers and instructions belong to a slice.

use crate::interpret::body::Body;
use crate::interpret::equations;
use crate::interpret::liveness;
use crate::interpret::opaque;
use crate::interpret::remat;
use crate::interpret::slice::{Equations, Slice};
use crate::interpret::step::{NO_REGISTER, NO_STATEMENT, NOT_FOLLOWED, Step, chooses, each_needed};
use crate::interpret::sums;
use crate::interpret::thresholds::Thresholds;
use crate::program::instruction::{Instruction, Op, Operand, Register};
use cuinstr_ptx::Flow;
use std::collections::BTreeMap;
use std::ops::Range;

/// Most statements between a comparison and what doubles the same register.
const MOST_NEAR: usize = 64;

/// Most registers of one slice. Those left out are unknown.
const MOST_SLOTS: usize = 1 << 16;

/// How much is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth<'d> {
    /// Registers that something may be known of.
    Shallow,
    /// And sums of them, as far as the branches of these blocks depend on their steps.
    SumsFor(&'d [u32]),
    /// All registers.
    Registers,
    /// And such sums of them.
    RegistersAndSumsFor(&'d [u32]),
    /// And sums of them.
    Sums,
}

impl<'a> Slice<'a> {
    /// `blocks` are sorted. Of registers that nothing can be known of in themselves, and of sums, only as much is followed as `depth` says.
    pub(crate) fn new(body: &Body<'a>, blocks: &[u32], depth: Depth<'_>) -> Self {
        let mut slice = Self {
            slots: Vec::new(),
            sums: Vec::new(),
            first_sum: 0,
            sums_of: BTreeMap::new(),
            slot_of: body.spare_slots.take(),
            steps: Vec::new(),
            steps_of: BTreeMap::new(),
            guards: BTreeMap::new(),
            live: BTreeMap::new(),
            thresholds: Thresholds::default(),
            equations: Equations::new(),
            has_cases: false,
            has_halves: false,
            is_close: depth != Depth::Shallow,
        };
        let mut guards = guards(body, blocks);
        slice.slot_of.resize(body.registers.count().max(slice.slot_of.len()), NOT_FOLLOWED);
        // Empty blocks come behind all others.
        let last = blocks.iter().rev().find_map(|block| body.graph.last(*block));
        let (Some(first), Some(last)) = (blocks.first(), last) else { return slice };
        let within = body.graph.blocks[*first as usize].first..last + 1;
        let mut decoded = slice.all_needed(body, blocks, &guards, within);
        let asked_for = match depth {
            Depth::Shallow => slice.keep_known(body, &mut guards, &mut decoded, &[]),
            Depth::SumsFor(blocks) => slice.keep_known(body, &mut guards, &mut decoded, blocks),
            Depth::RegistersAndSumsFor(blocks) => slice.put_first(body, &guards, &mut decoded, blocks, |_| true),
            Depth::Registers | Depth::Sums => 0,
        };
        let guards: Vec<(u32, u32)> = guards.into_iter().filter_map(|(block, register)| Some((block, slice.followed(register)?))).collect();
        slice.guards.extend(guards);
        slice.arrange(body, blocks, decoded);
        slice.has_halves = slice.is_close && slice.steps.iter().any(|step| halves(&step.instruction.op));
        slice.first_sum = slice.slots.len() as u32;
        match depth {
            Depth::Shallow | Depth::Registers => {}
            Depth::SumsFor(_) | Depth::RegistersAndSumsFor(_) => slice.add_sums(|step| {
                let is_known = |operand: &Operand<'_>| matches!(operand, Operand::Register(slot) if *slot < asked_for);
                step.writes.iter().any(|slot| *slot < asked_for) || step.instruction.rest.iter().all(is_known)
            }),
            Depth::Sums => {
                slice.equations = equations::find(body, blocks, &slice);
                slice.add_sums(|_| true);
            }
        }
        slice.thresholds = Thresholds::new(&slice.steps, slice.slots.len(), slice.first_sum);
        slice.live = liveness::find(&slice, body, blocks);
        slice.forget_map();
        body.spare_slots.replace(std::mem::take(&mut slice.slot_of));
        slice
    }

    /// Follows all that the guards depend on, and returns the instructions that write it, in order.
    fn all_needed(
        &mut self,
        body: &Body<'a>,
        blocks: &[u32],
        guards: &[(u32, Register)],
        within: Range<u32>,
    ) -> Vec<(u32, Instruction<'a>)> {
        let mut decoded: Vec<(u32, Instruction<'a>)> = Vec::new();
        let mut is_decoded = vec![false; within.len()];
        self.close(body, guards, |slice, register| {
            for &statement in body.writers_between(register, within.clone()) {
                let is_new = !std::mem::replace(&mut is_decoded[(statement - within.start) as usize], true);
                if !is_new || blocks.binary_search(&body.block_of(statement)).is_err() {
                    continue;
                }
                let instruction = body.decode(statement);
                each_needed(&instruction, |register| {
                    slice.slot(body, register);
                });
                decoded.push((statement, instruction));
            }
        });
        decoded.sort_unstable_by_key(|(statement, _)| *statement);
        decoded
    }

    /// Follows the same again without what can't be known: see [`Self::put_first`].
    fn keep_known(
        &mut self,
        body: &Body<'a>,
        guards: &mut Vec<(u32, Register)>,
        decoded: &mut Vec<(u32, Instruction<'a>)>,
        first: &[u32],
    ) -> u32 {
        let known = opaque::known(&self.slots, |register| self.followed(register), decoded);
        let is_known = |register: Register| known.binary_search(&register).is_ok();
        guards.retain(|(_, register)| is_known(*register));
        self.put_first(body, guards, decoded, first, is_known)
    }

    /// Gives slots anew to such registers. What the guards of `first` depend on gets the first ones; returns how many.
    fn put_first(
        &mut self,
        body: &Body<'a>,
        guards: &[(u32, Register)],
        decoded: &mut Vec<(u32, Instruction<'a>)>,
        first: &[u32],
        is_followed: impl Fn(Register) -> bool,
    ) -> u32 {
        let mut of: Vec<(Register, u32)> = Vec::new();
        for (at, (_, instruction)) in (0..).zip(&*decoded) {
            instruction.each_written(|register| of.push((register, at)));
        }
        of.sort_unstable();
        self.forget_slots();
        let mut follow = |slice: &mut Self, register: Register| {
            let from = of.partition_point(|(written, _)| *written < register);
            for (_, at) in of[from..].iter().take_while(|(written, _)| *written == register) {
                each_needed(&decoded[*at as usize].1, |register| {
                    if is_followed(register) {
                        slice.slot(body, register);
                    }
                });
            }
        };
        let some: Vec<(u32, Register)> = guards.iter().filter(|(block, _)| first.binary_search(block).is_ok()).copied().collect();
        self.close(body, &some, &mut follow);
        let asked_for = self.slots.len() as u32;
        self.close(body, guards, &mut follow);
        decoded.retain(|(_, instruction)| {
            let mut is_followed = false;
            instruction.each_written(|register| is_followed |= self.followed(register).is_some());
            is_followed
        });
        asked_for
    }

    /// The slot of a register while the slice is built.
    pub(crate) fn followed(&self, register: Register) -> Option<u32> {
        self.slot_of.get(register as usize).copied().filter(|slot| *slot != NOT_FOLLOWED)
    }

    fn forget_map(&mut self) {
        for (register, _) in &self.slots {
            if let Some(slot) = self.slot_of.get_mut(*register as usize) {
                *slot = NOT_FOLLOWED;
            }
        }
    }

    fn forget_slots(&mut self) {
        self.forget_map();
        self.slots.clear();
    }

    /// Gives slots to the guards, and to what `follow` finds for each register that has one.
    fn close(&mut self, body: &Body<'_>, guards: &[(u32, Register)], mut follow: impl FnMut(&mut Self, Register)) {
        for (_, register) in guards {
            self.slot(body, *register);
        }
        let mut next = 0;
        while next < self.slots.len() {
            let (register, _) = self.slots[next];
            next += 1;
            follow(self, register);
        }
    }

    /// Gives slots to the sums that such steps are about.
    fn add_sums(&mut self, is_asked_for: impl Fn(&Step<'_>) -> bool) {
        self.has_cases = self.steps_of.values().any(|(from, to)| {
            let here = &self.steps[*from as usize..*to as usize];
            here.iter().any(|step| chooses(here, step))
        });
        self.sums = sums::find(&mut self.steps, self.steps_of.values().copied(), &self.slots, self.has_cases, is_asked_for);
        for (number, sum) in (0..).zip(&self.sums) {
            self.slots.push((NO_REGISTER, sum.width));
            for (slot, _) in &sum.terms {
                self.sums_of.entry(*slot).or_default().push(number);
            }
        }
    }

    fn slot(&mut self, body: &Body<'_>, register: Register) -> Option<u32> {
        if let Some(slot) = self.followed(register) {
            return Some(slot);
        }
        if self.slots.len() >= MOST_SLOTS {
            return None;
        }
        let slot = self.slots.len() as u32;
        *self.slot_of.get_mut(register as usize)? = slot;
        // A number that nothing writes may be another one wherever it is read.
        let width = Some(body.registers.width(register)).filter(|width| *width == 1 || body.is_written(register)).unwrap_or(0);
        self.slots.push((register, width));
        Some(slot)
    }

    fn arrange(&mut self, body: &Body<'a>, blocks: &[u32], decoded: Vec<(u32, Instruction<'a>)>) {
        let (settled, copies) = if self.is_close {
            remat::settle(body, blocks, |register| self.followed(register).is_some(), &decoded)
        } else {
            Default::default()
        };
        let (mut settled, mut copies) = (settled.into_iter().peekable(), copies.into_iter().peekable());
        let kept = if self.is_close { kept(body, &decoded) } else { Vec::new() };
        let mut kept = kept.into_iter().peekable();
        for (statement, instruction) in decoded {
            let block = body.block_of(statement);
            let is_again = settled.next_if_eq(&statement).is_some();
            while let Some((_, copy, width)) = kept.next_if(|(reader, ..)| *reader == statement) {
                self.add_unheld(block, copy, width);
            }
            self.add_widened(block, &instruction);
            self.add_step(block, statement, instruction, is_again);
            while let Some((_, copy)) = copies.next_if(|(writer, _)| *writer == statement) {
                self.add_widened(block, &copy);
                self.add_step(block, NO_STATEMENT, copy, false);
            }
        }
        debug_assert!(self.steps_of.keys().all(|block| blocks.binary_search(block).is_ok()));
    }

    /// Adds what widens the factor of a product, at a closer look.
    fn add_widened(&mut self, block: u32, instruction: &Instruction<'a>) {
        if let Some(copy) = widening(instruction).filter(|_| self.is_close) {
            self.add_unheld(block, copy, 64);
        }
    }

    /// Adds an instruction whose result goes to a slot that no register has.
    fn add_unheld(&mut self, block: u32, instruction: Instruction<'a>, width: u8) {
        let slot = self.slots.len() as u32;
        self.slots.push((NO_REGISTER, width));
        self.add_step(block, NO_STATEMENT, instruction, false);
        if let Some(step) = self.steps.last_mut() {
            step.writes = vec![slot];
        }
    }

    fn add_step(&mut self, block: u32, statement: u32, mut instruction: Instruction<'a>, is_again: bool) {
        let writes = instruction.writes();
        let is_wild = writes != instruction.first;
        let writes = writes.iter().map(|register| self.followed(*register).unwrap_or(u32::MAX)).collect();
        self.slot_operands(&mut instruction);
        let index = self.steps.len() as u32;
        self.steps.push(Step { statement, instruction, writes, is_wild, is_again, derived: None, apart: None });
        self.steps_of.entry(block).or_insert((index, index)).1 = index + 1;
    }

    /// Puts slots in the place of registers; those that are not followed are unknown.
    fn slot_operands(&self, instruction: &mut Instruction<'_>) {
        for operand in &mut instruction.rest {
            *operand = match *operand {
                Operand::Register(register) => self.followed(register).map_or(Operand::Unknown, Operand::Register),
                Operand::At(register, offset) => self.followed(register).map_or(Operand::Unknown, |slot| Operand::At(slot, offset)),
                other => other,
            };
        }
        if let Some((register, _)) = &mut instruction.guard {
            *register = register.and_then(|register| self.followed(register));
        }
    }
}

/// Whether it takes the lower half of 64 bits.
fn halves(op: &Op<'_>) -> bool {
    op.head == "cvt" && matches!(op.suffix, "u32.u64" | "s32.s64" | "u32.s64" | "s32.u64")
}

/// The registers that decide how blocks end.
fn guards(body: &Body<'_>, blocks: &[u32]) -> Vec<(u32, Register)> {
    let guard = |&block: &u32| {
        let last = body.graph.last(block)?;
        let statement = &body.function.statements[last as usize];
        let guard = if statement.guarded && statement.flow != Flow::Next { body.guard(last) } else { None };
        guard.map(|register| (block, register))
    };
    blocks.iter().filter_map(guard).collect()
}

/// Copies of what is compared and doubled, and then written anew in the same block. Each has the statement that it stands in front of, and its width.
/// What the branch says of the old value narrows the new one, which is a multiple of it. But no register holds the old one any more.
fn kept<'a>(body: &Body<'_>, decoded: &[(u32, Instruction<'a>)]) -> Vec<(u32, Instruction<'a>, u8)> {
    let mut found = Vec::new();
    for (at, (statement, instruction)) in decoded.iter().enumerate().filter(|(_, (_, instruction))| instruction.op.compares.is_some()) {
        let Some(&of @ Operand::Register(register)) = instruction.rest.first() else { continue };
        let (width, block) = (body.registers.width(register), body.block_of(*statement));
        let is_here = |(other, _): &&(u32, Instruction<'a>)| body.block_of(*other) == block;
        let doubles = |(_, other): &(u32, Instruction<'a>)| other.op.head == "shl" && other.rest.first() == Some(&of);
        let behind = || decoded[at..].iter().take_while(is_here).take(MOST_NEAR);
        let is_doubled = decoded[..at].iter().rev().take_while(is_here).take(MOST_NEAR).chain(behind()).any(doubles);
        if is_doubled && behind().any(|(_, other)| other.first == [register]) && matches!(width, 32 | 64) {
            let opcode = if width == 64 { "mov.b64" } else { "mov.b32" };
            let op = Op::new(opcode);
            let copy = Instruction { opcode, op, guard: None, first: vec![NO_REGISTER], rest: vec![of], ..instruction.clone() };
            found.push((*statement, copy, width));
        }
    }
    found
}

/// For a product of 64 bits of a register of 32 bits and a number, what has that register widened: the product is a multiple of it, and where the
/// compiler keeps the product alone no other register holds it. It goes to a slot that no register has.
fn widening<'a>(instruction: &Instruction<'a>) -> Option<Instruction<'a>> {
    let [of @ Operand::Register(_), Operand::Number(_)] = instruction.rest[..] else { return None };
    let is_plain = instruction.guard.is_none() && matches!(instruction.opcode, "mul.wide.u32" | "mul.wide.s32");
    let opcode = "cvt.u64.u32";
    is_plain.then(|| Instruction { opcode, op: Op::new(opcode), first: vec![NO_REGISTER], rest: vec![of], ..instruction.clone() })
}
