//! Snapshots: what a program has on the GPU, saved to a file and restored in another process at the same addresses. No privileges, no CRIU.
//!
//! A [`Ledger`] makes memory, modules and streams, and knows them by name. It can take over paused launches. [`Ledger::save`] writes all to a file once the GPU is idle;
//! [`Ledger::restore`] makes them again in a fresh process, on a GPU of the same model. Memory is where it was, so pointers in it stay right.
//! The program saves what it has on the CPU by itself.
//!
//! ```no_run
//! use cuinstr_runtime::snapshot::Ledger;
//! use std::path::Path;
//! use std::time::Duration;
//!
//! let context = cuinstr_runtime::open(0)?;
//! let path = Path::new("step.snapshot");
//! let ledger = if path.exists() {
//!     Ledger::restore(&context, path)?
//! } else {
//!     let ledger = Ledger::new(&context)?;
//!     ledger.allocate("weights", 1 << 30)?;
//!     ledger.load("model", &std::fs::read("model.inst.cubin")?)?;
//!     ledger
//! };
//! let (weights, model) = (ledger.memory("weights")?, ledger.module("model")?);
//! let mut step = model.kernel("step")?.prepare(&ledger.stream("main")?);
//! step.arg(weights.address).timeout(Duration::from_secs(1));
//! // … launch, then:
//! ledger.save(path, Duration::from_secs(10))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **What a snapshot does not hold**: memory, modules and streams that the ledger did not make; events, graphs,
//! textures; anything of CUDA's libraries. It does not hold variables of modules either, so a module that has some is
//! refused.
//!
//! **The file** gets its name only when it is whole and on the disk. A hash covers each byte of it.

mod addresses;
mod fault;
mod file;
mod launches;

use crate::driver;
use crate::driver::mapped::{self, Range};
use crate::error::Error;
use crate::guard::Left;
use crate::launch::Remainder;
use crate::module::Module;
use crate::slot::pool::LaunchContext;
use cudarc::driver::{CudaContext, CudaStream, sys};
pub use fault::{Fault, Result};
use file::{Index, Kind, Part, Reader, Saved, SavedGuard, Writer};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a stream that is waited for is asked.
const PAUSE: Duration = Duration::from_micros(100);
/// Longest that a copy of one piece may take.
const COPY: Duration = Duration::from_secs(60);

/// Memory of a ledger. It stays where it is until its context ends, or [`Ledger::free`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Its address: give it to a kernel as a `u64`.
    pub address: u64,
    /// Its size as it was asked for.
    pub bytes: usize,
}

/// Memory, modules, streams and paused launches by name, in one context.
#[derive(Debug)]
pub struct Ledger {
    context: Arc<CudaContext>,
    launch_context: Arc<LaunchContext>,
    granularity: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    memory: BTreeMap<String, Memory>,
    modules: BTreeMap<String, (Module, Vec<u8>)>,
    streams: BTreeMap<String, Arc<CudaStream>>,
    launches: BTreeMap<String, (Saved, Remainder)>,
    guarded: BTreeMap<String, Left>,
}

impl Ledger {
    /// An empty one.
    ///
    /// # Errors
    /// If the context is lost, or the driver can't map memory.
    pub fn new(context: &Arc<CudaContext>) -> Result<Self> {
        let launch_context = LaunchContext::of(context)?;
        launch_context.bind()?;
        let granularity = mapped::granularity(context.cu_device())?.max(1);
        Ok(Self { context: Arc::clone(context), launch_context, granularity, kept: Mutex::default() })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory of zeroes under a new name.
    ///
    /// # Errors
    /// [`Fault::Name`] if the name is taken; [`Error::OutOfMemory`].
    pub fn allocate(&self, name: &str, bytes: usize) -> Result<Memory> {
        let mut kept = self.kept();
        if kept.memory.contains_key(name) {
            return Err(Fault::Name(format!("there is memory `{name}` already; free it, or give another name")));
        }
        self.launch_context.bind()?;
        let address = addresses::take(self.mapped(bytes) as u64)?;
        let memory = Memory { address, bytes };
        self.map(&mut kept, name, memory).inspect_err(|_| addresses::give_back(address))?;
        drop(kept);
        let stream = self.launch_context.copy_stream();
        let cleared =
            mapped::clear(stream, address, bytes).map_err(Fault::from).and_then(|()| drained(stream, "of the ledger's own", COPY));
        // SAFETY: no caller has it.
        cleared.inspect_err(|_| _ = unsafe { self.free(name) })?;
        Ok(memory)
    }

    /// Bytes that are mapped for so many.
    fn mapped(&self, bytes: usize) -> usize {
        bytes.max(1).next_multiple_of(self.granularity)
    }

    /// Maps memory under a name.
    fn map(&self, kept: &mut Kept, name: &str, memory: Memory) -> Result<()> {
        mapped::map(self.context.cu_device(), memory.address, self.mapped(memory.bytes))?;
        kept.memory.insert(name.to_owned(), memory);
        Ok(())
    }

    /// Gives memory back.
    ///
    /// # Safety
    /// No kernel that runs or will run uses it: one that does faults, which ends the context.
    ///
    /// # Errors
    /// [`Fault::Name`] if there is none of this name.
    pub unsafe fn free(&self, name: &str) -> Result<()> {
        let mut kept = self.kept();
        let memory = *kept.memory.get(name).ok_or_else(|| absent("memory", name))?;
        self.launch_context.bind()?;
        mapped::unmap(memory.address, self.mapped(memory.bytes))?;
        kept.memory.remove(name);
        addresses::give_back(memory.address);
        Ok(())
    }

    /// A rewritten module under a new name.
    ///
    /// # Errors
    /// [`Fault::Stateful`] if it keeps variables; those of [`Module::load`].
    pub fn load(&self, name: &str, image: &[u8]) -> Result<Module> {
        let mut kept = self.kept();
        if kept.modules.contains_key(name) {
            return Err(Fault::Name(format!("there is a module `{name}` already; give another name")));
        }
        let module = Module::load(&self.context, image)?;
        if let Some(variable) = module.state() {
            return Err(Fault::Stateful { module: name.to_owned(), variable: variable.to_owned() });
        }
        kept.modules.insert(name.to_owned(), (module.clone(), image.to_vec()));
        Ok(module)
    }

    /// The stream of this name; a new one if there is none.
    ///
    /// # Errors
    /// If the driver makes none.
    pub fn stream(&self, name: &str) -> Result<Arc<CudaStream>> {
        let mut kept = self.kept();
        if let Some(stream) = kept.streams.get(name) {
            return Ok(Arc::clone(stream));
        }
        let stream = self.context.new_stream().map_err(|error| driver::fault("cuStreamCreate", error))?;
        kept.streams.insert(name.to_owned(), Arc::clone(&stream));
        Ok(stream)
    }

    /// The memory of this name.
    ///
    /// # Errors
    /// [`Fault::Name`] if there is none.
    pub fn memory(&self, name: &str) -> Result<Memory> {
        self.kept().memory.get(name).copied().ok_or_else(|| absent("memory", name))
    }

    /// The module of this name.
    ///
    /// # Errors
    /// [`Fault::Name`] if there is none.
    pub fn module(&self, name: &str) -> Result<Module> {
        self.kept().modules.get(name).map(|(module, _)| module.clone()).ok_or_else(|| absent("module", name))
    }

    /// Names of all memory, modules and streams, in this order.
    #[must_use]
    pub fn names(&self) -> [Vec<String>; 3] {
        let kept = self.kept();
        [kept.memory.keys().cloned().collect(), kept.modules.keys().cloned().collect(), kept.streams.keys().cloned().collect()]
    }

    /// Saves it all to a file, once the work in its streams and in the context's default stream has ended. Gives the file's size in bytes.
    ///
    /// The file takes the place of one of that name when it is whole and on the disk, and not before.
    ///
    /// # Errors
    /// [`Fault::Busy`] if work does not end in time; [`Fault::DiskFull`], before anything is written; [`Fault::File`].
    pub fn save(&self, path: impl AsRef<Path>, within: Duration) -> Result<u64> {
        let kept = self.kept();
        self.launch_context.bind()?;
        let until = Instant::now() + within;
        let own = kept.streams.iter().map(|(name, stream)| (name.as_str(), stream.cu_stream()));
        for (name, stream) in own.chain([("default", std::ptr::null_mut())]) {
            drained(stream, name, until.saturating_duration_since(Instant::now())).map_err(|fault| match fault {
                Fault::Busy { stream, .. } => Fault::Busy { stream, within },
                other => other,
            })?;
        }
        let code = kept.modules.values().map(|(_, image)| image.len()).sum::<usize>() as u64;
        let launches = kept.launches.iter().map(|(name, (saved, launch))| (name, Kind::Launch(saved.clone()), &launch.blocks));
        let guarded = kept.guarded.iter().map(|(name, left)| (name, Kind::Guarded(SavedGuard::of(left)), &left.blocks));
        let paused: Vec<_> = launches.chain(guarded).collect();
        let blocks = paused.iter().map(|(.., blocks)| 4 * blocks.len()).sum::<usize>() as u64;
        let mut writer = Writer::new(path.as_ref(), code + blocks + kept.memory.values().map(|memory| memory.bytes as u64).sum::<u64>())?;
        let mut parts = Vec::new();
        for (name, (_, image)) in &kept.modules {
            writer.put(image)?;
            parts.push(Part::whole(name, Kind::Module, image));
        }
        let mut staging = staging(kept.memory.values().map(|memory| memory.bytes as u64))?;
        for (name, memory) in &kept.memory {
            let hashes = self.save_memory(*memory, &mut writer, &mut staging)?;
            parts.push(Part { name: name.clone(), kind: Kind::Memory { address: memory.address }, bytes: memory.bytes as u64, hashes });
        }
        for (name, kind, blocks) in paused {
            let blocks: Vec<u8> = blocks.iter().flat_map(|word| word.to_le_bytes()).collect();
            writer.put(&blocks)?;
            parts.push(Part::whole(name, kind, &blocks));
        }
        let (gpu, capability) = self.gpu()?;
        let release = env!("CARGO_PKG_VERSION").to_owned();
        let streams = kept.streams.keys().cloned().collect();
        let range = addresses::range().filter(|_| !kept.memory.is_empty()).map(|range| (range.address, range.bytes));
        writer.finish(&Index { release, gpu, capability, driver: driver::version()?, range, parts, streams })
    }

    /// Writes one piece while the next is copied.
    fn save_memory(&self, memory: Memory, writer: &mut Writer, staging: &mut [mapped::Staging; 2]) -> Result<Vec<String>> {
        let stream = self.launch_context.copy_stream();
        let [mut now, mut next] = staging.each_mut();
        let mut hashes = Vec::new();
        let mut pieces = file::pieces(memory.bytes as u64).peekable();
        let mut at = memory.address;
        if let Some(first) = pieces.peek() {
            now.download(stream, at, *first)?;
        }
        while let Some(bytes) = pieces.next() {
            drained(stream, "of the ledger's own", COPY)?;
            at += bytes as u64;
            if let Some(following) = pieces.peek() {
                next.download(stream, at, *following)?;
            }
            hashes.push(file::hash(now.get(bytes)));
            writer.put(now.get(bytes))?;
            std::mem::swap(&mut now, &mut next);
        }
        Ok(hashes)
    }

    fn gpu(&self) -> Result<(String, (i32, i32))> {
        let name = self.context.name().map_err(|error| driver::fault("cuDeviceGetName", error))?;
        let capability = self.context.compute_capability().map_err(|error| driver::fault("cuDeviceGetAttribute", error))?;
        Ok((name, capability))
    }

    /// Makes a ledger again from a file: memory at the same addresses with the same contents, modules and streams by the same names.
    ///
    /// Call it early: what lies at one of the addresses by then keeps it from being restored.
    ///
    /// # Errors
    /// [`Fault::OtherGpu`], [`Fault::AddressTaken`], [`Fault::NotASnapshot`], [`Fault::OtherFormat`], [`Fault::Damaged`]. What was made until then is given back.
    pub fn restore(context: &Arc<CudaContext>, path: impl AsRef<Path>) -> Result<Self> {
        let mut reader = Reader::open(path.as_ref())?;
        let ledger = Self::new(context)?;
        let index = reader.index.clone();
        let shown = |gpu: &str, (major, minor): (i32, i32)| format!("{gpu} (sm_{major}{minor})");
        let (gpu, capability) = ledger.gpu()?;
        if (&gpu, capability) != (&index.gpu, index.capability) {
            return Err(Fault::OtherGpu { saved: shown(&index.gpu, index.capability), here: shown(&gpu, capability) });
        }
        let memory = index.parts.iter().filter_map(memory_of).collect::<Result<Vec<_>>>()?;
        ledger.launch_context.bind()?;
        if let Some((address, bytes)) = index.range {
            let parts: Vec<_> = memory.iter().map(|memory| (memory.address, ledger.mapped(memory.bytes) as u64)).collect();
            addresses::take_all(Range { address, bytes }, &parts)?;
        }
        ledger.fill(&index, &mut reader).inspect_err(|_| {
            // It was handed to no caller, so no kernel uses it.
            for memory in std::mem::take(&mut ledger.kept().memory).into_values() {
                let _ = mapped::unmap(memory.address, ledger.mapped(memory.bytes));
            }
            for memory in &memory {
                addresses::give_back(memory.address);
            }
        })?;
        Ok(ledger)
    }

    fn fill(&self, index: &Index, reader: &mut Reader) -> Result<()> {
        for part in &index.parts {
            if let Some(memory) = memory_of(part) {
                self.map(&mut self.kept(), &part.name, memory?)?;
            }
        }
        let mut staging = staging(index.parts.iter().map(|part| part.bytes))?;
        for part in &index.parts {
            match &part.kind {
                Kind::Memory { address } => self.fill_memory(part, *address, reader, &mut staging)?,
                Kind::Module => drop(self.load(&part.name, &reader.whole(part)?)?),
                Kind::Launch(saved) => self.restore_paused(&part.name, saved.clone(), &reader.whole(part)?)?,
                Kind::Guarded(saved) => self.restore_left(&part.name, saved, &reader.whole(part)?),
            }
        }
        index.streams.iter().try_for_each(|name| self.stream(name).map(drop))
    }

    /// Reads one piece while the one before is copied.
    fn fill_memory(&self, part: &Part, address: u64, reader: &mut Reader, staging: &mut [mapped::Staging; 2]) -> Result<()> {
        let stream = self.launch_context.copy_stream();
        let [mut now, mut next] = staging.each_mut();
        let mut at = address;
        for (bytes, hash) in file::pieces(part.bytes).zip(&part.hashes) {
            reader.piece(now.get_mut(bytes), hash, &part.name)?;
            drained(stream, "of the ledger's own", COPY)?;
            now.upload(stream, at, bytes)?;
            at += bytes as u64;
            std::mem::swap(&mut now, &mut next);
        }
        drained(stream, "of the ledger's own", COPY)
    }
}

/// Where a part goes, if it is memory. A fault if this machine has no such sizes.
fn memory_of(part: &Part) -> Option<Result<Memory>> {
    let Kind::Memory { address } = part.kind else { return None };
    let bytes = usize::try_from(part.bytes).map_err(|_| Fault::Name(format!("`{}` is too large for this machine", part.name)));
    Some(bytes.map(|bytes| Memory { address, bytes }))
}

/// Room for a piece of the largest part, twice.
fn staging(parts: impl Iterator<Item = u64>) -> Result<[mapped::Staging; 2]> {
    let bytes = parts.max().unwrap_or(0).clamp(1, file::PIECE as u64) as usize;
    Ok([mapped::Staging::new(bytes)?, mapped::Staging::new(bytes)?])
}

fn absent(what: &str, name: &str) -> Fault {
    Fault::Name(format!("there is no {what} `{name}` in this ledger"))
}

/// Waits until a stream is empty.
fn drained(stream: sys::CUstream, name: &str, within: Duration) -> Result<()> {
    let until = Instant::now() + within;
    while !driver::is_drained(stream)? {
        if Instant::now() >= until {
            return Err(Fault::Busy { stream: name.to_owned(), within });
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Runtime(error) => error,
            other => Self::Environment(other.to_string()),
        }
    }
}
