//! Suspends and resumes a process, and prints a line of JSON for each step: what the caller waited, and what of it the driver took.
//!
//! `measure PID CYCLES LOCK_TIMEOUT_MS [DEADLINE_MS]`; a timeout of 0 is none. It ends at the first failure, and prints that.

use cuinstr_checkpoint::{Handle, Helper, Mapping, Result};
use std::time::{Duration, Instant};

fn main() -> std::process::ExitCode {
    cuinstr_checkpoint::serve_if_asked();
    let numbers: Vec<i64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let &[pid, cycles, timeout, ref rest @ ..] = numbers.as_slice() else {
        eprintln!("usage: measure PID CYCLES LOCK_TIMEOUT_MS [DEADLINE_MS]");
        return 2.into();
    };
    let helper = match rest.first().and_then(|deadline| u64::try_from(*deadline).ok()) {
        Some(deadline) => Helper::new().copy_within(Duration::from_millis(deadline)),
        None => Helper::new(),
    };
    match measure(helper, pid, cycles, timeout) {
        Ok(()) => 0.into(),
        Err(error) => {
            println!("{}", serde_json::json!({ "error": error.to_string() }));
            1.into()
        }
    }
}

fn measure(helper: Helper, pid: i64, cycles: i64, timeout: i64) -> Result<()> {
    let process = Handle::open(helper, pid)?;
    let timeout = u64::try_from(timeout).ok().filter(|ms| *ms > 0).map(Duration::from_millis);
    let told = |step: &str, done: &dyn Fn() -> Result<Duration>| -> Result<()> {
        let since = Instant::now();
        let driver = done()?;
        let waited = since.elapsed();
        println!("{}", serde_json::json!({ "step": step, "waited_us": waited.as_micros() as u64, "driver_us": driver.as_micros() as u64 }));
        Ok(())
    };
    for _ in 0..cycles {
        let state = || process.state().map(|_| Duration::ZERO);
        // The first question starts the helper and the driver in it.
        told("state", &state)?;
        told("state", &state)?;
        seen(&process)?;
        told("lock", &|| process.lock(timeout))?;
        told("checkpoint", &|| process.checkpoint())?;
        seen(&process)?;
        told("restore", &|| process.restore(&Mapping::none()))?;
        told("unlock", &|| process.unlock())?;
    }
    seen(&process)
}

/// What NVML tells of the process.
fn seen(process: &Handle) -> Result<()> {
    let look = process.look()?;
    let gpus: Vec<_> =
        look.gpus.iter().map(|gpu| serde_json::json!({ "free": gpu.free, "is_listed": gpu.is_used, "used": gpu.used })).collect();
    println!(
        "{}",
        serde_json::json!({ "step": "look", "nvml": look.nvml, "gpus": gpus, "host_bytes": cuinstr_checkpoint::system::resident(process.pid()) })
    );
    Ok(())
}
