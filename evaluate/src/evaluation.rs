//! Many candidates on their way: compiled by several helpers, run on every GPU, judged, written down.

use crate::baseline::{self, Baseline};
use crate::bench::{Answers, Bench, Stopper};
use crate::child::{Killer, Program};
use crate::compile::{Compiler, Image, Order};
use crate::headers::Headers;
use crate::journal::{Conditions, Head, Journal, VERSION};
use crate::limits::Limits;
use crate::queue::{Item, Queue};
use crate::spec::Spec;
use crate::summary::Summary;
use crate::verdict::{Finding, Judgement, Verdict};
use crate::{Candidate, Error, Result};
use cuinstr_image::Arch;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often whoever watches is asked whether to go on, while nothing happens.
const TICK: Duration = Duration::from_millis(50);
/// The same where nothing wakes the thread that asks.
pub(crate) const BRIEF: Duration = Duration::from_millis(5);

/// How an evaluation is made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What limits a candidate.
    pub by: By,
    /// Where verdicts are kept, and found again by the next evaluation.
    pub journal: Option<PathBuf>,
    /// How often each candidate is judged.
    pub repeat: u32,
    /// Whether candidates are judged in all cases, or until one case decides.
    pub all_cases: bool,
    /// Numbers of the GPUs; all that the driver knows if there are none.
    pub devices: Vec<usize>,
    /// Worker processes in reserve for each GPU, for when a candidate costs one.
    pub spares: usize,
    /// Compilations at a time; 0 for as many as there are processors.
    pub jobs: usize,
    /// Only compile, for this architecture: no GPU is needed.
    pub compile_only: Option<Arch>,
    /// The same work by one child process a candidate, for comparison, after all else.
    pub baseline: Option<Baseline>,
    /// What helpers and workers are started from.
    pub program: Program,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            by: By::Fuel,
            journal: None,
            repeat: 1,
            all_cases: false,
            devices: Vec::new(),
            spares: 2,
            jobs: 0,
            compile_only: None,
            baseline: None,
            program: Program::default(),
        }
    }
}

/// What limits a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    /// Iterations of a thread: the same on every run and every machine. Time is the net behind it.
    Fuel,
    /// Time.
    Time,
}

/// What whoever watches an evaluation is told.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The reference has been measured, and candidates are next.
    Begun {
        /// What each case may take; empty if nothing is run.
        limits: &'a [Limits],
        /// Judgements to come.
        left: usize,
        /// Judgements found in the journal.
        known: usize,
    },
    /// A candidate was judged.
    Judged(&'a Judgement),
    /// A comparison goes on: so many of so many.
    Compared(usize, usize),
    /// Nothing new.
    Waiting,
}

/// Who watches, and says whether to go on.
pub(crate) type Observer<'a> = dyn FnMut(&Event) -> ControlFlow<()> + 'a;

/// Judges candidates.
///
/// `observer` is called on the calling thread, at least twenty times a second, once candidates are on their way. Where it says to stop, what runs
/// is cancelled, and the summary tells of what there is; the journal has all of that.
///
/// # Errors
/// If the reference is no measure, the journal is of something else, or compiler or GPU are missing. What a candidate does is no error.
pub fn evaluate(spec: &Spec, candidates: &[Candidate], settings: &Settings, observer: &mut Observer) -> Result<Summary> {
    if candidates.is_empty() {
        return Err(Error::NoCandidates("the mutator finds nothing to change, or all was excluded".into()));
    }
    let begun = Instant::now();
    let spec = Arc::new(spec.clone());
    let mut names = HashSet::new();
    if let Some(twice) = candidates.iter().find(|candidate| !names.insert(&candidate.name)) {
        return Err(Error::SameName(twice.name.clone()));
    }
    let mut conditions = conditions(&spec, settings);
    let mut journal = match &settings.journal {
        Some(path) => Journal::open(path)?,
        None => Journal::none(),
    };
    journal.check(&conditions)?;
    let known_limits = if settings.compile_only.is_some() { None } else { journal.limits(&spec.cases)? };
    let halt = Halt::default();
    let stage = thread::scope(|scope| {
        let setting = scope.spawn(|| Stage::set(&spec, settings, known_limits, &halt));
        while !setting.is_finished() {
            if observer(&Event::Waiting).is_break() {
                halt.stop();
            }
            thread::sleep(BRIEF);
        }
        let stage =
            setting.join().unwrap_or_else(|_| Err(Error::Reference("could not be measured: a thread of this process failed".into())));
        // What else went wrong then follows from it.
        if halt.is_stopped() { Err(Error::Stopped) } else { stage }
    })?;
    conditions.extend(stage.conditions());
    journal.begin(Head {
        journal: VERSION,
        cuinstr: env!("CARGO_PKG_VERSION").into(),
        conditions,
        spec: spec.path.display().to_string(),
        device: stage.device.clone(),
        limits: stage.limits.clone(),
    })?;

    let mut headers = Headers::of(&spec);
    let hashes: Vec<String> = candidates.iter().map(|candidate| candidate.hash(&mut headers)).collect();
    let mut judgements: Vec<Judgement> = Vec::with_capacity(candidates.len());
    let mut items = Vec::new();
    // All rounds of a candidate follow each other: its image is kept until the last of them has begun.
    for (index, candidate) in candidates.iter().enumerate() {
        for round in 1..=settings.repeat.max(1) {
            match journal.known(&candidate.name, &hashes[index], round) {
                Some(known) => judgements.push(known.clone()),
                None => items.push(Item { candidate: index, round }),
            }
        }
    }
    let known = judgements.len();
    let left = items.len();
    let prepared = begun.elapsed();
    let since = Instant::now();
    let mut is_stopped = observer(&Event::Begun { limits: &stage.limits, left, known }).is_break();
    let benches = if is_stopped {
        stage.benches
    } else {
        let (ended, benches) = run(&spec, candidates, &hashes, settings, stage.benches, (&stage.limits, stage.arch), items, |judgement| {
            if let Some(judgement) = judgement {
                journal.add(judgement)?;
                let event = Event::Judged(judgement);
                judgements.push(judgement.clone());
                return Ok(observer(&event));
            }
            Ok(observer(&Event::Waiting))
        })?;
        is_stopped = ended;
        benches
    };
    let took = since.elapsed();
    let losses = benches.iter().map(|(bench, _)| bench.losses()).sum();
    let mut comparison = None;
    if let (Some(asked), false) = (&settings.baseline, is_stopped)
        && let Some((bench, answers)) = benches.into_iter().next()
    {
        let stand = baseline::Stand { spec: &spec, candidates, settings, limits: &stage.limits, arch: stage.arch, bench, answers };
        comparison = stand.compare(asked, &judgements, observer)?;
    }
    let wanted = candidates.len() * settings.repeat.max(1) as usize;
    Ok(Summary { judgements, wanted, known, prepared, took, losses, limits: stage.limits, device: stage.device, comparison })
}

/// Stops what goes on before the first candidate.
#[derive(Debug, Default)]
struct Halt {
    is_stopped: AtomicBool,
    stoppers: Mutex<Vec<Stopper>>,
    killers: Mutex<Vec<Killer>>,
}

impl Halt {
    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.stoppers.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Stopper::stop);
        self.killers.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Killer::kill);
    }

    /// Has it stopped with the rest, if it is not too late.
    fn stops(&self, bench: Option<&Bench>, compiler: Option<&Compiler>) -> Result<()> {
        self.stoppers.lock().unwrap_or_else(PoisonError::into_inner).extend(bench.map(Bench::stopper));
        self.killers.lock().unwrap_or_else(PoisonError::into_inner).extend(compiler.map(Compiler::killer));
        if self.is_stopped() { Err(Error::Stopped) } else { Ok(()) }
    }
}

/// All that candidates are judged by.
struct Stage {
    benches: Vec<(Bench, Answers)>,
    limits: Vec<Limits>,
    arch: Arch,
    device: String,
    compiler: String,
}

/// What verdicts depend on, as far as it is known before anything is compiled.
fn conditions(spec: &Spec, settings: &Settings) -> Conditions {
    let way = match (settings.compile_only, settings.by) {
        (Some(_), _) => "compiling only",
        (None, By::Fuel) => "fuel",
        (None, By::Time) => "time",
    };
    let cases = if settings.all_cases { "all" } else { "up to the first that decides" };
    let more = [("limited by", way), ("cases", cases), ("cuinstr", env!("CARGO_PKG_VERSION"))];
    let more = more.map(|(name, value)| (name.to_owned(), value.to_owned()));
    spec.conditions().into_iter().chain(more).collect()
}

/// Version of the driver in the system's kernel.
fn driver() -> String {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let is_version = |word: &&str| word.split('.').count() > 1 && word.split('.').all(|part| part.parse::<u32>().is_ok());
    text.split_whitespace().find(is_version).unwrap_or("unknown").to_owned()
}

impl Stage {
    /// What verdicts depend on besides.
    fn conditions(&self) -> Conditions {
        let mut conditions: Conditions =
            [("compiler".to_owned(), self.compiler.clone()), ("architecture".to_owned(), format!("sm_{}", self.arch))].into();
        if !self.benches.is_empty() {
            conditions.extend([("device".to_owned(), self.device.clone()), ("driver".to_owned(), driver())]);
        }
        conditions
    }

    /// Compiles the reference, starts the workers, and measures it.
    fn set(spec: &Arc<Spec>, settings: &Settings, mut limits: Option<Vec<Limits>>, halt: &Halt) -> Result<Self> {
        if let Some(arch) = settings.compile_only {
            let compiler = reference(spec, settings, arch, halt)?.compiler.clone();
            return Ok(Self { benches: Vec::new(), limits: Vec::new(), arch, device: String::new(), compiler });
        }
        let devices = if settings.devices.is_empty() { (0..cuinstr_runtime::device_count()?).collect() } else { settings.devices.clone() };
        // They start at the same time.
        let started: Vec<Result<Bench>> = thread::scope(|scope| {
            let start = |device| scope.spawn(move || Bench::start(spec, &settings.program, device, settings.spares));
            let starting: Vec<_> = devices.iter().copied().map(start).collect();
            let gone = || Err(Error::Reference("could not be started: a thread of this process failed".into()));
            starting.into_iter().map(|starting| starting.join().unwrap_or_else(|_| gone())).collect()
        });
        let mut started = started.into_iter().collect::<Result<Vec<_>>>()?;
        let Some(first) = started.first() else { return Err(Error::Runtime(cuinstr_runtime::Error::NoDevice { ordinal: 0, found: 0 })) };
        let (arch, device) = (first.arch()?, first.device_name()?);
        let image = reference(spec, settings, arch, halt)?;
        let mut benches = Vec::with_capacity(started.len());
        for mut bench in started.drain(..) {
            if bench.arch()? != arch {
                let (number, name) = (bench.device(), bench.device_name()?);
                return Err(Error::Reference(format!(
                    "would run on GPUs of two kinds ({device}, and {number}: {name}): name those of one kind"
                )));
            }
            halt.stops(Some(&bench), None)?;
            let (answers, measured) = bench.measure(&image, settings.by)?;
            limits.get_or_insert(measured);
            benches.push((bench, answers));
        }
        Ok(Self { benches, limits: limits.unwrap_or_default(), arch, device, compiler: image.compiler.clone() })
    }
}

/// The reference, compiled.
fn reference(spec: &Spec, settings: &Settings, arch: Arch, halt: &Halt) -> Result<Arc<Image>> {
    let order = Order::new(spec, arch, settings.by == By::Fuel);
    let mut compiler = Compiler::start(&settings.program, order, Duration::from_secs_f64(spec.limits.compile))?;
    halt.stops(None, Some(&compiler))?;
    let name = spec.reference.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let candidate = Candidate { name: name.clone(), path: name, source: spec.source.clone().into_bytes().into(), origin: None };
    compiler.compile(&candidate)?.map_err(|finding| {
        let line = finding.place.map_or_else(String::new, |place| format!(" (line {})", place.line));
        Error::Reference(format!("does not compile{line}: {}", finding.message.unwrap_or_default()))
    })
}

type Benches = Vec<(Bench, Answers)>;

/// Has all items judged. Says whether it was stopped, and gives the benches back.
#[expect(clippy::too_many_arguments, reason = "all of it is known in one place only")]
fn run(
    spec: &Spec,
    candidates: &[Candidate],
    hashes: &[String],
    settings: &Settings,
    benches: Benches,
    (limits, arch): (&[Limits], Arch),
    items: Vec<Item>,
    mut tell: impl FnMut(Option<&Judgement>) -> Result<ControlFlow<()>>,
) -> Result<(bool, Benches)> {
    let count = items.len();
    let queue = Queue::new(items);
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    let jobs = if settings.jobs == 0 { processors() } else { settings.jobs }.clamp(1, count.max(1));
    let order = Order::new(spec, arch, settings.by == By::Fuel);
    let within = Duration::from_secs_f64(spec.limits.compile);
    let stoppers: Vec<Stopper> = benches.iter().map(|(bench, _)| bench.stopper()).collect();
    let killers: Mutex<Vec<Killer>> = Mutex::default();
    let is_over = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel::<Result<Judgement>>();
    thread::scope(|scope| {
        let stop = || {
            is_over.store(true, Ordering::Relaxed);
            queue.stop();
            for killer in killers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                killer.kill();
            }
        };
        for _ in 0..jobs {
            let (sender, queue, order, killers, is_over) = (sender.clone(), &queue, order.clone(), &killers, &is_over);
            scope.spawn(move || {
                let compile = || -> Result<()> {
                    let Some(mut candidate) = queue.to_compile() else { return Ok(()) };
                    let mut compiler = Compiler::start(&settings.program, order, within)?;
                    loop {
                        {
                            let mut killers = killers.lock().unwrap_or_else(PoisonError::into_inner);
                            if is_over.load(Ordering::Relaxed) {
                                return Ok(());
                            }
                            killers.retain(|killer| !killer.is_done());
                            killers.push(compiler.killer());
                        }
                        let built = compiler.compile(&candidates[candidate])?;
                        if is_over.load(Ordering::Relaxed) {
                            return Ok(());
                        }
                        queue.put(candidate, built);
                        let Some(next) = queue.to_compile() else { return Ok(()) };
                        candidate = next;
                    }
                };
                if let Err(error) = compile() {
                    let _ = sender.send(Err(error));
                }
            });
        }
        let judgement = |item: Item, finding: Finding, elapsed: Duration, device: Option<usize>| {
            let candidate = &candidates[item.candidate];
            Judgement {
                candidate: candidate.name.clone(),
                hash: hashes[item.candidate].clone(),
                round: item.round,
                verdict: finding.verdict,
                case: finding.case,
                cases: finding.cases,
                by: finding.by.map(str::to_owned),
                place: finding.place,
                message: finding.message,
                elapsed_ms: (elapsed.as_secs_f64() * 1e6).round() / 1e3,
                device,
                mutant: candidate.origin.clone(),
            }
        };
        let mut running = Vec::new();
        if settings.compile_only.is_some() {
            let (sender, queue) = (sender.clone(), &queue);
            scope.spawn(move || {
                while let Some((item, built)) = queue.take() {
                    let finding = built.err().map_or_else(|| Finding::new(Verdict::Compiles, None), |finding| *finding);
                    if sender.send(Ok(judgement(item, finding, Duration::ZERO, None))).is_err() {
                        return;
                    }
                }
            });
        }
        for (mut bench, answers) in benches {
            let (sender, queue) = (sender.clone(), &queue);
            running.push(scope.spawn(move || {
                while let Some((item, built)) = queue.take() {
                    let since = Instant::now();
                    let ended = match built {
                        Ok(image) => bench.judge(&candidates[item.candidate], &image, (limits, &answers), settings.all_cases),
                        Err(finding) => Ok(Some(*finding)),
                    };
                    let Some(ended) = ended.transpose() else { break };
                    let judged = ended.map(|finding| judgement(item, finding, since.elapsed(), Some(bench.device())));
                    let failed = judged.is_err();
                    if sender.send(judged).is_err() || failed {
                        break;
                    }
                }
                (bench, answers)
            }));
        }
        drop(sender);
        let (mut is_stopped, mut failed) = (false, None);
        // Until the last who could send something is done.
        loop {
            let told = match receiver.recv_timeout(TICK) {
                Ok(Ok(judgement)) => tell(Some(&judgement)),
                // What comes after the first error follows from it.
                Ok(Err(error)) => Err(error),
                Err(RecvTimeoutError::Timeout) => tell(None),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            match told {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) if is_stopped || failed.is_some() => {}
                Ok(ControlFlow::Break(())) => {
                    is_stopped = true;
                    stop();
                    stoppers.iter().for_each(Stopper::stop);
                }
                Err(error) => {
                    failed.get_or_insert(error);
                    stop();
                    stoppers.iter().for_each(Stopper::stop);
                }
            }
        }
        let benches = running.into_iter().filter_map(|running| running.join().ok()).collect();
        match failed {
            Some(error) => Err(error),
            None => Ok((is_stopped, benches)),
        }
    })
}
