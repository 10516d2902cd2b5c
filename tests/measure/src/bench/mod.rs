//! The figures that the runtime is judged by. Each is measured in a child process with a limit of time, so that a hang
//! loses only one of them.

pub mod cancel;
mod cost;
mod endurance;
pub mod figure;
mod latency;
mod mutation;
pub mod page;
mod rig;
mod soak;
mod worker;

pub use cost::{fresh, victim};
pub use rig::Rig;

use figure::Row;
use std::time::Duration;

/// A figure: a few rows of the table.
pub struct Figure {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// When to give up on it.
    pub limit: Duration,
    measure: fn(&Rig) -> Result<Vec<Row>, String>,
}

impl std::fmt::Debug for Figure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

impl Figure {
    const fn new(name: &'static str, title: &'static str, seconds: u64, measure: fn(&Rig) -> Result<Vec<Row>, String>) -> Self {
        Self { name, title, limit: Duration::from_secs(seconds), measure }
    }

    /// Measures it.
    ///
    /// # Errors
    /// What went wrong: then nothing of it counts.
    pub fn measure(&self, rig: &Rig) -> Result<Vec<Row>, String> {
        (self.measure)(rig)
    }
}

/// Those that take longer than all others together: they are measured where they are named.
pub const LONG: &[Figure] = &[Figure::new("soak", "10^6 launches of all kinds in ten minutes", 700, soak::launches)];

/// All others, in the order of the table.
pub const FIGURES: &[Figure] = &[
    Figure::new("full-grid", "a resident full grid, 2048 threads on each multiprocessor", 30, latency::full_grid),
    Figure::new("one-block", "one block", 20, latency::one_block),
    Figure::new("queued", "a hundred launches queued behind", 20, latency::queued),
    Figure::new("copies", "8 GB of copies in flight", 60, latency::copies),
    Figure::new("million-blocks", "a grid of 10^6 blocks", 20, latency::million_blocks),
    Figure::new("host-timer", "the host's timer alone, the device's clock unarmed", 20, latency::host_timer),
    Figure::new("deadlines", "10,000 deadlines, the host idle", 30, latency::deadlines),
    Figure::new("launch", "a guarded launch of an empty kernel over a bare one", 30, cost::launch),
    Figure::new("next-result", "from a stop to the next kernel's result", 40, cost::next_result),
    Figure::new("worker", "from a worker's death to the next result", 40, worker::next_result),
    Figure::new("stops", "100,000 stops in one process", 120, endurance::stops),
    Figure::new("mutants", "50 mutants, 20 times", 90, mutation::mutants),
];

/// The figure of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Figure> {
    FIGURES.iter().chain(LONG).find(|figure| figure.name == name)
}
