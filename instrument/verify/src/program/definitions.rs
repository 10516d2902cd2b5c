//! A function with its definitions: which statements write each register.

use crate::program::cfg::Graph;
use crate::program::instruction::{Instruction, Operand as Value, Register, head_of, spaces};
use crate::program::registers::Registers;
use cuinstr_ptx::{Code, Function, Operand};
use std::collections::BTreeSet;

/// What `WARP_SZ` stands for.
const LANES: i128 = 32;

/// A function, and for each of its registers the statements that write it.
#[derive(Debug)]
pub(crate) struct Definitions<'a> {
    pub(crate) code: &'a Code<'a>,
    pub(crate) function: &'a Function<'a>,
    pub(crate) graph: &'a Graph,
    pub(crate) registers: Registers<'a>,
    /// Statements that write each register, in one run a register.
    writers: Vec<u32>,
    first_writer: Vec<u32>,
    block_of: Vec<u32>,
    /// Registers that may hold the opposite of -2^15 in 16 bits.
    opposites: BTreeSet<Register>,
}

impl<'a> Definitions<'a> {
    pub(crate) fn new(code: &'a Code<'a>, graph: &'a Graph, callees_keep_off: impl FnOnce() -> bool) -> Self {
        let function = code.function;
        let registers = Registers::new(code, callees_keep_off);
        let mut pairs: Vec<(Register, u32)> = Vec::with_capacity(function.statements.len());
        for statement in 0..function.statements.len() as u32 {
            registers.each_written(statement, |register| pairs.push((register, statement)));
        }
        let mut first_writer = vec![0_u32; registers.count() + 1];
        for (register, _) in &pairs {
            first_writer[*register as usize + 1] += 1;
        }
        for index in 0..registers.count() {
            first_writer[index + 1] += first_writer[index];
        }
        let mut next = first_writer.clone();
        let mut writers = vec![0; pairs.len()];
        for (register, statement) in pairs {
            let at = &mut next[register as usize];
            writers[*at as usize] = statement;
            *at += 1;
        }
        let mut block_of = vec![0; function.statements.len()];
        for (number, block) in graph.blocks.iter().enumerate() {
            block_of[block.first as usize..block.end as usize].fill(number as u32);
        }
        let made = Self { code, function, graph, registers, writers, first_writer, block_of, opposites: BTreeSet::new() };
        let opposites = made.opposites();
        Self { opposites, ..made }
    }

    /// Registers that may hold an opposite which ptxas takes for another number: those that such a statement writes, and what is made of them.
    fn opposites(&self) -> BTreeSet<Register> {
        let all = 0..self.function.statements.len() as u32;
        let mut found = BTreeSet::new();
        for at in all.clone().filter(|at| may_leave_opposite(self.code, *at)) {
            self.registers.each_written(at, |register| _ = found.insert(register));
        }
        if found.is_empty() {
            return found;
        }
        let hands_on: Vec<u32> = all.clone().filter(|at| hands_on_opposite(&self.registers.decode(*at))).collect();
        // Of a word of the stack that is not followed ptxas may know what was stored there.
        let accesses = |head: &'static str| all.clone().filter(move |at| may_access_stack(&self.registers.decode(*at), head));
        let (stores, loads): (Vec<u32>, Vec<u32>) = (accesses("st").collect(), accesses("ld").collect());
        loop {
            let before = found.len();
            let is_kept = stores.iter().any(|at| self.reads(*at, &found));
            let kept = loads.iter().filter(|_| is_kept);
            for at in hands_on.iter().filter(|at| self.reads(**at, &found)).chain(kept).copied().collect::<Vec<u32>>() {
                self.registers.each_written(at, |register| _ = found.insert(register));
            }
            if found.len() == before {
                return found;
            }
        }
    }

    /// Whether some statement writes a register, or the caller does.
    pub(crate) fn is_written(&self, register: Register) -> bool {
        !self.writers(register).is_empty() || self.is_given(register)
    }

    /// Whether a register is a parameter or a result: these are numbered first.
    fn is_given(&self, register: Register) -> bool {
        let all = self.function.results.iter().chain(&self.function.parameters);
        (register as usize) < all.filter(|given| given.space == ".reg").count()
    }

    /// Whether a statement reads one of these registers.
    fn reads(&self, statement: u32, any: &BTreeSet<Register>) -> bool {
        let plain = self.registers.decode(statement);
        let is_one = |operand: &Value| matches!(operand, Value::Register(register) if any.contains(register));
        let mut found = plain.rest.iter().any(is_one);
        self.code.each_read(statement, |register| found |= any.contains(&register));
        found
    }

    /// A statement taken apart as it is written.
    pub(crate) fn plain(&self, statement: u32) -> Instruction<'a> {
        let mut plain = self.registers.decode(statement);
        if !self.opposites.is_empty() && minds_sign(&plain) && self.reads(statement, &self.opposites) {
            (plain.op.head, plain.op.compares) = ("", None);
        }
        if let (Some((.., width)), [Value::Register(one), Value::Register(two)]) = (plain.op.compares, &plain.rest[..]) {
            match (self.constant(*one, width), self.constant(*two, width)) {
                (None, Some(number)) => plain.rest[1] = Value::Number(number),
                (Some(number), None) => plain.rest[0] = Value::Number(number),
                _ => {}
            }
        }
        plain
    }

    /// The number that a register holds wherever it is read: one statement alone writes it. Numbers that may be below zero are left out.
    fn constant(&self, register: Register, width: u8) -> Option<i128> {
        let [writer] = *self.writers(register) else { return None };
        if !self.code.opcode(writer).starts_with("mov.") || self.function.statements[writer as usize].guarded || self.is_given(register) {
            return None;
        }
        let plain = self.registers.decode(writer);
        let is_whole = plain.op.of.is_some_and(|(of, _)| of == width) && !plain.op.kind.starts_with('f');
        let number = match plain.rest[..] {
            [Value::Number(number)] => number,
            [Value::Name("WARP_SZ")] => LANES,
            _ => return None,
        };
        (is_whole && (0..1 << (width - 1)).contains(&number)).then_some(number)
    }

    /// Statements that may write a register, in order.
    pub(crate) fn writers(&self, register: Register) -> &[u32] {
        let at = register as usize;
        &self.writers[self.first_writer[at] as usize..self.first_writer[at + 1] as usize]
    }

    /// Those among them that stand in a range of the text.
    pub(crate) fn writers_between(&self, register: Register, range: std::ops::Range<u32>) -> &[u32] {
        let all = self.writers(register);
        &all[all.partition_point(|at| *at < range.start)..all.partition_point(|at| *at < range.end)]
    }

    pub(crate) fn block_of(&self, statement: u32) -> u32 {
        self.block_of[statement as usize]
    }

    /// The register that guards a statement.
    pub(crate) fn guard(&self, statement: u32) -> Option<Register> {
        self.code.guard(statement)?.0
    }

    /// Whether a statement's guard must be true for it to take effect, rather than false.
    pub(crate) fn polarity(&self, statement: u32) -> bool {
        self.code.guard(statement).is_none_or(|(_, when)| when)
    }

    /// The blocks that control comes to without passing one.
    pub(crate) fn reached_without(&self, block: u32) -> Vec<bool> {
        let mut reached = vec![false; self.graph.blocks.len()];
        let mut work = if block == 0 { Vec::new() } else { vec![0] };
        while let Some(at) = work.pop() {
            if !std::mem::replace(&mut reached[at as usize], true) {
                work.extend(self.graph.edges(at).iter().map(|edge| edge.to).filter(|to| *to != block));
            }
        }
        reached
    }
}

/// Whether a statement may take the opposite of the least number with a sign. Of 16 bits ptxas takes it after the number is extended to 32, and does not
/// extend it again: the opposite of -32768 is 32768 then, where PTX has -32768. What `abs` makes of 32 or 64 bits ptxas takes never to be negative.
fn may_leave_opposite(code: &Code<'_>, statement: u32) -> bool {
    match (code.opcode(statement), code.operands(statement)) {
        ("neg.s16" | "abs.s16" | "abs.s32" | "abs.s64", _) => true,
        ("sub.s16", [_, from, by]) => {
            let may_be = |operand: &Operand, number: i128| operand.number().is_none_or(|known| known == number);
            may_be(from, 0) && (may_be(by, -(1 << 15)) || may_be(by, 1 << 15))
        }
        _ => false,
    }
}

/// Whether what an instruction makes of such an opposite may be one, since ptxas may make nothing of it.
fn hands_on_opposite(plain: &Instruction<'_>) -> bool {
    let is_cut = match (plain.op.head, &plain.rest[..]) {
        // Without the highest bit it is a number as any other.
        ("and", [_, Value::Number(mask)]) => plain.op.of.is_some_and(|(width, _)| (0..1 << (width - 1)).contains(mask)),
        ("shr", [_, Value::Number(by)]) => *by > 0 && plain.op.of.is_some_and(|(_, signed)| !signed),
        _ => false,
    };
    !is_cut && !matches!(plain.op.head, "setp" | "set" | "st" | "ld" | "call" | "bra")
}

/// Whether an instruction of this kind may access the thread's own stack.
fn may_access_stack(plain: &Instruction<'_>, head: &str) -> bool {
    plain.op.head == head && spaces(plain.opcode).all(|space| space == "local")
}

/// Whether an instruction reads numbers with their sign, so that such an opposite makes a difference.
fn minds_sign(plain: &Instruction<'_>) -> bool {
    let opcode = plain.opcode;
    let head = head_of(opcode);
    let Some(width) = opcode.split('.').next_back().and_then(|kind| kind.strip_prefix('s')?.parse::<u32>().ok()) else { return false };
    // No opposite is equal to a small number.
    let is_other_number = |operand: &Value| matches!(operand, Value::Number(number) if number.unsigned_abs() < 1 << (width - 1));
    if (opcode.starts_with("setp.eq.s") || opcode.starts_with("setp.ne.s")) && plain.rest.iter().any(is_other_number) {
        return false;
    }
    let is_other = matches!(head, "setp" | "set" | "slct" | "min" | "max" | "shr" | "div" | "rem" | "sad" | "cvt");
    is_other || matches!(head, "mul" | "mad") && !opcode.contains(".lo.")
}
