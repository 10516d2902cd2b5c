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

/// Runs the kernel of a header. Its grid has no more blocks than asked along each axis.
///
/// # Errors
/// If the text is no PTX, or has no kernel of that name, or one that takes other parameters.
pub fn run(text: &str, header: &Header, blocks: u32, steps: u64) -> Result<Left, String> {
    let program = Program::read(text)?;
    let Started { mut machine, buffers } = start(&program, header, blocks)?;
    let outcome = machine.run(steps, &mut |_| ());
    let read = |(address, arg): &(u64, &Arg)| {
        let bytes = machine.memory.bytes(*address).unwrap_or_default();
        match arg {
            Arg::Buffer { ty, sorted: true, .. } => {
                let mut elements: Vec<&[u8]> = bytes.chunks(ty.size()).collect();
                elements.sort_unstable();
                elements.concat()
            }
            _ => bytes.to_vec(),
        }
    };
    Ok(Left { outcome, buffers: buffers.iter().map(read).collect(), steps: machine.steps })
}

/// A launch before its first step, and where the buffers of its header lie.
struct Started<'p, 'h> {
    machine: Machine<'p>,
    buffers: Vec<(u64, &'h Arg)>,
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
