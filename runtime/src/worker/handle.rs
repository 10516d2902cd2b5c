//! The worker as its user holds it: the process at work, the spares behind it, and what must be there again after a loss.

use super::process::{Process, Recipe, VARIABLE};
use super::remote::{Held, Loaded, RemoteBuffer, RemoteModule, Restore};
use super::serve;
use super::spares::{Spare, Spares};
use super::value::{Element, to_bytes};
use super::wire::Task;
use crate::error::worker::Fault;
use crate::error::{Error, Result};
use crate::sources::Sources;
use cuinstr_image::Arch;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How a [`Worker`] is started.
#[derive(Debug, Clone)]
#[must_use = "nothing is started before `start`"]
pub struct Builder {
    recipe: Recipe,
    spares: usize,
}

/// A process with a CUDA context of its own that runs kernels for this one, with spares behind it.
///
/// Get one with [`Worker::builder`]. Clones are handles to the same worker, for any thread; calls wait for each other. Launches run one after
/// the other, in the order of their starts.
///
/// When the last handle is gone, modules, buffers and launches included, its processes are killed; nothing is waited for.
#[derive(Debug, Clone)]
pub struct Worker(pub(super) Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    spares: Arc<Spares>,
    live: Mutex<Live>,
    numbers: AtomicU64,
    garbage: Mutex<Garbage>,
}

/// The process at work. Who holds the lock has it do things.
#[derive(Debug, Default)]
pub(super) struct Live {
    process: Option<Arc<Process>>,
    /// How many there were, this one included.
    pub(super) generation: u64,
    /// The modules that it had loaded while it was in reserve.
    pub(super) modules: BTreeSet<u64>,
    /// How the one before was lost.
    loss: String,
}

/// What is no longer needed, but the process still has.
#[derive(Debug, Default)]
struct Garbage {
    modules: Vec<u64>,
    buffers: Vec<u64>,
}

impl Builder {
    /// Number of the device, as the driver counts them; 0 unless said otherwise.
    pub fn device(&mut self, ordinal: usize) -> &mut Self {
        self.recipe.device = ordinal;
        self
    }

    /// How many processes are kept in reserve; 2 unless said otherwise. Each takes the memory of a context, on the host and on the device
    /// some hundred MB. Replacing one takes about 0.4 s, so a host that loses workers faster needs more.
    pub fn spares(&mut self, count: usize) -> &mut Self {
        self.spares = count;
        self
    }

    /// The program that serves, instead of the running one: `cuinstr-worker`, or one that calls [`serve_if_asked`](super::serve_if_asked).
    pub fn program(&mut self, path: impl Into<PathBuf>) -> &mut Self {
        self.recipe.program = Some(path.into());
        self
    }

    /// An argument for the program; none unless said otherwise.
    pub fn argument(&mut self, argument: impl Into<OsString>) -> &mut Self {
        self.recipe.arguments.push(argument.into());
        self
    }

    /// An environment variable for the program, besides this process's own.
    pub fn variable(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> &mut Self {
        self.recipe.variables.push((name.into(), value.into()));
        self
    }

    /// Longest that a process may take until its context is ready; 30 s unless said otherwise.
    pub fn start_within(&mut self, limit: Duration) -> &mut Self {
        self.recipe.start_within = limit;
        self
    }

    /// Longest that a process may take for what waits for no kernel, such as loading a module; 10 s unless said otherwise. Buffers have
    /// a second more for each 100 MB. A process that takes longer is killed.
    pub fn answer_within(&mut self, limit: Duration) -> &mut Self {
        self.recipe.answer_within = limit;
        self
    }

    /// Starts the worker, and its spares in the background; returns once the first process is ready.
    ///
    /// # Errors
    /// [`Error::Worker`](crate::Error::Worker) if the program can't be started or is no worker, and what [`crate::open`] may answer if it
    /// can't make its context.
    pub fn start(&self) -> Result<Worker> {
        if std::env::var_os(VARIABLE).is_some() {
            return Err(Fault::Nested.into());
        }
        if self.recipe.program.is_none() && !serve::is_offered() {
            return Err(Fault::NotServing.into());
        }
        let spares = Spares::new(self.recipe.clone(), self.spares);
        let shared = Shared { spares, live: Mutex::default(), numbers: AtomicU64::new(1), garbage: Mutex::default() };
        shared.live(&mut shared.lock())?;
        Ok(Worker(Arc::new(shared)))
    }
}

impl Worker {
    /// A worker on the first device, with two spares, that runs this very program.
    pub fn builder() -> Builder {
        let recipe = Recipe {
            program: None,
            arguments: Vec::new(),
            variables: Vec::new(),
            device: 0,
            start_within: Duration::from_secs(30),
            answer_within: Duration::from_secs(10),
        };
        Builder { recipe, spares: 2 }
    }

    /// Loads PTX, a cubin or a fat binary. It is there again after a loss, without further ado.
    ///
    /// # Errors
    /// As [`Module::load`](crate::Module::load), and if the worker is lost meanwhile.
    pub fn load(&self, image: &[u8]) -> Result<RemoteModule> {
        RemoteModule::load(&self.0, image, None)
    }

    /// The same, with the sources that its reports show lines of: the program that it was compiled from, say. [`Worker::load`] takes those
    /// below the current folder.
    ///
    /// # Errors
    /// As [`Worker::load`].
    pub fn load_with(&self, image: &[u8], sources: impl Sources + Send + Sync + 'static) -> Result<RemoteModule> {
        RemoteModule::load(&self.0, image, Some(Box::new(sources)))
    }

    /// Allocates device memory, zeroed.
    ///
    /// # Errors
    /// If memory runs out, or the worker is lost meanwhile.
    pub fn zeros(&self, bytes: usize, restore: Restore) -> Result<RemoteBuffer> {
        let copy = (restore == Restore::Copy).then(|| Arc::from(vec![0; bytes]));
        RemoteBuffer::new(&self.0, bytes, restore, copy, None)
    }

    /// Allocates device memory and fills it.
    ///
    /// # Errors
    /// If memory runs out, or the worker is lost meanwhile.
    pub fn upload<T: Element>(&self, elements: &[T], restore: Restore) -> Result<RemoteBuffer> {
        let bytes: Arc<[u8]> = to_bytes(elements).into();
        let copy = (restore == Restore::Copy).then(|| Arc::clone(&bytes));
        RemoteBuffer::new(&self.0, bytes.len(), restore, copy, Some(&bytes))
    }

    /// What to compile for, as in `program.compile(worker.arch()?)`.
    ///
    /// # Errors
    /// If there is no process and none can be started.
    pub fn arch(&self) -> Result<Arch> {
        Ok(self.0.live(&mut self.0.lock())?.about.arch)
    }

    /// Name of the device.
    ///
    /// # Errors
    /// If there is no process and none can be started.
    pub fn device_name(&self) -> Result<String> {
        Ok(self.0.live(&mut self.0.lock())?.about.device.clone())
    }

    /// Number of the process at work. Who kills it costs the worker that process, and nothing else.
    ///
    /// # Errors
    /// If there is no process and none can be started.
    pub fn pid(&self) -> Result<u32> {
        Ok(self.0.live(&mut self.0.lock())?.pid)
    }

    /// How many processes this worker has lost.
    #[must_use]
    pub fn losses(&self) -> u64 {
        let live = self.0.lock();
        let is_lost = live.process.as_ref().is_none_or(|process| process.lost().is_some());
        live.generation - u64::from(!is_lost)
    }

    /// How many spares are ready.
    #[must_use]
    pub fn ready_spares(&self) -> usize {
        self.0.spares.ready()
    }

    /// Waits until all spares are ready; `false` if they are not by then.
    ///
    /// # Errors
    /// Why one of them could not be started.
    pub fn warm(&self, limit: Duration) -> Result<bool> {
        self.0.spares.warm(limit)
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the process at work do something. If it turns out to have gone while it had nothing to do, the next one does it.
    pub(super) fn call<T>(&self, mut does: impl FnMut(&mut Live) -> Result<T>) -> Result<T> {
        let mut live = self.lock();
        // Those in reserve may have gone with it, not noticed yet either.
        for _ in 0..=self.spares.wanted() {
            match does(&mut live) {
                Err(Error::Worker(Fault::Gone { .. })) if live.process.as_ref().is_some_and(|process| process.went_idle()) => {}
                done => return done,
            }
        }
        does(&mut live)
    }

    /// A number for a module, a buffer or a launch.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// The process at work, or the next one if it is lost.
    pub(super) fn live(&self, live: &mut Live) -> Result<Arc<Process>> {
        if let Some(process) = &live.process {
            let Some(loss) = process.lost() else { return Ok(Arc::clone(process)) };
            live.loss = loss;
            live.process = None;
            // It took all that with it.
            *self.garbage() = Garbage::default();
        }
        let Spare { process, modules, .. } = self.spares.take()?;
        live.generation += 1;
        self.garbage().modules.extend(modules.iter().filter(|module| !self.spares.is_stocked(**module)));
        live.modules = modules;
        live.process = Some(Arc::clone(&process));
        Ok(process)
    }

    /// The same once no launch is in flight, for what would wait for it.
    pub(super) fn settled(&self, live: &mut Live) -> Result<Arc<Process>> {
        loop {
            let process = self.live(live)?;
            process.settle()?;
            if process.lost().is_none() {
                self.sweep(&process)?;
                return Ok(process);
            }
        }
    }

    /// How the process before this one was lost.
    pub(super) fn loss(live: &Live) -> String {
        live.loss.clone()
    }

    fn garbage(&self) -> MutexGuard<'_, Garbage> {
        self.garbage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the process give back what is not needed.
    fn sweep(&self, process: &Process) -> Result<()> {
        let Garbage { modules, buffers } = std::mem::take(&mut *self.garbage());
        // A process that never had it does not mind.
        if modules.is_empty() && buffers.is_empty() { Ok(()) } else { process.tell(Task::Forget { modules, buffers }) }
    }

    pub(super) fn drop_module(&self, module: &Loaded) {
        self.spares.unstock(module.id);
        self.garbage().modules.push(module.id);
    }

    /// Has the spares load it, too.
    pub(super) fn stock(&self, module: u64, image: &Arc<[u8]>) -> Result<()> {
        self.spares.stock(module, image)
    }

    pub(super) fn drop_buffer(&self, buffer: &Held) {
        self.garbage().buffers.push(buffer.id);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The process at work is killed when it is dropped.
        self.spares.close();
    }
}
