//! Why a launch was stopped, and by what means.

use serde::Serialize;

/// Why a launch was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Somebody cancelled it, or dropped its handle.
    Cancelled,
    /// Its time was up.
    Deadline,
    /// A block used up its cycles.
    Budget,
    /// A thread used up its fuel.
    Fuel,
}

/// By what means a launch was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Its threads left at their polls. Nothing else is lost.
    Leave = 1,
    /// The watchdog kernel trapped: the process has lost its GPU state.
    Watchdog = 2,
    /// Its process was killed: the worker has lost its device memory.
    Worker = 3,
}
