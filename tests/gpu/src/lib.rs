//! Cases that run on a GPU. On the build machine [`prepare`] compiles every kernel; on the machine with the GPU [`supervise`] runs the cases of
//! [`case`] in child processes.

pub mod case;
pub mod checks;
pub mod launcher;
pub mod manifest;
pub mod prepare;
pub mod results;
pub mod session;
pub mod supervise;
