//! Ranking functions, and the proof of a loop and of nested loops.

pub(crate) mod counter;
pub(crate) mod linear;
pub(crate) mod logarithmic;
pub(crate) mod loop_proof;
pub(crate) mod loops;
pub(crate) mod min_max_cases;
pub(crate) mod nest;
pub(crate) mod nest_phases;
pub(crate) mod paying;
pub(crate) mod phases;
pub(crate) mod poll_order;
pub(crate) mod precision;
pub(crate) mod ranking;
pub(crate) mod remaining;
pub(crate) mod shared;
pub(crate) mod unrolled;
pub(crate) mod weight;
pub(crate) mod wrapping;
