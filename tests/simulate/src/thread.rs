//! One thread: its frames, its registers and its own memory.

use crate::program::{Barrier, Function, LaneMask, Passed, Register, Source, Special, Warp};

/// Most bytes of local memory that a thread may use.
pub(crate) const STACK: usize = 1 << 18;
/// Most calls that may be open.
pub(crate) const DEPTH: usize = 2048;

/// A function that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) function: usize,
    /// The instruction that is next.
    pub(crate) next: usize,
    pub(crate) registers: Vec<u64>,
    pub(crate) params: Vec<u8>,
    /// Where its local variables begin.
    pub(crate) local: usize,
}

impl Frame {
    pub(crate) fn new(number: usize, function: &Function, local: usize) -> Self {
        Self { function: number, next: 0, registers: vec![0; function.widths.len()], params: vec![0; function.param_bytes], local }
    }
}

/// What a thread waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wait {
    Barrier { kind: Barrier, number: u64, count: Option<u64>, value: bool, to: Register },
    Warp { operation: Warp, values: [u64; 3], mask: u32 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Waits(Wait),
    Ended,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) index: [u32; 3],
    /// Number in its block.
    pub(crate) number: u32,
    pub(crate) frames: Vec<Frame>,
    pub(crate) local: Vec<u8>,
    pub(crate) carry: bool,
    pub(crate) state: State,
}

impl Thread {
    pub(crate) fn lane(&self) -> u32 {
        self.number % 32
    }

    pub(crate) fn is_live(&self) -> bool {
        !matches!(self.state, State::Ended)
    }

    /// The function that runs; a thread that has ended has none.
    pub(crate) fn frame(&mut self) -> Option<&mut Frame> {
        self.frames.last_mut()
    }

    pub(crate) fn set(&mut self, register: Register, value: u64, widths: &[u8]) {
        if let Some(frame) = self.frames.last_mut() {
            frame.registers[register as usize] = value & crate::types::mask(u32::from(widths[register as usize]));
        }
    }

    pub(crate) fn register(&self, register: Register) -> u64 {
        self.frames.last().map_or(0, |frame| frame.registers[register as usize])
    }
}

/// What special registers are made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) index: [u32; 3],
    pub(crate) dynamic_shared: u64,
    pub(crate) total_shared: u64,
    pub(crate) clock: u64,
}

impl Place {
    pub(crate) fn special(&self, thread: &Thread, special: Special) -> u64 {
        let lane = thread.lane();
        let threads: u32 = self.block.iter().product();
        u64::from(match special {
            Special::Thread(axis) => thread.index[axis],
            Special::Threads(axis) => self.block[axis],
            Special::Block(axis) => self.index[axis],
            Special::Blocks(axis) => self.grid[axis],
            Special::Lane => lane,
            Special::Warp => thread.number / 32,
            Special::Warps => threads.div_ceil(32),
            Special::Lanes(mask) => match mask {
                LaneMask::Equal => 1 << lane,
                LaneMask::Less => (1 << lane) - 1,
                LaneMask::LessEqual => u32::MAX >> (31 - lane),
                LaneMask::Greater => !(u32::MAX >> (31 - lane)),
                LaneMask::GreaterEqual => !((1 << lane) - 1),
            },
            Special::Clock => return self.clock,
            Special::DynamicShared => return self.dynamic_shared,
            Special::TotalShared => return self.total_shared,
            Special::Fixed(value) => return value,
        })
    }
}

/// A value that is handed to a function or back.
pub(crate) enum Handed {
    Value(u64),
    Bytes(Vec<u8>),
}

impl Thread {
    /// What a parameter holds; `value` reads a source.
    pub(crate) fn hand_out(&self, passed: Passed, value: impl Fn(Source) -> u64) -> Handed {
        match passed {
            Passed::Register(register) => Handed::Value(self.register(register)),
            Passed::Source(source) => Handed::Value(value(source)),
            Passed::Memory(offset, size) => {
                Handed::Bytes(self.frames.last().and_then(|frame| frame.params.get(offset..offset + size)).unwrap_or_default().to_vec())
            }
        }
    }

    pub(crate) fn take_in(&mut self, passed: Passed, handed: &Handed, widths: &[u8]) {
        let Some(frame) = self.frames.last_mut() else { return };
        match (passed, handed) {
            (Passed::Register(register), Handed::Value(value)) => self.set(register, *value, widths),
            (Passed::Register(register), Handed::Bytes(bytes)) => self.set(register, number(bytes), widths),
            (Passed::Memory(offset, size), Handed::Bytes(bytes)) => {
                let size = size.min(bytes.len());
                frame.params[offset..offset + size].copy_from_slice(&bytes[..size]);
            }
            (Passed::Memory(offset, size), Handed::Value(value)) => {
                let size = size.min(8);
                frame.params[offset..offset + size].copy_from_slice(&value.to_le_bytes()[..size]);
            }
            (Passed::Source(_), _) => {}
        }
    }
}

/// The number in up to eight bytes.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    let size = bytes.len().min(8);
    all[..size].copy_from_slice(&bytes[..size]);
    u64::from_le_bytes(all)
}
