//! The arguments of `cuinstr checkpoint`.

use clap::{Args, Subcommand};
use cuinstr::duration;
use cuinstr_checkpoint::{Error, Uuid};
use std::ffi::OsString;
use std::path::PathBuf;

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
    pub(crate) criu_option: Vec<OsString>,
}

/// Which process.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The process.
    #[arg(long, value_name = "PID", allow_negative_numbers = true)]
    pub(crate) pid: i64,

    /// The process and all that descend from it; if one of them fails, all are brought back.
    #[arg(long)]
    pub(crate) tree: bool,

    /// Answer with one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How long to wait for kernels.
#[derive(Debug, Args)]
pub(crate) struct Lock {
    /// Longest to wait for kernels that run; then the process runs on, and this fails.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10s")]
    pub(crate) lock_timeout: u64,

    /// What to do with kernels of programs under `cuinstr run` that do not end in half a second: stop them, or have later launches wait until they end.
    /// The program's launches go on by themselves when it is resumed, or when this fails.
    #[arg(long, value_name = "ACTION", value_enum)]
    pub(crate) then: Option<Then>,
}

/// Where to.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Bring what was on one GPU to another of the same model; may be repeated. `nvidia-smi -L` lists the UUIDs. GPUs that are not named stay.
    #[arg(long, value_name = "OLD=NEW", value_parser = pair)]
    pub(crate) map_gpu: Vec<(Uuid, Uuid)>,
}

fn pair(text: &str) -> Result<(Uuid, Uuid), String> {
    let (old, new) = text.split_once('=').ok_or("write OLD=NEW with the UUIDs of two GPUs")?;
    let read = |uuid: &str| uuid.parse().map_err(|error: Error| error.to_string());
    Ok((read(old)?, read(new)?))
}

/// What processes do that are in the way of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Then {
    /// Kernels are stopped where they poll. They must be started with `--on-stop leave`.
    Stop,
    /// Later launches wait, and kernels that run come to their ends.
    Pause,
}
