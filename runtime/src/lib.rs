//! Launches CUDA kernels with a deadline, stops those that miss it, and keeps the context.
//!
//! The kernels are rewritten by `cuinstr` first. What turns "this kernel can be stopped" into "this call returns" is here:
//!
//! ```no_run
//! use cuinstr_runtime::{Module, Outcome, cudarc::driver::LaunchConfig};
//! use std::time::Duration;
//!
//! let context = cuinstr_runtime::open(0)?;
//! let stream = context.default_stream();
//! let mut data = stream.alloc_zeros::<f32>(1 << 20)?;
//!
//! let module = Module::load_file(&context, "collatz.inst.cubin")?;
//! let kernel = module.kernel("collatz")?;
//! let mut launch = kernel.on(&stream)?;
//! launch.arg(&mut data).timeout(Duration::from_secs(2));
//! // SAFETY: these are the kernel's parameters.
//! let mut running = unsafe { launch.start(LaunchConfig::for_num_elems(1 << 20)) }?;
//! match running.wait()? {
//!     Outcome::Completed { elapsed, .. } => println!("done in {elapsed:?}"),
//!     Outcome::Stopped { report, .. } => println!("{report}"),
//!     Outcome::Faulted { fault } => println!("it crashed: {fault}"),
//!     Outcome::Paused { .. } => unreachable!("nothing here pauses a launch"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The way of a launch: [`Module`] → [`Kernel`] → [`Launch`] → a `slot` (armed, in flight, judged) → [`Running`] → [`Outcome`].
//! What launches of a context share is its `context::state`; what all of a process share is its `timer`. Each folder imports from those
//! before it only: `driver`, `context`, `slot`, `module`, `launch`, then `guard`, `jit`, `snapshot` and `worker`.
//!
//! A host that loads and launches by its own means takes a [`guard`] instead of a [`Launch`].
//!
//! A kernel that ignores its polls, or that faults, costs its process the GPU. With feature `worker` that process is a
//! child, which may be lost. `worker::Worker` offers the same launches and outcomes over it, and has the next child
//! ready.

mod cause;
mod context;
mod driver;
mod error;
mod fault;
pub mod guard;
#[cfg(feature = "jit")]
pub mod jit;
mod launch;
mod limits;
mod module;
pub mod names;
mod outcome;
pub mod report;
mod slot;
#[cfg(all(feature = "snapshot", unix))]
pub mod snapshot;
pub mod sources;
mod thread;
mod timer;
#[cfg(all(feature = "worker", unix))]
pub mod worker;

pub use cause::{Cause, Tier};
pub use context::device::{device_count, open};
pub use cudarc;
pub use cuinstr_abi::{control, sites};
pub use cuinstr_image as image;
pub use driver::driver_version;
pub use error::{Error, Poison, Result};
pub use fault::DriverFault;
pub use launch::{Cancel, Canceller, InFlight, Launch, Pauser, Prepared, Reference, Remainder, Running, Stopping};
pub use limits::{Clock, GRACE, LONGEST_TIMEOUT, Limits};
pub use module::{Kernel, Module};
pub use outcome::{Completed, Outcome};
pub use report::Report;
pub use slot::FlagMemory;

/// A module of the crate, for an image that its build script made by `cuinstr::build::Build::compile_image`.
///
/// `include_module!(mod name);` declares module `name` with what `OUT_DIR/name.ptx`, `.cubin` or `.fatbin` holds: `IMAGE`, its bytes; `kernel`, a
/// constant for each kernel; and `Module`, which has a method for each and is a [`Module`] otherwise. A kernel that the source does not have is an error
/// of the compiler. Attributes, documentation and visibility go in front of `mod`.
///
/// ```ignore
/// cuinstr_runtime::include_module!(mod halve); // build.rs: `.compile_image(Image::Ptx, "halve")`
///
/// let kernel = halve::Module::load(&context)?.halve()?;
/// ```
#[macro_export]
macro_rules! include_module {
    ($(#[$attribute:meta])* $visibility:vis mod $name:ident) => {
        $(#[$attribute])*
        // A crate that takes the constants leaves the methods unused, and the other way round.
        #[allow(dead_code)]
        $visibility mod $name {
            use $crate as cuinstr_runtime;
            include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".rs"));
            include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".module.rs"));
        }
    };
}

/// The guide's example, compiled as it stands there.
#[cfg(all(doctest, feature = "jit"))]
#[doc = include_str!("../../docs/guide/rust.md")]
struct Guide;
