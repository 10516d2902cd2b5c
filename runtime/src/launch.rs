//! A launch before it starts: its arguments and its limits.

mod again;

use crate::driver;
use crate::error::{Error, Result};
use crate::flight::{FlagMemory, Pausable, Plan, Subject};
use crate::limits::{Given, limit_methods};
use crate::module::{Instance, Kernel, Latest};
use crate::running::Running;
pub(crate) use again::Again;
use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, CudaView, CudaViewMut, DeviceRepr, LaunchArgs, LaunchConfig, PushKernelArg};
use cuinstr_abi::control::{MOST_BLOCKS, PauseBlock};
use std::any::type_name;
use std::sync::{Arc, Mutex, OnceLock};

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
}

/// How a launch is made, besides its limits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Settings {
    flag: FlagMemory,
    is_timed: bool,
    has_watchdog: bool,
    is_cooperative: bool,
    or_busy: bool,
    is_pausable: bool,
    cluster: Option<[u32; 3]>,
}

/// The methods that set how a launch is made, of what has a field `settings: Settings`.
macro_rules! setting_methods {
    () => {
        /// Where the flag lies: in device memory unless said otherwise.
        pub fn flag(&mut self, memory: FlagMemory) -> &mut Self {
            self.settings.flag = memory;
            self
        }

        /// If it does not leave within its grace time, trap: the process loses its GPU state, all of it. A kernel of one thread lies in wait beside this
        /// launch until it is over.
        pub fn watchdog(&mut self) -> &mut Self {
            self.settings.has_watchdog = true;
            self
        }

        /// Takes the time with the device's own events, which costs the launch a microsecond or two.
        pub fn timed(&mut self) -> &mut Self {
            self.settings.is_timed = true;
            self
        }

        /// Launches it cooperatively, for grid-wide barriers.
        pub fn cooperative(&mut self) -> &mut Self {
            self.settings.is_cooperative = true;
            self
        }

        /// If the module is in flight on another stream and can't be loaded twice, answer [`Error::Busy`] instead of queueing behind it.
        pub fn or_busy(&mut self) -> &mut Self {
            self.settings.or_busy = true;
            self
        }
    };
}

impl<'a> Launch<'a> {
    pub(crate) fn new(kernel: &'a Kernel, instance: Arc<Instance>, stream: &'a Arc<CudaStream>, function: &'a CudaFunction) -> Self {
        let args = stream.launch_builder(function);
        Self { kernel, instance, stream, function, args, count: 0, misfit: None, given: Given::NONE, settings: Settings::default() }
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
        let loaded = self.kernel.loaded();
        let station = loaded.station();
        station.check()?;
        station.bind()?;
        let stream = self.stream.cu_stream();
        if driver::is_capturing(stream)? {
            return Err(Error::Capturing);
        }
        let settings = self.settings;
        let pausable = self.pausable(config)?;
        let watchdog = if settings.has_watchdog { Some(station.watchdog()?) } else { None };
        // From arming to the launch call nobody else may use the control block.
        let instance = Arc::clone(&self.instance);
        // Who has it may wait in the launch call, for a full stream.
        let lane = if settings.or_busy { instance.try_lane() } else { Some(instance.lane()) };
        let mut lane = lane.ok_or_else(|| self.kernel.busy())?;
        if let Some(before) = lane.before(stream.addr() as u64) {
            if settings.or_busy || !before.is_marked() {
                return Err(self.kernel.busy());
            }
            before.make_wait(stream)?;
        }
        station.after_bare(lane.bare.take(), stream)?;
        let (flight, number) = station.take(lane.last.as_ref().map(|last| &last.flight))?;
        let (grid, block) = (config.grid_dim, config.block_dim);
        let subject = Subject {
            kernel: Arc::clone(self.kernel.shared_name()),
            sites: Arc::clone(loaded.sites()),
            sources: Arc::clone(loaded.sources()),
            grid: [grid.0, grid.1, grid.2],
            block: [block.0, block.1, block.2],
        };
        let plan = Plan {
            station: Arc::clone(station),
            keep: Arc::clone(loaded) as _,
            subject,
            limits: self.given.limits,
            flag: settings.flag,
            timed: settings.is_timed,
            watchdog,
            is_guarded: false,
            pausable,
        };
        let running = Running::new(Arc::clone(station), Arc::clone(&flight), number, self.given.limits.grace);
        let known = lane.known.take();
        let was_pausable = std::mem::replace(&mut lane.is_pausable, pausable.is_some());
        let armed = flight.arm(number, plan).and_then(|()| {
            match (instance.pause, pausable) {
                (_, Some(_)) => flight.send_pause(stream)?,
                (Some(pause), None) if was_pausable => driver::send(stream, pause, &PauseBlock::NONE)?,
                _ => {}
            }
            Ok(flight.send_orders(stream, instance.control, known)?)
        });
        let orders = match armed {
            Ok(orders) => orders,
            Err(error) => {
                flight.abandon();
                running.forget();
                return Err(error);
            }
        };
        // From here on the orders stand in the stream, so a launch on another stream must come after them, whatever becomes of this one.
        lane.launched(Latest { flight: Arc::downgrade(&flight), number, stream: stream.addr() as u64 }, pausable.is_some());
        // Later parts of a launch write other orders, in another stream.
        lane.known = (!lane.is_shared && pausable.is_none()).then_some(orders);
        let launched = flight.mark_begin(stream).map_err(Error::from).and_then(|()| {
            // SAFETY: the caller's promise.
            let launched = unsafe { if settings.is_cooperative { self.args.launch_cooperative(config) } else { self.args.launch(config) } };
            launched.map_err(|error| self.refused(driver::fault("cuLaunchKernel", error)))
        });
        let is_launched = launched.is_ok();
        let marked = launched.and_then(|_| Ok(flight.submit(stream).and_then(|()| flight.hold(stream))?));
        match marked {
            Ok(()) => Ok(running),
            Err(error) => {
                let is_kept = if is_launched {
                    !flight.stop_unmarked(number, stream, self.given.limits.grace)
                } else {
                    flight.refuse(stream).is_ok()
                };
                if !is_kept {
                    flight.abandon();
                }
                running.forget();
                Err(error)
            }
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
            Some(_) if self.kernel.loaded().station().is_blocking() => {
                refused("CUDA_LAUNCH_BLOCKING=1 keeps the launch call until the kernel is over; unset it")
            }
            Some(_) if blocks > MOST_BLOCKS => refused("its grid has more than 2^28 blocks; launch it in several"),
            Some(block) => Ok(Some(Pausable { block, blocks })),
        }
    }

    fn check(&self) -> Result<()> {
        let kernel = || self.kernel.name().to_owned();
        self.given.check(self.kernel.name(), self.kernel.loaded().station().is_blocking())?;
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
    fn refused(&self, fault: crate::error::DriverFault) -> Error {
        match fault.code {
            1 | 701 => Error::Arguments { kernel: self.kernel.name().to_owned(), what: format!("the driver refuses the launch: {fault}") },
            _ => fault.into(),
        }
    }
}

/// A reference, and what it refers to.
pub trait Reference {
    /// What it refers to.
    type Target;
}

impl<T> Reference for &T {
    type Target = T;
}

impl<T> Reference for &mut T {
    type Target = T;
}

/// Bytes that a kernel is given for a reference to a `T`, if that is known: those of a plain value, and those of an address for memory of cudarc's. What
/// owns something is no plain value.
fn size_of_argument<T>() -> Option<usize> {
    let generic = |name: &'static str| name.split('<').next();
    let name = generic(type_name::<T>());
    let is_memory = [type_name::<CudaSlice<u8>>(), type_name::<CudaView<'_, u8>>(), type_name::<CudaViewMut<'_, u8>>()]
        .into_iter()
        .any(|memory| generic(memory) == name);
    if is_memory {
        return Some(size_of::<u64>());
    }
    (!std::mem::needs_drop::<T>()).then_some(size_of::<T>())
}

/// A launch that can be kept: it owns its arguments, its stream and its kernel, and starts as often as you like. Made by [`Kernel::prepare`].
#[derive(Debug, Clone)]
#[must_use = "nothing is launched before `start`"]
pub struct Prepared {
    kernel: Kernel,
    stream: Arc<CudaStream>,
    values: Vec<Value>,
    given: Given,
    settings: Settings,
}

impl Prepared {
    pub(crate) fn new(kernel: Kernel, stream: Arc<CudaStream>) -> Self {
        Self { kernel, stream, values: Vec::new(), given: Given::NONE, settings: Settings::default() }
    }

    /// What it launches.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The next argument, by value: a number, a struct, or the address of device memory, which must live as long as launches use it.
    pub fn arg<T: DeviceRepr + Copy>(&mut self, value: T) -> &mut Self {
        self.values.push(Value::new(&value));
        self
    }

    /// Another value for an argument that was given, counted from 0.
    ///
    /// # Errors
    /// If there is no such argument, or it has another size.
    pub fn set_arg<T: DeviceRepr + Copy>(&mut self, index: usize, value: T) -> Result<&mut Self> {
        let (count, kernel) = (self.values.len(), self.kernel.name().to_owned());
        let wrong = |what: String| Error::Arguments { kernel, what };
        match self.values.get_mut(index) {
            None => return Err(wrong(format!("there is no argument {index}, {count} were given"))),
            Some(place) if place.bytes != size_of::<T>() => {
                return Err(wrong(format!("argument {index} has {} bytes, its new value {}", place.bytes, size_of::<T>())));
            }
            Some(place) => *place = Value::new(&value),
        }
        Ok(self)
    }

    #[cfg(all(feature = "worker", unix))]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.values.push(Value::of_bytes(bytes));
        self
    }

    limit_methods!();
    setting_methods!();

    /// Launches it in clusters of so many blocks (x, y, z), where the kernel does not name their size itself.
    pub fn cluster(&mut self, blocks: [u32; 3]) -> &mut Self {
        self.settings.cluster = Some(blocks);
        self
    }

    /// Lets it be paused and resumed ([`Running::pause`]), which takes a module that was rewritten with `--pausable`. What is queued behind the launch waits for
    /// all parts of it.
    pub fn pausable(&mut self) -> &mut Self {
        self.settings.is_pausable = true;
        self
    }

    /// Launches it, and returns at once. It can be started again, also while it is in flight.
    ///
    /// # Safety
    /// As for [`Launch::start`].
    ///
    /// # Errors
    /// As for [`Launch::start`].
    pub unsafe fn start(&self, config: LaunchConfig) -> Result<Running> {
        let mut launch = self.kernel.on(&self.stream)?;
        (launch.given, launch.settings) = (self.given, self.settings);
        if let Some(blocks) = self.settings.cluster {
            launch.cluster(blocks)?;
        }
        for value in &self.values {
            // The first word stands for all of them: the driver reads as many as the parameter has.
            launch.sized_arg(&value.words[0], value.name, Some(value.bytes));
        }
        // SAFETY: the caller's promise; the sizes are compared with the kernel's parameters where the driver tells them.
        let running = unsafe { launch.start(config) }?;
        if !self.settings.is_pausable {
            return Ok(running);
        }
        let instance = Arc::clone(&launch.instance);
        Ok(running.repeatable(Again { prepared: self.clone(), config, instance, beside: OnceLock::new(), held: Mutex::default() }))
    }
}

/// The bytes of an argument, placed as any parameter may ask for.
#[derive(Debug, Clone)]
struct Value {
    words: Box<[Word]>,
    bytes: usize,
    name: &'static str,
}

/// A piece of an argument.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
struct Word([std::mem::MaybeUninit<u8>; 16]);

// SAFETY: plain bytes, of which the driver reads what the parameter takes.
unsafe impl DeviceRepr for Word {}

impl Value {
    fn room(name: &'static str, bytes: usize) -> Self {
        Self { words: vec![Word([std::mem::MaybeUninit::uninit(); 16]); bytes.div_ceil(16).max(1)].into(), bytes, name }
    }

    fn new<T: Copy>(value: &T) -> Self {
        let mut own = Self::room(type_name::<T>(), size_of::<T>());
        // SAFETY: there is room for as many bytes; those that are padding stay what they are.
        unsafe { std::ptr::copy_nonoverlapping(std::ptr::from_ref(value).cast::<u8>(), own.words.as_mut_ptr().cast(), own.bytes) };
        own
    }

    #[cfg(all(feature = "worker", unix))]
    fn of_bytes(bytes: &[u8]) -> Self {
        let mut own = Self::room("value", bytes.len());
        for (place, byte) in own.words.iter_mut().flat_map(|word| &mut word.0).zip(bytes) {
            place.write(*byte);
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Pair {
        _first: u16,
        _second: u64,
    }

    #[test]
    fn the_size_of_an_argument_is_that_of_what_the_kernel_gets() {
        assert_eq!(size_of_argument::<u16>(), Some(2));
        assert_eq!(size_of_argument::<Pair>(), Some(16));
        assert_eq!(size_of_argument::<[f32; 3]>(), Some(12));
        assert_eq!(size_of_argument::<CudaSlice<u16>>(), Some(8));
        assert_eq!(size_of_argument::<CudaView<'_, Pair>>(), Some(8));
        assert_eq!(size_of_argument::<CudaViewMut<'_, i8>>(), Some(8));
        assert_eq!(size_of_argument::<Vec<u8>>(), None);
    }

    #[test]
    fn a_kept_value_has_its_bytes_and_their_number() {
        let value = Value::new(&0x0102_0304_0506_0708_u64);
        assert_eq!((value.bytes, value.words.len()), (8, 1));
        assert_eq!(Value::new(&[0_u8; 33]).words.len(), 3);
        assert_eq!(Value::new(&()).words.len(), 1);
    }
}
