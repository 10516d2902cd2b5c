//! Whole suspends and resumes, of one process or of a tree. What fails half way is undone.

use crate::error::{Error, Result};
use crate::gpu::Mapping;
use crate::handle::Handle;
use crate::helper::Helper;
use crate::record;
use crate::room::fits;
use crate::state::State;
use crate::system;
use crate::wire::Look;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Processes that are suspended and resumed together.
#[derive(Debug)]
pub struct Group {
    helper: Helper,
    root: Handle,
    is_tree: bool,
}

/// What went wrong with a group, and where each of its processes stands after what was done is undone.
#[derive(Debug, thiserror::Error)]
pub struct TreeFailure {
    /// What went wrong.
    #[source]
    pub error: Error,
    /// Where each process stands now; nothing if that could not be told.
    pub now: Vec<(u32, Option<State>)>,
}

impl fmt::Display for TreeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)?;
        for (pid, state) in &self.now {
            match state {
                Some(state) => write!(f, "; process {pid} is {state} now")?,
                None => write!(f, "; where process {pid} stands now is not known")?,
            }
        }
        Ok(())
    }
}

/// Whether a process can be checkpointed, and how large that would be.
#[derive(Debug, Serialize)]
pub struct Assessment {
    /// The process.
    pub pid: u32,
    /// Its state by its name.
    pub state: Option<String>,
    /// Bytes on GPUs, if NVML tells: what host memory must take.
    pub gpu_bytes: Option<u64>,
    /// Bytes in host memory: with those on GPUs, about what a dump would take on disk.
    pub host_bytes: u64,
    /// Bytes that the host can give.
    pub host_available: Option<u64>,
    /// What is in the way.
    pub obstacles: Vec<String>,
    /// What the machine has.
    pub machine: Option<Look>,
}

impl Group {
    /// One process.
    ///
    /// # Errors
    /// Those of [`Handle::open`].
    pub fn of(helper: Helper, pid: i64) -> Result<Self> {
        Ok(Self { root: Handle::open(helper.clone(), pid)?, helper, is_tree: false })
    }

    /// A process and all that descend from it; those that do not use CUDA are left alone.
    ///
    /// # Errors
    /// Those of [`Handle::open`].
    pub fn tree(helper: Helper, pid: i64) -> Result<Self> {
        Ok(Self { is_tree: true, ..Self::of(helper, pid)? })
    }

    /// The processes, those that do not use CUDA included.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        if self.is_tree { system::tree(self.root.pid()) } else { vec![self.root.pid()] }
    }

    /// The processes that use CUDA, each with its state.
    ///
    /// # Errors
    /// [`Error::NotCuda`] if none does.
    pub fn states(&self) -> Result<Vec<(Handle, State)>> {
        if !self.is_tree {
            return Ok(vec![(self.root.clone(), self.root.state()?)]);
        }
        let mut found = Vec::new();
        for pid in self.pids() {
            let told = Handle::open(self.helper.clone(), i64::from(pid)).and_then(|process| Ok((process.state()?, process)));
            match told {
                Ok((state, process)) => found.push((process, state)),
                Err(Error::NotCuda(_) | Error::NoSuchProcess(_)) => {}
                Err(error) => return Err(error),
            }
        }
        if found.is_empty() { Err(Error::NotCuda(self.root.pid())) } else { Ok(found) }
    }

    /// Locks all, then checkpoints all.
    ///
    /// # Errors
    /// What kept one from it. All run on then, unless the failure says otherwise.
    pub fn suspend(&self, lock_timeout: Option<Duration>) -> std::result::Result<Vec<u32>, TreeFailure> {
        if self.is_toggled_only() {
            return self.toggle_to(State::Checkpointed);
        }
        let mut locked: Vec<Handle> = Vec::new();
        // A process may start another until it is locked.
        loop {
            let states = self.states().map_err(|error| self.undo(error, &locked, lock_timeout, Target::Running))?;
            let fresh: Vec<_> = states.into_iter().filter(|(process, _)| !locked.iter().any(|old| old.pid() == process.pid())).collect();
            if fresh.is_empty() {
                break;
            }
            for (process, state) in fresh {
                let done = match state {
                    State::Running => process.lock(lock_timeout).map(drop),
                    State::Failed => Err(Error::Lost(process.pid())),
                    _ => Err(Error::WrongState { pid: process.pid(), call: "suspend", state, needed: State::Running }),
                };
                match done {
                    Ok(()) => locked.push(process),
                    // A lock that did not return may have been granted all the same.
                    Err(error) => {
                        if matches!(error, Error::Blocked { .. } | Error::Helper(_)) {
                            locked.push(process);
                        }
                        return Err(self.undo(error, &locked, lock_timeout, Target::Running));
                    }
                }
            }
        }
        for process in &locked {
            process.checkpoint().map_err(|error| self.undo(error, &locked, lock_timeout, Target::Running))?;
        }
        Ok(locked.iter().map(Handle::pid).collect())
    }

    /// Restores all, then unlocks all. One that is only locked is unlocked.
    ///
    /// # Errors
    /// What kept one from it. Those that were restored are checkpointed again then, unless the failure says otherwise.
    pub fn resume(&self, mapping: &Mapping) -> std::result::Result<Vec<u32>, TreeFailure> {
        if self.is_toggled_only() {
            let version = self.root.look().map_or(0, |look| look.driver);
            return if mapping.is_none() { self.toggle_to(State::Running) } else { Err(self.plain(Error::ToggleOnly(version))) };
        }
        let states = self.states().map_err(|error| self.plain(error))?;
        let wrong = states.iter().find_map(|(process, state)| match state {
            State::Locked | State::Checkpointed => None,
            State::Failed => Some(Error::Lost(process.pid())),
            state => Some(Error::WrongState { pid: process.pid(), call: "resume", state: *state, needed: State::Checkpointed }),
        });
        if let Some(error) = wrong {
            return Err(self.plain(error));
        }
        let suspended: Vec<&Handle> =
            states.iter().filter(|(_, state)| *state == State::Checkpointed).map(|(process, _)| process).collect();
        fits(&suspended, mapping).map_err(|error| self.plain(error))?;
        let mut restored: Vec<Handle> = Vec::new();
        for process in suspended {
            match process.copy_in(mapping) {
                Ok(_) => restored.push(process.clone()),
                Err(error) => return Err(self.undo(error, &restored, None, Target::Checkpointed)),
            }
        }
        for (process, _) in &states {
            process.unlock().map_err(|error| self.plain(error))?;
            record::remove(process);
        }
        Ok(states.iter().map(|(process, _)| process.pid()).collect())
    }

    /// Suspends what runs, resumes what is suspended.
    ///
    /// # Errors
    /// Those of [`suspend`](Self::suspend) and [`resume`](Self::resume).
    pub fn toggle(&self, lock_timeout: Option<Duration>, mapping: &Mapping) -> std::result::Result<(Vec<u32>, State), TreeFailure> {
        let states = self.states().map_err(|error| self.plain(error))?;
        if states.iter().any(|(_, state)| *state == State::Running) {
            self.suspend(lock_timeout).map(|pids| (pids, State::Checkpointed))
        } else {
            self.resume(mapping).map(|pids| (pids, State::Running))
        }
    }

    /// Whether each process can be checkpointed, and how large that would be. Touches nothing.
    #[must_use]
    pub fn assess(&self) -> Vec<Assessment> {
        let opened = self.pids().into_iter().filter_map(|pid| Handle::open(self.helper.clone(), i64::from(pid)).ok());
        opened.filter_map(|process| assess(&process, self.is_tree)).collect()
    }

    fn is_toggled_only(&self) -> bool {
        !self.is_tree && self.root.look().is_ok_and(|look| look.program.is_some())
    }

    fn toggle_to(&self, wanted: State) -> std::result::Result<Vec<u32>, TreeFailure> {
        let toggled = self.root.state().and_then(|state| {
            let (pid, call) = (self.root.pid(), if wanted == State::Running { "resume" } else { "suspend" });
            let needed = if wanted == State::Running { State::Checkpointed } else { State::Running };
            if state == needed { self.root.toggle() } else { Err(Error::WrongState { pid, call, state, needed }) }
        });
        toggled.map(|_| vec![self.root.pid()]).map_err(|error| self.plain(error))
    }

    /// Brings what was touched back, as far as that goes.
    fn undo(&self, error: Error, touched: &[Handle], lock_timeout: Option<Duration>, target: Target) -> TreeFailure {
        for process in touched.iter().rev() {
            let _ = back(process, lock_timeout, target);
        }
        self.plain(error)
    }

    /// An error after which there is nothing to undo.
    fn plain(&self, error: Error) -> TreeFailure {
        let now = self.states().map(|states| states.iter().map(|(process, state)| (process.pid(), Some(*state))).collect());
        TreeFailure { error, now: now.unwrap_or_default() }
    }
}

/// Where a failure leads back to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Running,
    Checkpointed,
}

/// Brings one back. Where it could not be done, its state tells.
fn back(process: &Handle, lock_timeout: Option<Duration>, target: Target) -> Result<()> {
    match (process.state()?, target) {
        (State::Checkpointed, Target::Running) => {
            process.copy_in(&Mapping::none())?;
            record::remove(process);
            process.unlock()?;
        }
        (State::Locked, Target::Running) => drop(process.unlock()?),
        (State::Running, Target::Checkpointed) => {
            process.lock(lock_timeout)?;
            process.checkpoint()?;
        }
        (State::Locked, Target::Checkpointed) => drop(process.checkpoint()?),
        _ => {}
    }
    Ok(())
}

fn assess(process: &Handle, is_tree: bool) -> Option<Assessment> {
    let mut obstacles = Vec::new();
    let state = match process.state() {
        Err(Error::NotCuda(_)) if is_tree => return None,
        Ok(State::Failed) => {
            obstacles.push(Error::Lost(process.pid()).to_string());
            Some(State::Failed)
        }
        Ok(state) => Some(state),
        Err(error) => {
            obstacles.push(error.to_string());
            None
        }
    };
    let machine = process.preflight().map_err(|error| obstacles.push(error.to_string())).ok();
    let listed: Vec<u64> = machine.iter().flat_map(|look| &look.gpus).filter_map(|gpu| gpu.used).collect();
    let gpu_bytes = (!listed.is_empty()).then(|| listed.iter().sum());
    let (host_bytes, host_available) = (system::resident(process.pid()), system::available());
    if let (Some(needed), Some(available)) = (gpu_bytes, host_available.filter(|available| gpu_bytes > Some(*available))) {
        obstacles.push(Error::HostMemory { pid: process.pid(), needed, available }.to_string());
    }
    let state = state.map(|state| state.to_string());
    Some(Assessment { pid: process.pid(), state, gpu_bytes, host_bytes, host_available, obstacles, machine })
}
