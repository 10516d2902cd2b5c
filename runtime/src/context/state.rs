//! What all launches of one context share: the streams that overtake them, the device's clock, the knowledge that the context is lost.

use super::clock::ClockMap;
use super::orders::Orders;
use super::watchdog::{Watchdog, WatchdogPool};
use crate::driver::handle::ContextHandle;
use crate::driver::{self, BesideStream, Event, Pinned, PriorityStream, Support};
use crate::error::{Error, Poison};
use crate::fault::DriverFault;
use cudarc::driver::{CudaModule, CudaStream, sys};
use cuinstr_abi::control::{FLAG_BYTES, StopRecord};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Slots that are made at a time.
pub(crate) const SLOTS: usize = 32;
/// Gates of a slot, a bit each, which is set while the gate is open. A stream that waits at one may be late to see that it was opened: the slot's next launch
/// that is paused closes another, so the first stays open for long.
pub(crate) const GATES: u32 = 256;
/// Where a slot's flag lies in its device memory: behind its record, in a line of the cache that kernels load nothing else from.
pub(crate) const FLAG_AT: usize = size_of::<StopRecord>().next_multiple_of(FLAG_BYTES);
/// Bytes of device memory that a slot takes: its record, then its flag, the word that asks it to pause, and the gates behind it.
pub(crate) const SLOT_BYTES: usize = FLAG_AT + FLAG_BYTES;
const _: () = assert!(16 + GATES as usize / 8 <= FLAG_BYTES);
/// Times that the two clocks are compared when a context is opened.
const ROUNDS: u64 = 8;
/// Longest that this may take.
const COMPARING: Duration = Duration::from_millis(20);

/// One for each context. Its memory is never given back: freeing would wait for every kernel of the context. It goes
/// with the context. Modules and launches keep their context alive.
pub(crate) struct ContextState {
    home: ContextHandle,
    // Raises flags, and nothing else: behind a copy of its own a word would wait for every copy of the process.
    flag_stream: PriorityStream,
    // Carries records and single words.
    copy_stream: PriorityStream,
    in_flight: AtomicUsize,
    // Those among them that nothing but the host may end.
    unbounded: AtomicUsize,
    poison: OnceLock<Poison>,
    clock: Mutex<Option<ClockMap>>,
    watchdog: Support,
    watchdogs: WatchdogPool,
    is_blocking: bool,
    // Zeroes to copy over what must be cleared: setting memory takes a kernel, for which a full GPU has no room.
    pub(crate) blank: Pinned<[u8; SLOTS * SLOT_BYTES]>,
    // Where the first words of control blocks are read back to.
    scratch: Mutex<Pinned<Orders>>,
    // First words of control blocks that instances had which are gone.
    spare_orders: Mutex<Vec<Pinned<Orders>>>,
    // Modules that are no longer needed, from when unloading them would have waited for a launch.
    parked: Mutex<Vec<Arc<CudaModule>>>,
    // Streams for the later parts of paused launches.
    beside: Mutex<Vec<BesideStream>>,
    // Has one stream wait for another.
    mark: Mutex<Event>,
}

impl std::fmt::Debug for ContextState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ContextState").field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}

impl ContextState {
    /// Of a context that was not opened before. This waits for its running kernels, as loading a module does.
    pub(crate) fn open(home: ContextHandle) -> Result<Self, Error> {
        home.bind()?;
        let [watchdog, clock] = driver::load_support(include_str!("support.ptx"), ["cuinstr_watchdog", "cuinstr_clock"])?;
        let context_state = Self {
            home,
            flag_stream: PriorityStream::new()?,
            copy_stream: PriorityStream::new()?,
            in_flight: AtomicUsize::new(0),
            unbounded: AtomicUsize::new(0),
            poison: OnceLock::new(),
            clock: Mutex::new(None),
            watchdog,
            watchdogs: WatchdogPool::default(),
            is_blocking: std::env::var("CUDA_LAUNCH_BLOCKING").is_ok_and(|value| value == "1"),
            blank: Pinned::zeroed()?,
            scratch: Mutex::new(Pinned::zeroed()?),
            spare_orders: Mutex::default(),
            parked: Mutex::default(),
            beside: Mutex::default(),
            mark: Mutex::new(Event::new(false)?),
        };
        if !context_state.is_blocking {
            context_state.compare_clocks(clock)?;
        }
        Ok(context_state)
    }

    /// Asks the device for its time, a few times in a row.
    fn compare_clocks(&self, kernel: Support) -> Result<(), Error> {
        let words = Pinned::new([0_u64; 2])?;
        let answer = size_of::<u64>();
        driver::launch_support(kernel, self.copy_stream(), &mut [words.device(), words.device() + answer as u64, ROUNDS])?;
        let limit = Instant::now() + COMPARING;
        let mut last = 0;
        for round in 1..=ROUNDS {
            let from = Instant::now();
            words.set(0, round);
            loop {
                let time: u64 = words.get(answer);
                let now = Instant::now();
                if time != last {
                    self.note_clock(from, now, time);
                    last = time;
                    break;
                }
                if now > limit {
                    // The device is busy; the first launches will tell.
                    words.set(0, ROUNDS);
                    return Ok(());
                }
                std::hint::spin_loop();
            }
        }
        Ok(())
    }

    /// A launch begins; `is_unbounded` if its kernel watches no deadline of its own.
    pub(crate) fn began(&self, is_unbounded: bool) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.unbounded.fetch_add(usize::from(is_unbounded), Ordering::Relaxed);
    }

    /// It is over.
    pub(crate) fn landed(&self, is_unbounded: bool) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.unbounded.fetch_sub(usize::from(is_unbounded), Ordering::Relaxed);
    }

    /// Fails if a call that waits for every kernel of the context might never return.
    pub(crate) fn may_wait(&self) -> Result<(), Error> {
        match self.unbounded.load(Ordering::Relaxed) {
            0 => Ok(()),
            launches => Err(Error::InFlight { launches }),
        }
    }

    /// Launches of this runtime that are in flight in the context.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Whether each launch call waits for its kernel.
    pub(crate) fn is_blocking(&self) -> bool {
        self.is_blocking
    }

    /// The stream that raises flags past all launches.
    pub(crate) fn flag_stream(&self) -> sys::CUstream {
        self.flag_stream.raw()
    }

    /// The stream that carries records past all launches.
    pub(crate) fn copy_stream(&self) -> sys::CUstream {
        self.copy_stream.raw()
    }

    /// Waits until what was put into that stream is done.
    pub(crate) fn drain_copies(&self, limit: Duration) -> Result<(), DriverFault> {
        let until = Instant::now() + limit;
        while !driver::is_drained(self.copy_stream())? {
            if Instant::now() > until {
                return Err(DriverFault { call: "cuStreamQuery", code: 0, name: format!("not drained after {limit:?}") });
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Clears a stop record, past whatever runs.
    pub(crate) fn clear_record(&self, record: u64) -> Result<(), DriverFault> {
        driver::upload(self.copy_stream(), record, &self.blank.part::<StopRecord>(0))
    }

    /// Reads a word of device memory, past whatever runs.
    pub(crate) fn read_word(&self, address: u64) -> Result<u32, DriverFault> {
        Ok(self.read_orders(address, size_of::<u32>())?.abi_version)
    }

    /// Reads the first bytes of a control block, past whatever runs; words that are not asked for are zero.
    pub(crate) fn read_orders(&self, control: u64, bytes: usize) -> Result<Orders, DriverFault> {
        let scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        scratch.write(Orders::default());
        driver::download_bytes(self.copy_stream(), &scratch, control, bytes)?;
        self.drain_copies(Duration::from_secs(2))?;
        Ok(scratch.read())
    }

    /// Writes the first words of a control block, past whatever runs.
    pub(crate) fn write_orders(&self, control: u64, orders: &Orders) -> Result<(), DriverFault> {
        driver::send(self.copy_stream(), control, orders)?;
        self.drain_copies(Duration::from_secs(2))
    }

    /// Pinned memory with these words. It is used again once it was returned, since freeing it would wait for every kernel of the context.
    pub(crate) fn borrow_orders(&self, orders: Orders) -> Result<Pinned<Orders>, DriverFault> {
        let spare = self.spare_orders.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(spare) = spare else { return Pinned::new(orders) };
        spare.write(orders);
        Ok(spare)
    }

    /// Takes back what [`ContextState::borrow_orders`] gave.
    pub(crate) fn return_orders(&self, orders: Pinned<Orders>) {
        self.spare_orders.lock().unwrap_or_else(PoisonError::into_inner).push(orders);
    }

    /// A stream for the later parts of a launch, with the priority of `home`. It is borrowed before the launch. Once a
    /// launch is paused, the driver may wait for its stream when it makes the 33rd stream.
    pub(crate) fn borrow_beside(&self, home: sys::CUstream) -> Result<BesideStream, DriverFault> {
        let priority = driver::priority(home)?;
        let mut idle = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        match idle.iter().position(|stream| stream.priority == priority) {
            Some(at) => Ok(idle.swap_remove(at)),
            None => BesideStream::new(priority),
        }
    }

    /// Takes back what [`ContextState::borrow_beside`] gave, unless something of a launch that was given up is still there.
    pub(crate) fn return_beside(&self, stream: BesideStream) {
        if self.bind().and_then(|()| driver::is_drained(stream.raw())).unwrap_or(false) {
            self.beside.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
        }
    }

    /// Makes a stream wait for the bare launch that another one was given: both use one control block.
    pub(crate) fn after_bare(&self, bare: Option<Arc<CudaStream>>, stream: sys::CUstream) -> Result<(), DriverFault> {
        let Some(bare) = bare.filter(|bare| bare.cu_stream() != stream) else { return Ok(()) };
        // A capture has begun there since; what it holds runs when its graph does.
        if driver::is_capturing(bare.cu_stream())? {
            return Ok(());
        }
        let mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        mark.record(bare.cu_stream())?;
        mark.hold(stream)
    }

    /// Keeps a module that is no longer needed until no launch is in flight.
    pub(crate) fn park(&self, module: Arc<CudaModule>) {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner).push(module);
    }

    /// Unloads what was parked, if no launch is in flight. The context may go with the last of it.
    pub(crate) fn unload_parked(&self) {
        if self.in_flight() == 0 {
            let parked = std::mem::take(&mut *self.parked.lock().unwrap_or_else(PoisonError::into_inner));
            drop(parked);
        }
    }

    /// The context.
    pub(crate) fn home(&self) -> ContextHandle {
        self.home
    }

    /// Makes the context the current one of this thread.
    pub(crate) fn bind(&self) -> Result<(), DriverFault> {
        self.home.bind()
    }

    /// Sends out a watchdog.
    pub(crate) fn watchdog(&self) -> Result<Watchdog, DriverFault> {
        self.watchdogs.send_out(self.watchdog)
    }

    /// Fails if the context is lost.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.poison.get().map_or(Ok(()), |poison| Err(Error::Poisoned(poison.clone())))
    }

    /// Marks the context as lost. Returns whether this is news.
    pub(crate) fn poison(&self, poison: Poison) -> bool {
        self.poison.set(poison).is_ok()
    }

    /// The host has just seen this time, which the device wrote no earlier than `from`.
    pub(crate) fn note_clock(&self, from: Instant, seen: Instant, device_ns: u64) {
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        match clock.as_mut() {
            Some(map) => map.note(from, seen, device_ns),
            None => *clock = Some(ClockMap::new(seen, device_ns)),
        }
    }

    /// When the device's clock showed this, in the host's terms.
    pub(crate) fn host_time(&self, device_ns: u64) -> Option<Instant> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.host_time(device_ns)
    }
}
