//! The next part of a launch that was paused: the same kernel with the same arguments and grid, for the blocks that declined.

use super::prepared::Prepared;
use crate::driver::{self, BesideStream};
use crate::error::{Error, Result};
use crate::fault::DriverFault;
use crate::module::Instance;
use crate::slot::LaunchSlot;
use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, result, sys};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

/// What it takes to launch a kernel again.
#[derive(Debug)]
pub(crate) struct Again {
    pub(super) prepared: Prepared,
    pub(super) config: LaunchConfig,
    // Another one would have other variables.
    pub(super) instance: Arc<Instance>,
    // Runs later parts past the streams that the gate holds.
    pub(super) beside: BesideStream,
    // Runs blocks that declined beside those that still run, maybe in the stream above.
    pub(super) aside: BesideStream,
    // Streams that wait for the gate, by their addresses.
    pub(super) held: Mutex<Vec<usize>>,
}

impl Again {
    /// The kernel's name.
    pub(crate) fn kernel(&self) -> &str {
        self.prepared.kernel.name()
    }

    /// Launches what is left of a paused launch. Behind other work in `stream`, or beside it if that is the stream which the launch was made in.
    pub(crate) fn resume(&self, slot: &Arc<LaunchSlot>, number: u32, stream: &Arc<CudaStream>) -> Result<()> {
        let Prepared { kernel, stream: home, given, .. } = &self.prepared;
        let launch_context = kernel.loaded().launch_context();
        launch_context.check()?;
        if stream.context().cu_ctx() != home.context().cu_ctx() {
            return Err(Error::OtherContext { what: "the stream", of: "the launch" });
        }
        launch_context.bind()?;
        if driver::is_capturing(stream.cu_stream())? {
            return Err(Error::Capturing);
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let address = stream.cu_stream().addr();
        let is_held = held.contains(&address);
        let stream = if is_held { self.beside.raw() } else { stream.cu_stream() };
        let function = kernel.function(&self.instance)?;
        let mut control_lock = self.instance.lock();
        slot.rearm(number)?;
        let armed = control_lock.before_resumed(number).map_or(Ok(()), |before| before.make_wait(stream)).and_then(|()| {
            control_lock.known = None;
            slot.send_orders(stream, self.instance.control, None)?;
            slot.send_pause(stream)?;
            slot.mark_begin(stream)
        });
        let launched = armed.and_then(|()| self.launch(function, stream));
        if let Err(fault) = launched {
            slot.disarm();
            return Err(fault.into());
        }
        control_lock.resumed(number);
        let marked = slot.submit(stream).and_then(|()| if is_held { Ok(()) } else { slot.hold(stream) });
        if !is_held {
            held.push(address);
        }
        marked.map_err(|fault| {
            if slot.stop_unmarked(number, stream, given.limits.grace) {
                slot.fail(number, fault.clone().into());
            }
            fault.into()
        })
    }

    /// Lets the streams go on that wait for the launch.
    pub(crate) fn let_streams_go(&self, slot: &LaunchSlot, number: u32) -> Result<()> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        slot.let_streams_go(number)?;
        held.clear();
        Ok(())
    }

    /// Launches the blocks that have declined beside those that still run, and takes the request to pause back.
    pub(crate) fn go_on(&self, slot: &Arc<LaunchSlot>, number: u32) -> Result<()> {
        let Prepared { kernel, .. } = &self.prepared;
        let launch_context = kernel.loaded().launch_context();
        launch_context.check()?;
        launch_context.bind()?;
        let stream = self.aside.raw();
        let function = kernel.function(&self.instance)?;
        let control_lock = self.instance.lock();
        // What was queued since would begin, and take the control block, when the first blocks are over.
        if control_lock.last.as_ref().is_some_and(|last| last.number != number) {
            return Err(kernel.busy());
        }
        if !slot.take_back(number)? {
            return Ok(());
        }
        let launched = self.launch(function, stream);
        slot.launched_beside(stream, launched.is_ok())?;
        Ok(launched?)
    }

    /// Launches the kernel once more.
    fn launch(&self, function: &CudaFunction, stream: sys::CUstream) -> std::result::Result<(), DriverFault> {
        let LaunchConfig { grid_dim, block_dim, shared_mem_bytes } = self.config;
        let mut values: Vec<*mut c_void> = self.prepared.values.iter().map(|value| value.words.as_ptr().cast_mut().cast()).collect();
        // SAFETY: who started the launch promised that its arguments live until it is over, which it is not; the values are those of its first part.
        let launched = unsafe { result::launch_kernel(function.cu_function(), grid_dim, block_dim, shared_mem_bytes, stream, &mut values) };
        launched.map_err(|error| driver::fault("cuLaunchKernel", error))
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        let launch_context = self.prepared.kernel.loaded().launch_context();
        launch_context.return_beside(self.beside);
        launch_context.return_beside(self.aside);
    }
}
