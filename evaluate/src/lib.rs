//! Judges candidates for a CUDA kernel by a reference: mutants, to see what tests are worth; generated kernels, to find the right ones.
//!
//! A [`Spec`] says what the reference is, how it is launched and on which data. Each [`Candidate`] gets a [`Verdict`]:
//! it answers as the reference does, or otherwise, or does not end, or faults, or does not compile. Nothing that a
//! candidate does costs more than its own verdict: it is rewritten so that every loop can be stopped, and compiled in a
//! process for that. It runs in a worker process. Its limits come from what the reference itself takes.
//!
//! ```no_run
//! use cuinstr_evaluate::{Candidate, Settings, Spec, evaluate};
//! use std::ops::ControlFlow;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // In a helper process this never returns.
//!     cuinstr_evaluate::serve_if_asked();
//!
//!     let spec = Spec::read("collatz.toml".as_ref())?;
//!     let candidates = Candidate::mutants(&spec, None, 200);
//!     let settings = Settings { journal: Some("collatz.jsonl".into()), ..Settings::default() };
//!     let summary = evaluate(&spec, &candidates, &settings, &mut |_| ControlFlow::Continue(()))?;
//!     println!("{summary}");
//!     Ok(())
//! }
//! ```
//!
//! The way of a candidate: [`Candidate`] → `compile` (a helper process) → `bench` (a worker with the spec's memory) → [`Verdict`] → [`journal`] →
//! [`Summary`]. `evaluation` has many of them on the way at a time, on the GPUs of one machine. An engine that has other machines takes the same
//! steps itself: a [`Plan`] with the journal where it was started, a [`Compiler`] and a [`Bench`] where there are processors and GPUs.

#![cfg(unix)]

mod baseline;
mod bench;
mod candidate;
mod child;
mod compile;
mod data;
mod error;
mod evaluation;
mod headers;
pub mod journal;
mod limits;
mod plan;
mod queue;
pub mod spec;
mod summary;
mod times;
mod verdict;

pub use baseline::{Baseline, Comparison};
pub use bench::{Bench, Stopper};
pub use candidate::{Candidate, Origin};
pub use child::{Killer, Program, serve_if_asked};
pub use compile::{Built, Compiler, Image, Order};
pub use error::Error;
pub use evaluation::{By, Event, Settings, evaluate};
pub use limits::Limits;
pub use plan::{Ground, Judged, Plan, driver};
pub use queue::Item;
pub use spec::Spec;
pub use summary::{Score, Summary};
pub use times::Times;
pub use verdict::{CaseVerdict, Finding, Judgement, Place, Verdict};

/// What this crate's functions answer.
pub type Result<T> = std::result::Result<T, Error>;
