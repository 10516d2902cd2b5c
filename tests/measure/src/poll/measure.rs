//! Measures one benchmark: the same results first, then times in turn, then cancels.

use super::buffers::{Answer, Buffers, Comparer, drained};
use super::result::{Cancels, Column, Measured};
use crate::bench::Rig;
use crate::bench::cancel::{self, Long};
use crate::crew;
use cuinstr_abi::control::Action;
use cuinstr_gpu_tests::launcher::{Control, Ended, Gpu, Kernel, Orders};
use cuinstr_gpu_tests::manifest::{Manifest, Subject};
use cuinstr_harness::header::{Arg, Header};
use cuinstr_harness::variant::{self, Variant};
use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

/// Milliseconds that a sample takes at least, unless a launch is slower.
const SAMPLE_MS: f64 = 1.0;
/// Most launches of a sample.
const MOST_REPEATS: u32 = 32;
/// Most rounds, and the fewest that are run whatever they take.
const ROUNDS: std::ops::RangeInclusive<usize> = 5..=300;
/// Longest that a launch or a sample may take.
const SLOWEST: Duration = Duration::from_secs(10);
/// The deadline that launches are armed with: far.
const FAR_NS: u64 = 60_000_000_000;
/// Cancels of a kernel.
const CANCELS: usize = 200;

/// The device, seen both ways: bare for times, and through the runtime for cancels.
#[derive(Debug)]
pub struct Bench {
    gpu: Gpu,
    rig: Rig,
    manifest: Manifest,
    compare: Kernel,
    launches: Cell<u32>,
}

/// What a benchmark takes beside its samples, roughly: filling memory, comparing results.
const SET_UP: Duration = Duration::from_millis(400);

/// What a child process does: measures these benchmarks within so many seconds, or until one of them spoils the process.
///
/// # Errors
/// If the device or the folder can't be opened.
pub fn child(folder: &Path, seconds: f64, names: &[String]) -> Result<(), String> {
    let until = Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 3600.0));
    let bench = Bench::open(folder)?;
    crew::child(names, |name, left| {
        let share = until.saturating_duration_since(Instant::now()) / u32::try_from(left).unwrap_or(u32::MAX);
        let share = share.saturating_sub(SET_UP);
        bench.measure(name, Slots { times: share.mul_f64(0.6), cancels: share.mul_f64(0.4) })
    })
}

/// Time for the parts of one benchmark.
#[derive(Debug, Clone, Copy)]
pub struct Slots {
    /// For its rounds.
    pub times: Duration,
    /// For its cancels.
    pub cancels: Duration,
}

struct Build {
    variant: Variant,
    kernel: Kernel,
    control: Option<Control>,
    /// Milliseconds of a launch, roughly.
    cost: f64,
    repeats: u32,
    /// It takes part in every so many rounds.
    every: usize,
    column: Column,
}

impl Bench {
    /// Opens the first device and reads a prepared folder.
    ///
    /// # Errors
    /// What is missing.
    pub fn open(folder: &Path) -> Result<Self, String> {
        let manifest = Manifest::read(folder)?;
        let rig = Rig::open(folder, false, || 0)?;
        let gpu = Gpu::open()?;
        let compare = load(&gpu, &manifest, manifest.subject("probe/compare")?, variant::PLAIN)?;
        Ok(Self { gpu, rig, manifest, compare, launches: Cell::new(1) })
    }

    /// Measures one benchmark, and says whether this process is of further use. What fails leaves its error beside what was measured.
    #[must_use]
    pub fn measure(&self, name: &str, slots: Slots) -> (Measured, bool) {
        let mut measured = Measured { name: name.to_owned(), ..Measured::default() };
        let since = Instant::now();
        let outcome = self.fill(&mut measured, slots);
        measured.seconds = since.elapsed().as_secs_f64();
        let is_sound = outcome.is_ok();
        measured.errors.extend(outcome.err());
        (measured, is_sound)
    }

    fn fill(&self, measured: &mut Measured, slots: Slots) -> Result<(), String> {
        let subject = self.manifest.subject(&measured.name)?;
        let header = &subject.fixture.header;
        measured.errors.extend(subject.failures.iter().map(|(build, why)| format!("{build}: {why}")));
        let mut builds = Vec::new();
        for variant in variant::COLUMNS.into_iter().filter(|variant| subject.builds.contains_key(variant.name)) {
            builds.push(self.build(subject, variant)?);
        }
        if builds.first().is_none_or(|build| build.variant != variant::PLAIN) {
            return Err("there is no plain build to compare with".into());
        }

        let buffers = Buffers::new(&self.gpu, header)?;
        let answer = self.same(&builds, header, &buffers, measured)?;
        self.time(&mut builds, header, &buffers, slots.times)?;
        measured.columns = builds.into_iter().map(|build| build.column).collect();
        match header.long() {
            Some(long) => {
                measured.cancels = Some(self.cancels(&measured.name, &long, slots.cancels)?);
                self.still_right(&measured.name, header, &buffers, &answer).map_err(|why| format!("after all cancels: {why}"))?;
            }
            None => measured.notes.extend(header.brief.iter().map(|why| format!("not cancelled: {why}"))),
        }
        buffers.free(&self.gpu)?;
        answer.free(&self.gpu)?;
        Ok(())
    }

    fn build(&self, subject: &Subject, variant: Variant) -> Result<Build, String> {
        let kernel = load(&self.gpu, &self.manifest, subject, variant)?;
        let control = if variant.rewriting.is_some() { Some(self.gpu.bind(&kernel)?) } else { None };
        let column = Column { build: variant.name.to_owned(), repeats: 1, times_us: Vec::new(), ratios: Vec::new() };
        Ok(Build { variant, kernel, control, cost: 0.0, repeats: 1, every: 1, column })
    }

    /// Arms the next launches, as those of the runtime are: threads leave, at a deadline that is far.
    fn arm(&self, build: &Build) -> Result<(), String> {
        let Some(control) = &build.control else { return Ok(()) };
        self.launches.set(self.launches.get() + 1);
        let orders = Orders { timeout_ns: FAR_NS, ..Orders::new(self.launches.get(), Action::Leave) };
        Ok(self.gpu.arm(control, &orders)?)
    }

    /// Runs each build once and compares. A rewritten one that answers wrongly is timed all the same, with an error beside it.
    fn same(&self, builds: &[Build], header: &Header, buffers: &Buffers, measured: &mut Measured) -> Result<Answer, String> {
        let run = |build: &Build| {
            buffers.restore(&self.gpu)?;
            self.arm(build)?;
            self.gpu.launch(&build.kernel, header, &buffers.arguments())?;
            match self.gpu.wait(SLOWEST) {
                Ended::Drained => Ok(()),
                Ended::Fault(fault) => Err(format!("{}: {fault}", build.variant.name)),
                Ended::Running => Err(format!("{}: it still runs after {SLOWEST:?}", build.variant.name)),
            }
        };
        run(&builds[0])?;
        let answer = buffers.answer(&self.gpu)?;
        let has_floats = has_floats(header);
        let comparer = self.comparer()?;
        for build in builds {
            run(build)?;
            match buffers.compare(&self.gpu, &comparer, &answer, has_floats) {
                Ok(None) => {}
                Ok(Some(note)) => measured.notes.push(format!("{}: {note}", build.variant.name)),
                Err(why) => measured.errors.push(format!("{}: {why}", build.variant.name)),
            }
        }
        Ok(answer)
    }

    fn comparer(&self) -> Result<Comparer<'_>, String> {
        Ok(Comparer { kernel: &self.compare, header: &self.manifest.subject("probe/compare")?.fixture.header })
    }

    /// One sample of a build: milliseconds of one launch.
    fn sample(&self, build: &Build, header: &Header, buffers: &Buffers, repeats: u32) -> Result<f64, String> {
        if header.reset {
            buffers.restore(&self.gpu)?;
        }
        self.arm(build)?;
        let took = self.gpu.time(&build.kernel, header, &buffers.arguments(), repeats, SLOWEST);
        took.map(|took| took / f64::from(repeats)).map_err(|fault| format!("{}: {fault}", build.variant.name))
    }

    /// Times all builds in turn, each round beginning with another one.
    fn time(&self, builds: &mut [Build], header: &Header, buffers: &Buffers, slot: Duration) -> Result<(), String> {
        let since = Instant::now();
        for build in builds.iter_mut() {
            self.sample(build, header, buffers, 1)?;
            build.cost = self.sample(build, header, buffers, 1)?;
        }
        let plain = builds[0].cost;
        for build in builds.iter_mut() {
            let fitting = (1..MOST_REPEATS).find(|&repeats| f64::from(repeats) * build.cost >= SAMPLE_MS);
            build.repeats = if header.reset { 1 } else { fitting.unwrap_or(MOST_REPEATS) };
            build.column.repeats = build.repeats;
            // What takes many times as long is sampled less often, so that the others get their rounds.
            build.every = (1..8).find(|&every| f64::from(every as u32) * 4.0 * plain.max(0.25) >= build.cost).unwrap_or(8);
        }
        for round in 0..*ROUNDS.end() {
            if round >= *ROUNDS.start() && since.elapsed() > slot {
                break;
            }
            let mut times = vec![None; builds.len()];
            for turn in 0..builds.len() {
                let index = (round + turn) % builds.len();
                if round % builds[index].every == 0 {
                    times[index] = Some(self.sample(&builds[index], header, buffers, builds[index].repeats)?);
                }
            }
            let Some(plain) = times[0] else { continue };
            for (build, time) in builds.iter_mut().zip(times) {
                build.column.times_us.extend(time.map(|time| time * 1e3));
                build.column.ratios.extend(time.map(|time| time / plain));
            }
        }
        Ok(())
    }

    fn cancels(&self, name: &str, long: &Header, slot: Duration) -> Result<Cancels, String> {
        let buffers = Buffers::new(&self.gpu, long)?;
        let restore = || {
            buffers.restore(&self.gpu)?;
            drained(&self.gpu)
        };
        let subject = Long {
            name,
            header: long,
            arguments: buffers.words(),
            restore: long.reset.then_some(&restore as &dyn Fn() -> Result<(), String>),
        };
        let found = cancel::cancel(&self.rig, &subject, CANCELS, Instant::now() + slot)?;
        buffers.free(&self.gpu)?;
        Ok(Cancels {
            drained_us: found.drained,
            answered_us: found.answered,
            over: found.over,
            not_resident: found.not_resident,
            natural_ms: found.natural_ms,
        })
    }

    /// The benchmark's own launch, through the runtime, after all the cancels.
    fn still_right(&self, name: &str, header: &Header, buffers: &Buffers, answer: &Answer) -> Result<(), String> {
        buffers.restore(&self.gpu)?;
        drained(&self.gpu)?;
        let own = Long { name, header, arguments: buffers.words(), restore: None };
        cancel::complete(&self.rig, &own, SLOWEST)?;
        buffers.compare(&self.gpu, &self.comparer()?, answer, has_floats(header)).map(drop)
    }
}

/// Whether a parameter says that the kernel computes with floats, so that another contraction may give other bits.
fn has_floats(header: &Header) -> bool {
    header.args.iter().map(Arg::shape).any(|(ty, _)| ty.is_float())
}

fn load(gpu: &Gpu, manifest: &Manifest, subject: &Subject, variant: Variant) -> Result<Kernel, String> {
    let build = subject.build(variant)?;
    let path = manifest.folder.join(&build.cubin);
    let cubin = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(gpu.load(&cubin, &build.entry, subject.fixture.header.shared)?)
}
