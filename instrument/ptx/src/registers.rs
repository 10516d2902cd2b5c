//! The numbers of a function's registers.

use crate::operand::Register;
use std::collections::HashMap;

/// Numbers registers. Those of a declaration follow each other, unless it declares more than the text could use: then each gets the next number when it
/// is first named, so that memory grows like the text.
#[derive(Debug, Default)]
pub(crate) struct Registers {
    pub(crate) widths: Vec<u8>,
    declared: Vec<Declared>,
    sparse: HashMap<(u32, u32), Register, foldhash::fast::RandomState>,
    /// How many more registers may be numbered at once.
    room: u32,
}

#[derive(Debug, Clone, Copy)]
struct Declared {
    /// The number of its first; none if they are numbered one by one.
    first: Option<Register>,
    lanes: u8,
    width: u8,
}

impl Registers {
    /// For a function with a body of so many bytes.
    pub(crate) fn new(bytes: u32) -> Self {
        Self { room: bytes, ..Self::default() }
    }

    /// A declaration of `count` registers, or vectors of them; gives its number.
    pub(crate) fn declare(&mut self, count: u32, lanes: u8, width: u8) -> u32 {
        let first = count.checked_mul(lanes.into()).filter(|all| *all <= self.room).map(|all| {
            self.room -= all;
            let first = self.widths.len();
            self.widths.resize(first + all as usize, width);
            first as Register
        });
        self.declared.push(Declared { first, lanes, width });
        self.declared.len() as u32 - 1
    }

    pub(crate) fn lanes(&self, declaration: u32) -> u8 {
        self.declared[declaration as usize].lanes
    }

    /// A lane of the nth register of a declaration.
    pub(crate) fn number(&mut self, declaration: u32, nth: u32, lane: u8) -> Register {
        let Declared { first, lanes, width } = self.declared[declaration as usize];
        // The reader refuses a declaration for which this would wrap.
        let nth = nth.wrapping_mul(lanes.into()).wrapping_add(lane.into());
        if let Some(first) = first {
            return first + nth;
        }
        let next = self.widths.len() as Register;
        let number = *self.sparse.entry((declaration, nth)).or_insert(next);
        if number == next {
            self.widths.push(width);
        }
        number
    }
}
