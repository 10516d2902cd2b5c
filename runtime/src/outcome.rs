//! How a launch ended.

use crate::cause::{Cause, Tier};
use crate::fault::DriverFault;
use crate::report::Report;
use serde::Serialize;
use serde::ser::{SerializeStruct as _, Serializer};
use std::fmt;
use std::time::Duration;

/// How a launch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a launch that was stopped has not done all its work"]
pub enum Outcome {
    /// Every thread did all its work.
    Completed {
        /// Time that the kernel took, by the device's clock if the launch was `timed()`. Else an upper bound by the
        /// host's clock: from the launch, or the end of the one in front of it, until the end was seen.
        elapsed: Duration,
        /// A reason to stop arose, but by then no thread had any work left that it could have been kept from.
        late: bool,
        /// Most iterations that one thread ran, if `count_fuel()` asked for it and fuel is compiled in.
        fuel_used: Option<u64>,
    },
    /// Threads left before their work was done. What the kernel wrote is incomplete; context, memory and streams are as they were.
    Stopped {
        /// The reason.
        why: Cause,
        /// By what means.
        tier: Tier,
        /// From the moment that the reason arose until the host saw the stream drained.
        latency: Duration,
        /// Where it was stopped.
        report: Box<Report>,
    },
    /// Blocks declined to run, as somebody had asked. The launch is not over: it goes on when it is resumed ([`Running::resume`](crate::Running::resume)). What
    /// is queued behind it waits.
    Paused {
        /// Blocks that have run.
        done: u64,
        /// Blocks that have not.
        left: u64,
        /// From the request until the host saw that the launch had drained.
        latency: Duration,
    },
    /// The kernel did something that ended its context: an illegal address, a failed assertion, a trap of its own.
    Faulted {
        /// What the driver answered.
        fault: DriverFault,
    },
}

/// A launch of which every thread did all its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completed {
    /// Time that the kernel took ([`Outcome::Completed`]).
    pub elapsed: Duration,
    /// A reason to stop arose too late to keep any thread from its work.
    pub late: bool,
    /// Most iterations that one thread ran, if that was asked for.
    pub fuel_used: Option<u64>,
}

impl Outcome {
    /// Whether the kernel did all its work.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        matches!(self, Self::Completed { .. })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed { elapsed, .. } => write!(formatter, "completed in {elapsed:?}"),
            Self::Stopped { report, .. } => report.fmt(formatter),
            Self::Paused { done, left, .. } => write!(formatter, "paused: {left} of {} blocks are left to run", done + left),
            Self::Faulted { fault } => write!(formatter, "the kernel crashed: {fault}"),
        }
    }
}

/// An object whose `outcome` is `completed`, `stopped`, `paused` or `faulted`; durations are in nanoseconds.
impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let ns = |duration: &Duration| duration.as_nanos() as u64;
        let mut object = serializer.serialize_struct("Outcome", 5)?;
        match self {
            Self::Completed { elapsed, late, fuel_used } => {
                object.serialize_field("outcome", "completed")?;
                object.serialize_field("elapsed_ns", &ns(elapsed))?;
                object.serialize_field("late", late)?;
                object.serialize_field("fuel_used", fuel_used)?;
            }
            Self::Stopped { why, tier, latency, report } => {
                object.serialize_field("outcome", "stopped")?;
                object.serialize_field("why", why)?;
                object.serialize_field("tier", tier)?;
                object.serialize_field("latency_ns", &ns(latency))?;
                object.serialize_field("report", report)?;
            }
            Self::Paused { done, left, latency } => {
                object.serialize_field("outcome", "paused")?;
                object.serialize_field("done", done)?;
                object.serialize_field("left", left)?;
                object.serialize_field("latency_ns", &ns(latency))?;
            }
            Self::Faulted { fault } => {
                object.serialize_field("outcome", "faulted")?;
                object.serialize_field("fault", fault)?;
            }
        }
        object.end()
    }
}
