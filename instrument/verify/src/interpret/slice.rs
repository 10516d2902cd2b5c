//! A program slice: the registers that decide how control goes round a strongly connected set of blocks, and the
//! instructions that write them.

use crate::domain::name::{FIRST_NAME, Name, name_of};
use crate::domain::state::Slots;
use crate::interpret::step::{NO_REGISTER, Step, Sum};
use crate::interpret::thresholds::Thresholds;
use crate::program::instruction::Register;
use std::collections::BTreeMap;

/// What is followed in a set of blocks.
#[derive(Debug)]
pub(crate) struct Slice<'a> {
    /// The registers, and their widths; behind them the sums.
    pub(crate) slots: Vec<(Register, u8)>,
    /// Sums of registers, the first of which has the slot `first_sum`.
    pub(crate) sums: Vec<Sum>,
    pub(crate) first_sum: u32,
    /// The sums that each register is part of.
    pub(crate) sums_of: BTreeMap<u32, Vec<u32>>,
    /// The slot of each register while it is built; kept by the body in between.
    pub(crate) slot_of: Vec<u32>,
    /// Instructions that write them, in order.
    pub(crate) steps: Vec<Step<'a>>,
    /// For each block of the set the steps in it, as a range.
    pub(crate) steps_of: BTreeMap<u32, (u32, u32)>,
    /// For each block of the set that ends with a guarded statement, the guard's slot.
    pub(crate) guards: BTreeMap<u32, u32>,
    /// For each block of the set the slots that are read from its beginning on before they are written, sorted.
    pub(crate) live: BTreeMap<u32, Vec<u32>>,
    /// Where a bound of a set that grows may come to rest, by slot.
    pub(crate) thresholds: Thresholds,
    /// What holds for good between registers.
    pub(crate) equations: Equations,
    /// Whether some step takes the larger or smaller of two registers, in a way that loops may be told apart by.
    pub(crate) has_cases: bool,
    /// Whether some step takes the lower half of 64 bits, at a closer look: then what the half is made of is kept for longer.
    pub(crate) has_halves: bool,
    /// Whether this is more than a first look, and may cost more.
    pub(crate) is_close: bool,
}

impl Slice<'_> {
    /// The sums that a register is part of.
    pub(crate) fn sums_of(&self, slot: u32) -> &[u32] {
        self.sums_of.get(&slot).map_or(&[], Vec::as_slice)
    }

    /// The slot of a register that is followed.
    pub(crate) fn slot_of(&self, register: Register) -> Option<u32> {
        let mut registers = (0..).zip(&self.slots[..self.first_sum as usize]);
        registers.find(|(_, (of, _))| *of == register && register != NO_REGISTER).map(|(slot, _)| slot)
    }

    /// Slots that matter from a block's beginning on, sorted.
    pub(crate) fn live(&self, block: u32) -> &[u32] {
        self.live.get(&block).map_or(&[], Vec::as_slice)
    }

    /// The name of what a slot holds from a join on.
    pub(crate) fn name_at(&self, block: u32, slot: usize) -> Name {
        name_of(self.names_at(block).start + slot as u64)
    }

    /// The numbers of a block's names.
    pub(crate) fn names_at(&self, block: u32) -> std::ops::Range<u64> {
        let slots = self.slots.len() as u64;
        let first = u64::from(FIRST_NAME) + self.steps.len() as u64 * 4 + u64::from(block) * slots;
        first..first + slots
    }

    /// Where a bound of a slot's set that grows may come to rest: sorted.
    pub(crate) fn thresholds(&self, slot: u32) -> &[i128] {
        self.thresholds.of(slot)
    }

    /// The steps of a block.
    pub(crate) fn steps(&self, block: u32) -> std::ops::Range<usize> {
        self.steps_of.get(&block).map_or(0..0, |(from, to)| *from as usize..*to as usize)
    }
}

/// Steps that hold as equations, in the order in which control passes them, by the blocks at whose ends they do.
pub(crate) type Equations = BTreeMap<u32, Vec<u32>>;

impl Slots for Slice<'_> {
    fn width(&self, slot: u32) -> u8 {
        self.slots[slot as usize].1
    }

    fn name_at(&self, block: u32, slot: usize) -> Name {
        self.name_at(block, slot)
    }

    fn is_close(&self) -> bool {
        self.is_close
    }
}
