//! Device memory, and the arguments of a launch that are made of it.

use super::{Fault, Gpu, check};
use cudarc::driver::sys;
use cuinstr_harness::buffer::Type;
use cuinstr_harness::header::{Arg, Header};
use std::ffi::c_void;

/// Arguments of a launch, in device memory.
#[derive(Debug)]
pub struct Arguments {
    pub(super) words: Vec<u64>,
    buffers: Vec<Buffer>,
}

#[derive(Debug)]
struct Buffer {
    address: u64,
    ty: Type,
    sorted: bool,
    initial: Vec<u8>,
}

/// A piece of device memory, to be given back by [`Gpu::free`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Its address.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: usize,
}

/// What a buffer holds after a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Type of its elements.
    pub ty: Type,
    /// Whether their order means nothing.
    pub sorted: bool,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Arguments {
    /// Words that are passed as they are: values, and addresses of memory that somebody else fills.
    #[must_use]
    pub fn of(words: Vec<u64>) -> Self {
        Self { words, buffers: Vec::new() }
    }
}

impl Gpu {
    /// Takes device memory.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn memory(&self, bytes: usize) -> Result<Memory, Fault> {
        let mut address = 0;
        // SAFETY: the out pointer lives through the call.
        check("cuMemAlloc", unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes.max(1)) })?;
        Ok(Memory { address, bytes })
    }

    /// Gives device memory back. Both streams must be drained, and nobody may use it again.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn free(&self, memory: Memory) -> Result<(), Fault> {
        // SAFETY: it comes from `memory`. A kernel that still used it would cost this child process its context, no more.
        check("cuMemFree", unsafe { sys::cuMemFree_v2(memory.address) })
    }

    /// Writes zeros, in the order of the kernels' stream.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn zero(&self, memory: Memory) -> Result<(), Fault> {
        // SAFETY: the memory is so long.
        check("cuMemsetD8Async", unsafe { sys::cuMemsetD8Async(memory.address, 0, memory.bytes, self.run) })
    }

    /// Copies one piece over another, in the order of the kernels' stream.
    ///
    /// # Errors
    /// What the driver answered.
    ///
    /// # Panics
    /// If they differ in length.
    pub fn copy(&self, from: Memory, to: Memory) -> Result<(), Fault> {
        assert_eq!(from.bytes, to.bytes, "one is a copy of the other");
        // SAFETY: both are so long.
        check("cuMemcpyDtoDAsync", unsafe { sys::cuMemcpyDtoDAsync_v2(to.address, from.address, from.bytes, self.run) })
    }

    /// Fills memory from the host, in the order of the kernels' stream.
    ///
    /// # Errors
    /// What the driver answered.
    ///
    /// # Panics
    /// If they differ in length.
    pub fn upload(&self, bytes: &[u8], to: Memory) -> Result<(), Fault> {
        assert_eq!(bytes.len(), to.bytes, "what is written fits");
        // SAFETY: both are so long; the host's side is pageable, so that the driver has copied it when the call returns.
        check("cuMemcpyHtoDAsync", unsafe { sys::cuMemcpyHtoDAsync_v2(to.address, bytes.as_ptr().cast(), bytes.len(), self.run) })
    }

    /// The tensor map of a matrix of 32-bit words, as the bytes that a kernel reads. It has so many columns, and boxes
    /// of so many columns and rows.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn tensor_map(&self, matrix: Memory, columns: usize, block: [u32; 2]) -> Result<Vec<u8>, Fault> {
        let mut map = sys::CUtensorMap { opaque: [0; 16] };
        let extents = [columns as u64, (matrix.bytes / 4 / columns) as u64];
        let (row_bytes, steps) = (columns as u64 * 4, [1_u32; 2]);
        // SAFETY: the out pointer and all arrays, two long but for the strides, live through the call, which only encodes the address.
        let result = unsafe {
            sys::cuTensorMapEncodeTiled(
                &raw mut map,
                sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
                2,
                matrix.address as *mut c_void,
                extents.as_ptr(),
                &raw const row_bytes,
                block.as_ptr(),
                steps.as_ptr(),
                sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
                sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
                sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        };
        check("cuTensorMapEncodeTiled", result)?;
        Ok(map.opaque.iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    /// Reads memory. The kernels' stream must be drained.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn download(&self, from: Memory) -> Result<Vec<u8>, Fault> {
        let mut bytes = vec![0; from.bytes];
        // SAFETY: both are so long.
        check("cuMemcpyDtoH", unsafe { sys::cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), from.address, bytes.len()) })?;
        Ok(bytes)
    }

    /// Makes the arguments of a header, buffers filled.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn arguments(&self, header: &Header) -> Result<Arguments, Fault> {
        let mut arguments = Arguments { words: Vec::new(), buffers: Vec::new() };
        for arg in &header.args {
            match *arg {
                Arg::Scalar { bits, .. } => arguments.words.push(bits),
                Arg::Buffer { ty, count, init, sorted } => {
                    let initial = init.bytes(ty, count);
                    let mut address = 0;
                    // SAFETY: the out pointer lives through the call.
                    check("cuMemAlloc", unsafe { sys::cuMemAlloc_v2(&raw mut address, initial.len().max(1)) })?;
                    arguments.words.push(address);
                    arguments.buffers.push(Buffer { address, ty, sorted, initial });
                }
            }
        }
        self.refill(&arguments)?;
        Ok(arguments)
    }

    /// Fills the buffers again, in stream order. The kernel's stream must be drained.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn refill(&self, arguments: &Arguments) -> Result<(), Fault> {
        for Buffer { address, initial, .. } in &arguments.buffers {
            // SAFETY: the buffer is as long as `initial`, which is pageable, so that the driver has copied it when the call returns.
            let result = unsafe { sys::cuMemcpyHtoDAsync_v2(*address, initial.as_ptr().cast(), initial.len(), self.run) };
            check("cuMemcpyHtoDAsync", result)?;
        }
        Ok(())
    }

    /// Reads all buffers. The kernel's stream must be drained.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn contents(&self, arguments: &Arguments) -> Result<Vec<Contents>, Fault> {
        let read = |buffer: &Buffer| {
            let mut bytes = vec![0u8; buffer.initial.len()];
            // SAFETY: both sides are `bytes.len()` long.
            let result = unsafe { sys::cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), buffer.address, bytes.len()) };
            check("cuMemcpyDtoH", result)?;
            Ok(Contents { ty: buffer.ty, sorted: buffer.sorted, bytes })
        };
        arguments.buffers.iter().map(read).collect()
    }
}
