//! The second tier: a kernel of one thread that lies in wait beside a launch and traps when it is told to.
//!
//! A trap ends every kernel of the process, instrumented or not, and every context with it. The watchdog must be on the
//! GPU first, since a grid that fills the GPU leaves no room for a later kernel.

use crate::driver::{self, Pinned, PriorityStream, Support};
use crate::fault::DriverFault;
use std::sync::{Arc, Mutex, PoisonError};

const WAIT: u32 = 0;
const END: u32 = 1;
const TRAP: u32 = 2;

/// Watchdogs that have nothing to watch.
#[derive(Default)]
pub(crate) struct WatchdogPool(Arc<Mutex<Vec<Parts>>>);

struct Parts {
    order: Pinned<u32>,
    stream: PriorityStream,
}

/// A watchdog that lies in wait.
pub(crate) struct Watchdog {
    parts: Option<Parts>,
    home: Arc<Mutex<Vec<Parts>>>,
}

impl WatchdogPool {
    /// Launches a watchdog, in the current context. The launch that it watches comes after this.
    pub(crate) fn send_out(&self, kernel: Support) -> Result<Watchdog, DriverFault> {
        let ready = {
            let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let is_back = |parts: &Parts| driver::is_drained(parts.stream.raw()).unwrap_or(false);
            waiting.iter().position(is_back).map(|index| waiting.swap_remove(index))
        };
        let parts = match ready {
            Some(parts) => parts,
            None => Parts { order: Pinned::new(WAIT)?, stream: PriorityStream::new()? },
        };
        parts.order.write(WAIT);
        driver::launch_support(kernel, parts.stream.raw(), &mut [parts.order.device()])?;
        Ok(Watchdog { parts: Some(parts), home: Arc::clone(&self.0) })
    }
}

impl Watchdog {
    /// Ends every kernel of the process. Needs no driver, so nothing can keep it from getting through.
    pub(crate) fn trap(&self) {
        if let Some(parts) = &self.parts {
            parts.order.write(TRAP);
        }
    }

    /// Lets it go.
    pub(crate) fn release(mut self) {
        self.call_off();
    }

    fn call_off(&mut self) {
        if let Some(parts) = self.parts.take() {
            parts.order.write(END);
            self.home.lock().unwrap_or_else(PoisonError::into_inner).push(parts);
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.call_off();
    }
}
