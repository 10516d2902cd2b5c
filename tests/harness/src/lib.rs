//! What the tests share: kernel files with their headers and their buffers, compilers, and what is read in PTX and cubins.

pub mod buffer;
pub mod cubin;
pub mod digest;
pub mod fixtures;
pub mod header;
pub mod kept;
pub mod nvcc;
pub mod occupancy;
pub mod prepared;
pub mod process;
pub mod ptx;
pub mod random;
pub mod record;
pub mod removal;
pub mod resource;
pub mod sass;
pub mod unit;
pub mod variant;
