//! Hangs put into proved kernels by chance. The proof must reject each, and must not mind what changes nothing.
//!
//! A [`base`] is a proved text with the statements that the interpreter reached. A [`cycle`] that no poll ends is put in front of one of them,
//! [`dress`]ed as ptxas accepts it. The interpreter runs the result: it must not come to its end though the flag is written meanwhile.
//! [`same`] changes a text without changing what it does. [`edit`] changes single instructions, and only what then repeats a state is a hang.

pub mod base;
pub mod cycle;
pub mod dress;
pub mod edit;

pub mod run;
pub mod same;
