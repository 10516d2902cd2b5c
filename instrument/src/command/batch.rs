//! All inputs of one run: what goes where, side by side, and printed in order by one thread.

use super::cli::{Format, RewriteArgs, usage_error};
use super::job::{Done, Job};
use super::moved::Moved;
use super::report::{Style, status_of, to_stderr, warn_of_variables};
use super::status::Status;
use super::summary::Tally;
use super::{cores, listing, output};
use anyhow::Context;
use clap::error::ErrorKind;
use cuinstr::diagnostic::{Code, Diagnostic};
use cuinstr::project::config::{self, BadConfig, Config, Used};
use cuinstr::project::input::Input;
use cuinstr::site::Site;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

/// Configuration files of the run, each read once, and for each input the path of the one that holds for it.
type Configs = BTreeMap<PathBuf, Result<Config, BadConfig>>;

/// Does what the command line asks for.
///
/// # Errors
/// A [`clap::Error`] if the command line makes no sense, before anything is done; any other if standard output can't be written.
pub(crate) fn run(args: &RewriteArgs) -> anyhow::Result<Status> {
    let inputs = args.files.iter().map(|path| Input::new(path)).collect::<Vec<_>>();
    let destinations = destinations(args, &inputs)?;
    let style = Style::new(args.format, args.color);
    warn_of_variables(args);
    let config_paths = inputs.iter().map(|input| config_path(args, input)).collect::<Vec<_>>();
    let mut configs = Configs::new();
    for path in config_paths.iter().flatten() {
        configs.entry(path.clone()).or_insert_with(|| config::load(path));
    }
    let mut collected = Collected::default();
    for bad in configs.values().filter_map(|config| config.as_ref().err()) {
        to_stderr(&style.render(&bad.name, &bad.bytes, &bad.diagnostics));
        collected.status = collected.status.max(status_of(&bad.diagnostics));
    }
    let read = Read::new(&inputs, configs.keys());
    if let Some(status) = prepare(args, inputs.len(), &read, style) {
        return Ok(collected.status.max(status));
    }
    let moved = Moved::new(inputs.iter().zip(destinations.iter().map(Option::as_ref)));
    let (jobs, spoiled): (Vec<_>, Vec<_>) = inputs
        .into_iter()
        .zip(destinations)
        .zip(&config_paths)
        .map(|((input, destination), config_path)| {
            let config = config_path.as_ref().and_then(|path| configs.get(path));
            let refusal = match &destination {
                Some(path) => read.refuse(path),
                None if args.output.is_some() => read.refuse_stdout(),
                None => None,
            };
            let spoiled = Spoiled { by_config: config.is_some_and(Result::is_err), refusal };
            (Job { input, destination, config: config.and_then(|config| config.as_ref().ok()), args, moved: &moved, style }, spoiled)
        })
        .unzip();
    let work = |index: usize| match &spoiled[index] {
        Spoiled { refusal: Some(diagnostic), .. } => jobs[index].failed(b"", std::slice::from_ref(diagnostic)),
        // Its diagnostics are printed already.
        Spoiled { by_config: true, .. } => jobs[index].failed(b"", &[]),
        Spoiled { .. } => jobs[index].run(),
    };

    let bar = progress_bar(args, jobs.len());
    in_order(jobs.len(), &work, |index, done| collected.take(&jobs[index], config_paths[index].as_deref(), &done, &bar));
    bar.finish_and_clear();
    collected.finish(args, &configs, style)
}

/// Makes the folder for the output and writes the prelude. Returns a status if the run ends with that.
fn prepare(args: &RewriteArgs, inputs: usize, read: &Read, style: Style) -> Option<Status> {
    let failed = |path: &Path, diagnostic: Diagnostic, status: Status| {
        to_stderr(&style.render(&path.to_string_lossy(), b"", &[diagnostic]));
        Some(status)
    };
    let mut beside = args.sites.iter().filter(|path| path.as_os_str() != "-").chain(&args.prelude);
    if let Some((path, diagnostic)) = beside.find_map(|path| Some((path, read.refuse(path)?))) {
        return failed(path, diagnostic, Status::Refused);
    }
    if let Some(folder) = args.output.as_ref().filter(|path| inputs > 1 || is_spelled_as_folder(path))
        && let Err(diagnostic) = output::make_folder(folder)
    {
        return failed(folder, *diagnostic, Status::Io);
    }
    if let Some(path) = &args.prelude
        && let Err(diagnostic) = output::write(path, cuinstr::prelude::body().as_bytes())
    {
        return failed(path, *diagnostic, Status::Io);
    }
    None
}

/// What the jobs that are done so far add up to.
struct Collected<'c> {
    status: Status,
    tally: Tally,
    site_maps: String,
    sites: Vec<Site>,
    /// What each configuration was used for; none once a file failed, since what that file would have used is not known.
    used: BTreeMap<&'c Path, Option<Used>>,
    /// Whether standard output could be written.
    written: anyhow::Result<()>,
}

impl Default for Collected<'_> {
    fn default() -> Self {
        let (tally, site_maps, sites, used) = Default::default();
        Self { status: Status::Done, tally, site_maps, sites, used, written: Ok(()) }
    }
}

impl<'c> Collected<'c> {
    /// Adds a job, and prints what it has to say.
    fn take(&mut self, job: &Job<'_>, config_path: Option<&'c Path>, done: &Done, bar: &ProgressBar) {
        bar.inc(1);
        if let Some(path) = config_path {
            let all = self.used.entry(path).or_insert_with(|| Some(Used::default()));
            match (all.as_mut(), done.used.clone()) {
                (Some(all), Some(used)) => all.extend(used),
                _ => *all = None,
            }
        }
        self.status = self.status.max(done.status);
        self.tally.add(&done.outcome);
        if let Some(site_map) = &done.site_map {
            self.site_maps += &site_map.to_json();
            self.site_maps.push('\n');
            self.sites.extend(site_map.sites.iter().cloned());
        }
        bar.suspend(|| {
            to_stderr(&done.stderr);
            if job.args.verbose {
                to_stderr(&job.story(done));
            }
            if self.written.is_ok() {
                self.written = output::to_stdout(&done.stdout).context("standard output can't be written");
            }
        });
    }

    /// Prints and writes what is about all jobs together.
    fn finish(self, args: &RewriteArgs, configs: &Configs, style: Style) -> anyhow::Result<Status> {
        let Self { mut status, tally, site_maps, sites, used, written } = self;
        written?;
        if args.list && args.format != Format::Json {
            output::to_stdout(listing::legend(sites.iter()).as_bytes()).context("standard output can't be written")?;
        }
        for (config, used) in used.iter().filter_map(|(path, used)| Some((configs.get(*path)?.as_ref().ok()?, used.as_ref()?))) {
            let unused = config.stale(used);
            to_stderr(&style.render(&config.name, &config.bytes, &unused));
            status = status.max(status_of(&unused));
        }
        if let Some(path) = args.sites.as_ref().filter(|_| !site_maps.is_empty()) {
            status = status.max(write_site_maps(path, &site_maps, style)?);
        }
        if !args.how.quiet && !args.list && !args.diff {
            to_stderr(&tally.render(args.format, &args.how.limits()));
        }
        Ok(status)
    }
}

/// Reasons not to touch an input that are known before it is read.
struct Spoiled {
    by_config: bool,
    refusal: Option<Diagnostic>,
}

/// Where each input's rewritten text goes: none for standard output and where nothing is written.
///
/// # Errors
/// If two outputs would be the same file, or one would have no name.
fn destinations(args: &RewriteArgs, inputs: &[Input]) -> Result<Vec<Option<PathBuf>>, clap::Error> {
    let Some(output) = args.output.as_ref().filter(|path| path.as_os_str() != "-") else { return Ok(vec![None; inputs.len()]) };
    let mut paths = Vec::new();
    if inputs.len() == 1 && !is_spelled_as_folder(output) && !output.is_dir() {
        paths.push(output.clone());
    } else {
        if output.extension().is_some() && !is_spelled_as_folder(output) && !output.is_dir() {
            let shown = output.display();
            let message =
                format!("several files can't go to one output: `-o {shown}` names a file; write `-o {shown}/` for a folder of that name");
            return Err(usage_error(ErrorKind::ArgumentConflict, message));
        }
        for input in inputs {
            let name = input.path.file_name().filter(|_| !input.is_stdin()).ok_or_else(|| {
                let message =
                    format!("`{}` has no file name that its output in a folder could bear: name an output file", input.path.display());
                usage_error(ErrorKind::ArgumentConflict, message)
            })?;
            paths.push(output.join(name));
        }
    }
    let mut seen = BTreeMap::new();
    let spelled = inputs.iter().map(|input| input.name.as_str()).chain(args.sites.as_ref().map(|_| "the site map")).chain(["the prelude"]);
    for (path, name) in paths.iter().chain(&args.sites).chain(&args.prelude).zip(spelled) {
        // The last link is not followed: what it points to is replaced, and that is a matter of each output.
        if let Some(other) = seen.insert(place(path), name) {
            let message = format!("{other} and {name} would both be written to `{}`", path.display());
            return Err(usage_error(ErrorKind::ArgumentConflict, message));
        }
    }
    Ok(paths.into_iter().map(Some).collect())
}

fn is_spelled_as_folder(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// The path without links and detours, as far as it exists.
fn place(path: &Path) -> PathBuf {
    if let Ok(path) = path.canonicalize() {
        return path;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

fn config_path(args: &RewriteArgs, input: &Input) -> Option<PathBuf> {
    args.how.config.clone().or_else(|| config::find(&input.folder()?))
}

/// Files that this run reads and so must not write.
struct Read {
    files: Vec<(Identity, String)>,
}

/// What tells whether two paths name the same file, through links of either kind.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = PathBuf;

impl Read {
    fn new<'a>(inputs: &[Input], configs: impl Iterator<Item = &'a PathBuf>) -> Self {
        let inputs = inputs.iter().map(|input| {
            let path = if input.is_stdin() { Path::new("/dev/stdin") } else { &input.path };
            (identity(path), input.name.clone())
        });
        let configs = configs.map(|path| (identity(path), path.to_string_lossy().into_owned()));
        Self { files: inputs.chain(configs).filter_map(|(identity, name)| Some((identity?, name))).collect() }
    }

    /// Why this path must not be written, if so.
    fn refuse(&self, path: &Path) -> Option<Diagnostic> {
        let identity = identity(path)?;
        let (_, name) = self.files.iter().find(|(other, _)| *other == identity)?;
        let path = path.to_string_lossy();
        let message = if *name == *path {
            format!("`{path}` is both read and written")
        } else {
            format!("the output `{path}` is the same file as `{name}`")
        };
        Some(Diagnostic::new(Code::OutputIsInput, message).help("name another file, for example `-o kernel.inst.cu`"))
    }

    /// The same for standard output. A shell's `>` has emptied the file by now; what is left to do is to say why.
    fn refuse_stdout(&self) -> Option<Diagnostic> {
        self.refuse(Path::new("/dev/stdout"))
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    // Two ends of one terminal are the same device, and may well be.
    let metadata = path.metadata().ok().filter(Metadata::is_file)?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<Identity> {
    path.metadata().ok().filter(Metadata::is_file)?;
    path.canonicalize().ok()
}

/// A bar where someone looks at it, and nothing anywhere else.
fn progress_bar(args: &RewriteArgs, jobs: usize) -> ProgressBar {
    if jobs < 2 || args.how.quiet || args.format == Format::Json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} files").expect("the template is sound");
    ProgressBar::new(jobs as u64).with_style(style)
}

/// Runs the work for 0, 1, 2, … on all cores and takes the results in that order.
fn in_order(count: usize, work: &(impl Fn(usize) -> Done + Sync), mut take: impl FnMut(usize, Done)) {
    let (sender, receiver) = mpsc::channel();
    // The receiver lives until all is taken, so sending does not fail.
    let all = move || cores::each(count, &|index| drop(sender.send((index, work(index)))));
    std::thread::scope(|scope| {
        let started = std::thread::Builder::new().spawn_scoped(scope, all);
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        for (index, done) in receiver {
            waiting.insert(index, done);
            while let Some(done) = waiting.remove(&next) {
                take(next, done);
                next += 1;
            }
        }
        // Where no thread can be started, this one does it.
        if started.is_err() {
            (0..count).for_each(|index| take(index, work(index)));
        }
    });
}

fn write_site_maps(path: &Path, site_maps: &str, style: Style) -> anyhow::Result<Status> {
    if path.as_os_str() == "-" {
        output::to_stdout(site_maps.as_bytes()).context("standard output can't be written")?;
    } else if let Err(diagnostic) = output::write(path, site_maps.as_bytes()) {
        to_stderr(&style.render(&path.to_string_lossy(), b"", &[*diagnostic]));
        return Ok(Status::Io);
    }
    Ok(Status::Done)
}
