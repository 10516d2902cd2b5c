//! A CUDA driver for tests. It needs no GPU.
//!
//! The shared library of this crate is loaded as `libcuda.so.1`. It keeps contexts, modules, memory, streams and events as the driver does.
//! Device memory is memory of the process. A kernel does what its name says (engine.rs): `spin` runs until it is stopped, `deaf` obeys
//! nothing, `fault` ends its context, any other name ends at once.
//!
//! `processes.rs` has checkpoints by pid, and `nvml.rs` what NVML tells of them.
//!
//! `cudart.rs` has the few functions of the CUDA runtime that small programs need. nvcc compiles such a program with `-cudart none`, and
//! the linker takes them from here.
//!
//! ```text
//! cargo build -p cuinstr-stand-in
//! mkdir fake && ln -s ../target/debug/libcuinstr_stand_in.so fake/libcuda.so.1 && ln -s libcuda.so.1 fake/libcuda.so
//! cuinstr nvcc -cudart none program.cu -o program -Lfake -lcuda
//! LD_LIBRARY_PATH=fake CUINSTR_STAND_IN='fail cuStreamBatchMemOp_v2 3 999' CUINSTR_TIMEOUT=1s ./program
//! ```
//!
//! [`control`] lists the commands. They come from the environment variable `CUINSTR_STAND_IN`, separated by `;`, or from calls of the
//! exported function `cuinstr_stand_in`. Rust tests use [`client`].

mod blocks;
mod calls;
pub mod client;
pub mod control;
mod cudart;
mod engine;
mod machine;
mod mapping;
mod modules;
mod nvml;
mod processes;
mod raw;
pub mod targets;
mod versions;
