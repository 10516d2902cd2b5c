//! `cuinstr checkpoint`: the CUDA state of processes, suspended and resumed by pid. The crate `cuinstr-checkpoint` does it.

use super::cli::{Action, Lock, Place, Target, Then};
use super::output;
use super::status::Status;
use super::watched::Held;
use cuinstr_checkpoint::dump::{self, DumpError, DumpOptions};
use cuinstr_checkpoint::{Assessment, Error, Group, Helper, Mapping, State, TreeFailure};
use serde_json::json;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// First version of CUDA whose driver has custom storage.
const CUSTOM_STORAGE: i32 = 13_040;

/// Longest to wait for kernels before they are asked to make room.
const FIRST_TRY: Duration = Duration::from_millis(500);

/// Whether it failed because kernels run.
trait Busy {
    fn is_busy(&self) -> bool;
}

impl Busy for TreeFailure {
    fn is_busy(&self) -> bool {
        matches!(self.error, Error::Busy { .. })
    }
}

impl Busy for DumpError {
    fn is_busy(&self) -> bool {
        matches!(self, Self::Suspend(failure) if failure.is_busy())
    }
}

impl Target {
    fn group(&self) -> Result<Group, Error> {
        let open = if self.tree { Group::tree } else { Group::of };
        open(Helper::new(), self.pid)
    }
}

impl Lock {
    fn timeout(&self) -> Duration {
        // The driver counts milliseconds, and takes zero for none.
        Duration::from_nanos(self.lock_timeout).max(Duration::from_millis(1))
    }

    fn dump(
        &self,
        pid: i64,
        to: &Path,
        kill: bool,
        criu: &[OsString],
        progress: &mut dyn FnMut(&str, u64),
    ) -> Result<dump::Manifest, Failed> {
        let group = Group::tree(Helper::new(), pid)?;
        self.with_room(&group, |lock_timeout| {
            let options = DumpOptions { lock_timeout, kill, criu: criu.to_owned() };
            dump::dump(Helper::new(), pid, to, &options, progress)
        })
    }

    /// Does something that locks the processes of a group. If one of them is busy, its kernels are asked to make room, and it is done again.
    fn with_room<T, E: Busy>(&self, group: &Group, mut does: impl FnMut(Duration) -> Result<T, E>) -> Result<T, Failed>
    where
        Failed: From<E>,
    {
        let Some(then) = self.then else { return Ok(does(self.timeout())?) };
        match does(self.timeout().min(FIRST_TRY)) {
            Err(error) if error.is_busy() => {
                let processes: Vec<u32> = group.pids();
                // Dropped when the lock was granted or given up: then launches go on, and wait for the driver if it is locked.
                let held = Held::begin(&processes, then);
                let done = does(self.timeout());
                match held {
                    // What was in the way may have come to its end by itself.
                    Err(why) => done.map_err(|error| {
                        let Failed { message, status } = error.into();
                        Failed { message: format!("{message}; {why}"), status }
                    }),
                    Ok(_held) => Ok(done?),
                }
            }
            done => Ok(done?),
        }
    }
}

impl Place {
    fn mapping(self) -> Result<Mapping, Error> {
        Mapping::new(self.map_gpu)
    }
}

/// What a command has to say.
struct Said {
    text: String,
    status: Status,
}

/// Performs it.
///
/// # Errors
/// If standard output can't be written.
pub(crate) fn run(action: Action) -> anyhow::Result<Status> {
    let is_json = target(&action).is_some_and(|target| target.json);
    match perform(action) {
        Ok(said) => {
            output::to_stdout(said.text.as_bytes())?;
            Ok(said.status)
        }
        Err(Failed { message, status }) => {
            if is_json {
                output::to_stdout(format!("{}\n", json!({ "error": message })).as_bytes())?;
            }
            super::report::to_stderr(&format!("error: {message}\n"));
            Ok(status)
        }
    }
}

fn target(action: &Action) -> Option<&Target> {
    match action {
        Action::Dump { .. } | Action::Restore { .. } => None,
        Action::Toggle { target, .. }
        | Action::Suspend { target, .. }
        | Action::Resume { target, .. }
        | Action::State { target }
        | Action::Check { target } => Some(target),
    }
}

/// Why nothing came of it.
struct Failed {
    message: String,
    status: Status,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self { message: error.to_string(), status: status(&error) }
    }
}

impl From<TreeFailure> for Failed {
    fn from(failure: TreeFailure) -> Self {
        Self { message: failure.to_string(), status: status(&failure.error) }
    }
}

fn perform(action: Action) -> Result<Said, Failed> {
    match action {
        Action::Toggle { target, lock, place } => {
            let (group, mapping) = (target.group()?, place.mapping()?);
            let (pids, state) = lock.with_room(&group, |timeout| group.toggle(Some(timeout), &mapping))?;
            Ok(moved(&target, &pids, state))
        }
        Action::Suspend { target, lock } => {
            let group = target.group()?;
            let pids = lock.with_room(&group, |timeout| group.suspend(Some(timeout)))?;
            Ok(moved(&target, &pids, State::Checkpointed))
        }
        Action::Resume { target, place } => {
            let (group, mapping) = (target.group()?, place.mapping()?);
            let pids = group.resume(&mapping)?;
            Ok(moved(&target, &pids, State::Running))
        }
        Action::State { target } => {
            let states = target.group().and_then(|group| group.states())?;
            let states: Vec<_> = states.into_iter().map(|(process, state)| (process.pid(), state)).collect();
            Ok(Said { text: listed(&target, &states), status: Status::Done })
        }
        Action::Dump { pid, to, lock, kill, criu } => {
            let dumped = lock.dump(pid, &to, kill, &criu.criu_option, &mut progress())?;
            let bytes = dumped.files.values().map(|(_, bytes)| bytes).sum();
            Ok(Said { text: format!("process {} is in {}, {}\n", dumped.pid, to.display(), size(bytes)), status: Status::Done })
        }
        Action::Restore { from, place, criu } => {
            let restored = dump::restore(Helper::new(), &from, &place.mapping()?, &criu.criu_option, &mut progress())?;
            Ok(Said { text: format!("process {} runs again\n", restored.pid), status: Status::Done })
        }
        Action::Check { target } => Ok(checked(&target, &target.group()?.assess())),
    }
}

/// Saves a process tree that runs under `cuinstr run`. Launches wait meanwhile, and kernels that run have ten seconds to end.
pub(super) fn save(process: u32, to: &Path, is_ended: bool) -> Result<(), String> {
    let lock = Lock { lock_timeout: 10_000_000_000, then: Some(Then::Pause) };
    lock.dump(i64::from(process), to, is_ended, &[], &mut |_, _| {}).map(drop).map_err(|failed| failed.message)
}

impl From<DumpError> for Failed {
    fn from(error: DumpError) -> Self {
        let message = error.to_string();
        match error {
            DumpError::Suspend(failure) => failure.into(),
            DumpError::Process(error) => error.into(),
            DumpError::NoCriu
            | DumpError::CriuTooOld { .. }
            | DumpError::Permission
            | DumpError::DiskFull { .. }
            | DumpError::File { .. } => Self { message, status: Status::Io },
            _ => Self { message, status: Status::Refused },
        }
    }
}

/// Tells each step once, and how much of it is written as that grows.
fn progress() -> impl FnMut(&str, u64) {
    let (mut step, mut told) = (String::new(), 0);
    move |now, bytes| {
        if step != now || bytes >= told + (1 << 30) {
            (step, told) = (now.to_owned(), bytes);
            let written = if bytes == 0 { String::new() } else { format!(", {}", size(bytes)) };
            super::report::to_stderr(&format!("{now}{written}\n"));
        }
    }
}

/// What is missing on this machine is another thing than what is in the way of this process.
fn status(error: &Error) -> Status {
    match error {
        Error::BadPid(_) | Error::BadTimeout(_) => Status::Usage,
        Error::NoDriver(_) | Error::DriverTooOld(_) | Error::SymbolMissing(_) | Error::Helper(_) => Status::Io,
        _ => Status::Refused,
    }
}

fn moved(target: &Target, pids: &[u32], state: State) -> Said {
    let states: Vec<_> = pids.iter().map(|pid| (*pid, state)).collect();
    Said { text: listed(target, &states), status: Status::Done }
}

/// The states of processes; of one alone just its state, as scripts want it.
fn listed(target: &Target, states: &[(u32, State)]) -> String {
    if target.json {
        let processes: Vec<_> = states.iter().map(|(pid, state)| json!({ "pid": pid, "state": state.to_string() })).collect();
        return format!("{}\n", json!({ "processes": processes }));
    }
    match states {
        [(_, state)] if !target.tree => format!("{state}\n"),
        _ => states.iter().fold(String::new(), |mut text, (pid, state)| {
            let _ = writeln!(text, "{pid} {state}");
            text
        }),
    }
}

fn checked(target: &Target, assessments: &[Assessment]) -> Said {
    let is_able = !assessments.is_empty() && assessments.iter().all(|assessment| assessment.obstacles.is_empty());
    let status = if is_able { Status::Done } else { Status::Refused };
    if target.json {
        return Said { text: format!("{}\n", json!({ "can_checkpoint": is_able, "processes": assessments })), status };
    }
    let mut text = String::new();
    for told in assessments {
        let state = told.state.as_deref().unwrap_or("state not known");
        let verdict =
            if told.obstacles.is_empty() { "can be checkpointed, as far as this shows from outside" } else { "can't be checkpointed" };
        let _ = writeln!(text, "process {}: {state}, {verdict}", told.pid);
        let gpu = told.gpu_bytes.map_or_else(|| "not told by NVML".to_owned(), size);
        let _ = writeln!(text, "  on GPUs        {gpu}");
        let _ = writeln!(
            text,
            "  on the host    {}, {} available",
            size(told.host_bytes),
            told.host_available.map_or_else(|| "?".to_owned(), size)
        );
        let _ = writeln!(
            text,
            "  a dump takes   {}{}",
            if told.gpu_bytes.is_none() { "at least " } else { "about " },
            size(told.gpu_bytes.unwrap_or(0) + told.host_bytes)
        );
        for gpu in told.machine.iter().flat_map(|machine| &machine.gpus) {
            let _ = writeln!(text, "  {} {}, {} of {} free", gpu.uuid, gpu.name, size(gpu.free), size(gpu.total));
        }
        if told.machine.as_ref().is_some_and(|machine| machine.driver >= CUSTOM_STORAGE) {
            text.push_str("  this driver can give GPU memory to a program to store, which cuinstr does not use yet: the copy goes through host memory\n");
        }
        for obstacle in &told.obstacles {
            let _ = writeln!(text, "  in the way: {obstacle}");
        }
    }
    if assessments.is_empty() {
        let _ = writeln!(text, "no process of this tree uses CUDA");
    }
    Said { text, status }
}

/// Bytes for people.
fn size(bytes: u64) -> String {
    let (unit, name) = if bytes >= 1 << 30 { (1_u64 << 30, "GiB") } else { (1 << 20, "MiB") };
    format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit)
}
