//! Arguments of a launch in a worker process.

use super::remote::{Held, RemoteBuffer};
use super::value::for_elements;
use std::sync::Arc;

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

macro_rules! arguments {
    ($($type:ty),*) => { $(
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

for_elements!(arguments);

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_arguments_as_they_lie_in_memory() {
        for (argument, bytes) in
            [(Argument::from(true), vec![1]), (Argument::from(0x0102_u16), vec![2, 1]), (Argument::from(&-1_i8), vec![0xff])]
        {
            let Argument(Kind::Bytes(found)) = argument else { panic!("a value") };
            assert_eq!(found, bytes);
        }
    }
}
