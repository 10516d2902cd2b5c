//! A million launches in one process for ten minutes: random stops, refusals, streams, graphs, and contexts that come and go. Every outcome is right, and
//! memory stays flat.

use super::endurance::{in_use, resident};
use super::figure::{Row, Target, number};
use super::latency::{LONG, stopped};
use super::rig::{Rig, Subject, grid, told};
use cuinstr_harness::variant;
use cuinstr_runtime::cudarc::driver::{CudaContext, CudaGraph, CudaStream, sys};
use cuinstr_runtime::cudarc::nvrtc::Ptx;
use cuinstr_runtime::{Cause, Clock, Error, FlagMemory, Module, Outcome, Running};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LAUNCHES: u64 = 1_000_000;
const MOST: Duration = Duration::from_secs(600);
/// Launches in flight at a time.
const FLYING: usize = 24;
/// Launches after which memory must not grow any more.
const WARM: u64 = 20_000;
/// Launches from one context of its own to the next.
const CONTEXTS: u64 = 5_000;

/// Numbers that look random, the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

struct Kernels {
    spin: Subject,
    short: Subject,
    fuelled: Subject,
    graph: CudaGraph,
    streams: Vec<Arc<CudaStream>>,
}

impl Kernels {
    fn new(rig: &Rig) -> Result<Self, String> {
        // A capture does not bear the events that cudarc puts beside slices.
        // SAFETY: the soak's slices are used in their streams' order only.
        unsafe { rig.context.disable_event_tracking() };
        let streams = (0..4).map(|_| rig.context.new_stream().map_err(told)).collect::<Result<Vec<_>, _>>()?;
        let captured = rig.subject("probe/count_steps")?.with(1, 1000);
        let stream = &streams[0];
        stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).map_err(told)?;
        let launched = captured.bare(stream, grid(1, 32));
        let graph = stream.end_capture(sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH).map_err(told)?;
        launched?;
        // Its memory and its module live as long as this process.
        std::mem::forget(captured);
        Ok(Self {
            spin: rig.subject("probe/spin_count")?,
            short: rig.subject("probe/count_steps")?.with(1, 1000),
            fuelled: rig.subject_of("probe/count_steps", variant::DEFAULT_ALL)?,
            graph: graph.ok_or("the capture is empty")?,
            streams,
        })
    }

    /// A launch of a random kind, if it is one that has an outcome.
    fn launch(&self, dice: &mut Dice) -> Result<Option<(Kind, Running)>, String> {
        let stream = &self.streams[dice.below(4) as usize];
        let flag = [FlagMemory::Device, FlagMemory::Device, FlagMemory::Pinned][dice.below(3) as usize];
        let timeout = Duration::from_micros(50 + dice.below(400));
        Ok(Some(match dice.below(16) {
            0 => {
                // More threads than a block may have.
                let refused = self.spin.try_start(stream, grid(1, 4096), |launch| _ = launch.timeout(LONG));
                if !matches!(refused, Err(Error::Arguments { .. })) {
                    return Err(format!("it should have been refused: {refused:?}"));
                }
                return Ok(None);
            }
            1 => {
                self.graph.launch().map_err(told)?;
                return Ok(None);
            }
            2 | 3 => (Kind::Cancelled, self.spin.start(stream, grid(2, 64), |launch| _ = launch.until_cancelled().flag(flag))?),
            4 | 5 => (Kind::Fuel, self.fuelled.start(stream, grid(1, 32), |launch| _ = launch.fuel(1000).timeout(LONG))?),
            6 => {
                (Kind::Deadline, self.spin.start(stream, grid(2, 64), |launch| _ = launch.timeout(timeout).clock(Clock::Host).flag(flag))?)
            }
            7..10 => (Kind::Deadline, self.spin.start(stream, grid(2, 64), |launch| _ = launch.timeout(timeout).flag(flag))?),
            _ => (Kind::Sound, self.short.start(stream, grid(1, 32), |launch| _ = launch.timeout(LONG))?),
        }))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sound,
    Fuel,
    Cancelled,
    Deadline,
}

fn landed((kind, mut running): (Kind, Running)) -> Result<(), String> {
    if kind == Kind::Cancelled {
        running.cancel().map_err(told)?;
    }
    let outcome = running.wait().map_err(|error| format!("{kind:?}: {error}"))?;
    match kind {
        Kind::Sound if matches!(outcome, Outcome::Completed { .. }) => Ok(()),
        Kind::Sound => Err(format!("it should have completed: {outcome:?}")),
        Kind::Fuel => stopped(outcome, Cause::Fuel).map(drop),
        Kind::Cancelled => stopped(outcome, Cause::Cancelled).map(drop),
        Kind::Deadline => stopped(outcome, Cause::Deadline).map(drop),
    }
}

/// A context of its own, a launch that is stopped in it, and its end.
fn visit(rig: &Rig) -> Result<(), String> {
    let context = CudaContext::new_non_primary(0, 0).map_err(told)?;
    let (image, entry) = rig.image("probe/spin_count", variant::DEFAULT)?;
    let module = Module::load(&context, &image).map_err(told)?;
    let kernel = module.kernel(entry).map_err(told)?;
    let stream = context.new_stream().map_err(told)?;
    let counters = stream.alloc_zeros::<u8>(1 << 20).map_err(told)?;
    let address = cuinstr_runtime::cudarc::driver::DevicePtr::device_ptr(&counters, &stream).0;
    let mut launch = kernel.prepare(&stream);
    launch.arg(address).timeout(Duration::from_micros(100));
    // SAFETY: the kernel counts in the memory that it is given.
    let outcome = unsafe { launch.start(grid(1, 32)) }.map_err(told)?.wait().map_err(told)?;
    stopped(outcome, Cause::Deadline).map(drop)
}

/// The same without the runtime, and without a launch: what the driver keeps of a context.
fn bare_visit(rig: &Rig) -> Result<(), String> {
    let context = CudaContext::new_non_primary(0, 0).map_err(told)?;
    let (image, _) = rig.image("probe/spin_count", variant::DEFAULT)?;
    let _module = context.load_module(Ptx::from_binary(image)).map_err(told)?;
    let stream = context.new_stream().map_err(told)?;
    let _counters = stream.alloc_zeros::<u8>(1 << 20).map_err(told)?;
    stream.synchronize().map_err(told)
}

/// Kilobytes by which so many of these make the process grow.
fn growth_by(rig: &Rig, contexts: u64, visit: fn(&Rig) -> Result<(), String>) -> Result<u64, String> {
    let before = resident()?;
    (0..contexts).try_for_each(|_| visit(rig))?;
    rig.context.bind_to_thread().map_err(told)?;
    Ok(resident()?.saturating_sub(before))
}

pub(super) fn launches(rig: &Rig) -> Result<Vec<Row>, String> {
    let kernels = Kernels::new(rig)?;
    let wanted = rig.samples(LAUNCHES as usize) as u64;
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut flying = VecDeque::new();
    let (since, mut launches, mut contexts, mut before) = (Instant::now(), 0, 0, (0, 0));
    while launches < wanted && since.elapsed() < MOST {
        let at = |why: String| format!("launch {launches}: {why}");
        if launches % CONTEXTS == CONTEXTS - 1 {
            // Nothing is loaded beside a launch without an end.
            flying.drain(..).try_for_each(landed).map_err(at)?;
            visit(rig).map_err(at)?;
            rig.context.bind_to_thread().map_err(told)?;
            contexts += 1;
        }
        flying.extend(kernels.launch(&mut dice).map_err(at)?);
        while flying.len() > FLYING {
            flying.pop_front().map_or(Ok(()), landed).map_err(at)?;
        }
        launches += 1;
        if launches % 10_000 == 0 {
            // What is last heard of it should it hang.
            eprintln!("{launches} launches after {:.1?}", since.elapsed());
        }
        if launches == WARM {
            before = (resident()?, in_use(rig)?);
        }
    }
    flying.into_iter().try_for_each(landed)?;
    let after = (resident()?, in_use(rig)?);
    let note = format!("in {:.0?}, with {contexts} contexts that came and went", since.elapsed());
    let (ours, bare) = (growth_by(rig, contexts, visit)?, growth_by(rig, contexts, bare_visit)?);
    Ok(vec![
        Row::new("launches, each with the right outcome", "", &[number(launches)]).target(Target::least(number(wanted))).note(note),
        Row::new("growth of the process's resident memory", "KB", &[number(after.0.saturating_sub(before.0))]).target(Target::most(1024.0)),
        Row::new("growth by as many contexts more, without other launches", "KB", &[number(ours)]),
        Row::new("growth by as many contexts without the runtime", "KB", &[number(bare)]),
        Row::new("growth of the device memory in use", "bytes", &[number(after.1.saturating_sub(before.1))]).target(Target::most(0.0)),
    ])
}
