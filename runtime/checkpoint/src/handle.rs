//! A process by its pid, with every call at any time: what interfaces build on that can't say states by types.

use crate::error::{Error, Failure, Result};
use crate::gpu::Mapping;
use crate::helper::Helper;
use crate::state::State;
use crate::system;
use crate::wire::{Ask, Bytes, Look, Refusal, Told};
use std::time::Duration;

/// The driver's answers that have a meaning here.
mod code {
    pub(super) const INVALID_VALUE: u32 = 1;
    pub(super) const NOT_INITIALIZED: u32 = 3;
    pub(super) const ILLEGAL_STATE: u32 = 401;
    pub(super) const NOT_READY: u32 = 600;
    pub(super) const NOT_PERMITTED: u32 = 800;
    pub(super) const NOT_SUPPORTED: u32 = 801;
}

/// A process, by its pid.
#[derive(Debug, Clone)]
pub struct Handle {
    helper: Helper,
    pid: u32,
    // A pid is given again; this is not.
    start: u64,
}

impl Handle {
    /// A process that is there, and may be reached.
    ///
    /// # Errors
    /// [`Error::BadPid`], [`Error::NoSuchProcess`], [`Error::NoPermission`], [`Error::Architecture`].
    pub fn open(helper: Helper, pid: i64) -> Result<Self> {
        let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0).ok_or(Error::BadPid(pid))?.cast_unsigned();
        supported(std::env::consts::ARCH)?;
        let start = system::start_time(pid).ok_or(Error::NoSuchProcess(pid))?;
        system::may_reach(pid).map_err(|why| Error::NoPermission { pid, why })?;
        Ok(Self { helper, pid, start })
    }

    /// Its pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// When it was started, in ticks since the boot.
    #[must_use]
    pub fn start_time(&self) -> u64 {
        self.start
    }

    /// Its state.
    ///
    /// # Errors
    /// [`Error::NotCuda`] if it does not use CUDA; whatever else keeps the driver from telling.
    pub fn state(&self) -> Result<State> {
        match self.ask(&Ask::State { pid: self.pid }, None)?.0 {
            Told::State(number) => Ok(number.into()),
            _ => Err(strange()),
        }
    }

    /// The thread of the process that restores it, as debuggers want to know.
    ///
    /// # Errors
    /// As [`state`](Self::state).
    pub fn restore_thread_id(&self) -> Result<i32> {
        match self.ask(&Ask::RestoreThreadId { pid: self.pid }, None)?.0 {
            Told::ThreadId(id) => Ok(id),
            _ => Err(strange()),
        }
    }

    /// The driver, the GPUs, and what the process has on them.
    ///
    /// # Errors
    /// If the helper does not answer.
    pub fn look(&self) -> Result<Look> {
        match self.ask(&Ask::Look { pid: self.pid }, None)?.0 {
            Told::Look(look) => Ok(look),
            _ => Err(strange()),
        }
    }

    /// Refuses by name what the driver can't checkpoint, as far as that shows from outside.
    ///
    /// # Errors
    /// [`Error::Mps`], [`Error::Mig`].
    pub fn preflight(&self) -> Result<Look> {
        let pid = self.pid;
        self.refuse_mps()?;
        let look = self.look()?;
        match look.split_under(pid) {
            Some(gpu) => Err(Error::Mig { pid, gpu: gpu.uuid.to_string() }),
            None => Ok(look),
        }
    }

    /// Lets the process make no further calls of CUDA, once its kernels have ended. Answers how long the driver took.
    ///
    /// # Errors
    /// [`Error::Busy`] if they do not end within the timeout: the process runs on. Those of [`preflight`](Self::preflight).
    pub fn lock(&self, timeout: Option<Duration>) -> Result<Duration> {
        let timeout_ms = match timeout {
            None => 0,
            Some(given) => u32::try_from(given.as_millis()).ok().filter(|ms| *ms > 0).ok_or(Error::BadTimeout(given))?,
        };
        self.refuse_mps()?;
        self.change(&Ask::Lock { pid: self.pid, timeout_ms }, timeout)
    }

    /// The checkpoint alone, with what it freed: [`checkpoint`](Self::checkpoint) writes that down for a restore.
    pub(crate) fn copy_out(&self) -> Result<(Bytes, Duration)> {
        match self.ask(&Ask::Checkpoint { pid: self.pid }, None)? {
            (Told::Freed(bytes), took) => Ok((bytes, took)),
            _ => Err(strange()),
        }
    }

    /// The restore alone: [`restore`](Self::restore) sees to room.
    pub(crate) fn copy_in(&self, mapping: &Mapping) -> Result<Duration> {
        let present: Vec<_> = if mapping.is_none() { Vec::new() } else { self.look()?.gpus.iter().map(|gpu| gpu.uuid).collect() };
        self.change(&Ask::Restore { pid: self.pid, pairs: mapping.complete(&present)? }, None)
    }

    /// Lets it make calls of CUDA again. Answers how long the driver took.
    ///
    /// # Errors
    /// Whatever the driver refuses.
    pub fn unlock(&self) -> Result<Duration> {
        self.change(&Ask::Unlock { pid: self.pid }, None)
    }

    /// All the way to the other state, by a driver that has no single steps.
    pub(crate) fn toggle(&self) -> Result<Duration> {
        self.change(&Ask::Toggle { pid: self.pid }, None)
    }

    /// An error together with where the process stands.
    pub(crate) fn failure(&self, error: Error) -> Failure {
        Failure { error, pid: self.pid, state: self.state().ok() }
    }

    fn refuse_mps(&self) -> Result<()> {
        let folder = system::mps_folder(self.pid);
        folder.map_or(Ok(()), |folder| Err(Error::Mps { pid: self.pid, folder: folder.display().to_string() }))
    }

    fn change(&self, ask: &Ask, timeout: Option<Duration>) -> Result<Duration> {
        self.ask(ask, timeout).map(|(_, took)| took)
    }

    fn ask(&self, ask: &Ask, timeout: Option<Duration>) -> Result<(Told, Duration)> {
        if system::start_time(self.pid) != Some(self.start) {
            return Err(Error::NoSuchProcess(self.pid));
        }
        let answer = self.helper.ask(self.pid, ask)?;
        let took = Duration::from_micros(answer.driver_us);
        answer.told.map(|told| (told, took)).map_err(|refusal| self.meaning(ask, refusal, timeout))
    }

    /// What a refusal means for this process.
    fn meaning(&self, ask: &Ask, refusal: Refusal, timeout: Option<Duration>) -> Error {
        let pid = self.pid;
        let (code, name) = match refusal {
            Refusal::NoDriver(why) => return Error::NoDriver(why),
            Refusal::TooOld(version) => return Error::DriverTooOld(version),
            Refusal::Symbol(name) => return Error::SymbolMissing(name),
            Refusal::ToggleOnly(version) => return Error::ToggleOnly(version),
            Refusal::Program(said) => return Error::Program { pid, said },
            Refusal::Mig(gpu) => return Error::Mig { pid, gpu },
            Refusal::HostMemory { needed, available } => return Error::HostMemory { pid, needed, available },
            Refusal::Driver { code, name } => (code, name),
        };
        if system::start_time(pid) != Some(self.start) {
            return Error::NoSuchProcess(pid);
        }
        let is_question = matches!(ask, Ask::State { .. } | Ask::RestoreThreadId { .. });
        match (code, ask) {
            (code::INVALID_VALUE, Ask::Restore { pairs, .. }) if !pairs.is_empty() => Error::BadMapping(format!(
                "the driver refused it for process {pid}: name every GPU that it was on, and new ones of the same model"
            )),
            (code::NOT_PERMITTED, _) => Error::NoPermission { pid, why: format!("the driver says {name}") },
            // Driver 580 answers "not initialised" for a process without CUDA; documented is "invalid value".
            (code::INVALID_VALUE | code::NOT_INITIALIZED, _) if is_question => Error::NotCuda(pid),
            _ if is_question && !system::uses_driver(pid) => Error::NotCuda(pid),
            _ if is_question => Error::Driver { pid, call: ask.call(), code, name },
            (code::NOT_READY, Ask::Lock { .. }) => Error::Busy { pid, timeout: timeout.unwrap_or_default() },
            (code::NOT_SUPPORTED, Ask::Lock { .. } | Ask::Checkpoint { .. }) => {
                let what = if system::has_managed_memory(pid) {
                    "managed memory (cudaMallocManaged)"
                } else {
                    "managed memory (cudaMallocManaged), or memory shared with other processes (CUDA IPC, before driver 610)"
                };
                Error::Unsupported { pid, what }
            }
            _ => match self.state() {
                Ok(State::Failed) => Error::Lost(pid),
                Ok(state) if code == code::ILLEGAL_STATE || (code == code::INVALID_VALUE && Some(state) != needed(ask)) => {
                    Error::WrongState { pid, call: ask.call(), state, needed: needed(ask).unwrap_or(state) }
                }
                Err(Error::NotCuda(pid)) => Error::NotCuda(pid),
                _ => Error::Driver { pid, call: ask.call(), code, name },
            },
        }
    }
}

/// The state that a call wants.
fn needed(ask: &Ask) -> Option<State> {
    match ask {
        Ask::Lock { .. } => Some(State::Running),
        Ask::Checkpoint { .. } | Ask::Unlock { .. } => Some(State::Locked),
        Ask::Restore { .. } => Some(State::Checkpointed),
        _ => None,
    }
}

fn strange() -> Error {
    Error::Helper("it answered something else than it was asked".to_owned())
}

/// The driver checkpoints on `x86_64` only.
fn supported(architecture: &'static str) -> Result<()> {
    if architecture == "x86_64" { Ok(()) } else { Err(Error::Architecture(architecture)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_processors_are_refused_by_name() {
        assert!(matches!(supported("aarch64"), Err(Error::Architecture("aarch64"))));
        assert!(supported("x86_64").is_ok());
    }

    #[test]
    fn numbers_that_no_process_has_are_no_pids() {
        for pid in [0, -1, i64::from(i32::MAX) + 1, i64::MIN] {
            assert!(matches!(Handle::open(Helper::new(), pid), Err(Error::BadPid(bad)) if bad == pid));
        }
        assert!(matches!(Handle::open(Helper::new(), i64::from(i32::MAX)), Err(Error::NoSuchProcess(_))));
    }
}
