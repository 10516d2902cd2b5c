//! Random loop programs, run on the host as they are and as `cuinstr` rewrites them: both must do the same, look often enough, and stop
//! where they are told to.
//!
//! The prelude is the real one, but for the few functions that are made of PTX.

pub mod batch;
pub mod check;
pub mod functions;
pub mod generate;
pub mod gpu;
pub mod injection;
pub mod kernels;
pub mod lane;
pub mod polled;
pub mod prelude;
pub mod program;
pub mod reduce;
pub mod simulated;
