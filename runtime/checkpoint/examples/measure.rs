//! Suspends and resumes a process, and prints a line of JSON for each step: what the caller waited, and what of it the driver took.
//!
//! `measure PID CYCLES LOCK_TIMEOUT_MS [DEADLINE_MS]`; a timeout of 0 is none. It ends at the first failure, and prints that.
//!
//! `measure PID CYCLES LOCK_TIMEOUT_MS stop`: the process runs under `cuinstr run`. Its launches are held and stopped before each lock, as with `--then stop`.

use cuinstr_abi::sockets;
use cuinstr_checkpoint::{Error, Handle, Helper, Mapping, Result};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

fn main() -> std::process::ExitCode {
    cuinstr_checkpoint::serve_if_asked();
    let numbers: Vec<i64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let &[pid, cycles, timeout, ref rest @ ..] = numbers.as_slice() else {
        eprintln!("usage: measure PID CYCLES LOCK_TIMEOUT_MS [DEADLINE_MS]");
        return 2.into();
    };
    let stops = std::env::args().next_back().is_some_and(|word| word == "stop");
    let helper = match rest.first().and_then(|deadline| u64::try_from(*deadline).ok()) {
        Some(deadline) => Helper::new().copy_within(Duration::from_millis(deadline)),
        None => Helper::new(),
    };
    match measure(helper, pid, cycles, timeout, stops) {
        Ok(()) => 0.into(),
        Err(error) => {
            println!("{}", serde_json::json!({ "error": error.to_string() }));
            1.into()
        }
    }
}

fn measure(helper: Helper, pid: i64, cycles: i64, timeout: i64, stops: bool) -> Result<()> {
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
        if stops {
            until_it_runs(&process)?;
        }
        let since = Instant::now();
        if stops {
            told("stop", &|| ask(&process, "pause").and_then(|_| ask(&process, "stop")).map(|_| Duration::ZERO))?;
        }
        told("lock", &|| process.lock(timeout))?;
        told("checkpoint", &|| process.checkpoint())?;
        told("suspended", &|| Ok(since.elapsed()))?;
        seen(&process)?;
        told("restore", &|| process.restore(&Mapping::none()))?;
        told("unlock", &|| process.unlock())?;
        if stops {
            ask(&process, "resume")?;
        }
    }
    seen(&process)
}

/// Asks a process under `cuinstr run`.
fn ask(process: &Handle, request: &str) -> Result<String> {
    let user = rustix::process::geteuid().as_raw();
    let folder = sockets::folder(std::env::var_os("XDG_RUNTIME_DIR"), std::env::var_os("TMPDIR"), user);
    let exchange = || {
        let mut stream = UnixStream::connect(folder.join(sockets::name(process.pid(), 0)))?;
        stream.write_all(format!("{request}\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    exchange().map_err(|error: std::io::Error| Error::Helper(format!("`{request}`: {error}")))
}

fn until_it_runs(process: &Handle) -> Result<()> {
    while ask(process, "list")?.is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
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
