//! Work on all cores, or on as many as there is memory for.

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::OnceLock;

/// What a thread takes of the address space at first: the C library's heap for it, twice while it is aligned, and its stack.
const A_THREAD: u64 = 160 << 20;

/// Does the work for 0, 1, 2, … up to the count, and returns when all is done.
pub(crate) fn each(count: usize, work: &(dyn Fn(usize) + Sync)) {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    if count > 1
        && let Some(pool) = POOL.get_or_init(pool)
    {
        pool.install(|| (0..count).into_par_iter().for_each(work));
    } else {
        (0..count).for_each(work);
    }
}

/// A thread a core, or `RAYON_NUM_THREADS`; fewer where the address space (`ulimit -v`) or the count of threads is limited. None where two can't be started.
fn pool() -> Option<ThreadPool> {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|count| count.parse().ok()).filter(|&count| count > 0);
    let cores = asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let most = address_space().and_then(|space| usize::try_from(space / A_THREAD).ok());
    let mut count = cores.min(most.unwrap_or(usize::MAX));
    while count > 1 {
        if let Ok(pool) = ThreadPoolBuilder::new().num_threads(count).build() {
            return Some(pool);
        }
        count /= 2;
    }
    None
}

/// The limit of this process's address space in bytes, if there is one.
#[cfg(unix)]
fn address_space() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::As).current
}

#[cfg(not(unix))]
fn address_space() -> Option<u64> {
    None
}
