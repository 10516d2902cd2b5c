//! One thread that looks after every launch of the process when its time has come, and sleeps when there is nothing to do.
//!
//! The timer knows nothing of CUDA. An entry says when it wants to be called. When it was called, it says when next.

use crate::thread;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// When an entry that panicked is rung again.
const AFTER_A_PANIC: Duration = Duration::from_millis(100);

/// What is looked after.
pub(crate) trait Timed: Send + Sync {
    /// Its time has come. Returns the next one, or `None` if there is none.
    fn ring(&self, now: Instant) -> Option<Instant>;
}

/// Names an entry, for its removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    place: usize,
    generation: u64,
}

struct Entry {
    generation: u64,
    // Nothing while it is being rung and no other time was asked for.
    at: Option<Instant>,
    timed: Arc<dyn Timed>,
}

#[derive(Default)]
struct Entries {
    // A place is taken again when its entry is gone, so that a launch allocates nothing once there were as many at a time.
    places: Vec<Option<Entry>>,
    free: Vec<usize>,
    generation: u64,
    // When the thread will wake without being told to; `None` while it sleeps until told.
    wakes: Option<Instant>,
}

/// A timer with its thread.
pub(crate) struct Timer {
    entries: Mutex<Entries>,
    earlier: Condvar,
}

impl Timer {
    /// The timer of this process; its thread starts with the first call.
    pub(crate) fn of_process() -> Result<&'static Self, String> {
        static TIMER: OnceLock<Result<&'static Timer, String>> = OnceLock::new();
        TIMER.get_or_init(|| Self::start().map_err(|error| format!("the timer thread could not be started: {error}"))).clone()
    }

    fn start() -> io::Result<&'static Self> {
        // One for the life of the process: its thread never ends either.
        let timer: &'static Self = Box::leak(Box::new(Self { entries: Mutex::default(), earlier: Condvar::new() }));
        thread::spawn("cuinstr-timer", move || timer.run())?;
        Ok(timer)
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `timed` rung at `at`.
    pub(crate) fn add(&self, at: Instant, timed: Arc<dyn Timed>) -> Key {
        let mut entries = self.entries();
        entries.generation += 1;
        let generation = entries.generation;
        let entry = Some(Entry { generation, at: Some(at), timed });
        let place = if let Some(place) = entries.free.pop() {
            entries.places[place] = entry;
            place
        } else {
            entries.places.push(entry);
            entries.places.len() - 1
        };
        self.wake_for(&mut entries, at);
        Key { place, generation }
    }

    /// Has the entry rung at `at`, if that is earlier than it would be.
    pub(crate) fn hasten(&self, key: Key, at: Instant) {
        let mut entries = self.entries();
        let Some(Some(entry)) = entries.places.get_mut(key.place) else { return };
        if entry.generation == key.generation && entry.at.is_none_or(|before| at < before) {
            entry.at = Some(at);
            self.wake_for(&mut entries, at);
        }
    }

    /// Forgets the entry. It may be in the middle of being rung.
    pub(crate) fn remove(&self, key: Key) {
        let mut entries = self.entries();
        let gone = take(&mut entries, key);
        drop(entries);
        // What it holds may take its time to go.
        drop(gone);
    }

    fn wake_for(&self, entries: &mut Entries, at: Instant) {
        // A thread that wakes before that on its own need not be woken, which is most launches.
        if entries.wakes.is_none_or(|wakes| at < wakes) {
            entries.wakes = Some(at);
            self.earlier.notify_one();
        }
    }

    fn run(&self) {
        let mut due: Vec<(Instant, Key, Arc<dyn Timed>)> = Vec::new();
        let mut entries = self.entries();
        loop {
            let now = Instant::now();
            let mut next: Option<Instant> = None;
            for (place, entry) in entries.places.iter_mut().enumerate() {
                let Some(entry) = entry else { continue };
                let Some(at) = entry.at else { continue };
                if at > now {
                    next = Some(next.map_or(at, |next| next.min(at)));
                } else {
                    entry.at = None;
                    due.push((at, Key { place, generation: entry.generation }, Arc::clone(&entry.timed)));
                }
            }
            if due.is_empty() {
                entries.wakes = next;
                entries = match next {
                    Some(at) => self.earlier.wait_timeout(entries, at - now).unwrap_or_else(PoisonError::into_inner).0,
                    None => self.earlier.wait(entries).unwrap_or_else(PoisonError::into_inner),
                };
                continue;
            }
            drop(entries);
            // A thread that wakes late finds several: the longest due begins.
            due.sort_by_key(|(at, ..)| *at);
            let rung: Vec<(Key, Option<Instant>)> = due.drain(..).map(|(_, key, timed)| (key, ring(&*timed, now))).collect();
            entries = self.entries();
            for (key, next) in rung {
                if let Some(at) = next {
                    if let Some(Some(entry)) = entries.places.get_mut(key.place).filter(|entry| is(entry.as_ref(), key)) {
                        // It may have been hastened meanwhile.
                        entry.at = Some(entry.at.map_or(at, |hastened| hastened.min(at)));
                    }
                } else {
                    drop(take(&mut entries, key));
                }
            }
        }
    }
}

/// Rings an entry. One that panics, in a waker of the user's say, ends no other: it is rung again later.
fn ring(timed: &dyn Timed, now: Instant) -> Option<Instant> {
    catch_unwind(AssertUnwindSafe(|| timed.ring(now))).unwrap_or_else(|_| now.checked_add(AFTER_A_PANIC))
}

fn is(entry: Option<&Entry>, key: Key) -> bool {
    entry.is_some_and(|entry| entry.generation == key.generation)
}

fn take(entries: &mut Entries, key: Key) -> Option<Entry> {
    let place = entries.places.get_mut(key.place)?;
    if !is(place.as_ref(), key) {
        return None;
    }
    let gone = place.take();
    entries.free.push(key.place);
    gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{self, Sender};
    use std::thread;

    const LONG: Duration = Duration::from_secs(60);

    /// Waits until the timer's thread has come so far.
    fn until(what: &str, mut holds: impl FnMut() -> bool) {
        let since = Instant::now();
        while !holds() {
            assert!(since.elapsed() < LONG, "{what}: not within {LONG:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    struct Bell(Mutex<Sender<(u32, Instant)>>, u32, Mutex<Vec<Duration>>);

    impl Timed for Bell {
        fn ring(&self, now: Instant) -> Option<Instant> {
            self.0.lock().unwrap().send((self.1, Instant::now())).unwrap();
            self.2.lock().unwrap().pop().map(|pause| now + pause)
        }
    }

    const TICK: Duration = Duration::from_millis(20);

    fn bell(sender: &Sender<(u32, Instant)>, name: u32, again: &[Duration]) -> Arc<dyn Timed> {
        Arc::new(Bell(Mutex::new(sender.clone()), name, Mutex::new(again.to_vec())))
    }

    #[test]
    fn entries_ring_in_the_order_of_their_times_and_never_early() {
        let timer = Timer::start().unwrap();
        let (sender, rung) = mpsc::channel();
        // All three are there before the first is due.
        let now = Instant::now() + Duration::from_secs(1);
        for (name, ticks) in [(3, 3), (1, 1), (2, 2)] {
            timer.add(now + TICK * ticks, bell(&sender, name, &[]));
        }
        for name in 1..=3 {
            let (found, at) = rung.recv_timeout(LONG).unwrap();
            assert_eq!(found, name);
            assert!(at >= now + TICK * name, "{name} rang early");
        }
        assert!(rung.recv_timeout(TICK * 3).is_err(), "each rings once");
        until("all are free", || timer.entries().free.len() == 3);
    }

    #[test]
    fn entries_ring_in_the_order_of_their_times_however_late_the_thread_is() {
        struct Waits(Mutex<mpsc::Receiver<()>>);
        impl Timed for Waits {
            fn ring(&self, _: Instant) -> Option<Instant> {
                self.0.lock().unwrap().recv_timeout(LONG).unwrap();
                None
            }
        }
        let timer = Timer::start().unwrap();
        let ((sender, rung), (release, wait)) = (mpsc::channel(), mpsc::channel());
        timer.add(Instant::now(), Arc::new(Waits(Mutex::new(wait))));
        // All are due at once when the thread comes back.
        for name in [3, 1, 2] {
            timer.add(Instant::now() + Duration::from_millis(name.into()), bell(&sender, name, &[]));
        }
        thread::sleep(TICK);
        release.send(()).unwrap();
        let found: Vec<u32> = (0..3).map(|_| rung.recv_timeout(LONG).unwrap().0).collect();
        assert_eq!(found, [1, 2, 3]);
    }

    #[test]
    fn an_entry_rings_again_when_it_says_so_until_it_is_removed() {
        let timer = Timer::start().unwrap();
        let (sender, rung) = mpsc::channel();
        let key = timer.add(Instant::now(), bell(&sender, 7, &[Duration::from_secs(3600), TICK, TICK]));
        for _ in 0..3 {
            assert_eq!(rung.recv_timeout(LONG).unwrap().0, 7);
        }
        timer.remove(key);
        timer.remove(key);
        until("it is free", || timer.entries().free.len() == 1);
    }

    #[test]
    fn a_removed_entry_does_not_ring_and_its_key_fits_no_other() {
        let timer = Timer::start().unwrap();
        let (sender, rung) = mpsc::channel();
        let gone = timer.add(Instant::now() + TICK, bell(&sender, 1, &[]));
        timer.remove(gone);
        let kept = timer.add(Instant::now() + TICK, bell(&sender, 2, &[]));
        assert_eq!(gone.place, kept.place);
        timer.remove(gone);
        timer.hasten(gone, Instant::now());
        assert_eq!(rung.recv_timeout(LONG).unwrap().0, 2);
    }

    #[test]
    fn an_entry_can_be_hastened_while_the_thread_sleeps() {
        let timer = Timer::start().unwrap();
        let (sender, rung) = mpsc::channel();
        let key = timer.add(Instant::now() + Duration::from_secs(3600), bell(&sender, 1, &[]));
        thread::sleep(TICK);
        timer.hasten(key, Instant::now());
        assert_eq!(rung.recv_timeout(LONG).unwrap().0, 1);
    }

    /// Asks for an early time while it is being rung, and answers with a late one.
    struct Hasty(&'static Timer, Mutex<(Option<Key>, u32)>, Mutex<Sender<()>>);

    impl Timed for Hasty {
        fn ring(&self, now: Instant) -> Option<Instant> {
            let mut state = self.1.lock().unwrap();
            state.1 += 1;
            if state.1 == 2 {
                self.2.lock().unwrap().send(()).unwrap();
                return None;
            }
            self.0.hasten(state.0.unwrap(), now + TICK);
            Some(now + Duration::from_secs(3600))
        }
    }

    #[test]
    fn an_entry_can_be_hastened_while_it_is_being_rung() {
        let timer = Timer::start().unwrap();
        let (sender, rung) = mpsc::channel();
        let hasty = Arc::new(Hasty(timer, Mutex::default(), Mutex::new(sender)));
        let mut state = hasty.1.lock().unwrap();
        state.0 = Some(timer.add(Instant::now(), Arc::clone(&hasty) as _));
        drop(state);
        rung.recv_timeout(LONG).unwrap();
    }

    #[test]
    fn an_entry_that_panics_ends_no_other() {
        struct Panics;
        impl Timed for Panics {
            fn ring(&self, _: Instant) -> Option<Instant> {
                panic!("as it should");
            }
        }
        let timer = Timer::start().unwrap();
        let (sender, rung) = mpsc::channel();
        timer.add(Instant::now(), Arc::new(Panics));
        timer.add(Instant::now() + TICK, bell(&sender, 1, &[]));
        assert_eq!(rung.recv_timeout(LONG).unwrap().0, 1);
    }

    #[test]
    fn the_thread_sleeps_until_told_when_there_is_nothing_to_do() {
        let timer = Timer::start().unwrap();
        let (sender, rung) = mpsc::channel();
        timer.add(Instant::now(), bell(&sender, 1, &[]));
        rung.recv_timeout(LONG).unwrap();
        until("it sleeps", || timer.entries().wakes.is_none());
    }
}
