//! Kernels in a process of their own, so that nothing a kernel does costs this one anything.
//!
//! A [`Worker`] is a child process with its own CUDA context, and spares behind it whose contexts are ready. What a
//! poll can stop is stopped as anywhere else, and the worker lives on. A kernel that ignores its polls, faults, or
//! takes its process down costs that process. The process is killed, and the next spare takes over within milliseconds.
//! A new process would need 0.4 s. Modules are loaded there again, and buffers come back as their [`Restore`] says. The
//! outcome tells: `Outcome::Stopped` with `Tier::Worker`, or `Outcome::Faulted`.
//!
//! ```no_run
//! use cuinstr_runtime::cudarc::driver::LaunchConfig;
//! use cuinstr_runtime::worker::{self, Restore, Worker};
//! use std::time::Duration;
//!
//! fn main() -> Result<(), cuinstr_runtime::Error> {
//!     // In the worker process this never returns.
//!     worker::serve_if_asked();
//!
//!     let worker = Worker::builder().spares(2).start()?;
//!     let image = std::fs::read("candidate.inst.cubin").expect("a module");
//!     let kernel = worker.load(&image)?.kernel("candidate")?;
//!     let input = worker.upload(&[1.0_f32; 1024], Restore::Copy)?;
//!     let output = worker.zeros(4096, Restore::Blank)?;
//!
//!     let mut launch = kernel.launch();
//!     launch.arg(&input).arg(&output).arg(1024_u32).timeout(Duration::from_secs(1));
//!     let outcome = launch.start(LaunchConfig::for_num_elems(1024))?.wait()?;
//!     if outcome.is_completed() {
//!         println!("{:?}", output.read::<f32>()?);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! **Whose program.** The child runs this program again, so `main` calls [`serve_if_asked`]. [`Builder::program`] may
//! name another program, such as `cuinstr-worker` of this crate. The child speaks with its parent through its standard
//! input. Its standard output and error are the parent's, so that kernels may print.
//!
//! **No wait is without a bound.** A worker that does not answer in time is killed, and the waiting call says so. A
//! worker ends with its parent. Dropping a handle waits for nothing.
//!
//! **What it costs.** A launch makes a round trip between two processes, which takes tens of microseconds. Buffers go
//! through a pipe, at a few GB a second. Each process has a context, some hundred MB on host and device. If a killed
//! process had a kernel on the GPU, the driver needs a tenth of a second to end that kernel. Until then the spare's
//! kernels share the GPU with it. All clients of one MPS server go down together.
//!
//! The way of a call: [`Worker`] (`handle`) → [`RemoteModule`], [`RemoteBuffer`] (`remote`) → [`RemoteLaunch`] (`launch`) → `process` (asked
//! and listened to, by the messages of `wire`) ⇄ `serve` in the child; `spares` has the next process, `reaper` the last one.

mod argument;
mod handle;
mod launch;
mod pending;
mod process;
mod reaper;
mod remote;
mod serve;
mod spares;
mod value;
mod wire;
mod words;

pub use crate::error::worker::Fault;
pub use argument::Argument;
pub use handle::{Builder, Worker};
pub use launch::{RemoteCanceller, RemoteLaunch, RemoteRunning};
pub use remote::{RemoteBuffer, RemoteKernel, RemoteModule, Restore};
pub use serve::serve_if_asked;
pub use value::Element;
