//! Any text as PTX: no panic, and what the reader says of it lies in it and agrees.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../instrument/ptx/tests/invariants/mod.rs"]
mod invariants;

fuzz_target!(|text: &str| invariants::hold(text));
