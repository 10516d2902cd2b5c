//! What the driver keeps: contexts, modules, memory, streams, events, and the device's clock.

use crate::engine::{Launched, Op};
use crate::processes;
use crate::raw;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Results of the driver's that the stand-in gives by itself.
pub(crate) mod code {
    pub(crate) const INVALID_VALUE: u32 = 1;
    pub(crate) const OUT_OF_MEMORY: u32 = 2;
    pub(crate) const NOT_INITIALIZED: u32 = 3;
    pub(crate) const INVALID_IMAGE: u32 = 200;
    pub(crate) const INVALID_CONTEXT: u32 = 201;
    pub(crate) const INVALID_PTX: u32 = 218;
    pub(crate) const INVALID_HANDLE: u32 = 400;
    pub(crate) const ILLEGAL_STATE: u32 = 401;
    pub(crate) const NOT_FOUND: u32 = 500;
    pub(crate) const NOT_READY: u32 = 600;
    pub(crate) const ILLEGAL_ADDRESS: u32 = 700;
    pub(crate) const LAUNCH_OUT_OF_RESOURCES: u32 = 701;
    pub(crate) const CONTEXT_IS_DESTROYED: u32 = 709;
    pub(crate) const ALREADY_REGISTERED: u32 = 712;
    pub(crate) const LAUNCH_FAILED: u32 = 719;
    pub(crate) const NOT_SUPPORTED: u32 = 801;
}

/// How often running kernels look at their flags and at the clock.
const LOOK: Duration = Duration::from_micros(20);

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) id: u64,
    pub(crate) lost: Option<u32>,
    pub(crate) default_stream: usize,
}

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: u64,
    pub(crate) context: usize,
    pub(crate) is_default: bool,
    /// What a graph will hold that is captured here.
    pub(crate) captured: Option<Vec<Op>>,
    pub(crate) queue: VecDeque<Op>,
    pub(crate) running: Option<Launched>,
}

impl Stream {
    pub(crate) fn is_drained(&self) -> bool {
        self.queue.is_empty() && self.running.is_none()
    }
}

#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) context: usize,
    /// How often it was recorded.
    pub(crate) recorded: u64,
    /// Those records that were not reached: another stream may come to a later one first.
    pub(crate) open: BTreeSet<u64>,
    pub(crate) at_ns: u64,
}

impl Event {
    /// Whether the latest record was reached, or there is none.
    pub(crate) fn is_reached(&self) -> bool {
        !self.open.contains(&self.recorded)
    }
}

#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) context: usize,
    pub(crate) image: Vec<u8>,
    pub(crate) globals: BTreeMap<String, (u64, usize)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) module: usize,
    pub(crate) name: String,
    /// Bytes of each parameter; nothing if the image does not tell.
    pub(crate) parameters: Option<Vec<usize>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Device,
    Pinned,
    Managed,
    /// The host's own, registered.
    Registered,
    /// Device memory at an address that was reserved.
    Mapped,
}

#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) bytes: usize,
    pub(crate) kind: Kind,
    pub(crate) context: usize,
}

/// `%globaltimer`.
#[derive(Debug)]
pub(crate) struct Clock {
    since: Instant,
    base_ns: u64,
    ppm: i64,
}

impl Clock {
    pub(crate) fn now_ns(&self) -> u64 {
        let passed = i128::try_from(self.since.elapsed().as_nanos()).unwrap_or(0);
        let passed = passed + passed * i128::from(self.ppm) / 1_000_000;
        self.base_ns.saturating_add(u64::try_from(passed).unwrap_or(0))
    }

    pub(crate) fn set(&mut self, ppm: i64, step_ns: i64) {
        *self = Self { since: Instant::now(), base_ns: self.now_ns().saturating_add_signed(step_ns), ppm };
    }
}

pub(crate) struct Machine {
    pub(crate) contexts: BTreeMap<usize, Context>,
    /// The primary context, and how often it is retained.
    pub(crate) primary: Option<(usize, usize)>,
    pub(crate) streams: BTreeMap<usize, Stream>,
    pub(crate) thread_streams: BTreeMap<(usize, u64), usize>,
    pub(crate) events: BTreeMap<usize, Event>,
    /// What was captured.
    pub(crate) graphs: BTreeMap<usize, Vec<Op>>,
    pub(crate) modules: BTreeMap<usize, Module>,
    pub(crate) functions: BTreeMap<usize, Function>,
    pub(crate) memory: BTreeMap<u64, Allocation>,
    /// Bytes of the memory that waits to be mapped, by its handle.
    pub(crate) unmapped: BTreeMap<u64, usize>,
    pub(crate) clock: Clock,
    pub(crate) depth: usize,
    /// Version of CUDA, as 13000.
    pub(crate) version: i32,
    pub(crate) is_held: bool,
    pub(crate) is_busy: bool,
    /// Whether a kernel's code is loaded when the kernel is first needed, and what is loaded.
    pub(crate) is_lazy: bool,
    loaded: BTreeSet<(usize, String)>,
    /// What is said where something of code with polls is needed, as a driver may compile no sooner; nothing if all is good.
    pub(crate) late: Option<u32>,
    /// Whether a call that waits for all kernels keeps others from launching and copying, and how many threads are in one.
    pub(crate) is_exclusive: bool,
    pub(crate) alone: u64,
    pub(crate) ends: u64,
    pub(crate) site: u64,
    /// How long each block of `blocks` takes; what its launch says if there is none.
    pub(crate) block_ns: Option<u64>,
    /// Blocks of each launch that do not end.
    pub(crate) stuck_blocks: u64,
    /// Time between the beginnings of two blocks of a launch.
    pub(crate) block_pace: u64,
    /// Until this file exists, blocks end only where a pause is asked for.
    pub(crate) gate: Option<PathBuf>,
    /// Kernels that have begun, the runtime's own not counted.
    pub(crate) begun: u64,
    pub(crate) written: u64,
    next_handle: usize,
    next_id: u64,
}

static CHANGED: Condvar = Condvar::new();

fn machine() -> &'static Mutex<Machine> {
    static MACHINE: OnceLock<Mutex<Machine>> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let machine = Machine {
            contexts: BTreeMap::new(),
            primary: None,
            streams: BTreeMap::new(),
            thread_streams: BTreeMap::new(),
            events: BTreeMap::new(),
            graphs: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            memory: BTreeMap::new(),
            unmapped: BTreeMap::new(),
            clock: Clock { since: Instant::now(), base_ns: 1_000_000_000_000, ppm: 0 },
            depth: 1024,
            version: 13_000,
            is_held: false,
            is_busy: false,
            is_lazy: false,
            loaded: BTreeSet::new(),
            late: None,
            is_exclusive: false,
            alone: 0,
            ends: 0,
            site: 2,
            block_ns: None,
            stuck_blocks: 0,
            block_pace: 0,
            gate: None,
            begun: 0,
            written: 0,
            next_handle: 0x10_0000,
            next_id: 1,
        };
        // The device itself.
        thread::Builder::new().name("stand-in-device".into()).spawn(run).expect("a thread for the device");
        Mutex::new(machine)
    })
}

pub(crate) fn lock() -> MutexGuard<'static, Machine> {
    machine().lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device looks at what has changed.
pub(crate) fn changed() {
    CHANGED.notify_all();
}

/// Waits until `is_done`, while the device goes on.
pub(crate) fn wait(mut machine: MutexGuard<'static, Machine>, mut is_done: impl FnMut(&Machine) -> bool) -> MutexGuard<'static, Machine> {
    loop {
        machine.step();
        if is_done(&machine) {
            return machine;
        }
        machine = CHANGED.wait_timeout(machine, LOOK).unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn run() {
    let mut machine = lock();
    let mut was_busy = false;
    loop {
        machine.step();
        let is_busy = machine.running() > 0;
        if is_busy != std::mem::replace(&mut was_busy, is_busy) {
            processes::note_busy(is_busy);
        }
        // The host changes words that streams wait for by a store, which nothing tells.
        machine = if machine.running() > 0 || machine.waits_for_bits() {
            CHANGED.wait_timeout(machine, LOOK).unwrap_or_else(PoisonError::into_inner).0
        } else {
            CHANGED.wait(machine).unwrap_or_else(PoisonError::into_inner)
        };
    }
}

impl Machine {
    pub(crate) fn handle(&mut self) -> usize {
        self.next_handle += 0x40;
        self.next_handle
    }

    pub(crate) fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub(crate) fn running(&self) -> usize {
        self.streams.values().filter(|stream| stream.running.as_ref().is_some_and(|kernel| kernel.begun.is_some())).count()
    }

    fn waits_for_bits(&self) -> bool {
        self.streams.values().any(|stream| matches!(stream.queue.front(), Some(Op::WaitBits { .. })))
    }

    pub(crate) fn bytes(&self, kind: Kind) -> u64 {
        self.memory.values().filter(|allocation| allocation.kind == kind).map(|allocation| allocation.bytes as u64).sum()
    }

    /// A new context. It gets the address of one that is destroyed, if there was one, as the driver's do.
    pub(crate) fn make_context(&mut self) -> usize {
        let context = (0x1000..usize::MAX).step_by(0x1000).find(|handle| !self.contexts.contains_key(handle)).unwrap_or(0);
        let default_stream = self.make_stream(context, true);
        let id = self.id();
        self.contexts.insert(context, Context { id, lost: None, default_stream });
        context
    }

    pub(crate) fn make_stream(&mut self, context: usize, is_default: bool) -> usize {
        let (handle, id) = (self.handle(), self.id());
        let stream = Stream { id, context, is_default, captured: None, queue: VecDeque::new(), running: None };
        self.streams.insert(handle, stream);
        handle
    }

    /// All that belongs to a context goes with it.
    pub(crate) fn destroy_context(&mut self, context: usize) {
        self.contexts.remove(&context);
        self.streams.retain(|_, stream| stream.context != context);
        self.thread_streams.retain(|(of, _), _| *of != context);
        self.events.retain(|_, event| event.context != context);
        let modules: Vec<usize> = self.modules.iter().filter(|(_, module)| module.context == context).map(|(handle, _)| *handle).collect();
        for module in modules {
            self.unload(module);
        }
        let gone: Vec<u64> = self.memory.iter().filter(|(_, memory)| memory.context == context).map(|(address, _)| *address).collect();
        for address in gone {
            self.free(address);
        }
        if self.primary.is_some_and(|(primary, _)| primary == context) {
            self.primary = None;
        }
    }

    pub(crate) fn unload(&mut self, module: usize) {
        self.functions.retain(|_, function| function.module != module);
        if let Some(module) = self.modules.remove(&module) {
            for (address, bytes) in module.globals.into_values() {
                raw::free(address, bytes);
            }
        }
    }

    pub(crate) fn allocate(&mut self, context: usize, bytes: usize, kind: Kind) -> Result<u64, u32> {
        let address = raw::allocate_used(bytes).ok_or(code::OUT_OF_MEMORY)?;
        self.memory.insert(address, Allocation { bytes, kind, context });
        Ok(address)
    }

    pub(crate) fn free(&mut self, address: u64) -> bool {
        let Some(allocation) = self.memory.remove(&address) else { return false };
        if ![Kind::Registered, Kind::Mapped].contains(&allocation.kind) {
            raw::free(address, allocation.bytes);
        }
        true
    }

    /// The piece of memory that an address lies in.
    pub(crate) fn allocation(&self, address: u64) -> Option<&Allocation> {
        let (start, allocation) = self.memory.range(..=address).next_back()?;
        (address < start + allocation.bytes as u64).then_some(allocation)
    }

    /// The context that device memory, a module's variables included, belongs to.
    pub(crate) fn context_of(&self, address: u64) -> Option<usize> {
        let is_in = |(start, bytes): &(u64, usize)| (*start..start + *bytes as u64).contains(&address);
        let of_module = || self.modules.values().find(|module| module.globals.values().any(is_in)).map(|module| module.context);
        self.allocation(address).map(|allocation| allocation.context).or_else(of_module)
    }

    /// A kernel has ended its context.
    pub(crate) fn lose(&mut self, context: usize, error: u32) {
        if let Some(context) = self.contexts.get_mut(&context) {
            context.lost.get_or_insert(error);
        }
        for stream in self.streams.values_mut().filter(|stream| stream.context == context) {
            stream.queue.clear();
            stream.running = None;
        }
        changed();
    }

    /// Whether no kernel of the context runs or is to run.
    pub(crate) fn is_idle(&self, context: usize) -> bool {
        self.streams.values().filter(|stream| stream.context == context).all(Stream::is_drained)
    }

    /// Compiles a module for the current context, if it is not compiled: something of it is needed.
    pub(crate) fn compile(&self, module: usize) -> Result<(), u32> {
        let has_polls = self.modules.get(&module).is_some_and(|module| raw::holds(&module.image, "cuinstr_control"));
        self.late.filter(|_| has_polls).map_or(Ok(()), Err)
    }

    /// Loads a kernel's code, unless it is there: what comes later in any stream waits for all that came before.
    pub(crate) fn load_code(&mut self, of: &Function) {
        let Some(context) = self.modules.get(&of.module).map(|module| module.context).filter(|_| self.is_lazy) else { return };
        if self.loaded.insert((of.module, of.name.clone())) {
            self.next_id += 1;
            let id = self.next_id;
            for stream in self.streams.values_mut().filter(|stream| stream.context == context) {
                stream.queue.push_back(Op::Load(id));
            }
        }
    }
}
