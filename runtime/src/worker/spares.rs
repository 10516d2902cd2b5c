//! Worker processes in reserve, each with its context ready, and their replacement in the background.

use super::process::{Process, Recipe};
use super::wire::Task;
use crate::error::{Error, Result};
use crate::thread;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Processes in reserve.
#[derive(Debug)]
pub(super) struct Spares {
    recipe: Recipe,
    wanted: usize,
    nursery: Mutex<Nursery>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Nursery {
    ready: VecDeque<Spare>,
    // Those that are started, or are loading modules: no other thread may ask them anything.
    starting: usize,
    // The modules that each is to have, by their numbers.
    stock: BTreeMap<u64, Arc<[u8]>>,
    failure: Option<Error>,
    is_closed: bool,
}

/// A process in reserve.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) process: Arc<Process>,
    /// The modules that it has loaded.
    pub(super) modules: BTreeSet<u64>,
    // Those that it could not load: who needs them is told why by the process at work.
    refused: BTreeSet<u64>,
}

impl Spare {
    fn is_lost(&self) -> bool {
        self.process.lost().is_some()
    }

    /// A module that it is to have, and has not.
    fn lacks(&self, stock: &BTreeMap<u64, Arc<[u8]>>) -> Option<(u64, Arc<[u8]>)> {
        let missing = stock.iter().find(|(module, _)| !self.modules.contains(module) && !self.refused.contains(module));
        missing.map(|(module, image)| (*module, Arc::clone(image)))
    }
}

impl Spares {
    pub(super) fn new(recipe: Recipe, wanted: usize) -> Arc<Self> {
        Arc::new(Self { recipe, wanted, nursery: Mutex::default(), changed: Condvar::new() })
    }

    /// How many are to be in reserve.
    pub(super) fn wanted(&self) -> usize {
        self.wanted
    }

    fn nursery(&self) -> MutexGuard<'_, Nursery> {
        self.nursery.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process that is ready, at once if there is one in reserve; another is started in its place.
    pub(super) fn take(self: &Arc<Self>) -> Result<Spare> {
        // Each that is starting has this bound itself; the rest is for the system.
        let until = Instant::now() + self.recipe.start_within + Duration::from_secs(1);
        let mut nursery = self.nursery();
        nursery.failure = None;
        loop {
            nursery.ready.retain(|spare| !spare.is_lost());
            if let Some(spare) = nursery.ready.pop_front() {
                self.refill(&mut nursery, self.wanted);
                return Ok(spare);
            }
            if let Some(failure) = nursery.failure.take() {
                return Err(failure);
            }
            self.refill(&mut nursery, self.wanted + 1);
            let now = Instant::now();
            if now >= until {
                return Err(Error::Environment(format!("no worker process was ready within {:?}", self.recipe.start_within)));
            }
            nursery = self.changed.wait_timeout(nursery, until - now).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How many are ready.
    pub(super) fn ready(&self) -> usize {
        self.nursery().ready.iter().filter(|spare| !spare.is_lost()).count()
    }

    /// Waits until as many as wanted are ready.
    pub(super) fn warm(self: &Arc<Self>, limit: Duration) -> Result<bool> {
        let until = Instant::now() + limit;
        let mut nursery = self.nursery();
        nursery.failure = None;
        loop {
            nursery.ready.retain(|spare| !spare.is_lost());
            if nursery.ready.len() >= self.wanted {
                return Ok(true);
            }
            if let Some(failure) = nursery.failure.take() {
                return Err(failure);
            }
            self.refill(&mut nursery, self.wanted);
            let now = Instant::now();
            if now >= until {
                return Ok(false);
            }
            nursery = self.changed.wait_timeout(nursery, until - now).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Starts as many as are missing.
    fn refill(self: &Arc<Self>, nursery: &mut Nursery, wanted: usize) {
        while !nursery.is_closed && nursery.ready.len() + nursery.starting < wanted {
            let spares = Arc::clone(self);
            let started = thread::spawn("cuinstr-spare", move || spares.start());
            if let Err(error) = started {
                nursery.failure = Some(Error::Environment(format!("the thread that starts a worker could not be started: {error}")));
                return;
            }
            nursery.starting += 1;
        }
    }

    fn start(&self) {
        match Process::start(&self.recipe) {
            Ok(process) => self.ready_up(Spare { process, modules: BTreeSet::new(), refused: BTreeSet::new() }),
            Err(error) => {
                let mut nursery = self.nursery();
                nursery.starting -= 1;
                nursery.failure = Some(error);
                drop(nursery);
                self.changed.notify_all();
            }
        }
    }

    /// Has a process that is starting load what it is to have, and puts it into the reserve.
    fn ready_up(&self, mut spare: Spare) {
        let mut nursery = self.nursery();
        // A closed reserve drops it, which kills it.
        while let Some((module, image)) = spare.lacks(&nursery.stock).filter(|_| !nursery.is_closed && !spare.is_lost()) {
            drop(nursery);
            let loaded = spare.process.ask(Task::Load { module }, &image, 0);
            let list = if loaded.is_ok() { &mut spare.modules } else { &mut spare.refused };
            list.insert(module);
            nursery = self.nursery();
        }
        nursery.starting -= 1;
        if !nursery.is_closed {
            nursery.ready.push_back(spare);
        }
        drop(nursery);
        self.changed.notify_all();
    }

    /// Has each process in the reserve load a module, those that come into it later too.
    pub(super) fn stock(self: &Arc<Self>, module: u64, image: &Arc<[u8]>) -> Result<()> {
        let mut nursery = self.nursery();
        nursery.stock.insert(module, Arc::clone(image));
        let spares = Arc::clone(self);
        // One at a time, so that the others are there if the process at work is lost meanwhile.
        let supply = move || {
            loop {
                let mut nursery = spares.nursery();
                let Some(place) = nursery.ready.iter().position(|spare| spare.lacks(&nursery.stock).is_some()) else { return };
                let Some(spare) = nursery.ready.remove(place) else { return };
                nursery.starting += 1;
                drop(nursery);
                spares.ready_up(spare);
            }
        };
        let started = thread::spawn("cuinstr-spare", supply);
        started.map_err(|error| Error::Environment(format!("the thread that supplies the spares could not be started: {error}")))?;
        Ok(())
    }

    /// The module is no longer needed.
    pub(super) fn unstock(&self, module: u64) {
        self.nursery().stock.remove(&module);
    }

    /// Whether each process in the reserve is to have the module.
    pub(super) fn is_stocked(&self, module: u64) -> bool {
        self.nursery().stock.contains_key(&module)
    }

    /// Kills all that are ready, and those that are starting once they are.
    pub(super) fn close(&self) {
        let mut nursery = self.nursery();
        nursery.is_closed = true;
        let ready = std::mem::take(&mut nursery.ready);
        drop(nursery);
        drop(ready);
    }
}
