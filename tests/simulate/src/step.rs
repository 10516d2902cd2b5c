//! One instruction of one thread.

use crate::machine::{Block, Machine, Moment, Outcome, read};
use crate::memory::{CODE, Memory};
use crate::program::{Address, Barrier, Callee, Carry, Instruction, Operation, Passed, Program, Source, Space};
use crate::thread::{DEPTH, Frame, Place, STACK, State, Thread, Wait};
use crate::types::Type;

/// Where generic addresses of a block's shared memory begin, of a thread's own memory, and of the kernel's parameters.
const SHARED: u64 = 1 << 40;
const LOCAL: u64 = 1 << 41;
const PARAM: u64 = 1 << 42;
/// Bytes of each of these windows.
const WINDOW: u64 = 1 << 32;

/// A thread with all that it can reach.
struct Reach<'m> {
    program: &'m Program,
    memory: &'m mut Memory,
    shared: &'m mut Vec<u8>,
    thread: &'m mut Thread,
    place: Place,
    at: u32,
}

impl Machine<'_> {
    /// Runs the thread's next instruction.
    pub(crate) fn step(&mut self, block: usize, number: usize, watch: &mut dyn FnMut(&Moment<'_>)) -> Result<(), Outcome> {
        let program = self.program;
        let place = self.place(block);
        let thread = &mut self.blocks[block].threads[number];
        let Some(frame) = thread.frame() else {
            thread.state = State::Ended;
            return Ok(());
        };
        let function = &program.functions[frame.function];
        let Some(instruction) = function.code.get(frame.next) else { return Err(Outcome::Fault(0, "control left the function".into())) };
        watch(&Moment {
            function: frame.function,
            at: instruction.at,
            step: self.steps,
            thread: number as u32,
            registers: &frame.registers,
        });
        self.steps += 1;
        frame.next += 1;
        if instruction.guard.is_some_and(|(guard, negated)| (frame.registers[guard as usize] & 1 == 1) == negated) {
            return Ok(());
        }
        let Block { shared, threads, .. } = &mut self.blocks[block];
        let mut reach = Reach { program, memory: &mut self.memory, shared, thread: &mut threads[number], place, at: instruction.at };
        if let Operation::Barrier { kind: Barrier::Arrive, number, .. } = &instruction.operation {
            let number = reach.value(*number);
            self.arrive(block, number);
            // Whoever waits there may be the last to need it.
            self.release(block, 0);
            return Ok(());
        }
        reach.run(instruction)
    }
}

impl Reach<'_> {
    /// Over 80 lines: an arm for each operation.
    fn run(&mut self, instruction: &Instruction) -> Result<(), Outcome> {
        match &instruction.operation {
            Operation::Nothing => {}
            Operation::Compute { to, from, function } => {
                let values = from.map(|source| self.value(source));
                self.set(*to, function(&values));
            }
            Operation::Predicates { to, from, function } => {
                let values = from.map(|source| self.value(source));
                let result = function(&values);
                self.set(to[0], result & 1);
                self.set(to[1], result >> 1 & 1);
            }
            Operation::Carry { kind, to, from, reads, writes, ty } => self.carry(*kind, *to, *from, (*reads, *writes), *ty),
            Operation::Pack { to, from, bits } => {
                let value = from.iter().rev().fold(0, |all, part| all << bits | self.value(*part) & crate::types::mask(*bits));
                self.set(*to, value);
            }
            Operation::Unpack { to, from, bits } => {
                let value = self.value(*from);
                for (nth, to) in to.iter().enumerate() {
                    self.set(*to, value >> (bits * nth as u32));
                }
            }
            Operation::Load { to, ty, address } => {
                let from = self.address(*address);
                for (nth, to) in to.iter().enumerate() {
                    let value = read(self.bytes(address.space, from.wrapping_add((nth * ty.bytes()) as u64), ty.bytes())?);
                    self.set(*to, ty.extend(value));
                }
            }
            Operation::Store { from, ty, address } => {
                let to = self.address(*address);
                for (nth, from) in from.iter().enumerate() {
                    let value = self.value(*from).to_le_bytes();
                    let bytes = self.bytes(address.space, to.wrapping_add((nth * ty.bytes()) as u64), ty.bytes())?;
                    bytes.copy_from_slice(&value[..ty.bytes()]);
                }
            }
            Operation::Copy { to, from, bytes, taken } => {
                let (target, source) = (self.address(*to), self.address(*from));
                let taken = taken.map_or(*bytes, |taken| (self.value(taken) as usize).min(*bytes));
                let mut copied = self.bytes(from.space, source, taken)?.to_vec();
                copied.resize(*bytes, 0);
                self.bytes(to.space, target, *bytes)?.copy_from_slice(&copied);
            }
            Operation::Atomic { to, ty, address, from, function } => {
                let [one, two] = from.map(|source| self.value(source));
                let at = self.address(*address);
                let bytes = self.bytes(address.space, at, ty.bytes())?;
                let old = read(bytes);
                let new = function(&[old, one, two, 0]);
                bytes.copy_from_slice(&new.to_le_bytes()[..ty.bytes()]);
                self.set(*to, old);
            }
            Operation::Convert { to, from, space, generic } => {
                let base = match space {
                    Space::Generic => 0,
                    Space::Shared => SHARED,
                    Space::Local => LOCAL,
                    Space::Param => PARAM,
                };
                let value = self.value(*from);
                self.set(*to, if *generic { value.wrapping_add(base) } else { value.wrapping_sub(base) });
            }
            Operation::IsSpace { to, from, space } => {
                let value = self.value(*from);
                let found = [SHARED, LOCAL, PARAM].into_iter().find(|base| value.wrapping_sub(*base) < WINDOW);
                let asked = match space {
                    Some(Space::Shared) => Some(SHARED),
                    Some(Space::Local) => Some(LOCAL),
                    Some(Space::Param) => Some(PARAM),
                    Some(Space::Generic) | None => None,
                };
                self.set(*to, u64::from(found == asked));
            }
            Operation::Branch(target) => self.jump(*target),
            Operation::Table { index, targets } => match targets.get(self.value(*index) as u32 as usize) {
                Some(target) => self.jump(*target),
                None => return self.fault("an index beyond its table"),
            },
            Operation::Call { callee, results, parameters } => self.call(*callee, results, parameters)?,
            Operation::Return => self.give_back(),
            Operation::Exit => self.end(),
            Operation::Trap => return Err(Outcome::Trapped(self.at)),
            Operation::Barrier { kind, number, count, from, to } => {
                let (number, count) = (self.value(*number), count.map(|count| self.value(count)));
                let value = self.value(*from) & 1 == 1;
                self.thread.state = State::Waits(Wait::Barrier { kind: *kind, number, count, value, to: *to });
            }
            Operation::Warp(operation) => {
                let values = operation.from.map(|source| self.value(source));
                let mask = self.value(operation.mask) as u32;
                self.thread.state = State::Waits(Wait::Warp { operation: operation.clone(), values, mask });
            }
            Operation::Allocate { to, bytes } => {
                let size = self.value(*bytes) as usize;
                let base = self.thread.local.len().next_multiple_of(16);
                if size > STACK - base.min(STACK) {
                    return self.fault("the stack is full");
                }
                self.thread.local.resize(base + size, 0);
                self.set(*to, base as u64);
            }
            Operation::StackSave(to) => self.set(*to, self.thread.local.len() as u64),
            Operation::StackRestore(from) => {
                let size = self.value(*from) as usize;
                self.thread.local.truncate(size);
            }
            Operation::Unknown(what) => return Err(Outcome::NotSimulated(self.at, what.clone())),
        }
        Ok(())
    }

    fn value(&self, source: Source) -> u64 {
        match source {
            Source::Register(register) => self.thread.register(register),
            Source::Not(register) => !self.thread.register(register) & 1,
            Source::Number(value) => value,
            Source::Special(special) => self.place.special(self.thread, special),
            Source::Variable(number, offset) => self.memory.variable(number).wrapping_add_signed(offset),
            Source::Local(offset) => self.thread.frames.last().map_or(0, |frame| (frame.local as u64).wrapping_add_signed(offset)),
            Source::Function(number) => CODE + number as u64,
        }
    }

    fn set(&mut self, register: u32, value: u64) {
        let function = self.thread.frames.last().map_or(0, |frame| frame.function);
        let widths = &self.program.functions[function].widths;
        self.thread.set(register, value, widths);
    }

    fn jump(&mut self, target: usize) {
        if let Some(frame) = self.thread.frame() {
            frame.next = target;
        }
    }

    fn fault<T>(&self, why: &str) -> Result<T, Outcome> {
        Err(Outcome::Fault(self.at, why.into()))
    }

    fn end(&mut self) {
        self.thread.frames.clear();
        self.thread.state = State::Ended;
    }

    fn address(&self, address: Address) -> u64 {
        self.value(address.base).wrapping_add_signed(address.offset)
    }

    /// So many bytes of memory at an address.
    fn bytes(&mut self, space: Space, address: u64, size: usize) -> Result<&mut [u8], Outcome> {
        if size > 0 && !address.is_multiple_of(size as u64) && size.is_power_of_two() {
            return self.fault(&format!("address {address:#x} is not aligned to {size} bytes"));
        }
        let inside = |base: u64| space == Space::Generic && address.wrapping_sub(base) < WINDOW;
        // The kernel's parameters are the first frame's.
        let (space, address, frame) = match self.thread.frames.len() - 1 {
            _ if inside(SHARED) => (Space::Shared, address - SHARED, 0),
            _ if inside(LOCAL) => (Space::Local, address - LOCAL, 0),
            _ if inside(PARAM) => (Space::Param, address - PARAM, 0),
            last => (space, address, last),
        };
        let at = self.at;
        let range = address as usize..(address as usize).saturating_add(size);
        let found = match space {
            Space::Generic => self.memory.slice_mut(address, size).ok(),
            Space::Shared => self.shared.get_mut(range),
            Space::Local => self.thread.local.get_mut(range),
            Space::Param => self.thread.frames.get_mut(frame).and_then(|frame| frame.params.get_mut(range)),
        };
        found.ok_or_else(|| Outcome::Fault(at, format!("no {space:?} memory of {size} bytes at {address:#x}")))
    }

    fn carry(&mut self, kind: Carry, to: u32, from: [Source; 4], (reads, writes): (bool, bool), ty: Type) {
        let [a, b, c, _] = from.map(|source| u128::from(self.value(source) & ty.mask()));
        let carry = u128::from(reads && self.thread.carry);
        let product = |a: u128, b: u128| if ty.is_signed() { (ty.wide(a as u64) * ty.wide(b as u64)) as u128 } else { a * b };
        let result = match kind {
            Carry::Add => a + b + carry,
            // What is borrowed shows above the value as a carry does.
            Carry::Subtract => a.wrapping_sub(b).wrapping_sub(carry),
            Carry::MultiplyLow => (product(a, b) & u128::from(ty.mask())) + c + carry,
            Carry::MultiplyHigh => (product(a, b) >> ty.bits & u128::from(ty.mask())) + c + carry,
        };
        if writes {
            self.thread.carry = result >> ty.bits & 1 == 1;
        }
        self.set(to, result as u64 & ty.mask());
    }

    fn call(&mut self, callee: Callee, results: &[Passed], parameters: &[Passed]) -> Result<(), Outcome> {
        let number = match callee {
            Callee::Function(number) => number,
            Callee::Pointer(source) => self.value(source).wrapping_sub(CODE) as usize,
        };
        let Some(function) = self.program.functions.get(number) else { return self.fault("a call through what points to no function") };
        if !function.has_body {
            return self.call_system(&function.name, results);
        }
        if function.parameters.len() != parameters.len() || function.results.len() != results.len() || function.is_kernel {
            return self.fault("a call that does not fit its function");
        }
        let local = self.thread.local.len().next_multiple_of(16);
        if self.thread.frames.len() >= DEPTH || local + function.local_bytes > STACK {
            return self.fault("the stack is full");
        }
        let handed: Vec<_> = parameters.iter().map(|passed| self.thread.hand_out(*passed, |source| self.value(source))).collect();
        self.thread.frames.push(Frame::new(number, function, local));
        self.thread.local.resize(local + function.local_bytes, 0);
        for (passed, handed) in function.parameters.iter().zip(&handed) {
            self.thread.take_in(*passed, handed, &function.widths);
        }
        Ok(())
    }

    /// What the driver brings along.
    fn call_system(&mut self, name: &str, results: &[Passed]) -> Result<(), Outcome> {
        match name {
            "vprintf" => {
                let function = self.thread.frames.last().map_or(0, |frame| frame.function);
                let widths = &self.program.functions[function].widths;
                for passed in results {
                    self.thread.take_in(*passed, &crate::thread::Handed::Value(0), widths);
                }
                Ok(())
            }
            "__assertfail" => Err(Outcome::Trapped(self.at)),
            _ => Err(Outcome::NotSimulated(self.at, format!("a call of `{name}`"))),
        }
    }

    fn give_back(&mut self) {
        let Some(frame) = self.thread.frames.last() else { return };
        let function = &self.program.functions[frame.function];
        let handed: Vec<_> = function.results.iter().map(|passed| self.thread.hand_out(*passed, |_| 0)).collect();
        let local = frame.local;
        self.thread.frames.pop();
        let Some(frame) = self.thread.frames.last() else { return self.end() };
        self.thread.local.truncate(local);
        let caller = &self.program.functions[frame.function];
        let call = frame.next.checked_sub(1).and_then(|at| caller.code.get(at));
        if let Some(Instruction { operation: Operation::Call { results, .. }, .. }) = call {
            for (passed, handed) in results.iter().zip(&handed) {
                self.thread.take_in(*passed, handed, &caller.widths);
            }
        }
    }
}
