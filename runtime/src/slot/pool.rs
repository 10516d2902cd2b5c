//! The slots of a context's launches, which are used again and again, and the contexts that the process has used.

use super::{LaunchSlot, Shared};
use crate::context::state::{ContextState, SLOT_BYTES, SLOTS};
use crate::driver::handle::{self, ContextHandle};
use crate::driver::{self, Pinned};
use crate::error::Error;
use crate::fault::DriverFault;
use cudarc::driver::{CudaContext, sys};
use cuinstr_abi::control::FIRST_LAUNCH;
use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Number of the latest launch of the process: no two launches carry the same, so a late cancel hits no other.
static LAUNCHES: AtomicU32 = AtomicU32::new(FIRST_LAUNCH);

/// A number for a launch. Zero is what an untouched flag holds, and the first is what a launch bears that no host armed: neither is given, so that
/// such a launch takes no flag for its own, wherever its block says that the flag lies.
fn next_number() -> u32 {
    loop {
        let number = LAUNCHES.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if number > FIRST_LAUNCH {
            return number;
        }
    }
}

/// A number for a launch, of which none is `is_taken`.
fn number_but(mut is_taken: impl FnMut(u32) -> bool) -> u32 {
    loop {
        let number = next_number();
        if !is_taken(number) {
            return number;
        }
    }
}

/// A context that launches are made in: its state, and the slots of its launches.
pub(crate) struct LaunchContext {
    state: Arc<ContextState>,
    idle: Mutex<VecDeque<Arc<LaunchSlot>>>,
}

impl std::fmt::Debug for LaunchContext {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.state.fmt(formatter)
    }
}

impl Deref for LaunchContext {
    type Target = ContextState;

    fn deref(&self) -> &ContextState {
        &self.state
    }
}

/// The contexts of the process by their ids, of which none is given twice. Each is made by the thread that asks first, while the others of its
/// own context wait.
type Contexts = HashMap<u64, Arc<OnceLock<Result<Arc<LaunchContext>, Error>>>>;

impl LaunchContext {
    /// The one of a context. The first call for a context waits for its running kernels, as loading a module does.
    pub(crate) fn of(context: &CudaContext) -> Result<Arc<Self>, Error> {
        context.bind_to_thread().map_err(|error| driver::fault("cuCtxSetCurrent", error))?;
        Self::of_handle(ContextHandle::current()?.ok_or(Error::NoContext)?)
    }

    /// The same for a context that its host keeps alive.
    pub(crate) fn of_handle(context: ContextHandle) -> Result<Arc<Self>, Error> {
        static STATIONS: OnceLock<Mutex<Contexts>> = OnceLock::new();
        let contexts = || STATIONS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        if !contexts().contains_key(&context.id()) {
            Self::forget_gone(contexts);
        }
        let place = Arc::clone(contexts().entry(context.id()).or_default());
        // Not under the lock: opening may wait for this context's kernels, and other contexts have nothing to do with them.
        let opened = place.get_or_init(|| Self::open(context).map(Arc::new));
        let found = opened.clone().inspect_err(|_| {
            let mut contexts = contexts();
            if contexts.get(&context.id()).is_some_and(|known| Arc::ptr_eq(known, &place)) {
                contexts.remove(&context.id());
            }
        })?;
        found.check()?;
        Ok(found)
    }

    /// Drops what is known of contexts that no longer exist and have no module or launch left.
    fn forget_gone<'a>(contexts: impl Fn() -> MutexGuard<'a, Contexts>) {
        let unused: Vec<Arc<Self>> = {
            let known = contexts();
            let opened = known.values().filter_map(|place| place.get()?.as_ref().ok());
            opened.filter(|context| Arc::strong_count(context) == 1 && context.in_flight() == 0).cloned().collect()
        };
        // Not under the lock, since it asks the driver.
        let gone: Vec<u64> = unused.iter().filter(|context| context.is_gone()).map(|context| context.home().id()).collect();
        drop(unused);
        let dropped: Vec<_> = contexts().extract_if(|id, _| gone.contains(id)).collect();
        drop(dropped);
    }

    /// Whether the context no longer exists: the driver does not know its memory, or says that it is another context's.
    /// Any address may be asked about.
    fn is_gone(&self) -> bool {
        let Some(memory) = self.memory() else { return false };
        match handle::context_of_memory(memory) {
            Ok(owner) => !owner.is_some_and(|owner| self.home().is_at(owner)),
            Err(fault) => fault.code == sys::CUresult::CUDA_ERROR_INVALID_VALUE as u32,
        }
    }

    fn open(home: ContextHandle) -> Result<Self, Error> {
        let context = Self { state: Arc::new(ContextState::open(home)?), idle: Mutex::default() };
        let slots = context.make_slots()?;
        context.idle().extend(slots);
        Ok(context)
    }

    /// What launches need of it.
    pub(crate) fn state(&self) -> &Arc<ContextState> {
        &self.state
    }

    fn make_slots(&self) -> Result<Vec<Arc<LaunchSlot>>, DriverFault> {
        let device = driver::allocate(SLOTS * SLOT_BYTES)?;
        driver::upload(self.copy_stream(), device, &self.blank)?;
        let shared = Pinned::<[Shared; SLOTS]>::zeroed()?;
        let slot = |index: usize| {
            let part = shared.part::<Shared>(index * size_of::<Shared>());
            LaunchSlot::new(part, device + (index * SLOT_BYTES) as u64).map(Arc::new)
        };
        let slots = (0..SLOTS).map(slot).collect::<Result<Vec<_>, _>>()?;
        self.drain_copies(Duration::from_secs(2))?;
        Ok(slots)
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Arc<LaunchSlot>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a launch, and the launch's number. The slot that was used before, if it is free: then the control block knows most of it already.
    pub(crate) fn take(&self, before: Option<&Weak<LaunchSlot>>) -> Result<(Arc<LaunchSlot>, u32), Error> {
        let mut idle = self.idle();
        let is_before = |slot: &Arc<LaunchSlot>| before.is_some_and(|before| Weak::as_ptr(before) == Arc::as_ptr(slot));
        // Those at the front were used longest ago.
        let free = idle.iter().position(|slot| is_before(slot) && slot.is_free());
        let free = free.or_else(|| idle.iter().position(LaunchSlot::is_free));
        // Before more memory is taken: some may be over, and no thread has looked.
        let free = free.or_else(|| {
            idle.iter().position(|slot| {
                slot.advance(Instant::now());
                slot.is_free()
            })
        });
        let slot = if let Some(index) = free {
            let slot = idle.remove(index);
            slot.ok_or_else(|| Error::Bug("a slot is gone".into()))?
        } else {
            let mut slots = self.make_slots()?;
            let slot = slots.pop().ok_or_else(|| Error::Bug("no slot was made".into()))?;
            idle.extend(slots);
            slot
        };
        idle.push_back(Arc::clone(&slot));
        drop(idle);
        let number = number_but(|number| slot.is_stale(number));
        Ok((slot, number))
    }

    /// Address of device memory that belongs to the context beyond doubt.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.idle().front().map(|slot| slot.memory())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_launch_bears_the_number_of_one_that_nobody_armed() {
        // Other tests of this process may take numbers, too.
        LAUNCHES.store(u32::MAX - 1, Ordering::Relaxed);
        let numbers: Vec<u32> = (0..4).map(|_| next_number()).collect();
        assert!(numbers.iter().all(|number| *number > FIRST_LAUNCH), "{numbers:?}");
    }

    #[test]
    fn no_launch_bears_a_number_that_a_flag_still_holds() {
        let mut asked = Vec::new();
        let number = number_but(|number| {
            asked.push(number);
            asked.len() < 4
        });
        assert_eq!(asked.last(), Some(&number));
        assert!(asked.len() == 4 && asked[..3].iter().all(|held| *held != number), "{asked:?}");
    }
}
