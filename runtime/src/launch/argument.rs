//! The arguments of a launch: how large each is, and those that are kept by value.

use cudarc::driver::{CudaSlice, CudaView, CudaViewMut, DeviceRepr};
use std::any::type_name;

/// A reference, and what it refers to.
pub trait Reference {
    /// What it refers to.
    type Target;
}

impl<T> Reference for &T {
    type Target = T;
}

impl<T> Reference for &mut T {
    type Target = T;
}

/// Bytes that a kernel is given for a reference to a `T`, if that is known: those of a plain value, and those of an address for memory of cudarc's. What
/// owns something is no plain value.
pub(super) fn size_of_argument<T>() -> Option<usize> {
    let generic = |name: &'static str| name.split('<').next();
    let name = generic(type_name::<T>());
    let is_memory = [type_name::<CudaSlice<u8>>(), type_name::<CudaView<'_, u8>>(), type_name::<CudaViewMut<'_, u8>>()]
        .into_iter()
        .any(|memory| generic(memory) == name);
    if is_memory {
        return Some(size_of::<u64>());
    }
    (!std::mem::needs_drop::<T>()).then_some(size_of::<T>())
}

/// The bytes of an argument, placed as any parameter may ask for.
#[derive(Debug, Clone)]
pub(super) struct Value {
    pub(super) words: Box<[Word]>,
    pub(super) bytes: usize,
    pub(super) name: &'static str,
}

/// A piece of an argument.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
pub(super) struct Word([std::mem::MaybeUninit<u8>; 16]);

// SAFETY: plain bytes, of which the driver reads what the parameter takes.
unsafe impl DeviceRepr for Word {}

impl Value {
    fn room(name: &'static str, bytes: usize) -> Self {
        Self { words: vec![Word([std::mem::MaybeUninit::uninit(); 16]); bytes.div_ceil(16).max(1)].into(), bytes, name }
    }

    pub(super) fn new<T: Copy>(value: &T) -> Self {
        let mut own = Self::room(type_name::<T>(), size_of::<T>());
        // SAFETY: there is room for as many bytes; those that are padding stay what they are.
        unsafe { std::ptr::copy_nonoverlapping(std::ptr::from_ref(value).cast::<u8>(), own.words.as_mut_ptr().cast(), own.bytes) };
        own
    }

    #[cfg(all(feature = "snapshot", unix))]
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let first = self.words.as_ptr().cast::<u8>();
        // SAFETY: there are as many bytes. Padding was never written: a volatile read takes what lies there.
        (0..self.bytes).map(|index| unsafe { first.add(index).read_volatile() }).collect()
    }

    #[cfg(all(any(feature = "worker", feature = "snapshot"), unix))]
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        let mut own = Self::room("value", bytes.len());
        for (place, byte) in own.words.iter_mut().flat_map(|word| &mut word.0).zip(bytes) {
            place.write(*byte);
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Pair {
        _first: u16,
        _second: u64,
    }

    #[test]
    fn the_size_of_an_argument_is_that_of_what_the_kernel_gets() {
        assert_eq!(size_of_argument::<u16>(), Some(2));
        assert_eq!(size_of_argument::<Pair>(), Some(16));
        assert_eq!(size_of_argument::<[f32; 3]>(), Some(12));
        assert_eq!(size_of_argument::<CudaSlice<u16>>(), Some(8));
        assert_eq!(size_of_argument::<CudaView<'_, Pair>>(), Some(8));
        assert_eq!(size_of_argument::<CudaViewMut<'_, i8>>(), Some(8));
        assert_eq!(size_of_argument::<Vec<u8>>(), None);
    }

    #[test]
    fn a_kept_value_has_its_bytes_and_their_number() {
        let value = Value::new(&0x0102_0304_0506_0708_u64);
        assert_eq!((value.bytes, value.words.len()), (8, 1));
        assert_eq!(Value::new(&[0_u8; 33]).words.len(), 3);
        assert_eq!(Value::new(&()).words.len(), 1);
    }
}
