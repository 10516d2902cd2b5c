//! A kernel of the prepared folder with its buffers, to be launched in each of its builds.

use super::told;
use cuinstr_harness::header::{Arg, Header, Place};
use cuinstr_runtime::cudarc::driver::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
use cuinstr_runtime::cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, LaunchConfig};
use cuinstr_runtime::{Limits, Module, Prepared, Running};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Longest that a launch of these kernels may take.
const LONG: Duration = Duration::from_secs(20);

/// The prepared folder and the device.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    pub(super) context: Arc<CudaContext>,
    pub(super) stream: Arc<CudaStream>,
}

/// A kernel's builds and buffers.
#[derive(Debug)]
pub struct Subject {
    pub(super) header: Header,
    pub(super) stream: Arc<CudaStream>,
    builds: BTreeMap<&'static str, Prepared>,
    buffers: Vec<(CudaSlice<u8>, Vec<u8>, usize, bool)>,
}

impl Folder {
    /// Opens the first device.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn open(path: &Path) -> Result<Self, String> {
        let context = cuinstr_runtime::open(0).map_err(told)?;
        let stream = context.new_stream().map_err(told)?;
        Ok(Self { path: path.to_owned(), context, stream })
    }

    /// The names of the kernels that were prepared.
    ///
    /// # Errors
    /// If the folder can't be read.
    pub fn names(&self) -> Result<Vec<String>, String> {
        let entries = std::fs::read_dir(&self.path).map_err(told)?;
        let name = |entry: std::io::Result<std::fs::DirEntry>| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".cu")?.to_owned());
        let mut names: Vec<String> = entries.filter_map(name).collect();
        names.sort();
        Ok(names)
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A stream that overtakes others.
    pub(super) fn urgent_stream(&self) -> Result<Arc<CudaStream>, String> {
        self.context.new_stream_with_priority(-5).map_err(told)
    }

    /// `marks` for a grid of so many blocks, in a module and a stream of its own.
    pub(super) fn marks(&self, stream: Arc<CudaStream>, blocks: usize) -> Result<Subject, String> {
        let folder = Self { path: self.path.clone(), context: Arc::clone(&self.context), stream };
        folder.sized("marks", &["base", "source"], Some(blocks))
    }

    /// A kernel with its builds of these kinds.
    ///
    /// # Errors
    /// What is missing, or what the driver answers.
    pub fn subject(&self, name: &str, kinds: &[&'static str]) -> Result<Subject, String> {
        self.sized(name, kinds, None)
    }

    /// The same, with room for so many elements in each buffer.
    fn sized(&self, name: &str, kinds: &[&'static str], elements: Option<usize>) -> Result<Subject, String> {
        let text = std::fs::read_to_string(self.path.join(format!("{name}.cu"))).map_err(told)?;
        let header = Header::parse(&text, Place::Bench)?;
        let (mut words, mut buffers) = (Vec::new(), Vec::new());
        for arg in &header.args {
            match *arg {
                Arg::Scalar { ty, bits } => words.push((ty.size(), bits)),
                Arg::Buffer { ty, count, init, sorted } => {
                    let count = elements.map_or(count, |elements| elements.max(count));
                    let bytes = init.bytes(ty, count);
                    let slice = self.stream.clone_htod(&bytes).map_err(told)?;
                    words.push((8, slice.device_ptr(&self.stream).0));
                    buffers.push((slice, bytes, ty.size(), sorted));
                }
            }
        }
        let mut builds = BTreeMap::new();
        for kind in kinds {
            let image = std::fs::read(self.path.join(format!("{name}.{kind}.cubin"))).map_err(|error| format!("{name}.{kind}: {error}"))?;
            let module = Module::load(&self.context, &image).map_err(told)?;
            let mut kernel = module.kernel(&header.entry).map_err(told)?.prepare(&self.stream);
            for (size, bits) in &words {
                match size {
                    4 => kernel.arg(*bits as u32),
                    _ => kernel.arg(*bits),
                };
            }
            kernel.limits(Limits { begin_within: LONG, grace: LONG, ..Limits::timeout(LONG) }).timed();
            builds.insert(*kind, kernel);
        }
        self.stream.synchronize().map_err(told)?;
        Ok(Subject { header, stream: Arc::clone(&self.stream), builds, buffers })
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // Freeing waits for every kernel of the context, and one may be held where a figure failed.
        self.buffers.drain(..).for_each(|(slice, ..)| std::mem::forget(slice));
    }
}

impl Subject {
    /// Blocks of a build that the device holds at a time.
    pub(super) fn occupancy(&self, kind: &str) -> Result<f64, String> {
        let kernel = self.builds.get(kind).ok_or("no such build")?.kernel();
        let threads = self.header.block.iter().product();
        let function = kernel.cuda_function().map_err(told)?;
        let each = function.occupancy_max_active_blocks_per_multiprocessor(threads, self.header.shared as usize, None).map_err(told)?;
        let count = self.stream.context().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT).map_err(told)?;
        Ok(f64::from(each) * f64::from(count))
    }

    /// Blocks of a launch.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.header.grid.iter().product()
    }

    /// Fills the buffers anew.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn reset(&mut self) -> Result<(), String> {
        for (slice, bytes, ..) in &mut self.buffers {
            self.stream.memcpy_htod(bytes.as_slice(), slice).map_err(told)?;
        }
        self.stream.synchronize().map_err(told)
    }

    /// What the buffers hold. Elements whose order means nothing are sorted.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn results(&self) -> Result<Vec<Vec<u8>>, String> {
        let read = |(slice, _, size, sorted): &(CudaSlice<u8>, Vec<u8>, usize, bool)| {
            let bytes = self.stream.clone_dtoh(slice).map_err(told)?;
            if !sorted {
                return Ok(bytes);
            }
            let mut elements: Vec<&[u8]> = bytes.chunks(*size).collect();
            elements.sort_unstable();
            Ok(elements.concat())
        };
        self.buffers.iter().map(read).collect()
    }

    /// Gives an argument of eight bytes other bits, for all builds.
    pub(super) fn set(&mut self, index: usize, bits: u64) -> Result<(), String> {
        self.builds.values_mut().try_for_each(|build| build.set_arg(index, bits).map(drop)).map_err(told)
    }

    /// Launches a build, so that it can be paused if that is asked for. The numbers are another grid's blocks and threads, and the last argument's bits, a time.
    ///
    /// # Errors
    /// What the runtime answers.
    pub fn start(&self, kind: &str, is_pausable: bool, change: Option<(u32, u32, u64)>) -> Result<Running, String> {
        let mut prepared = self.builds.get(kind).ok_or("no such build")?.clone();
        let ([x, y, z], block) = (self.header.grid, self.header.block);
        let mut config =
            LaunchConfig { grid_dim: (x, y, z), block_dim: (block[0], block[1], block[2]), shared_mem_bytes: self.header.shared };
        if let Some((blocks, threads, ns)) = change {
            (config.grid_dim, config.block_dim) = ((blocks, 1, 1), (threads, 1, 1));
            prepared.set_arg(self.header.args.len() - 1, ns).map_err(told)?;
        }
        if is_pausable {
            prepared.pausable();
        }
        // SAFETY: the arguments are those of the header, and its buffers live as long as this.
        unsafe { prepared.start(config) }.map_err(told)
    }
}
