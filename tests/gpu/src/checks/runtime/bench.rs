//! A kernel of the manifest as a user of the runtime has it: module, kernel, arguments in cudarc's slices.

use crate::session::Session;
use cuinstr_harness::buffer::Type;
use cuinstr_harness::header::{Arg, Header};
use cuinstr_harness::variant::{self, Variant};
use cuinstr_runtime::cudarc::driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};
use cuinstr_runtime::{Kernel, Launch, Module, Outcome, Running};
use std::sync::Arc;

/// A loaded kernel with its arguments.
pub(super) struct Bench {
    pub(super) context: Arc<CudaContext>,
    pub(super) module: Module,
    pub(super) kernel: Kernel,
    pub(super) config: LaunchConfig,
    header: Header,
    values: Vec<Value>,
}

/// An argument.
pub(super) enum Value {
    U8(u8),
    U16(u16),
    I32(i32),
    U32(u32),
    I64(i64),
    U64(u64),
    F32(f32),
    F64(f64),
    Slice(CudaSlice<u8>, Vec<u8>),
}

/// Any error as a check's reason to fail.
pub(super) fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The bytes of a build.
pub(super) fn cubin(session: &Session, name: &str, variant: Variant) -> Result<Vec<u8>, String> {
    let build = session.manifest.subject(name)?.build(variant)?;
    let path = session.manifest.folder.join(&build.cubin);
    std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Gives a launch its arguments; ours and cudarc's take the same ones by methods of the same name.
macro_rules! give {
    ($launch:ident, $values:expr) => {
        for value in $values {
            match value {
                Value::U8(value) => $launch.arg(value),
                Value::U16(value) => $launch.arg(value),
                Value::I32(value) => $launch.arg(value),
                Value::U32(value) => $launch.arg(value),
                Value::I64(value) => $launch.arg(value),
                Value::U64(value) => $launch.arg(value),
                Value::F32(value) => $launch.arg(value),
                Value::F64(value) => $launch.arg(value),
                Value::Slice(slice, _) => $launch.arg(slice),
            };
        }
    };
}

impl Bench {
    /// The default build of a kernel, on the first device.
    pub(super) fn new(session: &Session, name: &str) -> Result<Self, String> {
        Self::of(session, name, variant::DEFAULT)
    }

    pub(super) fn of(session: &Session, name: &str, variant: Variant) -> Result<Self, String> {
        Self::in_context(session, name, variant, &cuinstr_runtime::open(0).map_err(told)?)
    }

    /// In a context whose slices wait for no events, which a capture does not bear.
    pub(super) fn untracked(session: &Session, name: &str) -> Result<Self, String> {
        let context = cuinstr_runtime::open(0).map_err(told)?;
        // SAFETY: the case that wants this waits for each launch itself.
        unsafe { context.disable_event_tracking() };
        Self::in_context(session, name, variant::DEFAULT, &context)
    }

    pub(super) fn in_context(session: &Session, name: &str, variant: Variant, context: &Arc<CudaContext>) -> Result<Self, String> {
        let subject = session.manifest.subject(name)?;
        let module = Module::load(context, &cubin(session, name, variant)?).map_err(told)?;
        let kernel = module.kernel(&subject.build(variant)?.entry).map_err(told)?;
        let header = subject.fixture.header.clone();
        let stream = context.default_stream();
        let value = |arg: &Arg| {
            Ok(match *arg {
                Arg::Scalar { ty, bits } => Value::scalar(ty, bits),
                Arg::Buffer { ty, count, init, .. } => {
                    let bytes = init.bytes(ty, count);
                    Value::Slice(stream.clone_htod(&bytes).map_err(told)?, bytes)
                }
            })
        };
        let values = header.args.iter().map(value).collect::<Result<_, String>>()?;
        stream.synchronize().map_err(told)?;
        let config = LaunchConfig { grid_dim: header.grid.into(), block_dim: header.block.into(), shared_mem_bytes: header.shared };
        let context = Arc::clone(context);
        Ok(Self { context, module, kernel, config, header, values })
    }

    /// Launches it on a stream as cudarc does.
    pub(super) fn unguarded(&self, stream: &Arc<CudaStream>) -> Result<(), String> {
        let mut launch = self.kernel.unguarded(stream).map_err(told)?;
        give!(launch, &self.values);
        // SAFETY: as in `start`.
        unsafe { launch.launch(self.config) }.map(drop).map_err(told)
    }

    /// Launches another load of it, `function`, on a stream: by cudarc alone.
    pub(super) fn bare(&self, stream: &Arc<CudaStream>, function: &CudaFunction) -> Result<(), String> {
        let mut launch = stream.launch_builder(function);
        give!(launch, &self.values);
        // SAFETY: as in `start`.
        unsafe { launch.launch(self.config) }.map(drop).map_err(told)
    }

    /// Launches it on a stream with what `limits` says.
    pub(super) fn start(&self, stream: &Arc<CudaStream>, limits: impl FnOnce(&mut Launch)) -> Result<Running, cuinstr_runtime::Error> {
        let mut launch = self.kernel.on(stream)?;
        give!(launch, &self.values);
        if self.header.cooperative {
            launch.cooperative();
        }
        if let Some(cluster) = self.header.cluster {
            launch.cluster(cluster)?;
        }
        limits(&mut launch);
        // SAFETY: the arguments are those that the file's header names; a wrong one costs this child process its context.
        unsafe { launch.start(self.config) }
    }

    /// Fills the buffers again.
    pub(super) fn refill(&mut self, stream: &Arc<CudaStream>) -> Result<(), String> {
        for value in &mut self.values {
            if let Value::Slice(slice, bytes) = value {
                stream.memcpy_htod(bytes, slice).map_err(told)?;
            }
        }
        Ok(())
    }

    /// Has `refill` write other bytes, as many, into the buffer of this index.
    pub(super) fn fill_with(&mut self, index: usize, bytes: &[u8]) -> Result<(), String> {
        let mut buffers = self.values.iter_mut().filter_map(|value| if let Value::Slice(_, bytes) = value { Some(bytes) } else { None });
        let buffer = buffers.nth(index).filter(|buffer| buffer.len() == bytes.len()).ok_or("there is no such buffer")?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    /// What the buffers hold.
    pub(super) fn contents(&self, stream: &Arc<CudaStream>) -> Result<Vec<Vec<u8>>, String> {
        let slices = self.values.iter().filter_map(|value| match value {
            Value::Slice(slice, _) => Some(slice),
            _ => None,
        });
        slices.map(|slice| stream.clone_dtoh(slice).map_err(told)).collect()
    }
}

impl Value {
    fn scalar(ty: Type, bits: u64) -> Self {
        match ty {
            Type::U8 => Self::U8(bits as u8),
            Type::Bf16 => Self::U16(bits as u16),
            Type::I32 => Self::I32((bits as u32).cast_signed()),
            Type::U32 => Self::U32(bits as u32),
            Type::I64 => Self::I64(bits.cast_signed()),
            Type::U64 => Self::U64(bits),
            Type::F32 => Self::F32(f32::from_bits(bits as u32)),
            Type::F64 => Self::F64(f64::from_bits(bits)),
        }
    }
}

/// Fails unless the launch did all its work in time.
pub(super) fn completed(outcome: &Outcome) -> Result<(), String> {
    match outcome {
        Outcome::Completed { late: false, .. } => Ok(()),
        other => Err(format!("it should have completed: {other:?}")),
    }
}
