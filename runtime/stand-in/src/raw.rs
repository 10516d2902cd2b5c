//! Memory that callers, tests and modelled kernels point to.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

/// Allocations begin at a page, as the driver's do.
const PAGE: usize = 4096;

/// Writes an answer where the caller wants it. False if the caller gave no place.
pub(crate) fn put<T>(place: *mut T, value: T) -> bool {
    if place.is_null() {
        return false;
    }
    // SAFETY: the driver's callers give places that may be written.
    unsafe { place.write_unaligned(value) };
    true
}

/// Reads what a caller points to.
pub(crate) fn get<T: Copy>(place: *const T) -> Option<T> {
    // SAFETY: the driver's callers give places that may be read.
    (!place.is_null()).then(|| unsafe { place.read_unaligned() })
}

/// Reads a word that another thread may write meanwhile.
pub(crate) fn load<T: Copy>(address: u64) -> T {
    // SAFETY: modelled kernels read only addresses that the host gave them.
    unsafe { ptr::with_exposed_provenance::<T>(address as usize).read_volatile() }
}

/// Writes a word that another thread may read meanwhile.
pub(crate) fn store<T>(address: u64, value: T) {
    // SAFETY: modelled kernels and stream operations write only addresses that the host gave them.
    unsafe { ptr::with_exposed_provenance_mut::<T>(address as usize).write_volatile(value) }
}

/// Copies bytes that may overlap.
pub(crate) fn copy(to: u64, from: u64, bytes: usize) {
    let (to, from) = (ptr::with_exposed_provenance_mut::<u8>(to as usize), ptr::with_exposed_provenance::<u8>(from as usize));
    // SAFETY: the host gave both addresses with this length.
    unsafe { ptr::copy(from, to, bytes) }
}

/// A copy of bytes that the caller may change later.
pub(crate) fn bytes(from: *const c_void, count: usize) -> Vec<u8> {
    let mut own = vec![0; count];
    copy(own.as_mut_ptr().expose_provenance() as u64, from.expose_provenance() as u64, count);
    own
}

/// A caller's text.
pub(crate) fn text(from: *const c_char) -> String {
    if from.is_null() {
        return String::new();
    }
    // SAFETY: the driver's callers give texts that end with a zero.
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), PAGE).ok()
}

/// Memory of zeroes; nothing if there is none.
pub(crate) fn allocate(bytes: usize) -> Option<u64> {
    // SAFETY: the size is not zero.
    let memory = unsafe { alloc_zeroed(layout(bytes)?) };
    (!memory.is_null()).then(|| memory.expose_provenance() as u64)
}

/// Gives memory of [`allocate`] back.
pub(crate) fn free(address: u64, bytes: usize) {
    if let Some(layout) = layout(bytes) {
        // SAFETY: `allocate` gave this address for this size.
        unsafe { dealloc(ptr::with_exposed_provenance_mut(address as usize), layout) }
    }
}
