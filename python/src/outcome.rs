//! How a launch ended, as Python sees it.

use cuinstr_runtime::report::SitePlace;
use cuinstr_runtime::{Cause, Outcome as Ended, Report};
use pyo3::prelude::*;

/// How a guarded launch ended.
#[pyclass(frozen, module = "cuinstr")]
pub(crate) struct Outcome {
    ended: Ended,
}

impl Outcome {
    pub(crate) fn new(ended: Ended) -> Self {
        Self { ended }
    }

    fn stop(&self) -> Option<&Report> {
        match &self.ended {
            Ended::Stopped { report, .. } => Some(report),
            _ => None,
        }
    }

    fn place(&self) -> Option<&SitePlace> {
        self.stop()?.first.as_ref()?.site.place.as_ref()
    }
}

#[pymethods]
impl Outcome {
    /// "completed": every thread did all its work. "stopped": threads left, and the context lives. "paused": blocks are left, and run when it is resumed.
    /// "faulted": the context is lost.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.ended {
            Ended::Completed { .. } => "completed",
            Ended::Stopped { .. } => "stopped",
            Ended::Paused { .. } => "paused",
            Ended::Faulted { .. } => "faulted",
        }
    }

    /// Whether every thread did all its work.
    #[getter]
    fn completed(&self) -> bool {
        matches!(self.ended, Ended::Completed { .. })
    }

    /// Whether threads were stopped.
    #[getter]
    fn stopped(&self) -> bool {
        matches!(self.ended, Ended::Stopped { .. })
    }

    /// Whether blocks are left that run when it is resumed.
    #[getter]
    fn paused(&self) -> bool {
        matches!(self.ended, Ended::Paused { .. })
    }

    /// Blocks that have run, of a launch that is paused.
    #[getter]
    fn done(&self) -> Option<u64> {
        match self.ended {
            Ended::Paused { done, .. } => Some(done),
            _ => None,
        }
    }

    /// Blocks that have not run, of a launch that is paused.
    #[getter]
    fn left(&self) -> Option<u64> {
        match self.ended {
            Ended::Paused { left, .. } => Some(left),
            _ => None,
        }
    }

    /// Why it was stopped: "deadline", "cancelled", "budget" or "fuel".
    #[getter]
    fn why(&self) -> Option<&'static str> {
        match self.ended {
            Ended::Stopped { why, .. } => Some(match why {
                Cause::Cancelled => "cancelled",
                Cause::Deadline => "deadline",
                Cause::Budget => "budget",
                Cause::Fuel => "fuel",
            }),
            _ => None,
        }
    }

    /// Seconds from arming until the end was seen, of a launch that completed.
    #[getter]
    fn elapsed(&self) -> Option<f64> {
        match self.ended {
            Ended::Completed { elapsed, .. } => Some(elapsed.as_secs_f64()),
            _ => None,
        }
    }

    /// Seconds from the reason to stop, or the request to pause, until every thread had left.
    #[getter]
    fn latency(&self) -> Option<f64> {
        match self.ended {
            Ended::Stopped { latency, .. } | Ended::Paused { latency, .. } => Some(latency.as_secs_f64()),
            _ => None,
        }
    }

    /// Most iterations that one thread ran, if they were counted.
    #[getter]
    fn fuel_used(&self) -> Option<u64> {
        match self.ended {
            Ended::Completed { fuel_used, .. } => fuel_used,
            _ => None,
        }
    }

    /// Threads that were stopped.
    #[getter]
    fn threads(&self) -> u64 {
        self.stop().map_or(0, |report| report.threads)
    }

    /// Name of the kernel, if it is known.
    #[getter]
    fn kernel(&self) -> Option<&str> {
        self.stop().map(|report| report.kernel.as_str()).filter(|name| !name.is_empty())
    }

    /// File of the loop where the first thread was stopped, if a site map is known.
    #[getter]
    fn file(&self) -> Option<&str> {
        Some(self.place()?.file.as_str())
    }

    /// Its line, from 1.
    #[getter]
    fn line(&self) -> Option<u32> {
        Some(self.place()?.line)
    }

    /// Its column in bytes, from 1.
    #[getter]
    fn column(&self) -> Option<u32> {
        Some(self.place()?.column)
    }

    /// The function around it.
    #[getter]
    fn function(&self) -> Option<&str> {
        Some(self.place()?.function.as_str())
    }

    /// blockIdx of the first thread that was stopped.
    #[getter]
    fn block(&self) -> Option<(u32, u32, u32)> {
        let [x, y, z] = self.stop()?.first.as_ref()?.block;
        Some((x, y, z))
    }

    /// Its threadIdx.
    #[getter]
    fn thread(&self) -> Option<(u32, u32, u32)> {
        let [x, y, z] = self.stop()?.first.as_ref()?.thread;
        Some((x, y, z))
    }

    /// All of it as one JSON object.
    fn json(&self) -> String {
        serde_json::to_string(&self.ended).unwrap_or_default()
    }

    /// The report, several lines, or a sentence.
    fn __str__(&self) -> String {
        match &self.ended {
            Ended::Completed { elapsed, late: false, .. } => format!("completed in {elapsed:?}"),
            Ended::Completed { elapsed, .. } => format!("completed in {elapsed:?}, after a reason to stop had arisen"),
            Ended::Stopped { report, .. } => report.to_string(),
            Ended::Faulted { fault } => format!("the kernel ended its context: {fault}"),
            paused @ Ended::Paused { .. } => paused.to_string(),
        }
    }

    fn __repr__(&self) -> String {
        match (self.why(), self.place()) {
            (Some(why), Some(place)) => format!("<cuinstr.Outcome stopped: {why}, {}:{}>", place.file, place.line),
            (Some(why), None) => format!("<cuinstr.Outcome stopped: {why}>"),
            (None, _) => format!("<cuinstr.Outcome {}>", self.kind()),
        }
    }
}
