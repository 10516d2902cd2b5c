//! The registers of a function, and words of its local memory that are followed like registers.

use crate::program::instruction::{Instruction, Register, decode};
use crate::program::local_memory::{self, Word};
use cuinstr_ptx::Code;
use std::collections::BTreeMap;

/// The registers of a function, and words of its local memory that are followed like registers.
#[derive(Debug)]
pub(crate) struct Registers<'a> {
    code: &'a Code<'a>,
    /// Bits of those words.
    words: Vec<u8>,
    /// Statements that read or write them.
    accesses: BTreeMap<u32, Word>,
}

impl<'a> Registers<'a> {
    /// With the words that can be followed.
    pub(crate) fn new(code: &'a Code<'a>) -> Self {
        let (words, accesses) = local_memory::find(code);
        Self { code, words, accesses }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.code.register_count() as usize + self.words.len()
    }

    /// Bits of a register; 1 for a predicate, 0 if unknown.
    pub(crate) fn width(&self, register: Register) -> u8 {
        match register.checked_sub(self.code.register_count()) {
            Some(word) => self.words.get(word as usize).copied().unwrap_or(0),
            None => self.code.width(register),
        }
    }

    /// A statement taken apart. An access to such a word is a copy between registers.
    pub(crate) fn decode(&self, statement: u32) -> Instruction<'a> {
        let instruction = decode(self.code, statement);
        match self.accesses.get(&statement) {
            Some(word) => local_memory::copy(*word, self.width(word.word), instruction),
            None => instruction,
        }
    }

    /// Registers that a statement may write.
    pub(crate) fn each_written(&self, statement: u32, mut found: impl FnMut(Register)) {
        match self.accesses.get(&statement) {
            Some(access) if access.is_store => found(access.word),
            _ => self.code.each_written(statement, found),
        }
    }
}
