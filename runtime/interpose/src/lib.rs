//! The library that `cuinstr run` loads in front of a CUDA program. It stands between the program and the driver: code that the program loads gets polls
//! where it is PTX, and each launch gets its deadline.
//!
//! | step | module |
//! | --- | --- |
//! | a name that the program looks up → our function | `lookup` (`dlsym`, `cuGetProcAddress`), asking `driver` (the real functions) |
//! | our functions | `calls`, whose table `entry` makes |
//! | code that is loaded → PTX with polls | `image` (how long is it?) → `choice` (what would the driver take?) → `replace`, with a `cache`; `sites` keeps what reports need |
//! | a launch → armed and timed | `half`, which is the host half (`instrument/src/launcher/host_runtime`) |
//! | what `cuinstr run` gets to know, and what it asks | `session`, `control` |
//!
//! **The rule of substitution.** The driver is asked first, with the program's own words. Its answer is replaced only if it is the address of a function
//! for which there is a wrapper of that very signature: the one exported under the wrapper's name, or the one that `cuGetProcAddress` gives for the
//! wrapper's version and flags. Any other answer goes through.
//!
//! It is preloaded and no audit library (`LD_AUDIT`): those live in a namespace of their own, with a C library of their own that can start no threads, and
//! before glibc 2.35 they see no symbol of a program that is linked with `-z now`.

mod cache;
mod calls;
mod choice;
mod control;
mod driver;
mod entry;
mod half;
mod image;
mod lookup;
mod replace;
mod session;
mod sites;

/// For a test, which compares it with CUDA's own headers: each wrapped function with its version and the sizes of its parameters, a line each. `p` is a
/// pointer, a number the bytes of an integer.
#[unsafe(no_mangle)]
extern "C" fn cuinstr_signatures() -> *mut std::ffi::c_char {
    let line = |entry: &entry::Entry| {
        let variant = if entry.per_thread { "_ptsz" } else { "" };
        format!("{}_v{}{variant}: {}\n", entry.base, entry.version, (entry.shape)())
    };
    let all: String = calls::ENTRIES.iter().map(line).collect();
    std::ffi::CString::new(all).map_or(std::ptr::null_mut(), std::ffi::CString::into_raw)
}
