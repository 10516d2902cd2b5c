//! The least that launches a kernel and stops it: the driver API, two streams and the control block.
//!
//! The cases' own unsafe code is here and below. Handles and memory are never given back: a launcher lives in a child
//! process that runs a few cases and is then killed. A `Drop` that frees something could block for ever behind a kernel
//! that hangs. For the same reason nothing here waits without a bound.

mod control;
mod memory;

pub use control::{Control, Orders};
pub use memory::{Arguments, Contents, Memory};

use cudarc::driver::sys::{self, CUresult};
use cuinstr_harness::header::Header;
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

impl Gpu {
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
