//! Fixtures, and the harness that runs them: on the build machine [`prepare`] compiles every kernel, on the machine with the GPU
//! [`supervise`] runs the cases of [`case`] in child processes.

pub mod barriers;
pub mod bench;
pub mod buffer;
pub mod case;
pub mod checks;
pub mod crew;
pub mod cubin;
pub mod differential;
pub mod digest;
pub mod fixtures;
pub mod hardware;
pub mod header;
pub mod injection;
pub mod launcher;
pub mod machine;
pub mod manifest;
pub mod nvcc;
pub mod occupancy;
pub mod pause;
pub mod poll;
pub mod prepare;
pub mod process;
pub mod ptx;
pub mod record;
pub mod removal;
pub mod require;
pub mod resource;
pub mod results;
pub mod sass;
pub mod session;
pub mod simulated;
pub mod supervise;
pub mod unit;
pub mod variant;
