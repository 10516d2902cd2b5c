//! The site map, which both sides share, and the numbers that the summary is made of.

pub use cuinstr_abi::sites::{Form, Kind, Site, SiteMap};
use serde::Serialize;

/// Numbers for the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Summary {
    /// Device functions found, kernels included.
    pub functions: usize,
    /// Kernels among them.
    pub kernels: usize,
    /// Loops of device code, macro bodies included.
    pub loops: usize,
    /// Loops with a poll.
    pub polled: usize,
    /// Loops left alone because they provably end soon.
    pub bounded: usize,
    /// Polls inserted, entries, exits and barriers included.
    pub polls: usize,
    /// Gaps: loops and macros that no poll covers for sure.
    pub gaps: usize,
}
