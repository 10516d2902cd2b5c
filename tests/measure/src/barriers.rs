//! What it costs to ask at a barrier whether to leave: the kernels of `tests/kernels/barriers` are the same but for their barrier, and are
//! timed in turn.

use crate::bench::figure::Summary;
use crate::poll::buffers::drained;
use cuinstr_gpu_tests::launcher::{Arguments, Gpu, Kernel};
use cuinstr_gpu_tests::manifest::{Manifest, Subject};
use cuinstr_gpu_tests::prepare::{self, Plan, Prepared};
use cuinstr_harness::buffer::{Type, elements};
use cuinstr_harness::fixtures;
use cuinstr_harness::nvcc::{ARCH, Nvcc};
use cuinstr_harness::variant;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The kernel that the others are compared with.
const PLAIN: &str = "barriers/barrier";
/// Barriers of a launch, for each block.
const BARRIERS: u32 = 2048;
/// Most rounds, each of which times each kernel once.
const ROUNDS: usize = 200;
/// Longest that a launch may take.
const SLOWEST: Duration = Duration::from_secs(5);

/// What stands between two barriers.
const BODIES: [&str; 2] = ["a value handed on", "the same and 36 instructions"];
/// Threads of a launch: blocks that fill the device, and one for each multiprocessor of an H200.
const GRIDS: [u32; 2] = [1056, 132];

/// The times of one way to write a barrier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// The kernel's name, without its folder.
    pub name: String,
    /// What its barrier is.
    pub about: String,
    /// Blocks of the launch.
    pub blocks: u32,
    /// What stands between two barriers, an index of [`BODIES`].
    pub body: usize,
    /// Nanoseconds from one barrier to the next.
    pub nanoseconds: Summary,
    /// Its time over that of the plain barrier in the same round.
    pub ratio: Summary,
}

/// Compiles the kernels into a folder.
///
/// # Errors
/// If a header is wrong, or the folder can't be written. Builds that fail are in the manifest.
pub fn prepare(nvcc: &Nvcc, folder: &Path, jobs: usize) -> Result<Prepared, String> {
    let (fixtures, variants) = (fixtures::barriers()?, |_: &fixtures::Fixture| vec![variant::PLAIN]);
    prepare::prepare(nvcc, &Plan { folder: folder.to_owned(), fixtures, variants, arch: ARCH, jobs, verbose: true })
}

/// Times them on this machine's GPU, for so long at most.
///
/// # Errors
/// What could not be run, or which kernel computed something else than the plain one.
pub fn run(folder: &Path, budget: Duration) -> Result<Vec<Timed>, String> {
    let manifest = Manifest::read(folder)?;
    let gpu = Gpu::open()?;
    let mut subjects: Vec<&Subject> = manifest.subjects.iter().collect();
    subjects.sort_by_key(|subject| subject.fixture.name != PLAIN);
    if subjects.first().is_none_or(|first| first.fixture.name != PLAIN) {
        return Err(format!("there is no {PLAIN} to compare with"));
    }
    let kernels: Vec<Kernel> = subjects.iter().map(|subject| load(&gpu, &manifest, subject)).collect::<Result<_, _>>()?;
    let shapes: Vec<(u32, usize)> = GRIDS.into_iter().flat_map(|blocks| (0..BODIES.len()).map(move |body| (blocks, body))).collect();
    let share = budget / u32::try_from(shapes.len()).unwrap_or(u32::MAX);
    let mut timed = Vec::new();
    for (blocks, body) in shapes {
        timed.extend(time(&gpu, &subjects, &kernels, (blocks, body), share)?);
    }
    Ok(timed)
}

fn load(gpu: &Gpu, manifest: &Manifest, subject: &Subject) -> Result<Kernel, String> {
    let build = subject.build(variant::PLAIN)?;
    let path = manifest.folder.join(&build.cubin);
    let cubin = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(gpu.load(&cubin, &build.entry, subject.fixture.header.shared)?)
}

/// Times all kernels in turn, each round beginning with another one.
fn time(gpu: &Gpu, subjects: &[&Subject], kernels: &[Kernel], (blocks, body): (u32, usize), slot: Duration) -> Result<Vec<Timed>, String> {
    let header = cuinstr_harness::header::Header { grid: [blocks, 1, 1], ..subjects[0].fixture.header.clone() };
    let sink = gpu.memory(usize::try_from(header.threads()).map_err(|error| error.to_string())? * 4)?;
    let arguments = Arguments::of(vec![u64::from(BARRIERS), body as u64, 0, sink.address]);
    let mut expected = None;
    for (kernel, subject) in kernels.iter().zip(subjects) {
        gpu.zero(sink)?;
        gpu.time(kernel, &header, &arguments, 1, SLOWEST)?;
        let found = elements(&gpu.download(sink)?, Type::U32);
        if *expected.get_or_insert_with(|| found.clone()) != found {
            return Err(format!("{} computes something else than {PLAIN}", subject.fixture.name));
        }
    }
    let since = Instant::now();
    let mut samples = vec![(Vec::new(), Vec::new()); kernels.len()];
    for round in 0..ROUNDS {
        if round >= 5 && since.elapsed() > slot {
            break;
        }
        let mut times = vec![0.0; kernels.len()];
        for turn in 0..kernels.len() {
            let index = (round + turn) % kernels.len();
            times[index] = gpu.time(&kernels[index], &header, &arguments, 1, SLOWEST)? * 1e6 / f64::from(BARRIERS);
        }
        for ((found, ratios), time) in samples.iter_mut().zip(&times) {
            found.push(*time);
            ratios.push(time / times[0]);
        }
    }
    drained(gpu)?;
    gpu.free(sink)?;
    let timed = subjects.iter().zip(samples).map(|(subject, (found, ratios))| Timed {
        name: subject.fixture.name.trim_start_matches("barriers/").to_owned(),
        about: subject.fixture.header.about.clone(),
        blocks,
        body,
        nanoseconds: Summary::of(&found),
        ratio: Summary::of(&ratios),
    });
    Ok(timed.collect())
}

/// The times as a Markdown table, a kernel and shape a line.
#[must_use]
pub fn table(timed: &[Timed]) -> String {
    let mut text =
        "| barrier | blocks | between two | ns a barrier | over the plain one | rounds |\n| --- | ---: | --- | ---: | ---: | ---: |\n"
            .to_owned();
    for one in timed {
        let Timed { name, about, blocks, nanoseconds, ratio, .. } = one;
        let body = BODIES.get(one.body).unwrap_or(&"?");
        let _ =
            writeln!(text, "| `{name}`: {about} | {blocks} | {body} | {:.1} | {:.3} | {} |", nanoseconds.median, ratio.median, ratio.count);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_medians_of_each_way_to_write_a_barrier() {
        let summary = |median| Summary { count: 200, median, p99: median, min: median, max: median };
        let timed = Timed {
            name: "vote".into(),
            about: "a vote".into(),
            blocks: 132,
            body: 1,
            nanoseconds: summary(61.25),
            ratio: summary(1.0452),
        };
        assert!(table(&[timed]).ends_with("| `vote`: a vote | 132 | the same and 36 instructions | 61.2 | 1.045 | 200 |\n"));
    }

    #[test]
    fn the_plain_barrier_is_among_the_kernels_and_all_take_the_same() {
        let fixtures = fixtures::barriers().unwrap_or_else(|errors| panic!("{errors}"));
        let plain = fixtures.iter().find(|fixture| fixture.name == PLAIN).expect("the plain barrier");
        for fixture in &fixtures {
            assert_eq!((&fixture.header.args, fixture.header.block), (&plain.header.args, plain.header.block), "{}", fixture.name);
        }
    }
}
