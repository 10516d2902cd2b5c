//! Modules that were rewritten, and their kernels.

mod instance;

use crate::driver;
use crate::error::{Error, Result};
use crate::names;
use crate::slot::pool::LaunchContext;
use crate::sources::{Folder, Sources};
use cudarc::driver::{CudaContext, CudaFunction, CudaStream};
use cuinstr_abi::sites::SiteMap;
use cuinstr_image::Form;
use instance::NO_STREAM;
pub(crate) use instance::{Instance, Latest};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Most instances of one module: as many streams of one context can run its kernels at the same time.
const MOST_INSTANCES: usize = 64;

/// A rewritten module, loaded into the caller's context.
///
/// Cloning gives another handle to the same module. It is unloaded when the last handle, kernel and launch of it are
/// gone. If the context still has launches in flight by then, the module stays loaded, since unloading waits for every
/// kernel of the context.
#[derive(Debug, Clone)]
pub struct Module(Arc<Loaded>);

pub(crate) struct Loaded {
    context: Arc<CudaContext>,
    launch_context: Arc<LaunchContext>,
    // What an instance is loaded from. PTX stays text. The driver's linker would compile it to be linked, with up to
    // twice the registers (`fma_chain`: 54 for 28). Then few blocks fit, and blocks of 1024 threads may not fit at all.
    // The driver's cache has the code when the next instance asks for it.
    code: Vec<u8>,
    form: Form,
    instances: Mutex<Vec<Arc<Instance>>>,
    kernels: Vec<cuinstr_image::Kernel>,
    sites: Arc<[SiteMap]>,
    sources: Arc<dyn Sources + Send + Sync>,
    // A variable of the user's that two instances would not share; asked when there might be two.
    state: OnceLock<Option<String>>,
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
    /// Loading a module waits for the context's running kernels. So it is refused while a launch without a deadline is
    /// in flight.
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
        let launch_context = LaunchContext::of(context)?;
        launch_context.bind()?;
        launch_context.may_wait()?;
        launch_context.unload_parked();
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
        let first = Instance::load(context, &launch_context, &code, 0).map_err(|error| match error {
            // The linker says what is wrong with the text.
            Error::Module { fault, log } if read.form == Form::Ptx => {
                driver::assemble(image).map_or_else(|(fault, log)| Error::Module { fault, log }, |_| Error::Module { fault, log })
            }
            other => other,
        })?;
        let instances = Mutex::new(vec![Arc::new(first)]);
        Ok(Self(Arc::new(Loaded {
            context: Arc::clone(context),
            launch_context,
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
        loaded.launch_context.check()?;
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
        loaded.launch_context.bind()?;
        let first = Arc::clone(&loaded.instances()[0]);
        kernel.function(&first)?;
        Ok(kernel)
    }

    /// Whether a kernel is of this module.
    #[cfg(all(feature = "snapshot", unix))]
    pub(crate) fn has(&self, kernel: &Kernel) -> bool {
        Arc::ptr_eq(&self.0, kernel.loaded())
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
        loaded.launch_context.check()?;
        loaded.launch_context.bind()?;
        loaded.launch_context.may_wait()?;
        let mut instances = loaded.instances();
        while instances.len() < streams.min(MOST_INSTANCES) && loaded.state().is_none() {
            let next = Instance::load(&loaded.context, &loaded.launch_context, &loaded.code, instances.len())?;
            instances.push(Arc::new(next));
        }
        Ok(instances.len())
    }
}

impl Loaded {
    /// A variable of the user's that two instances would not share. PTX does not say which of those that it declares live on, the code that is made of
    /// it does.
    fn state(&self) -> Option<&str> {
        let found = self.state.get_or_init(|| {
            let unknown = || Some("unknown variables".into());
            if self.form != Form::Ptx {
                return cuinstr_image::read(&self.code).map_or_else(|_| unknown(), |image| image.state());
            }
            let text = self.code.strip_suffix(b"\0").unwrap_or(&self.code);
            if cuinstr_image::read(text).is_ok_and(|image| image.declares_no_state()) {
                return None;
            }
            let Ok(linked) = driver::assemble(&self.code) else { return unknown() };
            cuinstr_image::read(&linked).map_or_else(|_| unknown(), |image| image.state())
        });
        found.as_deref()
    }

    fn instances(&self) -> MutexGuard<'_, Vec<Arc<Instance>>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn cuda_context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    pub(crate) fn launch_context(&self) -> &Arc<LaunchContext> {
        &self.launch_context
    }

    pub(crate) fn sources(&self) -> &Arc<dyn Sources + Send + Sync> {
        &self.sources
    }

    pub(crate) fn sites(&self) -> &Arc<[SiteMap]> {
        &self.sites
    }

    /// The instance for a stream, the first of these that exists: the stream's own, a free one, a new one. A new one is
    /// only made if nothing in flight would be waited for. Else the stream shares one.
    pub(crate) fn instance(&self, stream: &CudaStream) -> Result<Arc<Instance>> {
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
        if instances.len() < MOST_INSTANCES && self.launch_context.in_flight() == 0 && self.state().is_none() {
            let instance = Arc::new(Instance::load(&self.context, &self.launch_context, &self.code, instances.len())?);
            instance.stream.store(handle, Ordering::Relaxed);
            instances.push(Arc::clone(&instance));
            return Ok(instance);
        }
        let shared = instances.first();
        shared.map(Arc::clone).ok_or_else(|| Error::Bug("a module without an instance".into()))
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

    /// Its name as the linker knows it.
    #[cfg(all(feature = "snapshot", unix))]
    pub(crate) fn symbol(&self) -> &str {
        &self.symbol
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
        let Some(module) = &instance.module else { return Err(Error::Bug("a module that was dropped".into())) };
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
}
