//! A launch: blocks whose threads take turns, always in the same order.

use crate::memory::Memory;
use crate::program::{Barrier, Program, Reduce};
use crate::thread::{Frame, Place, State, Thread, Wait, number};
use crate::warp;

/// How many instructions a thread runs before it is the next one's turn.
const TURN: usize = 64;
/// Most threads of a launch.
const THREADS: u64 = 1 << 16;
/// Most bytes of shared memory of a block.
const SHARED: usize = 1 << 20;

/// What a launch is given.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The kernel's name.
    pub kernel: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// The parameters' bytes, in order.
    pub parameters: Vec<Vec<u8>>,
}

/// How a launch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All threads came to their ends.
    Completed,
    /// A thread trapped at the statement with this offset.
    Trapped(u32),
    /// A thread did at this offset what hardware would refuse.
    Fault(u32, String),
    /// Threads wait for each other.
    Deadlock,
    /// What stands at this offset is not simulated.
    NotSimulated(u32, String),
}

/// What a thread is about to do.
#[derive(Debug)]
pub struct Moment<'m> {
    /// Number of the function, in the text's order.
    pub function: usize,
    /// Offset of the statement.
    pub at: u32,
    /// Instructions that all threads have run before.
    pub step: u64,
    /// Number of the thread in its block.
    pub thread: u32,
    pub(crate) registers: &'m [u64],
}

impl Moment<'_> {
    /// What registers hold, by the numbers that the reader gives them.
    #[must_use]
    pub fn registers(&self) -> &[u64] {
        &self.registers[1..]
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) index: [u32; 3],
    pub(crate) shared: Vec<u8>,
    pub(crate) threads: Vec<Thread>,
    /// Threads that came to each barrier and went on.
    arrived: [u64; 16],
}

/// A launch that runs.
#[derive(Debug, Clone)]
pub struct Machine<'p> {
    pub(crate) program: &'p Program,
    /// Global memory.
    pub memory: Memory,
    pub(crate) launch: Launch,
    pub(crate) blocks: Vec<Block>,
    /// Instructions that all threads have run.
    pub steps: u64,
}

impl<'p> Machine<'p> {
    /// A launch that has not begun.
    ///
    /// # Errors
    /// If there is no such kernel, or its parameters are others, or the launch is too large.
    pub fn new(program: &'p Program, memory: Memory, launch: Launch) -> Result<Self, String> {
        let named = |function: &crate::program::Function| function.is_kernel && function.name == launch.kernel;
        let kernel = program.functions.iter().position(named).ok_or_else(|| format!("no kernel `{}`", launch.kernel))?;
        let function = &program.functions[kernel];
        if function.parameters.len() != launch.parameters.len() {
            return Err(format!("`{}` has {} parameters, not {}", launch.kernel, function.parameters.len(), launch.parameters.len()));
        }
        let all = |extents: [u32; 3]| extents.iter().map(|&extent| u64::from(extent)).product::<u64>();
        let shared = program.shared + launch.shared as usize;
        if all(launch.grid) * all(launch.block) > THREADS || shared > SHARED {
            return Err(format!("the launch of `{}` is too large", launch.kernel));
        }
        let mut frame = Frame::new(kernel, function, 0);
        for (passed, bytes) in function.parameters.iter().zip(&launch.parameters) {
            match *passed {
                crate::program::Passed::Memory(offset, size) if size == bytes.len() => {
                    frame.params[offset..offset + size].copy_from_slice(bytes);
                }
                _ => return Err(format!("a parameter of `{}` has another size", launch.kernel)),
            }
        }
        let thread = |at: usize, index: [u32; 3]| Thread {
            index,
            number: at as u32,
            frames: vec![frame.clone()],
            local: vec![0; function.local_bytes],
            carry: false,
            state: State::Ready,
        };
        let blocks = indices(launch.grid).map(|index| Block {
            index,
            shared: vec![0; shared],
            threads: indices(launch.block).enumerate().map(|(at, index)| thread(at, index)).collect(),
            arrived: [0; 16],
        });
        let blocks = blocks.collect();
        Ok(Self { program, memory, launch, blocks, steps: 0 })
    }

    /// Runs until the launch ends, or until threads have run so many instructions in all.
    pub fn run(&mut self, steps: u64, watch: &mut dyn FnMut(&Moment<'_>)) -> Option<Outcome> {
        let all: Vec<usize> = (0..self.blocks.len()).collect();
        self.run_some(&all, steps, watch)
    }

    /// The same with these blocks alone, as if the device had room for no others: until they end, or until all threads have run so many instructions.
    pub fn run_some(&mut self, blocks: &[usize], steps: u64, watch: &mut dyn FnMut(&Moment<'_>)) -> Option<Outcome> {
        while self.steps < steps {
            let before = self.steps;
            for &block in blocks {
                for thread in 0..self.blocks[block].threads.len() {
                    for _ in 0..TURN {
                        if !matches!(self.blocks[block].threads[thread].state, State::Ready) {
                            break;
                        }
                        if self.steps >= steps {
                            return None;
                        }
                        if let Err(outcome) = self.step(block, thread, watch) {
                            return Some(outcome);
                        }
                        if !matches!(self.blocks[block].threads[thread].state, State::Ready) {
                            self.release(block, thread);
                        }
                    }
                }
            }
            if self.steps == before {
                let ended = blocks.iter().all(|block| self.has_ended(*block));
                return Some(if ended { Outcome::Completed } else { Outcome::Deadlock });
            }
        }
        None
    }

    /// Whether a block's threads have come to their ends.
    #[must_use]
    pub fn has_ended(&self, block: usize) -> bool {
        self.blocks[block].threads.iter().all(|thread| !thread.is_live())
    }

    /// Whether all threads and all memory are as in another launch of the same program. What comes then is the same, unless a clock is read.
    #[must_use]
    pub fn is_as(&self, other: &Self) -> bool {
        self.blocks == other.blocks && self.memory == other.memory
    }

    pub(crate) fn place(&self, block: usize) -> Place {
        Place {
            grid: self.launch.grid,
            block: self.launch.block,
            index: self.blocks[block].index,
            dynamic_shared: u64::from(self.launch.shared),
            total_shared: self.blocks[block].shared.len() as u64,
            clock: self.steps,
        }
    }

    /// Counts a thread that came to a barrier and goes on.
    pub(crate) fn arrive(&mut self, block: usize, number: u64) {
        self.blocks[block].arrived[number as usize % 16] += 1;
    }

    /// Lets threads go on that waited for this one.
    pub(crate) fn release(&mut self, block: usize, thread: usize) {
        let program = self.program;
        let block = &mut self.blocks[block];
        warp::release(program, block, thread / 32);
        let live = block.threads.iter().filter(|thread| thread.is_live()).count() as u64;
        for barrier in 0..16 {
            let waits = |thread: &Thread| match &thread.state {
                State::Waits(Wait::Barrier { number, count, value, .. }) if *number % 16 == barrier => Some((*count, *value)),
                _ => None,
            };
            let waiting: Vec<(Option<u64>, bool)> = block.threads.iter().filter_map(waits).collect();
            let Some((count, _)) = waiting.first() else { continue };
            if (waiting.len() as u64) + block.arrived[barrier as usize] < count.unwrap_or(live) {
                continue;
            }
            let yes = waiting.iter().filter(|(_, value)| *value).count();
            for thread in block.threads.iter_mut().filter(|thread| waits(thread).is_some()) {
                let State::Waits(Wait::Barrier { kind, to, .. }) = std::mem::replace(&mut thread.state, State::Ready) else { continue };
                let result = match kind {
                    Barrier::Sync | Barrier::Arrive => continue,
                    Barrier::Count => yes as u64,
                    Barrier::And => u64::from(yes == waiting.len()),
                    Barrier::Or => u64::from(yes > 0),
                };
                let function = thread.frames.last().map_or(0, |frame| frame.function);
                thread.set(to, result, &program.functions[function].widths);
            }
            block.arrived[barrier as usize] = 0;
        }
    }
}

fn indices(extent: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    let [x, y, z] = extent;
    (0..z).flat_map(move |c| (0..y).flat_map(move |b| (0..x).map(move |a| [a, b, c])))
}

/// What lanes make of their values together.
pub(crate) fn reduce(kind: Reduce, signed: bool, values: impl Iterator<Item = u64>) -> u64 {
    let order = |value: u64| if signed { i64::from(value as u32 as i32) } else { i64::from(value as u32) };
    values
        .reduce(|a, b| match kind {
            Reduce::Add => a.wrapping_add(b),
            Reduce::Min => std::cmp::min_by_key(a, b, |value| order(*value)),
            Reduce::Max => std::cmp::max_by_key(a, b, |value| order(*value)),
            Reduce::And => a & b,
            Reduce::Or => a | b,
            Reduce::Xor => a ^ b,
        })
        .unwrap_or(0)
}

/// The number that bytes of memory hold.
pub(crate) fn read(bytes: &[u8]) -> u64 {
    number(bytes)
}
