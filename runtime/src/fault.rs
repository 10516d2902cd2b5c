//! Calls of the driver that failed.

use serde::Serialize;
use std::fmt;

/// A call of the CUDA driver that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DriverFault {
    /// Name of the call.
    pub call: &'static str,
    /// Number of the error, as in `cuda.h`.
    pub code: u32,
    /// Name of the error.
    pub name: String,
}

impl fmt::Display for DriverFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} ({})", self.call, self.name, self.code)
    }
}

impl std::error::Error for DriverFault {}

impl DriverFault {
    /// Whether the context has been destroyed, or the driver with it.
    pub(crate) fn is_of_gone_context(&self) -> bool {
        matches!(self.code, 4 | 201 | 709)
    }

    /// Whether the error ends its context: every later call in it fails, too.
    #[must_use]
    pub fn is_sticky(&self) -> bool {
        // Illegal address, misaligned address, illegal instruction and its kin, assert, trap, hardware errors and unknown ones.
        matches!(self.code, 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721 | 999)
    }
}
