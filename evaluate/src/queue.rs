//! Who compiles what, and who runs what, in one order: candidates are run as they come, all rounds of one behind each other, whichever compiler is done
//! first.

use crate::compile::Built;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A candidate to be judged, by its index, for the so-manieth time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Item {
    /// Its index.
    pub candidate: usize,
    /// Which time, from 1.
    pub round: u32,
}

/// Most images that wait for their first run.
const AHEAD: usize = 256;

#[derive(Debug)]
pub(crate) struct Queue {
    items: Vec<Item>,
    /// Candidates in the order in which they are needed first.
    order: Vec<usize>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next_compiled: usize,
    next_run: usize,
    /// Candidates that were run at least once, or are.
    begun: usize,
    built: HashMap<usize, Built>,
    /// Runs that are still to come of each candidate.
    left: HashMap<usize, usize>,
    is_stopped: bool,
}

impl Queue {
    pub(crate) fn new(items: Vec<Item>) -> Self {
        let mut left: HashMap<usize, usize> = HashMap::new();
        let mut order = Vec::new();
        for item in &items {
            let count = left.entry(item.candidate).or_default();
            if *count == 0 {
                order.push(item.candidate);
            }
            *count += 1;
        }
        Self { items, order, state: Mutex::new(State { left, ..State::default() }), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next candidate to compile; waits while enough are ahead. `None` at the end.
    pub(crate) fn to_compile(&self) -> Option<usize> {
        let mut state = self.state();
        while !state.is_stopped {
            let candidate = *self.order.get(state.next_compiled)?;
            if state.next_compiled < state.begun + AHEAD {
                state.next_compiled += 1;
                return Some(candidate);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// A candidate was compiled.
    pub(crate) fn put(&self, candidate: usize, built: Built) {
        self.state().built.insert(candidate, built);
        self.changed.notify_all();
    }

    /// The next item to run, once it is compiled. `None` at the end.
    pub(crate) fn take(&self) -> Option<(Item, Built)> {
        let mut state = self.state();
        if state.is_stopped {
            return None;
        }
        let item = *self.items.get(state.next_run)?;
        if self.order.get(state.begun) == Some(&item.candidate) {
            state.begun += 1;
            self.changed.notify_all();
        }
        state.next_run += 1;
        while !state.is_stopped {
            if let Some(built) = state.built.get(&item.candidate).cloned() {
                let left = state.left.entry(item.candidate).or_default();
                *left = left.saturating_sub(1);
                if *left == 0 {
                    state.built.remove(&item.candidate);
                }
                return Some((item, built));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Ends it for all.
    pub(crate) fn stop(&self) {
        self.state().is_stopped = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Finding, Verdict};
    use std::thread;

    fn built(name: &str) -> Built {
        Err(Box::new(Finding::new(Verdict::CompileError, name.to_owned())))
    }

    #[test]
    fn items_are_run_in_their_order_and_each_is_compiled_once() {
        let items: Vec<Item> = (0..600).flat_map(|candidate| (1..=3).map(move |round| Item { candidate, round })).collect();
        let queue = Queue::new(items.clone());
        let compiled = Mutex::new(Vec::new());
        let (mut run, mut most) = (Vec::new(), 0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some(candidate) = queue.to_compile() {
                        compiled.lock().unwrap().push(candidate);
                        queue.put(candidate, built(&candidate.to_string()));
                    }
                });
            }
            while let Some((item, built)) = queue.take() {
                assert_eq!(built.unwrap_err().message, Some(item.candidate.to_string()));
                run.push(item);
                most = most.max(queue.state().built.len());
            }
        });
        assert_eq!(run, items);
        let mut compiled = compiled.into_inner().unwrap();
        compiled.sort_unstable();
        assert_eq!(compiled, (0..600).collect::<Vec<_>>());
        // However often each is run, few are kept.
        assert!(queue.state().built.is_empty() && most <= AHEAD + 1, "{most}");
    }

    #[test]
    fn compilers_do_not_run_far_ahead_and_stopping_frees_who_waits() {
        let queue = Queue::new((0..2 * AHEAD).map(|candidate| Item { candidate, round: 1 }).collect());
        for _ in 0..AHEAD {
            let candidate = queue.to_compile().unwrap();
            queue.put(candidate, built(""));
        }
        thread::scope(|scope| {
            let waits = scope.spawn(|| queue.to_compile());
            assert_eq!(queue.take().unwrap().0.candidate, 0);
            assert_eq!(waits.join().unwrap(), Some(AHEAD));
            let waits = scope.spawn(|| queue.to_compile());
            queue.stop();
            assert_eq!(waits.join().unwrap(), None);
            assert!(queue.take().is_none());
        });
    }
}
