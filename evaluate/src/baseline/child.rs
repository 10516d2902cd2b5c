//! The child's side: one candidate as it is, launched with nothing around it.

use super::{Job, Launch, Passed, Said};
use crate::child::{MOST_PAYLOAD, receive, send};
use cuinstr_runtime::cudarc::driver::{CudaContext, DriverError, result, sys};
use cuinstr_runtime::names;
use std::ffi::{CString, c_void};
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Dynamic shared memory that a kernel has without asking for it, in bytes.
const ORDINARY_SHARED: u32 = 48 << 10;

pub(crate) fn serve(stream: &mut UnixStream) -> io::Result<()> {
    let (job, payload): (Job, _) = receive(stream, None, MOST_PAYLOAD)?;
    if let Err(what) = run(stream, &job, &payload) {
        send(stream, &Said::Failed(what), &[])?;
    }
    Ok(())
}

fn run(stream: &mut UnixStream, job: &Job, payload: &[u8]) -> Result<(), String> {
    let context = CudaContext::new(job.device).map_err(said)?;
    context.bind_to_thread().map_err(said)?;
    let (image, mut rest) = payload.split_at_checked(job.image).ok_or("there is no image")?;
    let kernels = cuinstr_image::read(image).map(|image| image.kernels()).map_err(|error| error.to_string())?;
    let symbol = names::find(&job.kernel, &kernels).map_err(|error| error.to_string())?.symbol.clone();
    let symbol = CString::new(symbol).map_err(|error| error.to_string())?;
    // SAFETY: a context is current, and the image is whole: it was found to hold a kernel. It ends with its length, or is PTX with a zero behind it.
    let function = unsafe {
        let mut image = image.to_vec();
        image.push(0);
        result::module::load_data(image.as_ptr().cast()).and_then(|module| result::module::get_function(module, symbol))
    };
    let function = function.map_err(said)?;
    for case in &job.cases {
        let mut ready = Ready::new(function, case, &mut rest)?;
        for _ in 0..job.times {
            let (elapsed_ns, left) = ready.run(stream, function, case)?;
            send(stream, &Said::Done { elapsed_ns }, &left).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// A case's arguments, in device memory where they are memory.
struct Ready<'a> {
    values: Vec<Vec<u64>>,
    /// Each part of memory: where it is, what it holds before a launch, whether it is wanted back.
    memory: Vec<(sys::CUdeviceptr, &'a [u8], bool)>,
    events: [sys::CUevent; 2],
}

fn said(error: DriverError) -> String {
    error.to_string()
}

impl<'a> Ready<'a> {
    fn new(function: sys::CUfunction, case: &Launch, rest: &mut &'a [u8]) -> Result<Self, String> {
        let (mut values, mut memory) = (Vec::new(), Vec::new());
        for argument in &case.arguments {
            match argument {
                Passed::Value(bytes) => {
                    // As words, so that any parameter is aligned.
                    let mut words = vec![0_u64; bytes.len().div_ceil(8).max(1)];
                    for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
                        let mut own = [0; 8];
                        own[..bytes.len()].copy_from_slice(bytes);
                        *word = u64::from_le_bytes(own);
                    }
                    values.push(words);
                }
                Passed::Memory(bytes, is_wanted) => {
                    let (contents, others) = rest.split_at_checked(*bytes).ok_or("the payload is too short")?;
                    *rest = others;
                    // SAFETY: a context is current. The memory is given back with the process.
                    let address = unsafe { result::malloc_sync(contents.len()) }.map_err(said)?;
                    memory.push((address, contents, *is_wanted));
                    values.push(vec![address]);
                }
            }
        }
        if case.shared > ORDINARY_SHARED {
            let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is of a module that stays loaded.
            unsafe { result::function::set_function_attribute(function, attribute, case.shared.cast_signed()) }.map_err(said)?;
        }
        let event = || result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(said);
        Ok(Self { values, memory, events: [event()?, event()?] })
    }

    /// One launch on fresh memory: the nanoseconds that it took, and what it leaves in the memory that is wanted back.
    fn run(&mut self, stream: &mut UnixStream, function: sys::CUfunction, case: &Launch) -> Result<(u64, Vec<u8>), String> {
        for (address, contents, _) in &self.memory {
            // SAFETY: as much is copied as was allocated.
            unsafe { result::memcpy_htod_sync(*address, contents) }.map_err(said)?;
        }
        let mut pointers: Vec<*mut c_void> = self.values.iter_mut().map(|words| words.as_mut_ptr().cast()).collect();
        let ([gx, gy, gz], [bx, by, bz]) = (case.grid, case.block);
        let stream_of_all = std::ptr::null_mut();
        let [begin, end] = self.events;
        // SAFETY: the arguments are those that the reference is launched with; whatever the kernel does with them, it does to this process, which is
        // here for this one candidate.
        let launched = unsafe {
            result::event::record(begin, stream_of_all).map_err(said)?;
            if case.is_cooperative {
                result::launch_cooperative_kernel(function, (gx, gy, gz), (bx, by, bz), case.shared, stream_of_all, &mut pointers)
            } else {
                result::launch_kernel(function, (gx, gy, gz), (bx, by, bz), case.shared, stream_of_all, &mut pointers)
            }
        };
        launched.map_err(said)?;
        // SAFETY: the event is of this context.
        unsafe { result::event::record(end, stream_of_all) }.map_err(said)?;
        send(stream, &Said::Launched, &[]).map_err(|error| error.to_string())?;
        result::ctx::synchronize().map_err(said)?;
        // SAFETY: both events were recorded in this context.
        let milliseconds = unsafe { result::event::elapsed(begin, end) }.map_err(said)?;
        let mut left = Vec::new();
        for (address, contents, is_wanted) in &self.memory {
            if *is_wanted {
                let mut part = vec![0_u8; contents.len()];
                // SAFETY: there are as many bytes as were allocated.
                unsafe { result::memcpy_dtoh_sync(&mut part, *address) }.map_err(said)?;
                left.extend(part);
            }
        }
        Ok((Duration::from_secs_f64((f64::from(milliseconds) / 1e3).max(0.0)).as_nanos() as u64, left))
    }
}
