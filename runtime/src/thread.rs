//! Threads of ours. They take none of the program's signals. A handler may expect to run in the program's own threads,
//! or to interrupt one of their calls.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread that no signal is delivered to.
pub(crate) fn spawn<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<JoinHandle<T>> {
    let builder = Builder::new().name(name.into());
    #[cfg(unix)]
    {
        use nix::sys::signal::{SigSet, SigmaskHow};
        // A thread begins with the mask of the one that starts it.
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
        let started = builder.spawn(work);
        before.thread_set_mask()?;
        started
    }
    #[cfg(not(unix))]
    builder.spawn(work)
}
