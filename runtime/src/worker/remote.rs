//! Modules, kernels and buffers in a worker process, each put there again when the process was lost and it is needed.

use super::handle::{Live, Shared};
use super::process::Process;
use super::value::{Element, from_bytes, to_bytes};
use super::wire::{Answer, Task};
use crate::error::worker::Fault;
use crate::error::{Error, Result};
use crate::sources::Sources;
use cuinstr_abi::sites::SiteMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A rewritten module in a worker. Clones share it; it is unloaded when the last of them, and of its kernels, is gone.
#[derive(Debug, Clone)]
pub struct RemoteModule {
    loaded: Arc<Loaded>,
    sources: Option<Arc<Lines>>,
}

pub(super) struct Loaded {
    pub(super) worker: Arc<Shared>,
    pub(super) id: u64,
    image: Arc<[u8]>,
    // Which of the worker's processes has it.
    generation: AtomicU64,
}

/// Where a report's source lines come from.
pub(super) struct Lines {
    sources: Box<dyn Sources + Send + Sync>,
    sites: Vec<SiteMap>,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Loaded").field("id", &self.id).field("bytes", &self.image.len()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Lines").field("sites", &self.sites.len()).finish_non_exhaustive()
    }
}

impl RemoteModule {
    pub(super) fn load(worker: &Arc<Shared>, image: &[u8], sources: Option<Box<dyn Sources + Send + Sync>>) -> Result<Self> {
        let (id, image) = (worker.number(), Arc::from(image));
        let loaded = Arc::new(Loaded { worker: Arc::clone(worker), id, image, generation: AtomicU64::new(0) });
        worker.call(|live| loaded.ensure(live))?;
        let sites = || cuinstr_image::read(&loaded.image).map(|image| image.site_maps).unwrap_or_default();
        let sources = sources.map(|sources| Arc::new(Lines { sources, sites: sites() }));
        Ok(Self { loaded, sources })
    }

    /// Has the spares load it ahead, those that are started later too. After a loss it is there at once, where loading takes some milliseconds. It
    /// takes its memory in each spare, and loading it there takes the GPU some time beside what runs.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn keep_in_spares(&self) -> Result<()> {
        self.loaded.worker.stock(self.loaded.id, &self.loaded.image)
    }

    /// A kernel by its name as declared or as the linker knows it.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`], with the nearest name and the list; and if the worker is lost meanwhile.
    pub fn kernel(&self, name: &str) -> Result<RemoteKernel> {
        let find = || Task::Find { module: self.loaded.id, kernel: name.to_owned() };
        match self.loaded.worker.call(|live| self.loaded.ensure(live)?.ask(find(), &[], 0))?.0 {
            Answer::Kernel { name: found } => {
                let (module, asked, name) = (Arc::clone(&self.loaded), name.to_owned(), found.into());
                Ok(RemoteKernel { module, sources: self.sources.clone(), asked, name })
            }
            other => Err(Error::Bug(format!("a worker answered {other:?} when asked for a kernel"))),
        }
    }
}

impl Loaded {
    /// Has it loaded in the process at work.
    pub(super) fn ensure(&self, live: &mut Live) -> Result<Arc<Process>> {
        let process = self.worker.live(live)?;
        if self.generation.load(Ordering::Relaxed) == live.generation {
            return Ok(process);
        }
        if live.modules.contains(&self.id) {
            self.generation.store(live.generation, Ordering::Relaxed);
            return Ok(process);
        }
        // Loading waits for whatever runs.
        let process = self.worker.settled(live)?;
        process.ask(Task::Load { module: self.id }, &self.image, 0)?;
        self.generation.store(live.generation, Ordering::Relaxed);
        Ok(process)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.worker.drop_module(self);
    }
}

impl Lines {
    pub(super) fn sites(&self) -> &[SiteMap] {
        &self.sites
    }

    pub(super) fn sources(&self) -> &dyn Sources {
        &*self.sources
    }
}

/// A kernel of a module in a worker. Clones share everything.
#[derive(Debug, Clone)]
pub struct RemoteKernel {
    pub(super) module: Arc<Loaded>,
    pub(super) sources: Option<Arc<Lines>>,
    pub(super) asked: String,
    name: Arc<str>,
}

impl RemoteKernel {
    /// Its name as declared.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }
}

/// What becomes of a buffer when its process is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restore {
    /// It is lost: its next use is an error ([`Fault::Lost`]) until it was written as a whole.
    #[default]
    Never,
    /// It comes back zeroed.
    Blank,
    /// It comes back as the host wrote it last, or as [`RemoteBuffer::save`] found it. The parent keeps a copy of it in memory.
    Copy,
}

/// Device memory in a worker. It is given back when its last handle is gone.
#[derive(Debug)]
pub struct RemoteBuffer(pub(super) Arc<Held>);

pub(super) struct Held {
    pub(super) worker: Arc<Shared>,
    pub(super) id: u64,
    bytes: usize,
    restore: Restore,
    copy: Mutex<Option<Arc<[u8]>>>,
    generation: AtomicU64,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { id, bytes, restore, .. } = self;
        formatter.debug_struct("Held").field("id", id).field("bytes", bytes).field("restore", restore).finish_non_exhaustive()
    }
}

impl RemoteBuffer {
    pub(super) fn new(worker: &Arc<Shared>, bytes: usize, restore: Restore, copy: Option<Arc<[u8]>>, fill: Option<&[u8]>) -> Result<Self> {
        let (worker, id) = (Arc::clone(worker), worker.number());
        let held = Held { worker, id, bytes, restore, copy: Mutex::new(copy), generation: AtomicU64::new(0) };
        held.worker.call(|live| held.make(live, fill))?;
        Ok(Self(Arc::new(held)))
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// Reads it all. It waits for the launches in flight; bytes behind the last whole element are left out.
    ///
    /// # Errors
    /// [`Fault::Lost`] if it went with its process, [`Fault::InFlight`] if a launch in flight has no end; and if the worker is lost meanwhile.
    pub fn read<T: Element>(&self) -> Result<Vec<T>> {
        self.read_bytes(0, self.0.bytes).map(|bytes| from_bytes(&bytes))
    }

    /// Reads some bytes of it.
    ///
    /// # Errors
    /// As [`RemoteBuffer::read`], and if it has no such part.
    pub fn read_bytes(&self, offset: usize, bytes: usize) -> Result<Vec<u8>> {
        self.0.within(offset, bytes)?;
        let read = || Task::Read { buffer: self.0.id, offset, bytes };
        let (_, contents) = self.0.worker.call(|live| self.0.ready(live)?.ask(read(), &[], bytes))?;
        Ok(contents)
    }

    /// Writes elements from its begin on. It waits for the launches in flight. Written as a whole, a lost buffer is there again.
    ///
    /// # Errors
    /// As [`RemoteBuffer::read`], and if they are too many.
    pub fn write<T: Element>(&mut self, elements: &[T]) -> Result<()> {
        self.write_bytes(0, &to_bytes(elements))
    }

    /// Writes bytes into it.
    ///
    /// # Errors
    /// As [`RemoteBuffer::read`], and if it has no such part.
    pub fn write_bytes(&mut self, offset: usize, bytes: &[u8]) -> Result<()> {
        let held = &self.0;
        held.within(offset, bytes.len())?;
        let is_whole = bytes.len() == held.bytes;
        // The copy first: should the process be lost meanwhile, the next has what the caller wanted.
        if held.restore == Restore::Copy {
            let mut copy = held.copy();
            *copy = Some(match copy.take() {
                Some(old) if !is_whole => {
                    let mut new = old.to_vec();
                    new[offset..offset + bytes.len()].copy_from_slice(bytes);
                    new.into()
                }
                _ => bytes.into(),
            });
        }
        held.worker.call(|live| {
            let process = held.worker.settled(live)?;
            if is_whole && held.generation.load(Ordering::Relaxed) != live.generation {
                return held.make(live, Some(bytes));
            }
            let process = if is_whole { process } else { held.ready(live)? };
            process.ask(Task::Write { buffer: held.id, offset }, bytes, 0).map(|_| ())
        })
    }

    /// Reads it back into the copy that it is restored from ([`Restore::Copy`]), and returns nothing of it.
    ///
    /// # Errors
    /// As [`RemoteBuffer::read`].
    pub fn save(&mut self) -> Result<()> {
        if self.0.restore == Restore::Copy {
            let bytes = self.read_bytes(0, self.0.bytes)?;
            *self.0.copy() = Some(bytes.into());
        }
        Ok(())
    }
}

impl Held {
    fn copy(&self) -> MutexGuard<'_, Option<Arc<[u8]>>> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn within(&self, from: usize, count: usize) -> Result<()> {
        match from.checked_add(count) {
            Some(to) if to <= self.bytes => Ok(()),
            to => Err(Fault::OutOfBuffer { from, to: to.unwrap_or(usize::MAX), bytes: self.bytes }.into()),
        }
    }

    /// Has it in the process at work, for a host's access, which waits for launches in flight.
    fn ready(&self, live: &mut Live) -> Result<Arc<Process>> {
        loop {
            let process = self.worker.settled(live)?;
            let generation = live.generation;
            self.ensure(live)?;
            if live.generation == generation {
                return Ok(process);
            }
        }
    }

    /// Has it in the process at work.
    pub(super) fn ensure(&self, live: &mut Live) -> Result<()> {
        self.worker.live(live)?;
        if self.generation.load(Ordering::Relaxed) == live.generation {
            return Ok(());
        }
        match self.restore {
            Restore::Never => Err(Fault::Lost { bytes: self.bytes, why: Shared::loss(live) }.into()),
            Restore::Blank => self.make(live, None),
            Restore::Copy => {
                let copy = self.copy().clone();
                self.make(live, copy.as_deref())
            }
        }
    }

    /// Allocates it, filled or zeroed.
    fn make(&self, live: &mut Live, fill: Option<&[u8]>) -> Result<()> {
        let process = self.worker.settled(live)?;
        match fill {
            Some(fill) => process.ask(Task::Fill { buffer: self.id }, fill, 0)?,
            None => process.ask(Task::Blank { buffer: self.id, bytes: self.bytes }, &[], 0)?,
        };
        self.generation.store(live.generation, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.worker.drop_buffer(self);
    }
}
