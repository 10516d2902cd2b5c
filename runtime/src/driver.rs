//! The calls of the CUDA driver that cudarc has no safe form for; all unsafe code of this crate is here, in `launch` and in `guard`.
//!
//! None of these waits for a kernel; what does is listed in `docs/RUNTIME.md`.

pub(crate) mod handle;
#[cfg(all(feature = "snapshot", unix))]
pub(crate) mod mapped;

use crate::fault::DriverFault;
use cudarc::driver::sys::{self, CUresult};
use cudarc::driver::{CudaFunction, CudaModule, CudaStream, DevicePtr, DriverError};
use std::ffi::{CString, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The driver's answer as a result.
pub(crate) fn check(call: &'static str, result: CUresult) -> Result<(), DriverFault> {
    if result == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(fault(call, DriverError(result))) }
}

/// cudarc's error with the name of the call that it came from.
pub(crate) fn fault(call: &'static str, error: DriverError) -> DriverFault {
    DriverFault { call, code: error.0 as u32, name: format!("{:?}", error.0) }
}

/// Whether the driver's library can be loaded.
pub(crate) fn is_present() -> bool {
    // SAFETY: loads the driver's library if it is there, which runs its initialisers.
    unsafe { sys::is_culib_present() }
}

/// Version of CUDA that the driver's library brings, as 13000; none without a driver.
#[must_use]
pub fn driver_version() -> Option<i32> {
    if is_present() { version().ok() } else { None }
}

/// The same where there is a driver.
pub(crate) fn version() -> Result<i32, DriverFault> {
    let mut version = 0;
    // SAFETY: the out pointer lives through the call.
    check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&raw mut version) })?;
    Ok(version)
}

/// A piece of device memory that is never given back: `cuMemFree` would wait for every kernel of the context.
pub(crate) fn allocate(bytes: usize) -> Result<u64, DriverFault> {
    let mut address = 0;
    // SAFETY: the out pointer lives through the calls, the range is the one just allocated.
    unsafe {
        check("cuMemAlloc", sys::cuMemAlloc_v2(&raw mut address, bytes))?;
    }
    Ok(address)
}

/// A value in pinned host memory that the device may read and write at any time, never given back.
///
/// `T` is a plain struct of integers without gaps, for which any bits are a value. Its words are read and written one by one, each as a whole: the device
/// or another thread may write meanwhile.
#[derive(Debug)]
pub(crate) struct Pinned<T> {
    host: *mut T,
    device: u64,
}

// SAFETY: the pointer is to memory that lives for ever, and it is only used through atomic accesses of plain integers.
unsafe impl<T: Send> Send for Pinned<T> {}
// SAFETY: as above; readers know that the device, or another thread, may write meanwhile.
unsafe impl<T: Send> Sync for Pinned<T> {}

impl<T: Copy> Pinned<T> {
    /// All its words zero.
    pub(crate) fn zeroed() -> Result<Self, DriverFault> {
        let mut host = ptr::null_mut();
        let mut device = 0;
        let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP | sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: the out pointers live through the calls; a page is aligned for any `T`, and zeroes are a value of it.
        unsafe {
            check("cuMemHostAlloc", sys::cuMemHostAlloc(&raw mut host, size_of::<T>(), flags))?;
            check("cuMemHostGetDevicePointer", sys::cuMemHostGetDevicePointer_v2(&raw mut device, host, 0))?;
            ptr::write_bytes(host.cast::<u8>(), 0, size_of::<T>());
        }
        Ok(Self { host: host.cast(), device })
    }

    pub(crate) fn new(value: T) -> Result<Self, DriverFault> {
        let pinned = Self::zeroed()?;
        pinned.write(value);
        Ok(pinned)
    }

    /// The same in managed memory, which moves to where it is used.
    pub(crate) fn managed(value: T) -> Result<Self, DriverFault> {
        let mut address = 0;
        let flags = sys::CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL as u32;
        // SAFETY: the out pointer lives through the call.
        check("cuMemAllocManaged", unsafe { sys::cuMemAllocManaged(&raw mut address, size_of::<T>(), flags) })?;
        let managed = Self { host: ptr::with_exposed_provenance_mut(address as usize), device: address };
        managed.write(value);
        Ok(managed)
    }

    /// Address as the device sees it.
    pub(crate) fn device(&self) -> u64 {
        self.device
    }

    /// The part of it that begins at `offset` bytes and is a `U`.
    pub(crate) fn part<U: Copy>(&self, offset: usize) -> Pinned<U> {
        assert!(offset + size_of::<U>() <= size_of::<T>() && offset.is_multiple_of(align_of::<U>()));
        Pinned { host: self.host.cast::<u8>().wrapping_add(offset).cast(), device: self.device + offset as u64 }
    }

    /// One word of it.
    pub(crate) fn get<U: Copy>(&self, offset: usize) -> U {
        self.part(offset).read()
    }

    /// Writes one word, or a few.
    pub(crate) fn set<U: Copy>(&self, offset: usize, value: U) {
        self.part(offset).write(value);
    }

    pub(crate) fn write(&self, value: T) {
        let from = ptr::from_ref(&value).cast_mut();
        // SAFETY: both have the words of a `T`, and `host` points to memory that lives for ever.
        unsafe {
            if align_of::<T>() == 8 {
                words::<T, _>(from, self.host, |from: &AtomicU64, to| to.store(from.load(Ordering::Relaxed), Ordering::Release));
            } else {
                words::<T, _>(from, self.host, |from: &AtomicU32, to| to.store(from.load(Ordering::Relaxed), Ordering::Release));
            }
        }
    }

    pub(crate) fn read(&self) -> T {
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: as above; all words are written, and any bits are a value.
        unsafe {
            if align_of::<T>() == 8 {
                words::<T, _>(self.host, value.as_mut_ptr(), |from: &AtomicU64, to| {
                    to.store(from.load(Ordering::Acquire), Ordering::Relaxed);
                });
            } else {
                words::<T, _>(self.host, value.as_mut_ptr(), |from: &AtomicU32, to| {
                    to.store(from.load(Ordering::Acquire), Ordering::Relaxed);
                });
            }
            value.assume_init()
        }
    }
}

/// Calls `each` with the words of one `T` and of another, in their order.
///
/// # Safety
/// Both have room for a `T`, whose alignment is that of the word, and which has no gaps.
unsafe fn words<T, Word>(from: *mut T, to: *mut T, each: impl Fn(&Word, &Word)) {
    const { assert!(align_of::<T>() == 4 || align_of::<T>() == 8) };
    for index in 0..size_of::<T>() / size_of::<Word>() {
        // SAFETY: the caller's promise.
        unsafe { each(&*from.cast::<Word>().add(index), &*to.cast::<Word>().add(index)) };
    }
}

/// Words in pinned host memory, never given back.
#[derive(Debug)]
pub(crate) struct PinnedWords {
    host: *mut u32,
    count: usize,
}

// SAFETY: the pointer is to memory that lives for ever, and it is only used through volatile accesses of plain integers.
unsafe impl Send for PinnedWords {}

impl PinnedWords {
    /// So many, all zero.
    pub(crate) fn zeroed(count: usize) -> Result<Self, DriverFault> {
        let mut host = ptr::null_mut();
        // SAFETY: the out pointer lives through the call; what was allocated has room for so many words.
        unsafe {
            check("cuMemHostAlloc", sys::cuMemHostAlloc(&raw mut host, 4 * count, sys::CU_MEMHOSTALLOC_PORTABLE))?;
            ptr::write_bytes(host.cast::<u32>(), 0, count);
        }
        Ok(Self { host: host.cast(), count })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The words, while no copy to or from them is under way.
    pub(crate) fn words(&self) -> &[u32] {
        // SAFETY: so many words were allocated and live for ever; who copies waits for the copy, and has the only handle.
        unsafe { std::slice::from_raw_parts(self.host, self.count) }
    }

    /// The same, to be written.
    pub(crate) fn words_mut(&mut self) -> &mut [u32] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.host, self.count) }
    }
}

/// Copies the first words of pinned memory, in the stream's order.
pub(crate) fn upload_words(stream: sys::CUstream, to: u64, from: &PinnedWords, words: usize) -> Result<(), DriverFault> {
    // SAFETY: `to` is an address of device memory for so many words, which this crate allocated; pinned memory lives for ever.
    check("cuMemcpyHtoDAsync", unsafe { sys::cuMemcpyHtoDAsync_v2(to, from.host.cast(), 4 * words.min(from.count), stream) })
}

/// Copies words to pinned memory, in the stream's order.
pub(crate) fn download_words(stream: sys::CUstream, to: &PinnedWords, from: u64, words: usize) -> Result<(), DriverFault> {
    // SAFETY: as above; no more is copied than there is room for.
    check("cuMemcpyDtoHAsync", unsafe { sys::cuMemcpyDtoHAsync_v2(to.host.cast(), from, 4 * words.min(to.count), stream) })
}

/// Sets bytes to zero, in the stream's order: a small kernel, which waits for room on the device.
pub(crate) fn clear(stream: sys::CUstream, address: u64, bytes: usize) -> Result<(), DriverFault> {
    // SAFETY: the range lies in device memory that this crate allocated.
    check("cuMemsetD8Async", unsafe { sys::cuMemsetD8Async(address, 0, bytes, stream) })
}

/// Has a stream wait until a bit of a word is set.
pub(crate) fn wait_bit(stream: sys::CUstream, address: u64, bit: u32) -> Result<(), DriverFault> {
    let any = sys::CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_AND as u32;
    // SAFETY: `address` is that of an aligned word that this crate allocated.
    check("cuStreamWaitValue32", unsafe { sys::cuStreamWaitValue32_v2(stream, address, bit, any) })
}

/// Copies from pinned memory, in the stream's order. `from` must not change until the copy is done.
pub(crate) fn upload<T: Copy>(stream: sys::CUstream, to: u64, from: &Pinned<T>) -> Result<(), DriverFault> {
    // SAFETY: `to` is an address of device memory for a `T`, which this crate allocated or found under the module's symbol; pinned memory
    // lives for ever.
    check("cuMemcpyHtoDAsync", unsafe { sys::cuMemcpyHtoDAsync_v2(to, from.host.cast(), size_of::<T>(), stream) })
}

/// Copies a few bytes from this thread's memory, in the stream's order. The driver takes them along with the command.
/// So they wait for no copy engine that is busy with large copies, and `from` may change at once.
pub(crate) fn send<T: Copy>(stream: sys::CUstream, to: u64, from: &T) -> Result<(), DriverFault> {
    // SAFETY: `to` is an address of device memory for a `T`; memory that is not pinned has been read when the call returns.
    check("cuMemcpyHtoDAsync", unsafe { sys::cuMemcpyHtoDAsync_v2(to, ptr::from_ref(from).cast(), size_of::<T>(), stream) })
}

/// Most words that [`write_words`] takes: those of a control block that a host writes.
pub(crate) const MOST_WORDS: usize = 9;

/// Writes a few 64-bit words from `base`, each at its index, in the stream's order; up to four cost half of what a copy does.
pub(crate) fn write_words(stream: sys::CUstream, base: u64, words: &[(usize, u64)]) -> Result<(), DriverFault> {
    let operation = |(index, value): (usize, u64)| sys::CUstreamBatchMemOpParams_union {
        writeValue: sys::CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st {
            operation: sys::CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64,
            address: base + 8 * index as u64,
            __bindgen_anon_1: sys::CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st__bindgen_ty_1 { value64: value },
            flags: 0,
            alias: 0,
        },
    };
    let mut operations = [operation((0, 0)); MOST_WORDS];
    let count = words.len().min(MOST_WORDS);
    for (place, word) in operations.iter_mut().zip(words) {
        *place = operation(*word);
    }
    // SAFETY: the array lives through the call, which reads `count` of its elements; the addresses are aligned words of a control block.
    check("cuStreamBatchMemOp", unsafe { sys::cuStreamBatchMemOp_v2(stream, count as u32, operations.as_mut_ptr(), 0) })
}

/// Copies to pinned memory, in the stream's order.
pub(crate) fn download<T: Copy>(stream: sys::CUstream, to: &Pinned<T>, from: u64) -> Result<(), DriverFault> {
    download_bytes(stream, to, from, size_of::<T>())
}

/// The same with the first `bytes` of a `T` only.
pub(crate) fn download_bytes<T: Copy>(stream: sys::CUstream, to: &Pinned<T>, from: u64, bytes: usize) -> Result<(), DriverFault> {
    // SAFETY: as in `upload`; no more is copied than there is room for.
    check("cuMemcpyDtoHAsync", unsafe { sys::cuMemcpyDtoHAsync_v2(to.host.cast(), from, bytes.min(size_of::<T>()), stream) })
}

/// Writes a word, in the stream's order: the fastest way past a running kernel.
pub(crate) fn write_word(stream: sys::CUstream, address: u64, value: u32) -> Result<(), DriverFault> {
    // SAFETY: `address` is that of an aligned word that this crate allocated.
    check("cuStreamWriteValue32", unsafe { sys::cuStreamWriteValue32_v2(stream, address, value, 0) })
}

/// Whether everything in the stream so far is done.
pub(crate) fn is_drained(stream: sys::CUstream) -> Result<bool, DriverFault> {
    // SAFETY: the stream is alive: its owner is borrowed or held by the caller.
    let result = unsafe { sys::cuStreamQuery(stream) };
    if result == CUresult::CUDA_ERROR_NOT_READY { Ok(false) } else { check("cuStreamQuery", result).map(|()| true) }
}

/// An event that is never waited for, only asked.
#[derive(Debug)]
pub(crate) struct Event(sys::CUevent);

// SAFETY: the driver's calls on events may come from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    pub(crate) fn new(timing: bool) -> Result<Self, DriverFault> {
        let mut event = ptr::null_mut();
        let flags = if timing { 0 } else { sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32 };
        // SAFETY: the out pointer lives through the call. Events live as long as their context: they are pooled.
        check("cuEventCreate", unsafe { sys::cuEventCreate(&raw mut event, flags) })?;
        Ok(Self(event))
    }

    pub(crate) fn record(&self, stream: sys::CUstream) -> Result<(), DriverFault> {
        // SAFETY: event and stream are alive.
        check("cuEventRecord", unsafe { sys::cuEventRecord(self.0, stream) })
    }

    /// Whether what came before it in its stream is done.
    pub(crate) fn is_reached(&self) -> Result<bool, DriverFault> {
        // SAFETY: the event is alive.
        let result = unsafe { sys::cuEventQuery(self.0) };
        if result == CUresult::CUDA_ERROR_NOT_READY { Ok(false) } else { check("cuEventQuery", result).map(|()| true) }
    }

    /// Makes a stream wait for it.
    pub(crate) fn hold(&self, stream: sys::CUstream) -> Result<(), DriverFault> {
        // SAFETY: event and stream are alive.
        check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(stream, self.0, 0) })
    }

    /// Milliseconds from another event to this one; both have been reached.
    pub(crate) fn milliseconds_since(&self, begin: &Self) -> Result<f32, DriverFault> {
        // SAFETY: both events are alive and were made with timing.
        unsafe { cudarc::driver::result::event::elapsed(begin.0, self.0) }.map_err(|error| fault("cuEventElapsedTime", error))
    }
}

/// Lets this thread's calls be made while some stream is being captured.
pub(crate) fn relax_capture() -> Result<(), DriverFault> {
    let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the pointer lives through the call, which swaps the mode of this thread.
    check("cuThreadExchangeStreamCaptureMode", unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) })
}

/// Whether the stream is being captured into a graph.
pub(crate) fn is_capturing(stream: sys::CUstream) -> Result<bool, DriverFault> {
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the out pointer lives through the call.
    let result = unsafe { sys::cuStreamIsCapturing(stream, &raw mut status) };
    // The legacy stream can't be asked while another stream's capture forbids its use.
    if result == CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT {
        return Ok(true);
    }
    check("cuStreamIsCapturing", result)?;
    Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
}

/// A non-blocking stream of the highest priority, which overtakes whatever runs. It lives as long as its context.
///
/// It is none of cudarc's: the first stream that cudarc makes waits for the context, and makes every later launch track events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PriorityStream(sys::CUstream);

// SAFETY: the driver's calls on streams may come from any thread.
unsafe impl Send for PriorityStream {}
// SAFETY: as above.
unsafe impl Sync for PriorityStream {}

impl PriorityStream {
    /// In the current context.
    pub(crate) fn new() -> Result<Self, DriverFault> {
        let (mut lowest, mut highest) = (0, 0);
        let mut stream = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the out pointers live through the calls.
        unsafe {
            check("cuCtxGetStreamPriorityRange", sys::cuCtxGetStreamPriorityRange(&raw mut lowest, &raw mut highest))?;
            check("cuStreamCreateWithPriority", sys::cuStreamCreateWithPriority(&raw mut stream, flags, highest))?;
        }
        Ok(Self(stream))
    }

    pub(crate) fn raw(self) -> sys::CUstream {
        self.0
    }
}

/// A non-blocking stream of the same priority as another one. It lives as long as its context.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BesideStream {
    stream: PriorityStream,
    /// Its priority.
    pub(crate) priority: i32,
}

impl BesideStream {
    /// In the current context.
    pub(crate) fn new(priority: i32) -> Result<Self, DriverFault> {
        let mut stream = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the out pointer lives through the call.
        check("cuStreamCreateWithPriority", unsafe { sys::cuStreamCreateWithPriority(&raw mut stream, flags, priority) })?;
        Ok(Self { stream: PriorityStream(stream), priority })
    }

    pub(crate) fn raw(self) -> sys::CUstream {
        self.stream.raw()
    }
}

/// The priority of a stream.
pub(crate) fn priority(stream: sys::CUstream) -> Result<i32, DriverFault> {
    let mut priority = 0;
    // SAFETY: the stream is alive, the out pointer lives through the call.
    check("cuStreamGetPriority", unsafe { sys::cuStreamGetPriority(stream, &raw mut priority) })?;
    Ok(priority)
}

/// Address and size in bytes of a module's variable, if it has one of this name.
pub(crate) fn global(module: &Arc<CudaModule>, stream: &Arc<CudaStream>, name: &str) -> Result<Option<(u64, usize)>, DriverFault> {
    match module.get_global(name, stream) {
        Ok(view) => {
            let (address, _) = view.device_ptr(stream);
            Ok(Some((address, view.len())))
        }
        Err(DriverError(CUresult::CUDA_ERROR_NOT_FOUND)) => Ok(None),
        Err(error) => Err(fault("cuModuleGetGlobal", error)),
    }
}

/// Bytes of each parameter of a kernel, if the driver can tell.
pub(crate) fn parameter_sizes(function: &CudaFunction) -> Option<Vec<usize>> {
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the out pointers live through the call.
        let result = unsafe { sys::cuFuncGetParamInfo(function.cu_function(), sizes.len(), &raw mut offset, &raw mut size) };
        match result {
            CUresult::CUDA_SUCCESS => sizes.push(size),
            CUresult::CUDA_ERROR_INVALID_VALUE => return Some(sizes),
            _ => return None,
        }
    }
}

/// Has a kernel launched in clusters of so many blocks.
pub(crate) fn set_cluster(function: &CudaFunction, blocks: [u32; 3]) -> Result<(), DriverFault> {
    use sys::CUfunction_attribute as Attribute;
    let names = [
        Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
        Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
        Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
    ];
    for (name, count) in names.into_iter().zip(blocks) {
        // SAFETY: the function is alive.
        check("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(function.cu_function(), name, count.cast_signed()) })?;
    }
    Ok(())
}

/// Has the driver load a kernel's code now: later it may wait for a kernel that runs.
pub(crate) fn load_eagerly(function: &CudaFunction) -> Result<(), DriverFault> {
    // SAFETY: the function is alive.
    check("cuFuncLoad", unsafe { sys::cuFuncLoad(function.cu_function()) })
}

/// Compiles PTX for the context's device; the error brings what the compiler said.
pub(crate) fn assemble(ptx: &[u8]) -> Result<Vec<u8>, (DriverFault, String)> {
    let text = CString::new(ptx.split(|byte| *byte == 0).next().unwrap_or_default()).unwrap_or_default();
    let mut log = vec![0_u8; 16 << 10];
    let mut options = [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), ptr::without_provenance_mut(log.len())];
    let mut state = ptr::null_mut();
    let mut image = ptr::null_mut();
    let mut size = 0;
    let name = c"module.ptx";
    // SAFETY: every pointer lives until `cuLinkDestroy`; the text ends with a zero; the image belongs to the state and is copied before.
    let linked = unsafe {
        check("cuLinkCreate", sys::cuLinkCreate_v2(2, options.as_mut_ptr(), values.as_mut_ptr(), &raw mut state)).and_then(|()| {
            let (kind, data, length) =
                (sys::CUjitInputType::CU_JIT_INPUT_PTX, text.as_ptr().cast_mut().cast(), text.as_bytes_with_nul().len());
            let added = sys::cuLinkAddData_v2(state, kind, data, length, name.as_ptr(), 0, ptr::null_mut(), ptr::null_mut());
            let linked = check("cuLinkAddData", added)
                .and_then(|()| check("cuLinkComplete", sys::cuLinkComplete(state, &raw mut image, &raw mut size)))
                .map(|()| std::slice::from_raw_parts(image.cast::<u8>(), size).to_vec());
            let _ = sys::cuLinkDestroy(state);
            linked
        })
    };
    linked.map_err(|fault| {
        let said = log.split(|byte| *byte == 0).next().unwrap_or_default();
        (fault, String::from_utf8_lossy(said).trim().to_owned())
    })
}

/// One of this crate's own kernels, which has one thread. It lives as long as its context.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Support(sys::CUfunction);

// SAFETY: the driver's calls on functions may come from any thread.
unsafe impl Send for Support {}
// SAFETY: as above.
unsafe impl Sync for Support {}

/// Loads this crate's own kernels, in the current context, for good: unloading would wait for whatever runs.
pub(crate) fn load_support<const N: usize>(ptx: &str, names: [&str; N]) -> Result<[Support; N], DriverFault> {
    let text = CString::new(ptx).unwrap_or_default();
    let mut module = ptr::null_mut();
    // SAFETY: the text ends with a zero and lives through the call, as does the out pointer.
    check("cuModuleLoadData", unsafe { sys::cuModuleLoadData(&raw mut module, text.as_ptr().cast()) })?;
    let mut kernels = [Support(ptr::null_mut()); N];
    for (kernel, name) in kernels.iter_mut().zip(names) {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the module is alive, the name ends with a zero, the out pointer lives through the call. Loading now: later the driver
        // may wait for a kernel that runs.
        unsafe {
            check("cuModuleGetFunction", sys::cuModuleGetFunction(&raw mut kernel.0, module, name.as_ptr()))?;
            check("cuFuncLoad", sys::cuFuncLoad(kernel.0))?;
        }
    }
    Ok(kernels)
}

/// Launches one of this crate's own kernels.
pub(crate) fn launch_support(kernel: Support, stream: sys::CUstream, words: &mut [u64]) -> Result<(), DriverFault> {
    let mut parameters: Vec<*mut c_void> = words.iter_mut().map(|word| ptr::from_mut(word).cast()).collect();
    // SAFETY: only this crate's own kernels are launched so; each takes as many 64-bit words as it is given here.
    let result = unsafe { sys::cuLaunchKernel(kernel.0, 1, 1, 1, 1, 1, 1, 0, stream, parameters.as_mut_ptr(), ptr::null_mut()) };
    check("cuLaunchKernel", result)
}
