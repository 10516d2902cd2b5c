//! A launch before it starts: its arguments and its limits.

mod again;
mod argument;
mod prepared;
mod remainder;
mod running;
mod settings;

use crate::context::watchdog::Watchdog;
use crate::driver;
use crate::error::{Error, Result};
use crate::limits::{Given, limit_methods};
use crate::module::{Instance, Kernel, Latest};
use crate::slot::{Pausable, Plan, Subject};
pub use argument::Reference;
use argument::size_of_argument;
use cudarc::driver::{CudaFunction, CudaStream, LaunchArgs, LaunchConfig, PushKernelArg};
use cuinstr_abi::control::{MOST_BLOCKS, PauseBlock};
pub use prepared::Prepared;
pub use remainder::Remainder;
pub use running::{Cancel, Canceller, InFlight, Pauser, Running, Stopping};
use settings::{Settings, setting_methods};
use std::any::type_name;
use std::sync::Arc;

/// A launch before it starts. Made by [`Kernel::on`].
#[derive(Debug)]
#[must_use = "nothing is launched before `start`"]
pub struct Launch<'a> {
    kernel: &'a Kernel,
    instance: Arc<Instance>,
    stream: &'a Arc<CudaStream>,
    function: &'a CudaFunction,
    args: LaunchArgs<'a>,
    count: usize,
    misfit: Option<String>,
    given: Given,
    settings: Settings,
    // The blocks that run, if not all do.
    blocks: Option<Arc<[u32]>>,
}

impl Kernel {
    /// Prepares a launch on a stream: add arguments and a limit, then [`start`](Launch::start).
    ///
    /// # Errors
    /// If the context is lost or the driver fails.
    pub fn on<'a>(&'a self, stream: &'a Arc<CudaStream>) -> Result<Launch<'a>> {
        let launch_context = self.loaded().launch_context();
        launch_context.check()?;
        if stream.context().cu_ctx() != self.loaded().cuda_context().cu_ctx() {
            return Err(Error::Arguments {
                kernel: self.name().to_owned(),
                what: "the stream is of another context than the module".into(),
            });
        }
        launch_context.bind()?;
        let instance = self.loaded().instance(stream)?;
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
        let launch_context = self.loaded().launch_context();
        launch_context.check()?;
        launch_context.bind()?;
        let instance = self.loaded().instance(stream)?;
        let function = self.function(&instance)?;
        let mut control_lock = instance.lock();
        (control_lock.known, control_lock.is_shared) = (None, true);
        let is_capturing = driver::is_capturing(stream.cu_stream())?;
        if let Some(before) = control_lock.before(stream.cu_stream().addr() as u64) {
            if is_capturing {
                return Err(self.busy());
            }
            before.make_wait(stream.cu_stream())?;
        }
        if !is_capturing {
            launch_context.after_bare(control_lock.bare.take(), stream.cu_stream())?;
            control_lock.bare = Some(Arc::clone(stream));
        }
        driver::upload(stream.cu_stream(), instance.control, instance.unarmed()?)?;
        // What is captured may run behind any launch that can be paused.
        if let Some(pause) = instance.pause {
            driver::send(stream.cu_stream(), pause, &PauseBlock::NONE)?;
        }
        drop(control_lock);
        Ok(stream.launch_builder(function))
    }
}

impl<'a> Launch<'a> {
    pub(crate) fn new(kernel: &'a Kernel, instance: Arc<Instance>, stream: &'a Arc<CudaStream>, function: &'a CudaFunction) -> Self {
        let args = stream.launch_builder(function);
        Self {
            kernel,
            instance,
            stream,
            function,
            args,
            count: 0,
            misfit: None,
            given: Given::NONE,
            settings: Settings::default(),
            blocks: None,
        }
    }

    /// The next argument: a reference to whatever cudarc takes.
    pub fn arg<T: Reference>(&mut self, arg: T) -> &mut Self
    where
        LaunchArgs<'a>: PushKernelArg<T>,
    {
        self.sized_arg(arg, type_name::<T>(), size_of_argument::<T::Target>())
    }

    /// The same, of a type of this name and of so many bytes, where that is known.
    fn sized_arg<T>(&mut self, arg: T, name: &str, bytes: Option<usize>) -> &mut Self
    where
        LaunchArgs<'a>: PushKernelArg<T>,
    {
        if let (Some(wanted), Some(given)) = (self.kernel.parameters().and_then(|sizes| sizes.get(self.count)), bytes)
            && *wanted != given
            && self.misfit.is_none()
        {
            self.misfit = Some(format!("argument {} is a `{name}` of {given} bytes, but the parameter has {wanted}", self.count));
        }
        self.args.arg(arg);
        self.count += 1;
        self
    }

    limit_methods!();
    setting_methods!();

    /// Launches it in clusters of so many blocks (x, y, z), where the kernel does not name their size itself.
    ///
    /// # Errors
    /// If the kernel names another size, or the driver refuses this one.
    pub fn cluster(&mut self, blocks: [u32; 3]) -> Result<&mut Self> {
        driver::set_cluster(self.function, blocks).map_err(|fault| self.refused(fault))?;
        Ok(self)
    }

    /// Launches it, and returns at once.
    ///
    /// # Safety
    /// As for any launch: the arguments must be those that the kernel takes, live until it has ended, and lead it to no memory that is not its
    /// own. A launch that is stopped leaves its output half written.
    ///
    /// # Errors
    /// If it has no limit or one that makes no sense, the arguments do not fit, the stream is being captured, or the driver fails.
    pub unsafe fn start(&mut self, config: LaunchConfig) -> Result<Running> {
        self.check()?;
        let launch_context = self.kernel.loaded().launch_context();
        launch_context.check()?;
        launch_context.bind()?;
        let stream = self.stream.cu_stream();
        if driver::is_capturing(stream)? {
            return Err(Error::Capturing);
        }
        let settings = self.settings;
        let pausable = self.pausable(config)?;
        let watchdog = if settings.has_watchdog { Some(launch_context.watchdog()?) } else { None };
        // From arming to the launch call no other launch may use the control block.
        let instance = Arc::clone(&self.instance);
        // Who has it may wait in the launch call, for a full stream.
        let control_lock = if settings.or_busy { instance.try_lock() } else { Some(instance.lock()) };
        let mut control_lock = control_lock.ok_or_else(|| self.kernel.busy())?;
        if let Some(before) = control_lock.before(stream.addr() as u64) {
            if settings.or_busy || !before.is_marked() {
                return Err(self.kernel.busy());
            }
            before.make_wait(stream)?;
        }
        launch_context.after_bare(control_lock.bare.take(), stream)?;
        let (slot, number) = launch_context.take(control_lock.last.as_ref().map(|last| &last.slot))?;
        let plan = self.plan(config, pausable, watchdog);
        let running = Running::new(Arc::clone(launch_context), Arc::clone(&slot), number, self.given.limits.grace);
        let known = control_lock.known.take();
        let was_pausable = std::mem::replace(&mut control_lock.is_pausable, pausable.is_some());
        let armed = slot.arm(number, plan).and_then(|()| {
            match (instance.pause, pausable) {
                (_, Some(_)) => slot.send_pause(stream)?,
                (Some(pause), None) if was_pausable => driver::send(stream, pause, &PauseBlock::NONE)?,
                _ => {}
            }
            Ok(slot.send_orders(stream, instance.control, known)?)
        });
        let orders = match armed {
            Ok(orders) => orders,
            Err(error) => {
                slot.abandon();
                running.forget();
                return Err(error);
            }
        };
        // From here on the orders stand in the stream, so a launch on another stream must come after them, whatever becomes of this one.
        control_lock.launched(Latest { slot: Arc::downgrade(&slot), number, stream: stream.addr() as u64 }, pausable.is_some());
        // Later parts of a launch write other orders, in another stream.
        control_lock.known = (!control_lock.is_shared && pausable.is_none()).then_some(orders);
        let launched = slot.mark_begin(stream).map_err(Error::from).and_then(|()| {
            // SAFETY: the caller's promise.
            let launched = unsafe { if settings.is_cooperative { self.args.launch_cooperative(config) } else { self.args.launch(config) } };
            launched.map_err(|error| self.refused(driver::fault("cuLaunchKernel", error)))
        });
        let is_launched = launched.is_ok();
        let marked = launched.and_then(|_| Ok(slot.submit(stream).and_then(|()| slot.hold(stream))?));
        match marked {
            Ok(()) => Ok(running),
            Err(error) => {
                let is_kept =
                    if is_launched { !slot.stop_unmarked(number, stream, self.given.limits.grace) } else { slot.refuse(stream).is_ok() };
                if !is_kept {
                    slot.abandon();
                }
                running.forget();
                Err(error)
            }
        }
    }

    /// What it is armed with.
    fn plan(&self, config: LaunchConfig, pausable: Option<Pausable>, watchdog: Option<Watchdog>) -> Plan {
        let loaded = self.kernel.loaded();
        let (grid, block) = (config.grid_dim, config.block_dim);
        let subject = Subject {
            kernel: Arc::clone(self.kernel.shared_name()),
            sites: Arc::clone(loaded.sites()),
            sources: Arc::clone(loaded.sources()),
            grid: [grid.0, grid.1, grid.2],
            block: [block.0, block.1, block.2],
        };
        Plan {
            context: Arc::clone(loaded.launch_context().state()),
            keep: Arc::clone(loaded) as _,
            subject,
            limits: self.given.limits,
            flag: self.settings.flag,
            timed: self.settings.is_timed,
            watchdog,
            is_guarded: false,
            pausable,
            blocks: self.blocks.clone(),
        }
    }

    /// What the launch needs to be paused, if it shall be.
    fn pausable(&self, config: LaunchConfig) -> Result<Option<Pausable>> {
        if !self.settings.is_pausable {
            return Ok(None);
        }
        let refused = |why| Err(Error::NotPausable { kernel: self.kernel.name().to_owned(), why });
        let (x, y, z) = config.grid_dim;
        let blocks = u64::from(x) * u64::from(y) * u64::from(z);
        match self.instance.pause {
            None => refused("its blocks can't decline to run; rewrite its source with `cuinstr --pausable`"),
            Some(_) if self.settings.is_cooperative => {
                refused("the blocks of a cooperative launch wait for each other; launch it without .cooperative()")
            }
            Some(_) if self.settings.cluster.is_some() => refused("the blocks of a cluster begin together; launch it without .cluster(…)"),
            Some(_) if self.kernel.loaded().launch_context().is_blocking() => {
                refused("CUDA_LAUNCH_BLOCKING=1 keeps the launch call until the kernel is over; unset it")
            }
            Some(_) if blocks > MOST_BLOCKS => refused("its grid has more than 2^28 blocks; launch it in several"),
            Some(block) => Ok(Some(Pausable { block, blocks })),
        }
    }

    fn check(&self) -> Result<()> {
        let kernel = || self.kernel.name().to_owned();
        self.given.check(self.kernel.name(), self.kernel.loaded().launch_context().is_blocking())?;
        if let Some(what) = &self.misfit {
            return Err(Error::Arguments { kernel: kernel(), what: what.clone() });
        }
        if let Some(wanted) = self.kernel.parameters().map(<[usize]>::len).filter(|wanted| *wanted != self.count) {
            let what = format!("takes {wanted} arguments, {} were given", self.count);
            return Err(Error::Arguments { kernel: kernel(), what });
        }
        Ok(())
    }

    /// The driver's refusal of a launch, in the kernel's words.
    fn refused(&self, fault: crate::fault::DriverFault) -> Error {
        match fault.code {
            1 | 701 => Error::Arguments { kernel: self.kernel.name().to_owned(), what: format!("the driver refuses the launch: {fault}") },
            _ => fault.into(),
        }
    }
}
