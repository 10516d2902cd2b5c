//! A launch in a worker process: before it starts, and in flight.

use super::argument::{Argument, Kind};
use super::handle::Live;
use super::pending::{PendingLaunch, Terms};
use super::process::Process;
use super::remote::{Lines, RemoteKernel};
use super::wire::{Order, Parameter, Task};
use super::words::nanos;
use crate::error::Result;
use crate::error::worker::Fault;
use crate::launch::{Cancel, InFlight, Stopping};
use crate::limits::{Clock, Given, Limits, limit_methods};
use crate::outcome::Outcome;
use cudarc::driver::LaunchConfig;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// How long the GPU may take to begin a launch that nothing is in front of, unless it says otherwise. The worker has its stream for itself.
const BEGIN_WITHIN: Duration = Duration::from_secs(5);
/// What a worker may take to tell of an end: longest that it looks for how far the kernel got, and some more.
const TELL: Duration = Duration::from_secs(3);

/// A launch before it starts. Made by [`RemoteKernel::launch`].
#[derive(Debug, Clone)]
#[must_use = "nothing is launched before `start`"]
pub struct RemoteLaunch<'a> {
    kernel: &'a RemoteKernel,
    arguments: Vec<Argument>,
    given: Given,
    is_timed: bool,
    is_cooperative: bool,
    cluster: Option<[u32; 3]>,
}

impl RemoteKernel {
    /// Prepares a launch: add arguments and a limit, then [`start`](RemoteLaunch::start).
    pub fn launch(&self) -> RemoteLaunch<'_> {
        RemoteLaunch::new(self)
    }
}

impl<'a> RemoteLaunch<'a> {
    pub(super) fn new(kernel: &'a RemoteKernel) -> Self {
        Self {
            kernel,
            arguments: Vec::new(),
            given: Given { limits: Limits { begin_within: BEGIN_WITHIN, ..Limits::UNTIL_CANCELLED }, is_given: false },
            is_timed: false,
            is_cooperative: false,
            cluster: None,
        }
    }

    /// The next argument: a number, a buffer, or [`Argument::bytes`].
    pub fn arg(&mut self, argument: impl Into<Argument>) -> &mut Self {
        self.arguments.push(argument.into());
        self
    }

    limit_methods!();

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
    pub fn cluster(&mut self, blocks: [u32; 3]) -> &mut Self {
        self.cluster = Some(blocks);
        self
    }

    /// Launches it, and returns once the worker has done so. Dynamic shared memory beyond 48 KB is asked for by itself.
    ///
    /// This is safe, whatever the arguments are. A kernel with wrong arguments can harm its own process only. The
    /// parent validates everything that process sends, except the contents of its buffers. A launch that is stopped
    /// leaves its output half written.
    ///
    /// # Errors
    /// - The launch has no limit, or one that makes no sense.
    /// - The arguments do not fit.
    /// - A buffer is lost ([`Fault::Lost`]).
    /// - The driver fails.
    /// - The worker is lost meanwhile ([`Fault::Gone`]).
    pub fn start(&mut self, config: LaunchConfig) -> Result<RemoteRunning> {
        self.given.check(self.kernel.name(), false)?;
        let worker = &self.kernel.module.worker;
        let arguments = self.parameters()?;
        worker.call(|live| self.launch(live, arguments.clone(), config))
    }

    fn launch(&self, live: &mut Live, arguments: Vec<Parameter>, config: LaunchConfig) -> Result<RemoteRunning> {
        let (grid, block) = (config.grid_dim, config.block_dim);
        let launch = self.kernel.module.worker.number();
        let process = self.prepare(live)?;
        let limits = self.given.limits;
        let now = Instant::now();
        let until = |deadline: Instant| nanos(deadline.saturating_duration_since(now));
        let order = Order {
            launch,
            module: self.kernel.module.id,
            kernel: self.kernel.asked.clone(),
            arguments,
            grid: [grid.0, grid.1, grid.2],
            block: [block.0, block.1, block.2],
            cluster: self.cluster,
            shared_bytes: config.shared_mem_bytes,
            is_cooperative: self.is_cooperative,
            is_timed: self.is_timed,
            timeout: limits.timeout.map(nanos),
            deadline: limits.deadline.map(until),
            grace: nanos(limits.grace),
            begin_within: nanos(limits.begin_within),
            by_host_clock: limits.clock == Clock::Host,
            budget: limits.budget_cycles,
            fuel: limits.fuel,
            count_fuel: limits.count_fuel,
        };
        let terms = Terms {
            kernel: self.kernel.shared_name(),
            grid: order.grid,
            block: order.block,
            timeout: limits.timeout,
            deadline: limits.deadline,
            budget: limits.budget_cycles,
            fuel: limits.fuel,
            extra: limits.begin_within.saturating_add(limits.grace).saturating_add(TELL),
        };
        let pending = PendingLaunch::new(launch, terms, &process);
        process.launch(Task::Start(Box::new(order)), &pending)?;
        Ok(RemoteRunning { process, pending, sources: self.kernel.sources.clone(), is_over: false })
    }

    /// Has the module and the buffers in one process.
    fn prepare(&self, live: &mut Live) -> Result<Arc<Process>> {
        loop {
            let process = self.kernel.module.ensure(live)?;
            let generation = live.generation;
            for argument in &self.arguments {
                if let Kind::Buffer(buffer) = &argument.0 {
                    buffer.ensure(live)?;
                }
            }
            // A process that was lost on the way took the module with it.
            if live.generation == generation {
                return Ok(process);
            }
        }
    }

    fn parameters(&self) -> Result<Vec<Parameter>> {
        let worker = &self.kernel.module.worker;
        let parameter = |argument: &Argument| match &argument.0 {
            Kind::Bytes(bytes) => Ok(Parameter::Bytes(bytes.clone())),
            Kind::Buffer(buffer) if Arc::ptr_eq(&buffer.worker, worker) => Ok(Parameter::Buffer(buffer.id)),
            Kind::Buffer(_) => Err(Fault::OtherWorker { what: "buffer" }.into()),
        };
        self.arguments.iter().map(parameter).collect()
    }
}

/// A launch in flight in a worker.
///
/// Dropping it cancels the launch and waits for nothing: the next call to the worker does, and a kernel that does not leave costs the worker
/// its process. As a future it is ready when the outcome is known; it needs no executor of any kind.
#[derive(Debug)]
#[must_use = "dropping it cancels the launch; call `wait`"]
pub struct RemoteRunning {
    process: Arc<Process>,
    pending: Arc<PendingLaunch>,
    sources: Option<Arc<Lines>>,
    is_over: bool,
}

/// Cancels a launch in a worker, from any thread and as often as you like. Once the launch is over it does nothing: it never hits a later one.
#[derive(Debug, Clone)]
pub struct RemoteCanceller {
    process: std::sync::Weak<Process>,
    pending: Arc<PendingLaunch>,
}

impl RemoteCanceller {
    /// Tells the launch to stop, and returns at once.
    ///
    /// # Errors
    /// If the worker does not listen, which ends it, and so the launch.
    pub fn cancel(&self) -> Result<()> {
        self.process.upgrade().map_or(Ok(()), |process| process.cancel(&self.pending))
    }
}

impl RemoteRunning {
    /// Tells the launch to stop, and returns at once.
    ///
    /// # Errors
    /// If the worker does not listen, which ends it, and so the launch.
    pub fn cancel(&self) -> Result<()> {
        self.process.cancel(&self.pending)
    }

    /// Tells the launch to stop. The answer is ready when it has.
    pub fn stop(self) -> Stopping<Self> {
        InFlight::stop(self)
    }

    /// Number of the process that it runs in: another than that of a buffer's last write ([`super::Worker::pid`]), if that one went in between.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid
    }

    /// A handle that only cancels, for other threads and for Ctrl-C.
    #[must_use]
    pub fn canceller(&self) -> RemoteCanceller {
        RemoteCanceller { process: Arc::downgrade(&self.process), pending: Arc::clone(&self.pending) }
    }

    /// Waits for the outcome. The wait has a bound, after which the worker is killed. The bound is a sum: the launches
    /// in front of it, the time that the GPU takes to begin it, its limit, its grace, and three seconds. Only a launch
    /// `until_cancelled` waits until it is cancelled.
    ///
    /// # Errors
    /// [`Fault::Gone`] if the worker was lost for another reason than this launch, [`Error::NotBegun`] if the GPU did not begin it.
    pub fn wait(&mut self) -> Result<Outcome> {
        loop {
            if let Some(outcome) = self.wait_until(None)? {
                return Ok(outcome);
            }
        }
    }

    /// Waits for the outcome, but not longer than `limit`; `None` if it is not known by then.
    ///
    /// # Errors
    /// As [`RemoteRunning::wait`].
    pub fn wait_for(&mut self, limit: Duration) -> Result<Option<Outcome>> {
        self.wait_until(Instant::now().checked_add(limit))
    }

    /// The outcome, if it is known by now.
    ///
    /// # Errors
    /// As [`RemoteRunning::wait`].
    pub fn poll(&mut self) -> Result<Option<Outcome>> {
        self.wait_for(Duration::ZERO)
    }

    fn wait_until(&mut self, until: Option<Instant>) -> Result<Option<Outcome>> {
        let outcome = self.pending.wait(until);
        self.is_over = !matches!(outcome, Ok(None));
        Ok(outcome?.map(|mut outcome| {
            if let (Outcome::Stopped { report, .. }, Some(lines)) = (&mut outcome, &self.sources) {
                report.look_up(lines.sites(), lines.sources());
            }
            outcome
        }))
    }
}

impl Future for RemoteRunning {
    type Output = Result<Outcome>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Registered first, so that an end in between is not missed.
        self.pending.register(context.waker());
        match Self::poll(&mut self) {
            Ok(Some(outcome)) => Poll::Ready(Ok(outcome)),
            Err(error) => Poll::Ready(Err(error)),
            Ok(None) => Poll::Pending,
        }
    }
}

impl Cancel for RemoteCanceller {
    fn cancel(&self) -> Result<()> {
        self.cancel()
    }
}

impl InFlight for RemoteRunning {
    type Canceller = RemoteCanceller;

    fn canceller(&self) -> RemoteCanceller {
        self.canceller()
    }

    fn wait(&mut self) -> Result<Outcome> {
        self.wait()
    }

    fn wait_for(&mut self, limit: Duration) -> Result<Option<Outcome>> {
        self.wait_for(limit)
    }

    fn let_go(self) {
        // Dropping it tells it to stop, and waits for nothing.
    }
}

impl Drop for RemoteRunning {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.cancel();
        }
    }
}
