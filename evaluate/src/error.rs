//! What keeps an evaluation from going on. What a candidate does is a verdict.

use std::path::PathBuf;

/// What keeps an evaluation from going on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file can't be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// The specification makes no sense.
    #[error("{}: {what}", path.display())]
    Spec {
        /// The file.
        path: PathBuf,
        /// What does not.
        what: String,
    },
    /// There is nothing to judge.
    #[error("there are no candidates: {0}")]
    NoCandidates(String),
    /// Two candidates have one name, by which verdicts are told apart.
    #[error("two candidates are named {0:?}: verdicts are told apart by names, so give each its own")]
    SameName(String),
    /// Fuel limits candidates, and one of them counts it otherwise than the reference does.
    #[error(
        "PTX counts fuel in other units than CUDA source, so {candidate:?} can't have {reference:?} as its measure: limit by time (--by time)"
    )]
    OtherFuel {
        /// The candidate.
        candidate: String,
        /// The reference.
        reference: String,
    },
    /// Two benches would share a GPU that candidates are timed on.
    #[error("candidates are timed alone on their GPU, and GPU {0} has several benches: give it one")]
    SharedGpu(usize),
    /// The reference itself is no measure.
    #[error("the reference {0}")]
    Reference(String),
    /// The journal is of another evaluation, or damaged.
    #[error("{}: {what}", path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        what: String,
    },
    /// A helper process does not do its work.
    #[error("the helper program {program} {why}; its `main` must call cuinstr_evaluate::serve_if_asked() first thing")]
    Helper {
        /// The program.
        program: String,
        /// What it did instead.
        why: String,
    },
    /// Whoever watched said to stop before the first candidate.
    #[error("stopped before the first candidate")]
    Stopped,
    /// The compiler is missing, or broken.
    #[error("nothing can be compiled: {0}")]
    Compiler(String),
    /// A GPU does not work any more.
    #[error("GPU {device} is broken: {why}")]
    Broken {
        /// Its number.
        device: usize,
        /// How that shows.
        why: String,
    },
    /// There is no GPU, or it does not work.
    #[error(transparent)]
    Runtime(#[from] cuinstr_runtime::Error),
}

impl Error {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |reason| Self::File { path, reason }
    }
}
