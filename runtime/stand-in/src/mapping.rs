//! Device memory at addresses of the caller's choice. A reservation is memory of the process; mapping makes it known. Like a driver (580.159 on an H200),
//! it does not put a reservation where it is asked to once other memory is mapped.

#![allow(non_snake_case, missing_docs)]

use crate::calls::{calls, current, give};
use crate::machine::{Allocation, Kind, code, lock};
use crate::raw;
use std::ffi::{c_int, c_void};

/// What sizes must be multiples of.
const GRANULE: usize = 2 << 20;

calls! {
    fn cuMemGetAllocationGranularity(bytes: *mut usize, _properties: *const c_void, _option: c_int) { give(bytes, GRANULE) }
    fn cuMemAddressReserve(address: *mut u64, bytes: usize, _alignment: usize, wanted: u64, _flags: u64) {
        if bytes == 0 || !bytes.is_multiple_of(GRANULE) { return Err(code::INVALID_VALUE); }
        let obeyed = if lock().bytes(Kind::Mapped) == 0 { wanted } else { 0 };
        give(address, raw::reserve(obeyed, bytes).ok_or(code::OUT_OF_MEMORY)?)
    }
    fn cuMemAddressFree(address: u64, bytes: usize) {
        if lock().memory.range(address..address + bytes as u64).next().is_some() { return Err(code::INVALID_VALUE); }
        if raw::unreserve(address, bytes) { Ok(()) } else { Err(code::INVALID_VALUE) }
    }
    fn cuMemCreate(handle: *mut u64, bytes: usize, _properties: *const c_void, _flags: u64) {
        let mut machine = lock();
        let made = machine.handle() as u64;
        machine.unmapped.insert(made, bytes);
        give(handle, made)
    }
    fn cuMemRelease(handle: u64) { lock().unmapped.remove(&handle).map(|_| ()).ok_or(code::INVALID_HANDLE) }
    fn cuMemMap(address: u64, bytes: usize, _offset: usize, handle: u64, _flags: u64) {
        let mut machine = lock();
        let context = current(&machine)?;
        if machine.unmapped.get(&handle) != Some(&bytes) { return Err(code::INVALID_VALUE); }
        machine.memory.insert(address, Allocation { bytes, kind: Kind::Mapped, context });
        Ok(())
    }
    fn cuMemSetAccess(address: u64, _bytes: usize, _access: *const c_void, _count: usize) {
        if lock().memory.contains_key(&address) { Ok(()) } else { Err(code::INVALID_VALUE) }
    }
    fn cuMemUnmap(address: u64, _bytes: usize) {
        if lock().free(address) { Ok(()) } else { Err(code::INVALID_VALUE) }
    }
}
