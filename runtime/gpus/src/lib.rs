//! Chooses free GPUs for a program, and leases them so that no other start takes them.
//!
//! ```text
//! NVML → device (what each GPU has free) → visible (which of them the environment allows) → score → lease → CUDA_VISIBLE_DEVICES
//! ```
//!
//! One look at the GPUs goes through NVML, which needs no CUDA context. No daemon keeps the result: a look takes
//! milliseconds, and a kept result would be old. A lease keeps two starts at the same time apart. It is a lock on a
//! file. The operating system releases it when its last holder ends.

mod choose;
mod device;
mod error;
mod lease;
#[cfg(feature = "nvml")]
mod nvml;
#[cfg(feature = "nvml")]
mod probe;
mod score;
mod visible;

pub use choose::{Choice, Request, Wanted, choose};
pub use device::{Gpu, Mode};
pub use error::{Error, Refusal};
pub use lease::{Lease, Leases};
#[cfg(feature = "nvml")]
pub use nvml::{Library, Share, look};
#[cfg(feature = "nvml")]
pub use probe::{Probe, probe};
pub use score::{Preferences, Rank, Weights, rank};
pub use visible::Visible;
