//! The least that launches a kernel and stops it: the driver API, two streams and the control block.
//!
//! All unsafe code of this crate is here. Handles and memory are never given back: a launcher lives in a child process that runs a few
//! cases and is then killed, and a `Drop` that frees something could block for ever behind a kernel that hangs. For the same reason
//! nothing here waits without a bound.

use crate::buffer::Type;
use crate::header::{Arg, Header};
use cudarc::driver::sys::{self, CUresult};
use cuinstr_abi::control::{ABI_VERSION, Action, CONTROL_SYMBOL, ControlBlock, FIRST_LAUNCH, StopRecord};
use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for something that does not depend on a kernel's end, such as writing the flag.
const BRIEF: Duration = Duration::from_secs(2);
/// Bytes of stack a thread may use; only kernels that recurse get them.
const STACK: usize = 8192;

/// A call of the driver that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The call.
    pub call: &'static str,
    /// Number of the error; 719 after a trap. 0 if the call took too long.
    pub code: u32,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} ({})", self.call, self.name, self.code)
    }
}

impl From<Fault> for String {
    fn from(fault: Fault) -> Self {
        fault.to_string()
    }
}

/// Number of the error that a host sees after a trap.
pub const LAUNCH_FAILED: u32 = CUresult::CUDA_ERROR_LAUNCH_FAILED as u32;

fn check(call: &'static str, result: CUresult) -> Result<(), Fault> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    Err(Fault { call, code: result as u32, name: format!("{result:?}") })
}

/// How a wait ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Every thread has left.
    Drained,
    /// The context is lost.
    Fault(Fault),
    /// The kernel still runs.
    Running,
}

/// What a launch is told.
#[derive(Debug, Clone, Copy)]
pub struct Orders {
    /// Its number.
    pub launch: u32,
    /// What a thread does that must stop.
    pub action: Action,
    /// Nanoseconds to the deadline, 0 for what is compiled in.
    pub timeout_ns: u64,
    /// Cycles for each block, 0 for what is compiled in.
    pub budget_cycles: u64,
    /// Iterations for each thread, 0 for what is compiled in.
    pub fuel: u64,
}

impl Orders {
    /// A launch that only the flag stops.
    #[must_use]
    pub fn new(launch: u32, action: Action) -> Self {
        Self { launch, action, timeout_ns: 0, budget_cycles: 0, fuel: 0 }
    }
}

/// A device with a context, a stream for kernels and one of the highest priority for everything that must overtake them.
#[derive(Debug)]
pub struct Gpu {
    /// Name of the device.
    pub name: String,
    /// Version of CUDA that the driver brings, as 13000.
    pub driver: i32,
    run: sys::CUstream,
    stop: sys::CUstream,
}

/// A kernel of a loaded module.
#[derive(Debug)]
pub struct Kernel {
    module: sys::CUmodule,
    function: sys::CUfunction,
}

/// Arguments of a launch, in device memory.
#[derive(Debug)]
pub struct Arguments {
    words: Vec<u64>,
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

/// The control block of a module.
#[derive(Debug)]
pub struct Control {
    address: u64,
    flag: u64,
    image: Pinned<ControlBlock>,
    copy: Pinned<ControlBlock>,
    host_record: Pinned<StopRecord>,
}

/// One value in pinned host memory that the device may read and write at any time.
#[derive(Debug)]
struct Pinned<T> {
    host: *mut T,
    device: u64,
}

impl<T: Copy> Pinned<T> {
    /// `T` must be a plain struct of integers, so that whatever the device writes is a value of it.
    fn new(value: T) -> Result<Self, Fault> {
        let mut host = ptr::null_mut();
        let mut device = 0;
        // SAFETY: the out pointers live through the calls. The size is that of `T`, page alignment is enough for it.
        unsafe {
            check("cuMemHostAlloc", sys::cuMemHostAlloc(&raw mut host, size_of::<T>(), sys::CU_MEMHOSTALLOC_DEVICEMAP))?;
            check("cuMemHostGetDevicePointer", sys::cuMemHostGetDevicePointer_v2(&raw mut device, host, 0))?;
        }
        let pinned = Self { host: host.cast(), device };
        pinned.write(value);
        Ok(pinned)
    }

    fn write(&self, value: T) {
        // SAFETY: `host` points to memory for one `T` that is never freed.
        unsafe { ptr::write_volatile(self.host, value) }
    }

    fn read(&self) -> T {
        // SAFETY: as above, and it was written in `new`. The device writes whole integers; a struct read while it writes may mix old
        // fields and new ones, which callers know (they look at `published` first).
        unsafe { ptr::read_volatile(self.host) }
    }
}

/// Whether this machine has a driver and a device.
///
/// # Errors
/// Says what is missing.
pub fn present() -> Result<(), String> {
    // SAFETY: loads the driver's library if it is there, which runs its initialisers.
    if !unsafe { sys::is_culib_present() } {
        return Err("there is no libcuda on this machine".into());
    }
    let mut count = 0;
    // SAFETY: the out pointer lives through the call.
    unsafe {
        check("cuInit", sys::cuInit(0))?;
        check("cuDeviceGetCount", sys::cuDeviceGetCount(&raw mut count))?;
    }
    if count > 0 { Ok(()) } else { Err("the driver knows no device".into()) }
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

    /// The tensor map of a matrix of 32-bit words, of so many columns and in boxes of so many columns and rows, as the bytes that a
    /// kernel reads.
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

    /// Creates a context on the first device.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn open() -> Result<Self, String> {
        present()?;
        let (mut device, mut driver) = (0, 0);
        let mut context = ptr::null_mut();
        let mut name = [0; 128];
        let (mut run, mut stop) = (ptr::null_mut(), ptr::null_mut());
        let (mut lowest, mut highest) = (0, 0);
        let non_blocking = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the out pointers live through the calls, `name` is 128 bytes long and ends with a zero.
        let name = unsafe {
            check("cuDriverGetVersion", sys::cuDriverGetVersion(&raw mut driver))?;
            check("cuDeviceGet", sys::cuDeviceGet(&raw mut device, 0))?;
            check("cuDeviceGetName", sys::cuDeviceGetName(name.as_mut_ptr(), 128, device))?;
            check("cuDevicePrimaryCtxRetain", sys::cuDevicePrimaryCtxRetain(&raw mut context, device))?;
            check("cuCtxSetCurrent", sys::cuCtxSetCurrent(context))?;
            check("cuCtxSetLimit", sys::cuCtxSetLimit(sys::CUlimit::CU_LIMIT_STACK_SIZE, STACK))?;
            check("cuCtxGetStreamPriorityRange", sys::cuCtxGetStreamPriorityRange(&raw mut lowest, &raw mut highest))?;
            check("cuStreamCreateWithPriority", sys::cuStreamCreateWithPriority(&raw mut run, non_blocking, lowest))?;
            check("cuStreamCreateWithPriority", sys::cuStreamCreateWithPriority(&raw mut stop, non_blocking, highest))?;
            CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
        };
        Ok(Self { name, driver, run, stop })
    }

    /// Loads a cubin and finds its kernel.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn load(&self, cubin: &[u8], entry: &str, shared: u32) -> Result<Kernel, Fault> {
        let entry = c_string(entry);
        let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: `cubin` is a whole ELF image that the driver copies, `entry` ends with a zero, out pointers live through the calls.
        unsafe {
            check("cuModuleLoadData", sys::cuModuleLoadData(&raw mut module, cubin.as_ptr().cast()))?;
            check("cuModuleGetFunction", sys::cuModuleGetFunction(&raw mut function, module, entry.as_ptr()))?;
            if shared > 0 {
                check("cuFuncSetAttribute", sys::cuFuncSetAttribute(function, attribute, shared.cast_signed()))?;
            }
        }
        Ok(Kernel { module, function })
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

    /// Launches on the kernels' stream and returns at once.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn launch(&self, kernel: &Kernel, header: &Header, arguments: &Arguments) -> Result<(), Fault> {
        let mut attributes = Vec::new();
        if let Some([x, y, z]) = header.cluster {
            let size = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            let value = sys::CUlaunchAttributeValue { clusterDim: size };
            attributes.push((sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value));
        }
        if header.cooperative {
            let value = sys::CUlaunchAttributeValue { cooperative: 1 };
            attributes.push((sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value));
        }
        let mut attributes: Vec<sys::CUlaunchAttribute> =
            attributes.into_iter().map(|(id, value)| sys::CUlaunchAttribute { id, pad: [0; 4], value }).collect();
        let config = sys::CUlaunchConfig {
            gridDimX: header.grid[0],
            gridDimY: header.grid[1],
            gridDimZ: header.grid[2],
            blockDimX: header.block[0],
            blockDimY: header.block[1],
            blockDimZ: header.block[2],
            sharedMemBytes: header.shared,
            hStream: self.run,
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        // The driver reads as many low bytes of each word as the parameter has.
        let mut parameters: Vec<*mut c_void> = arguments.words.iter().map(|word| ptr::from_ref(word).cast_mut().cast()).collect();
        // SAFETY: config, attributes and parameters live through the call, which copies them. That the kernel takes these
        // parameters is what its file's header says; a wrong one costs this child process its context.
        let result = unsafe { sys::cuLaunchKernelEx(&raw const config, kernel.function, parameters.as_mut_ptr(), ptr::null_mut()) };
        check("cuLaunchKernelEx", result)
    }

    /// Waits until the kernels' stream is drained, at most for `limit`, asking without a pause at first.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> Ended {
        poll(self.run, limit)
    }

    /// Milliseconds that `repeats` launches in a row take, by the device's own events.
    ///
    /// # Errors
    /// What the driver answered, or that it took longer than `limit`.
    pub fn time(&self, kernel: &Kernel, header: &Header, arguments: &Arguments, repeats: u32, limit: Duration) -> Result<f64, Fault> {
        let (mut begin, mut end) = (ptr::null_mut(), ptr::null_mut());
        let mut milliseconds = 0.0;
        // SAFETY: the out pointers live through the calls; the events are destroyed when they have been reached.
        unsafe {
            check("cuEventCreate", sys::cuEventCreate(&raw mut begin, 0))?;
            check("cuEventCreate", sys::cuEventCreate(&raw mut end, 0))?;
            check("cuEventRecord", sys::cuEventRecord(begin, self.run))?;
            for _ in 0..repeats {
                self.launch(kernel, header, arguments)?;
            }
            check("cuEventRecord", sys::cuEventRecord(end, self.run))?;
            drained("timing", self.run, limit)?;
            check("cuEventElapsedTime", sys::cuEventElapsedTime_v2(&raw mut milliseconds, begin, end))?;
            check("cuEventDestroy", sys::cuEventDestroy_v2(begin))?;
            check("cuEventDestroy", sys::cuEventDestroy_v2(end))?;
        }
        Ok(f64::from(milliseconds))
    }

    /// Finds a module's control block, and checks that it is as the ABI says before any host touched it.
    ///
    /// # Errors
    /// What the driver answered, or what is not as it should be.
    pub fn bind(&self, kernel: &Kernel) -> Result<Control, String> {
        let (mut address, mut size) = (0, 0);
        let symbol = c_string(CONTROL_SYMBOL);
        // SAFETY: the out pointers live through the call, the name ends with a zero.
        let result = unsafe { sys::cuModuleGetGlobal_v2(&raw mut address, &raw mut size, kernel.module, symbol.as_ptr()) };
        check("cuModuleGetGlobal", result)?;
        if size != size_of::<ControlBlock>() {
            return Err(format!("the control block has {size} bytes"));
        }
        let blank = ControlBlock {
            abi_version: 0,
            action: 0,
            flag: 0,
            launch: 0,
            count_fuel: 0,
            timeout_ns: 0,
            start_ns: 0,
            budget_cycles: 0,
            fuel: 0,
            host_record: 0,
            record: 0,
            own_record: StopRecord::EMPTY,
        };
        let (image, copy) = (Pinned::new(blank)?, Pinned::new(blank)?);
        let mut control = Control { address, flag: 0, image, copy, host_record: Pinned::new(StopRecord::EMPTY)? };
        let block = self.block(&control)?;
        let untouched = ControlBlock { abi_version: ABI_VERSION, launch: FIRST_LAUNCH, flag: block.flag, ..blank };
        if block != untouched || block.flag == 0 {
            return Err(format!("the control block is not as it should be before anybody touches it: {block:?}"));
        }
        control.flag = block.flag;
        control.image.write(block);
        Ok(control)
    }

    /// Arms the next launch: one write in stream order.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn arm(&self, control: &Control, orders: &Orders) -> Result<(), Fault> {
        control.host_record.write(StopRecord::EMPTY);
        control.image.write(ControlBlock {
            abi_version: ABI_VERSION,
            action: orders.action as u32,
            flag: control.flag,
            launch: orders.launch,
            count_fuel: 0,
            timeout_ns: orders.timeout_ns,
            start_ns: 0,
            budget_cycles: orders.budget_cycles,
            fuel: orders.fuel,
            host_record: control.host_record.device,
            record: 0,
            own_record: StopRecord::EMPTY,
        });
        // SAFETY: source and destination hold one control block each. The source is pinned and read when the stream gets there;
        // `image` is written again only after the launch that follows has drained.
        let result = unsafe { sys::cuMemcpyHtoDAsync_v2(control.address, control.image.host.cast(), size_of::<ControlBlock>(), self.run) };
        check("cuMemcpyHtoDAsync", result)
    }

    /// Writes a launch's number into the flag, past whatever runs.
    ///
    /// # Errors
    /// What the driver answered.
    pub fn flip(&self, control: &Control, launch: u32) -> Result<(), Fault> {
        // SAFETY: the flag is one 32-bit word of the module, which is never unloaded.
        check("cuMemsetD32Async", unsafe { sys::cuMemsetD32Async(control.flag, launch, 1, self.stop) })
    }

    /// Waits until a flip has arrived.
    ///
    /// # Errors
    /// What the driver answered, or that it took too long.
    pub fn flipped(&self) -> Result<(), Fault> {
        drained("writing the flag", self.stop, BRIEF)
    }

    /// Reads the stop record past whatever runs.
    ///
    /// # Errors
    /// What the driver answered, or that it took too long.
    pub fn record(&self, control: &Control) -> Result<StopRecord, Fault> {
        self.block(control).map(|block| block.own_record)
    }

    fn block(&self, control: &Control) -> Result<ControlBlock, Fault> {
        // SAFETY: source and destination hold one control block each, and the call's end is awaited before the copy is read.
        let result = unsafe { sys::cuMemcpyDtoHAsync_v2(control.copy.host.cast(), control.address, size_of::<ControlBlock>(), self.stop) };
        check("cuMemcpyDtoHAsync", result)?;
        drained("reading the control block", self.stop, BRIEF)?;
        Ok(control.copy.read())
    }
}

impl Control {
    /// The record in pinned host memory, which is there after a trap too.
    #[must_use]
    pub fn host_record(&self) -> StopRecord {
        self.host_record.read()
    }
}

fn drained(what: &'static str, stream: sys::CUstream, limit: Duration) -> Result<(), Fault> {
    match poll(stream, limit) {
        Ended::Drained => Ok(()),
        Ended::Fault(fault) => Err(fault),
        Ended::Running => Err(Fault { call: what, code: 0, name: format!("not done within {limit:?}") }),
    }
}

fn poll(stream: sys::CUstream, limit: Duration) -> Ended {
    let since = Instant::now();
    loop {
        // SAFETY: the stream is never destroyed.
        match unsafe { sys::cuStreamQuery(stream) } {
            CUresult::CUDA_SUCCESS => return Ended::Drained,
            CUresult::CUDA_ERROR_NOT_READY => {}
            error => return check("cuStreamQuery", error).map_or_else(Ended::Fault, |()| Ended::Drained),
        }
        let waited = since.elapsed();
        if waited >= limit {
            return Ended::Running;
        }
        if waited > Duration::from_millis(100) {
            thread::sleep(Duration::from_micros(50));
        }
    }
}

fn c_string(text: &str) -> CString {
    CString::new(text).expect("names of symbols hold no zero")
}
