//! A launch before it starts: its arguments and its limits.

use crate::driver;
use crate::error::{Error, Result};
use crate::flight::{Clock, FlagMemory, Limits, Plan, Subject};
use crate::module::{Instance, Kernel, Latest};
use crate::running::Running;
use cudarc::driver::{CudaFunction, CudaStream, LaunchArgs, LaunchConfig, PushKernelArg};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time that a launch which was told to stop is given, unless it says otherwise.
pub const GRACE: Duration = Duration::from_millis(100);
/// Longest timeout, about 100 years: what the clocks hold without overflow.
pub const LONGEST_TIMEOUT: Duration = crate::flight::LONGEST;
/// How long the GPU may take to begin a launch, unless it says otherwise.
pub(crate) const BEGIN_WITHIN: Duration = Duration::from_secs(60);

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
    limits: Limits,
    has_limit: bool,
    flag: FlagMemory,
    budget: Option<u64>,
    fuel: Option<u64>,
    is_timed: bool,
    has_watchdog: bool,
    is_cooperative: bool,
    or_busy: bool,
}

impl<'a> Launch<'a> {
    pub(crate) fn new(kernel: &'a Kernel, instance: Arc<Instance>, stream: &'a Arc<CudaStream>, function: &'a CudaFunction) -> Self {
        let args = stream.launch_builder(function);
        let limits =
            Limits { timeout: None, deadline: None, clock: Clock::Device, grace: GRACE, begin_within: BEGIN_WITHIN, count_fuel: false };
        Self {
            kernel,
            instance,
            stream,
            function,
            args,
            count: 0,
            misfit: None,
            limits,
            has_limit: false,
            flag: FlagMemory::default(),
            budget: None,
            fuel: None,
            is_timed: false,
            has_watchdog: false,
            is_cooperative: false,
            or_busy: false,
        }
    }

    /// The next argument: whatever cudarc takes.
    pub fn arg<T>(&mut self, arg: T) -> &mut Self
    where
        LaunchArgs<'a>: PushKernelArg<T>,
    {
        if let (Some(wanted), Some(given)) = (self.kernel.parameters().and_then(|sizes| sizes.get(self.count)), size_of_argument::<T>())
            && *wanted != given
            && self.misfit.is_none()
        {
            let type_name = std::any::type_name::<T>();
            self.misfit = Some(format!("argument {} is a `{type_name}` of {given} bytes, but the parameter has {wanted}", self.count));
        }
        self.args.arg(arg);
        self.count += 1;
        self
    }

    /// Stops it this long after the kernel begins.
    pub fn timeout(&mut self, timeout: Duration) -> &mut Self {
        (self.limits.timeout, self.has_limit) = (Some(timeout), true);
        self
    }

    /// Stops it at this moment, begun or not.
    pub fn deadline(&mut self, deadline: Instant) -> &mut Self {
        (self.limits.deadline, self.has_limit) = (Some(deadline), true);
        self
    }

    /// Lets it run until somebody cancels it.
    pub fn until_cancelled(&mut self) -> &mut Self {
        self.has_limit = true;
        self
    }

    /// Stops a thread after so many iterations, where fuel is compiled in (`--fuel`).
    pub fn fuel(&mut self, iterations: u64) -> &mut Self {
        self.fuel = Some(iterations);
        self
    }

    /// Stops a block after so many cycles, where a budget is compiled in (`--budget-cycles`).
    pub fn budget_cycles(&mut self, cycles: u64) -> &mut Self {
        self.budget = Some(cycles);
        self
    }

    /// Asks for the most iterations that one thread ran, where fuel is compiled in.
    pub fn count_fuel(&mut self) -> &mut Self {
        self.limits.count_fuel = true;
        self
    }

    /// Who watches the time: the device unless said otherwise.
    pub fn clock(&mut self, clock: Clock) -> &mut Self {
        self.limits.clock = clock;
        self
    }

    /// Where the flag lies: in device memory unless said otherwise.
    pub fn flag(&mut self, memory: FlagMemory) -> &mut Self {
        self.flag = memory;
        self
    }

    /// How long it may take to leave once it was told to; [`GRACE`] unless said otherwise.
    pub fn grace(&mut self, grace: Duration) -> &mut Self {
        self.limits.grace = grace;
        self
    }

    /// How long waits go on while the GPU has not begun it; a minute unless said otherwise.
    pub fn begin_within(&mut self, limit: Duration) -> &mut Self {
        self.limits.begin_within = limit;
        self
    }

    /// If it does not leave within its grace time, trap: the process loses its GPU state, all of it. A kernel of one thread lies in wait
    /// beside this launch until it is over.
    pub fn watchdog(&mut self) -> &mut Self {
        self.has_watchdog = true;
        self
    }

    /// Takes the time with the device's own events, which costs the launch a microsecond or two.
    pub fn timed(&mut self) -> &mut Self {
        self.is_timed = true;
        self
    }

    /// Launches it cooperatively, for grid-wide barriers.
    pub fn cooperative(&mut self) -> &mut Self {
        self.is_cooperative = true;
        self
    }

    /// Launches it in clusters of so many blocks (x, y, z), where the kernel does not name their size itself.
    ///
    /// # Errors
    /// If the kernel names another size, or the driver refuses this one.
    pub fn cluster(&mut self, blocks: [u32; 3]) -> Result<&mut Self> {
        driver::set_cluster(self.function, blocks).map_err(|fault| self.refused(fault))?;
        Ok(self)
    }

    /// If the module is in flight on another stream and can't be loaded twice, answer [`Error::Busy`] instead of queueing behind it.
    pub fn or_busy(&mut self) -> &mut Self {
        self.or_busy = true;
        self
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
        let watchdog = if self.has_watchdog { Some(station.watchdog()?) } else { None };
        // From arming to the launch call nobody else may use the control block.
        let instance = Arc::clone(&self.instance);
        // Who has it may wait in the launch call, for a full stream.
        let lane = if self.or_busy { instance.try_lane() } else { Some(instance.lane()) };
        let mut lane = lane.ok_or_else(|| self.kernel.busy())?;
        if let Some(before) = lane.before(stream.addr() as u64) {
            if self.or_busy || !before.is_marked() {
                return Err(self.kernel.busy());
            }
            before.end.hold(stream)?;
        }
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
            limits: self.limits,
            flag: self.flag,
            budget: self.budget,
            fuel: self.fuel,
            timed: self.is_timed,
            watchdog,
            is_guarded: false,
        };
        let running = Running::new(Arc::clone(station), Arc::clone(&flight), number, self.limits.grace);
        let known = lane.known.take();
        let armed = flight.arm(number, plan).and_then(|()| Ok(flight.send_orders(stream, instance.control, known)?));
        let orders = match armed {
            Ok(orders) => orders,
            Err(error) => {
                flight.abandon();
                running.forget();
                return Err(error);
            }
        };
        // From here on the orders stand in the stream, so a launch on another stream must come after them, whatever becomes of this one.
        lane.last = Some(Latest { flight: Arc::downgrade(&flight), number, stream: stream.addr() as u64 });
        lane.known = (!lane.is_shared).then_some(orders);
        let launched = flight.mark_begin(stream).map_err(Error::from).and_then(|()| {
            // SAFETY: the caller's promise.
            let launched = unsafe { if self.is_cooperative { self.args.launch_cooperative(config) } else { self.args.launch(config) } };
            launched.map_err(|error| self.refused(driver::fault("cuLaunchKernel", error)))
        });
        let is_launched = launched.is_ok();
        match launched.and_then(|_| flight.submit(stream).map_err(Error::from)) {
            Ok(()) => Ok(running),
            Err(error) => {
                let is_kept =
                    if is_launched { !flight.stop_unmarked(number, stream, self.limits.grace) } else { flight.refuse(stream).is_ok() };
                if !is_kept {
                    flight.abandon();
                }
                running.forget();
                Err(error)
            }
        }
    }

    fn check(&self) -> Result<()> {
        let kernel = || self.kernel.name().to_owned();
        if !self.has_limit {
            return Err(Error::NoLimit { kernel: kernel() });
        }
        if let Some(timeout) = self.limits.timeout {
            if timeout.is_zero() {
                return Err(Error::ZeroTimeout);
            }
            if timeout > LONGEST_TIMEOUT {
                return Err(Error::TimeoutTooLong(timeout));
            }
        }
        if let Some(what) = &self.misfit {
            return Err(Error::Arguments { kernel: kernel(), what: what.clone() });
        }
        if let Some(wanted) = self.kernel.parameters().map(<[usize]>::len).filter(|wanted| *wanted != self.count) {
            let what = format!("takes {wanted} arguments, {} were given", self.count);
            return Err(Error::Arguments { kernel: kernel(), what });
        }
        if self.kernel.loaded().station().is_blocking() && self.limits.timeout.is_none() {
            let why =
                "CUDA_LAUNCH_BLOCKING=1 makes each launch wait for its kernel: give it a .timeout(…), which the kernel watches itself";
            return Err(Error::Machine(why.into()));
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

/// Bytes of an argument, for the types that this can be told of from outside cudarc.
fn size_of_argument<T>() -> Option<usize> {
    let name = std::any::type_name::<T>().trim_start_matches('&').trim_start_matches("mut ");
    match name {
        "i8" | "u8" | "bool" => Some(1),
        "i16" | "u16" => Some(2),
        "i32" | "u32" | "f32" => Some(4),
        "i64" | "u64" | "f64" | "usize" | "isize" => Some(8),
        _ if name.starts_with("cudarc::driver::safe::core::Cuda") => Some(8),
        _ => None,
    }
}
