//! What travels as bytes: elements of buffers, and arguments.

use super::remote::{Held, RemoteBuffer};
use std::sync::Arc;

/// A number as it lies in device memory: an element of a [`RemoteBuffer`], or an argument.
pub trait Element: Copy + sealed::Sealed {
    /// Its size in bytes.
    const BYTES: usize;
    /// Writes its bytes, for which there is room of [`Element::BYTES`].
    fn put(self, bytes: &mut [u8]);
    /// Reads it from its bytes, of which there are [`Element::BYTES`].
    fn take(bytes: &[u8]) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

/// An argument of a remote launch: a number, a buffer, or the bytes of a struct that is passed by value.
#[derive(Debug, Clone)]
pub struct Argument(pub(super) Kind);

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Bytes(Vec<u8>),
    Buffer(Arc<Held>),
}

impl Argument {
    /// The bytes of a struct that is passed by value, padding included, as C lays it out.
    #[must_use]
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Kind::Bytes(bytes.into()))
    }
}

macro_rules! elements {
    ($($type:ty),*) => { $(
        impl sealed::Sealed for $type {}

        impl Element for $type {
            const BYTES: usize = size_of::<$type>();

            fn put(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }

            fn take(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$type>()];
                own.copy_from_slice(bytes);
                Self::from_le_bytes(own)
            }
        }

        impl From<$type> for Argument {
            fn from(value: $type) -> Self {
                Self(Kind::Bytes(value.to_le_bytes().into()))
            }
        }

        impl From<&$type> for Argument {
            fn from(value: &$type) -> Self {
                Self::from(*value)
            }
        }
    )* };
}

elements!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64);

impl From<bool> for Argument {
    fn from(value: bool) -> Self {
        Self::from(u8::from(value))
    }
}

impl From<&RemoteBuffer> for Argument {
    fn from(buffer: &RemoteBuffer) -> Self {
        Self(Kind::Buffer(Arc::clone(&buffer.0)))
    }
}

impl From<&mut RemoteBuffer> for Argument {
    fn from(buffer: &mut RemoteBuffer) -> Self {
        Self::from(&*buffer)
    }
}

/// The bytes of a slice of elements.
pub(super) fn to_bytes<T: Element>(elements: &[T]) -> Vec<u8> {
    let mut bytes = vec![0; elements.len() * T::BYTES];
    for (element, room) in elements.iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
        element.put(room);
    }
    bytes
}

/// The elements in these bytes; what is left of them is dropped.
pub(super) fn from_bytes<T: Element>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(T::BYTES).map(T::take).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_become_bytes_and_come_back() {
        let numbers = [1.5_f32, -0.0, f32::MAX];
        assert_eq!(from_bytes::<f32>(&to_bytes(&numbers)), numbers);
        assert_eq!(to_bytes(&[0x0102_u16, 3]), [2, 1, 3, 0]);
        assert_eq!(from_bytes::<u64>(&[0; 15]), [0]);
        let Argument(Kind::Bytes(bytes)) = Argument::from(true) else { panic!("a value") };
        assert_eq!(bytes, [1]);
    }
}
