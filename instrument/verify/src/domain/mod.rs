//! Abstract values, and what instructions make of them.

pub(crate) mod affine;
pub(crate) mod affine_transfer;
pub(crate) mod arithmetic;
pub(crate) mod delta;
pub(crate) mod interval;
pub(crate) mod name;
#[cfg(test)]
mod oracle;
pub(crate) mod remainder;
pub(crate) mod state;
pub(crate) mod transfer;
pub(crate) mod value;
