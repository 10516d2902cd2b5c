//! Suspends and resumes the CUDA state of processes, by their pid.
//!
//! The driver (570 and later) copies a process's GPU memory into host memory and frees the GPU, and later brings everything back to the same
//! addresses. The target needs no change and no code of ours.
//!
//! ```no_run
//! use cuinstr_checkpoint::{Helper, Mapping, Process};
//! use std::time::Duration;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // In the helper process this never returns.
//!     cuinstr_checkpoint::serve_if_asked();
//!
//!     let process = Process::running(Helper::new(), 4711)?;
//!     let checkpointed = process.lock(Some(Duration::from_secs(10)))?.checkpoint()?;
//!     // The GPU is free here.
//!     let _running = checkpointed.restore(&Mapping::none())?.unlock()?;
//!     Ok(())
//! }
//! ```
//!
//! **States are types.** [`Process`] has [`lock`](Process::lock) only where the process runs, [`checkpoint`](Process::checkpoint) only where it is locked, and so on.
//! [`Handle`] has the same calls for interfaces that can't say this, and [`Group`] does whole suspends and resumes, with rollback, also for process trees.
//!
//! **A driver call may block.** So each is made by a [`Helper`], a child process with a deadline: this program again, which is why `main` calls
//! [`serve_if_asked`], or another that calls it, such as `cuinstr-checkpoint`. That is also why a process may name its own pid.
//! A helper that loses its parent between a lock and what should follow unlocks the target.
//!
//! **What can't be checkpointed** is refused by name before the target is touched: MIG, MPS, aarch64. Managed memory, and IPC before driver 610, only
//! the driver sees, after the lock; then the target is unlocked again.

mod driver;
pub mod dump;
mod error;
mod gpu;
mod group;
mod handle;
mod helper;
mod process;
mod program;
mod record;
mod room;
mod serve;
mod state;
pub mod system;
mod wire;

pub use error::{Error, Failure, Result};
pub use gpu::{Mapping, Uuid};
pub use group::{Assessment, Group, TreeFailure};
pub use handle::Handle;
pub use helper::{Helper, VARIABLE};
pub use process::{Checkpointed, Locked, Process, Running};
pub use record::is_suspended;
pub use serve::serve_if_asked;
pub use state::State;
pub use wire::{Gpu, Look};
