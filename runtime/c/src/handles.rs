//! Numbers that stand for what this library keeps. None is given twice, so one that was released leads nowhere, not to another thing.

use crate::status::{Failure, Status};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// What is kept of one kind.
pub(crate) struct Handles<T> {
    kind: &'static str,
    kept: OnceLock<Mutex<HashMap<u64, Arc<T>>>>,
}

impl<T> Handles<T> {
    pub(crate) const fn new(kind: &'static str) -> Self {
        Self { kind, kept: OnceLock::new() }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<u64, Arc<T>>> {
        self.kept.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps it, and gives its number.
    pub(crate) fn keep(&self, value: T) -> u64 {
        // One sequence for all kinds: a guard's number is no module's.
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        self.kept().insert(id, Arc::new(value));
        id
    }

    /// What a number stands for.
    pub(crate) fn get(&self, id: u64) -> Result<Arc<T>, Failure> {
        self.kept().get(&id).cloned().ok_or_else(|| self.unknown(id))
    }

    /// Keeps it no longer.
    pub(crate) fn release(&self, id: u64) -> Result<Arc<T>, Failure> {
        self.kept().remove(&id).ok_or_else(|| self.unknown(id))
    }

    fn unknown(&self, id: u64) -> Failure {
        let what = if id == 0 { "the handle is zero" } else { "the handle was released, or never was one" };
        Failure::new(Status::BadHandle, format!("there is no {} {id}: {what}", self.kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_number_leads_nowhere() {
        static WORDS: Handles<&str> = Handles::new("word");
        let (first, second) = (WORDS.keep("a"), WORDS.keep("b"));
        assert_eq!(WORDS.get(second).as_deref(), Ok(&"b"));
        assert_eq!(WORDS.release(first).as_deref(), Ok(&"a"));
        let gone = WORDS.release(first).unwrap_err();
        assert_eq!(gone.message, format!("there is no word {first}: the handle was released, or never was one"));
        assert!(WORDS.get(0).is_err_and(|failure| failure.message.ends_with("the handle is zero")));
        assert_ne!(WORDS.keep("c"), first);
    }
}
