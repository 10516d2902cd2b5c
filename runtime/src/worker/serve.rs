//! What a worker process does: makes a context, then whatever its parent says, until the parent is gone or kills it.
//!
//! There are three threads. One listens, and handles cancels at once. The main one does what it is told, in order. One
//! waits for the launches, in their order. A process that has lost its parent ends by a signal, since destructors could
//! wait for a kernel that hangs.

use super::process::VARIABLE;
use super::wire::{self, Answer, MOST_PAYLOAD, Message, OURS, Order, Parameter, Request, Task};
use super::words::{End, nanos};
use crate::driver;
use crate::error::{Error, Result};
use crate::launch::Prepared;
use crate::launch::{Canceller, Running};
use crate::limits::{Clock, Limits};
use crate::module::{Kernel, Module};
use crate::slot::pool::LaunchContext;
use cudarc::driver::sys::CUfunction_attribute_enum as Attribute;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DriverError, LaunchConfig};
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longest that a parent may take to say who it is.
const GREETING: Duration = Duration::from_secs(10);
/// How often a worker looks whether its parent lives, besides noticing that the pipe is closed.
const LOOK: Duration = Duration::from_secs(1);
/// Most bytes of an argument.
const LARGE: usize = 4096;
/// Bytes that are copied once while no launch waits.
const WARM: usize = 1 << 20;
/// Dynamic shared memory that a kernel has without asking for it, in bytes.
const ORDINARY_SHARED: u32 = 48 << 10;

/// Whether this program calls [`serve_if_asked`], and so can be its own worker.
static IS_OFFERED: AtomicBool = AtomicBool::new(false);

pub(super) fn is_offered() -> bool {
    IS_OFFERED.load(Ordering::Relaxed)
}

/// Serves as a worker if this process was started as one, and does not return then; does nothing otherwise.
///
/// A program that is to be its own worker calls this first thing in `main`: before it reads its arguments, starts threads, prints, or makes
/// a context.
pub fn serve_if_asked() {
    IS_OFFERED.store(true, Ordering::Relaxed);
    if std::env::var_os(VARIABLE).is_some() {
        serve();
    }
}

fn serve() -> ! {
    let parent = parent_id();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        hook(info);
        die();
    }));
    let watched = crate::thread::spawn("cuinstr-parent", move || {
        // A fork of the parent may hold its end of the pipe open.
        while parent_id() == parent {
            thread::sleep(LOOK);
        }
        die();
    });
    if watched.is_err() {
        die();
    }
    let mut stream = match greeted() {
        Ok(stream) => stream,
        Err(error) => {
            // Nothing has been started yet that a destructor could wait for.
            eprintln!("cuinstr: this process was asked to be a worker ({VARIABLE} is set), but nobody it knows speaks to it: {error}");
            std::process::exit(2);
        }
    };
    let opened = wire::receive::<Request>(&mut stream, None, |_| 0).and_then(|(request, _)| match request.task {
        Task::Open { device } => Ok(device),
        _ => Err(io::ErrorKind::InvalidData.into()),
    });
    let Ok(device) = opened else { die() };
    let Ok(outbox) = stream.try_clone() else { die() };
    let outbox = Outbox(Arc::new(Mutex::new(outbox)));
    let server = match Server::open(device, outbox.clone()) {
        Ok((server, answer)) => {
            outbox.say(&Message::Done { serial: 0, answer }, &[]);
            server
        }
        Err(error) => {
            outbox.say(&Message::Refused { serial: 0, refusal: error.into() }, &[]);
            die();
        }
    };
    let (sender, receiver) = mpsc::channel();
    let cancellers = Arc::clone(&server.cancellers);
    if crate::thread::spawn("cuinstr-listen", move || listen(stream, &sender, &cancellers)).is_err() {
        die();
    }
    server.serve(&receiver)
}

/// Ends this process without a destructor.
fn die() -> ! {
    let own = rustix::process::getpid();
    let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
    std::process::abort();
}

/// The parent's pipe is standard input.
fn greeted() -> io::Result<UnixStream> {
    let mut stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    wire::greet(&mut stream)?;
    let theirs = wire::greeted(&mut stream, Instant::now() + GREETING)?;
    // The parent names both versions; it is the one who can tell somebody.
    if theirs == OURS { Ok(stream) } else { Err(io::Error::new(io::ErrorKind::InvalidData, "it is of another release")) }
}

type Cancellers = Arc<Mutex<HashMap<u64, Canceller>>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(mut inbox: UnixStream, requests: &Sender<(Request, Vec<u8>)>, cancellers: &Cancellers) -> ! {
    while let Ok((request, payload)) = wire::receive::<Request>(&mut inbox, None, |_| MOST_PAYLOAD) {
        if let Task::Cancel { launch } = request.task {
            let canceller = lock(cancellers).get(&launch).cloned();
            // One that can't be cancelled is killed with this process.
            let _ = canceller.map(|canceller| canceller.cancel());
        } else if requests.send((request, payload)).is_err() {
            break;
        }
    }
    die();
}

/// Where all threads speak to the parent.
#[derive(Clone)]
struct Outbox(Arc<Mutex<UnixStream>>);

impl Outbox {
    fn say(&self, message: &Message, payload: &[u8]) {
        // Without a parent there is nothing left to do. A parent that does not listen keeps this waiting, which does no harm.
        if wire::send(&mut lock(&self.0), message, payload, None).is_err() {
            die();
        }
    }
}

/// A module with the kernels that were asked for.
struct Shelf {
    module: Module,
    kernels: HashMap<String, Kernel>,
}

struct Server {
    stream: Arc<CudaStream>,
    // Kept, so that the context's memory, streams and clock are there when the first module comes.
    _launch_context: Arc<LaunchContext>,
    context: Arc<CudaContext>,
    outbox: Outbox,
    modules: HashMap<u64, Shelf>,
    buffers: HashMap<u64, CudaSlice<u8>>,
    cancellers: Cancellers,
    waiting: Sender<Waiting>,
    in_flight: Arc<(Mutex<usize>, Condvar)>,
}

impl Server {
    /// Makes the context, and does once whatever takes long the first time.
    fn open(device: usize, outbox: Outbox) -> Result<(Self, Answer)> {
        let context = crate::context::device::open(device)?;
        let launch_context = LaunchContext::of(&context)?;
        let stream = context.default_stream();
        // The first copies of some size, the first launch: each makes room of its own.
        let filler = vec![0_u8; WARM];
        let copied = stream.alloc_zeros::<u8>(WARM).and_then(|_| stream.clone_htod(&filler)).and_then(|warm| stream.clone_dtoh(&warm));
        copied.map_err(told("cuMemcpy"))?;
        let name = context.name().map_err(told("cuDeviceGetName"))?;
        let (major, minor) = context.compute_capability().map_err(told("cuDeviceGetAttribute"))?;
        let answer = Answer::Ready { device: name, arch: (major * 10 + minor).unsigned_abs() };
        let (waiting, launches) = mpsc::channel();
        let cancellers = Cancellers::default();
        let in_flight = Arc::<(Mutex<usize>, Condvar)>::default();
        let waiter = Waiter { outbox: outbox.clone(), cancellers: Arc::clone(&cancellers), in_flight: Arc::clone(&in_flight) };
        let started = crate::thread::spawn("cuinstr-wait", move || waiter.wait(&launches));
        started.map_err(|error| Error::Environment(format!("no thread could be started: {error}")))?;
        let server = Self {
            stream,
            _launch_context: launch_context,
            context,
            outbox,
            modules: HashMap::new(),
            buffers: HashMap::new(),
            cancellers,
            waiting,
            in_flight,
        };
        Ok((server, answer))
    }

    fn serve(mut self, requests: &Receiver<(Request, Vec<u8>)>) -> ! {
        while let Ok((Request { serial, task }, payload)) = requests.recv() {
            if let Task::Forget { modules, buffers } = task {
                self.settle();
                for module in modules {
                    self.modules.remove(&module);
                }
                for buffer in buffers {
                    self.buffers.remove(&buffer);
                }
                continue;
            }
            match self.perform(task, &payload) {
                Ok((answer, payload)) => self.outbox.say(&Message::Done { serial, answer }, &payload),
                Err(error) => self.outbox.say(&Message::Refused { serial, refusal: error.into() }, &[]),
            }
        }
        die();
    }

    /// Waits until nothing is in flight, for calls of the driver that would wait for it and let no cancel through meanwhile.
    fn settle(&self) {
        let (count, changed) = &*self.in_flight;
        let mut count = lock(count);
        while *count > 0 {
            count = changed.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn perform(&mut self, task: Task, payload: &[u8]) -> Result<(Answer, Vec<u8>)> {
        if !matches!(task, Task::Start(_)) {
            self.settle();
        }
        self.context.bind_to_thread().map_err(told("cuCtxSetCurrent"))?;
        let nothing = (Answer::Nothing, Vec::new());
        match task {
            Task::Load { module } => {
                let loaded = Module::load(&self.context, payload)?;
                self.modules.insert(module, Shelf { module: loaded, kernels: HashMap::new() });
                Ok(nothing)
            }
            Task::Find { module, kernel } => {
                let name = self.kernel(module, &kernel)?.name().to_owned();
                Ok((Answer::Kernel { name }, Vec::new()))
            }
            Task::Blank { buffer, bytes } => {
                // Whatever uses it comes behind in the same stream, so nothing waits for its zeroes.
                let slice = self.stream.alloc_zeros::<u8>(bytes.max(1)).map_err(told("cuMemAlloc"))?;
                self.buffers.insert(buffer, slice);
                Ok(nothing)
            }
            Task::Fill { buffer } => {
                let filler = if payload.is_empty() { &[0][..] } else { payload };
                let slice = self.stream.clone_htod(filler).map_err(told("cuMemAlloc"))?;
                self.stream.synchronize().map_err(told("cuStreamSynchronize"))?;
                self.buffers.insert(buffer, slice);
                Ok(nothing)
            }
            Task::Write { buffer, offset } => {
                let slice = self.buffers.get_mut(&buffer).ok_or_else(|| unknown("buffer", buffer))?;
                let mut part = slice.try_slice_mut(offset..offset + payload.len()).ok_or_else(|| unknown("part of buffer", buffer))?;
                if !payload.is_empty() {
                    self.stream.memcpy_htod(payload, &mut part).map_err(told("cuMemcpyHtoD"))?;
                }
                self.stream.synchronize().map_err(told("cuStreamSynchronize"))?;
                Ok(nothing)
            }
            Task::Read { buffer, offset, bytes } => {
                let slice = self.buffers.get(&buffer).ok_or_else(|| unknown("buffer", buffer))?;
                let part = slice.try_slice(offset..offset + bytes).ok_or_else(|| unknown("part of buffer", buffer))?;
                let contents = if bytes == 0 { Vec::new() } else { self.stream.clone_dtoh(&part).map_err(told("cuMemcpyDtoH"))? };
                self.stream.synchronize().map_err(told("cuStreamSynchronize"))?;
                Ok((Answer::Bytes, contents))
            }
            Task::Start(order) => {
                self.start(&order)?;
                Ok(nothing)
            }
            Task::Open { .. } | Task::Cancel { .. } | Task::Forget { .. } => Err(Error::Bug("a task out of turn".into())),
        }
    }

    fn kernel(&mut self, module: u64, name: &str) -> Result<&Kernel> {
        let loaded = self.modules.get_mut(&module).ok_or_else(|| unknown("module", module))?;
        if !loaded.kernels.contains_key(name) {
            let kernel = loaded.module.kernel(name)?;
            loaded.kernels.insert(name.to_owned(), kernel);
        }
        loaded.kernels.get(name).ok_or_else(|| unknown("module", module))
    }

    fn start(&mut self, order: &Order) -> Result<()> {
        let stream = Arc::clone(&self.stream);
        let kernel = self.kernel(order.module, &order.kernel)?.clone();
        let mut launch = kernel.prepare(&stream);
        self.give(&mut launch, &kernel, &order.arguments)?;
        if order.shared_bytes > ORDINARY_SHARED {
            let bytes = i32::try_from(order.shared_bytes).unwrap_or(i32::MAX);
            let most = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            kernel.cuda_function()?.set_attribute(most, bytes).map_err(|error| Error::Arguments {
                kernel: kernel.name().to_owned(),
                what: format!("the driver refuses {bytes} bytes of shared memory: {}", driver::fault("cuFuncSetAttribute", error)),
            })?;
        }
        launch.limits(Limits {
            timeout: order.timeout.map(Duration::from_nanos),
            deadline: order.deadline.map(|left| Instant::now() + Duration::from_nanos(left)),
            fuel: order.fuel,
            budget_cycles: order.budget,
            count_fuel: order.count_fuel,
            clock: if order.by_host_clock { Clock::Host } else { Clock::Device },
            grace: Duration::from_nanos(order.grace),
            begin_within: Duration::from_nanos(order.begin_within),
            extents: None,
        });
        if order.is_timed {
            launch.timed();
        }
        if order.is_cooperative {
            launch.cooperative();
        }
        if let Some(cluster) = order.cluster {
            launch.cluster(cluster);
        }
        let ([gx, gy, gz], [bx, by, bz]) = (order.grid, order.block);
        let config = LaunchConfig { grid_dim: (gx, gy, gz), block_dim: (bx, by, bz), shared_mem_bytes: order.shared_bytes };
        // SAFETY: number and sizes of the arguments are the kernel's, as far as the driver can tell. Whatever it does with them, it does to this
        // process, which is here to be lost: it owns nothing but what its parent has a copy of or wants to lose, and is believed nothing.
        let running = unsafe { launch.start(config) }?;
        lock(&self.cancellers).insert(order.launch, running.canceller());
        *lock(&self.in_flight.0) += 1;
        let begin_within = Duration::from_nanos(order.begin_within);
        self.waiting
            .send(Waiting { launch: order.launch, running, begin_within })
            .map_err(|_| Error::Bug("the thread that waits is gone".into()))
    }

    /// Gives a launch its arguments, which it compares with the kernel's parameters.
    fn give(&self, launch: &mut Prepared, kernel: &Kernel, arguments: &[Parameter]) -> Result<()> {
        for (index, argument) in arguments.iter().enumerate() {
            match argument {
                Parameter::Bytes(bytes) if bytes.len() > LARGE => {
                    let what = format!("argument {index} has {} bytes; at most {LARGE} are taken", bytes.len());
                    return Err(Error::Arguments { kernel: kernel.name().to_owned(), what });
                }
                Parameter::Bytes(bytes) => launch.bytes(bytes),
                Parameter::Buffer(id) => {
                    let slice = self.buffers.get(id).ok_or_else(|| unknown("buffer", *id))?;
                    launch.arg(slice.device_ptr(&self.stream).0)
                }
            };
        }
        Ok(())
    }
}

/// A launch to be waited for.
struct Waiting {
    launch: u64,
    running: Running,
    begin_within: Duration,
}

/// Waits for the launches, in their order.
struct Waiter {
    outbox: Outbox,
    cancellers: Cancellers,
    in_flight: Arc<(Mutex<usize>, Condvar)>,
}

impl Waiter {
    fn wait(&self, launches: &Receiver<Waiting>) {
        while let Ok(Waiting { launch, mut running, begin_within }) = launches.recv() {
            let first_since = Instant::now();
            let outcome = loop {
                match running.wait() {
                    // The time that it had to begin counts from its launch, but others were in front of it.
                    Err(Error::NotBegun { .. }) if first_since.elapsed() < begin_within => thread::sleep(Duration::from_millis(1)),
                    outcome => break outcome,
                }
            };
            let end = match outcome {
                Err(Error::Undrained { after, .. }) => match running.so_far() {
                    Some((why, report)) => End::Undrained { why: why.into(), since: nanos(after), report: *report },
                    // It left at the last moment.
                    None => End::from(running.wait()),
                },
                outcome => End::from(outcome),
            };
            lock(&self.cancellers).remove(&launch);
            let is_ruined = end.ruins("").is_some();
            self.outbox.say(&Message::Ended { launch, end: Box::new(end) }, &[]);
            if is_ruined {
                // What follows is for the parent to do. Dropping the launch would wait.
                std::mem::forget(running);
                loop {
                    thread::park();
                }
            }
            let (count, changed) = &*self.in_flight;
            *lock(count) -= 1;
            changed.notify_all();
        }
    }
}

fn told(call: &'static str) -> impl Fn(DriverError) -> Error {
    move |error| driver::fault(call, error).into()
}

fn unknown(what: &str, id: u64) -> Error {
    Error::Bug(format!("this worker has no {what} {id}"))
}
