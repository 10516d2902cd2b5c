//! A launch in flight, as its owner and those who may cancel it see it.

use super::again::Again;
use crate::error::{Error, Result};
use crate::outcome::Outcome;
use crate::slot::LaunchSlot;
use crate::slot::pool::LaunchContext;
use cudarc::driver::CudaStream;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A launch in flight.
///
/// Dropping it cancels the launch and waits at most its grace time. A launch that does not leave by then keeps its module and its memory until
/// it does, if ever: they are leaked on purpose rather than waited for.
///
/// As a future it is ready when the outcome is known, or with the error that [`Running::wait`] would give. It needs no executor of any kind.
/// Awaiting [`Running::stop`] instead of dropping it keeps no executor waiting.
#[derive(Debug)]
#[must_use = "dropping it cancels the launch; call `wait`"]
pub struct Running {
    launch_context: Arc<LaunchContext>,
    pub(super) slot: Arc<LaunchSlot>,
    pub(super) number: u32,
    grace: Duration,
    is_over: bool,
    pub(super) again: Option<Box<Again>>,
}

/// Cancels a launch, from any thread and as often as you like. Once the launch is over it does nothing: it never hits a later one.
#[derive(Debug, Clone)]
pub struct Canceller {
    slot: Arc<LaunchSlot>,
    number: u32,
}

impl Canceller {
    /// Tells the launch to stop, and returns at once.
    ///
    /// # Errors
    /// If the driver can't write the flag.
    pub fn cancel(&self) -> Result<()> {
        self.slot.cancel(self.number)
    }

    pub(crate) fn slot(&self) -> &LaunchSlot {
        &self.slot
    }
}

/// Asks a launch to pause, from any thread and as often as you like. Once the launch is over it does nothing: it never hits a later one.
#[derive(Debug, Clone)]
pub struct Pauser {
    slot: Arc<LaunchSlot>,
    number: u32,
}

impl Pauser {
    /// Asks the launch to pause, and returns at once.
    ///
    /// # Errors
    /// [`Error::NotPausable`] if the launch was not made so that it can be paused, or if the driver can't write the words.
    pub fn pause(&self) -> Result<()> {
        self.slot.ask_to_pause(self.number)
    }
}

impl Running {
    pub(crate) fn new(launch_context: Arc<LaunchContext>, slot: Arc<LaunchSlot>, number: u32, grace: Duration) -> Self {
        Self { launch_context, slot, number, grace, is_over: false, again: None }
    }

    /// What it is in the air, and its number.
    pub(crate) fn slot(&self) -> (&Arc<LaunchSlot>, u32) {
        (&self.slot, self.number)
    }

    /// The same of a launch that can be paused.
    pub(crate) fn repeatable(mut self, again: Again) -> Self {
        self.again = Some(Box::new(again));
        self
    }

    /// Pauses a launch that was made [`pausable`](crate::Prepared::pausable): blocks that have not begun decline to run, those that have run to their ends.
    /// Answers [`Outcome::Paused`] when that is so, or the outcome if the launch is over by then. A launch that is paused stays so.
    ///
    /// # Errors
    /// [`Error::NotPausable`] if the launch was not made pausable. [`Error::NotPaused`] if blocks still run after `within`: the request stands, and
    /// [`Running::wait`] tells when it is met. As [`Running::wait`] otherwise.
    pub fn pause(&mut self, within: Duration) -> Result<Outcome> {
        let since = Instant::now();
        self.pauser().pause()?;
        self.wait_for(within)?.ok_or_else(|| {
            let kernel = self.again.as_ref().map_or_else(String::new, |again| again.kernel().to_owned());
            Error::NotPaused { kernel, after: since.elapsed() }
        })
    }

    /// Lets a paused launch go on: the kernel is launched again for the blocks that are left, with the same arguments, and its timeout goes on where it stood.
    /// In the launch's own stream the blocks run past what is queued there, which waits for them; in another stream they run behind what is there, and
    /// both streams wait.
    ///
    /// # Errors
    /// If the launch is not paused, the stream is of another context or being captured, or the driver fails: then the launch is paused as before. Where the
    /// next part was launched and its end can't be marked, the launch is cancelled ([`Running::is_paused`] tells).
    pub fn resume(&mut self, stream: &Arc<CudaStream>) -> Result<()> {
        match &self.again {
            Some(again) => again.resume(&self.slot, self.number, stream),
            None => Err(Error::Order("only a launch that is paused can be resumed")),
        }
    }

    /// Lets the streams of a paused launch go on. What is queued behind it runs now, on the results of the blocks that are done.
    ///
    /// A checkpoint of the process needs this: the driver waits for all work that streams hold. The next part of the launch runs behind what is in its
    /// stream then. What is queued behind that part waits for it.
    ///
    /// # Errors
    /// If the launch is not paused, or the driver fails.
    pub fn let_streams_go(&mut self) -> Result<()> {
        match &self.again {
            Some(again) => again.let_streams_go(&self.slot, self.number),
            None => Err(Error::Order("only the streams of a launch that is paused can be let go")),
        }
    }

    /// Takes back a request to pause that is not met in time. Blocks that have declined are launched beside those that
    /// still run, which may be waiting for them. Nothing happens if the launch is paused or over by then. A block that
    /// begins meanwhile may still decline. Then the launch is paused when all others have run.
    ///
    /// # Errors
    /// [`Error::Busy`] if another launch of the module was queued since. If the driver fails, the request stands. But where blocks could not be launched that
    /// may have been passed over, the launch is cancelled.
    pub fn go_on(&mut self) -> Result<()> {
        match &self.again {
            Some(again) => again.go_on(&self.slot, self.number),
            None => Err(Error::Order("only a launch that was asked to pause can go on")),
        }
    }

    /// Whether the launch is paused.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.slot.is_paused(self.number)
    }

    /// A handle that only asks for a pause, for other threads: [`Running::wait`] then answers [`Outcome::Paused`].
    #[must_use]
    pub fn pauser(&self) -> Pauser {
        Pauser { slot: Arc::clone(&self.slot), number: self.number }
    }

    /// Waits no longer than this when it is dropped.
    pub(crate) fn drop_within(&mut self, limit: Duration) {
        self.grace = self.grace.min(limit);
    }

    /// Nothing was launched after all.
    pub(crate) fn forget(mut self) {
        self.is_over = true;
    }

    /// What was launched, if anything, can't be watched. Its room is not used again: a kernel may still write there.
    pub(crate) fn strand(self) {
        self.slot.abandon();
        std::mem::forget(Arc::clone(&self.slot));
        self.forget();
    }

    /// Tells the launch to stop, and returns at once.
    ///
    /// # Errors
    /// If the driver can't write the flag.
    pub fn cancel(&self) -> Result<()> {
        self.slot.cancel(self.number)
    }

    /// Tells the launch to stop. The answer is ready when it has; dropping it before waits for nothing.
    pub fn stop(self) -> Stopping<Self> {
        InFlight::stop(self)
    }

    /// A handle that only cancels, for other threads and for Ctrl-C.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        Canceller { slot: Arc::clone(&self.slot), number: self.number }
    }

    /// Waits for the outcome. The wait has a bound: the time that the GPU takes to begin the launch (a minute, unless the launch says
    /// otherwise), its timeout, its grace. Only a launch `until_cancelled` waits until it is cancelled.
    ///
    /// # Errors
    /// [`Error::Undrained`] if it does not leave and [`Error::NotBegun`] if it does not begin: the launch is then still in flight and can
    /// be waited for again. [`Error::Poisoned`] if another launch ended the context.
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
    /// As [`Running::wait`].
    pub fn wait_for(&mut self, limit: Duration) -> Result<Option<Outcome>> {
        self.wait_until(Instant::now().checked_add(limit))
    }

    /// The outcome, if it is known by now.
    ///
    /// # Errors
    /// As [`Running::wait`].
    pub fn poll(&mut self) -> Result<Option<Outcome>> {
        self.wait_for(Duration::ZERO)
    }

    /// Why a launch that does not leave was told to stop, and how far that got; `None` if it has left by now.
    #[cfg(all(feature = "worker", unix))]
    pub(crate) fn so_far(&self) -> Option<(crate::cause::Cause, Box<crate::report::Report>)> {
        let _ = self.launch_context.bind();
        self.slot.so_far(self.number)
    }

    fn wait_until(&mut self, until: Option<Instant>) -> Result<Option<Outcome>> {
        if self.is_over {
            return Err(Error::Order("the outcome of this launch was taken before"));
        }
        // On a lost context this fails; what is known of the launch says more.
        let _ = self.launch_context.bind();
        match self.slot.wait(self.number, until) {
            None => Ok(None),
            Some(Err(error @ (Error::Undrained { .. } | Error::NotBegun { .. }))) => Err(error),
            Some(outcome) => {
                self.is_over = !matches!(outcome, Ok(Outcome::Paused { .. }));
                outcome.map(Some)
            }
        }
    }
}

/// A launch in flight, in this process or in a worker, for code that runs over both.
///
/// As a future it is ready when the outcome is known, or when waiting on makes no sense: [`Error::Undrained`], [`Error::NotBegun`].
pub trait InFlight: Future<Output = Result<Outcome>> + Unpin {
    /// A handle that only cancels.
    type Canceller: Cancel;

    /// A handle that only cancels, for other threads and for Ctrl-C.
    fn canceller(&self) -> Self::Canceller;

    /// Waits for the outcome.
    ///
    /// # Errors
    /// As [`Running::wait`], or [`RemoteRunning::wait`](crate::worker::RemoteRunning::wait) in a worker.
    fn wait(&mut self) -> Result<Outcome>;

    /// Waits for the outcome, but not longer than `limit`; `None` if it is not known by then.
    ///
    /// # Errors
    /// As [`InFlight::wait`].
    fn wait_for(&mut self, limit: Duration) -> Result<Option<Outcome>>;

    /// Tells the launch to stop, and waits for nothing: what comes of it is for the timer to see.
    fn let_go(self);

    /// Tells the launch to stop. The answer is ready when it has. Dropping it before waits for nothing, where dropping a launch in flight waits for its
    /// grace time.
    fn stop(self) -> Stopping<Self>
    where
        Self: Sized,
    {
        // If it can't be told now the timer tries again.
        let _ = self.canceller().cancel();
        Stopping(Some(self))
    }
}

/// Cancels a launch, in this process or in a worker.
pub trait Cancel: Clone + Send + Sync {
    /// Tells the launch to stop, and returns at once.
    ///
    /// # Errors
    /// If the driver can't write the flag, or the worker does not listen, which ends it.
    fn cancel(&self) -> Result<()>;
}

impl Cancel for Canceller {
    fn cancel(&self) -> Result<()> {
        self.cancel()
    }
}

impl InFlight for Running {
    type Canceller = Canceller;

    fn canceller(&self) -> Canceller {
        self.canceller()
    }

    fn wait(&mut self) -> Result<Outcome> {
        self.wait()
    }

    fn wait_for(&mut self, limit: Duration) -> Result<Option<Outcome>> {
        self.wait_for(limit)
    }

    fn let_go(self) {
        let _ = self.cancel();
        self.forget();
    }
}

/// A launch that was told to stop ([`InFlight::stop`]).
#[derive(Debug)]
#[must_use = "what came of it is told when it is awaited"]
pub struct Stopping<R: InFlight>(Option<R>);

impl<R: InFlight> Stopping<R> {
    fn let_go(&mut self) {
        if let Some(running) = self.0.take() {
            running.let_go();
        }
    }
}

impl<R: InFlight> Future for Stopping<R> {
    type Output = Result<Outcome>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(running) = &mut self.0 else {
            return Poll::Ready(Err(Error::Order("the outcome of this launch was taken before")));
        };
        let answer = Pin::new(running).poll(context);
        if answer.is_ready() {
            self.let_go();
        }
        answer
    }
}

impl<R: InFlight> Drop for Stopping<R> {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl Future for Running {
    type Output = Result<Outcome>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match Running::poll(&mut self) {
                Ok(Some(outcome)) => return Poll::Ready(Ok(outcome)),
                Err(error) => return Poll::Ready(Err(error)),
                Ok(None) => {}
            }
            if let Some(error) = self.slot.overdue(self.number) {
                return Poll::Ready(Err(error));
            }
            match self.slot.register(self.number, context.waker()) {
                Ok(true) => return Poll::Pending,
                // The timer has been here in between.
                Ok(false) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let _ = self.cancel();
        // What comes of it is for the timer to see.
        let _ = self.wait_for(self.grace);
    }
}
