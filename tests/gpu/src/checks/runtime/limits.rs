//! Limits other than the deadline, and the ways to wait.

use super::Promise;
use super::bench::{Bench, completed, told};
use crate::session::{Checked, Report, Session};
use cuinstr_harness::variant;
use cuinstr_runtime::cudarc::driver::LaunchConfig;
use cuinstr_runtime::jit::Program;
use cuinstr_runtime::{Cause, Module, Outcome, Tier};
use serde_json::json;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

pub(super) const PROMISES: &[Promise] = &[
    Promise::new("fuel stops a hang, whatever the clock", fuel),
    Promise::new("a budget of cycles stops a hang", budget),
    Promise::new("the most iterations of a thread are counted on request", counted),
    Promise::new("a launch that did all its work after its deadline completes, late", late),
    Promise::new("a hang in a lone PTX is named by its line", lone_ptx),
    Promise::new("a launch is a future that needs no executor", future),
    Promise::new("a wait with a limit gives up in time, and the launch goes on", wait_for),
];

const LONG: Duration = Duration::from_secs(10);
const HANG: &str = "hang/while_true";

fn stopped(outcome: Outcome, cause: Cause) -> Result<String, String> {
    match outcome {
        Outcome::Stopped { why, tier: Tier::Leave, report, .. } if why == cause => Ok(report.to_string()),
        other => Err(format!("it should have been stopped, {cause:?}: {other:?}")),
    }
}

fn fuel(session: &Session) -> Checked {
    let bench = Bench::of(session, HANG, variant::DEFAULT_ALL)?;
    let stream = bench.context.default_stream();
    let since = Instant::now();
    let outcome = bench.start(&stream, |launch| _ = launch.timeout(LONG).fuel(100_000)).map_err(told)?.wait().map_err(told)?;
    let text = stopped(outcome, Cause::Fuel)?;
    if since.elapsed() >= LONG {
        return Err("it took as long as its timeout".into());
    }
    session.next_launch_is_right()?;
    Ok(Report::of(json!({ "took_ms": since.elapsed().as_secs_f64() * 1e3 })).note(text))
}

fn budget(session: &Session) -> Checked {
    let bench = Bench::of(session, HANG, variant::DEFAULT_ALL)?;
    let stream = bench.context.default_stream();
    let cycles = 100_000_000;
    let outcome = bench.start(&stream, |launch| _ = launch.timeout(LONG).budget_cycles(cycles)).map_err(told)?.wait().map_err(told)?;
    let Outcome::Stopped { report, .. } = &outcome else { return Err(format!("it should have been stopped: {outcome:?}")) };
    let spent = report.first.as_ref().and_then(|first| first.elapsed_cycles).unwrap_or(0);
    if spent < cycles {
        return Err(format!("stopped after {spent} cycles of {cycles}"));
    }
    let text = stopped(outcome, Cause::Budget)?;
    session.next_launch_is_right()?;
    Ok(Report::of(json!({ "cycles": spent })).note(text))
}

fn counted(session: &Session) -> Checked {
    let bench = Bench::of(session, "probe/count_steps", variant::DEFAULT_ALL)?;
    let stream = bench.context.default_stream();
    let mut counts = Vec::new();
    for _ in 0..2 {
        let outcome = bench.start(&stream, |launch| _ = launch.timeout(LONG).count_fuel()).map_err(told)?.wait().map_err(told)?;
        completed(&outcome)?;
        let Outcome::Completed { fuel_used: Some(used), .. } = outcome else { return Err("no count".into()) };
        counts.push(used);
    }
    // The loop of the probe runs a million times.
    if counts.iter().any(|count| *count != 1_000_000) {
        return Err(format!("counted {counts:?}"));
    }
    Ok(Report::of(json!({ "fuel_used": counts })))
}

fn late(session: &Session) -> Checked {
    let bench = Bench::new(session, "probe/nap")?;
    let stream = bench.context.default_stream();
    let mut running = bench.start(&stream, |launch| _ = launch.timeout(Duration::from_millis(5)).grace(LONG)).map_err(told)?;
    match running.wait().map_err(told)? {
        Outcome::Completed { late: true, elapsed, .. } => Ok(Report::of(json!({ "elapsed_ms": elapsed.as_secs_f64() * 1e3 }))),
        other => Err(format!("it should have completed late: {other:?}")),
    }
}

fn lone_ptx(session: &Session) -> Checked {
    const SOURCE: &str = "extern \"C\" __global__ void spin(volatile int *word)\n{\n    while (*word == 0)\n        ;\n}\n";
    let context = cuinstr_runtime::open(0).map_err(told)?;
    let stream = context.default_stream();
    // NVRTC knows no such architecture, so it gives PTX of the nearest older one, which the driver compiles.
    let unknown = cuinstr_runtime::image::Arch { number: 91, suffix: None };
    let compiled = Program::from_cuda(SOURCE).file("spin.cu").compile(unknown).map_err(told)?;
    if compiled.form != cuinstr_runtime::image::Form::Ptx {
        return Err(format!("it should be PTX: {:?}", compiled.form));
    }
    let module = Module::load(&context, &compiled.code).map_err(told)?;
    drop(compiled);
    let kernel = module.kernel("spin").map_err(told)?;
    let word = stream.alloc_zeros::<i32>(1).map_err(told)?;
    let mut launch = kernel.on(&stream).map_err(told)?;
    launch.arg(&word).timeout(Duration::from_millis(30));
    // SAFETY: the argument is the kernel's only parameter.
    let mut running =
        unsafe { launch.start(LaunchConfig { grid_dim: (2, 1, 1), block_dim: (32, 1, 1), shared_mem_bytes: 0 }) }.map_err(told)?;
    let text = stopped(running.wait().map_err(told)?, Cause::Deadline)?;
    if !text.contains("spin.cu:3:5") {
        return Err(format!("the report does not name spin.cu:3:5:\n{text}"));
    }
    session.next_launch_is_right()?;
    Ok(Report::default().note(text))
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn future(session: &Session) -> Checked {
    let bench = Bench::new(session, HANG)?;
    let stream = bench.context.default_stream();
    let timeout = Duration::from_millis(30);
    let since = Instant::now();
    let mut running = pin!(bench.start(&stream, |launch| _ = launch.timeout(timeout)).map_err(told)?);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut polls = 0;
    let outcome = loop {
        polls += 1;
        match running.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => break outcome.map_err(told)?,
            Poll::Pending => thread::park_timeout(LONG),
        }
        if since.elapsed() > LONG {
            return Err("nobody woke the task".into());
        }
    };
    stopped(outcome, Cause::Deadline)?;
    let took = since.elapsed();
    if polls > 10 {
        return Err(format!("polled {polls} times"));
    }
    Ok(Report::of(json!({ "took_ms": took.as_secs_f64() * 1e3, "polls": polls })))
}

fn wait_for(session: &Session) -> Checked {
    let bench = Bench::new(session, HANG)?;
    let stream = bench.context.default_stream();
    let mut running = bench.start(&stream, |launch| _ = launch.until_cancelled()).map_err(told)?;
    if running.poll().map_err(told)?.is_some() {
        return Err("a hang has an outcome".into());
    }
    let since = Instant::now();
    if running.wait_for(Duration::from_millis(30)).map_err(told)?.is_some() {
        return Err("a hang has an outcome".into());
    }
    let took = since.elapsed();
    running.cancel().map_err(told)?;
    running.cancel().map_err(told)?;
    stopped(running.wait().map_err(told)?, Cause::Cancelled)?;
    if took > Duration::from_millis(40) {
        return Err(format!("a wait of 30 ms took {took:?}"));
    }
    Ok(Report::of(json!({ "took_ms": took.as_secs_f64() * 1e3 })))
}
