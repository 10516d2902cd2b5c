//! What a launch may take, wherever it is made: in this process, in a worker, by another host.

use crate::error::{Error, Result};
use std::time::{Duration, Instant};

/// Time that a launch which was told to stop is given, unless it says otherwise.
pub const GRACE: Duration = Duration::from_millis(100);
/// Longest timeout, about 100 years: what the clocks hold without overflow.
pub const LONGEST_TIMEOUT: Duration = Duration::from_secs(100 * 365 * 86_400);
/// How long the GPU may take to begin a launch, unless it says otherwise.
pub(crate) const BEGIN_WITHIN: Duration = Duration::from_secs(60);

/// Who watches the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// The kernel itself, by `%globaltimer`, with the host behind it: a host that is stuck can't miss the deadline.
    #[default]
    Device,
    /// The host's timer thread alone, from the moment that it sees the kernel begin.
    Host,
}

/// What a launch may take. The same for launches in this process, in a worker, and by another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From the moment that the kernel begins; without one, and without a deadline, it runs until somebody cancels it.
    pub timeout: Option<Duration>,
    /// The moment at which it is stopped, begun or not.
    pub deadline: Option<Instant>,
    /// Iterations of a thread, where fuel is compiled in.
    pub fuel: Option<u64>,
    /// Cycles of a block, where a budget is compiled in.
    pub budget_cycles: Option<u64>,
    /// Whether to tell the most iterations that one thread ran, where fuel is compiled in.
    pub count_fuel: bool,
    /// Who watches the time.
    pub clock: Clock,
    /// Time that it is given to leave once it was told to; [`GRACE`] by default.
    pub grace: Duration,
    /// How long the GPU may take to begin it, counted from the launch; a minute by default. In a worker it is counted from when nothing is in
    /// front of it, and five seconds are the default.
    pub begin_within: Duration,
    /// Blocks, and threads of a block, in x, y, z, of what another host launches: its reports say then how many there were. Launches that are made
    /// here know their own.
    pub extents: Option<([u32; 3], [u32; 3])>,
}

impl Limits {
    /// No end but a cancel.
    pub const UNTIL_CANCELLED: Self = Self {
        timeout: None,
        deadline: None,
        fuel: None,
        budget_cycles: None,
        count_fuel: false,
        clock: Clock::Device,
        grace: GRACE,
        begin_within: BEGIN_WITHIN,
        extents: None,
    };

    /// A timeout and nothing else.
    #[must_use]
    pub const fn timeout(timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..Self::UNTIL_CANCELLED }
    }

    /// Whether nothing but the host ends the launch.
    pub(crate) fn is_unbounded(&self) -> bool {
        self.timeout.is_none() || self.clock == Clock::Host
    }

    /// Fails if they make no sense; `is_blocking` if each launch call waits for its kernel.
    pub(crate) fn check(&self, is_blocking: bool) -> Result<()> {
        match self.timeout {
            Some(timeout) if timeout.is_zero() => Err(Error::ZeroTimeout),
            Some(timeout) if timeout > LONGEST_TIMEOUT => Err(Error::TimeoutTooLong(timeout)),
            None if is_blocking => Err(Error::Environment(
                "CUDA_LAUNCH_BLOCKING=1 makes each launch wait for its kernel: give it a timeout, which the kernel watches itself".into(),
            )),
            _ => Ok(()),
        }
    }

    /// The same with waits that the clocks hold.
    pub(crate) fn held(self) -> Self {
        Self { grace: self.grace.min(LONGEST_TIMEOUT), begin_within: self.begin_within.min(LONGEST_TIMEOUT), ..self }
    }
}

/// The limits of a launch that is being prepared, and whether any were given: one without is refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given {
    pub(crate) limits: Limits,
    pub(crate) is_given: bool,
}

impl Given {
    pub(crate) const NONE: Self = Self { limits: Limits::UNTIL_CANCELLED, is_given: false };

    pub(crate) fn check(&self, kernel: &str, is_blocking: bool) -> Result<()> {
        if !self.is_given {
            return Err(Error::NoLimit { kernel: kernel.to_owned() });
        }
        self.limits.check(is_blocking)
    }
}

/// The methods that set the limits of what has a field `given: Given`.
macro_rules! limit_methods {
    () => {
        /// All limits at once.
        pub fn limits(&mut self, limits: $crate::limits::Limits) -> &mut Self {
            self.given = $crate::limits::Given { limits, is_given: true };
            self
        }

        /// Stops it this long after the kernel begins.
        pub fn timeout(&mut self, timeout: std::time::Duration) -> &mut Self {
            (self.given.limits.timeout, self.given.is_given) = (Some(timeout), true);
            self
        }

        /// Stops it at this moment, begun or not.
        pub fn deadline(&mut self, deadline: std::time::Instant) -> &mut Self {
            (self.given.limits.deadline, self.given.is_given) = (Some(deadline), true);
            self
        }

        /// Lets it run until somebody cancels it.
        pub fn until_cancelled(&mut self) -> &mut Self {
            self.given.is_given = true;
            self
        }

        /// Stops a thread after so many iterations, where fuel is compiled in (`--fuel`).
        pub fn fuel(&mut self, iterations: u64) -> &mut Self {
            self.given.limits.fuel = Some(iterations);
            self
        }

        /// Stops a block after so many cycles, where a budget is compiled in (`--budget-cycles`).
        pub fn budget_cycles(&mut self, cycles: u64) -> &mut Self {
            self.given.limits.budget_cycles = Some(cycles);
            self
        }

        /// Asks for the most iterations that one thread ran, where fuel is compiled in.
        pub fn count_fuel(&mut self) -> &mut Self {
            self.given.limits.count_fuel = true;
            self
        }

        /// Who watches the time: the device unless said otherwise.
        pub fn clock(&mut self, clock: $crate::limits::Clock) -> &mut Self {
            self.given.limits.clock = clock;
            self
        }

        /// How long it may take to leave once it was told to; [`GRACE`](crate::GRACE) unless said otherwise. In a worker its process is killed then.
        pub fn grace(&mut self, grace: std::time::Duration) -> &mut Self {
            self.given.limits.grace = grace;
            self
        }

        /// How long the GPU may take to begin it ([`Limits::begin_within`](crate::Limits::begin_within)).
        pub fn begin_within(&mut self, limit: std::time::Duration) -> &mut Self {
            self.given.limits.begin_within = limit;
            self
        }
    };
}
pub(crate) use limit_methods;
