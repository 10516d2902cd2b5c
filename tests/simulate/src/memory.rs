//! Global memory: variables and buffers, each with its bounds.

use crate::program::{InitialValue, Program, Variable};

/// Where global memory begins. Behind each piece lies a gap, so that what runs out of one meets no other.
const GLOBAL: u64 = 0x7f00_0000_0000;
const GAP: u64 = 4096;
/// Where pointers to functions begin.
pub(crate) const CODE: u64 = 0x00c0_de00_0000;

/// The memory that all blocks share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    base: u64,
    bytes: Vec<u8>,
    /// Of a variable.
    name: Option<String>,
}

/// No piece of memory holds these bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfBounds;

impl Memory {
    /// The memory of a module's variables, as they are at first.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        let mut memory = Self { pieces: Vec::new() };
        for variable in &program.variables {
            memory.add(vec![0; variable.size], variable.align as u64, Some(variable.name.clone()));
        }
        for (at, variable) in program.variables.iter().enumerate() {
            memory.initialise(at, variable);
        }
        memory
    }

    /// Adds a buffer and says where it lies.
    pub fn allocate(&mut self, bytes: Vec<u8>) -> u64 {
        self.add(bytes, 256, None)
    }

    /// Where the module's variable of that name lies.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        self.pieces.iter().find(|piece| piece.name.as_deref() == Some(name)).map(|piece| piece.base)
    }

    /// The bytes of the buffer or variable that begins at an address.
    #[must_use]
    pub fn bytes(&self, address: u64) -> Option<&[u8]> {
        self.pieces.iter().find(|piece| piece.base == address).map(|piece| &*piece.bytes)
    }

    /// Writes a number of so many bytes, as the host does; says whether there is memory.
    pub fn write(&mut self, address: u64, size: usize, value: u64) -> bool {
        self.slice_mut(address, size).map(|bytes| bytes.copy_from_slice(&value.to_le_bytes()[..size])).is_ok()
    }

    /// Where the variable of that number lies.
    pub(crate) fn variable(&self, number: usize) -> u64 {
        self.pieces[number].base
    }

    pub(crate) fn slice_mut(&mut self, address: u64, size: usize) -> Result<&mut [u8], OutOfBounds> {
        let piece = self.find(address)?;
        let from = (address - self.pieces[piece].base) as usize;
        self.pieces[piece].bytes.get_mut(from..from.checked_add(size).ok_or(OutOfBounds)?).ok_or(OutOfBounds)
    }

    fn find(&self, address: u64) -> Result<usize, OutOfBounds> {
        self.pieces.partition_point(|piece| piece.base <= address).checked_sub(1).ok_or(OutOfBounds)
    }

    fn add(&mut self, bytes: Vec<u8>, align: u64, name: Option<String>) -> u64 {
        let free = self.pieces.last().map_or(GLOBAL, |last| last.base + last.bytes.len() as u64 + GAP);
        let base = free.next_multiple_of(align.max(1));
        self.pieces.push(Piece { base, bytes, name });
        base
    }

    fn initialise(&mut self, at: usize, variable: &Variable) {
        for initial in &variable.values {
            let value = match initial.value {
                InitialValue::Number(value) => value,
                InitialValue::Variable(number, offset) => self.pieces[number].base.wrapping_add_signed(offset),
                InitialValue::Function(number) => CODE + number as u64,
            };
            if let Some(bytes) = self.pieces[at].bytes.get_mut(initial.offset..initial.offset + initial.size) {
                bytes.copy_from_slice(&value.to_le_bytes()[..initial.size]);
            }
        }
    }
}
