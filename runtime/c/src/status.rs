//! Errors as numbers, and their messages.

use cuinstr_runtime::Error;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{self, AssertUnwindSafe};

macro_rules! statuses {
    ($($variant:ident $name:literal = $number:literal,)*) => {
        /// What a call returns.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(i32)]
        pub enum Status { $(#[doc = concat!("`", $name, "`")] $variant = $number,)* }

        impl Status {
            /// All of them, with their names in C.
            pub const ALL: &[(Self, &CStr)] = &[$((Self::$variant, match CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name without a zero"),
            }),)*];
        }
    };
}

statuses! {
    Ok "CUINSTR_OK" = 0,
    Pending "CUINSTR_PENDING" = 1,
    BadArgument "CUINSTR_BAD_ARGUMENT" = 2,
    BadHandle "CUINSTR_BAD_HANDLE" = 3,
    Refused "CUINSTR_REFUSED" = 4,
    NoDriver "CUINSTR_NO_DRIVER" = 5,
    NoContext "CUINSTR_NO_CONTEXT" = 6,
    OtherContext "CUINSTR_OTHER_CONTEXT" = 7,
    NotInstrumented "CUINSTR_NOT_INSTRUMENTED" = 8,
    OtherAbi "CUINSTR_OTHER_ABI" = 9,
    Capturing "CUINSTR_CAPTURING" = 10,
    AlreadyArmed "CUINSTR_ALREADY_ARMED" = 11,
    BadOrder "CUINSTR_BAD_ORDER" = 12,
    NotLaunched "CUINSTR_NOT_LAUNCHED" = 13,
    NotBegun "CUINSTR_NOT_BEGUN" = 14,
    Undrained "CUINSTR_UNDRAINED" = 15,
    Poisoned "CUINSTR_POISONED" = 16,
    ContextBusy "CUINSTR_CONTEXT_BUSY" = 17,
    OutOfMemory "CUINSTR_OUT_OF_MEMORY" = 18,
    DriverError "CUINSTR_DRIVER_ERROR" = 19,
    Machine "CUINSTR_MACHINE" = 20,
    Internal "CUINSTR_INTERNAL" = 21,
    NoProcess "CUINSTR_NO_PROCESS" = 22,
    NoPermission "CUINSTR_NO_PERMISSION" = 23,
    NotCuda "CUINSTR_NOT_CUDA" = 24,
    WrongState "CUINSTR_WRONG_STATE" = 25,
    ProcessBusy "CUINSTR_PROCESS_BUSY" = 26,
    NotCheckpointable "CUINSTR_NOT_CHECKPOINTABLE" = 27,
    NoRoom "CUINSTR_NO_ROOM" = 28,
    ProcessLost "CUINSTR_PROCESS_LOST" = 29,
    Blocked "CUINSTR_BLOCKED" = 30,
    NotPausable "CUINSTR_NOT_PAUSABLE" = 31,
    NotPaused "CUINSTR_NOT_PAUSED" = 32,
    File "CUINSTR_FILE" = 33,
    NotASnapshot "CUINSTR_NOT_A_SNAPSHOT" = 34,
    OtherGpu "CUINSTR_OTHER_GPU" = 35,
    AddressTaken "CUINSTR_ADDRESS_TAKEN" = 36,
}

/// A call that did not do what was asked, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The number.
    pub status: Status,
    /// The message.
    pub message: String,
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::NoDriver | Error::NoDevice { .. } | Error::DriverTooOld { .. } => Status::NoDriver,
            Error::NoModule(_) | Error::ZeroTimeout | Error::TimeoutTooLong(_) | Error::NoLimit { .. } => Status::BadArgument,
            Error::NoContext => Status::NoContext,
            Error::BadHandle(_) => Status::BadHandle,
            Error::OtherContext { .. } => Status::OtherContext,
            Error::NotInstrumented => Status::NotInstrumented,
            Error::OtherAbi { .. } => Status::OtherAbi,
            Error::Capturing => Status::Capturing,
            Error::AlreadyArmed => Status::AlreadyArmed,
            Error::Order(_) => Status::BadOrder,
            Error::NotLaunched => Status::NotLaunched,
            Error::NotPausable { .. } => Status::NotPausable,
            Error::NotPaused { .. } => Status::NotPaused,
            Error::NotBegun { .. } => Status::NotBegun,
            Error::Undrained { .. } => Status::Undrained,
            Error::Poisoned(_) => Status::Poisoned,
            Error::ContextBusy { .. } | Error::InFlight { .. } | Error::Busy { .. } => Status::ContextBusy,
            Error::OutOfMemory(_) => Status::OutOfMemory,
            Error::Driver(_) | Error::Module { .. } => Status::DriverError,
            _ => Status::Machine,
        };
        Self::new(status, error.to_string())
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Does what was asked, and keeps the message. Nothing unwinds out of here.
pub(crate) fn answer(call: impl FnOnce() -> Result<(), Failure>) -> i32 {
    // What a panic leaves half done is behind locks that take it as it is.
    let result = panic::catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref::<&str>().copied());
        Err(Failure::new(Status::Internal, format!("a fault of cuinstr's: {}", text.unwrap_or("no message"))))
    });
    let (status, message) = match result {
        Ok(()) => (Status::Ok, String::new()),
        Err(Failure { status, message }) => (status, message),
    };
    // A thread that is ending has no message any more.
    let _ = MESSAGE.try_with(|kept| kept.replace(text(message)));
    status as i32
}

/// The message of this thread's last call.
pub(crate) fn message() -> *const c_char {
    MESSAGE.try_with(|kept| kept.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// A text for C. A zero within it would end it early, and becomes a blank.
pub(crate) fn text(text: impl Into<Vec<u8>>) -> CString {
    let mut bytes: Vec<u8> = text.into();
    for byte in bytes.iter_mut().filter(|byte| **byte == 0) {
        *byte = b' ';
    }
    CString::new(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_answer() {
        let status = answer(|| panic!("{} was wrong", 7));
        assert_eq!(status, Status::Internal as i32);
        let kept = MESSAGE.with(|kept| kept.borrow().to_string_lossy().into_owned());
        assert_eq!(kept, "a fault of cuinstr's: 7 was wrong");
        assert_eq!(answer(|| Ok(())), 0);
        assert!(MESSAGE.with(|kept| kept.borrow().is_empty()));
    }

    #[test]
    fn numbers_follow_each_other() {
        for (index, (status, name)) in Status::ALL.iter().enumerate() {
            assert_eq!(*status as usize, index, "{name:?}");
        }
    }

    #[test]
    fn a_zero_within_a_text_does_not_end_it() {
        assert_eq!(text("a\0b").as_bytes(), b"a b");
    }
}
