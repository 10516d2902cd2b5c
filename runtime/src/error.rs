//! What can go wrong that is not the kernel's own doing.

#[cfg(all(feature = "worker", unix))]
pub(crate) mod worker;

use crate::fault::DriverFault;
use crate::names::UnknownKernel;
use crate::outcome::{Completed, Outcome};
use std::fmt;
use std::time::Duration;

/// Which launch ended a context for good, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poison {
    /// Name of the kernel.
    pub kernel: String,
    /// What the driver answered.
    pub fault: DriverFault,
}

impl fmt::Display for Poison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "kernel `{}` ended this context: {}", self.kernel, self.fault)
    }
}

/// A fault of use or of the machine. What a kernel does, loops and crashes included, is an [`Outcome`](crate::Outcome).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no CUDA driver on this machine.
    #[error("there is no CUDA driver (libcuda.so.1) on this machine; install NVIDIA's driver, or run the container with --gpus all")]
    NoDriver,
    /// The driver knows no device of this number.
    #[error("there is no GPU {ordinal}: the driver knows {found}; see nvidia-smi and CUDA_VISIBLE_DEVICES")]
    NoDevice {
        /// The number that was asked for.
        ordinal: usize,
        /// How many there are.
        found: usize,
    },
    /// The driver is older than what this crate calls.
    #[error("the CUDA driver speaks CUDA {found}, but {needed} or later is needed; update the driver")]
    DriverTooOld {
        /// Version of CUDA that the driver brings.
        found: String,
        /// The oldest that works.
        needed: &'static str,
    },
    /// A file could not be read.
    #[error("{path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// The bytes are no module that can be loaded.
    #[error("this can't be loaded as a module: {0}")]
    NoModule(String),
    /// The driver can't load this module.
    #[error("the driver refuses this module: {fault}{}{log}", if log.is_empty() { "" } else { "\n" })]
    Module {
        /// What it answered.
        fault: DriverFault,
        /// What its compiler said.
        log: String,
    },
    /// The module has no control block.
    #[error(
        "this module can't be stopped: it holds no `cuinstr_control_v1`; rewrite its source with `cuinstr kernel.cu -o kernel.inst.cu` and compile that"
    )]
    NotInstrumented,
    /// The module's control block is of another version.
    #[error(
        "the module was made for version {module} of the control block, this runtime speaks version {runtime}; use the same release of cuinstr for both"
    )]
    OtherAbi {
        /// The module's version.
        module: u32,
        /// Ours.
        runtime: u32,
    },
    /// The module has no kernel of this name.
    #[error("{0}")]
    UnknownKernel(Box<UnknownKernel>),
    /// The arguments do not fit the kernel's parameters.
    #[error("kernel `{kernel}`: {what}")]
    Arguments {
        /// The kernel.
        kernel: String,
        /// What does not fit.
        what: String,
    },
    /// A launch was given no end.
    #[error("kernel `{kernel}` was given no limit: say .timeout(…), .deadline(…) or .until_cancelled() before .start(…)")]
    NoLimit {
        /// The kernel.
        kernel: String,
    },
    /// A timeout of zero.
    #[error("a timeout must be longer than zero")]
    ZeroTimeout,
    /// A timeout that the clocks can't hold.
    #[error("a timeout of {0:?} is longer than the clock holds; the longest is 100 years")]
    TimeoutTooLong(Duration),
    /// The stream is being captured into a graph.
    #[error(
        "the stream is being captured into a graph, where a launch has no deadline of its own; capture a bare launch: with Kernel::unguarded, or without a guard"
    )]
    Capturing,
    /// Another launch of the same module is in flight, and the module can't be loaded twice.
    #[error(
        "a launch of this module is in flight on another stream, and the module keeps state of its own (`{variable}`), so there can't be two of it; wait for it, or leave out .or_busy() to queue behind it"
    )]
    Busy {
        /// A variable that both would share.
        variable: String,
    },
    /// A call that waits for every kernel of the context might wait for ever.
    #[error(
        "loading a module waits for every kernel of its context, and {launches} launches in flight have no deadline that their kernel watches itself; load first, or wait for them"
    )]
    InFlight {
        /// How many.
        launches: usize,
    },
    /// A launch that can't be paused, or was not made so that it can.
    #[error("kernel `{kernel}` can't be paused: {why}")]
    NotPausable {
        /// The kernel.
        kernel: String,
        /// What keeps it from that, or what to do.
        why: &'static str,
    },
    /// A launch that did not pause within the time it was given.
    #[error(
        "kernel `{kernel}` has not paused {after:?} after it was asked: blocks that had begun still run; a block runs to its end, and those of a persistent kernel end with it"
    )]
    NotPaused {
        /// The kernel.
        kernel: String,
        /// Time since it was asked.
        after: Duration,
    },
    /// The context is lost.
    #[error("{0}; make a new process, or use a worker")]
    Poisoned(Poison),
    /// The kernel did not stop within its grace time and can't be waited for.
    #[error(
        "kernel `{kernel}` still runs {after:?} after it was told to stop: it is in a loop without a poll or waits where no poll reaches; only a watchdog or the end of the process stops it"
    )]
    Undrained {
        /// The kernel.
        kernel: String,
        /// Time since it was told to stop.
        after: Duration,
    },
    /// The launch was not begun by the GPU.
    #[error("kernel `{kernel}` has not begun {after:?} after its launch: its stream waits for other work")]
    NotBegun {
        /// The kernel.
        kernel: String,
        /// Time since its launch.
        after: Duration,
    },
    /// The calling thread has no current context.
    #[error("this thread has no current CUDA context: make one, or make it current (cuCtxSetCurrent), before the call")]
    NoContext,
    /// A handle that leads nowhere, or to something else than it should.
    #[error("{0}")]
    BadHandle(String),
    /// A handle of another context than the one it was to be used in.
    #[error("{what} is of another context than {of}; make that context current, and use its own handles")]
    OtherContext {
        /// What is.
        what: &'static str,
        /// What it was used with.
        of: &'static str,
    },
    /// The context did not answer: some calls of the driver wait for every kernel of it.
    #[error(
        "the context does not answer after {after:?}: the first attachment waits for its running kernels; attach before anything that may hang is launched"
    )]
    ContextBusy {
        /// Time since the call.
        after: Duration,
    },
    /// The module was armed before, and what was to be launched then has not come.
    #[error(
        "this module is armed for another launch, which has not come: launch it and say so (launched), or drop its guard; one control block serves one launch at a time"
    )]
    AlreadyArmed,
    /// A guard's calls came in an order that makes no sense.
    #[error("{0}")]
    Order(&'static str),
    /// What a guard was to watch never began.
    #[error(
        "no rewritten kernel of the guarded module ran in the guarded stream between arming and `launched`: launch one there, of this module, in between"
    )]
    NotLaunched,
    /// The device or the host is out of memory.
    #[error("out of memory: {0}")]
    OutOfMemory(DriverFault),
    /// A worker process could not be started, or was lost.
    #[cfg(all(feature = "worker", unix))]
    #[error(transparent)]
    Worker(worker::Fault),
    /// A launch that did not do all its work ([`Outcome::into_result`](crate::Outcome::into_result)).
    #[error("{0}")]
    Unfinished(Box<Outcome>),
    /// Something that this machine or the program's environment should do and does not.
    #[error("{0}")]
    Environment(String),
    /// A defect of this crate.
    #[error("{0}; this is a defect of cuinstr, please report it")]
    Bug(String),
    /// Any other answer of the driver.
    #[error(transparent)]
    Driver(DriverFault),
}

impl Outcome {
    /// What a launch that did all its work has to say; any other one is an error, so that `?` lets no stop pass for a success.
    ///
    /// # Errors
    /// [`Error::Unfinished`] with the outcome, for a launch that was stopped or crashed.
    pub fn into_result(self) -> Result<Completed> {
        match self {
            Self::Completed { elapsed, late, fuel_used } => Ok(Completed { elapsed, late, fuel_used }),
            other => Err(Error::Unfinished(Box::new(other))),
        }
    }
}

impl From<DriverFault> for Error {
    fn from(fault: DriverFault) -> Self {
        match fault.code {
            2 => Self::OutOfMemory(fault),
            35 | 36 => Self::DriverTooOld { found: "an older version".into(), needed: "12.0" },
            _ => Self::Driver(fault),
        }
    }
}

/// What this crate's functions answer.
pub type Result<T> = std::result::Result<T, Error>;
