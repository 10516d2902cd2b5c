//! Worker processes in reserve, each with its context ready, and their replacement in the background.

use super::process::{Process, Recipe};
use crate::error::{Error, Result};
use crate::thread;
use std::collections::VecDeque;
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
    ready: VecDeque<Arc<Process>>,
    starting: usize,
    failure: Option<Error>,
    is_closed: bool,
}

impl Spares {
    pub(super) fn new(recipe: Recipe, wanted: usize) -> Arc<Self> {
        Arc::new(Self { recipe, wanted, nursery: Mutex::default(), changed: Condvar::new() })
    }

    fn nursery(&self) -> MutexGuard<'_, Nursery> {
        self.nursery.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process that is ready, at once if there is one in reserve; another is started in its place.
    pub(super) fn take(self: &Arc<Self>) -> Result<Arc<Process>> {
        // Each that is starting has this bound itself; the rest is for the system.
        let until = Instant::now() + self.recipe.start_within + Duration::from_secs(1);
        let mut nursery = self.nursery();
        nursery.failure = None;
        loop {
            nursery.ready.retain(|process| process.lost().is_none());
            if let Some(process) = nursery.ready.pop_front() {
                self.refill(&mut nursery, self.wanted);
                return Ok(process);
            }
            if let Some(failure) = nursery.failure.take() {
                return Err(failure);
            }
            self.refill(&mut nursery, self.wanted + 1);
            let now = Instant::now();
            if now >= until {
                return Err(Error::Machine(format!("no worker process was ready within {:?}", self.recipe.start_within)));
            }
            nursery = self.changed.wait_timeout(nursery, until - now).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How many are ready.
    pub(super) fn ready(&self) -> usize {
        self.nursery().ready.iter().filter(|process| process.lost().is_none()).count()
    }

    /// Waits until as many as wanted are ready.
    pub(super) fn warm(self: &Arc<Self>, limit: Duration) -> Result<bool> {
        let until = Instant::now() + limit;
        let mut nursery = self.nursery();
        nursery.failure = None;
        loop {
            nursery.ready.retain(|process| process.lost().is_none());
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
                nursery.failure = Some(Error::Machine(format!("the thread that starts a worker could not be started: {error}")));
                return;
            }
            nursery.starting += 1;
        }
    }

    fn start(&self) {
        let process = Process::start(&self.recipe);
        let mut nursery = self.nursery();
        nursery.starting -= 1;
        match process {
            // A closed one drops it, which kills it.
            Ok(process) if !nursery.is_closed => nursery.ready.push_back(process),
            Ok(_) => {}
            Err(error) => nursery.failure = Some(error),
        }
        drop(nursery);
        self.changed.notify_all();
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
