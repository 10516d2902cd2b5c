//! How long candidates take, compiled as they are: without polls, so that the times are those of the kernel that its user will have.

use crate::baseline::in_child;
use crate::bench::Answers;
use crate::child::Program;
use crate::compile::Compiler;
use crate::limits::Limits;
use crate::spec::Spec;
use crate::verdict::Finding;
use crate::{Candidate, Error, Result};
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often a kernel is timed in each case, after one run that loads its code.
const TIMES: u32 = 20;

/// How long a kernel takes in one case, without polls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Times {
    /// The case.
    pub case: String,
    /// The median, in milliseconds on the GPU.
    pub median_ms: f64,
    /// The first and the third quartile, in milliseconds.
    pub quartiles_ms: [f64; 2],
    /// MHz of the GPU's processors and of its memory right after the runs, if the driver tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks_mhz: Option<[u32; 2]>,
    /// How many times as fast as the reference it is, by the medians.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_up: Option<f64>,
}

/// Times candidates of a specification on a GPU.
#[derive(Debug)]
pub(crate) struct Timer {
    program: Program,
    device: usize,
    compiler: Compiler,
    reference: Vec<Times>,
}

impl Timer {
    /// Times the reference first. The compiler compiles as it is.
    pub(crate) fn new(
        spec: &Spec,
        (program, device): (&Program, usize),
        compiler: Compiler,
        (limits, answers): (&[Limits], &Answers),
    ) -> Result<Self> {
        let mut timer = Self { program: program.clone(), device, compiler, reference: Vec::new() };
        let itself = timer.time(spec, &Candidate::reference(spec), (limits, answers))?;
        let refused =
            |finding: Finding| Error::Reference(format!("fails as it is, without polls: {}", finding.message.unwrap_or_default()));
        timer.reference = itself.map_err(refused)?;
        Ok(timer)
    }

    /// The times of a candidate in each case, or what is wrong with it as it is.
    pub(crate) fn time(
        &mut self,
        spec: &Spec,
        candidate: &Candidate,
        given: (&[Limits], &Answers),
    ) -> Result<std::result::Result<Vec<Times>, Finding>> {
        let plain = match self.compiler.compile(candidate)? {
            Ok(plain) => plain,
            Err(finding) => return Ok(Err(*finding)),
        };
        let timed = match in_child(spec, (&self.program, self.device), &plain, given, TIMES + 1)? {
            Ok(timed) => timed,
            Err(finding) => {
                let message = finding.message.as_ref().map(|message| format!("compiled as it is, without polls: {message}"));
                return Ok(Err(Finding { message, ..finding }));
            }
        };
        let clocks_mhz = clocks(self.device);
        let of_case = |(index, durations): (usize, Vec<Duration>)| {
            let mut sorted = durations[1..].to_vec();
            sorted.sort_unstable();
            let at = |share: usize| 1e3 * sorted[share * (sorted.len() - 1) / 4].as_secs_f64();
            let reference = self.reference.get(index).map(|reference| reference.median_ms);
            Times {
                case: spec.cases[index].name.clone(),
                median_ms: at(2),
                quartiles_ms: [at(1), at(3)],
                clocks_mhz,
                speed_up: reference.map(|reference| reference / at(2)),
            }
        };
        Ok(Ok(timed.into_iter().enumerate().map(of_case).collect()))
    }
}

/// What the driver's tool says of the clocks, if there is one.
fn clocks(device: usize) -> Option<[u32; 2]> {
    let mut command = Command::new("nvidia-smi");
    command.args(["--query-gpu=clocks.sm,clocks.mem", "--format=csv,noheader,nounits", "--id"]).arg(device.to_string());
    let said = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let (processors, memory) = text.lines().next()?.split_once(',')?;
    Some([processors.trim().parse().ok()?, memory.trim().parse().ok()?])
}
