//! `cuinstr checkpoint`: the CUDA state of processes, suspended and resumed by pid. The crate `cuinstr-checkpoint` does it.

use super::watched::{Held, Then};
use super::{Status, output};
use clap::{Args, Subcommand};
use cuinstr::duration;
use cuinstr_checkpoint::dump::{self, DumpError, DumpOptions};
use cuinstr_checkpoint::{Assessment, Error, Group, Helper, Mapping, State, TreeFailure, Uuid};
use serde_json::json;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// First version of CUDA whose driver has custom storage.
const CUSTOM_STORAGE: i32 = 13_040;

/// What to do with a process.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Suspend what runs, resume what is suspended.
    Toggle {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        lock: Lock,
        #[command(flatten)]
        place: Place,
    },
    /// Copy a process's GPU memory to host memory, free the GPU, and let its calls of CUDA wait.
    ///
    /// Its CPU threads run on. What fails half way is undone: the process runs on then.
    Suspend {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        lock: Lock,
    },
    /// Bring a suspended process back to the GPU, at the same addresses.
    ///
    /// Is refused, and the process stays suspended, while the GPU has not enough free memory: a process whose restore fails is lost.
    Resume {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        place: Place,
    },
    /// Print a process's state: running, locked, checkpointed, or failed.
    State {
        #[command(flatten)]
        target: Target,
    },
    /// Save a process and all that descend from it to a folder: GPU memory by the driver, the rest by CRIU 4.0 or later. They run on.
    ///
    /// An older dump in the folder is replaced once the new one is whole, and not before. Takes root, or `CAP_CHECKPOINT_RESTORE` and `CAP_SYS_PTRACE`.
    Dump {
        /// The process.
        #[arg(long, value_name = "PID", allow_negative_numbers = true)]
        pid: i64,
        /// The folder.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
        #[command(flatten)]
        lock: Lock,
        /// End the processes once the dump is whole.
        #[arg(long)]
        kill: bool,
        #[command(flatten)]
        criu: CriuArgs,
    },
    /// Restore the processes of a folder, under their ids, on GPUs of the same model. Each file is checked first.
    Restore {
        /// The folder.
        #[arg(value_name = "DIR")]
        from: PathBuf,
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        criu: CriuArgs,
    },
    /// Say whether a process can be checkpointed, what is in the way, and how large it would be. Touches nothing.
    Check {
        #[command(flatten)]
        target: Target,
    },
}

/// What CRIU is told beside what it must be.
#[derive(Debug, Args)]
pub(crate) struct CriuArgs {
    /// A further option for CRIU, such as --criu-option=--tcp-established; may be repeated.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    criu_option: Vec<OsString>,
}

/// Which process.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The process.
    #[arg(long, value_name = "PID", allow_negative_numbers = true)]
    pid: i64,

    /// The process and all that descend from it; if one of them fails, all are brought back.
    #[arg(long)]
    tree: bool,

    /// Answer with one JSON object.
    #[arg(long)]
    json: bool,
}

/// How long to wait for kernels.
#[derive(Debug, Args)]
pub(crate) struct Lock {
    /// Longest to wait for kernels that run; then the process runs on, and this fails.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10s")]
    lock_timeout: u64,

    /// What to do with kernels of programs under `cuinstr run` that do not end in half a second: stop them, or have later launches wait until they end.
    /// The program's launches go on by themselves when it is resumed, or when this fails.
    #[arg(long, value_name = "ACTION", value_enum)]
    then: Option<Then>,
}

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

/// Where to.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Bring what was on one GPU to another of the same model; may be repeated. `nvidia-smi -L` lists the UUIDs. GPUs that are not named stay.
    #[arg(long, value_name = "OLD=NEW", value_parser = pair)]
    map_gpu: Vec<(Uuid, Uuid)>,
}

fn pair(text: &str) -> Result<(Uuid, Uuid), String> {
    let (old, new) = text.split_once('=').ok_or("write OLD=NEW with the UUIDs of two GPUs")?;
    let read = |uuid: &str| uuid.parse().map_err(|error: Error| error.to_string());
    Ok((read(old)?, read(new)?))
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
