//! Runs PTX kernels on small grids without a GPU, the same way each time.
//!
//! It shares the reader of PTX with the proof and with the pass, and nothing else. An instruction that it does not know ends the launch with
//! [`Outcome::NotSimulated`]. Approximate instructions give the host's result. Memory has bounds, and nothing runs longer than it is allowed.
//!
//! ```
//! use cuinstr_simulate::{Launch, Machine, Memory, Outcome, Program};
//!
//! let text = ".version 9.0 .target sm_90 .address_size 64 .visible .entry k(.param .u64 out) {
//!     .reg .b64 %a; .reg .b32 %t; ld.param.u64 %a, [out]; mov.u32 %t, %tid.x; red.global.add.u32 [%a], %t; ret; }";
//! let program = Program::read(text).unwrap();
//! let mut memory = Memory::new(&program);
//! let out = memory.allocate(vec![0; 4]);
//! let parameters = vec![out.to_le_bytes().to_vec()];
//! let launch = Launch { kernel: "k".into(), grid: [1; 3], block: [8, 1, 1], shared: 0, parameters };
//! let mut machine = Machine::new(&program, memory, launch).unwrap();
//! assert_eq!(machine.run(1000, &mut |_| ()), Some(Outcome::Completed));
//! assert_eq!(machine.memory.bytes(out), Some(&[28, 0, 0, 0][..]));
//! ```

#![allow(
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "PTX defines its arithmetic on bits and exact values"
)]

mod float;
mod integer;
mod lower;
mod machine;
mod memory;
mod program;
mod read;
mod step;
mod thread;
mod types;
mod warp;

pub use machine::{Launch, Machine, Moment, Outcome};
pub use memory::Memory;
pub use program::Program;
