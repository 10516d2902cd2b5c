//! A function taken apart: control flow, instructions, registers, and words of local memory.

pub(crate) mod cfg;
pub(crate) mod control_block;
pub(crate) mod definitions;
pub(crate) mod instruction;
pub(crate) mod local_by_number;
pub(crate) mod local_memory;
pub(crate) mod registers;
