//! What pausing costs and how long it takes, on this machine's GPU; `scripts/pause-bench` has it measured.

mod figures;
mod same;
mod subject;
mod urgent;

pub use figures::{cost, drained, few_left, resumed, waits};
pub use same::{many, same};
pub use subject::{Folder, Subject};
pub use urgent::{occupy, urgent};

use serde_json::{Value, json};

/// Takes each row of a figure as soon as it is known: what comes later may never end.
pub type Tell<'a> = &'a mut dyn FnMut(Value);

/// Any error as a reason.
fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Samples in short.
fn summary(samples: &[f64]) -> Value {
    let summary = crate::bench::figure::Summary::of(samples);
    json!({ "count": summary.count, "median": summary.median, "p99": summary.p99, "min": summary.min, "max": summary.max })
}
