//! What can go wrong with a worker process.

/// What can go wrong with a worker process, its start included.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// This program is to be its own worker, but does not ask whether it is one.
    #[error(
        "this program is to be its own worker, but its `main` did not call cuinstr_runtime::worker::serve_if_asked(); call that first thing, or name another program with Builder::program, such as `cuinstr-worker`"
    )]
    NotServing,
    /// A worker was asked to start workers.
    #[error("this process is a worker itself; its `main` must call cuinstr_runtime::worker::serve_if_asked() first thing")]
    Nested,
    /// The program can't be started.
    #[error("the worker program {program} can't be started: {reason}")]
    NotStarted {
        /// The program.
        program: String,
        /// What the system said.
        reason: String,
    },
    /// The program does not answer as a worker does.
    #[error(
        "the worker program {program} {why}; its `main` must call cuinstr_runtime::worker::serve_if_asked() first thing, or name another program with Builder::program, such as `cuinstr-worker`"
    )]
    NoAnswer {
        /// The program.
        program: String,
        /// What it did instead.
        why: String,
    },
    /// The program is a worker of another release.
    #[error(
        "the worker program {program} is of another release: it speaks version {theirs} of the protocol and {their_abi} of the control block, this runtime {ours} and {our_abi}; build both from one release of cuinstr"
    )]
    OtherVersion {
        /// The program.
        program: String,
        /// Its version of the protocol.
        theirs: u32,
        /// Ours.
        ours: u32,
        /// Its version of the control block.
        their_abi: u32,
        /// Ours.
        our_abi: u32,
    },
    /// The worker process was lost with what was asked of it. The next call has the next spare.
    #[error("worker process {pid} was lost: {why}")]
    Gone {
        /// Its number.
        pid: u32,
        /// How.
        why: String,
    },
    /// A buffer went with its worker process, and was not to be restored.
    #[error(
        "the buffer of {bytes} bytes is lost with its worker process ({why}); fill it again, or make it with Restore::Blank or Restore::Copy"
    )]
    Lost {
        /// Its size.
        bytes: usize,
        /// How the process was lost.
        why: String,
    },
    /// What was asked for would wait for a launch that has no end.
    #[error("kernel `{kernel}` is in flight until somebody cancels it, and this call would wait for it; cancel it first")]
    InFlight {
        /// The kernel.
        kernel: String,
    },
    /// A part of a buffer that it does not have.
    #[error("bytes {from} to {to} are asked of a buffer of {bytes} bytes")]
    OutOfBuffer {
        /// The first byte.
        from: usize,
        /// The one behind the last.
        to: usize,
        /// The buffer's size.
        bytes: usize,
    },
    /// What belongs to one worker was given to another.
    #[error("the {what} belongs to another worker")]
    OtherWorker {
        /// What it is.
        what: &'static str,
    },
}
