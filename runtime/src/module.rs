//! Modules that were rewritten, and their kernels.

use crate::driver::{self, Pinned};
use crate::error::{Error, Result};
use crate::flight::{Flight, Orders};
use crate::launch::{Launch, Prepared};
use crate::names;
use crate::sources::{Folder, Sources};
use crate::station::Station;
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaStream, LaunchArgs};
use cudarc::nvrtc::Ptx;
use cuinstr_abi::control::{ABI_VERSION, CONTROL_SYMBOL, ControlBlock, FLAG_SYMBOL, PAUSE_SYMBOL, PauseBlock};
use cuinstr_abi::sites::SiteMap;
use cuinstr_image::Form;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};

/// Most instances of one module: as many streams of one context can run its kernels at the same time.
const MOST_INSTANCES: usize = 64;

/// A rewritten module, loaded into the caller's context.
///
/// Cloning gives another handle to the same module. It is unloaded when the last handle, kernel and launch of it are gone; if the context
/// still has launches in flight by then, it stays loaded instead, since unloading waits for every kernel of the context.
#[derive(Debug, Clone)]
pub struct Module(Arc<Loaded>);

pub(crate) struct Loaded {
    context: Arc<CudaContext>,
    station: Arc<Station>,
    // What an instance is loaded from. PTX stays text: what the driver's linker makes of it is compiled to be linked, with up to twice the registers (`fma_chain`
    // 54 for 28), so that few blocks fit and those of 1024 threads may not be launched at all. The driver's cache has the code when the next instance asks for it.
    code: Vec<u8>,
    form: Form,
    instances: Mutex<Vec<Arc<Instance>>>,
    kernels: Vec<cuinstr_image::Kernel>,
    sites: Arc<[SiteMap]>,
    sources: Arc<dyn Sources + Send + Sync>,
    // A variable of the user's that two instances would not share; asked when there might be two.
    state: OnceLock<Option<String>>,
}

/// One copy of a module: one control block, and so one launch at a time.
#[derive(Debug)]
pub(crate) struct Instance {
    index: usize,
    module: Option<Arc<CudaModule>>,
    station: Arc<Station>,
    pub(crate) control: u64,
    /// Address of the pause block, in a module whose launches can be paused.
    pub(crate) pause: Option<u64>,
    flag: u64,
    // For a captured graph to copy at any time.
    unarmed: OnceLock<Pinned<Orders>>,
    // Address of the stream that it was given to; none yet if that is not a stream's.
    stream: AtomicUsize,
    lane: Mutex<Lane>,
}

/// What [`Instance::stream`] holds before any stream has it. The legacy stream is 0.
const NO_STREAM: usize = usize::MAX;

/// Who uses an instance.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// The latest launch.
    pub(crate) last: Option<Latest>,
    /// What the control block holds once that launch's turn has come; unknown after a failure.
    pub(crate) known: Option<Orders>,
    /// The stream of a bare launch that may not be over.
    pub(crate) bare: Option<Arc<CudaStream>>,
    /// Whether a captured graph may write to the control block at any time.
    pub(crate) is_shared: bool,
    /// Whether the pause block may hold a launch's number.
    pub(crate) is_pausable: bool,
    /// Launches that can be paused and are not over.
    held: Vec<Held>,
}

/// A launch that can be paused, and the launches of its instance since then.
#[derive(Debug)]
struct Held {
    launch: Latest,
    /// The latest one that does not wait behind it.
    free: Option<Latest>,
    /// Whether the latest one of all waits behind it.
    is_last_behind: bool,
}

/// The latest launch of an instance.
#[derive(Debug, Clone)]
pub(crate) struct Latest {
    pub(crate) flight: Weak<Flight>,
    pub(crate) number: u32,
    /// What tells its stream from others.
    pub(crate) stream: u64,
}

impl std::fmt::Debug for Flight {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Flight").field("number", &self.number()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kernels: Vec<_> = self.kernels.iter().map(|kernel| &kernel.name).collect();
        formatter.debug_struct("Loaded").field("kernels", &kernels).field("state", &self.state).finish_non_exhaustive()
    }
}

impl Module {
    /// Loads PTX, a cubin or a fat binary.
    ///
    /// Like any load of a module it waits for the context's running kernels, so it is refused while a launch without a deadline is in flight.
    ///
    /// # Errors
    /// If the driver refuses the module, it was not rewritten, or it was by another version. [`Error::InFlight`] if loading might never end.
    pub fn load(context: &Arc<CudaContext>, image: &[u8]) -> Result<Self> {
        Self::load_with(context, image, Folder(".".into()))
    }

    /// The same, with the place where reports find the text of the sources; for [`Module::load`] that is the current folder.
    ///
    /// # Errors
    /// As [`Module::load`].
    pub fn load_with(context: &Arc<CudaContext>, image: &[u8], sources: impl Sources + Send + Sync + 'static) -> Result<Self> {
        let station = Station::of(context)?;
        station.bind()?;
        station.may_wait()?;
        station.unload_parked();
        driver::relax_capture()?;
        let read = cuinstr_image::read(image).map_err(|error| Error::NoModule(error.to_string()))?;
        if let Some(why) = read.unloadable() {
            return Err(Error::NoModule(why));
        }
        let sites: Arc<[SiteMap]> = read.site_maps.clone().into();
        let kernels = read.kernels();
        let mut code = image.to_vec();
        if read.form == Form::Ptx {
            code.push(0);
        }
        let first = Instance::load(context, &station, &code, 0).map_err(|error| match error {
            // The linker says what is wrong with the text.
            Error::Module { fault, log } if read.form == Form::Ptx => {
                driver::assemble(image).map_or_else(|(fault, log)| Error::Module { fault, log }, |_| Error::Module { fault, log })
            }
            other => other,
        })?;
        let instances = Mutex::new(vec![Arc::new(first)]);
        Ok(Self(Arc::new(Loaded {
            context: Arc::clone(context),
            station,
            code,
            form: read.form,
            instances,
            kernels,
            sites,
            sources: Arc::new(sources),
            state: OnceLock::new(),
        })))
    }

    /// Loads a file of PTX, a cubin or a fat binary.
    ///
    /// # Errors
    /// As [`Module::load`], and if the file can't be read.
    pub fn load_file(context: &Arc<CudaContext>, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let unreadable = |error: std::io::Error| Error::Unreadable { path: path.display().to_string(), reason: error.to_string() };
        Self::load(context, &std::fs::read(path).map_err(unreadable)?)
    }

    /// A kernel by its name as declared (`gemm`, `gemm<float>`) or as the linker knows it (`_Z4gemmIfEvPT_i`).
    ///
    /// # Errors
    /// [`Error::UnknownKernel`], with the nearest name and the list.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        let loaded = &self.0;
        loaded.station.check()?;
        // An image that can't be read is asked by the linker's name.
        let (name, symbol) = if loaded.kernels.is_empty() {
            (name, name)
        } else {
            let found = names::find(name, &loaded.kernels).map_err(|unknown| Error::UnknownKernel(Box::new(unknown)))?;
            (found.name.as_str(), found.symbol.as_str())
        };
        let kernel = Kernel {
            loaded: Arc::clone(loaded),
            name: name.into(),
            symbol: symbol.to_owned(),
            functions: Arc::new([const { OnceLock::new() }; MOST_INSTANCES]),
            parameters: Arc::default(),
        };
        loaded.station.bind()?;
        let first = Arc::clone(&loaded.instances()[0]);
        kernel.function(&first)?;
        Ok(kernel)
    }

    /// The kernels of this module, as declared.
    pub fn kernel_names(&self) -> impl Iterator<Item = &str> {
        self.0.kernels.iter().map(|kernel| kernel.name.as_str())
    }

    /// The site maps that the rewriter left in it; empty if they were stripped.
    #[must_use]
    pub fn sites(&self) -> &[SiteMap] {
        &self.0.sites
    }

    /// A variable of the user's that it keeps, if it keeps one.
    #[cfg(all(feature = "snapshot", unix))]
    pub(crate) fn state(&self) -> Option<&str> {
        self.0.state()
    }

    /// Makes sure that so many streams can run this module's kernels at the same time, as far as it can be loaded several times. Without it
    /// the second stream's launch loads a second instance if nothing is in flight, and queues behind the first's otherwise.
    ///
    /// # Errors
    /// If a launch without a deadline is in flight, or the driver fails.
    pub fn prepare(&self, streams: usize) -> Result<usize> {
        let loaded = &self.0;
        loaded.station.check()?;
        loaded.station.bind()?;
        loaded.station.may_wait()?;
        let mut instances = loaded.instances();
        while instances.len() < streams.min(MOST_INSTANCES) && loaded.state().is_none() {
            let next = Instance::load(&loaded.context, &loaded.station, &loaded.code, instances.len())?;
            instances.push(Arc::new(next));
        }
        Ok(instances.len())
    }
}

impl Loaded {
    /// A variable of the user's that two instances would not share. PTX does not say which of its variables live on, the code that is made of it does.
    fn state(&self) -> Option<&str> {
        let found = self.state.get_or_init(|| {
            let unknown = Some("unknown variables".into());
            let linked = if self.form == Form::Ptx { driver::assemble(&self.code).ok() } else { None };
            cuinstr_image::read(linked.as_ref().unwrap_or(&self.code)).map_or(unknown, |image| image.state())
        });
        found.as_deref()
    }

    fn instances(&self) -> MutexGuard<'_, Vec<Arc<Instance>>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn station(&self) -> &Arc<Station> {
        &self.station
    }

    pub(crate) fn sources(&self) -> &Arc<dyn Sources + Send + Sync> {
        &self.sources
    }

    pub(crate) fn sites(&self) -> &Arc<[SiteMap]> {
        &self.sites
    }

    /// The instance for a stream: the one that it has, one that nobody has, a new one if nothing in flight would be waited for, or else one
    /// that it must share.
    fn instance(&self, stream: &CudaStream) -> Result<Arc<Instance>> {
        let handle = stream.cu_stream().addr();
        let mut instances = self.instances();
        // None of these waits for a launch call, which may wait for a full stream.
        let of_stream = |wanted: usize| move |instance: &&Arc<Instance>| instance.stream.load(Ordering::Relaxed) == wanted;
        let own = instances.iter().find(of_stream(handle)).or_else(|| instances.iter().find(of_stream(NO_STREAM)));
        // A launch that is over no longer needs its stream's instance.
        if let Some(instance) = own.or_else(|| instances.iter().find(|instance| instance.is_idle())) {
            instance.stream.store(handle, Ordering::Relaxed);
            return Ok(Arc::clone(instance));
        }
        if instances.len() < MOST_INSTANCES && self.station.in_flight() == 0 && self.state().is_none() {
            let instance = Arc::new(Instance::load(&self.context, &self.station, &self.code, instances.len())?);
            instance.stream.store(handle, Ordering::Relaxed);
            instances.push(Arc::clone(&instance));
            return Ok(instance);
        }
        let shared = instances.first();
        shared.map(Arc::clone).ok_or_else(|| Error::Machine("a module without an instance".into()))
    }
}

impl Instance {
    fn load(context: &Arc<CudaContext>, station: &Arc<Station>, code: &[u8], index: usize) -> Result<Self> {
        let refused = |error| Error::Module { fault: driver::fault("cuModuleLoadData", error), log: String::new() };
        let module = context.load_module(Ptx::from_binary(code.to_vec())).map_err(refused)?;
        let stream = context.default_stream();
        let found = driver::global(&module, &stream, CONTROL_SYMBOL)?;
        let Some((control, size)) = found else { return Err(Error::NotInstrumented) };
        let (flag, _) = driver::global(&module, &stream, FLAG_SYMBOL)?.ok_or(Error::NotInstrumented)?;
        let version = station.read_word(control)?;
        if version != ABI_VERSION || size != size_of::<ControlBlock>() {
            return Err(Error::OtherAbi { module: version, runtime: ABI_VERSION });
        }
        let pause = driver::global(&module, &stream, PAUSE_SYMBOL)?;
        let pause = pause.filter(|(_, size)| *size == size_of::<PauseBlock>()).map(|(address, _)| address);
        let (module, station) = (Some(module), Arc::clone(station));
        let stream = AtomicUsize::new(NO_STREAM);
        Ok(Self { index, module, station, control, pause, flag, unarmed: OnceLock::new(), stream, lane: Mutex::default() })
    }

    /// The control block's first words as they were when it was loaded, in memory that stays as long as the instance.
    fn unarmed(&self) -> Result<&Pinned<Orders>> {
        if let Some(unarmed) = self.unarmed.get() {
            return Ok(unarmed);
        }
        let unarmed = self.station.borrow_orders(Orders::unarmed(self.flag))?;
        Ok(self.unarmed.get_or_init(|| unarmed))
    }

    /// The same if nobody has it.
    pub(crate) fn try_lane(&self) -> Option<MutexGuard<'_, Lane>> {
        match self.lane.try_lock() {
            Ok(lane) => Some(lane),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether no launch of it is being made or in flight. The context is this thread's current one.
    fn is_idle(&self) -> bool {
        self.try_lane().is_some_and(|lane| lane.in_flight().is_none())
    }

    pub(crate) fn lane(&self) -> MutexGuard<'_, Lane> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let Some(module) = self.module.take() else { return };
        // Unloading waits for every kernel of the context. One that hangs would make this wait for ever, so the module stays meanwhile.
        if self.station.check().is_err() {
            std::mem::forget(module);
        } else if self.station.in_flight() > 0 {
            self.station.park(module);
        } else {
            drop(module);
            self.station.unload_parked();
            // No graph can launch the module any more.
            if let Some(unarmed) = self.unarmed.take() {
                self.station.return_orders(unarmed);
            }
        }
    }
}

impl Lane {
    /// Its latest launch, if that is still in flight. The context is this thread's current one.
    fn in_flight(&self) -> Option<Arc<Flight>> {
        let last = self.last.as_ref()?;
        last.flight.upgrade().filter(|flight| flight.is_in_flight(last.number))
    }

    /// A launch is made in this instance.
    pub(crate) fn launched(&mut self, launch: Latest, can_pause: bool) {
        self.held.retain(|held| held.launch.flight.upgrade().is_some_and(|flight| flight.number() == held.launch.number));
        let follows = self.in_flight().is_some();
        for held in &mut self.held {
            // What is in the stream that the gate holds waits; so does what waits for the end of that.
            held.is_last_behind = launch.stream == held.launch.stream || held.is_last_behind && follows;
            if !held.is_last_behind {
                held.free = Some(launch.clone());
            }
        }
        if can_pause {
            self.held.push(Held { launch: launch.clone(), free: None, is_last_behind: false });
        }
        self.last = Some(launch);
    }

    /// The launch that the next part of a paused one must come after. Those behind its gate come later.
    pub(crate) fn before_resumed(&self, number: u32) -> Option<Arc<Flight>> {
        let free = self.held.iter().find(|held| held.launch.number == number)?.free.as_ref()?;
        free.flight.upgrade().filter(|flight| flight.is_in_flight(free.number))
    }

    /// The next part of a paused launch was made: what comes now waits for that.
    pub(crate) fn resumed(&mut self, number: u32) {
        let Some(held) = self.held.iter_mut().find(|held| held.launch.number == number) else { return };
        held.free = None;
        if !held.is_last_behind {
            self.last = Some(held.launch.clone());
        }
    }

    /// The launch that another one on this stream must come after, and that its own stream does not keep in order.
    pub(crate) fn before(&self, stream: u64) -> Option<Arc<Flight>> {
        // Whether it is over is a question to the driver, which takes longer than to arm a launch.
        self.last.as_ref().filter(|last| last.stream != stream)?;
        self.in_flight()
    }
}

/// A kernel of a rewritten module. Clones share everything.
#[derive(Debug, Clone)]
pub struct Kernel {
    // The function of each instance, found when first used. They go before the module does, which may be unloaded then.
    functions: Arc<[OnceLock<CudaFunction>; MOST_INSTANCES]>,
    loaded: Arc<Loaded>,
    name: Arc<str>,
    symbol: String,
    parameters: Arc<OnceLock<Option<Vec<usize>>>>,
}

impl Kernel {
    /// Its name as declared.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn loaded(&self) -> &Arc<Loaded> {
        &self.loaded
    }

    /// cudarc's function of the first instance, for its attributes: registers, shared memory, occupancy. Launched by itself it is not guarded.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn cuda_function(&self) -> Result<&CudaFunction> {
        let first = Arc::clone(&self.loaded.instances()[0]);
        self.function(&first)
    }

    pub(crate) fn function(&self, instance: &Instance) -> Result<&CudaFunction> {
        let place = &self.functions[instance.index];
        if let Some(function) = place.get() {
            return Ok(function);
        }
        let Some(module) = &instance.module else { return Err(Error::Machine("a module that was dropped".into())) };
        let unknown = |error| driver::fault("cuModuleGetFunction", error);
        let function = module.load_function(&self.symbol).map_err(unknown)?;
        driver::load_eagerly(&function)?;
        let _ = self.parameters.get_or_init(|| driver::parameter_sizes(&function));
        Ok(place.get_or_init(|| function))
    }

    /// Why a launch would have to wait for another stream's.
    pub(crate) fn busy(&self) -> Error {
        Error::Busy { variable: self.loaded.state().map_or_else(|| "its control block".into(), str::to_owned) }
    }

    /// Bytes of each parameter, where the driver can tell.
    pub(crate) fn parameters(&self) -> Option<&[usize]> {
        self.parameters.get()?.as_deref()
    }

    /// Prepares a launch on a stream: add arguments and a limit, then [`start`](Launch::start).
    ///
    /// # Errors
    /// If the context is lost or the driver fails.
    pub fn on<'a>(&'a self, stream: &'a Arc<CudaStream>) -> Result<Launch<'a>> {
        let station = &self.loaded.station;
        station.check()?;
        if stream.context().cu_ctx() != self.loaded.context.cu_ctx() {
            return Err(Error::Arguments {
                kernel: self.name.to_string(),
                what: "the stream is of another context than the module".into(),
            });
        }
        station.bind()?;
        let instance = self.loaded.instance(stream)?;
        let function = self.function(&instance)?;
        Ok(Launch::new(self, instance, stream, function))
    }

    /// Prepares a launch that can be kept, and started again and again.
    pub fn prepare(&self, stream: &Arc<CudaStream>) -> Prepared {
        Prepared::new(self.clone(), Arc::clone(stream))
    }

    /// cudarc's own launch of this kernel, with no limit but those compiled in: it can't be stopped from the host, and a limit that is
    /// compiled in traps. The control block is put back to its first state in the stream's order, so that nothing of an earlier launch's
    /// deadline is left. This is what a stream capture takes, from a context whose event tracking is off
    /// (`CudaContext::disable_event_tracking`): cudarc's slices otherwise bring events of their own into the capture, which breaks it.
    ///
    /// # Errors
    /// If the context is lost or the driver fails.
    pub fn unguarded<'a>(&'a self, stream: &'a Arc<CudaStream>) -> Result<LaunchArgs<'a>> {
        let station = &self.loaded.station;
        station.check()?;
        station.bind()?;
        let instance = self.loaded.instance(stream)?;
        let function = self.function(&instance)?;
        let mut lane = instance.lane();
        (lane.known, lane.is_shared) = (None, true);
        let is_capturing = driver::is_capturing(stream.cu_stream())?;
        if let Some(before) = lane.before(stream.cu_stream().addr() as u64) {
            if is_capturing {
                return Err(self.busy());
            }
            before.make_wait(stream.cu_stream())?;
        }
        if !is_capturing {
            station.after_bare(lane.bare.take(), stream.cu_stream())?;
            lane.bare = Some(Arc::clone(stream));
        }
        driver::upload(stream.cu_stream(), instance.control, instance.unarmed()?)?;
        // What is captured may run behind any launch that can be paused.
        if let Some(pause) = instance.pause {
            driver::send(stream.cu_stream(), pause, &PauseBlock::NONE)?;
        }
        drop(lane);
        Ok(stream.launch_builder(function))
    }
}
