//! A process whose state is a type: a call in the wrong state does not compile.

use crate::error::{Error, Failure};
use crate::gpu::Mapping;
use crate::handle::Handle;
use crate::helper::Helper;
use crate::state::State;
use std::marker::PhantomData;
use std::time::Duration;

/// CUDA works as ever.
#[derive(Debug)]
pub enum Running {}
/// Calls of CUDA wait.
#[derive(Debug)]
pub enum Locked {}
/// Its GPU memory is in host memory.
#[derive(Debug)]
pub enum Checkpointed {}

/// A process in a state that this program knows of.
///
/// Each call takes it and gives it back in its new state. A [`Failure`] tells where it stands instead; take it up again from there by its pid.
/// ```compile_fail
/// # use cuinstr_checkpoint::{Process, Running};
/// fn checkpointed_before_it_is_locked(process: Process<Running>) { let _ = process.checkpoint(); }
/// ```
/// ```compile_fail
/// # use cuinstr_checkpoint::{Process, Running};
/// fn locked_twice(process: Process<Running>) { let _ = process.lock(None); let _ = process.lock(None); }
/// ```
/// ```compile_fail
/// # use cuinstr_checkpoint::{Process, Checkpointed};
/// fn unlocked_before_it_is_restored(process: Process<Checkpointed>) { let _ = process.unlock(); }
/// ```
#[derive(Debug)]
pub struct Process<S> {
    handle: Handle,
    state: PhantomData<S>,
}

impl<S> Process<S> {
    fn in_state(handle: Handle) -> Self {
        Self { handle, state: PhantomData }
    }

    fn at(helper: Helper, pid: i64, call: &'static str, needed: State) -> Result<Self, Error> {
        let handle = Handle::open(helper, pid)?;
        match handle.state()? {
            state if state == needed => Ok(Self::in_state(handle)),
            State::Failed => Err(Error::Lost(handle.pid())),
            state => Err(Error::WrongState { pid: handle.pid(), call, state, needed }),
        }
    }

    fn step<T>(self, change: impl FnOnce(&Handle) -> Result<Duration, Error>) -> Result<Process<T>, Failure> {
        match change(&self.handle) {
            Ok(_) => Ok(Process::in_state(self.handle)),
            Err(error) => Err(self.handle.failure(error)),
        }
    }

    /// Its pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.handle.pid()
    }

    /// The same process without its state.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Process<Running> {
    /// A process that runs.
    ///
    /// # Errors
    /// [`Error::WrongState`] if it is in another state; those of [`Handle::open`] and [`Handle::state`].
    pub fn running(helper: Helper, pid: i64) -> Result<Self, Error> {
        Self::at(helper, pid, "Process::running", State::Running)
    }

    /// Lets it make no further calls of CUDA, once its kernels have ended.
    ///
    /// # Errors
    /// Those of [`Handle::lock`].
    pub fn lock(self, timeout: Option<Duration>) -> Result<Process<Locked>, Failure> {
        self.step(|handle| handle.lock(timeout))
    }
}

impl Process<Locked> {
    /// A process that somebody locked.
    ///
    /// # Errors
    /// As [`Process::running`].
    pub fn locked(helper: Helper, pid: i64) -> Result<Self, Error> {
        Self::at(helper, pid, "Process::locked", State::Locked)
    }

    /// Copies its GPU memory to host memory and frees the GPU.
    ///
    /// # Errors
    /// Those of [`Handle::checkpoint`].
    pub fn checkpoint(self) -> Result<Process<Checkpointed>, Failure> {
        self.step(Handle::checkpoint)
    }

    /// Lets it make calls of CUDA again.
    ///
    /// # Errors
    /// Those of [`Handle::unlock`].
    pub fn unlock(self) -> Result<Process<Running>, Failure> {
        self.step(Handle::unlock)
    }
}

impl Process<Checkpointed> {
    /// A process that somebody checkpointed.
    ///
    /// # Errors
    /// As [`Process::running`].
    pub fn checkpointed(helper: Helper, pid: i64) -> Result<Self, Error> {
        Self::at(helper, pid, "Process::checkpointed", State::Checkpointed)
    }

    /// Brings its GPU memory back, if there is room; it stays locked.
    ///
    /// # Errors
    /// [`Error::GpuMemory`] before anything is touched; those of [`Handle::restore`].
    pub fn restore(self, mapping: &Mapping) -> Result<Process<Locked>, Failure> {
        self.step(|handle| handle.restore(mapping))
    }
}
