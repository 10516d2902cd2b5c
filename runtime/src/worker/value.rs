//! Numbers as they lie in device memory, and travel.

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
    )* };
}

/// Calls a macro with all types of elements.
macro_rules! for_elements {
    ($with:ident) => {
        $with!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64);
    };
}

pub(super) use for_elements;

for_elements!(elements);

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
    }
}
