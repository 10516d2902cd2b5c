//! The structs that C shares with this library, and the table of the whole interface that a test holds against the header.

use crate::status::Status;
use std::ffi::{c_char, c_void};
use std::fmt::Write as _;
use std::mem::offset_of;

/// Version of the interface; raised by a change that breaks what was compiled before.
pub const API_VERSION: u32 = 1;

/// A handle of a rewritten source, an attached module, a guard, a process or a ledger, each with a type of its own in C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Id(pub u64);

/// A struct of the header.
#[derive(Debug)]
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    /// Bytes of it.
    pub size: usize,
    /// Name, offset and bytes of each field.
    pub fields: Vec<(&'static str, usize, usize)>,
}

macro_rules! shared {
    ($(#[doc = $about:literal])* struct $name:ident = $c_name:literal { $($field:ident: $type:ty,)* }) => {
        $(#[doc = $about])*
        ///
        /// Its fields are those of the header.
        #[derive(Debug, Clone, Copy)]
        #[repr(C)]
        #[expect(missing_docs, reason = "the header documents each field")]
        pub struct $name { $(pub $field: $type,)* }

        impl $name {
            /// What the header must say of it.
            #[must_use]
            pub fn shape() -> Shape {
                Shape {
                    name: $c_name,
                    size: size_of::<Self>(),
                    fields: vec![$((stringify!($field), offset_of!(Self, $field), size_of::<$type>()),)*],
                }
            }
        }
    };
}

shared! {
    /// How to rewrite.
    struct RewriteOptions = "cuinstr_rewrite_options" {
        size: u32,
        polls_each: u32,
        path: *const c_char,
        timeout_ns: u64,
        budget_cycles: u64,
        fuel: u64,
        strict: u32,
        reserved: u32,
        loop_macros: *const c_char,
        device_macros: *const c_char,
        leave_alone: *const c_char,
        barrier_marks: *const c_char,
        pausable: u64,
    }
}

shared! {
    /// What is known of a module.
    struct About = "cuinstr_about" {
        size: u32,
        reserved: u32,
        image: *const c_void,
        image_size: usize,
        kernel: *const c_char,
        folder: *const c_char,
    }
}

shared! {
    /// What a launch may take.
    struct Limits = "cuinstr_limits" {
        size: u32,
        flags: u32,
        timeout_ns: u64,
        fuel: u64,
        budget_cycles: u64,
        grace_ns: u64,
        begin_within_ns: u64,
        grid: [u32; 3],
        block: [u32; 3],
    }
}

shared! {
    /// How a launch ended.
    struct Outcome = "cuinstr_outcome" {
        size: u32,
        kind: u32,
        cause: u32,
        late: u32,
        elapsed_ns: u64,
        latency_ns: u64,
        fuel_used: u64,
        threads: u64,
        block: [u32; 3],
        thread: [u32; 3],
        line: u32,
        column: u32,
        driver_error: u32,
        reserved: u32,
        kernel: *const c_char,
        file: *const c_char,
        function: *const c_char,
        report: *const c_char,
        json: *const c_char,
        blocks_done: u64,
        blocks_left: u64,
    }
}

shared! {
    /// A GPU and the one that takes its place.
    struct GpuPair = "cuinstr_gpu_pair" {
        old_uuid: [u8; 16],
        new_uuid: [u8; 16],
    }
}

/// Bits of [`Limits::flags`].
pub const UNTIL_CANCELLED: u32 = 1;
/// Another one.
pub const COUNT_FUEL: u32 = 2;
/// The last one.
pub const PAUSABLE: u32 = 4;

/// Values of [`Outcome::kind`] and [`Outcome::cause`], and the flags, by their names in C.
pub const CONSTANTS: &[(&str, u32)] = &[
    ("CUINSTR_API_VERSION", API_VERSION),
    ("CUINSTR_UNTIL_CANCELLED", UNTIL_CANCELLED),
    ("CUINSTR_COUNT_FUEL", COUNT_FUEL),
    ("CUINSTR_PAUSABLE", PAUSABLE),
    ("CUINSTR_COMPLETED", COMPLETED),
    ("CUINSTR_STOPPED", STOPPED),
    ("CUINSTR_FAULTED", FAULTED),
    ("CUINSTR_PAUSED", PAUSED),
    ("CUINSTR_CANCELLED", CANCELLED),
    ("CUINSTR_DEADLINE", DEADLINE),
    ("CUINSTR_BUDGET", BUDGET),
    ("CUINSTR_FUEL", FUEL),
    ("CUINSTR_PROCESS_RUNNING", 0),
    ("CUINSTR_PROCESS_LOCKED", 1),
    ("CUINSTR_PROCESS_CHECKPOINTED", 2),
    ("CUINSTR_PROCESS_FAILED", 3),
];

pub(crate) const COMPLETED: u32 = 1;
pub(crate) const STOPPED: u32 = 2;
pub(crate) const FAULTED: u32 = 3;
pub(crate) const PAUSED: u32 = 4;
pub(crate) const CANCELLED: u32 = 1;
pub(crate) const DEADLINE: u32 = 2;
pub(crate) const BUDGET: u32 = 3;
pub(crate) const FUEL: u32 = 4;

/// The structs of the header, in its order.
#[must_use]
pub fn shapes() -> Vec<Shape> {
    vec![RewriteOptions::shape(), About::shape(), Limits::shape(), Outcome::shape(), GpuPair::shape()]
}

/// The interface as text, a line for each thing that a compiled program relies on; but for the functions.
#[must_use]
pub fn table() -> String {
    let mut text = String::new();
    for (name, value) in CONSTANTS {
        let _ = writeln!(text, "constant {name} {value}");
    }
    for (status, name) in Status::ALL {
        let _ = writeln!(text, "constant {} {}", name.to_string_lossy(), *status as i32);
    }
    for shape in shapes() {
        let _ = writeln!(text, "struct {} {}", shape.name, shape.size);
        for (field, offset, size) in shape.fields {
            let _ = writeln!(text, "field {}.{field} {offset} {size}", shape.name);
        }
    }
    text
}
