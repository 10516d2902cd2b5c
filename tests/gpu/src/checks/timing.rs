//! Measurements: time from cancel to drained, and time with polls over time without.

use super::stop::{LEFT, UNDER_WAY, still_runs};
use crate::launcher::Ended;
use crate::manifest::Subject;
use crate::session::{Checked, Loaded, Report, Session};
use cuinstr::options::Polls;
use cuinstr_abi::control::{Action, Why};
use cuinstr_harness::header::{Header, Place};
use cuinstr_harness::variant;
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

const PROBE: &str = "probe/spin_grid";
/// Cancels in a row.
const CANCELS: usize = 30;
/// Samples of each build.
const SAMPLES: usize = 11;
/// Milliseconds that a sample of the plain build takes at least.
const SAMPLE_MS: f64 = 3.0;
/// Longest that one sample may take.
const SAMPLE_LIMIT: Duration = Duration::from_secs(20);

/// Cancels a kernel that fills the GPU, thirty times in one context, and measures from the host's call until all have left.
///
/// # Errors
/// If one of them does not stop, or the next launch is wrong.
pub fn latency(session: &Session, polls: Polls) -> Checked {
    let variant = if polls == Polls::Each { variant::EACH } else { variant::DEFAULT };
    let loaded = session.load(PROBE, variant)?;
    let mut latencies = Vec::with_capacity(CANCELS);
    for number in 1..=CANCELS {
        let orders = session.arm(&loaded, Action::Leave, |_| {})?;
        session.launch(&loaded)?;
        still_runs(session, UNDER_WAY)?;
        let since = Instant::now();
        session.gpu.flip(loaded.control()?, orders.launch)?;
        match session.wait(LEFT) {
            Ended::Drained => latencies.push(since.elapsed().as_secs_f64() * 1e6),
            Ended::Fault(fault) => return Err(format!("cancel {number}: {fault}")),
            Ended::Running => return Err(format!("cancel {number}: it still runs after {LEFT:?}")),
        }
        let record = session.record(&loaded)?;
        loaded.stopped(&record, orders.launch, Why::Flag).map_err(|why| format!("cancel {number}: {why}"))?;
        if record.threads() != loaded.header.threads() {
            return Err(format!("cancel {number}: {} of {} threads stopped", record.threads(), loaded.header.threads()));
        }
    }
    session.next_launch_is_right()?;
    latencies.sort_by(f64::total_cmp);
    let (median, most) = (latencies[CANCELS / 2], latencies[CANCELS - 1]);
    let note = format!("median {median:.0} us, worst {most:.0} us of {CANCELS}");
    let device = (&session.gpu.name, session.gpu.driver);
    Ok(Report::of(json!({ "device": device, "latencies_us": latencies, "median_us": median, "max_us": most })).note(note))
}

/// Sizes at which a kernel runs for a good part of a millisecond: the grid, and the arguments in order.
fn sizes(name: &str) -> Option<&'static str> {
    Some(match name {
        "saxpy" => "65536|256|i32 16777216;f32 2.5;f32[16777216] const 1;f32[16777216] const 2",
        "saxpy_stride" => "1056|256|u64 33554432;f32 -0.75;f32[33554432] const 1;f32[33554432] const 2",
        "gemm_naive" => {
            "64 64|16 16|i32 1024;i32 1024;i32 1024;f32 1.5;f32[1048576] rand 1;f32[1048576] rand 2;f32 0.25;f32[1048576] rand 3"
        }
        "gemm_tiled" => "128 128|16 16|f32[4194304] rand 1;f32[4194304] rand 2;f32[4194304] zero;i32 2048;i32 2048;i32 2048",
        "collatz" => "8192|128|u64 1000001;i32[1048576] zero;u64[1048576] zero",
        "nbody" => "256|128|f32[131072] rand 17;f32[131072] zero;i32 32768;f32 0.0001",
        "mandelbrot" => "128 171|16 12|i32[4202496] zero;i32 2048;i32 2052;i32 500",
        "spmv_csr" => {
            "8192|128|i32 1048576;i32[1048577] csr 1048576 11;i32[11534336] mod 999983;f64[11534336] const 0.5;f64[999983] rand 16;\
             f64[1048576] zero"
        }
        "convolve2d" => "128 256|16 8|f32[4194304] rand 20;f32[4194304] zero;i32 2048;i32 2048;f32[49] rand 21;i32 7",
        "reduce_shared" => "1056|256|f32[33554432] const 1;f32[1056] zero;i32 33554432",
        _ => return None,
    })
}

/// The header for a large launch: the kernel's own, with another grid and other arguments of the same types.
fn large(subject: &Subject) -> Result<Header, String> {
    let name = &subject.fixture.name;
    let own = &subject.fixture.header;
    let mut parts = sizes(name).ok_or_else(|| format!("no sizes are known for {name}"))?.split('|');
    let (grid, block, args) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    let args = args.replace(';', "\n//@ arg: ");
    let text = format!("//@ about: large\n//@ entry: {}\n//@ grid: {grid}\n//@ block: {block}\n//@ arg: {args}\n", own.entry);
    let mut header = Header::parse(&text, Place::Kernel).map_err(|why| format!("sizes of {name}: {why}"))?;
    let shapes = |header: &Header| header.args.iter().map(cuinstr_harness::header::Arg::shape).collect::<Vec<_>>();
    if shapes(&header) != shapes(own) {
        return Err(format!("{name} takes other parameters than the sizes in checks/timing.rs are for"));
    }
    header.shared = own.shared;
    Ok(header)
}

/// Times a kernel without polls, with the default ones and with one in every iteration, in turn.
///
/// # Errors
/// If one of them fails.
pub fn overhead(session: &Session, name: &str) -> Checked {
    let subject = session.manifest.subject(name)?;
    let header = large(subject)?;
    let builds = [variant::PLAIN, variant::DEFAULT, variant::EACH].map(|variant| session.load_with(subject, variant, &header));
    let builds: Vec<Loaded> = builds.into_iter().collect::<Result<_, _>>()?;
    let time = |loaded: &Loaded, repeats| session.gpu.time(&loaded.kernel, loaded.header, &loaded.arguments, repeats, SAMPLE_LIMIT);
    for loaded in &builds {
        time(loaded, 2)?;
    }
    let once = time(&builds[0], 4)? / 4.0;
    let repeats = (1..=1000).find(|&repeats| f64::from(repeats) * once >= SAMPLE_MS).unwrap_or(1000);
    let mut samples = [const { Vec::new() }; 3];
    for _ in 0..SAMPLES {
        for (loaded, samples) in builds.iter().zip(&mut samples) {
            samples.push(time(loaded, repeats)? * 1e3 / f64::from(repeats));
        }
    }
    for samples in &mut samples {
        samples.sort_by(f64::total_cmp);
    }
    let [plain, default, each] = samples.each_ref().map(|samples| samples[SAMPLES / 2]);
    let spread = samples.each_ref().map(|samples| (samples[SAMPLES - 1] - samples[0]) / samples[SAMPLES / 2]);
    let data = json!({
        "repeats": repeats,
        "plain_us": plain,
        "default_us": default,
        "each_us": each,
        "default": default / plain,
        "each": each / plain,
        "spread": spread,
        "device": (&session.gpu.name, session.gpu.driver),
        "clocks": clocks(),
    });
    let note = format!("default {:.3}, each {:.2} of {plain:.0} us", default / plain, each / plain);
    Ok(Report::of(data).note(note))
}

/// What `nvidia-smi` says of the first device, by field.
#[must_use]
pub fn clocks() -> Value {
    const FIELDS: &str =
        "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,temperature.gpu,power.draw,mig.mode.current";
    let mut command = Command::new("nvidia-smi");
    command.args(["-i", "0", "--format=csv,noheader", &format!("--query-gpu={FIELDS}")]);
    match cuinstr_harness::process::run(&mut command, Duration::from_secs(10)) {
        Ok(finished) if finished.success() => {
            let values = finished.stdout.trim().split(',').map(|value| Value::from(value.trim()));
            Value::Object(FIELDS.split(',').map(str::to_owned).zip(values).collect())
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuinstr_harness::fixtures;
    use cuinstr_harness::variant::BENCHED;
    use std::collections::BTreeMap;

    #[test]
    fn every_benched_kernel_has_sizes_that_fit_its_parameters() {
        for fixture in fixtures::all().expect("the headers are right") {
            if BENCHED.contains(&fixture.name.as_str()) {
                let subject = Subject { fixture, builds: BTreeMap::new(), failures: BTreeMap::new() };
                large(&subject).unwrap_or_else(|why| panic!("{why}"));
            }
        }
    }
}
