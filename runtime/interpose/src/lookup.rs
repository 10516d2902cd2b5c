//! What programs look up by name: `dlsym`, which is ours, and the real one behind it.

use crate::calls::ENTRIES;
use crate::{compilers, driver};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The C library's own.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Versions under which C libraries export it, by machine.
#[cfg(target_arch = "x86_64")]
const VERSIONS: [&CStr; 2] = [c"GLIBC_2.34", c"GLIBC_2.2.5"];
#[cfg(not(target_arch = "x86_64"))]
const VERSIONS: [&CStr; 2] = [c"GLIBC_2.34", c"GLIBC_2.17"];

/// A function of the C library's own, whatever libraries were loaded in front of it: they have no functions with its versions.
fn of_c_library(name: &CStr) -> *mut c_void {
    for version in VERSIONS {
        // SAFETY: both names end with a zero.
        let found = unsafe { libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr()) };
        if !found.is_null() {
            return found;
        }
    }
    // SAFETY: ends the process: no program runs without it.
    unsafe { libc::abort() }
}

/// Finds the C library's `dlsym`.
extern "C" fn find_real() -> *mut c_void {
    let known = REAL.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    let found = of_c_library(c"dlsym");
    REAL.store(found, Ordering::Release);
    found
}

/// The handle of a library that is loaded under this path. Tools have a `dlopen` that gives other libraries; this is the C library's own.
pub(crate) fn loaded_at(path: &CStr) -> Option<*mut c_void> {
    // SAFETY: the C library exports it with this signature.
    let open =
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void>(of_c_library(c"dlopen")) };
    // SAFETY: the path ends with a zero; nothing is loaded that is not there already.
    let library = unsafe { open(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    (!library.is_null()).then_some(library)
}

/// The last part of a path.
pub(crate) fn file_of(path: &CStr) -> &[u8] {
    path.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// The path of the loaded library that an address is of, as the loader has it.
pub(crate) fn path_of(address: *const c_void) -> Option<CString> {
    // SAFETY: the record lives through the call; the path that it gets is the loader's own, and ends with a zero.
    unsafe {
        let mut about: libc::Dl_info = std::mem::zeroed();
        let is_known = libc::dladdr(address, &raw mut about) != 0 && !about.dli_fname.is_null();
        is_known.then(|| CStr::from_ptr(about.dli_fname).to_owned())
    }
}

/// The handles of the loaded libraries whose files' names begin so, in the order in which they were loaded.
pub(crate) fn loaded(beginning: &[u8]) -> Vec<*mut c_void> {
    unsafe extern "C" fn each(about: *mut libc::dl_phdr_info, _: usize, paths: *mut c_void) -> c_int {
        // SAFETY: the loader gives a record whose name ends with a zero, and the list that it was given.
        unsafe { (*paths.cast::<Vec<CString>>()).push(CStr::from_ptr((*about).dlpi_name).to_owned()) };
        0
    }
    let mut paths: Vec<CString> = Vec::new();
    // SAFETY: the list lives through the call.
    unsafe { libc::dl_iterate_phdr(Some(each), ptr::from_mut(&mut paths).cast()) };
    paths.retain(|path| file_of(path).starts_with(beginning));
    paths.iter().filter_map(|path| loaded_at(path)).collect()
}

/// The C library's `dlsym`.
pub(crate) fn real_dlsym(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the C library exports it with this signature.
    let real = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void>(find_real()) };
    // SAFETY: the handle is the caller's, the name ends with a zero.
    unsafe { real(handle, name.as_ptr()) }
}

/// Calls a function of a library by its address; nothing if there is no such function.
macro_rules! call {
    ($function:expr, ($($argument:expr => $type:ty),*)) => {{
        let function: *mut std::ffi::c_void = $function;
        (!function.is_null()).then(|| {
            // SAFETY: the library has a function of this name and signature; the out pointers live through the call.
            unsafe { std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn($($type),*) -> i32>(function)($($argument),*) }
        })
    }};
}
pub(crate) use call;

/// What a program gets for a name of the driver's, or of a library that compiles. What the driver itself looks up stays its own: a wrapper would call it back.
extern "C" fn found(handle: *mut c_void, name: *const c_char, caller: *const c_void) -> *mut c_void {
    // SAFETY: the program gave a name that ends with a zero.
    let name = unsafe { CStr::from_ptr(name) };
    let found = real_dlsym(handle, name);
    if let Some(wrapper) = compilers::wrapper_of(name, found) {
        return wrapper;
    }
    if found.is_null() || !ENTRIES.iter().any(|entry| entry.name.as_bytes() == name.to_bytes()) {
        return found;
    }
    if ENTRIES.iter().any(|entry| ptr::eq(entry.wrapper.0, found.cast())) {
        // Found by the program's own handle, where ours come first. Without a driver there is no such function.
        return if driver::exported(name).is_null() { ptr::null_mut() } else { found };
    }
    let wrapper = driver::wrapper_of(found.addr()).filter(|_| !driver::holds(caller));
    wrapper.map_or(found, ptr::with_exposed_provenance_mut)
}

/// Looks up a name, as the C library does; names of the driver's that are wrapped lead to the wrappers.
///
/// For all other names, and for `RTLD_DEFAULT` and `RTLD_NEXT`, which mean other libraries for each caller, it is a jump to the C library's own: that sees
/// the program's return address. In a program's own scope our functions come first anyway.
///
/// # Safety
/// As the C library's `dlsym`.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "endbr64",
        "test rsi, rsi",
        "je 2f",
        "movzx eax, word ptr [rsi]",
        "cmp eax, 0x7563", // cu
        "je 4f",
        "cmp eax, 0x766e", // nv
        "je 4f",
        "cmp eax, 0x5f5f", // __, of names with versions
        "jne 2f",
        "cmp byte ptr [rsi + 2], 110", // n
        "jne 2f",
        "4:",
        "test rdi, rdi", // RTLD_DEFAULT
        "je 2f",
        "cmp rdi, -1", // RTLD_NEXT
        "je 2f",
        "mov rdx, qword ptr [rsp]", // the caller
        "jmp {found}",
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
        found = sym found,
        real = sym REAL,
        find = sym find_real,
    )
}

/// The same for other machines.
///
/// # Safety
/// As the C library's `dlsym`.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "bti c",
        "cbz x1, 2f",
        "ldrb w2, [x1]",
        "cbz w2, 2f",
        "ldrb w3, [x1, #1]",
        "orr w2, w2, w3, lsl #8",
        "mov w3, #0x7563", // cu
        "cmp w2, w3",
        "b.eq 4f",
        "mov w3, #0x766e", // nv
        "cmp w2, w3",
        "b.eq 4f",
        "mov w3, #0x5f5f", // __, of names with versions
        "cmp w2, w3",
        "b.ne 2f",
        "ldrb w2, [x1, #2]",
        "cmp w2, #110", // n
        "b.ne 2f",
        "4:",
        "cbz x0, 2f", // RTLD_DEFAULT
        "cmn x0, #1", // RTLD_NEXT
        "b.eq 2f",
        "mov x2, x30", // the caller
        "b {found}",
        "2:",
        "stp x0, x1, [sp, #-32]!",
        "str x30, [sp, #16]",
        "bl {find}",
        "mov x16, x0",
        "ldr x30, [sp, #16]",
        "ldp x0, x1, [sp], #32",
        "br x16",
        found = sym found,
        find = sym find_real,
    )
}
