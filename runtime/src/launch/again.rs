//! The next part of a launch that was paused: the same kernel with the same arguments and grid, for the blocks that declined.

use super::{Prepared, driver};
use crate::driver::BesideStream;
use crate::error::{DriverFault, Error, Result};
use crate::flight::Flight;
use crate::module::Instance;
use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, result, sys};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What it takes to launch a kernel again.
#[derive(Debug)]
pub(crate) struct Again {
    pub(super) prepared: Prepared,
    pub(super) config: LaunchConfig,
    // Another one would have other variables.
    pub(super) instance: Arc<Instance>,
    // Runs later parts past the streams that the gate holds.
    pub(super) beside: OnceLock<BesideStream>,
    // Other streams that wait for the gate, by their addresses.
    pub(super) held: Mutex<Vec<usize>>,
}

impl Again {
    /// The kernel's name.
    pub(crate) fn kernel(&self) -> &str {
        self.prepared.kernel.name()
    }

    /// Launches what is left of a paused launch. Behind other work in `stream`, or beside it if that is the stream which the launch was made in.
    pub(crate) fn resume(&self, flight: &Arc<Flight>, number: u32, stream: &Arc<CudaStream>) -> Result<()> {
        let Prepared { kernel, stream: home, given, .. } = &self.prepared;
        let station = kernel.loaded().station();
        station.check()?;
        if stream.context().cu_ctx() != home.context().cu_ctx() {
            return Err(Error::OtherContext { what: "the stream", of: "the launch" });
        }
        station.bind()?;
        if driver::is_capturing(stream.cu_stream())? {
            return Err(Error::Capturing);
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let address = stream.cu_stream().addr();
        let is_held = address == home.cu_stream().addr() || held.contains(&address);
        let stream = if is_held { self.beside(home.cu_stream())? } else { stream.cu_stream() };
        let function = kernel.function(&self.instance)?;
        let mut lane = self.instance.lane();
        flight.rearm(number)?;
        let armed = lane.before_resumed(number).map_or(Ok(()), |before| before.make_wait(stream)).and_then(|()| {
            lane.known = None;
            flight.send_orders(stream, self.instance.control, None)?;
            flight.send_pause(stream)?;
            flight.mark_begin(stream)
        });
        let launched = armed.and_then(|()| self.launch(function, stream));
        if let Err(fault) = launched {
            flight.disarm();
            return Err(fault.into());
        }
        lane.resumed(number);
        let marked = flight.submit(stream).and_then(|()| if is_held { Ok(()) } else { flight.hold(stream) });
        if !is_held {
            held.push(address);
        }
        marked.map_err(|fault| {
            flight.stop_unmarked(number, stream, given.limits.grace);
            fault.into()
        })
    }

    /// Launches the blocks that have declined beside those that still run, and takes the request to pause back.
    pub(crate) fn go_on(&self, flight: &Arc<Flight>, number: u32) -> Result<()> {
        let Prepared { kernel, stream: home, .. } = &self.prepared;
        let station = kernel.loaded().station();
        station.check()?;
        station.bind()?;
        let stream = self.beside(home.cu_stream())?;
        let function = kernel.function(&self.instance)?;
        let lane = self.instance.lane();
        // What was queued since would begin, and take the control block, when the first blocks are over.
        if lane.last.as_ref().is_some_and(|last| last.number != number) {
            return Err(kernel.busy());
        }
        if !flight.take_back(number)? {
            return Ok(());
        }
        let launched = self.launch(function, stream);
        flight.launched_beside(stream, launched.is_ok())?;
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

    fn beside(&self, home: sys::CUstream) -> Result<sys::CUstream> {
        if let Some(stream) = self.beside.get() {
            return Ok(stream.raw());
        }
        let made = BesideStream::new(home)?;
        Ok(self.beside.get_or_init(|| made).raw())
    }
}
