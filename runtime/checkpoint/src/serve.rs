//! What a helper process does: whatever its parent asks, until the parent goes.

use crate::driver::Driver;
use crate::helper::VARIABLE;
use crate::program;
use crate::state::State;
use crate::system;
use crate::wire::{Answer, Ask, Bytes, Gpu, Look, Refusal, Told, VERSION};
use cuinstr_gpus::{Library, Share};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// Serves as a helper, and does not return, if this process was started as one.
///
/// Call it first in `main`: before threads, and before anything that reads standard input.
pub fn serve_if_asked() {
    let Some(version) = std::env::var_os(VARIABLE) else { return };
    if version != VERSION {
        eprintln!(
            "cuinstr: a checkpoint helper of version {VERSION} was started by version {}: install both from one release",
            version.display()
        );
        std::process::exit(2);
    }
    let socket = std::io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    let mut server = Server::default();
    let ended = socket.and_then(|socket| server.serve(&socket));
    server.unlock_all();
    std::process::exit(i32::from(ended.is_err()));
}

#[derive(Default)]
struct Server {
    driver: Option<Driver>,
    nvml: Option<Result<Library, String>>,
    // Processes that this helper locked and nothing followed.
    locked: BTreeSet<u32>,
}

impl Server {
    fn serve(&mut self, mut socket: &UnixStream) -> std::io::Result<()> {
        for line in BufReader::new(socket.try_clone()?).lines() {
            let ask: Ask = serde_json::from_str(&line?)?;
            if matches!(ask, Ask::Bye) {
                self.locked.clear();
                break;
            }
            let mut answer = serde_json::to_string(&self.answer(&ask))?;
            answer.push('\n');
            if socket.write_all(answer.as_bytes()).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// The parent died between a lock and what was to follow.
    fn unlock_all(&mut self) {
        for pid in std::mem::take(&mut self.locked) {
            let _ = self.perform(&Ask::Unlock { pid });
        }
    }

    fn answer(&mut self, ask: &Ask) -> Answer {
        // Loading, and looks before and after it, are not the call's own time.
        let before = self.before(ask);
        let since = Instant::now();
        let told = before.and_then(|before| Ok((self.perform(ask)?, before)));
        let driver_us = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        let told = told.map(|(told, before)| if let Ask::Checkpoint { .. } = ask { Told::Freed(self.freed(&before)) } else { told });
        if told.is_ok() {
            match ask {
                Ask::Lock { pid, .. } => self.locked.insert(*pid),
                Ask::Checkpoint { pid } | Ask::Unlock { pid } => self.locked.remove(pid),
                _ => false,
            };
        }
        Answer { told, driver_us }
    }

    fn driver(&mut self) -> Result<&Driver, Refusal> {
        match &mut self.driver {
            Some(driver) => Ok(driver),
            none => Ok(none.insert(Driver::load()?)),
        }
    }

    /// Refuses what the driver would not, or would fail at half way. Tells what a process that is to be checkpointed has on each GPU.
    fn before(&mut self, ask: &Ask) -> Result<Vec<Share>, Refusal> {
        let (Ask::Lock { pid, .. } | Ask::Checkpoint { pid }) = ask else {
            return if let Ask::Look { .. } = ask { Ok(Vec::new()) } else { self.driver().map(|_| Vec::new()) };
        };
        self.driver()?;
        let Ok(library) = self.nvml() else { return Ok(Vec::new()) };
        if let Ask::Lock { .. } = ask {
            // What a process has on each GPU takes long to find.
            let look = if library.is_any_split() { self.look(*pid) } else { Look::default() };
            return look.split_under(*pid).map_or(Ok(Vec::new()), |gpu| Err(Refusal::Mig(gpu.uuid.to_string())));
        }
        let shares = library.shares(*pid);
        let needed = shares.iter().filter_map(|share| share.used).sum();
        match system::available().filter(|available| *available < needed) {
            Some(available) => Err(Refusal::HostMemory { needed, available }),
            None => Ok(shares),
        }
    }

    /// What a checkpoint freed on each GPU. NVML may not list the process, as in a container: then what became free counts.
    fn freed(&mut self, before: &[Share]) -> Bytes {
        let free = self.nvml().map(Library::free).unwrap_or_default();
        let freed = |share: &Share| free.get(&share.uuid).map_or(0, |free| free.saturating_sub(share.free)).max(share.used.unwrap_or(0));
        before.iter().map(|share| (share.uuid.clone(), freed(share))).collect()
    }

    fn perform(&mut self, ask: &Ask) -> Result<Told, Refusal> {
        if let Ask::Look { pid } = ask {
            return Ok(Told::Look(self.look(*pid)));
        }
        let driver = self.driver()?;
        if !driver.has_calls() {
            return by_program(ask, driver.version());
        }
        let number = |pid: &u32| pid.cast_signed();
        match ask {
            Ask::State { pid } => return driver.state(number(pid)).map(Told::State),
            Ask::RestoreThreadId { pid } => return driver.restore_thread_id(number(pid)).map(Told::ThreadId),
            Ask::Lock { pid, timeout_ms } => driver.lock(number(pid), *timeout_ms),
            Ask::Checkpoint { pid } => driver.checkpoint(number(pid)),
            Ask::Restore { pid, pairs } => driver.restore(number(pid), pairs),
            Ask::Unlock { pid } => driver.unlock(number(pid)),
            Ask::Toggle { pid } => toggle(driver, number(pid)),
            Ask::Look { .. } | Ask::Bye => Ok(()),
        }?;
        Ok(Told::Done)
    }

    fn nvml(&mut self) -> Result<&Library, &String> {
        self.nvml.get_or_insert_with(|| Library::open().map_err(|error| error.to_string())).as_ref()
    }

    fn look(&mut self, pid: u32) -> Look {
        let driver = self.driver().map(|driver| (driver.version(), driver.has_calls()));
        let (version, has_calls) = driver.unwrap_or_default();
        let mut look = Look { driver: version, program: (!has_calls).then(program::find).flatten(), ..Look::default() };
        match self.nvml() {
            Err(error) => look.nvml = Some(error.clone()),
            Ok(library) => look.gpus = library.shares(pid).into_iter().filter_map(gpu).collect(),
        }
        look
    }
}

/// What the parent hears of a GPU. One that has another kind of name can't be checkpointed from.
fn gpu(share: Share) -> Option<Gpu> {
    let Share { uuid, name, minor, is_mig, total, free, is_used, used } = share;
    Some(Gpu { uuid: uuid.parse().ok()?, name, minor, is_mig, total, free, is_used, used })
}

/// Drivers 550 to 569 have a program and no calls, and it does whole steps only.
fn by_program(ask: &Ask, version: i32) -> Result<Told, Refusal> {
    let program = program::find().ok_or(Refusal::TooOld(version))?;
    match ask {
        Ask::State { pid } => program::state(&program, *pid).map(Told::State),
        Ask::Toggle { pid } => program::toggle(&program, *pid).map(|()| Told::Done),
        _ => Err(Refusal::ToggleOnly(version)),
    }
}

/// What the program does, by the driver's calls.
fn toggle(driver: &Driver, pid: i32) -> Result<(), Refusal> {
    if State::from(driver.state(pid)?) == State::Checkpointed {
        driver.restore(pid, &[])?;
        return driver.unlock(pid);
    }
    driver.lock(pid, 0)?;
    driver.checkpoint(pid)
}
