//! The layout of the control block (docs/ABI.md).

/// The control block's symbol, and where in it its words lie (docs/ABI.md).
pub(crate) const CONTROL: &str = "cuinstr_control_v1";

pub(crate) const ACTION_AT: i64 = 4;

pub(crate) const FLAG_AT: i64 = 16;

pub(crate) const LAUNCH_AT: i64 = 8;

/// The words there that a thread which stops may write: when the launch began, and the record, up to the block's end.
pub(crate) const START_AT: i64 = 32;

pub(crate) const OWN_RECORD_AT: i64 = 72;

/// Bytes up to behind the last word that polls read. Older texts declare no more.
pub(crate) const CONTROL_BYTES: u64 = 24;

/// What its address is a multiple of.
pub(crate) const CONTROL_ALIGN: u64 = 8;

/// Bytes that the flag has for itself, which its address is a multiple of: see `L1::no_allocate` in docs/ABI.md.
pub(crate) const FLAG_LINE: u64 = 128;

/// The word that the flag's pointer points to until a host says otherwise.
pub(crate) const FLAG: &str = "cuinstr_flag_v1";
