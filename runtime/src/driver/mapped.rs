//! Device memory at addresses of the caller's choice, and pinned memory to copy it through.

use super::check;
use crate::fault::DriverFault;
use cudarc::driver::sys;
use std::ptr;

/// `CUmemLocation`, whose fields cudarc names differently for each version of CUDA.
#[repr(C)]
#[derive(Clone, Copy)]
struct Location {
    kind: u32,
    id: i32,
}

/// `CUmemAllocationProp`.
#[repr(C)]
struct Properties {
    kind: u32,
    handles: u32,
    location: Location,
    windows: *mut std::ffi::c_void,
    flags: [u8; 8],
}

/// `CUmemAccessDesc`.
#[repr(C)]
struct Access {
    location: Location,
    flags: u32,
}

const _: () =
    assert!(size_of::<Properties>() == size_of::<sys::CUmemAllocationProp>() && size_of::<Access>() == size_of::<sys::CUmemAccessDesc>());

/// `CU_MEM_LOCATION_TYPE_DEVICE`, `CU_MEM_ALLOCATION_TYPE_PINNED`, `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
const DEVICE: u32 = 1;
const PINNED: u32 = 1;
const READ_WRITE: u32 = 3;

fn properties(device: i32) -> Properties {
    Properties { kind: PINNED, handles: 0, location: Location { kind: DEVICE, id: device }, windows: ptr::null_mut(), flags: [0; 8] }
}

/// Bytes that the sizes of mapped memory are multiples of.
pub(crate) fn granularity(device: i32) -> Result<usize, DriverFault> {
    let mut bytes = 0;
    let properties = properties(device);
    let minimum = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
    // SAFETY: out pointer and struct live through the call.
    check("cuMemGetAllocationGranularity", unsafe {
        sys::cuMemGetAllocationGranularity(&raw mut bytes, (&raw const properties).cast(), minimum)
    })?;
    Ok(bytes)
}

/// Addresses that nothing else of the process takes, for memory to be mapped at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

impl Range {
    /// Reserves so many bytes at the address, or anywhere if something is there already. The driver need not obey.
    pub(crate) fn reserve(wanted: Self) -> Result<Self, DriverFault> {
        let mut address = 0;
        // SAFETY: the out pointer lives through the call.
        check("cuMemAddressReserve", unsafe { sys::cuMemAddressReserve(&raw mut address, wanted.bytes as usize, 0, wanted.address, 0) })?;
        Ok(Self { address, bytes: wanted.bytes })
    }

    /// Gives the addresses back. Nothing is mapped there.
    pub(crate) fn free(self) -> Result<(), DriverFault> {
        // SAFETY: the range is one that `reserve` reserved.
        check("cuMemAddressFree", unsafe { sys::cuMemAddressFree(self.address, self.bytes as usize) })
    }
}

/// Maps fresh memory at an address of a reserved range.
pub(crate) fn map(device: i32, address: u64, bytes: usize) -> Result<(), DriverFault> {
    let mut handle = 0;
    let properties = properties(device);
    let access = Access { location: Location { kind: DEVICE, id: device }, flags: READ_WRITE };
    // SAFETY: out pointers and structs live through the calls; sizes are multiples of the granularity. The mapping keeps the memory once its handle is
    // released.
    unsafe {
        check("cuMemCreate", sys::cuMemCreate(&raw mut handle, bytes, (&raw const properties).cast(), 0))?;
        let mapped = check("cuMemMap", sys::cuMemMap(address, bytes, 0, handle, 0));
        let released = check("cuMemRelease", sys::cuMemRelease(handle));
        mapped?;
        let usable = released.and_then(|()| check("cuMemSetAccess", sys::cuMemSetAccess(address, bytes, (&raw const access).cast(), 1)));
        usable.inspect_err(|_| _ = unmap(address, bytes))
    }
}

/// Gives memory of [`map`] back. A kernel that still uses it faults.
pub(crate) fn unmap(address: u64, bytes: usize) -> Result<(), DriverFault> {
    // SAFETY: the range is one that `map` mapped.
    check("cuMemUnmap", unsafe { sys::cuMemUnmap(address, bytes) })
}

/// Sets memory to zeroes, in the stream's order.
pub(crate) fn clear(stream: sys::CUstream, address: u64, bytes: usize) -> Result<(), DriverFault> {
    // SAFETY: the range is one that `map` mapped.
    check("cuMemsetD8Async", unsafe { sys::cuMemsetD8Async(address, 0, bytes, stream) })
}

/// Pinned memory that copies go through.
#[derive(Debug)]
pub(crate) struct Staging {
    host: *mut u8,
    bytes: usize,
}

impl Staging {
    pub(crate) fn new(bytes: usize) -> Result<Self, DriverFault> {
        let mut host = ptr::null_mut();
        // SAFETY: the out pointer lives through the call, and the range is the one just allocated.
        unsafe {
            check("cuMemHostAlloc", sys::cuMemHostAlloc(&raw mut host, bytes, sys::CU_MEMHOSTALLOC_PORTABLE))?;
            ptr::write_bytes(host.cast::<u8>(), 0, bytes);
        }
        Ok(Self { host: host.cast(), bytes })
    }

    /// Its first bytes. No copy may be in flight.
    pub(crate) fn get(&self, count: usize) -> &[u8] {
        assert!(count <= self.bytes);
        // SAFETY: the range is in the allocation, which was written when it was made.
        unsafe { std::slice::from_raw_parts(self.host, count) }
    }

    /// The same to be written.
    pub(crate) fn get_mut(&mut self, count: usize) -> &mut [u8] {
        assert!(count <= self.bytes);
        // SAFETY: as above, and it is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.host, count) }
    }

    /// Copies from the device into it, in the stream's order.
    pub(crate) fn download(&mut self, stream: sys::CUstream, from: u64, count: usize) -> Result<(), DriverFault> {
        assert!(count <= self.bytes);
        // SAFETY: there is room for `count` bytes, and `from` is mapped memory of at least as many.
        check("cuMemcpyDtoHAsync", unsafe { sys::cuMemcpyDtoHAsync_v2(self.host.cast(), from, count, stream) })
    }

    /// Copies it to the device, in the stream's order.
    pub(crate) fn upload(&self, stream: sys::CUstream, to: u64, count: usize) -> Result<(), DriverFault> {
        assert!(count <= self.bytes);
        // SAFETY: as above.
        check("cuMemcpyHtoDAsync", unsafe { sys::cuMemcpyHtoDAsync_v2(to, self.host.cast(), count, stream) })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: it was allocated in `new`.
        let _ = unsafe { sys::cuMemFreeHost(self.host.cast()) };
    }
}
