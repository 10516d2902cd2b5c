//! The registers of a function, and words of its local memory that are followed like registers.

use crate::program::instruction::{Instruction, Register, decode};
use crate::program::local_memory::{self, Bytes, LocalMemory};
use cuinstr_ptx::Code;
use std::collections::BTreeMap;

/// The registers of a function, and words of its local memory that are followed like registers.
#[derive(Debug)]
pub(crate) struct Registers<'a> {
    code: &'a Code<'a>,
    local: LocalMemory,
}

impl<'a> Registers<'a> {
    /// With the words that can be followed: see [`local_memory::find`].
    pub(crate) fn new(code: &'a Code<'a>, callees_keep_off: impl FnOnce() -> bool) -> Self {
        Self { code, local: local_memory::find(code, callees_keep_off) }
    }

    /// Statements that read or write the function's own local memory, but no word that is followed, and where.
    pub(crate) fn local_bytes(&self) -> &BTreeMap<u32, Bytes> {
        &self.local.others
    }

    /// Whether a statement stores to the function's own local memory, at a place that is known.
    pub(crate) fn is_own_store(&self, statement: u32) -> bool {
        let is_word = self.local.accesses.get(&statement).is_some_and(|word| word.is_store);
        is_word || self.local.others.get(&statement).is_some_and(|bytes| bytes.is_store)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.code.register_count() as usize + self.local.words.len()
    }

    /// Bits of a register; 1 for a predicate, 0 if unknown.
    pub(crate) fn width(&self, register: Register) -> u8 {
        match register.checked_sub(self.code.register_count()) {
            Some(word) => self.local.words.get(word as usize).copied().unwrap_or(0),
            None => self.code.width(register),
        }
    }

    /// A statement taken apart. An access to such a word is a copy between registers.
    pub(crate) fn decode(&self, statement: u32) -> Instruction<'a> {
        let instruction = decode(self.code, statement);
        match self.local.accesses.get(&statement) {
            Some(word) => local_memory::copy(*word, self.width(word.word), instruction),
            None => instruction,
        }
    }

    /// Registers that a statement may write.
    pub(crate) fn each_written(&self, statement: u32, mut found: impl FnMut(Register)) {
        match self.local.accesses.get(&statement) {
            Some(access) if access.is_store => found(access.word),
            _ => self.code.each_written(statement, found),
        }
    }
}
