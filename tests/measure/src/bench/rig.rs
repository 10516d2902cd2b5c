//! What the figures are measured with: the first device, the probes of the prepared folder, guarded and bare launches of them.

use cuinstr_gpu_tests::manifest::Manifest;
use cuinstr_harness::buffer::Type;
use cuinstr_harness::header::Arg;
use cuinstr_harness::variant::{self, Variant};
use cuinstr_runtime::cudarc::driver::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
use cuinstr_runtime::cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, LaunchConfig, PinnedHostSlice, PushKernelArg as _,
};
use cuinstr_runtime::cudarc::nvrtc::Ptx;
use cuinstr_runtime::{Kernel, Launch, Module, Running};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The first device, and the prepared folder.
#[derive(Debug)]
pub struct Rig {
    /// The prepared folder.
    pub folder: PathBuf,
    /// Whether fewer samples will do.
    pub quick: bool,
    /// How often this process has allocated memory.
    pub allocations: fn() -> u64,
    pub(super) context: Arc<CudaContext>,
    pub(super) stream: Arc<CudaStream>,
    manifest: Manifest,
}

/// A kernel with its arguments, to be launched again and again.
pub(super) struct Subject {
    pub(super) kernel: Kernel,
    arguments: Vec<Argument>,
    memory: Vec<CudaSlice<u8>>,
}

/// An argument. Memory goes by its address, so that a launch costs what it costs without cudarc's tracking of slices.
enum Argument {
    Word(u32),
    Address(u64),
}

/// A kernel as its author wrote it, without arguments.
pub(super) struct Bare(CudaFunction);

/// Any error as a reason.
pub(super) fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A grid in one dimension.
pub(super) const fn grid(blocks: u32, threads: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 }
}

impl Rig {
    /// Opens the first device and reads the folder's manifest.
    ///
    /// # Errors
    /// What is missing.
    pub fn open(folder: &Path, quick: bool, allocations: fn() -> u64) -> Result<Self, String> {
        let manifest = Manifest::read(folder)?;
        let context = cuinstr_runtime::open(0).map_err(told)?;
        let stream = context.default_stream();
        Ok(Self { folder: folder.to_owned(), quick, allocations, context, stream, manifest })
    }

    /// So many samples, or a tenth of them.
    pub(super) fn samples(&self, count: usize) -> usize {
        if self.quick { count.div_ceil(10) } else { count }
    }

    /// The default build of a kernel, for arguments that lie in memory of the caller's: each as its type and bits, memory as an address.
    pub(super) fn subject_at(&self, name: &str, arguments: &[(Type, u64)]) -> Result<Subject, String> {
        let (image, entry) = self.image(name, variant::DEFAULT)?;
        let module = Module::load(&self.context, &image).map_err(told)?;
        let kernel = module.kernel(entry).map_err(told)?;
        let argument = |&(ty, bits): &(Type, u64)| match ty.size() {
            4 => Ok(Argument::Word(bits as u32)),
            8 => Ok(Argument::Address(bits)),
            _ => Err(format!("{name} takes an argument of less than four bytes")),
        };
        let arguments = arguments.iter().map(argument).collect::<Result<_, _>>()?;
        Ok(Subject { kernel, arguments, memory: Vec::new() })
    }

    /// The bytes of a build, and its kernel's symbol.
    pub(super) fn image(&self, name: &str, variant: Variant) -> Result<(Vec<u8>, &str), String> {
        let build = self.manifest.subject(name)?.build(variant)?;
        let path = self.manifest.folder.join(&build.cubin);
        let image = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((image, &build.entry))
    }

    /// The default build of a kernel, with its buffers filled.
    pub(super) fn subject(&self, name: &str) -> Result<Subject, String> {
        self.subject_of(name, variant::DEFAULT)
    }

    pub(super) fn subject_of(&self, name: &str, variant: Variant) -> Result<Subject, String> {
        let (image, entry) = self.image(name, variant)?;
        let module = Module::load(&self.context, &image).map_err(told)?;
        let kernel = module.kernel(entry).map_err(told)?;
        let mut subject = Subject { kernel, arguments: Vec::new(), memory: Vec::new() };
        for arg in &self.manifest.subject(name)?.fixture.header.args {
            match *arg {
                Arg::Scalar { ty: Type::U32 | Type::I32, bits } => subject.arguments.push(Argument::Word(bits as u32)),
                Arg::Scalar { .. } => return Err(format!("{name} takes a number that is no 32-bit integer")),
                Arg::Buffer { ty, count, init, .. } => {
                    let slice = self.stream.clone_htod(&init.bytes(ty, count)).map_err(told)?;
                    subject.arguments.push(Argument::Address(slice.device_ptr(&self.stream).0));
                    subject.memory.push(slice);
                }
            }
        }
        self.stream.synchronize().map_err(told)?;
        Ok(subject)
    }

    /// A kernel without arguments, as its author wrote it, loaded by cudarc alone.
    pub(super) fn bare(&self, name: &str) -> Result<Bare, String> {
        let (image, entry) = self.image(name, variant::PLAIN)?;
        let module = self.context.load_module(Ptx::from_binary(image)).map_err(told)?;
        module.load_function(entry).map(Bare).map_err(told)
    }

    /// As many blocks of 256 threads as the device holds at a time, 2048 threads on each multiprocessor.
    pub(super) fn full(&self, subject: &Subject) -> Result<LaunchConfig, String> {
        let function = subject.kernel.cuda_function().map_err(told)?;
        let resident = function.occupancy_max_active_blocks_per_multiprocessor(256, 0, None).map_err(told)?;
        if resident != 8 {
            return Err(format!("{resident} blocks of 256 threads of `{}` fit on a multiprocessor, not 8", subject.kernel.name()));
        }
        let count = self.context.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT).map_err(told)?;
        Ok(grid(8 * u32::try_from(count).map_err(told)?, 256))
    }

    /// Host memory that copies don't stop for.
    pub(super) fn pinned(&self, bytes: usize) -> Result<PinnedHostSlice<u8>, String> {
        // SAFETY: what it holds is only copied; nobody reads it.
        unsafe { self.context.alloc_pinned::<u8>(bytes) }.map_err(told)
    }
}

impl Subject {
    /// The same with another number as its argument of this index.
    pub(super) fn with(mut self, index: usize, word: u32) -> Self {
        self.arguments[index] = Argument::Word(word);
        self
    }

    /// What its first buffer holds.
    pub(super) fn first(&self, stream: &Arc<CudaStream>) -> Result<Vec<u8>, String> {
        let first = self.memory.first().ok_or("it has no buffer")?;
        stream.clone_dtoh(first).map_err(told)
    }

    /// Launches it with what `limits` says.
    pub(super) fn start(
        &self,
        stream: &Arc<CudaStream>,
        config: LaunchConfig,
        limits: impl FnOnce(&mut Launch),
    ) -> Result<Running, String> {
        self.try_start(stream, config, limits).map_err(told)
    }

    /// The same, with the runtime's own error.
    pub(super) fn try_start(
        &self,
        stream: &Arc<CudaStream>,
        config: LaunchConfig,
        limits: impl FnOnce(&mut Launch),
    ) -> cuinstr_runtime::Result<Running> {
        let mut launch = self.kernel.on(stream)?;
        for argument in &self.arguments {
            match argument {
                Argument::Word(word) => launch.arg(word),
                Argument::Address(address) => launch.arg(address),
            };
        }
        limits(&mut launch);
        // SAFETY: the arguments are those of the probe's header, and its memory lives as long as this process.
        unsafe { launch.start(config) }
    }

    /// Launches it with no limit, as a capture takes it.
    pub(super) fn bare(&self, stream: &Arc<CudaStream>, config: LaunchConfig) -> Result<(), String> {
        let mut launch = self.kernel.unguarded(stream).map_err(told)?;
        for argument in &self.arguments {
            match argument {
                Argument::Word(word) => launch.arg(word),
                Argument::Address(address) => launch.arg(address),
            };
        }
        // SAFETY: as above.
        unsafe { launch.launch(config) }.map(drop).map_err(told)
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // Freeing waits for every kernel of the context, and one may hang where a figure failed.
        self.memory.drain(..).for_each(std::mem::forget);
    }
}

impl Bare {
    /// Launches it as anybody would.
    pub(super) fn launch(&self, stream: &Arc<CudaStream>, config: LaunchConfig) -> Result<(), String> {
        // SAFETY: it takes no arguments and touches no memory.
        unsafe { stream.launch_builder(&self.0).launch(config) }.map(drop).map_err(told)
    }
}
