//! The layout of the control block (docs/ABI.md).

/// The control block's symbol, and where in it its words lie (docs/ABI.md).
pub(crate) const CONTROL: &str = "cuinstr_control_v1";

pub(crate) const ACTION_AT: i64 = 4;

pub(crate) const FLAG_AT: i64 = 16;

pub(crate) const LAUNCH_AT: i64 = 8;

/// The words there that a thread which stops may write: when the launch began, and the record, up to the block's end.
pub(crate) const START_AT: i64 = 32;

pub(crate) const OWN_RECORD_AT: i64 = 72;

/// The word that the flag's pointer points to until a host says otherwise.
pub(crate) const FLAG: &str = "cuinstr_flag_v1";
