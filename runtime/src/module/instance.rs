//! One loaded copy of a module, and who uses its control block.

use crate::context::orders::Orders;
use crate::driver::{self, Pinned};
use crate::error::{Error, Result};
use crate::slot::LaunchSlot;
use crate::slot::pool::LaunchContext;
use cudarc::driver::{CudaContext, CudaModule, CudaStream};
use cudarc::nvrtc::Ptx;
use cuinstr_abi::control::{ABI_VERSION, CONTROL_SYMBOL, ControlBlock, FLAG_SYMBOL, PAUSE_SYMBOL, PauseBlock};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};

/// One copy of a module: one control block, and so one launch at a time.
#[derive(Debug)]
pub(crate) struct Instance {
    pub(super) index: usize,
    pub(super) module: Option<Arc<CudaModule>>,
    launch_context: Arc<LaunchContext>,
    pub(crate) control: u64,
    /// Address of the pause block, in a module whose launches can be paused.
    pub(crate) pause: Option<u64>,
    flag: u64,
    // For a captured graph to copy at any time.
    unarmed: OnceLock<Pinned<Orders>>,
    // Address of the stream that it was given to; none yet if that is not a stream's.
    pub(super) stream: AtomicUsize,
    control_lock: Mutex<ControlBlockLock>,
}

/// What [`Instance::stream`] holds before any stream has it. The legacy stream is 0.
pub(super) const NO_STREAM: usize = usize::MAX;

/// Who uses an instance.
#[derive(Debug, Default)]
pub(crate) struct ControlBlockLock {
    /// The latest launch.
    pub(crate) last: Option<Latest>,
    /// What the control block holds once that launch's turn has come; unknown after a failure.
    pub(crate) known: Option<Orders>,
    /// The stream of a bare launch that may not be over.
    pub(crate) bare: Option<Arc<CudaStream>>,
    /// Whether a captured graph may write to the control block at any time.
    pub(crate) is_shared: bool,
    /// Whether the pause block may hold a launch's number.
    pub(crate) is_pausable: bool,
    /// Launches that can be paused and are not over.
    held: Vec<Held>,
}

/// A launch that can be paused, and the launches of its instance since then.
#[derive(Debug)]
struct Held {
    launch: Latest,
    /// The latest one that does not wait behind it.
    free: Option<Latest>,
    /// Whether the latest one of all waits behind it.
    is_last_behind: bool,
}

/// The latest launch of an instance.
#[derive(Debug, Clone)]
pub(crate) struct Latest {
    pub(crate) slot: Weak<LaunchSlot>,
    pub(crate) number: u32,
    /// What tells its stream from others.
    pub(crate) stream: u64,
}

impl Instance {
    pub(super) fn load(context: &Arc<CudaContext>, launch_context: &Arc<LaunchContext>, code: &[u8], index: usize) -> Result<Self> {
        let refused = |error| Error::Module { fault: driver::fault("cuModuleLoadData", error), log: String::new() };
        let module = context.load_module(Ptx::from_binary(code.to_vec())).map_err(refused)?;
        let stream = context.default_stream();
        let found = driver::global(&module, &stream, CONTROL_SYMBOL)?;
        let Some((control, size)) = found else { return Err(Error::NotInstrumented) };
        let (flag, _) = driver::global(&module, &stream, FLAG_SYMBOL)?.ok_or(Error::NotInstrumented)?;
        let version = launch_context.read_word(control)?;
        if version != ABI_VERSION || size != size_of::<ControlBlock>() {
            return Err(Error::OtherAbi { module: version, runtime: ABI_VERSION });
        }
        let pause = driver::global(&module, &stream, PAUSE_SYMBOL)?;
        let pause = pause.filter(|(_, size)| *size == size_of::<PauseBlock>()).map(|(address, _)| address);
        let (module, launch_context) = (Some(module), Arc::clone(launch_context));
        let stream = AtomicUsize::new(NO_STREAM);
        Ok(Self { index, module, launch_context, control, pause, flag, unarmed: OnceLock::new(), stream, control_lock: Mutex::default() })
    }

    /// The control block's first words as they were when it was loaded, in memory that stays as long as the instance.
    pub(crate) fn unarmed(&self) -> Result<&Pinned<Orders>> {
        if let Some(unarmed) = self.unarmed.get() {
            return Ok(unarmed);
        }
        let unarmed = self.launch_context.borrow_orders(Orders::unarmed(self.flag))?;
        Ok(self.unarmed.get_or_init(|| unarmed))
    }

    /// The same if it has no user.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, ControlBlockLock>> {
        match self.control_lock.try_lock() {
            Ok(control_lock) => Some(control_lock),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether no launch of it is being made or in flight. The context is this thread's current one.
    pub(super) fn is_idle(&self) -> bool {
        self.try_lock().is_some_and(|control_lock| control_lock.in_flight().is_none())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ControlBlockLock> {
        self.control_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let Some(module) = self.module.take() else { return };
        // Unloading waits for every kernel of the context. One that hangs would make this wait for ever, so the module stays meanwhile.
        if self.launch_context.check().is_err() {
            std::mem::forget(module);
        } else if self.launch_context.in_flight() > 0 {
            self.launch_context.park(module);
        } else {
            drop(module);
            self.launch_context.unload_parked();
            // No graph can launch the module any more.
            if let Some(unarmed) = self.unarmed.take() {
                self.launch_context.return_orders(unarmed);
            }
        }
    }
}

impl ControlBlockLock {
    /// Its latest launch, if that is still in flight. The context is this thread's current one.
    fn in_flight(&self) -> Option<Arc<LaunchSlot>> {
        let last = self.last.as_ref()?;
        last.slot.upgrade().filter(|slot| slot.is_in_flight(last.number))
    }

    /// A launch is made in this instance.
    pub(crate) fn launched(&mut self, launch: Latest, can_pause: bool) {
        self.held.retain(|held| held.launch.slot.upgrade().is_some_and(|slot| slot.number() == held.launch.number));
        // A question to the driver, which only launches behind a gate need the answer to.
        let follows = !self.held.is_empty() && self.in_flight().is_some();
        for held in &mut self.held {
            // What is in the stream that the gate holds waits; so does what waits for the end of that.
            held.is_last_behind = launch.stream == held.launch.stream || held.is_last_behind && follows;
            if !held.is_last_behind {
                held.free = Some(launch.clone());
            }
        }
        if can_pause {
            self.held.push(Held { launch: launch.clone(), free: None, is_last_behind: false });
        }
        self.last = Some(launch);
    }

    /// The launch that the next part of a paused one must come after. Those behind its gate come later.
    pub(crate) fn before_resumed(&self, number: u32) -> Option<Arc<LaunchSlot>> {
        let free = self.held.iter().find(|held| held.launch.number == number)?.free.as_ref()?;
        free.slot.upgrade().filter(|slot| slot.is_in_flight(free.number))
    }

    /// The next part of a paused launch was made: what comes now waits for that.
    pub(crate) fn resumed(&mut self, number: u32) {
        let Some(held) = self.held.iter_mut().find(|held| held.launch.number == number) else { return };
        held.free = None;
        if !held.is_last_behind {
            self.last = Some(held.launch.clone());
        }
    }

    /// The launch that another one on this stream must come after, and that its own stream does not keep in order.
    pub(crate) fn before(&self, stream: u64) -> Option<Arc<LaunchSlot>> {
        // Whether it is over is a question to the driver, which takes longer than to arm a launch.
        self.last.as_ref().filter(|last| last.stream != stream)?;
        self.in_flight()
    }
}
