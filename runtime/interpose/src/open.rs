//! `dlopen`, which is ours for one reason: a library that is opened with `RTLD_DEEPBIND` would find the C library's `dlsym` and the driver's own functions,
//! and not ours. So it is opened without that flag.
//!
//! Everything else goes to the C library's `dlopen`, or to that of the next library that has one, by a jump: it sees the program's return address. By that
//! address it finds the caller's own search path.

use crate::lookup;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Finds the next `dlopen`.
extern "C" fn find_real() -> *mut c_void {
    let known = REAL.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    let found = lookup::real_dlsym(libc::RTLD_NEXT, c"dlopen");
    if found.is_null() {
        // SAFETY: ends the process: no program that opens libraries runs without it.
        unsafe { libc::abort() }
    }
    REAL.store(found, Ordering::Release);
    found
}

/// Whether a library stays bound to itself: the driver's libraries, which call nothing that is ours.
extern "C" fn keeps_flag(path: *const c_char) -> bool {
    if path.is_null() {
        return true;
    }
    // SAFETY: the program gave a path that ends with a zero.
    let file = lookup::file_of(unsafe { CStr::from_ptr(path) });
    file.starts_with(b"libcuda.so") || file.starts_with(b"libnvidia-")
}

/// Opens a library, as the C library does.
///
/// # Safety
/// As the C library's `dlopen`.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    std::arch::naked_asm!(
        "endbr64",
        "test esi, 8", // RTLD_DEEPBIND
        "je 2f",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {keeps}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test al, al",
        "jne 2f",
        "and esi, -9",
        "2:",
        "mov rax, qword ptr [rip + {real}]",
        "test rax, rax",
        "je 3f",
        "jmp rax",
        "3:",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {find}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        keeps = sym keeps_flag,
        real = sym REAL,
        find = sym find_real,
    )
}

/// The same for other machines.
///
/// # Safety
/// As the C library's `dlopen`.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    std::arch::naked_asm!(
        "bti c",
        "stp x0, x1, [sp, #-32]!",
        "str x30, [sp, #16]",
        "tbz w1, #3, 2f", // RTLD_DEEPBIND
        "bl {keeps}",
        "tbnz w0, #0, 2f",
        "ldr w1, [sp, #8]",
        "and w1, w1, #-9",
        "str w1, [sp, #8]",
        "2:",
        "bl {find}",
        "mov x16, x0",
        "ldr x30, [sp, #16]",
        "ldp x0, x1, [sp], #32",
        "br x16",
        keeps = sym keeps_flag,
        find = sym find_real,
    )
}
