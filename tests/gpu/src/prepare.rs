//! Builds every kernel in every variant that the cases need, into a folder that travels to the machine with the GPU.

use crate::manifest::{Build, Manifest, Subject, VERSION};
use cuinstr::diagnostic::Severity;
use cuinstr::options::Options;
use cuinstr::site::SiteMap;
use cuinstr_harness::cubin;
use cuinstr_harness::digest::digest;
use cuinstr_harness::fixtures::{self, Fixture};
use cuinstr_harness::nvcc::Nvcc;
use cuinstr_harness::variant::Variant;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What to prepare, and how.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Folder to fill.
    pub folder: PathBuf,
    /// The kernels.
    pub fixtures: Vec<Fixture>,
    /// The architecture.
    pub arch: &'static str,
    /// The builds of each.
    pub variants: fn(&Fixture) -> Vec<Variant>,
    /// Compilations at a time.
    pub jobs: usize,
    /// Whether to print a line for each compilation.
    pub verbose: bool,
}

/// What was prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    /// Builds in the manifest.
    pub builds: usize,
    /// Builds that had to be compiled; the others were there already.
    pub compiled: usize,
    /// Builds that failed.
    pub failed: usize,
    /// Bytes of all cubins.
    pub bytes: u64,
}

/// What is remembered of a compilation, under the digest of everything that went into it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Compiled {
    cubin: String,
    entry: String,
    code: String,
}

/// One build to be made.
struct Job<'a> {
    subject: usize,
    fixture: &'a Fixture,
    variant: Variant,
}

/// Text to compile, with the headers that lie beside it.
struct Source {
    main: Vec<u8>,
    beside: Vec<(String, Vec<u8>)>,
    site_maps: Vec<SiteMap>,
}

/// Fills the folder. A build that fails is recorded in the manifest, and the case that needs it fails with the reason.
///
/// # Errors
/// If the folder can't be written.
pub fn prepare(nvcc: &Nvcc, plan: &Plan) -> Result<Prepared, String> {
    let fixtures = &plan.fixtures;
    let folder = |path: &Path| fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()));
    folder(&plan.folder.join("cubin"))?;

    let cache_path = plan.folder.join("built.json");
    let cache = fs::read_to_string(&cache_path).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let workshop = Workshop { nvcc, plan, cache: Mutex::new(cache), compiled: AtomicUsize::new(0) };
    let jobs: Vec<Job> = fixtures
        .iter()
        .enumerate()
        .flat_map(|(subject, fixture)| (plan.variants)(fixture).into_iter().map(move |variant| Job { subject, fixture, variant }))
        .collect();
    let results = workshop.run(&jobs)?;

    let mut subjects: Vec<Subject> =
        fixtures.iter().map(|fixture| Subject { fixture: fixture.clone(), builds: BTreeMap::new(), failures: BTreeMap::new() }).collect();
    for (job, result) in jobs.iter().zip(results) {
        let (subject, name) = (&mut subjects[job.subject], job.variant.name.to_owned());
        match result {
            Ok(build) => drop(subject.builds.insert(name, build)),
            Err(why) => drop(subject.failures.insert(name, why)),
        }
    }
    let manifest = Manifest { version: VERSION, compiler: nvcc.build.clone(), subjects, folder: plan.folder.clone() };
    manifest.write()?;
    let cache = workshop.cache.into_inner().map_err(|_| "a worker panicked")?;
    let bytes = prune(&manifest, cache, &cache_path)?;
    let count = |of: fn(&Subject) -> usize| manifest.subjects.iter().map(of).sum();
    Ok(Prepared {
        builds: count(|subject| subject.builds.len()),
        compiled: workshop.compiled.into_inner(),
        failed: count(|subject| subject.failures.len()),
        bytes,
    })
}

/// Forgets and deletes what the manifest does not name; gives the bytes that stay.
fn prune(manifest: &Manifest, mut cache: BTreeMap<String, Compiled>, cache_path: &Path) -> Result<u64, String> {
    let builds = manifest.subjects.iter().flat_map(|subject| subject.builds.values());
    let used: BTreeSet<&str> = builds.map(|build| build.cubin.as_str()).collect();
    cache.retain(|_, compiled| used.contains(compiled.cubin.as_str()));
    let text = serde_json::to_string(&cache).map_err(|error| error.to_string())?;
    fs::write(cache_path, text).map_err(|error| format!("{}: {error}", cache_path.display()))?;
    let mut bytes = 0;
    for file in fs::read_dir(manifest.folder.join("cubin")).into_iter().flatten().flatten() {
        if used.contains(format!("cubin/{}", file.file_name().to_string_lossy()).as_str()) {
            bytes += file.metadata().map_or(0, |metadata| metadata.len());
        } else {
            let _ = fs::remove_file(file.path());
        }
    }
    Ok(bytes)
}

struct Workshop<'a> {
    nvcc: &'a Nvcc,
    plan: &'a Plan,
    cache: Mutex<BTreeMap<String, Compiled>>,
    compiled: AtomicUsize,
}

impl Workshop<'_> {
    /// Makes every build, a few at a time; results in the order of the jobs.
    fn run(&self, jobs: &[Job]) -> Result<Vec<Result<Build, String>>, String> {
        let done = AtomicUsize::new(0);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.plan.jobs).build().map_err(|error| error.to_string())?;
        let make = |job: &Job| {
            let made = self.build(job);
            let number = done.fetch_add(1, Ordering::Relaxed) + 1;
            let word = match &made {
                Ok((_, true)) => "built",
                Ok((_, false)) => "",
                Err(_) => "FAILED",
            };
            if self.plan.verbose && !word.is_empty() {
                eprintln!("[{number}/{}] {word} {} {}", jobs.len(), job.fixture.name, job.variant.name);
            }
            made.map(|(build, _)| build)
        };
        Ok(pool.install(|| jobs.par_iter().map(make).collect()))
    }

    /// One build, and whether it had to be compiled.
    fn build(&self, job: &Job) -> Result<(Build, bool), String> {
        let source = source(job.fixture, job.variant)?;
        let mut args = vec![format!("-arch={}", self.plan.arch), format!("-std=c++{}", job.fixture.header.std), "-cubin".into()];
        args.extend(job.fixture.header.flags.iter().cloned());
        // A source without floating-point numbers has nothing to contract. Should a type hide from this search, its results are
        // compared the more strictly for it.
        let floats = source.texts().any(|text| ["float", "double", "half"].iter().any(|word| contains(text, word)));
        if !job.variant.contract && floats {
            args.push("-fmad=false".into());
        }
        let parts = [self.nvcc.build.as_bytes(), job.fixture.name.as_bytes()];
        let key = digest(parts.into_iter().chain(args.iter().map(String::as_bytes)).chain(source.texts()));

        let known = self.cache.lock().map_err(|_| "a worker panicked")?.get(&key).cloned();
        let known = known.filter(|known| self.plan.folder.join(&known.cubin).is_file());
        let fresh = known.is_none();
        let compiled = match known {
            Some(known) => known,
            None => self.compile(job.fixture, &source, args, &key)?,
        };
        let Compiled { cubin, entry, code } = compiled;
        Ok((Build { cubin, entry, code, site_maps: source.site_maps }, fresh))
    }

    fn compile(&self, fixture: &Fixture, source: &Source, mut args: Vec<String>, key: &str) -> Result<Compiled, String> {
        let told = |error: std::io::Error| error.to_string();
        let folder = tempfile::tempdir().map_err(told)?;
        let main = folder.path().join(Path::new(&fixture.path).file_name().unwrap_or_default());
        fs::write(&main, &source.main).map_err(told)?;
        for (name, text) in &source.beside {
            fs::write(folder.path().join(name), text).map_err(told)?;
        }
        let output = folder.path().join("kernel.cubin");
        let text = |path: &Path| path.to_string_lossy().into_owned();
        args.extend(["-I".into(), text(&fixture.folder()), "-o".into(), text(&output), text(&main)]);
        self.call_nvcc(&args)?;
        if args.iter().any(|arg| matches!(arg.as_str(), "-rdc=true" | "--relocatable-device-code=true" | "-dc")) {
            let linked = folder.path().join("linked.cubin");
            let link = [
                format!("-arch={}", self.plan.arch),
                "-dlink".into(),
                "-cubin".into(),
                "-o".into(),
                text(&linked),
                text(&output),
                "-lcudadevrt".into(),
            ];
            self.call_nvcc(&link)?;
            fs::rename(&linked, &output).map_err(told)?;
        }
        let image = fs::read(&output).map_err(told)?;
        let entry = cubin::entry_symbol(&image, &fixture.header.entry)?;
        let compiled = Compiled { cubin: format!("cubin/{}", digest([&image[..]])), entry, code: digest([&cubin::code(&image)?[..]]) };
        fs::write(self.plan.folder.join(&compiled.cubin), &image).map_err(told)?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        self.cache.lock().map_err(|_| "a worker panicked")?.insert(key.to_owned(), compiled.clone());
        Ok(compiled)
    }

    fn call_nvcc(&self, args: &[String]) -> Result<(), String> {
        let finished = self.nvcc.run(args)?;
        if finished.success() {
            return Ok(());
        }
        let ending = if finished.status.is_none() { "nvcc was killed for taking too long" } else { "nvcc refused it" };
        let lines: Vec<&str> = finished.stderr.lines().chain(finished.stdout.lines()).filter(|line| !line.trim().is_empty()).collect();
        Err(format!("{ending}: {}", lines[..lines.len().min(12)].join("\n")))
    }
}

impl Source {
    fn texts(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.main[..]).chain(self.beside.iter().map(|(_, text)| &text[..]))
    }
}

fn contains(text: &[u8], word: &str) -> bool {
    text.windows(word.len()).any(|window| window == word.as_bytes())
}

/// What to compile: the file and its headers as they are, or rewritten.
fn source(fixture: &Fixture, variant: Variant) -> Result<Source, String> {
    let mut source = Source { main: Vec::new(), beside: Vec::new(), site_maps: Vec::new() };
    let headers = fixture.header.also.iter().map(|also| Path::new(&fixture.path).with_file_name(also));
    for (index, path) in std::iter::once(PathBuf::from(&fixture.path)).chain(headers).enumerate() {
        let absolute = fixtures::workspace().join(&path);
        let mut text = fs::read(&absolute).map_err(|error| format!("{}: {error}", absolute.display()))?;
        if let Some(rewriting) = variant.rewriting {
            let path = path.to_string_lossy().into_owned();
            let options = Options {
                site_path: path.clone(),
                path,
                polls: rewriting.polls,
                at_exit: rewriting.at_exit,
                limits: rewriting.limits,
                ..Options::default()
            };
            let (output, site_map) = rewrite(&text, &options)?;
            text = output;
            source.site_maps.push(site_map);
        }
        match index {
            0 => source.main = text,
            _ => source.beside.push((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text)),
        }
    }
    Ok(source)
}

/// Rewrites; a panic is a failure of this build, not of the whole preparation.
fn rewrite(text: &[u8], options: &Options) -> Result<(Vec<u8>, SiteMap), String> {
    let path = &options.path;
    let rewrite = panic::catch_unwind(|| cuinstr::rewrite(text, options)).map_err(|_| format!("the rewriter panicked on {path}"))?;
    let errors = rewrite.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let errors: Vec<String> = errors.map(|error| format!("{} {}", error.code.id(), error.message)).collect();
    match rewrite.output {
        Some(output) if errors.is_empty() => Ok((output, rewrite.sites)),
        Some(_) => Err(format!("the rewriter wrote {path} in spite of errors: {}", errors.join("; "))),
        None if errors.is_empty() => Err(format!("the rewriter gave nothing for {path}, and no error")),
        None => Err(format!("the rewriter refused {path}: {}", errors.join("; "))),
    }
}
