//! A hundred thousand stops in one process: every outcome right, and nothing lost on the way.

use super::figure::{Row, Target, number};
use super::latency::{LONG, stopped};
use super::rig::{Rig, Subject, grid, told};
use cuinstr_harness::variant;
use cuinstr_runtime::cudarc::driver::sys::CUlimit;
use cuinstr_runtime::{Cause, Outcome};
use std::time::{Duration, Instant};

const STOPS: usize = 100_000;
const TIMEOUT: Duration = Duration::from_micros(100);
/// Bytes of the device heap: room for what all stopped kernels together held.
const HEAP: usize = 256 << 20;
/// Stops after which memory must not grow any more.
const WARM: usize = 1000;

struct Kernels {
    count: Subject,
    short: Subject,
    fuelled: Subject,
    heap: Subject,
}

impl Kernels {
    fn new(rig: &Rig) -> Result<Self, String> {
        Ok(Self {
            count: rig.subject("probe/spin_count")?,
            short: rig.subject("probe/count_steps")?.with(1, 1000),
            fuelled: rig.subject_of("probe/count_steps", variant::DEFAULT_ALL)?,
            heap: rig.subject("probe/spin_heap")?,
        })
    }

    /// One launch of a sort that depends on its number. Whether it was a stop, and one of the device heap's.
    fn launch(&self, rig: &Rig, number: usize) -> Result<Kind, String> {
        let stream = &rig.stream;
        let timeout = |launch: &mut cuinstr_runtime::Launch| _ = launch.timeout(TIMEOUT);
        let (kind, mut running) = match number % 20 {
            0 => (Kind::Sound, self.short.start(stream, grid(1, 32), |launch| _ = launch.timeout(LONG))?),
            1 => (Kind::Heap, self.heap.start(stream, grid(1, 32), timeout)?),
            2..10 => (Kind::Fuel, self.fuelled.start(stream, grid(1, 32), |launch| _ = launch.fuel(1000).timeout(LONG))?),
            10..16 => (Kind::Cancel, self.count.start(stream, grid(2, 64), |launch| _ = launch.until_cancelled())?),
            _ => (Kind::Deadline, self.count.start(stream, grid(2, 64), timeout)?),
        };
        if kind == Kind::Cancel {
            running.cancel().map_err(told)?;
        }
        let outcome = running.wait().map_err(told)?;
        match kind {
            Kind::Sound => {
                let first: Option<[u8; 4]> = self.short.first(stream)?.first_chunk().copied();
                if !matches!(outcome, Outcome::Completed { late: false, .. }) || first.map(u32::from_ne_bytes) != Some(1000) {
                    return Err(format!("it should have completed with 1000, not {first:?}: {outcome:?}"));
                }
            }
            Kind::Fuel => drop(stopped(outcome, Cause::Fuel)?),
            Kind::Cancel => drop(stopped(outcome, Cause::Cancelled)?),
            Kind::Heap | Kind::Deadline => drop(stopped(outcome, Cause::Deadline)?),
        }
        Ok(kind)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sound,
    Fuel,
    Cancel,
    Deadline,
    Heap,
}

/// Kilobytes of this process that are in memory, by the kernel's count.
pub(super) fn resident() -> Result<u64, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(told)?;
    let words = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("the system does not say how large this process is")?;
    words.split_whitespace().next().and_then(|word| word.parse().ok()).ok_or_else(|| words.to_owned())
}

/// Bytes of device memory in use.
pub(super) fn in_use(rig: &Rig) -> Result<u64, String> {
    let (free, total) = rig.context.mem_get_info().map_err(told)?;
    Ok((total - free) as u64)
}

pub(super) fn stops(rig: &Rig) -> Result<Vec<Row>, String> {
    // What stopped threads held is never given back. Once the heap is used up, a `malloc` on the device takes a tenth
    // of a second.
    rig.context.set_limit(CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE, HEAP).map_err(told)?;
    let kernels = Kernels::new(rig)?;
    let wanted = rig.samples(STOPS);
    let (mut stops, mut heaps, mut launches) = (0, 0, 0);
    // Written before the memory is looked at, so that the samples take no part in its growth.
    let mut took = vec![Duration::MAX; 2 * wanted];
    let mut before = (0, 0);
    while stops < wanted {
        let since = Instant::now();
        let kind = kernels.launch(rig, launches).map_err(|why| format!("launch {launches}, after {stops} stops: {why}"))?;
        took[launches] = since.elapsed();
        launches += 1;
        stops += usize::from(kind != Kind::Sound);
        heaps += usize::from(kind == Kind::Heap);
        if launches % 1000 == 0 {
            // What is last heard of it should it hang.
            eprintln!("{launches} launches, {stops} stops, {:.1?} for the last", took[launches - 1]);
        }
        if launches == WARM {
            before = (resident()?, in_use(rig)?);
        }
    }
    let after = (resident()?, in_use(rig)?);
    took.truncate(launches);
    let grown = |after: u64, before: u64| [number(after.saturating_sub(before))];
    let note = format!("{launches} launches; {heaps} stops of kernels that hold memory of the device heap");
    Ok(vec![
        Row::new("stops, each with the right outcome", "", &[number(stops as u64)]).target(Target::least(number(wanted as u64))).note(note),
        Row::micros("one of these launches, from the call to the outcome", &took),
        Row::new("growth of the process's resident memory", "KB", &grown(after.0, before.0))
            .target(Target::most(1024.0))
            .note(format!("from {} KB after the first {WARM} launches", before.0)),
        Row::new("growth of the device memory in use", "bytes", &grown(after.1, before.1)).target(Target::most(0.0)),
    ])
}
