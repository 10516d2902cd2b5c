//! What the cases check, each a function on a session.

pub mod exit;
pub mod limits;
pub mod runtime;
pub mod same;
pub mod stop;
pub mod timing;

pub use exit::Overrun;
