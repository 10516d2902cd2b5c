//! What all launches of one context share: the stream that overtakes them, the room they need, the knowledge that the context is lost.

use crate::clock::ClockMap;
use crate::driver::handle::ContextHandle;
use crate::driver::{self, Event, Pinned, Support, UrgentStream};
use crate::error::{DriverFault, Error, Poison};
use crate::flight::{DEVICE_BYTES, Flight, Orders, Shared};
use crate::watchdog::{Kennel, Watchdog};
use cudarc::driver::{CudaContext, CudaModule, CudaStream, sys};
use cuinstr_abi::control::{FIRST_LAUNCH, StopRecord};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Flights that are made at a time.
const FLIGHTS: usize = 32;
/// Times that the two clocks are compared when a station opens.
const ROUNDS: u64 = 8;
/// Longest that this may take.
const COMPARING: Duration = Duration::from_millis(20);

/// Number of the latest launch of the process: no two launches carry the same, so a late cancel hits no other.
static LAUNCHES: AtomicU32 = AtomicU32::new(FIRST_LAUNCH);

/// A number for a launch. Zero is what an untouched flag holds, and the first is what a launch bears that nobody armed: neither is given, so that
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

/// The stations of the process by the ids of their contexts, of which none is given twice. Each is made by whoever asks first, while the others of its
/// own context wait.
type Stations = HashMap<u64, Arc<OnceLock<Result<Arc<Station>, Error>>>>;

/// One a context. Its memory is never given back: freeing would wait for every kernel of the context. It goes with the context, which whoever has a
/// module or a launch in it keeps alive.
pub(crate) struct Station {
    home: ContextHandle,
    // Raises flags, and nothing else: behind a copy of its own a word would wait for every copy of the process.
    urgent: UrgentStream,
    // Carries records and single words.
    courier: UrgentStream,
    idle: Mutex<VecDeque<Arc<Flight>>>,
    in_flight: AtomicUsize,
    // Those among them that nothing but the host may end.
    unbounded: AtomicUsize,
    poison: OnceLock<Poison>,
    clock: Mutex<Option<ClockMap>>,
    watchdog: Support,
    kennel: Kennel,
    is_blocking: bool,
    // Zeroes to copy over what must be cleared: setting memory takes a kernel, for which a full GPU has no room.
    blank: Pinned<[u8; FLIGHTS * DEVICE_BYTES]>,
    // Where the first words of control blocks are read back to.
    scratch: Mutex<Pinned<Orders>>,
    // First words of control blocks that instances had which are gone.
    spare_orders: Mutex<Vec<Pinned<Orders>>>,
    // Modules that nobody needs any more, from when unloading them would have waited for a launch.
    parked: Mutex<Vec<Arc<CudaModule>>>,
    // Has one stream wait for another.
    mark: Mutex<Event>,
}

impl std::fmt::Debug for Station {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Station").field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}

impl Station {
    /// The station of a context. The first call for a context waits for its running kernels, as loading a module does.
    pub(crate) fn of(context: &CudaContext) -> Result<Arc<Self>, Error> {
        context.bind_to_thread().map_err(|error| driver::fault("cuCtxSetCurrent", error))?;
        Self::of_handle(ContextHandle::current()?.ok_or(Error::NoContext)?)
    }

    /// The same for a context that its host keeps alive.
    pub(crate) fn of_handle(context: ContextHandle) -> Result<Arc<Self>, Error> {
        static STATIONS: OnceLock<Mutex<Stations>> = OnceLock::new();
        let stations = || STATIONS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        let place = Arc::clone(stations().entry(context.id()).or_default());
        // Not under the lock: opening may wait for this context's kernels, and other contexts have nothing to do with them.
        let opened = place.get_or_init(|| Self::open(context).map(Arc::new));
        let station = opened.clone().inspect_err(|_| {
            let mut stations = stations();
            if stations.get(&context.id()).is_some_and(|known| Arc::ptr_eq(known, &place)) {
                stations.remove(&context.id());
            }
        })?;
        station.check()?;
        Ok(station)
    }

    fn open(home: ContextHandle) -> Result<Self, Error> {
        home.bind()?;
        let [watchdog, clock] = driver::load_support(include_str!("support.ptx"), ["cuinstr_watchdog", "cuinstr_clock"])?;
        let station = Self {
            home,
            urgent: UrgentStream::new()?,
            courier: UrgentStream::new()?,
            idle: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            unbounded: AtomicUsize::new(0),
            poison: OnceLock::new(),
            clock: Mutex::new(None),
            watchdog,
            kennel: Kennel::default(),
            is_blocking: std::env::var("CUDA_LAUNCH_BLOCKING").is_ok_and(|value| value == "1"),
            blank: Pinned::zeroed()?,
            scratch: Mutex::new(Pinned::zeroed()?),
            spare_orders: Mutex::default(),
            parked: Mutex::default(),
            mark: Mutex::new(Event::new(false)?),
        };
        if !station.is_blocking {
            station.compare_clocks(clock)?;
        }
        let room = station.make_room()?;
        station.idle().extend(room);
        Ok(station)
    }

    /// Asks the device for its time, a few times in a row.
    fn compare_clocks(&self, kernel: Support) -> Result<(), Error> {
        let words = Pinned::new([0_u64; 2])?;
        let answer = size_of::<u64>();
        driver::launch_support(kernel, self.courier(), &mut [words.device(), words.device() + answer as u64, ROUNDS])?;
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

    fn make_room(&self) -> Result<Vec<Arc<Flight>>, DriverFault> {
        let device = driver::allocate(FLIGHTS * DEVICE_BYTES)?;
        driver::upload(self.courier(), device, &self.blank)?;
        let shared = Pinned::<[Shared; FLIGHTS]>::zeroed()?;
        let flight = |index: usize| {
            let part = shared.part::<Shared>(index * size_of::<Shared>());
            Flight::new(part, device + (index * DEVICE_BYTES) as u64).map(Arc::new)
        };
        let flights = (0..FLIGHTS).map(flight).collect::<Result<Vec<_>, _>>()?;
        self.drain_courier(Duration::from_secs(2))?;
        Ok(flights)
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Arc<Flight>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for a launch, and its number. The room that was used before, if it is free: then the control block knows most of it already.
    pub(crate) fn take(&self, before: Option<&Weak<Flight>>) -> Result<(Arc<Flight>, u32), Error> {
        let mut idle = self.idle();
        let is_before = |flight: &Arc<Flight>| before.is_some_and(|before| Weak::as_ptr(before) == Arc::as_ptr(flight));
        // Those at the front were used longest ago.
        let free = idle.iter().position(|flight| is_before(flight) && flight.is_free());
        let free = free.or_else(|| idle.iter().position(Flight::is_free));
        // Before more memory is taken: some may be over, and nobody has looked.
        let free = free.or_else(|| {
            idle.iter().position(|flight| {
                flight.advance(Instant::now());
                flight.is_free()
            })
        });
        let flight = if let Some(index) = free {
            let flight = idle.remove(index);
            flight.ok_or_else(|| Error::Machine("a flight is gone".into()))?
        } else {
            let mut room = self.make_room()?;
            let flight = room.pop().ok_or_else(|| Error::Machine("no flight was made".into()))?;
            idle.extend(room);
            flight
        };
        idle.push_back(Arc::clone(&flight));
        drop(idle);
        let number = number_but(|number| flight.is_stale(number));
        Ok((flight, number))
    }

    /// A flight begins; `is_unbounded` if its kernel watches no deadline of its own.
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

    /// Address of device memory that belongs to the context beyond doubt.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.idle().front().map(|flight| flight.memory())
    }

    /// Whether each launch call waits for its kernel.
    pub(crate) fn is_blocking(&self) -> bool {
        self.is_blocking
    }

    /// The stream that raises flags past all launches.
    pub(crate) fn urgent(&self) -> sys::CUstream {
        self.urgent.raw()
    }

    /// The stream that carries records past all launches.
    pub(crate) fn courier(&self) -> sys::CUstream {
        self.courier.raw()
    }

    /// Waits until what was put into that stream is done.
    pub(crate) fn drain_courier(&self, limit: Duration) -> Result<(), DriverFault> {
        let until = Instant::now() + limit;
        while !driver::is_drained(self.courier())? {
            if Instant::now() > until {
                return Err(DriverFault { call: "cuStreamQuery", code: 0, name: format!("not drained after {limit:?}") });
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Clears a stop record, past whatever runs.
    pub(crate) fn clear_record(&self, record: u64) -> Result<(), DriverFault> {
        driver::upload(self.courier(), record, &self.blank.part::<StopRecord>(0))
    }

    /// Reads a word of device memory, past whatever runs.
    pub(crate) fn read_word(&self, address: u64) -> Result<u32, DriverFault> {
        Ok(self.read_orders(address, size_of::<u32>())?.abi_version)
    }

    /// Reads the first bytes of a control block, past whatever runs; words that are not asked for are zero.
    pub(crate) fn read_orders(&self, control: u64, bytes: usize) -> Result<Orders, DriverFault> {
        let scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        scratch.write(Orders::default());
        driver::download_bytes(self.courier(), &scratch, control, bytes)?;
        self.drain_courier(Duration::from_secs(2))?;
        Ok(scratch.read())
    }

    /// Writes the first words of a control block, past whatever runs.
    pub(crate) fn write_orders(&self, control: u64, orders: &Orders) -> Result<(), DriverFault> {
        driver::send(self.courier(), control, orders)?;
        self.drain_courier(Duration::from_secs(2))
    }

    /// Pinned memory with these words. It is used again once it was returned, since freeing it would wait for every kernel of the context.
    pub(crate) fn borrow_orders(&self, orders: Orders) -> Result<Pinned<Orders>, DriverFault> {
        let spare = self.spare_orders.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(spare) = spare else { return Pinned::new(orders) };
        spare.write(orders);
        Ok(spare)
    }

    /// Takes back what [`Station::borrow_orders`] gave.
    pub(crate) fn return_orders(&self, orders: Pinned<Orders>) {
        self.spare_orders.lock().unwrap_or_else(PoisonError::into_inner).push(orders);
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

    /// Keeps a module that nobody needs until no launch is in flight.
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

    /// Makes the context the current one of this thread.
    pub(crate) fn bind(&self) -> Result<(), DriverFault> {
        self.home.bind()
    }

    /// Sends out a watchdog.
    pub(crate) fn watchdog(&self) -> Result<Watchdog, DriverFault> {
        self.kennel.send_out(self.watchdog)
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
