//! A context that launches are made in: what the host knows of it, and what outlives each launch.

pub(crate) mod clock;
pub(crate) mod device;
pub(crate) mod orders;
pub(crate) mod state;
pub(crate) mod watchdog;
