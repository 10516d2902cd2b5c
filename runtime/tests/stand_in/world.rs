//! A context of the stand-in driver with a module in it, and launches of its kernels.

use cuinstr_runtime::cudarc::driver::{CudaContext, CudaStream, LaunchConfig};
use cuinstr_runtime::cudarc::driver::{result, sys};
use cuinstr_runtime::guard::{About, Attached, Guard, Handle, Limits};
use cuinstr_runtime::sources::Sources;
use cuinstr_runtime::{Kernel, Launch, Module, Result, Running};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use cuinstr_stand_in::client::command;

/// A module as the rewriter and nvcc leave it, as far as the stand-in looks: the control block, and kernels that do what their names say.
pub(crate) const PTX: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 8 .b8 cuinstr_control_v1[1192];
.visible .global .align 4 .u32 cuinstr_flag_v1;
.visible .global .align 16 .b8 cuinstr_pause_v1[48];
.visible .entry blocks(.param .u64 slots, .param .u64 nanoseconds, .param .u64 counts) { ret; }
.visible .entry empty() { ret; }
.visible .entry spin() { ret; }
.visible .entry deaf() { ret; }
.visible .entry late() { ret; }
.visible .entry silent() { ret; }
.visible .entry fault() { ret; }
.visible .entry refuse() { ret; }
.visible .entry work_less() { ret; }
.visible .entry work(.param .u64 nanoseconds) { ret; }
.visible .entry takes(.param .u16 half, .param .align 4 .b8 pair[12]) { ret; }
";

pub(crate) const SHORT: Duration = Duration::from_millis(20);
/// What takes so long never comes: a busy machine does not make a test wait for it.
pub(crate) const LONG: Duration = Duration::from_secs(60);
pub(crate) const ONE: LaunchConfig = LaunchConfig { grid_dim: (2, 1, 1), block_dim: (32, 1, 1), shared_mem_bytes: 0 };

pub(crate) struct World {
    pub(crate) context: Arc<CudaContext>,
    pub(crate) module: Module,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::open().expect("the stand-in has a device")
    }

    pub(crate) fn open() -> Result<Self> {
        let context = cuinstr_runtime::open(0)?;
        let module = Module::load(&context, PTX.as_bytes())?;
        Ok(Self { context, module })
    }

    pub(crate) fn with_sources(sources: impl Sources + Send + Sync + 'static) -> Self {
        let context = cuinstr_runtime::open(0).expect("the stand-in has a device");
        let module = Module::load_with(&context, PTX.as_bytes(), sources).expect("a module");
        Self { context, module }
    }

    pub(crate) fn stream(&self) -> Arc<CudaStream> {
        self.context.new_stream().expect("a stream")
    }

    pub(crate) fn kernel(&self, name: &str) -> Kernel {
        self.module.kernel(name).expect("a kernel of the module")
    }
}

/// Launches a kernel without parameters.
pub(crate) fn start(kernel: &Kernel, stream: &Arc<CudaStream>, set: impl FnOnce(&mut Launch<'_>)) -> Result<Running> {
    let mut launch = kernel.on(stream)?;
    set(&mut launch);
    // SAFETY: the stand-in's kernels touch no memory of ours.
    unsafe { launch.start(ONE) }
}

/// Waits until something holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < LONG, "{what}: not within {LONG:?}");
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// A kernel without parameters that another host launched between `arm` and `launched`, which is for the caller to say. `None` if the host's own
/// calls fail.
pub(crate) fn guarded(context: &Arc<CudaContext>, name: &str, stream: &CudaStream, limits: &Limits) -> Result<Option<Guard>> {
    let image = format!("{PTX}\0");
    let name = format!("{name}\0");
    let mut module: sys::CUmodule = std::ptr::null_mut();
    let mut function: sys::CUfunction = std::ptr::null_mut();
    // SAFETY: image and name end with a zero, and the stand-in's kernels touch no memory of ours.
    unsafe {
        let is_loaded = context.bind_to_thread().is_ok()
            && sys::cuModuleLoadData(&raw mut module, image.as_ptr().cast()).result().is_ok()
            && sys::cuModuleGetFunction(&raw mut function, module, name.as_ptr().cast()).result().is_ok();
        if !is_loaded {
            return Ok(None);
        }
        let attached = Attached::new(Handle::Module(module.expose_provenance()), &About::default())?;
        let guard = attached.arm(stream.cu_stream().expose_provenance(), limits)?;
        let launched = result::launch_kernel(function, (1, 1, 1), (32, 1, 1), 0, stream.cu_stream(), &mut []);
        Ok(launched.is_ok().then_some(guard))
    }
}
