//! What is known of the driver's handles that the program has.

use crate::half;
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

type Handle = *mut c_void;

/// What a handle of a library's stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Kernel,
    /// A kernel that the program got before it was known whether the driver takes the library with polls.
    EarlyKernel,
    Function,
    Module,
}

#[derive(Default)]
struct Known {
    /// Why a module or library has no polls, or none that count fuel.
    why: HashMap<usize, String>,
    /// What each library has given, and the library.
    parts: HashMap<usize, (Part, usize)>,
}

impl Known {
    fn library_of(&self, handle: usize) -> Option<usize> {
        self.parts.get(&handle).map(|(_, library)| *library)
    }
}

/// Whether there was ever an early kernel.
static HAS_EARLY: AtomicBool = AtomicBool::new(false);

fn known() -> MutexGuard<'static, Known> {
    static KNOWN: OnceLock<Mutex<Known>> = OnceLock::new();
    KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the driver has written at a place; nothing for a place that is null.
pub(crate) fn written(place: *const Handle) -> Option<Handle> {
    // SAFETY: the driver has written a handle there.
    (!place.is_null()).then(|| unsafe { *place })
}

/// Notes what a module or library lacks that was just loaded.
pub(crate) fn note(handle: Handle, lacks: Option<String>) {
    let mut known = known();
    // Another one that is gone may have had this handle.
    known.why.remove(&handle.addr());
    if let Some(why) = lacks {
        known.why.insert(handle.addr(), why);
    }
}

/// Notes kernels that a library has given.
pub(crate) fn note_kernels(kernels: *const Handle, count: usize, library: Handle, is_early: bool) {
    let part = if is_early { Part::EarlyKernel } else { Part::Kernel };
    HAS_EARLY.fetch_or(is_early, Ordering::Relaxed);
    let mut known = known();
    for kernel in (0..count).filter_map(|index| written(kernels.wrapping_add(index))) {
        known.parts.insert(kernel.addr(), (part, library.addr()));
    }
}

/// Notes a function or module that a library has given. The driver may have one handle for several things.
pub(crate) fn note_part(handle: Handle, part: Part, library: usize) {
    known().parts.entry(handle.expose_provenance()).or_insert((part, library));
}

/// Notes from which module a kernel or function was launched, if it is a library's.
pub(crate) fn note_module(launched: usize, module: Handle) {
    if let Some(library) = library_of(launched) {
        note_part(module, Part::Module, library);
    }
}

/// Whether it is a kernel of a library, rather than a function of a module.
pub(crate) fn is_kernel(handle: usize) -> bool {
    known().parts.get(&handle).is_some_and(|(part, _)| [Part::Kernel, Part::EarlyKernel].contains(part))
}

/// The library that has given this handle.
pub(crate) fn library_of(handle: usize) -> Option<usize> {
    known().library_of(handle)
}

/// The library of a kernel, if that is an early one.
pub(crate) fn library_of_early(kernel: usize) -> Option<usize> {
    if !HAS_EARLY.load(Ordering::Relaxed) {
        return None;
    }
    known().parts.get(&kernel).filter(|(part, _)| *part == Part::EarlyKernel).map(|(_, library)| *library)
}

/// Why the module or library of a kernel has no polls, or none that count fuel.
pub(crate) fn why(kernel: usize, module: usize) -> Option<String> {
    let known = known();
    let library = known.library_of(kernel).or_else(|| known.library_of(module));
    known.why.get(&module).or_else(|| known.why.get(&library?)).cloned()
}

/// A module is about to be unloaded.
pub(crate) fn forget_module(module: Handle) {
    half::forget(module);
    known().why.remove(&module.addr());
}

/// A library is about to be unloaded.
pub(crate) fn forget_library(library: Handle) {
    let mut known = known();
    known.why.remove(&library.addr());
    let gone: Vec<_> = known.parts.extract_if(|_, (_, of)| *of == library.addr()).collect();
    drop(known);
    for (module, _) in gone.into_iter().filter(|(_, (part, _))| *part == Part::Module) {
        half::forget(ptr::with_exposed_provenance_mut(module));
    }
}
