//! Many programs in one translation unit: rewritten, compiled by the host's compiler, run.

use super::lane::Lane;
use super::prelude;
use super::program::{Mode, Place, Program};
use cuinstr::diagnostic::Severity;
use cuinstr::options::Options;
use cuinstr::site::{Form, Kind};
use cuinstr_harness::kept::Kept;
use cuinstr_harness::process;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What the programs include, and what runs them.
const DEVICE_H: &str = include_str!("../data/device.h");
const RUN_CPP: &str = include_str!("../data/run.cpp");
/// What both include that are on the host and on a GPU.
pub(super) const ARGUMENTS_H: &str = include_str!("../data/arguments.h");

/// What a lane of a GPU begins with, behind its prelude: the same programs, rewritten in other ways, are in the same executable.
pub(super) const LANE_BEGINS: &str = "namespace lane_";

/// In front of a GPU's programs, behind the prelude: functions for both sides become the GPU's, since such can't call the test's hooks, which
/// are the GPU's alone.
const GPU_ONLY: &str = "#undef __host__\n#define __host__\n";

/// A compilation, or the run of a batch, takes seconds; what takes this long hangs.
const LIMIT: Duration = Duration::from_secs(600);

/// What came of one run of one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// How it ended, in the runner's words.
    pub status: String,
    /// Hash of all that it did.
    pub hash: String,
    /// Iterations.
    pub ticks: u64,
    /// Back edges, in the model.
    pub edges: u64,
    /// Looks at the flag.
    pub looks: u64,
    /// Most iterations of polled loops between two looks.
    pub gap: u64,
    /// Fuel used, if it came to its end.
    pub fuel: u64,
}

/// Which run: seed, arguments, what and its number.
pub type Key = (u64, u32, String, u64);

/// What came of a batch.
pub type Runs = BTreeMap<Key, Run>;

/// What a batch printed, and how many of its loops got which form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// A line a run.
    pub text: String,
    /// Loops by the name of their form.
    pub forms: BTreeMap<String, usize>,
}

/// A folder to work in, and the compiled runner.
#[derive(Debug)]
pub struct Workshop {
    folder: tempfile::TempDir,
}

/// Something that no comparison can be made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The program, if it is known which.
    pub seed: Option<u64>,
    /// What happened.
    pub why: String,
}

impl Broken {
    fn new(seed: Option<u64>, why: impl Into<String>) -> Self {
        Self { seed, why: why.into() }
    }
}

/// The host's compiler, with what every compilation says.
fn compiler() -> Command {
    let mut command = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "g++".into()));
    command.args(["-std=c++17", "-w"]);
    command
}

fn compile(command: &mut Command) -> Result<(), String> {
    let finished = process::run(command, LIMIT).map_err(|error| format!("the host's compiler does not start: {error}"))?;
    if finished.success() {
        return Ok(());
    }
    let shown: String = finished.stderr.lines().filter(|line| line.contains("error")).take(4).collect::<Vec<_>>().join("\n");
    Err(if shown.is_empty() { format!("the host's compiler fails: {}", finished.stderr.trim()) } else { shown })
}

impl Workshop {
    /// A folder with the compiled runner in it.
    ///
    /// # Errors
    /// If there is no C++ compiler, or no room.
    pub fn new() -> Result<Self, String> {
        let told = |error: std::io::Error| error.to_string();
        let folder = tempfile::Builder::new().prefix("cuinstr-differential-").tempdir().map_err(told)?;
        fs::write(folder.path().join("device.h"), DEVICE_H).map_err(told)?;
        fs::write(folder.path().join("arguments.h"), ARGUMENTS_H).map_err(told)?;
        let source = folder.path().join("run.cpp");
        fs::write(&source, RUN_CPP).map_err(told)?;
        compile(compiler().args(["-O1", "-c", "-o"]).arg(folder.path().join("run.o")).arg(&source))?;
        Ok(Self { folder })
    }

    /// Rewrites, compiles and runs programs. What the plain ones did is needed to run rewritten ones.
    ///
    /// # Errors
    /// If a program is refused, not compiled, or brings the process down.
    pub fn run(&self, programs: &[&Program], lane: &Lane, sets: u32, plain: Option<&str>) -> Result<Output, Broken> {
        let (text, forms) = unit(programs, lane)?;
        let words = format!("{:?} {sets}", lane.flags);
        let parts = [words.as_str(), DEVICE_H, ARGUMENTS_H, RUN_CPP, &text, plain.unwrap_or("nothing")];
        let kept = Kept::of(parts.iter().map(|part| part.as_bytes()));
        if let Some(text) = kept.read().and_then(|bytes| String::from_utf8(bytes).ok()) {
            return Ok(Output { text, forms });
        }
        let told = |error: std::io::Error| Broken::new(None, error.to_string());
        let name =
            format!("{}-{}-{}", programs.first().map_or(0, |program| program.seed), programs.len(), lane.name.replace([' ', ','], "_"));
        let path = |extension: &str| self.folder.path().join(format!("{name}.{extension}"));
        fs::write(path("cpp"), &text).map_err(told)?;
        compile(compiler().args(lane.flags).arg("-o").arg(path("exe")).arg(path("cpp")).arg(self.folder.path().join("run.o")))
            .map_err(|why| Broken::new(culprit(&why, &text, programs), why))?;
        let mut command = Command::new(path("exe"));
        command.arg(sets.to_string());
        if let Some(plain) = plain {
            fs::write(path("plain"), plain).map_err(told)?;
            command.arg(path("plain"));
        }
        let finished = process::run(&mut command, LIMIT).map_err(told)?;
        for extension in ["cpp", "exe", "plain"] {
            let _ = fs::remove_file(path(extension));
        }
        if finished.stdout.ends_with("done\n") && finished.stderr.is_empty() {
            kept.keep(finished.stdout.as_bytes());
            return Ok(Output { text: finished.stdout, forms });
        }
        let last = finished.stdout.lines().last().unwrap_or_default();
        let seed = last.split(' ').next().and_then(|word| word.parse().ok());
        let sanitizer = finished.stderr.lines().next().unwrap_or_default();
        // The sanitizer names a line of the batch.
        let seed = if sanitizer.is_empty() { seed } else { culprit(sanitizer, &text, programs) };
        Err(Broken::new(seed, format!("{:?} {sanitizer} after `{last}`", finished.status)))
    }
}

/// The program that a compiler's message speaks of, by the line of the batch.
fn culprit(message: &str, text: &str, programs: &[&Program]) -> Option<u64> {
    let line: usize = message.split(".cpp:").nth(1)?.split(':').next()?.parse().ok()?;
    let before = text.lines().take(line);
    let seed = before.filter_map(|line| line.strip_prefix("namespace p")?.strip_suffix(" {")?.parse().ok()).last()?;
    programs.iter().any(|program| program.seed == seed).then_some(seed)
}

/// What the runner printed, by run.
#[must_use]
pub fn parse(output: &str) -> Runs {
    let number = |word: Option<&&str>| word.and_then(|word| word.parse().ok()).unwrap_or(0);
    output
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [seed, set, what, at, status, hash, ..] = words[..] else { return None };
            let key = (seed.parse().ok()?, set.parse().ok()?, what.to_owned(), at.parse().ok()?);
            let run = Run {
                status: status.to_owned(),
                hash: hash.to_owned(),
                ticks: number(words.get(6)),
                edges: number(words.get(7)),
                looks: number(words.get(8)),
                gap: number(words.get(9)),
                fuel: number(words.get(10)),
            };
            Some((key, run))
        })
        .collect()
}

/// A program as it comes to the compiler.
struct Prepared {
    prelude: String,
    text: String,
    /// For each site of iterations, whether the loop polls.
    polled: Vec<bool>,
    forms: Vec<Form>,
}

fn prepare(program: &Program, lane: &Lane) -> Result<Prepared, Broken> {
    let broken = |why: String| Broken::new(Some(program.seed), why);
    let Some(options) = &lane.options else {
        let mode = if lane.counts_edges { Mode::Model } else { Mode::Plain };
        return Ok(Prepared {
            prelude: if lane.gpu { String::new() } else { prelude::NO_HOOKS.to_owned() },
            text: program.text(mode),
            polled: vec![false; program.sites],
            forms: Vec::new(),
        });
    };
    let source = program.text(Mode::Plain);
    let rewrite = cuinstr::rewrite(source.as_bytes(), &Options { path: "program.cu".to_owned(), ..options.clone() });
    if let Some(diagnostic) = rewrite.diagnostics.iter().find(|diagnostic| diagnostic.severity >= Severity::Warning) {
        return Err(broken(format!("{} {}", diagnostic.code.id(), diagnostic.message)));
    }
    let output = rewrite.output.ok_or_else(|| broken("there is no output".into()))?;
    let output = String::from_utf8(output).map_err(|error| broken(error.to_string()))?;
    let end = rewrite.inserted.first().filter(|range| range.start == 0).map_or(0, |range| range.end);
    let (prelude, text) = output.split_at(end);
    let mut polled = vec![false; program.sites];
    let mut forms = Vec::new();
    for Place { site, line, column } in program.places() {
        let found = rewrite.sites.sites.iter().find(|found| {
            (found.line, found.column) == (line, column) && matches!(found.kind, Kind::For | Kind::RangeFor | Kind::While | Kind::Do)
        });
        let found = found.ok_or_else(|| broken(format!("the site map has no loop at {line}:{column}")))?;
        let is_left_alone = found.why.as_deref().is_some_and(|why| why.starts_with("runs at most "));
        if found.form == Form::None && !is_left_alone {
            return Err(broken(format!("the loop at {line}:{column} has no poll: {:?}", found.why)));
        }
        polled[site] = found.form != Form::None;
        forms.push(found.form);
    }
    let mut prelude = if lane.gpu { prelude::watched(prelude) } else { prelude::on_host(prelude) }.map_err(|why| Broken::new(None, why))?;
    let mut text = text.to_owned();
    if let Some(sabotage) = lane.sabotage {
        sabotage(&mut prelude, &mut text, &source);
    }
    Ok(Prepared { prelude, text, polled, forms })
}

/// The translation unit of some programs, and how many of their loops got which form.
///
/// # Errors
/// If one of them is refused, or has a loop without a poll.
pub(super) fn unit(programs: &[&Program], lane: &Lane) -> Result<(String, BTreeMap<String, usize>), Broken> {
    let mut forms = BTreeMap::new();
    let mut text = format!("#include \"{}\"\n", if lane.gpu { "gpu.h" } else { "device.h" });
    let launch = if lane.gpu { "<<<1, 1>>>" } else { "" };
    let mut table = String::new();
    let mut prelude: Option<String> = None;
    for program in programs {
        let prepared = prepare(program, lane)?;
        for form in &prepared.forms {
            let name = serde_json::to_value(form).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default();
            *forms.entry(name).or_insert(0) += 1;
        }
        let first = prelude.get_or_insert_with(|| {
            text.push_str(&prepared.prelude);
            if lane.gpu {
                text.push_str(GPU_ONLY);
                let _ = writeln!(text, "{LANE_BEGINS}{} {{", lane.name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_"));
            }
            prepared.prelude.clone()
        });
        if *first != prepared.prelude {
            return Err(Broken::new(
                Some(program.seed),
                "its prelude differs from that of the programs before it: they can't share a file",
            ));
        }
        let seed = program.seed;
        let _ = write!(text, "namespace p{seed} {{\n{}", prepared.text);
        for name in &program.macros {
            let _ = writeln!(text, "#undef {name}");
        }
        let polled: String = prepared.polled.iter().map(|polled| if *polled { "1," } else { "0," }).collect();
        let _ =
            writeln!(text, "}}\nstatic void run_{seed}(const host_arguments& a) {{ p{seed}::k{launch}(a.n, a.u, a.w, a.s, a.b, a.p); }}");
        let _ = writeln!(text, "static const unsigned char polled_{seed}[] = {{{polled}0}};");
        let Program { budget, single, sites, .. } = program;
        let _ = writeln!(table, "  {{{seed}ull, run_{seed}, {budget}u, polled_{seed}, {sites}u, {single}}},");
    }
    if lane.gpu {
        let _ = writeln!(text, "static const host_program programs[] = {{\n{table}}};");
        let (name, count) = (lane.name, programs.len());
        let _ = writeln!(text, "static gpu_batch batch = {{\"{name}\", programs, {count}u, gpu_reset, gpu_result, nullptr}};");
        let _ = writeln!(text, "static gpu_registration registration(batch);\n}}");
        return Ok((text, forms));
    }
    let _ = writeln!(text, "const host_program host_programs[] = {{\n{table}}};");
    let _ = writeln!(text, "const unsigned int host_program_count = {}u;", programs.len());
    let fuel = lane.options.as_ref().is_some_and(|options| options.limits.fuel.is_some());
    let _ = writeln!(text, "const bool host_is_rewritten = {}, host_has_fuel = {fuel};", lane.options.is_some());
    Ok((text, forms))
}

/// What the compiler gets for a program, for a person who looks into a failure.
///
/// # Errors
/// If it is refused.
pub fn text_of(program: &Program, lane: &Lane) -> Result<String, Broken> {
    prepare(program, lane).map(|prepared| prepared.text)
}

/// Where a file for a person is written.
///
/// # Errors
/// If it can't be.
pub fn keep(folder: &Path, name: &str, text: &str) -> Result<PathBuf, String> {
    let path = folder.join(name);
    fs::create_dir_all(folder).and_then(|()| fs::write(&path, text)).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}
