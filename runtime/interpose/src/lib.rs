//! The library that `cuinstr run` loads in front of a CUDA program. It stands between the program and the driver. PTX that
//! the program loads gets polls, and each launch gets its deadline.
//!
//! In reading order:
//!
//! - `lookup`: the program looks up a name, by `dlsym` or `cuGetProcAddress`, and gets our function. `driver` has the real
//!   functions.
//! - `open`: libraries that the program opens look names up in our sight.
//! - `calls`: our functions. `entry` makes their table.
//! - `handles`: what is known of modules, libraries and kernels. `library`: those that the driver compiles, and refuses, when
//!   something of them is needed.
//! - `image` finds out how long the code is that the program loads. `choice` says what the driver would take of it.
//!   `replace` puts PTX with polls in its place, with a `cache`. `sites` keeps what reports need.
//! - `compilers` and `jitlink`: NVRTC and nvJitLink, which compile to machine code inside the program.
//! - `half`: the host half (`instrument/src/launcher/host_runtime`), which arms and times launches.
//! - `session` writes down what `cuinstr run` gets to know. `control` answers what it asks.
//!
//! **The rule of substitution.** The driver is asked first, in the program's own words. Its answer is replaced only if the
//! answer is the address of a function with a wrapper of that very signature. Such a function is exported under the
//! wrapper's name, or `cuGetProcAddress` gives it for the wrapper's version and flags. Any other answer goes through.
//!
//! The library is preloaded. An audit library (`LD_AUDIT`) would not do. It has a namespace and a C library of its own, and
//! that C library can start no threads. Before glibc 2.35 it sees no symbol of a program that is linked with `-z now`.

mod cache;
mod calls;
mod choice;
mod compilers;
mod control;
mod driver;
mod entry;
mod half;
mod handles;
mod image;
mod jitlink;
mod library;
mod lookup;
mod open;
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
