//! What happens if threads leave while something of the hardware's is under way: one small kernel for each construct, launched again and
//! again, with a check of what comes next. These are experiments: what they find is a table, not a verdict.

use crate::crew;
use crate::poll::buffers::drained;
use cuinstr_gpu_tests::launcher::{Arguments, Ended, Gpu, Kernel, Memory};
use cuinstr_gpu_tests::manifest::Manifest;
use cuinstr_gpu_tests::prepare::{self, Plan, Prepared};
use cuinstr_harness::buffer::Type;
use cuinstr_harness::buffer::elements;
use cuinstr_harness::fixtures::{self, Fixture};
use cuinstr_harness::header::Header;
use cuinstr_harness::nvcc::{EXACT_ARCH, Nvcc};
use cuinstr_harness::variant;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// The kernel that is launched behind each experiment.
const CHECKER: &str = "hardware/checker";
/// Words of the memory that experiments copy from and to.
const WORDS: usize = 1 << 20;
/// Columns of that memory, seen as a matrix.
const COLUMNS: usize = 1024;
/// Launches with leavers, and without.
const RUNS: u32 = 20;
const CONTROLS: u32 = 3;
/// After this an experiment that takes milliseconds at most counts as hanging.
const HANGS: Duration = Duration::from_millis(400);

/// Who leaves, in the order of the numbers that `leaving.cuh` gives them.
pub const WHO: [&str; 5] = ["nobody", "one thread", "half a warp", "a warp", "a block"];

/// What is counted, in the order of `leaving.cuh`.
const ENDED: usize = 0;
const WRONG: usize = 1;
const GIVEN_UP: usize = 2;
const STRAY: usize = 3;
const BYSTANDER: usize = 4;
/// Words of a report.
const REPORT: usize = 16;

/// One experiment with one group of leavers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Trial {
    /// The experiment's name, without its folder.
    pub experiment: String,
    /// What it is about.
    pub about: String,
    /// Who leaves, an index of [`WHO`].
    pub who: usize,
    /// Launches that drained.
    pub drained: u32,
    /// The driver's error, if there was one: the context is lost then.
    pub fault: Option<String>,
    /// Whether a launch did not drain.
    pub hung: bool,
    /// Threads that came to their end, in all launches together.
    pub ended: u64,
    /// Threads that saw a wrong value in blocks that others had left.
    pub wrong: u64,
    /// Waits that were given up in such blocks.
    pub given_up: u64,
    /// Words of later blocks' shared memory that somebody changed.
    pub stray: u64,
    /// Wrong values, and waits given up, in blocks that nobody left.
    pub bystander: u64,
    /// Words in global memory that are neither what they were nor what was to be written.
    pub garbage: u64,
    /// Launches after which the next one did not give its right result.
    pub next_wrong: u32,
    /// What kept it from being tried.
    pub error: Option<String>,
}

impl Trial {
    /// What happened, in a word.
    #[must_use]
    pub fn word(&self) -> String {
        let harm = [
            (self.stray, "later blocks' shared memory changed"),
            (self.garbage, "garbage in global memory"),
            (self.bystander, "other blocks disturbed"),
            (u64::from(self.next_wrong), "next launch wrong"),
        ];
        let harm: Vec<String> = harm.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{what} ({count})")).collect();
        let mut parts = Vec::new();
        if let Some(error) = &self.error {
            parts.push(format!("not tried: {error}"));
        } else if let Some(fault) = &self.fault {
            parts.push(fault.clone());
        } else if self.hung {
            parts.push("**hangs**".to_owned());
        } else if self.given_up > 0 {
            parts.push("others wait until they poll".to_owned());
        } else {
            parts.push("ends".to_owned());
        }
        parts.extend(harm.iter().map(|harm| format!("**{harm}**")));
        if self.wrong > 0 {
            parts.push(format!("wrong values seen ({})", self.wrong));
        }
        parts.join(", ")
    }

    /// Whether an experiment that nobody leaves does what it should.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.word() == "ends"
    }
}

/// Compiles the experiments into a folder.
///
/// # Errors
/// If a header is wrong, or the folder can't be written. Builds that fail are in the manifest.
pub fn prepare(nvcc: &Nvcc, folder: &Path, jobs: usize) -> Result<Prepared, String> {
    let (fixtures, variants) = (fixtures::experiments()?, |_: &Fixture| vec![variant::PLAIN]);
    prepare::prepare(nvcc, &Plan { folder: folder.to_owned(), fixtures, variants, arch: EXACT_ARCH, jobs, verbose: true })
}

/// The trials of a prepared folder, each as `EXPERIMENT WHO`, those of one experiment together, the control first.
///
/// # Errors
/// If the manifest can't be read.
pub fn trials(folder: &Path) -> Result<Vec<String>, String> {
    let manifest = Manifest::read(folder)?;
    let names = manifest.subjects.iter().map(|subject| subject.fixture.name.as_str()).filter(|name| *name != CHECKER);
    Ok(names.flat_map(|name| (0..WHO.len()).map(move |who| format!("{name} {who}"))).collect())
}

/// A trial that gave no result.
#[must_use]
pub fn lost(name: &str, why: String) -> Trial {
    let (experiment, who) = split(name);
    Trial { experiment, who, error: Some(why), ..Trial::default() }
}

fn split(name: &str) -> (String, usize) {
    let (experiment, who) = name.split_once(' ').unwrap_or((name, ""));
    (experiment.trim_start_matches("hardware/").to_owned(), who.parse().unwrap_or(0))
}

/// What a child process does: these trials, until one spoils the process.
///
/// # Errors
/// If the device or the folder can't be opened.
pub fn child(folder: &Path, names: &[String]) -> Result<(), String> {
    let bench = Bench::open(Manifest::read(folder)?)?;
    crew::child(names, |name, _| {
        let (experiment, who) = split(name);
        let mut trial = Trial { experiment, who, ..Trial::default() };
        let outcome = bench.run(&mut trial);
        trial.error = outcome.err();
        let is_sound = !trial.hung && trial.fault.is_none() && trial.error.is_none();
        (trial, is_sound)
    })
}

/// The device with what all trials share.
struct Bench {
    gpu: Gpu,
    manifest: Manifest,
    checker: Kernel,
    /// What the checker reports.
    after: Memory,
    report: Memory,
    source: Memory,
    sink: Memory,
    /// The tensor map of the source.
    map: Memory,
    pattern: Vec<u8>,
}

impl Bench {
    fn open(manifest: Manifest) -> Result<Self, String> {
        let gpu = Gpu::open()?;
        let checker = load(&gpu, &manifest, CHECKER)?.0;
        // What `leaving.cuh` calls the pattern.
        let pattern: Vec<u8> = (0..WORDS as u32).flat_map(|word| (word.wrapping_mul(2_654_435_761) | 1).to_le_bytes()).collect();
        let (after, report) = (gpu.memory(REPORT * 4)?, gpu.memory(REPORT * 4)?);
        let (source, sink) = (gpu.memory(pattern.len())?, gpu.memory(pattern.len())?);
        gpu.upload(&pattern, source)?;
        let tensor_map = gpu.tensor_map(source, COLUMNS, [64, 32])?;
        let map = gpu.memory(tensor_map.len())?;
        gpu.upload(&tensor_map, map)?;
        drained(&gpu)?;
        Ok(Self { gpu, manifest, checker, after, report, source, sink, map, pattern })
    }

    /// Launches an experiment, and behind it the checker, a few times.
    fn run(&self, trial: &mut Trial) -> Result<(), String> {
        let name = format!("hardware/{}", trial.experiment);
        let (kernel, header) = load(&self.gpu, &self.manifest, &name)?;
        trial.about.clone_from(&header.about);
        let checker = &self.manifest.subject(CHECKER)?.fixture.header;
        for _ in 0..if trial.who == 0 { CONTROLS } else { RUNS } {
            for memory in [self.report, self.after, self.sink] {
                self.gpu.zero(memory)?;
            }
            // The driver reads as many words as the kernel has parameters: most have no last one.
            let addresses = [self.report.address, self.source.address, self.sink.address];
            let words = [trial.who as u64, addresses[0], addresses[1], addresses[2], WORDS as u64, self.map.address];
            self.gpu.launch(&kernel, header, &Arguments::of(words.to_vec()))?;
            self.gpu.launch(&self.checker, checker, &Arguments::of(vec![self.after.address]))?;
            match self.gpu.wait(HANGS) {
                Ended::Drained => trial.drained += 1,
                Ended::Fault(fault) => {
                    trial.fault = Some(fault.to_string());
                    return Ok(());
                }
                Ended::Running => {
                    trial.hung = true;
                    return Ok(());
                }
            }
            self.count(trial, checker)?;
        }
        // Blocks that come later end by another way.
        let threads = header.threads() / if header.cooperative { 1 } else { 2 } * u64::from(CONTROLS);
        if trial.who == 0 && trial.ended != threads {
            return Err(format!("{} threads came to the end instead of {threads}, though nobody left", trial.ended));
        }
        Ok(())
    }

    fn count(&self, trial: &mut Trial, checker: &Header) -> Result<(), String> {
        let report = elements(&self.gpu.download(self.report)?, Type::U32);
        trial.ended += report[ENDED];
        trial.wrong += report[WRONG];
        trial.given_up += report[GIVEN_UP];
        trial.stray += report[STRAY];
        trial.bystander += report[BYSTANDER];
        let sink = self.gpu.download(self.sink)?;
        let is_garbage = |(found, meant): &(&[u8], &[u8])| found != meant && *found != [0; 4];
        trial.garbage += sink.chunks_exact(4).zip(self.pattern.chunks_exact(4)).filter(is_garbage).count() as u64;
        let after = elements(&self.gpu.download(self.after)?, Type::U32);
        let is_right = after[ENDED] == checker.threads() && after[1..].iter().all(|&count| count == 0);
        trial.next_wrong += u32::from(!is_right);
        Ok(())
    }
}

fn load<'a>(gpu: &Gpu, manifest: &'a Manifest, name: &str) -> Result<(Kernel, &'a Header), String> {
    let subject = manifest.subject(name)?;
    let build = subject.build(variant::PLAIN)?;
    let path = manifest.folder.join(&build.cubin);
    let cubin = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let header = &subject.fixture.header;
    Ok((gpu.load(&cubin, &build.entry, header.shared)?, header))
}

/// All trials as a Markdown table, an experiment a line.
#[must_use]
pub fn table(trials: &[Trial]) -> String {
    let mut text = format!("| what | {} |\n| --- |{}\n", WHO.map(|who| format!("{who} leaves")).join(" | "), " --- |".repeat(WHO.len()));
    let mut names: Vec<&str> = trials.iter().map(|trial| trial.experiment.as_str()).collect();
    names.dedup();
    for name in names {
        let own: Vec<&Trial> = trials.iter().filter(|trial| trial.experiment == name).collect();
        let about = own.iter().map(|trial| trial.about.as_str()).find(|about| !about.is_empty()).unwrap_or_default();
        let cell = |who: usize| own.iter().find(|trial| trial.who == who).map_or("–".to_owned(), |trial| trial.word());
        let cells: Vec<String> = (0..WHO.len()).map(cell).collect();
        let _ = writeln!(text, "| `{name}`: {about} | {} |", cells.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_of_each_group_of_leavers_what_happened() {
        let trial = |who| Trial { experiment: "wgmma".into(), about: "products".into(), who, drained: 20, ..Trial::default() };
        let trials = [
            trial(0),
            Trial { given_up: 3, next_wrong: 1, ..trial(1) },
            Trial { hung: true, ..trial(2) },
            Trial { fault: Some("cuStreamQuery: ILLEGAL (700)".into()), ..trial(3) },
            lost("hardware/wgmma 4", "the process ended".into()),
        ];
        assert!(trials[0].is_clean() && !trials[1].is_clean());
        let expected = "| `wgmma`: products | ends | others wait until they poll, **next launch wrong (1)** | **hangs** | \
            cuStreamQuery: ILLEGAL (700) | not tried: the process ended |\n";
        let table = table(&trials);
        assert!(table.ends_with(expected), "{table}");
    }

    #[test]
    fn the_names_of_leavers_are_those_of_the_kernels() {
        let text = std::fs::read_to_string(fixtures::workspace().join("tests/kernels/hardware/leaving.cuh")).expect("a file");
        assert!(text.contains("enum Who { NOBODY, THREAD, HALF_WARP, WARP, BLOCK };"), "WHO has the same order");
        let counts = ["ENDED,", "WRONG,", "GIVEN_UP,", "STRAY,", "BYSTANDER,"].map(|name| text.find(&format!("    {name} ")));
        assert!(counts.is_sorted() && counts.iter().all(Option::is_some), "the counts have the same order");
        assert!(fixtures::experiments().unwrap_or_else(|errors| panic!("{errors}")).len() > 15);
    }
}
