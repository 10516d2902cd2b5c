//! Launches that another host makes by its own means: here cudarc plays that host.

use super::Promise;
use super::bench::{Bench, completed, cubin, told};
use crate::session::{Checked, Report, Session};
use cuinstr_abi::control::CONTROL_SYMBOL;
use cuinstr_harness::variant;
use cuinstr_runtime::cudarc::driver::{CudaFunction, CudaModule, CudaStream, sys};
use cuinstr_runtime::cudarc::nvrtc::Ptx;
use cuinstr_runtime::guard::{About, Attached, Guard, Handle, Limits};
use cuinstr_runtime::{Cause, Error, Outcome, Result};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const PROMISES: &[Promise] = &[
    Promise::new("another host's launch is stopped by a guard, and the launch after it is as if there had been none", stops),
    Promise::new("a guarded launch that never came, or was of another module, is told from one that ended", never_came),
    Promise::new("bad use of a guard is refused and costs nothing", misuse),
    Promise::new("one guard holds several launches, and several threads may ask it", several),
    Promise::new("a guard works in a context that is not the primary one", own_context),
    Promise::new("a guard works where launches wait for their kernel", stops).with_env("CUDA_LAUNCH_BLOCKING", "1"),
];

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(10);
const HANG: &str = "hang/while_true";

/// A kernel that cudarc loaded.
struct Host {
    bench: Bench,
    module: Arc<CudaModule>,
    function: CudaFunction,
    stream: Arc<CudaStream>,
    attached: Attached,
}

impl Host {
    fn new(session: &Session, name: &str) -> std::result::Result<Self, String> {
        let bench = Bench::new(session, name)?;
        let image = cubin(session, name, variant::DEFAULT)?;
        let module = bench.context.load_module(Ptx::from_binary(image.clone())).map_err(told)?;
        let entry = &session.manifest.subject(name)?.build(variant::DEFAULT)?.entry;
        let function = module.load_function(entry).map_err(told)?;
        let stream = bench.context.new_stream().map_err(told)?;
        let about = About { image: Some(image), ..About::default() };
        // SAFETY: the function is one of a module that this struct keeps loaded.
        let attached = unsafe { Attached::new(Handle::Function(function.cu_function().addr()), &about) }.map_err(told)?;
        Ok(Self { bench, module, function, stream, attached })
    }

    fn arm(&self, stream: &CudaStream, limits: &Limits) -> Result<Guard> {
        // SAFETY: the streams of these cases outlive their guards.
        unsafe { self.attached.arm(stream.cu_stream().addr(), limits) }
    }

    fn launch(&self, stream: &Arc<CudaStream>) -> std::result::Result<(), String> {
        self.bench.bare(stream, &self.function)
    }

    /// The words of the control block that a host writes, but for those that stay as a guarded launch left them.
    fn control(&self) -> std::result::Result<Vec<u8>, String> {
        let global = self.module.get_global(CONTROL_SYMBOL, &self.stream).map_err(told)?;
        let mut bytes = vec![0_u8; global.len()];
        self.stream.memcpy_dtoh(&global, &mut bytes).map_err(told)?;
        self.stream.synchronize().map_err(told)?;
        bytes.truncate(72);
        // Where the flag lies, the start, where the record lies.
        for word in [2, 4, 8] {
            bytes[8 * word..8 * word + 8].fill(0);
        }
        Ok(bytes)
    }
}

fn stops(session: &Session) -> Checked {
    let host = Host::new(session, HANG)?;
    let before = host.control()?;
    let mut latencies = Vec::new();
    let mut report = Report::default();
    for round in 0..3 {
        let guard = host.arm(&host.stream, &Limits::timeout(SHORT)).map_err(told)?;
        host.launch(&host.stream)?;
        guard.launched().map_err(told)?;
        let outcome = guard.wait_for(LONG).map_err(told)?;
        let Some(Outcome::Stopped { why: Cause::Deadline, latency, report: stopped, .. }) = &outcome else {
            return Err(format!("it should have been stopped: {outcome:?}"));
        };
        let line = stopped.first.as_ref().and_then(|first| first.site.place.as_ref()).map(|place| place.line);
        if line.is_none() || stopped.kernel.is_empty() {
            return Err(format!("the report names no line or no kernel: {stopped:?}"));
        }
        if guard.wait_for(LONG).map_err(told)? != outcome || guard.poll().map_err(told)? != outcome {
            return Err("an outcome that is known should be told again".into());
        }
        latencies.push(latency.as_secs_f64() * 1e6);
        let after = host.control()?;
        if after != before {
            return Err(format!("round {round}: the control block holds something of the guarded launch: {after:?}, not {before:?}"));
        }
        report = report.note(stopped.to_string());
    }
    session.next_launch_is_right()?;
    Ok(Report { data: json!({ "latency_us": latencies }), ..report })
}

fn never_came(session: &Session) -> Checked {
    let host = Host::new(session, "saxpy")?;
    let other = Host::new(session, "collatz")?;
    let limits = Limits::timeout(LONG);
    let not_launched = |outcome: Result<Option<Outcome>>| match outcome {
        Err(Error::NotLaunched) => Ok(()),
        other => Err(format!("nothing of the module was launched: {other:?}")),
    };
    let guard = host.arm(&host.stream, &limits).map_err(told)?;
    match guard.wait_for(SHORT) {
        Err(Error::Order(_)) => {}
        other => return Err(format!("a wait before `launched` should be refused: {other:?}")),
    }
    guard.launched().map_err(told)?;
    not_launched(guard.wait_for(LONG))?;
    let guard = host.arm(&host.stream, &limits).map_err(told)?;
    other.launch(&host.stream)?;
    guard.launched().map_err(told)?;
    not_launched(guard.wait_for(LONG))?;
    // One that is dropped without a word: as good as cancelled.
    drop(host.arm(&host.stream, &limits).map_err(told)?);
    let guard = host.arm(&host.stream, &limits).map_err(told)?;
    host.launch(&host.stream)?;
    guard.launched().map_err(told)?;
    completed(&guard.wait_for(LONG).map_err(told)?.ok_or("it should have completed in time")?)?;
    session.next_launch_is_right()?;
    Ok(Report::default())
}

fn misuse(session: &Session) -> Checked {
    let host = Host::new(session, "saxpy")?;
    let mut notes = Vec::new();
    let mut refused = |what: &str, error: Option<Error>, is_it: fn(&Error) -> bool| match error {
        Some(error) if is_it(&error) => {
            notes.push(error.to_string());
            Ok(())
        }
        other => Err(format!("{what}: {other:?}")),
    };
    let plain = host.bench.context.load_module(Ptx::from_binary(cubin(session, "saxpy", variant::PLAIN)?)).map_err(told)?;
    let entry = &session.manifest.subject("saxpy")?.build(variant::PLAIN)?.entry;
    let function = plain.load_function(entry).map_err(told)?;
    // SAFETY: the functions, and what is null, are refused before they are used.
    let attach = |handle| unsafe { Attached::new(handle, &About::default()) }.err();
    refused("a plain module", attach(Handle::Function(function.cu_function().addr())), |error| *error == Error::NotInstrumented)?;
    refused("null", attach(Handle::Module(0)), |error| matches!(error, Error::BadHandle(_)))?;
    refused("a host's address", attach(Handle::Control(4096)), |error| matches!(error, Error::BadHandle(_)))?;
    let limits = Limits::timeout(LONG);
    let zero = host.arm(&host.stream, &Limits::timeout(Duration::ZERO)).err();
    refused("a timeout of zero", zero, |error| *error == Error::ZeroTimeout)?;
    let guard = host.arm(&host.stream, &limits).map_err(told)?;
    refused("armed twice", host.arm(&host.stream, &limits).err(), |error| *error == Error::AlreadyArmed)?;
    host.launch(&host.stream)?;
    guard.launched().map_err(told)?;
    refused("launched twice", guard.launched().err(), |error| matches!(error, Error::Order(_)))?;
    completed(&guard.wait_for(LONG).map_err(told)?.ok_or("it should have completed in time")?)?;
    let captured = host.bench.context.new_stream().map_err(told)?;
    captured.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL).map_err(told)?;
    let arming = host.arm(&captured, &limits).err();
    let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    captured.end_capture(flags).map_err(|error| format!("the capture was broken: {error}"))?;
    refused("a capture", arming, |error| *error == Error::Capturing)?;
    session.next_launch_is_right()?;
    Ok(notes.into_iter().fold(Report::default(), Report::note))
}

fn several(session: &Session) -> Checked {
    let host = Host::new(session, HANG)?;
    let guard = host.arm(&host.stream, &Limits::UNTIL_CANCELLED).map_err(told)?;
    for _ in 0..3 {
        host.launch(&host.stream)?;
    }
    guard.launched().map_err(told)?;
    if let Some(outcome) = guard.wait_for(SHORT).map_err(told)? {
        return Err(format!("it should hang: {outcome:?}"));
    }
    // Another stream's launch comes after it.
    let second = host.bench.context.new_stream().map_err(told)?;
    let behind = host.arm(&second, &Limits::timeout(SHORT)).map_err(told)?;
    host.launch(&second)?;
    behind.launched().map_err(told)?;
    let asked = Instant::now();
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let ask = || (0..4).map(|_| scope.spawn(|| guard.wait_for(LONG))).collect::<Vec<_>>();
        let waiting = ask();
        // A thread without a context.
        let cancelled = scope.spawn(|| guard.cancel()).join();
        let answers = waiting.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned()));
        let answers: Vec<_> = answers.collect();
        cancelled.map_err(|_| "a thread panicked".to_owned()).and_then(|done| done.map_err(told)).map(|()| answers)
    })?;
    let took = asked.elapsed();
    for outcome in outcomes {
        match outcome?.map_err(told)? {
            Some(Outcome::Stopped { why: Cause::Cancelled, .. }) => {}
            other => return Err(format!("all three should have been cancelled: {other:?}")),
        }
    }
    match behind.wait_for(LONG).map_err(told)? {
        Some(Outcome::Stopped { why: Cause::Deadline, .. }) => {}
        other => return Err(format!("the one behind should have been stopped: {other:?}")),
    }
    session.next_launch_is_right()?;
    Ok(Report::of(json!({ "cancel_of_three_us": took.as_secs_f64() * 1e6 })))
}

fn own_context(session: &Session) -> Checked {
    let host = Host::new(session, HANG)?;
    let mut context = std::ptr::null_mut();
    let mut module = std::ptr::null_mut();
    let image = cubin(session, HANG, variant::DEFAULT)?;
    // SAFETY: a context of this thread, and a module in it; both last as long as this process.
    unsafe {
        sys::cuCtxCreate_v4(&raw mut context, std::ptr::null_mut(), 0, 0).result().map_err(told)?;
        sys::cuModuleLoadData(&raw mut module, image.as_ptr().cast()).result().map_err(told)?;
    }
    // SAFETY: the stream, of the other context, is refused.
    let foreign = unsafe { host.attached.arm(host.stream.cu_stream().addr(), &Limits::timeout(SHORT)) };
    let note = match foreign {
        Err(error @ Error::OtherContext { .. }) => error.to_string(),
        other => return Err(format!("another context's module should be refused: {other:?}")),
    };
    // SAFETY: the module was just loaded.
    let attached = unsafe { Attached::new(Handle::Module(module.addr()), &About::default()) }.map_err(told)?;
    // SAFETY: a stream of the first context is refused.
    let foreign = unsafe { attached.arm(host.stream.cu_stream().addr(), &Limits::timeout(SHORT)) };
    if !matches!(foreign, Err(Error::OtherContext { .. })) {
        return Err(format!("another context's stream should be refused: {foreign:?}"));
    }
    // SAFETY: 0 is the default stream. What is armed is never launched.
    let guard = unsafe { attached.arm(0, &Limits::timeout(SHORT)) }.map_err(told)?;
    guard.launched().map_err(told)?;
    match guard.wait_for(LONG) {
        Err(Error::NotLaunched) => Ok(Report::default().note(note)),
        other => Err(format!("nothing was launched: {other:?}")),
    }
}
