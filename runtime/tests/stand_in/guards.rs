//! Launches that another host makes.

use crate::Case;
use crate::world::{LONG, SHORT, command, guarded, until};
use cuinstr_runtime::cudarc::driver::{CudaContext, CudaStream};
use cuinstr_runtime::guard::Limits;
use cuinstr_runtime::{Cause, Clock, Error, Outcome};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const CASES: &[Case] = &[
    ("a guard's launch is stopped at a moment, and by the host's clock", limits),
    ("letting go of a guard takes one grace at most", release),
    ("letting go of a guard whose stream is full ends", full),
];

fn host() -> (Arc<CudaContext>, Arc<CudaStream>) {
    let context = cuinstr_runtime::open(0).expect("the stand-in has a device");
    let stream = context.new_stream().expect("a stream");
    (context, stream)
}

fn limits() {
    let (context, stream) = host();
    let by_moment = Limits { deadline: Some(Instant::now() + SHORT * 5), ..Limits::UNTIL_CANCELLED };
    let by_host = Limits { timeout: Some(SHORT), clock: Clock::Host, ..Limits::UNTIL_CANCELLED };
    for limits in [by_moment, by_host] {
        let since = Instant::now();
        let guard = guarded(&context, "spin", &stream, &limits).expect("a guard").expect("a launch");
        guard.launched().expect("it was launched");
        let outcome = guard.wait_for(LONG).expect("no error").expect("an outcome");
        assert!(matches!(outcome, Outcome::Stopped { why: Cause::Deadline, .. }), "{outcome:?}");
        assert!(since.elapsed() >= SHORT, "stopped after {:?}", since.elapsed());
    }
}

fn release() {
    let (context, stream) = host();
    let grace = Duration::from_millis(400);
    let limits = Limits { grace, ..Limits::UNTIL_CANCELLED };
    for (is_said, rule) in [(false, "forget"), (true, "forget"), (false, "fail cuEventRecord 1 2"), (true, "fail cuEventRecord 1 2")] {
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
        assert!(since.elapsed() < grace * 3 / 2, "it took {:?}, with {rule:?} and {is_said}", since.elapsed());
        command("end");
        until("it has ended", || command("running") == 0);
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
