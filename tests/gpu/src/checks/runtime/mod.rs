//! What `cuinstr-runtime` promises, each promise a case in a process of its own.

mod bench;
mod blocking;
mod forms;
mod guard;
mod limits;
mod mark;
mod misuse;
mod stops;
mod worker;

use crate::session::{Checked, Session};
use std::fmt;

/// One thing that the runtime promises.
pub struct Promise {
    /// In words, as a sentence.
    pub name: &'static str,
    /// A variable of the environment in which it is kept.
    pub env: Option<(&'static str, &'static str)>,
    /// Seconds after which it is given up, where the usual ones are too few.
    pub seconds: Option<u64>,
    run: fn(&Session) -> Checked,
}

impl fmt::Debug for Promise {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl Promise {
    const fn new(name: &'static str, run: fn(&Session) -> Checked) -> Self {
        Self { name, env: None, seconds: None, run }
    }

    const fn with_env(self, name: &'static str, value: &'static str) -> Self {
        Self { env: Some((name, value)), ..self }
    }

    const fn within(self, seconds: u64) -> Self {
        Self { seconds: Some(seconds), ..self }
    }

    /// Whether it is kept.
    ///
    /// # Errors
    /// What went otherwise.
    pub fn check(&self, session: &Session) -> Checked {
        (self.run)(session)
    }
}

/// All of them.
pub fn promises() -> impl Iterator<Item = &'static Promise> {
    [
        stops::PROMISES,
        limits::PROMISES,
        forms::PROMISES,
        guard::PROMISES,
        misuse::PROMISES,
        blocking::PROMISES,
        mark::PROMISES,
        worker::PROMISES,
    ]
    .into_iter()
    .flatten()
}
