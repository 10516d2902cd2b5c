//! The driver's functions, as programs ask for them by name.

#![allow(non_snake_case, missing_docs)]

use crate::control;
use crate::engine::Op;
use crate::machine::{Allocation, Event, Kind, Machine, Stream, code, lock, wait};
use crate::modules::{
    count_functions, find_function, find_global, find_module, function_of, launch, launch_packed, list_functions, load, load_library,
};
use crate::raw::{self, get, put};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) type Done = Result<(), u32>;
pub(crate) type Handle = *mut c_void;
pub(crate) type Guard = MutexGuard<'static, Machine>;

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
    static CAPTURE_MODE: Cell<c_int> = const { Cell::new(0) };
    static THREAD: u64 = {
        static THREADS: AtomicU64 = AtomicU64::new(1);
        THREADS.fetch_add(1, Ordering::Relaxed)
    };
}

macro_rules! calls {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) extern "C" fn $name($($argument: $type),*) -> u32 {
                #[allow(clippy::redundant_closure_call)]
                let done = $crate::control::enter(stringify!($name)).and_then(|()| (|| -> Result<(), u32> { $body })());
                done.err().unwrap_or(0)
            }
        )*

        /// Address of a function of this file, by its name.
        #[allow(dead_code)] // NVML's are found by the loader alone
        pub(crate) fn exported(name: &str) -> Option<usize> {
            match name {
                $(stringify!($name) => Some(($name as *const ()).addr()),)*
                _ => None,
            }
        }
    };
}

pub(crate) use calls;

pub(crate) fn give<T>(place: *mut T, value: T) -> Done {
    if put(place, value) { Ok(()) } else { Err(code::INVALID_VALUE) }
}

pub(crate) fn pointer(handle: usize) -> Handle {
    ptr::without_provenance_mut(handle)
}

/// The thread's context, in whatever state.
pub(crate) fn thread_context() -> usize {
    CURRENT.get()
}

/// The thread's context, alive and not lost.
pub(crate) fn current(machine: &Machine) -> Result<usize, u32> {
    let current = CURRENT.get();
    match machine.contexts.get(&current) {
        _ if current == 0 => Err(code::INVALID_CONTEXT),
        None => Err(code::CONTEXT_IS_DESTROYED),
        Some(context) => context.lost.map_or(Ok(current), Err),
    }
}

/// What a handle of a stream stands for: 0 and 1 the context's own, 2 the thread's own.
fn stream(machine: &mut Machine, handle: Handle) -> Result<usize, u32> {
    match handle.addr() {
        0 | 1 => {
            let context = current(machine)?;
            machine.contexts.get(&context).map(|context| context.default_stream).ok_or(code::INVALID_CONTEXT)
        }
        2 => {
            let context = current(machine)?;
            let key = (context, THREAD.with(|thread| *thread));
            if let Some(stream) = machine.thread_streams.get(&key) {
                return Ok(*stream);
            }
            let made = machine.make_stream(context, true);
            machine.thread_streams.insert(key, made);
            Ok(made)
        }
        address => {
            let of = machine.streams.get(&address).ok_or(code::INVALID_HANDLE)?;
            let lost = machine.contexts.get(&of.context).and_then(|context| context.lost);
            lost.map_or(Ok(address), Err)
        }
    }
}

fn state(machine: &Machine, stream: usize) -> Result<&Stream, u32> {
    let found = machine.streams.get(&stream).ok_or(code::INVALID_HANDLE)?;
    machine.contexts.get(&found.context).and_then(|context| context.lost).map_or(Ok(found), Err)
}

/// Waits while the stream is as full as it may be, then puts something into it.
pub(crate) fn enqueue(handle: Handle, make: impl FnOnce(&mut Machine) -> Result<Op, u32>) -> Result<usize, u32> {
    let mut machine = lock();
    let key = stream(&mut machine, handle)?;
    let is_full = |machine: &Machine| state(machine, key).is_ok_and(|stream| stream.queue.len() >= machine.depth);
    let mut machine = wait(machine, |machine| !is_full(machine));
    state(&machine, key)?;
    let op = make(&mut machine)?;
    let captured = machine.streams.get_mut(&key).and_then(|stream| stream.captured.as_mut());
    match (captured, op) {
        // No call waits for what a graph may record.
        (Some(_), Op::Record { event, generation }) => drop(machine.events.get_mut(&event).map(|event| event.open.remove(&generation))),
        (Some(graph), op) => graph.push(op),
        (None, op) => drop(machine.streams.get_mut(&key).map(|stream| stream.queue.push_back(op))),
    }
    machine.step();
    crate::machine::changed();
    Ok(key)
}

/// Waits until the stream has done everything.
pub(crate) fn drained(key: usize) -> Done {
    let machine = wait(lock(), |machine| !state(machine, key).is_ok_and(|stream| !stream.is_drained()));
    state(&machine, key).map(|_| ())
}

/// The same for calls that keep others from launching and copying meanwhile.
pub(crate) fn alone() -> Result<(Guard, usize), u32> {
    lock().alone += 1;
    let idle = idle();
    match idle {
        Ok((mut machine, context)) => {
            machine.alone -= 1;
            Ok((machine, context))
        }
        Err(error) => {
            lock().alone -= 1;
            Err(error)
        }
    }
}

/// Waits until no thread is in such a call.
pub(crate) fn let_through() {
    drop(wait(lock(), |machine| !machine.is_exclusive || machine.alone == 0));
}

/// Waits until no kernel of the thread's context runs.
pub(crate) fn idle() -> Result<(Guard, usize), u32> {
    let machine = lock();
    let context = current(&machine)?;
    let machine = wait(machine, |machine| machine.is_idle(context));
    current(&machine)?;
    Ok((machine, context))
}

fn allocate(place: *mut u64, bytes: usize, kind: Kind) -> Done {
    let mut machine = lock();
    let context = current(&machine)?;
    if bytes == 0 {
        return Err(code::INVALID_VALUE);
    }
    give(place, machine.allocate(context, bytes, kind)?)
}

fn free(address: u64) -> Done {
    // Another thread may have other memory of this context freed meanwhile.
    let (mut machine, _) = alone()?;
    if machine.free(address) { Ok(()) } else { Err(code::INVALID_VALUE) }
}

fn is_host_memory(machine: &Machine, address: u64) -> bool {
    machine.allocation(address).is_none()
}

fn to_device(to: u64, from: *const c_void, bytes: usize, stream: Handle) -> Result<usize, u32> {
    let_through();
    enqueue(stream, |machine| {
        let address = from.expose_provenance() as u64;
        // Memory that is not pinned has been read when the call returns.
        let is_read = is_host_memory(machine, address);
        Ok(if is_read { Op::Put { to, bytes: raw::bytes(from, bytes) } } else { Op::Copy { to, from: address, bytes } })
    })
}

fn to_host(to: *mut c_void, from: u64, bytes: usize, stream: Handle) -> Result<usize, u32> {
    let_through();
    let address = to.expose_provenance() as u64;
    let key = enqueue(stream, |_| Ok(Op::Copy { to: address, from, bytes }))?;
    if is_host_memory(&lock(), address) {
        copied(key, stream)?;
    }
    Ok(key)
}

/// Waits for a copy. One in the legacy default stream keeps other threads from launching and copying meanwhile.
fn copied(key: usize, stream: Handle) -> Done {
    let is_alone = u64::from(stream.addr() <= 1);
    lock().alone += is_alone;
    let done = drained(key);
    lock().alone -= is_alone;
    done
}

fn fill(to: u64, bytes: Vec<u8>, stream: Handle) -> Done {
    let_through();
    enqueue(stream, |_| Ok(Op::Put { to, bytes })).map(|_| ())
}

/// `CUstreamBatchMemOpParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MemoryOp {
    kind: u32,
    unused: u32,
    to: u64,
    value: u64,
    rest: [u64; 3],
}

const _: () = assert!(size_of::<MemoryOp>() == 48);

calls! {
    // NVRTC and the CUDA runtime ask for tables that nothing documents. NVRTC does without.
    fn cuGetExportTable(_table: *mut Handle, _id: *const c_void) { Err(code::NOT_FOUND) }
    fn cuInit(_flags: c_uint) { Ok(()) }
    fn cuDriverGetVersion(version: *mut c_int) { give(version, lock().version) }
    fn cuDeviceGetCount(count: *mut c_int) { give(count, 1) }
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) {
        if ordinal != 0 { return Err(101); }
        give(device, 0)
    }
    fn cuDeviceGetName(name: *mut c_char, length: c_int, _device: c_int) {
        let room = usize::try_from(length).unwrap_or(0);
        for (index, byte) in control::name().bytes().chain([0]).take(room).enumerate() {
            put(name.wrapping_add(index), byte.cast_signed() as c_char);
        }
        Ok(())
    }
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) {
        give(value, match attribute {
            1 => 1024,        // threads of a block
            10 => 32,         // threads of a warp
            16 => 132,        // multiprocessors
            75 => 9,          // compute capability
            115 | 76 => 0,    // memory pools; its minor part
            _ => 1,
        })
    }
    fn cuDeviceTotalMem_v2(bytes: *mut usize, _device: c_int) { give(bytes, 80 << 30) }
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let used = usize::try_from(lock().bytes(Kind::Device)).unwrap_or(0);
        give(free, (80 << 30) - used).and_then(|()| give(total, 80 << 30))
    }

    fn cuDevicePrimaryCtxRetain(context: *mut Handle, _device: c_int) {
        let mut machine = lock();
        let (primary, count) = machine.primary.unwrap_or_else(|| (machine.make_context(), 0));
        machine.primary = Some((primary, count + 1));
        give(context, pointer(primary))
    }
    fn cuDevicePrimaryCtxRelease_v2(_device: c_int) {
        let mut machine = lock();
        match machine.primary {
            None => return Err(code::INVALID_CONTEXT),
            Some((primary, 1)) => machine.destroy_context(primary),
            Some((primary, count)) => machine.primary = Some((primary, count - 1)),
        }
        Ok(())
    }
    fn cuCtxCreate_v4(context: *mut Handle, _parameters: Handle, _flags: c_uint, _device: c_int) {
        let made = lock().make_context();
        CURRENT.set(made);
        give(context, pointer(made))
    }
    fn cuCtxCreate_v2(context: *mut Handle, _flags: c_uint, _device: c_int) {
        let made = lock().make_context();
        CURRENT.set(made);
        give(context, pointer(made))
    }
    fn cuCtxDestroy_v2(context: Handle) {
        if !lock().contexts.contains_key(&context.addr()) { return Err(code::INVALID_CONTEXT); }
        lock().destroy_context(context.addr());
        if CURRENT.get() == context.addr() { CURRENT.set(0); }
        Ok(())
    }
    fn cuCtxGetCurrent(context: *mut Handle) { give(context, pointer(CURRENT.get())) }
    fn cuCtxSetCurrent(context: Handle) {
        if !context.is_null() && !lock().contexts.contains_key(&context.addr()) { return Err(code::INVALID_CONTEXT); }
        CURRENT.set(context.addr());
        Ok(())
    }
    fn cuCtxGetId(context: Handle, id: *mut u64) {
        let context = if context.is_null() { CURRENT.get() } else { context.addr() };
        let found = lock().contexts.get(&context).map(|context| context.id);
        give(id, found.ok_or(code::CONTEXT_IS_DESTROYED)?)
    }
    fn cuCtxGetDevice(device: *mut c_int) { give(device, 0) }
    fn cuCtxGetStreamPriorityRange(lowest: *mut c_int, highest: *mut c_int) {
        current(&lock())?;
        give(lowest, 0).and_then(|()| give(highest, -5))
    }
    fn cuCtxSynchronize() { idle().map(|_| ()) }

    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) { allocate(address, bytes, Kind::Device) }
    fn cuMemAllocManaged(address: *mut u64, bytes: usize, _flags: c_uint) { allocate(address, bytes, Kind::Managed) }
    fn cuMemHostAlloc(address: *mut u64, bytes: usize, _flags: c_uint) { allocate(address, bytes, Kind::Pinned) }
    fn cuMemFree_v2(address: u64) { free(address) }
    fn cuMemFreeHost(address: *mut c_void) { free(address.expose_provenance() as u64) }
    fn cuMemHostGetDevicePointer_v2(device: *mut u64, host: *mut c_void, _flags: c_uint) { give(device, host.expose_provenance() as u64) }
    fn cuMemHostRegister_v2(host: *mut c_void, bytes: usize, _flags: c_uint) {
        let mut machine = lock();
        let context = current(&machine)?;
        let allocation = Allocation { bytes, kind: Kind::Registered, context };
        if machine.memory.contains_key(&(host.expose_provenance() as u64)) { return Err(code::ALREADY_REGISTERED); }
        machine.memory.insert(host.expose_provenance() as u64, allocation);
        Ok(())
    }
    fn cuMemHostUnregister(host: *mut c_void) {
        if lock().free(host.expose_provenance() as u64) { Ok(()) } else { Err(code::INVALID_VALUE) }
    }
    fn cuPointerGetAttribute(value: *mut c_void, attribute: c_int, address: u64) {
        let context = lock().context_of(address).ok_or(code::INVALID_VALUE)?;
        match attribute {
            1 => give(value.cast::<Handle>(), pointer(context)),
            2 => give(value.cast::<c_int>(), 2),
            3 => give(value.cast::<u64>(), address),
            _ => Err(code::INVALID_VALUE),
        }
    }
    fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: Handle) { to_device(to, from, bytes, stream).map(|_| ()) }
    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: Handle) { to_host(to, from, bytes, stream).map(|_| ()) }
    fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) { to_device(to, from, bytes, ptr::null_mut()).and_then(|key| copied(key, ptr::null_mut())) }
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) { to_host(to, from, bytes, ptr::null_mut()).and_then(|key| copied(key, ptr::null_mut())) }
    fn cuMemsetD8Async(to: u64, value: u8, count: usize, stream: Handle) { let_through(); fill(to, vec![value; count], stream) }
    fn cuMemsetD32Async(to: u64, value: u32, count: usize, stream: Handle) { let_through(); fill(to, value.to_le_bytes().repeat(count), stream) }

    fn cuStreamCreate(stream: *mut Handle, _flags: c_uint) {
        let mut machine = lock();
        let context = current(&machine)?;
        give(stream, pointer(machine.make_stream(context, false)))
    }
    fn cuStreamCreateWithPriority(stream: *mut Handle, _flags: c_uint, _priority: c_int) {
        let mut machine = lock();
        let context = current(&machine)?;
        give(stream, pointer(machine.make_stream(context, false)))
    }
    fn cuStreamDestroy_v2(stream: Handle) {
        let mut machine = lock();
        let found = machine.streams.get(&stream.addr()).ok_or(code::INVALID_HANDLE)?;
        // What is in it is done all the same; the handle is gone once it is.
        if !found.is_drained() {
            machine = wait(machine, |machine| machine.streams.get(&stream.addr()).is_none_or(Stream::is_drained));
        }
        machine.streams.remove(&stream.addr());
        Ok(())
    }
    fn cuStreamSynchronize(handle: Handle) {
        let key = stream(&mut lock(), handle)?;
        drained(key)
    }
    fn cuStreamQuery(handle: Handle) {
        let mut machine = lock();
        let key = stream(&mut machine, handle)?;
        machine.step();
        if state(&machine, key)?.is_drained() { Ok(()) } else { Err(code::NOT_READY) }
    }
    fn cuStreamGetId(handle: Handle, id: *mut u64) {
        let mut machine = lock();
        let key = stream(&mut machine, handle)?;
        give(id, state(&machine, key)?.id)
    }
    fn cuStreamGetCtx(handle: Handle, context: *mut Handle) {
        let mut machine = lock();
        let key = stream(&mut machine, handle)?;
        give(context, pointer(state(&machine, key)?.context))
    }
    fn cuStreamIsCapturing(handle: Handle, status: *mut c_int) {
        let mut machine = lock();
        let key = stream(&mut machine, handle)?;
        give(status, c_int::from(state(&machine, key)?.captured.is_some()))
    }
    fn cuStreamBeginCapture_v2(handle: Handle, _mode: c_int) {
        let mut machine = lock();
        let key = stream(&mut machine, handle)?;
        machine.streams.get_mut(&key).ok_or(code::INVALID_HANDLE)?.captured = Some(Vec::new());
        Ok(())
    }
    fn cuStreamEndCapture(handle: Handle, graph: *mut Handle) {
        let mut machine = lock();
        let key = stream(&mut machine, handle)?;
        let captured = machine.streams.get_mut(&key).ok_or(code::INVALID_HANDLE)?.captured.take().unwrap_or_default();
        let made = machine.handle();
        machine.graphs.insert(made, captured);
        give(graph, pointer(made))
    }
    fn cuGraphDestroy(graph: Handle) { lock().graphs.remove(&graph.addr()); Ok(()) }
    // Kernels and written words are done. A null graph holds nothing.
    fn cuGraphLaunch(graph: Handle, stream: Handle) {
        let held = lock().graphs.get(&graph.addr()).cloned().unwrap_or_default();
        for op in held.into_iter().filter(|op| matches!(op, Op::Launch(_) | Op::Put { .. })) {
            enqueue(stream, |_| Ok(op))?;
        }
        Ok(())
    }
    fn cuThreadExchangeStreamCaptureMode(mode: *mut c_int) {
        let wanted = get(mode).ok_or(code::INVALID_VALUE)?;
        give(mode, CAPTURE_MODE.replace(wanted))
    }
    fn cuStreamWaitEvent(handle: Handle, event: Handle, _flags: c_uint) {
        let event = event.addr();
        enqueue(handle, |machine| {
            let generation = machine.events.get(&event).ok_or(code::INVALID_HANDLE)?.recorded;
            Ok(Op::Wait { event, generation })
        }).map(|_| ())
    }
    fn cuStreamWriteValue32_v2(handle: Handle, to: u64, value: u32, _flags: c_uint) { fill(to, value.to_le_bytes().to_vec(), handle) }
    fn cuStreamWaitValue32_v2(handle: Handle, at: u64, value: u32, flags: c_uint) {
        // Of the comparisons the runtime asks for bits alone.
        if flags != 2 { return Err(code::NOT_SUPPORTED); }
        enqueue(handle, |_| Ok(Op::WaitBits { at, bits: value })).map(|_| ())
    }
    fn cuStreamGetPriority(handle: Handle, priority: *mut c_int) {
        stream(&mut lock(), handle)?;
        give(priority, 0)
    }
    fn cuStreamBatchMemOp_v2(handle: Handle, count: c_uint, operations: *const MemoryOp, _flags: c_uint) {
        for index in 0..count as usize {
            let operation = get(operations.wrapping_add(index)).ok_or(code::INVALID_VALUE)?;
            match operation.kind {
                // Of the comparisons the runtime asks for bits alone: the flags are the low half of the next word.
                1 if operation.rest[0] & 0xffff_ffff == 2 => {
                    let bits = operation.value.to_le_bytes();
                    let bits = u32::from_le_bytes([bits[0], bits[1], bits[2], bits[3]]);
                    enqueue(handle, |_| Ok(Op::WaitBits { at: operation.to, bits }))?;
                }
                2 => fill(operation.to, operation.value.to_le_bytes()[..4].to_vec(), handle)?,
                5 => fill(operation.to, operation.value.to_le_bytes().to_vec(), handle)?,
                _ => return Err(code::NOT_SUPPORTED),
            }
        }
        lock().written += u64::from(count);
        Ok(())
    }

    fn cuEventCreate(event: *mut Handle, _flags: c_uint) {
        let mut machine = lock();
        let context = current(&machine)?;
        let handle = machine.handle();
        machine.events.insert(handle, Event { context, recorded: 0, open: BTreeSet::new(), at_ns: 0 });
        give(event, pointer(handle))
    }
    fn cuEventDestroy_v2(event: Handle) { lock().events.remove(&event.addr()).map(|_| ()).ok_or(code::INVALID_HANDLE) }
    fn cuEventRecord(event: Handle, stream: Handle) {
        let event = event.addr();
        enqueue(stream, |machine| {
            let found = machine.events.get_mut(&event).ok_or(code::INVALID_HANDLE)?;
            found.recorded += 1;
            found.open.insert(found.recorded);
            Ok(Op::Record { event, generation: found.recorded })
        }).map(|_| ())
    }
    fn cuEventQuery(event: Handle) {
        let mut machine = lock();
        machine.step();
        let found = machine.events.get(&event.addr()).ok_or(code::INVALID_HANDLE)?;
        if let Some(lost) = machine.contexts.get(&found.context).and_then(|context| context.lost) { return Err(lost); }
        if found.is_reached() { Ok(()) } else { Err(code::NOT_READY) }
    }
    fn cuEventSynchronize(event: Handle) {
        let is_open = |machine: &Machine| {
            machine.events.get(&event.addr()).is_some_and(|event| {
                !event.is_reached() && machine.contexts.get(&event.context).is_some_and(|context| context.lost.is_none())
            })
        };
        let machine = wait(lock(), |machine| !is_open(machine));
        let found = machine.events.get(&event.addr()).ok_or(code::INVALID_HANDLE)?;
        machine.contexts.get(&found.context).and_then(|context| context.lost).map_or(Ok(()), Err)
    }
    fn cuEventElapsedTime_v2(milliseconds: *mut f32, begin: Handle, end: Handle) { elapsed(milliseconds, begin, end) }
    fn cuEventElapsedTime(milliseconds: *mut f32, begin: Handle, end: Handle) { elapsed(milliseconds, begin, end) }

    fn cuModuleLoadData(module: *mut Handle, image: *const c_void) { load(module, image) }
    fn cuModuleLoadDataEx(module: *mut Handle, image: *const c_void, _count: c_uint, _options: Handle, _values: Handle) { load(module, image) }
    fn cuLibraryLoadData(library: *mut Handle, image: *const c_void, _a: Handle, _b: Handle, _c: c_uint, _d: Handle, _e: Handle, _f: c_uint) {
        load_library(library, image)
    }
    fn cuModuleUnload(module: Handle) {
        let (mut machine, _) = alone()?;
        if !machine.modules.contains_key(&module.addr()) { return Err(code::INVALID_HANDLE); }
        machine.unload(module.addr());
        Ok(())
    }
    fn cuLibraryUnload(library: Handle) { lock().unload(library.addr()); Ok(()) }
    fn cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) { find_function(function, module, name) }
    fn cuLibraryGetKernel(kernel: *mut Handle, library: Handle, name: *const c_char) { find_function(kernel, library, name) }
    fn cuLibraryGetKernelCount(count: *mut c_uint, library: Handle) { count_functions(count, library) }
    fn cuLibraryEnumerateKernels(places: *mut Handle, count: c_uint, library: Handle) { list_functions(places, count, library) }
    fn cuLibraryGetModule(module: *mut Handle, library: Handle) { find_module(module, library) }
    fn cuKernelGetFunction(function: *mut Handle, kernel: Handle) { function_of(function, kernel) }
    fn cuModuleGetGlobal_v2(address: *mut u64, bytes: *mut usize, module: Handle, name: *const c_char) { find_global(address, bytes, module, name) }
    fn cuLibraryGetGlobal(address: *mut u64, bytes: *mut usize, library: Handle, name: *const c_char) {
        current(&lock())?;
        find_global(address, bytes, library, name)
    }
    fn cuFuncGetModule(module: *mut Handle, function: Handle) {
        let of = lock().functions.get(&function.addr()).map(|function| function.module);
        give(module, pointer(of.ok_or(code::INVALID_HANDLE)?))
    }
    fn cuFuncGetName(name: *mut *const c_char, function: Handle) { name_of(name, function) }
    fn cuKernelGetName(name: *mut *const c_char, kernel: Handle) { name_of(name, kernel) }
    fn cuFuncLoad(function: Handle) {
        let mut machine = lock();
        let found = machine.functions.get(&function.addr()).cloned().ok_or(code::INVALID_HANDLE)?;
        machine.load_code(&found);
        Ok(())
    }
    fn cuModuleGetFunctionCount(count: *mut c_uint, module: Handle) { count_functions(count, module) }
    fn cuModuleEnumerateFunctions(places: *mut Handle, count: c_uint, module: Handle) { list_functions(places, count, module) }
    fn cuFuncGetParamInfo(function: Handle, index: usize, offset: *mut usize, size: *mut usize) {
        let machine = lock();
        let found = machine.functions.get(&function.addr()).ok_or(code::INVALID_HANDLE)?;
        let sizes = found.parameters.as_ref().ok_or(code::NOT_SUPPORTED)?;
        let wanted = *sizes.get(index).ok_or(code::INVALID_VALUE)?;
        give(offset, sizes[..index].iter().sum()).and_then(|()| give(size, wanted))
    }
    fn cuFuncSetAttribute(_function: Handle, _attribute: c_int, _value: c_int) { current(&lock()).map(|_| ()) }
    fn cuFuncGetAttribute(value: *mut c_int, _attribute: c_int, _function: Handle) { give(value, 1) }
    fn cuLaunchKernel(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        _shared: c_uint, stream: Handle, parameters: *const *const u64, extra: *const u64,
    ) {
        let extents = [grid_x, grid_y, grid_z, block_x, block_y, block_z];
        if extra.is_null() { launch(function, extents, stream, parameters) } else { launch_packed(function, extents, stream, extra) }
    }
    fn cuLaunchCooperativeKernel(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        _shared: c_uint, stream: Handle, parameters: *const *const u64,
    ) { launch(function, [grid_x, grid_y, grid_z, block_x, block_y, block_z], stream, parameters) }

    fn cuLinkCreate_v2(_count: c_uint, _options: Handle, _values: Handle, state: *mut Handle) {
        let handle = lock().handle();
        give(state, pointer(handle))
    }
    fn cuLinkAddData_v2(
        _state: Handle, _kind: c_int, _data: Handle, _size: usize, _name: *const c_char, _count: c_uint, _options: Handle, _values: Handle,
    ) { Ok(()) }
    // A linker would make machine code; there is nothing to make it with.
    fn cuLinkComplete(_state: Handle, _image: *mut Handle, _size: *mut usize) { Err(code::NOT_SUPPORTED) }
    fn cuLinkDestroy(_state: Handle) { Ok(()) }
    fn cuGetErrorName(_error: c_int, text: *mut *const c_char) { give(text, c"an error of the stand-in driver".as_ptr()) }
    fn cuGetErrorString(_error: c_int, text: *mut *const c_char) { give(text, c"an error of the stand-in driver".as_ptr()) }
}

fn elapsed(milliseconds: *mut f32, begin: Handle, end: Handle) -> Done {
    let machine = lock();
    let at = |event: Handle| machine.events.get(&event.addr()).map(|event| event.at_ns).ok_or(code::INVALID_HANDLE);
    give(milliseconds, Duration::from_nanos(at(end)?.saturating_sub(at(begin)?)).as_secs_f32() * 1e3)
}

/// Names that were asked for; they live as long as the process, which is a test.
fn name_of(place: *mut *const c_char, function: Handle) -> Done {
    let name = lock().functions.get(&function.addr()).map(|function| function.name.clone()).ok_or(code::INVALID_HANDLE)?;
    let name: &'static str = Box::leak(format!("{name}\0").into_boxed_str());
    give(place, name.as_ptr().cast())
}
