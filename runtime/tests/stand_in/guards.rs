//! Launches that another host makes.

use crate::Case;
use crate::world::{LONG, PTX, SHORT, command, guarded, until};
use cuinstr_runtime::cudarc::driver::{CudaContext, CudaStream, DriverError, result, sys};
use cuinstr_runtime::guard::{About, Attached, Handle, Limits};
use cuinstr_runtime::{Cause, Clock, Error, Outcome};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) const CASES: &[Case] = &[
    ("a guard's launch is stopped at a moment, and by the host's clock", limits),
    ("letting go of a guard takes one grace at most", release),
    ("letting go of a guard whose stream is full ends", full),
    ("a host's launch is paused, and its parts run in another stream", paused),
];

fn host() -> (Arc<CudaContext>, Arc<CudaStream>) {
    let context = cuinstr_runtime::open(0).expect("the stand-in has a device");
    let stream = context.new_stream().expect("a stream");
    (context, stream)
}

fn limits() {
    let (context, stream) = host();
    let since = Instant::now();
    let by_moment = Limits { deadline: Some(since + SHORT * 5), ..Limits::UNTIL_CANCELLED };
    let by_host = Limits { timeout: Some(SHORT), clock: Clock::Host, ..Limits::UNTIL_CANCELLED };
    for (limits, least) in [(by_moment, SHORT * 5), (by_host, SHORT)] {
        let since = if limits.deadline.is_some() { since } else { Instant::now() };
        let guard = guarded(&context, "spin", &stream, &limits).expect("a guard").expect("a launch");
        guard.launched().expect("it was launched");
        let outcome = guard.wait_for(LONG).expect("no error").expect("an outcome");
        assert!(matches!(outcome, Outcome::Stopped { why: Cause::Deadline, .. }), "{outcome:?}");
        assert!(since.elapsed() >= least, "stopped after {:?}", since.elapsed());
    }
}

/// A busy machine may add to one grace what looks like a second one, but hardly each time.
fn release() {
    let (context, stream) = host();
    let grace = Duration::from_millis(400);
    let limits = Limits { grace, ..Limits::UNTIL_CANCELLED };
    let let_go = |is_said: bool, rule: &str| {
        let guard = guarded(&context, "deaf", &stream, &limits).expect("a guard").expect("a launch");
        until("it runs", || command("running") == 1);
        command(rule);
        let since = Instant::now();
        if is_said {
            let said = guard.launched();
            assert_eq!(said.is_err(), rule != "forget", "{said:?}");
            assert!(matches!(guard.wait_for(Duration::ZERO), Ok(None) | Err(Error::OutOfMemory(_))));
        }
        drop(guard);
        let took = since.elapsed();
        command("end");
        until("it has ended", || command("running") == 0);
        took
    };
    for (is_said, rule) in [(false, "forget"), (true, "forget"), (false, "fail cuEventRecord 1 2"), (true, "fail cuEventRecord 1 2")] {
        let took: Vec<_> = (0..6).map(|_| let_go(is_said, rule)).take_while(|took| *took >= grace * 3 / 2).collect();
        assert!(took.len() < 6, "it took {took:?}, with {rule:?} and {is_said}");
    }
}

fn full() {
    let (context, stream) = host();
    let guard = guarded(&context, "spin", &stream, &Limits::UNTIL_CANCELLED).expect("a guard").expect("a launch");
    until("it runs", || command("running") == 1);
    command("depth 4");
    let _events: Vec<_> = (0..4).map(|_| stream.record_event(None).expect("an event")).collect();
    drop(guard);
    until("it is stopped", || command("running") == 0);
}

fn paused() {
    let (context, stream) = host();
    let other = context.new_stream().expect("a stream");
    let counts: Vec<_> = (0..60_000).map(|_| AtomicU32::new(0)).collect();
    let counted = || -> Vec<u32> { counts.iter().map(|count| count.load(Ordering::Relaxed)).collect() };
    let host = Blocks::new(&context, counts.as_ptr().expose_provenance() as u64, GRID).expect("a module");
    let attached = host.attach().expect("it was rewritten");
    // SAFETY: stream and module live as long as this case.
    let guard = unsafe { attached.arm_pausable(stream.cu_stream().expose_provenance(), &Limits::timeout(LONG), GRID) }.expect("a guard");
    host.launch(&stream).expect("a launch");
    guard.launched().expect("it was launched");
    let behind = stream.record_event(None).expect("an event");
    // SAFETY: as above.
    let refused = unsafe { guard.resume(other.cu_stream().expose_provenance()) };
    assert!(matches!(refused, Err(Error::Order("only a launch that is paused can be resumed"))), "it runs: {refused:?}");
    let mut parts = 0;
    while let Outcome::Paused { .. } = guard.pause(LONG).expect("an outcome") {
        parts += 1;
        if parts == 4 {
            command("blocks 0");
        }
        assert!(!behind.is_complete(), "what is behind it waits");
        // SAFETY: as above.
        let refused = unsafe { guard.resume(stream.cu_stream().expose_provenance()) };
        assert!(matches!(refused, Err(Error::Order(_))), "its own stream is held");
        // SAFETY: as above.
        unsafe { guard.resume(other.cu_stream().expose_provenance()) }.expect("the next part");
        host.launch(&other).expect("a launch");
        guard.launched().expect("it was launched");
        std::thread::sleep(Duration::from_millis(4));
    }
    assert!(parts > 3 && counted().iter().all(|count| *count == 1), "{parts}");
    until("what is behind it goes on", || behind.is_complete());
    // A launch that nobody guards has all its blocks run.
    host.launch(&stream).expect("a launch");
    stream.synchronize().expect("it ends");
    assert!(counted().iter().all(|count| *count == 2));
    // SAFETY: as above.
    let guard = unsafe { attached.arm(stream.cu_stream().expose_provenance(), &Limits::timeout(LONG)) }.expect("a guard");
    host.launch(&stream).expect("a launch");
    guard.launched().expect("it was launched");
    assert!(matches!(guard.pause(LONG), Err(Error::NotPausable { .. })));
}

/// Blocks of that launch.
pub(crate) const GRID: [u32; 3] = [1000, 30, 2];

/// A host's own launch of `blocks`.
pub(crate) struct Blocks {
    module: sys::CUmodule,
    function: sys::CUfunction,
    words: [u64; 3],
    pub(crate) grid: [u32; 3],
}

impl Blocks {
    /// One with so many blocks, which count in as many words at this address.
    pub(crate) fn new(context: &Arc<CudaContext>, counts: u64, grid: [u32; 3]) -> std::result::Result<Self, DriverError> {
        let image = format!("{PTX}\0");
        let mut found = Self { module: std::ptr::null_mut(), function: std::ptr::null_mut(), words: [4, 2_000_000, counts], grid };
        context.bind_to_thread()?;
        // SAFETY: image and name end with a zero.
        unsafe {
            sys::cuModuleLoadData(&raw mut found.module, image.as_ptr().cast()).result()?;
            sys::cuModuleGetFunction(&raw mut found.function, found.module, c"blocks".as_ptr()).result()?;
        }
        Ok(found)
    }

    pub(crate) fn attach(&self) -> cuinstr_runtime::Result<Attached> {
        // SAFETY: it is a module, and stays loaded.
        unsafe { Attached::new(Handle::Module(self.module.expose_provenance()), &About::default()) }
    }

    pub(crate) fn launch(&self, stream: &CudaStream) -> std::result::Result<(), DriverError> {
        let mut words = self.words;
        let mut values: Vec<*mut std::ffi::c_void> = words.iter_mut().map(|word| std::ptr::from_mut(word).cast()).collect();
        // SAFETY: these are the kernel's parameters.
        unsafe { result::launch_kernel(self.function, self.grid.into(), (32, 1, 1), 0, stream.cu_stream(), &mut values) }
    }
}
