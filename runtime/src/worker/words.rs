//! Outcomes and errors in a form that travels, and back.

use crate::cause::{Cause, Tier};
use crate::error::worker::Fault;
use crate::error::{Error, Poison};
use crate::fault::DriverFault;
use crate::names::UnknownKernel;
use crate::outcome::Outcome;
use crate::report::Report;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Most names of kernels that travel.
const NAMES: usize = 64;
/// Longest text that travels, in bytes.
const TEXT: usize = 64 << 10;

/// How a launch ended. Durations are in nanoseconds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum End {
    Completed {
        elapsed: u64,
        late: bool,
        fuel_used: Option<u64>,
    },
    Stopped {
        why: Reason,
        latency: u64,
        report: Report,
    },
    Faulted {
        fault: Fallen,
    },
    /// It did not leave; `since` it was told to.
    Undrained {
        why: Reason,
        since: u64,
        report: Report,
    },
    /// The wait for it failed.
    Failed {
        refusal: Refusal,
    },
}

/// [`Cause`].
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reason {
    Cancelled,
    Deadline,
    Budget,
    Fuel,
}

/// [`DriverFault`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fallen {
    call: String,
    code: u32,
    name: String,
}

/// [`Error`], as far as a worker may answer with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Refusal {
    NoDriver,
    NoDevice { ordinal: usize, found: usize },
    DriverTooOld { found: String, needed: String },
    Module { fault: Fallen, log: String },
    NoModule(String),
    NotInstrumented,
    OtherAbi { module: u32, runtime: u32 },
    UnknownKernel { asked: String, several: bool, nearest: Option<String>, names: Vec<String> },
    Arguments { kernel: String, what: String },
    Poisoned { kernel: String, fault: Fallen },
    NotBegun { kernel: String, after: u64 },
    Driver(Fallen),
    Text(String),
}

/// A duration in nanoseconds; what takes longer than five centuries is cut.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl From<Cause> for Reason {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Cancelled => Self::Cancelled,
            Cause::Deadline => Self::Deadline,
            Cause::Budget => Self::Budget,
            Cause::Fuel => Self::Fuel,
        }
    }
}

impl From<Reason> for Cause {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Cancelled => Self::Cancelled,
            Reason::Deadline => Self::Deadline,
            Reason::Budget => Self::Budget,
            Reason::Fuel => Self::Fuel,
        }
    }
}

impl From<Result<Outcome, Error>> for End {
    fn from(outcome: Result<Outcome, Error>) -> Self {
        match outcome {
            Ok(Outcome::Completed { elapsed, late, fuel_used }) => Self::Completed { elapsed: nanos(elapsed), late, fuel_used },
            Ok(Outcome::Stopped { why, latency, report, .. }) => {
                Self::Stopped { why: why.into(), latency: nanos(latency), report: *report }
            }
            Ok(Outcome::Faulted { fault }) => Self::Faulted { fault: fault.into() },
            // A worker's launches are not pausable.
            Ok(Outcome::Paused { .. }) => Self::Failed { refusal: Error::Bug("a launch in a worker was paused".into()).into() },
            Err(error) => Self::Failed { refusal: error.into() },
        }
    }
}

impl End {
    /// The outcome for the waiting thread. What did not leave is stopped by the end of its process, after `extra`.
    pub(super) fn outcome(self, extra: Duration) -> Result<Outcome, Error> {
        match self {
            Self::Completed { elapsed, late, fuel_used } => {
                Ok(Outcome::Completed { elapsed: Duration::from_nanos(elapsed), late, fuel_used })
            }
            Self::Stopped { why, latency, report } => {
                let (latency, report) = (Duration::from_nanos(latency), Box::new(report));
                Ok(Outcome::Stopped { why: why.into(), tier: Tier::Leave, latency, report })
            }
            Self::Faulted { fault } => Ok(Outcome::Faulted { fault: fault.into() }),
            Self::Undrained { why, since, report } => {
                let latency = Duration::from_nanos(since).saturating_add(extra);
                Ok(Outcome::Stopped { why: why.into(), tier: Tier::Worker, latency, report: Box::new(report) })
            }
            Self::Failed { refusal } => Err(refusal.into()),
        }
    }

    /// Why the worker is of no further use, if it is not.
    pub(super) fn ruins(&self, kernel: &str) -> Option<String> {
        match self {
            Self::Completed { .. } | Self::Stopped { .. } => None,
            Self::Faulted { fault } => Some(format!("kernel `{kernel}` ended its context: {}", DriverFault::from(fault.clone()))),
            Self::Undrained { .. } => Some(format!("it was killed to stop kernel `{kernel}`")),
            Self::Failed { refusal } => Some(format!("kernel `{kernel}` could not be waited for: {}", Error::from(refusal.clone()))),
        }
    }
}

impl From<DriverFault> for Fallen {
    fn from(fault: DriverFault) -> Self {
        Self { call: fault.call.to_owned(), code: fault.code, name: fault.name }
    }
}

impl From<Fallen> for DriverFault {
    fn from(fallen: Fallen) -> Self {
        Self { call: kept(fallen.call), code: fallen.code, name: fallen.name }
    }
}

/// The name of one of the driver's calls, of which there are so many that fit this list.
fn kept(name: String) -> &'static str {
    static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.iter().find(|known| **known == name) {
        return known;
    }
    // Who says more names than the driver has calls is no worker of ours.
    if names.len() >= 256 || name.len() > 64 {
        return "the driver";
    }
    let name: &'static str = Box::leak(name.into_boxed_str());
    names.push(name);
    name
}

/// A text that is not too long to travel.
fn cut(mut text: String) -> String {
    if text.len() > TEXT {
        let end = (0..=TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(" …");
    }
    text
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::NoDriver => Self::NoDriver,
            Error::NoDevice { ordinal, found } => Self::NoDevice { ordinal, found },
            Error::DriverTooOld { found, needed } => Self::DriverTooOld { found, needed: needed.to_owned() },
            Error::Module { fault, log } => Self::Module { fault: fault.into(), log: cut(log) },
            Error::NoModule(why) => Self::NoModule(cut(why)),
            Error::NotInstrumented => Self::NotInstrumented,
            Error::OtherAbi { module, runtime } => Self::OtherAbi { module, runtime },
            Error::UnknownKernel(unknown) => {
                let UnknownKernel { asked, several, nearest, mut names } = *unknown;
                names.truncate(NAMES);
                Self::UnknownKernel { asked: cut(asked), several, nearest: nearest.map(cut), names: names.into_iter().map(cut).collect() }
            }
            Error::Arguments { kernel, what } => Self::Arguments { kernel: cut(kernel), what: cut(what) },
            Error::Poisoned(Poison { kernel, fault }) => Self::Poisoned { kernel: cut(kernel), fault: fault.into() },
            Error::NotBegun { kernel, after } => Self::NotBegun { kernel: cut(kernel), after: nanos(after) },
            Error::Driver(fault) | Error::OutOfMemory(fault) => Self::Driver(fault.into()),
            other => Self::Text(cut(other.to_string())),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoDriver => Self::NoDriver,
            Refusal::NoDevice { ordinal, found } => Self::NoDevice { ordinal, found },
            Refusal::DriverTooOld { found, needed } => Self::DriverTooOld { found, needed: kept(needed) },
            Refusal::Module { fault, log } => Self::Module { fault: fault.into(), log },
            Refusal::NoModule(why) => Self::NoModule(why),
            Refusal::NotInstrumented => Self::NotInstrumented,
            Refusal::OtherAbi { module, runtime } => Self::OtherAbi { module, runtime },
            Refusal::UnknownKernel { asked, several, nearest, names } => {
                Self::UnknownKernel(Box::new(UnknownKernel { asked, several, nearest, names }))
            }
            Refusal::Arguments { kernel, what } => Self::Arguments { kernel, what },
            Refusal::Poisoned { kernel, fault } => Self::Poisoned(Poison { kernel, fault: fault.into() }),
            Refusal::NotBegun { kernel, after } => Self::NotBegun { kernel, after: Duration::from_nanos(after) },
            Refusal::Driver(fault) => DriverFault::from(fault).into(),
            Refusal::Text(text) => Self::Environment(text),
        }
    }
}

impl Refusal {
    /// What ended the worker's context, if that is why.
    pub(super) fn sticky(&self) -> Option<DriverFault> {
        match self {
            Self::Driver(fault) | Self::Module { fault, .. } | Self::Poisoned { fault, .. } => {
                Some(DriverFault::from(fault.clone())).filter(DriverFault::is_sticky)
            }
            _ => None,
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::Worker(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_travel_and_come_back_as_they_were() {
        let fault = |code| DriverFault { call: "cuMemAlloc", code, name: "a name".into() };
        let unknown = UnknownKernel { asked: "a".into(), several: false, nearest: Some("b".into()), names: vec!["b".into()] };
        let errors = [
            Error::NoDriver,
            Error::NoDevice { ordinal: 3, found: 1 },
            Error::DriverTooOld { found: "11.0".into(), needed: "12.4" },
            Error::Module { fault: fault(218), log: "line 3".into() },
            Error::NoModule("a text".into()),
            Error::NotInstrumented,
            Error::OtherAbi { module: 2, runtime: 1 },
            Error::UnknownKernel(Box::new(unknown)),
            Error::Arguments { kernel: "k".into(), what: "too few".into() },
            Error::Poisoned(Poison { kernel: "k".into(), fault: fault(700) }),
            Error::NotBegun { kernel: "k".into(), after: Duration::from_millis(5) },
            Error::OutOfMemory(fault(2)),
            Error::Driver(fault(719)),
        ];
        for error in errors {
            let text = serde_json::to_string(&Refusal::from(error.clone())).expect("it can be written");
            let back: Refusal = serde_json::from_str(&text).expect("it can be read");
            assert_eq!(Error::from(back), error);
        }
        let other = Error::from(Refusal::from(Error::Capturing));
        assert_eq!(other.to_string(), Error::Capturing.to_string());
    }

    #[test]
    fn only_what_ends_a_context_is_sticky() {
        let fault = |code| Error::from(DriverFault { call: "cuCtxSynchronize", code, name: String::new() });
        assert!(Refusal::from(fault(700)).sticky().is_some());
        assert!(Refusal::from(fault(2)).sticky().is_none());
        assert!(Refusal::from(Error::NotInstrumented).sticky().is_none());
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        let long = cut("ä".repeat(TEXT));
        assert!(long.len() < TEXT + 8 && long.ends_with("ä …"));
    }
}
