//! Many candidates on their way: compiled by several helpers, run on every GPU, judged, written down.

use crate::baseline::{self, Baseline};
use crate::bench::{Bench, Stopper};
use crate::child::{Killer, Program};
use crate::compile::{Compiler, Image, Order};
use crate::limits::Limits;
use crate::plan::{Ground, Judged, Plan, driver};
use crate::queue::{Item, Queue};
use crate::spec::Spec;
use crate::summary::Summary;
use crate::verdict::{Finding, Judgement, Verdict};
use crate::{Candidate, Error, Result};
use cuinstr_image::Arch;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
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
    /// Whether candidates that pass are timed, compiled as they are, one at a time on each GPU.
    pub measure: bool,
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
            measure: false,
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
    let begun = Instant::now();
    let mut plan = Plan::open(spec, candidates, settings)?;
    let spec = Arc::clone(plan.spec());
    let known_limits = if settings.compile_only.is_some() { None } else { plan.known_limits()? };
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
    let Stage { benches, ground } = stage;
    let (limits, arch) = (ground.limits.clone(), ground.arch);
    // All rounds of a candidate follow each other: its image is kept until the last of them has begun.
    let items = plan.begin(ground)?.to_vec();
    let prepared = begun.elapsed();
    let since = Instant::now();
    let mut is_stopped = observer(&Event::Begun { limits: &limits, left: items.len(), known: plan.known() }).is_break();
    let benches = if is_stopped {
        benches
    } else {
        let (ended, benches) = run(&spec, candidates, settings, benches, (&limits, arch), items, |judged| {
            let Some((item, finding, judged)) = judged else { return Ok(observer(&Event::Waiting)) };
            let judgement = plan.record(item, finding, judged)?;
            Ok(judgement.map_or(ControlFlow::Continue(()), |judgement| observer(&Event::Judged(judgement))))
        })?;
        is_stopped = ended;
        benches
    };
    let took = since.elapsed();
    let losses = benches.iter().map(Bench::losses).sum();
    let mut comparison = None;
    if let (Some(asked), false) = (&settings.baseline, is_stopped)
        && let Some(bench) = benches.into_iter().next()
    {
        let stand = baseline::Stand { spec: &spec, candidates, settings, limits: &limits, arch, bench };
        comparison = stand.compare(asked, plan.judgements(), observer)?;
    }
    Ok(plan.summary(prepared, took, losses, comparison))
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
    benches: Vec<Bench>,
    ground: Ground,
}

impl Stage {
    /// Compiles the reference, starts the workers, and measures it.
    fn set(spec: &Arc<Spec>, settings: &Settings, mut limits: Option<Vec<Limits>>, halt: &Halt) -> Result<Self> {
        if let Some(arch) = settings.compile_only {
            let compiler = reference(spec, settings, arch, halt)?.compiler.clone();
            let ground = Ground { compiler, arch, device: String::new(), driver: String::new(), limits: Vec::new() };
            return Ok(Self { benches: Vec::new(), ground });
        }
        let devices = if settings.devices.is_empty() { (0..cuinstr_runtime::device_count()?).collect() } else { settings.devices.clone() };
        let shared = devices.iter().enumerate().find(|(index, device)| devices[..*index].contains(device));
        if let (true, Some((_, device))) = (settings.measure, shared) {
            return Err(Error::SharedGpu(*device));
        }
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
            let measured = bench.measure(&image, settings.by)?;
            let limits = limits.get_or_insert(measured);
            if settings.measure {
                let order = Order::new(spec, arch, false).plain();
                let compiler = Compiler::start(&settings.program, order, Duration::from_secs_f64(spec.limits.compile))?;
                bench.time(&settings.program, compiler, limits)?;
            }
            benches.push(bench);
        }
        let limits = limits.unwrap_or_default();
        Ok(Self { benches, ground: Ground { compiler: image.compiler.clone(), arch, device, driver: driver(), limits } })
    }
}

/// The reference, compiled.
fn reference(spec: &Spec, settings: &Settings, arch: Arch, halt: &Halt) -> Result<Arc<Image>> {
    let order = Order::new(spec, arch, settings.by == By::Fuel);
    let mut compiler = Compiler::start(&settings.program, order, Duration::from_secs_f64(spec.limits.compile))?;
    halt.stops(None, Some(&compiler))?;
    compiler.compile(&Candidate::reference(spec))?.map_err(|finding| {
        let line = finding.place.map_or_else(String::new, |place| format!(" (line {})", place.line));
        Error::Reference(format!("does not compile{line}: {}", finding.message.unwrap_or_default()))
    })
}

/// What a thread tells of an item.
type Told = (Item, Finding, Judged);

/// What the threads of an evaluation share.
struct Shared<'s> {
    candidates: &'s [Candidate],
    settings: &'s Settings,
    queue: Queue,
    killers: Mutex<Vec<Killer>>,
    is_over: AtomicBool,
}

impl Shared<'_> {
    /// Ends all compilers, and lets no thread take anything more from the queue.
    fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.queue.stop();
        for killer in self.killers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            killer.kill();
        }
    }

    /// Compiles candidates for the queue as long as there are some.
    fn compile(&self, order: Order, within: Duration) -> Result<()> {
        let Some(mut candidate) = self.queue.to_compile() else { return Ok(()) };
        let mut compiler = Compiler::start(&self.settings.program, order, within)?;
        loop {
            {
                let mut killers = self.killers.lock().unwrap_or_else(PoisonError::into_inner);
                if self.is_over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                killers.retain(|killer| !killer.is_done());
                killers.push(compiler.killer());
            }
            let built = compiler.compile(&self.candidates[candidate])?;
            if self.is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.queue.put(candidate, built);
            let Some(next) = self.queue.to_compile() else { return Ok(()) };
            candidate = next;
        }
    }

    /// Tells of each item whether it compiles, as long as there are some.
    fn tell_compiled(&self, sender: &Sender<Result<Told>>) {
        while let Some((item, built)) = self.queue.take() {
            let finding = built.err().map_or_else(|| Finding::new(Verdict::Compiles, None), |finding| *finding);
            if sender.send(Ok((item, finding, Judged::default()))).is_err() {
                return;
            }
        }
    }

    /// Judges items on one GPU as long as there are some.
    fn judge(&self, bench: &mut Bench, limits: &[Limits], sender: &Sender<Result<Told>>) {
        while let Some((item, built)) = self.queue.take() {
            let since = Instant::now();
            let ended = match built {
                Ok(image) => bench.judge(&self.candidates[item.candidate], &image, limits, self.settings.all_cases),
                Err(finding) => Ok(Some(*finding)),
            };
            let Some(ended) = ended.transpose() else { return };
            let from = Judged { elapsed: since.elapsed(), device: Some(bench.device()), node: None };
            let judged = ended.map(|finding| (item, finding, from));
            let failed = judged.is_err();
            if sender.send(judged).is_err() || failed {
                return;
            }
        }
    }
}

/// Has all items judged. Says whether it was stopped, and gives the benches back.
fn run(
    spec: &Spec,
    candidates: &[Candidate],
    settings: &Settings,
    benches: Vec<Bench>,
    (limits, arch): (&[Limits], Arch),
    items: Vec<Item>,
    mut tell: impl FnMut(Option<Told>) -> Result<ControlFlow<()>>,
) -> Result<(bool, Vec<Bench>)> {
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    let jobs = if settings.jobs == 0 { processors() } else { settings.jobs }.clamp(1, items.len().max(1));
    let order = Order::new(spec, arch, settings.by == By::Fuel);
    let within = Duration::from_secs_f64(spec.limits.compile);
    let stoppers: Vec<Stopper> = benches.iter().map(Bench::stopper).collect();
    let shared = Shared { candidates, settings, queue: Queue::new(items), killers: Mutex::default(), is_over: AtomicBool::new(false) };
    let (sender, receiver) = mpsc::channel::<Result<Told>>();
    thread::scope(|scope| {
        let shared = &shared;
        for _ in 0..jobs {
            let (sender, order) = (sender.clone(), order.clone());
            scope.spawn(move || {
                if let Err(error) = shared.compile(order, within) {
                    let _ = sender.send(Err(error));
                }
            });
        }
        if settings.compile_only.is_some() {
            let sender = sender.clone();
            scope.spawn(move || shared.tell_compiled(&sender));
        }
        let run_on = |mut bench: Bench| {
            let sender = sender.clone();
            scope.spawn(move || {
                shared.judge(&mut bench, limits, &sender);
                bench
            })
        };
        let running: Vec<_> = benches.into_iter().map(run_on).collect();
        drop(sender);
        let (mut is_stopped, mut failed) = (false, None);
        // Until the last who could send something is done.
        loop {
            let told = match receiver.recv_timeout(TICK) {
                Ok(Ok(told)) => tell(Some(told)),
                // What comes after the first error follows from it.
                Ok(Err(error)) => Err(error),
                Err(RecvTimeoutError::Timeout) => tell(None),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            match told {
                Ok(ControlFlow::Continue(())) => continue,
                Ok(ControlFlow::Break(())) if is_stopped || failed.is_some() => continue,
                Ok(ControlFlow::Break(())) => is_stopped = true,
                Err(error) => _ = failed.get_or_insert(error),
            }
            shared.stop();
            stoppers.iter().for_each(Stopper::stop);
        }
        let benches = running.into_iter().filter_map(|running| running.join().ok()).collect();
        match failed {
            Some(error) => Err(error),
            None => Ok((is_stopped, benches)),
        }
    })
}
