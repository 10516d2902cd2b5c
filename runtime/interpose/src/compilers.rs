//! NVRTC and nvJitLink, which compile inside the program. Where they give machine code, the PTX that it was made of is asked for, too, and remembered: when
//! the program loads that machine code, the PTX gets polls and takes its place.
//!
//! A process may have several of these libraries. Each found one has a slot, and each slot wrappers of its own.

use crate::image::Image;
use crate::lookup::{self, call};
use crate::{cache, jitlink};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Libraries of one kind, at most, whose results are known.
pub(crate) const SLOTS: usize = 4;

pub(crate) type Handle = *mut c_void;

/// The loaded libraries of one kind, by their handles.
pub(crate) struct Libraries(Mutex<Vec<usize>>);

impl Libraries {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// The slot of the library that a function is of.
    pub(crate) fn slot_of(&self, function: *const c_void) -> Option<usize> {
        let library = library_of(function)?.addr();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().position(|one| *one == library).or_else(|| {
            known.push(library);
            Some(known.len() - 1)
        });
        at.filter(|at| *at < SLOTS)
    }

    /// A function of the library in a slot.
    pub(crate) fn function(&self, slot: usize, name: &CStr) -> *mut c_void {
        let library = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(slot).copied();
        library.map_or(ptr::null_mut(), |library| lookup::real_dlsym(ptr::with_exposed_provenance_mut(library), name))
    }
}

/// The handle of the loaded library that an address is of.
fn library_of(address: *const c_void) -> Option<Handle> {
    let library = lookup::loaded_at(&lookup::path_of(address)?)?;
    library.expose_provenance();
    Some(library)
}

pub(crate) static NVRTC: Libraries = Libraries::new();

/// The wrapper of a function that the program has looked up in a library. Names of nvJitLink's may end in a version.
pub(crate) fn wrapper_of(name: &CStr, found: *mut c_void) -> Option<*mut c_void> {
    if name == c"nvrtcGetCUBIN" {
        let all =
            [get_cubin::<0> as *mut c_void, get_cubin::<1> as *mut c_void, get_cubin::<2> as *mut c_void, get_cubin::<3> as *mut c_void];
        return if found == nvrtcGetCUBIN as *mut c_void { None } else { NVRTC.slot_of(found).map(|slot| all[slot]) };
    }
    jitlink::wrapper_of(name, found)
}

/// `nvrtcGetCUBIN` of the library in a slot.
unsafe extern "C" fn get_cubin<const SLOT: usize>(program: Handle, place: *mut c_char) -> c_int {
    // NVRTC_ERROR_INTERNAL_ERROR, of a library that is gone.
    const INTERNAL: c_int = 11;
    let ask = |name| NVRTC.function(SLOT, name);
    let result = call!(ask(c"nvrtcGetCUBIN"), (program => Handle, place => *mut c_char)).unwrap_or(INTERNAL);
    if result != 0 || place.is_null() {
        return result;
    }
    let mut size = 0_usize;
    if call!(ask(c"nvrtcGetPTXSize"), (program => Handle, &raw mut size => *mut usize)) != Some(0) || size < 2 {
        return result;
    }
    let mut ptx = vec![0_u8; size];
    if call!(ask(c"nvrtcGetPTX"), (program => Handle, ptx.as_mut_ptr().cast() => *mut c_char)) == Some(0) {
        ptx.truncate(ptx.iter().position(|byte| *byte == 0).unwrap_or(size));
        remember(place.cast(), ptx);
    }
    result
}

/// The same for libraries that the loader binds to it. It hands on whence it is called.
///
/// # Safety
/// As NVRTC's own.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn nvrtcGetCUBIN(program: Handle, place: *mut c_char) -> c_int {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("endbr64", "mov rdx, qword ptr [rsp]", "jmp {bound}", bound = sym bound);
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("bti c", "mov x2, x30", "b {bound}", bound = sym bound);
}

unsafe extern "C" fn bound(program: Handle, place: *mut c_char, caller: *const c_void) -> c_int {
    // NVRTC_ERROR_BUILTIN_OPERATION_FAILURE, of a program without NVRTC, which can't have called this.
    const NONE: c_int = 7;
    let own = nvrtcGetCUBIN as *mut c_void;
    // The caller's own NVRTC. One that was called through a pointer of another library's may have none, and then it is the one that is loaded.
    let by_caller = library_of(caller).map(|library| lookup::real_dlsym(library, c"nvrtcGetCUBIN"));
    let found = by_caller.filter(|found| !found.is_null() && *found != own).or_else(|| loaded().first().copied());
    let Some(found) = found else { return NONE };
    match NVRTC.slot_of(found) {
        // SAFETY: the program's own words.
        Some(slot) => unsafe { [get_cubin::<0>, get_cubin::<1>, get_cubin::<2>, get_cubin::<3>][slot](program, place) },
        None => call!(found, (program => Handle, place => *mut c_char)).unwrap_or(NONE),
    }
}

/// `nvrtcGetCUBIN` of each loaded NVRTC. Those come last whose functions a program looks up: it does not get here.
fn loaded() -> Vec<*mut c_void> {
    let known = NVRTC.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut libraries = lookup::loaded(b"libnvrtc.so");
    libraries.sort_by_key(|library| known.contains(&library.addr()));
    libraries.into_iter().map(|library| lookup::real_dlsym(library, c"nvrtcGetCUBIN")).filter(|found| !found.is_null()).collect()
}

/// The PTX of machine code that was made in this process, by the code's number.
fn sources() -> MutexGuard<'static, HashMap<u128, Vec<u8>>> {
    static SOURCES: OnceLock<Mutex<HashMap<u128, Vec<u8>>>> = OnceLock::new();
    SOURCES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers which PTX the machine code at an address was made of: here, and for later processes that load it from a cache of the program's.
pub(crate) fn remember(code: *const c_void, ptx: Vec<u8>) {
    // SAFETY: a compiler has just written it there.
    if let Some(Image::Code(code)) = unsafe { Image::at(code) } {
        let number = cache::number(code);
        if let Some(place) = cache::Place::of_source(number) {
            place.keep(&ptx);
        }
        sources().insert(number, ptx);
    }
}

/// The PTX that machine code was made of, if that is known.
pub(crate) fn source_of(code: &[u8]) -> Option<Vec<u8>> {
    let number = cache::number(code);
    let known = sources().get(&number).cloned();
    known.or_else(|| cache::Place::of_source(number)?.kept())
}
