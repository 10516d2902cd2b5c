//! Kernels of [`cuinstr_harness::fixtures`] on the interpreter.

use cuinstr_harness::header::{Arg, Header};
use cuinstr_simulate::{Launch, Machine, Memory, Outcome, Program};

/// What a kernel left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// How it ended; `None` if it still ran after the last step that it was allowed.
    pub outcome: Option<Outcome>,
    /// The buffers of the header, in order; those whose order means nothing are sorted.
    pub buffers: Vec<Vec<u8>>,
    /// Instructions that its threads ran.
    pub steps: u64,
}

/// What a kernel left behind, with words of its stop record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// What the kernel left.
    pub left: Left,
    /// The reason of the first thread that stopped, or 0.
    pub why: u64,
    /// Most units of fuel that a thread used.
    pub fuel_used: u64,
    /// Cycles that the first thread ran which stopped.
    pub elapsed_cycles: u64,
    /// Number of the launch once a thread came late to its end.
    pub late: u64,
    /// When the launch began.
    pub start_ns: u64,
}

/// Runs the kernel of a header. Its grid has no more blocks than asked along each axis.
///
/// # Errors
/// If the text is no PTX, or has no kernel of that name, or one that takes other parameters.
pub fn run(text: &str, header: &Header, blocks: u32, steps: u64) -> Result<Left, String> {
    let program = Program::read(text)?;
    let mut started = start(&program, header, blocks)?;
    Ok(started.finish(steps))
}

/// The same where the host writes words of the control block before the launch: offset, bytes and value of each.
///
/// # Errors
/// As above, or if the text has no control block.
pub fn recorded(text: &str, header: &Header, steps: u64, words: &[(u64, usize, u64)]) -> Result<Recorded, String> {
    let program = Program::read(text)?;
    let mut started = start(&program, header, 1)?;
    let control = started.machine.memory.address("cuinstr_control_v1").ok_or("no control block")?;
    for (offset, size, value) in words {
        started.machine.memory.write(control + offset, *size, *value);
    }
    let left = started.finish(steps);
    let bytes = started.machine.memory.bytes(control).unwrap_or_default();
    let word = |from: usize, size: usize| bytes[from..from + size].iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    let record = std::mem::offset_of!(cuinstr_abi::control::ControlBlock, own_record);
    Ok(Recorded {
        left,
        why: word(record + 16, 4),
        fuel_used: word(record + 56, 8),
        elapsed_cycles: word(record + 72, 8),
        late: word(record + 20, 4),
        start_ns: word(32, 8),
    })
}

/// A launch before its first step, and where the buffers of its header lie.
struct Started<'p, 'h> {
    machine: Machine<'p>,
    buffers: Vec<(u64, &'h Arg)>,
}

impl Started<'_, '_> {
    fn finish(&mut self, steps: u64) -> Left {
        let outcome = self.machine.run(steps, &mut |_| ());
        let read = |(address, arg): &(u64, &Arg)| {
            let bytes = self.machine.memory.bytes(*address).unwrap_or_default();
            match arg {
                Arg::Buffer { ty, sorted: true, .. } => {
                    let mut elements: Vec<&[u8]> = bytes.chunks(ty.size()).collect();
                    elements.sort_unstable();
                    elements.concat()
                }
                _ => bytes.to_vec(),
            }
        };
        Left { outcome, buffers: self.buffers.iter().map(read).collect(), steps: self.machine.steps }
    }
}

fn start<'p, 'h>(program: &'p Program, header: &'h Header, blocks: u32) -> Result<Started<'p, 'h>, String> {
    let named: Vec<&str> = program.kernels().filter(|name| name.contains(&header.entry)).collect();
    // A name may be a part of another.
    let kernel = named.iter().find(|name| **name == header.entry).or(named.first());
    let kernel = kernel.ok_or_else(|| format!("no kernel `{}`", header.entry))?;
    let mut memory = Memory::new(program);
    let (mut parameters, mut buffers) = (Vec::new(), Vec::new());
    for arg in &header.args {
        parameters.push(match arg {
            Arg::Scalar { ty, bits } => bits.to_le_bytes()[..ty.size()].to_vec(),
            Arg::Buffer { ty, count, init, .. } => {
                let address = memory.allocate(init.bytes(*ty, *count));
                buffers.push((address, arg));
                address.to_le_bytes().to_vec()
            }
        });
    }
    let launch = Launch {
        kernel: (*kernel).to_owned(),
        grid: header.grid.map(|extent| extent.min(blocks)),
        block: header.block,
        shared: header.shared,
        parameters,
    };
    Ok(Started { machine: Machine::new(program, memory, launch)?, buffers })
}
