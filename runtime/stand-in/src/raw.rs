//! Memory that callers, tests and modelled kernels point to.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Allocations begin at a page, as the driver's do.
const PAGE: usize = 4096;

/// What each byte holds of memory that others have used, and how many do: to write to all would take long.
const LEFT: u8 = 0xa5;

const MOST_LEFT: usize = 1 << 20;

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
    let mut value = MaybeUninit::<T>::uninit();
    copy(value.as_mut_ptr().expose_provenance() as u64, address, size_of::<T>());
    // SAFETY: modelled kernels read only addresses that the host gave them, and integers.
    unsafe { value.assume_init() }
}

/// Writes a word that another thread may read meanwhile.
pub(crate) fn store<T: Copy>(address: u64, value: T) {
    copy(address, ptr::from_ref(&value).expose_provenance() as u64, size_of::<T>());
}

/// Copies bytes, whole words each at once: the host may look at them meanwhile.
pub(crate) fn copy(to: u64, from: u64, bytes: usize) {
    let (to, from) = (ptr::with_exposed_provenance_mut::<u8>(to as usize), ptr::with_exposed_provenance_mut::<u8>(from as usize));
    let fits = |word: usize| bytes.is_multiple_of(word) && to.addr().is_multiple_of(word) && from.addr().is_multiple_of(word);
    // SAFETY: the host gave both addresses with this length.
    unsafe {
        if fits(8) {
            for at in (0..bytes).step_by(8) {
                let word = AtomicU64::from_ptr(from.add(at).cast()).load(Ordering::Acquire);
                AtomicU64::from_ptr(to.add(at).cast()).store(word, Ordering::Release);
            }
        } else if fits(4) {
            for at in (0..bytes).step_by(4) {
                let word = AtomicU32::from_ptr(from.add(at).cast()).load(Ordering::Acquire);
                AtomicU32::from_ptr(to.add(at).cast()).store(word, Ordering::Release);
            }
        } else {
            ptr::copy(from, to, bytes);
        }
    }
}

/// A copy of bytes that the caller may change later.
pub(crate) fn bytes(from: *const c_void, count: usize) -> Vec<u8> {
    let mut own = vec![0; count];
    copy(own.as_mut_ptr().expose_provenance() as u64, from.expose_provenance() as u64, count);
    own
}

/// Whether bytes hold a text.
pub(crate) fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
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

/// Memory in which others have left something, as a driver may give it; nothing if there is none.
pub(crate) fn allocate_used(bytes: usize) -> Option<u64> {
    let address = allocate(bytes)?;
    // SAFETY: `allocate` gave this address for this size.
    unsafe { ptr::with_exposed_provenance_mut::<u8>(address as usize).write_bytes(LEFT, bytes.min(MOST_LEFT)) };
    Some(address)
}

/// Gives memory of [`allocate`] back.
pub(crate) fn free(address: u64, bytes: usize) {
    if let Some(layout) = layout(bytes) {
        // SAFETY: `allocate` gave this address for this size.
        unsafe { dealloc(ptr::with_exposed_provenance_mut(address as usize), layout) }
    }
}

/// Reserves addresses, with memory of zeroes behind them: at the wanted place if nothing lies there.
pub(crate) fn reserve(wanted: u64, bytes: usize) -> Option<u64> {
    let place = ptr::with_exposed_provenance_mut(wanted as usize);
    // SAFETY: without `FIXED` the system gives addresses that nothing has.
    let found = unsafe { mmap_anonymous(place, bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE) };
    found.ok().map(|place| place.expose_provenance() as u64)
}

/// Gives addresses of [`reserve`] back.
pub(crate) fn unreserve(address: u64, bytes: usize) -> bool {
    // SAFETY: `reserve` gave this address for this size.
    unsafe { munmap(ptr::with_exposed_provenance_mut(address as usize), bytes) }.is_ok()
}
